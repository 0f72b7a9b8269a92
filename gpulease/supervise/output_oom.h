/*
 * Whether the output of an attempt says that GPU memory ran out, if the output goes to a file: for
 * --oom-retries and the report.  The command writes the file itself; here it is only read.
 */
#ifndef GPULEASE_OUTPUT_OOM_H
#define GPULEASE_OUTPUT_OOM_H

#include "text.h"

/* The files of stdout and stderr and their sizes when an attempt began; -1: no regular file. */
struct output_mark {
	int fds[2];
	int64_t sizes[2];
};

#define OUTPUT_MARK_NONE ((struct output_mark){ { -1, -1 }, { 0, 0 } })

/*
 * Opens the files that @out and @err are open on for reading, with the user's rights, and notes
 * their sizes; if both are one file, opens it once.  A renamed or deleted file stays the one that
 * is read.  Returns 0, or -ENOENT if neither is a regular file that the user may read.  The files
 * stay open as long as this process.
 */
MUST_CHECK int output_mark(int out, int err, struct output_mark *ret);

/* Notes the current sizes: another attempt begins. */
void output_mark_again(struct output_mark *mark);

/*
 * Whether the last 16 KiB that were written since the mark say that GPU memory ran out.  If a file
 * has become shorter than it was, all of it counts as written since.
 */
bool output_says_oom(const struct output_mark *mark);

/*
 * Whether @size bytes of text say so, in the words of PyTorch, TensorFlow, JAX, CUDA or HIP, in
 * upper or lower case.  A lack of host memory does not count.  Pure.
 */
bool text_says_oom(const char *text, size_t size);

#endif
