/*
 * `gpulease-view notify`: the notifier of a job (notifier.h), which runs the command of
 * GPULEASE_NOTIFY for each event, one after the other.
 *
 * It reads lines (hook.h) from standard input.  After the end of the job, or of the input, it ends.
 * All that the command starts gets KILL once the command has run for HOOK_KILL_MS.  A crash leaves
 * the command that runs just then.
 */
#ifndef GPULEASE_HOOK_RUNNER_H
#define GPULEASE_HOOK_RUNNER_H

/*
 * @words: whether to be verbose (0, 1), the name of the job, and for tests in ms: how long a job
 * waits until it waits for long, and after how long the command is killed.  Returns the exit
 * status.
 */
int hook_main(char **words);

#endif
