#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <sys/syscall.h>

#include "clock.h"
#include "fixture.h"
#include "probe_hang.h"
#include "probe_lock.h"

enum { NOW = 1000000, FIRST = 2000, OTHERS = 12000 };

static const struct probe_patience patience = { FIRST, OTHERS };
static struct statedir dir;

static struct fixture fixture = { .dir = &dir };

#define TEST(f) FIXTURE_TEST(f, fixture)

static int take(struct probe_lock *lock, int64_t now_ms)
{
	return probe_lock_take(&dir, lock, &patience, now_ms);
}

static bool is_locked(unsigned which)
{
	autofd int fd = fixture_lock_probe(dir.fd, which);

	return fd < 0;
}

static void at_most_two_processes_probe(void **state)
{
	struct probe_lock holders[2] = { PROBE_LOCK_NONE, PROBE_LOCK_NONE };
	struct probe_lock others[12];

	(void)state;
	assert_int_equal(take(&holders[0], NOW), 0);
	assert_int_equal(take(&holders[1], NOW), PROBE_LOCK_BUSY);
	assert_int_equal(take(&holders[1], NOW + FIRST - 1), PROBE_LOCK_BUSY);
	assert_int_equal(take(&holders[1], NOW + FIRST), 0);
	assert_true(holders[0].fd >= 0 && holders[1].fd >= 0);
	assert_false(holders[0].has_doubt);
	assert_true(holders[1].has_doubt); /* the first probe is slow, and may hang */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = PROBE_LOCK_NONE;
		assert_int_equal(take(&others[i], NOW + FIRST), PROBE_LOCK_BUSY);
		assert_int_equal(
			take(&others[i], NOW + FIRST + OTHERS - 1), PROBE_LOCK_BUSY);
	}
	/* the next process takes whichever lock is free */
	probe_lock_release(&dir, &holders[1], true);
	assert_int_equal(take(&others[0], NOW + FIRST + OTHERS), 0);
	probe_lock_release(&dir, &holders[0], true);
	assert_int_equal(take(&others[1], NOW + FIRST + OTHERS), 0);
	assert_int_equal(take(&others[2], NOW + FIRST + OTHERS), PROBE_LOCK_BUSY);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		probe_lock_release(&dir, &others[i], true);
}

static void a_stopped_holder_is_waited_for_once(void **state)
{
	struct probe_lock stopped = PROBE_LOCK_NONE, later = PROBE_LOCK_NONE;

	(void)state;
	assert_int_equal(take(&stopped, NOW), 0);
	for (int i = 0; i < 3; i++) {
		/* a process that has just come does not wait for the stopped one */
		assert_int_equal(take(&later, NOW + FIRST + i), 0);
		assert_true(is_locked(1));
		probe_lock_release(&dir, &later, true);
		assert_false(is_locked(1));
	}
	probe_lock_release(&dir, &stopped, false);
}

static void stopped_holders_of_all_locks_stop_no_other_process(void **state)
{
	struct probe_lock stopped[PROBE_LOCKS], later = PROBE_LOCK_NONE;
	int64_t now_ms = NOW;

	(void)state;
	for (unsigned i = 0; i < PROBE_LOCKS; i++) {
		stopped[i] = PROBE_LOCK_NONE;
		assert_int_equal(take(&stopped[i], now_ms), 0);
		assert_true(is_locked(i));
		assert_int_equal(take(&later, now_ms), PROBE_LOCK_BUSY);
		now_ms += i ? OTHERS : FIRST;
	}
	assert_int_equal(take(&later, now_ms), 0);
	assert_int_equal(later.fd, -1);
	for (unsigned i = 0; i < PROBE_LOCKS; i++)
		probe_lock_release(&dir, &stopped[i], false);
	probe_lock_release(&dir, &later, true);
}

static void a_row_of_killed_holders_counts_as_one(void **state)
{
	struct probe_lock later = PROBE_LOCK_NONE;

	(void)state;
	for (int64_t ms = 0; ms < FIRST; ms += FIRST / 4) {
		struct probe_lock killed = PROBE_LOCK_NONE;

		assert_int_equal(take(&killed, NOW + ms), 0);
		assert_int_equal(take(&later, NOW + ms + 1), PROBE_LOCK_BUSY);
		if (ms + FIRST / 4 < FIRST) {
			probe_lock_release(&dir, &killed, false);
			continue;
		}
		assert_int_equal(take(&later, NOW + FIRST), PROBE_LOCK_BUSY);
		assert_int_equal(take(&later, NOW + FIRST + 1), 0);
		assert_true(is_locked(1));
		probe_lock_release(&dir, &killed, false);
	}
	probe_lock_release(&dir, &later, true);
}

static void a_holder_without_a_record_is_timed_by_the_waiter(void **state)
{
	struct probe_lock later = PROBE_LOCK_NONE;
	autofd int old = fixture_lock_probe(dir.fd, 0);

	(void)state;
	assert_true(old >= 0);
	assert_int_equal(take(&later, NOW), PROBE_LOCK_BUSY);
	assert_int_equal(take(&later, NOW + FIRST - 1), PROBE_LOCK_BUSY);
	assert_int_equal(take(&later, NOW + FIRST), 0);
	probe_lock_release(&dir, &later, true);
	/* the next process waits again */
	assert_int_equal(take(&later, NOW + FIRST), PROBE_LOCK_BUSY);
	probe_lock_forget(&later);
	assert_int_equal(take(&later, NOW + 2 * FIRST - 1), PROBE_LOCK_BUSY);
}

