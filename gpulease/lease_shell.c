#include <errno.h>
#include <sys/stat.h>

#include "beacon.h"
#include "childenv.h"
#include "commit.h"
#include "diag.h"
#include "exitcodes.h"
#include "lease_only.h"

/* --- which shell ------------------------------------------------------------------- */

/*
 * Who has made the pipe that we print into is to evaluate what he reads from it: the farthest of
 * our parents that has its other end.  Those in between are subshells, as in
 * "$(gpulease … || echo false)", which are gone in a moment; in some shells they have that end,
 * too.  Where we do not print into a pipe, or nobody is to be seen, it is our parent; 0: somebody
 * else reads it.
 */
static uint32_t find_reader(void)
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

static int miss_reader(void)
{
	diag("none of the processes that have called gpulease reads what it prints; name "
	     "the shell: gpulease --shell --pid $$");
	return EXIT_MISUSE;
}

int lease_find_shell(const struct settings *settings, struct broker *broker)
{
	static struct owner heir;
	uint32_t pid = settings->adopt_pid ? settings->adopt_pid : find_reader();
	int r;

	if (!pid)
		return miss_reader();
	r = lease_name_heir(pid, false, &heir);
	if (r != 0)
		return r;
	broker->heir = &heir;
	broker->heir_is_shell = true;
	return 0;
}

/* --- what it is to evaluate -------------------------------------------------------- */

/* In single quotes nothing means anything but a single quote. */
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

	for (change = launch_variables(launch, &count); count > 0; change++, count--) {
		(void)printf(change->value ? "export %s=" : "unset %s", change->name);
		if (change->value)
			print_quoted(change->value);
		(void)fputs(";\n", stdout);
	}
	return fflush(stdout) != 0 || ferror(stdout) ? -EIO : 0;
}

/* The shell has no use for it: it does not know of it. */
static void give_back(struct broker *broker)
{
	const struct gpuset gpus = broker->verdict.gpus;

	for (int left = 20; left > 0; left--)
		if (commit_release(&broker->view, broker->heir->token, &gpus, NULL) !=
			COMMIT_LOCKED)
			break;
	beacon_ring_all(broker->dir);
}

int lease_to_shell(const struct launch *launch, struct broker *broker)
{
	struct launch own = *launch;
	int r;

	own.owner = broker->heir;
	/* a shell that makes a pipeline has its other end for a moment, until all of it runs */
	if (!launch->context->settings->adopt_pid && find_reader() != own.owner->pid)
		r = miss_reader();
	else
		r = lease_look_after(&own, true);
	if (r == 0 && print_variables(&own) < 0) {
		diag("cannot print the variables for the shell; the lease is given back");
		r = EXIT_MISUSE;
	}
	if (r != 0)
		give_back(broker);
	broker_leave(broker);
	return r;
}

int lease_fail_shell(const struct settings *settings, int status)
{
	if (status && !settings->dry_run && !isatty(STDOUT_FILENO))
		(void)printf("(exit %d);\n", status);
	return status;
}
