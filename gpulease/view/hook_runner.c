#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alarm.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "hook.h"
#include "hook_runner.h"
#include "parse.h"
#include "process_lease.h"

enum { GONE_MS = 1000 }; /* after KILL; what is left then cannot be killed */

static struct {
	struct hook_job job;
	char *command;
	int64_t kill_ms;
	sigset_t before; /* the signal mask of the command */
	char input[4096];
	size_t used; /* of it */
	bool is_over;
} runner;

/* --- the command ------------------------------------------------------------------- */

static void set_number(const char *name, int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)number);
	(void)setenv(name, text, 1);
}

/* In the child: becomes the command. */
static _Noreturn void become_command(const struct hook_event *event)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		_exit(EXIT_CANNOT_EXECUTE);
	(void)setpgid(0, 0);
	(void)sigprocmask(SIG_SETMASK, &runner.before, NULL);
	(void)unsetenv("GPULEASE_NOTIFY"); /* a gpulease in the command tells nothing */
	(void)setenv("GPULEASE_EVENT", event->name, 1);
	(void)setenv("GPULEASE_NAME", runner.job.name, 1);
	(void)setenv("GPULEASE_GPUS", runner.job.gpus, 1);
	(void)setenv("GPULEASE_STATE", event->state, 1);
	(void)setenv("GPULEASE_STATUS", event->status, 1);
	(void)setenv("GPULEASE_TEXT", event->text, 1);
	set_number("GPULEASE_ID", (int64_t)runner.job.id);
	set_number("GPULEASE_RAN", event->ran_ms / 1000);
	(void)execl("/bin/sh", "sh", "-c", runner.command, (char *)NULL);
	_exit(EXIT_CANNOT_EXECUTE);
}

/* Sleeps until a child has changed, or until @until_ms. */
static void await_child(int64_t until_ms)
{
	int64_t left_ms = max_i64(1, until_ms - clock_boot_ms());
	struct timespec left = { .tv_sec = left_ms / 1000,
		.tv_nsec = left_ms % 1000 * 1000000 };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigtimedwait(&set, NULL, &left);
}

/*
 * Waits until no process of the group @child is left; after a while kills them.  This process is a
 * subreaper, so all of them become its children.  Sets *@ret_status to that of @child.  Returns
 * whether it had to kill them.
 */
static bool await_group(pid_t child, int *ret_status)
{
	int64_t until_ms = clock_boot_ms() + runner.kill_ms;
	bool is_killed = false;

	for (;;) {
		int status;
		pid_t pid = waitpid(-child, &status, WNOHANG);

		if (pid == child)
			*ret_status = status;
		if (pid > 0)
			continue;
		if (pid < 0 && errno != EINTR)
			return is_killed;
		if (clock_boot_ms() >= until_ms && is_killed)
			return true;
		if (clock_boot_ms() >= until_ms) {
			(void)kill(-child, SIGKILL);
			is_killed = true;
			until_ms += GONE_MS;
		}
		await_child(until_ms);
	}
}

/* Runs the command for @event.  What becomes of it matters only to the user who asks with -v. */
static void run_command(const struct hook_event *event)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		become_command(event);
	if (child < 0) {
		verbose("--notify: cannot run the command: %s", strerror(errno));
		return;
	}
	(void)setpgid(child, child); /* whichever of the two comes first */
	if (await_group(child, &status))
		verbose("--notify: the command was killed at '%s': it took too long",
			event->name);
	else if (status != 0)
		verbose("--notify: the command failed at '%s', with status %d",
			event->name,
			WIFSIGNALED(status) ? 128 + WTERMSIG(status)
					    : WEXITSTATUS(status));
}

/* --- the lines --------------------------------------------------------------------- */

/* Takes the whole lines that were read; keeps the rest. */
static void take_lines(void)
{
	char *at = runner.input, *end;
	struct hook_event event;

	while (!runner.job.has_ended &&
		(end = memchr(at, '\n', runner.used - (size_t)(at - runner.input)))) {
		*end = '\0';
		if (hook_take(&runner.job, at, &event))
			run_command(&event);
		at = end + 1;
	}
	runner.used -= (size_t)(at - runner.input);
	memmove(runner.input, at, runner.used);
}

/* Reads what there is to read. */
static void read_input(void)
{
	size_t room = sizeof(runner.input) - runner.used;
	ssize_t n = read(STDIN_FILENO, runner.input + runner.used, room);

	if (n > 0) {
		runner.used += (size_t)n;
		take_lines();
	}
	runner.is_over = runner.job.has_ended || n == 0 || (n < 0 && errno != EINTR) ||
			 runner.used == sizeof(runner.input);
}

/* Waits for lines and for the clock.  What was written before a time comes first. */
static void run(void)
{
	struct alarm alarm = { .at_ms = 0 };
	struct hook_event event;

	while (!runner.is_over) {
		struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
		int timeout = alarm_set(&alarm, hook_wake_ms(&runner.job), &fds[1]);

		/* what the command has left behind, in groups of its own */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			read_input();
		else if (hook_tick(&runner.job, clock_boot_ms(), &event))
			run_command(&event);
	}
	alarm_release(&alarm);
}

/*
 * A pipe that stayed open here would keep its reader waiting after the job has ended: messages then
 * go nowhere.
 */
static void let_pipe_go(void)
{
	struct stat st;
	int null;

	if (fstat(STDERR_FILENO, &st) < 0 ||
		!(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)!dup2(null, STDERR_FILENO);
}

int hook_main(char **words)
{
	uint64_t times[2] = { HOOK_LONG_MS, HOOK_KILL_MS };
	sigset_t set;

	runner.command = getenv("GPULEASE_NOTIFY");
	if (!words[0] || !words[1] || !runner.command)
		return EXIT_MISUSE;
	for (unsigned i = 0; i < ARRAY_SIZE(times) && words[2 + i]; i++)
		if (parse_u64(words[2 + i], INT32_MAX, &times[i], NULL) < 0)
			return EXIT_MISUSE;
	(void)prctl(PR_SET_NAME, PROCESS_LEASE_NOTIFIER);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	let_pipe_go();
	diag_setup(words[0][0] == '1', false);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &runner.before);
	runner.job = (struct hook_job){ .name = words[1], .long_ms = (int64_t)times[0] };
	runner.kill_ms = (int64_t)times[1];
	run();
	return EXIT_DONE;
}
