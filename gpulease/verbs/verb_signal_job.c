/*
 * --signal-job: sends a signal to the command of a job.
 *
 * The command is the job's owner; of a supervised job it is the process that the lease or ticket
 * names as the command, even when the supervisor is dead.  The signal goes through a pidfd to the
 * process that was checked, never to a later process with its pid; a kernel without pidfds gets
 * the pid.  Writes nothing.
 */
#include <errno.h>
#include <signal.h>

#include "exitcodes.h"
#include "job_target.h"
#include "operands.h"
#include "signal_permission.h"
#include "verbs.h"

static struct job_target target;

/* Reports that the job cannot be signalled because it @problem; returns the exit status. */
static int signal_job_refuse(const char *problem)
{
	return job_target_refuse(&target, problem);
}

/* --- the process --------------------------------------------------------------------- */

/*
 * Returns the command that the supervisor started last.  A lease is newer than the ticket, so it
 * decides if it names a command.
 */
static const struct command *signal_job_command(void)
{
	return target.lease && target.lease->runs.pid ? &target.lease->runs
						      : &target.ticket.runs;
}

/*
 * Opens the command of a supervisor that has recorded only its pid.  The pid may have been reused,
 * so the process still has to be a child of the supervisor.  Returns a pidfd, or a negative errno:
 * -ESRCH: the command has ended; -EACCES: /proc hides the process from this user.
 */
static int signal_job_open_child(const struct owner *owner, uint32_t pid)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat stat;

	if (pidfd == -ESRCH)
		return pidfd;
	/* read after the pidfd is open: if the pid is reused in between, the pidfd is a dead one */
	if (process_stat_read(pid, &stat) < 0)
		return process_has_vanished(pid) ? -ESRCH : -EACCES;
	if (stat.parent != owner->pid || process_has_ended(&stat))
		return -ESRCH;
	return take_fd(&pidfd);
}

/*
 * Opens the command of the supervisor @owner, which may be dead.  Returns as
 * signal_job_open_child() does.
 */
static int signal_job_open_command(const struct owner *owner)
{
	const struct command *command = signal_job_command();
	struct owner process = owner_as_command(owner, command);
	autofd int pidfd = -1;

	if (!command->pid)
		return -ESRCH;
	if (!command->inode && !command->start)
		return signal_job_open_child(owner, command->pid);
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

/* Returns the real user id that the process must have; with --force any. */
static uint32_t signal_job_user(const struct owner *owner)
{
	return target.context.settings->verb.force ? PROCESS_ANY_USER : owner->uid;
}

/* Sends @signal to process @pid of the job.  Returns the exit status. */
static int signal_job_send(const struct owner *owner, uint32_t pid, int pidfd, int signal)
{
	int r = signal_permission_check(
		&target.context, "job", target.job.job, owner, pid);

	if (r != 0)
		return r;
	r = process_signal(pid, pidfd, signal_job_user(owner), signal);
	if (r == -ESRCH)
		return signal_job_refuse("has just ended");
	if (r == -EPERM || r == PROCESS_OF_ANOTHER)
		return signal_job_refuse(
			"runs a command that may not be signalled by its user");
	return r < 0 ? signal_job_refuse(strerror(-r)) : EXIT_DONE;
}

/*
 * Signals the command of a supervised job.  @is_alive says whether the supervisor lives; @owner_fd
 * is its pidfd, or -1.  Returns the exit status.
 */
static int signal_job_supervised(
	const struct owner *owner, bool is_alive, int owner_fd, int signal)
{
	autofd int pidfd = signal_job_open_command(owner);

	if (pidfd == -ESRCH)
		return signal_job_refuse(
			is_alive ? "runs no command just now; try again later"
				 : "has lost its supervisor, and its command has "
				   "ended");
	if (pidfd == -EACCES)
		return signal_job_refuse("runs a command that /proc hides from its user");
	/* Ctrl-Z has stopped the supervisor as well: it would not reap the continued command */
	if (is_alive && signal == SIGCONT)
		(void)!process_signal(
			owner->pid, owner_fd, signal_job_user(owner), signal);
	return signal_job_send(owner, signal_job_command()->pid, pidfd, signal);
}

/* Signals the command of the job with the process @owner.  Returns the exit status. */
static int signal_job(const struct owner *owner, int signal)
{
	bool is_alive;
	autofd int owner_fd = -1;

	if (owner->pidns != target.context.dir.pidns)
		return signal_job_refuse(
			"runs in another pid namespace; signal it from there");
	is_alive = owner_judge(owner, target.context.dir.pidns, &owner_fd) != OWNER_DEAD;
	if (target.ticket.request.is_supervised)
		return signal_job_supervised(owner, is_alive, owner_fd, signal);
	if (!is_alive)
		return signal_job_refuse(
			"has ended; the processes that it left are not its command");
	return signal_job_send(owner, owner->pid, owner_fd, signal);
}

int verb_signal_job(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(settings->verb.operands, 1, OPERAND_JOB);
	const struct owner *owner;
	struct operand operand;
	int r = job_target_open(settings, &target);

	if (r != 0)
		return r;
	if (operand_next(&walk, &operand, NULL) != 0)
		return EXIT_MISUSE;
	r = job_target_find(&target, operand.first, "signal");
	if (r != 0)
		return r;
	owner = job_target_owner(&target);
	if (!target.lease && target.ticket.state == TICKET_WAITING)
		return signal_job_refuse(target.job.attempt > 1
						 ? "waits to be tried again"
						 : "has not started yet");
	if (target.lease && target.lease->is_shell)
		return signal_job_refuse("is a lease for a shell, and has no command");
	return signal_job(owner, settings->verb.signal);
}
