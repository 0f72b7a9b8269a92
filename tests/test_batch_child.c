/* The processes of the jobs of a batch: what they report, and how they are ended. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "batch_child.h"
#include "batch_member.h"
#include "command_line.h"
#include "launch.h"
#include "privacy.h"
#include "sampler.h"
#include "scratch.h"

#define GIVEN(what) (1u << BATCH_##what)

/* One simulated GPU, and a journal in the folder of the test. */
static struct settings defaults;
static struct batch_journal journal;
static struct batch_launcher launcher;
static char place[64];

/* Children that were not reaped yet; the teardown of a failed test ends them. */
static pid_t children[4];

static int setup(void **state)
{
	static const char *const argv[] = { "gpulease", "--sim", "1x8G", "--batch",
		"jobs.txt", NULL };
	int r = scratch_setup(state);
	const struct scratch *scratch = *state;
	struct why why = WHY_NONE;
	char *words[ARRAY_SIZE(argv)];

	if (r < 0)
		return r;
	text_copy(place, sizeof(place), scratch->path);
	(void)setenv("XDG_STATE_HOME", place, 1);
	(void)setenv("GPULEASE_DIR", "", 1);
	memcpy(words, argv, sizeof(argv));
	r = chdir(place);
	if (r == 0)
		r = command_line_parse(words, &defaults, &why);
	journal = BATCH_JOURNAL_NONE;
	if (r == 0)
		r = batch_journal_open("logs", &journal, &why);
	launcher = (struct batch_launcher){ .defaults = &defaults, .journal = &journal };
	(void)sigprocmask(SIG_SETMASK, NULL, &launcher.mask);
	return r;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		if (children[i] && kill(children[i], SIGTERM) == 0)
			(void)waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
	batch_journal_release(&journal);
	return chdir("/") < 0 ? -1 : scratch_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* --- a job and its events ---------------------------------------------------------- */

enum { EVENTS_MAX = 16 };

struct told {
	struct batch_job job;
	struct batch_line line;
	struct batch_event events[EVENTS_MAX];
	size_t count;
	int wait_status;
};

static void start(struct told *told, uint64_t number, const char *command)
{
	static char no_name[] = "";

	told->line.command = command;
	told->job.number = number;
	told->job.line = &told->line;
	told->job.name = no_name;
	told->job.command = (char *)command;
	told->job.fd = -1;
	assert_int_equal(batch_child_start(&launcher, &told->job), 0);
	assert_true(told->job.pid > 0 && told->job.fd >= 0);
	assert_int_equal(told->job.state, BATCH_IN_QUEUE);
	children[number % ARRAY_SIZE(children)] = told->job.pid;
}

/* Returns the next event; NULL: the job has ended. */
static const struct batch_event *hear(struct told *told)
{
	struct pollfd poll_fd = { told->job.fd, POLLIN, 0 };
	static char lines[EVENTS_MAX][4096];
	struct batch_event *event = &told->events[told->count];
	ssize_t size;

	assert_true(told->count < EVENTS_MAX);
	assert_int_equal(poll(&poll_fd, 1, -1), 1);
	size = recv(told->job.fd, lines[told->count], sizeof(lines[0]), 0);
	if (size <= 0)
		return NULL;
	assert_int_equal(lines[told->count][size - 1], '\n');
	assert_int_equal(
		batch_event_parse(lines[told->count], (size_t)size - 1, event), 0);
	assert_int_equal(event->job, told->job.number);
	told->count++;
	return event;
}

static const struct batch_event *hear_until(struct told *told, enum batch_event_kind kind)
{
	for (;;) {
		const struct batch_event *event = hear(told);

		assert_non_null(event);
		if (event->kind == kind)
			return event;
	}
}

static void await(struct told *told)
{
	assert_int_equal(waitpid(told->job.pid, &told->wait_status, 0), told->job.pid);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i] == told->job.pid)
			children[i] = 0;
}

/* Reads events until the job has ended; returns the last one, NULL if there was none. */
static const struct batch_event *hear_out(struct told *told)
{
	while (hear(told))
		;
	close_fd(&told->job.fd);
	await(told);
	return told->count ? &told->events[told->count - 1] : NULL;
}

