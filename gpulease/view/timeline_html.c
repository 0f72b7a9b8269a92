#include "parse.h"
#include "timeline_colours.h"
#include "timeline_html.h"
#include "timeline_ticks.h"

/* --- the head ------------------------------------------------------------------------- */

static const char page_style[] =
	":root{color-scheme:light dark}\n"
	"body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;padding:16px;"
	"max-width:1400px;color:#222;background:#fff}\n"
	"h1{font-size:1.35em;margin:0 0 4px}p{margin:0 0 12px}figure{margin:0}\n"
	"figure svg{display:block;width:100%;overflow:visible}\n"
	"table{border-collapse:collapse;margin-top:16px;font-variant-numeric:tabular-nums}\n"
	"caption{text-align:left;font-weight:600;padding:4px 0}\n"
	"th,td{padding:4px 10px;text-align:right;border-bottom:1px solid #ddd;"
	"white-space:nowrap}\n"
	"th:first-child{text-align:left;padding-left:0;max-width:16em;overflow:hidden;"
	"text-overflow:ellipsis}\n"
	"tbody th{font-weight:400}tfoot th,tfoot td{font-weight:600;border:0}\n"
	"th svg{vertical-align:-1px;margin-right:6px}kbd{font:inherit;margin-right:6px}\n"
	".scroll{overflow-x:auto}.note{color:#666;font-size:.87em;margin-top:8px}\n"
	"@media (max-width:640px){.o{display:none}th,td{padding:4px 6px}"
	"thead th{white-space:normal;vertical-align:bottom}th:first-child{max-width:8em}"
	"body{padding:12px;font-size:14px}}\n"
	"@media (prefers-color-scheme:dark){body{color:#e4e4e4;background:#161616}"
	"th,td{border-color:#3a3a3a}.note{color:#a8a8a8}}\n";

static void add_head(const struct timeline *timeline, const struct timeline_words *words,
	struct markup *out)
{
	markup_add(out,
		"<!DOCTYPE html>\n"
		"<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
		"<meta charset=\"utf-8\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, "
		"initial-scale=1\"/>\n<title>");
	timeline_svg_title(timeline, words, out);
	markup_add(out, "</title>\n<style>\n");
	markup_add(out, page_style);
	timeline_style(timeline, out);
	markup_add(out, "</style>\n</head>\n");
}

/* --- the table ------------------------------------------------------------------------ */

/* A figure of the table: whether it is left out where there is little room, and its text. */
struct figure {
	const char *title;
	bool is_optional;
	void (*format)(const struct timeline *timeline, const struct timeline_user *user,
		char out[TIMELINE_HOURS_SIZE]);
};

static void format_count(uint64_t count, char *out)
{
	(void)snprintf(out, TIMELINE_HOURS_SIZE, "%llu", (unsigned long long)count);
}

static void put_jobs(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	(void)timeline;
	format_count(user->jobs, out);
}

static void put_attempts(const struct timeline *timeline,
	const struct timeline_user *user, char out[TIMELINE_HOURS_SIZE])
{
	(void)timeline;
	format_count(user->attempts, out);
}

static void put_running(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	(void)timeline;
	format_count(user->running, out);
}

static void put_hours(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	(void)timeline;
	timeline_format_hours(user->least, out);
}

static void put_most(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	char least[TIMELINE_HOURS_SIZE];

	(void)timeline;
	timeline_format_hours(user->least, least);
	timeline_format_hours(user->most, out);
	if (strcmp(least, out) == 0)
		out[0] = '\0';
}

static void put_share(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	int64_t permille =
		timeline_permille(timeline, user->least, timeline_gpus(timeline));

	if (permille >= 0)
		(void)snprintf(out, TIMELINE_HOURS_SIZE, "%lld.%lld%%",
			(long long)permille / 10, (long long)permille % 10);
}

static void put_wait(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	int64_t wait_ms = timeline_mean_wait_ms(user);

	(void)timeline;
	if (wait_ms >= 0)
		format_duration(wait_ms, out);
}

static void put_utilization(const struct timeline *timeline,
	const struct timeline_user *user, char out[TIMELINE_HOURS_SIZE])
{
	int percent = timeline_utilization(user);

	(void)timeline;
	if (percent >= 0)
		(void)snprintf(out, TIMELINE_HOURS_SIZE, "%d%%", percent);
}

static void put_unused(const struct timeline *timeline, const struct timeline_user *user,
	char out[TIMELINE_HOURS_SIZE])
{
	(void)timeline;
	if (user->unused)
		timeline_format_hours(user->unused, out);
}

static const struct figure figures[] = {
	{ "Jobs", false, put_jobs },
	{ "Attempts", true, put_attempts },
	{ "Running", true, put_running },
	{ "GPU hours", false, put_hours },
	{ "Up to", true, put_most },
	{ "Part of all", true, put_share },
	{ "Mean wait", false, put_wait },
	{ "Utilization", true, put_utilization },
	{ "Hours at 0 %", false, put_unused },
};

