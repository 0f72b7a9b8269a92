/*
 * The resource limits and dispositions that gpulease changes for itself and gives back before
 * it becomes the command.
 */
#ifndef GPULEASE_LIMITS_H
#define GPULEASE_LIMITS_H

#include "base.h"

/*
 * Raises the soft limit of descriptors, and that of file sizes or rounds it down to a multiple
 * of 512: a record is then appended whole or not at all.  SIGXFSZ is ignored meanwhile.
 * SIGCHLD is not, if it was: whoever ignores it never learns how an nvidia-smi ended.
 */
void limits_raise(void);

/* Undoes it. */
void limits_restore(void);

/* Marks this process, and all that it becomes or starts, with the tag of @token (kin.h). */
void limits_tag(const char *token);

#endif
