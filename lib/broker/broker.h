/*
 * The broker brings one job from its request to its GPUs.
 *
 *	broker_init -> broker_join -> broker_turn, broker_wait, broker_turn … -> granted
 *	                                                     `-> broker_leave
 *
 * There is no server.  Each waiting process owns one ticket in the shared ticket file and has a
 * broker of its own.  In a turn it reads the tickets before its own, all leases and the last probe,
 * computes the plan from them, and writes its lease if the plan starts its ticket.  Otherwise it
 * waits for an event that can change the plan, and takes another turn.  All brokers plan from the
 * same files, so they agree without a coordinator.
 *
 * Only broker_wait() blocks for long, and no lock is held meanwhile.  A crash leaves no lock and no
 * open descriptor, because the kernel closes them with the process.
 *
 * Killed here -> left in the state directory -> repaired by
 *	broker_join(), before the ticket is appended -> FIFOs that no ticket names -> a sweep
 *	while it waits -> a ticket with a dead owner, its FIFOs -> the process that moves the hint
 *	while leases are written -> records with a dead owner -> the process that replaces them
 *	after that -> a lease with a dead owner -> the process that replaces it
 */
#ifndef GPULEASE_BROKER_H
#define GPULEASE_BROKER_H

#include "config.h"
#include "dependency.h"
#include "foretell.h"
#include "passover.h"
#include "preempt.h"
#include "prober.h"
#include "snapshot.h"
#include "watch.h"

/*
 * Outcomes.  The functions below return 0, a negative errno, or a value of the enum that their
 * comment names.  The values differ from those of the other modules of lib/broker, so an outcome
 * of another module that is passed up by mistake is noticed.
 */

/* What a turn comes to. */
enum broker_outcome {
	BROKER_GRANTED = 0,     /* the lease is written, or the job needs no GPU */
	BROKER_WAITING = 100,   /* ->result.verdict says for what */
	BROKER_PROBING = 101,   /* no verdict yet: nvidia-smi is running */
	BROKER_CANCELLED = 102, /* ->result.cancelled_by has cancelled the ticket */
	BROKER_HOPELESS = 103,  /* it can never start; ->result.held names the reason */
	/* another process has locked a lease file: call again later */
	BROKER_LOCKED = 104,
	/*
	 * An errno has ended the turn, ->result.trouble says which.  The job keeps its ticket and
	 * waits: call broker_wait(), which returns after a pause that grows from turn to turn.
	 */
	BROKER_TROUBLED = 105,
};

/* What other processes ask of a job that has its lease. */
enum broker_order {
	BROKER_ORDER_NONE = 0,
	BROKER_ORDER_CANCEL = 120,  /* ->result.cancelled_by has cancelled the job */
	BROKER_ORDER_PREEMPT = 121, /* job ->result.preempted_by waits for its GPUs */
	BROKER_ORDER_REQUEUE = 122, /* its user, or root, wants it back in the queue */
};

/* The lease of an earlier attempt of the job, which has ended; it is not given back yet. */
struct broker_debt {
	char token[TOKEN_SIZE]; /* "": there is no such lease */
	uint64_t number;        /* of the ticket of that attempt */
	int live_fd;            /* its live FIFO, held until the lease is given back */
	struct gpuset gpus;
};

#define BROKER_DEBT_NONE ((struct broker_debt){ .live_fd = -1 })

/* Input: the caller sets it after broker_init() and before broker_join(). */
struct broker_input {
	/* How many tickets may wait: of one user other than root, and of all users; 0: no limit. */
	unsigned max_waiting, all_waiting;
	/*
	 * A running process that gets the lease instead of this process.  It holds no live FIFO,
	 * but its watchdog does (OWNER_WATCHED), and it has a token of its own.  NULL: this process
	 * gets the lease.
	 */
	const struct owner *heir;
	bool heir_is_shell;
	/* RECORDER_WATCHDOG …: which process will record the end of the job; NULL: none */
	const char *recorder;
	/*
	 * The connection to the process that controls this job; -1: none.  broker_wait() returns
	 * when it becomes readable or its other end is closed.
	 */
	int leash_fd;
	/* the thresholds of this job, stricter than the machine's; NULL: it has none of its own */
	const struct usage_policy *own_usage;
	/* the job begins at this time at the earliest (CLOCK_BOOTTIME); 0: it may at once */
	int64_t begin_ms;
	bool is_held; /* it waits until a user that may do so has released it */
	struct config_share
		share; /* fair-share, see broker_share.c; zeros: it does not count */
	bool sends_none_back; /* the job does not wait until a job that it sends back has ended */
	int signal_fd; /* a signalfd(2); broker_wait() returns when it is readable; -1: none */
};

