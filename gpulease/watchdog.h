/*
 * The watchdog of a time limit: a process of its own, so that the job need not have a parent.
 * It ends the job at its limit and itself with the job.
 */
#ifndef GPULEASE_WATCHDOG_H
#define GPULEASE_WATCHDOG_H

#include "statedir.h"

struct watchdog_order {
	const struct statedir *dir;
	struct owner owner; /* this process, which will be the command */
	bool is_step;       /* of a lease that is not its own */
	int64_t limit_ms, grace_ms;
};

/*
 * Starts it, forked twice: the command never sees it as a child.  0 or a negative errno; no
 * watchdog runs then.
 */
MUST_CHECK int watchdog_start(const struct watchdog_order *order);

#endif
