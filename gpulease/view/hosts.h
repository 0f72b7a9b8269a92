/*
 * --host
 */
#ifndef GPULEASE_HOSTS_H
#define GPULEASE_HOSTS_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int hosts_main(const struct settings *settings);

#endif
