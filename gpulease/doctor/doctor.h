/*
 * What the checks of --doctor look at: the configuration, the state directory, the answer of
 * nvidia-smi, the queue and the leases.
 *
 *	doctor_examine -> doctor_check_all (doctor_checks.h) -> doctor_release
 *
 * doctor_examine() tries each part apart from the others, so that one fault does not hide another.
 * It takes no lock.  It writes only the shared result of nvidia-smi and, like every gpulease, makes
 * missing folders of the state directory.  It takes no longer than one nvidia-smi may.
 */
#ifndef GPULEASE_DOCTOR_H
#define GPULEASE_DOCTOR_H

#include <sys/stat.h>

#include "doctor_report.h"
#include "setid.h"
#include "state_reader.h"

struct doctor {
	struct settings *settings;
	struct context context;
	struct doctor_report report;

	struct why config_trouble, directory_trouble, view_trouble; /* "": none */
	/* as they were before opening a private directory gave the group up */
	enum setid_state setid;
	gid_t setid_group;
	int directory_error; /* a negative errno: the directory is not open; 0: it is */

	char path[PATH_MAX]; /* of the directory, open or not; "": unknown */
	bool has_stat;       /* ->stat is that of ->path */
	struct stat stat;

	bool has_run;   /* nvidia-smi was run now, whatever it answered */
	int64_t run_ms; /* how long that took */
	bool has_view;  /* ->reader has read and judged the state */
	struct state_reader reader;
};

/* Opens and reads everything that the checks look at.  What fails is recorded in *@doctor. */
void doctor_examine(struct doctor *doctor, struct settings *settings);
void doctor_release(struct doctor *doctor);

/* Returns what nvidia-smi has answered now; NULL if it failed or was not run. */
const struct probe *doctor_probe(const struct doctor *doctor);

#endif
