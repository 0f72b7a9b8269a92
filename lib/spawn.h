/*
 * A child process whose output is captured, for a caller who never waits: start it, poll its
 * descriptors together with one's own, step it whenever one of them is ready.
 *
 *	spawn_start -> poll, spawn_step … -> done -> spawn_release
 *	                              `-> spawn_abandon -> spawn_is_gone … -> spawn_release
 *
 * The child gets /dev/null as standard input, its two outputs, the environment it is given,
 * default signal dispositions, an empty signal mask, a process group of its own, umask 022,
 * and where its path is absolute the root directory to work in; no other descriptor of ours,
 * not even between fork and exec for longer than it takes to close them.
 * So a child that can never be ended (D state) holds no lock, no FIFO and no terminal.
 *
 * Soft limits that we were started with do not make it fail: they are raised as far as the
 * hard ones allow.  Whoever may signal us may also stop or kill it: then what it wrote is
 * worth nothing, and ->signal or ->was_stopped say so.  A stop that goes unseen (a frozen
 * cgroup) shows only in how long it took.
 *
 * stdout and stderr are captured apart: a program that buffers one and not the other would
 * tear lines of the first with lines of the second.
 *
 * The memory and the descriptors belong to struct spawn.  A crash of ours leaves the child
 * running; it ends by itself, at the latest with SIGPIPE when it writes.
 */
#ifndef GPULEASE_SPAWN_H
#define GPULEASE_SPAWN_H

#include <poll.h>
#include <sys/types.h>

#include "base.h"

enum {
	SPAWN_OUTPUT_MAX =
		256 * 1024, /* bytes kept of each output; the rest is discarded */
	SPAWN_POLL_FDS = 4,
	SPAWN_EXIT_UNKNOWN = -1,
};

/* One captured output: @used bytes at @text, which may hold any byte and has no NUL. */
struct spawn_output {
	int fd; /* -1 once its end has been read */
	char *text;
	size_t used, room;
	bool is_cut; /* more came than is kept */
};

struct spawn {
	pid_t pid;   /* 0: no child, or it is gone and its status is known */
	int pidfd;   /* -1 where the kernel has none */
	int exec_fd; /* tells whether exec worked */
	struct spawn_output out, err;
	/* set when spawn_step() returned 0 */
	int exec_errno; /* why the program could not be run, 0 if it could */
	int exit_code; /* 0…255; SPAWN_EXIT_UNKNOWN: killed, or somebody else reaped it */
	int signal;    /* what killed it, 0 if nothing did */
	/* set as soon as a step sees it */
	bool was_stopped; /* and perhaps continued: what it says may be old */
};

#define SPAWN_INIT                    \
	((struct spawn){ .pidfd = -1, \
		.exec_fd = -1,        \
		.out.fd = -1,         \
		.err.fd = -1,         \
		.exit_code = SPAWN_EXIT_UNKNOWN })

enum { SPAWN_RUNNING = 1 };

/*
 * Starts @path (not searched for in PATH) as @spawn, which holds nothing yet or any more.  0, or
 * a negative errno where no child could be made.  That @path cannot be executed is told by
 * ->exec_errno in the end: exec itself may hang, so nobody waits for it.
 */
MUST_CHECK int spawn_start(
	const char *path, char *const argv[], char *const envp[], struct spawn *spawn);

/* Fills in what to poll for, all POLLIN; returns how many, at most SPAWN_POLL_FDS. */
unsigned spawn_poll_fds(const struct spawn *spawn, struct pollfd fds[SPAWN_POLL_FDS]);

/*
 * When to call spawn_step() although no descriptor is ready, in milliseconds from the last
 * call; -1: never.  A stop is announced by nothing, and without pidfd neither is an exit.
 */
int spawn_timer_ms(const struct spawn *spawn);

/*
 * Reads what is there, without blocking.  SPAWN_RUNNING, or 0 when the child is gone and all
 * it wrote before has been read; a process it left behind with its outputs is not waited for.
 */
MUST_CHECK int spawn_step(struct spawn *spawn);

/*
 * Kills a child that is left, with its process group, and frees its output; does not wait for
 * it.  ->pid stays until spawn_is_gone(), which is to be true before the next spawn_start().
 */
void spawn_abandon(struct spawn *spawn);

/*
 * Whether there is no child (any more); reaps it where that is possible at once.  Sets
 * ->was_stopped where it is or was stopped; once the child has ended that is not told any more.
 */
bool spawn_is_gone(struct spawn *spawn);

/*
 * Abandons a child that is left and frees everything; SPAWN_INIT again.  Gives a killed child
 * 20 ms to vanish, so that the program we become next does not find a zombie among its
 * children; one that takes longer is left.
 */
void spawn_release(struct spawn *spawn);

#endif
