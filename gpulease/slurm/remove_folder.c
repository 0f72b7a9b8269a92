#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fdio.h"
#include "remove_folder.h"

enum { PASSES_MAX = 1000 * 1000 }; /* against a process that goes on making files */

struct removal {
	int top; /* the folder that is to go */
	dev_t device;
	uint64_t mount; /* 0: the kernel does not tell */
	unsigned moved; /* folders that have been moved up */
};

static bool is_own(const struct stat *st)
{
	return st->st_uid == geteuid() || geteuid() == 0;
}

/* The mount of the open folder @fd; 0: the kernel does not tell. */
static uint64_t mount_of(int fd)
{
	uint64_t id;

	return fdio_mount_id(fd, "", false, &id) == 0 ? id : 0;
}

/* Opens the own folder @name in @fd, and gives its user all rights to it. */
static int open_own(int fd, const char *name)
{
	char path[32];
	struct stat st;
	autofd int place =
		openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int folder;

	if (place < 0 || fstat(place, &st) < 0)
		return -errno;
	if (!is_own(&st))
		return -EPERM;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	if ((st.st_mode & 0700) != 0700)
		(void)chmod(path, 0700);
	folder = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0 ? -errno : folder;
}

/* The same for a folder inside the one that is to go. */
static int open_inside(const struct removal *removal, int fd, const char *name)
{
	autofd int folder = open_own(fd, name);
	struct stat st;

	if (folder < 0)
		return folder;
	if (fstat(folder, &st) < 0)
		return -errno;
	if (st.st_dev != removal->device || mount_of(folder) != removal->mount)
		return -EXDEV;
	return take_fd(&folder);
}

/* Moves the folder @name of the folder @fd into the top one, under a number. */
static bool has_moved_up(struct removal *removal, int fd, const char *name)
{
	autofd int folder = open_inside(removal, fd, name);
	char number[24];

	(void)snprintf(
		number, sizeof(number), "%u.%u", (unsigned)getpid(), removal->moved++);
	return folder >= 0 && renameat(fd, name, removal->top, number) == 0;
}

static bool has_emptied(struct removal *removal, const char *name);

/*
 * Removes what is in the folder @fd.  Of a folder in the top one, the folders are moved up: so a
 * tree of any depth needs two descriptors.  Returns whether anything has changed.
 */
static bool has_gone_through(struct removal *removal, int fd)
{
	bool is_top = fd == removal->top, has_changed = false;
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!all) {
		close_fd(&copy);
		return false;
	}
	while ((entry = readdir(all))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		has_changed |= unlinkat(fd, name, 0) == 0 ||
			       unlinkat(fd, name, AT_REMOVEDIR) == 0 ||
			       (is_top ? has_emptied(removal, name)
				       : has_moved_up(removal, fd, name));
	}
	(void)closedir(all);
	return has_changed;
}

/* Empties and removes the folder @name of the top one.  Returns whether anything has changed. */
static bool has_emptied(struct removal *removal, const char *name)
{
	autofd int fd = open_inside(removal, removal->top, name);
	bool has_changed;

	if (fd < 0)
		return false;
	has_changed = has_gone_through(removal, fd);
	return unlinkat(removal->top, name, AT_REMOVEDIR) == 0 || has_changed;
}

int remove_folder(int parent, const char *name)
{
	autofd int top = open_own(parent, name);
	struct removal removal = { .top = top };
	struct stat st;

	if (top < 0)
		return top;
	if (fstat(top, &st) < 0)
		return -errno;
	removal.device = st.st_dev;
	removal.mount = mount_of(top);
	for (int i = 0; i < PASSES_MAX && has_gone_through(&removal, top); i++)
		continue;
	return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}
