/*
 * The question of --cancel before it ends several jobs that the user has not named by their ids.
 */
#ifndef GPULEASE_CANCEL_CONFIRM_H
#define GPULEASE_CANCEL_CONFIRM_H

#include "text.h"

/*
 * Asks on the terminal whether to cancel @count jobs; @jobs are their ids and names.  Returns
 * whether to continue.  If stdin or stderr is no terminal, asks nothing and returns true.  While
 * this process waits for the answer, no job has been cancelled yet, so Ctrl-C cancels nothing.
 */
MUST_CHECK bool cancel_confirm(size_t count, const struct text *jobs);

#endif
