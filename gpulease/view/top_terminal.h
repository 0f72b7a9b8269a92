/*
 * The terminal of --top: its modes, its alternate screen, its size, and what is written on it.
 *
 *	top_terminal_open -> top_terminal_enter -> top_terminal_show … -> top_terminal_leave
 *	-> top_terminal_enter … -> top_terminal_close
 *
 * It has an open file of its own, which does not block: a terminal that takes nothing, because of
 * Ctrl-S or a slow line, never holds the viewer up.  If this process is killed, its guard restores
 * the terminal (top_guard.h).
 */
#ifndef GPULEASE_TOP_TERMINAL_H
#define GPULEASE_TOP_TERMINAL_H

#include "top_guard.h"
#include "top_screen.h"

struct top_terminal {
	int fd;
	bool is_entered;
	struct termios usual, raw;
	struct top_guard guard;
	unsigned columns, rows;
	bool is_blank; /* what stands on it does not count: the next frame is written whole */
	struct top_frame *shown;
	char *out; /* not yet written: from ->out_at to ->out_size */
	size_t out_at, out_size;
};

#define TOP_TERMINAL_NONE ((struct top_terminal){ .fd = -1, .guard = { .fd = -1 } })

/*
 * Opens the terminal that is the standard output.  Returns 0, -ENOTTY if that is none, or another
 * negative errno.
 */
MUST_CHECK int top_terminal_open(struct top_terminal *terminal);

/*
 * Switches to raw mode and to the alternate screen.  Returns 0, or a negative errno.  In the
 * background the kernel stops this process here, until it is in the foreground.
 */
MUST_CHECK int top_terminal_enter(struct top_terminal *terminal);

/*
 * Does the same again with a terminal that was not left, but may be changed: after STOP and CONT.
 */
MUST_CHECK int top_terminal_repair(struct top_terminal *terminal);

/* Restores the terminal as it was before.  It may have been left already. */
void top_terminal_leave(struct top_terminal *terminal);

/* Leaves it, and frees everything. */
void top_terminal_close(struct top_terminal *terminal);

/* Reads the size again; the next frame is written whole. */
void top_terminal_measure(struct top_terminal *terminal);

/* Whether a frame is still being written: then it takes no other. */
bool top_terminal_is_busy(const struct top_terminal *terminal);

/*
 * Writes those rows of @frame that differ from what stands there, in one write.  Returns 0, also if
 * the terminal could not take everything yet, or a negative errno: the terminal is gone.
 */
MUST_CHECK int top_terminal_show(
	struct top_terminal *terminal, const struct top_frame *frame);

/* Goes on writing, after poll(2) for POLLOUT.  Returns 0, or a negative errno. */
MUST_CHECK int top_terminal_flush(struct top_terminal *terminal);

#endif
