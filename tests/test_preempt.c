/*
 * Preemption, from both sides: a broker that waits for leases of other jobs, and one that has a
 * lease and is asked.  Four simulated GPUs.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture_broker.h"

enum { GPUS = 4, LEAVE_MS = 3000 };

static const struct prober_config config = SIMULATED(GPUS);

static struct statedir dir;
static struct broker broker;
static struct other others[GPUS];

static int set_up(struct scratch *here)
{
	(void)here;
	memset(others, 0, sizeof(others));
	return fixture_broker_open(&broker, &dir, &config);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < GPUS; i++)
		other_end(&others[i]);
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* A lease that may be preempted, of a process of its own; number 1000 + @at. */
static struct lease lease_of(unsigned at, const char *slots)
{
	struct lease lease = {
		.ticket = 1000 + at,
		.gpus = fixture_set(slots),
		.leave_ms = LEAVE_MS,
		.since_ms = clock_boot_ms() - 1000 + at,
		.is_supervised = 1,
		.is_preemptible = 1,
	};

	others[at] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	lease.owner = others[at].owner;
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	return lease;
}

/* Into record @at of all its files: its own, so that shares do not overwrite each other. */
static void write_lease(const struct lease *lease)
{
	gpuset_for_each (slot, &lease->gpus)
		fixture_write_lease(
			dir.fd, (unsigned)slot, (unsigned)(lease->ticket - 999), lease);
}

static void hold(unsigned at, const char *slots)
{
	struct lease lease = lease_of(at, slots);

	write_lease(&lease);
}

static struct request request_of(uint32_t gpus, const char *slots, int64_t priority)
{
	return (struct request){
		.gpus = gpus, .allow = fixture_set(slots), .priority = priority
	};
}

static void join(uint32_t gpus, const char *slots, int64_t priority)
{
	struct request request = request_of(gpus, slots, priority);

	fixture_join(&broker, &request);
}

static void check_turn(int wanted)
{
	fixture_check_turn(&broker, wanted);
}

static uint64_t append_ticket(const struct owner *owner, const struct request *request)
{
	struct ticket ticket = { .state = TICKET_WAITING,
		.owner = *owner,
		.request = *request,
		.turn_ms = clock_boot_ms() };
	uint64_t number = 0;

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	assert_int_equal(ticket_append(&broker.queue.file, &ticket, &number), 0);
	return number;
}

static uint64_t append_control(uint32_t verb, uint64_t job, uint64_t by, int64_t at_ms)
{
	struct control control = { .verb = verb,
		.ticket = job,
		.by = by,
		.uid = (uint32_t)getuid(),
		.at_ms = at_ms };
	uint64_t end;

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_end(&broker.queue.file, &end), 0);
	assert_int_equal(ticket_append_control(&broker.queue.file, &control), 0);
	return end;
}

/* What the broker has asked for, as digits: "02" the leases 1000 and 1002, each time it did. */
static const char *asked(void)
{
	static char out[32];
	struct text text = TEXT_ON(out);
	uint64_t end;

	assert_int_equal(ticket_end(&broker.queue.file, &end), 0);
	for (uint64_t number = 1; number < end; number++) {
		char raw[RECORD_SIZE];
		struct control control;
		struct ticket ticket;
		size_t count;

		assert_int_equal(
			ticket_read_raw(&broker.queue.file, number, 1, raw, &count), 0);
		if (ticket_decode(raw, &ticket, &control) != TICKET_CONTROL)
			continue;
		assert_int_equal(control.verb, CONTROL_PREEMPT);
		assert_int_equal(control.uid, getuid());
		assert_int_equal(control.by, broker.number);
		assert_string_equal(control.boot, dir.boot);
		text_addf(&text, "%llu", (unsigned long long)control.ticket - 1000);
	}
	return out;
}

