/*
 * An entry of a batch as a job of Slurm: the file NUMBER.slurm in the folder of the logs.  It says
 * what to submit, and which job of Slurm was submitted.
 *
 * The token of the job is in the file before sbatch is called.  So a process that was killed at any
 * moment leaves a file by which the next one finds the job, if there is one, and submits no second
 * one.  The token is removed once the end of the job is in the journal of the batch.
 *
 * A crash may leave the file of an entry that has ended.  No process reads it again; --fresh
 * removes it (engine_batch.c).
 */
#ifndef GPULEASE_ENGINE_ENTRY_H
#define GPULEASE_ENGINE_ENTRY_H

#include <limits.h>

#include "engine_submit.h"
#include "entry_words.h"

#define ENTRY_SUFFIX ".slurm"

/* Whether its job was cancelled because its batch stops. */
enum entry_stop {
	STOP_NONE,
	STOP_TRIED, /* it is not known whether Slurm has got that */
	STOP_TAKEN, /* it has */
};

struct engine_entry {
	char path[PATH_MAX];               /* absolute */
	char token[SUBMISSION_TOKEN_SIZE]; /* "": nothing was submitted */
	uint64_t id;                       /* 0: not known */
	enum entry_stop stop;
	uint64_t status; /* its exit status, once it has ended */
	uint64_t ran_s;  /* once it has ended; 0: less than a second, or not known */
	char end[24]; /* the state in which Slurm has ended the job; "": it has not, as far as known */
	char *log; /* the file for its output, absolute */
	struct entry_words words;
	char *text; /* what was read: ->log and ->words point into it */
};

#define ENGINE_ENTRY_NONE ((struct engine_entry){ .path = "" })

/*
 * Reads the file ->path.  Returns 0; ENTRY_NONE: there is no such file; or a negative errno.  The
 * other fields are set only if it returns 0.
 */
enum { ENTRY_NONE = 1 };
MUST_CHECK int entry_read(struct engine_entry *entry);

/* Replaces the file.  Returns 0 or a negative errno. */
MUST_CHECK int entry_write(const struct engine_entry *entry);

/* The next attempt is another job: removes the token, or with @is_last the file. */
void entry_forget_job(struct engine_entry *entry, bool is_last);

/*
 * Finds the job of the entry, or submits one, and sets ->id.  Returns 0; SUBMISSION_LOST after a
 * message: Slurm does not answer, so try again later; or an exit status after a message.
 */
MUST_CHECK int entry_submit(struct engine_entry *entry);

/*
 * Asks Slurm to cancel the job; with @is_waiting only if it waits.  Returns 0, or EXIT_MISUSE after
 * a message: Slurm has not taken that.
 */
MUST_CHECK int entry_cancel(const struct engine_entry *entry, bool is_waiting);

/*
 * The same for a job whose batch stops.  The file says so before, and says afterwards whether Slurm
 * has taken it: to the next runner, a job that Slurm calls cancelled was then interrupted.
 */
MUST_CHECK int entry_stop(struct engine_entry *entry);

#endif
