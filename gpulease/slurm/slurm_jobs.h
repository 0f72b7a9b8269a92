/*
 * Jobs as Slurm describes them, read from the JSON of gpulease; see gpulease-json(5).  Pure.  All
 * texts are printable.
 */
#ifndef GPULEASE_SLURM_JOBS_H
#define GPULEASE_SLURM_JOBS_H

#include "job_name.h"
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
	SLURM_REQUEUED,
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
	int64_t id, gpus, priority, attempt, status;
	int64_t ran_ms, limit_ms;
	/* since 1970 */
	int64_t submitted_ms, started_ms, ended_ms, starts_ms;
	int64_t held_by;     /* the id of the job that has to end first */
	size_t place;        /* in the order in which gpulease lists jobs */
	int64_t array, task; /* of a task of an array: the id of the array, the number */
	enum slurm_state state;
	bool is_lingering, is_stopped, is_on_hold;
	char name[NAME_SIZE_MAX], user[64], command[512], log[1024], reason[16];
	bool name_is_cut;     /* ->name is the beginning of the name, and … */
	bool name_is_changed; /* it is the name without what a terminal must not get */
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

/* Gives the task of an array the name of the job that stands for the array. */
void slurm_job_take_name(struct slurm_job *task, const struct slurm_job *array);

/*
 * Compares the name of the job with the @size bytes at @name.  UNKNOWN: the whole name is not
 * known, and may be this one.
 */
enum slurm_name { SLURM_NAME_OTHER, SLURM_NAME_SAME, SLURM_NAME_UNKNOWN };
enum slurm_name slurm_job_compare_name(
	const struct slurm_job *job, const char *name, size_t size);

/* The error for a job with a name that is SLURM_NAME_UNKNOWN. */
#define SLURM_NAME_TROUBLE "its whole name cannot be read; give its id if you mean it"

/* Returns the job with this id, or NULL. */
struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id);

/* Whether the job waits or runs. */
bool is_slurm_job_live(const struct slurm_job *job);

/* Whether Slurm would know the job at all: it is live, or has ended a short time ago. */
bool is_slurm_job_known(const struct slurm_jobs *jobs, const struct slurm_job *job);

/* Returns Slurm's word for why the job waits; "None" if it does not. */
const char *slurm_job_reason(const struct slurm_job *job);

#endif
