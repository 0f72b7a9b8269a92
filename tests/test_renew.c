/*
 * How a waiting job changes its place in the queue: the new ticket, what other processes see of the
 * change, requests for another priority, and what a crash in between leaves.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "broker_parts.h"
#include "fixture_broker.h"
#include "queue_order.h"

enum { GPUS = 1 };

static const struct prober_config config = SIMULATED(GPUS);

static struct statedir dir;
static struct broker holder, first, second; /* the holder has the GPU */

static int open_broker(struct broker *one)
{
	memset(one, 0, sizeof(*one));
	return broker_init(one, &dir, &config);
}

static int set_up(struct scratch *here)
{
	struct request request = { .gpus = 1, .allow = GPUSET_ALL };
	struct why why;

	(void)here;
	if (fixture_broker_open(&holder, &dir, &config) < 0 || open_broker(&first) < 0 ||
		open_broker(&second) < 0 ||
		broker_join(&holder, &request, "carol", &why) < 0)
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

static void join(struct broker *one)
{
	struct request request = { .gpus = 1, .allow = GPUSET_ALL };

	fixture_join(one, &request);
	fixture_check_turn(one, BROKER_WAITING);
}

static void renew(struct broker *one, int64_t priority, int64_t late_ms)
{
	struct why why = WHY_NONE;

	if (broker_renew(one, priority, late_ms, &why) < 0)
		fail_msg("%s", why.text);
}

static struct ticket read_ticket(uint64_t number)
{
	struct ticket ticket;

	assert_int_equal(ticket_read(&holder.queue.file, number, &ticket), TICKET_RECORD);
	return ticket;
}

/* The job that waits first in the order; 0: none waits. */
static uint64_t first_in_order(void)
{
	struct queue_cursor cursor;
	struct queue_row row;

	assert_int_equal(queue_begin(&holder.queue, 0), 0);
	queue_order_begin(&cursor, QUEUE_LAST);
	return queue_next_in_order(&holder.queue, &cursor, &row) == 0
		       ? ticket_job(row.number, &row.ticket)
		       : 0;
}

static void append_control(uint32_t verb, uint64_t job, uint32_t uid, int64_t priority)
{
	struct control control = {
		.verb = verb, .ticket = job, .uid = uid, .priority = priority
	};

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&holder.queue.file, &control), 0);
}

/* --- the tickets -------------------------------------------------------------------- */

static void the_job_keeps_its_id_and_its_arrival(void **state)
{
	struct ticket before, old, new;
	uint64_t number;

	(void)state;
	join(&first);
	before = first.ticket;
	number = first.number;
	renew(&first, 0, 5000);
	assert_true(first.number > number);
	assert_int_equal(broker_job(&first), number);
	new = read_ticket(first.number);
	assert_int_equal(new.state, TICKET_WAITING);
	assert_int_equal(new.job, number);
	assert_int_equal(new.attempt, 1);
	assert_int_equal(new.since_ms, before.since_ms);
	assert_int_equal(new.order_ms, before.since_ms + 5000);
	assert_int_equal(new.late_ms, 5000);
	assert_string_not_equal(new.owner.token, before.owner.token);
	old = read_ticket(number);
	assert_int_equal(old.state, TICKET_LEFT);
	assert_int_equal(old.latest, first.number);
	assert_int_equal(old.order_ms, 0);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, before.owner.token));
	assert_false(fixture_exists(dir.fd, FIFO_BELL, before.owner.token));
	assert_int_equal(live_fifo_look(&dir, new.owner.token, NULL), LIVE_FIFO_HELD);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, new.owner.token));
	/* again: the first ticket leads to the latest, and the one between is left */
	number = first.number;
	renew(&first, 7, 5000);
	assert_int_equal(read_ticket(broker_job(&first)).latest, first.number);
	assert_int_equal(read_ticket(number).state, TICKET_LEFT);
	assert_int_equal(read_ticket(number).latest, 0);
	assert_int_equal(read_ticket(first.number).request.priority, 7);
	fixture_check_turn(&first, BROKER_WAITING);
}

static void a_later_order_lets_those_pass_that_come_before_it(void **state)
{
	(void)state;
	join(&first);
	join(&second);
	assert_int_equal(first_in_order(), broker_job(&first));
	assert_int_equal(broker_position(&second), 2);
	renew(&first, 0, 60000);
	assert_int_equal(first_in_order(), broker_job(&second));
	fixture_check_turn(&first, BROKER_WAITING);
	fixture_check_turn(&second, BROKER_WAITING);
	assert_int_equal(broker_position(&first), 2);
	assert_int_equal(broker_position(&second), 1);
	renew(&second, 0, 60001);
	assert_int_equal(first_in_order(), broker_job(&first));
	renew(&second, 1, 60001);
	assert_int_equal(first_in_order(), broker_job(&second));
}

