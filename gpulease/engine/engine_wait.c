/*
 * --wait-for: waits until jobs of Slurm have ended, and exits with the highest of their statuses.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "diag.h"
#include "engine_poll.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "job_operands.h"
#include "parse.h"

static struct {
	struct engine_poll poll;
	uint64_t own_job;
	int status; /* the highest so far */
} waiting;

static void note_status(int status)
{
	if (status > waiting.status)
		waiting.status = status;
}

static int add_job(void *arg, uint64_t id, const struct cluster_job *known)
{
	int r;

	(void)arg;
	if (id == waiting.own_job && known)
		return 0;
	if (waiting.own_job && id == waiting.own_job) {
		diag("job %llu is this one; it would wait for itself, so leave it out",
			(unsigned long long)id);
		note_status(EXIT_NOT_DONE);
		return 0;
	}
	r = engine_poll_add(&waiting.poll, id);
	if (r < 0)
		diag("cannot wait: %s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* Reports the jobs that have ended, and forgets them. */
static void report_ended(void)
{
	for (size_t i = 0; i < waiting.poll.count; i++) {
		const struct polled_job *job = &waiting.poll.jobs[i];
		unsigned long long id = job->id;

		if (!job->has_ended)
			continue;
		if (job->is_unknown)
			diag("job %llu is unknown; --status and --history list the jobs",
				id);
		else if (job->status < 0)
			diag("job %llu has ended, but its exit status is not recorded: it "
			     "needs Slurm's accounting, or --submit",
				id);
		else if (job->words && job->status == EXIT_MISUSE)
			note("job %llu %s", id, job->words);
		else if (job->words)
			verbose("job %llu %s, with status %d", id, job->words,
				job->status);
		else
			verbose("job %llu has ended with status %d", id, job->status);
		note_status(job->status < 0 ? EXIT_NOT_DONE : job->status);
	}
	engine_poll_forget_ended(&waiting.poll);
}

static int give_up(int64_t max_wait_ms, size_t count)
{
	char waited[DURATION_SIZE];
	size_t left = waiting.poll.left;

	format_duration(max_wait_ms, waited);
	note("gave up after %s: %zu of %zu jobs %s not ended", waited, left, count,
		left == 1 ? "has" : "have");
	return EXIT_GAVE_UP;
}

/* A controller that does not answer at first is an error, later only a delay. */
static int check_silence(bool *is_told)
{
	const struct engine_poll *poll = &waiting.poll;

	if (poll->silent_ms && !poll->has_answer) {
		diag("Slurm does not answer; gpulease --engine slurm --doctor looks for "
		     "the reason");
		return EXIT_MISUSE;
	}
	if (poll->silent_ms && !*is_told)
		note("Slurm does not answer; still waiting");
	*is_told = poll->silent_ms != 0;
	return 0;
}

/* Waits until all jobs have ended.  Returns 0 or an exit status. */
static int wait_for_all(int64_t max_wait_ms)
{
	int64_t until_ms = max_wait_ms < 0 ? INT64_MAX : clock_boot_ms() + max_wait_ms;
	size_t count = waiting.poll.count;
	bool is_told = false;
	int r = 0;

	while (r == 0 && waiting.poll.left) {
		r = engine_poll_wait(&waiting.poll, until_ms, -1);
		if (r == 0)
			r = check_silence(&is_told);
		report_ended();
		if (r == 0 && waiting.poll.left && clock_boot_ms() >= until_ms)
			return give_up(max_wait_ms, count);
	}
	return r;
}

int engine_wait_for(struct engine_line *line)
{
	int r;

	waiting.poll = ENGINE_POLL_NONE;
	waiting.own_job = job_operands_own();
	r = job_operands_each(line, OPERAND_NAME, add_job, NULL, &waiting.status);
	if (r == 0)
		r = wait_for_all(line->settings.request.max_wait_ms);
	engine_poll_release(&waiting.poll);
	return r ? r : waiting.status;
}
