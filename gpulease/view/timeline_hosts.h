/*
 * --timeline --host: the timelines of several machines, one below the other.
 */
#ifndef GPULEASE_TIMELINE_HOSTS_H
#define GPULEASE_TIMELINE_HOSTS_H

#include "settings.h"

/*
 * Asks the machines from @from_ms on and shows what they say.  Returns the exit status:
 * EXIT_NOT_DONE, after a message, if a machine has not answered.
 */
int timeline_hosts(const struct settings *settings, int64_t from_ms);

#endif
