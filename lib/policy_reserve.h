/*
 * The head's reservation, a part of the policy.  Pure.
 *
 * What is left of those who have ended (memory that settles, processes of a dead owner) may be
 * gone at any moment or stay for hours.  So the head is given the GPUs soonest to be had twice:
 * as if it stayed, which says when it starts at the latest, and as if it went now, by which
 * backfill is bound.  Otherwise each end of a job would show a reservation elsewhere and later
 * for a moment, and let somebody past for as long.
 */
#ifndef GPULEASE_POLICY_RESERVE_H
#define GPULEASE_POLICY_RESERVE_H

#include "policy.h"

/*
 * Makes @row the head of @plan, whose first it is: takes of @candidates, where it would fit had
 * all leases ended, the GPUs soonest to be free, then the lowest slots; and its part of the
 * limits.
 */
void policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates);

#endif
