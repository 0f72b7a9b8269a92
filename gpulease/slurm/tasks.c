#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "job_control.h"
#include "task_end.h"
#include "task_environment.h"
#include "task_input.h"
#include "task_output.h"
#include "task_start.h"
#include "tasks.h"

enum {
	ABORT_MS = 1000,     /* between two Ctrl-C that end the tasks, as with srun */
	KILL_MS = 10 * 1000, /* from the signal that ends the tasks to KILL */
};

struct tasks {
	struct task_order order;
	struct task_output output;
	struct task_input input;
	struct pollfd *fds;
	pid_t *pids;   /* 0: it has ended */
	int *statuses; /* of waitpid(2), for those that have ended */
	unsigned left; /* that have not ended */
	pid_t group;   /* of all tasks; 0: none was started, or --pty */
	int signal_fd;
	int given_up; /* the signal that came once only the output was left; 0: none */
	struct rlimit descriptors;      /* that this process was started with */
	sigset_t mask;                  /* that this process was started with */
	int64_t interrupt_ms;           /* the last Ctrl-C; 0: none */
	int64_t end_at_ms, kill_at_ms;  /* CLOCK_BOOTTIME; INT64_MAX: never */
	struct job_control job_control; /* --pty */
};

/* --- ending ------------------------------------------------------------------------ */

/*
 * Sends @signal to the tasks from @first on: to their group, and to those that have left it as by
 * setsid(1).
 */
static void signal_from(const struct tasks *tasks, unsigned first, int signal)
{
	bool has_group = false;

	for (unsigned i = first; i < tasks->order.count; i++) {
		pid_t pid = tasks->pids[i], group = pid ? getpgid(pid) : 0;

		if (group && group == tasks->group)
			has_group = true;
		else if (pid)
			(void)kill(group == pid ? -pid : pid, signal);
	}
	if (has_group)
		(void)kill(-tasks->group, signal);
}

static void signal_all(const struct tasks *tasks, int signal)
{
	signal_from(tasks, 0, signal);
}

/*
 * Sends @signal to the tasks alone, and not to what they have started: a process that a task has
 * forked would run the handler of the task, too.  So does Slurm.
 */
static void signal_tasks(const struct tasks *tasks, int signal)
{
	for (unsigned i = 0; i < tasks->order.count; i++)
		if (tasks->pids[i])
			(void)kill(tasks->pids[i], signal);
}

/* Whether the signal orders the tasks to end; any other is for what a task makes of it. */
static bool is_end_signal(int signal)
{
	return signal == SIGTERM || signal == SIGHUP || signal == SIGINT ||
	       signal == SIGQUIT;
}

/* Sends @signal to all tasks, and KILL later; does nothing if that is on its way. */
static void end_all(struct tasks *tasks, int signal)
{
	tasks->end_at_ms = INT64_MAX;
	if (tasks->kill_at_ms != INT64_MAX)
		return;
	tasks->kill_at_ms = clock_boot_ms() + KILL_MS;
	signal_all(tasks, signal);
	signal_all(tasks, SIGCONT);
}

static bool is_bad(int wait_status)
{
	return task_end_status(wait_status) != 0;
}

/* Says how the tasks have ended that @is_new names: one line for each way but success. */
static void report_ends(const struct tasks *tasks, bool *is_new)
{
	bool same[TASKS_MAX];

	for (unsigned i = 0; i < tasks->order.count; i++) {
		char words[1024];
		struct text text = TEXT_ON(words);

		if (!is_new[i] || !is_bad(tasks->statuses[i]))
			continue;
		for (unsigned j = 0; j < tasks->order.count; j++) {
			same[j] = is_new[j] && tasks->statuses[j] == tasks->statuses[i];
			is_new[j] = is_new[j] && !same[j];
		}
		task_end_list(same, tasks->order.count, &text);
		text_add(&text, ": ");
		task_end_describe(tasks->statuses[i], &text);
		note("%s", words);
	}
}

/*
 * Reaps task @task.  Returns whether it has ended.  If it has the terminal and has stopped, stops
 * this process as well, so that the shell notices and takes the terminal back.
 */
static bool reap_one(struct tasks *tasks, unsigned task)
{
	bool has_terminal = tasks->order.pty && task == 0;
	int status;

	if (!tasks->pids[task] || waitpid(tasks->pids[task], &status,
					  WNOHANG | (has_terminal ? WUNTRACED : 0)) <= 0)
		return false;
	if (WIFSTOPPED(status)) {
		job_control_stop(tasks->pids[task], WSTOPSIG(status),
			min_i64(tasks->end_at_ms, tasks->kill_at_ms), -1);
		return false;
	}
	tasks->statuses[task] = status;
	tasks->pids[task] = 0;
	tasks->left--;
	return true;
}

