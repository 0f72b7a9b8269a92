/* How a job uses its GPUs, from samples, and the file that keeps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "lease_use.h"

enum { BEGAN_MS = 1000000, MINUTE_MS = 60000 };

#define TOKEN "0123456789abcdef"
#define NOT_KNOWN USE_NOT_KNOWN

/* Adds the sample that is taken in minute @minute of the lease. */
static void add(
	struct lease_use *use, int64_t minute, unsigned count, const int *percents)
{
	struct use_sample sample = {
		.at_ms = BEGAN_MS + minute * MINUTE_MS,
		.since_ms = BEGAN_MS,
		.gap_ms = MINUTE_MS * 5 / 2,
		.below_percent = 1,
		.count = count,
	};

	for (unsigned i = 0; i < count && i < USE_GPUS_MAX; i++)
		sample.percents[i] = percents[i];
	lease_use_add(use, &sample);
}

/* Adds samples of the minutes @first to @last in which all GPUs have the same utilization. */
static void add_equal(
	struct lease_use *use, int64_t first, int64_t last, unsigned count, int percent)
{
	int percents[USE_GPUS_MAX];

	for (unsigned i = 0; i < USE_GPUS_MAX; i++)
		percents[i] = percent;
	for (int64_t minute = first; minute <= last; minute++)
		add(use, minute, count, percents);
}

static int64_t gpu_unused_min(const struct lease_use *use, unsigned at)
{
	return lease_use_unused_ms(use, at, BEGAN_MS) / MINUTE_MS;
}

static void a_gpu_is_unused_from_the_first_sample_below_the_threshold(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	assert_int_equal(lease_use_mean(&use), USE_NOT_KNOWN);
	add_equal(&use, 1, 1, 1, 0);
	assert_int_equal(use.unused_ms, 0); /* nothing is known of the time before */
	assert_int_equal(use.unused_now_ms, 0);
	add_equal(&use, 2, 11, 1, 0);
	assert_int_equal(use.unused_ms, 10 * MINUTE_MS);
	assert_int_equal(use.unused_now_ms, 10 * MINUTE_MS);
	assert_int_equal(gpu_unused_min(&use, 0), 10);
	assert_int_equal(lease_use_mean(&use), 0);
}

static void use_begins_anew_but_the_sum_stays(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 11, 1, 0);
	use.warned_ms = 5;
	use.warnings = 2;
	add_equal(&use, 12, 12, 1, 50);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.warned_ms, 0);
	assert_int_equal(use.warnings, 0);
	assert_int_equal(gpu_unused_min(&use, 0), 0);
	add_equal(&use, 13, 15, 1, 0);
	assert_int_equal(use.unused_now_ms, 2 * MINUTE_MS);
	assert_int_equal(use.unused_ms, 12 * MINUTE_MS);
	assert_int_equal(use.busy_peak, 50);
	assert_int_equal(lease_use_mean(&use), 3); /* 50 of 15 samples */
}

static void the_threshold_is_not_below_itself(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 5, 1, 1);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.unused_ms, 0);
	assert_int_equal(lease_use_unused_ms(&use, 0, BEGAN_MS), 0);
}

static void unknown_is_never_unused(void **state)
{
	static const int half[] = { 0, NOT_KNOWN };
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 30, 1, NOT_KNOWN);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.unused_ms, 0);
	assert_int_equal(use.samples, 0);
	assert_int_equal(lease_use_mean(&use), USE_NOT_KNOWN);

	/* one unknown sample in between begins it anew */
	use = (struct lease_use){ 0 };
	add_equal(&use, 1, 10, 1, 0);
	add_equal(&use, 11, 11, 1, NOT_KNOWN);
	add_equal(&use, 12, 13, 1, 0);
	assert_int_equal(use.unused_now_ms, MINUTE_MS);
	assert_int_equal(use.samples, 12);

	/* the job is unused only if each of its GPUs is known to be */
	use = (struct lease_use){ 0 };
	for (int64_t minute = 1; minute <= 11; minute++)
		add(&use, minute, 2, half);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(gpu_unused_min(&use, 0), 10);
	assert_int_equal(lease_use_unused_ms(&use, 1, BEGAN_MS), USE_NOT_KNOWN);
	assert_int_equal(use.samples, 0);
}

