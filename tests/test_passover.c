#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "passover.h"

/* The times of the protocol. */
enum { PATIENCE = 1000, ANSWER = 2000, RECENT = 10000, STUCK = 3000, NOW = 1000000 };

static struct statedir dir;
static struct queue queue;
static struct passover passover;

/* A waiter ahead: a ticket, and a bell in this process that shows when the ticket is asked. */
struct ahead {
	struct ticket ticket;
	uint64_t number;
	int bell;
};

static int set_up(struct scratch *here)
{
	(void)here;
	passover = PASSOVER_NONE;
	return 0;
}

static void tear_down(void)
{
	passover_release(&passover);
	passover_release(&passover);
}

static struct fixture fixture = {
	.dir = &dir, .queue = &queue, .set_up = set_up, .tear_down = tear_down
};

#define TEST(f) FIXTURE_TEST(f, fixture)

static struct ahead join_with(int64_t turn_ms, int64_t priority)
{
	struct ahead ahead = { .ticket = { .state = TICKET_WAITING, .turn = 1 } };

	ahead.ticket.turn_ms = turn_ms;
	ahead.ticket.request.priority = priority;
	assert_int_equal(owner_self(&ahead.ticket.owner), 0);
	text_copy(ahead.ticket.boot, sizeof(ahead.ticket.boot), dir.boot);
	ahead.bell = fifo_create(&dir, FIFO_BELL, &ahead.ticket.owner);
	assert_true(ahead.bell >= 0);
	assert_int_equal(ticket_append(&queue.file, &ahead.ticket, &ahead.number), 0);
	return ahead;
}

static struct ahead join(int64_t turn_ms)
{
	return join_with(turn_ms, 0);
}

static void take_turn(struct ahead *ahead, int64_t now_ms)
{
	ahead->ticket.turn++;
	ahead->ticket.turn_ms = now_ms;
	assert_int_equal(ticket_rewrite(&queue.file, ahead->number, &ahead->ticket), 0);
}

static bool was_asked(struct ahead *ahead)
{
	bool rings = fixture_is_ready(ahead->bell, POLLIN);

	bell_drain(ahead->bell);
	return rings;
}

static bool is_passed_over(const struct ahead *ahead)
{
	struct queue_row row;

	assert_int_equal(queue_begin(&queue, 0), 0);
	assert_int_equal(queue_find(&queue, ahead->number, &row), 0);
	return passover_includes(&passover, &row);
}

/* A turn at @now_ms; returns when to come back. */
static int64_t consider_at(
	struct queue_place own, bool could_start, int64_t now_ms, int outcome)
{
	int64_t wake_ms = 4711;

	assert_int_equal(queue_begin(&queue, own.number), 0);
	assert_int_equal(
		passover_consider(&passover, &queue, own, could_start, now_ms, &wake_ms),
		outcome);
	return wake_ms;
}

static int64_t consider(uint64_t own, bool could_start, int64_t now_ms, int outcome)
{
	return consider_at(
		(struct queue_place){ .number = own }, could_start, now_ms, outcome);
}

static void an_owner_that_does_not_answer_is_passed_over(void **state)
{
	struct ahead ahead = join(NOW - 1), me = join(NOW);

	(void)state;
	assert_int_equal(consider(me.number, true, NOW, 0), NOW + PATIENCE);
	assert_false(was_asked(&ahead));
	assert_int_equal(
		consider(me.number, true, NOW + PATIENCE, 0), NOW + PATIENCE + ANSWER);
	assert_true(was_asked(&ahead));
	assert_false(was_asked(&me));
	assert_false(is_passed_over(&ahead));
	(void)consider(me.number, true, NOW + PATIENCE + ANSWER - 1, 0);
	assert_false(is_passed_over(&ahead));
	(void)consider(me.number, true, NOW + PATIENCE + ANSWER, PASSOVER_CHANGED);
	assert_true(is_passed_over(&ahead));
	assert_true(is_passed_over(&ahead));
	close_fd(&ahead.bell);
	close_fd(&me.bell);
}