/* Reaps the tasks that have ended. */
static void reap(struct tasks *tasks)
{
	bool is_new[TASKS_MAX] = { false }, has_new = false, has_bad = false;

	for (unsigned i = 0; i < tasks->order.count; i++) {
		if (!reap_one(tasks, i))
			continue;
		is_new[i] = has_new = true;
		has_bad |= is_bad(tasks->statuses[i]);
	}
	if (has_new && tasks->order.wait_ms && tasks->end_at_ms == INT64_MAX)
		tasks->end_at_ms = clock_boot_ms() + tasks->order.wait_ms;
	report_ends(tasks, is_new);
	if (has_bad && tasks->order.kills && tasks->left)
		end_all(tasks, SIGTERM);
}

/* --- signals ----------------------------------------------------------------------- */

/* Prints which tasks run: the answer to a Ctrl-C. */
static void report_running(const struct tasks *tasks)
{
	bool runs[TASKS_MAX];
	char words[1024];
	struct text text = TEXT_ON(words);

	for (unsigned i = 0; i < tasks->order.count; i++)
		runs[i] = tasks->pids[i] != 0;
	task_end_list(runs, tasks->order.count, &text);
	note("%s still run%s; a second Ctrl-C within 1s ends %s", words,
		tasks->left == 1 ? "s" : "", tasks->left == 1 ? "it" : "them");
}

/*
 * Ctrl-C: the first says what runs, or with --disable-status is passed on; the second ends the
 * tasks, the third kills them.
 */
static void obey_interrupt(struct tasks *tasks)
{
	int64_t now_ms = clock_boot_ms();

	if (tasks->kill_at_ms != INT64_MAX)
		tasks->kill_at_ms = now_ms;
	else if (tasks->interrupt_ms && now_ms - tasks->interrupt_ms <= ABORT_MS)
		end_all(tasks, SIGINT);
	else if (tasks->order.forwards)
		signal_all(tasks, SIGINT);
	else
		report_running(tasks);
	tasks->interrupt_ms = now_ms;
}

/* Stops the tasks and then this process, so that the shell notices; continues both later. */
static void obey_stop(struct tasks *tasks)
{
	signal_all(tasks, SIGTSTP);
	(void)raise(SIGSTOP);
	signal_all(tasks, SIGCONT);
	task_input_continue(&tasks->input);
}

/*
 * Passes a signal on while task 0 has the terminal.  The keys are for that task, and what the shell
 * sends to the group of this process has reached it already.
 */
static void obey_beside_terminal(struct tasks *tasks, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	bool has_got = job_control_reached_all(&tasks->job_control, tasks->pids[0], info);

	if (info->ssi_code == SI_KERNEL &&
		(signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP ||
			signal == SIGWINCH))
		return;
	if (!has_got)
		(void)kill(tasks->pids[0], signal);
	/* the others have no terminal, and run on while task 0 is stopped */
	if (signal != SIGTSTP)
		signal_from(tasks, 1, signal);
}

static void obey_signal(struct tasks *tasks, const struct signalfd_siginfo *info)
{
	if (tasks->order.pty && tasks->pids[0] && info->ssi_signo != SIGCHLD) {
		obey_beside_terminal(tasks, info);
		return;
	}
	switch (info->ssi_signo) {
	case SIGWINCH:
		signal_all(tasks, SIGWINCH);
		break;
	case SIGCHLD:
		reap(tasks);
		break;
	case SIGTSTP:
		obey_stop(tasks);
		break;
	case SIGCONT:
		signal_all(tasks, SIGCONT);
		task_input_continue(&tasks->input);
		break;
	default:
		if (!tasks->left)
			tasks->given_up = (int)info->ssi_signo;
		else if (info->ssi_signo == SIGINT && info->ssi_code == SI_KERNEL)
			obey_interrupt(tasks); /* from a terminal, not from kill(1) */
		else if (is_end_signal((int)info->ssi_signo))
			signal_all(tasks, (int)info->ssi_signo);
		else
			signal_tasks(tasks, (int)info->ssi_signo);
	}
}

static void read_signals(struct tasks *tasks)
{
	struct signalfd_siginfo info;

	while (read(tasks->signal_fd, &info, sizeof(info)) == sizeof(info))
		obey_signal(tasks, &info);
	job_control_has_read_all(&tasks->job_control);
}

