/*
 * Why a job of Slurm waits, in the words of gpulease.  Pure.
 */
#ifndef GPULEASE_SLURM_REASON_H
#define GPULEASE_SLURM_REASON_H

#include "text.h"

struct slurm_reason {
	const char *name;  /* "Resources" */
	const char *kind;  /* as the member reason_kind of the JSON */
	const char *words; /* "waits for GPUs"; NULL: ->name itself is shown */
	bool is_for_ever;  /* the job can never start as it is */
};

/*
 * Returns the reason @name, behind which squeue may write details; a reason that is not known has
 * the kind "limit" and no words.
 */
const struct slurm_reason *slurm_reason_find(const char *name);

/* Appends the reason in words; "Slurm says NAME" if there are none. */
void slurm_reason_add(const char *name, struct text *out);

#endif
