#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "array.h"
#include "fdio.h"
#include "namespaces.h"
#include "proc.h"
#include "rights.h"
#include "text.h"

enum { ENVIRONMENT_MAX = 256 * 1024 };

/* --- one process ------------------------------------------------------------------- */

/*
 * Whether a call that failed with @r may succeed with the user's rights alone.  With the lent group
 * this process may not trace the user's processes, so /proc denies it files that only a tracer may
 * read and, under hidepid, whole processes.
 */
static bool may_be_hidden(int r)
{
	return (r == -ENOENT || r == -EPERM || r == -EACCES) && rights_are_lent();
}

static int open_for_reading(const char *path)
{
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int proc_path(uint32_t pid, const char *name, char out[PROC_PATH_SIZE])
{
	if (!namespaces_has_own_proc())
		return -ENOTSUP;
	(void)snprintf(out, PROC_PATH_SIZE, "/proc/%u/%s", pid, name);
	return 0;
}

int proc_open(uint32_t pid, const char *name)
{
	char path[PROC_PATH_SIZE];
	int fd = proc_path(pid, name, path);

	if (fd < 0)
		return fd;
	fd = open_for_reading(path);
	if (may_be_hidden(fd)) {
		rights_as_user_begin();
		fd = open_for_reading(path);
		rights_as_user_end();
	}
	return fd;
}

int proc_read_text(uint32_t pid, const char *name, char *out, size_t size)
{
	autofd int fd = proc_open(pid, name);

	return fd < 0 ? fd : fdio_read_text_of(fd, out, size);
}

int proc_read_variable(uint32_t pid, const char *name, char *out, size_t size)
{
	autofree char *text = malloc(ENVIRONMENT_MAX);
	autofd int fd = proc_open(pid, "environ");
	size_t used = 1, length;
	char sought[64] = "";
	ssize_t n = 0;
	const char *at;

	if (fd < 0 || !text)
		return fd < 0 ? fd : -ENOMEM;
	/* search for "\0NAME=", so that the value of another variable does not match */
	text[0] = '\0';
	while (used < ENVIRONMENT_MAX - 1 &&
		(n = read(fd, text + used, ENVIRONMENT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	length = 1 + (size_t)snprintf(sought + 1, sizeof(sought) - 1, "%s=", name);
	at = memmem(text, used, sought, length);
	/* n > 0: the buffer is full, and the variable may come after what was read */
	if (!at)
		return n > 0 ? -E2BIG : 0;
	text_copy(out, size, at + length);
	return PROC_FOUND;
}

static int stat_user(const char *path, uint32_t *ret_uid)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, 0) < 0)
		return -errno;
	*ret_uid = namespaces_user_outside(st.st_uid);
	return 0;
}

int proc_find_user(uint32_t pid, uint32_t *ret_uid)
{
	char path[PROC_PATH_SIZE];
	int r = proc_path(pid, "", path);

	if (r == 0)
		r = stat_user(path, ret_uid);
	if (may_be_hidden(r)) {
		rights_as_user_begin();
		r = stat_user(path, ret_uid);
		rights_as_user_end();
	}
	return r;
}

/*
 * Finds the line of /proc/@pid/status that begins with @name.  Returns the rest of that line and of
 * the file in @text, or NULL with a negative errno in *@ret_error.
 */
static const char *find_status(
	uint32_t pid, const char *name, char *text, size_t size, int *ret_error)
{
	char begin[16];
	const char *line;

	*ret_error = proc_read_text(pid, "status", text, size);
	if (*ret_error < 0)
		return NULL;
	/* the name comes before these lines, but the kernel escapes newlines in it */
	(void)snprintf(begin, sizeof(begin), "\n%s:", name);
	line = strstr(text, begin);
	*ret_error = line ? 0 : -ENODATA;
	return line ? line + strlen(begin) : NULL;
}

int proc_find_real_user(uint32_t pid, uint32_t *ret_uid)
{
	char text[4096];
	unsigned uid = 0;
	int r;
	const char *line = find_status(pid, "Uid", text, sizeof(text), &r);

	if (line && sscanf(line, "%u", &uid) != 1)
		r = -EBADMSG;
	if (r == 0)
		*ret_uid = namespaces_user_outside(uid);
	return r;
}

int proc_find_inner_pid(uint32_t pid, uint32_t *ret)
{
	char text[4096];
	unsigned inner = 0;
	int r, used;
	const char *line = find_status(pid, "NSpid", text, sizeof(text), &r);

	/* one number for each namespace from this one down: the last one counts */
	for (; line && *line && *line != '\n' && sscanf(line, "%u%n", &inner, &used) == 1;
		line += used)
		*ret = inner;
	return r == 0 && !inner ? -EBADMSG : r;
}

/* --- many -------------------------------------------------------------------------- */

/* The position of a pid in the folder /proc is the pid plus this: TGID_OFFSET in fs/proc/base.c. */
enum { PROCESSES_AT = 258 };

struct pids {
	uint32_t *all;
	size_t count, room;
};

static int pids_append(struct pids *pids, uint32_t pid)
{
	void *grown = array_grow(pids->all, sizeof(*pids->all), pids->count, &pids->room);

	if (!grown)
		return -ENOMEM;
	pids->all = grown;
	pids->all[pids->count++] = pid;
	return 0;
}

/* Gives the list to the caller, which frees it; or frees it if @r is an error.  Returns @r. */
static int pids_hand_over(struct pids *pids, int r, uint32_t **ret, size_t *ret_count)
{
	if (r < 0) {
		free(pids->all);
		return r;
	}
	*ret = pids->all;
	*ret_count = pids->count;
	return 0;
}

/* Whether /proc hides nothing: a process that sees process 1 sees all. */
static bool sees_first(void)
{
	struct stat st;

	return fstatat(AT_FDCWD, "/proc/1", &st, 0) == 0;
}

/*
 * Lists the processes from @from on.  It seeks in /proc, which depends on the kernel's numbering of
 * the entries; *@ret_is_proven says that the numbering was as expected, so no process was skipped.
 */
static int pids_read_folder(uint32_t from, struct pids *pids, bool *ret_is_proven)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long position = 0; /* of this entry, by the offset in the entry before it */
	int r = 0;

	pids->count = 0;
	*ret_is_proven = from == 0;
	if (!proc)
		return -errno;
	if (from > 0)
		seekdir(proc, (long)from + PROCESSES_AT);
	while (r == 0 && (entry = readdir(proc))) {
		unsigned pid = 0;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
			sscanf(entry->d_name, "%u", &pid) != 1)
			continue;
		/*
		 * The offset in the entry before has to be that of this pid; one entry proves
		 * nothing.
		 */
		if (from > 0 && pids->count > 0) {
			*ret_is_proven = position == (long)pid + PROCESSES_AT;
			if (!*ret_is_proven)
				break;
		}
		position = entry->d_off;
		r = pids_append(pids, pid);
	}
	(void)closedir(proc);
	return r;
}

