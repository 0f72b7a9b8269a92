#include <inttypes.h>

#include "batch_log.h"
#include "batch_report.h"
#include "date_time.h"
#include "report.h"
#include "signals.h"
#include "wait_reason.h"

/* --- the parts of a line ----------------------------------------------------------- */

static void line_add_time(int64_t at_ms, struct text *out)
{
	date_time_add(at_ms, DATE_TIME_SECONDS, out);
	text_add(out, " ");
}

/* Appends "entry 3 'train'". */
static void line_add_entry(uint64_t number, const char *name, struct text *out)
{
	text_addf(out, "entry %" PRIu64, number);
	if (!name[0])
		return;
	text_add(out, " '");
	text_add_visible(out, name);
	text_add(out, "'");
}

/*
 * Appends the status.  For one above 128 it names the signal as well, because a shell turns the
 * signal of a child into such a status.
 */
static void line_add_status(int status, struct text *out)
{
	text_addf(out, "exit status %d", status);
	if (status > 128 && status < 128 + 32)
		text_addf(out, " (%s)", signal_name(status - 128).text);
}

void batch_report_add_end(const struct batch_end *end, struct text *out)
{
	static const char *const words[BATCH_CAUSES] = {
		[BATCH_BY_OOM] = "out of GPU memory",
		[BATCH_BY_LIMIT] = "time limit",
		[BATCH_BY_UNUSED] = "GPU not used",
		[BATCH_BY_CANCEL] = "cancelled",
		[BATCH_BY_PREEMPT] = "sent back for another job or a window",
		[BATCH_BY_REQUEUE] = "requeued",
		[BATCH_NOT_RUN] = "cannot run",
		[BATCH_IS_LOST] = "lost: its supervisor was killed",
	};

	if (words[end->cause])
		text_add(out, words[end->cause]);
	if (end->cause == BATCH_ITSELF)
		line_add_status(end->status, out);
	if (end->cause == BATCH_BY_OOM) {
		text_add(out, " (");
		line_add_status(end->status, out);
		text_add(out, ")");
	}
	if (end->cause == BATCH_BY_CANCEL && end->is_by_line) {
		text_add(out, " by its line in the file");
		return;
	}
	if (!end->text[0] || end->cause == BATCH_IS_LOST)
		return;
	text_add(out, end->cause == BATCH_BY_CANCEL ? " by " : ": ");
	text_add_visible(out, end->text);
}

static void line_add_use(
	const struct batch_event *event, unsigned tolerance_percent, struct text *out)
{
	/* utilization: its GPUs were sampled */
	if (event->peak_mib || (event->vram_mib && event->busy_mean >= 0)) {
		text_add(out, "; ");
		report_add_peak(&(struct report_peak){ event->peak_mib, event->vram_mib,
					tolerance_percent, event->spans_run },
			out);
	}
	if (event->busy_mean >= 0)
		text_addf(out, "; utilization %d %%", event->busy_mean);
}

/* Appends what an attempt with this end leads to. */
static void line_add_consequence(enum batch_cause cause, struct text *out)
{
	text_add(out, cause == BATCH_BY_PREEMPT || cause == BATCH_BY_LIMIT ||
				      cause == BATCH_BY_REQUEUE
			      ? ", goes back into the queue"
			      : ", tried again");
}

void batch_report_add_retry(enum batch_cause cause, int status, struct text *out)
{
	batch_report_add_end(
		&(struct batch_end){ .cause = cause, .status = status, .text = "" }, out);
	line_add_consequence(cause, out);
}

/* Appends what follows an attempt that is not the last. */
static void line_add_next(const struct batch_event *event, struct text *out)
{
	line_add_consequence(event->cause, out);
	if (event->next_mib && event->next_mib != event->vram_mib) {
		text_add(out, " with ");
		explain_size(event->next_mib, true, out);
	}
	if (event->delay_ms) {
		text_add(out, " in ");
		report_add_span(event->delay_ms, out);
	}
}

/* --- a line for each kind of event ------------------------------------------------- */

/* What a line may need besides its event. */
struct log_line {
	const struct batch_event *event;
	const struct batch_job *job; /* NULL: none */
	const struct batch_counts *counts;
	unsigned tolerance_percent;
};

static void line_add_start(const struct log_line *line, struct text *out)
{
	const struct batch_event *event = line->event;
	const struct batch_counts *counts = line->counts;

	text_add(out, " started");
	if (event->attempt > 1)
		text_addf(out, " again, attempt %" PRIu32 ",", event->attempt);
	if (event->gpus[0]) {
		text_add(out, strpbrk(event->gpus, ",-") ? " on GPUs " : " on GPU ");
		text_add_visible(out, event->gpus);
	} else {
		text_add(out, event->slurm_job ? " in Slurm" : " without a GPU");
	}
	text_addf(out, ", job %" PRIu64 " (%u of %u)",
		event->slurm_job ? event->slurm_job : event->ticket,
		counts->all - counts->waiting - counts->dropped, counts->all);
	if (line->job && line->job->command) {
		text_add(out, ": ");
		text_add_visible(out, line->job->command);
	}
}

