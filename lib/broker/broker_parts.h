/*
 * Declares what the parts of the broker share.  All of them work on one struct broker, so they
 * have this one private header; broker.h has the public functions.
 *
 *	broker.c           the life of a turn: read, plan, lock, read and plan again, write
 *	broker_join.c      the ticket and its FIFOs: take, replace, give up; how many may wait
 *	broker_plan.c      what the queue means for this ticket
 *	broker_foresee.c   plans that take no GPUs: without a ticket, the estimated start
 *	broker_ahead.c     tickets ahead with owners that do not act
 *	broker_preempt.c   preemptible jobs that could make room
 *	broker_wait.c      which events and timers end the wait
 *	broker_orders.c    after the lease: orders of others, a further attempt, giving back
 *	broker_share.c     fair-share: by how much the job counts as having come later
 *	broker_adopt.c     a lease for a process that runs already
 */
#ifndef GPULEASE_BROKER_PARTS_H
#define GPULEASE_BROKER_PARTS_H

#include "broker.h"

/* Outcomes of steps within a turn; they never leave lib/broker. */
enum broker_step {
	BROKER_AGAIN = 140, /* the state has changed: read and plan again */
	BROKER_ASKED = 141, /* preemptible jobs were asked to end */
	/* a new probe has to show that the other GPUs are free */
	BROKER_LOOKS_FIRST = 142,
	BROKER_LOOKS_AHEAD = 143, /* this waiter looks after the tickets ahead of it */
};

/* --- broker.c ------------------------------------------------------------------- */

/*
 * Sets the request of the ticket, and notes which GPUs it chooses.  Its slots are those of ->view.
 */
void broker_set_request(struct broker *broker, const struct request *request);

/*
 * Reads leases, liveness and probe into ->view and judges the GPUs; makes lease files for new GPUs.
 * Call this between liveness_set_begin() and liveness_set_end().  Returns 0 or a negative errno.
 */
MUST_CHECK int broker_look(struct broker *broker);

/*
 * Writes the lease for ->result.verdict and marks the ticket as granted.  The files of its GPUs
 * must be locked, and everything must have been read since then.  0 (BROKER_GRANTED); BROKER_AGAIN:
 * one of the files was deleted meanwhile, and the lease is taken back; or a negative errno with the
 * reason in @why.
 */
MUST_CHECK int broker_write_lease(struct broker *broker, struct why *why);

/* Tidies up after broker_write_lease().  Call it without the locks. */
void broker_finish(struct broker *broker);

/* Whether the last probe is new enough to hand out the GPUs of @set. */
bool broker_is_probe_fresh(const struct broker *broker, const struct gpuset *set);

/* --- broker_join.c -------------------------------------------------------------- */

/* One of so many starts looks for FIFOs that no ticket names, and removes them. */
enum { BROKER_SWEEP_EVERY = 64 };

/*
 * Sets when the ticket of a new job may start, and its state: TICKET_GRANTED if the job needs no
 * GPU and has nothing to wait for, else TICKET_WAITING.  Pure.
 */
void broker_first_state(struct broker *broker);

/*
 * Makes the missing FIFOs and then appends the ticket, so that a ticket that can be read has its
 * FIFOs.  Returns 0, or a negative errno with the reason in @why: then it has removed the FIFOs.
 */
MUST_CHECK int broker_take_ticket(struct broker *broker, struct why *why);

/*
 * Takes a new ticket at the end of the new ticket file, because the old file was lost.  Returns 0,
 * or a negative errno with the reason in @why.
 */
MUST_CHECK int broker_rejoin(struct broker *broker, struct why *why);

/*
 * Call this after a ticket was taken.  Its time was read before it was appended, and its owner may
 * have been stopped in between.  Corrects a time that is more than a second too early: the order of
 * other tickets depends on it (queue_order.h).
 */
void broker_settle_arrival(struct broker *broker);

/* Makes the FIFOs of this process again if they were removed.  The next damage check retries. */
void broker_mend(struct broker *broker);

/*
 * Whether one more ticket may wait in addition to the tickets before number @before (UINT64_MAX:
 * all tickets).  Returns 0, or -EDQUOT with the reason in @why.
 */
MUST_CHECK int broker_check_quota(
	struct broker *broker, uint64_t before, struct why *why);

/* --- broker_orders.c ------------------------------------------------------------ */

/*
 * After queue_begin(), in a job that waits: takes a new ticket if its user, or root, has asked for
 * another priority.  Returns 0, or BROKER_AGAIN: the job has another place now.
 */
MUST_CHECK int broker_obey_wish(struct broker *broker);

/*
 * After the queue was read in a turn: if the job was released, or its time to begin has come, takes
 * a new ticket for it, or tries to do so again later.  A crash leaves tickets with a dead owner.
 * Returns 0; BROKER_AGAIN: the ticket has changed, so the turn has to read and plan again; or a
 * negative errno, and then the job must not go on.
 */
MUST_CHECK int broker_begin(struct broker *broker);

/* --- broker_share.c ------------------------------------------------------------- */

/*
 * Whether the verdict @kind of the attempt makes fair-share count: the job has to wait for others,
 * or would start before a job that fair-share has put behind it.  It does not compete if it waits
 * for a GPU that no job has, or may not begin yet.
 */
bool broker_competes(struct broker *broker, enum verdict_kind kind);

/* Whether fair-share has to be counted now: the attempt competes, or has waited for long. */
bool broker_is_share_due(const struct broker *broker);

