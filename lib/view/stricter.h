/*
 * A job may have thresholds of its own that are stricter than the machine's: `struct usage_policy`.
 *
 * Every process plans all tickets by the machine's thresholds, so all plans agree, and a strict job
 * does not overtake other jobs.  In every turn, the job itself removes the GPUs that only its own
 * thresholds refuse from ->allow of its request, and so of its ticket.  So other tickets do not
 * wait for it there.
 */
#ifndef GPULEASE_STRICTER_H
#define GPULEASE_STRICTER_H

#include "snapshot.h"

/*
 * Judges the GPUs as snapshot_judge() does.  Sets *@ret_refused to those of ->allow on which the
 * job of @request could start now by the machine's thresholds, ->usage of @view, but not by @own.
 * Each of them has a ->culprit if a process is known to be the reason.  Returns 0 or a negative
 * errno.
 */
MUST_CHECK int stricter_judge(struct snapshot *view, const struct usage_policy *own,
	const struct request *request, int64_t now_ms, struct gpuset *ret_refused);

#endif
