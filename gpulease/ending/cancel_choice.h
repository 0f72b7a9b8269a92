/*
 * The operands of --cancel that can name several jobs: `mine`, `all`, a range of ids, a name.  They
 * choose among the jobs that wait or run and that the user may end.  Pure.
 */
#ifndef GPULEASE_CANCEL_CHOICE_H
#define GPULEASE_CANCEL_CHOICE_H

#include "live_jobs.h"
#include "operands.h"

enum choice_kind { CHOICE_RANGE, CHOICE_NAME, CHOICE_MINE, CHOICE_ALL };

struct cancel_choice {
	enum choice_kind kind;
	uint32_t uid;         /* of the user who cancels */
	uint64_t first, last; /* CHOICE_RANGE */
	/* CHOICE_NAME; of a text that is too long for a name one byte more than a name has */
	char name[NAME_SIZE_MAX + 1];
};

/* Makes the choice that user @uid has written as @operand, which is not one id. */
struct cancel_choice cancel_choice_of(const struct operand *operand, uint32_t uid);

/*
 * Whether the choice includes @job.  A range and a name include the user's own jobs, and for root
 * those of all users.  `all` includes nothing unless the user is root.
 */
bool cancel_choice_admits(const struct cancel_choice *choice, const struct live_job *job);

/*
 * Whether the choice would include @job if its name were what it seems to be: the whole name cannot
 * be read.  The choice then includes it not.
 */
bool cancel_choice_doubts(const struct cancel_choice *choice, const struct live_job *job);

/* Sets @why to the message for job @id that the choice doubts. */
void cancel_choice_explain_doubt(
	const struct cancel_choice *choice, uint64_t id, struct why *why);

/* Sets @why to the message for a choice that includes no job. */
void cancel_choice_explain_none(const struct cancel_choice *choice, struct why *why);

#endif
