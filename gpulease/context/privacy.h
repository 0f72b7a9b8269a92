/*
 * What a user may be shown of other users' processes, and how users and processes are named.
 *
 * With show-commands = own in the configuration, only root and the user of a process are shown its
 * command and the name of its job.  The names of users are always shown.
 */
#ifndef GPULEASE_PRIVACY_H
#define GPULEASE_PRIVACY_H

#include "text.h"

/* From now on, hides the commands and job names of other users from this user, except root. */
void privacy_hide_others(void);

/* Whether this user may be shown what user @uid runs. */
bool may_show_commands_of(uint32_t uid);

/* Whether this user may be shown the command of process @pid; false if its user is not visible. */
bool may_show_process(uint32_t pid);

/*
 * Appends the user and the name of process @pid, "alice, python", without the name if it may not
 * be shown; "not visible here" if there is no such process in this pid namespace.
 */
void describe_process(uint32_t pid, struct text *out);

/*
 * Appends the user's name: @recorded, unless that is NULL or "", else the name of @uid, else the
 * number.
 */
void describe_user(uint32_t uid, const char *recorded, struct text *out);

#endif
