/*
 * Opens and makes files, folders and links that the user names, with the user's rights alone.
 *
 * In the hardened form that is not enough.  A file or folder of the state belongs to the user
 * whose process made it, and nothing but the closed directory keeps that user away from it.  A
 * process that has a descriptor into the state must not open /proc/self/fd/N for the user: the
 * kernel lets a process follow the links of its own descriptors.  So a file or folder with the
 * lent group (rights.h) is refused here, after it was opened and before it is read, written or
 * truncated, and nothing is made in a folder with that group.  Only files of the state have it.
 *
 * Without a lent group all of this is open(2), mkdir(2) and so on.
 */
#ifndef GPULEASE_USERFILE_H
#define GPULEASE_USERFILE_H

#include <sys/types.h>

#include "base.h"

/*
 * Opens @path as open(2) does, close-on-exec.  Returns a descriptor or a negative errno;
 * -EACCES for what belongs to the state.
 */
MUST_CHECK int userfile_open(const char *path, int flags, mode_t mode);

/* As chdir(2).  0 or a negative errno. */
MUST_CHECK int userfile_chdir(const char *path);

/* As mkdir(2).  0 or a negative errno. */
MUST_CHECK int userfile_mkdir(const char *path, mode_t mode);

/* As rename(2).  0 or a negative errno. */
MUST_CHECK int userfile_rename(const char *from, const char *to);

/* As symlink(2).  0 or a negative errno. */
MUST_CHECK int userfile_symlink(const char *target, const char *path);

#endif
