#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>

#include "diag.h"
#include "execute.h"
#include "task_start.h"

/* Makes @fds stdin, stdout and stderr.  They are above 2, or are these already. */
static int take_fds(const int fds[3])
{
	for (int target = 0; target < 3; target++)
		if (fds[target] >= 0 && dup2(fds[target], target) < 0)
			return -errno;
	return 0;
}

int task_execute(const struct task_start *start)
{
	struct why why = WHY_NONE;
	int status =
		execute(start->program, start->order->command, start->environment, &why);

	diag("task %u: %s", start->task, why.text);
	return status;
}

static _Noreturn void run(const struct task_start *start, pid_t parent)
{
	(void)(start->is_apart ? setsid() : setpgid(0, start->group));
	/* a parent that ended before this call sends no signal */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)sigprocmask(SIG_SETMASK, &start->mask, NULL);
	if (take_fds(start->fds) < 0)
		_exit(EXIT_FAILURE);
	if (start->descriptors.rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, &start->descriptors);
	_exit(task_execute(start));
}

pid_t task_start(const struct task_start *start)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0)
		run(start, parent);
	if (child < 0)
		return -errno;
	/* both processes set it, because either may be the first to run */
	if (!start->is_apart)
		(void)setpgid(child, start->group ? start->group : child);
	return child;
}