static void an_owner_that_answers_is_not_passed_over(void **state)
{
	struct ahead quick = join(NOW - 1), slow = join(NOW - 1), me = join(NOW);
	int64_t asked_ms = NOW + PATIENCE;

	(void)state;
	(void)consider(me.number, true, NOW, 0);
	(void)consider(me.number, true, asked_ms, 0);
	assert_true(was_asked(&quick) && was_asked(&slow));
	take_turn(&quick, asked_ms + 1);
	(void)consider(me.number, true, asked_ms + ANSWER, PASSOVER_CHANGED);
	assert_false(is_passed_over(&quick));
	assert_true(is_passed_over(&slow));
	close_fd(&quick.bell);
	close_fd(&slow.bell);
	close_fd(&me.bell);
}

static void an_owner_that_acts_again_has_its_place_back(void **state)
{
	struct ahead ahead = join(NOW - 1), me = join(NOW);
	int64_t now_ms = NOW;

	(void)state;
	(void)consider(me.number, true, now_ms, 0);
	now_ms += PATIENCE;
	(void)consider(me.number, true, now_ms, 0);
	now_ms += ANSWER;
	(void)consider(me.number, true, now_ms, PASSOVER_CHANGED);
	assert_true(is_passed_over(&ahead));
	take_turn(&ahead, now_ms);
	assert_false(is_passed_over(&ahead));
	assert_false(is_passed_over(&ahead));
	/* and if it stops again it is found out again */
	(void)consider(me.number, true, now_ms + 1, 0);
	now_ms += RECENT + 1;
	(void)was_asked(&ahead);
	(void)consider(me.number, true, now_ms, 0);
	assert_true(was_asked(&ahead));
	(void)consider(me.number, true, now_ms + ANSWER, PASSOVER_CHANGED);
	assert_true(is_passed_over(&ahead));
	close_fd(&ahead.bell);
	close_fd(&me.bell);
}

static void an_owner_that_acted_recently_is_not_asked(void **state)
{
	struct ahead lately = join(NOW), before = join(NOW - 1), me = join(NOW);

	(void)state;
	(void)consider(me.number, true, NOW, 0);
	take_turn(&lately, NOW + PATIENCE / 2);
	(void)consider(me.number, true, NOW + PATIENCE, 0);
	assert_false(was_asked(&lately));
	assert_true(was_asked(&before)); /* its turn is older than this situation */
	close_fd(&lately.bell);
	close_fd(&before.bell);
	close_fd(&me.bell);
}

static void a_turn_long_ago_or_in_the_future_is_none(void **state)
{
	struct ahead old = join(NOW), future = join(NOW + 1000 * RECENT), me = join(NOW);
	int64_t now_ms = NOW + RECENT + 1;

	(void)state;
	passover.since_ms = NOW - 1;
	passover.next_ms = now_ms;
	(void)consider(me.number, true, now_ms, 0);
	assert_true(was_asked(&old));
	assert_true(was_asked(&future));
	close_fd(&old.bell);
	close_fd(&future.bell);
	close_fd(&me.bell);
}

static void only_waiting_tickets_ahead_are_asked(void **state)
{
	struct ahead granted = join(NOW - 1), other_boot = join(NOW - 1),
		     cancelled = join(NOW - 1), me = join(NOW), behind = join(NOW - 1);
	struct control control = { .verb = CONTROL_CANCEL, .ticket = cancelled.number };

	(void)state;
	granted.ticket.state = TICKET_GRANTED;
	text_copy(other_boot.ticket.boot, BOOT_SIZE, "00000000000000000000000000000000");
	assert_int_equal(ticket_rewrite(&queue.file, granted.number, &granted.ticket), 0);
	assert_int_equal(
		ticket_rewrite(&queue.file, other_boot.number, &other_boot.ticket), 0);
	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&queue.file, &control), 0);
	(void)consider(me.number, true, NOW, 0);
	/* no owner to ask: come back later, in case an owner stops */
	assert_int_equal(
		consider(me.number, true, NOW + PATIENCE, 0), NOW + PATIENCE + RECENT);
	assert_false(was_asked(&granted) || was_asked(&other_boot) ||
		     was_asked(&cancelled) || was_asked(&me) || was_asked(&behind));
	close_fd(&granted.bell);
	close_fd(&other_boot.bell);
	close_fd(&cancelled.bell);
	close_fd(&me.bell);
	close_fd(&behind.bell);
}

