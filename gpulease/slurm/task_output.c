#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "diag.h"
#include "parse.h"
#include "task_output.h"
#include "userfile.h"

enum {
	STREAMS = 2,
	/* a pipe that can be written takes at least so much without blocking: pipe(7) */
	WRITE_MAX = 4096,
	READ_MAX = 64 * 1024,
	/* what a pipe holds, unless root has made it larger: pipe(7) */
	PIPE_MAX = 1024 * 1024,
};

/* --- opening ----------------------------------------------------------------------- */

static int open_file(
	const struct task_order *order, const char *path, int *ret, struct why *why)
{
	int fd = userfile_open_output(
		path, O_WRONLY | (order->appends ? O_APPEND : O_TRUNC), 0666, why);

	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

/* Finds or opens the output that is the file @path. */
static int find_sink(
	struct task_output *output, const char *path, struct sink **ret, struct why *why)
{
	struct sink *sink = &output->sinks[output->sink_count];
	int r;

	for (size_t i = 0; i < output->sink_count; i++)
		if (output->sinks[i].path && strcmp(output->sinks[i].path, path) == 0) {
			*ret = &output->sinks[i];
			return 0;
		}
	*sink = (struct sink){ .fd = -1, .path = strdup(path) };
	if (!sink->path)
		return -ENOMEM;
	r = open_file(output->order, path, &sink->fd, why);
	if (r == 0) {
		output->sink_count++;
		*ret = sink;
	}
	return r;
}

/* Opens the pipe through which the lines of @stream reach an output. */
static int open_pipe(struct stream *stream, struct why *why)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		int r = -errno;

		why_set(why, "cannot make a pipe: %s", strerror(-r));
		return r;
	}
	stream->fd = ends[0];
	stream->write_fd = ends[1];
	return 0;
}

/* Opens stream @which (0: stdout) of @task by the pattern @pattern. */
static int open_stream(struct task_output *output, unsigned task, unsigned which,
	const char *pattern, struct why *why)
{
	const struct task_order *order = output->order;
	struct stream *stream = &output->streams[task * STREAMS + which];
	struct stream *other = &output->streams[task * STREAMS];
	char path[PATH_MAX], next[PATH_MAX];
	bool is_of = true, is_number = task_order_is_number(pattern, task, &is_of);
	int r;

	*stream = (struct stream){ .fd = -1, .write_fd = -1 };
	if (order->labels)
		task_lines_label(&stream->lines, task, order->count);
	if (!is_of)
		return open_file(output->order, "/dev/null", &stream->write_fd, why);
	if (!pattern || is_number) {
		if (order->unbuffered && !order->labels)
			return 0;
		stream->sink = &output->sinks[which];
		return open_pipe(stream, why);
	}
	r = task_order_expand(order, pattern, task, path, why);
	if (r == 0)
		r = task_order_expand(order, pattern, task + 1, next, why);
	if (r < 0)
		return r;
	if (order->labels || strcmp(path, next) == 0) {
		r = find_sink(output, path, &stream->sink, why);
		return r < 0 ? r : open_pipe(stream, why);
	}
	/* both streams in one file need one offset */
	if (which == 1 &&
		(!order->err || (order->out && strcmp(order->out, order->err) == 0))) {
		stream->write_fd = fcntl(other->write_fd, F_DUPFD_CLOEXEC, 0);
		return stream->write_fd < 0 ? -errno : 0;
	}
	return open_file(output->order, path, &stream->write_fd, why);
}

int task_output_open(
	struct task_output *output, const struct task_order *order, struct why *why)
{
	size_t streams = (size_t)order->count * STREAMS;
	int r = 0;

	*output = (struct task_output){
		.order = order,
		.streams = calloc(streams, sizeof(*output->streams)),
		.sinks = calloc(streams + STREAMS, sizeof(*output->sinks)),
		.sink_count = STREAMS,
	};
	if (!output->streams || !output->sinks)
		return -ENOMEM;
	output->sinks[0].fd = STDOUT_FILENO;
	output->sinks[1].fd = STDERR_FILENO;
	for (unsigned task = 0; r == 0 && task < order->count; task++) {
		r = open_stream(output, task, 0, order->out, why);
		if (r == 0)
			r = open_stream(output, task, 1,
				order->err ? order->err : order->out, why);
	}
	return r;
}

