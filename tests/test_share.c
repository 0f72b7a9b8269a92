/*
 * Fair-share: by how much a job counts as having come later, when that is counted, and what the
 * ends of leases add for it.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "broker_parts.h"
#include "clock.h"
#include "end_record.h"
#include "fixture_broker.h"
#include "gpu_hours.h"

enum { GPUS = 1, HOUR_MS = 3600 * 1000, MINUTE_MS = 60 * 1000 };

static const struct prober_config config = SIMULATED(GPUS);
static const struct config_share share = {
	.rate_ms = 15 * MINUTE_MS, .window_ms = 7 * 24 * HOUR_MS, .most_ms = 24 * HOUR_MS
};

static struct statedir dir;
static struct broker holder, first, second; /* the holder has the GPU */
static uint32_t uid;

static int open_broker(struct broker *one)
{
	memset(one, 0, sizeof(*one));
	if (broker_init(one, &dir, &config) < 0)
		return -1;
	one->input.share = share;
	return 0;
}

static int set_up(struct scratch *here)
{
	struct request request = { .gpus = 1, .allow = GPUSET_ALL };
	struct why why;

	(void)here;
	uid = (uint32_t)getuid();
	dir.counts_usage = true;
	if (fixture_broker_open(&holder, &dir, &config) < 0 || open_broker(&first) < 0 ||
		open_broker(&second) < 0)
		return -1;
	holder.input.share = share;
	if (broker_join(&holder, &request, "carol", &why) < 0)
		return -1;
	return broker_turn(&holder) == BROKER_GRANTED ? 0 : -1;
}

static void tear_down(void)
{
	broker_release(&holder);
	broker_release(&first);
	broker_release(&second);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static void add_hours(uint32_t user, int64_t hours)
{
	int64_t now_ms = clock_boot_ms();
	struct lease lease = { .owner.uid = user,
		.gpus = fixture_set("0"),
		.share_percent = 100,
		.since_ms = now_ms - hours * HOUR_MS };
	int fd = gpu_hours_open(&dir);

	assert_true(fd >= 0);
	assert_int_equal(gpu_hours_add(fd, &lease, now_ms), 0);
	(void)close(fd);
}

static void join(struct broker *one, int64_t limit_ms)
{
	struct request request = {
		.gpus = 1, .share_percent = 100, .allow = GPUSET_ALL, .limit_ms = limit_ms
	};

	fixture_join(one, &request);
}

/* What the job counts as later, give or take what the holder uses meanwhile. */
static void check_late(const struct broker *one, int64_t minutes)
{
	assert_in_range(one->ticket.late_ms, minutes * MINUTE_MS,
		minutes * MINUTE_MS + MINUTE_MS / 10);
	if (one->ticket.late_ms)
		assert_int_equal(
			one->ticket.order_ms, one->ticket.since_ms + one->ticket.late_ms);
	else
		assert_int_equal(one->ticket.order_ms, 0);
}

static int64_t late_of(uint64_t gpu_hours, struct config_share by)
{
	struct snapshot view = { .dir = &dir };
	struct broker_share counts;

	assert_int_equal(queue_begin(&holder.queue, 0), 0);
	view.lives = LIVENESS_SET_ON(&dir);
	(void)unlinkat(dir.fd, "usage", 0);
	add_hours(4711, (int64_t)gpu_hours);
	counts = broker_share_of(&by, &holder.queue, &view, 4711, 0);
	assert_int_equal(counts.had_ms, gpu_hours * HOUR_MS);
	assert_int_equal(counts.waits_ms, 0);
	return counts.late_ms;
}

static void each_gpu_hour_counts_up_to_the_maximum(void **state)
{
	struct config_share steep = { 24 * HOUR_MS, 30LL * 24 * HOUR_MS,
		240LL * HOUR_MS };

	(void)state;
	assert_int_equal(late_of(0, share), 0);
	assert_int_equal(late_of(1, share), 15 * MINUTE_MS);
	assert_int_equal(late_of(95, share), 95 * 15 * MINUTE_MS);
	assert_int_equal(late_of(96, share), 24 * HOUR_MS);
	assert_int_equal(late_of(140, share), 24 * HOUR_MS);
	assert_int_equal(late_of(9, steep), 9LL * 24 * HOUR_MS);
	assert_int_equal(late_of(600, steep), 240LL * HOUR_MS);
}

static void a_file_that_cannot_be_read_counts_as_the_maximum(void **state)
{
	struct snapshot view = { .dir = &dir };

	(void)state;
	assert_int_equal(queue_begin(&holder.queue, 0), 0);
	view.lives = LIVENESS_SET_ON(&dir);
	assert_int_equal(mkdirat(dir.fd, "usage", 0700), 0);
	assert_int_equal(broker_share_of(&share, &holder.queue, &view, 4711, 0).late_ms,
		share.most_ms);
	assert_int_equal(unlinkat(dir.fd, "usage", AT_REMOVEDIR), 0);
	assert_int_equal(
		broker_share_of(&share, &holder.queue, &view, 4711, 0).late_ms, 0);
}

static void a_job_that_has_to_wait_counts_as_later_once(void **state)
{
	uint64_t number, id;

	(void)state;
	add_hours(uid, 8);
	join(&first, 0);
	id = first.number;
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 120);
	assert_int_equal(broker_job(&first), id);
	assert_true(first.result.share.had_ms >= 8 * HOUR_MS);
	number = first.number;
	add_hours(uid, 8);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.number, number);
	assert_int_equal(broker_job(&holder), 1);
	assert_int_equal(holder.ticket.late_ms, 0); /* it has started at once */
}

