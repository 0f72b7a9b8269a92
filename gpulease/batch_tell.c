#include <inttypes.h>
#include <time.h>

#include "batch_board_parts.h"
#include "batch_journal.h"
#include "parse.h"
#include "report.h"
#include "signals.h"

/* --- the parts of a line ----------------------------------------------------------- */

static void add_time(int64_t at_ms, struct text *out)
{
	time_t at = at_ms / 1000;
	struct tm local;

	if (localtime_r(&at, &local))
		text_addf(out, "%02d:%02d:%02d ", local.tm_hour, local.tm_min,
			local.tm_sec);
}

void batch_add_since(int64_t since_ms, int64_t now_ms, struct text *out)
{
	time_t since = since_ms / 1000;
	bool is_recent = now_ms - since_ms < INT64_C(86400000);
	char words[32];
	struct tm local;

	if (localtime_r(&since, &local) &&
		strftime(words, sizeof(words), is_recent ? "%H:%M:%S" : "%Y-%m-%d %H:%M",
			&local))
		text_add(out, words);
}

/* "job 3 'train'" */
static void add_job(uint64_t number, const char *name, struct text *out)
{
	text_addf(out, "job %" PRIu64, number);
	if (!name[0])
		return;
	text_add(out, " '");
	batch_add_printable(name, out);
	text_add(out, "'");
}

/* Shells make statuses of signals, so it may have been either. */
static void add_status(int status, struct text *out)
{
	text_addf(out, "exit status %d", status);
	if (status > 128 && status < 128 + 32)
		text_addf(out, " (%s)", signal_name(status - 128).text);
}

void batch_add_end(enum batch_cause cause, int status, const char *text, struct text *out)
{
	static const char *const words[BATCH_CAUSES] = {
		[BATCH_BY_OOM] = "out of GPU memory",
		[BATCH_BY_LIMIT] = "time limit",
		[BATCH_BY_CANCEL] = "cancelled",
		[BATCH_BY_PREEMPT] = "sent back for a job of higher priority",
		[BATCH_NOT_RUN] = "cannot run",
		[BATCH_IS_LOST] = "lost: its supervisor was killed",
	};

	if (words[cause])
		text_add(out, words[cause]);
	if (cause == BATCH_ITSELF)
		add_status(status, out);
	if (cause == BATCH_BY_OOM) {
		text_add(out, " (");
		add_status(status, out);
		text_add(out, ")");
	}
	if (!text[0] || cause == BATCH_IS_LOST)
		return;
	/* of a cancel the text is who wanted it, or how */
	if (cause != BATCH_BY_CANCEL)
		text_add(out, ": ");
	else if (strncmp(text, "by ", 3) == 0)
		text_add(out, " ");
	else
		text_add(out, strchr(text, ' ') ? ": " : " by ");
	batch_add_printable(text, out);
}

static void add_use(
	const struct batch_event *event, unsigned tolerance_percent, struct text *out)
{
	if (event->peak_mib) {
		text_add(out, "; ");
		report_add_peak(event->peak_mib, event->vram_mib, tolerance_percent, out);
	}
	if (event->busy_mean >= 0)
		text_addf(out, "; utilization %d %%", event->busy_mean);
}

static void add_way(enum batch_cause cause, struct text *out)
{
	text_add(out, cause == BATCH_BY_PREEMPT || cause == BATCH_BY_LIMIT
			      ? ", goes back into the queue"
			      : ", tried again");
}

void batch_add_return(enum batch_cause cause, int status, struct text *out)
{
	batch_add_end(cause, status, "", out);
	add_way(cause, out);
}

/* What comes after an attempt. */
static void add_next(const struct batch_event *event, struct text *out)
{
	char size[MIB_TEXT_SIZE];

	add_way(event->cause, out);
	if (event->next_mib && event->next_mib != event->vram_mib) {
		format_mib(event->next_mib, size);
		text_addf(out, " with %s", size);
	}
	if (event->delay_ms) {
		text_add(out, " in ");
		report_add_span(event->delay_ms, out);
	}
}

/* --- a line for each kind of event ------------------------------------------------- */

/* What a line may need beside its event. */
struct telling {
	const struct batch_event *event;
	const struct batch_job *job; /* NULL: none */
	const struct batch_counts *counts;
	unsigned tolerance_percent;
};

