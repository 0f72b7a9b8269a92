/*
 * What --status ID shows of some jobs: whether they wait, run or have ended, all of their attempts,
 * and their logs.
 *
 *	job_views_take -> show_job (show_job.h) -> job_views_release
 *
 * It reads the state as view.h does, and then the history, so no job is missed that ends meanwhile.
 * It changes nothing.
 */
#ifndef GPULEASE_JOB_VIEW_H
#define GPULEASE_JOB_VIEW_H

#include "history.h"
#include "operands.h"
#include "view.h"

enum { JOB_COMMAND_SIZE = 16 * 1024 };

struct job_view {
	uint64_t id;
	bool is_known; /* there is such a job; else nothing below is set */
	uint32_t uid;
	int64_t since_ms; /* when it came, CLOCK_REALTIME; 0: unknown */
	/* at most one of these: its place in the queue, or what it runs with */
	const struct view_job *waits;
	const struct view_holder *runs;
	/* its attempts that have ended, the latest first */
	struct history_end *ends;
	size_t end_count, end_room;
	char command[JOB_COMMAND_SIZE]; /* "" if it may not be shown */
	char log[PATH_MAX];             /* "": none, or it may not be read */
};

struct job_views {
	struct view view; /* the jobs point into it */
	struct job_view *all;
	size_t count, room;
};

#define JOB_VIEWS_NONE ((struct job_views){ .all = NULL })

/*
 * Reads the jobs that @walk names, each by its id or the number of one of its tickets.  Sets *@ret,
 * which the caller releases.  Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int job_views_take(const struct context *context, struct operand_walk *walk,
	struct job_views *ret, struct why *why);
void job_views_release(struct job_views *jobs);

#endif
