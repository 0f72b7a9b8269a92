/*
 * The single rows of the screen: the title, what is wrong, GPU hours, ended jobs, the log, and the
 * keys.
 */
#include "top_parts.h"

/* --- the title ------------------------------------------------------------------- */

/* Appends "6 leased 1 idle". */
static void add_states(struct text *out, const struct machine *machine)
{
	static const char *const states[] = { "leased", "idle", "lingering", "paused",
		"external", "settling", "locked", "unknown" };
	const char *blank = " ";

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		unsigned count = 0;

		for (size_t gpu = 0; gpu < machine->gpu_count; gpu++)
			count += !machine->gpus[gpu].is_divided &&
				 strcmp(machine->gpus[gpu].state, states[i]) == 0;
		if (count)
			text_addf(out, "%s%u %s", blank, count, states[i]);
	}
}

/* Appends "8 GPUs: 6 leased 1 idle"; with room, the model in the place of "GPUs". */
static void add_gpus(struct text *out, const struct top_sheet *sheet)
{
	const struct machine *machine = sheet->machine;
	struct top_counts counts = top_count(machine);
	size_t whole = 0;

	for (size_t i = 0; i < machine->gpu_count; i++)
		whole += machine->gpus[i].instance < 0 && !machine->gpus[i].is_divided;
	if (!counts.places && !counts.gpus) {
		text_add(out, "no GPUs");
		return;
	}
	if (sheet->is_wide && !sheet->models_differ && machine->gpus[0].model[0]) {
		text_addf(out, "%u x ", counts.gpus);
		top_add_model(out, machine->gpus[0].model);
	} else {
		text_addf(out, "%u GPU%s", counts.gpus, counts.gpus == 1 ? "" : "s");
	}
	if (counts.places > whole)
		text_addf(out, ", %zu MIG", counts.places - whole);
	text_add(out, ":");
	add_states(out, machine);
}

static void add_machine(struct text *out, const struct top_sheet *sheet)
{
	const struct machine *machine = sheet->machine;

	text_add(out, top_host_name(sheet->host));
	text_add(out, machine->is_simulated ? " (sim)" : "");
	if (sheet->only)
		text_addf(out, ", only %s", sheet->only);
	text_add(out, "   ");
	if (machine->taken_unix_ms <= 0) {
		text_add(out, "no answer yet");
		return;
	}
	add_gpus(out, sheet);
	if (machine->queue_count)
		text_addf(out, "   %zu%s wait", machine->queue_count,
			machine->is_queue_cut ? "+" : "");
}

static void add_title(struct text *out, const struct top_sheet *sheet)
{
	if (sheet->view->are_hosts)
		text_addf(out, "%zu machine%s", sheet->host_count,
			sheet->host_count == 1 ? "" : "s");
	else
		add_machine(out, sheet);
}

/* Without enough room, the machine is named without the program. */
static const char *title_that_fits(
	const struct top_sheet *sheet, const char *title, unsigned width)
{
	static const char prefix[] = " gpulease on";

	return top_columns(sheet->view, title) > width ? title + sizeof(prefix) - 1
						       : title;
}

void top_draw_title(const struct top_sheet *sheet)
{
	enum { CLOCK_WIDTH = 10 }; /* with a blank on either side */
	unsigned width = top_width(sheet->view) - CLOCK_WIDTH;
	char words[512];
	struct text text = TEXT_ON(words);
	struct pen pen;

	if (!pen_begin(&pen, sheet->frame, sheet->view, false))
		return;
	text_add(&text, " gpulease on ");
	add_title(&text, sheet);
	pen_cell(&pen, title_that_fits(sheet, words, width), width, false, INK_BOLD);
	text = TEXT_ON(words);
	text_add(&text, " ");
	top_add_clock(&text, sheet->view, sheet->view->now_unix_ms);
	pen_put(&pen, words, INK_NONE);
	pen_end(&pen);
}

/* --- what is wrong --------------------------------------------------------------- */

bool top_has_trouble(const struct top_sheet *sheet)
{
	return *top_host_trouble(sheet->host) || sheet->machine->is_answer_old;
}

