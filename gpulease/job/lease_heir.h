/*
 * The heir: a process that runs already and becomes the owner of a lease, for --shell and
 * --lease-only --pid.  It owns the lease but not the ticket, which is void once gpulease ends.  Its
 * tag, set here, marks what it starts from then on.  Its watchdog, which every such lease has,
 * holds the live FIFO in its place.
 *
 * A gpulease that is killed before the lease is written leaves a void ticket.  Killed later, it
 * leaves the lease, until the heir ends or the lease is cancelled.  If it had no watchdog yet, or
 * the watchdog is killed, processes in other pid namespaces do not see that the heir lives
 * (liveness_judge_unseen()).
 */
#ifndef GPULEASE_LEASE_HEIR_H
#define GPULEASE_LEASE_HEIR_H

#include "launch.h"

/*
 * Fills in *@ret with the process @pid and a new token.  The process has to be alive, in this pid
 * namespace, and this user's own; root may name any user's if @root_may.  Returns 0, or EXIT_MISUSE
 * after it has printed the reason.
 */
MUST_CHECK int lease_heir_find(uint32_t pid, bool root_may, struct owner *ret);

/*
 * Sets the tag of the heir, which owns the lease of @launch, and starts the watchdog, which gets
 * the FIFO ->live_fd; @is_shell as for launch_watchdog().  Returns 0, or EXIT_MISUSE after it has
 * printed the reason.
 */
MUST_CHECK int lease_heir_look_after(const struct launch *launch, bool is_shell);

#endif
