/*
 * The checks of --doctor: what they look at, and one function for each.
 *
 *	doctor_examine -> the checks, in any order -> doctor_release
 *
 * Whatever can fail is tried apart from the rest, so that one trouble hides no other.  Nothing
 * is changed but the shared result of nvidia-smi (and, as by every gpulease, missing folders
 * of the state directory are made); no lock is taken.  It takes no longer than one nvidia-smi
 * may.
 */
#ifndef GPULEASE_DOCTOR_CHECKS_H
#define GPULEASE_DOCTOR_CHECKS_H

#include <sys/stat.h>

#include "doctor.h"
#include "look.h"
#include "setid.h"

struct doctor {
	struct settings *settings;
	struct context context;
	struct doctor_report report;

	struct why config_trouble, directory_trouble, view_trouble; /* "": none */
	enum setid_state
		setid; /* before the group was given up for a directory of one's own */
	gid_t setid_group;
	int directory_error; /* -errno; then it is not open */

	/* the directory that is used or was to be; "" unknown */
	char path[PATH_MAX];
	bool has_stat;
	struct stat stat;

	bool has_run; /* nvidia-smi was run now, whatever it said, and took … */
	int64_t run_ms;
	bool has_view; /* the state was read and judged */
	struct look look;
};

/* Opens and reads what the checks look at. */
void doctor_examine(struct doctor *doctor, struct settings *settings);
void doctor_release(struct doctor *doctor);

/* What nvidia-smi said now, NULL where it failed or was not asked. */
const struct probe *doctor_probe(const struct doctor *doctor);

/* The name of a group without asking a name service; its number where it has none. */
void local_group_name(gid_t gid, char *out, size_t size);

void check_configuration(struct doctor *doctor);
void check_directory(struct doctor *doctor);
void check_setid(struct doctor *doctor);

void check_file_system(struct doctor *doctor);
void check_space(struct doctor *doctor);
void check_kernel(struct doctor *doctor);
void check_pidfd(struct doctor *doctor);
void check_proc(struct doctor *doctor);
void check_container(struct doctor *doctor);
void check_slurm(struct doctor *doctor);

void check_nvidia_smi(struct doctor *doctor);
void check_driver(struct doctor *doctor);
void check_gpus(struct doctor *doctor);
void check_compute_mode(struct doctor *doctor);
void check_outside_use(struct doctor *doctor);

void check_files(struct doctor *doctor);
void check_locks(struct doctor *doctor);
void check_leases(struct doctor *doctor);
void check_pauses(struct doctor *doctor);
void check_queue(struct doctor *doctor);
void check_history(struct doctor *doctor);
void check_litter(struct doctor *doctor);

#endif
