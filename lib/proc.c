#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "array.h"
#include "fdio.h"
#include "proc.h"
#include "rights.h"

enum { PATH_SIZE = 64 };

/* --- one process ------------------------------------------------------------------- */

/* What hidepid answers, and a file that is only for who may trace the process. */
static bool may_be_hidden(int r)
{
	return (r == -ENOENT || r == -EPERM || r == -EACCES) && rights_are_lent();
}

static int open_path(const char *path)
{
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int proc_open(uint32_t pid, const char *name)
{
	char path[PATH_SIZE];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open_path(path);
	if (may_be_hidden(fd)) {
		rights_as_user_begin();
		fd = open_path(path);
		rights_as_user_end();
	}
	return fd;
}

int proc_read_text(uint32_t pid, const char *name, char *out, size_t size)
{
	autofd int fd = proc_open(pid, name);

	return fd < 0 ? fd : fdio_read_text_of(fd, out, size);
}

static int find_user(const char *path, uint32_t *ret_uid)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, 0) < 0)
		return -errno;
	*ret_uid = st.st_uid;
	return 0;
}

int proc_find_user(uint32_t pid, uint32_t *ret_uid)
{
	char path[PATH_SIZE];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	r = find_user(path, ret_uid);
	if (may_be_hidden(r)) {
		rights_as_user_begin();
		r = find_user(path, ret_uid);
		rights_as_user_end();
	}
	return r;
}

int proc_find_real_user(uint32_t pid, uint32_t *ret_uid)
{
	char text[4096];
	unsigned uid = 0;
	const char *line;
	int r = proc_read_text(pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	/* the kernel escapes a newline in the process's name, which stands before */
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u", &uid) != 1)
		return -EBADMSG;
	*ret_uid = uid;
	return 0;
}

/* --- many -------------------------------------------------------------------------- */

struct pids {
	uint32_t *all;
	size_t count, room;
};

static int add(struct pids *pids, uint32_t pid)
{
	void *grown = array_grow(pids->all, sizeof(*pids->all), pids->count, &pids->room);

	if (!grown)
		return -ENOMEM;
	pids->all = grown;
	pids->all[pids->count++] = pid;
	return 0;
}

static int hand_over(struct pids *pids, int r, uint32_t **ret, size_t *ret_count)
{
	if (r < 0) {
		free(pids->all);
		return r;
	}
	*ret = pids->all;
	*ret_count = pids->count;
	return 0;
}

static int read_names(struct pids *pids, bool *ret_has_first)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	pids->count = 0;
	*ret_has_first = false;
	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		unsigned pid = 0;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
			sscanf(entry->d_name, "%u", &pid) != 1)
			continue;
		r = add(pids, pid);
		*ret_has_first |= pid == 1;
	}
	(void)closedir(proc);
	return r;
}

int proc_list(uint32_t **ret, size_t *ret_count)
{
	struct pids pids = { .all = NULL };
	bool has_first;
	int r = read_names(&pids, &has_first);

	/* who sees the first process sees all, or as many as there are to be seen */
	if (r == 0 && !has_first && rights_are_lent()) {
		rights_as_user_begin();
		r = read_names(&pids, &has_first);
		rights_as_user_end();
	}
	return hand_over(&pids, r, ret, ret_count);
}

int proc_list_children(uint32_t **ret, size_t *ret_count)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	struct pids pids = { .all = NULL };
	unsigned pid;
	int r = 0;

	while (file && r == 0 && fscanf(file, "%u", &pid) == 1)
		r = add(&pids, pid);
	if (file)
		(void)fclose(file);
	return hand_over(&pids, r, ret, ret_count);
}
