/*
 * Which engine runs the jobs: gpulease on this machine, or gpulease-engine on a Slurm cluster.
 * Slurm is never guessed: --engine decides, else GPULEASE_ENGINE, else the key `engine` of the
 * configuration.  The variable and the key do not count inside a job of Slurm, because GPUs there
 * are those of the allocation, nor with simulated GPUs.
 *
 * gpulease becomes gpulease-engine as soon as it has read the setting.  gpulease-engine reads the
 * whole command line again, since options that one machine refuses are right on a cluster.
 */
#ifndef GPULEASE_ENGINE_CHOICE_H
#define GPULEASE_ENGINE_CHOICE_H

#include "config.h"
#include "settings.h"

#define ENGINE_PROGRAM "gpulease-engine"

/*
 * Returns the engine; ENGINE_AS_CONFIGURED if neither the option nor the variable decides and
 * @config is NULL.  A GPULEASE_ENGINE with another value counts as slurm here, and gpulease-engine
 * refuses it.
 */
enum engine engine_choose(
	const struct machine_settings *machine, const struct config *config);

/*
 * Becomes gpulease-engine if engine_choose() says Slurm.  Returns 0 if it does not say so, or
 * -ENOENT with the message in @why: gpulease-engine cannot be executed.
 */
MUST_CHECK int engine_become(const struct machine_settings *machine,
	const struct config *config, struct why *why);

/*
 * The same for a command line that gpulease cannot read.  gpulease-engine finds out whether the
 * word --engine is an option there or a part of the command, and else prints the error.
 */
void engine_try_line(void);

#endif
