#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "task_input.h"
#include "userfile.h"

static int open_file(const char *path, int *ret, struct why *why)
{
	int fd = userfile_open(path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0) {
		why_set(why, "cannot open '%s': %s", path, strerror(-fd));
		return fd;
	}
	*ret = fd;
	return 0;
}

/* Opens what task @task reads as its stdin. */
static int open_one(struct task_input *input, unsigned task, struct why *why)
{
	const char *wish = input->order->in;
	bool is_of = true;
	bool is_number = task_order_is_number(wish, task, &is_of);
	char path[PATH_MAX];
	int ends[2], r;

	input->fds[task] = input->pipes[task] = -1;
	if (wish && !is_number) {
		r = task_order_expand(input->order, wish, task, path, why);
		return r < 0 ? r : open_file(path, &input->fds[task], why);
	}
	if (!is_of)
		return open_file("/dev/null", &input->fds[task], why);
	if (input->order->pty)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		why_set(why, "cannot make a pipe: %s", strerror(-r));
		return r;
	}
	input->fds[task] = ends[0];
	input->pipes[task] = ends[1];
	input->is_at_end = false;
	return 0;
}

int task_input_open(
	struct task_input *input, const struct task_order *order, struct why *why)
{
	int r = 0;

	*input = (struct task_input){
		.order = order,
		.fds = calloc(order->count, sizeof(*input->fds)),
		.pipes = calloc(order->count, sizeof(*input->pipes)),
		.done = calloc(order->count, sizeof(*input->done)),
		.is_at_end = true,
	};
	if (!input->fds || !input->pipes || !input->done)
		return -ENOMEM;
	for (unsigned task = 0; r == 0 && task < order->count; task++)
		r = open_one(input, task, why);
	return r;
}

void task_input_started(struct task_input *input, unsigned task)
{
	close_fd(&input->fds[task]);
}

/* Whether task @task still has to get a part of the buffer. */
static bool is_behind(const struct task_input *input, unsigned task)
{
	return input->pipes[task] >= 0 && input->done[task] < input->used;
}

static bool is_any_behind(const struct task_input *input)
{
	for (unsigned i = 0; i < input->order->count; i++)
		if (is_behind(input, i))
			return true;
	return false;
}

size_t task_input_poll(const struct task_input *input, struct pollfd *fds)
{
	size_t count = 0;

	for (unsigned i = 0; i < input->order->count; i++)
		if (is_behind(input, i))
			fds[count++] = (struct pollfd){ .fd = input->pipes[i],
				.events = POLLOUT };
	if (!count && !input->is_at_end && !input->is_away)
		fds[count++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return count;
}

static void close_all(struct task_input *input)
{
	for (unsigned i = 0; i < input->order->count; i++)
		close_fd(&input->pipes[i]);
}

/* Reads the next part of stdin, once all tasks have the last one. */
static void read_more(struct task_input *input)
{
	struct pollfd ready = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t size;

	if (poll(&ready, 1, 0) <= 0)
		return;
	size = read(STDIN_FILENO, input->buffer, sizeof(input->buffer));
	if (size < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* with SIGTTIN blocked, EIO means that another process group is in the foreground */
	if (size < 0 && errno == EIO) {
		input->is_away = true;
		return;
	}
	input->used = size > 0 ? (size_t)size : 0;
	memset(input->done, 0, input->order->count * sizeof(*input->done));
	if (size <= 0) {
		input->is_at_end = true;
		close_all(input);
	}
}

void task_input_step(struct task_input *input)
{
	bool is_read = false;

	for (unsigned i = 0; i < input->order->count; i++) {
		ssize_t size;

		if (is_behind(input, i)) {
			size = write(input->pipes[i], input->buffer + input->done[i],
				input->used - input->done[i]);
			if (size > 0)
				input->done[i] += (size_t)size;
			else if (size < 0 && errno != EAGAIN && errno != EINTR)
				close_fd(&input->pipes[i]);
		}
		is_read |= input->pipes[i] >= 0;
	}
	input->is_at_end |= !is_read;
	if (!input->is_at_end && !input->is_away && !is_any_behind(input))
		read_more(input);
}

void task_input_continue(struct task_input *input)
{
	input->is_away = false;
}
