#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "queue_order.h"

static unsigned torn_reads; /* so many reads of the queue see ticket 2 half copied */
static unsigned reads;
static size_t read_bytes;

ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset)
{
	ssize_t n = __real_pread(fd, out, size, offset);
	off_t at = 2 * RECORD_SIZE - offset;

	reads++;
	read_bytes += n > 0 ? (size_t)n : 0;
	if (torn_reads && at >= 0 && at + RECORD_SIZE <= n) {
		torn_reads--;
		memset((char *)out + at + 100, '#', 50);
	}
	return n;
}

/* The place of a plain ticket. */
#define PLACE(priority_, number_)                            \
	{                                                    \
		.priority = (priority_), .number = (number_) \
	}

static struct statedir dir;
static struct queue queue;
static struct owner myself;

static int set_up(struct scratch *here)
{
	(void)here;
	torn_reads = 0;
	return owner_self(&myself);
}

static struct fixture fixture = { .dir = &dir, .queue = &queue, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

static uint64_t append_of(
	const struct owner *owner, uint32_t ticket_state, const char *boot)
{
	return fixture_append(&queue, owner, ticket_state, boot);
}

/* A waiting ticket of this process. */
static uint64_t append(void)
{
	return append_of(&myself, TICKET_WAITING, dir.boot);
}

static struct ticket ranked_ticket(int64_t priority)
{
	struct ticket ticket = { .state = TICKET_WAITING, .owner = myself };

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	ticket.request.priority = priority;
	return ticket;
}

static uint64_t append_with(int64_t priority)
{
	struct ticket ticket = ranked_ticket(priority);
	uint64_t number = 0;

	assert_int_equal(ticket_append(&queue.file, &ticket, &number), 0);
	return number;
}

static void rewrite_as(uint64_t number, uint32_t ticket_state, int64_t priority)
{
	struct ticket ticket = ranked_ticket(priority);

	ticket.state = ticket_state;
	assert_int_equal(ticket_rewrite(&queue.file, number, &ticket), 0);
}

static void append_cancel(uint64_t ticket, uint32_t uid, uint32_t verb, const char *boot)
{
	struct control control = { .verb = verb, .uid = uid, .ticket = ticket };

	text_copy(control.boot, sizeof(control.boot), boot);
	assert_int_equal(ticket_append_control(&queue.file, &control), 0);
}

static void set_hint(uint64_t hint)
{
	struct ticket_header header = { .hint = hint };

	assert_int_equal(ticket_write_header(&queue.file, &header), 0);
}

static void begin(uint64_t own)
{
	assert_int_equal(queue_begin(&queue, own), 0);
}

/* The next row is ticket @number; 0: there is none. */
static struct queue_row check_next(uint64_t *at, uint64_t number)
{
	struct queue_row row = { .number = 0 };
	int r = queue_next(&queue, at, &row);

