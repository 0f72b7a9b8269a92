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

	unsigned stops; /* how often it was told to stop */
	bool is_told;   /* by a signal: not for --fail-fast */
	bool is_bad;    /* the file as it is now is none that can be read */
	struct why
		complaint; /* of the lines as they were the last time, which was told */
	bool has_journal_failed; /* the last time: it was told */
	int64_t put_off_ms; /* nothing is started before, for it could not be; 0: it could */
	struct why put_off_for;  /* that was told last */
	int64_t put_off_last_ms; /* when something was put off */
	int64_t keep_ms; /* when ends that the journal lacks are written; 0: it has all */
	int64_t again_ms; /* when what the file says is taken over once more; 0: it was */
	int64_t pipe_ms;  /* what comes through a pipe is not looked at before */
	char folder[PATH_MAX];
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
 * Does what lines say that became known while their jobs were busy: `cancel`, and edits for those
 * that wait for another attempt now.
 */
void batch_review_running(struct batch_runner *runner);

/*
 * batch_active.c: jobs at work.  Starting one, which is put off where that cannot be now; what
 * they have told, and their ends.
 */
void batch_start_job(struct batch_runner *runner, struct batch_job *job);
void batch_end_job(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text);
void batch_hear(struct batch_runner *runner);
void batch_reap(struct batch_runner *runner);

/* Into ->active, 0 or -ENOMEM; out of it, by its place. */
MUST_CHECK int batch_note_active(
	struct batch_runner *runner, const struct batch_job *job);
void batch_forget_active(struct batch_runner *runner, size_t at);

/*
 * batch_adopt.c: those that are no children.  Finding them once the journal was read; watching
 * them, at each turn; ending any that is at work.
 */
void batch_adopt(struct batch_runner *runner);
void batch_look_after_adopted(struct batch_runner *runner);
void batch_stop_job(struct batch_runner *runner, struct batch_job *job);

/* What @event, which is in the journal, means: for its job, for people. */
void batch_take_event(struct batch_runner *runner, const struct batch_event *event);

/*
 * Something has happened, now where it has no ->at_ms: likewise, and it is put into the journal
 * where it belongs there.  0, or a negative errno, which was told, where that failed.  Then no
 * line has become a job, for BATCH_SEEN; and an end is kept for batch_keep_ends(), at ->keep_ms.
 */
MUST_CHECK int batch_happened(struct batch_runner *runner, struct batch_event *event);

/*
 * Writes the ends that the journal lacks.  0, or a negative errno, which was told: some are still
 * missing, whose numbers batch_add_unkept() appends.  Killed now, the next runner runs them again.
 */
MUST_CHECK int batch_keep_ends(struct batch_runner *runner);
void batch_add_unkept(const struct batch_runner *runner, struct text *out);

#endif
