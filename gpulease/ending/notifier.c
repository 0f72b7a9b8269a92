#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "clock.h"
#include "diag.h"
#include "fdio.h"
#include "notifier.h"
#include "other_program.h"
#include "privilege.h"
#include "process_lease.h"
#include "rlimits.h"

extern char **environ;

/* The part of the time limit that is left when it is near, within these bounds. */
enum { SOON_PART = 10, SOON_MIN_MS = 1000, SOON_MAX_MS = 10 * 60 * 1000 };

static int to_notifier = -1;
static int64_t told_limit_at_ms; /* the limit that was told to be near, CLOCK_BOOTTIME */

void notifier_read_variable(struct settings *settings)
{
	const char *command = getenv("GPULEASE_NOTIFY");

	/* --notify is refused for a process that runs already */
	if (!settings->environment.notify && command && *command &&
		!(settings->request.lease_only && settings->request.adopt_pid))
		settings->environment.notify = command;
}

/* In the child: becomes the notifier, which reads from @fd. */
static _Noreturn void become_notifier(char *path, const struct settings *settings, int fd)
{
	static char part[] = NOTIFIER_PART, no_name[] = "";
	char is_verbose[] = { settings->output.verbose ? '1' : '0', '\0' };
	const char *name = settings->request.name;
	char *words[] = { path, part, is_verbose, name ? (char *)name : no_name, NULL };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)setsid();
	(void)prctl(PR_SET_NAME, PROCESS_LEASE_NOTIFIER);
	if (null < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		privilege_drop() < 0)
		_exit(1);
	fdio_close_from(STDERR_FILENO + 1);
	privilege_restore_mask();
	rlimits_restore();
	rlimits_untag();
	(void)unsetenv(PROCESS_LEASE_TOKEN_VARIABLE);
	/* not among the words, which all users can read: it may have a password */
	if (setenv("GPULEASE_NOTIFY", settings->environment.notify, 1) == 0)
		(void)execve(path, words, environ);
	_exit(1);
}

void notifier_start(const struct settings *settings, const struct broker *broker)
{
	char path[PATH_MAX];
	int ends[2];
	pid_t child;

	if (!settings->environment.notify)
		return;
	if (other_program_find(VIEW_PROGRAM, path) < 0) {
		diag("this needs %s, which is not installed; install gpulease again: "
		     "make install",
			VIEW_PROGRAM);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	/* forked twice: this process may become the command, which expects no child */
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			become_notifier(path, settings, ends[1]);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	(void)close(ends[1]);
	to_notifier = ends[0];
	if (!broker->ticket.not_before_ms)
		notifier_tell(NOTIFIER_QUEUED, broker_job(broker), 0, "");
}

bool notifier_is_there(void)
{
	return to_notifier >= 0;
}

static void tell_at(enum notifier_event event, uint64_t job, int64_t at_ms,
	int64_t number, const char *text)
{
	char bytes[512];
	struct text line = TEXT_ON(bytes);

	if (to_notifier < 0)
		return;
	text_addf(&line, "%c %llu %lld %lld %.400s\n", event, (unsigned long long)job,
		(long long)at_ms, (long long)number, text);
	(void)!send(to_notifier, bytes, line.used, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notifier_tell(
	enum notifier_event event, uint64_t job, int64_t number, const char *text)
{
	tell_at(event, job, clock_boot_ms(), number, text);
}

void notifier_started(
	uint64_t job, const struct snapshot *view, const struct gpuset *gpus)
{
	char names[GPUSET_MAX * 8];

	if (to_notifier < 0)
		return;
	end_record_name_gpus(view, gpus, names, sizeof(names));
	notifier_tell(NOTIFIER_STARTED, job, 0, names);
}

int64_t notifier_soon_ms(int64_t begun_ms, int64_t limit_ms)
{
	int64_t left_ms =
		max_i64(SOON_MIN_MS, min_i64(limit_ms / SOON_PART, (int64_t)SOON_MAX_MS));
	int64_t at_ms = begun_ms + limit_ms;

	return to_notifier < 0 || limit_ms <= left_ms || at_ms == told_limit_at_ms
		       ? INT64_MAX
		       : at_ms - left_ms;
}

void notifier_tell_soon(uint64_t job, int64_t begun_ms, int64_t limit_ms)
{
	int64_t now_ms = clock_boot_ms();

	if (now_ms < notifier_soon_ms(begun_ms, limit_ms))
		return;
	told_limit_at_ms = begun_ms + limit_ms;
	notifier_tell(NOTIFIER_SOON, job, told_limit_at_ms - now_ms, "");
}

void notifier_ended(uint64_t job, int64_t gone_ms, const struct end_facts *facts)
{
	char bytes[128];
	struct text text = TEXT_ON(bytes);

	text_addf(
		&text, "%s %s", facts->how ? facts->how : "", facts->by ? facts->by : "");
	tell_at(NOTIFIER_ENDED, job, gone_ms, facts->status, bytes);
	close_fd(&to_notifier);
}

void notifier_move_above(int at)
{
	if (to_notifier >= 0)
		to_notifier = fcntl(to_notifier, F_DUPFD_CLOEXEC, at + 1);
}

void notifier_keep_as(int at)
{
	(void)!dup3(to_notifier, at, O_CLOEXEC);
	to_notifier = at;
}
