#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "spawn.h"

/* Equal on all architectures; old headers lack them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
	CHUNK = 16 * 1024,
	CHUNKS_PER_STEP = 64, /* 1 MiB, the largest pipe; limits the time of a step */
	TIMER_MS = 250, /* how often to check for a stop and, without a pidfd, the exit */
	TIMER_AT_END_MS = 10, /* the same after both outputs are closed: it exits soon */
	RELEASE_TRIES = 20,   /* each waits 1 ms */
	EXEC_FD = 3,          /* the child's end of ->exec_fd */
};

/* The descriptors of the child, by the numbers that they get there. */
struct ends {
	int fds[EXEC_FD + 1];
};

#define ENDS_INIT                         \
	{                                 \
		.fds = { -1, -1, -1, -1 } \
	}

static void close_ends(struct ends *ends)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends->fds); i++)
		close_fd(&ends->fds[i]);
}

/* --- in the child: async-signal-safe calls only ------------------------------------- */

static void default_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &action, NULL); /* not KILL, STOP, libc's own */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Raises the soft limit to @enough, or to the hard limit if that is lower.  Returns true if it
 * changed.
 */
static bool raise_soft(struct rlimit *limit, rlim_t enough)
{
	rlim_t wanted = enough < limit->rlim_max ? enough : limit->rlim_max;

	if (limit->rlim_cur >= wanted)
		return false;
	limit->rlim_cur = wanted;
	return true;
}

/*
 * Raises the soft limits, so that the program does not fail because of the user's limits.
 * Descriptors and stack get no more than the program can need: some programs close every possible
 * descriptor, and with an unlimited stack the kernel uses its legacy memory layout.
 */
static void raise_limits(void)
{
	/* a macro, because C libraries differ in the type of the resource */
#define RAISE(resource, enough)                                                     \
	do {                                                                        \
		struct rlimit limit;                                                \
		if (getrlimit(resource, &limit) == 0 && raise_soft(&limit, enough)) \
			(void)setrlimit(resource, &limit);                          \
	} while (0)

	RAISE(RLIMIT_AS, RLIM_INFINITY);
	RAISE(RLIMIT_CPU, RLIM_INFINITY);
	RAISE(RLIMIT_DATA, RLIM_INFINITY);
	RAISE(RLIMIT_FSIZE, RLIM_INFINITY);
	RAISE(RLIMIT_MEMLOCK, RLIM_INFINITY);
	RAISE(RLIMIT_NOFILE, 4096);
	RAISE(RLIMIT_STACK, 8 << 20);
#undef RAISE
}

/*
 * Moves the ends to their numbers and closes all other descriptors.  Returns 0 or a negative errno.
 */
static int place_ends(const struct ends *ends)
{
	int high[EXEC_FD + 1];

	/* an end may be one of 0…3 if this process has no 0…2: move all up first */
	for (int i = 0; i <= EXEC_FD; i++) {
		high[i] = fcntl(ends->fds[i], F_DUPFD_CLOEXEC, EXEC_FD + 1);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < EXEC_FD; i++)
		if (dup2(high[i], i) < 0)
			return -errno;
	if (dup3(high[EXEC_FD], EXEC_FD, O_CLOEXEC) < 0)
		return -errno;
	/*
	 * exec closes close-on-exec descriptors, but it may hang (a dead file server), and
	 * inherited descriptors are not close-on-exec.  Before Linux 5.9 this call fails.
	 */
	(void)syscall(SYS_close_range, EXEC_FD + 1, ~0u, 0);
	return 0;
}

static _Noreturn void run_child(
	const char *path, char *const argv[], char *const envp[], const struct ends *ends)
{
	int fd = ends->fds[EXEC_FD];
	int error = -place_ends(ends);

	if (!error) {
		fd = EXEC_FD;
		(void)setpgid(0, 0);
		default_signals();
		raise_limits();
		(void)umask(022);
		/* in the current folder it could hang, or keep a file system busy */
		if (path[0] == '/')
			(void)!chdir("/");
		(void)execve(path, argv, envp);
		error = errno;
	}
	/* the parent reads this errno; a successful exec has closed the pipe without a byte */
	(void)!write(fd, &error, sizeof(error));
	_exit(127);
}

/* --- starting ----------------------------------------------------------------------- */

/* Makes a pipe from the child to this process. */
static int make_pipe(int *ret_ours, int *ret_child)
{
	int fds[2];

	/* the two ends are separate open files: only the parent's is non-blocking */
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = fds[0];
	*ret_child = fds[1];
	return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_ends(struct spawn *spawn, struct ends *ends)
{
	int r;

	ends->fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (ends->fds[0] < 0)
		return -errno;
	r = make_pipe(&spawn->out.fd, &ends->fds[1]);
	if (!r)
		r = make_pipe(&spawn->err.fd, &ends->fds[2]);
	if (!r)
		r = make_pipe(&spawn->exec_fd, &ends->fds[EXEC_FD]);
	return r;
}

/* Forks with all signals blocked, so that no signal handler runs in the child. */
static pid_t fork_quietly(
	const char *path, char *const argv[], char *const envp[], const struct ends *ends)
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0)
		run_child(path, argv, envp, ends);
	if (pid < 0)
		pid = -errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int spawn_start(
	const char *path, char *const argv[], char *const envp[], struct spawn *spawn)
{
	struct ends ends = ENDS_INIT;
	int r;

	*spawn = SPAWN_INIT;
	r = make_ends(spawn, &ends);
	if (!r)
		r = fork_quietly(path, argv, envp, &ends);
	close_ends(&ends);
	if (r < 0) {
		spawn_release(spawn);
		return r;
	}
	spawn->pid = r;
	/* the child does the same: the first of the two wins; after exec this call fails */
	(void)setpgid(spawn->pid, spawn->pid);
	spawn->pidfd = (int)syscall(SYS_pidfd_open, spawn->pid, 0);
	return 0;
}

