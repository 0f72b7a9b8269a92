#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "rights.h"
#include "userfile.h"

enum { ATTEMPTS = 3, FOLDER_MODE = 0755, PROC_SUPER_MAGIC = 0x9fa0 };

/*
 * Returns 0, or a negative errno: -EACCES if the open file belongs to the state, or to /proc.
 * There this process would open its own files, which its user may not see: /proc/self/maps.
 */
static int check_not_state(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	return st.st_gid == rights_lent_group() || fs.f_type == PROC_SUPER_MAGIC ? -EACCES
										 : 0;
}

static int open_folder(const char *path)
{
	autofd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : check_not_state(fd);

	return r < 0 ? r : take_fd(&fd);
}

/*
 * Opens the folder of @path and sets *@ret_name to the rest of @path.  Returns a descriptor or a
 * negative errno.
 */
static int open_parent(const char *path, char folder[PATH_MAX], const char **ret_name)
{
	struct text text = text_on(folder, PATH_MAX);
	size_t size = strlen(path), end = size;

	while (end > 1 && path[end - 1] == '/') /* mkdir(2) allows final slashes */
		end--;
	while (end > 0 && path[end - 1] != '/')
		end--;
	if (end == 0)
		text_add(&text, ".");
	text_add_bytes(&text, path, end);
	*ret_name = path[end] ? path + end : ".";
	return text.cut ? -ENAMETOOLONG : open_folder(folder);
}

/* --- with a lent group ------------------------------------------------------------- */

/* Opens a file that exists; truncates it only after the check. */
static int open_existing(const char *path, int flags)
{
	autofd int fd = open(path, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
	struct stat st;
	int r = fd < 0 ? -errno : check_not_state(fd);

	if (r == 0 && (flags & O_TRUNC) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		ftruncate(fd, 0) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

/* Creates a file, but not through a link: the link could lead into an unchecked folder. */
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
		int fd = flags & O_EXCL ? -ENOENT : open_existing(path, flags);

		if (fd != -ENOENT || !(flags & O_CREAT))
			return fd;
		fd = open_new(path, flags, mode);
		if (fd != -EEXIST || (flags & O_EXCL))
			return fd;
	}
	return -ELOOP; /* a dangling link: it exists, but cannot be opened */
}

/* --- the public functions ---------------------------------------------------------- */

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

/* What to create under the name ->path: a folder, a link, or a renamed file. */
struct change {
	const char *path;
	mode_t mode;        /* of the new folder, if the next two are NULL */
	const char *target; /* the target of a new link */
	const char *from;   /* the old name of a file or folder */
};

static int change_apply_at(int folder_fd, const char *name, int from_fd, const char *from,
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

static int change_apply_checked(const struct change *change)
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
	return change_apply_at(folder_fd, name, from_fd, from, change);
}

static int change_apply(const struct change *change)
{
	int r;

	rights_as_user_begin();
	r = rights_lent_group() == NO_GROUP ? change_apply_at(AT_FDCWD, change->path,
						      AT_FDCWD, change->from, change)
					    : change_apply_checked(change);
	rights_as_user_end();
	return r;
}

int userfile_mkdir(const char *path, mode_t mode)
{
	return change_apply(&(struct change){ .path = path, .mode = mode });
}

int userfile_rename(const char *from, const char *to)
{
	return change_apply(&(struct change){ .path = to, .from = from });
}

int userfile_symlink(const char *target, const char *path)
{
	return change_apply(&(struct change){ .path = path, .target = target });
}

/* --- files for output ---------------------------------------------------------------- */

/* Cuts @path to its folder: "." if it has no slash, "/" if it has none but the first. */
static void cut_to_folder(char *path)
{
	char *slash = strrchr(path, '/');

	while (slash && slash > path && slash[-1] == '/')
		slash--;
	if (slash)
		slash[slash == path] = '\0';
	else
		text_copy(path, PATH_MAX, ".");
}

/* Like access(2), with the user's rights.  Returns 0 or a negative errno. */
static int check_access(const char *path, int how)
{
	int r;

	rights_as_user_begin();
	r = access(path, how) < 0 ? -errno : 0;
	rights_as_user_end();
	return r;
}

static int refuse_folder(const char *folder, int error, struct why *why)
{
	why_set(why, "cannot make the folder '%s': %s", folder, strerror(-error));
	return error;
}

static int refuse_file(const char *path, int error, struct why *why)
{
	why_set(why, "cannot open '%s': %s", path, strerror(-error));
	return error;
}

int userfile_make_folders(const char *path, struct why *why)
{
	char folder[PATH_MAX];

	for (size_t i = 1; path[0] && path[i] && i < sizeof(folder); i++) {
		mode_t ours;
		int r;

		if (path[i] != '/')
			continue;
		memcpy(folder, path, i);
		folder[i] = '\0';
		if (check_access(folder, F_OK) == 0)
			continue;
		ours = umask(0);
		r = userfile_mkdir(folder, FOLDER_MODE);
		(void)umask(ours);
		/* another process may have made it */
		if (r < 0 && r != -EEXIST)
			return refuse_folder(folder, r, why);
	}
	return 0;
}

int userfile_open_output(const char *path, int flags, mode_t mode, struct why *why)
{
	int fd = userfile_open(path, flags | O_CREAT, mode);

	if (fd == -ENOENT) {
		int r = userfile_make_folders(path, why);

		if (r < 0)
			return r;
		fd = userfile_open(path, flags | O_CREAT, mode);
	}
	return fd < 0 ? refuse_file(path, fd, why) : fd;
}

int userfile_check_output(const char *path, struct why *why)
{
	char folder[PATH_MAX], missing[PATH_MAX] = "";
	int r = check_access(path, W_OK);
	struct stat st;

	/* a file that can be written needs no folder in which one can be made: /dev/null */
	if (r == 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		r = -EISDIR;
	if (r != -ENOENT)
		return r < 0 ? refuse_file(path, r, why) : 0;
	text_copy(folder, sizeof(folder), path);
	cut_to_folder(folder);
	while (check_access(folder, F_OK) == -ENOENT && strcmp(folder, ".") != 0) {
		text_copy(missing, sizeof(missing), folder);
		cut_to_folder(folder);
	}
	r = check_access(folder, W_OK | X_OK);
	if (r == 0)
		return 0;
	return missing[0] ? refuse_folder(missing, r, why) : refuse_file(path, r, why);
}