	assert_int_equal(r, number ? 0 : QUEUE_END);
	assert_int_equal(row.number, number);
	if (number)
		assert_int_equal(*at, number + 1);
	return row;
}

/* --- rows --------------------------------------------------------------------------- */

static void tickets_come_in_their_order(void **state)
{
	uint64_t at;

	(void)state;
	begin(0);
	at = queue.from;
	check_next(&at, 0);
	for (uint64_t i = 1; i <= 200; i++)
		assert_int_equal(append(), i);
	begin(0);
	at = queue.from;
	for (uint64_t i = 1; i <= 200; i++)
		assert_true(check_next(&at, i).is_waiting);
	check_next(&at, 0);
	check_next(&at, 0);
	/* what is appended meanwhile belongs to the next turn */
	(void)append();
	check_next(&at, 0);
	begin(0);
	check_next(&at, 201);
}

static void only_waiting_tickets_of_this_boot_wait(void **state)
{
	uint64_t at;

	(void)state;
	(void)append();
	(void)append_of(&myself, TICKET_GRANTED, dir.boot);
	(void)append_of(&myself, TICKET_WAITING, "00000000000000000000000000000000");
	(void)append_of(&myself, 0, dir.boot);
	begin(0);
	at = queue.from;
	assert_true(check_next(&at, 1).is_waiting);
	assert_false(check_next(&at, 2).is_waiting);
	assert_false(check_next(&at, 3).is_waiting);
	assert_false(check_next(&at, 4).is_waiting);
}

static void void_records_and_unknown_ones_are_passed(void **state)
{
	static const char zeros[RECORD_SIZE];
	uint64_t at;

	(void)state;
	for (int i = 0; i < 6; i++)
		(void)append();
	assert_int_equal(
		pwrite(queue.file.fd, zeros, RECORD_SIZE, RECORD_SIZE), RECORD_SIZE);
	append_cancel(77, 0, CONTROL_CANCEL, dir.boot);
	(void)append();
	begin(0);
	at = queue.from;
	for (uint64_t i = 2; i <= 6; i++)
		check_next(&at, i);
	check_next(&at, 8);
	check_next(&at, 0);
	assert_int_equal(queue.first_broken, 0);
}

static void a_broken_record_is_skipped_and_remembered(void **state)
{
	uint64_t at;

	(void)state;
	for (int i = 0; i < 5; i++)
		(void)append();
	assert_int_equal(pwrite(queue.file.fd, "#", 1, 3 * RECORD_SIZE + 50), 1);
	assert_int_equal(pwrite(queue.file.fd, "#", 1, 4 * RECORD_SIZE + 50), 1);
	begin(0);
	at = queue.from;
	check_next(&at, 1);
	check_next(&at, 2);
	check_next(&at, 5);
	assert_int_equal(queue.first_broken, 3);
	begin(0);
	assert_int_equal(queue.first_broken, 0); /* it may be good in this turn */
}

static void a_record_half_copied_is_read_again(void **state)
{
	uint64_t at;

	(void)state;
	for (int i = 0; i < 3; i++)
		(void)append();
	begin(0);
	at = queue.from;
	check_next(&at, 1);
	torn_reads = 2;
	queue.chunk_count = 0;
	assert_true(check_next(&at, 2).is_waiting);
	assert_int_equal(torn_reads, 0);
	assert_int_equal(queue.first_broken, 0);
	check_next(&at, 3);
}

static void a_ticket_is_found_by_its_number(void **state)
{
	struct queue_row row;

	(void)state;
	(void)append();
	(void)append();
	append_cancel(1, 0, CONTROL_CANCEL, dir.boot);
	begin(0);
	assert_int_equal(queue_find(&queue, 2, &row), 0);
	assert_true(row.is_waiting);
	assert_int_equal(queue_find(&queue, 1, &row), 0);
	assert_true(row.is_cancelled);
	assert_int_equal(queue_find(&queue, 0, &row), QUEUE_END);
	assert_int_equal(queue_find(&queue, 3, &row), QUEUE_END); /* a control */
	assert_int_equal(queue_find(&queue, 4, &row), QUEUE_END);
	assert_int_equal(queue_find(&queue, UINT64_MAX, &row), QUEUE_END);
}

/* --- the order ---------------------------------------------------------------------- */

/* What comes before @until in the order are the tickets @numbers, ended by 0. */
static void check_order_until(struct queue_place until, const uint64_t *numbers)
{
	struct queue_cursor cursor;
	struct queue_row row;

	queue_order_begin(&cursor, until);
	for (; *numbers; numbers++) {
		assert_int_equal(queue_next_in_order(&queue, &cursor, &row), 0);
		assert_int_equal(row.number, *numbers);
		assert_true(row.is_waiting);
	}
	assert_int_equal(queue_next_in_order(&queue, &cursor, &row), QUEUE_END);
	assert_int_equal(queue_next_in_order(&queue, &cursor, &row), QUEUE_END);
}

static size_t count_in_order(void)
{
	struct queue_cursor cursor;
	struct queue_row row;
	size_t count = 0;

	queue_order_begin(&cursor, QUEUE_LAST);
	while (queue_next_in_order(&queue, &cursor, &row) == 0)
		count++;
	return count;
}

#define CHECK_ORDER(...) \
	check_order_until(QUEUE_LAST, (const uint64_t[]){ __VA_ARGS__, 0 })

static void places_are_compared_by_priority_and_then_number(void **state)
{
	static const struct queue_place order[] = { PLACE(INT64_MAX, 1),
		PLACE(INT64_MAX, 7), PLACE(1, 9), PLACE(0, 1), PLACE(0, 2),
		PLACE(0, UINT64_MAX), PLACE(-1, 1), PLACE(INT64_MIN, 3),
		PLACE(INT64_MIN, UINT64_MAX) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		for (size_t k = 0; k < ARRAY_SIZE(order); k++)
			assert_int_equal(queue_comes_before(order[i], order[k]), i < k);
}

static void the_higher_priority_comes_first_and_then_the_earlier(void **state)
{
	static const int64_t priorities[] = { 0, 5, -2, 0, 7, 5, -2, INT64_MIN, 0,
		INT64_MAX, 1, -1 };

	(void)state;
	begin(0);
	check_order_until(QUEUE_LAST, (const uint64_t[]){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(priorities); i++)
		(void)append_with(priorities[i]);
	begin(0);
	CHECK_ORDER(10, 5, 2, 6, 11, 1, 4, 9, 12, 3, 7, 8);
	begin(0);
	CHECK_ORDER(10, 5, 2, 6, 11, 1, 4, 9, 12, 3, 7, 8);
	/* a ticket that comes later is seen in the next turn, in its place */
	assert_int_equal(append_with(6), 13);
	assert_int_equal(append_with(0), 14);
	CHECK_ORDER(10, 5, 2, 6, 11, 1, 4, 9, 12, 3, 7, 8);
	begin(0);
	CHECK_ORDER(10, 5, 13, 2, 6, 11, 1, 4, 9, 14, 12, 3, 7, 8);
}

static int by_place(const void *a, const void *b)
{
	return queue_comes_before(
		       *(const struct queue_place *)a, *(const struct queue_place *)b)
		       ? -1
		       : 1;
}

/* Whatever the priorities: sorted, and for everybody those before their own place. */
static void every_waiter_sees_the_tickets_before_its_place(void **state)
{
	enum { ROUNDS = 40, MOST = 150 };
	unsigned seed = 4711;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct queue_place sorted[MOST];
		uint64_t numbers[MOST + 1];
		size_t count = (size_t)(rand_r(&seed) % MOST);
		int spread = rand_r(&seed) % 9 + 1, few = rand_r(&seed) % 3;

		fixture_again(state);
		for (size_t i = 0; i < count; i++) {
			int64_t priority = few && rand_r(&seed) % 4
						   ? 0
						   : rand_r(&seed) % spread - spread / 2;

			sorted[i] = (struct queue_place)PLACE(
				priority, append_with(priority));
		}
		qsort(sorted, count, sizeof(*sorted), by_place);
		for (size_t i = 0; i < count; i++)
			numbers[i] = sorted[i].number;
		for (size_t i = count; i-- > 0;) {
			begin(sorted[i].number);
			numbers[i] = 0;
			check_order_until(sorted[i], numbers);
		}
	}
}

/* --- the order, with tickets that have an order of their own ------------------------- */

enum { MIX_MOST = 60 };

/* Tickets as they were appended, and which of them wait. */
struct mix {
	struct queue_place places[MIX_MOST];
	bool waits[MIX_MOST];
	size_t count;
};

static uint64_t append_placed(struct queue_place place)
{
	struct ticket ticket = ranked_ticket(place.priority);
	uint64_t number = 0;

	ticket.order_ms = place.order_ms;
	ticket.since_ms = place.since_ms;
	assert_int_equal(ticket_append(&queue.file, &ticket, &number), 0);
	return number;
}

static void mix_add(struct mix *mix, int64_t priority, int64_t since_ms, int64_t order_ms)
{
	struct queue_place *place = &mix->places[mix->count];

	*place = (struct queue_place){
		.priority = priority, .order_ms = order_ms, .since_ms = since_ms
	};
	place->number = append_placed(*place);
	mix->waits[mix->count++] = true;
}

/* Random tickets; the times of plain ones may be inverted by less than @inverted_ms. */
static void mix_draw(struct mix *mix, unsigned *seed, int64_t inverted_ms)
{
	size_t count = (size_t)rand_r(seed) % MIX_MOST;
	int spread = rand_r(seed) % 4 ? 1 : 3, ordered = rand_r(seed) % 5;

	mix->count = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t since_ms =
			1000 + (int64_t)i * 10 + rand_r(seed) % (int)inverted_ms;
		bool is_ordered = rand_r(seed) % 4 < ordered;

		mix_add(mix, rand_r(seed) % spread - spread / 2, since_ms,
			is_ordered ? since_ms + rand_r(seed) % 500 : 0);
	}
}

/* The first waiting ticket from *@at on of one kind and priority; or ->count. */
static size_t mix_find(const struct mix *mix, int64_t priority, bool is_ordered,
	const struct queue_place *after)
{
	size_t best = mix->count;

	for (size_t i = 0; i < mix->count; i++) {
		const struct queue_place *one = &mix->places[i];

		if (!mix->waits[i] || one->priority != priority ||
			(one->order_ms != 0) != is_ordered ||
			(after && !queue_comes_before(*after, *one)))
			continue;
		if (best == mix->count || queue_comes_before(*one, mix->places[best]))
			best = i;
	}
	return best;
}

/* The numbers of the waiting tickets in their order, by the definition in queue_order.h. */
static size_t mix_sort(const struct mix *mix, uint64_t *numbers)
{
	size_t count = 0;

	for (int64_t priority = 5; priority >= -5; priority--) {
		size_t plain = mix_find(mix, priority, false, NULL);
		size_t ordered = mix_find(mix, priority, true, NULL);

		while (plain < mix->count || ordered < mix->count) {
			bool is_next = ordered < mix->count &&
				       (plain == mix->count ||
					       mix->places[ordered].order_ms <
						       mix->places[plain].since_ms);
			size_t *next = is_next ? &ordered : &plain;

			numbers[count++] = mix->places[*next].number;
			*next = mix_find(mix, priority, is_next, &mix->places[*next]);
		}
	}
	return count;
}

static struct queue_place mix_place(const struct mix *mix, uint64_t number)
{
	return mix->places[number - 1];
}

/* Every waiter sees the same order, up to its own place; and then what comes after it. */
static void check_mix(const struct mix *mix)
{
	uint64_t numbers[MIX_MOST + 1] = { 0 }, before[MIX_MOST + 1] = { 0 };
	size_t count = mix_sort(mix, numbers);

	check_order_until(QUEUE_LAST, numbers);
	for (size_t i = 0; i < count; i++) {
		struct queue_place own = mix_place(mix, numbers[i]);
		struct queue_cursor cursor;
		struct queue_row row;

		begin(own.number);
		check_order_until(own, before);
		before[i] = numbers[i];
		queue_order_begin(&cursor, own);
		while (queue_next_in_order(&queue, &cursor, &row) == 0)
			;
		cursor.until = QUEUE_LAST;
		for (size_t k = i; k < count; k++) {
			assert_int_equal(queue_next_in_order(&queue, &cursor, &row), 0);
			assert_int_equal(row.number, numbers[k]);
		}
	}
}

static void an_order_of_its_own_is_compared_with_the_time_of_plain_tickets(void **state)
{
	struct mix mix = { .count = 0 };

	(void)state;
	mix_add(&mix, 0, 100, 0);
	mix_add(&mix, 0, 101, 301);
	mix_add(&mix, 0, 200, 0);
	mix_add(&mix, 0, 300, 0);
	mix_add(&mix, 0, 301, 0);
	mix_add(&mix, 0, 302, 0);
	mix_add(&mix, 2, 400, 500);
	mix_add(&mix, 2, 450, 0);
	mix_add(&mix, -1, 90, 95);
	mix_add(&mix, 0, 90, 95);
	begin(0);
	CHECK_ORDER(8, 7, 10, 1, 3, 4, 5, 2, 6, 9);
	check_mix(&mix);
	/* a ticket that would be appended next */
	check_order_until((struct queue_place){ .number = 11, .since_ms = 900 },
		(const uint64_t[]){ 8, 7, 10, 1, 3, 4, 5, 2, 6, 0 });
	check_order_until((struct queue_place){ .number = 11, .order_ms = 300 },
		(const uint64_t[]){ 8, 7, 10, 1, 3, 4, 0 });
}

/* Two plain tickets stand in the order of their numbers, even if their times are inverted. */
static void plain_tickets_keep_their_order(void **state)
{
	struct mix mix = { .count = 0 };

	(void)state;
	mix_add(&mix, 0, 102, 0);
	mix_add(&mix, 0, 100, 0);
	mix_add(&mix, 0, 50, 101);
	begin(0);
	CHECK_ORDER(3, 1, 2);
	check_mix(&mix);
	rewrite_as(1, TICKET_GRANTED, 0);
	begin(0);
	CHECK_ORDER(2, 3);
}

static void all_waiters_see_one_order(void **state)
{
	unsigned seed = 17;

	for (unsigned round = 0; round < 30; round++) {
		static struct mix mix;

		fixture_again(state);
		mix_draw(&mix, &seed, round % 2 ? 25 : 1);
		begin(0);
		check_mix(&mix);
		for (size_t i = 0; i < mix.count; i++)
			if (rand_r(&seed) % 3 == 0) {
				struct queue_place *place = &mix.places[i];
				struct ticket ticket = ranked_ticket(place->priority);

				ticket.state = TICKET_LEFT;
				ticket.order_ms = place->order_ms;
				assert_int_equal(ticket_rewrite(&queue.file,
							 place->number, &ticket),
					0);
				mix.waits[i] = false;
			}
		begin(0);
		check_mix(&mix);
		/* a process that reads the file for the first time */
		queue_release(&queue);
		assert_int_equal(queue_open(&queue, &dir), 0);
		begin(0);
		check_mix(&mix);
	}
}

/* mix_draw() makes a ticket later by less than 500 ms. */
static void no_ticket_is_passed_by_one_that_came_later_than_the_maximum(void **state)
{
	unsigned seed = 4, passed = 0;

	for (unsigned round = 0; round < 40; round++) {
		uint64_t numbers[MIX_MOST];
		static struct mix mix;
		size_t count;

		fixture_again(state);
		mix_draw(&mix, &seed, 1);
		count = mix_sort(&mix, numbers);
		for (size_t i = 0; i < count; i++)
			for (size_t k = i + 1; k < count; k++) {
				struct queue_place first = mix_place(&mix, numbers[i]);
				struct queue_place then = mix_place(&mix, numbers[k]);
				int64_t gap_ms = first.since_ms - then.since_ms;

				assert_true(
					first.priority != then.priority || gap_ms < 500);
				passed += first.priority == then.priority && gap_ms > 0;
			}
	}
	assert_true(passed > 100);
}

static void a_damaged_order_is_read_once_it_is_mended(void **state)
{
	static const char *const damage[] = { "ticket/1 order=x", "ticket/1 order=9 ",
		"ticket/1 order=-", "ticket/1 order=99999999999999999999",
		"ticket/1 st" };
	struct mix mix;

	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		char raw[RECORD_SIZE];
		size_t count;

		fixture_again(state);
		mix.count = 0;
		mix_add(&mix, 0, 100, 0);
		mix_add(&mix, 0, 100, 150);
		mix_add(&mix, 0, 200, 0);
		assert_int_equal(ticket_read_raw(&queue.file, 2, 1, raw, &count), 0);
		assert_true(pwrite(queue.file.fd, damage[i], strlen(damage[i]),
				    2 * RECORD_SIZE) > 0);
		begin(0);
		CHECK_ORDER(1, 3);
		assert_int_equal(pwrite(queue.file.fd, raw, sizeof(raw), 2 * RECORD_SIZE),
			RECORD_SIZE);
		begin(0);
		assert_int_equal(count_in_order(), 3);
		begin(0);
		assert_int_equal(count_in_order(), 3);
	}
}

