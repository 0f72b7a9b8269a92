#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "beacon.h"
#include "clock.h"
#include "fdio.h"
#include "statedir.h"

enum {
	NAME_SIZE = 160,
	SWEEP_SHARE = 1024, /* names that one sweep of a folder looks into, about */
	LOOK_READS = 64,
};

/* Others read live/ to learn of a death, and write bell/ to ring. */
static mode_t mode_of(const char *folder)
{
	return strcmp(folder, BEACON_LIVE) == 0 ? 0640 : 0660;
}

static int folder_fd(const struct statedir *dir, const char *folder)
{
	return strcmp(folder, BEACON_LIVE) == 0 ? dir->live_fd : dir->bell_fd;
}

/* Carries the identity of its maker, for beacon_sweep(). */
static void temporary_name(char out[NAME_SIZE], const struct owner *owner)
{
	(void)snprintf(out, NAME_SIZE, "tmp.%u.%llu.%llu.%llu.%s", owner->pid,
		(unsigned long long)owner->inode, (unsigned long long)owner->start,
		(unsigned long long)owner->pidns, owner->token);
}

static bool parse_temporary_name(const char *name, struct owner *owner)
{
	unsigned long long inode = 0, start = 0, pidns = 0;

	*owner = (struct owner){ 0 };
	if (sscanf(name, "tmp.%u.%llu.%llu.%llu.%16s", &owner->pid, &inode, &start,
		    &pidns, owner->token) != 5)
		return false;
	owner->inode = inode;
	owner->start = start;
	owner->pidns = pidns;
	return true;
}

int beacon_create(
	const struct statedir *dir, const char *folder, const struct owner *owner)
{
	int dirfd = folder_fd(dir, folder), r;
	char temporary[NAME_SIZE];
	autofd int fd = -1;

	temporary_name(temporary, owner);
	if (mkfifoat(dirfd, temporary, 0600) < 0)
		return -errno;
	fd = openat(dirfd, temporary, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchmod(fd, mode_of(folder)) < 0 ||
		renameat(dirfd, temporary, dirfd, owner->token) < 0) {
		r = -errno;
		(void)unlinkat(dirfd, temporary, 0);
		return r;
	}
	return take_fd(&fd);
}

enum beacon_state beacon_look_again(int fd)
{
	static char bytes[64 * 1024];

	/*
	 * Nobody writes into live/.  What is there came from a holder all the same; taken byte
	 * by byte, as much as a FIFO takes would keep the GPUs, and us busy, long after them.
	 */
	for (int i = 0; i < LOOK_READS; i++) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n == 0)
			return BEACON_GONE;
		if (n < 0 && errno != EINTR)
			break;
	}
	return BEACON_HELD;
}

/*
 * Whether the owner of a FIFO has taken it from the others: the owner can change its group and
 * its mode through the descriptor that the command has.
 */
static bool is_withdrawn(int dirfd, const char *name)
{
	struct stat folder, st;

	return fstat(dirfd, &folder) == 0 &&
	       fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISFIFO(st.st_mode) &&
	       (!(st.st_mode & S_IRGRP) || st.st_gid != folder.st_gid);
}

static enum beacon_state look_at(int dirfd, const char *name, int *ret_fd)
{
	autofd int fd =
		openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	enum beacon_state state;
	struct stat st;

	if (fd < 0 && errno == EACCES && is_withdrawn(dirfd, name))
		return BEACON_GONE;
	if (fd < 0)
		return errno == ENOENT ? BEACON_GONE : BEACON_UNDECIDED;
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return BEACON_UNDECIDED;
	state = beacon_look_again(fd);
	if (state == BEACON_HELD && ret_fd)
		*ret_fd = take_fd(&fd);
	return state;
}

enum beacon_state beacon_look(const struct statedir *dir, const char *token, int *ret_fd)
{
	if (ret_fd)
		*ret_fd = -1;
	if (dir->live_fd < 0 || !is_token(token))
		return BEACON_GONE;
	return look_at(dir->live_fd, token, ret_fd);
}

