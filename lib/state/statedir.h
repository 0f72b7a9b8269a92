/*
 * The state directory: which one, whether it can be trusted, and the folders in it.
 *
 *	tickets  gpu/  live/  bell/  probe  probe.lock  topology  topology.lock
 *	history  history.1  history.2
 *
 * and for simulated GPUs sim/ (sim_memory.h).
 *
 * A name in the directory or in a folder is opened relative to the descriptor of that directory
 * or folder, and never contains a slash.  A folder is opened once, with O_NOFOLLOW, and checked
 * like the directory.  So a symbolic link in the place of a folder leads no write elsewhere.
 *
 * The installation makes the shared directory; gpulease never does.  Only if there is no shared
 * directory does gpulease make and use a private one of the user.  A directory that exists but
 * cannot be used is an error: a private queue beside the shared one would lease GPUs twice.
 */
#ifndef GPULEASE_STATEDIR_H
#define GPULEASE_STATEDIR_H

#include <limits.h>
#include <sys/types.h>

#include "owner.h"
#include "text.h"

/* What the choice rests on.  The caller reads the environment.  NULL or "": not set. */
struct statedir_choice {
	const char *explicit_path; /* $GPULEASE_DIR */
	const char *system_path;   /* of the machine: /var/lib/gpulease */
	bool is_hardened;       /* only the program's group may enter the system path */
	const char *state_home; /* $XDG_STATE_HOME */
	const char *home;       /* $HOME, or the home in the list of users */
	unsigned sim_gpus; /* for a directory of so many simulated GPUs; 0: real GPUs */
	uint64_t sim_mib;  /* the memory of each simulated GPU */
	const char *allocation; /* name of the private directory of a Slurm allocation */
	bool is_shared_only;    /* STATEDIR_MISSING instead of a private directory */
	bool must_exist; /* make nothing; -ENOENT if the directory does not exist */
};

struct statedir {
	int fd;                       /* -1 while not open */
	int gpu_fd, live_fd, bell_fd; /* of its three folders; -1 while not open */
	uid_t owner;
	bool is_private;  /* it coordinates the jobs of one user only */
	bool is_fallback; /* it is private because there is no shared one */
	bool is_new;      /* it is private and this process has made it */
	bool is_hardened; /* users reach the files only through gpulease */
	char boot[BOOT_SIZE];
	uint64_t pidns; /* the pid namespace of this process */
	/* the caller sets these three */
	uint64_t history_bytes; /* size at which the history is renamed, 0: the default */
	bool counts_usage; /* the ends of leases count for fair-share (gpu_hours.h) */
	uint64_t view;     /* differs where a process sees other GPUs, see probe.h */
	char path[PATH_MAX];
};

#define STATEDIR_NONE \
	((struct statedir){ .fd = -1, .gpu_fd = -1, .live_fd = -1, .bell_fd = -1 })

/* MISSING: there is no shared directory, and the caller allows no private one. */
enum statedir_outcome { STATEDIR_MISSING = 1 };

/*
 * Chooses, opens and checks the directory, and makes the missing folders in it.  Returns 0,
 * STATEDIR_MISSING, or a negative errno with the reason in @why.
 *
 * The directory of a Slurm allocation is removed after the end of the Slurm job
 * (slurm_old_directories.h).  So ->fd of such a directory holds a shared flock(2) until it is
 * closed.  If the directory was removed before it was locked, it is made again.
 */
MUST_CHECK int statedir_open(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why);

/*
 * Opens the folders of @dir; ->fd is open.  Returns 0 or a negative errno with the reason in @why.
 */
MUST_CHECK int statedir_open_folders(struct statedir *dir, struct why *why);

/*
 * Opens folders again that were replaced.  The descriptors of @dir keep their numbers and then lead
 * to the folders that have the names now.  A folder that cannot be trusted is not opened.
 */
void statedir_refresh(const struct statedir *dir);

/*
 * Makes folders that were removed, and opens them.  If the directory itself was removed, goes on in
 * the one that has its path now.  Returns 0, -ESTALE (there is none yet), or another negative
 * errno.
 */
MUST_CHECK int statedir_repair(const struct statedir *dir);

void statedir_release(struct statedir *dir);

/*
 * Finds a directory of this machine for the effective user alone, /var/tmp/gpulease-UID, and makes
 * it unless it @must_exist.  Another user may have taken the name; then it is -UID.1 to -UID.9, and
 * last /run/user/UID/gpulease, which ends with the login.  One that the user has already comes
 * first, so that all processes of the user find the same one.  Returns 0 with @out and
 * *@ret_is_new, -EACCES (other users have all of the names), or another negative errno.
 */
MUST_CHECK int statedir_find_local(bool must_exist, char out[PATH_MAX], bool *ret_is_new);

/* Returns the name of the file system of @fd if other machines may use it, too; else NULL. */
const char *statedir_unshared_name(int fd);

#endif
