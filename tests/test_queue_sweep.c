#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "queue_sweep.h"

enum { PAGE = 8, GROUP = 64 };

static bool cannot_punch;
static unsigned punches;

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
	punches++;
	if (cannot_punch) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_fallocate(fd, mode, offset, size);
}

static struct statedir dir;
static struct queue queue;
static struct owner myself, dead;

static int set_up(struct scratch *here)
{
	(void)here;
	cannot_punch = false;
	punches = 0;
	dead = fixture_dead_owner(-1, OTHER_ALONE);
	return owner_self(&myself);
}

static struct fixture fixture = { .dir = &dir, .queue = &queue, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

static uint64_t append_of(
	const struct owner *owner, uint32_t ticket_state, const char *boot)
{
	return fixture_append(&queue, owner, ticket_state, boot);
}

/* Appends tickets of a dead process until there are @count records, the header among them. */
static void fill_to(uint64_t count)
{
	uint64_t end;

	assert_int_equal(ticket_end(&queue.file, &end), 0);
	for (; end < count; end++)
		assert_int_equal(append_of(&dead, TICKET_WAITING, dir.boot), end);
}

static void append_control(struct control control)
{
	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&queue.file, &control), 0);
}

static struct ticket_header header_now(void)
{
	struct ticket_header header;

	ticket_read_header(&queue.file, &header);
	return header;
}

static int kind_of(uint64_t number)
{
	struct ticket ticket;

	return ticket_read(&queue.file, number, &ticket);
}

/* Checks that all records of the page with @number are there, or none. */
static void check_page(uint64_t number, bool is_there)
{
	uint64_t first = number / PAGE * PAGE;
	int kept = 0;

	for (uint64_t i = first; i < first + PAGE; i++)
		kept += kind_of(i) != TICKET_VOID;
	assert_int_equal(kept, is_there ? PAGE : 0);
}

/* Sweeps as so many starts do. */
static void sweep(unsigned times)
{
	if (!fixture_can_punch(dir.fd))
		skip_because("the file system gives no blocks back");
	punches = 0; /* fixture_can_punch() has punched, too */
	while (times--)
		queue_sweep(&queue);
}

/* --- what is given back --------------------------------------------------------------- */

static void pages_that_no_process_needs_are_given_back(void **state)
{
	uint64_t live;
	struct stat before, after;

	(void)state;
	assert_int_equal(append_of(&myself, TICKET_WAITING, dir.boot), 1);
	fill_to(100);
	live = append_of(&myself, TICKET_GRANTED, dir.boot);
	fill_to(4 * GROUP);
	(void)append_of(&dead, TICKET_GRANTED, "00000000000000000000000000000000");
	fill_to(5 * GROUP + 1);
	assert_int_equal(fstat(queue.file.fd, &before), 0);
	sweep(5); /* one group each at least, however slow the machine is */
	assert_int_equal(fstat(queue.file.fd, &after), 0);
	assert_int_equal(after.st_size, before.st_size); /* numbers go on */
	assert_true(after.st_blocks < before.st_blocks);
	for (uint64_t page = 0; page < 5 * GROUP; page += PAGE)
		check_page(page, page == 0 || page == live / PAGE * PAGE);
	assert_int_equal(kind_of(1), TICKET_RECORD);
	assert_int_equal(kind_of(5 * GROUP), TICKET_RECORD); /* no whole group yet */
}

/* The owner of a job in another pid namespace shows that it lives only by its latest FIFO. */
static void the_first_ticket_of_a_job_stays_as_long_as_its_latest(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct ticket first = { .state = TICKET_LEFT, .owner = other.owner };

	(void)state;
	other.owner.pidns++;
	fill_to(GROUP + 1);
	first.latest = append_of(&other.owner, TICKET_WAITING, dir.boot);
	first.owner = other.owner;
	text_copy(first.owner.token, sizeof(first.owner.token), dead.token);
	text_copy(first.boot, sizeof(first.boot), dir.boot);
	assert_int_equal(ticket_rewrite(&queue.file, 20, &first), 0);
	fill_to(2 * GROUP + 1);
	sweep(5);
	check_page(20, true);
	check_page(40, false);
	other_kill(&other);
	fill_to(3 * GROUP + 1);
	sweep(5);
	check_page(20, false);
	other_end(&other);
}

