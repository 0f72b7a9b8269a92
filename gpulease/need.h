/*
 * What a job needs where its model says so: the table of models, in the configuration or in
 * the file of --models, and the name behind --llm in the command.
 */
#ifndef GPULEASE_NEED_H
#define GPULEASE_NEED_H

#include "context.h"

/*
 * Sets ->gpus, ->share_percent and ->vram_mib by the model that the command names.  They stay
 * as they are where it names none, where the table has neither it nor a default, and where the
 * command line says what is needed.  A file of --models is read in any case, with the user's
 * rights, so that an error in it is told.
 *
 * 0, or a negative errno with the reason in @why.  To be called once, before the request is
 * made, and not for a step.
 */
MUST_CHECK int need_from_model(
	struct settings *settings, const struct context *context, struct why *why);

/*
 * Whether need_from_model() will be able to read the file of --models, if there is one, once it
 * is in the folder of -D: 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int need_check(const struct settings *settings, struct why *why);

#endif
