/*
 * One process under ptrace, taken forward one system call at a time.  A trace always rests
 * between two calls: what it did so far is visible to all, the next call has not begun.  Between
 * two calls a process changes nothing that others see, so halting it at each of these places
 * covers every moment at which it can die or be stopped.  Where ->in_rows is set, a row of calls
 * that only read counts as one: halted before the last of them, the process has done no more than
 * before the second.
 *
 * Its children are not traced and run on.  With ->follows it is the other way round: once it
 * forks, its first child is traced, and the process itself runs on.  If the tracer dies, the
 * traced process dies.
 */
#ifndef GPULEASE_TESTS_TRACE_H
#define GPULEASE_TESTS_TRACE_H

#include "tool.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

/* As the kernel fills it at the entry of a call; libcs name it in different ways. */
struct trace_entry {
	uint8_t op, pad[3];
	uint32_t arch;
	uint64_t ip, sp, number, arguments[6];
};

/* The errno with which call @number is to fail; 0: it is not to fail. */
typedef int trace_error_fn(void *arg, uint64_t number);

/* @at: number of the call that comes next, 1 for the first after the command's execve. */
struct trace {
	pid_t pid;
	unsigned at;
	bool inside;             /* between the entry of a call and its end */
	bool is_look;            /* that call only reads */
	bool was_look;           /* the call before only read */
	bool follows;            /* to the first child; set before the start */
	bool in_rows;            /* as described above; set before the start */
	bool has_parent;         /* the process is another process's child */
	struct trace_entry call; /* the last one that has begun */
	trace_error_fn *error;   /* asked for each call; NULL: none fails */
	void *error_arg;
	int fails_with; /* the call that has begun */
	int status;     /* of waitpid(), once the process has ended */
};

enum { TRACE_RESTS, TRACE_BLOCKED, TRACE_EXECED, TRACE_ENDED };

enum { TRACE_OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL };

enum { TRACE_GET_ENTRY = 0x420e, TRACE_IS_ENTRY = 1 };

/*
 * Whether the call that the process has just begun changes nothing that others see.  Before Linux
 * 5.3 the kernel does not report the call: false.
 */
static inline bool trace_only_looks(const struct trace_entry *entry)
{
	static const long looks[] = { SYS_readlinkat, SYS_newfstatat, SYS_fstat,
		SYS_pread64, SYS_getdents64, SYS_lseek, SYS_mmap, SYS_munmap,
		SYS_mprotect, SYS_brk, SYS_getpid, SYS_getuid, SYS_geteuid, SYS_getgid,
		SYS_getegid, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_getrandom };

	if (entry->op != TRACE_IS_ENTRY)
		return false;
	if (entry->number == SYS_prlimit64)
		return !entry->arguments[2]; /* sets nothing */
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++)
		if (entry->number == (uint64_t)looks[i])
			return true;
	return false;
}

/* Whether calls can be made to fail on this machine. */
static inline bool trace_can_fail(void)
{
#ifdef __x86_64__
	return true;
#else
	return false;
#endif
}

/*
 * At the entry of a call: keeps the kernel from running it.  At its end (@fails_with): gives it
 * that result.
 */
static inline void trace_set_result(pid_t pid, int fails_with)
{
#ifdef __x86_64__
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		die("ptrace: %s", strerror(errno));
	if (fails_with)
		regs.rax = (unsigned long long)-fails_with;
	else
		regs.orig_rax = (unsigned long long)-1;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0)
		die("ptrace: %s", strerror(errno));
#else
	(void)pid;
	(void)fails_with;
#endif
}

/* The process has begun a call. */
static inline void trace_begin_call(struct trace *t)
{
	t->call = (struct trace_entry){ .op = 0 };
	t->fails_with = 0;
	if (!t->in_rows && !t->error)
		return;
	if (syscall(SYS_ptrace, TRACE_GET_ENTRY, t->pid, sizeof(t->call), &t->call) <= 0)
		t->call.op = 0;
	t->is_look = t->in_rows && trace_only_looks(&t->call);
	if (t->error && t->call.op == TRACE_IS_ENTRY)
		t->fails_with = t->error(t->error_arg, t->call.number);
	if (t->fails_with)
		trace_set_result(t->pid, 0);
}

/* Copies what argument @at of the last call leads to.  False: that cannot be read. */
static inline bool trace_read(const struct trace *t, unsigned at, void *out, size_t size)
{
	struct iovec to = { out, size },
		     from = { (void *)(uintptr_t)t->call.arguments[at], size };

	return process_vm_readv(t->pid, &to, 1, &from, 1, 0) == (ssize_t)size;
}

/* The next stop of the process: its waitpid() status in *@status; or TRACE_BLOCKED. */
static inline int trace_wait(const struct trace *t, bool tell_blocked, int *status)
{
	unsigned asleep = 0;

	for (;;) {
		pid_t got = waitpid(t->pid, status, WNOHANG | __WALL);

		if (got == t->pid)
			return TRACE_RESTS;
		if (got < 0)
			die("waitpid(%d): %s", (int)t->pid, strerror(errno));
		tool_doze(NS_PER_MS);
		/* asleep twice in a row, a millisecond apart: it waits for another process */
		asleep = tool_state(t->pid) == 'S' ? asleep + 1 : 0;
		if (tell_blocked && asleep >= 2)
			return TRACE_BLOCKED;
	}
}

