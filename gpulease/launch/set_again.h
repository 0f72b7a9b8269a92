/*
 * The variables of a lease, set again by the shell that runs a set-up or the files of a login shell
 * before the command.  Such files often set CUDA_VISIBLE_DEVICES for everything that their user
 * runs.  The command would then use GPUs of other jobs.
 *
 * gpulease gives the shell the variables in one more, GPULEASE_AGAIN.  The shell removes it before
 * the set-up begins.  Whatever files the shell has read by then, the values are those of the lease.
 */
#ifndef GPULEASE_SET_AGAIN_H
#define GPULEASE_SET_AGAIN_H

#include "text.h"

enum set_again_flags {
	SET_AGAIN_QUIET = 1u << 0,    /* the shell says nothing */
	SET_AGAIN_ONLY_SET = 1u << 1, /* what the job does not have is left as it is */
};

/*
 * Makes *@ret: @environment, as the command is to have it, with GPULEASE_AGAIN for the shell.  The
 * variables of the lease that @environment lacks are removed again, too.  If the job has no GPU and
 * the set-up has taken a lease of its own with --shell, nothing is set again.
 *
 * @environment has to stay as it is.  Returns 0, or -ENOMEM.  *@ret is freed with free().
 */
MUST_CHECK int set_again_add(char *const environment[], unsigned flags, char ***ret);

/* How much room the lines of the shell take at most, all three together. */
enum { SET_AGAIN_SIZE = 1536 };

/* Appends the lines for the shell before the set-up. */
void set_again_begin(struct text *out);

/*
 * Appends the line that sets the variables again.  It says in one line on stderr what @after, as in
 * "--setup", had set.  A variable that is read-only ends the shell.
 */
void set_again_check(const char *after, struct text *out);

/* Appends the line that removes what the other lines have left in the shell. */
void set_again_end(struct text *out);

#endif