static void of_the_tickets_that_a_living_job_has_left_only_the_first_stays(void **state)
{
	uint64_t first, second;
	struct ticket ticket;

	(void)state;
	fill_to(8);
	first = append_of(&myself, TICKET_LEFT, dir.boot);
	fill_to(70);
	second = append_of(&myself, TICKET_LEFT, dir.boot);
	assert_int_equal(ticket_read(&queue.file, second, &ticket), TICKET_RECORD);
	ticket.job = first;
	assert_int_equal(ticket_rewrite(&queue.file, second, &ticket), 0);
	fill_to(2 * GROUP + 1);
	sweep(5);
	check_page(first, true);
	check_page(second, false);
}

static void a_few_tickets_cost_nothing(void **state)
{
	(void)state;
	fill_to(GROUP - 1);
	sweep(10);
	assert_int_equal(punches, 0);
	assert_int_equal(header_now().swept, 0);
	check_page(GROUP - 2 * PAGE, true);
}

static void tickets_that_die_before_the_cursor_are_found_in_the_next_lap(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	fill_to(70);
	(void)append_of(&other.owner, TICKET_WAITING, dir.boot);
	fill_to(3 * GROUP);
	sweep(6);
	check_page(70, true);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, other.owner.token));
	other_kill(&other);
	sweep(6);
	check_page(70, true); /* nothing was appended since */
	fill_to(4 * GROUP);
	sweep(6);
	check_page(70, false);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	assert_false(fixture_exists(dir.fd, FIFO_BELL, other.owner.token));
}

static void fifos_go_also_where_the_page_stays(void **state)
{
	struct owner killed = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct owner first = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	(void)append_of(&first, TICKET_WAITING, dir.boot); /* in page 0 */
	fill_to(70);
	(void)append_of(&killed, TICKET_WAITING, dir.boot);
	(void)append_of(&myself, TICKET_WAITING, dir.boot);
	fill_to(3 * GROUP);
	sweep(3);
	check_page(0, true);
	check_page(70, true);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, killed.token));
	assert_false(fixture_exists(dir.fd, FIFO_BELL, killed.token));
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, first.token));
}

/* --- what stays ----------------------------------------------------------------------- */

static void a_fifo_that_is_held_keeps_its_ticket(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);

	(void)state;
	fill_to(70);
	(void)append_of(&other.owner, TICKET_GRANTED, dir.boot);
	fill_to(2 * GROUP);
	other_kill(&other); /* what it has started holds the FIFO */
	sweep(3);
	check_page(70, true);
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	other_kill_heir(&other);
	fill_to(3 * GROUP);
	sweep(3);
	check_page(70, false);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
}

/* Or one process could keep the tickets of any number of jobs. */
static void a_fifo_keeps_no_ticket_of_an_ended_job_without_gpus(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct ticket ticket = { .state = TICKET_GRANTED, .owner = other.owner };
	uint64_t number;

	(void)state;
	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	fill_to(70);
	assert_int_equal(ticket_append(&queue.file, &ticket, &number), 0);
	fill_to(2 * GROUP);
	sweep(3);
	check_page(70, true);
	other_kill(&other);
	assert_int_equal(live_fifo_look(&dir, other.owner.token, NULL), LIVE_FIFO_HELD);
	fill_to(3 * GROUP);
	sweep(3);
	check_page(70, false);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	other_kill_heir(&other);
}

