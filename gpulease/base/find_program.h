/*
 * Finds the file of a program, as execvp(3) does.
 */
#ifndef GPULEASE_FIND_PROGRAM_H
#define GPULEASE_FIND_PROGRAM_H

#include <limits.h>

#include "base.h"

/*
 * Searches $PATH for @program; a name with a slash is a path.  Returns 0 with the path of the file
 * in @ret; -ENOENT when there is none; or -EACCES when files were found, but this user may execute
 * none of them.  @ret holds no result then.  The rights of a set-group-ID program do not count.
 */
MUST_CHECK int find_program(const char *program, char ret[PATH_MAX]);

#endif
