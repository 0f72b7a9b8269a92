/*
 * A state directory for a test, and other processes to stand in it.
 *
 * The other processes are forked, report their identity through a pipe and then rest until the
 * test kills them.  They assert nothing: a failed assertion would run the remaining tests in the
 * child.  An alarm ends the processes that a failed test leaves.
 */
#ifndef GPULEASE_TESTS_FIXTURE_H
#define GPULEASE_TESTS_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "array.h"
#include "bell.h"
#include "live_fifo.h"
#include "fdio.h"
#include "history.h"
#include "queue.h"
#include "scratch.h"
#include "snapshot.h"
#include "statedir.h"

enum { PATIENCE_MS = 20000, LAST_RESORT_S = 60 };

/* A process with an identity: open FIFOs where asked for, and perhaps an heir. */
struct other {
	pid_t pid, heir; /* 0: none (any more) */
	struct owner owner;
};

enum other_has {
	OTHER_ALONE = 0,
	OTHER_LIVE = 1u << 0, /* holds live/TOKEN */
	OTHER_BELL = 1u << 1, /* holds bell/TOKEN */
	OTHER_HEIR = 1u << 2, /* has a child that inherits what it holds */
};

/* Opens the scratch directory as a state directory; its mode makes it a private one. */
static inline struct statedir fixture_dir(const struct scratch *scratch)
{
	struct statedir_choice choice = { .explicit_path = scratch->path };
	struct statedir dir = STATEDIR_NONE;
	struct why why = WHY_NONE;

	if (statedir_open(&choice, &dir, &why) < 0)
		fail_msg("%s", why.text);
	return dir;
}

/* The state directory that @dirfd is open on, opened anew; ->fd is -1 where that fails. */
static inline struct statedir fixture_dir_of(int dirfd)
{
	struct statedir dir = STATEDIR_NONE;

	dir.fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir.is_private = true;
	if (dir.fd < 0 || statedir_open_folders(&dir, NULL) < 0)
		statedir_release(&dir);
	return dir;
}

/*
 * What each test of a file gets anew.  FIXTURE_TEST(f, fixture) makes it before the test and
 * releases it afterwards, in the reverse order; the test finds its scratch directory in *state.
 */
struct fixture {
	struct statedir *dir;  /* NULL: the scratch directory alone */
	struct snapshot *view; /* of ->dir; needs it */
	struct queue *queue;   /* likewise */

	/* Where they are set, ->view is read from nowhere; it has room for so many leases. */
	struct snapshot_lease *leases;
	size_t lease_count;

	/* Comes last; a negative result fails the test. */
	int (*set_up)(struct scratch *here);
	/* Comes first. */
	void (*tear_down)(void);
};

#define FIXTURE_TEST(f, fixture)                  \
	cmocka_unit_test_prestate_setup_teardown( \
		f, fixture_begin, fixture_end, &(fixture))

/* Of the test that runs; tests run one at a time. */
static struct fixture *fixture_current;

static inline void fixture_begin_view(const struct fixture *fixture)
{
	struct snapshot *view = fixture->view;

	if (!fixture->leases) {
		/* whatever memory held before: arrays are good up to ->known */
		memset(view, 1, sizeof(*view));
		snapshot_init(view, fixture->dir);
		return;
	}
	memset(view, 0, sizeof(*view));
	memset(fixture->leases, 0, fixture->lease_count * sizeof(*fixture->leases));
	view->dir = fixture->dir;
	view->lives = LIVENESS_SET_ON(fixture->dir);
	view->leases = fixture->leases;
}

/* Before a test, which has its struct fixture in *state. */
static inline int fixture_begin(void **state)
{
	struct fixture *fixture = *state;

	fixture_current = fixture;
	if (scratch_setup(state) < 0)
		return -1;
	if (fixture->dir)
		*fixture->dir = fixture_dir(*state);
	if (fixture->view)
		fixture_begin_view(fixture);
	if (fixture->queue && queue_open(fixture->queue, fixture->dir) < 0)
		return -1;
	return fixture->set_up ? fixture->set_up(*state) : 0;
}

/* After it; -1 where something cannot be removed. */
static inline int fixture_end(void **state)
{
	const struct fixture *fixture = fixture_current;

	if (fixture->tear_down)
		fixture->tear_down();
	if (fixture->queue)
		queue_release(fixture->queue);
	if (fixture->view && fixture->leases)
		liveness_set_release(&fixture->view->lives);
	else if (fixture->view)
		snapshot_release(fixture->view);
	if (fixture->dir)
		statedir_release(fixture->dir);
	return scratch_teardown(state);
}

