#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "clock.h"
#include "fixture.h"
#include "owner.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* --- a kernel without pidfds, and a hidden /proc ------------------------------------ */

static int pidfd_errno;      /* 0: ask the kernel */
static int reaped_meanwhile; /* this many calls find neither process nor status */
static bool proc_hidden;     /* as hidepid shows it: no such folder */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

/* Of the folders of processes in /proc only that of this process is shown. */
static bool is_hidden(const char *path)
{
	unsigned pid = 0;

	return proc_hidden && sscanf(path, "/proc/%u", &pid) == 1 && pid != 1 &&
	       pid != (unsigned)getpid();
}

/* The calls made through syscall(2), with their arguments: pidfd_open(2) and ioctl(2). */
long __wrap_syscall(long number, ...)
{
	unsigned long request;
	unsigned flags;
	va_list list;
	void *info;
	int first;

	va_start(list, number);
	first = va_arg(list, int);
	if (number == SYS_ioctl) {
		request = va_arg(list, unsigned long);
		info = va_arg(list, void *);
		va_end(list);
		if (reaped_meanwhile > 0) {
			reaped_meanwhile--;
			errno = ESRCH;
			return -1;
		}
		return __real_syscall(number, first, request, info);
	}
	flags = va_arg(list, unsigned);
	va_end(list);
	assert_int_equal(number, SYS_pidfd_open);
	if (pidfd_errno) {
		errno = pidfd_errno;
		return -1;
	}
	return __real_syscall(number, first, flags);
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & O_CREAT)
		mode = va_arg(list, mode_t);
	va_end(list);
	if (is_hidden(path)) {
		errno = ENOENT;
		return -1;
	}
	return __real_openat(dirfd, path, flags, mode);
}

int __wrap_access(const char *path, int mode)
{
	if (is_hidden(path)) {
		errno = ENOENT;
		return -1;
	}
	return __real_access(path, mode);
}

static int reset(void **state)
{
	(void)state;
	pidfd_errno = 0;
	proc_hidden = false;
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, reset)

static const int without_pidfd[] = { ENOSYS, EPERM, EMFILE, ENFILE, ENOMEM, EINVAL };

static enum owner_state judge(const struct owner *owner)
{
	return owner_judge(owner, owner->pidns, NULL);
}

/* Ends the child and leaves it unreaped. */
static void make_zombie(struct other *other)
{
	assert_int_equal(kill(other->pid, SIGKILL), 0);
	assert_true(fixture_await_end(other->pid));
}

/* --- /proc/PID/stat ----------------------------------------------------------------- */

#define TAIL " 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 5 0 777 0 0"

static void the_name_in_a_stat_file_may_hold_anything(void **state)
{
	static const struct {
		const char *text, *comm;
	} table[] = {
		{ "12 (true) S 7" TAIL, "true" },
		{ "12 (a b) S 7" TAIL, "a b" },
		{ "12 (a) R 1 (b) S 7" TAIL, "a) R 1 (b" },
		{ "12 ()) Z 1 1) S 7" TAIL, ")) Z 1 1" },
		{ "12 ()) S 7" TAIL, ")" },
		{ "12 (() S 7" TAIL, "(" },
		{ "12 () S 7" TAIL, "" },
		{ "12 (a\nb) S 7" TAIL "\n", "a\nb" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct process_stat stat;

		assert_int_equal(process_stat_parse(table[i].text, &stat), 0);
		assert_string_equal(stat.comm, table[i].comm);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.parent, 7);
		assert_int_equal(stat.threads, 5);
		assert_int_equal(stat.start, 777);
	}
}

static void a_malformed_stat_file_is_refused(void **state)
{
	static const char *const table[] = { "", "12", "12 true S 7" TAIL, "12 (true",
		"12 (true) S", "12 (true) S x" TAIL, "12 ) true ( S 7" TAIL,
		"12 (true) S 7 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 5 0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct process_stat stat = { .parent = 4711 };

		assert_int_equal(process_stat_parse(table[i], &stat), -EBADMSG);
		assert_int_equal(stat.parent, 4711);
	}
}

static void a_misleading_process_name_is_read_correctly(void **state)
{
	static const char name[] = "x) Z 1 (y";
	struct process_stat stat;
	struct owner owner;
	char old[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, old), 0);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	assert_int_equal(process_stat_read((uint32_t)getpid(), &stat), 0);
	assert_int_equal(owner_self(&owner), 0);
	assert_int_equal(prctl(PR_SET_NAME, old), 0);
	assert_string_equal(stat.comm, name);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.parent, getppid());
	assert_int_equal(owner.start, stat.start);
}

/* --- how it ended ------------------------------------------------------------------- */

