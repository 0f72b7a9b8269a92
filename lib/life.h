/*
 * The lives of others: every owner of a lease, and every ticket ahead, that a waiter has to do
 * with is judged once and then followed by two descriptors, its pidfd and its FIFO.
 *
 * What has ended stays ended, so a half that has fired is never asked again; and only what
 * has not fired is watched, or a dead owner whose child holds the FIFO would make every poll
 * return at once.
 */
#ifndef GPULEASE_LIFE_H
#define GPULEASE_LIFE_H

#include "beacon.h"
#include "statedir.h"
#include "token_index.h"

/* What is known of one half, the process or the FIFO. */
enum life_half { LIFE_UNKNOWN, LIFE_LIVES, LIFE_ENDED };

struct life {
	struct owner owner;
	struct command runs; /* the command of a supervisor; .pid 0: not known */
	bool is_orphaned; /* the owner has ended: ->process is that of ->runs, the job itself */
	enum life_half process, fifo;
	/*
	 * Processes that the job has left besides holders of its FIFO, see leftover.h.  UNKNOWN:
	 * none is known, and this process has not looked; LIVES: ->left_behind lives, or cannot be
	 * judged from here; ENDED: a look has found none.
	 */
	enum life_half rest;
	struct owner left_behind;    /* ->pid 0: none was ever known */
	bool has_looked, has_found;  /* whether this process has looked, and found one */
	int pidfd, fifo_fd, left_fd; /* -1 while not followed */
	int ended_fd; /* its pidfd once it has ended, until ->status is known; not watched */
	int status; /* of the process that ended, 128 + a signal's number; -1: not known */
	bool is_used;    /* in this turn: the others are forgotten */
	bool is_watched; /* a blocker: its end is to wake us */

	/* CLOCK_BOOTTIME; 0: not yet.  What this waiter has seen itself. */
	int64_t alive_ms; /* the owner alive, the last time */
	int64_t dead_ms;  /* the owner dead, the first time */
	int64_t over_ms;  /* nobody left */
	int64_t unwatchable_ms;
	/* owner dead: since when probes show nothing of it, and the last one; see usage.h */
	int64_t quiet_ms, quiet_seen_ms;
};

struct lives {
	const struct statedir *dir;
	struct life *all;
	size_t count, room;
	struct token_index index; /* of their tokens */
	/*
	 * Somebody has ended since he was judged in this turn, and judged again: the next wait
	 * is to return at once, for nothing is left that would end it.
	 */
	bool has_changed;
};

#define LIVES_ON(directory) ((struct lives){ .dir = (directory) })

/*
 * The life of @owner, judged afresh where it has not ended.  With @needs_fifo also its FIFO is
 * looked at (a ticket is over with its process; only an undecidable one needs it).  NULL:
 * no memory.  The pointer is good until the next call.
 */
struct life *lives_judge(
	struct lives *lives, const struct owner *owner, bool needs_fifo, int64_t now_ms);

/*
 * Likewise with its FIFO, and with the command that @owner, a supervisor, has started (@runs->pid
 * 0: none).  Once the owner has ended the command is followed in its place, also if the same owner
 * is judged without it later.
 */
struct life *lives_judge_job(struct lives *lives, const struct owner *owner,
	const struct command *runs, int64_t now_ms);

/*
 * Whether ->status of a process that has ended may still become known: nobody has waited for
 * it yet.  Nothing tells when that changes; look again after a moment.
 */
bool life_may_tell(const struct life *life);

/*
 * For a lease that was given back or declared over: its owner counts as dead from @now_ms on.  With
 * @is_final so does every process that the job may have left.
 */
void life_end(struct life *life, bool is_final, int64_t now_ms);

/*
 * Notes that process @left of the job lives although the owner has ended.  A record says so, or a
 * look of this process has found it (@is_found).  Does nothing if @left is known to have ended.
 */
void life_leave(struct lives *lives, struct life *life, const struct owner *left,
	bool is_found, int64_t now_ms);

/* Notes that a look has found no process that the job has left. */
void life_leave_nothing(struct life *life);

/*
 * Whether a look of this process would say more: owner and FIFO have ended, and no process of the
 * job is known, or only one that cannot be judged from here.
 */
bool life_wants_look(const struct life *life);

/* The life of the owner with @token; NULL: it is not followed. */
struct life *lives_find(struct lives *lives, const char *token);

/* The job itself has ended, for certain or because its FIFO, where it has one, says so. */
bool life_is_dead(const struct life *life);

/* Whether it is dead, no process holds the FIFO, and no process of the job is known to be left. */
bool life_is_over(const struct life *life);

/*
 * Lives without a pidfd or FIFO to watch (no pidfd_open, and the command has closed its FIFO,
 * or is just ending): only a timer finds its end.
 */
bool life_is_unwatchable(const struct life *life);

struct watch;

/* Adds to @watch its descriptors that have not fired; the others are closed.  0 or -ENOMEM. */
MUST_CHECK int life_watch(const struct life *life, struct watch *watch);

/* Begins a turn: nobody is in use or watched yet.  Ends one: forgets who is not in use. */
void lives_begin(struct lives *lives);
void lives_end(struct lives *lives);

void lives_release(struct lives *lives);

#endif
