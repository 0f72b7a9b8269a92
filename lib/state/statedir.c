#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "fdio.h"
#include "fifo.h"
#include "namespaces.h"
#include "statedir.h"
#include "words.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#define FALLBACK "/var/tmp/gpulease-"

enum { LOCAL_NAMES = 11 }; /* for the directory of one user on this machine */

enum { LOCK_TRIES = 100, LOCK_PAUSE_MS = 10 };

/* File systems on which flock(2) or FIFOs do not reach every process that sees the files. */
static const struct {
	uint32_t magic;
	const char *name;
} unshared[] = {
	{ 0x6969, "NFS" },
	{ 0xff534d42, "CIFS" },
	{ 0xfe534d42, "SMB" },
	{ 0x517b, "SMB" },
	{ 0x65735546, "FUSE" },
	{ 0x01021997, "9p" },
	{ 0x5346414f, "AFS" },
	{ 0x6b414653, "AFS" },
	{ 0x73757245, "Coda" },
	{ 0x00c36400, "Ceph" },
	{ 0x0bd00bd0, "Lustre" },
	{ 0x47504653, "GPFS" },
};

const char *statedir_unshared_name(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(unshared); i++)
		if ((uint32_t)fs.f_type == unshared[i].magic)
			return unshared[i].name;
	return NULL;
}

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Makes @path and its missing parents, for this user alone.  Sets *@ret_is_new if @path itself is
 * new.  Returns 0 or a negative errno.
 */
static int make_private_path(const char *path, bool *ret_is_new)
{
	char part[PATH_MAX];

	/* each parent: the path up to one of its slashes */
	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/' || i >= sizeof(part))
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	*ret_is_new = mkdir(path, 0700) == 0;
	return !*ret_is_new && errno != EEXIST ? -errno : 0;
}

/*
 * Whether the directory @st can be trusted if the program lends its group to all users: they must
 * not reach the files other than through gpulease.  If not, writes the reason to @why.
 */
static bool is_trusted_hardened(const struct stat *st, struct why *why)
{
	if (st->st_uid != 0) {
		why_set(why, "it does not belong to root");
		why_add_remedy(why, "chown root");
	} else if (st->st_gid != getegid()) {
		why_set(why, "its group is not the group of the program");
		why_add_remedy(why, "chgrp one of them");
	} else if ((st->st_mode & 07777) != 02770) {
		why_set(why, "its mode is not 2770");
		why_add_remedy(why, "chmod 2770");
	} else {
		return true;
	}
	return false;
}

/* Whether the directory @st can be trusted and, unless @is_private, shared; if not, sets @why. */
static bool is_trusted(const struct stat *st, bool is_private, struct why *why)
{
	bool is_own = st->st_uid == geteuid();
	bool has_group = st->st_mode & S_IWGRP;

	if (st->st_mode & S_IWOTH) {
		why_set(why, "everybody may write there");
		why_add_remedy(why, "chmod o-w");
	} else if (is_private && !is_own) {
		why_set(why, "it is not yours");
	} else if (!is_private && !has_group && !is_own) {
		why_set(why, "it is private to another user");
		why_add_remedy(why, "to share it, chgrp and chmod 2770");
	} else if (!is_private && has_group && !(st->st_mode & S_ISGID)) {
		why_set(why, "files there would not get its group");
		why_add_remedy(why, "chmod g+s");
	} else {
		return true;
	}
	return false;
}

/*
 * Checks the open directory of @dir, and sets ->owner and ->is_private.  Returns 0 or a negative
 * errno with the reason in @why.
 */