/*
 * Blocks all signals, and has those that are passed on read from a descriptor.  One that is ignored
 * stays ignored, here and in the tasks.
 */
static int open_signals(struct tasks *tasks)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD };
	struct sigaction action;
	sigset_t set, all;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		if (sigaction(passed[i], NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN)
			(void)sigaddset(&set, passed[i]);
	/* a process that ignores it cannot learn how its children end */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &tasks->mask);
	tasks->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return tasks->signal_fd < 0 ? -errno : 0;
}

/* --- running ----------------------------------------------------------------------- */

static int start_one(struct tasks *tasks, unsigned task, const char *program)
{
	const struct stream *streams = &tasks->output.streams[2 * task];
	autofree char **environment = NULL;
	struct why why = WHY_NONE;
	struct task_start start = {
		.order = &tasks->order,
		.task = task,
		.program = program,
		/* an interactive shell without stdin would stop for the terminal */
		.is_apart = tasks->order.pty && task != 0,
		/* the terminal belongs to the group of this process */
		.group = tasks->order.pty ? getpgrp() : tasks->group,
		.fds = { tasks->input.fds[task], streams[0].write_fd,
			streams[1].write_fd },
		.mask = tasks->mask,
		.descriptors = tasks->descriptors,
	};
	int r = task_environment_make(&tasks->order, task, &environment, &why);
	pid_t pid;

	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return r;
	}
	start.environment = environment;
	pid = task_start(&start);
	if (pid < 0) {
		diag("cannot start task %u: %s", task, strerror(-pid));
		return pid;
	}
	tasks->pids[task] = pid;
	tasks->left++;
	if (!tasks->group && !tasks->order.pty)
		tasks->group = pid;
	if (tasks->order.pty && task == 0)
		job_control_begin(&tasks->job_control);
	task_input_started(&tasks->input, task);
	task_output_started(&tasks->output, task);
	return 0;
}

/* The milliseconds until the next deadline; -1: there is none. */
static int timeout_ms(const struct tasks *tasks)
{
	int64_t at_ms = min_i64(tasks->end_at_ms, tasks->kill_at_ms);

	/* cut, because a timeout does not count a suspend */
	return at_ms == INT64_MAX
		       ? -1
		       : (int)min_i64(max_i64(at_ms - clock_boot_ms(), 0), 1000);
}

static void obey_deadlines(struct tasks *tasks)
{
	int64_t now_ms = clock_boot_ms();

	if (now_ms >= tasks->end_at_ms && tasks->left)
		end_all(tasks, SIGTERM);
	if (now_ms >= tasks->kill_at_ms) {
		tasks->kill_at_ms = now_ms + KILL_MS;
		signal_all(tasks, SIGKILL);
	}
}

/* Waits for the end of all tasks, and passes on what they write and read. */
static int watch(struct tasks *tasks)
{
	int r = 0;

	while (r == 0 && !tasks->given_up &&
		(tasks->left || !task_output_is_written(&tasks->output))) {
		size_t count = 0;

		tasks->fds[count++] =
			(struct pollfd){ .fd = tasks->signal_fd, .events = POLLIN };
		count += task_output_poll(&tasks->output, tasks->fds + count);
		if (tasks->left)
			count += task_input_poll(&tasks->input, tasks->fds + count);
		(void)poll(tasks->fds, count, timeout_ms(tasks));
		read_signals(tasks);
		obey_deadlines(tasks);
		r = tasks->left ? task_output_step(&tasks->output)
				: task_output_end(&tasks->output);
		if (tasks->left)
			task_input_step(&tasks->input);
	}
	job_control_end(&tasks->job_control);
	return r;
}

/*
 * The highest status of a task, and of what went wrong here.  As with srun, a signal counts more
 * than any exit status.
 */
static int highest_status(const struct tasks *tasks)
{
	int highest = tasks->output.has_failed ? EXIT_MISUSE : 0;
	bool has_signal = false;

	for (unsigned i = 0; i < tasks->order.count; i++) {
		bool is_signal = WIFSIGNALED(tasks->statuses[i]);
		int status = task_end_status(tasks->statuses[i]);

		if (is_signal > has_signal ||
			(is_signal == has_signal && status > highest))
			highest = status;
		has_signal |= is_signal;
	}
	if (tasks->given_up && highest < 128 + tasks->given_up)
		highest = 128 + tasks->given_up;
	return highest;
}

