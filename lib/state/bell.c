#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "bell.h"
#include "statedir.h"

static void bell_write(int bell_fd, const char *name)
{
	/*
	 * Open for reading as well.  The owner may close its bell before the write, which would
	 * then raise SIGPIPE in this process.
	 */
	autofd int fd =
		openat(bell_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	/* if the FIFO is full the write fails, but the owner is woken by what is in it */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		(void)!write(fd, "!", 1);
}

void bell_ring(const struct statedir *dir, const char *token)
{
	if (is_token(token))
		bell_write(dir->bell_fd, token);
}

void bell_drain(int fd)
{
	char bytes[512];
	ssize_t n;

	do
		n = read(fd, bytes, sizeof(bytes));
	while (n > 0 || (n < 0 && errno == EINTR));
}

/* Whether the owner of the bell @name is dead: only while it lives does the bell have a reader. */
static bool bell_is_dead(int bell_fd, const char *name)
{
	/* without a reader this fails; to open it for reading instead could steal a ring */
	autofd int fd =
		openat(bell_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 && errno == ENXIO;
}

void bell_ring_all(const struct statedir *dir)
{
	DIR *names = fifo_list(dir->bell_fd);
	struct dirent *entry;

	while (names && (entry = readdir(names))) {
		if (!is_token(entry->d_name))
			continue;
		if (bell_is_dead(dir->bell_fd, entry->d_name))
			(void)unlinkat(dir->bell_fd, entry->d_name, 0);
		else
			bell_write(dir->bell_fd, entry->d_name);
	}
	if (names)
		(void)closedir(names);
}

void bell_sweep(const struct statedir *dir)
{
	fifo_sweep_folder(dir->bell_fd,
		&(struct fifo_sweep){ .my_pidns = dir->pidns, .is_dead = bell_is_dead });
}
