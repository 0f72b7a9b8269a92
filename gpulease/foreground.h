/*
 * Job control, as it concerns a parent that stays in the process group of its command.
 *
 * The terminal and the shell signal the whole group, others one process.  What came to the
 * group has reached the command already; what came to the parent alone is to be passed on.
 * The kernel does not tell one from the other.  So a witness stands in the group, a child that
 * blocks everything and sleeps until it is asked: a signal that is pending there, too, came to
 * all.
 *
 * Where the command stops, the parent has to stop in the same way, or the shell would not see
 * it.  Meanwhile a guard wakes it for what cannot wait: the end of the command, a time limit, an
 * order.  Neither of the two holds anything of the job's, and both end with the parent.
 */
#ifndef GPULEASE_FOREGROUND_H
#define GPULEASE_FOREGROUND_H

#include <sys/signalfd.h>

#include "base.h"

struct foreground_witness {
	pid_t pid; /* 0: none */
	int fd;    /* to ask it */
};

struct foreground {
	struct foreground_witness witness;
	/* the one before, until what came while they changed has been read */
	struct foreground_witness former;
};

/* Posts the witness.  Where that fails, whoever signals the group signals the command twice. */
void foreground_begin(struct foreground *foreground);

/*
 * Whether the signal that was read came to @command as well.  Only while the signals asked
 * about are blocked in this process, and have been since foreground_begin().
 */
bool foreground_reached_all(struct foreground *foreground, pid_t command,
	const struct signalfd_siginfo *info);

/*
 * @command has been stopped by @signal: stops, too, where there is a terminal whose shell is to
 * see it.  Returns once continued, by somebody, or because @command runs (which is noticed within
 * a second) or has ended, @wake_ms (CLOCK_BOOTTIME; INT64_MAX: never) has come or @bell_fd (-1:
 * none) is rung.
 */
void foreground_stop(pid_t command, int signal, int64_t wake_ms, int bell_fd);

/* No signal is left to be read. */
void foreground_has_read_all(struct foreground *foreground);

/* Child @pid has ended and been waited for: it is a witness no more, if it was one. */
void foreground_forget(struct foreground *foreground, pid_t pid);

/* Withdraws the witness; may be repeated. */
void foreground_end(struct foreground *foreground);

#endif
