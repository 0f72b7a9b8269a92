#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "rights.h"
#include "text.h"
#include "userfile.h"

enum { ATTEMPTS = 3 };

/* 0 if the open file does not belong to the state, or a negative errno. */
static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_gid == rights_lent_group() ? -EACCES : 0;
}

static int open_folder(const char *path)
{
	autofd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : check(fd);

	return r < 0 ? r : take_fd(&fd);
}

/* Opens the folder that @path lies in; *@ret_name is the rest of @path.  Or a negative errno. */
static int open_parent(const char *path, char folder[PATH_MAX], const char **ret_name)
{
	struct text text = text_on(folder, PATH_MAX);
	size_t size = strlen(path), end = size;

	while (end > 1 && path[end - 1] == '/') /* mkdir(2) takes them */
		end--;
	while (end > 0 && path[end - 1] != '/')
		end--;
	if (end == 0)
		text_add(&text, ".");
	text_add_bytes(&text, path, end);
	*ret_name = path[end] ? path + end : ".";
	return text.cut ? -ENAMETOOLONG : open_folder(folder);
}

/* --- in the hardened form ---------------------------------------------------------- */

static int open_there(const char *path, int flags)
{
	autofd int fd = open(path, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
	struct stat st;
	int r = fd < 0 ? -errno : check(fd);

	if (r == 0 && (flags & O_TRUNC) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		ftruncate(fd, 0) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

/* Makes a file, never through a link: the link could lead into a folder that was not checked. */
static int open_new(const char *path, int flags, mode_t mode)
{
	char folder[PATH_MAX];
	const char *name;
	autofd int folder_fd = open_parent(path, folder, &name);
	int fd;

	if (folder_fd < 0)
		return folder_fd;
	fd = openat(folder_fd, name, (flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_NOFOLLOW,
		mode);
	return fd < 0 ? -errno : fd;
}

static int open_checked(const char *path, int flags, mode_t mode)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		int fd = flags & O_EXCL ? -ENOENT : open_there(path, flags);

		if (fd != -ENOENT || !(flags & O_CREAT))
			return fd;
		fd = open_new(path, flags, mode);
		if (fd != -EEXIST || (flags & O_EXCL))
			return fd;
	}
	return -ELOOP; /* a link that leads to nothing */
}

/* --- for all ----------------------------------------------------------------------- */

int userfile_open(const char *path, int flags, mode_t mode)
{
	int fd;

	flags |= O_CLOEXEC;
	rights_as_user_begin();
	if (rights_lent_group() != NO_GROUP)
		fd = open_checked(path, flags, mode);
	else if ((fd = open(path, flags, mode)) < 0)
		fd = -errno;
	rights_as_user_end();
	return fd;
}

int userfile_chdir(const char *path)
{
	int r;

	rights_as_user_begin();
	if (rights_lent_group() == NO_GROUP) {
		r = chdir(path) < 0 ? -errno : 0;
	} else {
		autofd int fd = open_folder(path);

		r = fd < 0 ? fd : fchdir(fd) < 0 ? -errno : 0;
	}
	rights_as_user_end();
	return r;
}

/* What to make under the name @path, in a folder that was checked. */
struct change {
	const char *path;
	mode_t mode;        /* of a new folder, if neither of these is set */
	const char *target; /* what a new link leads to */
	const char *from;   /* the file or folder to rename */
};

static int make_at(int folder_fd, const char *name, int from_fd, const char *from,
	const struct change *change)
{
	int r;

	if (change->target)
		r = symlinkat(change->target, folder_fd, name);
	else if (from)
		r = renameat(from_fd, from, folder_fd, name);
	else
		r = mkdirat(folder_fd, name, change->mode);
	return r < 0 ? -errno : 0;
}

static int make_checked(const struct change *change)
{
	char folder[PATH_MAX];
	const char *name, *from = NULL;
	autofd int folder_fd = open_parent(change->path, folder, &name), from_fd = -1;

	if (folder_fd < 0)
		return folder_fd;
	if (change->from)
		from_fd = open_parent(change->from, folder, &from);
	if (change->from && from_fd < 0)
		return from_fd;
	return make_at(folder_fd, name, from_fd, from, change);
}

static int make(const struct change *change)
{
	int r;

	rights_as_user_begin();
	r = rights_lent_group() == NO_GROUP
		    ? make_at(AT_FDCWD, change->path, AT_FDCWD, change->from, change)
		    : make_checked(change);
	rights_as_user_end();
	return r;
}

int userfile_mkdir(const char *path, mode_t mode)
{
	return make(&(struct change){ .path = path, .mode = mode });
}

int userfile_rename(const char *from, const char *to)
{
	return make(&(struct change){ .path = to, .from = from });
}

int userfile_symlink(const char *target, const char *path)
{
	return make(&(struct change){ .path = path, .target = target });
}
