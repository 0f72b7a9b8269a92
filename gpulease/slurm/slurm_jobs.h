/*
 * Jobs as Slurm describes them, read from the JSON of gpulease; see gpulease-json(5).  Pure.  All
 * texts are printable.
 */
#ifndef GPULEASE_SLURM_JOBS_H
#define GPULEASE_SLURM_JOBS_H

#include "json_read.h"

/* For so long an ended job is known to squeue and scontrol, as with Slurm's MinJobAge. */
#define SLURM_MEMORY_MS INT64_C(300000)

/* In the order in which squeue lists jobs. */
enum slurm_state {
	SLURM_PENDING,
	SLURM_RUNNING,
	SLURM_COMPLETING,
	SLURM_COMPLETED,
	SLURM_CANCELLED,
	SLURM_FAILED,
	SLURM_TIMEOUT,
	SLURM_PREEMPTED,
	SLURM_OUT_OF_MEMORY,
	SLURM_NODE_FAIL,
	SLURM_STATES, /* of jobs; further rows of the table have no jobs */
};

struct slurm_state_name {
	const char *name, *letters;
	const char *word; /* of gpulease; NULL: gpulease has no such state */
};

/* Ends with a row without a name; the first SLURM_STATES rows are those of the enum. */
extern const struct slurm_state_name slurm_states[];

/* Finds the state @text, a name or its letters in either case.  Returns the row, or -1. */
int slurm_state_find(const char *text, size_t size);

/* A number or a time is -1 if it is not known. */
struct slurm_job {
	int64_t id, gpus, priority, status;
	int64_t ran_ms, limit_ms;
	/* since 1970 */
	int64_t submitted_ms, started_ms, ended_ms, starts_ms;
	int64_t held_by;     /* the id of the job that has to end first */
	size_t place;        /* in the order in which gpulease lists jobs */
	int64_t array, task; /* of a task of an array: the id of the array, the number */
	enum slurm_state state;
	bool is_lingering, is_stopped, is_on_hold;
	char name[64], user[64], command[512], log[1024], reason[16];
};

struct slurm_jobs {
	struct slurm_job *list;
	size_t count, room;
	int64_t now_ms;
	bool is_cut; /* more jobs wait */
	char host[65];
};

/*
 * Adds the jobs of what `gpulease --status`, `--status ID` or `--history` has printed, the @size
 * bytes at @text.  Of a job that @jobs has already, the latest attempt counts.  Returns 0, -ENOMEM,
 * or -EINVAL if the text is no such object.
 *
 * A task of an array is a job with the name N_i, while the same user's job N stands for the array:
 * it runs, or has run, without a GPU.  The task gets its name.
 */
MUST_CHECK int slurm_jobs_read(const char *text, size_t size, struct slurm_jobs *jobs);

void slurm_jobs_release(struct slurm_jobs *jobs);

/* Sorts as squeue does: by state, waiting jobs in the order of the queue, others by id. */
void slurm_jobs_sort(struct slurm_jobs *jobs);

/*
 * Whether the @size bytes at @text, an id, mean the job: N; for a task also N_i, N_[LIST], N_*, and
 * its array N.
 */
bool is_slurm_job_named(const struct slurm_job *job, const char *text, size_t size);

/* Returns the job with this id, or NULL. */
struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id);

/* Whether the job waits or runs. */
bool is_slurm_job_live(const struct slurm_job *job);

/* Whether Slurm would know the job at all: it is live, or has ended a short time ago. */
bool is_slurm_job_known(const struct slurm_jobs *jobs, const struct slurm_job *job);

/* Returns Slurm's word for why the job waits; "None" if it does not. */
const char *slurm_job_reason(const struct slurm_job *job);

#endif