static void tickets_ahead_are_those_before_in_the_order(void **state)
{
	static const struct {
		int64_t ahead, own, behind;
		bool ahead_counts, behind_counts;
	} table[] = { { 0, 0, 0, true, false }, { -1, 0, 0, false, false },
		{ 0, 0, 1, true, true }, { -3, 0, 7, false, true },
		{ 4, 0, -4, true, false }, { 2, 3, 4, false, true },
		{ 3, 3, 3, true, false }, { -2, -2, -1, true, true },
		{ -3, -2, -2, false, false } };
	int64_t now_ms = NOW;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct ahead ahead = join_with(NOW - 1, table[i].ahead),
			     me = join_with(NOW, table[i].own),
			     behind = join_with(NOW - 1, table[i].behind);
		struct queue_place own = { .priority = table[i].own,
			.number = me.number };

		passover_release(&passover);
		(void)consider_at(own, true, now_ms, 0);
		(void)consider_at(own, true, now_ms + PATIENCE, 0);
		assert_int_equal(was_asked(&ahead), table[i].ahead_counts);
		assert_int_equal(was_asked(&behind), table[i].behind_counts);
		assert_false(was_asked(&me));
		if (table[i].ahead_counts || table[i].behind_counts)
			(void)consider_at(
				own, true, now_ms + PATIENCE + ANSWER, PASSOVER_CHANGED);
		assert_int_equal(is_passed_over(&ahead), table[i].ahead_counts);
		assert_int_equal(is_passed_over(&behind), table[i].behind_counts);
		ahead.ticket.state = me.ticket.state = behind.ticket.state =
			TICKET_GRANTED;
		take_turn(&ahead, NOW);
		take_turn(&me, NOW);
		take_turn(&behind, NOW);
		close_fd(&ahead.bell);
		close_fd(&me.bell);
		close_fd(&behind.bell);
	}
}

static void a_waiter_that_could_not_start_anyway_rings_no_bell(void **state)
{
	struct ahead ahead = join(NOW - 1), me = join(NOW);

	(void)state;
	assert_true(consider(me.number, false, NOW, 0) == INT64_MAX);
	assert_true(consider(me.number, false, NOW + 100 * RECENT, 0) == INT64_MAX);
	assert_false(was_asked(&ahead));
	/* patience begins when the situation does, and anew when it comes again */
	assert_int_equal(consider(me.number, true, NOW, 0), NOW + PATIENCE);
	(void)consider(me.number, false, NOW + PATIENCE - 1, 0);
	(void)consider(me.number, true, NOW + PATIENCE, 0);
	assert_false(was_asked(&ahead));
	/* also while an answer is awaited */
	(void)consider(me.number, true, NOW + 2 * PATIENCE, 0);
	assert_true(was_asked(&ahead));
	(void)consider(me.number, false, NOW + 2 * PATIENCE + 1, 0);
	(void)consider(me.number, true, NOW + 2 * PATIENCE + ANSWER, 0);
	assert_false(is_passed_over(&ahead));
	close_fd(&ahead.bell);
	close_fd(&me.bell);
}

static void a_ticket_that_is_passed_over_is_not_asked_again(void **state)
{
	struct ahead one = join(NOW - 1), me = join(NOW);
	int64_t now_ms = NOW + PATIENCE + ANSWER;

	(void)state;
	(void)consider(me.number, true, NOW, 0);
	(void)consider(me.number, true, NOW + PATIENCE, 0);
	assert_true(was_asked(&one));
	(void)consider(me.number, true, now_ms, PASSOVER_CHANGED);
	(void)consider(me.number, true, now_ms + RECENT, 0);
	assert_false(was_asked(&one));
	assert_true(is_passed_over(&one));
	close_fd(&one.bell);
	close_fd(&me.bell);
}

