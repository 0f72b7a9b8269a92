/* The jobs file as it is now: what its lines mean for the jobs. */
#include <errno.h>
#include <signal.h>

#include "batch_match.h"
#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

/* --- lines and jobs ---------------------------------------------------------------- */

/* A new job for @line.  0 with its number, or a negative errno. */
static int add_job(
	struct batch_runner *runner, const struct batch_line *line, uint64_t *ret)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, runner->jobs.count + 1);
	struct text command = TEXT_ON(event.command);
	int r;

	event.key = line->key;
	if (line->attributes.name)
		text_copy(event.name, sizeof(event.name), line->attributes.name);
	text_add_printable(&command, line->command, strlen(line->command));
	r = batch_happened(runner, &event);
	*ret = event.job;
	return r == 0 && !batch_jobs_find(&runner->jobs, event.job) ? -ENOMEM : r;
}

/* The numbers of the jobs that the file has now, in its order, for who comes after us. */
static int keep_order(struct batch_runner *runner, const uint64_t *numbers, size_t count)
{
	size_t size = 24 * count + 256;
	autofree char *ranges = malloc(size);
	struct batch_event event = BATCH_EVENT_OF(BATCH_LISTED, 0);
	uint64_t range[2] = { 0 };
	struct text text;

	if (!ranges)
		return -ENOMEM;
	text = text_on(ranges, size);
	for (size_t i = 0; i < count; i++)
		batch_add_number(numbers[i], i + 1 == count, range, &text);
	event.jobs = ranges;
	event.jobs_size = text.used;
	event.at_ms = clock_real_ms();
	return batch_journal_append(runner->journal.fd, &event);
}

/* --- jobs that are at work --------------------------------------------------------- */

uint64_t batch_asked(const struct batch_line *line)
{
	static char all[2 * BATCH_LINE_MAX];
	struct text text = TEXT_ON(all);
	char *const command[] = { (char *)line->command, NULL };
	struct why why = WHY_NONE;

	return batch_line_write(BATCH_LINES, &line->attributes, command, &text, &why) < 0
		       ? line->key
		       : batch_key(all, NULL);
}

/* Whether a process of ours waits for GPUs with it: for the first time or again. */
static bool is_waiting(const struct batch_job *job)
{
	return job->state == BATCH_IN_QUEUE || (job->is_between && job->pid);
}

static void recall(struct batch_runner *runner, struct batch_job *job)
{
	if (!is_waiting(job) || job->is_recalled)
		return;
	batch_child_recall(job);
	batch_show_changed(&runner->show);
}

static void cancel(struct batch_runner *runner, struct batch_job *job)
{
	if (job->is_cancelling || job->state != BATCH_RUNNING)
		return;
	batch_child_mark(job);
	if (batch_child_cancel(&runner->nursery, &job->ticket, 1,
		    runner->context.settings->grace_ms) > 0)
		job->is_cancelling = true;
}

/*
 * Whether @job waits for something else than the file says now.  What runs goes on: where its
 * line goes meanwhile nothing is asked of it any more, and its other attempts follow, too.
 */
static bool is_outdated(struct batch_job *job)
{
	if (!job->line && !is_waiting(job))
		job->asked = 0;
	return is_waiting(job) && job->asked != (job->line ? batch_asked(job->line) : 0);
}

/* What became of the line of a job that is at work.  Whether it has to queue again. */
static bool review_job(struct batch_runner *runner, struct batch_job *job)
{
	if (job->line && job->line->attributes.is_cancelled) {
		if (job->state == BATCH_IN_QUEUE)
			recall(runner, job);
		cancel(runner, job);
		return false;
	}
	if (!is_outdated(job))
		return false;
	recall(runner, job);
	return job->line && job->state == BATCH_IN_QUEUE;
}

/* Who has to queue again keeps its place in the file: so do those behind it. */
static void review_all(struct batch_runner *runner)
{
	bool is_moved = runner->plan.is_reordered;
	struct batch_job *job;

	for (size_t i = 0; i < runner->active_count; i++)
		is_moved = review_job(runner,
				   batch_jobs_find(&runner->jobs, runner->active[i])) ||
			   is_moved;
	while (is_moved && (job = batch_plan_find_early(&runner->plan)))
		recall(runner, job);
}

void batch_review_running(struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->active_count; i++) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		/* it has begun, or waits again, since the file was read */
		if (job->is_between || (job->line && job->line->attributes.is_cancelled))
			(void)review_job(runner, job);
	}
}

/* --- taking them over -------------------------------------------------------------- */

/*
 * One that could not be run, and says something else now, or was to come after one that failed,
 * is tried again: what was wrong may be mended.  So is one that its line has kept from being run
 * and does no longer.
 */
