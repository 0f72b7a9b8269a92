/* The jobs file as it is now: what its lines mean for the jobs. */
#include <errno.h>
#include <signal.h>

#include "batch_match.h"
#include "batch_runner.h"
#include "clock.h"
#include "diag.h"

/* --- lines and jobs ---------------------------------------------------------------- */

static struct batch_job *add_job(
	struct batch_runner *runner, const struct batch_line *line)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, runner->jobs.count + 1);
	struct text command = TEXT_ON(event.command);

	event.key = line->key;
	if (line->attributes.name)
		text_copy(event.name, sizeof(event.name), line->attributes.name);
	text_add_printable(&command, line->command, strlen(line->command));
	batch_happened(runner, &event);
	return batch_jobs_find(&runner->jobs, event.job);
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

static void recall(struct batch_runner *runner, struct batch_job *job)
{
	if (job->state == BATCH_IN_QUEUE && !job->is_recalled)
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

/* What became of the line of a job that is at work.  Whether it has to queue again. */
static bool review_job(struct batch_runner *runner, struct batch_job *job)
{
	if (!job->line) {
		recall(runner, job);
	} else if (job->line->attributes.is_cancelled) {
		recall(runner, job);
		cancel(runner, job);
	} else if (job->state == BATCH_IN_QUEUE && job->asked != batch_asked(job->line)) {
		recall(runner, job);
		return true;
	}
	return false;
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

/* --- taking them over -------------------------------------------------------------- */

/* One that could never be run, and says something else now, is tried again. */
static void revive(struct batch_job *job)
{
	if (job->state != BATCH_ENDED || job->cause != BATCH_NOT_RUN || !job->asked ||
		job->asked == batch_asked(job->line))
		return;
	job->state = BATCH_NEW;
	job->is_of_before = job->is_dropped = false;
}

/* Each job gets its line, each line its job; *@ret are their numbers in order. */
static int marry(
	struct batch_runner *runner, const struct batch_list *list, uint64_t **ret)
{
	uint64_t *numbers;
	int r = batch_match(&runner->jobs, runner->board.order, runner->board.order_count,
		list, &numbers);

	if (r < 0)
		return r;
	for (size_t i = 0; i < runner->jobs.count; i++)
		runner->jobs.all[i].line = NULL;
	for (size_t i = 0; i < list->count; i++) {
		struct batch_job *job =
			numbers[i] ? batch_jobs_find(&runner->jobs, numbers[i])
				   : add_job(runner, &list->lines[i]);

		if (!job) {
			free(numbers);
			return -ENOMEM;
		}
		numbers[i] = job->number;
		job->line = &list->lines[i];
		revive(job);
	}
	*ret = numbers;
	return 0;
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

int batch_take_lines(struct batch_runner *runner, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	const struct batch_known known = { is_known, runner };
	struct batch_list list = BATCH_LIST_NONE;
	uint64_t *numbers = NULL;
	int r = batch_list_parse(settings->batch_format, settings->operands[0],
		runner->file.text, runner->file.size, runner->python, &known, &list, why);

	if (r < 0)
		return r;
	r = marry(runner, &list, &numbers);
	if (r < 0) {
		why_set(why, "cannot work on '%s': %s", settings->operands[0],
			strerror(-r));
		return r;
	}
	batch_list_release(&runner->list);
	runner->list = list;
	if (!is_same_order(runner, numbers, list.count))
		r = keep_order(runner, numbers, list.count);
	if (r == 0)
		r = batch_plan_begin(&runner->plan, &runner->jobs, numbers, list.count);
	free((void *)runner->board.order);
	runner->board.order = numbers;
	runner->board.order_count = list.count;
	if (r < 0) {
		why_set(why, "cannot work on '%s': %s", settings->operands[0],
			strerror(-r));
		return r;
	}
	review_all(runner);
	batch_show_changed(&runner->show);
	return 0;
}
