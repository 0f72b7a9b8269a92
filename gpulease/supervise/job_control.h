/*
 * Job control for a supervisor, which stays in the process group of its command.
 *
 * The terminal and the shell signal the whole group; others signal one process.  A signal to the
 * group has reached the command already; a signal to the supervisor alone is to be passed on.  The
 * kernel does not tell the two apart.  So a witness sits in the group: a child that blocks all
 * signals and sleeps until it is asked.  A signal that is pending in the witness as well was sent
 * to the group.
 *
 * If the command stops, the supervisor has to stop in the same way, or the shell would not see it.
 * Meanwhile a guard, another child, continues the supervisor for what cannot wait: the end of the
 * command, a time limit, a request.
 *
 * Neither child holds the lease's FIFO or another file of the job, and both end with the
 * supervisor, also when it is killed.
 */
#ifndef GPULEASE_JOB_CONTROL_H
#define GPULEASE_JOB_CONTROL_H

#include <sys/signalfd.h>

#include "base.h"

struct job_control_witness {
	pid_t pid; /* 0: none */
	int fd;    /* a socket to ask it */
};

struct job_control {
	struct job_control_witness witness;
	/* the one before it, until all signals that came during the change have been read */
	struct job_control_witness former;
};

/*
 * Starts the witness.  If that fails, a signal to the group may reach the command a second time,
 * from the supervisor.
 */
void job_control_begin(struct job_control *job_control);

/*
 * Whether the signal that was read reached @command as well.  The signals that are asked about must
 * have been blocked in this process since job_control_begin().
 */
bool job_control_reached_all(struct job_control *job_control, pid_t command,
	const struct signalfd_siginfo *info);

/*
 * @command was stopped by @signal: stops this process as well, if it has a terminal, so that the
 * shell there sees the stop.  Returns once this process is continued: by another process, or by the
 * guard because @command runs again (noticed within a second) or has ended, because of @wake_ms
 * (CLOCK_BOOTTIME; INT64_MAX: never), or because @bell_fd (-1: none) is rung.
 */
void job_control_stop(pid_t command, int signal, int64_t wake_ms, int bell_fd);

/* Call it when no signal is left to be read: the former witness is not needed any more. */
void job_control_has_read_all(struct job_control *job_control);

/* Call it when child @pid was reaped: it may have been a witness. */
void job_control_forget(struct job_control *job_control, pid_t pid);

/* Ends the witnesses; may be called twice. */
void job_control_end(struct job_control *job_control);

#endif
