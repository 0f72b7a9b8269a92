/*
 * Between the parts of the broker: broker.c takes turns, broker_join.c tickets, broker_plan.c
 * says what the queue means for this job, broker_ahead.c which waiters look after tickets ahead,
 * broker_wait.c what is worth waking up for, broker_stuck.c which owners cannot act,
 * broker_adopt.c leases those who are there already.
 */
#ifndef GPULEASE_BROKER_PARTS_H
#define GPULEASE_BROKER_PARTS_H

#include "broker.h"

/* Makes the FIFOs of this process again if they were removed; a failure is retried later. */
void broker_mend(struct broker *broker);

/*
 * Leases, lives and probe, between lives_begin() and lives_end(); GPUs that are new get their
 * files.  0 or a negative errno.
 */
MUST_CHECK int broker_look(struct broker *broker);

/*
 * With the files of the GPUs of ->verdict locked and all read since: writes the lease.  0, or a
 * negative errno with the reason in @why.
 */
MUST_CHECK int broker_write_lease(struct broker *broker, struct why *why);

/* After that, without the locks: the ticket says granted. */
void broker_finish(struct broker *broker);

/*
 * Plans the rows up to our own, @own, or to where no row can start any more, over what
 * queue_begin() and snapshot_judge() found.  Marks the lives whose end concerns us as watched
 * and sets ->hint and ->held.  0; BROKER_HOPELESS; or a negative errno.
 */
MUST_CHECK int broker_plan(
	struct broker *broker, const struct queue_row *own, struct verdict *ret);

/*
 * The same again, over ->view.facts as they are now, with ->held as it was found.  0 or a
 * negative errno.
 */
MUST_CHECK int broker_replan(struct broker *broker, struct verdict *ret);

/*
 * Notes in the leases of ->view which are being sent back: the plan counts on their end, so
 * that nobody takes what they leave before the head for whom they do.  0 or a negative errno.
 */
MUST_CHECK int broker_mark_sent_back(struct broker *broker);

/*
 * After a turn whose ->verdict is to wait: has those sent back in whose place the ticket could
 * start at once, see preempt.h.  0: nobody, or nobody yet, see ->wake_ms; BROKER_ASKED;
 * BROKER_LOOKS_FIRST: a probe has to show that the other GPUs are free; or a negative errno.
 * Sets *@could_start where only tickets ahead keep it from that.
 */
enum { BROKER_ASKED = 1, BROKER_LOOKS_FIRST = 2 };
MUST_CHECK int broker_preempt(struct broker *broker, bool *could_start);

/* Whether the probe is new enough to hand out the GPUs of @set. */
bool broker_is_probe_fresh(const struct broker *broker, const struct gpuset *set);

/*
 * The state of a ticket for @request when it is taken: without GPUs, or jobs that come first,
 * there is nothing to wait for.  Pure.
 */
uint32_t broker_first_state(const struct request *request);

/*
 * Makes the FIFOs that are not there, and then appends the ticket, so that one that can be read
 * has its FIFOs.  0, or a negative errno with the reason in @why: neither is left.
 */
MUST_CHECK int broker_take_ticket(struct broker *broker, struct why *why);

/*
 * The ticket file was lost: a new ticket in the new one, at its end.  0, or a negative errno with
 * the reason in @why.
 */
MUST_CHECK int broker_rejoin(struct broker *broker, struct why *why);

/* Tickets after which somebody looks for litter. */
enum { BROKER_SWEEP_EVERY = 64 };

/* Our place in the order. */
struct queue_place broker_place(const struct broker *broker);

/*
 * Whether one more ticket may wait, besides those before ticket @before, UINT64_MAX for all of
 * them.  0, or -EDQUOT with the reason in @why.
 */
MUST_CHECK int broker_check_quota(
	struct broker *broker, uint64_t before, struct why *why);

/*
 * Whether a ticket that waits by its own word is one to reckon with: its owner lives, has no
 * lease yet, and is not passed over.
 */
bool broker_counts(struct broker *broker, const struct queue_row *row);

/*
 * After a turn whose verdict is to wait: passes over tickets ahead that could start and do not,
 * see passover.h.  PASSOVER_CHANGED: plan again; 0; or a negative errno.  Sets ->wake_ms, and
 * starts a probe if one is due.
 */
MUST_CHECK int broker_pass_stuck(struct broker *broker, bool could_start);

/*
 * At the end of a turn: says in ->ticket why this process cannot act, or that it can.
 * @is_spinning: the last try of the turn still had to plan again.
 */
void broker_tell_stuck(struct broker *broker, bool is_spinning);

/* Whether the job could start were every waiting ticket ahead passed over. */
bool broker_could_start(struct broker *broker);

/*
 * After a turn whose verdict is to wait.  Returns 1 if this waiter is one of the few that look
 * after the tickets ahead, because only they keep it from starting (@could_start); 0 if it is not,
 * or not yet; or a negative errno.  Sets ->wake_ms.
 */
MUST_CHECK int broker_looks_ahead(struct broker *broker, bool could_start);

/*
 * For a job that starts although tickets ahead do not act: rings the waiters behind it.  A waiter
 * that has no timer does not know of this start, and may be the next that can start.
 */
void broker_ring_behind(struct broker *broker);

/*
 * Whether the choice of several GPUs has to wait until it is known how they are linked; sees
 * to it that it will be.
 */
bool broker_wants_links(struct broker *broker);

/*
 * Sets the alarm, ->wake_ms, for what raises no event: GPUs that return silently, owners that
 * cannot be watched.  Starts a probe where one is due.
 */
void broker_set_alarm(struct broker *broker);

#endif
