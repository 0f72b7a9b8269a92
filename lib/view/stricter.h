/*
 * A job may have thresholds of its own that are stricter than the machine's: `struct usage_policy`.
 *
 * Every process plans all tickets by the machine's thresholds, so plans agree, and strictness takes
 * no job's turn.  The job itself takes the GPUs that only its own thresholds refuse out of ->allow
 * of its request, in every turn, and so in its ticket.  So other tickets do not wait for it there.
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