/* Whether the bell of lease @at has rung since it was asked last. */
static bool has_rung(unsigned at)
{
	char path[64], byte;
	autofd int fd = -1;

	(void)snprintf(path, sizeof(path), FIFO_BELL "/%s", others[at].owner.token);
	fd = openat(dir.fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	return read(fd, &byte, 1) == 1;
}

/* --- which jobs are asked ------------------------------------------------------------- */

static void the_job_on_its_gpu_is_asked_and_its_bell_rung(void **state)
{
	(void)state;
	hold(0, "0");
	assert_false(has_rung(0));
	join(1, "0", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "0");
	assert_true(has_rung(0));
	assert_int_equal(broker.result.verdict.kind, VERDICT_LEASED);
	assert_true(broker.result.verdict.start_ms >
		    broker.state.now_ms); /* it counts on it */
	other_end(&others[0]);
	check_turn(BROKER_GRANTED);
	assert_string_equal(asked(), "0");
}

static void is_not_preemptible(struct lease *lease)
{
	lease->is_preemptible = 0;
}

static void is_not_supervised(struct lease *lease)
{
	lease->is_supervised = 0;
}

static void has_the_same_priority(struct lease *lease)
{
	lease->priority = 5;
}

static void has_a_higher_priority(struct lease *lease)
{
	lease->priority = 6;
}

static void lingers(struct lease *lease)
{
	(void)lease;
	other_end(&others[0]);
	others[0] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL | OTHER_HEIR);
	lease->owner = others[0].owner;
	other_kill(&others[0]);
}

static void a_job_that_is_not_preemptible_is_not_asked(void **state)
{
	static void (*const cases[])(struct lease *) = { is_not_preemptible,
		is_not_supervised, has_the_same_priority, has_a_higher_priority,
		lingers };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lease lease = lease_of(0, "0");

		cases[i](&lease);
		write_lease(&lease);
		if (!broker.number)
			join(1, "0", 5);
		check_turn(BROKER_WAITING);
		assert_string_equal(asked(), "");
		other_end(&others[0]);
	}
}

static void left_processes_are_not_asked(void **state)
{
	struct lease share = lease_of(0, "0");

	(void)state;
	share.share_percent = 50;
	share.is_preemptible = 0;
	write_lease(&share);
	share = lease_of(1, "0");
	other_end(&others[1]);
	others[1] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL | OTHER_HEIR);
	share.owner = others[1].owner;
	share.share_percent = 50;
	other_kill(&others[1]);
	write_lease(&share);
	join(1, "0", 5);
	broker.ticket.request.share_percent = 50;
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "");
}

static void no_job_is_asked_if_that_would_not_help(void **state)
{
	struct lease stays = lease_of(1, "1");

	(void)state;
	stays.is_preemptible = 0;
	write_lease(&stays);
	hold(0, "0");
	join(2, "01", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "");
	/* and nothing stays set aside */
	assert_int_equal(broker.view.plan[0].use_count, 1);
	assert_int_equal(broker.view.plan[0].state, GPU_LEASED);
}

static void a_paused_gpu_is_not_given(void **state)
{
	struct lease_file file;
	struct gpu_record gpu;

	(void)state;
	hold(0, "0");
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	gpu = broker.view.gpus[0].file.gpu;
	gpu.is_paused = 1;
	assert_int_equal(lease_write_gpu(&file, &gpu), 0);
	lease_release(&file);
	join(1, "0", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "");
}

static void as_few_jobs_as_possible_and_free_gpus_first(void **state)
{
	(void)state;
	hold(0, "0");
	hold(1, "12"); /* its end alone would be enough, and so would that of the first */
	join(2, "0123", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "1"); /* started later */
}

static void the_lowest_priority_goes_first(void **state)
{
	struct lease lease;

	(void)state;
	for (unsigned at = 0; at < GPUS; at++) {
		static const int64_t priorities[GPUS] = { 2, 1, 3, 1 };

		lease = lease_of(at, (const char *[]){ "0", "1", "2", "3" }[at]);
		lease.priority = priorities[at];
		write_lease(&lease);
	}
	join(3, "0123", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "013");
}

static void of_two_equal_jobs_the_later_goes(void **state)
{
	(void)state;
	hold(0, "0");
	hold(1, "1");
	join(1, "01", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "1");
}

static void shares_are_asked_until_there_is_room(void **state)
{
	(void)state;
	for (unsigned at = 0; at < 3; at++) {
		struct lease lease = lease_of(at, "0");

		lease.share_percent = 30;
		write_lease(&lease);
	}
	join(1, "0", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "012");
}

