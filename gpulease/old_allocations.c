#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "beacon.h"
#include "clock.h"
#include "old_allocations.h"
#include "proc.h"
#include "slurm.h"
#include "snapshot.h"

enum {
	OLD_MAX = 64,
	REMOVED_MAX = 8,
	NAMES_MAX = 65536,
	PROCESSES_MAX = 16384,
	ENVIRONMENT_MAX = 128 * 1024
};

struct old {
	char name[SLURM_NAME_SIZE], job[24];
	bool is_alive;
};

static const char *const folders[] = { "gpu", BEACON_LIVE, BEACON_BELL };

/* --- which there are --------------------------------------------------------------- */

static unsigned find_old(const struct statedir *own, struct old old[OLD_MAX])
{
	char parent[PATH_MAX];
	const struct dirent *entry;
	const char *name;
	unsigned count = 0;
	DIR *stream;

	text_copy(parent, sizeof(parent), own->path);
	name = strrchr(parent, '/');
	parent[name - parent] = '\0';
	name = own->path + strlen(parent) + 1;
	stream = opendir(parent);
	while (stream && count < OLD_MAX && (entry = readdir(stream))) {
		struct old *found = &old[count];

		if (strcmp(entry->d_name, name) == 0 ||
			strlen(entry->d_name) >= sizeof(found->name) ||
			!slurm_directory_job(entry->d_name, found->job))
			continue;
		text_copy(found->name, sizeof(found->name), entry->d_name);
		found->is_alive = false;
		count++;
	}
	if (stream)
		(void)closedir(stream);
	return count;
}

/*
 * Marks the job that process @pid was started in, by its environment; all jobs where that is too
 * long to tell.
 */
static void mark_job(uint32_t pid, struct old *old, unsigned count)
{
	static const char name[] = "\0SLURM_JOB_ID=";
	static char text[ENVIRONMENT_MAX];
	autofd int fd = proc_open(pid, "environ");
	size_t used = 1;
	ssize_t n;
	const char *at;

	if (fd < 0)
		return;
	text[0] = '\0';
	while (used < sizeof(text) - 1 &&
		(n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	at = memmem(text, used, name, sizeof(name) - 1);
	for (unsigned i = 0; i < count; i++)
		if (at ? strcmp(at + sizeof(name) - 1, old[i].job) == 0
		       : used == sizeof(text) - 1)
			old[i].is_alive = true;
}

/* Marks the jobs of which a process lives.  False: /proc cannot be read, or shows too many. */
static bool mark_living(struct old *old, unsigned count)
{
	autofree uint32_t *pids = NULL;
	size_t processes;

	if (proc_list(&pids, &processes) < 0 || processes > PROCESSES_MAX)
		return false;
	for (size_t i = 0; i < processes; i++)
		mark_job(pids[i], old, count);
	return true;
}

/* --- one of them ------------------------------------------------------------------- */

/* Calls @act with each name in the directory @fd until one call returns false; whether none did. */
static bool each_name(int fd, bool (*act)(int fd, const char *name))
{
	int own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = own_fd < 0 ? NULL : fdopendir(own_fd);
	const struct dirent *entry;
	bool is_good = stream != NULL;
	unsigned count = 0;

	if (!stream) {
		close_fd(&own_fd);
		return false;
	}
	while (is_good && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			is_good = ++count <= NAMES_MAX && act(fd, entry->d_name);
	(void)closedir(stream);
	return is_good;
}

static bool is_folder(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (strcmp(name, folders[i]) == 0)
			return true;
	return false;
}

/* Whether gpulease makes such a name in a state directory.  Only its beginning is compared. */
static bool is_known(int fd, const char *name)
{
	static const char *const known[] = { "tickets", "probe", "topology", "history",
		"tmp." };
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (is_folder(name))
		return S_ISDIR(st.st_mode);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strncmp(name, known[i], strlen(known[i])) == 0)
			return S_ISREG(st.st_mode);
	return false;
}

static bool is_no_folder(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode);
}

static bool has_known_layout(const struct statedir *dir)
{
	return each_name(dir->fd, is_known) && each_name(dir->gpu_fd, is_no_folder) &&
	       each_name(dir->live_fd, is_no_folder) &&
	       each_name(dir->bell_fd, is_no_folder);
}

static int stop_at_first(void *unused, const char *token)
{
	(void)unused;
	(void)token;
	return 1;
}

/* Whether a ticket or lease of the directory lives, or may live because it cannot be read. */
static bool has_life(const struct statedir *dir)
{
	static struct snapshot view;
	bool has = beacon_each_held(dir, stop_at_first, NULL) != 0;

	snapshot_init(&view, dir);
	if (!has)
		has = snapshot_read(&view, clock_boot_ms()) < 0;
	for (size_t i = 0; i < view.lease_count && !has; i++)
		has = !view.leases[i].is_over;
	snapshot_release(&view);
	return has;
}

static bool remove_name(int fd, const char *name)
{
	(void)unlinkat(fd, name, 0);
	return true;
}

static bool remove_file(int fd, const char *name)
{
	return is_folder(name) || remove_name(fd, name);
}

/* Removes the directory if nothing of it is in use.  Whether it could be opened. */
static bool remove_one(const struct statedir_choice *choice, const struct old *old)
{
	struct statedir_choice of_old = *choice;
	struct statedir dir = STATEDIR_NONE;

	of_old.allocation = old->name;
	if (statedir_open(&of_old, &dir, NULL) != 0)
		return false;
	if (flock(dir.fd, LOCK_EX | LOCK_NB) == 0 && has_known_layout(&dir) &&
		!has_life(&dir)) {
		(void)each_name(dir.gpu_fd, remove_name);
		(void)each_name(dir.live_fd, remove_name);
		(void)each_name(dir.bell_fd, remove_name);
		for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
			(void)unlinkat(dir.fd, folders[i], AT_REMOVEDIR);
		(void)each_name(dir.fd, remove_file);
		(void)unlinkat(AT_FDCWD, dir.path, AT_REMOVEDIR);
	}
	statedir_release(&dir);
	return true;
}

void old_allocations_remove(
	const struct statedir_choice *choice, const struct statedir *own)
{
	struct old old[OLD_MAX];
	unsigned count = find_old(own, old), tried = 0;

	if (!count || !mark_living(old, count))
		return;
	for (unsigned i = 0; i < count && tried < REMOVED_MAX; i++)
		if (!old[i].is_alive)
			tried += remove_one(choice, &old[i]);
}