/* All of it anew, within a test. */
static inline void fixture_again(void **state)
{
	assert_int_equal(fixture_end(state), 0);
	*state = fixture_current;
	assert_int_equal(fixture_begin(state), 0);
}

/* Appends a ticket for one GPU; returns its number. */
static inline uint64_t fixture_append(struct queue *queue, const struct owner *owner,
	uint32_t ticket_state, const char *boot)
{
	struct ticket ticket = {
		.state = ticket_state, .owner = *owner, .request = { .gpus = 1 }
	};
	uint64_t number = 0;

	text_copy(ticket.boot, sizeof(ticket.boot), boot);
	assert_int_equal(ticket_append(&queue->file, &ticket, &number), 0);
	return number;
}

/* Reads all state files, judges which processes live, and which GPUs are free. */
static inline void fixture_look(struct snapshot *view, int64_t now_ms)
{
	liveness_set_begin(&view->lives);
	assert_int_equal(snapshot_read(view, now_ms), 0);
	assert_int_equal(snapshot_judge(view, now_ms), 0);
	liveness_set_end(&view->lives);
}

/* Writes @lease into record @at of the file of @slot alone. */
static inline void fixture_write_lease(
	int dirfd, unsigned slot, unsigned at, const struct lease *lease)
{
	struct statedir dir = fixture_dir_of(dirfd);
	struct lease_file file;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_write(&file, at, lease), 0);
	lease_release(&file);
	statedir_release(&dir);
}

/* The lease of that ticket, dead or alive; NULL where there is none. */
static inline struct snapshot_lease *fixture_find_ticket(
	struct snapshot *view, uint64_t ticket)
{
	for (size_t i = 0; i < view->lease_count; i++)
		if (view->leases[i].is_of_this_boot &&
			view->leases[i].lease.ticket == ticket)
			return &view->leases[i];
	return NULL;
}

/* The set of slots with the digits in @slots: "013". */
static inline struct gpuset fixture_set(const char *slots)
{
	struct gpuset out = GPUSET_NONE;

	for (; *slots; slots++)
		gpuset_add(&out, (unsigned)(*slots - '0'));
	return out;
}

/*
 * Locks the probe lock number @which as another process would, but writes no record.  Returns the
 * descriptor that holds the lock, or -1: it is locked already.
 */
static inline int fixture_lock_probe(int dirfd, unsigned which)
{
	autofd int fd = -1;
	char name[32];

	(void)snprintf(
		name, sizeof(name), which ? "probe.lock.%u" : "probe.lock", which + 1);
	fd = fdio_open_shared(dirfd, name, O_RDWR);
	assert_true(fd >= 0);
	return flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

/* Gives this process the tag @tag, see process_lease.h. */
static inline void fixture_set_tag(uint64_t tag)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_LOCKS, &limit) == 0) {
		limit.rlim_cur = tag;
		(void)setrlimit(RLIMIT_LOCKS, &limit);
	}
}

/*
 * Starts a process with the environment entry @variable (NULL: none) and the tag @tag (0: none),
 * and returns when it has become another program.
 */
static inline pid_t fixture_start_sleep(const char *variable, uint64_t tag)
{
	char *const argv[] = { (char *)"sleep", (char *)"1000", NULL };
	char *const envp[] = { (char *)"A=1", (char *)variable, NULL };
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (tag)
			fixture_set_tag(tag);
		(void)execve("/bin/sleep", argv, envp);
		_exit(127);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	(void)close(ends[0]);
	return pid;
}

/* Sleeps until a signal kills the process. */
static inline void fixture_rest(void)
{
	(void)alarm(LAST_RESORT_S);
	for (;;)
		(void)pause();
}

/* Starts a process of user @uid, with the tag @tag (0: none), which rests; for root. */
static inline pid_t fixture_start_as(uid_t uid, uint64_t tag)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (tag)
			fixture_set_tag(tag);
		if (setuid(uid) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0)
			(void)!write(ends[1], "!", 1);
		fixture_rest();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	return pid;
}

/* Waits until process @pid has ended, reaped or not; false where it takes too long. */
static inline bool fixture_await_end(pid_t pid)
{
	autofd int pidfd = pidfd_open_process((uint32_t)pid);
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	if (pidfd == -ESRCH)
		return true;
	return pidfd >= 0 && poll(&poll_fd, 1, PATIENCE_MS) == 1;
}