/* What a user had and waits for, in GPU-milliseconds, and by how much that makes a job later. */
struct broker_share {
	uint64_t had_ms, waits_ms;
	int64_t late_ms;
};

/* Outcome: what the last call found; the caller reads it. */
struct broker_result {
	struct verdict verdict;
	/* what holds the ticket back although GPUs may be free */
	struct dependency_verdict held;
	/* the GPUs that only ->input.own_usage refuses now; the request does not allow them */
	struct gpuset refused;
	uint32_t cancelled_by; /* the uid of the user who cancelled the job */
	/* the jobs that would be sent back for this one, "3,5"; "": none; broker_foresee() */
	char sends_back[64];
	uint64_t preempted_by;     /* the id of the job that asked for the GPUs */
	struct broker_share share; /* for which the job counts as having come later */
	bool has_rejoined;  /* the ticket file was lost in this turn: ->number is new */
	struct why trouble; /* after BROKER_TROUBLED; "": the last turn was without */
};

/* State: what the broker remembers between turns.  Only lib/broker and its tests use it. */
struct broker_state {
	int64_t now_ms;  /* when leases, liveness and probe were read last */
	int64_t wake_ms; /* the next turn is due at this time at the latest */
	bool is_first;   /* at the last turn no ticket that counts was before this one */

	/* the hint of the ticket file: no ticket before it waits, see queue.h */
	uint64_t hint;           /* the hint may be moved to this ticket */
	uint64_t broken_ticket;  /* the first record that cannot be read; 0: none */
	int64_t broken_since_ms; /* since when it cannot be read */

	struct gpuset
		told; /* the GPUs that the ticket allowed when it was last written */

	/* since when only tickets ahead keep it from starting (broker_ahead.c); 0: they do not */
	int64_t ahead_since_ms;

	/* an errno that has ended a turn, positive; 0: the last turn was without */
	int trouble;
	int64_t pause_ms; /* after it */
	unsigned
		fds_most; /* for lease files and the lives of other jobs; 0: not known yet */

	/* files and probes */
	int64_t adopted_ms; /* start of the last probe that listed only GPUs with lease files */
	unsigned adopted_names; /* ->view.names.changes at that time */
	bool is_damaged; /* a file that this waiter needs was removed or replaced */
	unsigned probe_backoff; /* how many probes in a row have changed nothing */
	int64_t judged_ms;      /* start of the probe that was judged last */
	/* broker_looks_again(): the start of the last new probe, and how many there were */
	int64_t looked_ms;
	unsigned looks;

	/* a job that has gone back into the queue */
	struct broker_debt debt; /* the lease that it still has to give back */
	bool waits;              /* other jobs keep this attempt from starting */
	bool is_late;            /* fair-share has been counted for this attempt */
	uint64_t orders_from;    /* controls before this record precede the lease */
	uint64_t wish_done; /* ->queue.wish up to this control was obeyed, or is void */
};

/*
 * The GPUs that the job may have and prefers, by the slots that they had when it joined.  The
 * request of its ticket names them by the slots of the last turn.
 */
struct broker_choice {
	struct gpuset allow;
	struct preference prefer;
	char uuids[GPUSET_MAX][UUID_SIZE]; /* by slot; "": no GPU had it */
};

/*
 * The members after ->state are the parts that the broker works with.  A caller may read them, and
 * may use ->prober and ->view through the functions of prober.h and commit.h.  Only the broker
 * changes ->ticket, ->number and ->queue.
 */
struct broker {
	struct broker_input input;
	struct broker_result result;
	struct broker_state state;

	const struct statedir *dir;

	/* the job's place in the queue, and its FIFOs */
	struct ticket ticket;
	uint64_t number;      /* of the ticket; 0: not joined */
	int live_fd, bell_fd; /* -1: none */
	/* the live FIFO of ->input.heir, made before its lease, for its watchdog; -1: none */
	int heir_fd;

