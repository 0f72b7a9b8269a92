/*
 * The operands of the verbs: the ids after --cancel, the GPUs after --pause, the file after
 * --batch.  Pure: checks how they are written, not whether such a job, GPU or file exists.
 */
#ifndef GPULEASE_VERB_OPERANDS_H
#define GPULEASE_VERB_OPERANDS_H

#include "option_parser.h"
#include "settings.h"

/*
 * Sets the operands of the verb in @settings, or what they mean: ->verb.history_count,
 * ->verb.signal, ->verb.podman, and the command after --add FILE.  Returns 0, or -EINVAL when
 * operands are missing, left over or cannot be read; @why then says what to write.
 */
MUST_CHECK int verb_operands_settle(
	struct settings *settings, const struct options_result *result, struct why *why);

#endif
