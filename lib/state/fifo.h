/*
 * The FIFOs of a ticket, live/TOKEN and bell/TOKEN: how they are made and removed.  What they
 * mean is in live_fifo.h and bell.h.
 *
 * The owner makes a FIFO under a temporary name, opens it, and then renames it to its token.  So
 * a token that has no writer belongs to a dead owner, and any process may remove it.
 *
 * A crash before the rename leaves the temporary name, which carries the identity of the process
 * that made it.  A crash after the rename leaves the token.  live_fifo_sweep() and bell_sweep()
 * remove both kinds.
 */
#ifndef GPULEASE_FIFO_H
#define GPULEASE_FIFO_H

#include <dirent.h>

#include "owner.h"

struct statedir;

/* The folders of the state directory that hold the FIFOs. */
#define FIFO_LIVE "live"
#define FIFO_BELL "bell"

/*
 * Makes the FIFO of @owner in @folder (FIFO_LIVE or FIFO_BELL).  Returns its descriptor, open for
 * reading and writing, non-blocking, or a negative errno.  On failure no file is left.
 */
MUST_CHECK int fifo_create(
	const struct statedir *dir, const char *folder, const struct owner *owner);

/* Whether @folder has the FIFO of @token.  Does not open it. */
bool fifo_is_named(const struct statedir *dir, const char *folder, const char *token);

/* Removes the FIFO of @token from @folder, if it is there. */
void fifo_remove(const struct statedir *dir, const char *folder, const char *token);

/*
 * Opens the folder @folder_fd once more, to read its names from the start.  The caller closes it
 * with closedir().  Returns NULL with errno on failure.
 */
DIR *fifo_list(int folder_fd);

struct fifo_sweep {
	uint64_t my_pidns; /* the caller's pid namespace */
	bool (*is_dead)(int folder_fd, const char *token);
	/* whether a lease has the token of an owner that is dead; NULL: no lease is known */
	bool (*is_leased)(void *leases, const char *token);
	void *leases;
};

/*
 * Removes the names in @folder_fd that crashes have left: FIFOs for which ->is_dead returns true,
 * locks of steps (step_lock.h) for whose token it returns true, names of jobs (job_name.h) for
 * whose token it returns true and ->is_leased does not, and temporary names of processes that are
 * dead.  In a folder with many names one call looks at about a thousand of them, chosen by chance.
 */
void fifo_sweep_folder(int folder_fd, const struct fifo_sweep *sweep);

#endif
