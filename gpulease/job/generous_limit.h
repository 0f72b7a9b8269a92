/*
 * A job with a time limit that is far above what such jobs need: it could start sooner in a gap
 * before a reservation.
 */
#ifndef GPULEASE_GENEROUS_LIMIT_H
#define GPULEASE_GENEROUS_LIMIT_H

#include "ticket.h"

/*
 * Prints a line if the limit of @ticket is at least twice what nine of ten such jobs have needed.
 */
void generous_limit_note(int dirfd, const struct ticket *ticket);

#endif
