/*
 * --set-priority: gives a waiting job another priority.  The job's own process takes the new
 * ticket, so this process asks it by a control record, and waits until it has done so.
 */
#include <errno.h>
#include <poll.h>

#include "bell.h"
#include "clock.h"
#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "request.h"
#include "verbs.h"

enum {
	OBEY_MS = 3000, /* for the job's process to act */
	LOOK_MS = 20,   /* between two looks whether it has */
	RING_MS = 200,  /* between two rings: the job may just have replaced its bell */
};

static struct job_target target;

/* Checks that the job waits and may get @priority.  0, or an exit status after a message. */
static int priority_check(uint64_t number, int64_t priority)
{
	int r = job_target_find(&target, number, "change the priority of");

	if (r != 0)
		return r;
	if (target.ticket.state == TICKET_GRANTED || target.lease)
		return job_target_refuse(
			&target, "has started; only a waiting job gets a priority");
	return request_check_priority(priority, &target.context);
}

static int refuse_second(void)
{
	return job_target_refuse(
		&target, "has another request for its priority; try again");
}

/* Asks the job's process.  Returns 0, or an exit status after a message. */
static int priority_ask(int64_t priority)
{
	struct control control = {
		.verb = CONTROL_PRIORITY,
		.ticket = target.job.job,
		.priority = priority,
	};
	/* priority_wait() then sees which request is the latest */
	int r = queue_begin_for_wish(
		&target.queue, target.job.job, target.ticket.owner.uid);

	if (r != 0)
		return job_target_fail(&target, r < 0 ? r : -ESTALE);
	r = queue_ask(&target.queue, &control, target.job.latest);
	if (r == QUEUE_ASKED)
		return refuse_second();
	return r == 0 ? 0 : job_target_fail(&target, r);
}

/*
 * Waits until the job has its new ticket, or needs none any more because it has started.  Returns
 * 0, or an exit status after a message.
 */
static int priority_wait(int64_t priority)
{
	int64_t begun_ms = clock_boot_ms(), rung_ms = 0;

	for (;;) {
		int64_t now_ms = clock_boot_ms();
		int r = job_target_look(&target);

		if (r < 0)
			return job_target_fail(&target, r);
		if (r > 0 || target.lease || target.ticket.state == TICKET_GRANTED ||
			target.ticket.request.priority == priority)
			return EXIT_DONE;
		if (target.queue.wish.priority != priority)
			return refuse_second();
		if (now_ms - begun_ms > OBEY_MS)
			return job_target_refuse(
				&target, "gets it once its process acts again");
		if (now_ms - rung_ms > RING_MS) {
			bell_ring(&target.context.dir, target.ticket.owner.token);
			rung_ms = now_ms;
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
}

int verb_set_priority(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(settings->verb.operands, 1, OPERAND_JOB);
	int64_t priority = settings->request.priority;
	struct operand job;
	int r = job_target_open(settings, &target);

	if (r == 0 && operand_next(&walk, &job, NULL) != 0)
		r = EXIT_MISUSE;
	if (r == 0)
		r = priority_check(job.first, priority);
	if (r != 0 || target.ticket.request.priority == priority)
		return r;
	r = priority_ask(priority);
	return r == 0 ? priority_wait(priority) : r;
}
