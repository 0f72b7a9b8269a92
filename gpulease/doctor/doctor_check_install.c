/*
 * Checks of what the installation and the administrator have set: the configuration, the state
 * directory and the set-group-ID bit.  Declared in doctor_checks.h.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/statvfs.h>

#include "doctor_checks.h"
#include "doctor_facts.h"
#include "local_user.h"
#include "config_file.h"
#include "own_limits.h"
#include "parse.h"

/* --- the configuration ------------------------------------------------------------- */

/* Warns of names in [limits] that are in no file, so that their lines bind no user. */
static void report_unknown_names(struct doctor *doctor)
{
	static struct config config; /* too big for the stack */
	const struct limits_table *table = &config.limits;
	struct limits_line line = { .number = 0 };
	struct why why;

	if (!doctor->state.has_config ||
		config_file_load(doctor->state.config_file, &config, NULL, &why) < 0)
		return;
	while (limits_next(table, &line)) {
		const char *kind = line.is_group ? "group" : "passwd";
		struct quoted name =
			quote_bytes(line.name.begin, strview_size(line.name));

		if (limits_is_known(&line, own_limits_process()))
			continue;
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "'%s', line %u: '%s' is not in /etc/%s",
				      table->file, line.number, name.text, kind),
			"write its number, as getent %s %s prints it, or remove the line",
			kind, name.text);
	}
}

void check_configuration(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;

	if (state->config_trouble.text[0])
		(void)doctor_add_why(
			&doctor->report, DOCTOR_FAIL, &state->config_trouble);
	else if (state->has_config)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "'%s', %u key%s set",
			state->config_file, state->keys, state->keys == 1 ? "" : "s");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"there is no '%s', so all settings have their defaults",
			state->config_file);
	report_unknown_names(doctor);
}

/* --- the state directory ----------------------------------------------------------- */

/* Writes the name of a group by /etc/group, without a name service; its number if it has none. */
static void local_group_name(gid_t gid, char *out, size_t size)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *entry;

	(void)snprintf(out, size, "%u", (unsigned)gid);
	while (file && (entry = fgetgrent(file)))
		if (entry->gr_gid == gid) {
			text_copy(out, size, entry->gr_name);
			break;
		}
	if (file)
		(void)fclose(file);
}

/* Writes the name of the user by /etc/passwd, or its number. */
static void local_user_name_or_id(uid_t uid, char *out, size_t size)
{
	local_user_name(uid, out, size);
	if (!out[0])
		(void)snprintf(out, size, "%u", (unsigned)uid);
}

/* Appends the commands that let this user use a directory that exists but is closed to it. */
static void directory_advise(const struct doctor *doctor, struct text *out)
{
	bool is_hardened =
		doctor->state.setid == SETID_IN_FORCE && !doctor->state.is_named;
	gid_t gid = is_hardened ? doctor->state.setid_group : doctor->state.stat.st_gid;
	char group[64], user[64];
	struct directory_users users = {
		.is_hardened = is_hardened,
		.lent = gid,
		.group = group,
		.uid = getuid(),
		.user = user,
	};

	local_group_name(gid, group, sizeof(group));
	local_user_name_or_id(users.uid, user, sizeof(user));
	directory_remedy(&doctor->state.stat, doctor->state.path, &users, out);
}

static void directory_report_unusable(struct doctor *doctor)
{
	bool lacks_group =
		(doctor->state.setid > SETID_IN_FORCE || doctor->state.is_copy) &&
		!doctor->state.is_named;
	char remedy[320];
	struct text text = TEXT_ON(remedy);
	struct doctor_finding *finding = doctor_add_why(
		&doctor->report, DOCTOR_FAIL, &doctor->state.directory_trouble);

	/* if the group of the program is what is missing, the message already has the remedy */
	if (doctor->state.directory_error != -EACCES || !doctor->state.has_stat ||
		lacks_group)
		return;
	directory_advise(doctor, &text);
	doctor_remedy(finding, "%s", remedy);
}

