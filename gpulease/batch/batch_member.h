/*
 * The process of one job of a batch: what it reports to the runner and writes to the journal.
 *
 * A socket connects it with the runner.  The process sends events through it, one line per
 * message.  The runner sends single bytes:
 *	BATCH_RECALL	its line was deleted or changed; counts only while no command runs
 *	BATCH_STOP	the runner causes the end that follows
 *	BATCH_BY_LINE	the word `cancel` in its line cancels it
 * When the runner dies the socket reports the end of file.  A job then gives up if its command has
 * not started; a running command goes on.
 *
 * If the socket is full, a message is dropped: the journal has every event that matters, and
 * SIGCHLD reports the end of the process to the runner.  If an event could not be written to the
 * journal (an end is tried for some seconds), BATCH_UNWRITTEN goes before its line, and the runner
 * writes it.
 *
 * After a crash of this process, its last event is in the journal.  The runner, or the next runner,
 * finds out how the job ended (batch_adopt.h).
 */
#ifndef GPULEASE_BATCH_MEMBER_H
#define GPULEASE_BATCH_MEMBER_H

#include <signal.h>

#include "batch_event.h"
#include "job_observer.h"

enum { BATCH_RECALL = 'r', BATCH_STOP = 's', BATCH_BY_LINE = 'l', BATCH_UNWRITTEN = '!' };

struct batch_member {
	/* set by the caller; the member owns the descriptors from then on; -1: none */
	uint64_t number;
	uint64_t declared_mib; /* as its line said */
	uint64_t environment;  /* batch_environment() */
	int runner_fd, journal_fd, lock_fd;
	uint64_t slurm_job; /* its id in Slurm once it has one, for the events; else 0 */

	/* for run_job(); batch_member_begin() sets it and all below */
	struct job_observer observer;
	pid_t pid;
	volatile sig_atomic_t
		was_stopped; /* by BATCH_STOP; also read by the handler of TERM */
	bool was_recalled, is_orphaned, is_by_line, is_put_off;
	bool is_begun;           /* its command was started at least once */
	bool has_ended;          /* its final end was reported */
	bool has_attempt;        /* ->last is an attempt that has ended */
	struct batch_event last; /* the last event of its attempts */
	uint64_t reported_mib;   /* the memory that was reported last */
	off_t log_size;          /* before it waited */
	char by[64];             /* the user that cancelled it while it waited */
};

/*
 * Makes this process the job @member, which lives as long as the process and must not move.  Sets
 * ->observer and handles TERM: a TERM that follows BATCH_STOP does not end the process while it
 * waits, because it then leaves the queue by itself.
 *
 * ->observer reports, and does two things more.  ->starts writes the start to the journal before
 * the command runs, and then closes ->lock_fd; it returns -ECANCELED if the job was recalled, or
 * is put off because the journal cannot be written.  ->sampled sends an event when the memory in
 * use has changed by 256 MiB.
 */
void batch_member_begin(struct batch_member *member);

/*
 * Call this when the process is about to end with @status and no command of it runs.  Reports the
 * final end if none was reported yet: that the job was cancelled while it waited, or that it cannot
 * run (again), with the last error message as the reason.
 *
 * A job that was recalled has no end.  Before its first attempt nothing is reported, and its log is
 * cut to its size before it waited; after an attempt it is reported as interrupted.
 */
void batch_member_end(struct batch_member *member, int status);

#endif
