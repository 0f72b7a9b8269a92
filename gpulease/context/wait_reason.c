#include <time.h>

#include "clock.h"
#include "end_record.h"
#include "gpu_reason.h"
#include "passover.h"
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

void explain_when(int64_t at_ms, struct text *out)
{
	int64_t real_ms = clock_real_ms();
	time_t now = (time_t)(real_ms / 1000);
	time_t at = (time_t)((real_ms + at_ms - clock_boot_ms()) / 1000);
	struct tm then, today;
	char words[32];
	bool is_today;

	if (!localtime_r(&at, &then) || !localtime_r(&now, &today))
		return;
	is_today = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
	if (strftime(words, sizeof(words), is_today ? "%H:%M" : "%Y-%m-%d %H:%M", &then))
		text_addf(out, "about %s", words);
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
	if (gpuset_is_empty(&verdict->others))
		return;
	end_record_name_gpus(view, &verdict->others, others, sizeof(others));
	text_addf(out, "; also %s: GPU %s", state_word(verdict->state), others);
}

static void explain_lack(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
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

	text_addf(out, "limit: %u %s%s %s, ", most, limits[limit->kind].noun,
		most == 1 ? "" : "s", limits[limit->kind].scope);
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
