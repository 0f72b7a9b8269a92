/*
 * The program as it is installed for users who need not trust each other: set-group-ID, with
 * the group of the state directory.  What such a program owes its user and everybody else:
 * the command gets the user's environment, also what the loader took away, and not the group;
 * no file of memory is left behind and no other process of the user's looks into this one.
 *
 * But for the umask each of these does nothing where no group is lent (rights.h).
 */
#ifndef GPULEASE_PRIVILEGE_H
#define GPULEASE_PRIVILEGE_H

#include "base.h"

/*
 * First of all.  @argc and @argv as main() got them: the user's environment is found behind
 * them.  0, or -EPERM: it is set-user-ID, which it must not be.
 */
MUST_CHECK int privilege_begin(int argc, char **argv);

/* The umask that it was started with. */
mode_t privilege_mask(void);

/* Puts the umask back that the program was started with; it has one of its own till then. */
void privilege_restore_mask(void);

/* The environment that the program was started with, for what it becomes. */
char **privilege_environment(void);

/*
 * Gives the group up for good; from then on the environment is the user's again, and nothing
 * of the state directory can be opened any more.  0 or a negative errno.
 */
MUST_CHECK int privilege_drop(void);

#endif
