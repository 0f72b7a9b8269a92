#include <errno.h>
#include <signal.h>

#include "array.h"
#include "batch_edit.h"
#include "batch_match.h"
#include "batch_record.h"
#include "batch_settings.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

/* --- lines and jobs ---------------------------------------------------------------- */

/*
 * Makes a new job for @line, in the journal first.  Returns 0 and its number in *@ret, or a
 * negative errno.
 */
static int edit_add_job(
	struct batch_runner *runner, const struct batch_line *line, uint64_t *ret)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, runner->jobs.count + 1);
	struct text command = TEXT_ON(event.command);
	int r;

	event.key = line->key;
	event.environment = line->environment;
	if (line->attributes.name)
		text_copy(event.name, sizeof(event.name), line->attributes.name);
	text_add_visible(&command, line->command);
	r = batch_record_event(runner, &event);
	*ret = event.job;
	return r == 0 && !batch_jobs_find(&runner->jobs, event.job) ? -ENOMEM : r;
}

/*
 * Writes to the journal which jobs the file has now, in its order.  The next runner needs that to
 * tell which of several equal lines belongs to which job (batch_match.h).
 */
static int edit_record_order(
	struct batch_runner *runner, const uint64_t *numbers, size_t count)
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

/* Whether a child waits for GPUs for the job, for its first attempt or another one. */
static bool is_child_waiting(const struct batch_job *job)
{
	return job->state == BATCH_IN_QUEUE || (job->is_between && job->pid);
}

/*
 * Asks a waiting job to leave the queue; its process exits, and the job becomes new.  The request
 * may come too late: a job that starts at the same moment goes on.
 */
static void edit_recall(struct batch_runner *runner, struct batch_job *job)
{
	if (!is_child_waiting(job) || job->is_recalled)
		return;
	batch_child_recall(job);
	batch_show_changed(&runner->show);
}

/*
 * Cancels a running job because of its line.  Marks the job first, so that its end is recorded with
 * this cause.
 */
static void edit_cancel(struct batch_runner *runner, struct batch_job *job)
{
	if (job->is_cancelling || job->state != BATCH_RUNNING)
		return;
	batch_child_mark_cancelled(job);
	if (batch_child_cancel(&runner->launcher, &job->ticket, 1,
		    runner->context.settings->care.grace_ms) > 0)
		job->is_cancelling = true;
}

/*
 * Whether @job waits with other attributes than its line has now.  A job that runs goes on.  If the
 * line of a running job is deleted, the job keeps running, and so do its further attempts:
 * ->line_hash 0 says that no line asks anything of it.
 */
static bool is_outdated(struct batch_job *job)
{
	if (!job->line && !is_child_waiting(job))
		job->line_hash = 0;
	return is_child_waiting(job) &&
	       job->line_hash != (job->line ? batch_line_hash(job->line) : 0);
}

/*
 * Cancels or recalls a job at work if its line says so.  Returns whether the job has to queue
 * again.
 */
static bool edit_review_job(struct batch_runner *runner, struct batch_job *job)
{
	if (job->line && job->line->attributes.is_cancelled) {
		if (job->state == BATCH_IN_QUEUE)
			edit_recall(runner, job);
		edit_cancel(runner, job);
		return false;
	}
	if (!is_outdated(job))
		return false;
	edit_recall(runner, job);
	return job->line && job->state == BATCH_IN_QUEUE;
}

/*
 * Reviews all jobs at work after the file was read.  A job that has to queue again would come after
 * the jobs that already wait, so those that follow it in the file are recalled as well.
 */
static void edit_review_active(struct batch_runner *runner)
{
	bool is_moved = runner->plan.is_reordered;
	struct batch_job *job;

	for (size_t i = 0; i < runner->active_count; i++)
		is_moved = edit_review_job(runner,
				   batch_jobs_find(&runner->jobs, runner->active[i])) ||
			   is_moved;
	while (is_moved && (job = batch_plan_find_early(&runner->plan)))
		edit_recall(runner, job);
}

/*
 * Whether @job has started in another environment than its line has now, because the line was
 * edited at that moment.  Then the job does not belong to the line.
 */
