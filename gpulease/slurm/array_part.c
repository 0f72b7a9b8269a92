#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "array_ids.h"
#include "array_part.h"
#include "array_record.h"
#include "array_words.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "option_parser.h"
#include "parse.h"
#include "process_lease.h"
#include "run_gpulease.h"

enum {
	WAITING_MAX = 16, /* in the queue at a time, as with --batch */
	LIVE_MAX = 256,
	AGAIN_MS = 10 * 1000, /* after a task that could not be submitted */
	LOOK_MS = 1000,       /* between looks at the record without inotify */
	FAILURES_MAX = 6,     /* of one task, while no other task lives */
	STARTS_MAX = 10,      /* of the process that runs the array */
	CANCELLED = 128 + SIGTERM,
};

struct array {
	const char *path, *devices, *not_ok; /* options */
	struct array_words words;
	struct array_record record;
	pid_t waiters[ARRAY_TASKS_MAX]; /* `gpulease --wait-for`; 0: none */
	bool is_asked[ARRAY_TASKS_MAX]; /* its end was requested */
	unsigned live, waiting;
	unsigned failures;
	bool is_cancelled;
	int64_t again_ms; /* no task is submitted before */
};

#define TEXT(name_, field)                                                           \
	{                                                                            \
		.kind = OPTION_TEXT, .name = (name_), .metavar = "TEXT", .verbs = 1, \
		.offset = offsetof(struct array, field)                              \
	}

static const struct option_def table[] = {
	TEXT("record", path),
	TEXT("devices", devices),
	TEXT("after-not-ok", not_ok),
	{ .kind = OPTION_END },
};

static struct array array;

/* In the parent: the process that runs the array, and whether a signal asks for the end. */
static volatile sig_atomic_t is_ending;
static volatile pid_t runner;

/* --- the tasks ------------------------------------------------------------------------- */

static unsigned index_of(unsigned place)
{
	return array.record.list.indices[place];
}

/* The operand for the job of a task: its id, or its name while the id is unknown. */
static char *operand_of(unsigned place)
{
	char *out;
	int r = array.record.tasks[place].job
			? asprintf(&out, "%llu",
				  (unsigned long long)array.record.tasks[place].job)
			: asprintf(&out, "%llu_%u", (unsigned long long)array.words.array,
				  index_of(place));

	return r < 0 ? NULL : out;
}

static void end_task(unsigned place, int status)
{
	array.record.tasks[place].has_ended = true;
	array.record.tasks[place].status = status;
	(void)array_record_add(
		&array.record, ARRAY_ENDED, index_of(place), (unsigned)status);
}

/* Starts the process that waits for the end of a task. */
static void await_task(unsigned place)
{
	static char quiet[] = "-Q", option[] = "--wait-for";
	autofree char *operand = operand_of(place);
	char *words[] = { array.words.words[0], quiet, option, operand, NULL };
	pid_t child = operand ? run_gpulease_start(words, -1) : -ENOMEM;

	if (child > 0) {
		array.waiters[place] = child;
		return;
	}
	diag("cannot wait for task %u: %s", index_of(place), strerror(-child));
	array.again_ms = clock_boot_ms() + AGAIN_MS;
}

/*
 * Whether the job of a task that an earlier process began to submit waits or runs, although its id
 * was not recorded.
 */
static bool is_task_live(unsigned place)
{
	static char quiet[] = "-Q", bound[] = "--max-wait=0s", option[] = "--wait-for";
	autofree char *operand = operand_of(place);
	char *words[] = { array.words.words[0], quiet, bound, option, operand, NULL };
	pid_t child;

	(void)setenv(ARRAY_IDS_OFF, "1", 1);
	child = operand ? run_gpulease_start(words, -1) : -ENOMEM;
	(void)unsetenv(ARRAY_IDS_OFF);
	return child > 0 && run_gpulease_await(child) == EXIT_GAVE_UP;
}