void top_draw_trouble(const struct top_sheet *sheet)
{
	const struct machine *machine = sheet->machine;
	char words[512];
	struct text text = TEXT_ON(words);

	if (!top_has_trouble(sheet))
		return;
	text_addf(&text, " ! %s", top_host_trouble(sheet->host));
	if (sheet->host->trouble[0] && machine->taken_unix_ms > 0) {
		text_add(&text, "; what is shown is from ");
		top_add_clock(&text, sheet->view, machine->taken_unix_ms);
	} else if (machine->is_answer_old) {
		text_add(&text, machine->trouble[0] ? "; nvidia-smi" : "nvidia-smi");
		text_add(&text, " does not answer, its last answer is old: ");
		top_add_span(&text, machine->answer_age_ms);
	}
	pen_row(sheet->frame, sheet->view, words, INK_RED);
}

/* --- windows --------------------------------------------------------------------- */

/* Appends "GPU 0,1: kept until 18:46 but for uid 1000 by root: demo". */
static void add_window(struct text *out, const struct top_view *view,
	const struct machine_window *window)
{
	text_addf(out, "GPU %s: kept", window->gpus);
	if (!window->has_begun) {
		text_add(out, " from ");
		top_add_time(out, view, window->from_unix_ms);
	}
	if (window->until_unix_ms >= 0) {
		text_add(out, " until ");
		top_add_time(out, view, window->until_unix_ms);
	}
	/* the numbers are those of the shown machine, which may not be this one */
	if (window->but[0])
		text_addf(out, " but for uid %s", window->but);
	if (window->by[0])
		text_addf(out, " by %s", window->by);
	if (window->reason[0])
		text_addf(out, ": %s", window->reason);
}

void top_draw_windows(const struct top_sheet *sheet, unsigned rows)
{
	const struct machine *machine = sheet->machine;
	size_t count = machine->window_count, drawn = 0;

	for (size_t i = 0; i < 2 * count && drawn < rows; i++) {
		const struct machine_window *window = &machine->windows[i % count];
		char words[1024];
		struct text text = TEXT_ON(words);

		if (window->has_begun != (i < count))
			continue;
		if (++drawn == rows && count > rows)
			text_addf(&text, "(+%zu more) ", count - rows);
		add_window(&text, sheet->view, window);
		pen_row(sheet->frame, sheet->view, words,
			window->has_begun ? INK_YELLOW : INK_FAINT);
	}
}

/* --- GPU hours of today ---------------------------------------------------------- */

enum { TALLY_MAX = 64, HOUR_MS = 3600 * 1000 };

struct tally {
	size_t count;
	struct {
		const char *user;
		double gpu_ms;
	} of[TALLY_MAX];
};

/* Returns whether more jobs may have ended today than were asked for. */
static bool tally_is_partial(const struct top_sheet *sheet)
{
	const struct ended_jobs *ended = &sheet->host->ended;

	return ended->count >= TOP_ENDED_MOST &&
	       ended->list[0].gone_unix_ms >= sheet->view->today_unix_ms;
}

static void tally_add(struct tally *tally, const char *user, double gpu_ms)
{
	size_t i = 0;

	while (i < tally->count && strcmp(tally->of[i].user, user) != 0)
		i++;
	if (i == TALLY_MAX || gpu_ms <= 0)
		return;
	if (i == tally->count) {
		tally->of[i].user = user;
		tally->of[i].gpu_ms = 0;
		tally->count++;
	}
	tally->of[i].gpu_ms += gpu_ms;
}

/* Returns which part of an ended job was today, from 0 to 1. */
static double part_of_today(const struct ended_job *job, const struct top_view *view)
{
	int64_t end = job->alive_unix_ms >= 0 ? job->alive_unix_ms : job->gone_unix_ms;
	int64_t from = max_i64(job->started_unix_ms, view->today_unix_ms);

	if (job->started_unix_ms < 0 || end <= from)
		return 0;
	return (double)(end - from) / (double)(end - job->started_unix_ms);
}

