/*
 * Lists of hosts as Slurm writes them: `n[1-3,7],login`.  Pure.
 *
 * Commas or blanks separate the items.  An item is a name, in which brackets hold numbers and
 * ranges of numbers: the leading zeros of the first number of a range count, as in n[08-10].  An
 * item with several brackets means each combination, the last bracket counting first.
 */
#ifndef GPULEASE_HOSTLIST_H
#define GPULEASE_HOSTLIST_H

#include <stdio.h>

#include "text.h"

enum {
	HOSTLIST_HOSTS_MAX = 65536, /* in a list */
	HOSTLIST_NAME_SIZE = 256,   /* of a name, with its NUL */
};

/*
 * Calls @take with each host of @list, in its order, and @context.  Returns 0 with their number in
 * *@ret_count; or -EINVAL with the reason in @why if @list is malformed, or means too many hosts or
 * too long names.  Then @take has not been called.
 */
MUST_CHECK int hostlist_expand(const char *list,
	void (*take)(const char *name, void *context), void *context, size_t *ret_count,
	struct why *why);

/*
 * Writes names as one list, with brackets for adjacent names that differ in their last number
 * alone.  An empty struct with ->out set begins a list; hostlist_fold_end() ends it.
 */
struct hostlist_fold {
	FILE *out;
	char name[HOSTLIST_NAME_SIZE];  /* the last name that was taken */
	size_t prefix;                  /* how much of it is not its last number */
	unsigned long long first, last; /* the range that is not written yet */
	int width;                      /* of ->first */
	bool has_name, has_bracket, has_item;
};

void hostlist_fold(struct hostlist_fold *fold, const char *name);
void hostlist_fold_end(struct hostlist_fold *fold);

#endif
