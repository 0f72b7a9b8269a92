#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fdio.h"
#include "kin.h"
#include "rights.h"

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
	char path[32], text[4096];
	unsigned long long soft = 0;
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%u/limits", pid);
	if (fdio_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "Max file locks");
	if (!line || sscanf(line, "Max file locks %llu", &soft) != 1)
		return 0; /* unlimited */
	return soft;
}

static bool has_in_environment(uint32_t pid, const char *token)
{
	char path[32], wanted[sizeof(KIN_TOKEN_VARIABLE) + TOKEN_SIZE + 1];
	autofree char *text = malloc(ENVIRONMENT_MAX);
	autofd int fd = -1;
	size_t used = 0;
	ssize_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	rights_as_user_begin();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rights_as_user_end();
	if (!text || fd < 0)
		return false;
	text[used++] = '\0';
	while (used < ENVIRONMENT_MAX - 1 &&
		(n = read(fd, text + used, ENVIRONMENT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used++] = '\0';
	/* between NULs, so that no other variable's value is taken for it */
	(void)snprintf(
		wanted, sizeof(wanted), "%c" KIN_TOKEN_VARIABLE "=%s", '\0', token);
	return memmem(text, used, wanted, 1 + strlen(wanted + 1) + 1) != NULL;
}

bool kin_carries_token(uint32_t pid, const char *token)
{
	uint64_t tag = kin_tag(token);

	return tag && (kin_tag_of_process(pid) == tag || has_in_environment(pid, token));
}

bool kin_is_descendant(uint32_t pid, uint32_t ancestor)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		struct process_stat stat;

		if (pid == ancestor)
			return true;
		if (process_stat_read(pid, &stat) < 0)
			return false;
		pid = stat.parent;
	}
	return pid != 0 && pid == ancestor;
}

/* By pidfd, where there is one: the process that was looked at, not its successor. */
static bool signal_if_kin(uint32_t pid, const char *token, uint32_t uid, int signal)
{
	autofd int pidfd = pidfd_open_process(pid);
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (stat(path, &st) < 0 || !kin_carries_token(pid, token))
		return false;
	/* /proc shows root for a process that is not dumpable: kill(2) itself refuses others */
	if (uid != 0 && st.st_uid != uid && st.st_uid != 0)
		return false;
	return process_signal(pid, pidfd, signal) == 0;
}

unsigned kin_signal_all(const char *token, uint32_t uid, int signal, uint32_t but)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned reached = 0;

	if (!proc)
		return 0;
	while ((entry = readdir(proc))) {
		unsigned pid = 0;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
			sscanf(entry->d_name, "%u", &pid) != 1 || pid == but ||
			pid == (unsigned)getpid())
			continue;
		reached += signal_if_kin(pid, token, uid, signal);
	}
	(void)closedir(proc);
	return reached;
}