void task_output_started(struct task_output *output, unsigned task)
{
	for (unsigned which = 0; which < STREAMS; which++)
		close_fd(&output->streams[task * STREAMS + which].write_fd);
}

/* --- passing on -------------------------------------------------------------------- */

static bool sink_is_idle(const struct sink *sink)
{
	return sink->written == sink->pending.used;
}

size_t task_output_poll(const struct task_output *output, struct pollfd *fds)
{
	size_t streams = (size_t)output->order->count * STREAMS, count = 0;

	for (size_t i = 0; i < output->sink_count; i++)
		if (!sink_is_idle(&output->sinks[i]))
			fds[count++] = (struct pollfd){ .fd = output->sinks[i].fd,
				.events = POLLOUT };
	for (size_t i = 0; i < streams; i++) {
		const struct stream *stream = &output->streams[i];

		if (stream->fd >= 0 && sink_is_idle(stream->sink))
			fds[count++] =
				(struct pollfd){ .fd = stream->fd, .events = POLLIN };
	}
	return count;
}

/* Closes an output that nothing reads any more: the tasks get SIGPIPE as from a pipe of theirs. */
static void sink_close(struct task_output *output, struct sink *sink)
{
	sink->fd = -1;
	sink->written = sink->pending.used = 0;
	for (size_t i = 0; i < (size_t)output->order->count * STREAMS; i++)
		if (output->streams[i].sink == sink)
			close_fd(&output->streams[i].fd);
}

/* Says why an output cannot be written: a full disk, for example. */
static void sink_report(struct task_output *output, const struct sink *sink)
{
	int error = errno;

	if (sink->path)
		diag("cannot write '%s': %s", sink->path, strerror(error));
	else
		diag("cannot write the output: %s", strerror(error));
	output->has_failed = true;
}

static void sink_write(struct task_output *output, struct sink *sink)
{
	while (!sink_is_idle(sink)) {
		struct pollfd ready = { .fd = sink->fd, .events = POLLOUT };
		size_t left = sink->pending.used - sink->written;
		ssize_t size;

		if (poll(&ready, 1, 0) <= 0)
			return;
		size = write(sink->fd, sink->pending.at + sink->written,
			left < WRITE_MAX ? left : WRITE_MAX);
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size < 0) {
			if (errno != EPIPE)
				sink_report(output, sink);
			sink_close(output, sink);
			return;
		}
		sink->written += (size_t)size;
	}
	sink->written = sink->pending.used = 0;
}

/*
 * Reads once from the pipe of @stream, and at its end passes on what is left.  With @is_last an
 * empty pipe is at its end, and so is one that held more than a pipe can: a process that a task has
 * left behind writes on and on.
 */
static int stream_read(struct stream *stream, bool is_last)
{
	static char buffer[READ_MAX];
	ssize_t size = read(stream->fd, buffer, sizeof(buffer));
	bool is_end = size == 0 ||
		      (size < 0 && (is_last || (errno != EAGAIN && errno != EINTR)));

	if (is_last && size > 0) {
		stream->last += (size_t)size;
		is_end = stream->last >= PIPE_MAX;
	}
	if (is_end)
		close_fd(&stream->fd);
	return task_lines_take(&stream->lines, buffer, size > 0 ? (size_t)size : 0,
		is_end, &stream->sink->pending);
}

/* Reads once from each pipe, and passes on. */
static int step(struct task_output *output, bool is_last)
{
	int r = 0;

	for (size_t i = 0; i < output->sink_count; i++)
		sink_write(output, &output->sinks[i]);
	for (size_t i = 0; r == 0 && i < (size_t)output->order->count * STREAMS; i++) {
		struct stream *stream = &output->streams[i];

		while (r == 0 && stream->fd >= 0 && sink_is_idle(stream->sink)) {
			r = stream_read(stream, is_last);
			sink_write(output, stream->sink);
			/* otherwise the others have their turn */
			if (!is_last)
				break;
		}
	}
	return r;
}

int task_output_step(struct task_output *output)
{
	return step(output, false);
}

int task_output_end(struct task_output *output)
{
	return step(output, true);
}

bool task_output_is_written(const struct task_output *output)
{
	for (size_t i = 0; i < output->sink_count; i++)
		if (!sink_is_idle(&output->sinks[i]))
			return false;
	for (size_t i = 0; i < (size_t)output->order->count * STREAMS; i++)
		if (output->streams[i].fd >= 0)
			return false;
	return true;
}
