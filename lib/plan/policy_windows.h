/*
 * The windows (windows.h) as the plan sees them.  Pure.
 */
#ifndef GPULEASE_POLICY_WINDOWS_H
#define GPULEASE_POLICY_WINDOWS_H

#include "policy.h"

/*
 * Returns the GPUs that windows keep from @row: it is not exempt, and the window has begun, or
 * begins before @row is certain to have ended.  Sets ->changes_ms of @plan to when that is no
 * longer so, or when it becomes so, if that is earlier.
 */
struct gpuset policy_closed(struct plan *plan, const struct plan_row *row);

/* Returns those of them whose window has begun. */
struct gpuset policy_begun(const struct plan *plan, const struct plan_row *row);

/*
 * Returns the longest time limit with which @row ends before any window on the GPUs of @set
 * begins; not above 0: there is none.
 */
int64_t policy_limit_before(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *set);

/* Returns 1 + the index of the first window that binds @row on the GPU; 0: there is none. */
unsigned policy_window_of(
	const struct plan *plan, const struct plan_row *row, unsigned slot);

#endif
