/*
 * What gpulease tells gpulease-view for --doctor and --show-config: what only it can know.
 *
 * gpulease writes a struct doctor_state and then ->item_count structs doctor_item to a file in
 * memory, gives up its group, and becomes gpulease-view with that file as stdin.  gpulease-view
 * prints its checks (doctor_checks.h) or the configuration.  Both programs are of one build.
 *
 * The structs have no pointers.  They have nothing that the user may not know: what --doctor
 * prints, names of files of the state directory, and the answer of nvidia-smi.
 *
 * Each part is tried apart from the others, so that one fault does not hide another.  It takes no
 * lock.  It writes only the shared result of nvidia-smi and, like every gpulease, makes missing
 * folders of the state directory.  It takes no longer than one nvidia-smi may.
 */
#ifndef GPULEASE_DOCTOR_STATE_H
#define GPULEASE_DOCTOR_STATE_H

#include <limits.h>
#include <sys/stat.h>

#include "history.h"
#include "probe_data.h"
#include "setid.h"
#include "settings.h"

enum { DOCTOR_FILES_TOLD = 16 }; /* bad files with an item each; ->bad_files counts all */

struct doctor_state {
	char version[16]; /* of gpulease */
	size_t item_count;

	unsigned sim_gpus;
	char config_file[PATH_MAX];                                 /* that is read */
	bool has_config;                                            /* it exists */
	unsigned keys;                                              /* that it sets */
	struct why config_trouble, directory_trouble, view_trouble; /* "": none */

	/* as they were before opening a private directory gave the group up */
	enum setid_state setid;
	gid_t setid_group;

	char shared[PATH_MAX]; /* the state directory by the configuration */
	char path[PATH_MAX];   /* of the directory in use, open or not; "": unknown */
	int directory_error;   /* a negative errno: the directory is not open; 0: it is */
	bool is_named;         /* the user names the directory */
	bool is_copy; /* this is a copy, without the bit, of the installed program */
	bool is_fallback, is_hardened, is_private;
	bool sees_host;   /* it is that of the host of this container */
	bool lacks_holes; /* its file system cannot free blocks inside a file */
	bool has_stat;    /* ->stat is that of ->path */
	struct stat stat;

	bool has_allocation, is_allocation_short; /* of Slurm; it has no GPUs here */
	char allocation[480];                     /* in words; "": there is none */

	char nvidia_smi[PATH_MAX]; /* "": not found */
	bool is_searched;          /* in $PATH, unless the configuration names it */
	bool has_run;              /* it was run now, whatever it answered */
	int64_t run_ms;            /* how long that took */
	struct probe probe;

	unsigned files, bad_files;
	unsigned slotless; /* GPUs without a slot */
	unsigned locked;   /* lease files */
	unsigned live;     /* leases */
	unsigned litter;
	bool has_view; /* what follows, the items and the numbers above are known */
	size_t waiting;
	bool has_more_waiting, has_broken_ticket;
	int history_error;
	struct history_gap gap;
	size_t windows_broken; /* records of `gpu/windows` that cannot be read */
	size_t usage_broken;   /* records of the file `usage` that cannot be read */
};

enum doctor_item_kind {
	DOCTOR_FILE,     /* ->text is bad, by ->stat; it should be a ->type */
	DOCTOR_UNUSABLE, /* the slot ->number leads to no lease file */
	DOCTOR_WITHHELD, /* the lease file of ->gpu is damaged, and a lease was lost */
	DOCTOR_DAMAGED,  /* it is damaged, but none was lost */
	DOCTOR_MISSING,  /* nvidia-smi no longer lists ->gpu */
	DOCTOR_LOCK,     /* the process ->pid, ->text, has locked ->gpu */
	DOCTOR_LINGERS,  /* the job ->number has ended, but lingers */
	/* the job ->number belongs to a process of another pid namespace that may have ended */
	DOCTOR_UNSEEN,
	DOCTOR_PAUSE,    /* ->gpu is paused by ->by, for the reason ->text or "" */
	DOCTOR_INTRUDER, /* ->gpu of the job ->number is used by the process ->pid, ->text */
	DOCTOR_OUTSIDE, /* what uses ->gpu, ->text */
};

struct doctor_item {
	enum doctor_item_kind kind;
	uint32_t pid;
	uint64_t number;
	struct stat stat;
	mode_t type;
	char gpu[80], by[64], text[320];
};

/*
 * Finds out everything and writes it to @fd, which is at its beginning; for --show-config without
 * the GPUs, and outside of Slurm without opening a directory, which may be what does not work.
 * Returns the state, for the messages in it; what cannot be written, gpulease-view notices.
 */
const struct doctor_state *doctor_state_tell(struct settings *settings, int fd);

#endif
