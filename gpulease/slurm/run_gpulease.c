#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "dependency_list.h"
#include "diag.h"
#include "exitcodes.h"
#include "parse.h"
#include "run_gpulease.h"
#include "slurm_programs.h"

pid_t run_gpulease_start(char **words, int out)
{
	pid_t child = fork();
	sigset_t none;

	if (child != 0)
		return child < 0 ? -errno : child;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (out < 0 || dup2(out, STDOUT_FILENO) >= 0)
		(void)execv(words[0], words);
	diag("cannot execute '%s': %s", words[0], strerror(errno));
	_exit(EXIT_MISUSE);
}

int run_gpulease_await(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_MISUSE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int run_gpulease(char **words, uint64_t *ret_id)
{
	char text[32] = "";
	size_t used = 0;
	ssize_t n = 1;
	int ends[2];
	pid_t child;

	*ret_id = 0;
	if (pipe2(ends, O_CLOEXEC) < 0 ||
		(child = run_gpulease_start(words, ends[1])) < 0) {
		diag("cannot start gpulease: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	(void)close(ends[1]);
	while (n != 0 && used < sizeof(text) - 1) {
		n = read(ends[0], text + used, sizeof(text) - 1 - used);
		if (n > 0)
			used += (size_t)n;
		else if (n < 0 && errno != EINTR)
			break;
	}
	(void)close(ends[0]);
	text[strcspn(text, "\n")] = '\0';
	if (parse_u64(text, UINT64_MAX, ret_id, NULL) < 0)
		*ret_id = 0;
	return run_gpulease_await(child);
}

int run_gpulease_check_failed(const char *ids)
{
	static char gpulease[PATH_MAX], quiet[] = "-Q", option[] = "--wait-for";
	char copy[DEPENDENCY_SIZE], *rest = copy, *id;

	text_copy(copy, sizeof(copy), ids);
	if (slurm_programs_gpulease(gpulease) < 0) {
		diag("cannot find gpulease; install it again: make install");
		return EXIT_MISUSE;
	}
	while ((id = strsep(&rest, ","))) {
		char *words[] = { gpulease, quiet, option, id, NULL };
		pid_t child = run_gpulease_start(words, -1);

		if (child < 0)
			return EXIT_MISUSE;
		if (run_gpulease_await(child) != 0)
			continue;
		diag("gave up: job %s has ended with status 0", id);
		return EXIT_GAVE_UP;
	}
	return 0;
}
