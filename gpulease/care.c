#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "care.h"
#include "clock.h"
#include "exitcodes.h"

int care_exit_status(const struct attempt_end *end)
{
	if (end->cause == CAUSE_LIMIT)
		return EXIT_GAVE_UP;
	return WIFSIGNALED(end->wait_status) ? 128 + WTERMSIG(end->wait_status)
					     : WEXITSTATUS(end->wait_status);
}

enum use_verdict care_compare(
	uint64_t declared_mib, uint64_t seen_mib, unsigned tolerance_percent)
{
	/* in hundredths, so that nothing is rounded */
	uint64_t declared = declared_mib * 100;
	uint64_t tolerance = declared_mib * tolerance_percent;

	if (seen_mib * 100 > declared + tolerance)
		return USE_OVER;
	return seen_mib * 100 + tolerance < declared ? USE_UNDER : USE_WITHIN;
}

static bool was_interrupted(const struct attempt_end *end)
{
	int status = care_exit_status(end);

	return status == 128 + SIGINT || status == 128 + SIGQUIT;
}

/* It doubles with each failure; then between 3/4 and 5/4 of it, which is no more than the most. */
static int64_t find_delay(const struct care *care, uint32_t chance)
{
	int64_t delay_ms = care->delay_ms, most_ms = care->delay_max_ms / 5 * 4;

	for (unsigned i = 1; i < care->failures && delay_ms < most_ms; i++)
		delay_ms *= 2;
	delay_ms = min_i64(delay_ms, most_ms);
	return delay_ms * 3 / 4 + delay_ms / 2 * (int64_t)(chance % 1024) / 1023;
}

/* 1.25 times the most that it had; false where there is no more to be had. */
static bool raise_vram(struct care *care, const struct attempt_end *end)
{
	uint64_t had_mib =
		end->peak_mib > care->vram_mib ? end->peak_mib : care->vram_mib;
	uint64_t wanted_mib = had_mib + (had_mib + 3) / 4;

	/* it has whole GPUs already, or nothing is known of it: the same once more */
	if (!care->vram_mib && (!care->is_sharing || !had_mib))
		return true;
	if (care->vram_max_mib && wanted_mib > care->vram_max_mib)
		wanted_mib = care->vram_max_mib;
	if (wanted_mib <= care->vram_mib)
		return false;
	care->vram_mib = wanted_mib;
	return true;
}

static enum care_next after_failure(struct care *care, const struct attempt_end *end,
	uint32_t chance, int64_t *ret_delay_ms)
{
	if (end->is_oom && care->oom_retries && raise_vram(care, end)) {
		care->oom_retries--;
		return CARE_RETRY_OOM;
	}
	if (!care->retries)
		return CARE_DONE;
	care->retries--;
	care->failures++;
	*ret_delay_ms = find_delay(care, chance);
	return CARE_RETRY;
}

enum care_next care_after(struct care *care, const struct attempt_end *end,
	uint32_t chance, int64_t *ret_delay_ms)
{
	*ret_delay_ms = 0;
	if (end->was_told || end->is_done)
		return CARE_DONE;
	switch (end->cause) {
	case CAUSE_CANCEL:
		return CARE_DONE;
	case CAUSE_PREEMPT:
		return CARE_REQUEUE;
	case CAUSE_LIMIT:
		if (care->on_limit != ON_LIMIT_REQUEUE || !care->requeues)
			return CARE_DONE;
		if (care->requeues != UINT_MAX)
			care->requeues--;
		return CARE_REQUEUE;
	case CAUSE_ITSELF:
		break;
	}
	if (end->wait_status == 0 || was_interrupted(end))
		return CARE_DONE;
	return after_failure(care, end, chance, ret_delay_ms);
}