/* Lists the processes from @from on; all of them if the fast way is not proven to work. */
static int pids_read(uint32_t from, struct pids *pids)
{
	bool is_proven;
	int r = pids_read_folder(from, pids, &is_proven);

	return r == 0 && !is_proven ? pids_read_folder(0, pids, &is_proven) : r;
}

int proc_list(uint32_t from, uint32_t **ret, size_t *ret_count)
{
	struct pids pids = { .all = NULL };
	/* under hidepid, the user's rights show more than the lent group does */
	bool is_user = rights_are_lent() && !sees_first();
	int r;

	if (!namespaces_has_own_proc())
		return -ENOTSUP;
	if (is_user)
		rights_as_user_begin();
	r = pids_read(from, &pids);
	if (is_user)
		rights_as_user_end();
	return pids_hand_over(&pids, r, ret, ret_count);
}

int proc_list_children(uint32_t **ret, size_t *ret_count)
{
	FILE *file = namespaces_has_own_proc() ? fopen("/proc/thread-self/children", "re")
					       : NULL;
	struct pids pids = { .all = NULL };
	unsigned pid;
	int r = 0;

	while (file && r == 0 && fscanf(file, "%u", &pid) == 1)
		r = pids_append(&pids, pid);
	if (file)
		(void)fclose(file);
	return pids_hand_over(&pids, r, ret, ret_count);
}