static void revive(struct batch_runner *runner, struct batch_job *job)
{
	if (job->state != BATCH_ENDED)
		return;
	if (job->cause == BATCH_BY_CANCEL && job->is_by_line && !job->was_started &&
		!job->line->attributes.is_cancelled)
		batch_jobs_renew(job);
	if (job->cause != BATCH_NOT_RUN)
		return;
	if (job->asked != batch_asked(job->line) ||
		(job->status == EXIT_GAVE_UP && batch_plan_is_free(&runner->plan, job)))
		batch_jobs_renew(job);
}

/* The job of each line; new ones are known from now on.  0 or a negative errno. */
static int find_jobs(
	struct batch_runner *runner, const struct batch_list *list, uint64_t **ret)
{
	uint64_t *numbers;
	int r = batch_match(&runner->jobs, runner->board.order, runner->board.order_count,
		list, &numbers);

	for (size_t i = 0; r == 0 && i < list->count; i++) {
		if (!numbers[i])
			r = add_job(runner, &list->lines[i], &numbers[i]);
	}
	if (r == 0)
		*ret = numbers;
	else if (r != -ENOMEM)
		free(numbers);
	return r;
}

/* Each job gets its line. */
static void marry(struct batch_runner *runner, const struct batch_list *list,
	const uint64_t *numbers)
{
	for (size_t i = 0; i < runner->jobs.count; i++)
		runner->jobs.all[i].line = NULL;
	for (size_t i = 0; i < list->count; i++) {
		batch_jobs_find(&runner->jobs, numbers[i])->line = &list->lines[i];
	}
}

static bool is_same_order(
	const struct batch_runner *runner, const uint64_t *numbers, size_t count)
{
	return runner->board.order && runner->board.order_count == count &&
	       memcmp(runner->board.order, numbers, count * sizeof(*numbers)) == 0;
}

/* A line may come after one that has been there, or, through a pipe, after one to come. */
static bool is_known(const void *arg, const char *name, size_t size)
{
	const struct batch_runner *runner = arg;

	for (size_t i = 0; !runner->file.is_pipe && i < runner->jobs.count; i++)
		if (strncmp(runner->jobs.all[i].name, name, size) == 0 &&
			!runner->jobs.all[i].name[size])
			return true;
	return runner->file.is_pipe;
}

/* The journal comes first: what it does not know of is not begun. */
static int take_over(struct batch_runner *runner, struct batch_list *list)
{
	uint64_t *numbers = NULL;
	int r = find_jobs(runner, list, &numbers);

	if (r == 0 && !is_same_order(runner, numbers, list->count))
		r = keep_order(runner, numbers, list->count);
	if (r < 0) {
		free(numbers);
		return r;
	}
	marry(runner, list, numbers);
	batch_list_release(&runner->list);
	runner->list = *list;
	*list = BATCH_LIST_NONE;
	free((void *)runner->board.order);
	runner->board.order = numbers;
	runner->board.order_count = runner->list.count;
	r = batch_plan_begin(&runner->plan, &runner->jobs, numbers, runner->list.count);
	for (size_t i = 0; i < runner->list.count && r == 0; i++)
		revive(runner, batch_jobs_find(&runner->jobs, numbers[i]));
	return r;
}

/*
 * The lines of what was read.  As batch_list_parse(); of what came through a pipe, which nobody
 * can mend, *@ret is with -EINVAL what stands before the bad line.
 */
static int parse_lines(
	struct batch_runner *runner, struct batch_list *ret, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	const struct batch_known known = { is_known, runner };
	enum batch_format format = settings->batch_format;
	const char *file = settings->operands[0], *text = runner->file.text;
	size_t size = runner->file.size;
	struct why another;
	int r = batch_list_parse(
		format, file, text, size, runner->python, &known, ret, why);

	if (r == -EMEDIUMTYPE)
		r = -EINVAL;
	for (int before = r; before == -EINVAL && runner->file.is_pipe && size;) {
		size = batch_list_good_size(format, text, size, runner->python, &known);
		before = batch_list_parse(
			format, file, text, size, runner->python, &known, ret, &another);
	}
	return r;
}

int batch_take_lines(struct batch_runner *runner, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	struct batch_list list = BATCH_LIST_NONE;
	int is_bad = parse_lines(runner, &list, why), r;

	/* what was there before goes on */
	if (is_bad < 0 && list.count <= runner->list.count) {
		batch_list_release(&list);
		return is_bad;
	}
	r = take_over(runner, &list);
	batch_list_release(&list);
	if (r < 0) {
		why_set(why, "cannot work on '%s' as it is now: %s",
			settings->operands[0], strerror(-r));
		return r == -EINVAL ? -EIO : r;
	}
	review_all(runner);
	batch_show_changed(&runner->show);
	return is_bad;
}
