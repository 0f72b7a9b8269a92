/*
 * --batch: runs the lines of a jobs file as jobs.
 */
#include "batch_open.h"
#include "verbs.h"

int verb_batch(struct settings *settings)
{
	static struct batch_runner runner; /* too big for the stack */
	int r = batch_open(&runner, settings);

	return r != 0 ? r : batch_runner_run(&runner);
}
