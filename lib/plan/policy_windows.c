#include "policy_windows.h"
#include "policy_reserve.h"

/* Whether the window is not over, its GPU is known, and it binds the user of @row. */
static bool is_binding(
	const struct plan *plan, const struct plan_row *row, const struct window *window)
{
	return window->slot >= 0 && window->end_ms > plan->facts->now_ms &&
	       !window_exempts(window, row->uid);
}

static bool has_begun(const struct plan *plan, const struct window *window)
{
	return window->begin_ms <= plan->facts->now_ms;
}

struct gpuset policy_closed(struct plan *plan, const struct plan_row *row)
{
	const struct plan_facts *facts = plan->facts;
	int64_t span_ms = row->limit_ms + row->grace_ms + BACKFILL_MARGIN_MS;
	struct gpuset closed = GPUSET_NONE;

	for (size_t i = 0; i < facts->window_count; i++) {
		const struct window *window = &facts->windows[i];
		int64_t changes_ms = window->end_ms;

		if (!is_binding(plan, row, window))
			continue;
		if (!has_begun(plan, window) &&
			policy_ends_before(plan, row, window->begin_ms))
			changes_ms = window->begin_ms - span_ms + 1;
		else
			gpuset_add(&closed, (unsigned)window->slot);
		plan->changes_ms = min_i64(plan->changes_ms, changes_ms);
	}
	return closed;
}

struct gpuset policy_begun(const struct plan *plan, const struct plan_row *row)
{
	const struct plan_facts *facts = plan->facts;
	struct gpuset begun = GPUSET_NONE;

	for (size_t i = 0; i < facts->window_count; i++)
		if (is_binding(plan, row, &facts->windows[i]) &&
			has_begun(plan, &facts->windows[i]))
			gpuset_add(&begun, (unsigned)facts->windows[i].slot);
	return begun;
}

int64_t policy_limit_before(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *set)
{
	const struct plan_facts *facts = plan->facts;
	/* with a limit, a job that has none now would have a grace, too */
	int64_t grace_ms =
		row->limit_ms ? row->grace_ms : max_i64(row->grace_ms, GRACE_DEFAULT_MS);
	int64_t least_ms = INT64_MAX;

	for (size_t i = 0; i < facts->window_count; i++) {
		const struct window *window = &facts->windows[i];

		if (is_binding(plan, row, window) &&
			gpuset_has(set, (unsigned)window->slot))
			least_ms = min_i64(least_ms, window->begin_ms);
	}
	return least_ms == INT64_MAX
		       ? 0
		       : least_ms - facts->now_ms - grace_ms - BACKFILL_MARGIN_MS;
}

unsigned policy_window_of(
	const struct plan *plan, const struct plan_row *row, unsigned slot)
{
	const struct plan_facts *facts = plan->facts;
	unsigned first = 0;

	for (size_t i = 0; i < facts->window_count; i++) {
		const struct window *window = &facts->windows[i];

		if (window->slot == (int)slot && is_binding(plan, row, window) &&
			(!first || window->begin_ms < facts->windows[first - 1].begin_ms))
			first = (unsigned)i + 1;
	}
	return first;
}
