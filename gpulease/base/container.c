#include <fcntl.h>
#include <sys/stat.h>

#include "container.h"
#include "fdio.h"

static const char *const marks[] = { "/.dockerenv", "/run/.containerenv" };

bool container_is_inside(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (access(marks[i], F_OK) == 0)
			return true;
	return false;
}

bool container_has_mounted(int fd)
{
	struct stat at = { 0 }, root = { 0 };
	uint64_t at_id, root_id;

	if (fdio_mount_id(fd, "", false, &at_id) == 0 &&
		fdio_mount_id(AT_FDCWD, "/", false, &root_id) == 0)
		return at_id != root_id;
	/*
	 * without mount ids (before Linux 5.8) compare file systems; a container's root is its own
	 */
	return fstat(fd, &at) == 0 && stat("/", &root) == 0 && at.st_dev != root.st_dev;
}
