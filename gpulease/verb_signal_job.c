/*
 * --signal-job: a signal to the command of a job.
 *
 * That is the job's owner, or the child of it that its ticket names, where it is looked after.
 * It goes through a pidfd to the process that was looked at, never to its successor; where the
 * kernel has none, to the pid.  Nothing is written.
 */
#include <errno.h>
#include <signal.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "operands.h"
#include "outcome.h"
#include "state.h"
#include "verbs.h"

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	struct outcome job;
	struct ticket ticket;      /* its latest */
	const struct lease *lease; /* NULL: it has none */
} target;

static int refuse(const char *because)
{
	diag("job %llu %s", (unsigned long long)target.job.job, because);
	return EXIT_NOT_DONE;
}

/* --- which ------------------------------------------------------------------------- */

/* 0 or an exit status. */
static int find_job(uint64_t number)
{
	uint64_t job;
	int r = outcome_find_job(&target.queue.file, target.queue.end, number, &job);

	target.job = OUTCOME_OF(number);
	if (r == OUTCOME_NO_JOB)
		return refuse("does not exist");
	outcome_begin(&target.look, &target.queue, &target.view, clock_boot_ms());
	if (r == 0)
		r = outcome_judge(&target.job, &target.look, false);
	if (r > 0)
		return refuse("has finished");
	if (r == 0 && (!target.job.has_owner ||
			      ticket_read(&target.queue.file, target.job.latest,
				      &target.ticket) != TICKET_RECORD))
		return refuse("has a ticket that cannot be read");
	if (r < 0)
		return refuse(strerror(-r));
	target.lease = outcome_find_lease(&target.view, target.job.job);
	return 0;
}

static int check_owner(const struct owner *owner)
{
	char name[64];
	struct text text = TEXT_ON(name);

	if (getuid() == 0 || getuid() == owner->uid)
		return 0;
	describe_user(owner->uid, target.ticket.user, &text);
	diag("job %llu belongs to %s; only they and root may signal it",
		(unsigned long long)target.job.job, name);
	return EXIT_NOT_DONE;
}

/* --- whom -------------------------------------------------------------------------- */

/*
 * The command of a supervisor, which has to be its child still.  A pidfd or a negative errno;
 * -EACCES: somebody has that number who is not to be seen.
 */
static int open_command(const struct owner *owner, uint32_t pid)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat stat;

	if (pidfd == -ESRCH)
		return pidfd;
	/* read behind the pidfd: so it is of that process, or of none that matters */
	if (process_stat_read(pid, &stat) < 0)
		return kill((pid_t)pid, 0) < 0 && errno == ESRCH ? -ESRCH : -EACCES;
	if (stat.parent != owner->pid || process_has_ended(&stat))
		return -ESRCH;
	return take_fd(&pidfd);
}

static int signal_command(const struct owner *owner, int signal)
{
	uint32_t pid = owner->pid;
	autofd int owner_fd = -1, command_fd = -1;
	int r;

	if (owner->pidns != target.context.dir.pidns)
		return refuse("runs in another pid namespace; signal it from there");
	if (owner_judge(owner, target.context.dir.pidns, &owner_fd) == OWNER_DEAD)
		return refuse(
			target.ticket.request.is_supervised
				? "has lost the process that looked after it; its "
				  "command is not known any more"
				: "has ended; what it left behind is not its command");
	if (target.ticket.request.is_supervised) {
		pid = target.ticket.command_pid;
		command_fd = pid ? open_command(owner, pid) : -ESRCH;
		if (command_fd == -ESRCH)
			return refuse("has no command that runs, just now");
		if (command_fd == -EACCES)
			return refuse("runs a command that /proc hides from its user");
	}
	/* who suspended it stopped both */
	if (target.ticket.request.is_supervised && signal == SIGCONT)
		(void)!process_signal(owner->pid, owner_fd, signal);
	r = process_signal(
		pid, target.ticket.request.is_supervised ? command_fd : owner_fd, signal);
	if (r == -ESRCH)
		return refuse("has just ended");
	if (r == -EPERM)
		return refuse("runs a command that may not be signalled by its user");
	return r < 0 ? refuse(strerror(-r)) : EXIT_DONE;
}

int verb_signal_job(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(settings->operands, 1, OPERAND_JOB);
	const struct owner *owner;
	struct operand operand;
	int r = state_open(settings, false, &target.context, &target.queue, &target.view);

	if (r != 0)
		return r;
	if (operand_next(&walk, &operand, NULL) != 0)
		return EXIT_MISUSE;
	r = find_job(operand.first);
	if (r != 0)
		return r;
	owner = target.lease ? &target.lease->owner : &target.ticket.owner;
	r = check_owner(owner);
	if (r != 0)
		return r;
	if (!target.lease && target.ticket.state == TICKET_WAITING)
		return refuse(target.job.attempt > 1 ? "waits to be tried again"
						     : "has not started yet");
	if (target.lease && target.lease->is_shell)
		return refuse("is a lease for a shell, and has no command");
	return signal_command(owner, settings->signal);
}