/* --- running ------------------------------------------------------------------------ */

unsigned spawn_poll_fds(const struct spawn *spawn, struct pollfd fds[SPAWN_POLL_FDS])
{
	const int all[SPAWN_POLL_FDS] = { spawn->out.fd, spawn->err.fd, spawn->exec_fd,
		spawn->pidfd };
	unsigned count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i] >= 0)
			fds[count++] = (struct pollfd){ .fd = all[i], .events = POLLIN };
	return count;
}

int spawn_timer_ms(const struct spawn *spawn)
{
	bool is_near_end = spawn->out.fd < 0 && spawn->err.fd < 0;

	if (spawn->pid == 0)
		return -1;
	return spawn->pidfd < 0 && is_near_end ? TIMER_AT_END_MS : TIMER_MS;
}

bool spawn_is_gone(struct spawn *spawn)
{
	int status = 0;
	pid_t r;

	if (spawn->pid == 0)
		return true;
	/*
	 * waitpid() reports each stop and continuation once, and none after the exit.  So take all
	 * reports now, or a stop would be missed.
	 */
	do {
		r = waitpid(spawn->pid, &status, WNOHANG | WUNTRACED | WCONTINUED);
		if (r > 0 && (WIFSTOPPED(status) || WIFCONTINUED(status)))
			spawn->was_stopped = true;
	} while ((r < 0 && errno == EINTR) ||
		 (r > 0 && !WIFEXITED(status) && !WIFSIGNALED(status)));
	if (r == 0)
		return false;
	/* ECHILD: SIGCHLD is ignored (inherited), or other code has reaped the child */
	if (r > 0 && WIFEXITED(status))
		spawn->exit_code = WEXITSTATUS(status);
	if (r > 0 && WIFSIGNALED(status))
		spawn->signal = WTERMSIG(status);
	spawn->pid = 0;
	close_fd(&spawn->pidfd);
	return true;
}

/*
 * Makes room for @size more bytes.  Returns false without memory, or for more than
 * SPAWN_OUTPUT_MAX.
 */
static bool output_make_room(struct spawn_output *output, size_t size)
{
	size_t room = output->room ? output->room : CHUNK;
	char *text;

	while (room < output->used + size)
		room *= 2;
	if (room > SPAWN_OUTPUT_MAX)
		room = SPAWN_OUTPUT_MAX;
	if (room > output->room) {
		text = realloc(output->text, room);
		if (!text)
			return false;
		output->text = text;
		output->room = room;
	}
	return output->used + size <= output->room;
}

/* Appends what fits; if memory is short, the rest is cut as well. */
static void output_append(struct spawn_output *output, const char *bytes, size_t size)
{
	if (!output_make_room(output, size)) {
		output->is_cut = true;
		size = output->room - output->used;
	}
	if (size > 0)
		memcpy(output->text + output->used, bytes, size);
	output->used += size;
}

/* Reads what is in the pipe, at most CHUNKS_PER_STEP chunks.  Closes it at its end. */
static void output_drain(struct spawn_output *output)
{
	char chunk[CHUNK];

	for (int i = 0; i < CHUNKS_PER_STEP && output->fd >= 0; i++) {
		ssize_t size = read(output->fd, chunk, sizeof(chunk));

		if (size > 0)
			output_append(output, chunk, (size_t)size);
		else if (size < 0 && errno == EAGAIN)
			return;
		else if (size == 0 || errno != EINTR)
			close_fd(&output->fd);
	}
}

/* Learns whether exec failed: the pipe has an errno, or it is closed without one. */
static void spawn_read_exec_error(struct spawn *spawn)
{
	int error;
	ssize_t size;

	if (spawn->exec_fd < 0)
		return;
	/* an int is so small that a pipe never splits it */
	size = read(spawn->exec_fd, &error, sizeof(error));
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size == sizeof(error))
		spawn->exec_errno = error;
	close_fd(&spawn->exec_fd);
}

static void spawn_close_outputs(struct spawn *spawn)
{
	close_fd(&spawn->out.fd);
	close_fd(&spawn->err.fd);
	close_fd(&spawn->exec_fd);
}

static void output_free(struct spawn_output *output)
{
	free(output->text);
	*output = (struct spawn_output){ .fd = -1 };
}

int spawn_step(struct spawn *spawn)
{
	/* the exit first, then the pipes: then all that a dead child wrote is read */
	bool is_gone = spawn_is_gone(spawn);

	spawn_read_exec_error(spawn);
	output_drain(&spawn->out);
	output_drain(&spawn->err);
	if (!is_gone)
		return SPAWN_RUNNING;
	spawn_close_outputs(spawn);
	return 0;
}

/* --- ending ------------------------------------------------------------------------- */

void spawn_abandon(struct spawn *spawn)
{
	/* the child keeps its pid until it is reaped, so kill() reaches no other process */
	if (!spawn_is_gone(spawn)) {
		(void)kill(-spawn->pid, SIGKILL); /* its group: its descendants */
		(void)kill(spawn->pid, SIGKILL);
		(void)spawn_is_gone(spawn);
	}
	spawn_close_outputs(spawn);
	output_free(&spawn->out);
	output_free(&spawn->err);
}

void spawn_release(struct spawn *spawn)
{
	spawn_abandon(spawn);
	for (int i = 0; i < RELEASE_TRIES && !spawn_is_gone(spawn); i++) {
		struct pollfd fd = { .fd = spawn->pidfd,
			.events = POLLIN }; /* -1: ignored */

		(void)poll(&fd, 1, 1);
	}
	close_fd(&spawn->pidfd);
	*spawn = SPAWN_INIT;
}
