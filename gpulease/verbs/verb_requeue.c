/*
 * --requeue: puts running jobs back into the queue, to run again under their ids.
 *
 * The supervisor of a job does it: this process appends a request to the ticket file, rings the
 * bell of the ticket, and waits until the ticket says that the job goes back (->goes_back).  It
 * does not wait for the end of the attempt, because it may be a part of it: a handler that has
 * saved, and asks for its own job.  Killed before the ring, it leaves a request that the supervisor
 * obeys at the end of the attempt at the latest.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "bell.h"
#include "clock.h"
#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "verbs.h"

enum {
	OBEY_MS = 3000, /* for the supervisor to act */
	LOOK_MS = 5,    /* between two looks whether it has */
	RING_MS = 200,  /* between two rings */
};

static struct job_target target;

/* Whether process @owner is alive; one that cannot be judged counts as alive. */
static bool is_alive(const struct owner *owner)
{
	return owner_judge(owner, target.context.dir.pidns, NULL) != OWNER_DEAD;
}

/* Returns why a job without a supervisor cannot run again. */
static const char *explain_no_supervisor(void)
{
	const struct owner *owner = job_target_owner(&target);
	struct owner command = owner_as_command(
		owner, target.lease ? &target.lease->runs : &target.ticket.runs);

	if (target.lease && (target.lease->is_shell || owner->is_adopted))
		return "is a lease without a command, so nothing can run again";
	if (is_alive(owner))
		return "has no supervisor that could run it again; start such a job with "
		       "--submit or --retries N";
	return command.pid && is_alive(&command)
		       ? "has lost its supervisor, so it cannot run again; submit it anew"
		       : "has ended";
}

/* Checks that the job runs and may run again.  Returns 0, or an exit status after a message. */
static int requeue_check(uint64_t number)
{
	int r = job_target_find(&target, number, "requeue");

	if (r != 0)
		return r;
	if (!target.lease && target.ticket.state == TICKET_WAITING)
		return job_target_refuse(
			&target, "waits already; only a running job can be requeued");
	if (!target.ticket.request.is_supervised || !is_alive(job_target_owner(&target)))
		return job_target_refuse(&target, explain_no_supervisor());
	if (target.ticket.request.runs_once)
		return job_target_refuse(
			&target, "may not be requeued: it has --no-requeue");
	return 0;
}

/* Asks the supervisor.  Returns 0, or an exit status after a message. */
static int requeue_ask(void)
{
	struct control control = {
		.verb = CONTROL_REQUEUE,
		.ticket = target.job.job,
		.by = target.job.latest,
	};
	/* one request is enough, also for a process that does not act yet */
	int r = queue_ask(&target.queue, &control, target.job.latest);

	return r < 0 ? job_target_fail(&target, r) : 0;
}

/*
 * Waits until attempt @asked is going back, or has ended and the job has its next ticket.  Returns
 * 0, or an exit status after a message.
 */
static int requeue_wait(uint64_t asked)
{
	int64_t begun_ms = clock_boot_ms(), rung_ms = 0;

	for (;;) {
		int64_t now_ms = clock_boot_ms();
		int r = job_target_look(&target);

		if (r < 0)
			return job_target_fail(&target, r);
		if (r > 0)
			return job_target_refuse(
				&target, "has finished before it could go back");
		if (target.job.latest != asked || target.ticket.goes_back)
			return EXIT_DONE;
		if (now_ms - begun_ms > OBEY_MS)
			return job_target_refuse(
				&target, "goes back once its supervisor acts again");
		if (now_ms - rung_ms > RING_MS) {
			bell_ring(&target.context.dir, target.ticket.owner.token);
			rung_ms = now_ms;
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
}

/* Returns the exit status. */
static int requeue_job(uint64_t number)
{
	int r = requeue_check(number);

	if (r == 0)
		r = requeue_ask();
	return r == 0 ? requeue_wait(target.job.latest) : r;
}

int verb_requeue(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOB);
	struct operand operand;
	int status;

	/*
	 * The supervisor ends the processes of the job by TERM.  This process may be one of them,
	 * and its caller wants to know that the request was heard.
	 */
	(void)signal(SIGTERM, SIG_IGN);
	status = job_target_open(settings, &target);
	if (status != 0)
		return status;
	/* they were checked when the command line was read */
	while (operand_next(&walk, &operand, NULL) == 0)
		if (requeue_job(operand.first) != EXIT_DONE)
			status = EXIT_NOT_DONE;
	return status;
}
