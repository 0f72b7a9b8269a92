#include <sys/stat.h>

#include "kin.h"
#include "proc.h"
#include "text.h"

enum { ANCESTORS_MAX = 512, ENVIRONMENT_MAX = 256 * 1024 };

uint64_t kin_tag(const char *token)
{
	unsigned long long bits = 0;

	if (!is_token(token) || sscanf(token, "%16llx", &bits) != 1)
		return 0;
	return bits & INT64_MAX;
}

uint64_t kin_tag_of_process(uint32_t pid)
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

/* The token in the environment of process @pid, "" where there is none to be seen. */
static void read_token(uint32_t pid, char ret[TOKEN_SIZE])
{
	static const char name[] = "\0" KIN_TOKEN_VARIABLE "=";
	autofree char *text = malloc(ENVIRONMENT_MAX);
	autofd int fd = proc_open(pid, "environ");
	size_t used = 0;
	ssize_t n = 0;
	const char *at;

	ret[0] = '\0';
	if (!text || fd < 0)
		return;
	text[used++] = '\0';
	while (used < ENVIRONMENT_MAX - 1 &&
		(n = read(fd, text + used, ENVIRONMENT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used++] = '\0';
	/* behind a NUL, so that no other variable's value is taken for it */
	at = memmem(text, used, name, sizeof(name) - 1);
	if (at && is_token(at + sizeof(name) - 1))
		text_copy(ret, TOKEN_SIZE, at + sizeof(name) - 1);
}

void kin_read(uint32_t pid, struct kin *ret)
{
	*ret = (struct kin){ .pid = pid, .tag = kin_tag_of_process(pid) };
	ret->has_uid = proc_find_real_user(pid, &ret->uid) == 0;
	read_token(pid, ret->token);
}

void kin_read_token(uint32_t pid, struct kin *kin)
{
	read_token(pid, kin->token);
}

bool kin_matches(const struct kin *kin, const char *token)
{
	uint64_t tag = kin_tag(token);

	return tag && (kin->tag == tag || strcmp(kin->token, token) == 0);
}

bool kin_belongs(const struct kin *kin, const struct owner *owner)
{
	return kin->has_uid && kin->uid == owner->uid && kin_matches(kin, owner->token);
}

bool kin_descends(const struct kin *kin, const struct owner *owner)
{
	/* root may give its processes to any user */
	return kin->has_uid && (kin->uid == owner->uid || owner->uid == 0) &&
	       kin_is_descendant(kin->pid, owner->pid);
}

bool kin_carries_token(uint32_t pid, const char *token)
{
	struct kin kin = { .tag = kin_tag_of_process(pid) };

	/* the cheap sign first */
	if (!kin_matches(&kin, token))
		read_token(pid, kin.token);
	return kin_matches(&kin, token);
}

bool kin_is_of(uint32_t pid, const struct owner *owner)
{
	uint32_t uid;

	return kin_carries_token(pid, owner->token) &&
	       proc_find_real_user(pid, &uid) == 0 && uid == owner->uid;
}

bool kin_is_descendant(uint32_t pid, uint32_t ancestor)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		struct process_stat stat;

		if (pid == ancestor)
			return true;
		if (process_stat_read(pid, &stat) < 0 ||
			strcmp(stat.comm, KIN_SUBMITTED) == 0)
			return false;
		pid = stat.parent;
	}
	return pid != 0 && pid == ancestor;
}

/* A parent of this process's, or somebody who reads what it prints. */
static bool is_caller(uint32_t pid)
{
	static const int printed[] = { STDOUT_FILENO, STDERR_FILENO };
	struct stat pipe;

	if (kin_is_descendant((uint32_t)getpid(), pid))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(printed); i++)
		if (fstat(printed[i], &pipe) == 0 && S_ISFIFO(pipe.st_mode) &&
			process_reads_from(pid, &pipe) > 0)
			return true;
	return false;
}

/* By pidfd, where there is one: the process that was looked at, not its successor. */
static bool signal_if_kin(uint32_t pid, const char *token, uint32_t uid, int signal,
	uint32_t owner, enum kin_range range)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat process;
	uint32_t user;

	if (proc_find_real_user(pid, &user) < 0 || !kin_carries_token(pid, token))
		return false;
	/* who has ended keeps his tag until his parent asks; a signal would seem to reach him */
	if (process_stat_read(pid, &process) == 0 && process_has_ended(&process))
		return false;
	/* any user can set the tag, and root may give its processes to any user */
	if (user != uid && (uid != 0 || !kin_is_descendant(pid, owner)))
		return false;
	if (range != KIN_ALL && is_caller(pid) != (range == KIN_CALLERS))
		return false;
	return process_signal(pid, pidfd, user, signal) == 0;
}

unsigned kin_signal(
	const char *token, uint32_t uid, int signal, uint32_t but, enum kin_range range)
{
	autofree uint32_t *pids = NULL;
	unsigned reached = 0;
	size_t count;

	if (proc_list(&pids, &count) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (pids[i] != but && pids[i] != (uint32_t)getpid())
			reached += signal_if_kin(pids[i], token, uid, signal, but, range);
	return reached;
}

unsigned kin_signal_all(const char *token, uint32_t uid, int signal, uint32_t but)
{
	return kin_signal(token, uid, signal, but, KIN_ALL);
}