static void assert_exited(const struct told *told, int status)
{
	assert_true(WIFEXITED(told->wait_status));
	assert_int_equal(WEXITSTATUS(told->wait_status), status);
}

static const struct batch_event *find(const struct told *told, enum batch_event_kind kind)
{
	for (size_t i = 0; i < told->count; i++)
		if (told->events[i].kind == kind)
			return &told->events[i];
	return NULL;
}

static const char *content(const char *path)
{
	static char text[16384];
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

/* Counts the events of this kind of job @number in the journal; sets *@ret to the last one. */
static unsigned read_journal(const char *word, uint64_t number, struct batch_event *ret)
{
	autofree char *text = strdup(content("logs/journal.jsonl"));
	char *rest = text, *line;
	unsigned count = 0;

	assert_non_null(text);
	while ((line = strsep(&rest, "\n"))) {
		struct batch_event event;

		if (!*line)
			continue;
		assert_int_equal(batch_event_parse(line, strlen(line), &event), 0);
		if (event.job != number || !event.kind ||
			strcmp(batch_event_word(event.kind), word) != 0)
			continue;
		count++;
		*ret = event;
	}
	return count;
}

static unsigned count_in_journal(const char *word, uint64_t number)
{
	struct batch_event event;

	return read_journal(word, number, &event);
}

static const struct batch_event *find_in_journal(const char *word, uint64_t number)
{
	static struct batch_event event;

	assert_int_equal(read_journal(word, number, &event), 1);
	return &event;
}

/* A job that has the GPU until let_go(), and one that waits for it. */
static void start_holder(struct told *holder, uint64_t number)
{
	assert_int_equal(mkfifo("gate", 0600), 0);
	start(holder, number, "read word < gate");
	(void)hear_until(holder, BATCH_STARTED);
}

static void open_gate(void)
{
	autofd int fd = open("gate", O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "go\n", 3), 3);
}

static void let_go(struct told *holder)
{
	open_gate();
	if (holder->job.fd < 0)
		await(holder);
	else
		assert_int_equal(hear_out(holder)->status, 0);
	assert_exited(holder, 0);
}

static void start_waiter(struct told *waiter, uint64_t number)
{
	start(waiter, number, "touch has-run");
	(void)hear_until(waiter, BATCH_WAITING);
}

static void assert_left_without_a_trace(const struct told *waiter)
{
	assert_exited(waiter, 124);
	assert_null(find(waiter, BATCH_STARTED));
	assert_null(find(waiter, BATCH_OVER));
	assert_int_equal(count_in_journal("started", waiter->job.number), 0);
	assert_int_equal(count_in_journal("ended", waiter->job.number), 0);
	assert_int_equal(access("has-run", F_OK), -1);
}

/* --- ends by itself ---------------------------------------------------------------- */

static void a_job_reports_its_ticket_its_start_and_its_end(void **state)
{
	struct told told = { .count = 0 };
	const struct batch_event *end;
	char link[PATH_MAX];

	(void)state;
	/* -D changes to a folder from which the relative name is wrong */
	defaults.environment.chdir = "/";
	start(&told, 7, "echo said by it; echo $GPULEASE_GPUS");
	end = hear_out(&told);
	assert_non_null(end);
	assert_exited(&told, 0);
	assert_int_equal(told.events[0].kind, BATCH_QUEUED);
	assert_true(told.events[0].ticket > 0);
	assert_non_null(find(&told, BATCH_STARTED));
	assert_int_equal(find(&told, BATCH_STARTED)->owner.pid, (uint32_t)told.job.pid);
	assert_int_equal(find(&told, BATCH_STARTED)->ticket, told.events[0].ticket);
	assert_string_equal(find(&told, BATCH_STARTED)->gpus, "0");
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->cause, BATCH_ITSELF);
	assert_int_equal(end->status, 0);
	assert_false(end->is_interrupted);
	assert_int_equal(count_in_journal("started", 7), 1);
	assert_int_equal(count_in_journal("ended", 7), 1);
	/* --log finds the log by the id */
	(void)snprintf(link, sizeof(link), "gpulease/sim-1x8192/logs/%llu.log",
		(unsigned long long)end->ticket);
	assert_non_null(strstr(content(link), "said by it\n0\n"));
}

