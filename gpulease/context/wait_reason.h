/*
 * Why a ticket waits, in words.  The line on stderr, --queue and JSON all use these words.
 *
 * The plan has found the reason (struct verdict, policy.h); nothing is judged here.
 */
#ifndef GPULEASE_WAIT_REASON_H
#define GPULEASE_WAIT_REASON_H

#include "broker.h"

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

/* Appends the local time of @at_ms (CLOCK_BOOTTIME), "14:20"; with the date unless today. */
void explain_time(int64_t at_ms, struct text *out);

/* The same for an estimate: "about 14:20". */
void explain_when(int64_t at_ms, struct text *out);

/*
 * Appends when the job usually starts, if that is known: "; usually 16:40 to 17:05 (7 runs)".
 * @is_after_time: the text before it says when the job starts at the latest.
 */
void explain_usually(
	const struct foretold *foretold, bool is_after_time, struct text *out);

/*
 * Appends by how much a job counts as having come later, and why: "had 212.0 GPU-hours in 7d,
 * which counts as 24h later".
 */
void explain_fair_share(const struct config_share *share,
	const struct broker_share *counts, struct text *out);

/* Appends " by USER: REASON", without the part that is "". */
void explain_by(const char *user, const char *reason, struct text *out);

/*
 * Appends what a window is, as a sentence without its subject and "is": "kept from 14:20 for 3h00m
 * but for alice by root: demo".  @at_ms is the time of the snapshot (CLOCK_BOOTTIME).
 */
void explain_window(const struct window *window, int64_t at_ms, struct text *out);

/* Appends why a ticket's owner cannot act: @stuck is the code in its ticket (passover.h). */
void explain_stuck(const char *stuck, struct text *out);

#endif
