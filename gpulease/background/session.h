/*
 * --screen: a job in the background (background.h) that has a terminal, which a session of tmux or
 * screen shows.
 *
 *	gpulease --screen …         the job: has tmux or screen begin a session; once it has
 *	                            its ticket, opens a pseudoterminal and passes it on
 *	gpulease --enter-session …  the relay, in the session: passes on what the user types
 *	                            to the job, and its output to the session and the log
 *
 * A socket connects them (session_socket.h).  The session ends with the process of the job, which
 * closes the socket.  If the session ends first, the terminal hangs up, as any terminal does.
 *
 * tmux and screen are started with the user's rights alone, outside of any lease that gpulease was
 * called in.  A crash leaves nothing: the relay ends with the socket.
 */
#ifndef GPULEASE_SESSION_H
#define GPULEASE_SESSION_H

#include "context.h"

/* Checks that tmux or screen is there.  Returns 0, or -ENOENT with the remedy in @why. */
MUST_CHECK int session_check(struct why *why);

/*
 * In the job, before it has a ticket: begins a session with a random name.  From now on the job
 * obeys the signals of a terminal.  Returns 0, or an exit status after it has printed the reason.
 */
MUST_CHECK int session_begin(void);

/*
 * In the job, which has the ticket of @job: opens its terminal, which the session shows from now
 * on, and names the session gpulease-ID-@name.  What the terminal shows is appended to the file
 * @log; -1: none.  Returns the terminal, which stays open, or a negative errno after it has printed
 * the reason.
 */
MUST_CHECK int session_enter(
	const struct context *context, uint64_t job, const char *name, int log);

/*
 * Waits, for 2 s at most, until all that was written to the terminal is in the log.  Returns false
 * if the log could not be written, now or before.  Does nothing in a job without a session.
 */
bool session_flush(void);

#endif