void beacon_let_go(const struct statedir *dir, const char *token)
{
	DIR *own = opendir("/proc/self/fd");
	struct stat st, fifo;
	struct dirent *entry;

	if (own && is_token(token) &&
		fstatat(dir->live_fd, token, &fifo, AT_SYMLINK_NOFOLLOW) == 0)
		while ((entry = readdir(own))) {
			int fd = -1;

			/* who only reads does not hold it */
			if (sscanf(entry->d_name, "%d", &fd) == 1 &&
				fstat(fd, &st) == 0 && st.st_ino == fifo.st_ino &&
				st.st_dev == fifo.st_dev &&
				(fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
				(void)close(fd);
		}
	if (own)
		(void)closedir(own);
}

bool beacon_is_named(const struct statedir *dir, const char *folder, const char *token)
{
	struct stat st;

	return is_token(token) &&
	       fstatat(folder_fd(dir, folder), token, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void beacon_remove(const struct statedir *dir, const char *folder, const char *token)
{
	if (is_token(token))
		(void)unlinkat(folder_fd(dir, folder), token, 0);
}

static void ring(int dirfd, const char *name)
{
	/* also for reading: its owner may leave before we write, and SIGPIPE would end us */
	autofd int fd = openat(dirfd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	/* a full pipe is a bell that rings already */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		(void)!write(fd, "!", 1);
}

void beacon_ring(const struct statedir *dir, const char *token)
{
	if (is_token(token))
		ring(dir->bell_fd, token);
}

void beacon_drain(int fd)
{
	char bytes[512];
	ssize_t n;

	do
		n = read(fd, bytes, sizeof(bytes));
	while (n > 0 || (n < 0 && errno == EINTR));
}

/* Opens the folder @at_fd again, so that it is read from its start.  NULL with errno on failure. */
static DIR *open_list(int at_fd)
{
	autofd int fd = openat(at_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)take_fd(&fd);
	return dir;
}

/* Whether the owner of the bell @name is dead: a bell opens for writing only while it has one. */
static bool is_dead_bell(int bell_fd, const char *name)
{
	/* reading would steal a ring */
	autofd int fd =
		openat(bell_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 && errno == ENXIO;
}

void beacon_ring_all(const struct statedir *dir)
{
	DIR *names = open_list(dir->bell_fd);
	struct dirent *entry;

	while (names && (entry = readdir(names))) {
		if (!is_token(entry->d_name))
			continue;
		if (is_dead_bell(dir->bell_fd, entry->d_name))
			(void)unlinkat(dir->bell_fd, entry->d_name, 0);
		else
			ring(dir->bell_fd, entry->d_name);
	}
	if (names)
		(void)closedir(names);
}

static void sweep_temporary(int folder_fd, const char *name, uint64_t my_pidns)
{
	struct owner maker;

	if (parse_temporary_name(name, &maker) &&
		owner_judge(&maker, my_pidns, NULL) == OWNER_DEAD)
		(void)unlinkat(folder_fd, name, 0);
}

static void sweep_live(int folder_fd, const char *name, uint64_t my_pidns)
{
	if (!is_token(name))
		sweep_temporary(folder_fd, name, my_pidns);
	else if (look_at(folder_fd, name, NULL) == BEACON_GONE)
		(void)unlinkat(folder_fd, name, 0);
}

static void sweep_bell(int folder_fd, const char *name, uint64_t my_pidns)
{
	if (!is_token(name))
		sweep_temporary(folder_fd, name, my_pidns);
	else if (is_dead_bell(folder_fd, name))
		(void)unlinkat(folder_fd, name, 0);
}

/* To which of @shares about equal parts the name belongs. */
static unsigned share_of(const char *name, unsigned shares)
{
	return (unsigned)(text_hash(TEXT_HASH_BEGIN, name, strlen(name)) % shares);
}

/* Sweeps a folder; if it has many names only a part of them, another part each time. */
static void sweep_folder(int at_fd, uint64_t my_pidns,
	void (*act)(int folder_fd, const char *name, uint64_t my_pidns))
{
	DIR *names = open_list(at_fd);
	unsigned shares = 1, count = 0, share;
	struct dirent *entry;

	if (!names)
		return;
	while (readdir(names))
		count++;
	shares += count / SWEEP_SHARE;
	share = (unsigned)(clock_boot_ms() % shares);
	rewinddir(names);
	while ((entry = readdir(names)))
		if (entry->d_name[0] != '.' && share_of(entry->d_name, shares) == share)
			act(at_fd, entry->d_name, my_pidns);
	(void)closedir(names);
}

void beacon_sweep(const struct statedir *dir)
{
	sweep_folder(dir->live_fd, dir->pidns, sweep_live);
	sweep_folder(dir->bell_fd, dir->pidns, sweep_bell);
}

int beacon_each_held(
	const struct statedir *dir, int (*act)(void *arg, const char *token), void *arg)
{
	struct dirent *entry;
	struct stat st;
	DIR *names;
	int r = 0;

	if (dir->live_fd < 0)
		return 0;
	statedir_refresh(dir);
	/* the folder was removed: something else that has its name may stand for a job */
	if (fstat(dir->live_fd, &st) == 0 && st.st_nlink == 0)
		return fstatat(dir->fd, BEACON_LIVE, &st, AT_SYMLINK_NOFOLLOW) < 0
			       ? 0
			       : -ENOTDIR;
	names = open_list(dir->live_fd);
	if (!names)
		return -errno;
	while (r == 0 && (entry = readdir(names))) {
		if (!is_token(entry->d_name) ||
			look_at(dir->live_fd, entry->d_name, NULL) == BEACON_GONE)
			continue;
		r = act(arg, entry->d_name);
	}
	(void)closedir(names);
	return r;
}
