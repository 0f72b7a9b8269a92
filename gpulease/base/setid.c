#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fdio.h"
#include "rights.h"
#include "setid.h"

/* What has taken the effect from the set-group-ID bit, and what to do. */
static const struct {
	const char *reason, *remedy; /* NULL: nothing has */
} explanations[] = {
	[SETID_NOSUID] = { ", because its file system is mounted nosuid",
		"install it on another one" },
	[SETID_NO_NEW_PRIVS] = { " under no_new_privs, as in sandboxes and with "
				 "NoNewPrivileges=",
		"start gpulease outside of it" },
	[SETID_USER_NAMESPACE] = { " in this user namespace",
		"lease outside of it: gpulease -n 1 -- podman run ..." },
	[SETID_TRACED] = { " under a debugger or strace", "start it without" },
	[SETID_LOST] = { " here",
		"start it as the installed file, not through another program" },
};

bool setid_in_user_namespace(void)
{
	unsigned inside = 0, outside = 0, count = 0;
	char text[256];

	if (fdio_read_text(AT_FDCWD, "/proc/self/gid_map", text, sizeof(text)) < 0)
		return false;
	if (sscanf(text, "%u %u %u", &inside, &outside, &count) != 3)
		return true; /* a new user namespace has no map yet */
	return inside != 0 || outside != 0 || count != UINT32_MAX;
}

static bool is_traced(void)
{
	char text[4096];
	const char *line;
	unsigned tracer = 0;

	if (fdio_read_text(AT_FDCWD, "/proc/self/status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "TracerPid:");
	return line && sscanf(line, "TracerPid: %u", &tracer) == 1 && tracer != 0;
}

enum setid_state setid_look(gid_t *ret_group)
{
	struct statvfs fs;
	struct stat st;

	if (stat("/proc/self/exe", &st) < 0 || !(st.st_mode & S_ISGID))
		return SETID_ABSENT;
	if (ret_group)
		*ret_group = st.st_gid;
	if (rights_are_lent())
		return SETID_IN_FORCE;
	if (statvfs("/proc/self/exe", &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return SETID_NOSUID;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return SETID_NO_NEW_PRIVS;
	if (setid_in_user_namespace())
		return SETID_USER_NAMESPACE;
	if (getegid() == st.st_gid)
		return SETID_IN_FORCE; /* the group is the user's own: the bit changes nothing */
	return is_traced() ? SETID_TRACED : SETID_LOST;
}

bool setid_explain(enum setid_state state, struct why *why)
{
	if (state >= ARRAY_SIZE(explanations) || !explanations[state].reason)
		return false;
	why_set(why, "the set-group-ID bit of gpulease has no effect%s",
		explanations[state].reason);
	why_add_remedy(why, "%s", explanations[state].remedy);
	return true;
}

void setid_explain_denial(const char *path, struct why *why)
{
	struct why lost = WHY_NONE;

	if (setid_explain(setid_look(NULL), &lost))
		why_wrap(why, &lost, "cannot use '%s': ", path);
}
