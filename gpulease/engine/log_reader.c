#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "fdio.h"
#include "log_reader.h"

int log_reader_begin(struct log_reader *reader, uint64_t id)
{
	*reader = (struct log_reader){ .fd = -1, .id = id };
	return engine_state_log(id, reader->path);
}

/* Opens the log if it is there.  Returns 0, or an exit status after a message. */
static int open_log(struct log_reader *reader)
{
	/* O_NONBLOCK: with -o the log may be a FIFO, and opening it must not block */
	int fd = open(reader->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		diag("cannot open '%s': %s", reader->path, strerror(errno));
		close_fd(&fd);
		return EXIT_NOT_DONE;
	}
	if (st.st_dev != reader->dev || st.st_ino != reader->ino)
		reader->at = 0;
	reader->dev = st.st_dev;
	reader->ino = st.st_ino;
	close_fd(&reader->fd);
	reader->fd = fd;
	return 0;
}

/* Prints what is new.  Returns 0, or an exit status after a message. */
static int print_new(struct log_reader *reader)
{
	static char bytes[64 * 1024];
	struct stat st;

	/* a FIFO or a terminal does not keep what was written to it */
	if (fstat(reader->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_size < reader->at) {
		note("the log was cut to %llu bytes; printing it from its beginning again",
			(unsigned long long)st.st_size);
		reader->at = 0;
	}
	for (;;) {
		ssize_t n = pread(reader->fd, bytes, sizeof(bytes), reader->at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			diag("cannot read '%s': %s", reader->path, strerror(errno));
		if (n <= 0)
			return n < 0 ? EXIT_MISUSE : 0;
		reader->at += n;
		r = fdio_write(STDOUT_FILENO, bytes, (size_t)n);
		if (r < 0) {
			diag("cannot write the output: %s", strerror(-r));
			return EXIT_MISUSE;
		}
	}
}

int log_reader_print(struct log_reader *reader)
{
	int r = 0;

	if (reader->fd < 0 && !engine_state_has_old_log(reader->id))
		r = open_log(reader);
	return r == 0 && reader->fd >= 0 ? print_new(reader) : r;
}

int log_reader_again(struct log_reader *reader)
{
	int r = engine_state_has_old_log(reader->id) ? 0 : open_log(reader);

	return r == 0 && reader->fd >= 0 ? print_new(reader) : r;
}

void log_reader_end(struct log_reader *reader)
{
	close_fd(&reader->fd);
}
