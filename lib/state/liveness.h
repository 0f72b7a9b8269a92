/*
 * The liveness of other jobs: whether the owner of a lease, or of a ticket ahead, still lives.
 *
 * A job is judged once, and then followed by descriptors: the pidfd of its owner, its live FIFO,
 * and the pidfd of a leftover process.  A descriptor that has fired is closed and watched no more.
 * Otherwise the pidfd of a dead owner would make every poll return at once while a child holds the
 * FIFO.  What has ended stays ended, so a part that has fired is not judged again.
 *
 * A set may be told to keep only ->most descriptors, however many jobs are judged.  Where they are
 * scarce it follows a job by one at a time: by the pidfd, and by the FIFO once the process has
 * ended, because a job is over only when both have.  A ticket ahead is followed only if its end is
 * waited for (->is_watched).  A lack of descriptors never makes a job dead: such a job counts as
 * alive, and is looked at again later.
 *
 * All of this is the memory of one process; a crash leaves nothing.
 */
#ifndef GPULEASE_LIVENESS_H
#define GPULEASE_LIVENESS_H

#include "statedir.h"
#include "token_index.h"

/* What is known of one part of a job: its process, its FIFO, or its leftover processes. */
enum liveness_half { LIVENESS_UNKNOWN, LIVENESS_LIVES, LIVENESS_ENDED };

struct liveness {
	struct owner owner;
	struct command runs; /* the command of a supervisor; .pid 0: not known */
	bool is_orphaned; /* the owner has ended: ->process is ->runs, the job itself */
	enum liveness_half process, fifo;
	/*
	 * Leftover processes, which do not hold the FIFO, see leftover.h.  UNKNOWN: none is known,
	 * and this process has not looked since.  LIVES: ->left_behind lives, or cannot be judged
	 * from here.  ENDED: a look has found none.
	 */
	enum liveness_half rest;
	struct owner left_behind; /* ->pid 0: none was ever known */
	/* whether this process has looked, since a record named a new leftover process */
	bool has_looked;
	bool has_found;  /* whether this process has found a leftover process itself */
	bool has_sought; /* whether this process has searched for an owner elsewhere */
	int pidfd, fifo_fd, left_fd; /* -1 while not followed */
	int ended_fd; /* the pidfd of a process that has ended, until ->status is known */
	int status;   /* exit status, 128 + the signal's number; -1: not known */
	bool is_used; /* judged in this turn; liveness_set_end() forgets the others */
	bool is_watched;  /* a blocker: its end has to wake this process */
	bool was_watched; /* in the turn before */
	bool is_job; /* it was judged with its FIFO: it has a lease, or another job waits for it */

	/* What this process has seen itself, CLOCK_BOOTTIME; 0: not yet. */
	int64_t alive_ms; /* the last time that the job was alive */
	int64_t dead_ms;  /* the first time that it was dead */
	int64_t over_ms;  /* the first time that it was over: no process is left */
	int64_t unwatchable_ms;
	/* of a dead job: the first and last probe that shows nothing of it, see usage.h */
	int64_t quiet_ms, quiet_seen_ms;
};

struct liveness_set {
	const struct statedir *dir;
	struct liveness *all;
	size_t count, room;
	struct token_index index; /* of their tokens */
	unsigned most; /* descriptors that it may keep; 0: any number, both of each job */
	unsigned kept; /* at least so many as it keeps */
	/* between two looks at the watched jobs for which ->most leaves no descriptor; 0: 1 s */
	int64_t look_ms;
	/*
	 * A job that was used in this turn has ended since.  The next wait has to return at once,
	 * because the descriptor that would end the wait is closed.
	 */
	bool has_changed;
};

#define LIVENESS_SET_ON(directory) ((struct liveness_set){ .dir = (directory) })

