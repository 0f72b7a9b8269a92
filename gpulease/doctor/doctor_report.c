#include <stdarg.h>

#include "array.h"
#include "doctor_report.h"
#include "json_members.h"

static const struct {
	const char *word, *colour;
} results[] = {
	[DOCTOR_OK] = { "ok", "\033[32m" },
	[DOCTOR_WARN] = { "warn", "\033[33m" },
	[DOCTOR_FAIL] = { "fail", "\033[31m" },
};

/* --- collecting -------------------------------------------------------------------- */

void doctor_report_release(struct doctor_report *report)
{
	free(report->findings);
	*report = DOCTOR_REPORT_NONE;
}

struct doctor_finding *doctor_add(
	struct doctor_report *report, enum doctor_result result, const char *format, ...)
{
	static struct doctor_finding
		lost; /* takes the finding that has no room; never shown */
	struct doctor_finding *findings = array_grow(
		report->findings, sizeof(*findings), report->count, &report->room);
	struct doctor_finding *finding = &lost;
	va_list args;

	if (findings) {
		report->findings = findings;
		finding = &findings[report->count++];
	} else {
		report->is_short_of_memory = true;
	}
	*finding = (struct doctor_finding){ .name = report->check, .result = result };
	va_start(args, format);
	(void)vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	return finding;
}

void doctor_remedy(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
	va_end(args);
}

struct doctor_finding *doctor_add_why(
	struct doctor_report *report, enum doctor_result result, const struct why *why)
{
	static const char separator[] = "; ";
	struct doctor_finding *finding;

	if (!why->remedy_at)
		return doctor_add(report, result, "%s", why->text);
	finding = doctor_add(report, result, "%.*s",
		(int)(why->remedy_at - strlen(separator)), why->text);
	doctor_remedy(finding, "%s", why->text + why->remedy_at);
	return finding;
}

enum doctor_result doctor_worst(const struct doctor_report *report)
{
	enum doctor_result worst = DOCTOR_OK;

	for (size_t i = 0; i < report->count; i++)
		if (report->findings[i].result > worst)
			worst = report->findings[i].result;
	return worst;
}

/* --- printing ---------------------------------------------------------------------- */

static void print_finding(
	const struct doctor_finding *finding, bool has_colour, FILE *out)
{
	/* text_add_printable() writes at most as many bytes as it reads */
	char line[sizeof(finding->text) + sizeof(finding->remedy) + 4];
	const char *word = results[finding->result].word;
	struct text text = TEXT_ON(line);

	text_add_visible(&text, finding->text);
	if (finding->remedy[0]) {
		text_add(&text, "; ");
		text_add_visible(&text, finding->remedy);
	}
	(void)fprintf(out, "%s%s%s%*s%s: %s\n",
		has_colour ? results[finding->result].colour : "", word,
		has_colour ? "\033[0m" : "", 6 - (int)strlen(word), "", finding->name,
		line);
}

void doctor_print(
	const struct doctor_report *report, const struct table_style *style, FILE *out)
{
	for (size_t i = 0; i < report->count; i++)
		print_finding(&report->findings[i], style->has_colour, out);
}

void doctor_put_findings(const struct doctor_report *report, struct json *json)
{
	json_put_text(json, "result", results[doctor_worst(report)].word);
	json_key(json, "checks");
	json_begin_array(json);
	for (size_t i = 0; i < report->count; i++) {
		const struct doctor_finding *finding = &report->findings[i];

		json_begin_object(json);
		json_put_text(json, "name", finding->name);
		json_put_text(json, "result", results[finding->result].word);
		json_put_text(json, "text", finding->text);
		json_put_text(json, "remedy", finding->remedy);
		json_end(json);
	}
	json_end(json);
}

void doctor_print_json(const struct doctor_report *report, const char *directory,
	int64_t now_ms, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "doctor", now_ms, directory ? directory : "");
	doctor_put_findings(report, &json);
	document_finish(&json);
}
