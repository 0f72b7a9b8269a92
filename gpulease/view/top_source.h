/*
 * One machine of --top: asks gpulease for its state, for the jobs that have ended, and for the log
 * of one job; here, or by ssh on another machine.  At most one program runs at a time.
 *
 *	top_source_begin -> poll ->answer until top_source_wake_ms, top_source_step …
 *	-> top_source_release
 */
#ifndef GPULEASE_TOP_SOURCE_H
#define GPULEASE_TOP_SOURCE_H

#include "gpulease_words.h"
#include "host_words.h"
#include "top_screen.h"

enum top_question {
	TOP_ASKS_NOTHING,
	TOP_ASKS_STATUS,
	TOP_ASKS_ENDED,
	TOP_ASKS_LOG,
};

struct top_source {
	const struct settings *settings;
	struct top_host *host;
	const char *remote; /* the name for ssh; NULL: this machine */
	struct answer answer;
	enum top_question question;
	int64_t begun_ms, next_ms; /* by the boot clock; ->next_ms: of the next state */
	int64_t next_ended_ms;     /* when a change of the jobs is worth a question */
	int64_t ended_ms;          /* when the ended jobs were asked for; -1: never */
	uint64_t running;          /* a hash of the jobs that ran then */
	bool has_machine;          /* there was an answer */
	bool has_many_ends; /* a day has more of them than the usual question asks for */
	bool has_ended;     /* no question for ended jobs is open, answered or not */
	/* what is read, before it takes the place of what is shown */
	struct machine machine;
	struct ended_jobs ended;
	int64_t log_job;   /* the job whose log is wanted; -1 */
	int64_t log_asked; /* the job of the last question for one */
	int64_t log_known; /* the job of ->log; -1 */
	char log[4096];    /* its path; "": it has none */
	union {
		struct gpulease_words here;
		struct host_words there;
	} words;
	size_t own_count; /* words that say which gpulease it is */
};

/*
 * @host, @remote and @settings have to stay.  Returns 0, or EXIT_MISUSE after a message: gpulease
 * is not there.
 */
MUST_CHECK int top_source_begin(struct top_source *source,
	const struct settings *settings, struct top_host *host, const char *remote);

/*
 * Reads what has come, and asks what is due at @now_ms.  Returns whether something new is known, or
 * something is wrong that was not before.
 */
bool top_source_step(struct top_source *source, int64_t now_ms);

/* Returns when top_source_step() has something to do even if nothing comes. */
int64_t top_source_wake_ms(const struct top_source *source, int64_t now_ms);

/* Stops what runs and asks again at once: after this process was stopped itself. */
void top_source_restart(struct top_source *source);

void top_source_release(struct top_source *source);

#endif
