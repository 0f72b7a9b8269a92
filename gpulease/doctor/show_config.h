/*
 * --show-config: the configuration in force and the source of each value, as lines that are valid
 * configuration again, and as JSON.
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

#include "doctor_state.h"

/* Prints it, by what gpulease has told.  Returns the exit status. */
int show_config(const struct settings *settings, const struct doctor_state *state);

#endif
