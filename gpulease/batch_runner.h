/*
 * The runner of a batch: reads the jobs file whenever it has changed, keeps as many of its jobs
 * in the queue as there are to be, and tells what becomes of them.  It schedules nothing: each
 * job has a process and a ticket of its own, and waits like anybody's.
 *
 * All that it knows is in the journal.  Killed, it leaves jobs that run on and are found again
 * by the next runner; those that wait leave the queue.  Nothing is done but at an event.
 */
#ifndef GPULEASE_BATCH_RUNNER_H
#define GPULEASE_BATCH_RUNNER_H

#include "batch_child.h"
#include "batch_file.h"
#include "batch_plan.h"
#include "batch_show.h"
#include "context.h"
#include "life.h"
#include "watch.h"

struct batch_runner {
	struct context context;
	struct batch_file file;
	struct batch_list list;
	struct batch_journal journal;
	struct batch_jobs jobs;
	struct batch_plan plan;
	struct batch_nursery nursery;
	struct batch_board board; /* ->order: the jobs that the file has, in its order */
	struct batch_show show;

	/* numbers of those that are at work: waiting, running, followed */
	uint64_t *active;
	size_t active_count, active_room;
	struct lives lives; /* of those that are followed without being children */

	int signal_fd;
	struct watch watch;
	const char *python; /* what runs scripts */

	unsigned stops;       /* how often it was told to stop */
	bool is_told;         /* by a signal: not for --fail-fast */
	bool is_bad;          /* the file as it is now is none that can be read */
	struct why complaint; /* of the file, which was told last */
	/* the queue takes no more of this user's: nothing is tried before; 0: it does */
	int64_t put_off_ms;
	int64_t kill_ms;  /* CLOCK_BOOTTIME: when those who were told to end are killed */
	int64_t leave_ms; /* when nobody is waited for any more */
};

/* Opens everything.  0, or an exit status after the reason was told; nothing has run then. */
MUST_CHECK int batch_runner_open(struct batch_runner *runner, struct settings *settings);

/* Works until there is nothing left to do, or it is told to stop.  The exit status. */
int batch_runner_run(struct batch_runner *runner);

/*
 * The parts of it.
 *
 * batch_edit.c: the jobs file was read: what its lines mean for the jobs.  0, or a negative
 * errno with the reason in @why: then everything stays as it was.
 */
MUST_CHECK int batch_take_lines(struct batch_runner *runner, struct why *why);

/* All that a line says, as a number: another one where something was changed. */
uint64_t batch_asked(const struct batch_line *line);

/*
 * batch_active.c: jobs at work.  Starting one (it ends at once where that fails), what it has
 * told, its end, and those of an earlier runner.
 */
void batch_start_job(struct batch_runner *runner, struct batch_job *job);
void batch_end_job(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text);
void batch_hear(struct batch_runner *runner);
void batch_reap(struct batch_runner *runner);
void batch_adopt(struct batch_runner *runner);
void batch_look_after_adopted(struct batch_runner *runner);

/* What has happened, and is to be told: keeps it in the journal where it belongs there. */
void batch_happened(struct batch_runner *runner, struct batch_event *event);

#endif
