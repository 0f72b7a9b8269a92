/*
 * A child process with captured output, for a caller that never blocks.  The caller starts the
 * child, polls its descriptors together with others, and calls spawn_step() when one is ready.
 *
 *	spawn_start -> poll, spawn_step … -> done -> spawn_release
 *	                              `-> spawn_abandon -> spawn_is_gone … -> spawn_release
 *
 * The child gets /dev/null as stdin, two pipes as stdout and stderr, the given environment, default
 * signal dispositions, an empty signal mask, a process group of its own and umask 022.  If its path
 * is absolute, its working directory is the root directory.  It closes all other descriptors of
 * this process right after fork.  So a child that cannot be killed (state D) holds no lock, no FIFO
 * and no terminal.
 *
 * The soft limits of this process cannot make the child fail: the child raises them as far as the
 * hard limits allow.  A process that may signal this one may also stop or kill the child.  The
 * output is worthless then; ->signal or ->was_stopped shows it.  A stop that cannot be seen (a
 * frozen cgroup) only makes the child slow.
 *
 * stdout and stderr are captured apart: if a program buffers only one of them, lines of the two
 * would be torn.
 *
 * struct spawn owns the memory and the descriptors.  If this process crashes, the child goes on
 * running; it ends by itself, at the latest by SIGPIPE when it writes.
 */
#ifndef GPULEASE_SPAWN_H
#define GPULEASE_SPAWN_H

#include <poll.h>
#include <sys/types.h>

#include "base.h"

enum {
	/* bytes kept of each output; the rest is discarded */
	SPAWN_OUTPUT_MAX = 256 * 1024,
	SPAWN_POLL_FDS = 4,
	SPAWN_EXIT_UNKNOWN = -1,
};

/* One captured output: @used bytes at @text, which may hold any byte and has no NUL. */
struct spawn_output {
	int fd; /* -1 once the end of the output has been read */
	char *text;
	size_t used, room;
	bool is_cut; /* there was more output than is kept */
};

struct spawn {
	pid_t pid;   /* 0: there is no child, or it is reaped */
	int pidfd;   /* -1: the kernel has no pidfds */
	int exec_fd; /* a pipe through which the child reports that exec failed */
	struct spawn_output out, err;
	/* set once spawn_step() has returned 0 */
	int exec_errno; /* why exec failed; 0: it did not fail */
	int exit_code;  /* 0…255; SPAWN_EXIT_UNKNOWN: killed, or reaped by other code */
	int signal;     /* the signal that killed the child; 0: none */
	/* set as soon as a step notices it */
	bool was_stopped; /* and perhaps continued: its output may be old */
};

#define SPAWN_INIT                    \
	((struct spawn){ .pidfd = -1, \
		.exec_fd = -1,        \
		.out.fd = -1,         \
		.err.fd = -1,         \
		.exit_code = SPAWN_EXIT_UNKNOWN })

enum spawn_outcome { SPAWN_RUNNING = 1 };

/*
 * Starts @path (PATH is not searched).  @spawn must not own anything: SPAWN_INIT, or released.
 * Returns 0, or a negative errno if no child could be created.  If @path cannot be executed,
 * ->exec_errno says so in the end: exec may hang, so this function does not wait for it.
 */
MUST_CHECK int spawn_start(
	const char *path, char *const argv[], char *const envp[], struct spawn *spawn);

/* Sets @fds to the descriptors to poll for POLLIN.  Returns their number. */
unsigned spawn_poll_fds(const struct spawn *spawn, struct pollfd fds[SPAWN_POLL_FDS]);

/*
 * Returns after how many milliseconds spawn_step() has to be called although no descriptor is
 * ready; -1: never.  No descriptor shows a stop, or, without a pidfd, the exit.
 */
int spawn_timer_ms(const struct spawn *spawn);

/*
 * Reads the available output without blocking.  Returns SPAWN_RUNNING, or 0 once the child has
 * ended and all that it wrote has been read.  It does not wait for other processes that still hold
 * the outputs.
 */
MUST_CHECK int spawn_step(struct spawn *spawn);

/*
 * Kills the child, if there is one, and its process group, and frees the output, without waiting.
 * ->pid stays set until spawn_is_gone() returns true, which has to happen before the next
 * spawn_start().
 */
void spawn_abandon(struct spawn *spawn);

/*
 * Whether there is no child, or no more; reaps the child if it has ended.  Sets ->was_stopped if
 * the child is or was stopped; once the child has ended, the kernel does not report earlier stops.
 */
bool spawn_is_gone(struct spawn *spawn);

/*
 * Abandons the child, if there is one, frees everything and sets *@spawn to SPAWN_INIT.  Waits up
 * to 20 ms for a killed child, so that the program that this process may execute next has no
 * zombie among its children.  A child that takes longer stays unreaped.
 */
void spawn_release(struct spawn *spawn);

#endif
