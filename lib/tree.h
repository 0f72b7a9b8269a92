/*
 * The descendants of this process, as /proc shows them: with PR_SET_CHILD_SUBREAPER nothing
 * that a child has ever started gets away from here by double-forking, by a session of its own
 * or by closing all that it has open.
 *
 * A look costs as much as there are processes.  What is started meanwhile is missing: who wants
 * to end all of them looks again until nothing is left.
 */
#ifndef GPULEASE_TREE_H
#define GPULEASE_TREE_H

#include "array.h"
#include "owner.h"

struct tree_process {
	uint32_t pid, parent;
	uint64_t start;
	/* looks after a job of its own (--submit), in a session of its own; see kin.h: left out */
	bool is_apart;
	bool is_below;  /* a descendant, but for those that are left out */
	bool is_dead;   /* it has ended and is not waited for yet */
	bool is_hidden; /* a child, which /proc does not show: ->start is not known */
};

struct tree {
	struct tree_process *all; /* of the machine */
	size_t count, room;
};

#define TREE_NONE ((struct tree){ .all = NULL })

/*
 * Looks.  The @but_count processes in @but, and what is below them, are left out; a 0 among
 * them means nothing.  0 or a negative errno.
 */
MUST_CHECK int tree_read(struct tree *tree, const uint32_t but[], size_t but_count);

/* How many descendants there were that had not ended. */
size_t tree_count(const struct tree *tree);

/*
 * Sends @signal to the descendants in process group @group; 0: to all of them; negative: to
 * those in any other than -@group.  Returns how many it reached.
 */
unsigned tree_signal(const struct tree *tree, int signal, pid_t group);

void tree_release(struct tree *tree);

#endif
