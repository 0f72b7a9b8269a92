/*
 * The output of a command where it goes to a file: what its last part says.  The file is only
 * ever read here: it is the command's own stdout and stderr, nothing is copied.
 */
#ifndef GPULEASE_OUTPUT_H
#define GPULEASE_OUTPUT_H

#include "text.h"

/* Where the files of stdout and stderr stood when an attempt began; -1: that is no file. */
struct output_mark {
	int fds[2];
	int64_t sizes[2];
};

#define OUTPUT_MARK_NONE ((struct output_mark){ { -1, -1 }, { 0, 0 } })

/*
 * Opens what descriptors @out and @err are, to read, as the user, and notes their ends; one
 * file that both are is opened once.  What is open stays the same file, whatever becomes of its
 * name.  0; -ENOENT: neither is a regular file that the user may read.
 */
MUST_CHECK int output_mark(int out, int err, struct output_mark *ret);

/* Notes their ends as they are now: another attempt begins. */
void output_mark_again(struct output_mark *mark);

/*
 * Whether the last 16 KiB that were written behind the mark say that GPU memory ran out; of a
 * file that has become shorter than it was all of it is behind.
 */
bool output_says_oom(const struct output_mark *mark);

/*
 * Whether @size bytes of text say so, in words of PyTorch, TensorFlow, JAX, CUDA or HIP, in
 * either case.  Memory of the host is another matter.  Pure.
 */
bool text_says_oom(const char *text, size_t size);

void output_release(struct output_mark *mark);

#endif
