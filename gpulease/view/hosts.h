/*
 * --host with --status, --queue and --history: asks the machines and prints what they say.
 */
#ifndef GPULEASE_HOSTS_H
#define GPULEASE_HOSTS_H

#include "settings.h"

/*
 * Returns the exit status: EXIT_DONE; EXIT_NOT_DONE if a host could not be asked, which the output
 * or a message says; EXIT_MISUSE after a message.
 */
int hosts_main(const struct settings *settings);

#endif
