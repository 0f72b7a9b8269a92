/*
 * --release: lets jobs start that were submitted with --hold.  Appends a request to the ticket
 * file and rings the owner of the ticket, which takes a new ticket for the job.
 */
#include "bell.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "verbs.h"

static struct job_target target;

/* Returns the exit status. */
static int release_job(uint64_t number)
{
	int r = job_target_find(&target, number, "release");

	if (r != 0)
		return r;
	if (target.lease || target.ticket.state != TICKET_WAITING ||
		target.ticket.not_before_ms != TICKET_HELD)
		return job_target_refuse(&target, "is not held");
	r = queue_ask(&target.queue,
		&(struct control){ .verb = CONTROL_RELEASE, .ticket = target.job.job },
		target.job.latest);
	if (r < 0)
		return job_target_fail(&target, r);
	bell_ring(&target.context.dir, target.ticket.owner.token);
	return EXIT_DONE;
}

int verb_release(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOB);
	struct operand operand;
	int status = job_target_open(settings, &target);

	if (status != 0)
		return status;
	/* they were checked when the command line was read */
	while (operand_next(&walk, &operand, NULL) == 0)
		if (release_job(operand.first) != EXIT_DONE)
			status = EXIT_NOT_DONE;
	return status;
}
