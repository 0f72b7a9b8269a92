/*
 * What --doctor makes of what it read: numbers and texts of the system into words.  Pure.
 */
#ifndef GPULEASE_DOCTOR_FACTS_H
#define GPULEASE_DOCTOR_FACTS_H

#include <sys/stat.h>

#include "text.h"

/* The version in the text of /proc/driver/nvidia/version; false where none is found. */
bool driver_version(const char *text, char *out, size_t size);

/*
 * What helps where nvidia-smi says @trouble, as probe.h has it.  "" where nothing is known
 * to.
 */
const char *driver_remedy(const char *trouble);

/* The same for what it says of one GPU; @index is nvidia-smi's. */
void gpu_remedy(const char *trouble, int index, char *out, size_t size);

/* Whether @release, as uname(2) has it, is Linux @major.@minor or newer. */
bool kernel_is_at_least(const char *release, unsigned major, unsigned minor);

/*
 * Whether the line @line of /proc/self/mountinfo is that of /proc, with hidepid in force;
 * then @out is its value: "2", "invisible" …
 */
bool line_hides_processes(const char *line, char *out, size_t size);

/* The name of the file system with that magic, "" unknown; whether its locks are local. */
const char *file_system_name(uint32_t magic, bool *ret_is_local);

/* Whether so much free space will not do.  A file system without inodes has 0 in all. */
bool space_is_short(uint64_t bytes, uint64_t inodes, uint64_t all_inodes);

/* Who is to use the state directory. */
struct directory_users {
	bool is_hardened; /* everybody, by the group that the program lends: @lent */
	gid_t lent;
	const char
		*group; /* the name of that; in the other forms of the directory's own */
	uid_t uid;      /* this user … */
	const char *user; /* … by name */
};

/*
 * Appends to @out the commands that make the directory @path, which is @st and could not be
 * used, fit for @users.
 */
void directory_remedy(const struct stat *st, const char *path,
	const struct directory_users *users, struct text *out);

/*
 * What is wrong with @st, a file or folder (S_IFREG, S_IFDIR) of the state directory that is
 * @directory; NULL: nothing.
 */
const char *state_file_trouble(
	const struct stat *st, mode_t type, const struct stat *directory);

#endif
