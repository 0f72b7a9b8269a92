/*
 * The guard of a terminal: a small process that restores the terminal if this process dies without
 * doing so itself, by SIGKILL or a fault.
 *
 * The guard reads a pipe.  A byte means that it is no longer needed.  At the end of the pipe this
 * process has died, and the guard restores the terminal.  The kernel closes the pipe before the
 * shell learns of the death.  The shell may nevertheless be faster.  So the guard changes the modes
 * only if they are still those that this process has set.  A shell never leaves the screen, so the
 * guard does that in any case, unless another program has the terminal.
 *
 * A guard that is killed leaves nothing behind; the terminal then is no longer guarded.
 */
#ifndef GPULEASE_TOP_GUARD_H
#define GPULEASE_TOP_GUARD_H

#include <sys/types.h>
#include <termios.h>

#include "base.h"

struct top_guard {
	pid_t pid; /* 0: none */
	int fd;    /* the pipe; -1 */
};

#define TOP_GUARD_NONE ((struct top_guard){ .fd = -1 })

/*
 * Starts the guard of the terminal @tty_fd.  To restore it, it sets the modes @usual in the place
 * of @changed, and writes the string @leave.  If no process can be started, there is no guard, and
 * no error.  The caller ignores SIGPIPE.
 */
void top_guard_begin(struct top_guard *guard, int tty_fd, const struct termios *usual,
	const struct termios *changed, const char *leave);

/* Ends and reaps the guard: the terminal is as it was. */
void top_guard_end(struct top_guard *guard);

#endif