	struct prober prober;
	struct passover passover;
	struct preempt preempt;
	struct dependency_book book;
	struct watch watch;

	/*
	 * 360 KiB, most of which is never touched.  So these come last, and a struct broker never
	 * goes on the stack.
	 */
	struct queue queue;
	struct snapshot view;
	struct plan plan;
	struct broker_choice choice;
};

/*
 * Prepares the zeroed @broker for a job and opens the ticket file.  @dir and the objects that
 * @config points to stay the caller's and must outlive @broker.  Returns 0 or a negative errno.
 */
MUST_CHECK int broker_init(struct broker *broker, const struct statedir *dir,
	const struct prober_config *config);

/*
 * Reads GPUs, leases and the last probe into ->view, without a ticket and without waiting.  Makes
 * lease files for GPUs that only the last probe shows.  Returns 0 or a negative errno.
 */
MUST_CHECK int broker_survey(struct broker *broker);

/*
 * Waits for a probe that ends after the time of the call, at most until @until_ms, and then calls
 * broker_survey().  Returns 0, also if no probe ended in time (see ->view.has_probe), or a negative
 * errno.
 */
MUST_CHECK int broker_probe(struct broker *broker, int64_t until_ms);

/*
 * Takes a ticket for @request of @user.  Returns 0, or a negative errno with the reason in @why:
 * -EDQUOT: too many tickets wait already; -ENOENT: a job that @request depends on has never
 * existed.
 */
MUST_CHECK int broker_join(struct broker *broker, const struct request *request,
	const char *user, struct why *why);

/*
 * Puts a job that has its lease back at the end of the queue, with @request, but for its priority
 * and its choice of GPUs, which stay as they are in the ticket.  For a supervisor,
 * which stays as the parent of the command.  The job does not start before @not_before_ms
 * (CLOCK_BOOTTIME; 0: at once).  The new ticket names the job's first ticket, and the first ticket
 * names the new one.  The old lease is kept until broker_give_back().
 *
 * Returns 0, or a negative errno with the reason in @why: then the job has its old ticket and lease
 * as before, but no bell.  A crash leaves tickets and a lease with a dead owner.
 */
MUST_CHECK int broker_requeue(struct broker *broker, const struct request *request,
	int64_t not_before_ms, struct why *why);

/*
 * Changes the place of a waiting job in the queue: takes a new ticket with @priority, which stands
 * as if the job had come @late_ms later than it did (queue_order.h).  The job keeps its id and its
 * time of arrival.  The new ticket names the job's first ticket, and the first ticket names the new
 * one; the old ticket is left, and its FIFOs are removed.
 *
 * Returns 0, or a negative errno with the reason in @why: then the job waits with its old ticket.
 * A crash leaves tickets with a dead owner.
 */
MUST_CHECK int broker_renew(
	struct broker *broker, int64_t priority, int64_t late_ms, struct why *why);

/*
 * Gives ->input.heir a lease on the GPUs that it and its descendants use already, as the last probe
 * shows (call broker_probe() first).  Never waits in the queue.  @request says what the job needs
 * of each GPU; its number of GPUs must be the number in use, or 0.
 *
 * Returns 0 with the GPUs in ->result.verdict; -ENODEV: the heir uses no GPU; or another negative
 * errno; an error comes with the reason in @why.  The ticket that this process takes for the lease
 * is void once this process ends; the lease lives as long as the heir.
 */
MUST_CHECK int broker_adopt(struct broker *broker, const struct request *request,
	const char *user, struct why *why);

/*
 * Gives back the lease of the previous attempt, of which no process runs any more, and rings all
 * waiters.  Returns 0, also if there is no such lease; BROKER_LOCKED or a negative errno: it is not
 * given back yet.  Then the next turns retry, and take no GPUs before that succeeds.
 */
int broker_give_back(struct broker *broker);

/*
 * Writes the command into the job's ticket and lease, so that both outlive this process (a
 * supervisor) as long as the command lives.  Returns 0; BROKER_LOCKED: some lease files do not have
 * it yet, call again after a moment; or a negative errno.
 */
MUST_CHECK int broker_note_command(struct broker *broker, const struct command *runs);

/*
 * Reads what other processes ask of the job, which has its lease and an owner that stays.  Call
 * this when ->bell_fd (of a supervised job) is readable or a signal has come.  Returns a
 * broker_order or a negative errno.
 */
