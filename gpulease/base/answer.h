/*
 * What a program prints, read by a process that has other things to wait for: gpulease on this
 * machine, ssh with gpulease on another, or a program of Slurm.
 *
 *	answer_begin -> poll ->out_fd and ->err_fd for answer_poll_ms, answer_take …
 *		-> answer_is_complete -> answer_release
 *
 * The program runs in a process group of its own.  Its stdin is ->in_fd, else /dev/null.  If this
 * process dies in any way, the kernel sends TERM to the program; only a set-group-ID gpulease does
 * not get it, and ends at its next write, because its pipe is broken.
 */
#ifndef GPULEASE_ANSWER_H
#define GPULEASE_ANSWER_H

#include <sys/types.h>

#include "text.h"

/* Of one answer; a larger one is an error (-EFBIG). */
enum { ANSWER_MAX = 128 * 1024 * 1024 };

struct answer {
	pid_t pid;          /* 0: no program runs */
	int in_fd;          /* the caller sets and closes it; -1: none */
	int out_fd, err_fd; /* -1: read to its end */
	char *text; /* of stdout, with a NUL behind it; kept for the next answer */
	size_t size, room;
	/*
	 * once it is complete, a line of stderr, printable: the first message of gpulease or ssh,
	 * else the first line with a letter that is no advice
	 */
	char error[320];
	char line[320]; /* of stderr, which is still read */
	size_t line_size;
	int status; /* once it is complete: the exit status, or 128 and the number of a signal */
	int fault; /* a negative errno of this process; 0: none */
};

#define ANSWER_NONE ((struct answer){ .in_fd = -1, .out_fd = -1, .err_fd = -1 })

/*
 * Starts @words, which ends with NULL.  Returns 0, or a negative errno; nothing runs then.  What
 * @answer had before is gone, but its memory is used again.
 */
MUST_CHECK int answer_begin(struct answer *answer, char *const *words);

/* Reads what has come, without waiting.  Call it after each poll(2). */
void answer_take(struct answer *answer);

/*
 * Whether the program has ended and all of its stdout is there.  Reaps it.  Its stderr may stay
 * open: in a process that ssh leaves for the next connection (ControlPersist).
 */
bool answer_is_complete(struct answer *answer);

/* Whether the line is what Slurm prints above the error itself where munged does not answer. */
bool answer_is_advice(const char *line);

/*
 * Returns the longest timeout for poll(2): -1 while the end of stdout will wake it, else some
 * milliseconds, because no descriptor tells when the program can be reaped.
 */
int answer_poll_ms(const struct answer *answer);

/*
 * Waits until the answer is complete, for @deadline_ms at most.  Then the program is ended, with
 * -ETIMEDOUT as ->fault.
 */
void answer_wait(struct answer *answer, int64_t deadline_ms);

/* Kills the program, if it still runs, and reaps it. */
void answer_end(struct answer *answer);

/* The same, and frees the memory. */
void answer_release(struct answer *answer);

#endif