/* One of many of the same priority reads a few rows, not all that are before it. */
static void the_order_is_read_no_further_than_it_is_asked_for(void **state)
{
	static const int64_t priorities[] = { 0, 5, -5 };
	enum { MANY = 1000, ROWS = 3 };

	for (size_t i = 0; i < ARRAY_SIZE(priorities); i++) {
		struct queue_place own = { .priority = priorities[i], .number = MANY };
		struct queue_cursor cursor;
		struct queue_row row;

		fixture_again(state);
		for (uint64_t k = 1; k <= MANY; k++)
			(void)append_with(priorities[i]);
		begin(MANY);
		reads = 0;
		read_bytes = 0;
		begin(MANY);
		queue_order_begin(&cursor, own);
		for (uint64_t k = 1; k <= ROWS; k++) {
			assert_int_equal(queue_next_in_order(&queue, &cursor, &row), 0);
			assert_int_equal(row.number, k);
		}
		/* a ticket below priority 0 comes after all others: the whole file was read */
		if (priorities[i] >= 0) {
			assert_in_range(reads, 1, ROWS + 3);
			assert_in_range(read_bytes, 1, 3 * QUEUE_CHUNK * RECORD_SIZE);
		} else {
			assert_in_range(reads, 1, ROWS + 3 + MANY / QUEUE_CHUNK + 1);
		}
	}
}

