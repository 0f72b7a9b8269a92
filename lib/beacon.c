#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "beacon.h"
#include "fdio.h"

enum { NAME_SIZE = 160, SWEEP_MAX = 4096, LOOK_READS = 64 };

/* Others read live/ to learn of a death, and write bell/ to ring. */
static mode_t mode_of(const char *folder)
{
	return strcmp(folder, BEACON_LIVE) == 0 ? 0640 : 0660;
}

static void final_name(char out[NAME_SIZE], const char *folder, const char *token)
{
	(void)snprintf(out, NAME_SIZE, "%s/%s", folder, token);
}

/* Carries the identity of its maker, for beacon_sweep(). */
static void temporary_name(
	char out[NAME_SIZE], const char *folder, const struct owner *owner)
{
	int used = snprintf(out, NAME_SIZE, "%s/", folder);

	(void)snprintf(out + used, NAME_SIZE - (size_t)used, "tmp.%u.%llu.%llu.%llu.%s",
		owner->pid, (unsigned long long)owner->inode,
		(unsigned long long)owner->start, (unsigned long long)owner->pidns,
		owner->token);
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

int beacon_create(int dirfd, const char *folder, const struct owner *owner)
{
	char temporary[NAME_SIZE], name[NAME_SIZE];
	autofd int fd = -1;
	int r;

	temporary_name(temporary, folder, owner);
	final_name(name, folder, owner->token);
	if (mkfifoat(dirfd, temporary, 0600) < 0)
		return -errno;
	fd = openat(dirfd, temporary, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchmod(fd, mode_of(folder)) < 0 ||
		renameat(dirfd, temporary, dirfd, name) < 0) {
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

static enum beacon_state look_at(int dirfd, const char *name, int *ret_fd)
{
	autofd int fd =
		openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	enum beacon_state state;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? BEACON_GONE : BEACON_UNDECIDED;
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return BEACON_UNDECIDED;
	state = beacon_look_again(fd);
	if (state == BEACON_HELD && ret_fd)
		*ret_fd = take_fd(&fd);
	return state;
}

enum beacon_state beacon_look(int dirfd, const char *token, int *ret_fd)
{
	char name[NAME_SIZE];

	if (ret_fd)
		*ret_fd = -1;
	final_name(name, BEACON_LIVE, token);
	return look_at(dirfd, name, ret_fd);
}

void beacon_let_go(int dirfd, const char *token)
{
	DIR *own = opendir("/proc/self/fd");
	char name[NAME_SIZE];
	struct stat st, fifo;
	struct dirent *entry;

	final_name(name, BEACON_LIVE, token);
	if (own && fstatat(dirfd, name, &fifo, AT_SYMLINK_NOFOLLOW) == 0)
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

bool beacon_is_named(int dirfd, const char *folder, const char *token)
{
	char name[NAME_SIZE];
	struct stat st;

	final_name(name, folder, token);
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void beacon_remove(int dirfd, const char *folder, const char *token)
{
	char name[NAME_SIZE];

	if (!is_token(token))
		return;
	final_name(name, folder, token);
	(void)unlinkat(dirfd, name, 0);
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

void beacon_ring(int dirfd, const char *token)
{
	char name[NAME_SIZE];

	final_name(name, BEACON_BELL, token);
	ring(dirfd, name);
}

void beacon_drain(int fd)
{
	char bytes[512];
	ssize_t n;

	do
		n = read(fd, bytes, sizeof(bytes));
	while (n > 0 || (n < 0 && errno == EINTR));
}

/* Calls @act with every name of @folder, at most SWEEP_MAX of them. */
static void for_each_name(int dirfd, const char *folder, uint64_t my_pidns,
	void (*act)(int folder_fd, const char *name, uint64_t my_pidns))
{
	int fd = openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	for (int i = 0; i < SWEEP_MAX && (entry = readdir(dir)); i++)
		if (entry->d_name[0] != '.')
			act(fd, entry->d_name, my_pidns);
	(void)closedir(dir);
}

static void ring_one(int folder_fd, const char *name, uint64_t my_pidns)
{
	(void)my_pidns;
	ring(folder_fd, name);
}

void beacon_ring_all(int dirfd)
{
	for_each_name(dirfd, BEACON_BELL, 0, ring_one);
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
	autofd int fd = -1;

	if (!is_token(name)) {
		sweep_temporary(folder_fd, name, my_pidns);
		return;
	}
	/* reading would steal a ring; for writing it opens only while its owner has it open */
	fd = openat(folder_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENXIO)
		(void)unlinkat(folder_fd, name, 0);
}

void beacon_sweep(int dirfd, uint64_t my_pidns)
{
	for_each_name(dirfd, BEACON_LIVE, my_pidns, sweep_live);
	for_each_name(dirfd, BEACON_BELL, my_pidns, sweep_bell);
}

int beacon_each_held(
	int dirfd, size_t most, int (*act)(void *arg, const char *token), void *arg)
{
	int fd = openat(
		dirfd, BEACON_LIVE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		close_fd(&fd);
		return r == -ENOENT ? 0 : r;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (!is_token(entry->d_name) ||
			look_at(fd, entry->d_name, NULL) == BEACON_GONE)
			continue;
		r = most-- ? act(arg, entry->d_name) : -E2BIG;
	}
	(void)closedir(dir);
	return r;
}
