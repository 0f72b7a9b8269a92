#include "use_rule.h"

enum { LEAD_MS = 10 * 60 * 1000, LEAD_PART = 4, LAST_PART = 5 };

struct use_limits use_limits_of_job(const struct use_limits *limits)
{
	struct use_limits own = *limits;

	if (own.ok_ms < 0)
		own.after_ms = own.end_ms = 0;
	if (own.after_ms)
		own.after_ms = max_i64(own.after_ms, own.ok_ms);
	if (own.end_ms)
		own.end_ms = max_i64(own.end_ms, own.ok_ms);
	return own;
}

enum use_step use_rule_judge(const struct use_case *now, int64_t *ret_end_at_ms)
{
	const struct use_limits *limits = &now->limits;
	/* from the first warning to the end, at least; the last warning is a fifth of it before */
	int64_t lead_ms = min_i64(LEAD_MS, limits->end_ms / LEAD_PART);
	int64_t end_at_ms = now->now_ms + limits->end_ms - now->unused_ms;

	if (limits->end_ms && now->is_waited_for &&
		now->unused_ms >= limits->end_ms - lead_ms) {
		int64_t warned_ms = now->warnings ? now->warned_ms : now->now_ms;

		*ret_end_at_ms = end_at_ms = max_i64(end_at_ms, warned_ms + lead_ms);
		if (!now->warnings)
			return USE_WARN_FIRST;
		if (now->warnings == 1)
			return now->now_ms >= end_at_ms - lead_ms / LAST_PART
				       ? USE_WARN_LAST
				       : USE_NOTHING;
		return now->now_ms >= end_at_ms ? USE_END : USE_NOTHING;
	}
	return limits->after_ms && now->before_ms < limits->after_ms &&
			       now->unused_ms >= limits->after_ms
		       ? USE_TELL
		       : USE_NOTHING;
}