static void a_ticket_that_waits_no_more_is_forgotten(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		(void)append_with(9);
		(void)append_with(-9);
	}
	append_cancel(3, 0, CONTROL_CANCEL, dir.boot);
	begin(0);
	assert_int_equal(queue.ranked_count, 6);
	CHECK_ORDER(1, 5, 2, 4, 6);
	assert_int_equal(queue.ranked_count, 5);
	rewrite_as(1, TICKET_GRANTED, 9);
	rewrite_as(4, TICKET_GRANTED, -9);
	begin(0);
	CHECK_ORDER(5, 2, 6);
	assert_int_equal(queue.ranked_count, 3);
	/*
	 * a dead ticket has to be forgotten by number; the walk still meets it, at the end of the
	 * file
	 */
	queue_forget(&queue, 5);
	queue_forget(&queue, 5);
	assert_int_equal(queue.ranked_count, 2);
	CHECK_ORDER(5, 2, 6);
	/* tickets that the hint has passed are forgotten as well */
	set_hint(6);
	begin(0);
	assert_int_equal(queue.ranked_count, 1);
	CHECK_ORDER(6);
}

static void tickets_of_another_boot_have_no_place(void **state)
{
	struct ticket ticket = ranked_ticket(5);
	uint64_t number;

	(void)state;
	text_copy(ticket.boot, sizeof(ticket.boot), "00000000000000000000000000000000");
	assert_int_equal(ticket_append(&queue.file, &ticket, &number), 0);
	(void)append_with(1);
	begin(0);
	CHECK_ORDER(2);
	assert_int_equal(queue.ranked_count, 1);
}

