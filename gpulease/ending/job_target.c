#include <errno.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_target.h"
#include "namespaces.h"
#include "privacy.h"
#include "shared_state.h"

int job_target_open(struct settings *settings, struct job_target *target)
{
	return shared_state_open(
		settings, false, &target->context, &target->queue, &target->view);
}

int job_target_refuse(const struct job_target *target, const char *problem)
{
	diag("job %llu %s", (unsigned long long)target->job.job, problem);
	return EXIT_NOT_DONE;
}

int job_target_fail(const struct job_target *target, int error)
{
	diag("job %llu cannot be changed: %s", (unsigned long long)target->job.job,
		strerror(-error));
	return EXIT_NOT_DONE;
}

const struct owner *job_target_owner(const struct job_target *target)
{
	return target->lease ? &target->lease->owner : &target->ticket.owner;
}

static int job_target_check_owner(const struct job_target *target, const char *verb)
{
	const struct owner *owner = job_target_owner(target);
	char name[64];
	struct text text = TEXT_ON(name);

	if (getuid() == 0 || namespaces_own_user() == owner->uid)
		return 0;
	describe_user(owner->uid, target->ticket.user, &text);
	diag("job %llu belongs to %s; only they and root may %s it",
		(unsigned long long)target->job.job, name, verb);
	return EXIT_NOT_DONE;
}

int job_target_look(struct job_target *target)
{
	int r = queue_begin(&target->queue, 0);

	if (r == 0)
		r = snapshot_read(&target->view, clock_boot_ms());
	if (r != 0)
		return r < 0 ? r : -ESTALE;
	target->job = OUTCOME_OF(target->job.job);
	outcome_begin(&target->look, &target->queue, &target->view, clock_boot_ms());
	r = outcome_judge(&target->job, &target->look, false);
	target->lease = outcome_find_lease(&target->view, target->job.job);
	if (r == 0 && (!target->job.has_owner ||
			      ticket_read(&target->queue.file, target->job.latest,
				      &target->ticket) != TICKET_RECORD))
		return -EBADMSG;
	return r;
}

int job_target_find(struct job_target *target, uint64_t number, const char *verb)
{
	struct why why;
	uint64_t job;
	int r = outcome_find_job(&target->queue.file, target->queue.end, number, &job);

	target->job.job = number;
	if (r == OUTCOME_NO_JOB) {
		outcome_explain_no_job(number, &why);
		diag("%s", why.text);
		return EXIT_NOT_DONE;
	}
	if (r == 0)
		r = job_target_look(target);
	if (r > 0)
		return job_target_refuse(target, "has finished");
	if (r == -EBADMSG)
		return job_target_refuse(target, "has a ticket that cannot be read");
	if (r < 0)
		return job_target_fail(target, r);
	return job_target_check_owner(target, verb);
}
