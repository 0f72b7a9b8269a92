#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "scratch.h"

int scratch_setup(void **state)
{
	static struct scratch s; /* tests run one at a time */

	(void)snprintf(s.path, sizeof(s.path), "/tmp/gpulease-test.XXXXXX");
	s.dirfd = mkdtemp(s.path) ? open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	*state = &s;
	return s.dirfd < 0 ? -1 : 0;
}

/* Empties the directory @dirfd, which it closes; never follows a link out of it. */
static int empty(int dirfd)
{
	DIR *dir = fdopendir(dirfd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		int below;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd, entry->d_name, 0) == 0)
			continue;
		below = openat(dirfd, entry->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0 || empty(below) < 0 ||
			unlinkat(dirfd, entry->d_name, AT_REMOVEDIR) < 0)
			r = -1;
	}
	(void)closedir(dir);
	return r;
}

int scratch_teardown(void **state)
{
	struct scratch *s = *state;

	if (empty(take_fd(&s->dirfd)) < 0)
		return -1;
	return rmdir(s->path);
}

int scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
	autofd int fd = openat(
		scratch->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t size = strlen(text);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size)
		return -1;
	return 0;
}
