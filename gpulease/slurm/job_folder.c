#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fdio.h"
#include "job_folder.h"
#include "leftover.h"
#include "process_lease.h"
#include "remove_folder.h"
#include "rlimits.h"
#include "text.h"

extern char **environ;

enum {
	RECHECK_MS = 1000, /* of a process whose end raises no event */
	PAUSE_MS = 50,     /* between two looks for processes of the job */
	KEPT_FD = 3,       /* the folder in which that of the job is */
};

static void wait_for_end(const struct owner *process, uint64_t my_pidns)
{
	struct pollfd end = { .fd = -1, .events = POLLIN };

	while (owner_judge(process, my_pidns, &end.fd) != OWNER_DEAD) {
		(void)poll(&end, 1, end.fd < 0 ? RECHECK_MS : -1);
		close_fd(&end.fd);
	}
}

/* Leaves the job, and everything that a user of its files or its terminal could wait for. */
static void leave_job(int parent)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1,
		SIGUSR2 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	(void)prctl(PR_SET_NAME, PROCESS_LEASE_KEEPER);
	rlimits_untag();
	for (char **entry = environ; *entry; entry++)
		memset(*entry, 0, strlen(*entry));
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)!chdir("/");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	(void)dup2(parent, KEPT_FD);
	/* also the pipe that the parent waits for */
	fdio_close_from(KEPT_FD + 1);
}

static _Noreturn void keep(const struct owner *script, int parent, const char *name)
{
	struct owner left;

	leave_job(parent);
	wait_for_end(script, script->pidns);
	while (leftover_find_of(script, script->pidns, &left) > 0) {
		wait_for_end(&left, script->pidns);
		(void)poll(NULL, 0, PAUSE_MS);
	}
	(void)!remove_folder(KEPT_FD, name);
	_exit(0);
}

/* Starts the keeper, and waits until it has left the job. */
static int start_keeper(const char *token, int parent, const char *name)
{
	struct owner script;
	int ends[2], r = owner_of_pid((uint32_t)getpid(), &script);
	pid_t child;
	char byte;

	if (r < 0)
		return r;
	text_copy(script.token, sizeof(script.token), token);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* forked twice: the script expects no child */
	child = fork();
	if (child == 0) {
		pid_t keeper = fork();

		if (keeper == 0)
			keep(&script, parent, name);
		_exit(keeper < 0);
	}
	r = child < 0 ? -errno : 0;
	(void)close(ends[1]);
	while (child > 0 && waitpid(child, &r, 0) < 0 && errno == EINTR)
		continue;
	(void)!read(ends[0], &byte, 1);
	(void)close(ends[0]);
	return r > 0 ? -EAGAIN : r;
}

/* Makes the folder in @folder.  Returns 0 or a negative errno. */
static int make_in(
	const char *folder, const char *id, const char *token, char out[PATH_MAX])
{
	struct text text = text_on(out, PATH_MAX);
	autofd int parent = -1;
	mode_t mask;
	char *made;
	int r;

	text_addf(&text, "%s/slurm-%s.XXXXXX", folder, id);
	if (text.cut)
		return -ENAMETOOLONG;
	parent = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	/* its mode is 0700 with any umask of the user */
	mask = umask(0);
	made = mkdtemp(out);
	(void)umask(mask);
	if (!made)
		return -errno;
	r = start_keeper(token, parent, text_base_name(out));
	if (r < 0)
		(void)rmdir(out);
	return r;
}

int job_folder_make(const char *id, const char *token, char out[PATH_MAX])
{
	const char *folder = getenv("TMPDIR");
	int r = folder && *folder == '/' ? make_in(folder, id, token, out) : -ENOENT;

	return r < 0 ? make_in("/tmp", id, token, out) : r;
}
