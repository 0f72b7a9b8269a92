/*
 * --cancel: removes waiting jobs from the queue and ends running ones.
 */
#include "cancel.h"
#include "verbs.h"

int verb_cancel(struct settings *settings)
{
	return cancel_jobs(settings);
}
