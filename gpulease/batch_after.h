/*
 * Who comes after whom in a jobs file.  Pure but for memory.
 */
#ifndef GPULEASE_BATCH_AFTER_H
#define GPULEASE_BATCH_AFTER_H

#include "batch_list.h"

/*
 * Checks that each name in `after` and `after-ok` is one of a line, or @known (NULL: nobody), and
 * that no lines wait for each other, nor one for itself.  Numbers of jobs are not looked at.
 * Takes time as the list is long.  0; -EINVAL with the reason, and in *@ret_line the number of
 * the line; -ENOMEM.
 */
MUST_CHECK int batch_after_check(const struct batch_list *list,
	const struct batch_known *known, unsigned *ret_line, struct why *why);

#endif
