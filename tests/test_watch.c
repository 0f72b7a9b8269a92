#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/time.h>

#include "clock.h"
#include "fixture.h"
#include "watch.h"

enum { LONG_MS = 3600 * 1000 };

static struct watch watch;
static int ends[2]; /* of a pipe */

static int setup(void **state)
{
	(void)state;
	watch = WATCH_NONE;
	return pipe2(ends, O_CLOEXEC);
}

static int teardown(void **state)
{
	(void)state;
	watch_release(&watch);
	close_fd(&ends[0]);
	close_fd(&ends[1]);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static bool has_no_timers;

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);

int __wrap_timerfd_create(int clock, int flags)
{
	errno = EMFILE;
	return has_no_timers ? -1 : __real_timerfd_create(clock, flags);
}

static void a_ready_descriptor_ends_every_wait(void **state)
{
	(void)state;
	assert_int_equal(write(ends[1], "!", 1), 1);
	for (int i = 0; i < 3; i++) {
		watch_begin(&watch);
		watch_until(&watch, clock_boot_ms() + LONG_MS);
		assert_int_equal(watch_add(&watch, ends[0], POLLIN), 0);
		assert_int_equal(watch_wait(&watch), 0);
		assert_true(watch.fds[0].revents & POLLIN);
	}
}

static void a_wait_for_some_time_says_that_nothing_happened(void **state)
{
	(void)state;
	watch_begin(&watch);
	assert_int_equal(watch_add(&watch, ends[0], POLLIN), 0);
	assert_int_equal(watch_look(&watch), 0);
	assert_int_equal(watch_wait_for(&watch, 1), WATCH_NOTHING);
	assert_int_equal(write(ends[1], "!", 1), 1);
	assert_int_equal(watch_look(&watch), 1);
	assert_int_equal(watch_wait_for(&watch, LONG_MS), 0);
	watch_begin(&watch);
	watch_until(&watch, clock_boot_ms());
	assert_int_equal(watch_look(&watch), 1);
	assert_int_equal(watch_wait_for(&watch, LONG_MS), 0);
}

static void no_events_at_all_still_mean_a_hangup(void **state)
{
	(void)state;
	assert_int_equal(write(ends[1], "!", 1), 1);
	watch_begin(&watch);
	assert_int_equal(watch_add(&watch, ends[0], 0), 0);
	watch_until(&watch, clock_boot_ms());
	assert_int_equal(watch_wait(&watch), 0);
	assert_int_equal(watch.fds[0].revents, 0); /* a byte is not among the events */
	close_fd(&ends[1]);
	watch_begin(&watch);
	assert_int_equal(watch_add(&watch, ends[0], 0), 0);
	watch_until(&watch, clock_boot_ms() + LONG_MS);
	assert_int_equal(watch_wait(&watch), 0);
	assert_true(watch.fds[0].revents & POLLHUP);
}

static void the_earliest_time_counts(void **state)
{
	int64_t now_ms = clock_boot_ms(), at_ms;

	(void)state;
	watch_begin(&watch);
	watch_until(&watch, now_ms + LONG_MS);
	watch_until(&watch, now_ms + 20);
	watch_until(&watch, INT64_MAX);
	assert_int_equal(watch_wait(&watch), 0);
	at_ms = clock_boot_ms();
	assert_true(at_ms >= now_ms + 20);
	assert_true(at_ms < now_ms + PATIENCE_MS);
	/* a time in the past does not wait, however long ago it was */
	watch_begin(&watch);
	watch_until(&watch, 0);
	assert_int_equal(watch_wait(&watch), 0);
	watch_begin(&watch);
	watch_until(&watch, INT64_MIN / 2);
	assert_int_equal(watch_wait(&watch), 0);
}

static void a_negative_descriptor_is_not_added(void **state)
{
	(void)state;
	watch_begin(&watch);
	assert_int_equal(watch_add(&watch, -1, POLLIN), 0);
	assert_int_equal(watch.count, 0);
	watch_release(&watch);
}

