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
 * SIGCHLD is not, if it was: whoever ignores it never learns how an nvidia-smi ended.  How
 * SIGHUP and SIGPIPE are treated is remembered for the two below.
 */
void limits_raise(void);

/*
 * HUP is ignored from now on, as by a process that outlives the login; what this becomes or
 * starts gets it back as it was.  After limits_raise().
 */
void limits_ignore_hangup(void);

/*
 * So is SIGPIPE: a job is not to end, nor to be left alone, because nobody reads any more what
 * is said of it; the write fails, and its writer goes on.  After limits_raise().
 */
void limits_ignore_broken_pipe(void);

/* Undoes all of it. */
void limits_restore(void);

/* Marks this process, and all that it becomes or starts, with the tag of @token (kin.h). */
void limits_tag(const char *token);

/* Likewise process @pid, and all that it starts from now on, where that is allowed. */
void limits_tag_process(uint32_t pid, const char *token);

/* Takes the tag away that this process was started with: it is no part of that lease any more. */
void limits_untag(void);

#endif