static int statedir_check(
	const char *path, bool is_private, struct statedir *dir, struct why *why)
{
	const char *fs = statedir_unshared_name(dir->fd);
	struct why reason = WHY_NONE;
	struct stat st;
	bool is_ok;

	if (fstat(dir->fd, &st) < 0)
		return -errno;
	if (fs) {
		why_set(why,
			"state directory '%s' is on %s, where locks and FIFOs are not shared",
			path, fs);
		why_add_remedy(why, "set GPULEASE_DIR to a local directory");
		return -ENOTSUP;
	}
	is_ok = dir->is_hardened ? is_trusted_hardened(&st, &reason)
				 : is_trusted(&st, is_private, &reason);
	/* a file system that has become read-only can still be read */
	if (is_ok && faccessat(dir->fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 &&
		errno != EROFS) {
		why_set(&reason, "you may not write there");
		why_add_remedy(&reason, "ask to join its group");
		is_ok = false;
	}
	if (!is_ok) {
		why_wrap(why, &reason,
			"cannot use state directory '%s' (owner %u, group %u, mode %04o): ",
			path, (unsigned)st.st_uid, (unsigned)st.st_gid,
			(unsigned)st.st_mode & 07777);
		return -EACCES;
	}
	dir->owner = st.st_uid;
	dir->is_private = is_private || !(st.st_mode & S_IWGRP);
	return 0;
}

/* --- the folders ------------------------------------------------------------------- */

enum { FOLDERS = 3 };
static const char *const folder_names[FOLDERS] = { "gpu", FIFO_LIVE, FIFO_BELL };

/* Returns where @dir keeps the descriptor of folder @i. */
static int *folder_fd(struct statedir *dir, size_t i)
{
	return i == 0 ? &dir->gpu_fd : i == 1 ? &dir->live_fd : &dir->bell_fd;
}

/* Whether the folder @st can be trusted and shared; if not, sets @why. */
static bool is_trusted_folder(
	const struct statedir *dir, const struct stat *st, struct why *why)
{
	if (!dir->is_hardened)
		return is_trusted(st, dir->is_private, why);
	/*
	 * The process of any user may have made it, so its owner says nothing.  The directory above
	 * keeps users out.
	 */
	if (st->st_gid == getegid() && (st->st_mode & 07777) == 02770)
		return true;
	why_set(why, "it does not have the group and the mode of the directory");
	return false;
}

/* Opens folder @i.  Returns its descriptor, or a negative errno with the reason in @why. */
static int open_folder(const struct statedir *dir, size_t i, struct why *why)
{
	autofd int fd = openat(dir->fd, folder_names[i],
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (r == -ENOTDIR || r == -ELOOP) {
		why_set(why, "it is not a folder");
		why_add_remedy(why, "remove it when no job runs");
	} else if (r < 0) {
		why_set(why, "%s", strerror(-r));
	}
	if (r < 0)
		return r;
	return is_trusted_folder(dir, &st, why) ? take_fd(&fd) : -EACCES;
}

int statedir_open_folders(struct statedir *dir, struct why *why)
{
	for (size_t i = 0; i < FOLDERS; i++) {
		struct why reason = WHY_NONE;
		int fd = open_folder(dir, i, &reason);

		*folder_fd(dir, i) = fd < 0 ? -1 : fd;
		/* missing on a read-only file system: there is nothing in it */
		if (fd >= 0 || fd == -ENOENT)
			continue;
		why_wrap(why, &reason, "cannot use folder '%s/%s': ", dir->path,
			folder_names[i]);
		return fd;
	}
	return 0;
}

static void close_folders(struct statedir *dir)
{
	for (size_t i = 0; i < FOLDERS; i++)
		close_fd(folder_fd(dir, i));
}

void statedir_refresh(const struct statedir *dir)
{
	struct statedir now = *dir;

	for (size_t i = 0; i < FOLDERS; i++) {
		int open_one = *folder_fd(&now, i);
		struct stat named, opened;
		autofd int fd = -1;

		/* still the same folder, or nothing there to follow */
		if (open_one < 0 || fstat(open_one, &opened) < 0 ||
			fstatat(dir->fd, folder_names[i], &named, AT_SYMLINK_NOFOLLOW) <
				0 ||
			(named.st_ino == opened.st_ino && named.st_dev == opened.st_dev))
			continue;
		fd = open_folder(dir, i, NULL);
		/* the number stays, so that copies of @dir and of the number stay right */
		if (fd >= 0)
			(void)!dup3(fd, open_one, O_CLOEXEC);
	}
}

/*
 * Renames folder @from of @fd to @to, unless @to exists.  Plain rename(2) would replace an empty
 * folder @to, which another process may just have opened.
 */
static int rename_folder(int fd, const char *from, const char *to)
{
	if (syscall(SYS_renameat2, fd, from, fd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* this file system or kernel knows no RENAME_NOREPLACE */
	return renameat(fd, from, fd, to) < 0 ? -errno : 0;
}

/*
 * Makes folder @name of @fd with @mode, whatever the umask.  Makes it under a temporary name, so no
 * other process finds the folder before its mode is set.  A crash leaves `tmp.<name>.<token>`.
 */
static int make_folder(int fd, const char *name, mode_t mode)
{
	char temporary[64], token[TOKEN_SIZE];
	int r = token_make(token);

	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "tmp.%s.%s", name, token);
	if (mkdirat(fd, temporary, 0700) < 0)
		return -errno;
	if (fchmodat(fd, temporary, mode, 0) < 0)
		r = -errno;
	else
		r = rename_folder(fd, temporary, name);
	if (r == -ENOTEMPTY || r == -EEXIST)
		r = 0; /* another process made it meanwhile */
	(void)unlinkat(fd, temporary, AT_REMOVEDIR);
	return r;
}

/* Makes the missing folders with the mode of the directory @fd. */
static int make_folders(int fd)
{
	struct stat st, folder;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < FOLDERS && r == 0; i++)
		if (fstatat(fd, folder_names[i], &folder, AT_SYMLINK_NOFOLLOW) < 0)
			r = make_folder(fd, folder_names[i], st.st_mode & 02770);
	return r == -EROFS ? 0 : r;
}

/*
 * Opens the private directory @path.  Makes it if it is missing, unless it @must_exist.  -ENOTSUP:
 * it is on a file system that does not share locks.
 */
static int open_private(
	const char *path, bool must_exist, struct statedir *dir, struct why *why)
{
	struct stat st;
	int r = must_exist ? 0 : make_private_path(path, &dir->is_new);

	if (r == 0 && lstat(path, &st) < 0)
		r = -errno;
	/* in /var/tmp another user may have taken the name, perhaps with a link: so lstat() */
	if (r == 0 && st.st_uid != geteuid()) {
		why_set(why, "cannot use state directory '%s': it is not yours", path);
		return -EACCES;
	}
	if (r == 0) {
		dir->fd = open_directory(path);
		r = dir->fd < 0 ? dir->fd : 0;
	}
	if (r < 0) {
		why_set(why, "cannot %s state directory '%s': %s",
			must_exist ? "open" : "make", path, strerror(-r));
		return r;
	}
	(void)snprintf(dir->path, sizeof(dir->path), "%s", path);
	r = statedir_check(path, true, dir, why);
	if (r < 0)
		close_fd(&dir->fd);
	return r;
}

static bool is_set(const char *text)
{
	return text && text[0];
}

/* Sets @out to the name number @i for the directory of this user on this machine. */
static void local_name(unsigned i, char out[PATH_MAX])
{
	unsigned uid = (unsigned)geteuid();

	if (i == LOCAL_NAMES - 1)
		(void)snprintf(out, PATH_MAX, "/run/user/%u/gpulease", uid);
	else if (i)
		(void)snprintf(out, PATH_MAX, FALLBACK "%u.%u", uid, i);
	else
		(void)snprintf(out, PATH_MAX, FALLBACK "%u", uid);
}

int statedir_find_local(bool must_exist, char out[PATH_MAX], bool *ret_is_new)
{
	struct stat st;
	int r = -ENOENT;

	*ret_is_new = false;
	/* lstat(): another user may have made a link */
	for (unsigned i = 0; i < LOCAL_NAMES; i++) {
		local_name(i, out);
		if (lstat(out, &st) == 0 && S_ISDIR(st.st_mode) &&
			st.st_uid == geteuid() && !(st.st_mode & 022))
			return 0;
	}
	for (unsigned i = 0; i < LOCAL_NAMES && !must_exist && !*ret_is_new; i++) {
		local_name(i, out);
		*ret_is_new = mkdir(out, 0700) == 0;
		if (!*ret_is_new && r != -EACCES)
			r = errno == EEXIST ? -EACCES : -errno;
	}
	return *ret_is_new ? 0 : r;
}

/* Opens the directory of this user on this machine. */
static int open_local(bool must_exist, struct statedir *dir, struct why *why)
{
	char path[PATH_MAX];
	bool is_new;
	int r = statedir_find_local(must_exist, path, &is_new);

	if (r == 0) {
		r = open_private(path, true, dir, why);
		dir->is_new = is_new;
		return r;
	}
	local_name(0, path);
	why_set(why, "cannot %s state directory '%s': %s", must_exist ? "open" : "make",
		path,
		r == -EACCES ? "other users have this name and those beside it"
			     : strerror(-r));
	return r;
}

/* Opens the user's own directory, or the directory below it that @choice asks for. */
static int open_own(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	char path[PATH_MAX] = "", below[256] = "";
	struct text whole = TEXT_ON(path);
	bool must_exist = choice->must_exist;
	int r = -ENOTSUP;

	if (choice->sim_gpus)
		(void)snprintf(below, sizeof(below), "/sim-%ux%llu", choice->sim_gpus,
			(unsigned long long)choice->sim_mib);
	else if (is_set(choice->allocation))
		(void)snprintf(below, sizeof(below), "/%s", choice->allocation);
	if (is_set(choice->state_home) && choice->state_home[0] == '/')
		(void)snprintf(
			path, sizeof(path), "%s/gpulease%s", choice->state_home, below);
	else if (is_set(choice->home) && choice->home[0] == '/')
		(void)snprintf(path, sizeof(path), "%s/.local/state/gpulease%s",
			choice->home, below);
	if (path[0])
		r = open_private(path, must_exist, dir, why);
	if (r == -ENOTSUP) {
		/*
		 * No home, or a home on the network: a directory of this machine.  It is checked
		 * before anything is made below it.
		 */
		r = open_local(must_exist, dir, why);
		if (r == 0 && below[0]) {
			close_fd(&dir->fd);
			text_add(&whole, dir->path);
			text_add(&whole, below);
			r = open_private(path, must_exist, dir, why);
		}
	}
	return r;
}

/* Opens the directory of an allocation, which another process may be about to remove. */
static int open_allocation(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		bool is_free;
		int r = open_own(choice, dir, why);

		if (r < 0)
			return r;
		/*
		 * The process that removes it holds an exclusive lock.  It may have removed it
		 * between our open and our lock; then the name is gone or leads elsewhere.
		 */
		is_free = flock(dir->fd, LOCK_SH | LOCK_NB) == 0;
		if (is_free && fdio_is_named(AT_FDCWD, dir->path, dir->fd))
			return 0;
		close_fd(&dir->fd);
		if (!is_free)
			(void)poll(NULL, 0, LOCK_PAUSE_MS);
	}
	why_set(why, "cannot use state directory '%s': another process is removing it",
		dir->path);
	return -EBUSY;
}

/* Adds the commands that make the directory @path, for a user and for a group. */
static void explain_making(const char *path, struct why *why)
{
	char word[WHY_SIZE];
	struct text text = TEXT_ON(word);

	words_add_quoted(&text, path);
	why_add_remedy(why,
		"mkdir -m 0700 -p %s%s makes it for one user; for a group: -m 2770",
		path[0] == '-' ? "./" : "", word);
}

static int open_shared(
	const char *path, bool is_hardened, struct statedir *dir, struct why *why)
{
	int r;

	dir->fd = open_directory(path);
	if (dir->fd < 0) {
		struct stat st = { 0 };

		r = dir->fd;
		if (stat(path, &st) == 0) {
			why_set(why,
				"cannot open state directory '%s' (owner %u, group %u, mode "
				"%04o): %s",
				path, (unsigned)st.st_uid, (unsigned)st.st_gid,
				(unsigned)st.st_mode & 07777, strerror(-r));
			if (r == -EACCES)
				why_add_remedy(why, "ask to join its group");
		} else {
			why_set(why, "cannot open state directory '%s': %s", path,
				strerror(-r));
			if (r == -ENOENT)
				explain_making(path, why);
		}
		return r;
	}
	if (!realpath(path, dir->path))
		(void)snprintf(dir->path, sizeof(dir->path), "%s", path);
	dir->is_hardened = is_hardened;
	r = statedir_check(path, false, dir, why);
	if (r < 0)
		close_fd(&dir->fd);
	return r;
}

static int statedir_choose(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	struct stat st;

	/* never the shared queue: simulated GPUs, and those of an allocation, are other GPUs */
	if (choice->sim_gpus)
		return open_own(choice, dir, why);
	if (is_set(choice->allocation))
		return open_allocation(choice, dir, why);
	if (is_set(choice->explicit_path))
		return open_shared(choice->explicit_path, false, dir, why);
	/* also if it cannot be examined: it is there, so a private queue would be wrong */
	if (stat(choice->system_path, &st) == 0 || errno != ENOENT)
		return open_shared(choice->system_path, choice->is_hardened, dir, why);
	if (choice->is_shared_only)
		return STATEDIR_MISSING;
	dir->is_fallback = true;
	return open_own(choice, dir, why);
}

/* Opens the folders; makes them first if one is missing.  Returns as statedir_open_folders(). */
static int open_or_make_folders(struct statedir *dir, struct why *why)
{
	int r = statedir_open_folders(dir, why);

	if (r < 0 || (dir->gpu_fd >= 0 && dir->live_fd >= 0 && dir->bell_fd >= 0))
		return r;
	close_folders(dir);
	r = make_folders(dir->fd);
	if (r < 0) {
		why_set(why, "cannot make folders in state directory '%s': %s", dir->path,
			strerror(-r));
		return r;
	}
	return statedir_open_folders(dir, why);
}

int statedir_open(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	int r = boot_id_read(dir->boot);

	dir->pidns = namespaces_pidns();
	if (r == 0 && !dir->pidns)
		r = -ENOENT;
	if (r < 0) {
		why_set(why, "cannot read /proc: %s", strerror(-r));
		return r;
	}
	r = statedir_choose(choice, dir, why);
	if (r != 0)
		return r;
	r = choice->must_exist ? statedir_open_folders(dir, why)
			       : open_or_make_folders(dir, why);
	if (r < 0)
		statedir_release(dir);
	return r;
}

/*
 * Opens the directory that has the path of @dir now, because the old one was removed.  Its
 * descriptor keeps its number.  Returns 0, or -ESTALE: there is none that could be trusted as the
 * old one was.
 */
static int statedir_reopen(const struct statedir *dir)
{
	autofd int fd = open_directory(dir->path);
	struct statedir now = *dir;

	now.fd = fd;
	if (fd < 0 || statedir_check(dir->path, dir->is_private, &now, NULL) < 0 ||
		now.owner != dir->owner || dup3(fd, dir->fd, O_CLOEXEC) < 0)
		return -ESTALE;
	return 0;
}

int statedir_repair(const struct statedir *dir)
{
	struct stat st;
	int r = 0;

	if (fstat(dir->fd, &st) < 0)
		return -errno;
	if (st.st_nlink == 0) /* the directory itself was removed */
		r = statedir_reopen(dir);
	if (r < 0)
		return r;
	r = make_folders(dir->fd);
	statedir_refresh(dir);
	return r;
}

void statedir_release(struct statedir *dir)
{
	close_folders(dir);
	close_fd(&dir->fd);
}