static void each_gpu_has_its_own_time(void **state)
{
	static const int first[] = { 0, 80, 0 }, then[] = { 0, 0, 30 };
	struct lease_use use = { 0 };

	(void)state;
	add(&use, 1, 3, first);
	add(&use, 2, 3, first);
	assert_int_equal(use.unused_ms, 2 * MINUTE_MS / 3); /* two of three GPUs */
	add(&use, 3, 3, then);
	add(&use, 4, 3, then);
	assert_int_equal(gpu_unused_min(&use, 0), 3);
	assert_int_equal(gpu_unused_min(&use, 1), 1);
	assert_int_equal(gpu_unused_min(&use, 2), 0);
	/* the job has no such GPU */
	assert_int_equal(lease_use_unused_ms(&use, 3, BEGAN_MS), USE_NOT_KNOWN);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.busy_peak, 80);
	assert_string_equal(use.unused_since, "60,180,-");

	/* all together are unused since the last of them is */
	add_equal(&use, 5, 6, 3, 0);
	assert_int_equal(use.unused_now_ms, MINUTE_MS);
}

static void a_gap_between_two_samples_proves_nothing(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 11, 1, 0);
	add_equal(&use, 13, 13, 1, 0); /* one sample is missing: no gap yet */
	assert_int_equal(use.unused_now_ms, 12 * MINUTE_MS);
	use.warned_ms = 5;
	use.warnings = 1;
	add_equal(&use, 14, 14, 1, 0);
	assert_int_equal(use.warnings, 1);
	add_equal(&use, 17, 17, 1, 0); /* the machine was suspended */
	assert_int_equal(use.warned_ms, 0);
	assert_int_equal(use.warnings, 0);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.unused_ms, 13 * MINUTE_MS);
	assert_int_equal(gpu_unused_min(&use, 0), 0);
	add_equal(&use, 18, 18, 1, 0);
	assert_int_equal(use.unused_now_ms, MINUTE_MS);
	assert_int_equal(use.unused_ms, 14 * MINUTE_MS);
}

static void an_older_sample_changes_nothing(void **state)
{
	struct lease_use use = { 0 }, before;

	(void)state;
	add_equal(&use, -1, -1, 1, 0); /* of the job that had the GPU before */
	assert_int_equal(use.seen_ms, 0);
	add_equal(&use, 5, 6, 1, 0);
	before = use;
	add_equal(&use, 6, 6, 1, 100);
	add_equal(&use, 5, 5, 1, 100);
	assert_memory_equal(&use, &before, sizeof(use));
}

static void a_job_without_a_gpu_is_never_unused(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 5, 0, 0);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(use.samples, 0);
}

static void the_use_of_more_gpus_than_are_watched_is_not_known(void **state)
{
	struct lease_use use = { 0 };

	(void)state;
	add_equal(&use, 1, 3, USE_GPUS_MAX + 1, 0);
	assert_int_equal(use.unused_now_ms, 0);
	assert_int_equal(gpu_unused_min(&use, 0), 2);
	assert_int_equal(
		lease_use_unused_ms(&use, USE_GPUS_MAX, BEGAN_MS), USE_NOT_KNOWN);
	assert_int_equal(use.samples, 0);
	use = (struct lease_use){ 0 };
	add_equal(&use, 1, 3, 128, 0);
	assert_int_equal(use.unused_now_ms, 0);
	use = (struct lease_use){ 0 };
	add_equal(&use, 1, 3, USE_GPUS_MAX, 0);
	assert_int_equal(use.unused_now_ms, 2 * MINUTE_MS);
}

