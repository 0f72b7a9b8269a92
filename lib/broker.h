/*
 * The broker: one job's way from its request to its GPUs.
 *
 *	broker_init -> broker_join -> broker_turn, broker_wait, broker_turn … -> granted
 *	                                                     `-> broker_leave
 *
 * Nothing here blocks but broker_wait(), no lock is held while it does, and nothing needs
 * releasing that a crash could leave: the kernel lets go of everything with the process.
 *
 * Killed here -> left behind -> who repairs it:
 *	in join, before the append -> FIFOs no ticket names -> a sweep
 *	waiting -> a ticket with a dead owner, its FIFOs -> whoever moves the hint
 *	while leases are written -> some records with a dead owner -> whoever replaces them
 *	after that -> a lease with a dead owner -> the same
 */
#ifndef GPULEASE_BROKER_H
#define GPULEASE_BROKER_H

#include "hold.h"
#include "passover.h"
#include "preempt.h"
#include "prober.h"
#include "snapshot.h"
#include "watch.h"

enum broker_outcome {
	BROKER_GRANTED,
	BROKER_WAITING,   /* ->verdict says for what */
	BROKER_PROBING,   /* no verdict yet: nvidia-smi is at work */
	BROKER_CANCELLED, /* somebody who may has cancelled the ticket: ->cancelled_by */
	BROKER_HOPELESS,  /* it was to come after a job that ended otherwise: ->held */
};

/* A lease that is not given back yet, of an attempt that is over. */
struct broker_debt {
	char token[TOKEN_SIZE]; /* "": there is none */
	uint64_t number;        /* of its ticket */
	int live_fd;            /* the FIFO, held until then */
	struct gpuset gpus;
};

#define BROKER_DEBT_NONE ((struct broker_debt){ .live_fd = -1 })

struct broker {
	const struct statedir *dir;
	/* tickets of one user that is not root, and of all; 0: any number */
	unsigned max_waiting, all_waiting;
	/*
	 * Who gets the lease instead of this process: lives already, holds no FIFO (->is_adopted),
	 * and has a token of its own; NULL: nobody
	 */
	const struct owner *heir;
	bool heir_is_shell;
	const char *recorder; /* RECORDER_WATCHDOG …: what tells the end; NULL: nothing */
	struct prober prober;
	struct passover passover;
	struct preempt preempt;
	struct hold_book book;
	struct watch watch;

	int leash_fd; /* whoever has a say in this job: to be read, or closed, wakes it; -1 */
	int signal_fd; /* a signalfd(2) that wakes it when it can be read; -1 */
	struct ticket ticket;
	uint64_t number; /* 0: not joined */
	int live_fd, bell_fd;
	struct broker_debt debt;
	uint64_t orders_from; /* controls before this record are of before the lease */

	/* of the last turn */
	struct verdict verdict;
	struct held held;      /* what holds the ticket back; BROKER_HOPELESS: for ever */
	uint32_t cancelled_by; /* uid */
	uint64_t preempted_by; /* the id of a job */
	bool has_rejoined;     /* the ticket file was lost, the number is a new one */
	int64_t now_ms, wake_ms;
	int64_t ahead_since_ms; /* since when only tickets ahead keep it from starting; 0: no */
	bool is_first;          /* no ticket that counts was before it at the last turn */
	uint64_t hint;          /* what the hint may be moved to */
	uint64_t broken_ticket; /* an unreadable record, and since when */
	int64_t broken_since_ms;

	int64_t adopted_ms;     /* start of the probe whose GPUs have their files */
	unsigned adopted_names; /* ->view.names.changes then */
	bool is_damaged;        /* while it waited one of its own files was removed */
	unsigned probe_backoff; /* how often a probe has changed nothing */
	int64_t judged_ms;      /* start of the probe that was judged last */

	/* 360 KiB, of which few pages are ever touched: last, and not in the stack */
	struct queue queue;
	struct snapshot view;
	struct plan plan;
};

/*
 * Prepares the zeroed @broker for a job; @dir and what @config points to stay the caller's.
 * 0 or a negative errno.
 */
MUST_CHECK int broker_init(struct broker *broker, const struct statedir *dir,
	const struct prober_config *config);

/*
 * Looks at the GPUs and leases as they are, without a ticket and without waiting; GPUs that
 * only the newest probe knows get their files.  0 or a negative errno.
 */
MUST_CHECK int broker_survey(struct broker *broker);

/*
 * Gets a probe that ends after now and surveys; waits for it until @until_ms.  0, also where
 * none came in time (->view.has_probe says), or a negative errno.
 */
MUST_CHECK int broker_probe(struct broker *broker, int64_t until_ms);

