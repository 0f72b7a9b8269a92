/*
 * --batch: a list of commands that runs itself.
 */
#include "batch_runner.h"
#include "verbs.h"

int verb_batch(struct settings *settings)
{
	static struct batch_runner runner; /* too big for the stack */
	int r = batch_runner_open(&runner, settings);

	return r != 0 ? r : batch_runner_run(&runner);
}