/*
 * Starts a child with a child of its own.  The grandchild exits with @code, or by the signal -@code
 * if that is negative.  The child reaps it once the second pipe is closed, and then exits.  Returns
 * the pidfd of the grandchild.
 */
static int start_grandchild(int code, pid_t *ret_child, int *ret_reap)
{
	int ids[2], reap[2], pidfd;
	pid_t pid = 0;

	assert_int_equal(pipe2(ids, O_CLOEXEC), 0);
	assert_int_equal(pipe2(reap, O_CLOEXEC), 0);
	*ret_child = fork();
	if (*ret_child == 0) {
		int gate[2];
		char byte;

		(void)!pipe2(gate, O_CLOEXEC);
		pid = fork();
		if (pid == 0) {
			(void)close(gate[1]);
			(void)close(reap[1]);
			(void)!read(gate[0], &byte, 1);
			if (code < 0)
				(void)raise(-code);
			_exit(code);
		}
		(void)close(reap[1]);
		(void)!write(ids[1], &pid, sizeof(pid));
		(void)!read(reap[0], &byte, 1); /* it may end */
		(void)close(gate[1]);
		(void)!read(reap[0], &byte, 1); /* it may be reaped */
		(void)waitpid(pid, NULL, 0);
		_exit(0);
	}
	(void)close(ids[1]);
	(void)close(reap[0]);
	assert_int_equal(read(ids[0], &pid, sizeof(pid)), sizeof(pid));
	(void)close(ids[0]);
	pidfd = pidfd_open_process((uint32_t)pid);
	assert_true(pidfd >= 0);
	*ret_reap = reap[1];
	return pidfd;
}

