#include <sys/wait.h>

#include "parse.h"
#include "report.h"
#include "signals.h"
#include "use_verdict.h"
#include "wait_reason.h"

void report_add_size(uint64_t mib, struct text *out)
{
	char size[GIB_TEXT_SIZE];

	format_gib(mib, size);
	text_addf(out, "%sG", size);
}

void report_add_span(int64_t ms, struct text *out)
{
	char span[DURATION_SIZE];

	format_duration(ms, span);
	text_add(out, span);
}

static void report_add_job(const struct report *report, struct text *out)
{
	text_addf(out, "job %llu", (unsigned long long)report->job);
}

/* --- how it ended ------------------------------------------------------------------ */

static void report_add_status(const struct attempt_end *end, struct text *out)
{
	if (WIFSIGNALED(end->wait_status))
		text_addf(out, "signal %s", signal_name(WTERMSIG(end->wait_status)).text);
	else
		text_addf(out, "exit status %d", WEXITSTATUS(end->wait_status));
}

/* Appends the cause of the end, if the status does not say it all: "cancelled by bob, ". */
static void report_add_cause(const struct report *report, struct text *out)
{
	switch (report->end.cause) {
	case CAUSE_ITSELF:
		if (report->end.is_oom)
			text_add(out, "out of GPU memory, ");
		return;
	case CAUSE_LIMIT:
		text_add(out, "time limit, ");
		return;
	case CAUSE_UNUSED:
		text_add(out, "GPU not used, ");
		return;
	case CAUSE_REQUEUE:
		text_add(out, "requeued, ");
		return;
	case CAUSE_CANCEL:
		text_add(out, "cancelled");
		if (report->by && report->by[0])
			text_addf(out, " by %s", report->by);
		break;
	case CAUSE_PREEMPT:
		text_add(out, "preempted");
		if (report->end.preempted_by)
			text_addf(out, " for job %llu",
				(unsigned long long)report->end.preempted_by);
		else
			text_add(out, " by a window");
		break;
	default: /* no attempt ends so */
		return;
	}
	text_add(out, ", ");
}

static void report_add_gpu_span(int64_t gpu_ms, struct text *out)
{
	int64_t hundredths = (gpu_ms + 18000) / 36000; /* of an hour */

	if (gpu_ms < 60 * 60 * 1000)
		text_addf(out, "%lld.%lld GPU-seconds", (long long)(gpu_ms / 1000),
			(long long)(gpu_ms % 1000 / 100));
	else
		text_addf(out, "%lld.%02lld GPU-hours", (long long)(hundredths / 100),
			(long long)(hundredths % 100));
}

/* GPU time, and the part of it at 0 %; a share of a GPU counts as its part. */
static void report_add_gpu_time(const struct report *report, struct text *out)
{
	unsigned percent =
		report->need.percent ? report->need.percent : (unsigned)WHOLE_PERCENT;

	text_add(out, ", ");
	report_add_gpu_span(
		report->end.ran_ms * report->gpu_count * percent / WHOLE_PERCENT, out);
	if (report->end.use.unused_ms <= 0) /* the mean of its GPUs */
		return;
	text_add(out, ", ");
	report_add_gpu_span(report->end.use.unused_ms * report->gpu_count, out);
	text_add(out, " at 0 %");
}

static void report_add_end(const struct report *report, struct text *out)
{
	report_add_job(report, out);
	if (report->name[0]) {
		text_add(out, " '");
		text_add_visible(out, report->name);
		text_add(out, "'");
	}
	if (report->attempt > 1)
		text_addf(out, ", attempt %u,", report->attempt);
	text_add(out, " ended: ");
	report_add_cause(report, out);
	report_add_status(&report->end, out);
	text_add(out, ", after ");
	report_add_span(report->end.ran_ms, out);
	text_add(out, ", waited ");
	report_add_span(report->waited_ms, out);
	if (report->gpu_count) {
		text_add(out, ", ");
		explain_need(&report->need, report->gpu_count, out);
		report_add_gpu_time(report, out);
	}
	text_add(out, "\n");
}

/* --- what it used ------------------------------------------------------------------ */

