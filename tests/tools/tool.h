/*
 * What the test tools share: a clock, numbers from the command line, waiting for children with a
 * deadline, scratch directories, TAP.  A tool is one file and one thread; it calls tool_init()
 * first.  The children of a tool die with it.
 */
#ifndef GPULEASE_TESTS_TOOL_H
#define GPULEASE_TESTS_TOOL_H

#include "base.h"
#include "../draw.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* How long a tool waits for events that the protocol promises within a few seconds. */
#define DEADLINE_NS (30 * NS_PER_S)

enum { TOOL_MISUSE = 125 };

/* Whether the tool, and with it gpulease, is built with the address sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
enum { IS_SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
#else
enum { IS_SANITIZED = 0 };
#endif

/* Prints the message on stderr and exits with 125: the tool itself has failed. */
static inline void PRINTF_LIKE(1, 2) __attribute__((noreturn))
die(const char *format, ...)
{
	va_list arguments;

	(void)fflush(stdout);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
	exit(TOOL_MISUSE);
}

static inline int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The decimal number @text; if it is none, the tool ends with a message that names @what. */
static inline uint64_t number(const char *text, const char *what)
{
	char *end = NULL;
	uint64_t value;

	errno = 0;
	value = text ? strtoull(text, &end, 10) : 0;
	if (!end || end == text || *end || *text == '-' || errno)
		die("%s: '%s' is not a number", what, text ? text : "");
	return value;
}

/* The value of --users, "UID,DIR": sets *@ret_first, and returns the directory. */
static inline const char *tool_users(char *text, uid_t *ret_first)
{
	char *dir = strchr(text, ',');

	if (!dir || dir[1] != '/')
		die("--users UID,DIR");
	*dir++ = '\0';
	*ret_first = (uid_t)number(text, "user");
	return dir;
}

/* Only tool_doze() takes SIGCHLD; SIGPIPE is ignored. */
static inline void tool_init(void)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
}

/* A tool sets it to let its children outlive it. */
static inline bool *tool_children_outlive(void)
{
	static bool outlive;

	return &outlive;
}

/* In a child: sets signals as a shell would, and lets the child die with the tool. */
static inline void tool_child(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (!*tool_children_outlive())
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* The user as which children run from now on; 0: that of the tool. */
static inline uid_t *tool_user(void)
{
	static uid_t user;

	return &user;
}

/* In a child, last before its execve: takes the user, whose only group has the same number. */
static inline int tool_become_user(void)
{
	uid_t user = *tool_user();

	if (!user)
		return 0;
	return setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0
		       ? -1
		       : setresuid(user, user, user);
}

/* Starts @argv with these descriptors as 0, 1 and 2; -1: the tool's own. */
static inline pid_t tool_spawn(const char *const argv[], int in, int out, int err)
{
	const int fds[] = { in, out, err };
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	tool_child();
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0 && dup2(fds[i], i) < 0)
			_exit(TOOL_MISUSE);
	if (tool_become_user() < 0)
		_exit(TOOL_MISUSE);
	(void)execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Pauses for at most @ns, until a child changes its state. */
static inline void tool_doze(int64_t ns)
{
	struct timespec span = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigtimedwait(&child, NULL, &span);
}

/* Returns 0 when the child has ended, and sets *@status; 1: it has not by @deadline_ns. */
static inline int tool_await(pid_t pid, int64_t deadline_ns, int *status)
{
	for (;;) {
		int64_t left;
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid)
			return 0;
		if (got < 0)
			die("waitpid(%d): %s", (int)pid, strerror(errno));
		left = deadline_ns - now_ns();
		if (left <= 0)
			return 1;
		tool_doze(min_i64(left, 100 * NS_PER_MS));
	}
}

