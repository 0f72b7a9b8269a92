/*
 * Why a ticket waits, in words.  The line on stderr, --queue and JSON all use these words.
 *
 * The plan has found the reason (struct verdict, policy.h); nothing is judged here.
 */
#ifndef GPULEASE_WAIT_REASON_H
#define GPULEASE_WAIT_REASON_H

#include "snapshot.h"

/*
 * Appends the reason of @verdict, which the plan found in @view: "needs 4 GPUs, 3 are free; GPU 5
 * is used outside gpulease by pid 991 (alice, python)".
 */
void explain_verdict(
	const struct snapshot *view, const struct verdict *verdict, struct text *out);

/* Appends what a job needs of @gpus GPUs: "2 GPUs", "0.5 of a GPU". */
void explain_need(const struct need *need, unsigned gpus, struct text *out);

/*
 * Appends a size of memory, in G: "18G", "17.6G".  A need is rounded up, and room is rounded down.
 * So a need for which there is too little room always looks larger than the room.
 */
void explain_size(uint64_t mib, bool is_need, struct text *out);

/* Appends a share of a GPU: 50 percent is "0.5", 25 is "0.25". */
void explain_share(unsigned percent, struct text *out);

/* Appends the local time of @at_ms (CLOCK_BOOTTIME), "about 14:20"; with the date unless today. */
void explain_when(int64_t at_ms, struct text *out);

/* Appends why a ticket's owner cannot act: @stuck is the code in its ticket (passover.h). */
void explain_stuck(const char *stuck, struct text *out);

#endif
