/*
 * The jobs of a batch, and what has become of each according to the events so far.  Pure but for
 * memory.
 *
 * Messages say "entry N" for a job with its number in the batch, because "job N" is the id that
 * other verbs take.
 *
 * A job gets its number when its line is seen for the first time, and keeps it: an edit of other
 * attributes, a deleted line and a restart of the runner do not change it.
 */
#ifndef GPULEASE_BATCH_JOBS_H
#define GPULEASE_BATCH_JOBS_H

#include "batch_event.h"
#include "batch_list.h"

enum batch_state {
	BATCH_NEW,      /* to be run, and no process is at work for it */
	BATCH_IN_QUEUE, /* a process of it waits in the queue, or is about to */
	BATCH_RUNNING,  /* started; also between two attempts: ->is_between */
	BATCH_ENDED,
};

/* The section of the board that a job is shown in. */
enum batch_section {
	BATCH_SECTION_NONE, /* no line any more, and never run or ended in an earlier run */
	BATCH_SECTION_RUNNING,
	BATCH_SECTION_WAITING, /* also between two attempts */
	BATCH_SECTION_DONE,
};

struct batch_job {
	uint64_t number; /* from 1 */
	uint64_t key;    /* batch_key() of its line */
	/* of its last start; before its first start, that of its line; 0: unknown */
	uint64_t environment;
	const struct batch_line
		*line;        /* in the list in force; NULL: not in the file any more */
	char *name, *command; /* as shown; the name may be "" */

	enum batch_state state;
	bool is_in_list;      /* the last BATCH_LISTED of the journal names it */
	bool was_started;     /* at least once, so it has a log */
	bool is_by_line;      /* cancelled by the word in its line */
	bool is_from_earlier; /* what is known of its end comes from an earlier run */
	bool is_listed;       /* batch_report_failures() has handled its failure */
	/* running, but it waits for its next attempt; ->cause and ->status are the last one's */
	bool is_between;
	uint64_t ticket;    /* 0: none */
	uint64_t slurm_job; /* its id in Slurm, if it is a job there; else 0 */
	struct owner owner; /* of the lease of its last attempt */
	char boot[BOOT_SIZE];
	uint32_t attempt;
	char gpus[BATCH_GPUS_SIZE];
	int64_t started_ms, ended_ms; /* CLOCK_REALTIME */
	int64_t ran_ms, waited_ms, limit_ms;
	/* as in the events; ->vram_mib is what the next attempt declares */
	uint64_t declared_mib, vram_mib, used_mib, peak_mib;
	bool spans_run;                 /* as in the event of its end */
	bool is_over;                   /* it was seen to use more than it declared */
	unsigned oom_count, fail_count; /* attempts that ended so, over all runs */
	int32_t status, busy_mean, busy_peak;
	enum batch_cause cause;
	uint64_t
		waits_for; /* an unfinished job that its line names in `after`; 0: none known */
	char *reason; /* why it waits or was not run; NULL */

	/* set by the runner alone */
	pid_t pid;          /* of the child; 0: none */
	int fd;             /* the socket to the child; -1: none */
	uint64_t line_hash; /* batch_line_hash() of its line when it was started */
	bool is_adopted;    /* at work since an earlier run: not a child */
	bool is_unresolved; /* batch_adopt_all() has found it dead and looks for its end */
	bool is_unwritten;  /* it has ended, and the journal could not be written */
	bool is_recalled;   /* it was asked to leave the queue */
	bool is_cancelling; /* a cancel because of its line is under way */
	bool is_dropped;    /* with --once: it is not run, because an equal job is done */
};

struct batch_jobs {
	struct batch_job *all; /* by number: ->all[number - 1] */
	size_t count, room;
};

#define BATCH_JOBS_NONE ((struct batch_jobs){ .all = NULL })

/*
 * Adds a job with the next number; copies @name and @command.  Returns it, or NULL without memory.
 * Pointers to other jobs become invalid.
 */
struct batch_job *batch_jobs_add(
	struct batch_jobs *jobs, uint64_t key, const char *name, const char *command);

/* Returns the job with @number, or NULL if there is none. */
struct batch_job *batch_jobs_find(const struct batch_jobs *jobs, uint64_t number);

/*
 * Applies @event to its job; BATCH_SEEN adds the job.  Returns 0; -ENOENT if there is no such job;
 * -EINVAL if the event cannot follow what is known; or -ENOMEM.
 */
MUST_CHECK int batch_jobs_apply(struct batch_jobs *jobs, const struct batch_event *event);

/* Returns the id by which --cancel and the reasons of other jobs name @job; 0: none. */
uint64_t batch_job_id(const struct batch_job *job);

/* Makes @job new after its process has ended and before it is started again. */
void batch_jobs_return(struct batch_job *job);

/* Makes an ended job new again, because the reason why it was not run may be gone. */
void batch_jobs_renew(struct batch_job *job);

/* Whether the job has ended with status 0 by itself. */
bool batch_is_finished(const struct batch_job *job);

/*
 * Whether the job has ended and counts as failed.  A job that the word in its line has cancelled,
 * or that --once left out, is neither finished nor failed.
 */
bool batch_is_failed(const struct batch_job *job);

/*
 * Whether an edit of its line may still give the job another environment: it has not begun, or the
 * journal does not say in which environment it has run.
 */
bool batch_is_open(const struct batch_job *job);

enum batch_section batch_section_of(const struct batch_job *job);

/* Counts the jobs that the board shows. */
struct batch_counts batch_count(const struct batch_jobs *jobs);

void batch_jobs_release(struct batch_jobs *jobs);

#endif
