/*
 * Reads and writes small files in a directory that is given as a descriptor.  Every descriptor is
 * close-on-exec, symbolic links are not followed, every read has a bound, and modes are set
 * explicitly, whatever the umask.
 */
#ifndef GPULEASE_FDIO_H
#define GPULEASE_FDIO_H

#include <sys/types.h>

#include "base.h"

/* The mode of files that all users of the state directory share. */
enum { FDIO_MODE_SHARED = 0660 };

/*
 * Reads up to @size bytes of a regular file at @offset; fewer only at the end of the file.  Sets
 * *@ret_size to their number.  Returns 0 or a negative errno.
 */
MUST_CHECK int fdio_pread(int fd, void *out, size_t size, off_t offset, size_t *ret_size);

/*
 * Reads the file @name in @dirfd as text: at most @size - 1 bytes, and a NUL.  Returns 0 or a
 * negative errno.
 */
MUST_CHECK int fdio_read_text(int dirfd, const char *name, char *out, size_t size);

/* Reads an open file as text, from its current position; else like fdio_read_text(). */
MUST_CHECK int fdio_read_text_of(int fd, char *out, size_t size);

enum fdio_outcome { FDIO_NONE = 1 };

/*
 * Reads the whole file @name in @dirfd, which other processes may replace at any time.  Returns 0
 * and sets *@ret, which the caller frees, and *@ret_size.  Returns FDIO_NONE if there is no such
 * file, if it is a symbolic link or no regular file, or if it has less than @least or more than
 * @most bytes; else a negative errno.
 */
MUST_CHECK int fdio_read_all(int dirfd, const char *name, size_t least, size_t most,
	char **ret, size_t *ret_size);

/*
 * Writes all @size bytes at the position of @fd.  Waits for room if another process has made the
 * terminal or pipe non-blocking.  Returns 0 or a negative errno.
 */
MUST_CHECK int fdio_write(int fd, const void *in, size_t size);

/* Writes all @size bytes at @offset.  Returns 0 or a negative errno. */
MUST_CHECK int fdio_pwrite(int fd, const void *in, size_t size, off_t offset);

/*
 * Opens the regular file @name with @flags (O_RDWR, O_APPEND …).  Creates it, empty and shared,
 * if it is missing.  Opens it without O_CREAT first, because fs.protected_regular forbids O_CREAT
 * on a file of another user.  Returns the descriptor or a negative errno.
 */
MUST_CHECK int fdio_open_shared(int dirfd, const char *name, int flags);

/*
 * Creates @name in @dirfd, complete with @size bytes from @in and mode @mode: writes a file under
 * the name @temporary and links it.  Returns 0, also if @name exists already, which is then left
 * unchanged; or a negative errno.  A crash leaves the temporary file.
 */
MUST_CHECK int fdio_publish(int dirfd, const char *name, const char *temporary,
	const void *in, size_t size, mode_t mode);

/*
 * Creates or replaces @name: writes a file under the name @temporary and renames it.  Returns 0 or
 * a negative errno.  A crash leaves the temporary file.
 */
MUST_CHECK int fdio_replace(int dirfd, const char *name, const char *temporary,
	const void *in, size_t size, mode_t mode);

/*
 * Returns the blocks of the bytes from @from up to @to to the file system; the bytes are zeros
 * then.  Returns 0 or a negative errno (-EOPNOTSUPP: the file system cannot do it).
 */
MUST_CHECK int fdio_punch(int fd, off_t from, off_t to);

/*
 * Whether @name in @dirfd still leads to the open file @fd: not another file, nor a symbolic link
 * to it.
 */
bool fdio_is_named(int dirfd, const char *name, int fd);

/*
 * Whether @name in @dirfd has an access control list (setfacl(1)) beside its mode, also if this
 * process may not open it.  Does not follow a symbolic link.
 */
bool fdio_has_acl(int dirfd, const char *name);

/*
 * Sets *@ret_id to the number of the mount that holds @name in @dirfd ("": @dirfd itself).  With
 * @is_unique it is a number that is never reused (Linux 6.8), else one that is unique among the
 * present mounts (Linux 5.8).  Returns 0 or a negative errno (-ENOTSUP: the kernel is older).
 */
MUST_CHECK int fdio_mount_id(
	int dirfd, const char *name, bool is_unique, uint64_t *ret_id);

/*
 * Closes all close-on-exec descriptors, except stdin, stdout and stderr.  Returns 0 or a negative
 * errno.
 */
MUST_CHECK int fdio_close_on_exec(void);

/* Closes every descriptor from @first on, in a child that must not hold its parent's files. */
void fdio_close_from(int first);

#endif