static void tally_fill(struct tally *tally, const struct top_sheet *sheet)
{
	const struct ended_jobs *ended = &sheet->host->ended;
	const struct machine *machine = sheet->machine;
	int64_t today_ms = sheet->view->now_unix_ms - sheet->view->today_unix_ms;

	tally->count = 0;
	for (size_t i = 0; i < ended->count; i++)
		tally_add(tally, ended->list[i].user,
			part_of_today(&ended->list[i], sheet->view) *
				ended->list[i].gpu_seconds * 1000);
	for (size_t i = 0; i < machine->lease_count; i++) {
		const struct machine_lease *lease = &machine->leases[i];
		double share = lease->share > 0 ? lease->share : 1;

		if (lease->gpu != SIZE_MAX)
			tally_add(tally, lease->user,
				share * (double)min_i64(lease->age_ms, today_ms));
	}
}

/*
 * Takes the user with the most GPU hours out of the tally.  Returns its index; TALLY_MAX: no user
 * has 0.05 or more.
 */
static size_t tally_take(struct tally *tally, double *ret_hours)
{
	size_t most = TALLY_MAX;

	for (size_t i = 0; i < tally->count; i++)
		if (tally->of[i].gpu_ms >= 0.05 * HOUR_MS &&
			(most == TALLY_MAX ||
				tally->of[i].gpu_ms > tally->of[most].gpu_ms))
			most = i;
	if (most == TALLY_MAX)
		return most;
	*ret_hours = tally->of[most].gpu_ms / HOUR_MS;
	tally->of[most].gpu_ms = 0;
	return most;
}

void top_draw_today(const struct top_sheet *sheet)
{
	const char *more = sheet->view->has_utf8 ? "  …" : "  ...";
	bool has_any = false;
	struct tally tally;
	struct pen pen;
	double hours;
	size_t i;

	tally_fill(&tally, sheet);
	if (!pen_begin(&pen, sheet->frame, sheet->view, false))
		return;
	pen_put(&pen, "TODAY", INK_BOLD);
	pen_put(&pen, tally_is_partial(sheet) ? "  GPU hours, at least:" : "  GPU hours:",
		INK_NONE);
	while ((i = tally_take(&tally, &hours)) != TALLY_MAX) {
		char words[MACHINE_NAME_SIZE + 32];
		struct text text = TEXT_ON(words);
		size_t size;

		has_any = true;
		text_addf(&text, "  %s %.1f", tally.of[i].user, hours);
		size = text.used;
		text_add(&text, more); /* there has to be room for it, too */
		if (!pen_has_room(&pen, words)) {
			pen_put(&pen, more, INK_NONE);
			break;
		}
		words[size] = '\0';
		pen_put(&pen, words, INK_NONE);
	}
	pen_put(&pen, has_any ? "" : "  none", INK_NONE);
	pen_end(&pen);
}

/* --- jobs that have ended -------------------------------------------------------- */