static void a_ticket_that_started_unseen_is_pruned(void **state)
{
	enum { MANY = 5000, WAITING = 100 };

	(void)state;
	begin(0);
	for (uint64_t i = 1; i <= MANY; i++) {
		assert_int_equal(append_with((int64_t)i % 7 + 1), i);
		if (i > WAITING)
			rewrite_as(i, TICKET_GRANTED, (int64_t)i % 7 + 1);
		begin(0); /* without going through them */
	}
	assert_true(queue.ranked_count < 1100);
	assert_true(queue.ranked_room <= 1024);
	rewrite_as(3, TICKET_GRANTED, 4);
	for (uint64_t i = 1; i <= WAITING; i++)
		if (i % 7 == 6 || i == 3)
			rewrite_as(i, TICKET_GRANTED, 7);
	begin(0);
	assert_int_equal(count_in_order(), WAITING - 14 - 1);
	assert_int_equal(queue.ranked_count, WAITING - 14 - 1);
}

static void priorities_between_the_hint_and_me_count(void **state)
{
	(void)state;
	(void)append_with(3);
	(void)append_with(8);
	(void)append_with(0);
	(void)append_with(4);
	(void)append_with(8);
	set_hint(2);
	begin(4);
	check_order_until((struct queue_place)PLACE(4, 4), (const uint64_t[]){ 2, 5, 0 });
	queue_release(&queue);
	assert_int_equal(queue_open(&queue, &dir), 0);
	/* the hint has passed me: what is before it counts from me on */
	set_hint(5);
	begin(4);
	CHECK_ORDER(5, 4);
	assert_int_equal(queue.from, 4);
}