static void any_process_with_a_pidfd_learns_the_exit_status(void **state)
{
	static const struct {
		int code, status;
	} table[] = { { 0, 0 }, { 3, 3 }, { 255, 255 }, { -SIGKILL, 137 },
		{ -SIGTERM, 143 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int reap, status = 4711;
		pid_t child;
		autofd int pidfd = start_grandchild(table[i].code, &child, &reap);
		struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
		int r = pidfd_exit_status(pidfd, &status);

		if (!pidfd_can_tell_exit()) {
			(void)close(reap);
			(void)waitpid(child, NULL, 0);
			skip_because("before Linux 6.15");
		}
		assert_int_equal(r, PIDFD_NOT_REAPED); /* it runs */
		assert_int_equal(write(reap, "x", 1), 1);
		assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
		assert_int_equal(pidfd_exit_status(pidfd, &status), PIDFD_NOT_REAPED);
		assert_int_equal(status, 4711);
		(void)close(reap);
		assert_int_equal(waitpid(child, NULL, 0), child);
		/* if it is reaped between the two steps of the kernel, the kernel finds neither */
		reaped_meanwhile = i % 2 ? 1 : 0;
		assert_int_equal(pidfd_exit_status(pidfd, &status), 0);
		assert_int_equal(status, table[i].status);
		reaped_meanwhile = 2;
		assert_int_equal(pidfd_exit_status(pidfd, &status), -ESRCH);
	}
	reaped_meanwhile = 2;
	assert_false(pidfd_can_tell_exit());
}

static void other_descriptors_have_no_exit_status(void **state)
{
	autofd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int status = 4711;

	(void)state;
	assert_true(pidfd_exit_status(fd, &status) < 0);
	assert_true(pidfd_exit_status(-1, &status) < 0);
	assert_int_equal(status, 4711);
}

/* --- tokens, boot ------------------------------------------------------------------- */

static void a_token_is_16_hexadecimal_digits(void **state)
{
	static const char *const bad[] = { "", "0123456789abcde", "0123456789abcdef0",
		"0123456789ABCDEF", "0123456789abcde/", "../../etc/passwd",
		"0123456789abcde " };
	char one[TOKEN_SIZE], two[TOKEN_SIZE];

	(void)state;
	assert_int_equal(token_make(one), 0);
	assert_int_equal(token_make(two), 0);
	assert_true(is_token(one));
	assert_string_not_equal(one, two);
	assert_true(is_token("0123456789abcdef"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(is_token(bad[i]));
}

static void the_boot_id_does_not_change(void **state)
{
	char one[BOOT_SIZE], two[BOOT_SIZE];

	(void)state;
	assert_int_equal(boot_id_read(one), 0);
	assert_int_equal(boot_id_read(two), 0);
	assert_string_equal(one, two);
	assert_int_equal(strspn(one, "0123456789abcdef"), BOOT_SIZE - 1);
}

/* --- judging ------------------------------------------------------------------------ */

static void a_live_process_is_alive_and_its_pidfd_shows_its_end(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	int pidfd = -1;

	(void)state;
	assert_int_equal(
		owner_judge(&other.owner, other.owner.pidns, &pidfd), OWNER_ALIVE);
	assert_true(pidfd >= 0);
	assert_false(pidfd_has_ended(pidfd));
	make_zombie(&other);
	assert_true(pidfd_has_ended(pidfd));
	close_fd(&pidfd);
	other_end(&other);
}

static void the_calling_process_is_alive(void **state)
{
	struct owner owner;

	(void)state;
	assert_int_equal(owner_self(&owner), 0);
	assert_int_equal(owner.pid, getpid());
	assert_int_equal(owner.uid, getuid());
	assert_true(is_token(owner.token));
	assert_int_equal(judge(&owner), OWNER_ALIVE);
}

static void a_zombie_is_dead(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	int pidfd = 4711;

	(void)state;
	make_zombie(&other);
	assert_int_equal(kill(other.pid, 0), 0); /* the pid exists */
	assert_int_equal(
		owner_judge(&other.owner, other.owner.pidns, &pidfd), OWNER_DEAD);
	assert_int_equal(pidfd, -1);
	other.owner.inode = 0;
	assert_int_equal(judge(&other.owner), OWNER_DEAD);
	other_end(&other);
}

static void a_reaped_process_is_dead(void **state)
{
	struct owner owner = fixture_dead_owner(-1, OTHER_ALONE), fresh;

	(void)state;
	assert_int_equal(judge(&owner), OWNER_DEAD);
	assert_int_equal(owner_of_pid(owner.pid, &fresh), -ESRCH);
}

static void a_zombie_has_no_identity(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	struct owner fresh;

	(void)state;
	make_zombie(&other);
	assert_int_equal(owner_of_pid((uint32_t)other.pid, &fresh), -ESRCH);
	other_end(&other);
}

static void a_reused_pid_is_another_process(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	struct owner former = other.owner;

	(void)state;
	if (former.inode) {
		former.inode++;
		assert_int_equal(judge(&former), OWNER_DEAD);
	}
	/* without an inode in the record the start time decides */
	former = other.owner;
	former.inode = 0;
	assert_int_equal(judge(&former), OWNER_ALIVE);
	former.start--;
	assert_int_equal(judge(&former), OWNER_DEAD);
	/* and where there is no pidfd at all */
	former = other.owner;
	former.start++;
	for (size_t i = 0; i < ARRAY_SIZE(without_pidfd); i++) {
		pidfd_errno = without_pidfd[i];
		assert_int_equal(judge(&former), OWNER_DEAD);
	}
	pidfd_errno = 0;
	other_end(&other);
}

static void another_pid_namespace_is_undecided(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	int pidfd = 4711;

	(void)state;
	assert_int_equal(owner_judge(&other.owner, other.owner.pidns + 1, &pidfd),
		OWNER_UNDECIDED);
	assert_int_equal(pidfd, -1);
	other_end(&other);
	/* that the pid is free here says nothing about another namespace */
	assert_int_equal(
		owner_judge(&other.owner, other.owner.pidns + 1, NULL), OWNER_UNDECIDED);
}

static void a_missing_pidfd_never_reads_as_death(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(without_pidfd); i++) {
		int pidfd = 4711;

		pidfd_errno = without_pidfd[i];
		assert_int_equal(pidfd_open_process((uint32_t)other.pid), -pidfd_errno);
		assert_int_equal(owner_judge(&other.owner, other.owner.pidns, &pidfd),
			OWNER_ALIVE);
		assert_int_equal(pidfd, -1);
		proc_hidden = true;
		assert_int_equal(judge(&other.owner), OWNER_UNDECIDED);
		proc_hidden = false;
	}
	pidfd_errno = 0;
	other_end(&other);
}

static void without_pidfds_proc_shows_a_death(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);

	(void)state;
	make_zombie(&other);
	for (size_t i = 0; i < ARRAY_SIZE(without_pidfd); i++) {
		pidfd_errno = without_pidfd[i];
		assert_int_equal(judge(&other.owner), OWNER_DEAD);
	}
	pidfd_errno = 0;
	other_end(&other);
	for (size_t i = 0; i < ARRAY_SIZE(without_pidfd); i++) {
		pidfd_errno = without_pidfd[i];
		assert_int_equal(judge(&other.owner), OWNER_DEAD);
		proc_hidden = true;
		assert_int_not_equal(judge(&other.owner), OWNER_ALIVE);
		proc_hidden = false;
	}
}

static void a_hidden_process_is_known_by_its_inode_alone(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);

	(void)state;
	proc_hidden = true;
	assert_int_equal(
		judge(&other.owner), other.owner.inode ? OWNER_ALIVE : OWNER_UNDECIDED);
	other.owner.inode = 0;
	assert_int_equal(judge(&other.owner), OWNER_UNDECIDED);
	proc_hidden = false;
	other_end(&other);
	proc_hidden = true;
	assert_int_equal(judge(&other.owner), OWNER_DEAD); /* ESRCH is certain */
}