/* Kills @pid and waits for its end; reaps it where it is (or becomes) a child of ours. */
static inline void fixture_kill(pid_t *pid)
{
	pid_t victim = *pid;

	*pid = 0;
	if (!victim)
		return;
	(void)kill(victim, SIGKILL);
	if (!fixture_await_end(victim))
		fail_msg("process %d does not end", (int)victim);
	(void)waitpid(victim, NULL, 0);
}

struct other_report {
	int error;
	pid_t heir;
	struct owner owner;
};

static inline struct other_report other_become(int dirfd, unsigned has)
{
	struct other_report report = { .error = 0 };
	struct statedir dir = fixture_dir_of(dirfd);

	report.error = owner_self(&report.owner);
	if (report.error == 0 && (has & OTHER_LIVE) &&
		fifo_create(&dir, FIFO_LIVE, &report.owner) < 0)
		report.error = -EIO;
	if (report.error == 0 && (has & OTHER_BELL) &&
		fifo_create(&dir, FIFO_BELL, &report.owner) < 0)
		report.error = -EIO;
	if (report.error == 0 && (has & OTHER_HEIR)) {
		report.heir = fork();
		if (report.heir == 0)
			fixture_rest();
	}
	return report;
}

/* Starts a process that holds in @dirfd what @has says. */
static inline struct other other_start(int dirfd, unsigned has)
{
	struct other_report report = { .error = -EPIPE };
	struct other other = { .pid = 0 };
	int ends[2];

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* so that heirs can be reaped */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	other.pid = fork();
	if (other.pid == 0) {
		report = other_become(dirfd, has);
		(void)!write(ends[1], &report, sizeof(report));
		(void)close(ends[1]);
		fixture_rest();
	}
	(void)close(ends[1]);
	if (read(ends[0], &report, sizeof(report)) != (ssize_t)sizeof(report))
		report.error = -EPIPE;
	(void)close(ends[0]);
	assert_true(other.pid > 0);
	assert_int_equal(report.error, 0);
	other.heir = report.heir;
	other.owner = report.owner;
	return other;
}

static inline void other_kill(struct other *other)
{
	fixture_kill(&other->pid);
}

static inline void other_kill_heir(struct other *other)
{
	fixture_kill(&other->heir);
}

/* Ends whatever still runs. */
static inline void other_end(struct other *other)
{
	other_kill(other);
	other_kill_heir(other);
}

/* The identity of a process that held what @has says and is dead now. */
static inline struct owner fixture_dead_owner(int dirfd, unsigned has)
{
	struct other other = other_start(dirfd, has);

	other_end(&other);
	return other.owner;
}

static inline void assert_same_owner(const struct owner *a, const struct owner *b)
{
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->uid, b->uid);
	assert_true(a->inode == b->inode && a->start == b->start && a->pidns == b->pidns);
	assert_string_equal(a->token, b->token);
}

static inline bool fixture_exists(int dirfd, const char *folder, const char *name)
{
	char path[200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether @fd is ready for @events (or hung up) now. */
static inline bool fixture_is_ready(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	return poll(&poll_fd, 1, 0) == 1;
}

/* The newest @most entries of the history, oldest first, freed by the caller. */
static inline struct history_end *fixture_history(
	int dirfd, size_t most, size_t *ret_count)
{
	struct history_end *ends = NULL, end;
	struct history_reader reader;
	size_t count = 0, room = 0;

	assert_int_equal(history_reader_open(dirfd, &reader), 0);
	while (count < most && history_next(&reader, &end) == 0) {
		ends = array_grow(ends, sizeof(*ends), count, &room);
		assert_non_null(ends);
		memmove(ends + 1, ends, count++ * sizeof(*ends));
		ends[0] = end;
	}
	history_reader_release(&reader);
	*ret_count = count;
	return ends;
}

/* Whether the file system of @dirfd gives blocks back. */
static inline bool fixture_can_punch(int dirfd)
{
	autofd int fd = fdio_open_shared(dirfd, "punched", O_RDWR);
	bool can = fd >= 0 && ftruncate(fd, 8192) == 0 && fdio_punch(fd, 0, 4096) == 0;

	(void)unlinkat(dirfd, "punched", 0);
	return can;
}

/* How many descriptors this process has open. */
static inline int fixture_open_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#endif
