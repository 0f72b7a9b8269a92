/*
 * Leases without a command: --lease-only, --lease-only --pid PID, --shell.
 *
 * The first is held by gpulease itself, as any job holds its own.  The others go to a process
 * that is there already and holds no FIFO of theirs: it is the owner of the lease, not of the
 * ticket, which is void once gpulease ends.  Killed before the lease is written gpulease leaves
 * a void ticket; killed behind that, the lease stands until that process ends or somebody
 * cancels it.
 *
 * Each of them returns the exit status, after an error was told.
 */
#ifndef GPULEASE_LEASE_ONLY_H
#define GPULEASE_LEASE_ONLY_H

#include "broker.h"
#include "launch.h"

/* Whether the command line makes sense for a lease without a command: 0, or EXIT_MISUSE. */
MUST_CHECK int lease_check(const struct settings *settings);

/*
 * Prints the GPUs and holds the lease that @broker has been granted until INT, TERM or HUP, 0;
 * until it is cancelled, 128 + SIGTERM; or until the time limit, EXIT_GAVE_UP.
 */
MUST_CHECK int lease_hold(const struct launch *launch, struct broker *broker);

/*
 * For --shell, before it takes a ticket: finds the shell that is to evaluate what is printed
 * and makes it the heir of @broker.  0, or EXIT_MISUSE.
 */
MUST_CHECK int lease_find_shell(const struct settings *settings, struct broker *broker);

/* Prints what the shell, which has been granted the lease, is to evaluate. */
MUST_CHECK int lease_to_shell(const struct launch *launch, struct broker *broker);

/*
 * Where --shell has failed with @status, not 0, prints what makes the shell's eval fail with
 * it; nothing would be a success.  Returns @status.
 */
MUST_CHECK int lease_fail_shell(const struct settings *settings, int status);

/*
 * Gives the process ->adopt_pid a lease on the GPUs that it uses, at once or not at all, and
 * prints the id of the job.
 */
MUST_CHECK int lease_adopt(const struct context *context, struct broker *broker,
	const struct request *request);

/*
 * What --shell and --pid have in common.  Fills in *@ret with process @pid, which has to be a
 * live one of this user's (root: anybody's, where @root_may) in this pid namespace, and a token:
 * 0, or EXIT_MISUSE.
 */
MUST_CHECK int lease_name_heir(uint32_t pid, bool root_may, struct owner *ret);

/* Marks the heir as the owner of its lease, and starts the watchdog where one is wanted. */
MUST_CHECK int lease_look_after(const struct launch *launch, bool is_shell);

#endif
