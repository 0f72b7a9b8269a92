/*
 * --screen: runs a job in a session of tmux or screen, with a terminal of its own.
 *
 *	gpulease --screen …         makes a folder with the job's arguments, environment and
 *	                            directory, and a FIFO; has tmux or screen begin a session
 *	gpulease --enter-session …  inside the session: executes gpulease with these
 *	                            arguments; its stderr is the FIFO until it has its ticket
 *
 * Through the FIFO the first process prints what goes wrong before that.  Once it reads the job's
 * id, it names the session by the id, removes the folder, prints the id, and ends.
 *
 * All of this is done with the user's rights alone, outside of any lease that --screen was called
 * in.  A crash leaves the folder gpulease-XXXXXX in $XDG_RUNTIME_DIR or $TMPDIR, and a session
 * without the job's id in its name.
 */
#ifndef GPULEASE_SESSION_H
#define GPULEASE_SESSION_H

#include "context.h"

/*
 * Notes the current directory, from which the session is to begin.  Call it before -D changes the
 * directory: the gpulease inside the session obeys -D once more.
 */
void session_prepare(void);

/*
 * Begins the session of a job and prints the job's id.  Closes the state directory.  Returns the
 * exit status, after it has printed the reason.
 */
MUST_CHECK int session_begin(struct context *context);

/*
 * In the job inside the session, which has its ticket: sends the id through stderr, which is the
 * FIFO, and makes stderr the terminal.
 */
void session_announce(uint64_t job);

/* Whether this process was started by session_begin(). */
bool is_in_session(void);

#endif
