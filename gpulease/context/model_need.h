/*
 * What a job needs, by the model in its command: `--llm NAME` in the command, and the table of
 * models in the configuration or in the file of --models.
 */
#ifndef GPULEASE_MODEL_NEED_H
#define GPULEASE_MODEL_NEED_H

#include "context.h"

/*
 * Sets ->gpus, ->share_percent and ->vram_mib of @request by the model that the command of
 * @environment names.  Changes nothing if the command names none, if the table has neither the
 * model nor a default, or if the command line says what is needed.  Reads a file of --models in any
 * case, with the user's rights, so that an error in it is reported.
 *
 * Returns 0, or a negative errno with the message in @why.  The caller calls it once, before it
 * makes the request, and not for a step.
 */
MUST_CHECK int model_need_apply(struct run_request *request,
	const struct run_environment *environment, const struct context *context,
	struct why *why);

/*
 * Checks the file @models of --models (NULL: none) as model_need_apply() will read it once the job
 * is in @folder, the value of -D (NULL: the current one).  Returns 0, or a negative errno with the
 * message in @why.
 */
MUST_CHECK int model_need_check(const char *models, const char *folder, struct why *why);

#endif
