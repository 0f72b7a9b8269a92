/*
 * Whether the set-group-ID bit of the program's file is in force, and if not, why.
 */
#ifndef GPULEASE_SETID_H
#define GPULEASE_SETID_H

#include <sys/types.h>

#include "text.h"

enum setid_state {
	SETID_ABSENT, /* the file has no such bit */
	SETID_IN_FORCE,
	SETID_NOSUID,         /* the file lies on a file system mounted nosuid */
	SETID_NO_NEW_PRIVS,   /* this process may not gain rights, as in a sandbox */
	SETID_USER_NAMESPACE, /* the group has no id in this user namespace */
	SETID_TRACED,         /* a debugger of the user is attached */
	SETID_LOST,           /* none of these: another program has started this file */
};

/* Whether this process is in a user namespace of its own, where ids of the host have no names. */
bool setid_in_user_namespace(void);

/*
 * Finds out the state.  Sets *@ret_group, unless NULL, to the group of the file if the file has the
 * bit.
 */
enum setid_state setid_look(gid_t *ret_group);

/*
 * Sets @why to the reason why the bit is not in force, and the remedy.  Returns false, and leaves
 * @why alone, for SETID_ABSENT and SETID_IN_FORCE.
 */
bool setid_explain(enum setid_state state, struct why *why);

/*
 * For a caller that was denied access to @path: if the set-group-ID bit is not in force, replaces
 * the message in @why by that reason.
 */
void setid_explain_denial(const char *path, struct why *why);

#endif
