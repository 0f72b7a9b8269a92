/*
 * Which state directory this process uses.
 *
 * In this order: the one that --dir or GPULEASE_DIR names; in a Slurm allocation one of its own,
 * unless the configuration says `slurm-allocation = shared` or this process belongs to a lease
 * outside of it; the shared directory of the machine; and if there is none, a private one of the
 * user.  Simulated GPUs always have a private one.
 */
#ifndef GPULEASE_DIRECTORY_CHOICE_H
#define GPULEASE_DIRECTORY_CHOICE_H

#include "context.h"

/*
 * Chooses and opens ->dir, after context_load_config().  Drops the group of a set-group-ID program
 * unless the shared directory is used.  Removes old directories of this user's Slurm jobs
 * (slurm_old_directories.h).  Returns 0, or a negative errno with the message in @why.
 */
MUST_CHECK int directory_choice_open(struct context *context, struct why *why);

/*
 * Notes on stderr which jobs of the machine the directory does not coordinate, and with -v which
 * directory is used in a Slurm allocation.
 */
void directory_choice_note(const struct context *context);

/*
 * Appends which directory is used in a Slurm allocation, why, and which GPUs the allocation has.
 * Appends nothing outside of one.
 */
void directory_choice_explain_slurm(const struct context *context, struct text *out);

#endif