static void a_probe_that_did_not_end_leaves_doubt(void **state)
{
	struct probe_lock lock = PROBE_LOCK_NONE;

	(void)state;
	assert_int_equal(take(&lock, NOW), 0);
	probe_lock_release(&dir, &lock, true);
	assert_int_equal(take(&lock, NOW), 0);
	assert_false(lock.has_doubt);
	probe_lock_release(&dir, &lock, false); /* as after a kill */
	assert_int_equal(take(&lock, NOW), 0);
	assert_true(lock.has_doubt);
	probe_lock_release(&dir, &lock, true);
	assert_int_equal(take(&lock, NOW), 0);
	assert_false(lock.has_doubt);
	probe_lock_release(&dir, &lock, true);
}

static void a_lock_file_is_made_for_all_and_closed_on_exec(void **state)
{
	struct probe_lock lock = PROBE_LOCK_NONE;
	mode_t before = umask(077);
	struct stat st;

	(void)state;
	assert_int_equal(take(&lock, NOW), 0);
	(void)umask(before);
	assert_true(is_locked(0));
	assert_int_equal(fstat(lock.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(fcntl(lock.fd, F_GETFD), FD_CLOEXEC);
	probe_lock_release(&dir, &lock, true);
	assert_false(is_locked(0));
	assert_true(fixture_exists(dir.fd, ".", "probe.lock"));
}

static void only_a_regular_file_is_a_lock(void **state)
{
	struct probe_lock lock = PROBE_LOCK_NONE;

	(void)state;
	assert_int_equal(symlinkat("elsewhere", dir.fd, "probe.lock"), 0);
	assert_int_equal(take(&lock, NOW), 0);
	assert_int_equal(lock.fd, -1);
	assert_false(fixture_exists(dir.fd, ".", "elsewhere"));
	assert_int_equal(unlinkat(dir.fd, "probe.lock", 0), 0);
	assert_int_equal(mkfifoat(dir.fd, "probe.lock", 0600), 0);
	assert_int_equal(take(&lock, NOW), 0);
	assert_int_equal(lock.fd, -1);
}

static void a_process_probes_without_a_lock_it_cannot_open(void **state)
{
	struct probe_lock lock = PROBE_LOCK_NONE;

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "probe.lock", 0700), 0);
	assert_int_equal(take(&lock, NOW), 0);
	assert_int_equal(lock.fd, -1);
	assert_int_equal(unlinkat(dir.fd, "probe.lock", AT_REMOVEDIR), 0);
}

/* --- hanging processes ---------------------------------------------------------------- */

static void a_process_hangs_by_its_name_state_and_age(void **state)
{
	static const struct {
		const char *stat, *path;
		bool is_hanging;
	} cases[] = {
		{ "12 (nvidia-smi) D", "/usr/bin/nvidia-smi", true },
		{ "12 (nvidia-smi) S", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-smi) Z", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-smi2) D", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-sm) D", "/usr/bin/nvidia-smi", false },
		{ "12 (a-long-name-wra) D", "/opt/a-long-name-wrapper", true },
		{ "12 (nvidia-smi) D", "/opt/a-long-name-wrapper", true },
		{ "12 (x) D (nvidia-smi) S", "nvidia-smi", false },
		{ "12 (wrapper) D", "wrapper", true },
		{ "12 () D", "", false },
	};
	static const char rest[] = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 700 20";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct process_stat stat;
		char text[256];

		(void)snprintf(text, sizeof(text), "%s%s", cases[i].stat, rest);
		assert_int_equal(process_stat_parse(text, &stat), 0);
		if (probe_is_hanging(&stat, cases[i].path, 701) != cases[i].is_hanging)
			fail_msg("case %zu", i);
		/* a younger one may answer yet */
		assert_false(probe_is_hanging(&stat, cases[i].path, 700));
	}
}

static bool is_in_state_d(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)pid, &stat) == 0 &&
	       probe_is_hanging(&stat, "gpulease-hang", UINT64_MAX);
}

/* Starts a process of that name in state D: it waits for its vfork(2) child. */
static pid_t start_hanging(const char *name)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_NAME, name, 0, 0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			fixture_rest();
		}
		_exit(0);
	}
	return pid;
}

/* Waits until so many are counted: for a moment an nvidia-smi of another test may count, too. */
static bool are_counted(const char *path, unsigned wanted)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;

	while (probe_count_hanging(path, 0) != wanted) {
		if (clock_boot_ms() >= until_ms)
			return false;
		(void)poll(NULL, 0, 1);
	}
	return true;
}

static void hanging_processes_are_counted(void **state)
{
	pid_t pids[PROBE_HANGING_MAX + 1];

	(void)state;
	assert_true(are_counted("gpulease-hang", 0));
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++) {
		unsigned wanted = i < PROBE_HANGING_MAX ? i + 1 : PROBE_HANGING_MAX;

		pids[i] = start_hanging("gpulease-hang");
		for (int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
			!is_in_state_d(pids[i]) && clock_boot_ms() < until_ms;)
			(void)poll(NULL, 0, 1);
		assert_true(are_counted("/x/gpulease-hang", wanted));
	}
	assert_int_equal(probe_count_hanging("/x/gpulease-hang", 3600000), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++)
		fixture_kill(&pids[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at_most_two_processes_probe),
		TEST(a_stopped_holder_is_waited_for_once),
		TEST(stopped_holders_of_all_locks_stop_no_other_process),
		TEST(a_row_of_killed_holders_counts_as_one),
		TEST(a_holder_without_a_record_is_timed_by_the_waiter),
		TEST(a_probe_that_did_not_end_leaves_doubt),
		TEST(a_lock_file_is_made_for_all_and_closed_on_exec),
		TEST(only_a_regular_file_is_a_lock),
		TEST(a_process_probes_without_a_lock_it_cannot_open),
		cmocka_unit_test(a_process_hangs_by_its_name_state_and_age),
		TEST(hanging_processes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
