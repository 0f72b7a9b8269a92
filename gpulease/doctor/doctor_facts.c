#include <ctype.h>

#include "doctor_facts.h"

/* --- the driver -------------------------------------------------------------------- */

/*
 * Returns the first word that is a number with a point in it: after "Kernel Module" in all forms.
 */
bool driver_version(const char *text, char *out, size_t size)
{
	for (const char *word = text; *word && *word != '\n';) {
		size_t length = strcspn(word, " \t\n");
		size_t digits = strspn(word, "0123456789.");

		if (length && digits == length && isdigit((unsigned char)*word) &&
			memchr(word, '.', length)) {
			(void)snprintf(out, size, "%.*s", (int)length, word);
			return true;
		}
		word += length;
		word += strspn(word, " \t");
	}
	return false;
}

/* A remedy for each trouble with ->part in its text, in upper or lower case. */
struct known_trouble {
	const char *part, *remedy;
};

static const char *trouble_remedy(
	const struct known_trouble *known, size_t count, const char *trouble)
{
	for (size_t i = 0; i < count; i++)
		if (strcasestr(trouble, known[i].part))
			return known[i].remedy;
	return "";
}

const char *driver_remedy(const char *trouble)
{
	static const struct known_trouble known[] = {
		{ "mismatch",
			"the driver was updated under a running kernel module: reboot, or "
			"reload the nvidia modules when no process uses a GPU" },
		{ "communicate",
			"load the driver: modprobe nvidia; after an update of the kernel "
			"install the driver again" },
		{ "did not answer",
			"look for processes in state D: ps -eo pid,stat,wchan:30,args; a "
			"reboot ends them; probe-deadline gives nvidia-smi more time" },
		{ "hangs and cannot be ended", "a reboot ends it" },
		{ "No devices", "check whether the kernel sees any: lspci -d 10de:" },
		{ "No such file",
			"install the NVIDIA driver, or name the program as nvidia-smi in "
			"/etc/gpulease.conf" },
		{ "Permission denied", "make it executable for all users: chmod a+rx" },
	};

	return trouble_remedy(known, ARRAY_SIZE(known), trouble);
}

void gpu_remedy(const char *trouble, int index, char *out, size_t size)
{
	static const struct known_trouble known[] = {
		{ "lost", "reboot, and look for Xid errors in dmesg" },
		{ "fallen off", "reboot, and look for Xid errors in dmesg" },
		{ "reset", "RESET" },
		{ "ERR", "RESET" },
	};
	const char *remedy = trouble_remedy(known, ARRAY_SIZE(known), trouble);

	if (strcmp(remedy, "RESET") == 0 && index >= 0)
		(void)snprintf(out, size,
			"when no process uses it: nvidia-smi --gpu-reset -i %d, or reboot",
			index);
	else if (strcmp(remedy, "RESET") == 0)
		(void)snprintf(out, size, "reboot");
	else
		(void)snprintf(out, size, "%s", remedy);
}

/* --- the system -------------------------------------------------------------------- */

bool kernel_is_at_least(const char *release, unsigned major, unsigned minor)
{
	unsigned is_major = 0, is_minor = 0;

	if (sscanf(release, "%u.%u", &is_major, &is_minor) != 2)
		return false;
	return is_major > major || (is_major == major && is_minor >= minor);
}

bool line_hides_processes(const char *line, char *out, size_t size)
{
	static const char key[] = "hidepid=";
	char place[64];
	const char *options = strstr(line, " - proc ");
	const char *value;

	/* other mounts of proc, such as those of sandboxes, do not matter here */
	if (!options || sscanf(line, "%*s %*s %*s %*s %63s", place) != 1 ||
		strcmp(place, "/proc") != 0)
		return false;
	value = strstr(options, key);
	if (!value)
		return false;
	value += sizeof(key) - 1;
	(void)snprintf(out, size, "%.*s", (int)strcspn(value, ", \n"), value);
	return out[0] && strcmp(out, "0") != 0 && strcmp(out, "off") != 0;
}

const char *file_system_name(uint32_t magic, bool *ret_is_local)
{
	static const struct {
		uint32_t magic;
		const char *name;
		bool is_remote;
	} known[] = {
		{ 0xef53, "ext2, ext3 or ext4", false },
		{ 0x01021994, "tmpfs", false },
		{ 0x58465342, "XFS", false },
		{ 0x9123683e, "Btrfs", false },
		{ 0x2fc12fc1, "ZFS", false },
		{ 0xf2f52010, "F2FS", false },
		{ 0xca451a4e, "bcachefs", false },
		{ 0x794c7630, "overlay", false },
		{ 0x6969, "NFS", true },
		{ 0xff534d42, "CIFS", true },
		{ 0xfe534d42, "SMB", true },
		{ 0x517b, "SMB", true },
		{ 0x65735546, "FUSE", true },
		{ 0x01021997, "9p", true },
		{ 0x5346414f, "AFS", true },
		{ 0x6b414653, "AFS", true },
		{ 0x73757245, "Coda", true },
		{ 0x00c36400, "Ceph", true },
		{ 0x0bd00bd0, "Lustre", true },
		{ 0x47504653, "GPFS", true },
	};

	*ret_is_local = true;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].magic == magic) {
			*ret_is_local = !known[i].is_remote;
			return known[i].name;
		}
	return "";
}

bool space_is_short(uint64_t bytes, uint64_t inodes, uint64_t all_inodes)
{
	return bytes < 1024 * 1024 || (all_inodes && inodes < 100);
}

/* --- the state directory ----------------------------------------------------------- */

static void remedy_add_command(struct text *out, const char *command, const char *path)
{
	text_addf(out, "%s%s %s", out->used ? " && " : "", command, path);
}

void directory_remedy(const struct stat *st, const char *path,
	const struct directory_users *users, struct text *out)
{
	char chgrp[80];

	(void)snprintf(chgrp, sizeof(chgrp), "chgrp %s", users->group);
	if (users->is_hardened && st->st_uid != 0)
		remedy_add_command(out, "chown root", path);
	if (users->is_hardened && st->st_gid != users->lent)
		remedy_add_command(out, chgrp, path);
	if (users->is_hardened && (st->st_mode & 07777) != 02770)
		remedy_add_command(out, "chmod 2770", path);
	if (users->is_hardened)
		return;
	if (st->st_mode & S_IWOTH)
		remedy_add_command(out, "chmod o-w", path);
	if ((st->st_mode & S_IWGRP) && !(st->st_mode & S_ISGID))
		remedy_add_command(out, "chmod g+s", path);
	if (!(st->st_mode & S_IWGRP) && st->st_uid != users->uid)
		remedy_add_command(out, "chmod 2770", path);
	/* the directory is in order, but this user is not in its group */
	if (!out->used)
		text_addf(out, "usermod -aG %s %s, and log in again", users->group,
			users->user);
}

const char *state_file_trouble(
	const struct stat *st, mode_t type, const struct stat *directory)
{
	mode_t needed = type == S_IFDIR ? 0070 : 0060;

	if ((st->st_mode & S_IFMT) != type)
		return type == S_IFDIR ? "is no folder" : "is no regular file";
	if (type == S_IFREG && st->st_nlink > 1)
		return "has another hard link";
	if (!(directory->st_mode & S_IWGRP))
		return st->st_uid != directory->st_uid ? "belongs to another user" : NULL;
	if (st->st_gid != directory->st_gid)
		return "does not have the group of the directory";
	if (st->st_mode & S_IRWXO)
		return "is open to everybody";
	if ((st->st_mode & needed) != needed)
		return "is closed to the group of the directory";
	return NULL;
}