static void *rest(void *nothing)
{
	fixture_rest();
	return nothing;
}

/* Starts a process and lets its main thread exit: the state is Z, but the process lives. */
static struct owner start_headless(pid_t *ret_pid)
{
	struct owner owner = { .pid = 0 };
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		pthread_t thread;

		if (owner_self(&owner) == 0 &&
			pthread_create(&thread, NULL, rest, NULL) == 0)
			(void)!write(ends[1], &owner, sizeof(owner));
		(void)close(ends[1]);
		(void)__real_syscall(SYS_exit, 0); /* only this thread exits */
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &owner, sizeof(owner)), sizeof(owner));
	(void)close(ends[0]);
	return owner;
}

static void a_process_without_its_main_thread_is_alive(void **state)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
	struct process_stat stat = { .state = 0 };
	pid_t pid;
	struct owner owner = start_headless(&pid);

	(void)state;
	while (stat.state != 'Z' && clock_boot_ms() < until_ms) {
		assert_int_equal(process_stat_read(owner.pid, &stat), 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(stat.state, 'Z');
	assert_int_equal(judge(&owner), OWNER_ALIVE);
	pidfd_errno = ENOSYS;
	assert_int_equal(judge(&owner), OWNER_ALIVE);
	pidfd_errno = 0;
	fixture_kill(&pid);
}

static void the_uid_of_another_users_process_is_read(void **state)
{
	enum { NOBODY = 65534 };
	struct owner owner;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	pid = fixture_start_as(NOBODY, 0);
	assert_int_equal(owner_of_pid((uint32_t)pid, &owner), 0);
	assert_int_equal(owner.uid, NOBODY);
	fixture_kill(&pid);
}

static void a_signal_reaches_only_the_user_of_the_record(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	uint32_t uid = other.owner.uid, pid = (uint32_t)other.pid;

	(void)state;
	assert_int_equal(process_signal(pid, -1, uid + 1, SIGKILL), PROCESS_OF_ANOTHER);
	assert_int_equal(
		process_signal_group(pid, -1, uid + 1, SIGKILL), PROCESS_OF_ANOTHER);
	assert_int_equal(judge(&other.owner), OWNER_ALIVE);
	assert_int_equal(process_signal(pid, -1, uid, SIGKILL), 0);
	assert_true(fixture_await_end(other.pid));
	other_end(&other);
}

static void a_signal_to_a_reaped_process_finds_no_process(void **state)
{
	uint32_t uid = getuid();
	pid_t pid = fork();
	autofd int pidfd = -1;

	(void)state;
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	pidfd = pidfd_open_process((uint32_t)pid);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_signal((uint32_t)pid, pidfd, uid, SIGTERM), -ESRCH);
	assert_int_equal(process_signal((uint32_t)pid, -1, uid, SIGTERM), -ESRCH);
	assert_int_equal(
		process_signal_group((uint32_t)pid, pidfd, uid, SIGTERM), -ESRCH);
}

static void judging_leaves_no_descriptor_open(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	struct owner reused = other.owner, fresh;
	int before;

	(void)state;
	reused.inode += 1;
	before = fixture_open_fds();
	assert_int_equal(judge(&other.owner), OWNER_ALIVE);
	(void)judge(&reused);
	assert_int_equal(owner_of_pid((uint32_t)other.pid, &fresh), 0);
	make_zombie(&other);
	assert_int_equal(judge(&other.owner), OWNER_DEAD);
	assert_int_equal(fixture_open_fds(), before);
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_name_in_a_stat_file_may_hold_anything),
		TEST(a_malformed_stat_file_is_refused),
		TEST(a_misleading_process_name_is_read_correctly),
		TEST(any_process_with_a_pidfd_learns_the_exit_status),
		TEST(other_descriptors_have_no_exit_status),
		TEST(a_token_is_16_hexadecimal_digits),
		TEST(the_boot_id_does_not_change),
		TEST(a_live_process_is_alive_and_its_pidfd_shows_its_end),
		TEST(the_calling_process_is_alive),
		TEST(a_zombie_is_dead),
		TEST(a_reaped_process_is_dead),
		TEST(a_zombie_has_no_identity),
		TEST(a_reused_pid_is_another_process),
		TEST(another_pid_namespace_is_undecided),
		TEST(a_missing_pidfd_never_reads_as_death),
		TEST(without_pidfds_proc_shows_a_death),
		TEST(a_hidden_process_is_known_by_its_inode_alone),
		TEST(a_process_without_its_main_thread_is_alive),
		TEST(the_uid_of_another_users_process_is_read),
		TEST(a_signal_reaches_only_the_user_of_the_record),
		TEST(a_signal_to_a_reaped_process_finds_no_process),
		TEST(judging_leaves_no_descriptor_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