static void a_record_that_breaks_keeps_its_place(void **state)
{
	(void)state;
	(void)append_with(0);
	(void)append_with(5);
	(void)append_with(4);
	begin(0);
	assert_int_equal(pwrite(queue.file.fd, "#", 1, 2 * RECORD_SIZE + 50), 1);
	CHECK_ORDER(3, 1);
	assert_int_equal(queue.first_broken, 2);
	rewrite_as(2, TICKET_WAITING, 5);
	begin(0);
	assert_int_equal(queue.first_broken, 0);
	CHECK_ORDER(2, 3, 1);
}

/* Its first bytes are damaged when it is glanced at; then its owner writes it again. */
static void a_ticket_unreadable_at_first_gets_its_place_once_it_is_read(void **state)
{
	static const char *const damage[] = { "#", "ticket/1 priority=x",
		"ticket/1 priority=99", "ticket/1 priority=-9",
		"ticket/1 priority=99999999999999999999", "control/1 verb=1",
		"ticket/1 state=" };

	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		fixture_again(state);
		(void)append_with(0);
		(void)append_with(5);
		(void)append_with(4);
		assert_true(pwrite(queue.file.fd, damage[i], strlen(damage[i]),
				    2 * RECORD_SIZE) > 0);
		begin(0);
		CHECK_ORDER(3, 1);
		rewrite_as(2, TICKET_WAITING, 5);
		begin(0);
		assert_int_equal(count_in_order(), 3); /* perhaps late, for once */
		if (i < ARRAY_SIZE(damage) - 1)
			CHECK_ORDER(2, 3, 1);
		else /* looks as if there had never been a priority */
			CHECK_ORDER(3, 1, 2);
		assert_int_equal(queue.unread_count, 0);
	}
}

static void a_cancel_half_copied_is_seen_in_the_next_turn(void **state)
{
	struct queue_row row;

	(void)state;
	(void)append();
	append_cancel(1, 0, CONTROL_CANCEL, dir.boot);
	torn_reads = 1;
	begin(0);
	assert_int_equal(queue_find(&queue, 1, &row), 0);
	assert_true(row.is_waiting);
	begin(0);
	assert_int_equal(queue_find(&queue, 1, &row), 0);
	assert_true(row.is_cancelled);
	begin(0);
	assert_int_equal(queue.demand_count, 1);
}

static void a_ruined_file_costs_no_more_than_a_few_looks_a_turn(void **state)
{
	enum { MANY = 500 };

	(void)state;
	for (int i = 0; i < MANY; i++)
		(void)append();
	for (off_t i = 1; i <= MANY; i++)
		assert_int_equal(pwrite(queue.file.fd, "#", 1, i * RECORD_SIZE), 1);
	(void)append_with(1);
	begin(0);
	reads = 0;
	begin(0);
	assert_true(reads <= QUEUE_UNREAD_MAX + 3);
	CHECK_ORDER(MANY + 1);
}

/* --- the hint ----------------------------------------------------------------------- */

static void reading_begins_at_the_hint(void **state)
{
	uint64_t at;

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)append();
	set_hint(7);
	begin(9);
	assert_int_equal(queue.from, 7);
	at = queue.from;
	check_next(&at, 7);
}

static void a_hint_that_has_passed_me_does_not_hide_me(void **state)
{
	uint64_t at;

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)append();
	set_hint(9);
	begin(4);
	assert_int_equal(queue.from, 4);
	at = queue.from;
	check_next(&at, 4);
}

static void a_hint_beyond_the_end_is_no_trouble(void **state)
{
	uint64_t at;

	(void)state;
	(void)append();
	set_hint(1000);
	begin(0);
	at = queue.from;
	check_next(&at, 0);
	begin(1);
	at = queue.from;
	check_next(&at, 1);
}

static void the_hint_only_moves_forward(void **state)
{
	struct ticket_header header;

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)append();
	begin(0);
	queue_move_hint(&queue, 5);
	queue_move_hint(&queue, 3);
	ticket_read_header(&queue.file, &header);
	assert_int_equal(header.hint, 5);
}