static void line_add_end(const struct log_line *line, struct text *out)
{
	const struct batch_event *event = line->event;
	struct batch_end end = { event->cause, event->status, event->is_by_line,
		event->text };
	bool has_run = event->cause != BATCH_NOT_RUN && event->cause != BATCH_IS_LOST;
	bool is_over = event->kind == BATCH_OVER;

	text_add(out, has_run ? " ended: " : " ");
	if (is_over && event->is_interrupted)
		text_add(out, "interrupted");
	else if (line->job && line->job->is_dropped)
		text_addf(out, "dropped: %s", event->text);
	else
		batch_report_add_end(&end, out);
	if (has_run && event->ran_ms) {
		text_add(out, " after ");
		report_add_span(event->ran_ms, out);
	}
	if (!is_over)
		line_add_next(event, out);
	line_add_use(event, line->tolerance_percent, out);
}

static void line_add_memory(const struct log_line *line, struct text *out)
{
	text_add(out, " uses ");
	report_add_size(line->event->used_mib, out);
}

static void line_add_excess(const struct log_line *line, struct text *out)
{
	report_excess(
		line->event->used_mib, line->event->gpus, line->event->vram_mib, out);
}

static void line_add_note(const struct log_line *line, struct text *out)
{
	text_add(out, line->event->job ? ": " : "");
	text_add_visible(out, line->event->text);
}

void batch_report_add_jobs(const struct batch_jobs *jobs, const uint64_t *numbers,
	size_t count, struct text *out)
{
	for (size_t i = 0; i < count; i++)
		text_addf(out, "%s%llu", i ? ", " : "",
			(unsigned long long)batch_job_id(
				batch_jobs_find(jobs, numbers[i])));
}

void batch_report_event(const struct batch_event *event, const struct batch_job *job,
	const struct batch_counts *counts, unsigned tolerance_percent, struct text *out)
{
	static void (*const add[BATCH_KINDS])(const struct log_line *, struct text *) = {
		[BATCH_STARTED] = line_add_start,
		[BATCH_ATTEMPT] = line_add_end,
		[BATCH_OVER] = line_add_end,
		[BATCH_MEMORY] = line_add_memory,
		[BATCH_EXCESS] = line_add_excess,
		[BATCH_NOTE] = line_add_note,
		[BATCH_SUMMARY] = line_add_note,
	};
	struct log_line line = { event, job, counts, tolerance_percent };

	if (!add[event->kind])
		return;
	if (event->kind != BATCH_SUMMARY)
		line_add_time(event->at_ms, out);
	if (event->job)
		line_add_entry(
			event->job, job && job->name ? job->name : event->name, out);
	add[event->kind](&line, out);
}

/* --- all jobs ---------------------------------------------------------------------- */

void batch_report_add_counts(
	const struct batch_counts *counts, bool has_begun, struct text *out)
{
	const struct {
		uint32_t count;
		const char *word;
		bool is_always;
	} all[] = {
		{ counts->running, "running", has_begun },
		{ counts->waiting, "waiting", has_begun },
		{ counts->finished, "finished", true },
		{ counts->failed, "failed", false },
		{ counts->cancelled, "cancelled", false },
		{ counts->dropped, "dropped", false },
	};
	const char *comma = "";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].count && !all[i].is_always)
			continue;
		text_addf(out, "%s%u %s", comma, all[i].count, all[i].word);
		comma = ", ";
	}
}

void batch_report_summary(
	const struct batch_counts *counts, int64_t ran_ms, struct text *out)
{
	text_addf(out, "%u job%s: ", counts->all, counts->all == 1 ? "" : "s");
	batch_report_add_counts(counts, false, out);
	text_add(out, ", in ");
	report_add_span(ran_ms, out);
}

static void line_print_failure(const struct batch_job *job, const char *folder, FILE *out)
{
	struct batch_end end = { job->cause, job->status, job->is_by_line,
		job->reason ? job->reason : "" };
	char line[2048];
	struct text text = TEXT_ON(line);

	text_add(&text, job->is_from_earlier ? "failed earlier: " : "failed: ");
	line_add_entry(job->number, job->name, &text);
	text_add(&text, ", ");
	batch_report_add_end(&end, &text);
	if (job->was_started) {
		text_add(&text, ", log ");
		text_add_visible(&text, folder);
		text_add(&text, "/");
		batch_log_name(job->number, job->name, job->command, &text);
	}
	(void)fprintf(out, "%s\n", line);
}

static bool is_unlisted_failure(const struct batch_job *job)
{
	return batch_is_failed(job) && !job->is_listed &&
	       batch_section_of(job) != BATCH_SECTION_NONE;
}

void batch_report_failures(
	struct batch_jobs *jobs, const char *folder, size_t most, FILE *out)
{
	size_t count = 0, at = 0;

	for (size_t i = 0; i < jobs->count; i++)
		count += is_unlisted_failure(&jobs->all[i]);
	for (size_t i = 0; i < jobs->count; i++) {
		if (!is_unlisted_failure(&jobs->all[i]))
			continue;
		if (at++ >= count - (count < most ? count : most))
			line_print_failure(&jobs->all[i], folder, out);
		jobs->all[i].is_listed = true;
	}
	/* a child that is forked later would print the buffer once more */
	(void)fflush(out);
}
