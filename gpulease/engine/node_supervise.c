#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "clock.h"
#include "diag.h"
#include "end_notice.h"
#include "exitcodes.h"
#include "job_control.h"
#include "node_supervise.h"
#include "parse.h"
#include "retry_policy.h"
#include "signals.h"
#include "tree.h"

enum { KILL_PAUSE_MS = 100 };

struct supervisor {
	const struct node_order *order;
	struct job_control job_control;
	struct retry_policy policy;
	sigset_t signals, before;
	int signal_fd;
	unsigned attempt; /* from 1 */
	pid_t command;    /* 0: none runs */
	int wait_status;  /* once it has ended */
	bool was_told;    /* a signal has asked this job to end */
	int64_t limit_at_ms, warn_at_ms, kill_at_ms; /* INT64_MAX: never */
	bool is_at_limit;
};

bool node_needs_parent(const struct node_order *order)
{
	return order->limit_ms || order->retries;
}

/* --- signals ------------------------------------------------------------------------------- */

static void take_signals(struct supervisor *s)
{
	static const int taken[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGPIPE, SIGCONT, SIGCHLD };

	(void)sigemptyset(&s->signals);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		(void)sigaddset(&s->signals, taken[i]);
	(void)sigprocmask(SIG_BLOCK, &s->signals, &s->before);
	s->signal_fd = signalfd(-1, &s->signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool asks_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGHUP || signal == SIGINT ||
	       signal == SIGQUIT || signal == SIGPIPE;
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		job_control_forget(&s->job_control, pid);
		if (pid != s->command)
			continue;
		s->command = 0;
		s->wait_status = status;
	}
}

static void obey_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal == SIGCHLD)
			continue;
		s->was_told |= asks_to_end(signal);
		if (s->command &&
			!job_control_reached_all(&s->job_control, s->command, &info))
			(void)kill(s->command, signal);
	}
	job_control_has_read_all(&s->job_control);
	reap(s);
}

/* --- the limit ----------------------------------------------------------------------------- */

/* Reads the processes of the job below this one. */
static int read_tree(const struct supervisor *s, struct tree *tree)
{
	const uint32_t but[] = { (uint32_t)s->job_control.witness.pid,
		(uint32_t)s->job_control.former.pid };

	return tree_read(tree, but, ARRAY_SIZE(but));
}

static void signal_all(const struct supervisor *s, int signal)
{
	struct tree tree = TREE_NONE;

	if (read_tree(s, &tree) == 0)
		(void)tree_signal(&tree, signal, 0);
	tree_release(&tree);
}

static uint64_t job_id(void)
{
	const char *id = getenv("SLURM_JOB_ID");
	uint64_t job = 0;

	(void)!parse_u64(id ? id : "", UINT64_MAX, &job, NULL);
	return job;
}

static void reach_limit(struct supervisor *s, int64_t now_ms)
{
	end_notice_limit(job_id(), false, s->order->limit_ms, s->order->grace_ms);
	s->is_at_limit = true;
	s->limit_at_ms = INT64_MAX;
	s->kill_at_ms = now_ms + s->order->grace_ms;
	signal_all(s, SIGTERM);
	signal_all(s, SIGCONT);
}

static void obey_clock(struct supervisor *s, int64_t now_ms)
{
	if (now_ms >= s->warn_at_ms) {
		s->warn_at_ms = INT64_MAX;
		if (s->command)
			(void)kill(s->command, (int)s->order->warn_signal);
	}
	if (now_ms >= s->limit_at_ms)
		reach_limit(s, now_ms);
	if (now_ms >= s->kill_at_ms) {
		signal_all(s, SIGKILL);
		s->kill_at_ms = now_ms + KILL_PAUSE_MS;
	}
}

static void begin_clock(struct supervisor *s)
{
	int64_t now_ms = clock_boot_ms();

	s->limit_at_ms = s->warn_at_ms = s->kill_at_ms = INT64_MAX;
	if (!s->order->limit_ms)
		return;
	s->limit_at_ms = now_ms + s->order->limit_ms;
	if (s->order->warn_signal)
		s->warn_at_ms = s->limit_at_ms - s->order->warn_ms;
}