static void the_end_says_how_the_command_ended(void **state)
{
	static const struct {
		const char *command;
		int status, signal;
	} cases[] = {
		{ "exit 3", 3, 0 },
		{ "no-such-program-anywhere", 127, 0 },
		{ "kill -9 $$", 137, 9 },
		{ "kill -15 $$", 143, 15 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct told told = { .count = 0 };
		const struct batch_event *end;

		start(&told, i + 1, cases[i].command);
		end = hear_out(&told);
		assert_non_null(end);
		assert_int_equal(end->kind, BATCH_OVER);
		assert_int_equal(end->status, cases[i].status);
		assert_int_equal(end->cause, BATCH_ITSELF);
		assert_false(end->is_interrupted);
		if (cases[i].signal)
			assert_int_equal(WTERMSIG(told.wait_status), cases[i].signal);
		else
			assert_exited(&told, cases[i].status);
		assert_int_equal(count_in_journal("ended", i + 1), 1);
	}
}

static void a_job_that_can_never_start_says_why(void **state)
{
	struct told told = { .count = 0 };
	const struct batch_event *end;

	(void)state;
	told.line.attributes =
		(struct batch_attributes){ .given = GIVEN(GPUS), .gpus = 9 };
	start(&told, 1, "true");
	end = hear_out(&told);
	assert_exited(&told, 125);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->cause, BATCH_NOT_RUN);
	assert_int_equal(end->status, 125);
	assert_non_null(strstr(end->text, "9 GPUs"));
	assert_null(find(&told, BATCH_STARTED));
}

static void out_of_memory_is_retried_with_more(void **state)
{
	struct told told = { .count = 0 };
	const struct batch_event *attempt, *end;

	(void)state;
	told.line.attributes = (struct batch_attributes){
		.given = GIVEN(RETRIES) | GIVEN(VRAM),
		.oom_retries = 1,
		.vram_mib = 2000,
	};
	start(&told, 1,
		"test -e second && exit 0; touch second; echo CUDA out of memory; exit 1");
	end = hear_out(&told);
	assert_exited(&told, 0);
	attempt = find(&told, BATCH_ATTEMPT);
	assert_non_null(attempt);
	assert_int_equal(attempt->cause, BATCH_BY_OOM);
	assert_int_equal(attempt->status, 1);
	assert_int_equal(attempt->attempt, 1);
	assert_int_equal(attempt->vram_mib, 2000);
	assert_int_equal(attempt->next_mib, 2500);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->status, 0);
	assert_int_equal(end->attempt, 2);
	assert_int_equal(end->declared_mib, 2000);
	assert_int_equal(end->vram_mib, 2500);
	assert_int_equal(count_in_journal("started", 1), 2);
	assert_int_equal(count_in_journal("attempt", 1), 1);
	assert_int_equal(count_in_journal("ended", 1), 1);
}

/* --- over several runs ------------------------------------------------------------- */

static void what_lack_of_memory_has_taught_is_kept_unless_the_line_was_changed(
	void **state)
{
	static const struct {
		uint64_t says, said, was, declares;
	} cases[] = {
		{ 2000, 2000, 2500, 2500 },
		{ 3000, 2000, 2500, 3000 },
		{ 1000, 2000, 2500, 1000 },
		{ 2000, 0, 0, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct told told = { .job = { .declared_mib = cases[i].said,
					     .vram_mib = cases[i].was } };

		told.line.attributes = (struct batch_attributes){ .given = GIVEN(VRAM),
			.vram_mib = cases[i].says };
		start(&told, i + 1, "true");
		(void)hear_out(&told);
		assert_int_equal(find(&told, BATCH_STARTED)->declared_mib, cases[i].says);
		assert_int_equal(find(&told, BATCH_STARTED)->vram_mib, cases[i].declares);
	}
}

static void used_up_retries_stay_used_up(void **state)
{
	struct told told = { .job = { .oom_count = 2 } };

	(void)state;
	told.line.attributes = (struct batch_attributes){
		.given = GIVEN(RETRIES) | GIVEN(VRAM),
		.oom_retries = 2,
		.vram_mib = 2000,
	};
	start(&told, 1, "echo CUDA out of memory; exit 1");
	assert_int_equal(hear_out(&told)->kind, BATCH_OVER);
	assert_null(find(&told, BATCH_ATTEMPT));
	assert_int_equal(told.events[told.count - 1].cause, BATCH_BY_OOM);
}

/* --- ended by others --------------------------------------------------------------- */

static void a_recalled_job_leaves_without_a_trace(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };

	(void)state;
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	batch_child_recall(&waiter.job);
	assert_true(waiter.job.is_recalled);
	(void)hear_out(&waiter);
	assert_left_without_a_trace(&waiter);
	/* a recall does not concern a running job */
	batch_child_recall(&holder.job);
	let_go(&holder);
}

