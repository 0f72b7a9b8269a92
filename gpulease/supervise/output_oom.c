#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "fdio.h"
#include "output_oom.h"
#include "userfile.h"

enum { LAST_BYTES = 16 * 1024 };

/* --- the text ---------------------------------------------------------------------- */

/*
 * A line says that GPU memory ran out if it has ->words, ->also (unless NULL), and not ->unless
 * (unless NULL).
 */
static const struct phrase {
	const char *words, *also, *unless;
} phrases[] = {
	{ "out of memory", "cuda",
		NULL }, /* CUDA's own text, which many programs print */
	{ "cuda_error_out_of_memory", NULL, NULL },
	{ "cudaErrorMemoryAllocation", NULL, NULL },
	{ "CUBLAS_STATUS_ALLOC_FAILED", NULL, NULL },
	{ "CUDNN_STATUS_ALLOC_FAILED", NULL, NULL },
	{ "cuda.OutOfMemoryError", NULL, NULL },
	{ "torch.OutOfMemoryError", NULL, NULL },
	{ "HIP out of memory", NULL, NULL },
	{ "hipErrorOutOfMemory", NULL, NULL },
	/* TensorFlow and JAX use these words for host memory as well, with the device */
	{ "ResourceExhaustedError", NULL, "device:CPU" },
	{ "OOM when allocating tensor", NULL, "device:CPU" },
	{ "RESOURCE_EXHAUSTED: Out of memory", NULL, "device:CPU" },
	{ "RESOURCE_EXHAUSTED: Failed to allocate", NULL, "device:CPU" },
};

/* Whether the @size bytes at @line contain @words, in upper or lower case. */
static bool line_has(const char *line, size_t size, const char *words)
{
	size_t length = strlen(words);

	for (; size >= length; line++, size--)
		if (strncasecmp(line, words, length) == 0)
			return true;
	return false;
}

static bool line_says_oom(const char *line, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++) {
		const struct phrase *phrase = &phrases[i];

		if (line_has(line, size, phrase->words) &&
			(!phrase->also || line_has(line, size, phrase->also)) &&
			!(phrase->unless && line_has(line, size, phrase->unless)))
			return true;
	}
	return false;
}

bool text_says_oom(const char *text, size_t size)
{
	while (size) {
		size_t length = 0;

		/* a progress bar ends its lines with \r instead of \n */
		while (length < size && text[length] != '\n' && text[length] != '\r')
			length++;
		if (line_says_oom(text, length))
			return true;
		text += length;
		size -= length;
		if (size) { /* the \n or \r */
			text++;
			size--;
		}
	}
	return false;
}

/* --- the files --------------------------------------------------------------------- */

/*
 * Opens the file of @fd anew for reading.  Returns -1 if it is no regular file or may not be read.
 */
static int reopen_to_read(int fd)
{
	char path[32];
	struct stat st;
	int again;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = userfile_open(path, O_RDONLY, 0);
	return again < 0 ? -1 : again;
}

static bool fds_are_one_file(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

int output_mark(int out, int err, struct output_mark *ret)
{
	struct output_mark mark = OUTPUT_MARK_NONE;

	mark.fds[0] = reopen_to_read(out);
	mark.fds[1] = reopen_to_read(err);
	if (mark.fds[0] < 0 && mark.fds[1] < 0)
		return -ENOENT;
	if (fds_are_one_file(mark.fds[0], mark.fds[1]))
		close_fd(&mark.fds[1]);
	output_mark_again(&mark);
	*ret = mark;
	return 0;
}

void output_mark_again(struct output_mark *mark)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(mark->fds); i++)
		mark->sizes[i] = fstat(mark->fds[i], &st) == 0 ? st.st_size : 0;
}

static bool file_says_oom(int fd, int64_t from)
{
	static char last[LAST_BYTES];
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (st.st_size < from)
		from = 0; /* the command has truncated the file and written anew */
	from = max_i64(from, st.st_size - LAST_BYTES);
	return fdio_pread(fd, last, sizeof(last), from, &size) == 0 &&
	       text_says_oom(last, size);
}

bool output_says_oom(const struct output_mark *mark)
{
	for (size_t i = 0; i < ARRAY_SIZE(mark->fds); i++)
		if (file_says_oom(mark->fds[i], mark->sizes[i]))
			return true;
	return false;
}