/* Notes that a task was not submitted after all. */
static void forget_task(unsigned place)
{
	array.record.tasks[place].is_tried = false;
	(void)array_record_add(&array.record, ARRAY_NOT_TRIED, index_of(place), 0);
}

static void submit_task(unsigned place)
{
	char **words = array_words_make(&array.words, index_of(place));
	uint64_t job = 0;

	(void)array_record_add(&array.record, ARRAY_TRIED, index_of(place), 0);
	if (words && run_gpulease(words, &job) == 0 && job) {
		(void)array_record_add(&array.record, ARRAY_JOB, index_of(place), job);
		array.record.tasks[place].job = job;
		array.record.tasks[place].is_tried = true;
		array.failures = 0;
		await_task(place);
		return;
	}
	forget_task(place);
	/* a queue that is full has room when another task has ended */
	if (!array.live && ++array.failures == FAILURES_MAX) {
		array.failures = 0;
		diag("task %u could not be submitted", index_of(place));
		end_task(place, EXIT_MISUSE);
	} else {
		array.again_ms = clock_boot_ms() + AGAIN_MS;
	}
}

static void count_tasks(void)
{
	array.live = array.waiting = 0;
	for (unsigned i = 0; i < array.record.list.count; i++) {
		const struct array_task *task = &array.record.tasks[i];

		if (!task->is_tried || task->has_ended)
			continue;
		array.live++;
		array.waiting += !task->has_started;
	}
}

static bool has_room(void)
{
	unsigned limit = array.record.list.limit;

	return array.live < (limit && limit < LIVE_MAX ? limit : LIVE_MAX) &&
	       array.waiting < WAITING_MAX && clock_boot_ms() >= array.again_ms;
}

/* Requests the end of the tasks that are cancelled and live. */
static void cancel_tasks(void)
{
	static char quiet[] = "-Q", option[] = "--cancel";
	char *words[ARRAY_TASKS_MAX + 4] = { array.words.words[0], quiet, option };
	unsigned count = 3, first = count;

	for (unsigned i = 0; i < array.record.list.count; i++) {
		const struct array_task *task = &array.record.tasks[i];

		if (!(task->is_cancelled || array.is_cancelled) || task->has_ended ||
			array.is_asked[i])
			continue;
		if (!task->is_tried)
			end_task(i, CANCELLED);
		else if ((words[count] = operand_of(i)))
			count++;
		array.is_asked[i] = true;
	}
	if (count > first)
		(void)!run_gpulease_start(words, -1);
	while (count > first)
		free(words[--count]);
}

/* Does what is due.  Returns how many tasks have not ended. */
static unsigned step(void)
{
	unsigned left = 0;

	if (array_record_read(&array.record) < 0)
		verbose("cannot read '%s'", array.record.path);
	cancel_tasks();
	count_tasks();
	for (unsigned i = 0; i < array.record.list.count; i++) {
		struct array_task *task = &array.record.tasks[i];

		if (task->has_ended)
			continue;
		left++;
		if (!task->is_tried && has_room() && !array.is_cancelled) {
			submit_task(i);
			array.live += task->is_tried;
			array.waiting += task->is_tried;
		} else if (task->is_tried && !array.waiters[i]) {
			await_task(i);
		}
	}
	return left;
}

/* --- the process ----------------------------------------------------------------------- */

