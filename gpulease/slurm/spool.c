#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fdio.h"
#include "spool.h"

enum {
	OLD_S = 3600,
	SWEEP_MAX = 64,
	COMMAND_LINE_MAX = 256 * 1024, /* what is read of a command line */
};

/* Copies that may be removed. */
struct sweep {
	char names[SWEEP_MAX][NAME_MAX + 1];
	bool is_used[SWEEP_MAX];
	size_t count;
};

/*
 * Makes the folder and those above it, like mkdir -p; new ones are for this user alone.  If that
 * fails, the reason is that of the first folder that cannot be made.
 */
static int make_folders(char *path)
{
	int reason = 0;

	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST && !reason)
			reason = -errno;
		*at = '/';
	}
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return reason ? reason : -errno;
}

/* Names the folder.  Returns 0, -ENOENT: there is no home directory, or -ENAMETOOLONG. */
static int folder_path(char out[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct text text = text_on(out, PATH_MAX);

	if (state && state[0] == '/')
		text_addf(&text, "%s/gpulease/scripts", state);
	else if (home && home[0] == '/')
		text_addf(&text, "%s/.local/state/gpulease/scripts", home);
	else
		return -ENOENT;
	return text.cut ? -ENAMETOOLONG : 0;
}

/* How the names of this host begin; /proc shows only the processes of this pid namespace. */
static void set_prefix(char out[NAME_MAX + 1])
{
	char host[HOST_NAME_MAX + 1] = "";
	struct stat st = { .st_ino = 0 };

	(void)gethostname(host, sizeof(host) - 1);
	(void)stat("/proc/self/ns/pid", &st);
	(void)snprintf(
		out, NAME_MAX + 1, "%.100s.%llu.", host, (unsigned long long)st.st_ino);
}

int spool_path(const char *name, char out[PATH_MAX])
{
	char folder[PATH_MAX], prefix[NAME_MAX + 1];
	struct text text = text_on(out, PATH_MAX);
	int r = folder_path(folder);

	if (r == 0)
		r = make_folders(folder);
	set_prefix(prefix);
	if (r == 0)
		text_addf(&text, "%s/%s%s", folder, prefix, name);
	return r == 0 && text.cut ? -ENAMETOOLONG : r;
}

/* Whether the file goes with the next sweep unless a process needs it. */
static bool is_old(int folder, const char *name)
{
	time_t now = time(NULL);
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* a link from the id of an array goes with the record */
	return S_ISLNK(st.st_mode) ? fstatat(folder, name, &st, 0) < 0
				   : st.st_mtime < now - OLD_S;
}

/* Finds the old copies of this host in the folder. */
static void sweep_find(struct sweep *sweep, DIR *folder, const char *prefix)
{
	struct dirent *entry;

	while (sweep->count < SWEEP_MAX && (entry = readdir(folder)))
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
			is_old(dirfd(folder), entry->d_name))
			text_copy(sweep->names[sweep->count++], NAME_MAX + 1,
				entry->d_name);
}

/* Marks the copies that the command line of process @pid names. */
static void sweep_mark(struct sweep *sweep, int proc, const char *pid)
{
	static char line[COMMAND_LINE_MAX];
	char name[NAME_MAX + 16];
	size_t used = 0;
	ssize_t n = 0;
	autofd int fd = -1;

	(void)snprintf(name, sizeof(name), "%s/cmdline", pid);
	fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (used < sizeof(line) &&
		(n = read(fd, line + used, sizeof(line) - used)) > 0)
		used += (size_t)n;
	for (size_t i = 0; i < sweep->count; i++)
		if (memmem(line, used, sweep->names[i], strlen(sweep->names[i])))
			sweep->is_used[i] = true;
}

/* Removes the old copies that no process names. */
static void sweep(const char *path, const char *prefix)
{
	static struct sweep sweep;
	DIR *folder = opendir(path), *proc = NULL;
	struct dirent *entry;

	if (folder)
		sweep_find(&sweep, folder, prefix);
	/* where /proc hides processes, it may hide those that need the copies */
	if (sweep.count && access("/proc/1/cmdline", R_OK) == 0)
		proc = opendir("/proc");
	while (proc && (entry = readdir(proc)))
		if (is_digit(entry->d_name[0]))
			sweep_mark(&sweep, dirfd(proc), entry->d_name);
	for (size_t i = 0; proc && i < sweep.count; i++)
		if (!sweep.is_used[i])
			(void)unlinkat(dirfd(folder), sweep.names[i], 0);
	if (proc)
		(void)closedir(proc);
	if (folder)
		(void)closedir(folder);
}

int spool_write(const char *script, size_t size, char path[PATH_MAX], struct why *why)
{
	char folder[PATH_MAX], prefix[NAME_MAX + 1];
	struct text text = text_on(path, PATH_MAX);
	autofd int fd = -1;
	int r = folder_path(folder);

	if (r == -ENOENT) {
		why_set(why,
			"HOME is not set, so there is no folder for the copy of the script");
		return r;
	}
	if (r == 0)
		r = make_folders(folder);
	set_prefix(prefix);
	text_addf(&text, "%s/%sXXXXXX", folder, prefix);
	if (r == 0 && text.cut)
		r = -ENAMETOOLONG;
	if (r == 0) {
		sweep(folder, prefix);
		fd = mkostemp(path, O_CLOEXEC);
		r = fd < 0 ? -errno : fdio_pwrite(fd, script, size, 0);
		if (r == 0 && fchmod(fd, 0700) < 0)
			r = -errno;
		if (r < 0 && fd >= 0)
			(void)unlink(path);
	}
	if (r < 0)
		why_set(why,
			"cannot copy the script to '%s': %s; to copy it elsewhere, set "
			"XDG_STATE_HOME to another folder",
			folder, strerror(-r));
	return r;
}
