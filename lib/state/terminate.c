#include <errno.h>
#include <signal.h>

#include "process_lease.h"
#include "terminate.h"

enum { ROUND_MS = 50, ROUND_MAX_MS = 1000 };

/*
 * Returns the process that is the job itself: the owner, or the command of a supervisor that is
 * dead.
 */
static struct owner terminate_find_process(
	const struct termination *termination, const struct liveness *job)
{
	return job->is_orphaned ? owner_as_command(&termination->owner, &job->runs)
				: termination->owner;
}

/*
 * Judges @process, and opens its pidfd.  A process of an inner pid namespace becomes what it is
 * called in this one; its pid becomes 0 if it cannot be seen.
 */
static enum owner_state terminate_judge(
	struct owner *process, uint64_t my_pidns, int *ret_pidfd)
{
	enum owner_state state = owner_judge(process, my_pidns, ret_pidfd);

	if (process->pidns == my_pidns)
		return state;
	state = owner_seek(process, process, ret_pidfd);
	if (state != OWNER_ALIVE)
		process->pid = 0;
	return state;
}

/* Signals @process, which lives, and its process group if it leads one. */
static int terminate_signal_process(const struct termination *termination,
	const struct owner *process, bool is_supervisor, int pidfd, int signal)
{
	uint32_t uid = termination->is_forced ? PROCESS_ANY_USER : process->uid;
	int r = is_supervisor ? process_signal(process->pid, pidfd, uid, signal)
			      : process_signal_group(process->pid, pidfd, uid, signal);

	if (r == 0 && is_supervisor)
		r = process_signal(process->pid, pidfd, uid, SIGCONT);
	return r == -ESRCH ? 0 : r == PROCESS_OF_ANOTHER ? -EPERM : r;
}

/* Signals the job itself and, @with_rest, every other process of its lease. */
static int terminate_signal_all(struct termination *termination,
	const struct liveness *job, uint64_t my_pidns, int signal, bool with_rest)
{
	struct owner process = terminate_find_process(termination, job);
	bool is_dead = liveness_is_dead(job);
	bool is_elsewhere = process.pidns != my_pidns;
	autofd int pidfd = -1;
	enum owner_state state = terminate_judge(&process, my_pidns, &pidfd);
	int r = 0;

	if (!is_dead && state == OWNER_ALIVE) {
		termination->was_alive = termination->was_alive || signal == SIGTERM;
		r = terminate_signal_process(termination, &process,
			termination->is_supervised && !job->is_orphaned, pidfd, signal);
	} else if (!is_dead && state == OWNER_UNDECIDED && is_elsewhere)
		r = -ENOTSUP;
	/* seen from an outer pid namespace, the owner may be dead although its FIFO is held */
	with_rest = with_rest || state == OWNER_DEAD;
	if (r == 0 && with_rest && !termination->is_step)
		(void)process_lease_signal_all(
			process.token, process.uid, signal, process.pid);
	return r;
}

int terminate_step(struct termination *termination, const struct liveness *job,
	uint64_t my_pidns, int64_t now_ms, int64_t *ret_wake_ms)
{
	int64_t pause_ms = ROUND_MS;
	int r = 0;

	if (termination->is_step ? liveness_is_dead(job) : liveness_is_over(job))
		return 0;
	if (!termination->begun_ms) {
		termination->begun_ms = now_ms;
		/* a dead owner passes no TERM on, so what it has left gets it from here */
		r = terminate_signal_all(
			termination, job, my_pidns, SIGTERM, liveness_is_dead(job));
	}
	if (r < 0)
		return r;
	if (now_ms < termination->begun_ms + termination->grace_ms) {
		*ret_wake_ms = termination->begun_ms + termination->grace_ms;
		return TERMINATE_LATER;
	}
	if (!termination->killed_ms)
		termination->killed_ms = now_ms;
	r = terminate_signal_all(termination, job, my_pidns, SIGKILL, true);
	for (unsigned i = 0; i < termination->rounds && pause_ms < ROUND_MAX_MS; i++)
		pause_ms *= 2;
	termination->rounds++;
	*ret_wake_ms = now_ms + pause_ms;
	return r < 0 ? r : TERMINATE_LATER;
}
