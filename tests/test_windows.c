#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "estimate.h"
#include "fixture.h"
#include "windows.h"

static struct statedir dir;
static struct fixture fixture = { .dir = &dir };

/* --- the file ------------------------------------------------------------------------ */

static struct window window_of(const char *uuid, int64_t from_ms, int64_t until_ms)
{
	struct window window = { .id = 1, .from_ms = from_ms, .until_ms = until_ms };

	text_copy(window.uuid, sizeof(window.uuid), uuid);
	return window;
}

static void write_two(void)
{
	struct windows windows = WINDOWS_NONE;
	struct window first = window_of("GPU-a", 1000, 2000),
		      second = window_of("GPU-b", 5000, 0);

	text_copy(first.but, sizeof(first.but), "1000,1001");
	text_copy(first.by, sizeof(first.by), "root");
	text_copy(first.reason, sizeof(first.reason), "a demo");
	text_copy(first.extra, sizeof(first.extra), " later=1");
	second.id = 7;
	assert_int_equal(windows_lock(&dir, 0), 0);
	assert_int_equal(windows_add(&windows, &first), 0);
	assert_int_equal(windows_add(&windows, &second), 0);
	assert_int_equal(windows_write(&dir, &windows), 0);
	windows_unlock(&dir);
	windows_release(&windows);
}

static void windows_are_read_as_they_were_written(void **state)
{
	struct windows windows = WINDOWS_NONE;

	(void)state;
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 0);
	write_two();
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 2);
	assert_string_equal(windows.all[0].uuid, "GPU-a");
	assert_int_equal(windows.all[0].from_ms, 1000);
	assert_int_equal(windows.all[0].until_ms, 2000);
	assert_string_equal(windows.all[0].but, "1000,1001");
	assert_string_equal(windows.all[0].by, "root");
	assert_string_equal(windows.all[0].reason, "a demo");
	assert_string_equal(windows.all[1].uuid, "GPU-b");
	assert_int_equal(windows.all[1].until_ms, 0);
	assert_int_equal(windows_next_id(&windows), 8);
	/* a field of a later version stays */
	assert_int_equal(windows_write(&dir, &windows), 0);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_non_null(strstr(windows.all[0].extra, "later=1"));
	windows_release(&windows);
}

static void the_next_window_is_the_first_that_binds(void **state)
{
	struct window all[] = { { .slot = 1, .begin_ms = 50, .end_ms = 60 },
		{ .slot = 0, .begin_ms = 300, .end_ms = INT64_MAX },
		{ .slot = 1, .begin_ms = 200, .end_ms = 250, .but = "7,1000" },
		{ .slot = 2, .begin_ms = 20, .end_ms = INT64_MAX },
		{ .slot = -1, .begin_ms = 10, .end_ms = INT64_MAX } };
	struct windows windows = { .all = all, .count = ARRAY_SIZE(all) };
	struct gpuset gpus = GPUSET_NONE;

	(void)state;
	assert_int_equal(windows_begin_ms(&windows, &gpus, 1001, 0), INT64_MAX);
	gpuset_add(&gpus, 0);
	gpuset_add(&gpus, 1);
	assert_int_equal(windows_begin_ms(&windows, &gpus, 1001, 59), 50);
	/* it is over */
	assert_int_equal(windows_begin_ms(&windows, &gpus, 1001, 60), 200);
	/* it has begun */
	assert_int_equal(windows_begin_ms(&windows, &gpus, 1001, 249), 200);
	/* it does not bind this user */
	assert_int_equal(windows_begin_ms(&windows, &gpus, 1000, 60), 300);
}

static void a_damaged_record_is_skipped(void **state)
{
	struct windows windows = WINDOWS_NONE;
	int fd;

	(void)state;
	write_two();
	fd = openat(dir.gpu_fd, "windows", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "GPU-c", 5, 20), 5);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 1);
	assert_int_equal(windows.broken, 1);
	assert_string_equal(windows.all[0].uuid, "GPU-b");
	/* half a record at the end, and no record at all */
	assert_int_equal(ftruncate(fd, RECORD_SIZE + 100), 0);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.broken, 0);
	(void)close(fd);
	windows_release(&windows);
}

static void a_link_in_the_place_of_the_file_is_not_followed(void **state)
{
	struct windows windows = WINDOWS_NONE;

	(void)state;
	assert_int_equal(symlinkat("/etc/passwd", dir.gpu_fd, "windows"), 0);
	assert_true(windows_read(&dir, &windows) != 0 || windows.count == 0);
	write_two();
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 2);
	windows_release(&windows);
}