static void a_failure_leaves_the_job_as_it_was(void **state)
{
	struct why why = WHY_NONE;
	struct ticket before;
	uint64_t number;
	int fd;

	(void)state;
	join(&first);
	before = first.ticket;
	number = first.number;
	fd = first.queue.file.append_fd;
	first.queue.file.append_fd = -1; /* as if the disk were full */
	assert_true(broker_renew(&first, 3, 0, &why) < 0);
	first.queue.file.append_fd = fd;
	assert_true(why.text[0]);
	assert_memory_equal(&before, &first.ticket, sizeof(before));
	assert_int_equal(first.number, number);
	assert_int_equal(live_fifo_look(&dir, before.owner.token, NULL), LIVE_FIFO_HELD);
	assert_true(first.bell_fd >= 0);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first_in_order(), number);
}

/* Without a new ticket its place would be the one that it got when it was submitted. */
static void a_released_job_waits_until_it_gets_a_new_ticket(void **state)
{
	uint64_t number;
	int fd;

	(void)state;
	first.input.is_held = true;
	join(&first);
	number = first.number;
	join(&second);
	append_control(CONTROL_RELEASE, number, (uint32_t)getuid(), 0);
	fd = first.queue.file.append_fd;
	first.queue.file.append_fd = -1;
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.number, number);
	assert_int_equal(first.result.verdict.kind, VERDICT_HELD);
	assert_int_not_equal(first.ticket.not_before_ms, TICKET_HELD);
	assert_true(first.ticket.not_before_ms > clock_boot_ms());
	assert_true(first.state.wake_ms <= first.ticket.not_before_ms);
	first.queue.file.append_fd = fd;
	first.ticket.not_before_ms = clock_boot_ms();
	assert_int_equal(ticket_rewrite(&first.queue.file, number, &first.ticket), 0);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_true(first.number > second.number);
	assert_int_equal(first.ticket.not_before_ms, 0);
	assert_int_equal(first_in_order(), second.number);
}

static void a_further_attempt_comes_at_its_own_time_and_keeps_the_priority(void **state)
{
	struct request request;
	struct why why;

	(void)state;
	broker_release(&holder);
	assert_int_equal(open_broker(&holder), 0);
	join(&first);
	request = first.ticket.request;
	renew(&first, 4, 9000);
	assert_int_equal(broker_requeue(&first, &request, 0, &why), 0);
	assert_int_equal(first.ticket.attempt, 2);
	assert_int_equal(first.ticket.order_ms, 0);
	assert_int_equal(first.ticket.late_ms, 0);
	assert_int_equal(first.ticket.request.priority, 4);
	assert_int_equal(read_ticket(broker_job(&first)).attempt, 2);
	close_fd(&first.state.debt.live_fd);
}

/* --- cancels and other requests ----------------------------------------------------- */

static void a_cancel_counts_for_the_new_ticket(void **state)
{
	struct ticket_header header = { .hint = 1 };

	(void)state;
	join(&first);
	append_control(CONTROL_CANCEL, first.number, 0, 0);
	renew(&first, 0, 1000);
	/* the hint passes the control */
	header.hint = first.number;
	assert_int_equal(ticket_write_header(&first.queue.file, &header), 0);
	fixture_check_turn(&first, BROKER_CANCELLED);
}

static void the_owner_and_root_change_the_priority(void **state)
{
	uint32_t uid = (uint32_t)getuid();
	uint64_t number;

	(void)state;
	join(&second);
	join(&first);
	number = first.number;
	append_control(CONTROL_PRIORITY, broker_job(&first), uid, 5);
	append_control(CONTROL_PRIORITY, broker_job(&first), uid + 1, 6);
	append_control(CONTROL_PRIORITY, broker_job(&second), uid + 1, 9);
	fixture_check_turn(&first, BROKER_WAITING);
	fixture_check_turn(&second, BROKER_WAITING);
	assert_int_equal(second.ticket.request.priority, 0);
	assert_int_equal(second.ticket.order_ms, 0);
	assert_true(first.number > number);
	assert_int_equal(first.ticket.request.priority, 5);
	assert_int_equal(first_in_order(), broker_job(&first));
	/* once: a further turn changes nothing */
	number = first.number;
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.number, number);
	/* of several requests the last counts; back at 0 the job stands where it came */
	append_control(CONTROL_PRIORITY, broker_job(&first), 0, 8);
	append_control(CONTROL_PRIORITY, broker_job(&first), 0, 0);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.ticket.request.priority, 0);
	assert_int_equal(first.ticket.order_ms, first.ticket.since_ms);
	assert_int_equal(broker_job(&first), 3);
	append_control(CONTROL_PRIORITY, broker_job(&first), 0, -1);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first_in_order(), broker_job(&second));
}

static void a_handicap_outlives_a_change_of_the_priority(void **state)
{
	(void)state;
	join(&first);
	renew(&first, 0, 7000);
	append_control(CONTROL_PRIORITY, broker_job(&first), 0, 2);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(first.ticket.late_ms, 7000);
	assert_int_equal(first.ticket.order_ms, first.ticket.since_ms + 7000);
}

