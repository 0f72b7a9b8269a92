/*
 * attack: what a hostile user may try against a gpulease, its nvidia-smi or its state.
 *
 *	attack process PID		reads, writes and traces a process
 *	attack path PATH…		the same with files, by name
 *	attack fd N [WORD]		the same with an inherited descriptor; with write, mode, acl
 *					or other only those attempts, `other` being the rest
 *	attack rights GROUP		looks for rights of the group that it still has
 *
 *	attack keep SOCKET		keeps open every descriptor that it gets, until it is killed
 *	attack give SOCKET N		gives it one
 *
 * Prints the name of every attempt that succeeded, one a line, and exits with 1 if there were any,
 * else with 0.  Run it as an ordinary user: it tries nothing that needs root.
 *
 *	attack unnamed PROGRAM ARG…	becomes the program, with "" as its argv[0]
 *	attack bare PROGRAM		the same without even that
 */
#include "tool.h"

#include <grp.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

enum { FD_MAX = 256 };

static unsigned successes;

static void PRINTF_LIKE(2, 3) tried(bool worked, const char *format, ...)
{
	va_list arguments;

	if (!worked)
		return;
	successes++;
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
}

/* Whether @path can be opened with these flags; does not wait for a FIFO. */
static bool opens(const char *path, int flags)
{
	autofd int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0;
}

/* --- a process ---------------------------------------------------------------------- */

static void try_proc_files(pid_t pid)
{
	static const struct {
		const char *name;
		int flags;
	} files[] = {
		{ "environ", O_RDONLY },
		{ "maps", O_RDONLY },
		{ "smaps", O_RDONLY },
		{ "auxv", O_RDONLY },
		{ "pagemap", O_RDONLY },
		{ "mem", O_RDONLY },
		{ "mem", O_WRONLY },
		{ "fd", O_RDONLY | O_DIRECTORY },
		{ "fdinfo", O_RDONLY | O_DIRECTORY },
		{ "map_files", O_RDONLY | O_DIRECTORY },
		{ "cwd", O_RDONLY | O_DIRECTORY },
		{ "root", O_RDONLY | O_DIRECTORY },
		{ "exe", O_RDONLY },
		{ "ns/mnt", O_RDONLY },
		{ "clear_refs", O_WRONLY },
		{ "coredump_filter", O_WRONLY },
	};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(
			path, sizeof(path), "/proc/%d/%s", (int)pid, files[i].name);
		tried(opens(path, files[i].flags), "%s %s", files[i].name,
			files[i].flags & O_WRONLY ? "written" : "read");
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid,
			(int)pid, files[i].name);
		tried(opens(path, files[i].flags), "task %s %s", files[i].name,
			files[i].flags & O_WRONLY ? "written" : "read");
	}
	for (int fd = 0; fd < FD_MAX; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		tried(opens(path, O_RDONLY), "fd/%d read", fd);
		tried(opens(path, O_WRONLY), "fd/%d written", fd);
	}
}

/* Only a process that may access the memory learns that an address is wrong. */
static bool reached_memory(ssize_t got)
{
	return got >= 0 || errno == EFAULT;
}

static void try_memory(pid_t pid)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	tried(reached_memory(process_vm_readv(pid, &here, 1, &there, 1, 0)),
		"process_vm_readv");
	there.iov_base = NULL;
	tried(reached_memory(process_vm_writev(pid, &here, 1, &there, 1, 0)),
		"process_vm_writev");
}

