/*
 * The socket between a job in a session and the gpulease that shows it there (session.h).
 *
 * Its address is an abstract name with a random token, so no crash leaves a file.  Any user may
 * connect to such a name, so both sides accept only a process of their own user.
 */
#ifndef GPULEASE_SESSION_SOCKET_H
#define GPULEASE_SESSION_SOCKET_H

#include "base.h"

/* Descriptors are passed in this order; the second one may be missing. */
enum session_fd { SESSION_TERMINAL, SESSION_LOG, SESSION_FDS };

/* Opens the socket of @token.  Returns a descriptor or a negative errno. */
MUST_CHECK int session_socket_listen(const char *token);

/* Waits until a process of this user connects.  Returns a descriptor, or a negative errno. */
MUST_CHECK int session_socket_accept(int fd, int timeout_ms);

/* Connects to the socket of @token.  Returns a descriptor or a negative errno. */
MUST_CHECK int session_socket_connect(const char *token);

/* Sends copies of @fds; -1: none.  Returns 0 or a negative errno. */
MUST_CHECK int session_socket_send(int fd, const int fds[SESSION_FDS]);

/*
 * Waits for the descriptors of session_socket_send(), which the caller closes; -1: none.  Returns 0
 * or a negative errno (-ENODATA: the other side has ended).
 */
MUST_CHECK int session_socket_receive(int fd, int ret[SESSION_FDS]);

#endif
