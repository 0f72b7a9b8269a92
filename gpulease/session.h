/*
 * --screen: a job in a session of tmux or screen, with a terminal of its own.
 *
 *	gpulease --screen …         makes a folder with the job's arguments, environment and
 *	                            directory, and a FIFO, and has a session begun
 *	gpulease --enter-session …  in there: becomes the same gpulease again, whose stderr is
 *	                            the FIFO until it has its ticket
 *
 * So what goes wrong before is told where it was asked for; who asked names the session by the
 * job's id, removes the folder, and is done.  Everything is done with the user's rights alone,
 * and outside of any lease that it was asked for in.
 * A crash leaves the folder in $XDG_RUNTIME_DIR or $TMPDIR, and a session without the id.
 */
#ifndef GPULEASE_SESSION_H
#define GPULEASE_SESSION_H

#include "context.h"

/* Before -D is obeyed, as it will be once more in the session: remembers where we are. */
void session_prepare(void);

/* Begins the session of a job and prints its id.  Closes the state directory.  The exit status. */
MUST_CHECK int session_begin(struct context *context);

/* In the job that runs in one: it has its ticket.  From here on stderr is the terminal. */
void session_announce(uint64_t job);

/* Whether this process was started by session_begin(). */
bool in_session(void);

/* So that what the job starts is not taken for one. */
#define SESSION_VARIABLE "GPULEASE_SESSION"

#endif
