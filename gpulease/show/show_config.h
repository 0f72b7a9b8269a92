/*
 * --show-config: the configuration in force and the source of each value, as lines that are valid
 * configuration again, and as JSON.  Pure.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-config/1"
 *	file                string | null: the file that was read; null: there is none
 *	simulated           boolean: with --sim neither directory nor nvidia-smi is used
 *	config              object: for each key an object
 *	    value           string | null: as it may stand in the file; null: not set
 *	    source          string: "default", "FILE, line N", "--dir", "GPULEASE_DIR",
 *	                    "SLURM_JOB_ID", "found in PATH", "not found in PATH", "not
 *	                    looked for"
 *	limits_line         number | null: the line [limits]; null: there is none
 *	own_limits          object | null: what binds this user, as ->config has it for the
 *	                    keys user-gpus, user-jobs, max-time, default-time and
 *	                    max-priority; null: [limits] is missing, or the user is root
 *	unknown_names       array of numbers: lines of [limits] whose name has no number
 *	models_line         number | null: the first line after [models]; null: there is none
 */
#ifndef GPULEASE_SHOW_CONFIG_H
#define GPULEASE_SHOW_CONFIG_H

#include <stdio.h>

#include "user_limits.h"

struct config_view {
	const struct config *config;
	/* with the limits of [limits] for this process; NULL: it is root, or there are none */
	const struct config *own;
	const struct limits_process *process; /* this one, as the lines see it */
	const char *file;      /* that was read, or would be if it existed */
	bool has_file;         /* it exists */
	const char *directory; /* that the user has named instead, absolute; NULL: none */
	const char *directory_by; /* "--dir", "GPULEASE_DIR" or "SLURM_JOB_ID" */
	const char
		*nvidia_smi; /* that is used if none is configured; "": none was found */
	bool is_searched;    /* ->nvidia_smi was searched for in $PATH */
	bool is_simulated;
};

void show_config(const struct config_view *view, FILE *out);
void show_config_json(const struct config_view *view, int64_t now_ms, FILE *out);

#endif