/* --- a ticket that a limit holds ---------------------------------------------------- */

static void a_ticket_held_by_a_limit_for_all_asks_as_well(void **state)
{
	(void)state;
	hold(0, "01");
	broker.view.limits.all_percent = 200;
	join(1, "0123", 5);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_LIMIT);
	assert_string_equal(asked(), "0");
}

static void only_as_many_jobs_are_asked_as_the_limit_needs(void **state)
{
	(void)state;
	hold(0, "0");
	hold(1, "1");
	hold(2, "2");
	broker.view.limits.all_percent = 300;
	join(2, "0123", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "12");
}

static void for_a_limit_only_jobs_with_usable_gpus_are_asked(void **state)
{
	(void)state;
	hold(0, "0");
	broker.view.limits.all_percent = 100;
	join(1, "1", 5);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_LIMIT);
	assert_string_equal(asked(), "");
}

/* --- how often ---------------------------------------------------------------------- */

static void no_job_is_asked_again_before_its_time(void **state)
{
	struct preempt_asked *memory;
	int64_t first_ms;

	(void)state;
	hold(0, "0");
	join(1, "0", 5);
	check_turn(BROKER_WAITING);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "0");
	assert_int_equal(broker.preempt.count, 1);
	memory = broker.preempt.asked;
	first_ms = memory->until_ms - broker.state.now_ms;
	assert_true(memory->until_ms > clock_boot_ms() + LEAVE_MS);
	assert_true(broker.state.wake_ms <= memory->until_ms);
	memory->until_ms = clock_boot_ms();
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "00");
	/* each time later */
	assert_true(broker.preempt.asked->until_ms > clock_boot_ms() + first_ms);
}

static void a_job_that_has_not_obeyed_is_spared_for_another(void **state)
{
	struct lease lease = lease_of(1, "1");

	(void)state;
	hold(0, "0");
	lease.priority = -1;
	lease.since_ms = 1;
	write_lease(&lease);
	join(1, "01", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "1");
	/* its time is over: nor do others count on it any more */
	broker.preempt.asked->until_ms = clock_boot_ms();
	broker.queue.preempts[0].at_ms -= LEAVE_MS + 10000;
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "10");
}

static void jobs_another_waiter_has_asked_are_chosen_first(void **state)
{
	struct request request = request_of(1, "01", 3);

	(void)state;
	others[2] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	hold(0, "0");
	hold(1, "1");
	append_control(CONTROL_PREEMPT, 1000, append_ticket(&others[2].owner, &request),
		clock_boot_ms());
	join(1, "01", 5);
	check_turn(BROKER_WAITING);
	assert_true(broker.preempt.count == 1);
	assert_string_equal(broker.preempt.asked->token, others[0].owner.token);
}

/* --- others in the queue ------------------------------------------------------------ */

static void a_ticket_asks_although_an_earlier_one_waits_for_other_gpus(void **state)
{
	struct lease stays = lease_of(0, "0");
	struct request ahead = request_of(1, "0", 9);

	(void)state;
	stays.is_preemptible = 0;
	write_lease(&stays);
	hold(1, "12");
	others[2] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	(void)append_ticket(&others[2].owner, &ahead);
	join(2, "12", 5);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_LEASED);
	assert_false(broker.result.verdict.is_first);
	assert_string_equal(asked(), "1");
}

static void no_job_is_asked_if_the_freed_gpus_would_not_be_kept(void **state)
{
	struct lease stays = lease_of(0, "0");
	struct request ahead = request_of(1, "0", 9);

	(void)state;
	stays.is_preemptible = 0;
	write_lease(&stays);
	hold(1, "1");
	hold(2, "2");
	others[3] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	(void)append_ticket(&others[3].owner, &ahead);
	join(2, "12", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "");
}

static void the_first_ticket_asks_for_itself(void **state)
{
	struct request ahead = request_of(1, "0", 5);

	(void)state;
	hold(0, "0");
	others[2] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	(void)append_ticket(&others[2].owner, &ahead);
	join(1, "0", 5);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "");
	assert_true(broker.passover.since_ms > 0); /* it may be stopped */
	/* dead, it does not count */
	other_end(&others[2]);
	check_turn(BROKER_WAITING);
	assert_string_equal(asked(), "0");
}