/* --- controls ----------------------------------------------------------------------- */

static void a_cancel_counts_if_its_uid_may(void **state)
{
	static const struct {
		uint32_t owner, canceller;
		bool counts;
	} table[] = { { 1000, 1000, true }, { 1000, 0, true }, { 1000, 1001, false },
		{ 0, 1000, false }, { 0, 0, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct owner owner = myself;
		struct queue_row row;
		uint64_t number;

		owner.uid = table[i].owner;
		number = append_of(&owner, TICKET_WAITING, dir.boot);
		append_cancel(number, table[i].canceller, CONTROL_CANCEL, dir.boot);
		begin(0);
		assert_int_equal(queue_find(&queue, number, &row), 0);
		assert_int_equal(row.is_cancelled, table[i].counts);
		assert_int_equal(row.is_waiting, !table[i].counts);
		if (table[i].counts)
			assert_int_equal(row.cancelled_by, table[i].canceller);
	}
}

static void a_release_counts_if_its_uid_may_and_cancels_nothing(void **state)
{
	static const struct {
		uint32_t owner, releaser;
		bool counts;
	} table[] = { { 1000, 1000, true }, { 1000, 0, true }, { 1000, 1001, false },
		{ 0, 1000, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct owner owner = myself;
		struct queue_row row;
		uint64_t number;

		owner.uid = table[i].owner;
		number = append_of(&owner, TICKET_WAITING, dir.boot);
		append_cancel(number, table[i].owner, CONTROL_CANCEL + 8, dir.boot);
		append_cancel(number, table[i].releaser, CONTROL_RELEASE, dir.boot);
		begin(0);
		assert_int_equal(queue_find(&queue, number, &row), 0);
		assert_true(row.is_waiting);
		assert_int_equal(queue_is_released(&queue, number, table[i].owner),
			table[i].counts);
		assert_false(queue_is_released(&queue, number + 7, table[i].owner));
	}
}

static void a_cancel_of_another_boot_or_kind_is_ignored(void **state)
{
	struct queue_row row;

	(void)state;
	(void)append();
	append_cancel(1, 0, CONTROL_CANCEL, "00000000000000000000000000000000");
	append_cancel(1, 0, CONTROL_CANCEL + 1, dir.boot);
	append_cancel(2, 0, CONTROL_CANCEL, dir.boot);
	begin(0);
	assert_int_equal(queue_find(&queue, 1, &row), 0);
	assert_false(row.is_cancelled);
}

static void many_cancels_and_later_ones_are_seen(void **state)
{
	struct queue_row row;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		(void)append();
	for (uint64_t i = 2; i <= 100; i += 2)
		append_cancel(i, 0, CONTROL_CANCEL, dir.boot);
	begin(0);
	append_cancel(1, 0, CONTROL_CANCEL, dir.boot);
	assert_int_equal(queue_find(&queue, 1, &row), 0);
	assert_false(row.is_cancelled);
	begin(0);
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(queue_find(&queue, i, &row), 0);
		assert_int_equal(row.is_cancelled, i == 1 || i % 2 == 0);
	}
}

/* --- a file that is not what it was ------------------------------------------------- */

/* Returns how many records the file has. */
static uint64_t count_records(void)
{
	uint64_t end;

	assert_int_equal(ticket_end(&queue.file, &end), 0);
	return end;
}

static void one_request_of_a_user_and_kind_is_pending_for_a_job(void **state)
{
	static const uint32_t verbs[] = { CONTROL_CANCEL, CONTROL_RELEASE,
		CONTROL_PRIORITY, 17 /* of a later version */ };

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		struct control control = { .verb = verbs[i], .ticket = 2 };
		uint64_t before;

		fixture_again(state);
		(void)append();
		(void)append();
		/* requests of another kind, user, boot, and for another job */
		append_cancel(2, getuid(), verbs[i] + 100, dir.boot);
		append_cancel(2, getuid() + 1, verbs[i], dir.boot);
		append_cancel(2, getuid(), verbs[i], "another");
		append_cancel(1, getuid(), verbs[i], dir.boot);
		before = count_records();
		assert_int_equal(queue_ask(&queue, &control, 2), 0);
		for (int many = 0; many < 200; many++)
			assert_int_equal(queue_ask(&queue, &control, 2), QUEUE_ASKED);
		/* a reader that starts later, behind the request, sees it, too */
		queue_release(&queue);
		assert_int_equal(queue_open(&queue, &dir), 0);
		set_hint(before + 1);
		begin(0);
		assert_int_equal(queue_ask(&queue, &control, 2), QUEUE_ASKED);
		assert_int_equal(count_records(), before + 1);
		/* the job has obeyed, and has a later ticket */
		assert_int_equal(append(), before + 1);
		assert_int_equal(queue_ask(&queue, &control, before + 1), 0);
		assert_int_equal(count_records(), before + 3);
	}
}

