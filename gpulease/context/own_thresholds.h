/*
 * The thresholds of one job: --margin, --spike-buffer, --idle-threshold, --tolerance.  They may be
 * stricter than those of the configuration, never laxer, because the other jobs on the machine rely
 * on the configuration.  Pure.
 */
#ifndef GPULEASE_OWN_THRESHOLDS_H
#define GPULEASE_OWN_THRESHOLDS_H

#include "config.h"
#include "settings.h"

/*
 * Writes the given values of @request over those of *@config.  Returns 0, or -EINVAL with the
 * message in @why: a value is malformed or laxer.
 */
MUST_CHECK int own_thresholds_apply(
	const struct run_request *request, struct config *config, struct why *why);

#endif
