#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "integrity.h"
#include "fixture.h"
#include "ticket.h"

static struct statedir dir;
static struct ticket_file tickets;
static struct other other;

/* The tokens with leases that can be read: one, or none. */
static const char *leased;

static bool has_lease(const void *leases, const char *token)
{
	(void)leases;
	return strcmp(leased, token) == 0;
}

static int set_up(struct scratch *here)
{
	(void)here;
	leased = "";
	other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	return ticket_open(dir.fd, &tickets);
}

static void tear_down(void)
{
	other_end(&other);
	ticket_release(&tickets);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static uint64_t append(const struct owner *owner, uint32_t state, uint32_t gpus)
{
	struct ticket ticket = {
		.state = state, .owner = *owner, .request = { .gpus = gpus }
	};
	uint64_t number = 0;

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	assert_int_equal(ticket_append(&tickets, &ticket, &number), 0);
	return number;
}

static void check(int wanted, const char *token)
{
	struct integrity_job job = { .ticket = 4711 };

	assert_int_equal(integrity_find(&dir, has_lease, NULL, &job), wanted);
	if (wanted == INTEGRITY_UNKNOWN_JOB)
		assert_string_equal(job.owner.token, token);
}

/* --- which jobs are known --------------------------------------------------------------- */

static void a_job_with_only_a_fifo_is_unknown(void **state)
{
	struct integrity_job job;

	(void)state;
	assert_int_equal(
		integrity_find(&dir, has_lease, NULL, &job), INTEGRITY_UNKNOWN_JOB);
	assert_string_equal(job.owner.token, other.owner.token);
	assert_int_equal(job.ticket, 0);
	leased = other.owner.token;
	check(0, "");
}

static void a_job_that_waits_or_has_no_gpus_is_known(void **state)
{
	(void)state;
	(void)append(&other.owner, TICKET_WAITING, 2);
	check(0, "");
	(void)append(&other.owner, TICKET_GRANTED, 0);
	check(0, "");
}

static void a_granted_job_without_a_lease_is_unknown(void **state)
{
	struct integrity_job job;
	uint64_t number = append(&other.owner, TICKET_GRANTED, 2);

	(void)state;
	/* an old copy of its ticket changes nothing */
	(void)append(&other.owner, TICKET_WAITING, 2);
	assert_int_equal(
		integrity_find(&dir, has_lease, NULL, &job), INTEGRITY_UNKNOWN_JOB);
	assert_in_range(job.ticket, number, number + 1);
	assert_same_owner(&job.owner, &other.owner);
	/* its children live on */
	other_kill(&other);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
	other_end(&other);
	check(0, "");
}

static void a_job_without_its_fifo_is_found_by_its_process(void **state)
{
	(void)state;
	(void)append(&other.owner, TICKET_GRANTED, 1);
	fifo_remove(&dir, FIFO_LIVE, other.owner.token);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
	other_kill(&other);
	check(0, "");
}

static void a_ticket_of_another_boot_is_ignored(void **state)
{
	struct ticket ticket = { .state = TICKET_WAITING, .owner = other.owner };
	uint64_t number;

	(void)state;
	text_copy(ticket.boot, sizeof(ticket.boot), "00000000000000000000000000000000");
	assert_int_equal(ticket_append(&tickets, &ticket, &number), 0);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
}

static void an_unreadable_ticket_is_ignored(void **state)
{
	uint64_t number = append(&other.owner, TICKET_WAITING, 1);

	(void)state;
	check(0, "");
	assert_int_equal(pwrite(tickets.fd, "#", 1, (off_t)number * 512 + 100), 1);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
}

/* --- what is not there -------------------------------------------------------------- */

static void without_tickets_every_holder_is_unknown(void **state)
{
	(void)state;
	(void)append(&other.owner, TICKET_WAITING, 1);
	assert_int_equal(unlinkat(dir.fd, "tickets", 0), 0);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
	assert_false(fixture_exists(dir.fd, ".", "tickets")); /* looking makes nothing */
	assert_int_equal(mkdirat(dir.fd, "tickets", 0700), 0);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
}

static void without_live_the_tickets_decide(void **state)
{
	(void)state;
	fifo_remove(&dir, FIFO_LIVE, other.owner.token);
	assert_int_equal(unlinkat(dir.fd, "live", AT_REMOVEDIR), 0);
	check(0, "");
	(void)append(&other.owner, TICKET_GRANTED, 1);
	check(INTEGRITY_UNKNOWN_JOB, other.owner.token);
}

static void what_cannot_be_read_counts_as_a_job(void **state)
{
	(void)state;
	fifo_remove(&dir, FIFO_LIVE, other.owner.token);
	check(0, "");
	assert_int_equal(unlinkat(dir.fd, "live", AT_REMOVEDIR), 0);
	assert_int_equal(scratch_write(*state, "live", ""), 0);
	check(INTEGRITY_UNKNOWN_JOB, "");
	assert_int_equal(unlinkat(dir.fd, "live", 0), 0);
	assert_int_equal(mkdirat(dir.fd, "live", 0700), 0);
	/* in place of the FIFO of a job that may live */
	assert_int_equal(mkdirat(dir.fd, "live/0123456789abcdef", 0700), 0);
	check(INTEGRITY_UNKNOWN_JOB, "0123456789abcdef");
}

static void tickets_after_a_hole_are_found(void **state)
{
	uint64_t number;

	(void)state;
	assert_int_equal(ftruncate(tickets.fd, INT64_C(1) << 36), 0);
	number = append(&other.owner, TICKET_WAITING, 1);
	assert_true(number > 1 << 26);
	check(0, "");
	assert_int_equal(ftruncate(tickets.fd, INT64_C(1) << 37), 0); /* and before one */
	check(0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_with_only_a_fifo_is_unknown),
		TEST(a_job_that_waits_or_has_no_gpus_is_known),
		TEST(a_granted_job_without_a_lease_is_unknown),
		TEST(a_job_without_its_fifo_is_found_by_its_process),
		TEST(a_ticket_of_another_boot_is_ignored),
		TEST(an_unreadable_ticket_is_ignored),
		TEST(without_tickets_every_holder_is_unknown),
		TEST(without_live_the_tickets_decide),
		TEST(what_cannot_be_read_counts_as_a_job),
		TEST(tickets_after_a_hole_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