static void without_a_runner_a_waiting_job_leaves_and_a_running_one_goes_on(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };

	(void)state;
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	close_fd(&holder.job.fd);
	close_fd(&waiter.job.fd);
	await(&waiter);
	assert_left_without_a_trace(&waiter);
	let_go(&holder);
	assert_int_equal(count_in_journal("ended", 1), 1);
}

static void a_stopped_job_is_to_be_run_again(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };
	const struct batch_event *end;

	(void)state;
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	batch_child_stop(&waiter.job);
	(void)hear_out(&waiter);
	assert_left_without_a_trace(&waiter);
	batch_child_stop(&holder.job);
	end = hear_out(&holder);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_true(end->is_interrupted);
	assert_int_equal(end->status, 128 + SIGTERM);
	assert_int_equal(WTERMSIG(holder.wait_status), SIGTERM);
}

static void nothing_is_retried_once_the_runner_ends(void **state)
{
	static const char stop = BATCH_STOP;
	struct told told = { .count = 0 };
	const struct batch_event *end;

	(void)state;
	told.line.attributes = (struct batch_attributes){
		.given = GIVEN(FAIL_RETRIES) | GIVEN(RETRIES) | GIVEN(VRAM),
		.retries = 5,
		.oom_retries = 5,
		.vram_mib = 1000,
	};
	assert_int_equal(mkfifo("gate", 0600), 0);
	start(&told, 1, "read word < gate; echo CUDA out of memory; exit 9");
	(void)hear_until(&told, BATCH_STARTED);
	/* it fails by itself, before TERM has come */
	assert_int_equal(send(told.job.fd, &stop, 1, 0), 1);
	open_gate();
	end = hear_out(&told);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->status, 9);
	assert_true(end->is_interrupted);
	assert_null(find(&told, BATCH_ATTEMPT));
}

static void a_stopped_job_that_ends_with_0_is_done(void **state)
{
	static const char stop = BATCH_STOP;
	struct told told = { .count = 0 };

	(void)state;
	start_holder(&told, 1);
	assert_int_equal(send(told.job.fd, &stop, 1, 0), 1);
	open_gate();
	assert_false(hear_out(&told)->is_interrupted);
	assert_exited(&told, 0);
}

static void without_a_message_of_the_runner_term_ends_the_job(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };

	(void)state;
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	assert_int_equal(kill(waiter.job.pid, SIGTERM), 0);
	(void)hear_out(&waiter);
	assert_true(WIFSIGNALED(waiter.wait_status));
	assert_int_equal(WTERMSIG(waiter.wait_status), SIGTERM);
	assert_int_equal(kill(holder.job.pid, SIGTERM), 0);
	assert_false(hear_out(&holder)->is_interrupted);
	assert_int_equal(WTERMSIG(holder.wait_status), SIGTERM);
}

static void a_job_that_outlived_its_runner_is_stopped_by_the_next(void **state)
{
	struct told told = { .count = 0 };

	(void)state;
	start_holder(&told, 1);
	close_fd(&told.job.fd);
	/* as the next runner finds it in the journal */
	told.job = (struct batch_job){ .number = 1,
		.state = BATCH_RUNNING,
		.owner = find(&told, BATCH_STARTED)->owner,
		.fd = -1 };
	told.job.pid = (pid_t)told.job.owner.pid;
	batch_child_stop(&told.job);
	await(&told);
	assert_int_equal(WTERMSIG(told.wait_status), SIGTERM);
	assert_true(find_in_journal("ended", 1)->is_interrupted);
}

