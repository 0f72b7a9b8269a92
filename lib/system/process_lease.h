/*
 * Finds the lease that a process belongs to.  There are three signs.  A process can lose each of
 * them, so one is enough:
 *
 * - the owner of the lease is an ancestor of the process;
 * - GPULEASE_TOKEN is in the environment that the process was started with;
 * - the process has the tag: 63 bits of the token as its soft limit of file locks (RLIMIT_LOCKS).
 *   The kernel has not enforced that limit since 2.4.  Every child inherits it, and all users can
 *   read it.
 *
 * Any user can read a tag and set it for own processes.  So a sign counts only if the real user of
 * the process is the lease's user.  A lease of root also includes processes that its owner started
 * as another user.  A user can still forge the signs of that user's own leases.
 */
#ifndef GPULEASE_PROCESS_LEASE_H
#define GPULEASE_PROCESS_LEASE_H

#include "owner.h"

#define PROCESS_LEASE_TOKEN_VARIABLE "GPULEASE_TOKEN"

/* The pid of the first process of a step: the command, or the parent of its tasks. */
#define PROCESS_LEASE_STEP_VARIABLE "GPULEASE_STEP_PID"

/* Returns the tag of @token, its lower 63 bits; 0 if @token is no token. */
uint64_t process_lease_tag(const char *token);

/* Returns the tag of process @pid; 0 if it has none or cannot be seen. */
uint64_t process_lease_tag_of_process(uint32_t pid);

/* The signs of a process, read once. */
struct process_lease {
	uint32_t pid, uid; /* its real user */
	bool has_uid;      /* false: its user cannot be seen, so it belongs to no lease */
	uint64_t tag;      /* 0: it has no tag */
	char token[TOKEN_SIZE]; /* "": it has no token, or it cannot be seen */
};

/* Reads the signs of process @pid, as far as they can be seen. */
void process_lease_read(uint32_t pid, struct process_lease *ret);

/* Reads only ->token, the slowest part, into *@signs. */
void process_lease_read_token(uint32_t pid, struct process_lease *signs);

/* Whether the process carries @token in its tag or its environment, whatever its user. */
bool process_lease_matches(const struct process_lease *signs, const char *token);

/* Whether the process carries the token of @owner and has its real user. */
bool process_lease_belongs(const struct process_lease *signs, const struct owner *owner);

/*
 * Whether @owner, a live process of this pid namespace, is an ancestor of the process, and either
 * has the same real user or belongs to root.
 */
bool process_lease_descends(const struct process_lease *signs, const struct owner *owner);

/*
 * Whether process @pid carries @token in its tag or its environment.  Returns false if the tag does
 * not show it and the environment cannot be read.
 */
bool process_lease_carries_token(uint32_t pid, const char *token);

/* Like process_lease_belongs(), for a process if its signs are needed only once. */
bool process_lease_is_of(uint32_t pid, const struct owner *owner);

/*
 * The process name of a supervisor that --submit has started.  If that happens inside another
 * lease, the other lease's owner may be its ancestor.  Neither this process nor its descendants
 * belong to the other lease.
 */
#define PROCESS_LEASE_SUBMITTED "gpulease-job"

/* The same for the process that runs the command of --notify for a job. */
#define PROCESS_LEASE_NOTIFIER "gpulease-notify"

/* The same for the process that removes the folder of a job script. */
#define PROCESS_LEASE_KEEPER "gpulease-tmpdir"

/* Whether @name is one of the three. */
bool process_lease_is_apart(const char *name);

/*
 * Whether process @pid is @ancestor or a descendant of it.  The search ends at the supervisor of a
 * submitted job: ancestors above it do not count.
 */
bool process_lease_is_descendant(uint32_t pid, uint32_t ancestor);

/*
 * Which processes of a lease get a signal.  The callers of this process are its ancestors, which
 * wait for it, and the processes that read its output through a pipe.  STEPS: the first process of
 * each step; a parent of tasks passes the signal on.  A step in a pid namespace of its own is not
 * found.
 */
enum process_range {
	PROCESS_LEASE_ALL,
	PROCESS_LEASE_BUT_CALLERS,
	PROCESS_LEASE_CALLERS,
	PROCESS_LEASE_STEPS
};

/*
 * Sends @signal to the processes in @range that carry @token and have the real user @uid.  The
 * process @owner and this process do not get it.  If @uid is root, descendants of @owner that carry
 * @token get it whatever their user.  Returns the number of live processes that got it.
 */
unsigned process_lease_signal(const char *token, uint32_t uid, int signal, uint32_t owner,
	enum process_range range);

/* Like process_lease_signal() with PROCESS_LEASE_ALL. */
unsigned process_lease_signal_all(
	const char *token, uint32_t uid, int signal, uint32_t owner);

#endif