/* Waits for a signal, the end of a child or the clock; at the latest until @until_ms. */
static void wait_until(struct supervisor *s, int64_t until_ms)
{
	int64_t now_ms = clock_boot_ms();
	struct pollfd fd = { s->signal_fd, POLLIN, 0 };

	until_ms = min_i64(until_ms, min_i64(s->warn_at_ms, s->limit_at_ms));
	until_ms = min_i64(until_ms, s->kill_at_ms);
	(void)poll(&fd, 1,
		until_ms == INT64_MAX
			? -1
			: (int)max_i64(0, min_i64(until_ms - now_ms, INT32_MAX)));
	obey_signals(s);
	obey_clock(s, clock_boot_ms());
}

/* --- attempts ------------------------------------------------------------------------------ */

/* Runs the command once.  Returns 0 with ->wait_status, or a negative errno. */
static int run_once(struct supervisor *s,
	int (*become)(const void *context, unsigned attempt), const void *context)
{
	s->command = fork();
	if (s->command < 0) {
		s->command = 0;
		return -errno;
	}
	if (s->command == 0) {
		(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
		_exit(become(context, s->attempt));
	}
	while (s->command)
		wait_until(s, INT64_MAX);
	/* what it has left ends with it at the limit */
	while (s->is_at_limit && clock_boot_ms() < s->kill_at_ms) {
		struct tree tree = TREE_NONE;
		bool is_empty = read_tree(s, &tree) < 0 || tree_count(&tree) == 0;

		tree_release(&tree);
		if (is_empty)
			break;
		wait_until(s, clock_boot_ms() + KILL_PAUSE_MS);
	}
	if (s->is_at_limit)
		signal_all(s, SIGKILL);
	return 0;
}

/* What is next after an attempt.  Returns whether there is another one, and waits for it. */
static bool waits_for_next(struct supervisor *s)
{
	struct attempt_end end = {
		.cause = s->is_at_limit ? CAUSE_LIMIT : CAUSE_ITSELF,
		.wait_status = s->wait_status,
		.was_told = s->was_told,
		.is_done = WIFEXITED(s->wait_status) &&
			   WEXITSTATUS(s->wait_status) == s->order->done_status,
	};
	char words[DURATION_SIZE];
	int64_t delay_ms, until_ms;
	uint32_t chance = 0;

	(void)!getrandom(&chance, sizeof(chance), 0);
	if (retry_policy_apply(&s->policy, &end, chance, &delay_ms) == RETRY_NEXT_NOTHING)
		return false;
	format_duration(delay_ms, words);
	note("job %llu is tried again in %s (attempt %u)", (unsigned long long)job_id(),
		words, ++s->attempt);
	until_ms = clock_boot_ms() + delay_ms;
	while (!s->was_told && !s->is_at_limit && clock_boot_ms() < until_ms)
		wait_until(s, until_ms);
	return !s->was_told && !s->is_at_limit;
}

static int exit_status(const struct supervisor *s)
{
	if (s->is_at_limit)
		return EXIT_GAVE_UP;
	return WIFSIGNALED(s->wait_status) ? 128 + WTERMSIG(s->wait_status)
					   : WEXITSTATUS(s->wait_status);
}

int node_supervise(const struct node_order *order,
	int (*become)(const void *context, unsigned attempt), const void *context)
{
	struct supervisor s = { .order = order,
		.attempt = 1,
		.policy = { .retries = (unsigned)order->retries,
			.delay_ms = order->retry_delay_ms,
			.delay_max_ms = order->retry_delay_max_ms } };
	int r;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	take_signals(&s);
	job_control_begin(&s.job_control);
	begin_clock(&s);
	do
		r = run_once(&s, become, context);
	while (r == 0 && waits_for_next(&s));
	job_control_end(&s.job_control);
	if (r < 0) {
		diag("cannot start the command: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	return exit_status(&s);
}
