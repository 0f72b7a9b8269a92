/*
 * Reading and writing small files below a directory descriptor.  Every descriptor is
 * close-on-exec, no symbolic link is followed, every read has a bound, modes are set
 * explicitly (the umask never decides).
 */
#ifndef GPULEASE_FDIO_H
#define GPULEASE_FDIO_H

#include <sys/types.h>

#include "base.h"

/* Modes of what others share, of what one writes and all read. */
enum { FDIO_MODE_SHARED = 0660, FDIO_MODE_FOLDER = 02770 };

/*
 * Reads up to @size bytes of a regular file at @offset; short only at its end.  Sets
 * *@ret_size.  0 or a negative errno.
 */
MUST_CHECK int fdio_pread(int fd, void *out, size_t size, off_t offset, size_t *ret_size);

/*
 * Reads the file @name below @dirfd as text: at most @size - 1 bytes and a NUL.  0 or a negative
 * errno.
 */
MUST_CHECK int fdio_read_text(int dirfd, const char *name, char *out, size_t size);

/* The same of an open one, from where it was read to. */
MUST_CHECK int fdio_read_text_of(int fd, char *out, size_t size);

enum { FDIO_NONE = 1 };

/*
 * Reads all of the file @name below @dirfd, which others replace, into *@ret, the caller's to
 * free, and sets *@ret_size: from @least to @most bytes.  0; FDIO_NONE: there is none, or it is
 * no regular file, or not of such a size; or a negative errno.
 */
MUST_CHECK int fdio_read_all(int dirfd, const char *name, size_t least, size_t most,
	char **ret, size_t *ret_size);

/* Writes all @size bytes at @offset, or returns a negative errno. */
MUST_CHECK int fdio_pwrite(int fd, const void *in, size_t size, off_t offset);

/*
 * Opens the regular file @name with @flags (O_RDWR, O_APPEND …), creating it shared and
 * empty where it is missing: first without O_CREAT, which fs.protected_regular refuses on
 * a file of somebody else.  Returns the descriptor or a negative errno.
 */
MUST_CHECK int fdio_open_shared(int dirfd, const char *name, int flags);

/*
 * Makes @name appear below @dirfd complete, with @size bytes from @in, mode @mode: written under
 * the temporary name @temporary and linked.  0, also when it was there already; or a negative
 * errno.  A crash leaves the temporary file.
 */
MUST_CHECK int fdio_publish(int dirfd, const char *name, const char *temporary,
	const void *in, size_t size, mode_t mode);

/* The same by rename(2): replaces what is there. */
MUST_CHECK int fdio_replace(int dirfd, const char *name, const char *temporary,
	const void *in, size_t size, mode_t mode);

/*
 * Gives the blocks of [@from, @to) back to the file system; they read as zeros then.  0 or a
 * negative errno (-EOPNOTSUPP where it cannot).
 */
MUST_CHECK int fdio_punch(int fd, off_t from, off_t to);

/*
 * The number of the mount on which @name in @dirfd lies ("": @dirfd itself).  @is_unique: one
 * that is never used again (Linux 6.8); else that of the mounts there are now (5.8).  0 or a
 * negative errno, -ENOTSUP where the kernel does not tell.
 */
MUST_CHECK int fdio_mount_id(
	int dirfd, const char *name, bool is_unique, uint64_t *ret_id);

/*
 * Closes all close-on-exec descriptors now, but for stdin, stdout and stderr.  0 or a negative
 * errno.
 */
MUST_CHECK int fdio_close_on_exec(void);

/* Closes every descriptor from @first on: in a child that is to hold nothing of its parent's. */
void fdio_close_from(int first);

#endif
