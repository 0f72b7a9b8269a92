/*
 * Processes that a job has left: they carry its tag or its token (kin.h) and live although its
 * owner has ended.  Python's subprocess closes all descriptors above 2, so such a process often
 * does not hold the FIFO, and nothing else shows that it lives.
 *
 * A look goes through all processes that this pid namespace shows, also those of namespaces below
 * it: 0.3 ms for 700 processes of the caller's user, several ms for processes of other users.  So
 * only the process that is about to take the GPUs looks, once.
 */
#ifndef GPULEASE_LEFTOVER_H
#define GPULEASE_LEFTOVER_H

#include "owner.h"

/* One lease whose processes are looked for. */
struct leftover_search {
	const struct owner *owner; /* of the lease; not itself looked for */
	bool is_found;
	struct owner found; /* the one that was started first; without a token */
};

#define LEFTOVER_OF(owner_) ((struct leftover_search){ .owner = (owner_) })

/*
 * Looks for the processes of @count leases, this process excepted.  The tag of a process tells
 * of its lease; where the tag could not be set the environment does, too, as far as that can be
 * read.  0; -ENOTSUP where /proc shows another pid namespace or nothing; or another negative errno.
 */
MUST_CHECK int leftover_find(
	struct leftover_search searches[], size_t count, uint64_t my_pidns);

/*
 * The same for the lease of @owner alone, by a process that looks after it, and which may take
 * longer.  The environment of each process with a higher pid than the owner counts, too: a process
 * can take its tag away.  1: *@ret is the process that was started first; 0: none is left; or a
 * negative errno as above.
 */
MUST_CHECK int leftover_find_of(
	const struct owner *owner, uint64_t my_pidns, struct owner *ret);

/* As text for a record: "PID,START,PIDNS,INODE"; and back: 0 or -EBADMSG.  Pure. */
enum { LEFTOVER_TEXT_SIZE = 80 };
void leftover_format(const struct owner *process, char out[LEFTOVER_TEXT_SIZE]);
MUST_CHECK int leftover_parse(const char *text, struct owner *ret);

#endif
