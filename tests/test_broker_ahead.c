#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture_broker.h"

enum { LOOKERS = 8, S = 1000 };

static const struct prober_config config = SIMULATED(2);

static struct statedir dir;
static struct broker broker;
static struct other other;
static unsigned tokens;
static const char *stuck; /* ->stuck of the tickets that are appended */

/* GPU 0 is leased for an hour, GPU 1 is free, the head wants both. */
static int set_up(struct scratch *here)
{
	int r = fixture_broker_open(&broker, &dir, &config);

	(void)here;
	tokens = 0;
	stuck = "";
	other = other_start(dir.fd, OTHER_LIVE);
	return r;
}

static void tear_down(void)
{
	other_end(&other);
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static void hold_gpu_0(void)
{
	struct lease lease = { .ticket = 1000,
		.gpus = fixture_set("0"),
		.limit_ms = 3600 * S,
		.since_ms = clock_boot_ms() - 1000,
		.owner = other.owner };

	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	fixture_write_lease(dir.fd, 0, 1, &lease);
}

/* Appends a ticket of a live process that had its last turn @age_ms ago. */
static void append(uint32_t gpus, const char *after, int64_t age_ms)
{
	struct ticket ticket = { .state = TICKET_WAITING,
		.owner = other.owner,
		.request = { .gpus = gpus, .allow = fixture_set("01") },
		.turn = 1,
		.turn_ms = clock_boot_ms() - age_ms };
	uint64_t number;

	(void)snprintf(ticket.owner.token, sizeof(ticket.owner.token), "%016x", ++tokens);
	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	text_copy(ticket.stuck, sizeof(ticket.stuck), stuck);
	text_copy(ticket.request.after, sizeof(ticket.request.after), after);
	assert_int_equal(ticket_append(&broker.queue.file, &ticket, &number), 0);
}

static void append_many(unsigned count, uint32_t gpus, const char *after, int64_t age_ms)
{
	for (unsigned i = 0; i < count; i++)
		append(gpus, after, age_ms);
}

static void take_turn(void)
{
	if (!broker.number) {
		struct request request = { .gpus = 1, .allow = fixture_set("01") };

		fixture_join(&broker, &request);
	}
	fixture_check_turn(&broker, BROKER_WAITING);
	assert_true(broker.state.ahead_since_ms > 0);
}

static bool looks(void)
{
	return broker.passover.since_ms > 0;
}

static void eight_look_one_second_after_each_other(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	take_turn();
	assert_true(looks());
	assert_true(broker.state.wake_ms <= broker.state.now_ms + S);
}

static void the_eighth_waits_for_seven(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	append_many(LOOKERS - 1, 1, "", 60 * S);
	take_turn();
	assert_false(looks());
	assert_int_equal(
		broker.state.wake_ms, broker.state.ahead_since_ms + (LOOKERS - 1) * S);
	broker.state.ahead_since_ms -= (LOOKERS - 1) * S;
	take_turn();
	assert_true(looks());
}

static void a_ticket_that_the_plan_starts_does_not_count(void **state)
{
	(void)state;
	append(2, "", 0); /* both GPUs are free, and its owner does not act */
	take_turn();
	assert_true(looks());
}

static void the_ninth_has_no_such_timer(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	append_many(LOOKERS, 1, "", 0);
	take_turn();
	assert_false(looks());
	assert_int_equal(broker.state.wake_ms, broker.state.ahead_since_ms + 30 * S);
	/* the eight go on taking turns */
	broker.state.ahead_since_ms -= 30 * S;
	take_turn();
	assert_false(looks());
	assert_int_equal(broker.state.wake_ms, broker.state.ahead_since_ms + 60 * S);
}

static void later_waiters_look_more_rarely(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	append_many(LOOKERS + 17, 1, "", 0);
	take_turn();
	assert_int_equal(
		broker.state.wake_ms, broker.state.ahead_since_ms + 90 * S + 1 * S);
}

static void it_looks_when_the_eight_are_stopped_themselves(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	append_many(LOOKERS, 1, "", 28 * S);
	take_turn();
	assert_false(looks());
	broker.state.ahead_since_ms -= 30 * S;
	take_turn();
	assert_true(looks());
}

static void tickets_that_could_not_start_do_not_count(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	append_many(20, 2, "", 0);
	append_many(20, 1, "1", 0);
	take_turn();
	assert_true(looks());
}

static void stuck_tickets_do_not_count(void **state)
{
	(void)state;
	hold_gpu_0();
	append(2, "", 0);
	stuck = "nvidia-smi:5";
	append_many(LOOKERS, 1, "", 0);
	take_turn();
	assert_true(looks());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(eight_look_one_second_after_each_other),
		TEST(the_eighth_waits_for_seven),
		TEST(a_ticket_that_the_plan_starts_does_not_count),
		TEST(the_ninth_has_no_such_timer),
		TEST(later_waiters_look_more_rarely),
		TEST(it_looks_when_the_eight_are_stopped_themselves),
		TEST(tickets_that_could_not_start_do_not_count),
		TEST(stuck_tickets_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
