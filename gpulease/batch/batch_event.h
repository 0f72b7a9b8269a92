/*
 * The events of a batch: what happens to its jobs, one JSON object per line.  The journal, the
 * messages from a job to its runner and the output of --json consist of these lines.  Pure.
 *
 * A member that an event does not have is left out.  A reader skips members and events that it does
 * not know, so that a later version can add some.  Texts are printable UTF-8; moments are
 * CLOCK_REALTIME in milliseconds.
 */
#ifndef GPULEASE_BATCH_EVENT_H
#define GPULEASE_BATCH_EVENT_H

#include "batch_numbers.h"
#include "owner.h"
#include "text.h"

enum {
	BATCH_EVENT_SIZE = 64 * 1024, /* bytes of a line, with its newline */
	BATCH_TEXT_SIZE = 320,
	BATCH_COMMAND_SIZE =
		1024, /* of the command as it is shown; a longer one is cut */
	BATCH_GPUS_SIZE = 64,
};

enum batch_event_kind {
	BATCH_EVENT_NONE, /* an event that this version does not know */
	/* kept in the journal: */
	BATCH_SEEN,   /* a new line: job, key, name, command */
	BATCH_LISTED, /* jobs: those that the file has now, in its order */
	BATCH_STARTED, /* the command is about to start: ticket, owner, attempt, gpus … */
	BATCH_ATTEMPT, /* an attempt has ended, and another follows */
	BATCH_OVER,    /* "ended": final, unless ->is_interrupted */
	/* not kept: */
	BATCH_QUEUED,  /* the job has its ticket */
	BATCH_WAITING, /* text: why it waits */
	BATCH_MEMORY,  /* used_mib has changed, or peak_mib has grown */
	BATCH_EXCESS, /* it uses more of the GPU ->gpus than it declared; once for each */
	BATCH_NOTE,   /* text: a message for people; ->job may be 0 */
	BATCH_SUMMARY, /* the runner ends: counts, also as text, and the exit status */
	BATCH_KINDS,
};

/* Why an attempt has ended, or a job that had none. */
enum batch_cause {
	BATCH_ITSELF,     /* by itself, with any status */
	BATCH_BY_OOM,     /* by itself, because GPU memory ran out */
	BATCH_BY_LIMIT,   /* its time limit */
	BATCH_BY_UNUSED,  /* it did not use its GPUs, and another job waited for them */
	BATCH_BY_CANCEL,  /* --cancel, or the word in the file */
	BATCH_BY_PREEMPT, /* sent back for a job of higher priority, or by a window */
	BATCH_BY_REQUEUE, /* put back into the queue by its user */
	BATCH_NOT_RUN,    /* it cannot start, or not again: ->text says why */
	BATCH_IS_LOST,    /* its supervisor was killed, so how it ended is unknown */
	BATCH_CAUSES,
};

/* Counts of jobs: those that the file has, and those that it had and that ran. */
struct batch_counts {
	uint32_t all, waiting, running, finished, failed, cancelled, dropped;
};

struct batch_event {
	enum batch_event_kind kind;
	int64_t at_ms;
	uint64_t job; /* its number in this batch, from 1; 0: none */
	uint64_t key; /* batch_key(); hexadecimal in the line */
	uint64_t
		environment; /* batch_environment(), as ->key; 0: an earlier version wrote it */
	uint64_t ticket;    /* the job's id in the queue */
	uint64_t slurm_job; /* its id in Slurm, if it is a job there; else 0 */
	struct owner
		owner; /* of the lease, the supervisor; ->is_adopted is not written */
	uint32_t attempt;
	char boot[BOOT_SIZE];
	char name[256];
	char gpus[BATCH_GPUS_SIZE];
	uint64_t declared_mib; /* as the line or the command line said; 0: nothing */
	uint64_t
		vram_mib; /* what the attempt declared; out of memory may have raised it */
	uint64_t next_mib; /* BATCH_ATTEMPT: what the next attempt declares */
	uint64_t used_mib; /* now, the most on one GPU; BATCH_EXCESS: on ->gpus */
	uint64_t peak_mib; /* the most on one GPU; 0: no memory was seen */
	int64_t limit_ms;
	int64_t ran_ms, waited_ms, delay_ms;
	int32_t status;               /* exit status, or 128 + the number of a signal */
	int32_t busy_mean, busy_peak; /* percent; -1: unknown */
	enum batch_cause cause;
	bool spans_run;             /* the samples of peak_mib span the attempt */
	bool is_interrupted;        /* because the runner stopped: to be run again */
	bool is_by_line;            /* BATCH_BY_CANCEL: by the word in its line */
	struct batch_counts counts; /* BATCH_SUMMARY */
	char text[BATCH_TEXT_SIZE];
	char command[BATCH_COMMAND_SIZE];
	/* BATCH_LISTED: "1-4,7"; after batch_event_parse() it points into the line, without NUL */
	const char *jobs;
	size_t jobs_size;
};

#define BATCH_EVENT_OF(kind_, job_) \
	((struct batch_event){      \
		.kind = (kind_), .job = (job_), .busy_mean = -1, .busy_peak = -1 })

/* Whether events of @kind are kept in the journal. */
bool batch_event_is_kept(enum batch_event_kind kind);

/* Return the words for them in the lines: "started", "limit"; NULL beyond the last. */
const char *batch_event_word(enum batch_event_kind kind);
const char *batch_cause_word(enum batch_cause cause);

/* Appends the line for @event, with a newline.  ->cut of @out says that there was no room. */
void batch_event_write(const struct batch_event *event, struct text *out);

/*
 * Parses the @size bytes of one line, without its newline.  Returns 0, also for an unknown event
 * (BATCH_EVENT_NONE), or -EINVAL if it is not such a line.  ->jobs of *@ret points into @line.
 */
MUST_CHECK int batch_event_parse(const char *line, size_t size, struct batch_event *ret);

#endif