static void tell_start(const struct telling *telling, struct text *out)
{
	const struct batch_event *event = telling->event;
	const struct batch_counts *counts = telling->counts;

	text_add(out, " started");
	if (event->attempt > 1)
		text_addf(out, " again, attempt %" PRIu32 ",", event->attempt);
	if (event->gpus[0]) {
		text_add(out, strpbrk(event->gpus, ",-") ? " on GPUs " : " on GPU ");
		batch_add_printable(event->gpus, out);
	} else {
		text_add(out, " without a GPU");
	}
	text_addf(out, ", ticket %" PRIu64 " (%u of %u)", event->ticket,
		counts->all - counts->waiting - counts->dropped, counts->all);
	if (telling->job && telling->job->command) {
		text_add(out, ": ");
		batch_add_printable(telling->job->command, out);
	}
}

static void tell_end(const struct telling *telling, struct text *out)
{
	const struct batch_event *event = telling->event;
	bool has_run = event->cause != BATCH_NOT_RUN && event->cause != BATCH_IS_LOST;
	bool is_over = event->kind == BATCH_OVER;

	text_add(out, has_run ? " ended: " : " ");
	if (is_over && event->is_interrupted)
		text_add(out, "interrupted");
	else if (telling->job && telling->job->is_dropped)
		text_addf(out, "dropped: %s", event->text);
	else
		batch_add_end(event->cause, event->status, event->text, out);
	if (has_run && event->ran_ms) {
		text_add(out, " after ");
		report_add_span(event->ran_ms, out);
	}
	if (!is_over)
		add_next(event, out);
	add_use(event, telling->tolerance_percent, out);
}

static void tell_memory(const struct telling *telling, struct text *out)
{
	text_add(out, " uses ");
	report_add_size(telling->event->peak_mib, out);
}

static void tell_note(const struct telling *telling, struct text *out)
{
	text_add(out, telling->event->job ? ": " : "");
	batch_add_printable(telling->event->text, out);
}

void batch_line_of(const struct batch_event *event, const struct batch_job *job,
	const struct batch_counts *counts, unsigned tolerance_percent, struct text *out)
{
	static void (*const tell[BATCH_KINDS])(const struct telling *, struct text *) = {
		[BATCH_STARTED] = tell_start,
		[BATCH_ATTEMPT] = tell_end,
		[BATCH_OVER] = tell_end,
		[BATCH_MEMORY] = tell_memory,
		[BATCH_NOTE] = tell_note,
		[BATCH_SUMMARY] = tell_note,
	};
	struct telling telling = { event, job, counts, tolerance_percent };

	if (!tell[event->kind])
		return;
	if (event->kind != BATCH_SUMMARY)
		add_time(event->at_ms, out);
	if (event->job)
		add_job(event->job, job && job->name ? job->name : event->name, out);
	tell[event->kind](&telling, out);
}

/* --- all of it --------------------------------------------------------------------- */

void batch_add_counts(const struct batch_counts *counts, bool has_begun, struct text *out)
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

void batch_summary(const struct batch_counts *counts, int64_t ran_ms, struct text *out)
{
	text_addf(out, "%u job%s: ", counts->all, counts->all == 1 ? "" : "s");
	batch_add_counts(counts, false, out);
	text_add(out, ", in ");
	report_add_span(ran_ms, out);
}

static void print_failure(const struct batch_job *job, const char *folder, FILE *out)
{
	char line[2048];
	struct text text = TEXT_ON(line);

	text_add(&text, job->is_of_before ? "failed earlier: " : "failed: ");
	add_job(job->number, job->name, &text);
	text_add(&text, ", ");
	batch_add_end(job->cause, job->status, job->reason ? job->reason : "", &text);
	if (job->was_started) {
		text_add(&text, ", log ");
		batch_add_printable(folder, &text);
		text_add(&text, "/");
		batch_log_name(job->number, job->name, job->command, &text);
	}
	(void)fprintf(out, "%s\n", line);
}

static bool is_to_list(const struct batch_job *job)
{
	return batch_is_failed(job) && !job->is_listed &&
	       batch_part_of(job) != BATCH_PART_NONE;
}

void batch_failures_print(
	struct batch_jobs *jobs, const char *folder, size_t most, FILE *out)
{
	size_t count = 0, at = 0;

	for (size_t i = 0; i < jobs->count; i++)
		count += is_to_list(&jobs->all[i]);
	for (size_t i = 0; i < jobs->count; i++) {
		if (!is_to_list(&jobs->all[i]))
			continue;
		if (at++ >= count - (count < most ? count : most))
			print_failure(&jobs->all[i], folder, out);
		jobs->all[i].is_listed = true;
	}
	/* whoever forks now would have it printed twice */
	(void)fflush(out);
}
