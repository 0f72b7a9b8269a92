/*
 * closing: executes a command without the descriptors of its parent, as Python's subprocess and
 * multiprocessing do.
 *
 *	closing COMMAND…	all descriptors above 2 are closed
 *	closing --bare COMMAND…	and without the token and the tag of a lease
 */
#include "tool.h"

#include <sys/resource.h>

static void lay_down_signs(void)
{
	struct rlimit locks;

	(void)unsetenv("GPULEASE_TOKEN");
	if (getrlimit(RLIMIT_LOCKS, &locks) < 0)
		die("cannot read a limit: %s", strerror(errno));
	locks.rlim_cur = locks.rlim_max;
	if (setrlimit(RLIMIT_LOCKS, &locks) < 0)
		die("cannot set a limit: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (argc > 1 && strcmp(argv[1], "--bare") == 0) {
		lay_down_signs();
		argv++;
	}
	if (!argv[1])
		die("usage: closing [--bare] COMMAND...");
	for (int fd = STDERR_FILENO + 1; fd < most && fd < 65536; fd++)
		(void)close(fd);
	(void)execvp(argv[1], argv + 1);
	die("cannot execute '%s': %s", argv[1], strerror(errno));
}
