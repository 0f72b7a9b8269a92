/*
 * The state directory: which one, whether it can be trusted, and the folders in it.
 *
 *	tickets  gpu/  live/  bell/  probe  probe.lock  topology  topology.lock  history  history.1
 *
 * and for simulated GPUs sim/ (sim_memory.h).
 *
 * A name in the directory or in a folder is opened relative to the descriptor of that directory
 * or folder, and never contains a slash.  A folder is opened once, with O_NOFOLLOW, and checked
 * like the directory.  So a symbolic link in the place of a folder leads no write elsewhere.
 *
 * The shared directory is made by the installation, never by gpulease; only where none exists
 * a private one of the user's is made and used.  A directory that exists and cannot be used
 * is an error, never a private queue beside the shared one.
 */
#ifndef GPULEASE_STATEDIR_H
#define GPULEASE_STATEDIR_H

#include <limits.h>
#include <sys/types.h>

#include "owner.h"
#include "text.h"

/* What the choice rests on; the environment is read by the caller.  NULL or "": not set. */
struct statedir_choice {
	const char *explicit_path; /* $GPULEASE_DIR */
	const char *system_path;   /* the machine's: /var/lib/gpulease */
	bool is_hardened;          /* its group is lent to everybody: root's and closed */
	const char *state_home;    /* $XDG_STATE_HOME */
	const char *home;          /* the user's: $HOME, or of the list of users */
	unsigned sim_gpus; /* 0: the real GPUs; else a private directory for so many … */
	uint64_t sim_mib;  /* … simulated ones of this size */
	const char
		*allocation; /* the name of a private directory for a Slurm allocation */
	bool is_shared_only; /* STATEDIR_MISSING if a private one would be used */
	bool must_exist;     /* -ENOENT if it does not exist: nothing is made */
};

struct statedir {
	int fd; /* -1 while not open, like those of its three folders */
	int gpu_fd, live_fd, bell_fd;
	uid_t owner;
	bool is_private;  /* one user's: coordinates nobody else */
	bool is_fallback; /* … because there is no shared one */
	bool is_new;      /* a private one that this process has made */
	bool is_hardened; /* nobody but gpulease itself gets at the files */
	char boot[BOOT_SIZE];
	uint64_t pidns;         /* the pid namespace of this process */
	uint64_t history_bytes; /* at which it is put aside, 0: its default; caller's */
	uint64_t view; /* another where other GPUs are seen, see probe.h; caller's */
	char path[PATH_MAX];
};

#define STATEDIR_NONE \
	((struct statedir){ .fd = -1, .gpu_fd = -1, .live_fd = -1, .bell_fd = -1 })

/*
 * Chooses, opens and checks the directory, and makes the missing folders in it.
 * 0, STATEDIR_MISSING, or a negative errno with the reason in @why.
 *
 * The directory of a Slurm allocation is removed after the end of the Slurm job
 * (old_allocations.h).  So ->fd of such a directory holds a shared flock(2) until it is closed.  If
 * the directory was removed before it was locked, it is made again.
 */
enum { STATEDIR_MISSING = 1 };

MUST_CHECK int statedir_open(
	const struct statedir_choice *choice, struct statedir *dir, struct why *why);

/*
 * Opens the folders of a directory of which only ->fd is open.  0 or a negative errno with the
 * reason in @why.
 */
MUST_CHECK int statedir_open_folders(struct statedir *dir, struct why *why);

/*
 * Follows folders that were replaced: the descriptors of @dir keep their numbers and lead to the
 * folders that have the names now.  A name that is no good folder changes nothing.
 */
void statedir_refresh(const struct statedir *dir);

/*
 * Makes folders that were removed, and follows them.  0, -ESTALE: the directory itself is gone,
 * or -errno.
 */
MUST_CHECK int statedir_repair(const struct statedir *dir);

void statedir_release(struct statedir *dir);

/* The name of the file system that @fd lies on, where other machines may use it; else NULL. */
const char *statedir_unshared_name(int fd);

#endif
