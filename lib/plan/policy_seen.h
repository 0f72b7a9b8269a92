/*
 * The GPUs as a row sees them that chooses among several.  Pure.
 *
 * Every process acts on its own row, so a row may act before rows ahead of it which the same plan
 * starts.  These then choose as if it had not: otherwise one of them would take other GPUs than in
 * the plan of all processes so far, and perhaps those of a third.  So a row does not see an early
 * lease (struct plan_early) of a job behind it that began while the row waited.  Only the choice is
 * made that way: nobody gets room that a lease has.
 *
 * Likewise no early lease makes a row ahead of it one that a limit holds back: such a row would
 * hold back others, and with them rows that this plan starts.
 */
#ifndef GPULEASE_POLICY_SEEN_H
#define GPULEASE_POLICY_SEEN_H

#include "policy.h"

struct policy_seen {
	struct gpuset changed; /* GPUs with leases that the row does not see */
	struct gpuset room;    /* those of ->changed on which the row would fit */
	struct gpuset free;    /* as ->free of the plan */
	struct room
		now[GPUSET_MAX]; /* as ->now of the plan; only of GPUs that are present */
};

/* Sets @ret to what @row sees of the GPUs.  Returns false if that is what there is. */
bool policy_see(
	const struct plan *plan, const struct plan_row *row, struct policy_seen *ret);

/*
 * Returns the GPUs that @row, which needs whole ones, takes for used outside gpulease, because it
 * does not see their leases.  It reserves none of them.
 */
struct gpuset policy_strange(const struct plan *plan, const struct plan_row *row);

/* Returns what the leases that @row does not see count for the limits. */
struct quota_part policy_unseen(const struct plan *plan, const struct plan_row *row);

#endif