/* Two jobs are sent back for one head; the first of them is gone, and would come again. */
static void gpus_freed_first_are_kept_for_the_head(void **state)
{
	struct request head = request_of(2, "0123", 5);
	struct lease soon[2] = { lease_of(2, "2"), lease_of(3, "3") };
	uint64_t by;

	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* by their limits they end first */
		soon[i].is_preemptible = 0;
		soon[i].limit_ms = 3600 * 1000;
		write_lease(&soon[i]);
	}
	hold(1, "1");
	others[0] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	by = append_ticket(&others[0].owner, &head);
	append_control(CONTROL_PREEMPT, 1001, by, clock_boot_ms());
	join(1, "01", 0);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_BEHIND);
	assert_int_equal(broker.result.verdict.behind, by);
}

/* --- the job that is asked ---------------------------------------------------------- */

static void run_preemptible(int64_t priority)
{
	struct request request = request_of(2, "01", priority);
	struct why why = WHY_NONE;

	request.is_supervised = request.is_preemptible = 1;
	assert_int_equal(broker_join(&broker, &request, "alice", &why), 0);
	check_turn(BROKER_GRANTED);
	assert_true(broker.bell_fd >= 0);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, broker.ticket.owner.token));
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
}

static uint64_t rival(unsigned at, const struct request *request)
{
	others[at] = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	return append_ticket(&others[at].owner, request);
}

static void ask_me(uint64_t by)
{
	append_control(CONTROL_PREEMPT, broker.number, by, clock_boot_ms());
}

static void it_obeys_a_waiter_with_a_higher_priority(void **state)
{
	struct request request = request_of(1, "1", 5);
	uint64_t by;

	(void)state;
	run_preemptible(4);
	by = rival(0, &request);
	ask_me(by);
	bell_ring(&dir, broker.ticket.owner.token);
	assert_true(fixture_is_ready(broker.bell_fd, POLLIN));
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_PREEMPT);
	assert_int_equal(broker.result.preempted_by, by);
	assert_false(fixture_is_ready(broker.bell_fd, POLLIN));
	/* and a cancel request comes first */
	append_control(CONTROL_CANCEL, broker.number, 0, clock_boot_ms());
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_CANCEL);
}

static void write_window(const char *uuid, int64_t from_ms)
{
	struct windows windows = WINDOWS_NONE;
	struct window window = { .id = 1, .from_ms = from_ms };

	text_copy(window.uuid, sizeof(window.uuid), uuid);
	assert_int_equal(windows_read(&dir, &windows), 0);
	assert_int_equal(windows_add(&windows, &window), 0);
	assert_int_equal(windows_write(&dir, &windows), 0);
	windows_release(&windows);
}

static void it_knows_when_a_window_begins(void **state)
{
	int64_t ahead_ms = 3600 * 1000, real_ms = clock_real_ms(), boot_ms;

	(void)state;
	run_preemptible(4);
	assert_int_equal(broker_window_ms(&broker), INT64_MAX);
	write_window(broker.view.gpus[2].file.gpu.uuid, real_ms); /* another GPU */
	assert_int_equal(broker_window_ms(&broker), INT64_MAX);
	write_window(broker.view.gpus[1].file.gpu.uuid, real_ms + ahead_ms);
	boot_ms = broker_window_ms(&broker);
	assert_true(boot_ms > clock_boot_ms() + ahead_ms - 60000);
	assert_true(boot_ms <= clock_boot_ms() + ahead_ms + 1);
	write_window(broker.view.gpus[0].file.gpu.uuid, real_ms - 1000);
	assert_true(broker_window_ms(&broker) <= clock_boot_ms());
	broker.ticket.request.is_preemptible = 0;
	assert_int_equal(broker_window_ms(&broker), INT64_MAX);
}

