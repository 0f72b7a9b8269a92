/*
 * The command of a job with several tasks: gpulease-slurm, which starts them.
 */
#ifndef GPULEASE_TASK_WORDS_H
#define GPULEASE_TASK_WORDS_H

#include "settings.h"

/*
 * Replaces *@command by the command that runs it as the tasks of @settings: the path of
 * gpulease-slurm, the wishes, and the words of *@command.  It is not freed: the words are needed to
 * the end of this process.  Returns 0, or an exit status after it has printed the reason.
 */
MUST_CHECK int task_words_wrap(const struct settings *settings, char ***command);

#endif
