/*
 * The sessions of tmux and screen that jobs run in, known by their names: gpulease-ID-NAME.  Job
 * ids count per queue, so in a state directory that is not the machine's own the name is
 * gpulease-ID_QUEUE-NAME.
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
	uint32_t queue; /* as of session_queue() */
	bool is_attached;
};

/*
 * Returns a number that distinguishes the queue of @context, which is open, from this user's other
 * queues: 0 for the machine's, a number of six hexadecimal digits for a simulated or named one, or
 * one of a Slurm allocation.
 */
uint32_t session_queue(const struct context *context);

/*
 * Adds the job sessions in the output of a program to the @*count sessions at @all, which has room
 * for SESSIONS_MAX.  @text: lines of `tmux list-sessions -F '#{session_name} #{session_attached}'`
 * or the output of `screen -ls`.  Pure.
 */
void session_parse(enum session_program program, const char *text, size_t size,
	struct session *all, size_t *count);

/*
 * Asks both programs, if they are installed, for this user's sessions.  Returns 0 with a new array
 * *@ret (freed by the caller) of *@ret_count sessions, in the order of their jobs, or -ENOMEM.
 */
MUST_CHECK int session_list(struct session **ret, size_t *ret_count);

/*
 * Runs a program to its end, for at most 10 s, with the rights of this process.  Its stdout goes
 * to @out, cut to @size - 1 bytes (NULL, 0: it is dropped).  Returns the exit status of the
 * program, or a negative errno (-ENOENT: it is not in PATH).
 */
MUST_CHECK int session_run(char *const argv[], char *out, size_t size);

#endif
