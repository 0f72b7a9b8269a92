/*
 * --wait-for: waits until jobs have ended, and exits with the highest of their statuses.
 *
 * A job is watched by the pidfd of its owner and by its live FIFO, so this process sleeps until
 * one of them changes, in the queue as well as later.  It writes nothing.
 */
#include <errno.h>

#include "array.h"
#include "cancel_choice.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "live_jobs.h"
#include "named_job.h"
#include "namespaces.h"
#include "process_lease.h"
#include "operands.h"
#include "outcome.h"
#include "parse.h"
#include "shared_state.h"
#include "job_step.h"
#include "unknown_status.h"
#include "verbs.h"

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	struct watch watch;
	struct outcome *jobs;
	size_t count, room;
	uint64_t own_job; /* the job that this process is a part of; 0: none */
	int status;       /* the highest so far */
} wait_for;

/* Raises the exit status to @status if that is higher. */
static void wait_for_note_status(int status)
{
	if (status > wait_for.status)
		wait_for.status = status;
}

/* Reports a problem with @job, and goes on with the other jobs. */
static void wait_for_report(uint64_t job, const char *problem)
{
	diag("job %llu %s", (unsigned long long)job, problem);
	wait_for_note_status(EXIT_NOT_DONE);
}

/* --- which jobs --------------------------------------------------------------------- */

/* Adds @job, unless it is in the list: two tickets of one job can be named. */
static int wait_for_add_job(uint64_t job)
{
	struct outcome *jobs;

	for (size_t i = 0; i < wait_for.count; i++)
		if (wait_for.jobs[i].number == job)
			return 0;
	jobs = array_grow(wait_for.jobs, sizeof(*jobs), wait_for.count, &wait_for.room);
	if (!jobs)
		return -ENOMEM;
	wait_for.jobs = jobs;
	jobs[wait_for.count++] = OUTCOME_OF(job);
	return 0;
}

/*
 * Returns the job that this process is a part of, 0 if none.  A job for 0 GPUs has no lease; its
 * token in the environment then has to be that of the ticket in GPULEASE_ID.
 */
static uint64_t wait_for_find_own_job(void)
{
	const struct snapshot_lease *around = job_step_find_lease(&wait_for.view);
	const char *id = getenv("GPULEASE_ID"),
		   *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	struct outcome job;
	uint64_t number;

	if (around)
		return lease_job(&around->lease);
	/* no lease: perhaps a job for 0 GPUs, which has only a ticket */
	if (!id || !token || parse_u64(id, INT64_MAX, &number, NULL) < 0)
		return 0;
	job = OUTCOME_OF(number);
	outcome_begin(&wait_for.look, &wait_for.queue, &wait_for.view, clock_boot_ms());
	return outcome_judge(&job, &wait_for.look, false) == 0 && job.has_owner &&
			       strcmp(job.owner.token, token) == 0
		       ? job.job
		       : 0;
}

/*
 * Adds @job if it belongs to user *@arg (UINT32_MAX: to any user) and is not the job of this
 * process.
 */
static int wait_for_add_live(void *arg, const struct live_job *job)
{
	const uint32_t *uid = arg;

	if ((*uid != UINT32_MAX && *uid != job->uid) || job->id == wait_for.own_job)
		return 0;
	return wait_for_add_job(job->id);
}

/* Adds all jobs of user @uid that wait or run. */
static int wait_for_add_all(uint32_t uid)
{
	int r = live_jobs_each(&wait_for.queue, &wait_for.view, wait_for_add_live, &uid);

	return r < 0 ? r : 0;
}

/*
 * Adds the job of ticket or name @operand, or the jobs of a word.  An unknown one is reported; this
 * process waits for the others.
 */
static int wait_for_add_operand(struct operand *operand)
{
	struct cancel_choice choice = cancel_choice_of(operand, namespaces_own_user());
	struct why why;
	uint64_t job;
	int r;

	if (choice.kind == CHOICE_MINE || choice.kind == CHOICE_ALL)
		return wait_for_add_all(
			choice.kind == CHOICE_ALL ? UINT32_MAX : choice.uid);
	r = named_job_find(&wait_for.context, &wait_for.queue, &wait_for.view, operand);
	if (r != 0) {
		wait_for_note_status(r);
		return 0;
	}
	r = outcome_find_job(
		&wait_for.queue.file, wait_for.queue.end, operand->first, &job);
	if (r == OUTCOME_NO_JOB) {
		outcome_explain_no_job(operand->first, &why);
		diag("%s", why.text);
		wait_for_note_status(EXIT_NOT_DONE);
	} else if (r == 0 && job == wait_for.own_job) {
		wait_for_report(operand->first,
			"is this one; it would wait for itself, so leave it out");
	} else if (r == 0) {
		r = wait_for_add_job(job);
	}
	return r < 0 ? r : 0;
}