static bool is_astray(const struct batch_job *job)
{
	return job->line && job->state == BATCH_RUNNING &&
	       job->environment != job->line->environment;
}

void batch_edit_review(struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->active_count; i++) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		if (is_astray(job) && !runner->is_bad && !runner->retry_lines_ms)
			runner->retry_lines_ms = clock_boot_ms();
		/* since the file was read, it may have started, or wait for another attempt */
		if (job->is_between || (job->line && job->line->attributes.is_cancelled))
			(void)edit_review_job(runner, job);
	}
}

/* --- a new list -------------------------------------------------------------------- */

/*
 * Makes an ended job new again if its line now gives it another chance: it could not be run, and
 * its line has changed or the job that it came after is no longer failed; or `cancel` kept it from
 * being run and is gone from its line.
 */
static void edit_revive(struct batch_runner *runner, struct batch_job *job)
{
	if (job->state != BATCH_ENDED)
		return;
	if (job->cause == BATCH_BY_CANCEL && job->is_by_line && !job->was_started &&
		!job->line->attributes.is_cancelled)
		batch_jobs_renew(job);
	if (job->cause != BATCH_NOT_RUN)
		return;
	if (job->line_hash != batch_line_hash(job->line) ||
		(job->status == EXIT_GAVE_UP &&
			batch_plan_is_unblocked(&runner->plan, job)))
		batch_jobs_renew(job);
}

/* The command of a job that has finished. */
struct finished {
	uint64_t key, environment;
};

static int compare_finished(const void *left, const void *right)
{
	const struct finished *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->environment < b->environment ? -1 : a->environment > b->environment;
}

static bool has_lower_key(const void *item, const void *key)
{
	return ((const struct finished *)item)->key < *(const uint64_t *)key;
}

/*
 * Whether one of the @count commands at @all, which are sorted, is that of @line in another
 * environment.
 */
static bool is_finished_elsewhere(
	const struct finished *all, size_t count, const struct batch_line *line)
{
	for (size_t i = array_lower_bound(
		     all, sizeof(*all), count, &line->key, has_lower_key);
		i < count && all[i].key == line->key; i++)
		if (all[i].environment != line->environment)
			return true;
	return false;
}

/* Returns the number of new lines that repeat a command finished in another environment. */
static unsigned edit_count_repeats(const struct batch_jobs *jobs,
	const struct batch_list *list, const uint64_t *numbers)
{
	autofree struct finished *all = calloc(jobs->count + 1, sizeof(*all));
	size_t count = 0;
	unsigned repeats = 0;

	if (!all) /* only the note is lost */
		return 0;
	for (size_t i = 0; i < jobs->count; i++)
		if (batch_is_finished(&jobs->all[i]))
			all[count++] = (struct finished){ jobs->all[i].key,
				jobs->all[i].environment };
	qsort(all, count, sizeof(*all), compare_finished);
	for (size_t i = 0; i < list->count; i++)
		repeats +=
			!numbers[i] && is_finished_elsewhere(all, count, &list->lines[i]);
	return repeats;
}

static void edit_note_repeats(struct batch_runner *runner, unsigned count)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_NOTE, 0);

	if (!count)
		return;
	(void)snprintf(event.text, sizeof(event.text),
		"lines to run again, because they have run in another directory or with "
		"another --conda, --setup or --export: %u",
		count);
	(void)!batch_record_event(runner, &event);
}

/*
 * Finds the job of each line of @list, and makes new jobs for new lines.  Returns 0 and the numbers
 * in *@ret, to be freed by the caller, or a negative errno.  After a failure, the new jobs made so
 * far stay; the next call finds them by their keys.
 */
static int edit_find_jobs(
	struct batch_runner *runner, const struct batch_list *list, uint64_t **ret)
{
	uint64_t *numbers = NULL;
	unsigned repeats = 0;
	int r;