static void a_job_stopped_between_two_attempts_is_to_be_run_again(void **state)
{
	struct told told = { .count = 0 };
	const struct batch_event *end;

	(void)state;
	told.line.attributes =
		(struct batch_attributes){ .given = GIVEN(FAIL_RETRIES), .retries = 5 };
	/* the next attempt is some seconds away */
	start(&told, 1, "exit 4");
	(void)hear_until(&told, BATCH_ATTEMPT);
	batch_child_stop(&told.job);
	end = hear_out(&told);
	assert_exited(&told, 124);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->status, 4);
	assert_true(end->is_interrupted);
	assert_int_equal(count_in_journal("ended", 1), 1);
}

static void assert_cancels(uint64_t ticket)
{
	int status;
	pid_t pid = batch_child_cancel(&launcher, &ticket, 1, 10000);

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_cancelled_job_says_so_whether_it_runs_or_waits(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };
	const struct batch_event *end;
	char by[64];
	struct text name = TEXT_ON(by);

	(void)state;
	describe_user(getuid(), NULL, &name);
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	assert_cancels(find(&waiter, BATCH_QUEUED)->ticket);
	end = hear_out(&waiter);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->cause, BATCH_BY_CANCEL);
	assert_string_equal(end->text, by);
	assert_int_equal(end->status, 128 + SIGTERM);
	assert_false(end->is_interrupted);
	assert_cancels(find(&holder, BATCH_QUEUED)->ticket);
	end = hear_out(&holder);
	assert_int_equal(end->kind, BATCH_OVER);
	assert_int_equal(end->cause, BATCH_BY_CANCEL);
	assert_string_equal(end->text, by);
	assert_false(end->is_interrupted);
}

/* --- what it holds ----------------------------------------------------------------- */