/* --- what others see ---------------------------------------------------------------- */

static struct outcome_look look;

static int judge(struct outcome *job)
{
	assert_int_equal(queue_begin(&holder.queue, 0), 0);
	assert_int_equal(snapshot_read(&holder.view, clock_boot_ms()), 0);
	outcome_begin(&look, &holder.queue, &holder.view, clock_boot_ms());
	return outcome_judge(job, &look, false);
}

/* Removes a ticket, as the sweep does. */
static void wipe(uint64_t number)
{
	static const char zeros[RECORD_SIZE];

	assert_int_equal(pwrite(first.queue.file.fd, zeros, sizeof(zeros),
				 (off_t)number * RECORD_SIZE),
		RECORD_SIZE);
}

static void a_job_with_a_new_ticket_has_not_started_or_ended(void **state)
{
	struct outcome job;

	(void)state;
	join(&first);
	job = OUTCOME_OF(first.number);
	assert_int_equal(judge(&job), 0);
	assert_int_equal(outcome_judge_start(&job, &look, false), 0);
	renew(&first, 0, 1000);
	/* a reader that has followed the old ticket */
	assert_int_equal(judge(&job), 0);
	assert_int_equal(outcome_judge_start(&job, &look, false), 0);
	assert_int_equal(job.latest, first.number);
	/* also if the ticket that it has followed is swept */
	renew(&first, 0, 2000);
	wipe(job.latest);
	assert_int_equal(outcome_judge_start(&job, &look, false), 0);
	assert_int_equal(job.latest, first.number);
	/* and one that begins now, also by the number of the new ticket */
	job = OUTCOME_OF(first.number);
	assert_int_equal(judge(&job), 0);
	assert_int_equal(outcome_judge_start(&job, &look, false), 0);
	assert_int_equal(job.job, broker_job(&first));
}

/* The latest ticket may be swept before the first; the history has attempt 1. */
static void the_end_is_found_if_only_the_first_ticket_is_left(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct outcome job;
	struct ticket ticket;

	(void)state;
	join(&first);
	renew(&first, 0, 1000);
	ticket = read_ticket(broker_job(&first));
	ticket.owner = other.owner;
	assert_int_equal(
		ticket_rewrite(&first.queue.file, broker_job(&first), &ticket), 0);
	wipe(first.number);
	other_kill(&other);
	job = OUTCOME_OF(broker_job(&first));
	assert_int_equal(judge(&job), 1);
	assert_int_equal(job.attempt, 1);
	other_end(&other);
}

/* --- a process that was stopped ----------------------------------------------------- */

static void a_time_that_is_too_early_is_corrected(void **state)
{
	int64_t now_ms = clock_boot_ms();

	(void)state;
	join(&first);
	first.ticket.since_ms = now_ms - 900;
	broker_settle_arrival(&first);
	assert_int_equal(first.ticket.since_ms, now_ms - 900);
	first.ticket.since_ms = now_ms - 5000;
	broker_settle_arrival(&first);
	assert_in_range(first.ticket.since_ms, now_ms, now_ms + PATIENCE_MS);
	assert_int_equal(read_ticket(first.number).since_ms, first.ticket.since_ms);
}

/* --- crashes ------------------------------------------------------------------------ */

/* A process dies right after it has appended its new ticket: two tickets wait without an owner. */
static void a_death_in_between_holds_up_no_other_job(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number =
		fixture_append(&holder.queue, &other.owner, TICKET_WAITING, dir.boot);
	struct ticket new = read_ticket(number);
	uint64_t again;

	(void)state;
	new.job = number;
	new.order_ms = 1;
	new.request.gpus = 1;
	new.request.allow = GPUSET_ALL;
	assert_int_equal(ticket_append(&holder.queue.file, &new, &again), 0);
	join(&first);
	assert_int_equal(broker_position(&first), 3);
	other_kill(&other);
	fixture_check_turn(&first, BROKER_WAITING);
	assert_int_equal(broker_position(&first), 1);
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_job_keeps_its_id_and_its_arrival),
		TEST(a_later_order_lets_those_pass_that_come_before_it),
		TEST(a_failure_leaves_the_job_as_it_was),
		TEST(a_released_job_waits_until_it_gets_a_new_ticket),
		TEST(a_further_attempt_comes_at_its_own_time_and_keeps_the_priority),
		TEST(a_cancel_counts_for_the_new_ticket),
		TEST(the_owner_and_root_change_the_priority),
		TEST(a_handicap_outlives_a_change_of_the_priority),
		TEST(a_job_with_a_new_ticket_has_not_started_or_ended),
		TEST(the_end_is_found_if_only_the_first_ticket_is_left),
		TEST(a_time_that_is_too_early_is_corrected),
		TEST(a_death_in_between_holds_up_no_other_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