void report_add_peak(const struct report_peak *peak, struct text *out)
{
	static const char *const verdicts[] = {
		[USE_UNKNOWN] = "too few samples to compare",
		[USE_WITHIN] = "within",
		[USE_OVER] = "over by more than",
		[USE_UNDER] = "under by more than",
	};
	enum use_verdict verdict = use_compare(peak->declared_mib, peak->seen_mib,
		peak->is_spanned, peak->tolerance_percent);

	if (!peak->seen_mib)
		text_add(out, "peak n/a");
	else {
		text_add(out, peak->is_spanned ? "peak " : "peak at least ");
		report_add_size(peak->seen_mib, out);
	}
	if (peak->declared_mib) {
		text_add(out, " of ");
		report_add_size(peak->declared_mib, out);
		text_add(out, " declared");
	}
	if (!peak->seen_mib)
		text_add(out, ", none of its processes was seen");
	else if (peak->declared_mib)
		text_addf(out, ", %s", verdicts[verdict]);
	if (peak->declared_mib && verdict != USE_UNKNOWN)
		text_addf(out, " %u %%", peak->tolerance_percent);
}

static void report_add_gpu(
	const struct report *report, const struct sample_gpu *gpu, struct text *out)
{
	const struct sampler *sampler = report->sampler;

	report_add_job(report, out);
	text_addf(out, ", GPU %s: ", gpu->name.text);
	if (gpu->seen_ms) {
		report_add_peak(
			&(struct report_peak){
				.seen_mib = gpu->peak_mib,
				.declared_mib = report->need.mib,
				.tolerance_percent = sampler->tolerance_percent,
				.is_spanned = sample_gpu_is_spanned(
					sampler, gpu, report->end.ran_ms),
			},
			out);
		if (!report->need.mib && gpu->peak_mib && gpu->total_mib) {
			text_add(out, " of the card's ");
			report_add_size(gpu->total_mib, out);
		}
	} else {
		text_add(out, "nvidia-smi gave no data about it");
	}
	if (gpu->busy_count)
		text_addf(out, "; utilization %llu %% on average, %u %% at most",
			(unsigned long long)((gpu->busy_sum + gpu->busy_count / 2) /
					     gpu->busy_count),
			gpu->busy_peak);
	text_add(out, "\n");
}

static void report_add_use(const struct report *report, struct text *out)
{
	const struct sampler *sampler = report->sampler;

	if (sampler && sampler->count) {
		for (unsigned i = 0; i < sampler->gpu_count; i++)
			report_add_gpu(report, &sampler->gpus[i], out);
		return;
	}
	if (!report->gpu_count)
		return;
	report_add_job(report, out);
	text_add(out, ": its use of the GPUs was not sampled");
	if (sampler && sampler->gpu_count && !sampler->is_simulated &&
		report->end.ran_ms < sampler->interval_ms)
		text_add(out, ": it ended before the first sample");
	text_add(out, "\n");
}

/* --- what comes next --------------------------------------------------------------- */

static void report_add_next(const struct report *report, struct text *out)
{
	if (report->next == RETRY_NEXT_NOTHING)
		return;
	report_add_job(report, out);
	text_add(out, report->next == RETRY_NEXT_REQUEUE ? " goes back into the queue"
							 : " is tried again");
	if (report->next_delay_ms) {
		text_add(out, " in ");
		report_add_span(report->next_delay_ms, out);
	}
	text_addf(out, " (attempt %u)", report->attempt ? report->attempt + 1 : 2);
	if (report->next == RETRY_NEXT_OOM && report->next_vram_mib) {
		text_add(out, " and declares ");
		explain_size(report->next_vram_mib, true, out);
	}
	text_add(out, "\n");
}

void report_write(const struct report *report, struct text *out)
{
	report_add_end(report, out);
	report_add_use(report, out);
	if (report->log_is_full) {
		report_add_job(report, out);
		text_add(out,
			": some of its output was lost, because there was no space\n");
	}
	report_add_next(report, out);
}

void report_excess(
	uint64_t used_mib, const char *gpu, uint64_t declared_mib, struct text *out)
{
	text_add(out, " uses ");
	report_add_size(used_mib, out);
	text_add(out, " on GPU ");
	text_add_visible(out, gpu);
	text_add(out, " and declared ");
	report_add_size(declared_mib, out);
	text_add(out, ": its neighbors may run out of memory");
}
