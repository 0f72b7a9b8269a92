/*
 * The command that runs the command: gpulease-slurm, which starts its tasks, or is the parent of an
 * exclusive step.
 */
#ifndef GPULEASE_TASK_WORDS_H
#define GPULEASE_TASK_WORDS_H

#include "settings.h"
#include "step_lock.h"

/*
 * Replaces *@command by the command that runs it as the tasks of @settings: the path of
 * gpulease-slurm, the wishes, and the words of *@command.  It is not freed: the words are needed to
 * the end of this process.  Returns 0, or an exit status after it has printed the reason.
 */
MUST_CHECK int task_words_wrap(const struct settings *settings, char ***command);

/*
 * Makes gpulease-slurm the parent of an exclusive step: it inherits the descriptors of @lock, and
 * executes *@program with the words *@command.  Replaces both.  Returns as task_words_wrap(); the
 * old *@command is needed to the end of this process, too.
 */
MUST_CHECK int task_words_add_parent(
	const struct step_lock *lock, const char **program, char ***command);

#endif
