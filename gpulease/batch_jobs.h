/*
 * The jobs of a batch, and what became of each by the events so far.  Pure but for memory.
 *
 * A job is one line at one time: it gets its number when the line is first seen, and keeps it,
 * whatever becomes of the line.
 */
#ifndef GPULEASE_BATCH_JOBS_H
#define GPULEASE_BATCH_JOBS_H

#include "batch_event.h"
#include "batch_list.h"

enum batch_state {
	BATCH_NEW,      /* to be run, nobody is at it */
	BATCH_IN_QUEUE, /* a process of it waits, or is about to */
	BATCH_RUNNING,  /* started; between two attempts, too: ->is_between */
	BATCH_ENDED,
};

struct batch_job {
	uint64_t number; /* from 1 */
	uint64_t key;
	const struct batch_line
		*line;        /* of the list in force; NULL: not in the file any more */
	char *name, *command; /* as shown; name "" */

	enum batch_state state;
	bool is_in_list;   /* by the last BATCH_LISTED of the journal */
	bool was_started;  /* once, so it has a log */
	bool is_by_line;   /* cancelled by the word in its line */
	bool is_of_before; /* what is known of its end is of an earlier run */
	bool is_listed;    /* that it has failed was told: batch_failures_print() */
	/* running, but it waits for its next attempt; ->cause and ->status are the last one's */
	bool is_between;
	uint64_t ticket; /* 0: none */
	struct owner owner;
	char boot[BOOT_SIZE];
	uint32_t attempt;
	char gpus[BATCH_GPUS_SIZE];
	int64_t started_ms, ended_ms; /* CLOCK_REALTIME */
	int64_t ran_ms, waited_ms, limit_ms;
	uint64_t declared_mib, vram_mib,
		peak_mib;               /* as in the events; vram: the next one's */
	unsigned oom_count, fail_count; /* attempts that ended so */
	int32_t status, busy_mean, busy_peak;
	enum batch_cause cause;
	uint64_t
		waits_for; /* the number of another, by its line; 0: nobody that is known of */
	char *reason;      /* why it waits or was not run; NULL */

	/* the runner's */
	pid_t pid;       /* of our child; 0: none */
	int fd;          /* to it, -1 */
	uint64_t asked;  /* a hash of all that its line said when it was started */
	bool is_adopted; /* of an earlier run, and at work: no child of ours */
	bool is_dying;   /* while it is found out what became of it */
	bool is_unkept;  /* it has ended, and the journal does not know of it */
	bool is_recalled, is_cancelling, is_dropped; /* dropped: --once, it is not run */
};

struct batch_jobs {
	struct batch_job *all; /* by number: ->all[number - 1] */
	size_t count, room;
};

#define BATCH_JOBS_NONE ((struct batch_jobs){ .all = NULL })

/* Adds the job of the next number.  NULL: no memory.  Pointers to others may become stale. */
struct batch_job *batch_jobs_add(
	struct batch_jobs *jobs, uint64_t key, const char *name, const char *command);

/* NULL: there is none of that number. */
struct batch_job *batch_jobs_find(const struct batch_jobs *jobs, uint64_t number);

/*
 * What @event means for its job.  0, -ENOENT: there is no such job (BATCH_SEEN adds the next),
 * -EINVAL: it cannot be, -ENOMEM.
 */
MUST_CHECK int batch_jobs_apply(struct batch_jobs *jobs, const struct batch_event *event);

/* One that was not run is to be tried again: what it failed for may be mended. */
void batch_jobs_renew(struct batch_job *job);

/* Whether it has ended and what it was for is done. */
bool batch_is_finished(const struct batch_job *job);
/*
 * Whether it has ended and its status counts: not where the word in its line has cancelled it, or
 * --once left it out.
 */
bool batch_is_failed(const struct batch_job *job);

void batch_jobs_release(struct batch_jobs *jobs);

#endif
