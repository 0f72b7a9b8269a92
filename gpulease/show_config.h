/*
 * The configuration in force, with where each value comes from: as lines that are valid
 * configuration again, and as JSON.  Pure.
 *
 * JSON, an object (see show.h for what holds of all of them):
 *	format              "gpulease-config/1"
 *	file                string | null: the file that was read; null: there is none
 *	simulated           boolean: with --sim neither directory nor nvidia-smi is used
 *	config              object: for each key an object
 *	    value           string | null: as it may stand in the file; null: not set
 *	    source          string: "default", "FILE, line N", "--dir", "GPULEASE_DIR",
 *	                    "SLURM_JOB_ID", "found in PATH", "not found in PATH", "not
 *	                    looked for"
 *	models_line         number | null: the first line behind [models]; null: it is not there
 */
#ifndef GPULEASE_SHOW_CONFIG_H
#define GPULEASE_SHOW_CONFIG_H

#include <stdio.h>

#include "config.h"

struct config_view {
	const struct config *config;
	const char *file;         /* that it was or would be read from */
	bool has_file;            /* it is there */
	const char *directory;    /* named by the user instead, absolute; NULL: not */
	const char *directory_by; /* "--dir", "GPULEASE_DIR" or "SLURM_JOB_ID" */
	const char *nvidia_smi;   /* that is used if none is configured; "": none */
	bool is_searched;         /* that one was looked for in $PATH */
	bool is_simulated;
};

void show_config(const struct config_view *view, FILE *out);
void show_config_json(const struct config_view *view, FILE *out);

#endif
