/*
 * What a broker says of the time to come: when its job would start, and what would come of one
 * that has no ticket yet.  One simulated GPU.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "clock.h"
#include "fixture_broker.h"

enum { HELD_MS = 60000, AHEAD_MS = 600000 };

static const struct prober_config config = SIMULATED(1);

static struct statedir dir;
static struct broker broker;
static struct other other;
static int64_t free_ms; /* when the one lease ends */

static int set_up(struct scratch *here)
{
	(void)here;
	other = (struct other){ .pid = 0 };
	return fixture_broker_open(&broker, &dir, &config);
}

static void tear_down(void)
{
	other_end(&other);
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static const struct request one_gpu = { .gpus = 1, .allow = { { 1 } } };

static uint64_t append_ticket(
	const struct owner *owner, uint32_t state, const struct request *request)
{
	struct ticket ticket = { .state = state,
		.owner = *owner,
		.request = *request,
		.since_ms = clock_boot_ms(),
		.turn_ms = clock_boot_ms() };
	uint64_t number = 0;

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	assert_int_equal(ticket_append(&broker.queue.file, &ticket, &number), 0);
	return number;
}

/* Job 1 has ended; job 2, called "held", has the GPU for a while. */
static void hold_the_gpu(void)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct lease lease = { .ticket = 2,
		.gpus = fixture_set("0"),
		.limit_ms = HELD_MS,
		.name = "held",
		.since_ms = clock_boot_ms() };

	other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	lease.owner = other.owner;
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	fixture_write_lease(dir.fd, 0, 1, &lease);
	free_ms = lease.since_ms + HELD_MS;
	assert_int_equal(append_ticket(&dead, TICKET_GRANTED, &one_gpu), 1);
	assert_int_equal(append_ticket(&other.owner, TICKET_GRANTED, &one_gpu), 2);
}

static int foresee(struct why *why)
{
	return broker_foresee(&broker, &one_gpu, 0, why);
}

/* --- when --------------------------------------------------------------------------- */

static const struct ahead {
	const char *after, *after_ok, *name;
	bool is_singleton;
	bool counts; /* nothing holds it any more */
} aheads[] = {
	{ "", "", "", false, true },
	{ "1", "", "", false, true },
	{ "2", "", "", false, false },
	{ "1,2", "", "", false, false },
	{ "", "1", "", false, false }, /* no record says how that job ended */
	{ "", "", "own", true, true },
	{ "", "", "held", true, false },
	{ "1", "", "own", true, true },
};

static void only_tickets_held_now_are_left_out_of_the_estimate(void **state)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(aheads); i++) {
		const struct ahead *ahead = &aheads[i / 2];
		struct request request = one_gpu;
		struct why why = WHY_NONE;
		struct other waits;

		fixture_again(state);
		hold_the_gpu();
		request.limit_ms = AHEAD_MS;
		request.is_singleton = ahead->is_singleton;
		text_copy(request.after, AFTER_SIZE, ahead->after);
		text_copy(request.after_ok, AFTER_SIZE, ahead->after_ok);
		text_copy(request.name, NAME_SIZE_MAX, ahead->name);
		waits = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
		(void)append_ticket(&waits.owner, TICKET_WAITING, &request);
		if (i % 2) {
			assert_int_equal(foresee(&why), 0);
		} else {
			fixture_join(&broker, &one_gpu);
			fixture_check_turn(&broker, BROKER_WAITING);
		}
		assert_int_equal(broker_estimate(&broker),
			free_ms + (ahead->counts ? AHEAD_MS : 0));
		other_end(&waits);
	}
}

/* --- whether ------------------------------------------------------------------------ */

static void a_request_over_the_quota_is_refused_in_advance(void **state)
{
	struct request without = { .gpus = 0 };
	struct why why = WHY_NONE;

	(void)state;
	broker.input.all_waiting = 1;
	assert_int_equal(foresee(&why), 0);
	other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	(void)append_ticket(&other.owner, TICKET_WAITING, &one_gpu);
	assert_int_equal(foresee(&why), -EDQUOT);
	assert_string_equal(why.text, "all-waiting allows at most 1 jobs in the queue");
	/* a job that never waits is not counted */
	assert_int_equal(broker_foresee(&broker, &without, 0, &why), 0);
	assert_int_equal(broker_join(&broker, &one_gpu, "alice", &why), -EDQUOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_tickets_held_now_are_left_out_of_the_estimate),
		TEST(a_request_over_the_quota_is_refused_in_advance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
