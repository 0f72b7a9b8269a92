#include <errno.h>
#include <sys/fsuid.h>

#include "rights.h"

bool rights_are_lent(void)
{
	return getegid() != getgid();
}

void rights_as_user_begin(void)
{
	(void)setfsgid(getgid());
}

void rights_as_user_end(void)
{
	(void)setfsgid(getegid());
}

int rights_drop(void)
{
	gid_t real, effective, saved, user = getgid();

	if (setresgid(user, user, user) < 0 || getresgid(&real, &effective, &saved) < 0)
		return -errno;
	return effective == user && saved == user ? 0 : -EPERM;
}
