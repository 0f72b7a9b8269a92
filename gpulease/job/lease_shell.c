#include <errno.h>
#include <sys/stat.h>

#include "childenv.h"
#include "commit.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_environment.h"
#include "lease_heir.h"
#include "lease_shell.h"

/* --- which shell ------------------------------------------------------------------- */

/*
 * Finds the shell that evaluates the output: the farthest ancestor that has the other end of the
 * pipe that is our stdout.  Nearer ancestors may be subshells, as in "$(gpulease … || echo
 * false)"; they end in a moment, and in some shells they have the other end as well.  If stdout is
 * no pipe, or the ancestors' descriptors cannot be read, it is our parent.  Returns 0 if no
 * ancestor reads the pipe.
 */
static uint32_t shell_find_reader(void)
{
	uint32_t pid = (uint32_t)getppid(), reader = 0;
	struct process_stat process;
	struct stat pipe;
	int r = 0;

	if (fstat(STDOUT_FILENO, &pipe) < 0 || !S_ISFIFO(pipe.st_mode))
		return pid;
	while (pid && (r = process_reads_from(pid, &pipe)) >= 0 && (r > 0 || !reader)) {
		if (r > 0)
			reader = pid;
		pid = process_stat_read(pid, &process) == 0 ? process.parent : 0;
	}
	return !reader && r < 0 ? (uint32_t)getppid() : reader;
}

static int refuse_without_reader(void)
{
	diag("cannot find the shell: no caller of gpulease reads its output; name the shell: "
	     "gpulease --shell --pid $$");
	return EXIT_MISUSE;
}

int lease_shell_find(const struct run_request *request, struct broker *broker)
{
	static struct owner heir;
	uint32_t pid = request->adopt_pid ? request->adopt_pid : shell_find_reader();
	int r;

	if (!pid)
		return refuse_without_reader();
	r = lease_heir_find(pid, false, &heir);
	if (r != 0)
		return r;
	broker->input.heir = &heir;
	broker->input.heir_is_shell = true;
	return 0;
}

/* --- what the shell evaluates ------------------------------------------------------ */

/* Prints @value in single quotes, in which only a single quote itself is special. */
static void print_quoted(const char *value)
{
	(void)putchar('\'');
	for (; *value; value++) {
		if (*value == '\'')
			(void)fputs("'\\'", stdout);
		(void)putchar(*value);
	}
	(void)putchar('\'');
}

static int print_variables(const struct launch *launch)
{
	const struct childenv_change *change;
	size_t count;

	for (change = job_environment_variables(launch, &count); count > 0;
		change++, count--) {
		(void)printf(change->value ? "export %s=" : "unset %s", change->name);
		if (change->value)
			print_quoted(change->value);
		(void)fputs(";\n", stdout);
	}
	return fflush(stdout) != 0 || ferror(stdout) ? -EIO : 0;
}

int lease_shell_give(const struct launch *launch, struct broker *broker)
{
	struct launch own = *launch;
	int r;

	own.owner = broker->input.heir;
	own.live_fd = broker->heir_fd;
	/*
	 * Look again: while a shell starts a pipeline (gpulease --shell | cat), it has the pipe's
	 * other end itself for a moment and was taken for its reader.
	 */
	if (!launch->context->settings->request.adopt_pid &&
		shell_find_reader() != own.owner->pid)
		r = refuse_without_reader();
	else
		r = lease_heir_look_after(&own, true);
	if (r == 0 && print_variables(&own) < 0) {
		diag("cannot print the variables for the shell; the lease is given back");
		r = EXIT_MISUSE;
	}
	if (r != 0) /* the shell does not get the variables of the lease */
		commit_give_back(&broker->view, own.owner->token,
			&broker->result.verdict.gpus, NULL);
	broker_leave(broker);
	return r;
}

int lease_shell_fail(const struct run_request *request, int status)
{
	if (status && !request->dry_run && !isatty(STDOUT_FILENO))
		(void)printf("(exit %d);\n", status);
	return status;
}