static const char *directory_form(const struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;

	if (state->sim_gpus)
		return "simulated";
	if (state->is_hardened)
		return "hardened";
	return state->is_private ? "private" : "lab";
}

void check_directory(struct doctor *doctor)
{
	bool is_fallback = doctor->state.is_fallback;
	enum doctor_result result = is_fallback ? DOCTOR_WARN : DOCTOR_OK;
	char group[64], user[64];
	struct doctor_finding *finding;
	struct statvfs fs;

	/* readers such as --status still work there, but no job can start */
	if (doctor->state.path[0] && statvfs(doctor->state.path, &fs) == 0 &&
		(fs.f_flag & ST_RDONLY)) {
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "'%s' is read-only", doctor->state.path),
			"mount its file system for reading and writing");
		return;
	}
	if (doctor->state.directory_error != 0) {
		directory_report_unusable(doctor);
		return;
	}
	local_group_name(doctor->state.stat.st_gid, group, sizeof(group));
	local_user_name_or_id(doctor->state.stat.st_uid, user, sizeof(user));
	finding = doctor_add(&doctor->report, result,
		"'%s', %s form, owner %s, group %s, mode %04o%s", doctor->state.path,
		directory_form(doctor), user, group,
		(unsigned)doctor->state.stat.st_mode & 07777,
		is_fallback ? ": coordinates only your own jobs" : "");
	if (is_fallback)
		doctor_remedy(finding, "run sudo make install, which makes '%s'",
			doctor->state.shared);
}

/* --- the set-group-ID bit ---------------------------------------------------------- */

/* Appends the names of the members of the group @gid by /etc/group and /etc/passwd. */
static void group_add_members(gid_t gid, struct text *out)
{
	FILE *file = fopen("/etc/group", "re");
	const struct passwd *user;
	const struct group *group;

	while (file && (group = fgetgrent(file)))
		for (char **name = group->gr_mem; group->gr_gid == gid && *name; name++)
			text_addf(out, "%s%s", out->used ? ", " : "", *name);
	if (file)
		(void)fclose(file);
	file = fopen("/etc/passwd", "re");
	while (file && (user = fgetpwent(file)))
		if (user->pw_gid == gid)
			text_addf(out, "%s%s", out->used ? ", " : "", user->pw_name);
	if (file)
		(void)fclose(file);
}

/* A member of the group can open the directory without the program, and change all records. */
static void setid_report_members(struct doctor *doctor, const char *group)
{
	char members[200];
	struct text text = TEXT_ON(members);

	group_add_members(doctor->state.setid_group, &text);
	if (text.used)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "members of group %s can forge and erase all "
				      "leases: %s",
				      group, members),
			"remove each of them: gpasswd -d USER %s", group);
}

static void setid_report_in_force(struct doctor *doctor)
{
	const char *path = doctor->state.shared;
	char lent[64], other[64];
	struct doctor_finding *finding;
	struct stat st;

	local_group_name(doctor->state.setid_group, lent, sizeof(lent));
	if (stat(path, &st) == 0 && st.st_gid != doctor->state.setid_group) {
		local_group_name(st.st_gid, other, sizeof(other));
		finding = doctor_add(&doctor->report, DOCTOR_FAIL,
			"the program has group %s, but '%s' has group %s", lent, path,
			other);
		doctor_remedy(
			finding, "chgrp %s %s, or install gpulease again", lent, path);
		return;
	}
	(void)doctor_add(&doctor->report, DOCTOR_OK, "in force, lends group %s", lent);
	setid_report_members(doctor, lent);
}

void check_setid(struct doctor *doctor)
{
	bool is_needed = doctor->state.directory_error != 0;
	struct why why = WHY_NONE;

	if (doctor->state.setid == SETID_ABSENT)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"the program has no set-group-ID bit, as in the lab and private "
			"forms");
	else if (doctor->state.setid == SETID_IN_FORCE)
		setid_report_in_force(doctor);
	else if (setid_explain(doctor->state.setid, &why))
		(void)doctor_add_why(
			&doctor->report, is_needed ? DOCTOR_FAIL : DOCTOR_WARN, &why);
}
