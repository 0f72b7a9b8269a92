#include <sys/stat.h>

#include "hex.h"
#include "process_lease.h"
#include "proc.h"
#include "text.h"

enum { ANCESTORS_MAX = 512 };

uint64_t process_lease_tag(const char *token)
{
	uint64_t bits;

	if (!is_token(token) || hex_read(token, TOKEN_SIZE - 1, HEX_LOWER, &bits) < 0)
		return 0;
	return bits & INT64_MAX;
}

uint64_t process_lease_tag_of_process(uint32_t pid)
{
	char text[4096];
	unsigned long long soft = 0;
	const char *line;

	if (proc_read_text(pid, "limits", text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "Max file locks");
	if (!line || sscanf(line, "Max file locks %llu", &soft) != 1)
		return 0; /* unlimited */
	return soft;
}

/* Reads the token in the environment of process @pid; "" if there is none to see. */
static void read_token(uint32_t pid, char ret[TOKEN_SIZE])
{
	/* one byte more than a token, so that a longer value is not taken for one */
	char value[TOKEN_SIZE + 1];

	ret[0] = '\0';
	if (proc_read_variable(pid, PROCESS_LEASE_TOKEN_VARIABLE, value, sizeof(value)) ==
			PROC_FOUND &&
		is_token(value))
		text_copy(ret, TOKEN_SIZE, value);
}

void process_lease_read(uint32_t pid, struct process_lease *ret)
{
	*ret = (struct process_lease){ .pid = pid,
		.tag = process_lease_tag_of_process(pid) };
	ret->has_uid = proc_find_real_user(pid, &ret->uid) == 0;
	read_token(pid, ret->token);
}

void process_lease_read_token(uint32_t pid, struct process_lease *signs)
{
	read_token(pid, signs->token);
}

bool process_lease_matches(const struct process_lease *signs, const char *token)
{
	uint64_t tag = process_lease_tag(token);

	return tag && (signs->tag == tag || strcmp(signs->token, token) == 0);
}

bool process_lease_belongs(const struct process_lease *signs, const struct owner *owner)
{
	return signs->has_uid && signs->uid == owner->uid &&
	       process_lease_matches(signs, owner->token);
}

bool process_lease_descends(const struct process_lease *signs, const struct owner *owner)
{
	/* root can start a process as another user */
	return signs->has_uid && (signs->uid == owner->uid || owner->uid == 0) &&
	       process_lease_is_descendant(signs->pid, owner->pid);
}

bool process_lease_carries_token(uint32_t pid, const char *token)
{
	struct process_lease signs = { .tag = process_lease_tag_of_process(pid) };

	/* the tag is faster to read than the environment */
	if (!process_lease_matches(&signs, token))
		read_token(pid, signs.token);
	return process_lease_matches(&signs, token);
}

bool process_lease_is_of(uint32_t pid, const struct owner *owner)
{
	uint32_t uid;

	return process_lease_carries_token(pid, owner->token) &&
	       proc_find_real_user(pid, &uid) == 0 && uid == owner->uid;
}

bool process_lease_is_apart(const char *name)
{
	return strcmp(name, PROCESS_LEASE_SUBMITTED) == 0 ||
	       strcmp(name, PROCESS_LEASE_NOTIFIER) == 0 ||
	       strcmp(name, PROCESS_LEASE_KEEPER) == 0;
}

bool process_lease_is_descendant(uint32_t pid, uint32_t ancestor)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		struct process_stat stat;

		if (pid == ancestor)
			return true;
		if (process_stat_read(pid, &stat) < 0 ||
			process_lease_is_apart(stat.comm))
			return false;
		pid = stat.parent;
	}
	return pid != 0 && pid == ancestor;
}

/* Whether process @pid is an ancestor of this process, or reads its output through a pipe. */
static bool is_caller(uint32_t pid)
{
	static const int printed[] = { STDOUT_FILENO, STDERR_FILENO };
	struct stat pipe;

	if (process_lease_is_descendant((uint32_t)getpid(), pid))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(printed); i++)
		if (fstat(printed[i], &pipe) == 0 && S_ISFIFO(pipe.st_mode) &&
			process_reads_from(pid, &pipe) > 0)
			return true;
	return false;
}

/* Whether process @pid is the first one of a step.  Its descendants have its pid, too. */
static bool is_step(uint32_t pid)
{
	char value[24], own[24];

	(void)snprintf(own, sizeof(own), "%u", pid);
	return proc_read_variable(pid, PROCESS_LEASE_STEP_VARIABLE, value,
		       sizeof(value)) == PROC_FOUND &&
	       strcmp(value, own) == 0;
}

/* Whether process @pid is in @range, which is not PROCESS_LEASE_ALL. */
static bool is_in_range(uint32_t pid, enum process_range range)
{
	return range == PROCESS_LEASE_STEPS
		       ? is_step(pid)
		       : is_caller(pid) == (range == PROCESS_LEASE_CALLERS);
}

/* Signals process @pid if it belongs to the lease; the pidfd excludes a later process @pid. */
static bool signal_if_of_lease(uint32_t pid, const char *token, uint32_t uid, int signal,
	uint32_t owner, enum process_range range)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat process;
	uint32_t user;

	if (proc_find_real_user(pid, &user) < 0 ||
		!process_lease_carries_token(pid, token))
		return false;
	/* a zombie keeps its tag until it is reaped, and kill(2) on it succeeds */
	if (process_stat_read(pid, &process) == 0 && process_has_ended(&process))
		return false;
	/* any user can set the tag, but root can start a process as another user */
	if (user != uid && (uid != 0 || !process_lease_is_descendant(pid, owner)))
		return false;
	if (range != PROCESS_LEASE_ALL && !is_in_range(pid, range))
		return false;
	return process_signal(pid, pidfd, user, signal) == 0;
}

unsigned process_lease_signal(const char *token, uint32_t uid, int signal, uint32_t owner,
	enum process_range range)
{
	autofree uint32_t *pids = NULL;
	unsigned reached = 0;
	size_t count;

	if (proc_list(0, &pids, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (pids[i] != owner && pids[i] != (uint32_t)getpid())
			reached += signal_if_of_lease(
				pids[i], token, uid, signal, owner, range);
	return reached;
}

unsigned process_lease_signal_all(
	const char *token, uint32_t uid, int signal, uint32_t owner)
{
	return process_lease_signal(token, uid, signal, owner, PROCESS_LEASE_ALL);
}
