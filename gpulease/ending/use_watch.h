/*
 * Looks once a minute at how a job uses its GPUs (`idle-after`, `idle-end`), for the watchdog or
 * supervisor of the job.
 *
 *	use_watch_prepare -> use_watch_begin -> poll, use_watch_step … -> use_watch_end
 *
 * The look itself is `gpulease --sample ID` in a child, so this process needs no rights.  The
 * moment within the minute depends on the id, so that many jobs do not look at once.
 *
 * A crash of this process leaves at most a child that ends by itself.
 */
#ifndef GPULEASE_USE_WATCH_H
#define GPULEASE_USE_WATCH_H

#include "context.h"
#include "lease_use.h"
#include "spawn.h"

enum { USE_LINE_SIZE = 256 };

/* The words of the child; made before the rights and the folder are given up. */
struct use_words {
	char job[24], sim[32], config[PATH_MAX], dir[PATH_MAX];
	char *list[9];
	int64_t patience_ms; /* after which a child that hangs is killed */
};

struct use_watch {
	struct spawn child;
	char *const *words; /* NULL: no samples are taken */
	int64_t interval_ms, due_ms, patience_ms;
	int64_t deadline_ms;   /* of the running child */
	struct lease_use last; /* what the last sample has shown; zeros: there was none */
};

#define USE_WATCH_NONE ((struct use_watch){ .child = SPAWN_INIT, .due_ms = INT64_MAX })

/* Makes the words for job @job. */
void use_words_make(const struct context *context, uint64_t job, struct use_words *words);

/* Begins.  @words has to stay. */
void use_watch_begin(struct use_watch *watch, const struct use_words *words, uint64_t job,
	int64_t interval_ms);

/* Sets @fds to the descriptors to poll.  Returns their number. */
unsigned use_watch_poll_fds(
	const struct use_watch *watch, struct pollfd fds[SPAWN_POLL_FDS]);

/* Returns when to step although no descriptor is ready; INT64_MAX: never. */
int64_t use_watch_wake_ms(const struct use_watch *watch);

enum use_outcome { USE_WATCH_TOLD = 1, USE_WATCH_ENDS };

/*
 * Does what is due.  Returns 0; USE_WATCH_TOLD: the job is to be told @ret_line; or USE_WATCH_ENDS:
 * the same, and the job is to be ended.
 */
int use_watch_step(struct use_watch *watch, int64_t now_ms, char ret_line[USE_LINE_SIZE]);

/*
 * Forgets the child, if there is one, without waiting, and takes no more samples; ->last stays.
 * The child ends by itself, at the latest once it has given nvidia-smi up (`probe-deadline`).
 */
void use_watch_end(struct use_watch *watch);

#endif
