/*
 * Finds leftover processes: those that carry the tag or the token of a job (process_lease.h) and
 * live although the job's owner has ended.  Python's subprocess module closes all descriptors above
 * 2, so such a process often does not hold the live FIFO, and nothing else shows that it lives.
 *
 * A search reads all processes of this pid namespace and of the namespaces below it.  That takes
 * 0.3 ms for 700 processes of the caller's user, and several ms for processes of other users.  So
 * only a process that is about to take the GPUs searches, once.
 */
#ifndef GPULEASE_LEFTOVER_H
#define GPULEASE_LEFTOVER_H

#include "owner.h"

/* The search for the processes of one lease. */
struct leftover_search {
	const struct owner *owner; /* of the lease; the owner itself does not count */
	bool is_found;
	struct owner found; /* the process that was started first; it has no token */
};

#define LEFTOVER_OF(owner_) ((struct leftover_search){ .owner = (owner_) })

/*
 * Searches for the processes of @count leases; the calling process does not count.  The tag of a
 * process shows its lease.  If the tag could not be set, the environment shows it, as far as it can
 * be read.  Returns 0; -ENOTSUP if /proc is missing or shows another pid namespace; or another
 * negative errno.
 */
MUST_CHECK int leftover_find(
	struct leftover_search searches[], size_t count, uint64_t my_pidns);

/*
 * Searches for the processes of the lease of @owner alone.  This is for a supervisor, which may
 * take longer: a process can remove its own tag, so the environment of each process with a higher
 * pid than the owner is read as well.  Returns LEFTOVER_FOUND and sets *@ret to the process that
 * was started first; 0 if no process is left; or a negative errno as leftover_find().
 */
enum leftover_outcome { LEFTOVER_FOUND = 1 };
MUST_CHECK int leftover_find_of(
	const struct owner *owner, uint64_t my_pidns, struct owner *ret);

/*
 * Write @process as text for a record, "PID,START,PIDNS,INODE", and read it back.  Reading returns
 * 0 or -EBADMSG.  Pure.
 */
enum { LEFTOVER_TEXT_SIZE = 80 };
void leftover_format(const struct owner *process, char out[LEFTOVER_TEXT_SIZE]);
MUST_CHECK int leftover_parse(const char *text, struct owner *ret);

#endif
