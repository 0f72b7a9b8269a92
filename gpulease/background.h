/*
 * --submit: the job goes on in a process of its own, which outlives the login; who called
 * gpulease gets the job's id on stdout, or the reason why there is none, and is done.
 *
 * The new process has a session of its own and nothing of the caller's but the folder, the
 * environment, the limits and the dispositions of signals; stdin is /dev/null or the file of
 * -i, stdout and stderr are the log (joblog.h): the command writes there itself.  HUP it
 * ignores, its command does not (limits.h).
 *
 * It is no part of a lease that it was submitted from: it closes that one's FIFO, does not show
 * that one's token or tag any more, and has the name by which parents beyond it do not count
 * (kin.h).  So it is not ended with that one, does not keep it, and its GPUs are its own.
 *
 * Killed before the id was printed, or unable to print it -> the job, if there is one, gives up: no
 * id, no job.  Killed in the moment behind that, the id may be of a job that has given up.
 */
#ifndef GPULEASE_BACKGROUND_H
#define GPULEASE_BACKGROUND_H

#include "context.h"

/*
 * Forks.  Returns true in the new process, whose stdout and stderr are still the caller's, so
 * that what goes wrong before the job has its ticket is read there.  False in the old one, when
 * the new one has its ticket and its log, or has ended: *@ret_status is the exit status then, 0
 * with the id printed.  With ->follow its log was shown as well, and the status is the job's.
 * Where this process is one already it is that true, and nothing else happens.
 */
bool background_begin(const struct context *context, int *ret_status);

/*
 * In the new process: job @job has its ticket.  Opens its files as stdin, stdout and stderr and
 * lets the caller go once that has printed the id; where there is none, but a log already, gives
 * that the name by which it is found.  0, or an exit status after the reason was told; the job is
 * not to go on then.
 */
MUST_CHECK int background_announce(const struct context *context, uint64_t job);

/*
 * Makes this process one, which was forked for that and whose stdout and stderr are the file @log
 * (NULL: they will be once it has its ticket), as an absolute path.  After limits_raise().  0 or a
 * negative errno.
 */
MUST_CHECK int background_become(const char *log);

/* Whether this process is one. */
bool in_background(void);

#endif
