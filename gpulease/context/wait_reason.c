#include "clock.h"
#include "date_time.h"
#include "end_record.h"
#include "gpu_reason.h"
#include "own_limits.h"
#include "passover.h"
#include "privacy.h"
#include "parse.h"
#include "wait_reason.h"

void explain_share(unsigned percent, struct text *out)
{
	if (percent % 10)
		text_addf(out, "%u.%02u", percent / 100, percent % 100);
	else
		text_addf(out, "%u.%u", percent / 100, percent % 100 / 10);
}

void explain_size(uint64_t mib, bool is_need, struct text *out)
{
	uint64_t tenths = (mib * 10 + (is_need ? 1023 : 0)) / 1024;

	text_addf(out, tenths % 10 ? "%llu.%uG" : "%lluG",
		(unsigned long long)(tenths / 10), (unsigned)(tenths % 10));
}

void explain_need(const struct need *need, unsigned gpus, struct text *out)
{
	if (need_is_whole(need)) {
		text_addf(out, "%u GPU%s", gpus, gpus == 1 ? "" : "s");
		return;
	}
	if (need->percent)
		explain_share(need->percent, out);
	if (need->mib) {
		text_add(out, need->percent ? " and " : "");
		explain_size(need->mib, true, out);
	}
	if (gpus == 1)
		text_add(out, " of a GPU");
	else
		text_addf(out, " of each of %u GPUs", gpus);
}

void explain_time(int64_t at_ms, struct text *out)
{
	int64_t real_ms = clock_real_ms();

	/* to the nearest second: a time that was given in words must read as it was given */
	date_time_add_near(real_ms + at_ms - clock_boot_ms() + 500, real_ms, 0, out);
}

void explain_when(int64_t at_ms, struct text *out)
{
	text_add(out, "about ");
	explain_time(at_ms, out);
}

/* Two times that are closer are shown as one. */
enum { SAME_MS = 60000 };

void explain_usually(
	const struct foretold *foretold, bool is_after_time, struct text *out)
{
	if (!foretold->runs)
		return;
	text_add(out, is_after_time ? "; usually " : "; usually starts ");
	explain_time(foretold->from_ms, out);
	if (foretold->to_ms - foretold->from_ms >= SAME_MS) {
		text_add(out, " to ");
		explain_time(foretold->to_ms, out);
	}
	text_addf(out, " (%u runs)", foretold->runs);
}

static void add_gpu_hours(uint64_t gpu_ms, struct text *out)
{
	uint64_t tenths = gpu_ms / 360000;

	text_addf(out, "%llu.%u", (unsigned long long)(tenths / 10),
		(unsigned)(tenths % 10));
}

void explain_fair_share(const struct config_share *share,
	const struct broker_share *counts, struct text *out)
{
	char window[DURATION_SIZE], late[DURATION_SIZE];

	format_exact_duration(share->window_ms, window);
	format_duration(counts->late_ms, late);
	text_add(out, "had ");
	add_gpu_hours(counts->had_ms, out);
	text_addf(out, " GPU-hours in %s", window);
	if (counts->waits_ms) {
		text_add(out, " and asked for ");
		add_gpu_hours(counts->waits_ms, out);
		text_add(out, " more");
	}
	text_addf(out, ", which counts as %s later", late);
}

/* --- for each kind of verdict ------------------------------------------------------ */

static void explain_start(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	(void)view;
	(void)verdict;
	text_add(out, "can start now");
}

/* Appends the largest part of one GPU that is free, for a job that needs a part. */
static void verdict_add_room(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	uint64_t margin_mib = view->facts.margin_mib, mib = verdict->best.mib;

	/* the plan keeps the margin free on a GPU with declared memory, not for shares */
	if (verdict->need.mib)
		mib -= mib < margin_mib ? mib : margin_mib;
	if (verdict->need.percent ? !verdict->best.percent : !mib) {
		text_add(out, "none is free");
	} else if (verdict->need.percent &&
		   verdict->best.percent < verdict->need.percent) {
		text_add(out, "at most ");
		explain_share(verdict->best.percent, out);
		text_add(out, " of one is free");
	} else if (!verdict->best.leases && verdict->best.percent) {
		text_addf(out, "%d leases on GPU %s", ROOM_LEASES,
			snapshot_gpu_name(view, verdict->slot).text);
	} else {
		text_add(out, "at most ");
		explain_size(mib, false, out);
		text_add(out, " of one is free");
	}
}

