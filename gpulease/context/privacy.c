#include <pwd.h>

#include "namespaces.h"
#include "privacy.h"
#include "proc.h"
#include "owner.h"

static bool hides_others;

void privacy_hide_others(void)
{
	hides_others = true;
}

bool may_show_commands_of(uint32_t uid)
{
	return !hides_others || getuid() == 0 || namespaces_own_user() == uid;
}

bool may_show_process(uint32_t pid)
{
	uint32_t uid;

	return !hides_others ||
	       (proc_find_user(pid, &uid) == 0 && may_show_commands_of(uid));
}

void describe_user(uint32_t uid, const char *recorded, struct text *out)
{
	const struct passwd *entry;

	if (recorded && recorded[0]) {
		text_add_visible(out, recorded);
		return;
	}
	entry = getpwuid(uid);
	if (entry)
		text_add_visible(out, entry->pw_name);
	else
		text_addf(out, "%u", uid);
}

void describe_process(uint32_t pid, struct text *out)
{
	struct process_stat process;
	uint32_t uid = 0;

	if (proc_find_user(pid, &uid) < 0 || process_stat_read(pid, &process) < 0) {
		text_add(out, "not visible here");
		return;
	}
	describe_user(uid, NULL, out);
	if (!may_show_commands_of(uid))
		return;
	text_add(out, ", ");
	text_add_visible(out, process.comm);
}
