/*
 * Whose rights this process uses.  Installed set-group-ID, the program has the group of the
 * state directory lent to it beside the rights of its user.  What the user names (a program,
 * a folder, a file to write to) is opened with the user's rights alone, and before anything
 * of the user's runs the group is given up for good.
 *
 * Where no group is lent all of this changes nothing.
 */
#ifndef GPULEASE_RIGHTS_H
#define GPULEASE_RIGHTS_H

#include <sys/types.h>

#include "base.h"

/* Whether a group is lent: the effective one is not the user's. */
bool rights_are_lent(void);

/* The group that is or was lent to this process; NO_GROUP: none. */
#define NO_GROUP ((gid_t)-1)
gid_t rights_lent_group(void);

/*
 * From one to the other, files are opened with the user's rights; so is /proc, which shows a
 * process's environment only to who has the same.  A pair may lie within another.
 */
void rights_as_user_begin(void);
void rights_as_user_end(void);

/*
 * Gives the group up, so that nothing brings it back.  What is open stays open; until the next
 * exec no other process of the user's can look into this one.  0 or a negative errno.
 */
MUST_CHECK int rights_drop(void);

#endif
