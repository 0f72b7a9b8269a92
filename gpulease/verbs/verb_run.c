/*
 * `gpulease COMMAND`: takes a ticket, waits for its turn, takes a lease and executes the command.
 */
#include "run_job.h"
#include "verbs.h"

int verb_run(struct settings *settings)
{
	return run_job(settings, NULL);
}
