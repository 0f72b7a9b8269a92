/*
 * The last lines of a job's log, for the screen of --top.
 */
#ifndef GPULEASE_TOP_LOG_H
#define GPULEASE_TOP_LOG_H

#include "top_screen.h"

/*
 * Sets the lines of @view to the last ones of the @size bytes at @bytes, printable, without blank
 * lines at the end.  Of a line that a job has written over again, as progress bars do, the last
 * form counts.  If @is_cut, the first line begins in the middle and is left out, unless there is no
 * other.  Pure.
 */
void top_log_take(struct top_view *view, const char *bytes, size_t size, bool is_cut);

/*
 * Reads the end of the file @path, which only the rights of the user open.  Sets no lines if it
 * cannot be read, or is no file.
 */
void top_log_read(struct top_view *view, const char *path);

#endif
