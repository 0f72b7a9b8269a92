/*
 * jobcontrol: a minimal shell with job control on a terminal of its own, and a simulated user who
 * types there.
 *
 *	jobcontrol STEP… -- command…	does the steps in turn; exits with 0, or names the
 *					step that failed and exits with 1
 *	jobcontrol --listen		a command to try: prints `ready`, what it reads
 *					(`read WORD`) and its signals (`got NAME`); ends
 *					when it reads `exit N`
 *	jobcontrol --bare command…	becomes the command, with no descriptor open
 *
 * The shell starts the command as a job: a process group of its own, in the foreground.
 *
 *	type:TEXT	types TEXT; ^C is Ctrl-C, ^I a tab, and ^J a newline
 *	see:TEXT	waits until TEXT has come after what the last `see` saw
 *	count:N:TEXT	fails unless TEXT has come N times in all
 *	stop:NAME	waits until the shell sees the job stopped by this signal
 *	end:WHAT	waits until the shell sees the job end with this exit status or signal
 *	asleep		waits until all processes of the job sleep or are stopped
 *	fg, bg		continues the job as a shell does
 *	kill:NAME	sends the signal to the process that the shell has started
 *	killpg:NAME	sends the signal to the job, as `kill %1` does
 *	hangup		closes the terminal
 */
#include "tool.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

static const struct {
	int number;
	const char *name;
} names[] = {
	{ SIGHUP, "HUP" },
	{ SIGINT, "INT" },
	{ SIGQUIT, "QUIT" },
	{ SIGKILL, "KILL" },
	{ SIGUSR1, "USR1" },
	{ SIGUSR2, "USR2" },
	{ SIGTERM, "TERM" },
	{ SIGCONT, "CONT" },
	{ SIGSTOP, "STOP" },
	{ SIGTSTP, "TSTP" },
	{ SIGTTIN, "TTIN" },
	{ SIGTTOU, "TTOU" },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, name))
			return names[i].number;
	die("'%s' is no signal", name);
}

static const char *name_of(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return "?";
}

/* --- the command to try ------------------------------------------------------------- */

static void say(const char *what, const char *word)
{
	char line[300];
	int size = snprintf(line, sizeof(line), "%s%s\n", what, word);

	(void)!write(STDOUT_FILENO, line, (size_t)size);
}

static void on_signal(int number)
{
	say("got ", name_of(number));
}

static int listen_to_all(void)
{
	static const int heard[] = { SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM,
		SIGCONT };
	char line[256];

	for (size_t i = 0; i < ARRAY_SIZE(heard); i++)
		(void)sigaction(heard[i],
			&(struct sigaction){
				.sa_handler = on_signal, .sa_flags = SA_RESTART },
			NULL);
	say("ready", "");
	for (;;) {
		ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);

		if (n <= 0)
			return 99; /* the terminal was closed */
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "exit ", 5))
			return (int)number(line + 5, "status");
		say("read ", line);
	}
}

static _Noreturn void be_bare(char **command)
{
	for (int fd = 0; fd < 1024; fd++)
		(void)close(fd);
	(void)execvp(command[0], command);
	_exit(127);
}

/* --- the shell ---------------------------------------------------------------------- */

/* A request to the shell, or its report. */
struct message {
	enum { DO_SIGNAL, DO_SIGNAL_GROUP, DO_FOREGROUND, DO_BACKGROUND, DO_TELL } what;
	int value; /* a signal; in a report: the status of waitpid(2) */
	pid_t job; /* in a report: the job */
};

static void send_message(int fd, const struct message *message)
{
	if (write(fd, message, sizeof(*message)) != sizeof(*message))
		_exit(TOOL_MISUSE);
}

static _Noreturn void become_job(char **command)
{
	static const int usual[] = { SIGTTOU, SIGTTIN, SIGTSTP, SIGINT, SIGQUIT, SIGHUP };

	(void)setpgid(0, 0);
	(void)tcsetpgrp(STDIN_FILENO, getpid());
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		(void)signal(usual[i], SIG_DFL);
	tool_child();
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)execvp(command[0], command);
	_exit(127);
}

