/*
 * The notifier of a job with --notify or GPULEASE_NOTIFY: a process that runs the user's command
 * when something happens to the job.  It is `gpulease-view notify`, with the user's rights alone
 * (hook_runner.h), and it is no child of the job.  It is no part of the job either: it has neither
 * the tag, the token, nor the FIFO of the lease, and its name keeps it out of the tree of another
 * job around it (process_lease.h).
 *
 * The process that looks after the job tells it what happens: the waiter, then the supervisor or
 * the watchdog.  They never wait for it.  What the notifier cannot take is lost.
 *
 *	notifier_start -> notifier_started, notifier_tell … -> notifier_ended
 *
 * Without notifier_start() the other functions do nothing.  If the process that looks after the job
 * is killed, the notifier ends at once, and runs no further command.
 */
#ifndef GPULEASE_NOTIFIER_H
#define GPULEASE_NOTIFIER_H

#include "broker.h"
#include "end_record.h"
#include "settings.h"

/* What happens; the first letter of a line that the notifier gets (see hook.h). */
enum notifier_event {
	NOTIFIER_QUEUED = 'q',  /* it waits, and may begin */
	NOTIFIER_STARTED = 's', /* text: the GPUs */
	NOTIFIER_PREEMPTED =
		'p', /* it waits again; number: the job that it gives way to */
	NOTIFIER_REQUEUED = 'r', /* it waits again, for another reason */
	NOTIFIER_IDLE = 'i',     /* text: what the job is told */
	NOTIFIER_SOON = 'l',     /* number: how long until the time limit, in ms */
	NOTIFIER_ENDED = 'e',    /* number: the exit status, -1: unknown; text: HOW BY */
};

/* The name of the part of gpulease-view. */
#define NOTIFIER_PART "notify"

/* Takes GPULEASE_NOTIFY as the value of --notify, unless that was given. */
void notifier_read_variable(struct settings *settings);

/* Starts the notifier of the job, which is in the queue now, if the job wants one. */
void notifier_start(const struct settings *settings, const struct broker *broker);

/* Tells it that the job, or another attempt of it, starts on @gpus. */
void notifier_started(
	uint64_t job, const struct snapshot *view, const struct gpuset *gpus);

/*
 * Returns when the notifier is to be told that the time limit @limit_ms (0: none) of an attempt
 * that began at @begun_ms is near; INT64_MAX: never, or it was told.  Times of CLOCK_BOOTTIME.
 */
int64_t notifier_soon_ms(int64_t begun_ms, int64_t limit_ms);

/* Tells it if that time has come.  The caller has just read the limit: --extend may change it. */
void notifier_tell_soon(uint64_t job, int64_t begun_ms, int64_t limit_ms);

void notifier_tell(
	enum notifier_event event, uint64_t job, int64_t number, const char *text);

/* Tells it that the job has ended, at @gone_ms of CLOCK_BOOTTIME, and lets it go. */
void notifier_ended(uint64_t job, int64_t gone_ms, const struct end_facts *facts);

/*
 * For the watchdog, which gives its descriptors fixed numbers: move the way to the notifier to a
 * number above @at, and to @at itself.
 */
void notifier_move_above(int at);
void notifier_keep_as(int at);

/* Whether there is a notifier. */
bool notifier_is_there(void);

#endif