/* Reaps the children that have ended. */
static void reap(void)
{
	int status;
	pid_t child;

	while ((child = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < array.record.list.count; i++)
			if (array.waiters[i] == child) {
				array.waiters[i] = 0;
				/* one that was killed says nothing of its task */
				if (WIFEXITED(status))
					end_task(i, WEXITSTATUS(status));
				array.again_ms = 0; /* there may be room now */
			}
}

/* Decides about the tasks of which a killed process left only that it was about to submit them. */
static void recover(void)
{
	(void)!array_record_read(&array.record);
	for (unsigned i = 0; i < array.record.list.count; i++) {
		struct array_task *task = &array.record.tasks[i];

		if (task->is_tried && !task->job && !task->has_ended && !is_task_live(i))
			forget_task(i);
	}
}

static int open_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits until something has happened. */
static void await_change(int signals, int changes)
{
	struct pollfd fds[] = { { signals, POLLIN, 0 }, { changes, POLLIN, 0 } };
	struct signalfd_siginfo signal;
	char events[4096];
	int64_t left_ms = array.again_ms - clock_boot_ms();
	int timeout = left_ms > 0 ? (int)left_ms : changes < 0 ? LOOK_MS : -1;

	(void)poll(fds, ARRAY_SIZE(fds), timeout);
	while (read(signals, &signal, sizeof(signal)) == sizeof(signal))
		if (signal.ssi_signo != SIGCHLD)
			array.is_cancelled = true;
	while (changes >= 0 && read(changes, events, sizeof(events)) > 0)
		continue;
	reap();
}

/* The highest status.  Names the tasks that failed. */
static int report(void)
{
	char words[1024];
	struct text text = TEXT_ON(words);
	int status = 0;

	for (unsigned i = 0; i < array.record.list.count; i++) {
		const struct array_task *task = &array.record.tasks[i];

		if (task->status)
			text_addf(&text, "%s%u (%d)", text.used ? ", " : "", index_of(i),
				task->status);
		status = task->status > status ? task->status : status;
	}
	if (text.used)
		diag("tasks whose exit status is not 0: %s%s", words,
			text.cut ? "..." : "");
	return status;
}

/* Runs the array in this process. */
static int run_tasks(void)
{
	int signals = open_signals(), changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	array.is_cancelled = is_ending;
	if (signals < 0) {
		diag("cannot run the array: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	if (changes >= 0 && inotify_add_watch(changes, array.record.path, IN_MODIFY) < 0)
		close_fd(&changes);
	recover();
	while (step())
		await_change(signals, changes);
	return report();
}

static void pass_on(int signal)
{
	is_ending = 1;
	if (runner > 0)
		(void)kill(runner, signal);
}

/* Runs the array in a child, and in another one if that is killed.  Returns the exit status. */
static int watch_over(void)
{
	struct sigaction action = { .sa_handler = pass_on };
	int status = 0;

	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	for (int i = 0; i < STARTS_MAX && !is_ending; i++) {
		runner = fork();
		if (runner == 0)
			_exit(run_tasks());
		while (runner > 0 && waitpid(runner, &status, 0) < 0 && errno == EINTR)
			continue;
		if (runner > 0 && WIFEXITED(status))
			return WEXITSTATUS(status);
		diag("the process that runs the array was killed%s",
			is_ending ? "" : "; another one goes on");
	}
	return EXIT_MISUSE;
}

/* Gives the tasks the environment of the user, as far as this job has changed it. */
static void restore_environment(void)
{
	static const char *const own[] = { "GPULEASE_ID", PROCESS_LEASE_TOKEN_VARIABLE,
		"GPULEASE_GPUS", "GPULEASE_UUIDS", "GPULEASE_ATTEMPT",
		"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		(void)unsetenv(own[i]);
	if (array.devices)
		(void)setenv("CUDA_VISIBLE_DEVICES", array.devices, 1);
}

int array_main(char **argv)
{
	const char *id = getenv("GPULEASE_ID");
	struct options_result result;
	struct why why = WHY_NONE;
	int r = options_parse(table, argv, &array, &result, &why);

	if (r == 0 && (!result.rest_count || !array.path || !id ||
			      parse_u64(id, INT64_MAX, &array.words.array, NULL) < 0)) {
		why_set(&why, "sbatch starts this program itself");
		r = -EINVAL;
	}
	if (r == 0) {
		r = array_record_open(array.path, &array.record);
		if (r < 0)
			why_set(&why, "cannot open '%s': %s", quote(array.path).text,
				strerror(-r));
	}
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	array.words.words = result.rest;
	array.words.record = array.path;
	array.words.list = &array.record.list;
	restore_environment();
	r = array.not_ok ? run_gpulease_check_failed(array.not_ok) : 0;
	if (r != 0)
		return r;
	return watch_over();
}