static enum ink end_ink(const char *state)
{
	static const char *const bad[] = { "failed", "oom", "lost", "timed-out" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (strcmp(state, bad[i]) == 0)
			return INK_RED;
	return strcmp(state, "finished") == 0 ? INK_GREEN : INK_YELLOW;
}

/* An ended job, "408 bob sweep finished 15:31 (2h04m)": what stands before its state and behind. */
struct end_words {
	char before[2 * MACHINE_NAME_SIZE + 32], behind[64];
};

static void end_words_make(
	const struct ended_job *job, const struct top_view *view, struct end_words *words)
{
	struct text before = TEXT_ON(words->before), behind = TEXT_ON(words->behind);
	char name[33]; /* the state behind it has to be seen */

	text_copy(name, sizeof(name), job->name);
	text_addf(&before, "%lld %s%s%s%s ", (long long)job->job, job->user,
		*name ? " " : "", name, strlen(name) < strlen(job->name) ? "…" : "");
	text_add(&behind, " ");
	top_add_time(&behind, view,
		job->gone_unix_ms >= 0 ? job->gone_unix_ms : job->alive_unix_ms);
	if (job->ran_least_ms >= 0) {
		text_add(&behind, " (");
		top_add_span(&behind, job->ran_least_ms);
		text_add(&behind, ")");
	}
}

/* Draws the job, unless the row has no room for it.  The first job of a row is cut. */
static bool draw_end(struct pen *pen, const struct ended_job *job, bool is_first)
{
	char whole[sizeof(struct end_words) + sizeof(job->state)];
	struct text text = TEXT_ON(whole);
	struct end_words words;

	end_words_make(job, pen->view, &words);
	text_addf(&text, "   %s%s%s", words.before, job->state, words.behind);
	if (!is_first && !pen_has_room(pen, whole))
		return false;
	pen_skip(pen, is_first ? 2 : 3);
	pen_put(pen, words.before, INK_NONE);
	pen_put(pen, job->state, end_ink(job->state));
	pen_put(pen, words.behind, INK_NONE);
	return true;
}

bool top_has_ended(const struct top_sheet *sheet)
{
	const struct ended_jobs *ended = &sheet->host->ended;

	for (size_t i = ended->count; i-- > 0;)
		if (top_is_shown(sheet, ended->list[i].user))
			return true;
	return false;
}

void top_draw_ended(const struct top_sheet *sheet, unsigned rows)
{
	const struct ended_jobs *ended = &sheet->host->ended;
	const char *title = "ENDED";
	size_t left = ended->count;
	struct pen pen;

	while (rows-- > 0 && left > 0) {
		bool is_first = true;

		while (left > 0 && !top_is_shown(sheet, ended->list[left - 1].user))
			left--;
		if (!left || !pen_begin(&pen, sheet->frame, sheet->view, false))
			return;
		pen_cell(&pen, title, 5, false, INK_BOLD);
		for (; left > 0; left--) {
			if (!top_is_shown(sheet, ended->list[left - 1].user))
				continue;
			if (!draw_end(&pen, &ended->list[left - 1], is_first))
				break;
			is_first = false;
		}
		pen_end(&pen);
		title = "";
	}
}

/* --- the log, the keys ----------------------------------------------------------- */

void top_draw_log(const struct top_sheet *sheet, unsigned rows)
{
	const struct top_view *view = sheet->view;
	unsigned count = (unsigned)min_i64(view->log_count, TOP_LOG_LINES);
	char title[64];
	struct text text = TEXT_ON(title);

	if (rows < 2 || !count)
		return;
	text_addf(&text, "LOG of job %lld", (long long)view->chosen_job);
	pen_row(sheet->frame, view, title, INK_BOLD);
	for (unsigned i = count - (unsigned)min_i64(count, rows - 1); i < count; i++)
		pen_row(sheet->frame, view, view->log[i], INK_NONE);
}

void top_draw_keys(const struct top_sheet *sheet)
{
	static const struct {
		const char *words;
		bool is_action;
		uint8_t rank; /* the highest is left out first, if there is not enough room */
	} keys[] = {
		{ " up/dn choose", false, 1 },
		{ "  f follow", false, 2 },
		{ "  a attach", true, 4 },
		{ "  c cancel", true, 3 },
		{ "  u mine", false, 5 },
		{ "  t times", false, 6 },
		{ "  h hosts", false, 7 },
		{ "  ? q", false, 0 },
	};
	const struct top_view *view = sheet->view;
	unsigned width = 0, shown = 0, rank = 0;
	struct pen pen;

	if (view->notice[0]) {
		pen_row(sheet->frame, view, view->notice, INK_YELLOW);
		return;
	}
	/* by rank, as long as there is room */
	for (; rank < ARRAY_SIZE(keys); rank++)
		for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
			if (keys[i].rank == rank &&
				(view->can_act || !keys[i].is_action)) {
				width += (unsigned)strlen(keys[i].words);
				shown |= width < top_width(view) ? 1u << i : 0;
			}
	if (!pen_begin(&pen, sheet->frame, view, false))
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
		if (shown & 1u << i)
			pen_put(&pen, keys[i].words, INK_FAINT);
	pen_end(&pen);
}
