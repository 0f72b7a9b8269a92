/*
 * Opens and creates files, folders and links that the user names, with the user's rights alone.
 *
 * If gpulease is installed set-group-ID, the user's rights alone do not protect the state.  A file
 * of the state belongs to the user of the process that created it; only the closed state directory
 * keeps the user away from it.  But a user can name /proc/self/fd/N, and the kernel lets gpulease
 * follow the links of its own descriptors into the state.  So these functions refuse a file or
 * folder that has the lent group (rights.h), after opening it and before reading, writing or
 * truncating it, and create nothing in a folder with that group.  Only files of the state have that
 * group.  They also refuse what lies in /proc itself: its files tell of the process that opens
 * them.
 *
 * Without a lent group these functions are open(2), mkdir(2) and so on.
 */
#ifndef GPULEASE_USERFILE_H
#define GPULEASE_USERFILE_H

#include <sys/types.h>

#include "text.h"

/*
 * Opens @path like open(2), close-on-exec.  Returns a descriptor or a negative errno (-EACCES also
 * for a file of the state or of /proc).
 */
MUST_CHECK int userfile_open(const char *path, int flags, mode_t mode);

/*
 * Makes the folders of the file @path that are missing, each with mode 0755, whatever the umask.
 * Returns 0, or a negative errno with the reason in @why.  A crash leaves some of them.
 */
MUST_CHECK int userfile_make_folders(const char *path, struct why *why);

/*
 * Opens @path for output, with @flags and @mode as userfile_open().  Makes missing folders first.
 * Returns a descriptor, or a negative errno with the reason in @why.
 */
MUST_CHECK int userfile_open_output(
	const char *path, int flags, mode_t mode, struct why *why);

/*
 * Whether userfile_open_output() can open @path, as far as that is known before.  Returns 0, or a
 * negative errno with the reason in @why.
 */
MUST_CHECK int userfile_check_output(const char *path, struct why *why);

/* Like chdir(2).  Returns 0 or a negative errno. */
MUST_CHECK int userfile_chdir(const char *path);

/* Like mkdir(2).  Returns 0 or a negative errno. */
MUST_CHECK int userfile_mkdir(const char *path, mode_t mode);

/* Like rename(2).  Returns 0 or a negative errno. */
MUST_CHECK int userfile_rename(const char *from, const char *to);

/* Like symlink(2).  Returns 0 or a negative errno. */
MUST_CHECK int userfile_symlink(const char *target, const char *path);

#endif