static void windows_of_a_gpu_and_those_that_are_over_are_removed(void **state)
{
	struct windows windows = WINDOWS_NONE;

	(void)state;
	write_two();
	assert_int_equal(windows_read(&dir, &windows), 0);
	windows_remove(&windows, NULL, 1999);
	assert_int_equal(windows.count, 2);
	windows_remove(&windows, "GPU-a", 1999);
	assert_int_equal(windows.count, 1);
	assert_int_equal(windows_read(&dir, &windows), 0);
	windows_remove(&windows, "GPU-a", 2000);
	assert_int_equal(windows.count, 1);
	windows_remove(&windows, "GPU-b", 9000);
	assert_int_equal(windows.count, 0);
	assert_int_equal(windows_write(&dir, &windows), 0);
	assert_false(fixture_exists(dir.fd, "gpu", "windows"));
	windows_release(&windows);
}

static void files_of_a_writer_that_was_killed_do_no_harm(void **state)
{
	struct windows windows = WINDOWS_NONE;
	static const char *const names[] = { "windows.new", "windows.part" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = openat(dir.gpu_fd, names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0);

		assert_true(fd >= 0);
		(void)close(fd);
	}
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 0);
	write_two();
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, 2);
	windows_release(&windows);
}

static void there_are_not_too_many(void **state)
{
	struct windows windows = WINDOWS_NONE;
	struct window window = window_of("GPU-a", 1, 2);

	(void)state;
	for (unsigned i = 0; i < WINDOWS_MAX; i++)
		assert_int_equal(windows_add(&windows, &window), 0);
	assert_int_equal(windows_add(&windows, &window), -E2BIG);
	assert_int_equal(windows_write(&dir, &windows), 0);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows.count, WINDOWS_MAX);
	windows_release(&windows);
}

static void one_process_at_a_time_writes(void **state)
{
	struct statedir other = fixture_dir_of(dir.fd);

	(void)state;
	assert_int_equal(windows_lock(&dir, 0), 0);
	assert_int_equal(windows_lock(&other, 0), -EWOULDBLOCK);
	assert_int_equal(windows_lock(&other, clock_boot_ms() + 30), -EWOULDBLOCK);
	windows_unlock(&dir);
	assert_int_equal(windows_lock(&other, 0), 0);
	statedir_release(&other);
}

static void users_are_exempt_by_their_whole_number(void **state)
{
	static const struct {
		const char *but;
		uint32_t uid;
		bool is_exempt;
	} table[] = {
		{ "", 0, false },
		{ "1000", 1000, true },
		{ "1000", 100, false },
		{ "100", 1000, false },
		{ "7,1000,8", 1000, true },
		{ "7,1000,8", 8, true },
		{ "7,1000,8", 0, false },
		{ "0", 0, true },
		{ ",,5", 5, true },
		{ "4294967295", UINT32_MAX, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct window window = { .id = 1 };

		text_copy(window.but, sizeof(window.but), table[i].but);
		if (window_exempts(&window, table[i].uid) != table[i].is_exempt)
			fail_msg("row %zu", i);
	}
}

/* --- the plan ------------------------------------------------------------------------ */

enum { NOW_MS = 1000000, S = 1000, GPUS = 3, ALICE = 1001, BOB = 1002 };

static struct plan_gpu gpus[GPUSET_MAX];
static struct plan_use uses[GPUSET_MAX];
static struct window windows[4];
static struct plan_facts facts;
static struct plan plan;

/* Three GPUs, free; @count windows, all on GPU 0 at first, from NOW + 60 s to NOW + 160 s. */
static void begin(size_t count)
{
	memset(gpus, 0, sizeof(gpus));
	for (unsigned i = 0; i < GPUS; i++)
		gpus[i] = (struct plan_gpu){ .exists = true, .index = i };
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		windows[i] = (struct window){ .begin_ms = NOW_MS + 60 * S,
			.end_ms = NOW_MS + 160 * S };
	facts = (struct plan_facts){
		.gpus = gpus, .now_ms = NOW_MS, .windows = windows, .window_count = count
	};
}

static void lease(unsigned slot, int64_t end_ms)
{
	uses[slot] = (struct plan_use){ .percent = WHOLE_PERCENT, .end_ms = end_ms };
	gpus[slot].uses = &uses[slot];
	gpus[slot].use_count = 1;
	gpus[slot].state = GPU_LEASED;
}

/* A row that may have GPU 0 alone; GPUS of them: all. */
static struct plan_row row_of(uint64_t ticket, unsigned count, int64_t limit_ms)
{
	struct plan_row row = { .ticket = ticket,
		.uid = ALICE,
		.gpus = count,
		.need = NEED_WHOLE,
		.limit_ms = limit_ms,
		.grace_ms = limit_ms ? GRACE_DEFAULT_MS : 0 };

	gpuset_add(&row.allow, 0);
	if (count > 1)
		row.allow = GPUSET_ALL;
	return row;
}

static struct verdict alone(struct plan_row row)
{
	plan_begin(&plan, &facts);
	return plan_next(&plan, &row);
}

static void a_job_starts_if_it_ends_before_the_window(void **state)
{
	static const struct {
		int64_t limit_ms;
		bool starts;
	} table[] = { { 45 * S, true }, { 45 * S + 1, false }, { 0, false },
		{ 1, true } };

	(void)state;
	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct verdict verdict = alone(row_of(1, 1, table[i].limit_ms));

		if ((verdict.kind == VERDICT_START) != table[i].starts)
			fail_msg("row %zu", i);
		if (table[i].starts) {
			assert_int_equal(verdict.window, 0);
			assert_int_equal(
				plan.changes_ms, NOW_MS + 45 * S - table[i].limit_ms + 1);
			continue;
		}
		assert_int_equal(verdict.kind, VERDICT_GPU);
		assert_int_equal(verdict.state, GPU_KEPT);
		assert_int_equal(verdict.slot, 0);
		assert_int_equal(verdict.window, 1);
		assert_int_equal(verdict.under_ms, 45 * S);
		assert_int_equal(plan.changes_ms, NOW_MS + 160 * S);
	}
}