/* Whether the total has the figure: without it, no user has. */
static bool has_figure(const struct timeline *timeline, const struct figure *figure)
{
	char text[TIMELINE_HOURS_SIZE] = "";

	figure->format(timeline, &timeline->total, text);
	return text[0] != '\0';
}

static void add_figures(const struct timeline *timeline, const struct timeline_user *user,
	struct markup *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		char text[TIMELINE_HOURS_SIZE] = "";

		if (!has_figure(timeline, &figures[i]))
			continue;
		figures[i].format(timeline, user, text);
		markup_add(out, figures[i].is_optional ? "<td class=\"o\">" : "<td>");
		markup_text(out, text); /* "<1s" */
		markup_add(out, "</td>");
	}
	markup_add(out, "</tr>\n");
}

static void add_user(const struct timeline *timeline, size_t user, struct markup *out)
{
	size_t place = timeline_place(user);

	markup_add(out, "<tr><th scope=\"row\"><svg width=\"12\" height=\"12\" "
			"aria-hidden=\"true\">");
	timeline_swatch(place, "0", 0, out);
	markup_addf(out, "</svg><kbd>%c</kbd>", timeline_letter(place));
	markup_text(out, timeline->users[user].name);
	markup_add(out, "</th>");
	add_figures(timeline, &timeline->users[user], out);
}

/* Appends one row for the users that have no row of their own. */
static void add_other_users(const struct timeline *timeline, struct markup *out)
{
	struct timeline_user sum = { .jobs = 0 };

	if (timeline->user_count <= TIMELINE_TABLE_USERS)
		return;
	for (size_t i = TIMELINE_TABLE_USERS; i < timeline->user_count; i++)
		timeline_user_add(&sum, &timeline->users[i]);
	markup_addf(out, "<tr><th scope=\"row\">%zu more users</th>",
		timeline->user_count - TIMELINE_TABLE_USERS);
	add_figures(timeline, &sum, out);
}

static void add_table(const struct timeline *timeline, struct markup *out)
{
	markup_add(out, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
			"aria-labelledby=\"users\">\n<table>\n"
			"<caption id=\"users\">Use by user</caption>\n"
			"<thead><tr><th scope=\"col\">User</th>");
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		if (has_figure(timeline, &figures[i]))
			markup_addf(out, "<th scope=\"col\"%s>%s</th>",
				figures[i].is_optional ? " class=\"o\"" : "",
				figures[i].title);
	markup_add(out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < timeline->user_count && i < TIMELINE_TABLE_USERS; i++)
		add_user(timeline, i, out);
	add_other_users(timeline, out);
	markup_add(out, "</tbody>\n<tfoot><tr><th scope=\"row\">total</th>");
	add_figures(timeline, &timeline->total, out);
	markup_add(out, "</tfoot>\n</table>\n</div>\n");
}

/* --- the page ------------------------------------------------------------------------- */

static void add_summary(const struct timeline *timeline,
	const struct timeline_words *words, struct markup *out)
{
	char from[TIMELINE_MOMENT_SIZE], until[TIMELINE_MOMENT_SIZE];
	uint64_t gpus = timeline_gpus(timeline);
	int64_t permille = timeline_permille(timeline, timeline->total.least, gpus);

	timeline_format_date(timeline->from_ms, from);
	timeline_format_date(timeline->until_ms, until);
	markup_add(out, "<h1>GPUs");
	if (words->host[0]) {
		markup_add(out, " of ");
		markup_text(out, words->host);
	}
	if (words->user) {
		markup_add(out, ", jobs of ");
		markup_text(out, words->user);
	}
	markup_addf(out, "</h1>\n<p>%s to %s, %llu GPU%s", from, until,
		(unsigned long long)gpus, gpus == 1 ? "" : "s");
	if (permille >= 0)
		markup_addf(out, ", %lld%% leased", (long long)(permille + 5) / 10);
	if (!timeline->span_count)
		markup_add(out, ". No job had a GPU in this time");
	markup_add(out, ".</p>\n");
}

static void add_notes(const struct timeline_words *words, struct markup *out)
{
	markup_add(out,
		"<p class=\"note\">Striped: at 0 % utilization up to the end of the "
		"job, or up to now. Pale: the end of the job was not seen, and may "
		"have come at any time in this part.");
	if (words->missing_lines)
		markup_addf(out, " %llu lines of the history could not be written.",
			(unsigned long long)words->missing_lines);
	markup_add(out, "</p>\n");
}

void timeline_html(const struct timeline *timeline, const struct timeline_words *words,
	struct markup *out)
{
	add_head(timeline, words, out);
	markup_add(out, "<body>\n<main>\n");
	add_summary(timeline, words, out);
	markup_add(out, "<figure>\n");
	timeline_svg(timeline, words, false, out);
	markup_add(out, "</figure>\n");
	add_notes(words, out);
	if (timeline->user_count)
		add_table(timeline, out);
	markup_add(out, "</main>\n</body>\n</html>\n");
}