static void a_list_that_does_not_fit_ends_with_whole_numbers(void **state)
{
	struct lease_use use = { 0 };
	const int64_t year = 365 * 24 * 60;

	(void)state;
	add_equal(&use, year, year + 1, USE_GPUS_MAX, 0);
	assert_true(strlen(use.unused_since) < sizeof(use.unused_since));
	assert_int_equal(gpu_unused_min(&use, 0), 1);
	assert_int_equal(gpu_unused_min(&use, 15), 1);
	/* of the GPUs that do not fit nothing is known: they count as used */
	assert_int_equal(gpu_unused_min(&use, USE_GPUS_MAX - 1), 0);
	assert_int_equal(use.unused_now_ms, 0);
	for (const char *at = use.unused_since; at; at = strchr(at, ',')) {
		at += *at == ',';
		assert_int_equal(atoll(at), year * 60);
	}
}

/* Adds a sample of the memory alone. */
static void add_memory(
	struct lease_use *use, int64_t minute, unsigned count, const uint64_t *mibs)
{
	struct use_sample sample = {
		.at_ms = BEGAN_MS + minute * MINUTE_MS,
		.since_ms = BEGAN_MS,
		.gap_ms = MINUTE_MS * 5 / 2,
		.below_percent = 1,
		.count = count,
	};

	for (unsigned i = 0; i < count; i++) {
		sample.percents[i] = NOT_KNOWN;
		sample.mibs[i] = mibs[i];
	}
	lease_use_add(use, &sample);
}

static void memory_has_a_peak_for_each_gpu(void **state)
{
	static const uint64_t none[] = { 0, 0 }, one[] = { 0, 700 }, two[] = { 900, 300 };
	struct lease_use use = { 0 };

	(void)state;
	add_memory(&use, 1, 2, none);
	assert_string_equal(use.peaks, "");
	assert_int_equal(lease_use_peak_mib(&use), 0);
	add_memory(&use, 2, 2, one);
	assert_string_equal(use.peaks, "0,700");
	add_memory(&use, 3, 2, two);
	add_memory(&use, 4, 2, none);
	assert_string_equal(use.peaks, "900,700");
	assert_int_equal(lease_use_peak_mib(&use), 900);
}

static void peaks_that_do_not_fit_are_left_out(void **state)
{
	struct lease_use use = { 0 };
	uint64_t mibs[USE_GPUS_MAX];

	(void)state;
	for (unsigned i = 0; i < USE_GPUS_MAX; i++)
		mibs[i] = 1000000000 + i;
	for (int64_t minute = 1; minute <= 3; minute++)
		add_memory(&use, minute, USE_GPUS_MAX, mibs);
	assert_true(strlen(use.peaks) < sizeof(use.peaks));
	assert_int_equal(strlen(use.peaks) % 11, 10); /* whole numbers of ten digits */
	assert_in_range(lease_use_peak_mib(&use), 1000000008, 1000000031);
}

/* --- the file ------------------------------------------------------------------------------ */

/* Returns a use whose fields are all as long as they can be. */
static struct lease_use longest(void)
{
	struct lease_use use = {
		.seen_ms = INT64_MIN,
		.unused_ms = INT64_MIN,
		.unused_now_ms = INT64_MIN,
		.samples = UINT32_MAX,
		.busy = UINT32_MAX,
		.busy_peak = UINT32_MAX,
		.warned_ms = INT64_MIN,
		.warnings = UINT32_MAX,
	};

	memset(use.unused_since, '7', sizeof(use.unused_since) - 1);
	memset(use.peaks, '8', sizeof(use.peaks) - 1);
	return use;
}

/* Not all bytes: those between the fields are undefined. */
static void check_same(const struct lease_use *a, const struct lease_use *b)
{
	assert_true(a->seen_ms == b->seen_ms && a->unused_ms == b->unused_ms);
	assert_true(a->unused_now_ms == b->unused_now_ms && a->samples == b->samples);
	assert_true(a->busy == b->busy && a->busy_peak == b->busy_peak);
	assert_true(a->warned_ms == b->warned_ms && a->warnings == b->warnings);
	assert_string_equal(a->unused_since, b->unused_since);
	assert_string_equal(a->peaks, b->peaks);
}

