/*
 * The descendants of this process, as /proc shows them.  In a process with PR_SET_CHILD_SUBREAPER
 * they include every process that a child has ever started: neither a double fork, nor a session of
 * its own, nor closing all descriptors removes a process from the tree.
 *
 * Reading takes time in proportion to all processes of the machine.  A process that starts
 * meanwhile is missing, so a caller that ends all descendants reads again until none is left.
 */
#ifndef GPULEASE_TREE_H
#define GPULEASE_TREE_H

#include "array.h"
#include "owner.h"

struct tree_process {
	uint32_t pid, parent;
	uint64_t start;
	/* apart from the job, as process_lease.h says; not in the tree */
	bool is_apart;
	bool is_below;  /* in the tree: a descendant, and not below an excluded process */
	bool is_dead;   /* a zombie */
	bool is_hidden; /* a child that /proc does not show; ->start is unknown */
};

struct tree {
	struct tree_process *all; /* every visible process of the machine */
	size_t count, room;
};

#define TREE_NONE ((struct tree){ .all = NULL })

/*
 * Reads the tree.  The @excluded_count processes in @excluded are left out, with their descendants;
 * a pid of 0 excludes nothing.  Returns 0 or a negative errno.
 */
MUST_CHECK int tree_read(
	struct tree *tree, const uint32_t excluded[], size_t excluded_count);

/* Returns the number of live processes in the tree. */
size_t tree_count(const struct tree *tree);

/*
 * Sends @signal to the live processes of the tree: to all if @group is 0; to those in the process
 * group @group; or, if @group is negative, to those outside the process group -@group.  Returns the
 * number of processes that got it.
 */
unsigned tree_signal(const struct tree *tree, int signal, pid_t group);

void tree_release(struct tree *tree);

#endif
