/*
 * Writes a file that other programs read at any time, such as a web server: they see the old text
 * or the new one, never a part.
 */
#ifndef GPULEASE_REPLACE_FILE_H
#define GPULEASE_REPLACE_FILE_H

#include <sys/types.h>

#include "text.h"

/* The mode of a new file that creat(2) would make: 0666 without the bits of the umask. */
enum { MODE_BY_UMASK = -1 };

/*
 * Writes the @size bytes at @text to @path, with mode @mode.  `-` is stdout.  A regular file is
 * replaced by a temporary file beside it and rename(2), through symbolic links; anything else, such
 * as a FIFO, is written to.  Returns 0, or a negative errno with the message in @why.  A crash
 * leaves `FILE.XXXXXX` with six random letters.
 */
MUST_CHECK int replace_file(
	const char *path, const char *text, size_t size, int mode, struct why *why);

#endif