static inline void trace_resume(const struct trace *t, int with_signal)
{
	if (ptrace(PTRACE_SYSCALL, t->pid, NULL, (long)with_signal) < 0 && errno != ESRCH)
		die("ptrace: %s", strerror(errno));
}

/* Lets the process run on by itself. */
static inline void trace_detach(const struct trace *t)
{
	if (ptrace(PTRACE_DETACH, t->pid, NULL, NULL) < 0 && errno != ESRCH)
		die("ptrace: %s", strerror(errno));
}

/* The process has just forked: goes on with its child, which rests after that call. */
static inline void trace_follow(struct trace *t)
{
	unsigned long child = 0;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &child) < 0 ||
		waitpid((pid_t)child, &status, __WALL) != (pid_t)child ||
		!WIFSTOPPED(status) ||
		ptrace(PTRACE_SETOPTIONS, (pid_t)child, NULL, TRACE_OPTIONS) < 0)
		die("cannot follow a fork");
	trace_detach(t);
	t->pid = (pid_t)child;
	t->has_parent = true;
	t->inside = t->was_look = false;
	t->at++;
}

/*
 * Lets the next call happen.  TRACE_RESTS: it is done, and @t->at has grown by one unless the
 * call continues a row.  TRACE_EXECED: it was an execve that succeeded.  TRACE_ENDED: it was the
 * last call.  TRACE_BLOCKED, only if @tell_blocked: it has not returned yet; call again to wait
 * on.
 */
static inline int trace_next(struct trace *t, bool tell_blocked, bool *running)
{
	bool execed = false;
	int with_signal = 0, status, r;

	for (;;) {
		if (!*running)
			trace_resume(t, with_signal);
		*running = true;
		r = trace_wait(t, tell_blocked, &status);
		if (r == TRACE_BLOCKED)
			return r;
		*running = false;
		with_signal = 0;
		if (!WIFSTOPPED(status)) {
			t->status = status;
			return TRACE_ENDED;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			execed = true;
		} else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8)) {
			trace_follow(t);
			return TRACE_RESTS;
		} else if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			with_signal =
				WSTOPSIG(status); /* a signal for the process itself */
		} else if (!t->inside) {
			t->inside = true;
			trace_begin_call(t);
		} else {
			t->inside = false;
			if (t->fails_with)
				trace_set_result(t->pid, t->fails_with);
			t->at += !(t->is_look && t->was_look);
			t->was_look = t->is_look;
			return execed ? TRACE_EXECED : TRACE_RESTS;
		}
	}
}

/*
 * In the child: from here on traced, then executes the command.  The trace begins before the
 * change of the user: begun by the user, it would make the kernel ignore the set-group-ID bit of
 * the command.
 */
static inline void __attribute__((noreturn))
trace_become(const char *const argv[], int out, int err)
{
	tool_child();
	if ((out >= 0 && dup2(out, 1) < 0) || (err >= 0 && dup2(err, 2) < 0) ||
		ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || tool_become_user() < 0 ||
		raise(SIGSTOP))
		_exit(TOOL_MISUSE);
	(void)execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/*
 * Starts @argv, which rests before its first call; -1: the tool's own descriptor.  Reads only
 * ->follows, ->in_rows and ->error of @t.
 */
static inline void trace_start(
	struct trace *t, const char *const argv[], int out, int err)
{
	long options = TRACE_OPTIONS | (t->follows ? PTRACE_O_TRACEFORK : 0);
	bool running = false;
	int status, r;

	*t = (struct trace){ .pid = fork(),
		.follows = t->follows,
		.in_rows = t->in_rows,
		.error = t->error,
		.error_arg = t->error_arg };
	if (t->pid < 0)
		die("fork: %s", strerror(errno));
	if (t->pid == 0)
		trace_become(argv, out, err);
	if (trace_wait(t, false, &status) || !WIFSTOPPED(status) ||
		ptrace(PTRACE_SETOPTIONS, t->pid, NULL, options) < 0)
		die("cannot trace '%s' (is ptrace allowed here?)", argv[0]);
	do {
		r = trace_next(t, false, &running);
	} while (r == TRACE_RESTS);
	if (r != TRACE_EXECED)
		die("cannot start '%s'", argv[0]);
	t->at = 1;
	t->was_look = false;
}

/*
 * Detaches from the process and leaves it stopped as by any SIGSTOP: in state T, not in the t of a
 * traced process.  The signal is pending before the process runs on, so it does not reach another
 * call.
 */
static inline void trace_stop(const struct trace *t)
{
	int status;

	(void)kill(t->pid, SIGSTOP);
	trace_detach(t);
	while (t->has_parent && tool_state(t->pid) != 'T')
		tool_doze(NS_PER_MS);
	if (!t->has_parent &&
		(waitpid(t->pid, &status, WUNTRACED) != t->pid || !WIFSTOPPED(status)))
		die("process %d did not stop", (int)t->pid);
}

#endif