static bool lock_is_free(void)
{
	autofd int fd = open("logs/lock", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void only_jobs_that_have_not_started_hold_the_lock(void **state)
{
	struct told holder = { .count = 0 }, waiter = { .count = 0 };
	struct batch_journal kept;

	(void)state;
	start_holder(&holder, 1);
	start_waiter(&waiter, 2);
	kept = journal;
	journal.lock_fd = -1;
	close_fd(&kept.lock_fd);
	assert_false(lock_is_free());
	batch_child_recall(&waiter.job);
	(void)hear_out(&waiter);
	/* an exiting process closes its pipe before its lock */
	for (int i = 0; i < 1000 && !lock_is_free(); i++)
		(void)poll(NULL, 0, 10);
	assert_true(lock_is_free());
	let_go(&holder);
}

static void the_command_inherits_nothing_of_the_runner(void **state)
{
	struct told told = { .count = 0 };
	autofd int fd = open("kept", O_RDWR | O_CREAT, 0600);

	(void)state;
	assert_true(fd >= 0);
	/* the FIFO of the lease has a high number */
	start(&told, 1,
		"for f in /proc/$$/fd/*; do "
		"case $(readlink $f) in */kept|*socket*|*journal*|*lock) exit 9;; esac; done; "
		"test $(readlink /proc/$$/fd/0) = /dev/null && "
		"test \"$(cut -d ' ' -f 6 /proc/$PPID/stat)\" = $PPID");
	(void)hear_out(&told);
	assert_exited(&told, 0);
}

static void no_start_without_a_journal(void **state)
{
	struct told told = { .count = 0 };
	const struct batch_event *last;
	int was = journal.fd;

	(void)state;
	journal.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	start(&told, 1, "touch has-run");
	last = hear_out(&told);
	close_fd(&journal.fd);
	journal.fd = was;
	/* the job itself is fine, so it is put off */
	assert_exited(&told, 124);
	assert_int_equal(last->kind, BATCH_WAITING);
	assert_non_null(strstr(last->text, "journal of the batch: No space left"));
	assert_null(find(&told, BATCH_OVER));
	assert_int_equal(access("has-run", F_OK), -1);
}

static void a_recall_at_the_last_moment_counts(void **state)
{
	static const char recall = BATCH_RECALL;
	static struct broker broker;
	struct told told = { .count = 0 };
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(send(ends[0], &recall, 1, 0), 1);
	told.job.pid = fork();
	if (told.job.pid == 0) {
		struct launch launch = { .live_fd = -1 };
		struct batch_member member = {
			.number = 1, .runner_fd = ends[1], .journal_fd = -1, .lock_fd = -1
		};

		batch_member_begin(&member);
		_exit(member.observer.starts(&member, &broker, &launch, 0) == -ECANCELED
				? 0
				: 1);
	}
	close_fd(&ends[0]);
	close_fd(&ends[1]);
	await(&told);
	assert_exited(&told, 0);
}

static void memory_is_reported_as_it_changes(void **state)
{
	static const uint64_t used[] = { 0, 100, 300, 355, 356, 356, 101, 100, 5000, 0 };
	static const uint64_t worth[] = { 100, 356, 100, 5000, 0 };
	static struct sampler sampler = { .gpu_count = 1 };
	const struct batch_event *event;
	struct told told = { .job = { .number = 3 } };
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	told.job.fd = ends[0];
	told.job.pid = fork();
	if (told.job.pid == 0) {
		struct batch_member member = {
			.number = 3, .runner_fd = ends[1], .journal_fd = -1, .lock_fd = -1
		};

		batch_member_begin(&member);
		member.last = BATCH_EVENT_OF(BATCH_STARTED, 3);
		member.last.ticket = 7;
		member.last.vram_mib = 4000;
		text_copy(member.last.gpus, sizeof(member.last.gpus), "0,1");
		sampler.gpus[0].peak_mib = 6000;
		for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
			sampler.gpus[0].now_mib = used[i];
			member.observer.sampled(&member, &sampler);
		}
		sampler.gpus[0].now_mib = 5500;
		text_copy(sampler.gpus[0].name.text, sizeof(sampler.gpus[0].name.text),
			"1");
		member.observer.exceeds(&member, &sampler.gpus[0]);
		_exit(0);
	}
	close_fd(&ends[1]);
	for (size_t i = 0; i < ARRAY_SIZE(worth); i++) {
		event = hear_until(&told, BATCH_MEMORY);
		assert_int_equal(event->used_mib, worth[i]);
		assert_int_equal(event->peak_mib, 6000);
		assert_int_equal(event->ticket, 7);
	}
	event = hear_until(&told, BATCH_EXCESS);
	assert_string_equal(event->gpus, "1");
	assert_int_equal(event->used_mib, 5500);
	assert_int_equal(event->vram_mib, 4000);
	assert_int_equal(event->ticket, 7);
	assert_null(hear(&told));
	close_fd(&told.job.fd);
	await(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_reports_its_ticket_its_start_and_its_end),
		TEST(the_end_says_how_the_command_ended),
		TEST(a_job_that_can_never_start_says_why),
		TEST(out_of_memory_is_retried_with_more),
		TEST(what_lack_of_memory_has_taught_is_kept_unless_the_line_was_changed),
		TEST(used_up_retries_stay_used_up),
		TEST(a_recalled_job_leaves_without_a_trace),
		TEST(without_a_runner_a_waiting_job_leaves_and_a_running_one_goes_on),
		TEST(a_stopped_job_is_to_be_run_again),
		TEST(nothing_is_retried_once_the_runner_ends),
		TEST(a_stopped_job_that_ends_with_0_is_done),
		TEST(without_a_message_of_the_runner_term_ends_the_job),
		TEST(a_job_that_outlived_its_runner_is_stopped_by_the_next),
		TEST(a_job_stopped_between_two_attempts_is_to_be_run_again),
		TEST(a_cancelled_job_says_so_whether_it_runs_or_waits),
		TEST(only_jobs_that_have_not_started_hold_the_lock),
		TEST(the_command_inherits_nothing_of_the_runner),
		TEST(no_start_without_a_journal),
		TEST(a_recall_at_the_last_moment_counts),
		TEST(memory_is_reported_as_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