static void in_another_pid_namespace_the_fifo_decides(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct owner there = other.owner;

	(void)state;
	there.pidns++; /* nothing can be told of its process */
	fill_to(70);
	(void)append_of(&there, TICKET_WAITING, dir.boot);
	fill_to(2 * GROUP);
	sweep(3);
	check_page(70, true);
	other_kill(&other);
	fill_to(3 * GROUP);
	sweep(3);
	check_page(70, false);
}

static void controls_stay_while_they_count(void **state)
{
	enum {
		OF_LIVE = 70,
		OF_DEAD = 80,
		PREEMPT = 90,
		BY_DEAD = 100,
		ASKED = 110,
		OBEYED = 118
	};
	struct ticket ticket;

	(void)state;
	assert_int_equal(append_of(&myself, TICKET_WAITING, dir.boot), 1);
	assert_int_equal(append_of(&myself, TICKET_WAITING, dir.boot), 2);
	assert_int_equal(ticket_read(&queue.file, 2, &ticket), TICKET_RECORD);
	ticket.latest = OBEYED + 1;
	assert_int_equal(ticket_rewrite(&queue.file, 2, &ticket), 0);
	fill_to(OF_LIVE);
	append_control((struct control){ .verb = CONTROL_CANCEL, .ticket = 1 });
	fill_to(OF_DEAD);
	append_control((struct control){ .verb = CONTROL_CANCEL, .ticket = 5 });
	fill_to(PREEMPT);
	append_control((struct control){ .verb = CONTROL_PREEMPT, .ticket = 1, .by = 1 });
	fill_to(BY_DEAD);
	append_control((struct control){ .verb = CONTROL_PREEMPT, .ticket = 1, .by = 5 });
	fill_to(ASKED);
	append_control((struct control){ .verb = CONTROL_PRIORITY, .ticket = 1 });
	fill_to(OBEYED);
	append_control((struct control){ .verb = CONTROL_PRIORITY, .ticket = 2 });
	fill_to(2 * GROUP);
	sweep(3);
	assert_int_equal(ticket_read(&queue.file, ASKED, &ticket), TICKET_CONTROL);
	check_page(OBEYED, false);
	assert_int_equal(ticket_read(&queue.file, OF_LIVE, &ticket), TICKET_CONTROL);
	assert_int_equal(ticket_read(&queue.file, PREEMPT, &ticket), TICKET_CONTROL);
	check_page(OF_DEAD, false);
	check_page(BY_DEAD, false);
}

static void an_unreadable_record_keeps_its_page(void **state)
{
	(void)state;
	fill_to(2 * GROUP);
	/* it may be a live ticket, half rewritten */
	assert_int_equal(pwrite(queue.file.fd, "#", 1, 75 * RECORD_SIZE + 50), 1);
	/* of another version: a good sum, an unknown type */
	assert_int_equal(pread(queue.file.fd, queue.chunk, RECORD_SIZE, 0), RECORD_SIZE);
	assert_int_equal(
		pwrite(queue.file.fd, queue.chunk, RECORD_SIZE, 90 * RECORD_SIZE),
		RECORD_SIZE);
	sweep(3);
	assert_int_equal(kind_of(75), TICKET_BROKEN);
	assert_int_equal(kind_of(90), TICKET_OTHER);
	check_page(75, true);
	check_page(90, true);
	check_page(100, false);
}

static void without_holes_the_sweep_ends_for_all(void **state)
{
	unsigned tries;

	(void)state;
	fill_to(3 * GROUP);
	cannot_punch = true;
	queue_sweep(&queue);
	tries = punches;
	assert_true(tries > 0);
	fill_to(9 * GROUP);
	queue_sweep(&queue);
	assert_int_equal(punches, tries);
	check_page(70, true);
	assert_int_equal(queue_begin(&queue, 0), 0);
	assert_false(queue_has_backlog(&queue));
}

/* --- the cursor ----------------------------------------------------------------------- */