	for (size_t i = 0; i < list->count; i++)
		list->lines[i].environment = batch_environment(
			runner->context.settings, runner->directory, &list->lines[i]);
	r = batch_match(&runner->jobs, runner->board.order, runner->board.order_count,
		list, &numbers);
	if (r == 0)
		repeats = edit_count_repeats(&runner->jobs, list, numbers);
	for (size_t i = 0; r == 0 && i < list->count; i++)
		if (!numbers[i])
			r = edit_add_job(runner, &list->lines[i], &numbers[i]);
	edit_note_repeats(runner, repeats);
	if (r == 0)
		*ret = numbers;
	else
		free(numbers);
	return r;
}

/*
 * Sets ->line of all jobs; NULL for those that have none in @list.  An open job gets the
 * environment of its line.
 */
static void edit_assign_lines(struct batch_runner *runner, const struct batch_list *list,
	const uint64_t *numbers)
{
	for (size_t i = 0; i < runner->jobs.count; i++)
		runner->jobs.all[i].line = NULL;
	for (size_t i = 0; i < list->count; i++) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, numbers[i]);

		job->line = &list->lines[i];
		if (batch_is_open(job))
			job->environment = job->line->environment;
	}
}

static bool is_same_order(
	const struct batch_runner *runner, const uint64_t *numbers, size_t count)
{
	return runner->board.order && runner->board.order_count == count &&
	       memcmp(runner->board.order, numbers, count * sizeof(*numbers)) == 0;
}

/*
 * For batch_known: a line may come after a job that was in the file before, and on standard input
 * also after a line that has not arrived yet.
 */
static bool is_known_name(const void *arg, const char *name, size_t size)
{
	const struct batch_runner *runner = arg;

	for (size_t i = 0; !runner->file.is_pipe && i < runner->jobs.count; i++)
		if (strncmp(runner->jobs.all[i].name, name, size) == 0 &&
			!runner->jobs.all[i].name[size])
			return true;
	return runner->file.is_pipe;
}

/*
 * Puts @list in force and takes it over from the caller.  The journal is written first, so that no
 * job starts that the next runner cannot find.  Returns 0, or a negative errno; if the journal
 * could not be written, the list before stays in force.
 */
static int edit_take_over(struct batch_runner *runner, struct batch_list *list)
{
	uint64_t *numbers = NULL;
	int r = edit_find_jobs(runner, list, &numbers);

	if (r == 0 && !is_same_order(runner, numbers, list->count))
		r = edit_record_order(runner, numbers, list->count);
	if (r < 0) {
		free(numbers);
		return r;
	}
	edit_assign_lines(runner, list, numbers);
	batch_list_release(&runner->list);
	runner->list = *list;
	*list = BATCH_LIST_NONE;
	free((void *)runner->board.order);
	runner->board.order = numbers;
	runner->board.order_count = runner->list.count;
	r = batch_plan_begin(&runner->plan, &runner->jobs, numbers, runner->list.count);
	for (size_t i = 0; i < runner->list.count && r == 0; i++)
		edit_revive(runner, batch_jobs_find(&runner->jobs, numbers[i]));
	return r;
}

/*
 * Parses the text of the file; see batch_list_parse().  An error on standard input cannot be
 * corrected by the user, so there -EINVAL comes with *@ret set to the lines before the wrong one.
 */
static int edit_parse(
	struct batch_runner *runner, struct batch_list *ret, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	const struct batch_known known = { is_known_name, runner };
	const char *file = settings->verb.operands[0], *text = runner->file.text;
	size_t size = runner->file.size;
	enum batch_format format =
		batch_format_of(settings->batch.format, file, text, size);
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

int batch_edit_apply(struct batch_runner *runner, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	struct batch_list list = BATCH_LIST_NONE;
	int is_bad = edit_parse(runner, &list, why), r;

	/* the list in force stays, unless more lines arrived before the wrong one */
	if (is_bad < 0 && list.count <= runner->list.count) {
		batch_list_release(&list);
		return is_bad;
	}
	r = edit_take_over(runner, &list);
	batch_list_release(&list);
	if (r < 0) {
		why_set(why, "cannot work on '%s' as it is now: %s",
			settings->verb.operands[0], strerror(-r));
		/* -EINVAL is only for wrong lines */
		return r == -EINVAL ? -EIO : r;
	}
	edit_review_active(runner);
	batch_show_changed(&runner->show);
	return is_bad;
}
