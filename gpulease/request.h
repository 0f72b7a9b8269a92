/*
 * From the command line to a request: what the job asks for, which GPUs of this machine it may
 * have, and whether that can ever be met.
 */
#ifndef GPULEASE_REQUEST_H
#define GPULEASE_REQUEST_H

#include "broker.h"
#include "context.h"

enum { LIMITED_SIZE = 96 };

/*
 * Fills in *@ret, all but the choice of GPUs; in @settings the need that a model has and the
 * time limit that the configuration gives.  0, or EXIT_MISUSE after an error was told.
 */
MUST_CHECK int request_make(
	struct settings *settings, const struct context *context, struct request *ret);

/*
 * Fills in the choice, by a new look at the GPUs where that is needed, which @broker takes.
 * @limited says so where CUDA_VISIBLE_DEVICES bounds it, else "".  0, or EXIT_MISUSE after it
 * was told why the request can never be met.
 */
MUST_CHECK int request_choose(const struct settings *settings,
	const struct context *context, struct broker *broker, struct request *request,
	char limited[LIMITED_SIZE]);

/*
 * The same for a step of the lease @around: the GPUs of it that the command line asks for, as
 * many as -n says, else all, to *@ret.  0, or EXIT_MISUSE after it was told what the lease has
 * not.
 */
MUST_CHECK int request_choose_step(const struct settings *settings,
	const struct snapshot *view, const struct lease *around, struct gpuset *ret);

/* The limits of the configuration, as the plan has them. */
struct plan_limits request_limits(const struct config *config);

#endif
