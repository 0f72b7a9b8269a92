#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fdio.h"
#include "live_fifo.h"
#include "statedir.h"

enum { LOOK_READS = 64 };

enum live_fifo_state live_fifo_look_again(int fd)
{
	static char bytes[64 * 1024];

	/*
	 * gpulease writes nothing into live/, but a process of the job may, and the bytes outlive
	 * it.  They are read in large pieces: byte by byte, a full FIFO would keep this process
	 * busy, and the GPUs of a dead job withheld.
	 */
	for (int i = 0; i < LOOK_READS; i++) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n == 0) /* the end of file: no writer */
			return LIVE_FIFO_GONE;
		if (n < 0 && errno != EINTR)
			break;
	}
	return LIVE_FIFO_HELD;
}

/*
 * Whether the owner of a FIFO has changed the access to it: through the descriptor that the command
 * has, the owner can change the mode, the group and the access control list.  gpulease itself never
 * changes what fifo_create() has set.  Without such a change a refusal has another cause: this
 * process lacks the group, or a security module confines it.
 */
static bool live_fifo_is_withdrawn(int live_fd, const char *name)
{
	const mode_t readable = S_IRUSR | S_IRGRP;
	struct stat folder, st;

	return fstat(live_fd, &folder) == 0 &&
	       fstatat(live_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISFIFO(st.st_mode) &&
	       ((st.st_mode & readable) != readable || st.st_gid != folder.st_gid ||
		       fdio_has_acl(live_fd, name));
}

static enum live_fifo_state live_fifo_look_at(int live_fd, const char *name, int *ret_fd)
{
	autofd int fd =
		openat(live_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	enum live_fifo_state state;
	struct stat st;

	if (fd < 0 && errno == EACCES && live_fifo_is_withdrawn(live_fd, name))
		return LIVE_FIFO_GONE;
	if (fd < 0)
		return errno == ENOENT ? LIVE_FIFO_GONE : LIVE_FIFO_UNDECIDED;
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return LIVE_FIFO_UNDECIDED;
	state = live_fifo_look_again(fd);
	if (state == LIVE_FIFO_HELD && ret_fd)
		*ret_fd = take_fd(&fd);
	return state;
}

enum live_fifo_state live_fifo_look(
	const struct statedir *dir, const char *token, int *ret_fd)
{
	if (ret_fd)
		*ret_fd = -1;
	if (dir->live_fd < 0 || !is_token(token))
		return LIVE_FIFO_GONE;
	return live_fifo_look_at(dir->live_fd, token, ret_fd);
}

void live_fifo_close_inherited(const struct statedir *dir, const char *token)
{
	DIR *own = opendir("/proc/self/fd");
	struct stat st, fifo;
	struct dirent *entry;

	if (own && is_token(token) &&
		fstatat(dir->live_fd, token, &fifo, AT_SYMLINK_NOFOLLOW) == 0)
		while ((entry = readdir(own))) {
			int fd = -1;

			/* a descriptor for reading only does not keep the FIFO HELD */
			if (sscanf(entry->d_name, "%d", &fd) == 1 &&
				fstat(fd, &st) == 0 && st.st_ino == fifo.st_ino &&
				st.st_dev == fifo.st_dev &&
				(fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
				(void)close(fd);
		}
	if (own)
		(void)closedir(own);
}

int live_fifo_each_held(
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
		return fstatat(dir->fd, FIFO_LIVE, &st, AT_SYMLINK_NOFOLLOW) < 0
			       ? 0
			       : -ENOTDIR;
	names = fifo_list(dir->live_fd);
	if (!names)
		return -errno;
	while (r == 0 && (entry = readdir(names))) {
		if (!is_token(entry->d_name) ||
			live_fifo_look_at(dir->live_fd, entry->d_name, NULL) ==
				LIVE_FIFO_GONE)
			continue;
		r = act(arg, entry->d_name);
	}
	(void)closedir(names);
	return r;
}

static bool live_fifo_is_gone(int live_fd, const char *name)
{
	return live_fifo_look_at(live_fd, name, NULL) == LIVE_FIFO_GONE;
}

void live_fifo_sweep(const struct statedir *dir,
	bool (*is_leased)(void *leases, const char *token), void *leases)
{
	fifo_sweep_folder(dir->live_fd, &(struct fifo_sweep){ .my_pidns = dir->pidns,
						.is_dead = live_fifo_is_gone,
						.is_leased = is_leased,
						.leases = leases });
}
