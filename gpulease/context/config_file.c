#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "config_file.h"
#include "fdio.h"
#include "rights.h"
#include "setid.h"

/* The kernel shows this owner for a file if its real owner has no id in this user namespace. */
enum { OVERFLOW_UID = 65534 };

/*
 * Whether a file that does not belong to root may be trusted like one, in a process with only the
 * user's rights: the user could name the file with --config anyway, or the file is root's, seen
 * from a user namespace in which root has no id.
 */
static bool config_file_may_be_trusted(const struct stat *st)
{
	return st->st_uid == getuid() ||
	       (st->st_uid == OVERFLOW_UID && setid_in_user_namespace());
}

/* Whether the file can be trusted and read; if not, @why says why. */
static bool config_file_is_trusted(const struct stat *st, struct why *why)
{
	if (!S_ISREG(st->st_mode)) {
		why_set(why, "it is not a regular file");
	} else if (st->st_uid != 0 &&
		   (rights_are_lent() || !config_file_may_be_trusted(st))) {
		why_set(why, "it belongs neither to root nor to you");
		why_add_remedy(why, "chown root");
	} else if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0)) {
		/* root's files are writable for group 0 under a umask of 002 */
		why_set(why, "others may write to it");
		why_add_remedy(why, "chmod go-w");
	} else if (st->st_size > CONFIG_BYTES_MAX) {
		why_set(why, "it is bigger than 64 KiB");
	} else {
		return true;
	}
	return false;
}

static int config_file_read(
	const char *path, int fd, struct config *config, struct why *why)
{
	static char text[CONFIG_BYTES_MAX];
	struct why reason = WHY_NONE;
	size_t size = 0;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !config_file_is_trusted(&st, &reason)) {
		why_wrap(why, &reason, "cannot use configuration '%s': ", path);
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

const char *config_file_named(const char *option)
{
	const char *variable = rights_are_lent() ? NULL : getenv("GPULEASE_CONFIG");

	if (option)
		return option;
	return variable && *variable ? variable : NULL;
}

int config_file_load(
	const char *option, struct config *ret, bool *ret_exists, struct why *why)
{
	const char *named = config_file_named(option);
	const char *name = named ? named : CONFIG_FILE;
	/* O_NONBLOCK: open() of a FIFO would wait for a writer; it is refused below */
	autofd int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	config_default(ret);
	if (ret_exists)
		*ret_exists = fd >= 0;
	if (fd < 0 && errno == ENOENT && !named)
		return 0;
	if (fd < 0) {
		why_set(why, "cannot open configuration '%s': %s", name, strerror(errno));
		return -errno;
	}
	return config_file_read(name, fd, ret, why);
}
