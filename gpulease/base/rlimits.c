#include <signal.h>
#include <sys/resource.h>

#include "process_lease.h"
#include "rlimits.h"
#include "record.h"

/* What rlimits_raise() found. */
static struct {
	bool is_raised;
	struct rlimit descriptors, size;
	struct sigaction size_action, child_action, hangup_action, pipe_action;
} before;

/* @limit with its soft limit raised to the hard one, rounded down to a multiple of @step. */
static struct rlimit rlimits_raised(struct rlimit limit, rlim_t step)
{
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_cur != RLIM_INFINITY)
		limit.rlim_cur -= limit.rlim_cur % step;
	return limit;
}

void rlimits_raise(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction usual = { .sa_handler = SIG_DFL };
	struct rlimit limit;

	if (before.is_raised)
		return;
	if (getrlimit(RLIMIT_NOFILE, &before.descriptors) < 0 ||
		getrlimit(RLIMIT_FSIZE, &before.size) < 0)
		return;
	limit = rlimits_raised(before.descriptors, 1);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	limit = rlimits_raised(before.size, RECORD_SIZE);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	(void)sigaction(SIGXFSZ, &ignore, &before.size_action);
	(void)sigaction(SIGCHLD, &usual, &before.child_action);
	(void)sigaction(SIGHUP, NULL, &before.hangup_action);
	(void)sigaction(SIGPIPE, NULL, &before.pipe_action);
	before.is_raised = true;
}

static void rlimits_ignore_signal(int signal)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigaction(signal, &ignore, NULL);
}

void rlimits_ignore_hangup(void)
{
	rlimits_ignore_signal(SIGHUP);
}

void rlimits_ignore_broken_pipe(void)
{
	rlimits_ignore_signal(SIGPIPE);
}

void rlimits_obey_terminal(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTSTP };
	struct sigaction usual = { .sa_handler = SIG_DFL };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		(void)sigaction(signals[i], &usual, NULL);
	before.hangup_action = usual;
}

void rlimits_restore(void)
{
	if (!before.is_raised)
		return;
	(void)setrlimit(RLIMIT_NOFILE, &before.descriptors);
	(void)setrlimit(RLIMIT_FSIZE, &before.size);
	(void)sigaction(SIGXFSZ, &before.size_action, NULL);
	(void)sigaction(SIGCHLD, &before.child_action, NULL);
	(void)sigaction(SIGHUP, &before.hangup_action, NULL);
	(void)sigaction(SIGPIPE, &before.pipe_action, NULL);
	before.is_raised = false;
}

void rlimits_tag_process(uint32_t pid, const char *token)
{
	rlim_t tag = process_lease_tag(token);
	struct rlimit locks;

	if (!tag || prlimit((pid_t)pid, RLIMIT_LOCKS, NULL, &locks) < 0 ||
		(locks.rlim_max != RLIM_INFINITY && locks.rlim_max < tag))
		return;
	locks.rlim_cur = tag;
	(void)prlimit((pid_t)pid, RLIMIT_LOCKS, &locks, NULL);
}

void rlimits_tag(const char *token)
{
	rlimits_tag_process(0, token);
}

void rlimits_untag(void)
{
	struct rlimit locks;

	if (getrlimit(RLIMIT_LOCKS, &locks) < 0)
		return;
	locks.rlim_cur = locks.rlim_max;
	(void)setrlimit(RLIMIT_LOCKS, &locks);
}
