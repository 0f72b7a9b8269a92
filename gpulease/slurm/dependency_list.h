/*
 * The value of sbatch --dependency: what gpulease checks while the job waits, and what the script
 * part (script_part.h) checks before it starts the script.  Pure.
 */
#ifndef GPULEASE_DEPENDENCY_LIST_H
#define GPULEASE_DEPENDENCY_LIST_H

#include "text.h"

enum { DEPENDENCY_SIZE = 4096 };

struct dependency_list {
	char passed[DEPENDENCY_SIZE]; /* for gpulease --dependency; "": nothing */
	/* jobs that have to fail, "12,15"; ->passed has them as afterany */
	char not_ok[DEPENDENCY_SIZE];
};

/*
 * Reads `after:1,afterok:2:3,afternotok:4,singleton`.  What it does not know it leaves to gpulease,
 * which refuses it.  Returns 0, or -EINVAL with the reason in @why.
 */
MUST_CHECK int dependency_list_read(
	const char *value, struct dependency_list *ret, struct why *why);

#endif