/*
 * Takes a ticket for @request of @user.  0 or a negative errno with the reason in @why
 * (-EDQUOT: too many wait already; -ENOENT: the job that it is to come after has never been).
 */
MUST_CHECK int broker_join(struct broker *broker, const struct request *request,
	const char *user, struct why *why);

/*
 * For who stays as the parent of the command: the job, which has been granted, goes back to
 * the end of the queue with @request, not to start before @not_before_ms (CLOCK_BOOTTIME; 0: at
 * once).  Its new ticket names the first, and the first the new one; its lease is held on to
 * until broker_give_back().  0, or a negative errno with the reason in @why: the job is as it
 * was, but has no bell any more.  A crash leaves tickets and a lease with a dead owner.
 */
MUST_CHECK int broker_requeue(struct broker *broker, const struct request *request,
	int64_t not_before_ms, struct why *why);

/*
 * At once or not at all: gives ->heir a lease on the GPUs that it and its children use
 * already, as nvidia-smi has shown it (broker_probe() first), with what @request needs of
 * each; how many has to be right, 0: any number.  0 with ->verdict.gpus; -ENODEV: it uses none;
 * or another negative errno; always with the reason in @why.  The ticket, which is void once this
 * process ends, is given up where it fails.
 */
MUST_CHECK int broker_adopt(struct broker *broker, const struct request *request,
	const char *user, struct why *why);

/*
 * Gives back the lease of the attempt before, of which nothing runs any more, and tells all who
 * wait.  0, also where there is none; COMMIT_LOCKED or a negative errno: not yet, the next turns
 * try again, and take nothing before.
 */
int broker_give_back(struct broker *broker);

/*
 * For a process that stays as the parent of the command: notes the command in the job's ticket and
 * lease, so that both outlive this process as long as the command lives.  0; COMMIT_LOCKED: not in
 * every lease file yet, call again after a moment; or a negative errno.
 */
MUST_CHECK int broker_note_command(struct broker *broker, const struct command *runs);

/*
 * What others want of the job, which has been granted and whose owner stays: read when the bell
 * rings (->bell_fd, of a preemptible job) or a signal comes.  BROKER_ORDER_CANCEL:
 * ->cancelled_by says who; BROKER_ORDER_PREEMPT: ->preempted_by is the job that waits for its
 * GPUs; BROKER_ORDER_NONE; or a negative errno.
 */
enum { BROKER_ORDER_NONE, BROKER_ORDER_CANCEL, BROKER_ORDER_PREEMPT };
MUST_CHECK int broker_read_orders(struct broker *broker);

/* The id of the job: the number of its first ticket. */
static inline uint64_t broker_job(const struct broker *broker)
{
	return ticket_job(broker->number, &broker->ticket);
}

/* Whether the job has joined and not been granted what it waits for. */
static inline bool broker_has_to_wait(const struct broker *broker)
{
	return broker->ticket.state == TICKET_WAITING;
}

/*
 * Takes a turn: does all that can be done now.  A broker_outcome, or a negative errno with
 * the reason in @why, after which the ticket is lost.
 */
MUST_CHECK int broker_turn(struct broker *broker, struct why *why);

/*
 * For who has no later turn: whether the last verdict was given without what nvidia-smi says of
 * GPUs on which a lease has ended since it was asked.  It is asked again then; a turn after
 * broker_wait() has the answer.
 */
bool broker_looks_again(struct broker *broker);

/*
 * After a turn whose verdict is to wait: until when a GPU that the job could use may be kept by
 * nothing but the witness of a job that has just ended; INT64_MAX: by none.
 */
int64_t broker_ending_ms(const struct broker *broker);

/*
 * Waits for whatever can change the verdict, and once it has joined for its leash, at most until
 * @until_ms.  0 or -errno.
 */
MUST_CHECK int broker_wait(struct broker *broker, int64_t until_ms);

/*
 * What would come of @request now, without a ticket, by what was surveyed last: as if it came
 * last of its priority.  Waits, where it chooses between several GPUs, until it is known how
 * they are linked, at most until @until_ms.  0 with ->verdict set; BROKER_HOPELESS; or a
 * negative errno, with the reason in @why where it is the request's (-EDQUOT, -ENOENT).
 */
MUST_CHECK int broker_foresee(struct broker *broker, const struct request *request,
	int64_t until_ms, struct why *why);

/*
 * When the job would start if all jobs ran to their limits, by the last turn (CLOCK_BOOTTIME);
 * 0: nobody knows.
 */
int64_t broker_estimate(struct broker *broker);

/* How many tickets wait before this one, itself included; 0 where that cannot be told. */
unsigned broker_position(struct broker *broker);

/* Gives up: removes the FIFOs, so that nobody need find them. */
void broker_leave(struct broker *broker);

void broker_release(struct broker *broker);

#endif
