#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "config_file.h"
#include "fdio.h"
#include "rights.h"
#include "setid.h"

enum { NOBODY = 65534 }; /* whom the kernel shows where an id has no name */

/*
 * Whether a file that is not root's may count as such for who has no rights but his own: he
 * could name it himself; or it is root's, and this is a container without the machine's ids.
 */
static bool may_be_roots(const struct stat *st)
{
	return st->st_uid == getuid() ||
	       (st->st_uid == NOBODY && setid_in_user_namespace());
}

/* Why the file cannot be trusted or read, or NULL. */
static const char *distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != 0 && (rights_are_lent() || !may_be_roots(st)))
		return "it belongs neither to root nor to you; chown root";
	/* its group is the one that a private umask lets write */
	if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0))
		return "others may write to it; chmod go-w";
	if (st->st_size > CONFIG_BYTES_MAX)
		return "it is bigger than 64 KiB";
	return NULL;
}

static int read_file(const char *path, int fd, struct config *config, struct why *why)
{
	static char text[CONFIG_BYTES_MAX];
	const char *reason;
	size_t size = 0;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	reason = r == 0 ? distrust(&st) : NULL;
	if (reason) {
		why_set(why, "cannot use configuration '%s': %s", path, reason);
		return -EACCES;
	}
	if (r == 0)
		r = fdio_pread(fd, text, sizeof(text), 0, &size);
	if (r < 0) {
		why_set(why, "cannot read configuration '%s': %s", path, strerror(-r));
		return r;
	}
	return config_parse(path, text, size, config, why);
}

int config_file_load(
	const char *path, struct config *ret, bool *ret_exists, struct why *why)
{
	const char *name = path ? path : CONFIG_FILE;
	/* a FIFO is refused, not waited for */
	autofd int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	config_default(ret);
	if (ret_exists)
		*ret_exists = fd >= 0;
	if (fd < 0 && errno == ENOENT && !path)
		return 0;
	if (fd < 0) {
		why_set(why, "cannot open configuration '%s': %s", name, strerror(errno));
		return -errno;
	}
	return read_file(name, fd, ret, why);
}
