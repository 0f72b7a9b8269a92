/*
 * Removing a folder of a job, with all that is in it, in the rights of its user.  Nothing outside
 * is touched: a symbolic link is removed and never followed.  A mount stays where it is, and so
 * does a folder of another user, unless this is root.
 *
 * A crash leaves a part of the folder.
 */
#ifndef GPULEASE_REMOVE_FOLDER_H
#define GPULEASE_REMOVE_FOLDER_H

#include "base.h"

/*
 * Removes the folder @name in the folder @parent.  Folders in it that are closed are opened for
 * that.  Returns 0, or a negative errno if something is left.
 */
MUST_CHECK int remove_folder(int parent, const char *name);

#endif