static void a_collection_begins_anew_and_grows(void **state)
{
	(void)state;
	watch_begin(&watch);
	for (int i = 0; i < 500; i++)
		assert_int_equal(watch_add(&watch, ends[0], POLLIN), 0);
	assert_int_equal(watch.count, 500);
	assert_int_equal(watch.fds[499].fd, ends[0]);
	watch_until(&watch, 17);
	watch_begin(&watch);
	assert_int_equal(watch.count, 0);
	assert_true(watch.until_ms == INT64_MAX);
}

static void take_signal(int number)
{
	(void)number;
}

static void a_signal_ends_the_wait(void **state)
{
	/* repeated signals: one of them may come before the wait */
	struct itimerval timer = { { 0, 5000 }, { 0, 5000 } },
			 off = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = take_signal, .sa_flags = SA_RESTART };
	int64_t began_ms = clock_boot_ms();
	int r;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	watch_begin(&watch);
	watch_until(&watch, began_ms + PATIENCE_MS);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	r = watch_wait(&watch);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	assert_int_equal(r, 0);
	assert_true(clock_boot_ms() < began_ms + PATIENCE_MS);
}

/* How many timers of CLOCK_BOOTTIME (7) this process has. */
static int timers_of_boottime(void)
{
	int found = 0;

	for (int fd = 3; fd < 64; fd++) {
		char path[64], info[512] = "";
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fread(info, 1, sizeof(info) - 1, file) > 0)
			found += strstr(info, "clockid: 7\n") != NULL;
		(void)fclose(file);
	}
	return found;
}

static void a_long_wait_has_a_timer_that_counts_a_suspend(void **state)
{
	(void)state;
	assert_int_equal(write(ends[1], "!", 1), 1);
	watch_begin(&watch);
	assert_int_equal(watch_add(&watch, ends[0], POLLIN), 0);
	assert_int_equal(watch_wait(&watch), 0);
	watch_until(&watch, clock_boot_ms() + 1000);
	assert_int_equal(watch_wait(&watch), 0);
	assert_int_equal(timers_of_boottime(), 0); /* none is needed yet */
	for (int i = 0; i < 3; i++) {
		watch_begin(&watch);
		assert_int_equal(watch_add(&watch, ends[0], POLLIN), 0);
		watch_until(&watch, clock_boot_ms() + LONG_MS + i);
		assert_int_equal(watch_wait(&watch), 0);
		assert_int_equal(watch.count, 1);
		assert_int_equal(timers_of_boottime(), 1);
	}
	watch_release(&watch);
	assert_int_equal(timers_of_boottime(), 0);
}

static void a_timer_ends_the_wait_and_serves_again(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		int64_t at_ms = clock_boot_ms() + 1050;

		watch_begin(&watch);
		watch_until(&watch, at_ms);
		assert_int_equal(watch_wait(&watch), 0);
		assert_true(clock_boot_ms() >= at_ms);
	}
}

static void without_a_timer_the_wait_ends_each_minute(void **state)
{
	struct alarm alarm = { .at_ms = 0 };
	struct pollfd fd;

	(void)state;
	has_no_timers = true;
	assert_int_equal(alarm_set(&alarm, clock_boot_ms() + LONG_MS, &fd), 60 * 1000);
	assert_int_equal(fd.fd, -1);
	has_no_timers = false;
	assert_int_equal(alarm_set(&alarm, clock_boot_ms() + LONG_MS, &fd), -1);
	assert_true(fd.fd >= 0);
	assert_int_equal(alarm_set(&alarm, INT64_MAX, &fd), -1);
	assert_int_equal(fd.fd, -1);
	alarm_release(&alarm);
	alarm_release(&alarm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ready_descriptor_ends_every_wait),
		TEST(a_wait_for_some_time_says_that_nothing_happened),
		TEST(no_events_at_all_still_mean_a_hangup),
		TEST(the_earliest_time_counts),
		TEST(a_negative_descriptor_is_not_added),
		TEST(a_collection_begins_anew_and_grows),
		TEST(a_signal_ends_the_wait),
		TEST(a_long_wait_has_a_timer_that_counts_a_suspend),
		TEST(a_timer_ends_the_wait_and_serves_again),
		TEST(without_a_timer_the_wait_ends_each_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
