/*
 * --submit: the job runs in a process of its own that outlives the login.  The caller gets the
 * job's id on stdout, or the reason why there is none.
 *
 * The new process has a session of its own.  Of the caller's it keeps the folder, the environment,
 * the limits and the signal dispositions.  Its stdin is /dev/null or the file of -i.  Its stdout
 * and stderr are the log (joblog.h): the command writes there itself.  It ignores HUP; its command
 * does not (rlimits.h).
 *
 * It is no part of a lease inside which it was submitted: it closes that lease's FIFO, drops its
 * token and tag, and has a process name at which the search for a lease among ancestors stops
 * (process_lease.h).  So that lease ends without it, does not end it, and it gets GPUs of its own.
 *
 * With --screen the process has a terminal, which a session shows (session.h).
 *
 * No id, no job: if the caller is killed before it has printed the id, or cannot print it, the job
 * gives up.  Killed just after it has printed the id, the caller may leave the id of a job that has
 * given up.
 */
#ifndef GPULEASE_BACKGROUND_H
#define GPULEASE_BACKGROUND_H

#include "context.h"

/*
 * Forks.  Returns true in the new process; its stdout and stderr are still the caller's, so that
 * failures before it has its ticket are printed there.  Returns false in the old process once the
 * new one has its ticket and its log, or has ended.  *@ret_status is then the exit status, 0 with
 * the id printed.  With ->follow the log was shown until the end, and the status is the job's.
 *
 * In a process that is in the background already it does not fork.
 *
 * With ->screen it also begins the session of the job.
 */
bool background_begin(const struct context *context, int *ret_status);

/*
 * In the new process, which has the ticket of @job: opens its files as stdin, stdout and stderr,
 * sends the caller the id, and waits until it is printed.  In a process of background_become()
 * that has a log already, gives the log the name by which --log finds it.  Returns 0, or an exit
 * status after it has printed the reason; then the job must not go on.
 */
MUST_CHECK int background_announce(const struct context *context, uint64_t job);

/*
 * Puts this process, which was forked for this, into the background.  Its stdout and stderr are
 * the file @log, an absolute path; NULL: background_announce() opens them.  Call it after
 * rlimits_raise().  Returns 0 or a negative errno.
 */
MUST_CHECK int background_become(const char *log);

/* Whether this process is in the background, and has no terminal of a session (session.h). */
bool is_in_background(void);

/* Returns the log if @fd is the terminal of a session, which writes it; else @fd. */
int background_log(int fd);

#endif