static void a_user_without_hours_comes_first(void **state)
{
	(void)state;
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	add_hours(uid, 8);
	join(&second, 0);
	second.ticket.owner.uid = uid + 1;
	assert_int_equal(
		ticket_rewrite(&second.queue.file, second.number, &second.ticket), 0);
	fixture_check_turn(&second, BROKER_WAITING);
	check_late(&second, 0);
	assert_int_equal(broker_position(&second), 2);
}

static void jobs_that_wait_already_count_with_their_limits(void **state)
{
	(void)state;
	join(&first, 2 * HOUR_MS);
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 0);
	join(&second, 0);
	fixture_check_turn(&second, BROKER_WAITING);
	check_late(&second, 30); /* first */
	broker_leave(&second);
	broker_release(&second);
	assert_int_equal(open_broker(&second), 0);
}

static void a_job_without_a_limit_counts_as_an_hour(void **state)
{
	(void)state;
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	join(&second, 0);
	fixture_check_turn(&second, BROKER_WAITING);
	check_late(&second, 15);
}

static void without_the_key_nothing_changes(void **state)
{
	(void)state;
	add_hours(uid, 8);
	first.input.share = (struct config_share){ .rate_ms = 0 };
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.number, broker_job(&first));
	check_late(&first, 0);
	assert_false(broker_is_share_due(&first));
}

/* A user stops a process before its first turn and lets it go on once the GPU is free. */
static void a_job_that_was_stopped_before_its_first_turn_counts_too(void **state)
{
	(void)state;
	add_hours(uid, 8);
	join(&first, 0);
	broker_leave(&holder);
	first.ticket.since_ms -= 40000;
	assert_true(broker_is_share_due(&first));
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 120);
}

static void a_further_attempt_counts_anew(void **state)
{
	struct request request;
	struct why why;

	(void)state;
	add_hours(uid, 8);
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	request = first.ticket.request;
	assert_int_equal(broker_requeue(&first, &request, 0, &why), 0);
	assert_false(broker_is_share_due(&first));
	assert_int_equal(first.ticket.late_ms, 0);
	assert_int_equal(broker_give_back(&first), 0);
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 120);
}

static uint64_t hours_in_file(void)
{
	struct gpu_hours had;

	assert_int_equal(gpu_hours_read(&dir, uid, 7, &had), 0);
	return had.gpu_ms;
}

/* The lease of the holder began two hours ago. */
static void age_lease(void)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	struct lease lease;
	unsigned records;

	assert_int_equal(fixture_open_files(dir.fd, &file, 1), 0);
	assert_int_equal(lease_read(&file, raw, &records), 0);
	assert_int_equal(lease_decode(raw, 1, &lease), LEASE_RECORD);
	lease.since_ms -= 2 * HOUR_MS;
	assert_int_equal(lease_write(&file, 1, &lease), 0);
	fixture_release_files(&file, 1);
}

/* The end of a lease counts once, whichever process records it and how often. */
static void the_end_of_a_lease_counts_once(void **state)
{
	struct gpuset gpus = holder.result.verdict.gpus;
	struct end_facts facts = { .status = 0 };
	struct end_recorder recorder;
	int64_t end_ms = clock_boot_ms();

	(void)state;
	age_lease();
	assert_int_equal(
		end_recorder_open(&dir, &gpus, "0", holder.ticket.owner.token, &recorder),
		0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			end_recorder_write(&recorder, end_ms, &facts, INT64_MAX), 0);
		assert_in_range(hours_in_file(), 2 * HOUR_MS - 1000, 2 * HOUR_MS + 1000);
	}
	end_recorder_release(&recorder);
	/* its record still stands: it does not count a second time */
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 30);
}

static void a_lease_that_runs_counts_up_to_now(void **state)
{
	(void)state;
	age_lease();
	join(&first, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	check_late(&first, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_gpu_hour_counts_up_to_the_maximum),
		TEST(a_file_that_cannot_be_read_counts_as_the_maximum),
		TEST(a_job_that_has_to_wait_counts_as_later_once),
		TEST(a_user_without_hours_comes_first),
		TEST(jobs_that_wait_already_count_with_their_limits),
		TEST(a_job_without_a_limit_counts_as_an_hour),
		TEST(without_the_key_nothing_changes),
		TEST(a_job_that_was_stopped_before_its_first_turn_counts_too),
		TEST(a_further_attempt_counts_anew),
		TEST(the_end_of_a_lease_counts_once),
		TEST(a_lease_that_runs_counts_up_to_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
