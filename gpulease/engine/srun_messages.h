/*
 * What srun -v prints on its stderr: how far the job is, and what went wrong.  Pure.
 *
 * The texts are those of Slurm 20 to 24.  A line that is not known is never an error: the state of
 * the job decides in the end.
 */
#ifndef GPULEASE_SRUN_MESSAGES_H
#define GPULEASE_SRUN_MESSAGES_H

#include "text.h"

enum srun_line_kind {
	SRUN_INFO,      /* nothing that a user needs to know */
	SRUN_QUEUED,    /* the job waits; ->job */
	SRUN_ALLOCATED, /* it has its nodes; ->job */
	SRUN_LAUNCHING, /* its step is being started; ->job, ->step */
	SRUN_STARTED,   /* tasks run on a node */
	SRUN_TASK,      /* a task has failed: ->text says which, and how */
	SRUN_CANCELLED, /* the step or the job was ended by Slurm */
	SRUN_BUSY,      /* an error: there is no room now */
	SRUN_ERROR,     /* another error: ->text */
	SRUN_OTHER,     /* a line of another program */
};

struct srun_line {
	enum srun_line_kind kind;
	uint64_t job; /* 0: the line does not name it */
	uint64_t step;
	const char *text; /* in the line itself */
};

struct srun_line srun_line_read(const char *line);

/*
 * Removes the lines from @bytes by which Slurm says in the stderr of a command that it ends the
 * step; the caller says so itself.  @begins_line, true at first, is kept between calls.  Returns
 * the new size.
 */
size_t srun_remove_ends(char *bytes, size_t size, bool *begins_line);

#endif
