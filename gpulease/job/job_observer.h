/*
 * Callbacks about a job, while this process waits for it and runs it.  A job of a batch has an
 * observer, see batch_member.h.  A plain job has none: the pointer to it is NULL.
 *
 * Every callback gets ->context.  Callbacks that return nothing only report.
 */
#ifndef GPULEASE_JOB_OBSERVER_H
#define GPULEASE_JOB_OBSERVER_H

#include "retry_policy.h"

struct broker;
struct launch;
struct sample_gpu;
struct sampler;

/* How an attempt has ended, and what comes after it. */
struct attempt_news {
	const struct attempt_end *end;
	const struct sampler *sampler;
	enum retry_next next;
	int64_t delay_ms;  /* before the next attempt */
	uint64_t next_mib; /* the memory that the next attempt declares */
	const char *by;    /* the name of the user that cancelled it; "": none */
};

struct job_observer {
	void *context;

	/* Whether the waiting job is to leave the queue without a message, at whatever attempt. */
	bool (*is_recalled)(void *context);

	/* Whether the observer has ended this attempt: then the job is not tried again. */
	bool (*is_stopped)(void *context);

	/*
	 * Returns a descriptor that is readable once one of these two answers has changed; -1:
	 * none.
	 */
	int (*leash_fd)(void *context);

	/* The job has ticket @number. */
	void (*queued)(void *context, uint64_t number);

	/* The job waits for the reason @words, which differs from the last one. */
	void (*waits)(void *context, const char *words);

	/*
	 * The job cannot join the queue now, because of @words.  The process ends with
	 * EXIT_GAVE_UP.
	 */
	void (*put_off)(void *context, const char *words);

	/* The user named @by has cancelled the waiting job. */
	void (*cancelled)(void *context, const char *by);

	/*
	 * The command is about to be started, for the first time or again; TERM is blocked.
	 * Returns 0, or -ECANCELED: the command must not be started.
	 */
	int (*starts)(void *context, const struct broker *broker,
		const struct launch *launch, int64_t waited_ms);

	/* The memory that the running command uses may have changed. */
	void (*sampled)(void *context, const struct sampler *sampler);

	/*
	 * The running command uses more memory of @gpu than it has declared; called once for each
	 * GPU.
	 */
	void (*exceeds)(void *context, const struct sample_gpu *gpu);

	/* The attempt that was started last has ended. */
	void (*attempt_ended)(void *context, const struct attempt_news *news);

	/*
	 * That attempt was the last one, even if another was announced: the job ends with its
	 * status.
	 */
	void (*ended)(void *context);
};

#endif
