/*
 * What the lines of [limits] in the configuration (user_limits.h) mean for this process.
 *
 * Its groups are those that the kernel knows: the real one and the supplementary ones.  A group
 * that is lent to the set-group-ID program is none of them.  Names are looked up in /etc/passwd and
 * /etc/group.  Root is not bound.
 */
#ifndef GPULEASE_OWN_LIMITS_H
#define GPULEASE_OWN_LIMITS_H

#include "context.h"
#include "user_limits.h"

/*
 * Sets in ->config the longest time and the highest priority that this process may ask for, and
 * ->most_gpus, ->most_jobs and ->limits_line.  user-gpus and user-jobs stay, because they bind
 * other users.  Reads no file if there is no line [limits].
 */
void own_limits_apply(struct context *context);

/* Returns this process as the lines see it; the same one at each call. */
const struct limits_process *own_limits_process(void);

/*
 * Appends what has set a limit: "line 12 of /etc/gpulease.conf for group students" if @line is one
 * of [limits], else "max-time in the configuration" with the name @key.
 */
void own_limits_add_source(unsigned line, const char *key, struct text *out);

/* The same for a limit that a ticket has by @line; the lines of other users are only numbered. */
void own_limits_add_line(unsigned line, struct text *out);

#endif