static void many_are_asked_at_once(void **state)
{
	enum { MANY = 70 };
	static struct ahead ahead[MANY];
	struct ahead me;
	int64_t asked_ms = NOW + PATIENCE;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		ahead[i] = join(NOW - 1);
	me = join(NOW);
	(void)consider(me.number, true, NOW, 0);
	(void)consider(me.number, true, asked_ms, 0);
	for (size_t i = 0; i < MANY; i++)
		assert_true(was_asked(&ahead[i]));
	/* one round for all: many frozen owners delay a waiter no longer than one */
	(void)consider(me.number, true, asked_ms + ANSWER, PASSOVER_CHANGED);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(is_passed_over(&ahead[i]));
		close_fd(&ahead[i].bell);
	}
	close_fd(&me.bell);
}

/* --- owners that take turns and start nothing ----------------------------------------- */

/* Whether the waiter could take any set of GPUs. */
static bool has_means;

static bool can_take(void *arg, const struct gpuset *gpus)
{
	(void)arg;
	assert_false(gpuset_is_empty(gpus));
	return has_means;
}

/* Takes a turn at @now_ms: its plan starts @ahead on the GPUs @slots; NULL: starts none. */
static int64_t plan_at(struct ahead *ahead, const char *slots, int64_t now_ms,
	bool wants_probe, int outcome)
{
	static const struct passover_means means = { .can_take = can_take };
	struct gpuset gpus = slots ? fixture_set(slots) : GPUSET_NONE;
	int64_t wake_ms = 4711;
	struct queue_row row;
	bool wants = !wants_probe;

	assert_int_equal(queue_begin(&queue, 0), 0);
	assert_int_equal(queue_find(&queue, ahead->number, &row), 0);
	passover_plan_begin(&passover);
	if (slots)
		assert_int_equal(passover_plan_start(&passover, &row, &gpus), 0);
	assert_int_equal(passover_consider_starts(
				 &passover, true, &means, now_ms, &wants, &wake_ms),
		outcome);
	assert_int_equal(wants, wants_probe);
	return wake_ms;
}

static void say_stuck(struct ahead *ahead, const char *stuck, int64_t now_ms)
{
	text_copy(ahead->ticket.stuck, sizeof(ahead->ticket.stuck), stuck);
	take_turn(ahead, now_ms);
}

static void a_ticket_that_could_start_for_3_s_is_passed_over(void **state)
{
	struct ahead ahead = join(NOW);

	(void)state;
	has_means = true;
	assert_int_equal(plan_at(&ahead, "01", NOW, false, 0), NOW + PATIENCE);
	for (int64_t now_ms = NOW + PATIENCE; now_ms < NOW + STUCK; now_ms += PATIENCE) {
		take_turn(&ahead, now_ms); /* it spins */
		(void)plan_at(&ahead, "01", now_ms, true, 0);
		assert_false(is_passed_over(&ahead));
	}
	assert_int_equal(plan_at(&ahead, "01", NOW + STUCK - 1, true, 0), NOW + STUCK);
	(void)plan_at(&ahead, "01", NOW + STUCK, false, PASSOVER_CHANGED);
	assert_true(is_passed_over(&ahead));
	close_fd(&ahead.bell);
}

