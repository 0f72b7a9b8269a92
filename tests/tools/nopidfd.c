/*
 * nopidfd: runs a command as under a kernel or a sandbox without pidfds.
 *
 *	nopidfd enosys command…		an old kernel has neither pidfd call
 *	nopidfd eperm command…		a strict sandbox: pidfd_open is forbidden
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
enum { CALL_PIDFD_SEND_SIGNAL = 424, CALL_PIDFD_OPEN = 434 };

static int install(int error, int send_signal_verdict)
{
	const unsigned refuse = SECCOMP_RET_ERRNO | (unsigned)error;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_PIDFD_OPEN, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_PIDFD_SEND_SIGNAL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, (unsigned)send_signal_verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, refuse),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	/* only as a user: PR_SET_NO_NEW_PRIVS would disable the set-group-ID form under test */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	bool old = argc > 2 && !strcmp(argv[1], "enosys");
	int r;

	if (argc > 2 && !strcmp(argv[2], "--")) {
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	if (argc < 3 || (!old && strcmp(argv[1], "eperm")))
		die("usage: nopidfd enosys|eperm [--] command…");
	r = install(old ? ENOSYS : EPERM,
		old ? (int)(SECCOMP_RET_ERRNO | ENOSYS) : (int)SECCOMP_RET_ALLOW);
	if (r < 0)
		die("cannot install the filter: %s", strerror(-r));
	(void)execvp(argv[2], argv + 2);
	die("cannot run '%s': %s", argv[2], strerror(errno));
}
