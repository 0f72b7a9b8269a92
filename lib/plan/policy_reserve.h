/*
 * The reservations of the plan.  Pure.
 *
 * Memory and processes of a lease with a dead owner may be gone at any moment or stay for
 * hours.  So a head reserves twice the GPUs that are free soonest: once as if these stay, and once
 * as if they go now.  The first says when the head starts at the latest.  The second is the bound
 * of backfill.  With only one of them, each end of a job would move a reservation to other GPUs for
 * a moment, and a later ticket would pass meanwhile.
 */
#ifndef GPULEASE_POLICY_RESERVE_H
#define GPULEASE_POLICY_RESERVE_H

#include "policy.h"

/* A job that has to be gone before a bound has to end this long before. */
enum { BACKFILL_MARGIN_MS = 5000 };

/*
 * Makes @row the next head of @plan, and returns the head.  @candidates are at least as many GPUs
 * as @row needs.  @row would fit on them had all leases ended, and none of them is reserved.  The
 * head reserves the ones that are free soonest, of equal ones the lowest slots, and its part of
 * the limits.
 */
const struct plan_head *policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates);

/* Whether @row is certain to have ended before @bound_ms; 0: there is no bound. */
bool policy_ends_before(
	const struct plan *plan, const struct plan_row *row, int64_t bound_ms);

#endif
