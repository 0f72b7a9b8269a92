#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "live_fifo.h"
#include "clock.h"
#include "slurm_old_directories.h"
#include "proc.h"
#include "slurm.h"
#include "snapshot.h"

enum { OLD_MAX = 64, REMOVED_MAX = 8, NAMES_MAX = 65536, PROCESSES_MAX = 16384 };

/* A state directory of another Slurm job. */
struct slurm_old {
	char name[SLURM_NAME_SIZE], job[24];
	bool is_alive;
};

static const char *const folders[] = { "gpu", FIFO_LIVE, FIFO_BELL };

/* --- finding them -------------------------------------------------------------------- */

/* Lists the directories beside @own by their names.  Returns how many there are. */
static unsigned slurm_old_list(const struct statedir *own, struct slurm_old old[OLD_MAX])
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
		struct slurm_old *found = &old[count];

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
 * Marks the job in which process @pid was started, by its environment.  Marks all jobs if the
 * environment is too long to be read.
 */
static void slurm_old_mark_job(uint32_t pid, struct slurm_old *old, unsigned count)
{
	char job[sizeof(old->job) + 1];
	int r = proc_read_variable(pid, "SLURM_JOB_ID", job, sizeof(job));

	for (unsigned i = 0; i < count; i++)
		if (r == -E2BIG || (r > 0 && strcmp(job, old[i].job) == 0))
			old[i].is_alive = true;
}

/*
 * Marks the jobs that have a live process.  Returns false if /proc cannot be read, or shows too
 * many.
 */
static bool slurm_old_mark_living(struct slurm_old *old, unsigned count)
{
	autofree uint32_t *pids = NULL;
	size_t processes;

	if (proc_list(0, &pids, &processes) < 0 || processes > PROCESSES_MAX)
		return false;
	for (size_t i = 0; i < processes; i++)
		slurm_old_mark_job(pids[i], old, count);
	return true;
}

/* --- removing one -------------------------------------------------------------------- */

/* Calls @act for each name in the directory @fd until a call returns false; whether none did. */
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
static bool is_state_file(int fd, const char *name)
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

/* Whether all names in the directory and its folders are ones that gpulease makes. */
static bool has_known_layout(const struct statedir *dir)
{
	return each_name(dir->fd, is_state_file) &&
	       each_name(dir->gpu_fd, is_no_folder) &&
	       each_name(dir->live_fd, is_no_folder) &&
	       each_name(dir->bell_fd, is_no_folder);
}

static int stop_at_first(void *unused, const char *token)
{
	(void)unused;
	(void)token;
	return 1;
}

/* Whether a ticket or lease in the directory lives, or may live because it cannot be read. */
static bool has_live_job(const struct statedir *dir)
{
	static struct snapshot view;
	bool has = live_fifo_each_held(dir, stop_at_first, NULL) != 0;

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

/* Removes the directory unless it is in use.  Returns whether it could be opened. */
static bool slurm_old_remove(
	const struct statedir_choice *choice, const struct slurm_old *old)
{
	struct statedir_choice of_old = *choice;
	struct statedir dir = STATEDIR_NONE;

	of_old.allocation = old->name;
	if (statedir_open(&of_old, &dir, NULL) != 0)
		return false;
	/* fails while another process uses it: each holds a shared lock */
	if (flock(dir.fd, LOCK_EX | LOCK_NB) == 0 && has_known_layout(&dir) &&
		!has_live_job(&dir)) {
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

void slurm_old_directories_remove(
	const struct statedir_choice *choice, const struct statedir *own)
{
	struct slurm_old old[OLD_MAX];
	unsigned count = slurm_old_list(own, old), tried = 0;

	if (!count || !slurm_old_mark_living(old, count))
		return;
	for (unsigned i = 0; i < count && tried < REMOVED_MAX; i++)
		if (!old[i].is_alive)
			tried += slurm_old_remove(choice, &old[i]);
}