/*
 * Judges the job of @owner, which is added to @set if need be.  With @needs_fifo looks at its FIFO,
 * too: a ticket is over with its process, so it needs the FIFO only if the process cannot be
 * judged, but a lease needs it.  Returns NULL if there is no memory.  The pointer is good until the
 * next call.
 *
 * With ->most, a ticket that lived and was not watched is judged again only after 10 s.  Its end
 * may be noticed so late, because a ticket whose end could matter now is watched.
 */
struct liveness *liveness_set_judge(struct liveness_set *set, const struct owner *owner,
	bool needs_fifo, int64_t now_ms);

/*
 * Judges the job of @owner with its FIFO, and with the command that @owner, a supervisor, has
 * started (@runs->pid 0: none).  Once the owner has ended, the command is followed in its place.
 * It stays so if the job is later judged without the command.
 */
struct liveness *liveness_set_judge_job(struct liveness_set *set,
	const struct owner *owner, const struct command *runs, int64_t now_ms);

/*
 * Whether ->status of a process that has ended may still become known: its parent has not reaped it
 * yet.  No event announces that; the caller judges the job again after a moment.
 */
bool liveness_may_tell(const struct liveness *job);

/*
 * Notes that the lease of the job was given back or declared over: the job counts as dead from
 * @now_ms on.  With @is_final, so does every process that it may have left.
 */
void liveness_end(struct liveness *job, bool is_final, int64_t now_ms);

/*
 * Notes that process @left of the job lives although the owner has ended.  A record says so, or
 * this process has found @left itself (@is_found).  Does nothing if @left is known to have ended.
 */
void liveness_leave(struct liveness_set *set, struct liveness *job,
	const struct owner *left, bool is_found, int64_t now_ms);

/* Notes that this process has looked for processes that the job has left, and found none. */
void liveness_leave_nothing(struct liveness *job);

/*
 * Whether this process should look for processes that the job has left: owner and FIFO have ended,
 * and no process of the job is known, or only one that cannot be judged from here.
 */
bool liveness_wants_look(const struct liveness *job);

/* Finds the job of the owner with @token; NULL: it is not in the set. */
struct liveness *liveness_set_find(struct liveness_set *set, const char *token);

/*
 * Whether the job itself has ended: the process has, or cannot be judged and the FIFO has.  An
 * adopted process without a watchdog has no FIFO, so it counts as alive while it cannot be judged.
 */
bool liveness_is_dead(const struct liveness *job);

/*
 * Whether the owner is an adopted process that cannot be seen from here: it may live in another pid
 * namespace, or have ended together with that.
 */
bool liveness_is_unseen(const struct liveness *job);

/* Whether the job is dead, no process holds its FIFO, and no process that it left is known. */
bool liveness_is_over(const struct liveness *job);

/*
 * Whether the job is not over and has no descriptor to watch: pidfd_open(2) is missing and the
 * command has closed its FIFO, or the command is just ending.  Only a timer finds its end.
 */
bool liveness_is_unwatchable(const struct liveness *job);

struct watch;

/* Adds to @watch the descriptors of @job that have not fired.  Returns 0 or -ENOMEM. */
MUST_CHECK int liveness_watch(const struct liveness *job, struct watch *watch);

/*
 * Lets @watch end when a watched job (->is_watched) ends.  Opens the descriptors that are missing;
 * a job that has ended before that ends the wait at once, and so does ->has_changed.  A job without
 * a descriptor is looked at again: after 5 ms, 10, 20 … 1 s, or after ->look_ms if only ->most is
 * in the way.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int liveness_set_watch(
	struct liveness_set *set, struct watch *watch, int64_t now_ms);

/* Begins a turn: no job is used or watched yet.  Ends a turn: forgets the jobs not used in it. */
void liveness_set_begin(struct liveness_set *set);
void liveness_set_end(struct liveness_set *set);

/* Closes all descriptors and forgets all jobs; they are judged anew. */
void liveness_set_let_go(struct liveness_set *set);

void liveness_set_release(struct liveness_set *set);

#endif
