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
	SETID_NO_NEW_PRIVS,   /* this process may not gain rights: a sandbox */
	SETID_USER_NAMESPACE, /* the group is not one of this user namespace */
	SETID_TRACED,         /* a debugger of the user's is attached */
	SETID_LOST,           /* nothing of these: given up on the way here */
};

/* Whether this process is in a user namespace of its own: others' ids have no name there. */
bool setid_in_user_namespace(void);

/* What it is; *@ret_group, which may be NULL, is the group of the file. */
enum setid_state setid_look(gid_t *ret_group);

/* Why it is not in force, and the way out; "" for ABSENT and IN_FORCE. */
const char *setid_explain(enum setid_state state);

#endif