static void during_the_window_only_exempt_users_start(void **state)
{
	struct plan_row row = row_of(1, 1, 1);
	struct verdict verdict;

	(void)state;
	begin(1);
	facts.now_ms = NOW_MS + 60 * S;
	verdict = alone(row);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.state, GPU_KEPT);
	assert_int_equal(verdict.under_ms, 0);
	text_copy(windows[0].but, sizeof(windows[0].but), "1001");
	assert_int_equal(alone(row).kind, VERDICT_START);
	assert_int_equal(plan.changes_ms, INT64_MAX);
	row.uid = BOB;
	assert_int_equal(alone(row).kind, VERDICT_GPU);
	facts.now_ms = NOW_MS + 160 * S - 1;
	assert_int_equal(alone(row).kind, VERDICT_GPU);
	facts.now_ms++;
	assert_int_equal(alone(row).kind, VERDICT_START);
	assert_int_equal(plan.changes_ms, INT64_MAX);
}

static void a_window_of_an_unknown_gpu_binds_no_job(void **state)
{
	(void)state;
	begin(1);
	windows[0].slot = -1;
	assert_int_equal(alone(row_of(1, 1, 0)).kind, VERDICT_START);
}

static void other_gpus_are_free(void **state)
{
	struct verdict verdict;

	(void)state;
	begin(1);
	verdict = alone(row_of(1, 2, 0));
	assert_int_equal(verdict.kind, VERDICT_START);
	assert_false(gpuset_has(&verdict.gpus, 0));
	verdict = alone(row_of(1, 3, 0));
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.free, 2);
	assert_int_equal(verdict.under_ms, 45 * S);
}

static void the_first_of_several_windows_counts(void **state)
{
	struct verdict verdict;

	(void)state;
	begin(3);
	windows[0].begin_ms += 50 * S;
	windows[2].slot = 1;
	windows[2].begin_ms -= 20 * S;
	verdict = alone(row_of(1, 1, 0));
	assert_int_equal(verdict.window, 2);
	assert_int_equal(verdict.under_ms, 45 * S);
	verdict = alone(row_of(1, 3, 0));
	assert_int_equal(verdict.under_ms, 25 * S);
	/* one of them has begun: no limit is short enough */
	windows[2].begin_ms = NOW_MS;
	assert_int_equal(alone(row_of(1, 3, 0)).under_ms, 0);
}

static void a_job_that_a_window_stops_reserves_nothing(void **state)
{
	struct plan_row first = row_of(1, 3, 0), second = row_of(2, 1, 10 * S);

	(void)state;
	begin(1);
	lease(1, 0);
	/* without the window the first job is a head, and the second cannot pass it */
	facts.window_count = 0;
	assert_int_equal(alone(first).kind, VERDICT_LEASED);
	assert_int_equal(plan_next(&plan, &second).kind, VERDICT_BEHIND);
	facts.window_count = 1;
	assert_int_equal(alone(first).kind, VERDICT_GPU);
	assert_int_equal(plan.head_count, 0);
	assert_int_equal(plan_next(&plan, &second).kind, VERDICT_START);
}