MUST_CHECK int broker_read_orders(struct broker *broker);

/*
 * Notes in the ticket that the job goes back into the queue when this attempt has ended: the
 * process that has asked for it waits for this note.
 */
void broker_note_requeue(struct broker *broker);

/* Removes the bell of a job whose last attempt has ended.  A crash leaves it to the sweep. */
void broker_remove_bell(struct broker *broker);

/*
 * Returns when (CLOCK_BOOTTIME) the next window begins that sends the running job back; INT64_MAX:
 * none does, or the job is not preemptible.  Reads the windows.
 */
int64_t broker_window_ms(const struct broker *broker);

/* Returns the id of the job: the number of its first ticket. */
static inline uint64_t broker_job(const struct broker *broker)
{
	return ticket_job(broker->number, &broker->ticket);
}

/* Whether the job has a ticket that still waits. */
static inline bool broker_has_to_wait(const struct broker *broker)
{
	return broker->ticket.state == TICKET_WAITING;
}

/*
 * Takes a turn: does all that can be done now.  Returns a broker_outcome.  No errno ends the wait
 * of a job that has its ticket: see BROKER_TROUBLED.
 */
MUST_CHECK int broker_turn(struct broker *broker);

/*
 * For a caller that gives up instead of waiting, after a turn that came to @outcome: whether it has
 * to wait for nvidia-smi, because the verdict rests on a probe that began before some lease ended.
 * If so, the caller calls broker_wait(), and the next turn uses the result.  After two new probes
 * returns false: a damaged record can make a GPU need another one each time.
 */
bool broker_looks_again(struct broker *broker, int outcome);

/*
 * After a turn that came to BROKER_WAITING.  When a job has ended, its watchdog or supervisor keeps
 * the lease for a moment, in which it looks for leftover processes of the job.  Returns when
 * the first such lease on a GPU that our job could use should be over; INT64_MAX: there is none.
 */
int64_t broker_ending_ms(const struct broker *broker);

/*
 * Waits until an event can have changed the verdict, at most until @until_ms.  Once the job has a
 * ticket, ->input.leash_fd and ->input.signal_fd count as events, too, and the function returns 0
 * whatever happens.  Without a ticket it returns 0 or a negative errno.
 *
 * While it waits, a process has 64 descriptors open at most, however long the queue is.
 */
MUST_CHECK int broker_wait(struct broker *broker, int64_t until_ms);

/*
 * Plans @request without a ticket, as if its ticket were the last of its priority.  If the job
 * could start only in the place of jobs that it may send back, plans as if these had ended, and
 * ->result.sends_back names them.  If it can choose between several GPUs it first waits for their
 * links to be known, at most until @until_ms.  Returns 0 with ->result.verdict; BROKER_HOPELESS; or
 * a negative errno, with the reason in @why if the request is at fault (-EDQUOT, -ENOENT as in
 * broker_join()).
 */
MUST_CHECK int broker_foresee(struct broker *broker, const struct request *request,
	int64_t until_ms, struct why *why);

/*
 * Returns when the job would start if all jobs ran to their time limits, as of the last turn
 * (CLOCK_BOOTTIME); 0: unknown.
 */
int64_t broker_estimate(struct broker *broker);

/*
 * Sets *@ret to when the job will usually start, as of the last turn; ->runs 0: that cannot be
 * foretold.  Reads the history, which takes a few milliseconds.
 */
void broker_foretell(struct broker *broker, struct foretold *ret);

/* Returns the ticket's position in the queue: 1 for the first; 0 if that cannot be computed. */
unsigned broker_position(struct broker *broker);

/*
 * Returns what counts by fair-share for a job of user @uid that comes now.  Ticket @but does not
 * count.  The queue and the leases of @view were read.
 */
struct broker_share broker_share_of(const struct config_share *share, struct queue *queue,
	struct snapshot *view, uint32_t uid, uint64_t but);

/* Gives up the ticket: removes its FIFOs, so that no other process has to find them. */
void broker_leave(struct broker *broker);

/*
 * Frees what @broker holds.  It leaves the FIFOs of the ticket in place.  Only tests call it: in
 * the program, a broker lives as long as its process.
 */
void broker_release(struct broker *broker);

#endif
