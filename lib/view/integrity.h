/*
 * Finds out whether every live job is known, so that damage to a lease file gives no GPU away.
 *
 * A lease file can be damaged: a record that is neither void nor good, a file that was cut or
 * deleted.  The lease in that place is lost, but its job may run on, and its GPU must not be given
 * away.  The file cannot show which leases are lost, so this module asks the jobs.  Every live job
 * holds its FIFO in live/, and its ticket says whether it has GPUs.  A live job with GPUs but
 * without a readable lease is an unknown job.  While there is one, the GPUs with files in doubt are
 * withheld.  Once there is none, no lease was lost, and the process that has locked the files
 * mends them.
 *
 * The search reads a folder and the whole ticket file, so it is done only while a file is in
 * doubt.  It changes nothing.
 */
#ifndef GPULEASE_INTEGRITY_H
#define GPULEASE_INTEGRITY_H

#include "statedir.h"

/* An unknown job: as far as can be seen it lives and has GPUs, but no readable lease. */
struct integrity_job {
	/* 0: no readable ticket; then only the token of ->owner is set */
	uint64_t ticket;
	/* ->token "": no particular job, live/ itself cannot be read */
	struct owner owner;
};

/* Returns whether there is a readable lease of @token in @leases. */
typedef bool integrity_has_lease(const void *leases, const char *token);

enum integrity_outcome { INTEGRITY_UNKNOWN_JOB = 1 };

/*
 * Looks for an unknown job in @dir.  It lives: its FIFO has a writer, or its ticket is granted and
 * its process lives.  It has no lease by @has_lease(@leases, …).  And it has no ticket that waits
 * or asks for 0 GPUs.  Returns 0 if there is none; INTEGRITY_UNKNOWN_JOB with one of them in *@ret;
 * or -ENOMEM.  Whatever cannot be read counts as a live job.
 */
MUST_CHECK int integrity_find(const struct statedir *dir, integrity_has_lease *has_lease,
	const void *leases, struct integrity_job *ret);

#endif
