#include <pwd.h>
#include <stdio.h>

#include "local_user.h"
#include "parse.h"
#include "text.h"

void local_user_name(uid_t uid, char *out, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry;

	out[0] = '\0';
	if (!file)
		return;
	while ((entry = fgetpwent(file)))
		if (entry->pw_uid == uid) {
			text_copy(out, size, entry->pw_name);
			break;
		}
	(void)fclose(file);
}

bool local_user_number(const char *name, uint32_t *ret)
{
	struct passwd *entry;
	bool found = false;
	uint64_t uid;
	FILE *file;

	if (parse_u64(name, UINT32_MAX, &uid, NULL) == 0) {
		*ret = (uint32_t)uid;
		return true;
	}
	file = fopen("/etc/passwd", "re");
	if (!file)
		return false;
	while (!found && (entry = fgetpwent(file))) {
		found = strcmp(entry->pw_name, name) == 0;
		if (found)
			*ret = entry->pw_uid;
	}
	(void)fclose(file);
	return found;
}

const char *local_user_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *entry;

	if (home && home[0] == '/')
		return home;
	/* daemons and stripped environments have no $HOME, but the same user */
	entry = getpwuid(getuid());
	return entry ? entry->pw_dir : NULL;
}
