/*
 * Starts jobs of a batch, each in a process of its own, which does with the job's line what
 * --submit would do; and the messages from the runner to these processes.
 *
 * When the runner crashes, its children notice that by their sockets (batch_member.h).
 */
#ifndef GPULEASE_BATCH_CHILD_H
#define GPULEASE_BATCH_CHILD_H

#include <signal.h>

#include "batch_log.h"

struct batch_member;

/*
 * What all children have in common.
 *
 * With ->prepare the jobs are jobs of Slurm, each of which a job without GPUs stands for here.  A
 * job whose processes were killed is started again, and ->prepare then finds its job of Slurm.
 */
struct batch_launcher {
	const struct settings
		*defaults; /* the command line; attributes of a line win over it */
	const struct batch_journal *journal;
	sigset_t mask; /* the signal mask that gpulease was started with */
	/*
	 * NULL: none.  In the new process: waits until the job of @line has been started by Slurm,
	 * and changes @settings to those of the job that stands for it.  @log is the path of its
	 * log.  Returns 0, or the exit status of a job that does not run.
	 */
	int (*prepare)(const struct batch_launcher *launcher,
		const struct batch_line *line, const char *log,
		struct batch_member *member, struct settings *settings);
};

/*
 * Starts @job as its ->line asks, and sets its ->pid, ->fd (which does not block) and ->state.
 * The process has a session of its own, so that signals of the terminal do not reach it, and the
 * job's log as stdout and stderr.  Signals that this process handles get their default action
 * there; ignored signals stay ignored.  Returns 0, or a negative errno if the log cannot be opened
 * or the process cannot be created.
 */
MUST_CHECK int batch_child_start(
	const struct batch_launcher *launcher, struct batch_job *job);

/* Asks the process of @job, which waits for an attempt, to leave the queue. */
void batch_child_recall(struct batch_job *job);

/*
 * Sends BATCH_STOP and TERM: the command of @job ends, or the job leaves the queue if it waits, and
 * the end counts as an interruption by the runner.
 */
void batch_child_stop(struct batch_job *job);

/* Sends BATCH_BY_LINE: the cancel that follows is because of the word in the line of @job. */
void batch_child_mark_cancelled(struct batch_job *job);

/*
 * Cancels the jobs with the @count @tickets as --cancel does, with @grace_ms, in a new process.
 * Returns its pid or a negative errno.  batch_active_reap() reaps it.
 */
MUST_CHECK pid_t batch_child_cancel(const struct batch_launcher *launcher,
	const uint64_t *tickets, size_t count, int64_t grace_ms);

#endif
