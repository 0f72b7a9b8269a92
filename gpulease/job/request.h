/*
 * From the command line to the request in the ticket: how many GPUs, how much memory, which limits,
 * which name.  Which GPUs it may have is the work of selection.h.
 */
#ifndef GPULEASE_REQUEST_H
#define GPULEASE_REQUEST_H

#include "broker.h"
#include "context.h"

/*
 * Fills in *@ret, all but the choice of GPUs.  Also fills in, in @settings, the need of the model
 * that the command names (model_need.h) and the time limit of the configuration.  Returns 0, or
 * EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int request_make(
	struct settings *settings, const struct context *context, struct request *ret);

/* Writes what has set @key: the key in the configuration, or a line of [limits]. */
enum { SOURCE_SIZE = 256 };
void limit_source(
	const struct config *config, enum config_key key, char out[SOURCE_SIZE]);

/*
 * Refuses a priority above max-priority, unless the user is root or has the queue alone.  Returns
 * 0, or EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int request_check_priority(int64_t priority, const struct context *context);

/* Returns the limits of the configuration in the form that the plan uses. */
struct plan_limits request_limits(const struct config *config);

#endif
