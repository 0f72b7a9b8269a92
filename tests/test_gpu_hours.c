#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "gpu_hours.h"

static int64_t real_ms; /* the clock, for the test; 0: the real one */

int64_t __real_clock_real_ms(void);
int64_t __wrap_clock_real_ms(void);

int64_t __wrap_clock_real_ms(void)
{
	return real_ms ? real_ms : __real_clock_real_ms();
}

static const int64_t HOUR_MS = 3600 * 1000, DAY_MS = 24 * 3600 * 1000;

static struct statedir dir;
static int fd = -1;

static int set_up(struct scratch *here)
{
	(void)here;
	real_ms = 20000 * DAY_MS + 12 * HOUR_MS; /* noon */
	fd = gpu_hours_open(&dir);
	return fd < 0 ? -1 : 0;
}

static void tear_down(void)
{
	close_fd(&fd);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* A lease of @uid on @slots that has run for @ms until now. */
static void add(uint32_t uid, const char *slots, unsigned percent, int64_t ms)
{
	int64_t now_ms = clock_boot_ms();
	struct lease lease = { .owner.uid = uid,
		.gpus = fixture_set(slots),
		.share_percent = percent,
		.since_ms = now_ms - ms };

	assert_int_equal(gpu_hours_add(fd, &lease, now_ms), 0);
}

static void check(uint32_t uid, unsigned days, int64_t ms)
{
	struct gpu_hours hours;

	assert_int_equal(gpu_hours_read(&dir, uid, days, &hours), 0);
	assert_int_equal(hours.gpu_ms, ms);
}

static off_t records(void)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size / RECORD_SIZE;
}

static void time_counts_for_its_user_by_gpus_and_share(void **state)
{
	(void)state;
	check(1000, 7, 0);
	add(1000, "0", 100, HOUR_MS);
	add(1000, "013", 100, HOUR_MS);
	add(1001, "0", 50, HOUR_MS);
	add(1001, "0", 0, HOUR_MS); /* declared memory counts as a whole GPU */
	add(0, "7", 100, HOUR_MS);
	check(1000, 7, 4 * HOUR_MS);
	check(1001, 7, HOUR_MS + HOUR_MS / 2);
	check(0, 7, HOUR_MS);
	check(1002, 7, 0);
	assert_int_equal(records(), 3); /* one for each user and day */
}

static void time_counts_on_the_days_on_which_it_passed(void **state)
{
	(void)state;
	add(1000, "0", 100, 36 * HOUR_MS); /* 12 h today, 24 h yesterday */
	check(1000, 1, 12 * HOUR_MS);
	check(1000, 2, 36 * HOUR_MS);
	real_ms += 6 * DAY_MS;
	check(1000, 7, 12 * HOUR_MS);
	check(1000, 8, 36 * HOUR_MS);
	real_ms += DAY_MS;
	check(1000, 7, 0);
	/* a job that ran for longer than anything counts */
	add(1001, "0", 100, 100 * DAY_MS);
	check(1001, 30, 29 * DAY_MS + 12 * HOUR_MS);
}

static void old_records_are_used_again(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		add(1000, "0", 100, HOUR_MS);
		add(1001, "0", 100, HOUR_MS);
		real_ms += DAY_MS;
	}
	assert_in_range(records(), 60, 64);
	check(1000, 30, 29 * HOUR_MS);
}

static void damaged_records_are_skipped_and_counted(void **state)
{
	struct gpu_hours hours;

	(void)state;
	add(1000, "0", 100, HOUR_MS);
	add(1001, "0", 100, HOUR_MS);
	assert_int_equal(pwrite(fd, "#", 1, 30), 1);
	assert_int_equal(gpu_hours_read(&dir, 1001, 7, &hours), 0);
	assert_int_equal(hours.gpu_ms, HOUR_MS);
	assert_int_equal(hours.broken, 1);
	check(1000, 7, 0);
	/* the next that is written takes its place */
	add(1000, "0", 100, HOUR_MS);
	check(1000, 7, HOUR_MS);
	assert_int_equal(records(), 2);
}

static void a_process_that_holds_the_lock_loses_no_time(void **state)
{
	int held = openat(dir.fd, "usage", O_RDWR | O_CLOEXEC);

	(void)state;
	add(1000, "0", 100, HOUR_MS);
	assert_int_equal(flock(held, LOCK_EX), 0);
	add(1000, "0", 100, HOUR_MS);
	assert_int_equal(records(), 2);
	(void)close(held);
	add(1000, "0", 100, HOUR_MS);
	assert_int_equal(records(), 2);
	check(1000, 7, 3 * HOUR_MS);
}

static void a_user_that_keeps_the_lock_does_not_fill_the_file(void **state)
{
	int held = openat(dir.fd, "usage", O_RDWR | O_CLOEXEC);

	(void)state;
	add(1001, "0", 100, HOUR_MS);
	assert_int_equal(flock(held, LOCK_EX), 0);
	for (int i = 0; i < 100; i++)
		add(1000, "0", 100, HOUR_MS / 100);
	assert_in_range(records(), 2, 12);
	add(1002, "0", 100, HOUR_MS);
	add(1001, "0", 100, HOUR_MS);
	(void)close(held);
	check(1000, 7, HOUR_MS);
	check(1001, 7, 2 * HOUR_MS);
	check(1002, 7, HOUR_MS);
}

static void without_a_file_nothing_was_used(void **state)
{
	(void)state;
	assert_int_equal(unlinkat(dir.fd, "usage", 0), 0);
	check(1000, 7, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(time_counts_for_its_user_by_gpus_and_share),
		TEST(time_counts_on_the_days_on_which_it_passed),
		TEST(old_records_are_used_again),
		TEST(damaged_records_are_skipped_and_counted),
		TEST(a_process_that_holds_the_lock_loses_no_time),
		TEST(a_user_that_keeps_the_lock_does_not_fill_the_file),
		TEST(without_a_file_nothing_was_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
