#include <errno.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "rights.h"

static gid_t lent = NO_GROUP; /* remembered after rights_drop() */
static unsigned depth;        /* of nested rights_as_user_begin() */

bool rights_are_lent(void)
{
	gid_t effective = getegid();

	if (effective == getgid())
		return false;
	lent = effective;
	return true;
}

gid_t rights_lent_group(void)
{
	return rights_are_lent() ? getegid() : lent;
}

/*
 * A change of rights may make this process dumpable again (fs.suid_dumpable).  Then the user could
 * trace it and read its memory.
 */
static void forbid_tracing(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void rights_as_user_begin(void)
{
	if (!rights_are_lent() || depth++ > 0)
		return;
	(void)setfsgid(getgid());
	forbid_tracing();
}

void rights_as_user_end(void)
{
	if (!rights_are_lent() || --depth > 0)
		return;
	(void)setfsgid(getegid());
	forbid_tracing();
}

int rights_drop(void)
{
	gid_t real, effective, saved, user = getgid();
	bool was_lent = rights_are_lent();

	if (getresgid(&real, &effective, &saved) < 0)
		return -errno;
	/* nothing to give up; and a user namespace may lack the group, so that setting it fails */
	if (effective == user && saved == user)
		return 0;
	if (setresgid(user, user, user) < 0 || getresgid(&real, &effective, &saved) < 0)
		return -errno;
	if (was_lent)
		forbid_tracing();
	return effective == user && saved == user ? 0 : -EPERM;
}
