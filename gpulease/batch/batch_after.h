/*
 * Checks the order that `after` and `after-ok` ask for in a jobs file.  Pure but for memory.
 */
#ifndef GPULEASE_BATCH_AFTER_H
#define GPULEASE_BATCH_AFTER_H

#include "batch_list.h"

/*
 * Checks that each name in `after` and `after-ok` is the name of a line or one that @known (NULL:
 * none) knows, and that there are no cycles.  Numbers of jobs are not checked.  Takes time
 * proportional to the list.  Returns 0; -EINVAL with the reason in @why and the number of the line
 * in *@ret_line; or -ENOMEM.
 */
MUST_CHECK int batch_after_check(const struct batch_list *list,
	const struct batch_known *known, unsigned *ret_line, struct why *why);

#endif
