/*
 * nopidfd: runs a command as under a kernel or a sandbox without pidfds.
 *
 *	nopidfd enosys command…		an old kernel has neither pidfd call
 *	nopidfd eperm command…		a strict sandbox: pidfd_open is forbidden
 *	nopidfd noexit command…		before Linux 6.15: a pidfd tells no exit status
 *
 * Uses a seccomp filter, which the command and all its children inherit.
 */
#include "tool.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "nopidfd knows x86-64 and arm64"
#endif

/* The same on every architecture; older headers have no name for them. */
enum {
	CALL_PIDFD_SEND_SIGNAL = 424,
	CALL_PIDFD_OPEN = 434,
	REQUEST_PIDFD_GET_INFO =
		0xFF0B, /* of the ioctl, without its size and direction */
};

/* The errors of the calls; 0: the call works. */
static const struct way {
	const char *name;
	int open, send_signal, get_info;
} ways[] = {
	{ "enosys", ENOSYS, ENOSYS, 0 },
	{ "eperm", EPERM, 0, 0 },
	{ "noexit", 0, 0, ENOTTY },
};

static unsigned verdict(int error)
{
	return error ? SECCOMP_RET_ERRNO | (unsigned)error : SECCOMP_RET_ALLOW;
}

static int install(const struct way *way)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_PIDFD_OPEN, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_PIDFD_SEND_SIGNAL, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xFFFF),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REQUEST_PIDFD_GET_INFO, 3, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, verdict(way->open)),
		BPF_STMT(BPF_RET | BPF_K, verdict(way->send_signal)),
		BPF_STMT(BPF_RET | BPF_K, verdict(way->get_info)),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	/* only as a user: PR_SET_NO_NEW_PRIVS would disable the set-group-ID form under test */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	const struct way *way = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(ways) && argc > 1; i++)
		if (!strcmp(argv[1], ways[i].name))
			way = &ways[i];
	if (argc > 2 && !strcmp(argv[2], "--")) {
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	if (argc < 3 || !way)
		die("usage: nopidfd enosys|eperm|noexit [--] command…");
	r = install(way);
	if (r < 0)
		die("cannot install the filter: %s", strerror(-r));
	(void)execvp(argv[2], argv + 2);
	die("cannot run '%s': %s", argv[2], strerror(errno));
}