static void try_ptrace(pid_t pid)
{
	int status;
	bool worked = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;

	tried(worked, "ptrace seize");
	if (worked && ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0) {
		(void)waitpid(pid, &status, __WALL);
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	worked = ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0;
	tried(worked, "ptrace attach");
	if (worked) {
		(void)waitpid(pid, &status, __WALL);
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
}

static void try_pidfd(pid_t pid)
{
	autofd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	for (int fd = 0; pidfd >= 0 && fd < FD_MAX; fd++) {
		autofd int taken = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

		tried(taken >= 0, "pidfd_getfd %d", fd);
	}
}

static void try_process(pid_t pid)
{
	struct rlimit limit;
	void *head;
	size_t size;

	try_proc_files(pid);
	try_memory(pid);
	try_ptrace(pid);
	try_pidfd(pid);
	tried(prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0, "prlimit read");
	limit = (struct rlimit){ 0, 0 };
	tried(prlimit(pid, RLIMIT_CORE, &limit, NULL) == 0, "prlimit set");
	tried(syscall(SYS_get_robust_list, pid, &head, &size) == 0, "get_robust_list");
}

/* --- a file, by name ---------------------------------------------------------------- */

/* A place where the user may write: the target of a link or a rename. */
static const char *elsewhere(void)
{
	static char path[SCRATCH_SIZE + 16];
	const char *parent = getenv("TMPDIR");

	(void)snprintf(path, sizeof(path), "%.200s/attack.%d",
		parent && *parent ? parent : "/tmp", (int)getpid());
	return path;
}

static bool locks(const char *path)
{
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool replaces(const char *path)
{
	autofd int fd = open(elsewhere(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	bool worked = fd >= 0 && rename(elsewhere(), path) == 0;

	(void)unlink(elsewhere());
	return worked;
}

static bool links(const char *path)
{
	bool worked = link(path, elsewhere()) == 0;

	(void)unlink(elsewhere());
	return worked;
}

/* Attempts that change the folder come last: the others need the file. */
static void try_path(const char *path)
{
	struct stat st;
	char beside[PATH_MAX];

	(void)snprintf(beside, sizeof(beside), "%s.attack", path);
	tried(stat(path, &st) == 0, "%s: looked at", path);
	tried(opens(path, O_RDONLY), "%s: read", path);
	tried(opens(path, O_WRONLY), "%s: written", path);
	tried(opens(path, O_PATH), "%s: opened for its name", path);
	tried(locks(path), "%s: locked", path);
	tried(truncate(path, 0) == 0, "%s: truncated", path);
	tried(chmod(path, 0666) == 0, "%s: mode", path);
	tried(chown(path, (uid_t)-1, getgid()) == 0, "%s: group", path);
	tried(links(path), "%s: linked to", path);
	tried(symlink("/dev/null", beside) == 0, "%s: link beside it", path);
	tried(mkfifo(beside, 0600) == 0, "%s: FIFO beside it", path);
	tried(mkdir(beside, 0700) == 0, "%s: folder beside it", path);
	tried(replaces(path), "%s: replaced", path);
	tried(rename(path, elsewhere()) == 0, "%s: moved away", path);
	tried(unlink(path) == 0, "%s: deleted", path);
}

/* --- a descriptor ------------------------------------------------------------------- */

/* Makes the pipe as large as possible, and fills it. */
static void try_filling(int fd)
{
	static char bytes[4096];
	bool worked = false;

	tried(fcntl(fd, F_SETPIPE_SZ, 1 << 20) > 0, "pipe made bigger");
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		worked = true;
	tried(worked, "written");
}

static void try_other(int fd, const char *path)
{
	tried(opens(path, O_RDONLY), "opened anew to read");
	tried(opens(path, O_WRONLY), "opened anew to write");
	tried(flock(fd, LOCK_EX | LOCK_NB) == 0, "locked");
	tried(linkat(AT_FDCWD, path, AT_FDCWD, elsewhere(), AT_SYMLINK_FOLLOW) == 0,
		"linked to");
	(void)unlink(elsewhere());
	tried(fcntl(fd, F_SETOWN, getpid()) == 0, "signals asked for");
	tried(ftruncate(fd, 0) == 0, "truncated");
	tried(futimens(fd, NULL) == 0, "times");
}

/*
 * Takes every right from the owner and the group.  The mode still shows a group that may read:
 * beside a list, its bits are the mask.
 */
static void try_list(int fd)
{
	/* the version, then tag, rights and user of each entry: linux/posix_acl_xattr.h */
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, rights;
			uint32_t id;
		} entries[5];
	} list = { 2, { { 0x01, 0, UINT32_MAX }, { 0x02, 0, 0 }, { 0x04, 0, UINT32_MAX },
			      { 0x10, 4, UINT32_MAX }, { 0x20, 0, UINT32_MAX } } };

	tried(fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0) == 0,
		"access control list");
}

static void try_fd(int fd, const char *only)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!only || !strcmp(only, "other"))
		try_other(fd, path);
	if (!only || !strcmp(only, "write"))
		try_filling(fd);
	if (!only || !strcmp(only, "acl"))
		try_list(fd);
	if (!only || !strcmp(only, "mode")) {
		tried(fchown(fd, (uid_t)-1, getgid()) == 0, "group");
		tried(fchmod(fd, 0) == 0, "mode");
	}
}