/* Appends the first job that is being sent back for this ticket, or for one ahead of it. */
static void snapshot_add_sent_back(const struct snapshot *view, struct text *out)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];

		if (!lease->sent_back_ms || lease->is_over)
			continue;
		text_addf(out, "; job %llu is being sent back into the queue",
			(unsigned long long)lease_job(&lease->lease));
		return;
	}
}

/* Appends the names of the users: "alice,1001". */
static void window_add_users(const struct window *window, struct text *out)
{
	for (const char *at = window->but; *at;) {
		size_t size = strcspn(at, ",");
		uint64_t uid;
		char number[12];

		(void)snprintf(number, sizeof(number), "%.*s", (int)size, at);
		if (parse_u64(number, UINT32_MAX, &uid, NULL) == 0)
			describe_user((uint32_t)uid, NULL, out);
		at += size;
		if (*at)
			text_add(out, ",");
		at += *at == ',';
	}
}

void explain_by(const char *user, const char *reason, struct text *out)
{
	if (user[0]) {
		text_add(out, " by ");
		text_add_visible(out, user);
	}
	if (reason[0]) {
		text_add(out, ": ");
		text_add_visible(out, reason);
	}
}

void explain_window(const struct window *window, int64_t at_ms, struct text *out)
{
	bool has_begun = window->begin_ms <= at_ms, ends = window->end_ms != INT64_MAX;
	char span[DURATION_SIZE];

	text_add(out, "kept");
	if (!has_begun) {
		text_add(out, " from ");
		explain_time(window->begin_ms, out);
		format_duration(window->until_ms - window->from_ms, span);
		if (ends)
			text_addf(out, " for %s", span);
		else
			text_add(out, " on");
	} else if (ends) {
		text_add(out, " until ");
		explain_time(window->end_ms, out);
	}
	if (window->but[0]) {
		text_add(out, " but for ");
		window_add_users(window, out);
	}
	explain_by(window->by, window->reason, out);
}

/*
 * Appends what keeps the first of the GPUs that no lease keeps, and names the others.  The user may
 * be able to do something about them.
 */
static void explain_blamed(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	char others[256];

	text_addf(out, "; GPU %s ", snapshot_gpu_name(view, verdict->slot).text);
	(void)explain_gpu_state(view, verdict->slot, verdict->state, out);
	/* the windows may have been read again since the verdict */
	if (verdict->window && verdict->window <= view->windows.count) {
		text_add(out, "is ");
		explain_window(
			&view->windows.all[verdict->window - 1], view->facts.now_ms, out);
	}
	if (gpuset_is_empty(&verdict->others))
		return;
	end_record_name_gpus(view, &verdict->others, others, sizeof(others));
	text_addf(out, "; also %s: GPU %s", state_word(verdict->state), others);
}

static void explain_lack(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	char under[DURATION_SIZE];

	text_add(out, "needs ");
	explain_need(&verdict->need, verdict->wanted, out);
	text_add(out, ", ");
	if (verdict->free)
		text_addf(out, "%u %s free", verdict->free,
			verdict->free == 1 ? "is" : "are");
	else if (need_is_whole(&verdict->need))
		text_add(out, "none is free");
	else
		verdict_add_room(view, verdict, out);
	if (verdict->kind == VERDICT_LEASED && verdict->behind)
		text_addf(out, " besides those reserved for job %llu",
			(unsigned long long)verdict->behind);
	if (verdict->state != GPU_FREE && verdict->state != GPU_LEASED)
		explain_blamed(view, verdict, out);
	if (verdict->under_ms) {
		format_duration(verdict->under_ms, under);
		text_addf(out, "; a limit under %s would start now", under);
	}
	snapshot_add_sent_back(view, out);
	if (verdict->start_ms) {
		text_add(out, "; at the latest ");
		explain_when(verdict->start_ms, out);
	}
}

