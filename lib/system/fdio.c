#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "fdio.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

int fdio_pread(int fd, void *out, size_t size, off_t offset, size_t *ret_size)
{
	ssize_t n;

	/* a short read of a regular file means its end, so one read is enough */
	do
		n = pread(fd, out, size, offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_size = (size_t)n;
	return 0;
}

int fdio_read_text_of(int fd, char *out, size_t size)
{
	size_t done = 0;

	/* files of /proc have no size: read to the end, and never with pread(2) */
	while (done < size - 1) {
		ssize_t n = read(fd, out + done, size - 1 - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	out[done] = '\0';
	return 0;
}

int fdio_read_text(int dirfd, const char *name, char *out, size_t size)
{
	autofd int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? -errno : fdio_read_text_of(fd, out, size);
}

int fdio_read_all(int dirfd, const char *name, size_t least, size_t most, char **ret,
	size_t *ret_size)
{
	autofd int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	autofree char *bytes = NULL;
	struct stat st;
	size_t size = 0;
	int r;

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? FDIO_NONE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)least || st.st_size > (off_t)most)
		return FDIO_NONE;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	r = fdio_pread(fd, bytes, (size_t)st.st_size, 0, &size);
	if (r < 0)
		return r;
	if (size < least) /* it has been truncated since fstat() */
		return FDIO_NONE;
	*ret_size = size;
	*ret = bytes;
	bytes = NULL;
	return 0;
}

int fdio_write(int fd, const void *in, size_t size)
{
	const char *bytes = in;

	while (size) {
		ssize_t n = write(fd, bytes, size);
		struct pollfd out = { .fd = fd, .events = POLLOUT };

		if (n < 0 && errno == EAGAIN)
			(void)poll(&out, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int fdio_pwrite(int fd, const void *in, size_t size, off_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pwrite(
			fd, (const char *)in + done, size - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Creates a new file with exactly the mode @mode.  Returns a descriptor or a negative errno. */
static int create_file(int dirfd, const char *name, int flags, mode_t mode)
{
	autofd int fd = openat(dirfd, name,
		flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 0600);

	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) < 0) {
		int r = -errno;

		(void)unlinkat(dirfd, name, 0);
		return r;
	}
	return take_fd(&fd);
}

int fdio_open_shared(int dirfd, const char *name, int flags)
{
	for (;;) {
		int fd = openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			return -errno;
		/* another process may create it first: then open that one */
		fd = create_file(dirfd, name, flags, FDIO_MODE_SHARED);
		if (fd != -EEXIST)
			return fd;
	}
}

static int write_temporary(
	int dirfd, const char *temporary, const void *in, size_t size, mode_t mode)
{
	autofd int fd = create_file(dirfd, temporary, O_WRONLY, mode);
	int r;

	if (fd < 0)
		return fd;
	r = fdio_pwrite(fd, in, size, 0);
	if (r < 0)
		(void)unlinkat(dirfd, temporary, 0);
	return r;
}

int fdio_publish(int dirfd, const char *name, const char *temporary, const void *in,
	size_t size, mode_t mode)
{
	int r = write_temporary(dirfd, temporary, in, size, mode);

	if (r < 0)
		return r;
	if (linkat(dirfd, temporary, dirfd, name, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(dirfd, temporary, 0);
	return r;
}

int fdio_replace(int dirfd, const char *name, const char *temporary, const void *in,
	size_t size, mode_t mode)
{
	int r = write_temporary(dirfd, temporary, in, size, mode);

	if (r < 0)
		return r;
	if (renameat(dirfd, temporary, dirfd, name) < 0) {
		r = -errno;
		(void)unlinkat(dirfd, temporary, 0);
	}
	return r;
}

int fdio_punch(int fd, off_t from, off_t to)
{
	if (to <= from)
		return 0;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from) <
		0)
		return -errno;
	return 0;
}

bool fdio_is_named(int dirfd, const char *name, int fd)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 &&
	       fstatat(dirfd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool fdio_has_acl(int dirfd, const char *name)
{
	char path[PATH_MAX];

	/* the call needs no right to the file; a call relative to a folder came with Linux 6.13 */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name);
	return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* struct statx, which old C libraries do not declare. */
struct mount_stat {
	uint32_t mask;
	char before[140];
	uint64_t mount_id;
	char after[104];
};

_Static_assert(
	offsetof(struct mount_stat, mount_id) == 0x90 && sizeof(struct mount_stat) == 256,
	"the layout of the kernel");

int fdio_mount_id(int dirfd, const char *name, bool is_unique, uint64_t *ret_id)
{
	unsigned wanted = is_unique ? 0x4000u : 0x1000u; /* STATX_MNT_ID_UNIQUE, _ID */
	struct mount_stat st = { .mask = 0 };

	if (syscall(SYS_statx, dirfd, name, AT_EMPTY_PATH, wanted, &st) < 0)
		return errno == ENOSYS || errno == EINVAL ? -ENOTSUP : -errno;
	if (!(st.mask & wanted))
		return -ENOTSUP;
	*ret_id = st.mount_id;
	return 0;
}

int fdio_close_on_exec(void)
{
	DIR *own = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!own)
		return -errno;
	while ((entry = readdir(own))) {
		int fd = -1;

		if (sscanf(entry->d_name, "%d", &fd) == 1 && fd > STDERR_FILENO &&
			fd != dirfd(own) && (fcntl(fd, F_GETFD) & FD_CLOEXEC))
			(void)close(fd);
	}
	(void)closedir(own);
	return 0;
}

void fdio_close_from(int first)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (rlim_t fd = (rlim_t)first; fd < limit.rlim_cur; fd++)
		(void)close((int)fd);
}
