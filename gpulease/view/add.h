/*
 * --add: appends a line to a jobs file.
 *
 * The file is locked meanwhile, so that two --add do not mix; a runner (--batch) reads it without
 * the lock, which is why the line is one write.  A crash leaves the file as it was or with the
 * line; on a full disk it may leave a part of the line.
 */
#ifndef GPULEASE_ADD_H
#define GPULEASE_ADD_H

#include "settings.h"

/* Adds the line to the file that @settings name.  Returns the exit status. */
int add_main(const struct settings *settings);

#endif
