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
 * none of them.  @ret holds no result then.  As in a shell, a folder of $PATH that is closed to the
 * user holds no program; in a path such a folder is -EACCES, too.  The rights of a set-group-ID
 * program do not count.
 */
MUST_CHECK int find_program(const char *program, char ret[PATH_MAX]);

/*
 * Finds the program @name, a path seen from the folder of this program.  Returns 0 with its path in
 * @ret, or -ENOENT if it is not there or this user cannot execute it.
 */
MUST_CHECK int find_program_beside(const char *name, char ret[PATH_MAX]);

#endif