/* Says in the log of a job in the background where the output of the tasks is. */
static void note_output(const struct task_order *order)
{
	char folder[PATH_MAX] = "", first[PATH_MAX], last[PATH_MAX];
	struct why why = WHY_NONE;
	bool is_of;

	if (!order->has_log || !order->out ||
		task_order_is_number(order->out, 0, &is_of) ||
		task_order_expand(order, order->out, 0, first, &why) < 0 ||
		task_order_expand(order, order->out, order->count - 1, last, &why) < 0)
		return;
	if (*first != '/' && !getcwd(folder, sizeof(folder)))
		return;
	if (strcmp(first, last) == 0)
		note("the tasks write to %s%s%s", folder, *folder ? "/" : "", first);
	else
		note("the tasks write to %s%s%s ... %s", folder, *folder ? "/" : "",
			first, last);
}

/* Raises the limit of open files, for the pipes of many tasks; they get back their own. */
static void raise_descriptors(struct rlimit *before)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, before) < 0)
		return;
	raised = *before;
	raised.rlim_cur = raised.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &raised);
}

/* Opens everything.  Returns 0, or a negative errno after it has printed the reason. */
static int tasks_open(struct tasks *tasks)
{
	struct why why = WHY_NONE;
	size_t count = tasks->order.count;
	int r;

	raise_descriptors(&tasks->descriptors);
	tasks->pids = calloc(count, sizeof(*tasks->pids));
	tasks->statuses = calloc(count, sizeof(*tasks->statuses));
	/* for each task: two outputs, two files, and its input; then stdin, and the signals */
	tasks->fds = calloc(5 * count + 8, sizeof(*tasks->fds));
	r = tasks->pids && tasks->statuses && tasks->fds ? open_signals(tasks) : -ENOMEM;
	if (r == 0)
		r = task_output_open(&tasks->output, &tasks->order, &why);
	if (r == 0)
		r = task_input_open(&tasks->input, &tasks->order, &why);
	if (r == -EMFILE)
		diag("cannot start %zu tasks: their pipes and files are more than the hard limit of "
		     "%llu open files (ulimit -Hn); raise it, or run fewer tasks",
			count, (unsigned long long)tasks->descriptors.rlim_max);
	else if (r < 0)
		diag("%s", why.text[0] ? why.text : strerror(-r));
	return r;
}

/*
 * The shell of --setup becomes this program, so a command that is a line for a shell has not met
 * one.  Such a line is one word with blanks or operators of a shell, and no program.
 */
static void find_line(struct task_order *order)
{
	static char shell[] = "sh", minus_c[] = "-c";
	static char *words[] = { shell, minus_c, NULL, NULL };
	char *line = order->command[0], program[PATH_MAX];

	if (order->command[1] || !line[strcspn(line, " \t\n|&;<>()$`")] ||
		find_program(line, program) == 0)
		return;
	words[2] = line;
	order->command = words;
}

/* Whether nothing stands between the one task and the terminal, the files and the shell. */
static bool is_alone(const struct task_order *order)
{
	return order->count == 1 && (order->pty || (!order->labels && !order->out &&
							   !order->err && !order->in));
}

/* Becomes the one task, as gpulease becomes a command without tasks.  Returns if that fails. */
static int become_task(const struct task_order *order, const char *program)
{
	struct why why = WHY_NONE;
	struct task_start start = { .order = order, .program = program };
	int r = task_environment_make(order, 0, &start.environment, &why);

	if (r == 0)
		return task_execute(&start);
	diag("%s", why.text[0] ? why.text : strerror(-r));
	return EXIT_MISUSE;
}

int tasks_main(char **argv)
{
	static struct tasks tasks = { .end_at_ms = INT64_MAX, .kill_at_ms = INT64_MAX };
	struct why why = WHY_NONE;
	char program[PATH_MAX];
	int r = task_order_read(argv, &tasks.order, &why);

	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	diag_setup(0, tasks.order.quiet);
	find_line(&tasks.order);
	r = find_program(tasks.order.command[0], program);
	if (r < 0) {
		diag("cannot execute '%s': %s", tasks.order.command[0], strerror(-r));
		return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
	}
	if (is_alone(&tasks.order))
		return become_task(&tasks.order, program);
	if (tasks_open(&tasks) < 0)
		return EXIT_MISUSE;
	note_output(&tasks.order);
	for (unsigned i = 0; r == 0 && i < tasks.order.count; i++)
		r = start_one(&tasks, i, program);
	if (r < 0)
		end_all(&tasks, SIGKILL);
	if ((tasks.left && watch(&tasks) < 0) || r < 0) {
		signal_all(&tasks, SIGKILL);
		return EXIT_MISUSE;
	}
	return highest_status(&tasks);
}