static void the_cursor_comes_back_from_past_a_file_that_was_cut(void **state)
{
	struct ticket_header header = { .hint = 1, .swept = 100000, .lap = 100000 };

	(void)state;
	fill_to(3 * GROUP);
	assert_int_equal(ticket_write_header(&queue.file, &header), 0);
	sweep(3);
	check_page(70, false);
}

static void the_hint_and_other_fields_of_the_header_stay(void **state)
{
	struct ticket_header header = { .hint = 90, .extra = "new=1" };

	(void)state;
	fill_to(3 * GROUP);
	assert_int_equal(ticket_write_header(&queue.file, &header), 0);
	sweep(1);
	header = header_now();
	assert_int_equal(header.hint, 90);
	assert_string_equal(header.extra, "new=1");
	assert_true(header.swept > 0);
}

static void a_waiter_sweeps_a_backlog_to_its_end(void **state)
{
	enum { MANY = 100 * GROUP };
	struct stat st;

	(void)state;
	if (!fixture_can_punch(dir.fd))
		skip_because("the file system gives no blocks back");
	assert_int_equal(append_of(&myself, TICKET_WAITING, dir.boot), 1);
	fill_to(MANY);
	assert_int_equal(queue_begin(&queue, 1), 0);
	assert_true(queue_has_backlog(&queue));
	while (queue_sweep_slice(&queue))
		assert_true(queue_has_backlog(&queue));
	assert_false(queue_has_backlog(&queue));
	assert_int_equal(fstat(queue.file.fd, &st), 0);
	assert_in_range(st.st_blocks * 512, 4096, 9 * GROUP * RECORD_SIZE);
	assert_int_equal(kind_of(1), TICKET_RECORD);
}

static void a_start_that_finds_a_backlog_rings_the_first_waiter(void **state)
{
	int bell = fifo_create(&dir, FIFO_BELL, &myself);

	(void)state;
	assert_true(bell >= 0);
	assert_int_equal(append_of(&myself, TICKET_WAITING, dir.boot), 1);
	fill_to(3 * GROUP);
	sweep(1);
	assert_false(fixture_is_ready(bell, POLLIN)); /* it can be swept in passing */
	fill_to(200 * GROUP);
	sweep(1);
	assert_true(fixture_is_ready(bell, POLLIN));
	close_fd(&bell);
}

static void two_sweepers_take_different_groups(void **state)
{
	struct queue other;
	uint64_t before;

	(void)state;
	fill_to(200 * GROUP);
	assert_int_equal(queue_open(&other, &dir), 0);
	sweep(1);
	before = header_now().swept;
	assert_true(before >= GROUP);
	queue_sweep(&other);
	assert_true(header_now().swept > before);
	for (uint64_t at = PAGE; at < header_now().swept; at += PAGE)
		check_page(at, false);
	queue_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_that_no_process_needs_are_given_back),
		TEST(the_first_ticket_of_a_job_stays_as_long_as_its_latest),
		TEST(of_the_tickets_that_a_living_job_has_left_only_the_first_stays),
		TEST(a_few_tickets_cost_nothing),
		TEST(tickets_that_die_before_the_cursor_are_found_in_the_next_lap),
		TEST(fifos_go_also_where_the_page_stays),
		TEST(a_fifo_that_is_held_keeps_its_ticket),
		TEST(a_fifo_keeps_no_ticket_of_an_ended_job_without_gpus),
		TEST(in_another_pid_namespace_the_fifo_decides),
		TEST(controls_stay_while_they_count),
		TEST(an_unreadable_record_keeps_its_page),
		TEST(without_holes_the_sweep_ends_for_all),
		TEST(the_cursor_comes_back_from_past_a_file_that_was_cut),
		TEST(the_hint_and_other_fields_of_the_header_stay),
		TEST(a_waiter_sweeps_a_backlog_to_its_end),
		TEST(a_start_that_finds_a_backlog_rings_the_first_waiter),
		TEST(two_sweepers_take_different_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