static void explain_behind(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	(void)view;
	text_addf(out, "behind job %llu, which waits for ",
		(unsigned long long)verdict->behind);
	if (!verdict->behind_gpus) {
		text_add(out, "a limit");
		return;
	}
	explain_need(&verdict->behind_need, verdict->behind_gpus, out);
	if (verdict->start_ms) {
		text_add(out, " until ");
		explain_when(verdict->start_ms, out);
	}
}

static void explain_held(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	static const struct {
		const char *before, *after;
	} texts[] = {
		[DEPENDENCY_AFTER] = { "comes after job", ", which has not ended" },
		[DEPENDENCY_START] = { "comes after job", ", which has not started" },
		[DEPENDENCY_STATUS] = { "comes after job",
			", which is not known to have succeeded" },
		[DEPENDENCY_SINGLETON] = { "job", " of the same name comes first" },
	};
	char span[DURATION_SIZE];

	(void)view;
	if (verdict->hold == DEPENDENCY_UNTIL && verdict->start_ms == TICKET_HELD) {
		text_add(out, "is held; gpulease --release ID lets it go");
		return;
	}
	if (verdict->hold == DEPENDENCY_UNTIL && !verdict->held_by) {
		text_add(out, "begins ");
		explain_time(verdict->start_ms, out);
		return;
	}
	if (verdict->hold == DEPENDENCY_UNTIL) {
		format_duration(max_i64(0, verdict->start_ms - clock_boot_ms()), span);
		text_addf(out, "is tried again in %s", span);
		return;
	}
	text_addf(out, "%s %llu%s", texts[verdict->hold].before,
		(unsigned long long)verdict->held_by, texts[verdict->hold].after);
}

static void explain_limit(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	static const struct {
		const char *noun, *scope;
		unsigned per;
	} limits[LIMIT_KINDS] = {
		[LIMIT_USER_GPUS] = { "GPU", "per user", WHOLE_PERCENT },
		[LIMIT_USER_LEASES] = { "job", "per user", 1 },
		[LIMIT_ALL_GPUS] = { "GPU", "for all", WHOLE_PERCENT },
		[LIMIT_ALL_LEASES] = { "job", "for all", 1 },
	};
	const struct quota_excess *limit = &verdict->limit;
	unsigned per = limits[limit->kind].per, most = limit->most / per;

	text_addf(out, "limit: %u %s%s ", most, limits[limit->kind].noun,
		most == 1 ? "" : "s");
	if (limit->line) {
		text_add(out, "by ");
		own_limits_add_line(limit->line, out);
	} else {
		text_add(out, limits[limit->kind].scope);
	}
	text_add(out, ", ");
	if (limit->used % per)
		explain_share(limit->used, out);
	else
		text_addf(out, "%u", limit->used / per);
	text_add(out, per == 1 ? " running" : " in use");
	if (limit_is_for_all(limit->kind))
		snapshot_add_sent_back(view, out);
}

void explain_stuck(const char *stuck, struct text *out)
{
	static const struct {
		const char *code, *words;
	} codes[] = {
		{ STUCK_NVIDIA_SMI, "its own nvidia-smi fails: " },
		{ STUCK_ERRNO, "it cannot take a turn: " },
		{ STUCK_TURN, "its turns do not end" },
		{ STUCK_LOCK, "it cannot lock the file of GPU " },
		{ STUCK_GPU, "its own nvidia-smi does not show GPU " },
		{ STUCK_OWN, "only its own thresholds refuse GPU " },
	};
	/* CODE or CODE:DETAIL, as the owner wrote it into its ticket */
	size_t size = strcspn(stuck, ":");
	const char *rest = stuck[size] ? stuck + size + 1 : "";

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		if (strlen(codes[i].code) != size ||
			memcmp(codes[i].code, stuck, size) != 0)
			continue;
		text_add(out, codes[i].words);
		text_add(out, rest);
		return;
	}
	text_addf(out, "it says: %s", stuck); /* a code of a later gpulease */
}

void explain_verdict(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	static void (*const explain[])(
		const struct snapshot *, const struct verdict *, struct text *) = {
		[VERDICT_START] = explain_start,
		[VERDICT_LEASED] = explain_lack,
		[VERDICT_GPU] = explain_lack,
		[VERDICT_BEHIND] = explain_behind,
		[VERDICT_HELD] = explain_held,
		[VERDICT_LIMIT] = explain_limit,
	};

	explain[verdict->kind](view, verdict, out);
}
