#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fdio.h"
#include "replace_file.h"

static mode_t mode_by_umask(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

/* Writes to something that is there and is no regular file. */
static int write_to(const char *path, const char *text, size_t size)
{
	autofd int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fdio_write(fd, text, size);
}

static int replace(const char *path, const char *text, size_t size, int mode)
{
	char temporary[PATH_MAX + 8];
	int fd, r;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fdio_write(fd, text, size);
	if (r == 0 &&
		fchmod(fd, mode == MODE_BY_UMASK ? mode_by_umask() : (mode_t)mode) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

int replace_file(
	const char *path, const char *text, size_t size, int mode, struct why *why)
{
	char target[PATH_MAX];
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0) {
		r = fdio_write(STDOUT_FILENO, text, size);
		if (r < 0)
			why_set(why, "cannot write the output: %s", strerror(-r));
		return r;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		r = write_to(path, text, size);
	else
		r = replace(realpath(path, target) ? target : path, text, size, mode);
	if (r < 0)
		why_set(why, "cannot write '%s': %s", path, strerror(-r));
	return r;
}