static void obey(const struct message *message, pid_t job)
{
	switch (message->what) {
	case DO_SIGNAL:
		(void)kill(job, message->value);
		break;
	case DO_SIGNAL_GROUP:
		(void)kill(-job, message->value);
		/* a stopped job must get the signal, too */
		if (message->value == SIGTERM || message->value == SIGHUP)
			(void)kill(-job, SIGCONT);
		break;
	case DO_FOREGROUND:
		(void)tcsetpgrp(STDIN_FILENO, job);
		(void)kill(-job, SIGCONT);
		break;
	case DO_BACKGROUND:
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
		(void)kill(-job, SIGCONT);
		break;
	case DO_TELL:
		break;
	}
}

/* Reports every stop and the end, and takes the terminal back then. */
static void look_at(pid_t job, int control)
{
	struct message told = { .what = DO_TELL, .job = job };

	while (waitpid(job, &told.value, WNOHANG | WUNTRACED) == job) {
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
		send_message(control, &told);
	}
}

static _Noreturn void be_shell(const char *terminal, int control, char **command)
{
	static const int ignored[] = { SIGTTOU, SIGTTIN, SIGTSTP, SIGINT, SIGQUIT };
	struct pollfd watch = { .fd = control, .events = POLLIN };
	struct message message = { .what = DO_TELL };
	pid_t job;
	int fd;

	(void)setsid();
	fd = open(terminal, O_RDWR);
	if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0)
		_exit(TOOL_MISUSE);
	for (int i = 0; i < 3; i++)
		(void)dup2(fd, i);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	job = fork();
	if (job == 0)
		become_job(command);
	(void)setpgid(job, job);
	(void)tcsetpgrp(STDIN_FILENO, job);
	message.job = job;
	send_message(control, &message);
	for (;;) {
		look_at(job, control);
		if (poll(&watch, 1, 5) <= 0)
			continue;
		if (read(control, &message, sizeof(message)) != sizeof(message))
			_exit(0); /* with the terminal's hangup, or at the end */
		obey(&message, job);
	}
}

/* --- the user ------------------------------------------------------------------------ */

static struct {
	int master, control;
	pid_t shell, job;
	char seen[65536]; /* all output so far */
	size_t used, at;  /* ->at: the end of the text that was seen last */
} desk;

/* Reads the output of a moment.  Returns whether the shell has sent a report. */
static bool take(struct message *told)
{
	struct pollfd watch[2] = { { .fd = desk.master, .events = POLLIN },
		{ .fd = desk.control, .events = POLLIN } };

	(void)poll(watch, 2, 20);
	if (watch[0].revents & POLLIN) {
		ssize_t n = read(desk.master, desk.seen + desk.used,
			sizeof(desk.seen) - 1 - desk.used);

		desk.used += n > 0 ? (size_t)n : 0;
		desk.seen[desk.used] = '\0';
	}
	return told && watch[1].revents & POLLIN &&
	       read(desk.control, told, sizeof(*told)) == sizeof(*told);
}

static void type(const char *text)
{
	for (; *text; text++) {
		char byte = *text;

		if (byte == '^' && text[1])
			byte = (char)(*++text & 0x1f);
		(void)!write(desk.master, &byte, 1);
	}
}

static bool see(const char *text)
{
	int64_t until_ns = now_ns() + DEADLINE_NS;
	const char *found;

	while (!(found = strstr(desk.seen + desk.at, text))) {
		if (now_ns() > until_ns)
			return false;
		(void)take(NULL);
	}
	desk.at = (size_t)(found - desk.seen) + strlen(text);
	return true;
}

static bool count(const char *wanted)
{
	unsigned long long times = strtoull(wanted, NULL, 10);
	const char *text = strchr(wanted, ':');

	for (const char *at = desk.seen; text && (at = strstr(at, text + 1)); at++)
		times--;
	return times == 0;
}

