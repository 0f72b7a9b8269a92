/*
 * Waits for jobs of Slurm, so that all processes of a user together ask the controller rarely.
 *
 *	engine_poll_add … -> engine_poll_step -> poll(2) ->fd until ->wake_ms, or anything else
 *		-> engine_poll_step … -> engine_poll_release
 *
 * One squeue asks for all jobs of the user, and its answer is shared (poll_share.h).  A process
 * asks only if the shared answer is older than its interval, which grows from 0.1 s to 10 s; so any
 * number of processes cause at most one question in the shortest of their intervals.
 *
 * A job that is not in the answer belongs to another user, is new, or is forgotten.  squeue is then
 * asked for it alone, then sacct, then the record that its script has left (engine_state.h).  Such
 * a record also makes a process look again within a second, although the interval has grown.
 */
#ifndef GPULEASE_ENGINE_POLL_H
#define GPULEASE_ENGINE_POLL_H

#include "answer.h"
#include "slurm_state.h"

/* What is known of one job. */
struct polled_job {
	uint64_t id;
	const struct slurm_state *state; /* NULL: nothing is known yet */
	bool has_ended;                  /* and ->status is final */
	bool is_unknown; /* no process knows such a job; then ->has_ended, too */
	/*
	 * once it has ended: the exit status as locally; -1: no process knows it.  A job that gave
	 * up, because a job that it needs has failed, has 124.
	 */
	int status;
	const char
		*words; /* why it has ended, "was cancelled"; NULL: that needs no words */
	int wait_status; /* of its command, as wait(2) returns it; 0 until it has ended */
	uint32_t uid;
	int64_t submit_s, start_s, end_s; /* 0: not known */
	char reason[64];                  /* as Slurm names it: why it waits */
	/* for poll_rows.c and engine_poll.c: */
	bool is_seen;     /* the last answer had it */
	bool is_foreign;  /* of another user, so no shared answer has it */
	int64_t since_ms; /* when it was added, or its record appeared */
	bool has_record;
	/* of an array: the last answer had it, has tasks that have not ended, or may not have */
	bool array_is_seen, array_runs, array_is_doubtful;
	int array_status; /* the highest of the tasks that have ended, so far */
	int64_t gone_ms;  /* since when squeue does not know it; 0: it does */
	int64_t doubtful_ms; /* since when it is in a state that may be no end; 0: it is not */
};

enum poll_question { POLL_NOTHING, POLL_OWN, POLL_SOME, POLL_SACCT };

struct engine_poll {
	struct polled_job *jobs;
	size_t count, room;
	int64_t least_ms;      /* the shortest interval; 0: 100 */
	int64_t since_real_ms; /* CLOCK_REALTIME: an answer from before this is too old */
	size_t left;           /* jobs that have not ended, as far as known */
	bool has_changed;      /* the last step has learnt something of a job */
	bool has_answer;       /* the controller has answered once */
	int64_t silent_ms;     /* since when it does not answer; 0: it does */
	int fd;                /* poll it for POLLIN; -1: only the time matters */
	int64_t wake_ms;     /* CLOCK_BOOTTIME: when the next step is due at the latest */
	int64_t interval_ms; /* 100 growing to 10000 */
	/* for engine_poll.c: */
	enum poll_question question; /* the one that is open */
	struct answer answer;
	int lock_fd; /* -1: not held */
	int64_t look_ms, begun_ms, begun_real_ms, busy_ms;
};

#define ENGINE_POLL_NONE \
	((struct engine_poll){ .fd = -1, .lock_fd = -1, .answer = ANSWER_NONE })

/* Adds the job @id, unless it is there.  Returns 0 or -ENOMEM. */
MUST_CHECK int engine_poll_add(struct engine_poll *poll, uint64_t id);

/* Returns the job @id, which stays until the next call that adds or removes a job; NULL: none. */
struct polled_job *engine_poll_find(const struct engine_poll *poll, uint64_t id);

/* Removes all jobs that have ended, for a caller that adds others. */
void engine_poll_forget_ended(struct engine_poll *poll);

/*
 * Does what is due, without waiting.  Returns 0, or EXIT_MISUSE after a message: Slurm's programs
 * cannot be run, or there is no folder for the shared answer.  A controller that does not answer
 * is no error; see ->silent_ms.
 */
MUST_CHECK int engine_poll_step(struct engine_poll *poll);

/*
 * Takes steps until one has changed something, until @until_ms (CLOCK_BOOTTIME), or until @fd (-1:
 * none) is readable or a signal has arrived.  Returns like engine_poll_step().
 */
MUST_CHECK int engine_poll_wait(struct engine_poll *poll, int64_t until_ms, int fd);

void engine_poll_release(struct engine_poll *poll);

#endif