static void a_break_begins_the_3_s_anew(void **state)
{
	struct ahead ahead = join(NOW);
	int64_t now_ms = NOW + STUCK - 1;

	(void)state;
	/* the waiter itself could not take them: a file is locked, or there is no sound probe */
	has_means = true;
	(void)plan_at(&ahead, "0", NOW, false, 0);
	has_means = false;
	assert_int_equal(plan_at(&ahead, "0", now_ms, true, 0), now_ms + PATIENCE);
	has_means = true;
	(void)plan_at(&ahead, "0", now_ms, true, 0);
	(void)plan_at(&ahead, "0", now_ms + STUCK - 1, true, 0);
	/* the plan gives it other GPUs, and their leases may have ended just now */
	now_ms += STUCK - 1;
	(void)plan_at(&ahead, "1", now_ms, false, 0);
	(void)plan_at(&ahead, "1", now_ms + STUCK - 1, true, 0);
	/* it could not start */
	now_ms += STUCK - 1;
	assert_true(plan_at(&ahead, NULL, now_ms, false, 0) == INT64_MAX);
	(void)plan_at(&ahead, "1", now_ms, false, 0);
	(void)plan_at(&ahead, "1", now_ms + STUCK - 1, true, 0);
	assert_false(is_passed_over(&ahead));
	(void)plan_at(&ahead, "1", now_ms + STUCK, false, PASSOVER_CHANGED);
	assert_true(is_passed_over(&ahead));
	close_fd(&ahead.bell);
}

static void without_means_no_ticket_is_passed_over(void **state)
{
	struct ahead ahead = join(NOW);

	(void)state;
	has_means = false;
	for (int64_t now_ms = NOW; now_ms < NOW + 100 * STUCK; now_ms += PATIENCE)
		(void)plan_at(&ahead, "0", now_ms, now_ms > NOW, 0);
	assert_false(is_passed_over(&ahead));
	close_fd(&ahead.bell);
}

static void a_stuck_ticket_counts_again_once_its_owner_acts(void **state)
{
	struct ahead ahead = join(NOW);
	int64_t now_ms = NOW + STUCK;

	(void)state;
	has_means = true;
	say_stuck(&ahead, "nvidia-smi:no_GPU", NOW);
	(void)plan_at(&ahead, "0", NOW, false, 0);
	(void)plan_at(&ahead, "0", now_ms, false, PASSOVER_CHANGED);
	for (int i = 0; i < 3; i++) {
		take_turn(&ahead, now_ms++);
		assert_true(is_passed_over(&ahead));
	}
	say_stuck(&ahead, "", now_ms);
	assert_false(is_passed_over(&ahead));
	assert_false(is_passed_over(&ahead));
	/* it is stuck again, and is judged anew */
	say_stuck(&ahead, "nvidia-smi:no_GPU", now_ms);
	assert_false(is_passed_over(&ahead));
	close_fd(&ahead.bell);
}

static void a_waiter_that_could_not_start_judges_no_ticket(void **state)
{
	static const struct passover_means means = { .can_take = can_take };
	struct ahead ahead = join(NOW);
	int64_t wake_ms;
	bool wants;

	(void)state;
	has_means = true;
	(void)plan_at(&ahead, "0", NOW, false, 0);
	assert_int_equal(passover_consider_starts(
				 &passover, false, &means, NOW + STUCK, &wants, &wake_ms),
		0);
	assert_true(wake_ms == INT64_MAX && !wants);
	(void)plan_at(&ahead, "0", NOW + STUCK, false, 0);
	assert_false(is_passed_over(&ahead));
	close_fd(&ahead.bell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_owner_that_does_not_answer_is_passed_over),
		TEST(an_owner_that_answers_is_not_passed_over),
		TEST(an_owner_that_acts_again_has_its_place_back),
		TEST(an_owner_that_acted_recently_is_not_asked),
		TEST(a_turn_long_ago_or_in_the_future_is_none),
		TEST(only_waiting_tickets_ahead_are_asked),
		TEST(tickets_ahead_are_those_before_in_the_order),
		TEST(a_waiter_that_could_not_start_anyway_rings_no_bell),
		TEST(a_ticket_that_is_passed_over_is_not_asked_again),
		TEST(many_are_asked_at_once),
		TEST(a_ticket_that_could_start_for_3_s_is_passed_over),
		TEST(a_break_begins_the_3_s_anew),
		TEST(without_means_no_ticket_is_passed_over),
		TEST(a_stuck_ticket_counts_again_once_its_owner_acts),
		TEST(a_waiter_that_could_not_start_judges_no_ticket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
