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

static int setup(void **state)
{
	return fixture_dir_setup(state, &dir);
}

static int teardown(void **state)
{
	return fixture_dir_teardown(state, &dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int take(struct probe_lock *lock, int64_t now_ms)
{
	return probe_lock_take(&dir, lock, &patience, now_ms);
}

static bool is_locked(unsigned which)
{
	autofd int fd = fixture_lock_probe(dir.fd, which);

	return fd < 0;
}

static void at_most_two_probe_however_many_wait(void **state)
{
	struct probe_lock holders[2] = { PROBE_LOCK_NONE, PROBE_LOCK_NONE };
	struct probe_lock others[12];

	(void)state;
	assert_int_equal(take(&holders[0], NOW), 0);
	assert_int_equal(take(&holders[1], NOW), PROBE_BUSY);
	assert_int_equal(take(&holders[1], NOW + FIRST - 1), PROBE_BUSY);
	assert_int_equal(take(&holders[1], NOW + FIRST), 0);
	assert_true(holders[0].fd >= 0 && holders[1].fd >= 0);
	assert_false(holders[0].has_doubt);
	assert_true(holders[1].has_doubt); /* the first probe is slow, and may hang */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = PROBE_LOCK_NONE;
		assert_int_equal(take(&others[i], NOW + FIRST), PROBE_BUSY);
		assert_int_equal(take(&others[i], NOW + FIRST + OTHERS - 1), PROBE_BUSY);
	}
	/* the next process takes whichever lock is free */
	probe_lock_release(&dir, &holders[1], true);
	assert_int_equal(take(&others[0], NOW + FIRST + OTHERS), 0);
	probe_lock_release(&dir, &holders[0], true);
	assert_int_equal(take(&others[1], NOW + FIRST + OTHERS), 0);
	assert_int_equal(take(&others[2], NOW + FIRST + OTHERS), PROBE_BUSY);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		probe_lock_release(&dir, &others[i], true);
}

static void a_stopped_holder_costs_its_time_once(void **state)
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

static void stopped_holders_of_all_locks_stop_no_process(void **state)
{
	struct probe_lock stopped[PROBE_LOCKS], later = PROBE_LOCK_NONE;
	int64_t now_ms = NOW;

	(void)state;
	for (unsigned i = 0; i < PROBE_LOCKS; i++) {
		stopped[i] = PROBE_LOCK_NONE;
		assert_int_equal(take(&stopped[i], now_ms), 0);
		assert_true(is_locked(i));
		assert_int_equal(take(&later, now_ms), PROBE_BUSY);
		now_ms += i ? OTHERS : FIRST;
	}
	assert_int_equal(take(&later, now_ms), 0);
	assert_int_equal(later.fd, -1);
	for (unsigned i = 0; i < PROBE_LOCKS; i++)
		probe_lock_release(&dir, &stopped[i], false);
	probe_lock_release(&dir, &later, true);
}

static void a_holder_without_a_record_is_timed_by_the_waiter(void **state)
{
	struct probe_lock later = PROBE_LOCK_NONE;
	autofd int old = fixture_lock_probe(dir.fd, 0);

	(void)state;
	assert_true(old >= 0);
	assert_int_equal(take(&later, NOW), PROBE_BUSY);
	assert_int_equal(take(&later, NOW + FIRST - 1), PROBE_BUSY);
	assert_int_equal(take(&later, NOW + FIRST), 0);
	probe_lock_release(&dir, &later, true);
	/* the next process waits again */
	assert_int_equal(take(&later, NOW + FIRST), PROBE_BUSY);
	probe_lock_forget(&later);
	assert_int_equal(take(&later, NOW + 2 * FIRST - 1), PROBE_BUSY);
}

static void a_probe_without_an_end_leaves_doubt(void **state)
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

static void what_is_no_plain_file_is_no_lock(void **state)
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

static void a_lock_that_cannot_be_opened_is_done_without(void **state)
{
	struct probe_lock lock = PROBE_LOCK_NONE;

	(void)state;
	assert_int_equal(mkdirat(dir.fd, "probe.lock", 0700), 0);
	assert_int_equal(take(&lock, NOW), 0);
	assert_int_equal(lock.fd, -1);
	assert_int_equal(unlinkat(dir.fd, "probe.lock", AT_REMOVEDIR), 0);
}

/* --- hanging processes ---------------------------------------------------------------- */

static void a_process_hangs_by_its_name_and_state(void **state)
{
	static const struct {
		const char *stat, *path;
		bool is_hanging;
	} cases[] = {
		{ "12 (nvidia-smi) D 1 1", "/usr/bin/nvidia-smi", true },
		{ "12 (nvidia-smi) S 1 1", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-smi) Z 1 1", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-smi2) D 1 1", "/usr/bin/nvidia-smi", false },
		{ "12 (nvidia-sm) D 1 1", "/usr/bin/nvidia-smi", false },
		{ "12 (a-long-name-wra) D 1", "/opt/a-long-name-wrapper", true },
		{ "12 (nvidia-smi) D 1", "/opt/a-long-name-wrapper", true },
		{ "12 (x) D (nvidia-smi) S 1", "nvidia-smi", false },
		{ "12 (wrapper) D 1", "wrapper", true },
		{ "12 (", "nvidia-smi", false },
		{ ")(", "nvidia-smi", false },
		{ "", "", false },
		{ "12 () D", "", false },
		{ "12 (nvidia-smi)", "nvidia-smi", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (probe_is_hanging(cases[i].stat, cases[i].path) != cases[i].is_hanging)
			fail_msg("case %zu", i);
}

static bool is_in_state_d(pid_t pid)
{
	char path[64], text[512] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return fdio_read_text(AT_FDCWD, path, text, sizeof(text)) == 0 &&
	       probe_is_hanging(text, "gpulease-hang");
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

static void those_that_hang_are_counted(void **state)
{
	pid_t pids[PROBE_HANGING_MAX + 1];

	(void)state;
	assert_int_equal(probe_count_hanging("gpulease-hang"), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++) {
		unsigned wanted = i < PROBE_HANGING_MAX ? i + 1 : PROBE_HANGING_MAX;

		pids[i] = start_hanging("gpulease-hang");
		for (int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
			(!is_in_state_d(pids[i]) ||
				probe_count_hanging("/x/gpulease-hang") != wanted) &&
			clock_boot_ms() < until_ms;)
			(void)poll(NULL, 0, 1);
		assert_int_equal(probe_count_hanging("/x/gpulease-hang"), wanted);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(pids); i++)
		fixture_kill(&pids[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(at_most_two_probe_however_many_wait),
		TEST(a_stopped_holder_costs_its_time_once),
		TEST(stopped_holders_of_all_locks_stop_no_process),
		TEST(a_holder_without_a_record_is_timed_by_the_waiter),
		TEST(a_probe_without_an_end_leaves_doubt),
		TEST(a_lock_file_is_made_for_all_and_closed_on_exec),
		TEST(what_is_no_plain_file_is_no_lock),
		TEST(a_lock_that_cannot_be_opened_is_done_without),
		cmocka_unit_test(a_process_hangs_by_its_name_and_state),
		TEST(those_that_hang_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
