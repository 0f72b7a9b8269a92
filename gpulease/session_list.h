/*
 * The sessions of tmux and screen that jobs run in, by their names: gpulease-ID-NAME, or, for
 * ids are a queue's own, gpulease-ID_QUEUE-NAME where that is not the usual one.
 */
#ifndef GPULEASE_SESSION_LIST_H
#define GPULEASE_SESSION_LIST_H

#include "context.h"

#define SESSION_PREFIX "gpulease-"

enum { SESSION_NAME_SIZE = 96, SESSIONS_MAX = 1024 };

enum session_program { SESSION_TMUX, SESSION_SCREEN, SESSION_PROGRAMS };
extern const char *const session_programs[SESSION_PROGRAMS];

struct session {
	enum session_program program;
	char name[SESSION_NAME_SIZE];
	uint64_t job;   /* 0: it has no ticket yet */
	uint32_t queue; /* as session_queue() */
	bool is_attached;
};

/*
 * What tells the queue of @context, which is open, from others of this user: 0 for the machine's,
 * six hexadecimal digits for one that is simulated or was named.
 */
uint32_t session_queue(const struct context *context);

/*
 * Adds to the @*count at @all, which has room for SESSIONS_MAX, those that the output of a
 * program shows: lines of `tmux list-sessions -F '#{session_name} #{session_attached}'`, or what
 * `screen -ls` says.  Pure.
 */
void session_parse(enum session_program program, const char *text, size_t size,
	struct session *all, size_t *count);

/*
 * Asks both programs, as far as they are there, for those of this user.  A new array *@ret
 * (freed by the caller) of *@ret_count, by job.  0 or a negative errno.
 */
MUST_CHECK int session_list(struct session **ret, size_t *ret_count);

/*
 * Runs a program to its end, at most 10 s, with the rights that this process has; what it writes
 * to stdout goes to @out, cut to @size - 1 bytes (NULL, 0: nowhere).  Its exit status, or a
 * negative errno: -ENOENT: it is not in PATH.
 */
MUST_CHECK int session_run(char *const argv[], char *out, size_t size);

#endif
