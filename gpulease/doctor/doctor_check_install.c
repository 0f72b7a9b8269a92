/*
 * Checks of what the installation and the administrator have set: the configuration, the state
 * directory and the set-group-ID bit.  Declared in doctor_checks.h.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/statvfs.h>

#include "config_file.h"
#include "doctor_checks.h"
#include "doctor_facts.h"
#include "local_user.h"

/* --- the configuration ------------------------------------------------------------- */

void check_configuration(struct doctor *doctor)
{
	const char *file = doctor->settings->machine.config;
	unsigned count = 0;

	if (doctor->config_trouble.text[0]) {
		(void)doctor_add_why(
			&doctor->report, DOCTOR_FAIL, &doctor->config_trouble);
		return;
	}
	for (unsigned key = 0; key < CONFIG_KEYS; key++)
		count += doctor->context.config.lines[key] != 0;
	if (doctor->context.has_config)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "'%s', %u key%s set",
			file ? file : CONFIG_FILE, count, count == 1 ? "" : "s");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"there is no '%s', so all settings have their defaults",
			CONFIG_FILE);
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
	bool is_hardened = doctor->setid == SETID_IN_FORCE && !doctor->context.named;
	gid_t gid = is_hardened ? doctor->setid_group : doctor->stat.st_gid;
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
	directory_remedy(&doctor->stat, doctor->path, &users, out);
}

static void directory_report_unusable(struct doctor *doctor)
{
	bool lacks_group = (doctor->setid > SETID_IN_FORCE || doctor->context.is_copy) &&
			   !doctor->context.named;
	char remedy[320];
	struct text text = TEXT_ON(remedy);
	struct doctor_finding *finding =
		doctor_add_why(&doctor->report, DOCTOR_FAIL, &doctor->directory_trouble);

	/* if the group of the program is what is missing, the message already has the remedy */
	if (doctor->directory_error != -EACCES || !doctor->has_stat || lacks_group)
		return;
	directory_advise(doctor, &text);
	doctor_remedy(finding, "%s", remedy);
}

static const char *directory_form(const struct doctor *doctor)
{
	const struct statedir *dir = &doctor->context.dir;

	if (doctor->settings->machine.sim_gpus)
		return "simulated";
	if (dir->is_hardened)
		return "hardened";
	return dir->is_private ? "private" : "lab";
}

void check_directory(struct doctor *doctor)
{
	const struct statedir *dir = &doctor->context.dir;
	enum doctor_result result = dir->is_fallback ? DOCTOR_WARN : DOCTOR_OK;
	char group[64], user[64];
	struct doctor_finding *finding;
	struct statvfs fs;

	/* readers such as --status still work there, but no job can start */
	if (doctor->path[0] && statvfs(doctor->path, &fs) == 0 &&
		(fs.f_flag & ST_RDONLY)) {
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "'%s' is read-only", doctor->path),
			"mount its file system for reading and writing");
		return;
	}
	if (doctor->directory_error != 0) {
		directory_report_unusable(doctor);
		return;
	}
	local_group_name(doctor->stat.st_gid, group, sizeof(group));
	local_user_name_or_id(doctor->stat.st_uid, user, sizeof(user));
	finding = doctor_add(&doctor->report, result,
		"'%s', %s form, owner %s, group %s, mode %04o%s", dir->path,
		directory_form(doctor), user, group,
		(unsigned)doctor->stat.st_mode & 07777,
		dir->is_fallback ? ": coordinates only your own jobs" : "");
	if (dir->is_fallback)
		doctor_remedy(finding, "run sudo make install, which makes '%s'",
			doctor->context.config.directory);
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

	group_add_members(doctor->setid_group, &text);
	if (text.used)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "members of group %s can forge and erase all "
				      "leases: %s",
				      group, members),
			"remove each of them: gpasswd -d USER %s", group);
}

static void setid_report_in_force(struct doctor *doctor)
{
	const char *path = doctor->context.config.directory;
	char lent[64], other[64];
	struct doctor_finding *finding;
	struct stat st;

	local_group_name(doctor->setid_group, lent, sizeof(lent));
	if (stat(path, &st) == 0 && st.st_gid != doctor->setid_group) {
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
	bool is_needed = doctor->directory_error != 0;
	struct why why = WHY_NONE;

	if (doctor->setid == SETID_ABSENT)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"the program has no set-group-ID bit, as in the lab and private "
			"forms");
	else if (doctor->setid == SETID_IN_FORCE)
		setid_report_in_force(doctor);
	else if (setid_explain(doctor->setid, &why))
		(void)doctor_add_why(
			&doctor->report, is_needed ? DOCTOR_FAIL : DOCTOR_WARN, &why);
}
