/*
 * --wait-for: returns when jobs have ended, with the status of the one that ended worst.
 *
 * A job is followed by its owner's pidfd and its FIFO: nothing is looked at without cause, and
 * that a job that waits is run by the same process makes no difference.  Nothing is written.
 */
#include <errno.h>

#include "array.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "kin.h"
#include "operands.h"
#include "outcome.h"
#include "parse.h"
#include "state.h"
#include "step.h"
#include "verbs.h"

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	struct watch watch;
	struct outcome *jobs;
	size_t count, room;
	uint64_t own_job; /* 0: none */
	int status;       /* the worst so far */
} wait_for;

static void note_status(int status)
{
	if (status > wait_for.status)
		wait_for.status = status;
}

static int refuse(uint64_t job, const char *because)
{
	diag("job %llu %s", (unsigned long long)job, because);
	return EXIT_NOT_DONE;
}

/* --- which ------------------------------------------------------------------------- */

/* One is followed once, however it is named. */
static int add(uint64_t job)
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

/* The job that this process is a part of, by its lease, or, without GPUs, by its ticket. */
static uint64_t find_own_job(void)
{
	const struct snapshot_lease *around = step_find_lease(&wait_for.view);
	const char *id = getenv("GPULEASE_ID"), *token = getenv(KIN_TOKEN_VARIABLE);
	struct outcome job;
	uint64_t number;

	if (around)
		return lease_job(&around->lease);
	if (!id || !token || parse_u64(id, INT64_MAX, &number, NULL) < 0)
		return 0;
	job = OUTCOME_OF(number);
	outcome_begin(&wait_for.look, &wait_for.queue, &wait_for.view, clock_boot_ms());
	return outcome_judge(&job, &wait_for.look, false) == 0 && job.has_owner &&
			       strcmp(job.owner.token, token) == 0
		       ? job.job
		       : 0;
}

/* Unknown ones are told, and the others waited for. */
static int add_operand(uint64_t number)
{
	uint64_t job;
	int r = outcome_find_job(&wait_for.queue.file, wait_for.queue.end, number, &job);

	if (r == OUTCOME_NO_JOB)
		note_status(refuse(number, "does not exist"));
	else if (r == 0 && job == wait_for.own_job)
		note_status(refuse(number, "is this one; it would wait for itself"));
	else if (r == 0)
		r = add(job);
	return r < 0 ? r : 0;
}

static int add_operands(const struct settings *settings)
{
	struct operand_walk walk =
		OPERAND_WALK(settings->operands, settings->operand_count, OPERAND_JOB);
	struct operand operand;
	int r = 0;

	while (r == 0 && operand_next(&walk, &operand, NULL) == 0)
		r = add_operand(operand.first);
	return r;
}

/* Jobs of user @uid, UINT32_MAX: of all, that wait or run, but for our own. */
static bool is_wanted(const struct owner *owner, uint64_t job, uint32_t uid)
{
	return (uid == UINT32_MAX || owner->uid == uid) && job != wait_for.own_job;
}

/* Also those without a lease: who has GPUs, and who waits, or needs none. */
static int add_all(uint32_t uid)
{
	const struct statedir *dir = &wait_for.context.dir;
	uint64_t number = 1;
	struct queue_row row;
	int r = 0;

	for (size_t i = 0; i < wait_for.view.lease_count && r == 0; i++) {
		const struct snapshot_lease *lease = &wait_for.view.leases[i];
		uint64_t job = lease_job(&lease->lease);

		if (!lease->is_over && is_wanted(&lease->lease.owner, job, uid))
			r = add(job);
	}
	while (r == 0 && (r = queue_next(&wait_for.queue, &number, &row)) == 0) {
		const struct owner *owner = &row.ticket.owner;
		uint64_t job = ticket_job(row.number, &row.ticket);

		if (strcmp(row.ticket.boot, dir->boot) == 0 &&
			owner_judge_job(owner, &row.ticket.runs, dir->pidns) !=
				OWNER_DEAD &&
			is_wanted(owner, job, uid))
			r = add(job);
	}
	return r < 0 ? r : 0;
}

static int find_jobs(const struct settings *settings)
{
	const char *word = settings->operands[0];

	if (strcmp(word, "all") == 0)
		return add_all(UINT32_MAX);
	return strcmp(word, "mine") == 0 ? add_all(getuid()) : add_operands(settings);
}

/* --- waiting ----------------------------------------------------------------------- */

static void tell(const struct outcome *job)
{
	if (job->status < 0)
		note_status(refuse(job->job, "has ended, but how is not recorded"));
	else
		verbose("job %llu has ended with status %d", (unsigned long long)job->job,
			job->status);
	note_status(job->status);
}

/* Goes on with one.  0 or a negative errno. */
static int go_on(struct outcome *job)
{
	int r;

	if (job->is_settled)
		return 0;
	r = outcome_judge(job, &wait_for.look, true);
	if (r > 0)
		r = outcome_learn_status(job, &wait_for.look, true);
	if (r == 0 && job->is_settled)
		tell(job);
	return r;
}

/* A look at all of them.  How many have not ended, or a negative errno. */
static int look_at_all(void)
{
	int64_t now_ms = clock_boot_ms();
	int left = 0, r;

	/* where the file was replaced what is known of the jobs is still good */
	r = queue_begin(&wait_for.queue, 0);
	if (r < 0)
		return r;
	lives_begin(&wait_for.view.lives);
	r = snapshot_read(&wait_for.view, now_ms);
	outcome_begin(&wait_for.look, &wait_for.queue, &wait_for.view, now_ms);
	for (size_t i = 0; i < wait_for.count && r == 0; i++) {
		r = go_on(&wait_for.jobs[i]);
		left += !wait_for.jobs[i].is_settled;
	}
	lives_end(&wait_for.view.lives);
	return r < 0 ? r : left;
}

/* 0, EXIT_GAVE_UP, or a negative errno. */
static int await_all(int64_t until_ms)
{
	int left, r;

	while ((left = look_at_all()) > 0) {
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

static int give_up(const struct settings *settings)
{
	char waited[DURATION_SIZE];
	unsigned left = 0;

	for (size_t i = 0; i < wait_for.count; i++)
		left += !wait_for.jobs[i].over_ms;
	format_duration(settings->max_wait_ms, waited);
	note("gave up after %s: %u of %zu jobs %s not ended", waited, left,
		wait_for.count, left == 1 ? "has" : "have");
	return EXIT_GAVE_UP;
}

static int begin(struct settings *settings)
{
	int r = state_open(
		settings, true, &wait_for.context, &wait_for.queue, &wait_for.view);

	if (r != 0)
		return r;
	wait_for.watch = WATCH_NONE;
	wait_for.own_job = find_own_job();
	r = find_jobs(settings);
	return r == 0 ? 0 : state_refuse(&wait_for.context, r);
}

int verb_wait_for(struct settings *settings)
{
	int64_t until_ms = settings->max_wait_ms < 0
				   ? INT64_MAX
				   : clock_boot_ms() + settings->max_wait_ms;
	int r = begin(settings);

	if (r == 0)
		r = await_all(until_ms);
	if (r == EXIT_GAVE_UP)
		return give_up(settings);
	if (r < 0) {
		diag("cannot wait: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	return r ? r : wait_for.status;
}