/* --- rights of a command ------------------------------------------------------------ */

static bool has_group(gid_t group)
{
	gid_t ids[3], groups[1024];
	int count = getgroups(ARRAY_SIZE(groups), groups);
	bool has = getresgid(&ids[0], &ids[1], &ids[2]) < 0 || count < 0;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		has = has || ids[i] == group;
	for (int i = 0; i < count; i++)
		has = has || groups[i] == group;
	return has;
}

static void try_rights(gid_t group)
{
	tried(has_group(group), "has the group");
	tried(getauxval(AT_SECURE) != 0, "started with more rights");
	tried(prctl(PR_GET_DUMPABLE) != 1, "not dumpable");
	tried(!opens("/proc/self/environ", O_RDONLY), "closed to itself");
	tried(setegid(group) == 0, "setegid");
	tried(setgid(group) == 0, "setgid");
	tried(setregid(group, group) == 0, "setregid");
	tried(setresgid((gid_t)-1, group, (gid_t)-1) == 0, "setresgid");
	tried(setgroups(1, &group) == 0, "setgroups");
	(void)setfsgid(group);
	tried((gid_t)setfsgid((gid_t)-1) == group, "setfsgid");
}

/* --- descriptors that outlive their process ------------------------------------------- */

static struct sockaddr_un socket_address(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		die("'%s' is too long for a socket", path);
	memcpy(address.sun_path, path, strlen(path));
	return address;
}

/* Gives @fd to the socket, or, if it is negative, takes one; returns whether that worked. */
static bool pass(int by, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS } };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes) };

	if (fd < 0)
		return recvmsg(by, &message, MSG_CMSG_CLOEXEC) > 0;
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(by, &message, 0) > 0;
}

static void keep(const char *path)
{
	struct sockaddr_un address = socket_address(path);
	int by = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (by < 0 || bind(by, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("cannot make '%s': %s", path, strerror(errno));
	while (pass(by, -1))
		successes++;
}

static void give(const char *path, int fd)
{
	struct sockaddr_un address = socket_address(path);
	autofd int by = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (by < 0 || connect(by, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("cannot reach '%s': %s", path, strerror(errno));
	tried(pass(by, fd), "given");
}

static void become(char **argv, bool has_name)
{
	static char nothing[] = "";
	const char *program = argv[0];

	argv[0] = has_name ? nothing : NULL;
	(void)execv(program, argv);
	die("cannot execute '%s': %s", program, strerror(errno));
}

int main(int argc, char **argv)
{
	tool_init();
	if (argc == 3 && !strcmp(argv[1], "process"))
		try_process((pid_t)number(argv[2], "PID"));
	else if (argc >= 3 && !strcmp(argv[1], "path"))
		for (int i = 2; i < argc; i++)
			try_path(argv[i]);
	else if ((argc == 3 || argc == 4) && !strcmp(argv[1], "fd"))
		try_fd((int)number(argv[2], "descriptor"), argc == 4 ? argv[3] : NULL);
	else if (argc == 3 && !strcmp(argv[1], "rights"))
		try_rights((gid_t)number(argv[2], "group"));
	else if (argc == 3 && !strcmp(argv[1], "keep"))
		keep(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "give"))
		give(argv[2], (int)number(argv[3], "descriptor"));
	else if (argc >= 3 && (!strcmp(argv[1], "unnamed") || !strcmp(argv[1], "bare")))
		become(argv + 2, argv[1][0] == 'u');
	else
		die("usage: attack process PID | path PATH... | fd N [write|mode|acl|other] | "
		    "rights GROUP | keep SOCKET | give SOCKET N | unnamed PROGRAM... | bare PROGRAM");
	return fflush(stdout) || successes ? 1 : 0;
}
