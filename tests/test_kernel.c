/*
 * What the protocol takes for granted about the kernel.  No code of gpulease runs here: a
 * failure says that on this kernel, or on the file system of the scratch directory, the
 * protocol is not safe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

enum { RECORD = 512, DEADLINE_MS = 30000 };

/* f_type of a pidfd with an inode number that identifies the process; Linux 6.9. */
#define PIDFS_TYPE 0x50494446

/* A soft limit as a lease leaves it on its command. */
#define TAG UINT64_C(5138700959735623737)

static int pidfd_of(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	errno = ENOSYS;
	return -1;
#endif
}

/* What poll() says about @fd within @timeout_ms; 0: nothing. */
static int polled(int fd, int timeout_ms)
{
	struct pollfd watch = { .fd = fd, .events = POLLIN };

	return poll(&watch, 1, timeout_ms) > 0 ? watch.revents : 0;
}

/* A child that has run a body and now waits for its end.  It never asserts. */
struct child {
	pid_t pid;
	int go; /* closing it lets the child exit */
};

#define CHILD_NONE ((struct child){ .go = -1 })

/*
 * Starts a child and returns once its body is done.  The body says 'y' on its stdout and
 * waits for the end of its stdin, either by returning true or in the program it becomes.
 */
static struct child start(bool (*body)(int dirfd), int dirfd)
{
	struct child c = CHILD_NONE;
	int ready[2], go[2];
	char byte = 'n';

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	c.pid = fork();
	if (c.pid == 0) {
		(void)dup2(ready[1], 1);
		(void)dup2(go[0], 0);
		for (int i = 0; i < 2; i++) {
			(void)close(ready[i]);
			(void)close(go[i]);
		}
		if (body(dirfd) && write(1, "y", 1) == 1)
			(void)!read(0, &byte, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	(void)close(go[0]);
	c.go = go[1];
	(void)!read(ready[0], &byte, 1);
	(void)close(ready[0]);
	assert_true(c.pid > 0);
	assert_int_equal(byte, 'y');
	return c;
}

/* For a body: goes on in another program. */
static bool become_another_program(void)
{
	(void)execlp("sh", "sh", "-c", "echo y; read -r end", (char *)NULL);
	return false;
}

static void end(struct child *c)
{
	close_fd(&c->go);
	if (c->pid > 0)
		assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	c->pid = 0;
}

static bool do_nothing(int dirfd)
{
	(void)dirfd;
	return true;
}

static bool only_exec(int dirfd)
{
	(void)dirfd;
	return become_another_program();
}

/* --- flock -------------------------------------------------------------------------- */

static int open_lock(int dirfd)
{
	return openat(dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool lock(int dirfd)
{
	return flock(open_lock(dirfd), LOCK_EX | LOCK_NB) == 0;
}

static bool lock_and_exec(int dirfd)
{
	int fd = open_lock(dirfd);

	return fcntl(fd, F_SETFD, 0) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	       become_another_program();
}

static void a_flock_is_independent_per_open(void **state)
{
	struct scratch *s = *state;
	autofd int one = open_lock(s->dirfd), two = open_lock(s->dirfd);

	assert_int_equal(flock(one, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(flock(two, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(flock(one, LOCK_UN), 0);
	assert_int_equal(flock(two, LOCK_EX | LOCK_NB), 0);
}

static void a_flock_goes_with_the_last_descriptor(void **state)
{
	struct scratch *s = *state;
	autofd int first = open_lock(s->dirfd), other = open_lock(s->dirfd);
	autofd int copy = fcntl(first, F_DUPFD_CLOEXEC, 0);

	assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0);
	close_fd(&first);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	close_fd(&copy);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
}

static void a_flock_survives_exec_and_ends_with_the_process(void **state)
{
	struct scratch *s = *state;
	autofd int fd = open_lock(s->dirfd);
	struct child c = start(lock_and_exec, s->dirfd);

	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	end(&c);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
}

/* --- pidfd -------------------------------------------------------------------------- */

/* Skips the test where there are no pidfds; the protocol then does without them. */
static int need_pidfd(struct child *c)
{
	int fd = pidfd_of(c->pid);

	if (fd < 0) {
		end(c);
		skip_because("the kernel has no pidfds");
	}
	return fd;
}

static void a_pidfd_is_silent_until_the_end_and_tells_of_a_zombie(void **state)
{
	struct scratch *s = *state;
	struct child c = start(do_nothing, s->dirfd);
	autofd int fd = need_pidfd(&c);

	assert_int_equal(polled(fd, 0), 0);
	close_fd(&c.go);
	assert_true(polled(fd, DEADLINE_MS) & POLLIN);
	/* Not reaped yet: to kill() it still exists. */
	assert_int_equal(kill(c.pid, 0), 0);
	end(&c);
	assert_true(polled(fd, 0) & POLLIN);
}

static void a_readable_pidfd_means_that_its_flocks_are_gone(void **state)
{
	struct scratch *s = *state;

	for (int i = 0; i < 200; i++) {
		struct child c = start(lock, s->dirfd);
		autofd int lock_fd = open_lock(s->dirfd), fd = need_pidfd(&c);

		assert_int_equal(kill(c.pid, SIGKILL), 0);
		assert_true(polled(fd, DEADLINE_MS) & POLLIN);
		assert_int_equal(flock(lock_fd, LOCK_EX | LOCK_NB), 0);
		end(&c);
	}
}

/* The inode number of the process's pidfd; 0 where it does not identify the process. */
static uint64_t pidfd_inode(pid_t pid)
{
	autofd int fd = pidfd_of(pid);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != PIDFS_TYPE ||
		fstat(fd, &st) < 0)
		return 0;
	return st.st_ino;
}

static void a_pidfd_inode_differs_between_processes(void **state)
{
	struct scratch *s = *state;
	/* The second lets go of the pipe of the first as it becomes another program. */
	struct child one = start(do_nothing, s->dirfd), two = start(only_exec, s->dirfd);
	uint64_t inode_one = pidfd_inode(one.pid), inode_two = pidfd_inode(two.pid);
	uint64_t again = pidfd_inode(one.pid);

	end(&one);
	end(&two);
	if (!inode_one)
		skip_because("the kernel has no pidfd inodes");
	assert_true(inode_one != inode_two);
	assert_true(inode_one == again);
}

static bool tell_inode_and_exec(int dirfd)
{
	uint64_t inode = pidfd_inode(getpid());
	autofd int fd = openat(dirfd, "inode", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return write(fd, &inode, sizeof(inode)) == sizeof(inode) &&
	       become_another_program();
}

static void a_pidfd_inode_stays_over_exec(void **state)
{
	struct scratch *s = *state;
	struct child c = start(tell_inode_and_exec, s->dirfd);
	autofd int fd = openat(s->dirfd, "inode", O_RDONLY | O_CLOEXEC);
	uint64_t before = 0, after = pidfd_inode(c.pid);

	end(&c);
	assert_int_equal(read(fd, &before, sizeof(before)), sizeof(before));
	if (!before)
		skip_because("the kernel has no pidfd inodes");
	assert_true(before == after);
}

/* --- FIFO --------------------------------------------------------------------------- */

static int open_fifo(int dirfd, int flags)
{
	(void)mkfifoat(dirfd, "fifo", 0600); /* or it is there */
	return openat(dirfd, "fifo", flags | O_NONBLOCK | O_CLOEXEC);
}

static void a_fifo_read_tells_whether_there_is_a_writer(void **state)
{
	struct scratch *s = *state;
	autofd int writer = open_fifo(s->dirfd, O_RDWR);
	autofd int reader = open_fifo(s->dirfd, O_RDONLY);
	char byte;

	assert_int_equal(read(reader, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close_fd(&writer);
	assert_int_equal(read(reader, &byte, 1), 0);
}

static void read_and_not_poll_notices_a_fifo_without_a_writer(void **state)
{
	struct scratch *s = *state;
	autofd int writer = open_fifo(s->dirfd, O_RDWR);
	autofd int reader = -1;
	char byte;

	close_fd(&writer);
	reader = open_fifo(s->dirfd, O_RDONLY); /* after the last writer has left */
	assert_int_equal(polled(reader, 50), 0);
	assert_int_equal(read(reader, &byte, 1), 0);
}

static void a_fifo_hangs_up_when_the_last_writer_goes(void **state)
{
	struct scratch *s = *state;
	autofd int one = open_fifo(s->dirfd, O_RDWR), two = open_fifo(s->dirfd, O_RDWR);
	autofd int reader = open_fifo(s->dirfd, O_RDONLY);

	close_fd(&one);
	assert_int_equal(polled(reader, 0), 0);
	close_fd(&two);
	assert_int_equal(polled(reader, 0), POLLHUP);
}

static bool write_fifo_and_exec(int dirfd)
{
	return fcntl(open_fifo(dirfd, O_RDWR), F_SETFD, 0) == 0 &&
	       become_another_program();
}

static void a_fifo_keeps_its_writer_over_exec_rename_and_unlink(void **state)
{
	struct scratch *s = *state;
	struct child c = start(write_fifo_and_exec, s->dirfd);
	autofd int reader = open_fifo(s->dirfd, O_RDONLY);
	char byte;

	assert_int_equal(renameat(s->dirfd, "fifo", s->dirfd, "other"), 0);
	assert_int_equal(read(reader, &byte, 1), -1);
	assert_int_equal(unlinkat(s->dirfd, "other", 0), 0);
	assert_int_equal(polled(reader, 0), 0);
	end(&c);
	assert_int_equal(polled(reader, DEADLINE_MS), POLLHUP);
}

/* --- files -------------------------------------------------------------------------- */

static int open_records(int dirfd, int flags)
{
	return openat(dirfd, "records", flags | O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void pwrite_appends_to_an_append_descriptor(void **state)
{
	struct scratch *s = *state;
	autofd int appending = open_records(s->dirfd, O_APPEND), in_place = -1;
	char record[RECORD] = "";
	struct stat st;

	assert_int_equal(write(appending, record, RECORD), RECORD);
	assert_int_equal(pwrite(appending, record, RECORD, 0), RECORD);
	assert_int_equal(fstat(appending, &st), 0);
	assert_int_equal(st.st_size, 2 * RECORD);
	/* Which is why a ticket is rewritten through a second descriptor. */
	in_place = open_records(s->dirfd, 0);
	assert_int_equal(pwrite(in_place, record, RECORD, 0), RECORD);
	assert_int_equal(fstat(appending, &st), 0);
	assert_int_equal(st.st_size, 2 * RECORD);
}

/* Appends and finds each record where lseek() says that it went. */
static bool append_many(int dirfd)
{
	int fd = open_records(dirfd, O_APPEND);
	char record[RECORD], back[RECORD];
	off_t at;

	for (int i = 0; i < 500; i++) {
		memset(record, ' ', RECORD);
		(void)snprintf(record, RECORD, "%d.%d", (int)getpid(), i);
		if (write(fd, record, RECORD) != RECORD)
			return false;
		at = lseek(fd, 0, SEEK_CUR) - RECORD;
		if (pread(fd, back, RECORD, at) != RECORD || memcmp(record, back, RECORD))
			return false;
	}
	return true;
}

static void an_append_tells_its_offset_also_among_other_appenders(void **state)
{
	struct scratch *s = *state;
	pid_t pids[4];
	int status;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(append_many(s->dirfd) ? 0 : 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

/* Leaves a file of 2 records and what was appended under a limit of @limit bytes. */
static bool append_under_limit(int dirfd, rlim_t limit)
{
	const struct rlimit rlimit = { .rlim_cur = limit, .rlim_max = RLIM_INFINITY };
	char record[RECORD] = "";
	int fd = open_records(dirfd, O_APPEND);

	(void)signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 2; i++)
		if (write(fd, record, RECORD) != RECORD)
			return false;
	if (setrlimit(RLIMIT_FSIZE, &rlimit) < 0)
		return false;
	return write(fd, record, RECORD) == (ssize_t)limit - 2 * RECORD ||
	       (limit == 2 * RECORD && errno == EFBIG);
}

static bool append_under_ragged_limit(int dirfd)
{
	return append_under_limit(dirfd, 2 * RECORD + 276);
}

static bool append_under_whole_limit(int dirfd)
{
	return append_under_limit(dirfd, 2 * RECORD);
}

static void a_file_size_limit_cuts_an_append_short(void **state)
{
	struct scratch *s = *state;
	struct child c = start(append_under_ragged_limit, s->dirfd);
	struct stat st;

	end(&c);
	assert_int_equal(fstatat(s->dirfd, "records", &st, 0), 0);
	assert_int_equal(st.st_size, 2 * RECORD + 276);
}

static void a_limit_of_whole_records_does_not(void **state)
{
	struct scratch *s = *state;
	struct child c = start(append_under_whole_limit, s->dirfd);
	struct stat st;

	end(&c);
	assert_int_equal(fstatat(s->dirfd, "records", &st, 0), 0);
	assert_int_equal(st.st_size, 2 * RECORD);
}

static void a_punched_hole_reads_zeros_and_keeps_the_size(void **state)
{
	struct scratch *s = *state;
	autofd int fd = open_records(s->dirfd, O_APPEND);
	char page[4096], zeros[4096] = "";
	struct stat st;

	memset(page, 'x', sizeof(page));
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096) < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		skip_because("the file system gives no blocks back");
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 3 * 4096);
	assert_int_equal(pread(fd, page, sizeof(page), 4096), sizeof(page));
	assert_memory_equal(page, zeros, sizeof(page));
	assert_int_equal(pread(fd, page, 1, 2 * 4096), 1);
	assert_int_equal(page[0], 'x');
	assert_int_equal(write(fd, page, RECORD), RECORD);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 3 * 4096 + RECORD);
}

/* --- limits ------------------------------------------------------------------------- */

static bool tag_and_exec(int dirfd)
{
	struct rlimit limit;

	(void)dirfd;
	if (getrlimit(RLIMIT_LOCKS, &limit) < 0 || limit.rlim_max < TAG)
		return false;
	limit.rlim_cur = TAG;
	return setrlimit(RLIMIT_LOCKS, &limit) == 0 && become_another_program();
}

static void a_lock_limit_is_inherited_and_shown_in_proc(void **state)
{
	struct scratch *s = *state;
	struct child c = CHILD_NONE;
	char path[64], text[4096], expected[64];
	struct rlimit limit;
	autofd int fd = -1;
	ssize_t got;

	assert_int_equal(getrlimit(RLIMIT_LOCKS, &limit), 0);
	if (limit.rlim_max < TAG)
		skip_because("RLIMIT_LOCKS is too low");
	c = start(tag_and_exec, s->dirfd);
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)c.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = read(fd, text, sizeof(text) - 1);
	end(&c);
	assert_true(got > 0);
	text[got] = '\0';
	(void)snprintf(expected, sizeof(expected), "%" PRIu64, TAG);
	assert_non_null(strstr(text, "Max file locks"));
	assert_memory_equal(
		strstr(text, "Max file locks") + 26, expected, strlen(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_flock_is_independent_per_open),
		SCRATCH_TEST(a_flock_goes_with_the_last_descriptor),
		SCRATCH_TEST(a_flock_survives_exec_and_ends_with_the_process),
		SCRATCH_TEST(a_pidfd_is_silent_until_the_end_and_tells_of_a_zombie),
		SCRATCH_TEST(a_readable_pidfd_means_that_its_flocks_are_gone),
		SCRATCH_TEST(a_pidfd_inode_differs_between_processes),
		SCRATCH_TEST(a_pidfd_inode_stays_over_exec),
		SCRATCH_TEST(a_fifo_read_tells_whether_there_is_a_writer),
		SCRATCH_TEST(read_and_not_poll_notices_a_fifo_without_a_writer),
		SCRATCH_TEST(a_fifo_hangs_up_when_the_last_writer_goes),
		SCRATCH_TEST(a_fifo_keeps_its_writer_over_exec_rename_and_unlink),
		SCRATCH_TEST(pwrite_appends_to_an_append_descriptor),
		SCRATCH_TEST(an_append_tells_its_offset_also_among_other_appenders),
		SCRATCH_TEST(a_file_size_limit_cuts_an_append_short),
		SCRATCH_TEST(a_limit_of_whole_records_does_not),
		SCRATCH_TEST(a_punched_hole_reads_zeros_and_keeps_the_size),
		SCRATCH_TEST(a_lock_limit_is_inherited_and_shown_in_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
