#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "retry_policy.h"
#include "clock.h"

int attempt_exit_status(const struct attempt_end *end)
{
	return end_cause_status(end->cause, WIFSIGNALED(end->wait_status)
						    ? 128 + WTERMSIG(end->wait_status)
						    : WEXITSTATUS(end->wait_status));
}

/* Whether the command was ended from the keyboard; shells exit with 130 and 131 then. */
static bool attempt_was_interrupted(const struct attempt_end *end)
{
	int status = attempt_exit_status(end);

	return status == 128 + SIGINT || status == 128 + SIGQUIT;
}

/*
 * The delay doubles with each failure, and varies between 3/4 and 5/4 of that.  The longest delay
 * bounds the result: so the doubling ends at 4/5 of it.
 */
static int64_t retry_policy_delay(const struct retry_policy *care, uint32_t chance)
{
	int64_t delay_ms = care->delay_ms, most_ms = care->delay_max_ms / 5 * 4;

	for (unsigned i = 1; i < care->failures && delay_ms < most_ms; i++)
		delay_ms *= 2;
	delay_ms = min_i64(delay_ms, most_ms);
	return delay_ms * 3 / 4 + delay_ms / 2 * (int64_t)(chance % 1024) / 1023;
}

/*
 * Raises ->vram_mib to 1.25 times what the job used or declared.  Returns false if no card has
 * more.
 */
static bool retry_policy_raise_vram(
	struct retry_policy *care, const struct attempt_end *end)
{
	uint64_t had_mib =
		end->peak_mib > care->vram_mib ? end->peak_mib : care->vram_mib;
	uint64_t wanted_mib = had_mib + (had_mib + 3) / 4;

	/* it has whole GPUs, or its use is not known: try the same again */
	if (!care->vram_mib && (!care->is_sharing || !had_mib))
		return true;
	if (care->vram_max_mib && wanted_mib > care->vram_max_mib)
		wanted_mib = care->vram_max_mib;
	if (wanted_mib <= care->vram_mib)
		return false;
	care->vram_mib = wanted_mib;
	return true;
}

static enum retry_next retry_policy_after_failure(struct retry_policy *care,
	const struct attempt_end *end, uint32_t chance, int64_t *ret_delay_ms)
{
	if (end->is_oom && care->oom_retries && retry_policy_raise_vram(care, end)) {
		care->oom_retries--;
		return RETRY_NEXT_OOM;
	}
	if (!care->retries)
		return RETRY_NEXT_NOTHING;
	care->retries--;
	care->failures++;
	*ret_delay_ms = retry_policy_delay(care, chance);
	return RETRY_NEXT_RETRY;
}

enum retry_next retry_policy_apply(struct retry_policy *care,
	const struct attempt_end *end, uint32_t chance, int64_t *ret_delay_ms)
{
	*ret_delay_ms = 0;
	if (end->cause == CAUSE_REQUEUE && !end->is_cancelled_late)
		return RETRY_NEXT_REQUEUE;
	if (end->was_told || end->is_done || end->is_cancelled_late)
		return RETRY_NEXT_NOTHING;
	switch (end->cause) {
	case CAUSE_CANCEL:
	case CAUSE_UNUSED:
		return RETRY_NEXT_NOTHING;
	case CAUSE_PREEMPT:
	case CAUSE_REQUEUE:
		return RETRY_NEXT_REQUEUE;
	case CAUSE_LIMIT:
		if (care->on_limit != ON_LIMIT_REQUEUE || !care->requeues)
			return RETRY_NEXT_NOTHING;
		if (care->requeues != UINT_MAX)
			care->requeues--;
		return RETRY_NEXT_REQUEUE;
	default: /* by itself */
		break;
	}
	if (end->wait_status == 0 || attempt_was_interrupted(end))
		return RETRY_NEXT_NOTHING;
	return retry_policy_after_failure(care, end, chance, ret_delay_ms);
}
