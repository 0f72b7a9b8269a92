/*
 * What happens to the jobs of a batch, as events: one JSON object a line.  The same lines are
 * the journal, what a job tells its runner, and what --json prints.  Pure.
 *
 * Members that an event does not have are left out; a reader skips members and events that it
 * does not know.  Texts are printable UTF-8; a moment is CLOCK_REALTIME in milliseconds.
 */
#ifndef GPULEASE_BATCH_EVENT_H
#define GPULEASE_BATCH_EVENT_H

#include "batch_numbers.h"
#include "owner.h"
#include "text.h"

enum {
	BATCH_EVENT_SIZE = 64 * 1024, /* bytes of a line, with its newline */
	BATCH_TEXT_SIZE = 320,
	BATCH_COMMAND_SIZE = 1024, /* of the command as it is shown; it may be cut */
	BATCH_GPUS_SIZE = 64,
};

enum batch_event_kind {
	BATCH_EVENT_NONE, /* one that is not known */
	/* these are kept in the journal … */
	BATCH_SEEN,   /* a new line: job, key, name, command */
	BATCH_LISTED, /* the jobs that the file has now, in its order: jobs */
	BATCH_STARTED, /* the command is about to be started: ticket, owner, attempt, gpus … */
	BATCH_ATTEMPT, /* an attempt has ended, another follows */
	BATCH_OVER,    /* "ended": for good, unless ->is_interrupted */
	/* … and these are not */
	BATCH_QUEUED,  /* it has its ticket */
	BATCH_WAITING, /* text: why */
	BATCH_MEMORY,  /* peak_mib has grown */
	BATCH_NOTE,    /* text: something to tell people, of no job where ->job is 0 */
	BATCH_SUMMARY, /* the runner ends: counts, the same as text, the exit status */
	BATCH_KINDS,
};

/* Why an attempt has ended, or a job without one. */
enum batch_cause {
	BATCH_ITSELF, /* by itself, well or not */
	BATCH_BY_OOM, /* likewise, for want of GPU memory */
	BATCH_BY_LIMIT,
	BATCH_BY_CANCEL,  /* --cancel, or the word in the file */
	BATCH_BY_PREEMPT, /* sent back for a job of higher priority */
	BATCH_NOT_RUN,    /* it can never start: ->text says why */
	BATCH_IS_LOST,    /* its supervisor was killed; nobody knows how it ended */
	BATCH_CAUSES,
};

/* Of the jobs that the file has, and of those that were in it. */
struct batch_counts {
	uint32_t all, waiting, running, finished, failed, cancelled, dropped;
};

struct batch_event {
	enum batch_event_kind kind;
	int64_t at_ms;
	uint64_t job;       /* its number in this batch, from 1; 0: of none */
	uint64_t key;       /* batch_key(), hexadecimal in the line */
	uint64_t ticket;    /* its id in the queue */
	struct owner owner; /* of the lease: the supervisor; without ->is_adopted */
	uint32_t attempt;
	char boot[BOOT_SIZE];
	char name[64];
	char gpus[BATCH_GPUS_SIZE];
	uint64_t declared_mib; /* as the line, or the batch, said; 0: nothing */
	uint64_t vram_mib; /* declared in the end, which lack of memory may have raised */
	uint64_t next_mib; /* BATCH_ATTEMPT: what the next one declares */
	uint64_t peak_mib; /* the most on one GPU; 0: nothing was seen */
	int64_t limit_ms;
	int64_t ran_ms, waited_ms, delay_ms;
	int32_t status;               /* exit status, 128 + a signal's number */
	int32_t busy_mean, busy_peak; /* percent; -1: not known */
	enum batch_cause cause;
	bool is_interrupted;        /* the runner was told to stop: to be run again */
	bool is_by_line;            /* BATCH_BY_CANCEL: by the word in its line */
	struct batch_counts counts; /* BATCH_SUMMARY */
	char text[BATCH_TEXT_SIZE];
	char command[BATCH_COMMAND_SIZE];
	const char *
		jobs; /* BATCH_LISTED: "1-4,7"; as parsed: in the line, not ended by NUL */
	size_t jobs_size;
};

#define BATCH_EVENT_OF(kind_, job_) \
	((struct batch_event){      \
		.kind = (kind_), .job = (job_), .busy_mean = -1, .busy_peak = -1 })

/* Whether events of @kind are kept in the journal. */
bool batch_event_is_kept(enum batch_event_kind kind);

/* The words that lines have for them: "started", "limit"; NULL beyond the last. */
const char *batch_event_word(enum batch_event_kind kind);
const char *batch_cause_word(enum batch_cause cause);

/* Appends the line, with its newline.  ->cut of @out says that there was no room. */
void batch_event_write(const struct batch_event *event, struct text *out);

/*
 * Reads the @size bytes of one line, without its newline.  0, also with BATCH_EVENT_NONE;
 * -EINVAL: that is no such line.  ->jobs points into @line.
 */
MUST_CHECK int batch_event_parse(const char *line, size_t size, struct batch_event *ret);

#endif