static void the_longest_values_fit_into_one_record(void **state)
{
	struct lease_use use = longest(), read;
	char raw[RECORD_SIZE];

	(void)state;
	lease_use_encode(&use, raw);
	assert_int_equal(record_judge(raw), RECORD_GOOD);
	lease_use_decode(raw, &read);
	check_same(&use, &read);
}

static void the_file_is_read_as_it_was_written(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct lease_use use = longest(), read;

	assert_int_equal(lease_use_write(&dir, TOKEN, &use), 0);
	lease_use_read(&dir, TOKEN, &read);
	check_same(&use, &read);
	use.samples = 3;
	use.peaks[0] = '\0';
	memset(use.peaks, 0, sizeof(use.peaks));
	assert_int_equal(lease_use_write(&dir, TOKEN, &use), 0);
	lease_use_read(&dir, TOKEN, &read);
	check_same(&use, &read);
	statedir_release(&dir);
}

/* Whether the file reads as zeros once it holds the @size bytes at @bytes. */
static bool reads_as_zeros(const struct statedir *dir, const char *bytes, size_t size)
{
	static const struct lease_use zeros;
	struct lease_use read = longest();
	autofd int fd = openat(dir->live_fd, TOKEN ".use",
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, bytes, size), size);
	lease_use_read(dir, TOKEN, &read);
	return memcmp(&read, &zeros, sizeof(read)) == 0;
}

static void a_damaged_file_gives_zeros(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct lease_use use = longest(), read = longest();
	static const struct lease_use zeros;
	char raw[2 * RECORD_SIZE] = { 0 };

	lease_use_read(&dir, TOKEN, &read); /* there is none yet */
	assert_memory_equal(&read, &zeros, sizeof(zeros));
	assert_true(reads_as_zeros(&dir, raw, RECORD_SIZE));
	lease_use_encode(&use, raw);
	assert_false(reads_as_zeros(&dir, raw, RECORD_SIZE));
	assert_true(reads_as_zeros(&dir, raw, 0));
	assert_true(reads_as_zeros(&dir, raw, RECORD_SIZE - 1));
	raw[100] ^= 1;
	assert_true(reads_as_zeros(&dir, raw, RECORD_SIZE));
	assert_int_equal(unlinkat(dir.live_fd, TOKEN ".use", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir.live_fd, TOKEN ".use"), 0);
	lease_use_read(&dir, TOKEN, &read);
	assert_memory_equal(&read, &zeros, sizeof(zeros));
	assert_true(lease_use_write(&dir, TOKEN, &use) < 0);
	statedir_release(&dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_gpu_is_unused_from_the_first_sample_below_the_threshold),
		cmocka_unit_test(use_begins_anew_but_the_sum_stays),
		cmocka_unit_test(the_threshold_is_not_below_itself),
		cmocka_unit_test(unknown_is_never_unused),
		cmocka_unit_test(each_gpu_has_its_own_time),
		cmocka_unit_test(a_gap_between_two_samples_proves_nothing),
		cmocka_unit_test(an_older_sample_changes_nothing),
		cmocka_unit_test(a_job_without_a_gpu_is_never_unused),
		cmocka_unit_test(the_use_of_more_gpus_than_are_watched_is_not_known),
		cmocka_unit_test(a_list_that_does_not_fit_ends_with_whole_numbers),
		cmocka_unit_test(memory_has_a_peak_for_each_gpu),
		cmocka_unit_test(peaks_that_do_not_fit_are_left_out),
		cmocka_unit_test(the_longest_values_fit_into_one_record),
		SCRATCH_TEST(the_file_is_read_as_it_was_written),
		SCRATCH_TEST(a_damaged_file_gives_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
