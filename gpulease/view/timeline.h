/*
 * --timeline: who had which GPU when, as lines of a terminal, a picture or a web page.
 */
#ifndef GPULEASE_TIMELINE_H
#define GPULEASE_TIMELINE_H

#include "machine_read.h"
#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int timeline_main(const struct settings *settings);

/* Shows what was read of one machine, as @settings ask for.  Returns as timeline_main(). */
int timeline_show(const struct settings *settings, const struct ended_jobs *ended,
	const struct machine *machine);

#endif
