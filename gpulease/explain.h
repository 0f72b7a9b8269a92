/*
 * Why a ticket waits, in words that a person understands.  Used in the line on stderr, in
 * --queue and in JSON, so that all say the same.
 */
#ifndef GPULEASE_EXPLAIN_H
#define GPULEASE_EXPLAIN_H

#include "snapshot.h"

/*
 * Appends the reason of @verdict, which rests on @view, to @out: "needs 4 GPUs, 3 are free;
 * GPU 5 is used outside gpulease by pid 991 (alice, python)".
 */
void explain_verdict(
	const struct snapshot *view, const struct verdict *verdict, struct text *out);

/* The same in parts: what is needed of how many GPUs, "0.5 of a GPU"; … */
void explain_need(const struct need *need, unsigned gpus, struct text *out);

/* … a share of a GPU, "0.5", "0.25"; … */
void explain_share(unsigned percent, struct text *out);

/* … who is to blame besides leases, "GPU 5 is paused"; … */
void explain_blame(
	const struct snapshot *view, const struct verdict *verdict, struct text *out);

/* … and when @at_ms (CLOCK_BOOTTIME) is: "about 14:20". */
void explain_when(int64_t at_ms, struct text *out);

/* Appends what keeps GPU @slot from being free, "is paused by alice: fan", or nothing. */
void explain_gpu(const struct snapshot *view, unsigned slot, struct text *out);

/* Appends why a ticket's owner cannot act, by ->stuck of the ticket; see passover.h. */
void explain_stuck(const char *stuck, struct text *out);

/* The word for a state, as --status and JSON have it: "idle", "leased" … */
const char *state_word(enum gpu_state state);

/*
 * From now on what users run is shown to nobody but themselves and root: no command, no name.
 * For configurations with show-commands = own.
 */
void explain_hide_others(void);

/* Whether this user may be shown what user @uid runs. */
bool may_show_commands_of(uint32_t uid);

/* Whether this user may be shown the command of process @pid, whoever's it is. */
bool may_show_process(uint32_t pid);

/*
 * What a process is called: its user and name, "alice, python", as far as can be seen and may
 * be shown.
 */
void describe_process(uint32_t pid, struct text *out);

/* The user's name, or its number where it has none. */
void describe_user(uint32_t uid, const char *recorded, struct text *out);

#endif
