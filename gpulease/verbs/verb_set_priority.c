/*
 * --set-priority: gives a waiting job another priority.  The job's own process takes the new
 * ticket, so this process asks it by a control record, and waits until it has done so.
 */
#include <poll.h>

#include "bell.h"
#include "clock.h"
#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "request.h"
#include "shared_state.h"
#include "verbs.h"

enum {
	OBEY_MS = 3000, /* for the job's process to act */
	LOOK_MS = 20,   /* between two looks whether it has */
	RING_MS = 200,  /* between two rings: the job may just have replaced its bell */
};

static struct job_target target;

/*
 * Reads the job anew, and checks that it waits and may get @priority.  Returns 0, or an exit status
 * after a message.
 */
static int priority_look(uint64_t number, int64_t priority)
{
	int r = queue_begin(&target.queue, 0);

	if (r == 0)
		r = snapshot_read(&target.view, clock_boot_ms());
	if (r != 0)
		return shared_state_report(&target.context, r);
	r = job_target_find(&target, number, "change the priority of");
	if (r != 0)
		return r;
	if (target.ticket.state == TICKET_GRANTED || target.lease)
		return job_target_refuse(
			&target, "has started; only a waiting job gets a priority");
	return request_check_priority(priority, &target.context);
}

/* Asks the job's process.  Returns 0, or an exit status after a message. */
static int priority_ask(int64_t priority)
{
	struct control control = {
		.verb = CONTROL_PRIORITY,
		.uid = (uint32_t)getuid(),
		.ticket = target.job.job,
		.at_ms = clock_boot_ms(),
		.priority = priority,
	};
	int r;

	text_copy(control.boot, sizeof(control.boot), target.context.dir.boot);
	r = ticket_append_control(&target.queue.file, &control);
	return r < 0 ? job_target_refuse(&target, strerror(-r)) : 0;
}

/* Waits until the job has its new ticket.  Returns 0, or an exit status after a message. */
static int priority_wait(uint64_t number, int64_t priority)
{
	int64_t begun_ms = clock_boot_ms(), rung_ms = 0;

	while (target.ticket.request.priority != priority) {
		int64_t now_ms = clock_boot_ms();
		int r;

		if (now_ms - begun_ms > OBEY_MS)
			return job_target_refuse(
				&target, "gets it once its process acts again");
		if (now_ms - rung_ms > RING_MS) {
			bell_ring(&target.context.dir, target.ticket.owner.token);
			rung_ms = now_ms;
		}
		(void)poll(NULL, 0, LOOK_MS);
		r = priority_look(number, priority);
		if (r != 0)
			return r;
	}
	return EXIT_DONE;
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
		r = priority_look(job.first, priority);
	if (r == 0 && target.ticket.request.priority != priority)
		r = priority_ask(priority);
	return r == 0 ? priority_wait(job.first, priority) : r;
}