static void a_plan_says_when_a_window_stops_a_job_ahead(void **state)
{
	struct plan_row first = row_of(1, 3, 30 * S), second = row_of(2, 1, 10 * S);

	(void)state;
	begin(1);
	lease(1, NOW_MS + 5 * S);
	assert_int_equal(alone(first).kind, VERDICT_LEASED);
	assert_int_equal(plan_next(&plan, &second).kind, VERDICT_BEHIND);
	assert_int_equal(plan.changes_ms, NOW_MS + 15 * S + 1);
	/* and then it is so */
	facts.now_ms = plan.changes_ms;
	assert_int_equal(alone(first).kind, VERDICT_GPU);
	assert_int_equal(plan_next(&plan, &second).kind, VERDICT_START);
}

static void a_shorter_limit_is_no_advice_if_a_head_comes_first(void **state)
{
	struct plan_row first = row_of(1, 3, 30 * S), second = row_of(2, 1, 0);
	struct verdict verdict;

	(void)state;
	begin(1);
	first.uid = BOB;
	text_copy(windows[0].but, sizeof(windows[0].but), "1002");
	lease(1, 0);
	assert_int_equal(alone(first).kind, VERDICT_LEASED);
	verdict = plan_next(&plan, &second);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.under_ms, 0);
	assert_int_equal(verdict.state, GPU_KEPT);
}

static void the_estimate_knows_the_windows(void **state)
{
	struct plan_row row = row_of(1, 1, 30 * S);
	int64_t start_ms;

	(void)state;
	begin(1);
	lease(0, NOW_MS + 10 * S);
	assert_int_equal(estimate_starts(&facts, &row, 1, &start_ms), 0);
	assert_int_equal(start_ms, NOW_MS + 10 * S);
	/* it could not end before the window, so it comes after it */
	lease(0, NOW_MS + 20 * S);
	assert_int_equal(estimate_starts(&facts, &row, 1, &start_ms), 0);
	assert_int_equal(start_ms, NOW_MS + 160 * S);
	/* the end of the window is not known */
	windows[0].end_ms = INT64_MAX;
	assert_int_equal(estimate_starts(&facts, &row, 1, &start_ms), 0);
	assert_int_equal(start_ms, 0);
}

static void times_of_the_calendar_become_those_of_the_plan(void **state)
{
	struct window window = window_of("GPU-a", 5000, 9000);

	(void)state;
	window_place(&window, 3, 4000, 100);
	assert_int_equal(window.slot, 3);
	assert_int_equal(window.begin_ms, 1100);
	assert_int_equal(window.end_ms, 5100);
	window.until_ms = 0;
	window_place(&window, -1, 4000, 100);
	assert_int_equal(window.slot, -1);
	assert_true(window.end_ms == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(windows_are_read_as_they_were_written, fixture),
		FIXTURE_TEST(a_damaged_record_is_skipped, fixture),
		FIXTURE_TEST(a_link_in_the_place_of_the_file_is_not_followed, fixture),
		FIXTURE_TEST(
			windows_of_a_gpu_and_those_that_are_over_are_removed, fixture),
		FIXTURE_TEST(files_of_a_writer_that_was_killed_do_no_harm, fixture),
		FIXTURE_TEST(there_are_not_too_many, fixture),
		FIXTURE_TEST(one_process_at_a_time_writes, fixture),
		cmocka_unit_test(the_next_window_is_the_first_that_binds),
		cmocka_unit_test(users_are_exempt_by_their_whole_number),
		cmocka_unit_test(a_job_starts_if_it_ends_before_the_window),
		cmocka_unit_test(during_the_window_only_exempt_users_start),
		cmocka_unit_test(a_window_of_an_unknown_gpu_binds_no_job),
		cmocka_unit_test(other_gpus_are_free),
		cmocka_unit_test(the_first_of_several_windows_counts),
		cmocka_unit_test(a_job_that_a_window_stops_reserves_nothing),
		cmocka_unit_test(a_plan_says_when_a_window_stops_a_job_ahead),
		cmocka_unit_test(a_shorter_limit_is_no_advice_if_a_head_comes_first),
		cmocka_unit_test(the_estimate_knows_the_windows),
		cmocka_unit_test(times_of_the_calendar_become_those_of_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
