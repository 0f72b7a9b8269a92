/*
 * Switches between the rights of the user and those of the installation.  If gpulease is installed
 * set-group-ID, the group of the state directory is lent to it, in addition to the rights of its
 * user.  Files that the user names (a program, a folder, a log) are opened with the user's rights
 * alone.  Before gpulease runs a program of the user, it gives the group up for good.
 *
 * Without a lent group these functions change nothing.
 */
#ifndef GPULEASE_RIGHTS_H
#define GPULEASE_RIGHTS_H

#include <sys/types.h>

#include "base.h"

/* Whether a group is lent: the effective group differs from the real one. */
bool rights_are_lent(void);

/* Returns the group that is, or was, lent to this process; NO_GROUP if none was. */
#define NO_GROUP ((gid_t)-1)
gid_t rights_lent_group(void);

/*
 * Between the two calls, files are opened with the user's rights.  That includes /proc, which shows
 * the environment of a process only with equal rights.  Pairs of calls may be nested.
 */
void rights_as_user_begin(void);
void rights_as_user_end(void);

/*
 * Gives the group up irrevocably.  Open files stay open.  Until the next exec, no other process of
 * the user can trace this one.  Returns 0 or a negative errno.
 */
MUST_CHECK int rights_drop(void);

#endif
