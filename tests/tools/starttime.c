/*
 * starttime: how long a program takes from its start to its end.
 *
 *	starttime COUNT PROGRAM ARG…
 *
 * Runs the program COUNT times, one after the other, and prints two lines of microseconds: the
 * time that passed and the CPU time, each the lower quartile, which other load on the machine
 * touches least.
 */
#include "tool.h"

#include <sys/resource.h>

enum { COUNT_MAX = 1000 };

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t us_of(struct timeval span)
{
	return (int64_t)span.tv_sec * 1000000 + span.tv_usec;
}

static void run_once(char **argv, int64_t *ret_passed_us, int64_t *ret_used_us)
{
	int64_t begun_ns = now_ns();
	pid_t pid = fork();
	struct rusage usage;
	int status;

	if (pid == 0) {
		(void)execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
		die("'%s' has failed", argv[0]);
	*ret_passed_us = (now_ns() - begun_ns) / 1000;
	*ret_used_us = us_of(usage.ru_utime) + us_of(usage.ru_stime);
}

int main(int argc, char **argv)
{
	static int64_t passed_us[COUNT_MAX], used_us[COUNT_MAX];
	uint64_t count;

	tool_init();
	count = argc >= 3 ? number(argv[1], "COUNT") : 0;
	if (!count || count > COUNT_MAX)
		die("usage: starttime COUNT PROGRAM ARG...");
	for (uint64_t i = 0; i < count; i++)
		run_once(argv + 2, &passed_us[i], &used_us[i]);
	qsort(passed_us, count, sizeof(*passed_us), ascending);
	qsort(used_us, count, sizeof(*used_us), ascending);
	(void)printf("%lld\n%lld\n", (long long)passed_us[count / 4],
		(long long)used_us[count / 4]);
	return fflush(stdout) ? 1 : 0;
}
