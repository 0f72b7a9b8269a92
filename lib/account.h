/*
 * The account: whether every job that lives is known.
 *
 * A lease file can be damaged: a record that is neither void nor good, a file that was cut or
 * deleted.  The lease that stood there is lost, its job may run on, and its GPU must not be
 * given away.  Which leases are lost nobody can tell from the file; so the other side is
 * asked.  Every job that lives holds its FIFO in live/, and its ticket says whether it has
 * GPUs.  As long as one of those has no lease that can be read, the GPUs whose files are in
 * doubt are withheld; once there is none, nothing was lost, and the files are mended by who
 * has them locked.
 *
 * This reads a folder and the whole ticket file, so it is done only while a file is in doubt.
 * It changes nothing.
 */
#ifndef GPULEASE_ACCOUNT_H
#define GPULEASE_ACCOUNT_H

#include "statedir.h"

/* A job that lives, as far as can be told, and has GPUs that no readable lease speaks of. */
struct account_job {
	uint64_t
		ticket; /* 0: none that can be read; then of ->owner only the token is known */
	struct owner
		owner; /* ->token "": nobody in particular, live/ itself cannot be read */
};

/* Whether there is a lease of @token that can be read. */
typedef bool account_has_lease(const void *leases, const char *token);

/*
 * Looks for a job in @dir that lives and is not accounted for: its FIFO has a writer, or its
 * ticket is granted and its process lives; it has no lease by @has_lease(@leases, …); and no
 * ticket of it waits or is for 0 GPUs.  0: there is none; ACCOUNT_OPEN: *@ret is one of them;
 * or -ENOMEM.  What cannot be looked at counts as a job that lives.
 */
enum { ACCOUNT_OPEN = 1 };
MUST_CHECK int account_find(const struct statedir *dir, account_has_lease *has_lease,
	const void *leases, struct account_job *ret);

#endif
