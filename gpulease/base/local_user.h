/*
 * Users by /etc/passwd, without a name service: a service that hangs would stop the queue.
 */
#ifndef GPULEASE_LOCAL_USER_H
#define GPULEASE_LOCAL_USER_H

#include <sys/types.h>

#include "base.h"

/* Writes the name of user @uid to the @size bytes at @out; "" if /etc/passwd has none. */
void local_user_name(uid_t uid, char *out, size_t size);

/*
 * Finds the number of user @name, which may be a number itself.  Returns whether it is known;
 * sets *@ret only then.
 */
bool local_user_number(const char *name, uint32_t *ret);

/*
 * Returns the home of the user: $HOME if that is an absolute path, else what the system's list of
 * users has; this one asks a name service.  So all jobs of a user meet in one directory, however
 * they are started.  Returns NULL if none is known.
 */
const char *local_user_home(void);

#endif
