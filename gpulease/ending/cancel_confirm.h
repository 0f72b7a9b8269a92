/*
 * The question of --cancel before it ends several jobs that the user has not named by their ids.
 */
#ifndef GPULEASE_CANCEL_CONFIRM_H
#define GPULEASE_CANCEL_CONFIRM_H

#include "text.h"

/*
 * Asks on the terminal whether to cancel @count jobs; @jobs are their ids and names.  Returns
 * whether to go on: also true if there is nobody to ask, because stdin or stderr is no terminal.
 * Nothing has happened yet while this process waits for the answer, so Ctrl-C cancels nothing.
 */
MUST_CHECK bool cancel_confirm(size_t count, const struct text *jobs);

#endif