/*
 * Counts fair-share, and takes a new ticket if the job counts as having come later.  Returns 0,
 * BROKER_AGAIN: the job has another place now; or a negative errno with the reason in @why.
 */
MUST_CHECK int broker_take_share(struct broker *broker, struct why *why);

/* --- broker_plan.c -------------------------------------------------------------- */

/* Returns the place of this ticket in the order of the queue. */
struct queue_place broker_place(const struct broker *broker);

/*
 * *@ret_life is the liveness of a waiting ticket's owner; NULL: the ticket does not wait (any
 * more).  Returns 0, or -ENOMEM.
 */
MUST_CHECK int broker_judge_waiting(
	struct broker *broker, const struct queue_row *row, struct liveness **ret_life);

/*
 * Whether the ticket takes part in the plan: it waits, its owner lives and has no lease yet, and
 * the ticket is not passed over.
 */
bool broker_counts(struct broker *broker, const struct queue_row *row);

/*
 * For messages, as far as this process knows without opening anything: whether the ticket waits,
 * and whether it also takes part in the plan.  An owner that was not judged yet counts as alive
 * unless no process has its pid.
 */
bool broker_seems_to_wait(struct broker *broker, const struct queue_row *row);
bool broker_seems_to_count(struct broker *broker, const struct queue_row *row);

/*
 * Plans the tickets up to our own, @own, or until no later ticket can start.  Call this after
 * queue_begin() and snapshot_judge().  Marks an owner as watched if its end can change the verdict,
 * and sets ->state.hint and ->result.held.  Returns 0 with *@ret_verdict; BROKER_HOPELESS; or a
 * negative errno.
 */
MUST_CHECK int broker_plan(
	struct broker *broker, const struct queue_row *own, struct verdict *ret_verdict);

/*
 * Plans again in the same turn, over ->view.facts as they are now and with ->result.held as it was
 * found.  Returns 0 with *@ret_verdict, or a negative errno.
 */
MUST_CHECK int broker_replan(struct broker *broker, struct verdict *ret_verdict);

/* Whether the job could start if every waiting ticket ahead were passed over. */
bool broker_could_start(struct broker *broker);

/* --- broker_preempt.c ----------------------------------------------------------- */

/*
 * Marks the leases of ->view that tickets of higher priority have rightly asked to end.  The plan
 * counts on their end; otherwise the GPUs that they leave would go to other tickets than the head.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int broker_mark_sent_back(struct broker *broker);

/*
 * After a turn that has to wait: asks preemptible jobs to end if the ticket could then start at
 * once, see preempt.h.  Returns 0: it asked none, or none yet (->state.wake_ms is set);
 * BROKER_ASKED; BROKER_LOOKS_FIRST; or a negative errno.  Sets *@could_start if only tickets ahead
 * keep the ticket from starting in their place.
 */
MUST_CHECK int broker_preempt(struct broker *broker, bool *could_start);

/*
 * Call this after a plan without a ticket.  If the job would have to wait, and jobs would be sent
 * back for it, sets ->result.verdict to its start in their place, and names them in
 * ->result.sends_back.  Returns 0 or a negative errno.
 */
MUST_CHECK int broker_foresee_preemption(struct broker *broker);

/* --- broker_ahead.c ------------------------------------------------------------- */

/*
 * After a turn that has to wait: BROKER_LOOKS_AHEAD if this waiter is one of the few that look
 * after the tickets ahead, because only these keep it from starting (@could_start); 0 if it is not,
 * or not yet (->state.wake_ms is set); or a negative errno.
 */
MUST_CHECK int broker_looks_ahead(struct broker *broker, bool could_start);

/*
 * After a turn that has to wait: passes over a ticket ahead if the plan starts it but its owner
 * does not, see passover.h.  BROKER_AGAIN: it passes over one more, plan again; 0; or a negative
 * errno.  Sets ->state.wake_ms, and starts a probe if one is due.
 */
MUST_CHECK int broker_pass_stuck(struct broker *broker, bool could_start);

/*
 * At the end of a turn: writes into ->ticket.stuck why this process cannot act, or "" if it can.
 * @is_spinning: even the last try of the turn came to BROKER_AGAIN.
 */
void broker_tell_stuck(struct broker *broker, bool is_spinning);

/*
 * Rings all later waiters.  For a job that starts although tickets ahead do not act: a waiter
 * without a timer does not notice this start, and may be the next that can start.
 */
void broker_ring_behind(struct broker *broker);

/*
 * After a start: rings the later waiters that the plan of the start lets start, too.  Some of them
 * may start only now, because this start has moved the reservation of a ticket between.
 */
void broker_ring_next(struct broker *broker);

/* --- broker_wait.c -------------------------------------------------------------- */

/*
 * After an errno has ended a turn: lets go of the lease files and of the lives of other jobs, since
 * this process may itself lack what it holds, and makes the next pause twice as long.  Returns when
 * to take the next turn.
 */
int64_t broker_let_go(struct broker *broker, int error);

/* The most descriptors for lease files and for the lives of other jobs. */
enum { BROKER_FDS_MOST = 36 };

/*
 * Whether the choice of several GPUs has to wait until their links are known.  If so, it has them
 * read.
 */
bool broker_wants_links(struct broker *broker);

/*
 * Sets ->state.wake_ms for changes that raise no event: GPUs that become free silently, owners that
 * cannot be watched.  Starts a probe if one is due.
 */
void broker_set_alarm(struct broker *broker);

#endif
