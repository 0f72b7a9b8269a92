#include "clock.h"
#include "json_members.h"
#include "parse.h"
#include "report.h"
#include "show_foreseen.h"
#include "show_queue.h"
#include "waiting_line.h"

/* Says how jobs like this one usually run, if that is known. */
static void show_usual(const struct usual *usual, FILE *out)
{
	int64_t half_ms = usual_run_ms(usual, 50, 0);
	int64_t half_mib = usual_peak_mib(usual, 50);
	char line[160], span[DURATION_SIZE], longer[DURATION_SIZE];
	struct text text = TEXT_ON(line);

	if (!half_ms)
		return;
	format_duration(half_ms, span);
	format_duration(usual_run_ms(usual, 90, 0), longer);
	text_addf(&text, "usually runs %s", span);
	if (strcmp(span, longer) != 0)
		text_addf(&text, " to %s", longer);
	if (half_mib) {
		text_add(&text, " and uses ");
		report_add_size((uint64_t)usual_peak_mib(usual, 90), &text);
		text_add(&text, " of each GPU at most");
	}
	(void)fprintf(out, "%s (%u runs)\n", line, usual->runs);
}

void show_foreseen(const struct foreseen *foreseen, FILE *out)
{
	const char *between = " on GPU ";

	if (foreseen->verdict != VERDICT_START) {
		(void)fprintf(out, "would wait, %u%s in the queue: %s\n",
			foreseen->position, ordinal_suffix(foreseen->position),
			foreseen->why);
		show_usual(&foreseen->usual, out);
		return;
	}
	(void)fprintf(
		out, "would start now%s", foreseen->gpus.count ? "" : ", without GPUs");
	for (unsigned i = 0; i < foreseen->gpus.count; i++, between = ",")
		(void)fprintf(out, "%s%s", between,
			snapshot_gpu_name(foreseen->view, foreseen->gpus.slots[i]).text);
	if (foreseen->step_of)
		(void)fprintf(out, ", as a step of job %llu",
			(unsigned long long)foreseen->step_of);
	if (foreseen->sends_back && *foreseen->sends_back)
		(void)fprintf(out, "; job%s %s would be sent back into the queue",
			strchr(foreseen->sends_back, ',') ? "s" : "",
			foreseen->sends_back);
	(void)fputc('\n', out);
	show_usual(&foreseen->usual, out);
}

void show_foreseen_json(const struct foreseen *foreseen, FILE *out)
{
	const struct snapshot *view = foreseen->view;
	int64_t now_ms = clock_real_ms(), start_ms = foreseen->start_ms;
	struct json json = JSON_ON(out);

	document_begin(&json, "dry-run", now_ms, view->dir->path);
	member_bool(&json, "can_start", foreseen->verdict == VERDICT_START);
	member_time(&json, "start_at_unix_ms",
		start_ms ? now_ms + start_ms - clock_boot_ms() : 0);
	json_key(&json, "gpus");
	json_begin_array(&json);
	for (unsigned i = 0; i < foreseen->gpus.count; i++)
		json_unsigned(&json, snapshot_gpu_index(view, foreseen->gpus.slots[i]));
	json_end(&json);
	json_key(&json, "uuids");
	json_begin_array(&json);
	for (unsigned i = 0; i < foreseen->gpus.count; i++)
		json_text(&json, view->gpus[foreseen->gpus.slots[i]].file.gpu.uuid);
	json_end(&json);
	json_key(&json, "sends_back");
	json_begin_array(&json);
	for (const char *at = foreseen->sends_back; at && *at;) {
		char *end;

		json_unsigned(&json, strtoull(at, &end, 10));
		at = *end ? end + 1 : end;
	}
	json_end(&json);
	member_number_if(&json, "step_of", foreseen->step_of, foreseen->step_of);
	member_number_if(&json, "position", foreseen->position, foreseen->position);
	member_reason(&json, foreseen->verdict);
	member_number_if(&json, "limit_line", foreseen->limit_line, foreseen->limit_line);
	json_put_text(&json, "why", foreseen->why);
	member_foretold(&json, &foreseen->foretold, now_ms - clock_boot_ms());
	member_usual(&json, &foreseen->usual);
	document_finish(&json);
}
