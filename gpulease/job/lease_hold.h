/*
 * --lease-only: a lease without a command, which gpulease itself holds until it is interrupted.
 * The lease has a FIFO like that of any job; if gpulease is killed, the lease is over.
 *
 * Its relatives give the lease to a process that runs already: --shell (lease_shell.h) and
 * --lease-only --pid (lease_adopt.h).
 */
#ifndef GPULEASE_LEASE_HOLD_H
#define GPULEASE_LEASE_HOLD_H

#include "broker.h"
#include "launch.h"

/*
 * Checks that the other options fit a lease without a command, held, --shell or --pid.  Returns 0,
 * or EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int lease_hold_check(const struct settings *settings);

/*
 * Prints the GPUs, holds the lease that @broker has been granted, and records its end.  Returns 0
 * after INT, TERM or HUP; 128 + SIGTERM if it was cancelled; EXIT_GAVE_UP at the time limit;
 * EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int lease_hold(const struct launch *launch, struct broker *broker);

#endif
