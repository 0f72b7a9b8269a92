/*
 * The lines of squeue: the format of -o, and times as Slurm writes them.  Pure, except that the
 * time zone is the user's, and that users and groups have their names and numbers.
 */
#ifndef GPULEASE_SLURM_FORMAT_H
#define GPULEASE_SLURM_FORMAT_H

#include "slurm_jobs.h"

/*
 * Appends the line of @job in @jobs that @format asks for, or with NULL the headings.  A field is a
 * `%`, perhaps a `.` to align to the right, perhaps a width, and a letter; the rest of the format
 * stands for itself.  So does a field that has no letter, or one that is not known.  A `%` before
 * another one or at the end means nothing, as with Slurm.
 */
void slurm_format_line(const char *format, const struct slurm_jobs *jobs,
	const struct slurm_job *job, struct text *out);

/*
 * Finds the next field of *@format that stands for itself, and moves *@format behind it.  Returns
 * its letter, 0 if it has none, or -1: there is no such field.
 */
int slurm_format_next_unknown(const char **format);

/* Appends what the job waits for: afterany:7(unfulfilled), or (null). */
void slurm_format_dependency(const struct slurm_job *job, struct text *out);

/* Appends a span as squeue does: 0:07, 1:02:03, 4-00:00:00; if @is_long as scontrol: 00:00:07. */
void slurm_format_span(int64_t ms, bool is_long, struct text *out);

/* Appends a time, 2026-11-23T19:07:26, or @if_none if it is not known. */
void slurm_format_time(int64_t unix_ms, const char *if_none, struct text *out);

#endif
