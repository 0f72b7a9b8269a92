/*
 * The pure parts of the checks of --doctor: texts and numbers of the system in, names, judgements
 * and remedies out.
 */
#ifndef GPULEASE_DOCTOR_FACTS_H
#define GPULEASE_DOCTOR_FACTS_H

#include <sys/stat.h>

#include "text.h"

/* Finds the version in the text of /proc/driver/nvidia/version; false if there is none. */
bool driver_version(const char *text, char *out, size_t size);

/*
 * Returns what the user can do about @trouble, the reason why nvidia-smi shows no GPU (probe.h);
 * "" if that is unknown.
 */
const char *driver_remedy(const char *trouble);

/*
 * Sets @out to what the user can do about @trouble of one GPU, "" if that is unknown; @index is
 * nvidia-smi's, or negative.
 */
void gpu_remedy(const char *trouble, int index, char *out, size_t size);

/* Whether @release, as uname(2) returns it, is Linux @major.@minor or newer. */
bool kernel_is_at_least(const char *release, unsigned major, unsigned minor);

/*
 * Whether @line of /proc/self/mountinfo is the mount of /proc, with hidepid in force; then @out is
 * its value: "2", "invisible" …
 */
bool line_hides_processes(const char *line, char *out, size_t size);

/*
 * Returns the name of the file system with that magic number, "" if it is unknown.  *@ret_is_local:
 * locks work on it, as on every file system that is not known to be remote.
 */
const char *file_system_name(uint32_t magic, bool *ret_is_local);

/* Whether the free space is too small.  @all_inodes is 0 on a file system without inodes. */
bool space_is_short(uint64_t bytes, uint64_t inodes, uint64_t all_inodes);

/* The users that must be able to use the state directory. */
struct directory_users {
	bool is_hardened;  /* all users, through the group @lent that the program lends */
	gid_t lent;        /* only if ->is_hardened */
	const char *group; /* the name of ->lent, or of the directory's group */
	uid_t uid;         /* this user */
	const char *user;  /* its name */
};

/*
 * Appends the commands that let @users use the directory @path, which could not be used.  @st is
 * its stat.
 */
void directory_remedy(const struct stat *st, const char *path,
	const struct directory_users *users, struct text *out);

/*
 * Returns what is wrong with @st, which must be a file or folder (@type: S_IFREG, S_IFDIR) in the
 * state directory; @directory is the stat of that directory.  Returns NULL if nothing is wrong.
 */
const char *state_file_trouble(
	const struct stat *st, mode_t type, const struct stat *directory);

#endif