/* Kills the child if it still lives, stopped or not, and reaps it; @pid becomes 0. */
static inline void tool_kill(pid_t *pid)
{
	if (*pid > 0) {
		(void)kill(*pid, SIGKILL);
		(void)waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

/* Returns 0 when @fd can be read or has no writer any more; 1: neither by @deadline_ns. */
static inline int tool_readable(int fd, int64_t deadline_ns)
{
	struct pollfd watch = { .fd = fd, .events = POLLIN };
	int64_t left;

	while ((left = deadline_ns - now_ns()) > 0)
		if (poll(&watch, 1, (int)min_i64(left / NS_PER_MS + 1, 1000)) > 0)
			return 0;
	return 1;
}

static inline void tool_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("pipe: %s", strerror(errno));
}

/* The state letter of /proc/PID/stat, or 0 when there is no such process. */
static inline char tool_state(pid_t pid)
{
	char path[64], text[256];
	const char *end;
	ssize_t got;
	autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : (char)0;
}

static inline int remove_one(
	const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	(void)remove(path);
	return 0;
}

/*
 * Removes @path and everything below it.  A process that the test has left, such as the watchdog
 * of a killed job, may still write its last file there, so it tries for up to 10 s.
 */
static inline void remove_tree(const char *path)
{
	int64_t deadline_ns = now_ns() + 10 * NS_PER_S;

	while (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS),
		!access(path, F_OK) && now_ns() < deadline_ns)
		tool_doze(10 * NS_PER_MS);
}

enum { SCRATCH_SIZE = 256 };

/* Makes an empty directory under TMPDIR and writes its path to @path. */
static inline void tool_scratch(char path[SCRATCH_SIZE])
{
	const char *parent = getenv("TMPDIR");

	(void)snprintf(path, SCRATCH_SIZE, "%.200s/gpulease-tool.XXXXXX",
		parent && *parent ? parent : "/tmp");
	if (!mkdtemp(path))
		die("cannot make '%s': %s", path, strerror(errno));
}

/* The path of the running tool itself. */
static inline const char *tool_self(void)
{
	static char path[4096];
	ssize_t got = path[0] ? 1 : readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (got <= 0)
		die("cannot read /proc/self/exe: %s", strerror(errno));
	return path;
}

/* Writes to @path the path of @name in the directory of the running tool. */
static inline void tool_beside(const char *name, char *path, size_t size)
{
	const char *self = tool_self();

	(void)snprintf(
		path, size, "%.*s/%s", (int)(strrchr(self, '/') - self), self, name);
}

/* The program under test: $GPULEASE, else the one built beside the tools; absolute. */
static inline const char *tool_gpulease(void)
{
	static char path[4096 + 32];
	const char *given = getenv("GPULEASE");
	char beside[sizeof(path) + 32];

	if (path[0])
		return path;
	tool_beside("../../gpulease", beside, sizeof(beside));
	if (!realpath(given && *given ? given : beside, path) || access(path, X_OK) < 0)
		die("cannot run '%s': %s", given && *given ? given : beside,
			strerror(errno));
	return path;
}

/*
 * Removes the variables by which a surrounding lease or simulation would affect a test's clients.
 */
static inline void tool_clean_environment(void)
{
	static const char *const names[] = { "CUDA_VISIBLE_DEVICES",
		"NVIDIA_VISIBLE_DEVICES", "GPULEASE_ID", "GPULEASE_TOKEN",
		"GPULEASE_GPUS", "GPULEASE_UUIDS", "GPULEASE_DIR", "GPULEASE_SIM",
		"GPULEASE_CONFIG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unsetenv(names[i]);
}

struct tap {
	unsigned results, failures;
};

static inline struct tap *tap(void)
{
	static struct tap counters;

	return &counters;
}

/* Prints one result; its text is a phrase that says what holds.  Returns @passed. */
static inline bool PRINTF_LIKE(2, 3) tap_result(bool passed, const char *format, ...)
{
	va_list arguments;

	tap()->results++;
	tap()->failures += passed ? 0 : 1;
	(void)printf("%sok %u - ", passed ? "" : "not ", tap()->results);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
	return passed;
}

/* Prints the plan after the last result; returns the exit status of the tool. */
static inline int tap_end(void)
{
	(void)printf("1..%u\n", tap()->results);
	return fflush(stdout) || tap()->failures ? 1 : 0;
}

#endif