static void it_obeys_no_other_request(void **state)
{
	struct request same = request_of(1, "1", 4), none = request_of(0, "1", 5),
		       elsewhere = request_of(1, "3", 5), good = request_of(1, "1", 5);
	uint64_t by;

	(void)state;
	run_preemptible(4);
	ask_me(rival(0, &same));
	ask_me(rival(1, &none));
	ask_me(rival(2, &elsewhere));
	ask_me(by = rival(3, &good));
	append_control(CONTROL_CANCEL, by, 0, clock_boot_ms()); /* cancelled */
	ask_me(broker.number);
	ask_me(4711);
	ask_me(0);
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
	other_end(&others[0]);
	by = rival(0, &good);
	append_control(CONTROL_PREEMPT, broker.number + 1, by, clock_boot_ms());
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE); /* not me */
	other_end(&others[0]);
	ask_me(by);
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE); /* dead */
}

static void requests_to_the_earlier_attempt_are_void(void **state)
{
	struct request request = request_of(1, "0123", 5), again;
	struct why why = WHY_NONE;
	uint64_t by, job;

	(void)state;
	run_preemptible(0);
	job = broker.number;
	by = rival(0, &request);
	ask_me(by);
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_PREEMPT);
	again = broker.ticket.request;
	again.gpus = 1;
	assert_int_equal(broker_requeue(&broker, &again, 0, &why), 0);
	assert_int_equal(broker_give_back(&broker), 0);
	check_turn(BROKER_GRANTED); /* the other one has not taken a turn yet */
	assert_int_equal(broker_job(&broker), job);
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
	append_control(CONTROL_PREEMPT, job, by, clock_boot_ms());
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_PREEMPT);
}

static void a_job_that_is_not_preemptible_has_no_bell_and_obeys_no_request(void **state)
{
	struct request request = request_of(1, "1", 5);

	(void)state;
	join(2, "01", 0);
	check_turn(BROKER_GRANTED);
	assert_int_equal(broker.bell_fd, -1);
	ask_me(rival(0, &request));
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
}

/* --- what is remembered ------------------------------------------------------------- */

static void the_latest_request_of_each_is_remembered(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (unsigned i = 0; i < QUEUE_PREEMPTS_MAX + 10; i++)
		append_control(CONTROL_PREEMPT, 1, i, 1);
	last = append_control(CONTROL_PREEMPT, 1, QUEUE_PREEMPTS_MAX, 77);
	assert_int_equal(queue_begin(&broker.queue, 0), 0);
	assert_int_equal(broker.queue.preempt_count, QUEUE_PREEMPTS_MAX);
	for (size_t i = 0; i < broker.queue.preempt_count; i++) {
		const struct queue_preempt *one = &broker.queue.preempts[i];

		assert_true(one->by >= 10); /* the oldest are forgotten */
		if (one->by == QUEUE_PREEMPTS_MAX) {
			assert_int_equal(one->number, last);
			assert_int_equal(one->at_ms, 77);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_job_on_its_gpu_is_asked_and_its_bell_rung),
		TEST(a_job_that_is_not_preemptible_is_not_asked),
		TEST(left_processes_are_not_asked),
		TEST(no_job_is_asked_if_that_would_not_help),
		TEST(a_paused_gpu_is_not_given),
		TEST(as_few_jobs_as_possible_and_free_gpus_first),
		TEST(the_lowest_priority_goes_first),
		TEST(of_two_equal_jobs_the_later_goes),
		TEST(shares_are_asked_until_there_is_room),
		TEST(a_ticket_held_by_a_limit_for_all_asks_as_well),
		TEST(only_as_many_jobs_are_asked_as_the_limit_needs),
		TEST(for_a_limit_only_jobs_with_usable_gpus_are_asked),
		TEST(no_job_is_asked_again_before_its_time),
		TEST(a_job_that_has_not_obeyed_is_spared_for_another),
		TEST(jobs_another_waiter_has_asked_are_chosen_first),
		TEST(a_ticket_asks_although_an_earlier_one_waits_for_other_gpus),
		TEST(no_job_is_asked_if_the_freed_gpus_would_not_be_kept),
		TEST(the_first_ticket_asks_for_itself),
		TEST(gpus_freed_first_are_kept_for_the_head),
		TEST(it_obeys_a_waiter_with_a_higher_priority),
		TEST(it_obeys_no_other_request),
		TEST(it_knows_when_a_window_begins),
		TEST(requests_to_the_earlier_attempt_are_void),
		TEST(a_job_that_is_not_preemptible_has_no_bell_and_obeys_no_request),
		TEST(the_latest_request_of_each_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
