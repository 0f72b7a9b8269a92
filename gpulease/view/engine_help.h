/*
 * --help=slurm: what becomes of each option on a Slurm cluster, printed from the table
 * cli/engine_options.c.  The caller checks @out for errors.
 */
#ifndef GPULEASE_ENGINE_HELP_H
#define GPULEASE_ENGINE_HELP_H

#include <stdio.h>

#include "option_table.h"

/* Prints the first lines; then a call of engine_help_print_group() for each group follows. */
void engine_help_print_title(FILE *out);

/*
 * Prints @title and the options of @group.  Options of the group with the same text share
 * one entry.
 */
void engine_help_print_group(unsigned group, const char *title, FILE *out);

/*
 * Prints what becomes of @def, for checks: "job --NAME" (an option of srun and sbatch), "step
 * --NAME" (of srun), "self", "refuse" or "ignore", a tab, and what follows the option on a cluster:
 * none, optional or required.
 */
void engine_help_print_fields(const struct option_def *def, FILE *out);

#endif
