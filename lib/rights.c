#include <errno.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "rights.h"

static gid_t lent = NO_GROUP;
static unsigned depth; /* of pairs of rights_as_user_begin() and _end() */

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

/* New rights open memory and cores again to the user where fs.suid_dumpable says so. */
static void stay_closed(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void rights_as_user_begin(void)
{
	if (!rights_are_lent() || depth++ > 0)
		return;
	(void)setfsgid(getgid());
	stay_closed();
}

void rights_as_user_end(void)
{
	if (!rights_are_lent() || --depth > 0)
		return;
	(void)setfsgid(getegid());
	stay_closed();
}

int rights_drop(void)
{
	gid_t real, effective, saved, user = getgid();
	bool was_lent = rights_are_lent();

	if (getresgid(&real, &effective, &saved) < 0)
		return -errno;
	/* a user namespace may not even know the group */
	if (effective == user && saved == user)
		return 0;
	if (setresgid(user, user, user) < 0 || getresgid(&real, &effective, &saved) < 0)
		return -errno;
	if (was_lent)
		stay_closed();
	return effective == user && saved == user ? 0 : -EPERM;
}