static void a_request_is_found_among_many_records_and_holes(void **state)
{
	struct control control = { .verb = CONTROL_CANCEL, .ticket = 1 };

	(void)state;
	for (int i = 0; i < 100; i++)
		(void)append();
	assert_int_equal(queue_ask(&queue, &control, 1), 0);
	for (int i = 0; i < 300; i++)
		(void)append();
	(void)!fdio_punch(queue.file.fd, 16 * RECORD_SIZE, 80 * RECORD_SIZE);
	(void)!fdio_punch(queue.file.fd, 120 * RECORD_SIZE, 400 * RECORD_SIZE);
	assert_int_equal(queue_ask(&queue, &control, 1), QUEUE_ASKED);
	assert_int_equal(count_records(), 402);
}

static void a_reader_keeps_a_request_once_however_often_it_was_made(void **state)
{
	uint32_t uid;

	(void)state;
	(void)append();
	for (int i = 0; i < 100; i++) { /* of an earlier version */
		append_cancel(1, 0, CONTROL_CANCEL, dir.boot);
		append_cancel(1, 7, CONTROL_CANCEL, dir.boot);
		append_cancel(1, 7, CONTROL_RELEASE, dir.boot);
	}
	begin(0);
	assert_int_equal(queue.demand_count, 3);
	assert_true(queue_is_cancelled(&queue, 1, 7, &uid));
}

static void a_lost_file_is_noticed(void **state)
{
	(void)state;
	(void)append();
	begin(1);
	assert_int_equal(unlinkat(dir.fd, "tickets", 0), 0);
	assert_int_equal(queue_begin(&queue, 1), QUEUE_REPLACED);
	queue_release(&queue);
	assert_int_equal(queue_open(&queue, &dir), 0);
	begin(0);
	assert_int_equal(append(), 1);
	begin(1);
}

static void a_file_cut_short_is_noticed(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		(void)append();
	begin(3);
	assert_int_equal(ftruncate(queue.file.fd, 5 * RECORD_SIZE), 0);
	assert_int_equal(queue_begin(&queue, 3), QUEUE_REPLACED);
	queue_release(&queue);
	assert_int_equal(queue_open(&queue, &dir), 0);
	begin(3);
	queue_release(&queue);
	assert_int_equal(queue_open(&queue, &dir), 0);
	assert_int_equal(queue_begin(&queue, 7), QUEUE_REPLACED); /* mine is gone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tickets_come_in_their_order),
		TEST(only_waiting_tickets_of_this_boot_wait),
		TEST(void_records_and_unknown_ones_are_passed),
		TEST(a_broken_record_is_skipped_and_remembered),
		TEST(a_record_half_copied_is_read_again),
		TEST(a_ticket_is_found_by_its_number),
		TEST(places_are_compared_by_priority_and_then_number),
		TEST(the_higher_priority_comes_first_and_then_the_earlier),
		TEST(every_waiter_sees_the_tickets_before_its_place),
		TEST(an_order_of_its_own_is_compared_with_the_time_of_plain_tickets),
		TEST(plain_tickets_keep_their_order),
		TEST(all_waiters_see_one_order),
		TEST(no_ticket_is_passed_by_one_that_came_later_than_the_maximum),
		TEST(a_damaged_order_is_read_once_it_is_mended),
		TEST(the_order_is_read_no_further_than_it_is_asked_for),
		TEST(a_ticket_that_waits_no_more_is_forgotten),
		TEST(tickets_of_another_boot_have_no_place),
		TEST(a_ticket_that_started_unseen_is_pruned),
		TEST(priorities_between_the_hint_and_me_count),
		TEST(a_record_that_breaks_keeps_its_place),
		TEST(a_ticket_unreadable_at_first_gets_its_place_once_it_is_read),
		TEST(a_cancel_half_copied_is_seen_in_the_next_turn),
		TEST(a_ruined_file_costs_no_more_than_a_few_looks_a_turn),
		TEST(reading_begins_at_the_hint),
		TEST(a_hint_that_has_passed_me_does_not_hide_me),
		TEST(a_hint_beyond_the_end_is_no_trouble),
		TEST(the_hint_only_moves_forward),
		TEST(a_cancel_counts_if_its_uid_may),
		TEST(a_release_counts_if_its_uid_may_and_cancels_nothing),
		TEST(a_cancel_of_another_boot_or_kind_is_ignored),
		TEST(many_cancels_and_later_ones_are_seen),
		TEST(one_request_of_a_user_and_kind_is_pending_for_a_job),
		TEST(a_request_is_found_among_many_records_and_holes),
		TEST(a_reader_keeps_a_request_once_however_often_it_was_made),
		TEST(a_lost_file_is_noticed),
		TEST(a_file_cut_short_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
