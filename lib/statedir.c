#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "beacon.h"
#include "fdio.h"
#include "statedir.h"

#define FALLBACK "/var/tmp/gpulease-"

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

/* mkdir -p, every new folder for this user alone.  *@ret_is_new: the last folder is new. */
static int make_private_path(const char *path, bool *ret_is_new)
{
	char part[PATH_MAX];

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

/* The same where its group is lent to users who are to reach it through us alone. */
static const char *distrust_hardened(const struct stat *st)
{
	if (st->st_uid != 0)
		return "it is not root's; chown root";
	if (st->st_gid != getegid())
		return "its group is not that of the program; chgrp one or the other";
	if ((st->st_mode & 07777) != 02770)
		return "its mode is not 2770; chmod 2770";
	return NULL;
}

/* Why the directory @st cannot be trusted or shared, or NULL. */
static const char *distrust(const struct stat *st, bool is_private)
{
	uid_t me = geteuid();

	if (st->st_mode & S_IWOTH)
		return "everybody may write there; chmod o-w";
	if (is_private)
		return st->st_uid != me ? "it is not yours" : NULL;
	if (!(st->st_mode & S_IWGRP)) {
		if (st->st_uid != me)
			return "it is another user's own; mode 2770 and a group share it";
	} else if (!(st->st_mode & S_ISGID)) {
		return "files there would not get its group; chmod g+s";
	}
	return NULL;
}

static int check(const char *path, bool is_private, struct statedir *dir, struct why *why)
{
	const char *reason, *fs = statedir_unshared_name(dir->fd);
	struct stat st;

	if (fstat(dir->fd, &st) < 0)
		return -errno;
	if (fs) {
		why_set(why,
			"state directory '%s' is on %s, where locks and FIFOs are not shared; "
			"set GPULEASE_DIR to a local directory",
			path, fs);
		return -ENOTSUP;
	}
	reason = dir->is_hardened ? distrust_hardened(&st) : distrust(&st, is_private);
	/* on a file system that has become read-only one can still look */
	if (!reason && faccessat(dir->fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 &&
		errno != EROFS)
		reason = "you may not write there; ask to join its group";
	if (reason) {
		why_set(why,
			"cannot use state directory '%s' (owner %u, group %u, mode %04o): %s",
			path, (unsigned)st.st_uid, (unsigned)st.st_gid,
			(unsigned)st.st_mode & 07777, reason);
		return -EACCES;
	}
	dir->owner = st.st_uid;
	dir->is_private = is_private || !(st.st_mode & S_IWGRP);
	return 0;
}

/* --- the folders ------------------------------------------------------------------- */

enum { FOLDERS = 3 };
static const char *const folder_names[FOLDERS] = { "gpu", BEACON_LIVE, BEACON_BELL };

/* Where @dir keeps the descriptor of folder @i. */
static int *folder_fd(struct statedir *dir, size_t i)
{
	return i == 0 ? &dir->gpu_fd : i == 1 ? &dir->live_fd : &dir->bell_fd;
}

/* Why the folder @st cannot be trusted or shared, or NULL. */
static const char *distrust_folder(const struct statedir *dir, const struct stat *st)
{
	if (!dir->is_hardened)
		return distrust(st, dir->is_private);
	/* the user whose process made it owns it, and cannot reach it */
	if (st->st_gid != getegid() || (st->st_mode & 07777) != 02770)
		return "it does not have the group and the mode of the directory";
	return NULL;
}

/* Opens folder @i.  Returns its descriptor, or a negative errno with *@ret_reason or NULL. */
static int open_folder(const struct statedir *dir, size_t i, const char **ret_reason)
{
	autofd int fd = openat(dir->fd, folder_names[i],
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	*ret_reason = NULL;
	if (fd < 0) {
		r = -errno;
		if (r == -ENOTDIR || r == -ELOOP)
			*ret_reason = "it is not a folder; remove it when no job runs";
		return r;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_reason = distrust_folder(dir, &st);
	return *ret_reason ? -EACCES : take_fd(&fd);
}

int statedir_open_folders(struct statedir *dir, struct why *why)
{
	for (size_t i = 0; i < FOLDERS; i++) {
		const char *reason;
		int fd = open_folder(dir, i, &reason);

		*folder_fd(dir, i) = fd < 0 ? -1 : fd;
		/* missing on a read-only file system: there is nothing in it */
		if (fd >= 0 || fd == -ENOENT)
			continue;
		why_set(why, "cannot use folder '%s/%s': %s", dir->path, folder_names[i],
			reason ? reason : strerror(-fd));
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
		const char *reason;
		autofd int fd = -1;

		if (open_one < 0 || fstat(open_one, &opened) < 0 ||
			fstatat(dir->fd, folder_names[i], &named, AT_SYMLINK_NOFOLLOW) <
				0 ||
			(named.st_ino == opened.st_ino && named.st_dev == opened.st_dev))
			continue;
		fd = open_folder(dir, i, &reason);
		if (fd >= 0)
			(void)!dup3(fd, open_one, O_CLOEXEC);
	}
}

/*
 * Renames folder @from of @fd to @to, which does not take the place of another one: rename(2)
 * replaces an empty folder, which another process may just have opened.
 */
static int rename_folder(int fd, const char *from, const char *to)
{
	if (syscall(SYS_renameat2, fd, from, fd, to, 1 /* RENAME_NOREPLACE */) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* this file system cannot do that */
	return renameat(fd, from, fd, to) < 0 ? -errno : 0;
}

/*
 * Made under a temporary name: a crash or another user never finds a folder whose mode is
 * not set yet.  As open as the directory itself, whatever the umask.
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
 * Opens @path, made where it is missing unless it @must_exist.  -ENOTSUP: it lies where nothing
 * is shared.
 */
static int open_private(
	const char *path, bool must_exist, struct statedir *dir, struct why *why)
{
	struct stat st;
	int r = must_exist ? 0 : make_private_path(path, &dir->is_new);

	if (r == 0 && lstat(path, &st) < 0)
		r = -errno;
	/* in /var/tmp others may have been quicker: a link of theirs leads us nowhere */
	if (r == 0 && st.st_uid != geteuid()) {
		why_set(why, "cannot use state directory '%s': it is not yours", path);
		return -EACCES;
	}
	if (r == 0) {
		dir->fd = open_directory(path);
		r = dir->fd < 0 ? dir->fd : 0;
	}
	if (r < 0) {
		why_set(why, "cannot make state directory '%s': %s", path, strerror(-r));
		return r;
	}
	(void)snprintf(dir->path, sizeof(dir->path), "%s", path);
	r = check(path, true, dir, why);
	if (r < 0)
		close_fd(&dir->fd);
	return r;
}

static bool is_set(const char *text)
{
	return text && text[0];
}

/* Opens the user's own directory, or the one below it that @choice asks for. */
static int open_own(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	char path[PATH_MAX] = "", below[256] = "";
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
		/* no home, or a home on the network: something of this machine's */
		(void)snprintf(path, sizeof(path), FALLBACK "%u", (unsigned)geteuid());
		r = open_private(path, must_exist, dir, why);
		if (r == 0 && below[0]) {
			close_fd(&dir->fd);
			(void)snprintf(path, sizeof(path), FALLBACK "%u%s",
				(unsigned)geteuid(), below);
			r = open_private(path, must_exist, dir, why);
		}
	}
	return r;
}

/* Whether @fd is still the directory @path. */
static bool is_still(int fd, const char *path)
{
	struct stat open_st, named;

	return fstat(fd, &open_st) == 0 && lstat(path, &named) == 0 &&
	       open_st.st_dev == named.st_dev && open_st.st_ino == named.st_ino;
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
		is_free = flock(dir->fd, LOCK_SH | LOCK_NB) == 0;
		if (is_free && is_still(dir->fd, dir->path))
			return 0;
		close_fd(&dir->fd);
		if (!is_free)
			(void)poll(NULL, 0, LOCK_PAUSE_MS);
	}
	why_set(why, "cannot use state directory '%s': another process removes it",
		dir->path);
	return -EBUSY;
}

static int open_shared(
	const char *path, bool is_hardened, struct statedir *dir, struct why *why)
{
	int r;

	dir->fd = open_directory(path);
	if (dir->fd < 0) {
		struct stat st = { 0 };

		r = dir->fd;
		if (stat(path, &st) == 0)
			why_set(why,
				"cannot open state directory '%s' (owner %u, group %u, mode "
				"%04o): %s%s",
				path, (unsigned)st.st_uid, (unsigned)st.st_gid,
				(unsigned)st.st_mode & 07777, strerror(-r),
				r == -EACCES ? "; ask to join its group" : "");
		else
			why_set(why, "cannot open state directory '%s': %s", path,
				strerror(-r));
		return r;
	}
	if (!realpath(path, dir->path))
		(void)snprintf(dir->path, sizeof(dir->path), "%s", path);
	dir->is_hardened = is_hardened;
	r = check(path, false, dir, why);
	if (r < 0)
		close_fd(&dir->fd);
	return r;
}

static int choose(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why)
{
	struct stat st;

	if (choice->sim_gpus)
		return open_own(choice, dir, why);
	if (is_set(choice->allocation))
		return open_allocation(choice, dir, why);
	if (is_set(choice->explicit_path))
		return open_shared(choice->explicit_path, false, dir, why);
	if (stat(choice->system_path, &st) == 0 || errno != ENOENT)
		return open_shared(choice->system_path, choice->is_hardened, dir, why);
	if (choice->is_shared_only)
		return STATEDIR_MISSING;
	dir->is_fallback = true;
	return open_own(choice, dir, why);
}

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
	struct stat ns;
	int r = boot_id_read(dir->boot);

	if (r == 0 && stat("/proc/self/ns/pid", &ns) < 0)
		r = -errno;
	if (r < 0) {
		why_set(why, "cannot read /proc: %s", strerror(-r));
		return r;
	}
	dir->pidns = ns.st_ino;
	r = choose(choice, dir, why);
	if (r != 0)
		return r;
	r = choice->must_exist ? statedir_open_folders(dir, why)
			       : open_or_make_folders(dir, why);
	if (r < 0)
		statedir_release(dir);
	return r;
}

int statedir_repair(const struct statedir *dir)
{
	struct stat st;
	int r;

	if (fstat(dir->fd, &st) < 0)
		return -errno;
	if (st.st_nlink == 0)
		return -ESTALE;
	r = make_folders(dir->fd);
	statedir_refresh(dir);
	return r;
}

void statedir_release(struct statedir *dir)
{
	close_folders(dir);
	close_fd(&dir->fd);
}
