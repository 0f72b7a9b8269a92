/*
 * --extend: lets running jobs run longer.  Writes the new limit into the records of the lease, and
 * rings the waiters, whose plans count on it.  The process that enforces the limit reads the record
 * when its timer fires (end_recorder_limit_ms()).
 *
 * Killed half-way, it leaves the new limit in some of the records; the one of the lowest GPU, which
 * is written first, counts for the end of the job.
 */
#include "bell.h"
#include "clock.h"
#include "commit.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "parse.h"
#include "policy_reserve.h"
#include "report.h"
#include "request.h"
#include "verbs.h"
#include "view.h"
#include "wait_reason.h"

enum { LOCK_MS = 2000 };

static struct job_target target;

/* Returns 0, or an exit status after a message: the limit cannot become @limit_ms. */
static int extend_check(int64_t limit_ms)
{
	int64_t most_ms = target.context.config.max_time_ms;
	const struct lease *lease = target.lease;
	char most[DURATION_SIZE], source[SOURCE_SIZE], problem[SOURCE_SIZE + 64];

	if (!lease)
		return job_target_refuse(&target,
			target.ticket.state == TICKET_WAITING
				? "has not started; cancel it and submit it again with "
				  "another --time"
				: "runs without a GPU, so its limit stays");
	if (!lease->limit_ms)
		return job_target_refuse(&target, "has no time limit");
	if (clock_boot_ms() >= lease->since_ms + lease->limit_ms)
		return job_target_refuse(&target, "has reached its time limit");
	if (!most_ms || getuid() == 0 || limit_ms <= most_ms)
		return 0;
	format_duration(most_ms, most);
	limit_source(&target.context.config, CONFIG_MAX_TIME, source);
	(void)snprintf(
		problem, sizeof(problem), "may run for %s in all: %s", most, source);
	return job_target_refuse(&target, problem);
}

/*
 * Refuses that a job of a user other than root runs longer than a window on its GPUs allows that
 * binds the user.  Otherwise a short limit would be a way to start before it.
 */
static int extend_check_windows(int64_t limit_ms)
{
	const struct lease *lease = target.lease;
	int64_t boot_ms = clock_boot_ms(), real_ms = clock_real_ms();
	int64_t end_ms =
		lease->since_ms + limit_ms + lease->grace_ms + BACKFILL_MARGIN_MS;

	for (size_t i = 0; i < target.view.windows.count && getuid() != 0; i++) {
		struct window *window = &target.view.windows.all[i];
		char problem[320];
		struct text text = TEXT_ON(problem);

		window_place(window, snapshot_find_gpu(&target.view, window->uuid),
			real_ms, boot_ms);
		if (window->slot < 0 || window->begin_ms >= end_ms ||
			window->end_ms <= boot_ms ||
			window_exempts(window, lease->owner.uid) ||
			!gpuset_has(&lease->gpus, (unsigned)window->slot))
			continue;
		text_addf(&text, "has GPU %s, which is ",
			snapshot_gpu_name(&target.view, (unsigned)window->slot).text);
		explain_window(window, boot_ms, &text);
		return job_target_refuse(&target, problem);
	}
	return 0;
}

/* Says which waiting job starts later by the change; @before and @after are the queue. */
static void extend_tell(const struct view *before, const struct view *after)
{
	char words[160], late[DURATION_SIZE];
	struct text text = TEXT_ON(words);
	unsigned count = 0;

	for (size_t i = 0; i < after->job_count; i++) {
		const struct view_job *now = &after->jobs[i], *was = before->jobs;
		const struct view_job *end = was + before->job_count;

		while (was < end && was->ticket != now->ticket)
			was++;
		/* estimates move with the time at which they are made */
		if (was == end || !was->start_ms ||
			(now->start_ms && now->start_ms < was->start_ms + 1000))
			continue;
		if (count++)
			continue;
		text_addf(&text, "job %llu of %s may start ",
			(unsigned long long)now->ticket, now->user);
		if (now->start_ms) {
			format_duration(
				(now->start_ms - was->start_ms + 500) / 1000 * 1000,
				late);
			text_addf(&text, "%s later", late);
		} else {
			text_add(&text, "later");
		}
	}
	if (count > 1)
		text_addf(&text, ", and %u more", count - 1);
	if (count)
		note("%s", words);
}

/*
 * Reads the state anew, and checks whether the job may run longer.  Returns 0 with *@ret_limit_ms,
 * its new limit, or an exit status after a message.
 */
static int extend_look(uint64_t number, int64_t by_ms, int64_t *ret_limit_ms)
{
	int r = job_target_find(&target, number, "extend");

	*ret_limit_ms = target.lease ? target.lease->limit_ms + by_ms : 0;
	if (r == 0)
		r = extend_check(*ret_limit_ms);
	return r == 0 ? extend_check_windows(*ret_limit_ms) : r;
}

/*
 * Writes the limit; tries again while a lease file is locked, or if another process has changed
 * the limit meanwhile.  Returns as extend_look().
 */
static int extend_write(uint64_t number, int64_t by_ms, int64_t *ret_limit_ms)
{
	int64_t until_ms = clock_boot_ms() + LOCK_MS;
	int r;

	do {
		r = extend_look(number, by_ms, ret_limit_ms);
		if (r != 0)
			return r;
		r = commit_note_limit(&target.view, target.lease->owner.token,
			&target.lease->gpus, target.lease->limit_ms, *ret_limit_ms);
	} while (r > 0 && clock_boot_ms() < until_ms);
	bell_ring_all(&target.context.dir);
	if (r < 0)
		return job_target_fail(&target, r);
	return r == 0 ? 0
		      : job_target_refuse(
				&target, "has a locked lease file; try again later");
}

/* Returns the exit status. */
static int extend_job(uint64_t number, int64_t by_ms)
{
	struct view before = VIEW_NONE, after = VIEW_NONE;
	char limit[DURATION_SIZE], words[64];
	struct text text = TEXT_ON(words);
	int64_t limit_ms;
	int r = extend_look(number, by_ms, &limit_ms);

	if (r != 0)
		return r;
	/* without the two views it says only what it has done */
	(void)!view_take(&target.context, &before, NULL);
	r = extend_write(number, by_ms, &limit_ms);
	if (r == 0 && view_take(&target.context, &after, NULL) == 0) {
		format_duration(limit_ms, limit);
		explain_time(target.lease->since_ms + limit_ms, &text);
		note("job %llu may run until %s, %s in all",
			(unsigned long long)target.job.job, words, limit);
		extend_tell(&before, &after);
	}
	view_release(&before);
	view_release(&after);
	return r;
}

int verb_extend(struct settings *settings)
{
	const struct verb_settings *verb = &settings->verb;
	struct operand_walk walk =
		OPERAND_WALK(verb->operands, verb->operand_count - 1, OPERAND_JOB);
	struct operand operand;
	int status = job_target_open(settings, &target);

	if (status != 0)
		return status;
	/* they were checked when the command line was read */
	while (operand_next(&walk, &operand, NULL) == 0)
		if (extend_job(operand.first, verb->extend_ms) != EXIT_DONE)
			status = EXIT_NOT_DONE;
	return status;
}