/* Waits for the next report of the shell: a stop or an end. */
static bool told(const char *wanted, bool wants_end)
{
	int64_t until_ns = now_ns() + DEADLINE_NS;
	struct message message = { .what = DO_TELL };
	char number[16];

	while (!take(&message))
		if (now_ns() > until_ns)
			return false;
	if (WIFSTOPPED(message.value) || !wants_end)
		return !wants_end && WIFSTOPPED(message.value) &&
		       !strcmp(name_of(WSTOPSIG(message.value)), wanted);
	desk.job = 0;
	if (WIFSIGNALED(message.value))
		return !strcmp(name_of(WTERMSIG(message.value)), wanted);
	(void)snprintf(number, sizeof(number), "%d", WEXITSTATUS(message.value));
	return !strcmp(number, wanted);
}

static bool all_sleep(void)
{
	int64_t until_ns = now_ns() + DEADLINE_NS;

	/* quiet for long enough that every expected event has happened */
	for (int quiet = 0; quiet < 3;) {
		char state = tool_state(desk.job);
		size_t used = desk.used;

		(void)take(NULL);
		quiet = (state == 'S' || state == 'T') && used == desk.used ? quiet + 1
									    : 0;
		if (now_ns() > until_ns)
			return false;
	}
	return true;
}

static bool order(int what, int value)
{
	struct message message = { .what = (unsigned)what, .value = value };

	send_message(desk.control, &message);
	return true;
}

static bool hang_up(void)
{
	(void)close(desk.master);
	desk.master = -1;
	(void)kill(desk.shell, SIGHUP);
	return true;
}

static bool after(const char *step, const char *prefix, const char **ret_rest)
{
	size_t size = strlen(prefix);

	*ret_rest = step + size;
	return !strncmp(step, prefix, size);
}

static bool do_step(const char *step)
{
	const char *rest;

	if (after(step, "type:", &rest))
		return type(rest), true;
	if (after(step, "see:", &rest))
		return see(rest);
	if (after(step, "count:", &rest))
		return count(rest);
	if (after(step, "stop:", &rest))
		return told(rest, false);
	if (after(step, "end:", &rest))
		return told(rest, true);
	if (after(step, "kill:", &rest))
		return order(DO_SIGNAL, number_of(rest));
	if (after(step, "killpg:", &rest))
		return order(DO_SIGNAL_GROUP, number_of(rest));
	if (!strcmp(step, "asleep"))
		return all_sleep();
	if (!strcmp(step, "fg"))
		return order(DO_FOREGROUND, 0);
	if (!strcmp(step, "bg"))
		return order(DO_BACKGROUND, 0);
	if (!strcmp(step, "hangup"))
		return hang_up();
	die("'%s' is no step", step);
}

static void open_desk(char **command)
{
	struct message message = { .what = DO_TELL };
	char terminal[64];
	int ends[2];

	desk.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (desk.master < 0 || grantpt(desk.master) < 0 || unlockpt(desk.master) < 0 ||
		ptsname_r(desk.master, terminal, sizeof(terminal)) != 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		die("no terminal: %s", strerror(errno));
	desk.control = ends[0];
	desk.shell = fork();
	if (desk.shell == 0) {
		(void)close(desk.master);
		(void)close(ends[0]);
		be_shell(terminal, ends[1], command);
	}
	(void)close(ends[1]);
	if (desk.shell < 0 ||
		read(desk.control, &message, sizeof(message)) != sizeof(message))
		die("no shell");
	desk.job = message.job;
}

int main(int argc, char **argv)
{
	int steps = 1, status = 0;

	if (argc == 2 && !strcmp(argv[1], "--listen"))
		return listen_to_all();
	if (argc > 2 && !strcmp(argv[1], "--bare"))
		be_bare(argv + 2);
	while (steps < argc && strcmp(argv[steps], "--") != 0)
		steps++;
	if (steps + 1 >= argc)
		die("usage: jobcontrol STEP... -- command...");
	tool_init();
	open_desk(argv + steps + 1);
	for (int i = 1; i < steps && status == 0; i++) {
		if (do_step(argv[i]))
			continue;
		(void)printf("step %d, '%s', was not to be done; seen:\n%s\n", i, argv[i],
			desk.seen);
		status = 1;
	}
	if (desk.job)
		(void)kill(-desk.job, SIGKILL);
	(void)kill(desk.shell, SIGKILL);
	(void)waitpid(desk.shell, NULL, 0);
	return status;
}
