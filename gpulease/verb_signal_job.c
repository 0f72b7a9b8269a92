/*
 * --signal-job: a signal to the command of a job.
 *
 * That is the job's owner or, of a supervised job, the process that its lease or ticket names as
 * the command, also once its supervisor is dead.
 * It goes through a pidfd to the process that was looked at, never to its successor; where the
 * kernel has none, to the pid.  Nothing is written.
 */
#include <errno.h>
#include <signal.h>

#include "aim.h"
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

/* The command that the job's supervisor has started last, by the lease if the job has one. */
static const struct command *command_of_job(void)
{
	return target.lease && target.lease->runs.pid ? &target.lease->runs
						      : &target.ticket.runs;
}

/*
 * Opens the command of a supervisor that has noted only its pid: the command still has to be a
 * child of the supervisor.  A pidfd or a negative errno; -EACCES: /proc hides the process with
 * that pid.
 */
static int open_child(const struct owner *owner, uint32_t pid)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat stat;

	if (pidfd == -ESRCH)
		return pidfd;
	/* read behind the pidfd: so it is of that process, or of none that matters */
	if (process_stat_read(pid, &stat) < 0)
		return process_has_vanished(pid) ? -ESRCH : -EACCES;
	if (stat.parent != owner->pid || process_has_ended(&stat))
		return -ESRCH;
	return take_fd(&pidfd);
}

/* Opens the command of the supervisor @owner, which may be dead.  As open_child(). */
static int open_command(const struct owner *owner)
{
	const struct command *command = command_of_job();
	struct owner process = owner_as_command(owner, command);
	autofd int pidfd = -1;

	if (!command->pid)
		return -ESRCH;
	if (!command->inode && !command->start)
		return open_child(owner, command->pid);
	switch (owner_judge(&process, target.context.dir.pidns, &pidfd)) {
	case OWNER_ALIVE:
		return pidfd < 0 ? -ENOSYS : take_fd(&pidfd);
	case OWNER_UNDECIDED:
		return -EACCES;
	case OWNER_DEAD:
		break;
	}
	return -ESRCH;
}

/* The real user that a process of the job has to have. */
static uint32_t user_of(const struct owner *owner)
{
	return target.context.settings->force ? PROCESS_ANY_USER : owner->uid;
}

/* Signals process @pid of the job.  Returns the exit status. */
static int send_signal(const struct owner *owner, uint32_t pid, int pidfd, int signal)
{
	int r = aim_check(&target.context, "job", target.job.job, owner, pid);

	if (r != 0)
		return r;
	r = process_signal(pid, pidfd, user_of(owner), signal);
	if (r == -ESRCH)
		return refuse("has just ended");
	if (r == -EPERM || r == PROCESS_OF_ANOTHER)
		return refuse("runs a command that may not be signalled by its user");
	return r < 0 ? refuse(strerror(-r)) : EXIT_DONE;
}

static int signal_command(
	const struct owner *owner, bool is_alive, int owner_fd, int signal)
{
	autofd int pidfd = open_command(owner);

	if (pidfd == -ESRCH)
		return refuse(is_alive ? "has no command that runs, just now"
				       : "has lost the process that looked after it, and "
					 "its command has ended");
	if (pidfd == -EACCES)
		return refuse("runs a command that /proc hides from its user");
	/* the terminal stops both the supervisor and its command */
	if (is_alive && signal == SIGCONT)
		(void)!process_signal(owner->pid, owner_fd, user_of(owner), signal);
	return send_signal(owner, command_of_job()->pid, pidfd, signal);
}

static int signal_job(const struct owner *owner, int signal)
{
	bool is_alive;
	autofd int owner_fd = -1;

	if (owner->pidns != target.context.dir.pidns)
		return refuse("runs in another pid namespace; signal it from there");
	is_alive = owner_judge(owner, target.context.dir.pidns, &owner_fd) != OWNER_DEAD;
	if (target.ticket.request.is_supervised)
		return signal_command(owner, is_alive, owner_fd, signal);
	if (!is_alive)
		return refuse("has ended; what it left behind is not its command");
	return send_signal(owner, owner->pid, owner_fd, signal);
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
	return signal_job(owner, settings->signal);
}
