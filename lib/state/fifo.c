#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "fifo.h"
#include "job_name.h"
#include "statedir.h"
#include "step_lock.h"

enum {
	NAME_SIZE = 160,
	SWEEP_SHARE = 1024, /* names that one sweep of a folder looks at, about */
	TEMPORARY_S =
		24 *
		3600, /* how old a temporary name gets whose maker cannot be judged */
};

/* Other users read live/ to learn of a death, and write to bell/ to ring. */
static mode_t fifo_mode(const char *folder)
{
	return strcmp(folder, FIFO_LIVE) == 0 ? 0640 : 0660;
}

static int fifo_folder_fd(const struct statedir *dir, const char *folder)
{
	return strcmp(folder, FIFO_LIVE) == 0 ? dir->live_fd : dir->bell_fd;
}

/* Builds a temporary name that carries the identity of its maker, for a later sweep. */
static void format_temporary_name(char out[NAME_SIZE], const struct owner *owner)
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

int fifo_create(const struct statedir *dir, const char *folder, const struct owner *owner)
{
	int dirfd = fifo_folder_fd(dir, folder), r;
	char temporary[NAME_SIZE];
	autofd int fd = -1;

	format_temporary_name(temporary, owner);
	if (mkfifoat(dirfd, temporary, 0600) < 0)
		return -errno;
	/* open before the rename: a token without a writer counts as dead */
	fd = openat(dirfd, temporary, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchmod(fd, fifo_mode(folder)) < 0 ||
		renameat(dirfd, temporary, dirfd, owner->token) < 0) {
		r = -errno;
		(void)unlinkat(dirfd, temporary, 0);
		return r;
	}
	return take_fd(&fd);
}

bool fifo_is_named(const struct statedir *dir, const char *folder, const char *token)
{
	struct stat st;

	return is_token(token) &&
	       fstatat(fifo_folder_fd(dir, folder), token, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void fifo_remove(const struct statedir *dir, const char *folder, const char *token)
{
	if (is_token(token))
		(void)unlinkat(fifo_folder_fd(dir, folder), token, 0);
}

DIR *fifo_list(int folder_fd)
{
	/* a descriptor of its own: closedir() closes it, and it has its own position */
	autofd int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);

	if (names)
		(void)take_fd(&fd);
	return names;
}

/*
 * Whether the maker of a temporary name is dead.  A maker in another pid namespace cannot be judged
 * from here.  It has the name for an instant only, so an old name is a leftover.
 */
static bool is_dead_temporary(int folder_fd, const char *name, uint64_t my_pidns)
{
	struct owner maker;
	struct stat st;

	if (!parse_temporary_name(name, &maker))
		return false;
	switch (owner_judge(&maker, my_pidns, NULL)) {
	case OWNER_DEAD:
		return true;
	case OWNER_ALIVE:
		return false;
	case OWNER_UNDECIDED:
		break;
	}
	return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ctime + TEMPORARY_S < clock_real_ms() / 1000;
}

/* Returns the index of the share, one of @shares about equal ones, that the name belongs to. */
static unsigned share_of(const char *name, unsigned shares)
{
	return (unsigned)(text_hash(TEXT_HASH_BEGIN, name, strlen(name)) % shares);
}

/*
 * Whether the name of the job with @token is not needed any more.  An adopted process has no FIFO,
 * and the name comes before its lease: so a new name stays for a while.
 */
static bool is_dead_name(int folder_fd, const struct fifo_sweep *sweep, const char *name,
	const char *token)
{
	return job_name_is_old(folder_fd, name) &&
	       !(sweep->is_leased && sweep->is_leased(sweep->leases, token));
}

static void sweep_name(int folder_fd, const struct fifo_sweep *sweep, const char *name)
{
	char token[TOKEN_SIZE];

	text_copy(token, sizeof(token), name);
	if (step_lock_is_name(name)) {
		if (!sweep->is_dead(folder_fd, token))
			return;
		if (!job_name_is_link(name))
			step_lock_sweep(folder_fd, name);
		else if (is_dead_name(folder_fd, sweep, name, token))
			(void)unlinkat(folder_fd, name, 0);
	} else if (is_token(name) ? sweep->is_dead(folder_fd, name)
				  : is_dead_temporary(folder_fd, name, sweep->my_pidns)) {
		(void)unlinkat(folder_fd, name, 0);
	}
}

void fifo_sweep_folder(int folder_fd, const struct fifo_sweep *sweep)
{
	DIR *names = fifo_list(folder_fd);
	unsigned shares = 1, count = 0, share;
	struct dirent *entry;

	if (!names)
		return;
	while (readdir(names))
		count++;
	shares += count / SWEEP_SHARE;
	/* the clock chooses, so processes that sweep one after another take different shares */
	share = (unsigned)(clock_boot_ms() % shares);
	rewinddir(names);
	while ((entry = readdir(names))) {
		const char *name = entry->d_name;

		if (name[0] != '.' && share_of(name, shares) == share)
			sweep_name(folder_fd, sweep, name);
	}
	(void)closedir(names);
}
