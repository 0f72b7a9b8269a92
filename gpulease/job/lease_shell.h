/*
 * --shell: gives a lease to the shell that called gpulease, as in `eval "$(gpulease -n 1
 * --shell)"`, and prints the variables that the shell is to set.  For what a crash leaves see
 * lease_heir.h.
 */
#ifndef GPULEASE_LEASE_SHELL_H
#define GPULEASE_LEASE_SHELL_H

#include "broker.h"
#include "launch.h"

/*
 * Before there is a ticket: finds the shell that will evaluate the output, or takes --pid, and
 * makes it the heir of @broker.  Returns 0, or EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int lease_shell_find(const struct run_request *request, struct broker *broker);

/*
 * Prints what the shell, which has been granted the lease, is to evaluate.  If that fails, gives
 * the lease back.  Returns 0, or EXIT_MISUSE after it has printed the reason.
 */
MUST_CHECK int lease_shell_give(const struct launch *launch, struct broker *broker);

/*
 * For a --shell that ends with @status: if that is not 0, prints a line that makes the shell's eval
 * fail with it, because an empty output would be a success.  Returns @status.
 */
MUST_CHECK int lease_shell_fail(const struct run_request *request, int status);

#endif
