/*
 * The reservations, a part of the policy.  Pure.
 *
 * Memory and processes of a lease whose owner has ended may be gone at any moment or stay for
 * hours.  So a head reserves twice the GPUs that are free soonest.  If these stay, that says when
 * the head starts at the latest.  If they go now, that is the bound of backfill.  Otherwise each
 * end of a job would move a reservation elsewhere for a moment, and a ticket would pass meanwhile.
 */
#ifndef GPULEASE_POLICY_RESERVE_H
#define GPULEASE_POLICY_RESERVE_H

#include "policy.h"

/*
 * Makes @row the next head of @plan, and returns the head.  @candidates are at least as many GPUs
 * as it needs, on which it would fit had all leases ended, and none of which is reserved.  The
 * head reserves those that are free soonest, then the lowest slots, and its part of the limits.
 */
const struct plan_head *policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates);

/* Whether @row is certain to have ended before @bound_ms; 0: there is no bound. */
bool policy_ends_before(
	const struct plan *plan, const struct plan_row *row, int64_t bound_ms);

#endif
