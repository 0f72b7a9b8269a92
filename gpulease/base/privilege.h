/*
 * What gpulease does if it is installed set-group-ID, with the group of the state directory.  This
 * form is for users that need not trust each other.
 *
 * The command gets the whole environment of the user, also the variables that the dynamic loader
 * removes from a set-group-ID program, and it does not get the group.  The process dumps no core,
 * and no other process of the user can read its memory.
 *
 * If the program is not set-group-ID (rights.h), these functions only set and restore the umask.
 */
#ifndef GPULEASE_PRIVILEGE_H
#define GPULEASE_PRIVILEGE_H

#include <sys/types.h>

#include "base.h"

/*
 * Call this first in main(), with its @argc and @argv: the user's environment follows them in
 * memory.  Sets the umask to 077.  Returns 0, or -EPERM when the program is set-user-ID, which it
 * must not be.
 */
MUST_CHECK int privilege_begin(int argc, char **argv);

/* Returns the umask with which the program was started. */
mode_t privilege_mask(void);

/* Restores the umask with which the program was started. */
void privilege_restore_mask(void);

/* Returns the environment with which the program was started, for the command. */
char **privilege_environment(void);

/*
 * Drops the group for good and makes the user's environment the current one.  From then on no file
 * of the state directory can be opened.  Returns 0 or a negative errno.
 */
MUST_CHECK int privilege_drop(void);

#endif
