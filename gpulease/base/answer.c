#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "answer.h"
#include "clock.h"
#include "exitcodes.h"
#include "rlimits.h"

enum {
	REAP_MS = 2, /* stdout is closed a moment before the process can be reaped */
	PIPE_SIZE = 64 * 1024, /* that a program which has ended can leave in a pipe */
};

/* --- a child --------------------------------------------------------------------------- */

static _Noreturn void child_main(
	char *const *words, int in, int out, int err, pid_t parent)
{
	sigset_t none;

	if (in < 0)
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)setpgid(0, 0);
	/* an ssh that waits for a dead host would stay */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_MISUSE);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	rlimits_restore();
	(void)signal(SIGPIPE, SIG_DFL);
	if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
		dup2(err, STDERR_FILENO) >= 0)
		(void)execvp(words[0], words);
	(void)dprintf(
		STDERR_FILENO, "cannot execute '%s': %s\n", words[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

int answer_begin(struct answer *answer, char *const *words)
{
	pid_t parent = getpid();
	int out[2], err[2], r;

	answer_end(answer);
	answer->size = answer->line_size = 0;
	answer->error[0] = answer->line[0] = '\0';
	answer->status = answer->fault = 0;
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(err, O_CLOEXEC) < 0) {
		r = -errno;
		(void)close(out[0]);
		(void)close(out[1]);
		return r;
	}
	answer->pid = fork();
	r = -errno;
	if (answer->pid == 0)
		child_main(words, answer->in_fd, out[1], err[1], parent);
	(void)close(out[1]);
	(void)close(err[1]);
	answer->out_fd = out[0];
	answer->err_fd = err[0];
	(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(err[0], F_SETFL, O_NONBLOCK);
	if (answer->pid > 0)
		return 0;
	answer->pid = 0;
	answer_end(answer);
	return r;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void answer_end(struct answer *answer)
{
	close_end(&answer->out_fd);
	close_end(&answer->err_fd);
	if (answer->pid <= 0)
		return;
	(void)kill(-answer->pid, SIGKILL);
	(void)kill(answer->pid, SIGKILL);
	while (waitpid(answer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	answer->pid = 0;
}

void answer_release(struct answer *answer)
{
	answer_end(answer);
	free(answer->text);
	*answer = ANSWER_NONE;
}

/* --- its output ------------------------------------------------------------------------- */

/* Makes room for more output.  Returns false, with ->fault, if there is none. */
static bool make_room(struct answer *answer)
{
	size_t room = answer->room ? 2 * answer->room : 64 * 1024;
	char *text;

	if (answer->room - answer->size > 1)
		return true;
	text = room > ANSWER_MAX ? NULL : realloc(answer->text, room);
	if (!text) {
		answer->fault = room > ANSWER_MAX ? -EFBIG : -ENOMEM;
		return false;
	}
	answer->text = text;
	answer->room = room;
	return true;
}

static void take_out(struct answer *answer)
{
	while (answer->out_fd >= 0) {
		ssize_t n;

		if (!make_room(answer)) {
			answer_end(answer);
			return;
		}
		n = read(answer->out_fd, answer->text + answer->size,
			answer->room - answer->size - 1);
		if (n > 0)
			answer->size += (size_t)n;
		else if (n == 0)
			close_end(&answer->out_fd);
		else if (errno != EINTR)
			break;
	}
	if (answer->text)
		answer->text[answer->size] = '\0';
}

/* Whether the line is a message of gpulease or ssh, and not one of a login script. */
static bool is_message(const char *line)
{
	static const char *const begins[] = { "gpulease: ", "ssh: " };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

bool answer_is_advice(const char *line)
{
	return strstr(line, "If munged is up, restart with ");
}

static bool has_letter(const char *line)
{
	for (; *line; line++)
		if ((*line | 0x20) >= 'a' && (*line | 0x20) <= 'z')
			return true;
	return false;
}

/* Ends the line that is read.  Login scripts may print lines before the message. */
static void settle_line(struct answer *answer)
{
	/* ssh ends its lines with both */
	if (answer->line_size && answer->line[answer->line_size - 1] == '\r')
		answer->line[answer->line_size - 1] = '\0';
	if (is_message(answer->line) ? !is_message(answer->error)
				     : !answer->error[0] && has_letter(answer->line) &&
					       !answer_is_advice(answer->line))
		text_copy(answer->error, sizeof(answer->error), answer->line);
	answer->line_size = 0;
	answer->line[0] = '\0';
}

static void keep_error(struct answer *answer, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n') {
			settle_line(answer);
		} else if (answer->line_size + 1 < sizeof(answer->line)) {
			answer->line[answer->line_size++] = bytes[i];
			answer->line[answer->line_size] = '\0';
		}
	}
}

/* Takes what is there of stderr.  A program that prints without end does not hold up the caller. */
static void take_error(struct answer *answer)
{
	char bytes[512];
	size_t taken = 0;

	while (answer->err_fd >= 0 && taken < PIPE_SIZE) {
		ssize_t n = read(answer->err_fd, bytes, sizeof(bytes));

		if (n > 0) {
			keep_error(answer, bytes, (size_t)n);
			taken += (size_t)n;
		} else if (n == 0) {
			close_end(&answer->err_fd);
		} else if (errno != EINTR) {
			break;
		}
	}
}

void answer_take(struct answer *answer)
{
	take_out(answer);
	take_error(answer);
}

/* Takes what is left of stderr, and makes its line safe for a terminal. */
static void finish_error(struct answer *answer)
{
	char line[sizeof(answer->error)];
	struct text text = TEXT_ON(line);

	take_error(answer);
	close_end(&answer->err_fd);
	settle_line(answer);
	text_add_visible(&text, answer->error);
	text_copy(answer->error, sizeof(answer->error), line);
}

bool answer_is_complete(struct answer *answer)
{
	int status = 0;
	pid_t pid;

	if (answer->pid == 0)
		return true;
	if (answer->out_fd >= 0)
		return false;
	while ((pid = waitpid(answer->pid, &status, WNOHANG)) < 0 && errno == EINTR)
		;
	if (pid == 0)
		return false;
	answer->pid = 0;
	answer->status =
		WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	finish_error(answer);
	return true;
}

int answer_poll_ms(const struct answer *answer)
{
	return answer->pid > 0 && answer->out_fd < 0 ? REAP_MS : -1;
}

void answer_wait(struct answer *answer, int64_t deadline_ms)
{
	int64_t until_ms = clock_boot_ms() + deadline_ms;

	for (;;) {
		int64_t left_ms = until_ms - clock_boot_ms();
		struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
		int most_ms;

		answer_take(answer);
		if (answer->fault || answer_is_complete(answer))
			return;
		fds[0].fd = answer->out_fd;
		fds[1].fd = answer->err_fd;
		if (left_ms <= 0) {
			answer_end(answer);
			answer->fault = -ETIMEDOUT;
			return;
		}
		most_ms = answer_poll_ms(answer);
		(void)poll(fds, 2, most_ms >= 0 ? most_ms : (int)left_ms);
	}
}