static int wait_for_add_operands(const struct verb_settings *verb)
{
	struct operand_walk walk =
		OPERAND_WALK(verb->operands, verb->operand_count, OPERAND_NAME);
	struct operand operand;
	int r = 0;

	while (r == 0 && operand_next(&walk, &operand, NULL) == 0)
		r = wait_for_add_operand(&operand);
	return r;
}

/* --- waiting ----------------------------------------------------------------------- */

static void wait_for_report_end(const struct outcome *job)
{
	char problem[160];

	if (job->status < 0 && lost_words(job->cause)) {
		wait_for_report(job->job, lost_words(job->cause));
	} else if (job->status < 0) {
		(void)snprintf(problem, sizeof(problem),
			"has ended, but its exit status is not recorded: %s",
			unknown_status_remedy());
		wait_for_report(job->job, problem);
	} else {
		verbose("job %llu has ended with status %d", (unsigned long long)job->job,
			job->status);
	}
	wait_for_note_status(job->status);
}

/*
 * Judges whether @job has ended, and reports its end once its status is known.  Returns 0 or a
 * negative errno.
 */
static int wait_for_look_at(struct outcome *job)
{
	int r;

	if (job->is_settled)
		return 0;
	r = outcome_judge(job, &wait_for.look, true);
	if (r > 0)
		r = outcome_learn_status(job, &wait_for.look, true);
	if (r == 0 && job->is_settled)
		wait_for_report_end(job);
	return r;
}

/* Looks at all jobs once.  Returns how many have not ended, or a negative errno. */
static int wait_for_look_at_all(void)
{
	int64_t now_ms = clock_boot_ms();
	int left = 0, r;

	/* QUEUE_REPLACED is no error here: what is known of the jobs stays true */
	r = queue_begin(&wait_for.queue, 0);
	if (r < 0)
		return r;
	/* liveness_set_end() forgets the processes that this look did not ask for */
	liveness_set_begin(&wait_for.view.lives);
	r = snapshot_read(&wait_for.view, now_ms);
	outcome_begin(&wait_for.look, &wait_for.queue, &wait_for.view, now_ms);
	for (size_t i = 0; i < wait_for.count && r == 0; i++) {
		r = wait_for_look_at(&wait_for.jobs[i]);
		left += !wait_for.jobs[i].is_settled;
	}
	liveness_set_end(&wait_for.view.lives);
	return r < 0 ? r : left;
}

/* Waits until all jobs have ended.  Returns 0, EXIT_GAVE_UP at @until_ms, or a negative errno. */
static int wait_for_all(int64_t until_ms)
{
	int left, r;

	while ((left = wait_for_look_at_all()) > 0) {
		if (clock_boot_ms() >= until_ms)
			return EXIT_GAVE_UP;
		watch_begin(&wait_for.watch);
		watch_until(&wait_for.watch, until_ms);
		r = outcome_watch(&wait_for.look, &wait_for.watch);
		if (r == 0)
			r = watch_wait(&wait_for.watch);
		if (r < 0)
			return r;
	}
	return left;
}

static int wait_for_give_up(const struct run_request *request)
{
	char waited[DURATION_SIZE];
	unsigned left = 0;

	for (size_t i = 0; i < wait_for.count; i++)
		left += !wait_for.jobs[i].over_ms;
	format_duration(request->max_wait_ms, waited);
	note("gave up after %s: %u of %zu jobs %s not ended", waited, left,
		wait_for.count, left == 1 ? "has" : "have");
	return EXIT_GAVE_UP;
}

static int wait_for_begin(struct settings *settings)
{
	int r = shared_state_open(
		settings, true, &wait_for.context, &wait_for.queue, &wait_for.view);

	if (r != 0)
		return r;
	wait_for.watch = WATCH_NONE;
	wait_for.own_job = wait_for_find_own_job();
	r = wait_for_add_operands(&settings->verb);
	return r == 0 ? 0 : shared_state_report(&wait_for.context, r);
}

int verb_wait_for(struct settings *settings)
{
	int64_t until_ms = settings->request.max_wait_ms < 0
				   ? INT64_MAX
				   : clock_boot_ms() + settings->request.max_wait_ms;
	int r = wait_for_begin(settings);

	if (r == 0)
		r = wait_for_all(until_ms);
	if (r == EXIT_GAVE_UP)
		return wait_for_give_up(&settings->request);
	if (r < 0) {
		diag("cannot wait: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	return r ? r : wait_for.status;
}
