/*
 * The runner of a batch: one process that reads the jobs file whenever it has changed, keeps some
 * of the jobs in the queue, and reports what becomes of them.  It schedules nothing: each job has
 * its own process and its own ticket, and waits like any other job.
 *
 * Life cycle: batch_open() (batch_open.h), then batch_runner_run(), which returns the exit status.
 * The process ends afterwards, so that nothing is released.
 *
 * The runner is one thread and acts only after an event: a signal, a change of the file, a message
 * of a child, the end of a process, or a moment that it has set itself.
 *
 * A crash loses nothing: the whole state of the runner is in the journal or in the jobs file.  Jobs
 * that run go on, and the next runner finds them by the journal (batch_adopt.h).  Jobs that wait
 * notice that the runner is dead and leave the queue.  status.txt stays as it was written last.
 *
 * The topics have modules of their own, which all work on the struct below:
 *	batch_open.h	opens everything
 *	batch_edit.h	what the lines of the jobs file mean for the jobs
 *	batch_active.h	jobs at work: starts, messages, exits
 *	batch_adopt.h	jobs at work that are not children of this process
 *	batch_record.h	events: the journal, the jobs, what is shown
 */
#ifndef GPULEASE_BATCH_RUNNER_H
#define GPULEASE_BATCH_RUNNER_H

#include "batch_child.h"
#include "batch_file.h"
#include "batch_plan.h"
#include "batch_show.h"
#include "context.h"
#include "liveness.h"
#include "watch.h"

/* Moments are CLOCK_BOOTTIME. */
struct batch_runner {
	struct context context;
	struct batch_file file;
	struct batch_list
		list; /* the lines in force: those of the last file without an error */
	struct batch_journal journal;
	struct batch_jobs jobs;
	struct batch_plan plan;
	struct batch_launcher launcher;
	struct batch_board board; /* ->order: the jobs that the file has, in its order */
	struct batch_show show;

	/* the numbers of the jobs at work, which wait or run, as children or adopted */
	uint64_t *active;
	size_t active_count, active_room;
	struct liveness_set liveness; /* of the jobs at work that are not children */

	int signal_fd;
	struct watch watch;
	const char *python; /* the program that runs scripts: "python" or "python3" */
	char folder[PATH_MAX];
	char directory[PATH_MAX]; /* where commands run, without links; "": unknown */

	unsigned stop_count; /* requests to stop so far; the second one kills */
	bool was_signalled;  /* one of them was a signal, and not --fail-fast */
	bool is_bad; /* the jobs file as it is now has an error or cannot be read */
	struct why complaint;    /* the last error of the lines, which was printed */
	bool has_journal_failed; /* the last write to it, which was reported */
	/*
	 * no job is started before; 0: any time.  Set when a start has failed for a passing reason.
	 */
	int64_t put_off_ms;
	int64_t put_off_last_ms;   /* when a start was put off last */
	struct why put_off_reason; /* that was printed last */
	int64_t write_ends_ms; /* when to write the ends that the journal lacks; 0: none */
	int64_t retry_lines_ms; /* when to apply the lines once more; 0: they are applied */
	int64_t pipe_ms;        /* standard input is not read before */
	int64_t kill_ms;        /* when to kill the jobs that were asked to end */
	int64_t leave_ms;       /* when to stop waiting for jobs */
};

/*
 * Works until nothing is left to do or a signal stops it.  Returns the exit status: the highest of
 * the failed jobs, 130 after a signal, EXIT_MISUSE after an error of its own.
 */
int batch_runner_run(struct batch_runner *runner);

#endif
