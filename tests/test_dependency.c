#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "draw.h"
#include "fixture.h"
#include "history.h"
#include "dependency.h"
#include "estimate.h"

enum { NOW = 1000000, TELL = 2000 };

static struct statedir dir;
static struct queue queue;
static struct snapshot view;
static struct snapshot_lease leases[4];
static struct dependency_book book;

static void tear_down(void)
{
	dependency_release(&book);
	dependency_release(&book);
}

static struct fixture fixture = { .dir = &dir,
	.view = &view,
	.queue = &queue,
	.leases = leases,
	.lease_count = ARRAY_SIZE(leases),
	.tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* --- a queue to judge --------------------------------------------------------------- */

static struct ticket ticket_of(const struct owner *owner)
{
	struct ticket ticket = { .state = TICKET_WAITING, .owner = *owner };

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	ticket.request.gpus = 1;
	return ticket;
}

static uint64_t append(const struct ticket *ticket)
{
	uint64_t number = 0;

	assert_int_equal(ticket_append(&queue.file, ticket, &number), 0);
	return number;
}

static uint64_t append_granted(const struct owner *owner)
{
	struct ticket ticket = ticket_of(owner);

	ticket.state = TICKET_GRANTED;
	return append(&ticket);
}

/* Appends a ticket of this process that waits for these jobs; NULL: none. */
static uint64_t append_after(const char *after, const char *after_ok)
{
	struct ticket ticket = ticket_of(&(struct owner){ .pid = (uint32_t)getpid() });

	assert_int_equal(owner_self(&ticket.owner), 0);
	text_copy(ticket.request.after, AFTER_SIZE, after ? after : "");
	text_copy(ticket.request.after_ok, AFTER_SIZE, after_ok ? after_ok : "");
	return append(&ticket);
}

static void append_cancel(uint64_t ticket)
{
	struct control control = { .verb = CONTROL_CANCEL, .ticket = ticket };

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&queue.file, &control), 0);
}

static void begin(int64_t now_ms)
{
	assert_int_equal(queue_begin(&queue, 0), 0);
	liveness_set_begin(&view.lives);
	dependency_begin(&book, &queue, &view, now_ms);
}

static int judge_into(uint64_t number, bool is_own, struct dependency_verdict *held)
{
	struct queue_row row;

	assert_int_equal(queue_find(&queue, number, &row), 0);
	return dependency_judge(&book, &row, is_own, held);
}

static struct dependency_verdict judge_next(uint64_t number, bool is_own, int outcome)
{
	struct dependency_verdict held;

	assert_int_equal(judge_into(number, is_own, &held), outcome);
	return held;
}

/* Makes a turn in which only @number is judged. */
static struct dependency_verdict judge(uint64_t number, int64_t now_ms, int outcome)
{
	struct dependency_verdict held;

	begin(now_ms);
	held = judge_next(number, true, outcome);
	liveness_set_end(&view.lives);
	return held;
}

static void check_holds(
	uint64_t number, int64_t now_ms, enum dependency hold, uint64_t by)
{
	struct dependency_verdict held = judge(number, now_ms, 0);

	assert_int_equal(held.hold, hold);
	assert_int_equal(held.by, by);
}

static bool is_watched(const struct owner *owner)
{
	for (size_t i = 0; i < view.lives.count; i++)
		if (strcmp(view.lives.all[i].owner.token, owner->token) == 0)
			return view.lives.all[i].is_watched;
	return false;
}

static void tell_end(uint64_t ticket, int64_t since_ms, const char *status)
{
	struct history_end end = { .ticket = ticket,
		.since_ms = since_ms + clock_real_ms() - clock_boot_ms() };

	text_copy(end.status, sizeof(end.status), status);
	assert_int_equal(history_append(&dir, &end), 0);
}

/* --- after -------------------------------------------------------------------------- */

static void a_ticket_without_dependencies_is_not_held(void **state)
{
	(void)state;
	check_holds(append_after(NULL, NULL), NOW, DEPENDENCY_NONE, 0);
	assert_true(book.look.wake_ms == INT64_MAX);
	assert_int_equal(book.job_count, 0);
}

static void a_job_that_lives_holds_until_it_is_over(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	uint64_t number = append_granted(&job.owner), mine = append_after("1", NULL);

	(void)state;
	check_holds(mine, NOW, DEPENDENCY_AFTER, number);
	assert_true(is_watched(&job.owner));
	assert_true(book.look.wake_ms == INT64_MAX); /* no timer */
	other_kill(&job);
	/* what it has started lives on */
	check_holds(mine, NOW + 1, DEPENDENCY_AFTER, number);
	assert_true(is_watched(&job.owner));
	other_kill_heir(&job);
	check_holds(mine, NOW + 2, DEPENDENCY_NONE, 0);
	assert_false(is_watched(&job.owner));
	check_holds(mine, NOW + 3, DEPENDENCY_NONE, 0);
}

static void a_job_that_waits_itself_holds(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket ticket = ticket_of(&job.owner);
	uint64_t number = append(&ticket), mine = append_after("1", NULL);

	(void)state;
	check_holds(mine, NOW, DEPENDENCY_AFTER, number);
	append_cancel(number);
	check_holds(mine, NOW, DEPENDENCY_AFTER, number); /* it has not obeyed yet */
	other_kill(&job);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
}

static void a_cancelled_job_has_ended_with_its_owner(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	uint64_t number = append_granted(&job.owner), mine = append_after("1", NULL);

	(void)state;
	append_cancel(number);
	check_holds(mine, NOW, DEPENDENCY_AFTER, number);
	other_kill(&job);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

static void a_job_that_ended_long_ago_does_not_hold(void **state)
{
	static const char zeros[RECORD_SIZE];
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE), self;
	struct ticket ticket;

	(void)state;
	(void)append_granted(&dead);
	assert_int_equal(owner_self(&self), 0);
	ticket = ticket_of(&self);
	text_copy(ticket.boot, sizeof(ticket.boot), "00000000000000000000000000000000");
	(void)append(&ticket);       /* 2: of another boot */
	(void)append_granted(&self); /* 3: given back */
	assert_int_equal(
		pwrite(queue.file.fd, zeros, RECORD_SIZE, 3 * RECORD_SIZE), RECORD_SIZE);
	check_holds(append_after("1,2,3", NULL), NOW, DEPENDENCY_NONE, 0);
}

static void of_several_jobs_all_have_to_end(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	uint64_t mine;

	(void)state;
	(void)append_granted(&one.owner);
	(void)append_granted(&two.owner);
	mine = append_after("1,2", NULL);
	check_holds(mine, NOW, DEPENDENCY_AFTER, 1);
	assert_true(is_watched(&one.owner) && is_watched(&two.owner));
	other_kill(&one);
	check_holds(mine, NOW, DEPENDENCY_AFTER, 2);
	other_kill(&two);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
}

static void a_live_lease_holds_whatever_its_owner(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct other adopted = other_start(dir.fd, OTHER_LIVE);
	struct ticket ticket = ticket_of(&dead);
	uint64_t mine;

	(void)state;
	ticket.since_ms = 500;
	(void)append(&ticket);
	mine = append_after("1", NULL);
	leases[0] = (struct snapshot_lease){ .is_of_this_boot = true,
		.lease = { .ticket = 1, .owner = adopted.owner, .since_ms = 600 } };
	view.lease_count = 1;
	check_holds(mine, NOW, DEPENDENCY_AFTER, 1);
	assert_true(is_watched(&adopted.owner));
	/* of the same number, from a ticket file before this one */
	leases[0].lease.since_ms = 400;
	dependency_release(&book);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	leases[0].lease.since_ms = 600;
	leases[0].is_over = true;
	dependency_release(&book);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&adopted);
}

static void a_ticket_that_cannot_be_read_holds_for_a_moment(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	uint64_t mine;

	(void)state;
	(void)append_granted(&dead);
	mine = append_after("1", NULL);
	assert_int_equal(pwrite(queue.file.fd, "#", 1, RECORD_SIZE + 50), 1);
	check_holds(mine, NOW, DEPENDENCY_AFTER, 1);
	assert_in_range(book.look.wake_ms, NOW + 1, NOW + 100);
	check_holds(mine, NOW + TELL - 1, DEPENDENCY_AFTER, 1);
	assert_in_range(book.look.wake_ms, NOW + TELL, NOW + 3 * TELL);
	check_holds(mine, NOW + TELL, DEPENDENCY_NONE, 0);
}

static void jobs_of_a_lost_ticket_file_do_not_hold(void **state)
{
	uint64_t mine = append_after("7,1", NULL), other = append_after(NULL, "2");

	(void)state;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	assert_int_equal(judge(other, NOW, DEPENDENCY_UNRECORDED).by, 2);
}

static void a_malformed_list_in_a_ticket_holds_no_ticket(void **state)
{
	(void)state;
	check_holds(append_after("x,,-1", ","), NOW, DEPENDENCY_NONE, 0);
}

/* --- after the start ---------------------------------------------------------------- */

/* Appends a ticket of this process that waits for these jobs, by @start only for their starts. */
static uint64_t append_after_start(const char *after, uint32_t start)
{
	struct ticket ticket = ticket_of(&(struct owner){ .pid = (uint32_t)getpid() });

	assert_int_equal(owner_self(&ticket.owner), 0);
	text_copy(ticket.request.after, AFTER_SIZE, after);
	ticket.request.after_start = start;
	return append(&ticket);
}

static void a_start_holds_until_the_job_runs_or_is_over(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct ticket first = ticket_of(&one.owner), second = ticket_of(&two.owner);
	uint64_t mine;

	(void)state;
	(void)append(&first);
	(void)append(&second);
	mine = append_after_start("1,2", 3);
	check_holds(mine, NOW, DEPENDENCY_START, 1);
	assert_true(is_watched(&one.owner));
	assert_in_range(book.look.wake_ms, NOW + 1, NOW + 10000);
	first.state = TICKET_GRANTED;
	assert_int_equal(ticket_rewrite(&queue.file, 1, &first), 0);
	check_holds(mine, NOW, DEPENDENCY_START, 2);
	other_kill(&two); /* without having started */
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	assert_true(book.look.wake_ms == INT64_MAX);
	other_end(&one);
}

static void one_job_has_to_end_and_another_to_start(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	uint64_t number = append_granted(&job.owner);

	(void)state;
	check_holds(append_after_start("1", 1), NOW, DEPENDENCY_NONE, 0);
	check_holds(append_after_start("1,1", 1), NOW, DEPENDENCY_AFTER, number);
	check_holds(append_after_start("1,1", 2), NOW, DEPENDENCY_AFTER, number);
	/* bits without a job; a list that is longer than any of gpulease */
	check_holds(append_after_start("1", UINT32_MAX), NOW, DEPENDENCY_NONE, 0);
	check_holds(append_after_start("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
			    UINT32_MAX >> 1),
		NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

static void a_job_has_started_in_whatever_attempt_it_is(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket first = ticket_of(&job.owner), second = ticket_of(&job.owner);
	uint64_t mine;

	(void)state;
	first.state = TICKET_LEFT;
	first.latest = 2;
	(void)append(&first);
	second.job = 1;
	second.attempt = 2;
	(void)append(&second); /* it waits */
	mine = append_after_start("1", 1);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

static void a_lease_shows_the_start_if_the_ticket_cannot_be_read(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket ticket = ticket_of(&job.owner);
	uint64_t mine;

	(void)state;
	(void)append(&ticket);
	mine = append_after_start("1", 1);
	assert_int_equal(pwrite(queue.file.fd, "#", 1, RECORD_SIZE + 50), 1);
	check_holds(mine, NOW, DEPENDENCY_START, 1);
	leases[0] = (struct snapshot_lease){ .is_of_this_boot = true,
		.lease = { .ticket = 1, .owner = job.owner, .since_ms = 600 } };
	view.lease_count = 1;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

/* --- after-ok ----------------------------------------------------------------------- */

static void the_status_of_a_watched_job_is_known(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	uint64_t number = append_granted(&job.owner), mine = append_after(NULL, "1");
	autofd int pidfd = pidfd_open_process((uint32_t)job.pid);
	struct dependency_verdict held;
	int status;

	(void)state;
	check_holds(mine, NOW, DEPENDENCY_AFTER, number);
	assert_int_equal(kill(job.pid, SIGKILL), 0);
	assert_true(fixture_await_end(job.pid));
	check_holds(mine, NOW, DEPENDENCY_STATUS, number); /* a zombie: not reaped yet */
	assert_in_range(book.look.wake_ms, NOW + 1, NOW + 100);
	assert_int_equal(waitpid(job.pid, NULL, 0), job.pid);
	if (pidfd_exit_status(pidfd, &status) != 0) /* before Linux 6.15 */
		skip_because("before Linux 6.15");
	held = judge(mine, NOW + 1, DEPENDENCY_FAILED);
	assert_int_equal(held.by, number);
	assert_int_equal(held.status, 128 + SIGKILL);
	assert_int_equal(held.hold, DEPENDENCY_STATUS);
	held = judge(mine, NOW + 10 * TELL, DEPENDENCY_FAILED); /* it stays so */
	assert_int_equal(held.status, 128 + SIGKILL);
}

static void a_recorded_status_is_known(void **state)
{
	static const struct {
		const char *status;
		int outcome;
	} table[] = { { "0", 0 }, { "1", DEPENDENCY_FAILED },
		{ "143", DEPENDENCY_FAILED } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct owner dead;
		struct dependency_verdict held;
		uint64_t mine;

		fixture_again(state);
		dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
		(void)append_granted(&dead);
		mine = append_after(NULL, "1");
		tell_end(1, 0, table[i].status);
		held = judge(mine, NOW, table[i].outcome);
		assert_int_equal(held.hold,
			table[i].outcome ? DEPENDENCY_STATUS : DEPENDENCY_NONE);
		assert_int_equal(held.by, table[i].outcome ? 1 : 0);
	}
}

static void an_unrecorded_end_is_waited_for_a_moment(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct ticket ticket = ticket_of(&dead);
	uint64_t mine;

	(void)state;
	ticket.since_ms = clock_boot_ms();
	(void)append(&ticket);
	mine = append_after(NULL, "1");
	tell_end(1, ticket.since_ms - 3600000, "0"); /* another job 1 */
	check_holds(mine, NOW, DEPENDENCY_STATUS, 1);
	assert_in_range(book.look.wake_ms, NOW + 1, NOW + 100);
	check_holds(mine, NOW + TELL - 1, DEPENDENCY_STATUS, 1);
	assert_int_equal(judge(mine, NOW + TELL, DEPENDENCY_UNRECORDED).by, 1);
	assert_true(book.look.wake_ms == INT64_MAX);
	/* too late, it is settled */
	tell_end(1, ticket.since_ms, "0");
	assert_int_equal(judge(mine, NOW + TELL + 1, DEPENDENCY_UNRECORDED).hold,
		DEPENDENCY_STATUS);
	/* processes that come now see it */
	dependency_release(&book);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
}

static void an_end_recorded_within_a_moment_counts(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t mine;

	(void)state;
	(void)append_granted(&dead);
	mine = append_after(NULL, "1");
	check_holds(mine, NOW, DEPENDENCY_STATUS, 1);
	tell_end(1, 0, "");
	check_holds(mine, NOW + 1, DEPENDENCY_STATUS, 1);
	tell_end(1, 0, "0");
	check_holds(mine, NOW + 2, DEPENDENCY_NONE, 0);
}

static void a_failure_counts_more_than_a_running_job(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t mine;

	(void)state;
	(void)append_granted(&job.owner);
	(void)append_granted(&dead);
	(void)append_granted(&dead);
	tell_end(3, 0, "7");
	mine = append_after("1", "2,3");
	assert_int_equal(judge(mine, NOW, DEPENDENCY_FAILED).by, 3);
	(void)judge(mine, NOW + TELL,
		DEPENDENCY_FAILED); /* also more than an unknown status */
	assert_int_equal(judge(mine, NOW + TELL, DEPENDENCY_FAILED).status, 7);
	other_end(&job);
}

static void jobs_without_dependents_are_forgotten(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	char list[16];

	(void)state;
	for (uint64_t i = 1; i <= 40; i++)
		(void)append_granted(&dead);
	for (int i = 40; i > 0; i--) { /* in any order */
		(void)snprintf(list, sizeof(list), "%d,%d", i, (i * 7) % 40 + 1);
		check_holds(append_after(list, NULL), NOW, DEPENDENCY_NONE, 0);
		assert_true(book.job_count <= 4);
	}
	begin(NOW);
	begin(NOW);
	assert_int_equal(book.job_count, 0);
}

static void knowledge_outlives_a_second_pass_in_the_same_turn(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t mine;

	(void)state;
	(void)append_granted(&dead);
	mine = append_after(NULL, "1");
	tell_end(1, 0, "0");
	for (int turn = 0; turn < 3; turn++) {
		begin(NOW + turn);
		(void)judge_next(mine, true, 0);
		assert_int_equal(book.job_count, 1);
		assert_true(book.jobs[0].is_settled);
		assert_int_equal(
			book.jobs[0].over_ms, NOW); /* judged in the first alone */
		dependency_again(&book);
		liveness_set_end(&view.lives);
	}
}

static void other_tickets_set_no_watch_and_no_timer(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t theirs;

	(void)state;
	(void)append_granted(&job.owner);
	(void)append_granted(&dead);
	theirs = append_after("1", "2");
	begin(NOW);
	assert_int_equal(judge_next(theirs, false, 0).hold, DEPENDENCY_AFTER);
	assert_false(is_watched(&job.owner));
	assert_true(book.look.wake_ms == INT64_MAX);
	other_end(&job);
}

/* --- attempts ------------------------------------------------------------------------ */

static void a_later_attempt_is_held_until_its_time(void **state)
{
	struct ticket ticket = ticket_of(&(struct owner){ .pid = (uint32_t)getpid() });
	struct dependency_verdict held;
	uint64_t mine;

	(void)state;
	assert_int_equal(owner_self(&ticket.owner), 0);
	ticket.not_before_ms = NOW + 40000;
	mine = append(&ticket);
	held = judge(mine, NOW, 0);
	assert_int_equal(held.hold, DEPENDENCY_UNTIL);
	assert_int_equal(held.until_ms, NOW + 40000);
	assert_int_equal(book.look.wake_ms, NOW + 40000);
	check_holds(mine, NOW + 39999, DEPENDENCY_UNTIL, 0);
	check_holds(mine, NOW + 40000, DEPENDENCY_NONE, 0);
	assert_true(book.look.wake_ms == INT64_MAX);
	/* as others see it, no timer is set */
	begin(NOW);
	assert_int_equal(judge_next(mine, false, 0).hold, DEPENDENCY_UNTIL);
	assert_true(book.look.wake_ms == INT64_MAX);
}

static void a_held_ticket_waits_without_a_time(void **state)
{
	struct ticket ticket = ticket_of(&(struct owner){ .pid = (uint32_t)getpid() });
	struct dependency_verdict held;
	struct plan_row row;
	uint64_t mine;

	(void)state;
	assert_int_equal(owner_self(&ticket.owner), 0);
	ticket.not_before_ms = TICKET_HELD;
	mine = append(&ticket);
	held = judge(mine, NOW, 0);
	assert_int_equal(held.hold, DEPENDENCY_UNTIL);
	assert_true(held.until_ms == TICKET_HELD);
	assert_true(book.look.wake_ms == INT64_MAX);
	row = dependency_row(mine, &ticket, &held);
	assert_false(estimate_wants(&row));
	/* an attempt says which it is */
	ticket.not_before_ms = NOW + 5;
	ticket.attempt = 3;
	held = judge(append(&ticket), NOW, 0);
	assert_int_equal(held.by, 3);
	row = dependency_row(mine, &ticket, &held);
	assert_true(estimate_wants(&row));
}

static void an_attempt_holds_as_its_job(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket second = ticket_of(&job.owner);
	uint64_t mine;

	(void)state;
	(void)append_granted(&job.owner);
	second.job = 1;
	second.attempt = 2;
	(void)append(&second);
	mine = append_after("2", NULL);
	check_holds(mine, NOW, DEPENDENCY_AFTER, 2);
	other_kill(&job);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

/* --- before joining ----------------------------------------------------------------- */

#define UNKNOWN " is unknown; --status and --history list the jobs"

static void a_job_that_never_existed_is_an_error(void **state)
{
	static const struct {
		const char *after, *after_ok, *why;
	} table[] = { { "", "", NULL }, { "1", "", NULL }, { "", "1,1", NULL },
		{ "0", "", "job 0" UNKNOWN }, { "1,4", "", "job 4" UNKNOWN },
		{ "", "999", "job 999" UNKNOWN },
		{ "1", "9223372036854775807", "job 9223372036854775807" UNKNOWN },
		{ "2", "", "job 2" UNKNOWN }, { "3", "1", NULL } };
	static const char zeros[RECORD_SIZE];
	struct request request = { .gpus = 1 };

	(void)state;
	(void)append_after(NULL, NULL);
	append_cancel(1);
	(void)append_after(NULL, NULL); /* 3: void by now */
	assert_int_equal(
		pwrite(queue.file.fd, zeros, RECORD_SIZE, 3 * RECORD_SIZE), RECORD_SIZE);
	text_copy(request.after_ok, AFTER_SIZE, "1,x");
	assert_int_equal(dependency_check(&queue, &request, NULL), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct why why = WHY_NONE;

		request = (struct request){ .gpus = 1 };
		text_copy(request.after, AFTER_SIZE, table[i].after);
		text_copy(request.after_ok, AFTER_SIZE, table[i].after_ok);
		assert_int_equal(dependency_check(&queue, &request, &why),
			table[i].why ? -ENOENT : 0);
		assert_string_equal(why.text, table[i].why ? table[i].why : "");
	}
}

/* --- singletons --------------------------------------------------------------------- */

static uint64_t append_named(
	const struct owner *owner, uint32_t uid, const char *name, bool is_singleton)
{
	struct ticket ticket = ticket_of(owner);

	ticket.owner.uid = uid;
	text_copy(ticket.request.name, NAME_SIZE_MAX, name);
	ticket.request.is_singleton = is_singleton;
	return append(&ticket);
}

static void a_singleton_is_held_by_a_ticket_before_it(void **state)
{
	static const struct {
		uint32_t uid;
		const char *name;
		bool is_singleton;
		uint64_t by;
	} table[] = { { 7, "a", false, 0 }, { 7, "a", true, 1 }, { 8, "a", true, 0 },
		{ 7, "b", true, 0 }, { 7, "a", true, 1 }, { 7, "a", false, 0 },
		{ 7, "", true, 0 }, { 7, "", true, 0 }, { 8, "a", true, 3 },
		{ 7, "b", false, 0 }, { 7, "b", true, 4 } };
	struct owner self;

	(void)state;
	assert_int_equal(owner_self(&self), 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		(void)append_named(
			&self, table[i].uid, table[i].name, table[i].is_singleton);
	for (int turn = 0; turn < 2; turn++) {
		begin(NOW);
		for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
			struct dependency_verdict held = judge_next(i + 1, false, 0);

			assert_int_equal(held.by, table[i].by);
			assert_int_equal(held.hold,
				table[i].by ? DEPENDENCY_SINGLETON : DEPENDENCY_NONE);
		}
	}
	/* only tickets before it in the queue count, whatever their state */
	begin(NOW);
	assert_int_equal(judge_next(5, false, 0).by, 0);
	assert_int_equal(judge_next(2, false, 0).by, 5);
}

static void a_singleton_is_held_by_a_lease(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct owner self;
	uint64_t mine;

	(void)state;
	assert_int_equal(owner_self(&self), 0);
	mine = append_named(&self, 7, "a", true);
	leases[0] = (struct snapshot_lease){ .is_of_this_boot = true,
		.lease = { .ticket = 99, .owner = job.owner } };
	leases[0].lease.owner.uid = 7;
	text_copy(leases[0].lease.name, NAME_SIZE_MAX, "a");
	view.lease_count = 1;
	begin(NOW);
	assert_int_equal(judge_next(mine, false, 0).by, 99);
	assert_false(is_watched(&job.owner));
	check_holds(mine, NOW, DEPENDENCY_SINGLETON, 99);
	assert_true(is_watched(&job.owner));
	leases[0].is_over = true;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	leases[0].is_over = false;
	leases[0].is_of_this_boot = false;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	leases[0].is_of_this_boot = true;
	leases[0].lease.owner.uid = 8;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	leases[0].lease.owner.uid = 7;
	text_copy(leases[0].lease.name, NAME_SIZE_MAX, "ab");
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

static struct ticket without_gpus(const struct owner *owner, uint32_t state)
{
	struct ticket ticket = ticket_of(owner);

	ticket.state = state;
	ticket.owner.uid = 7;
	ticket.request.gpus = 0;
	text_copy(ticket.request.name, NAME_SIZE_MAX, "a");
	return ticket;
}

/* Moves the hint after all tickets: none of them waits. */
static void move_hint(void)
{
	struct ticket_header header;
	uint64_t end;

	assert_int_equal(ticket_end(&queue.file, &end), 0);
	ticket_read_header(&queue.file, &header);
	header.hint = end;
	assert_int_equal(ticket_write_header(&queue.file, &header), 0);
}

static void a_singleton_is_held_by_a_job_without_gpus(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct other next = other_start(dir.fd, OTHER_LIVE);
	struct ticket theirs = without_gpus(&job.owner, TICKET_GRANTED), later;
	struct owner self;
	uint64_t number = append(&theirs), mine;

	(void)state;
	assert_int_equal(owner_self(&self), 0);
	move_hint();
	mine = append_named(&self, 7, "a", true);
	begin(NOW);
	assert_int_equal(judge_next(mine, false, 0).by, number);
	assert_false(is_watched(&job.owner));
	check_holds(mine, NOW, DEPENDENCY_SINGLETON, number);
	assert_true(is_watched(&job.owner));
	other_kill(&job);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0); /* whatever it has started */
	assert_false(is_watched(&job.owner));
	other_kill_heir(&job);
	/* one that comes later counts once it runs */
	later = without_gpus(&next.owner, TICKET_WAITING);
	number = append(&later);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	later.state = TICKET_GRANTED;
	assert_int_equal(ticket_rewrite(&queue.file, number, &later), 0);
	check_holds(mine, NOW, DEPENDENCY_SINGLETON, number);
	later.state = TICKET_LEFT;
	assert_int_equal(ticket_rewrite(&queue.file, number, &later), 0);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&next);
}

static void of_jobs_without_gpus_only_others_of_that_user_and_name_count(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE), self;
	struct ticket theirs[6];
	uint64_t mine;
	struct ticket own;

	(void)state;
	assert_int_equal(owner_self(&self), 0);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		theirs[i] = without_gpus(&job.owner, TICKET_GRANTED);
	theirs[0].owner.uid = 8;
	text_copy(theirs[1].request.name, NAME_SIZE_MAX, "ab");
	theirs[2].request.name[0] = '\0';
	text_copy(theirs[3].boot, BOOT_SIZE, "00000000000000000000000000000000");
	theirs[4].owner = dead;
	theirs[4].owner.uid = 7;
	/* an earlier attempt: its ticket does not say yet that the job has left it */
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		(void)append(&theirs[i]);
	own = without_gpus(&self, TICKET_WAITING);
	own.request.is_singleton = 1;
	own.job = ARRAY_SIZE(theirs);
	mine = append(&own);
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	other_end(&job);
}

static void the_ticket_that_holds_a_singleton_is_watched(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	uint64_t theirs = append_named(&job.owner, 7, "a", false), mine;
	struct owner self;
	struct dependency_verdict held;

	(void)state;
	assert_int_equal(owner_self(&self), 0);
	mine = append_named(&self, 7, "a", true);
	begin(NOW);
	(void)judge_next(theirs, false, 0);
	(void)judge_next(mine, false, 0); /* as others see it */
	assert_false(is_watched(&job.owner));
	held = judge_next(mine, true, 0);
	assert_int_equal(held.by, theirs);
	assert_true(is_watched(&job.owner));
	other_end(&job);
}

static void a_singleton_does_not_hold_itself_when_it_is_tried_again(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket second = ticket_of(&job.owner);
	uint64_t mine, other;

	(void)state;
	(void)append_named(&job.owner, 7, "a", true);
	second.owner.uid = 7;
	second.job = 1;
	second.request.is_singleton = 1;
	text_copy(second.request.name, NAME_SIZE_MAX, "a");
	mine = append(&second);
	other = append_named(&job.owner, 7, "a", true);
	leases[0] = (struct snapshot_lease){ .is_of_this_boot = true,
		.lease = { .ticket = 1, .owner = job.owner } };
	leases[0].lease.owner.uid = 7;
	text_copy(leases[0].lease.name, NAME_SIZE_MAX, "a");
	view.lease_count = 1;
	check_holds(mine, NOW, DEPENDENCY_NONE, 0);
	/* it holds other tickets, which report its id */
	leases[0].is_over = true;
	begin(NOW);
	(void)judge_next(mine, false, 0);
	assert_int_equal(judge_next(other, true, 0).by, 1);
	assert_true(is_watched(&job.owner));
	other_end(&job);
}

static void thousands_of_names_are_kept_apart(void **state)
{
	enum { MANY = 3000 };
	struct queue_row row = { .is_waiting = true };

	(void)state;
	begin(NOW);
	row.ticket.request.is_singleton = 1;
	for (uint64_t i = 1; i <= 2 * MANY; i++) {
		struct dependency_verdict held;

		row.number = i;
		row.ticket.owner.uid = (uint32_t)(i % 3);
		(void)snprintf(row.ticket.request.name, NAME_SIZE_MAX, "job-%u",
			(unsigned)(i % MANY));
		assert_int_equal(dependency_judge(&book, &row, false, &held), 0);
		assert_int_equal(held.by, i > MANY ? i - MANY : 0);
	}
	assert_int_equal(book.name_count, MANY);
}

static void after_is_reported_before_singleton(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct ticket ticket;

	(void)state;
	(void)append_named(&job.owner, 7, "a", false);
	ticket = ticket_of(&job.owner);
	ticket.owner.uid = 7;
	ticket.request.is_singleton = 1;
	text_copy(ticket.request.name, NAME_SIZE_MAX, "a");
	text_copy(ticket.request.after, AFTER_SIZE, "1");
	(void)append(&ticket);
	begin(NOW);
	(void)judge_next(1, false, 0);
	assert_int_equal(judge_next(2, true, 0).hold, DEPENDENCY_AFTER);
	other_end(&job);
}

/* Appends a ticket of this user, a singleton named "a" or not, that comes after these jobs. */
static struct ticket named_after(bool is_singleton, const char *after)
{
	struct ticket ticket = ticket_of(&(struct owner){ .pid = (uint32_t)getpid() });

	assert_int_equal(owner_self(&ticket.owner), 0);
	ticket.request.is_singleton = is_singleton;
	text_copy(ticket.request.name, NAME_SIZE_MAX, "a");
	text_copy(ticket.request.after, AFTER_SIZE, after);
	return ticket;
}

/* Gives the job of ticket @first a new ticket.  Returns its number. */
static uint64_t try_again(uint64_t first)
{
	struct ticket ticket, second;
	uint64_t number;

	assert_int_equal(ticket_read(&queue.file, first, &ticket), TICKET_RECORD);
	second = ticket;
	second.state = TICKET_WAITING;
	second.job = first;
	second.attempt = 2;
	second.request.after[0] = '\0';
	number = append(&second);
	ticket.state = TICKET_LEFT;
	ticket.latest = number;
	assert_int_equal(ticket_rewrite(&queue.file, first, &ticket), 0);
	return number;
}

static void a_singleton_is_not_held_by_a_later_ticket(void **state)
{
	struct ticket mine = named_after(true, ""), theirs = named_after(false, "1");
	uint64_t again;

	(void)state;
	(void)append(&mine);
	(void)append(&theirs);
	/* the ticket with the higher priority is the first in the queue */
	begin(NOW);
	assert_int_equal(judge_next(2, false, 0).hold, DEPENDENCY_AFTER);
	assert_int_equal(judge_next(1, true, 0).hold, DEPENDENCY_NONE);
	again = try_again(1);
	begin(NOW);
	assert_int_equal(judge_next(2, false, 0).hold, DEPENDENCY_AFTER);
	assert_int_equal(judge_next(again, true, 0).hold, DEPENDENCY_NONE);
}

static void a_singleton_is_held_by_a_ticket_after_ended_jobs(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct ticket theirs = named_after(false, "1"), mine = named_after(true, "");

	(void)state;
	(void)append_granted(&dead);
	(void)append(&theirs);
	(void)append(&mine);
	begin(NOW);
	assert_int_equal(judge_next(2, false, 0).hold, DEPENDENCY_NONE);
	assert_int_equal(judge_next(3, true, 0).by, 2);
}

static uint64_t random_state = 1;

static unsigned below(unsigned bound)
{
	return draw(&random_state, bound);
}

/* Whether at least one of the waiting tickets is not held by the others, in any order. */
static bool somebody_may_start(const uint64_t *waiting, unsigned count)
{
	unsigned free = 0;

	begin(NOW);
	for (unsigned i = 0; i < count; i++)
		free += judge_next(waiting[i], false, 0).hold == DEPENDENCY_NONE;
	liveness_set_end(&view.lives);
	return free > 0;
}

static void there_are_no_wait_cycles(void **state)
{
	enum { ROUNDS = 300, JOBS = 5 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t waiting[JOBS], before = 0;

		for (unsigned i = 0; i < JOBS; i++) {
			char after[24] = "";
			struct ticket ticket;

			if (i > 0 && below(2))
				(void)snprintf(after, sizeof(after), "%llu",
					(unsigned long long)before - below(i));
			ticket = named_after(below(2), after);
			waiting[i] = before = append(&ticket);
		}
		/* any of them may have run and failed, and any be before any other */
		for (unsigned i = 0; i < JOBS; i++)
			if (!below(3))
				waiting[i] = try_again(waiting[i]);
		for (unsigned i = 0; i < JOBS; i++) {
			unsigned other = below(JOBS);
			uint64_t number = waiting[i];

			waiting[i] = waiting[other];
			waiting[other] = number;
		}
		if (!somebody_may_start(waiting, JOBS))
			fail_msg("round %d", round);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ticket_without_dependencies_is_not_held),
		TEST(a_job_that_lives_holds_until_it_is_over),
		TEST(a_job_that_waits_itself_holds),
		TEST(a_cancelled_job_has_ended_with_its_owner),
		TEST(a_job_that_ended_long_ago_does_not_hold),
		TEST(of_several_jobs_all_have_to_end),
		TEST(a_live_lease_holds_whatever_its_owner),
		TEST(a_ticket_that_cannot_be_read_holds_for_a_moment),
		TEST(jobs_of_a_lost_ticket_file_do_not_hold),
		TEST(a_malformed_list_in_a_ticket_holds_no_ticket),
		TEST(a_start_holds_until_the_job_runs_or_is_over),
		TEST(one_job_has_to_end_and_another_to_start),
		TEST(a_job_has_started_in_whatever_attempt_it_is),
		TEST(a_lease_shows_the_start_if_the_ticket_cannot_be_read),
		TEST(the_status_of_a_watched_job_is_known),
		TEST(a_recorded_status_is_known),
		TEST(an_unrecorded_end_is_waited_for_a_moment),
		TEST(an_end_recorded_within_a_moment_counts),
		TEST(a_failure_counts_more_than_a_running_job),
		TEST(jobs_without_dependents_are_forgotten),
		TEST(knowledge_outlives_a_second_pass_in_the_same_turn),
		TEST(other_tickets_set_no_watch_and_no_timer),
		TEST(a_later_attempt_is_held_until_its_time),
		TEST(a_held_ticket_waits_without_a_time),
		TEST(an_attempt_holds_as_its_job),
		TEST(a_job_that_never_existed_is_an_error),
		TEST(a_singleton_is_held_by_a_ticket_before_it),
		TEST(a_singleton_is_held_by_a_lease),
		TEST(a_singleton_is_held_by_a_job_without_gpus),
		TEST(of_jobs_without_gpus_only_others_of_that_user_and_name_count),
		TEST(the_ticket_that_holds_a_singleton_is_watched),
		TEST(a_singleton_does_not_hold_itself_when_it_is_tried_again),
		TEST(thousands_of_names_are_kept_apart),
		TEST(after_is_reported_before_singleton),
		TEST(a_singleton_is_not_held_by_a_later_ticket),
		TEST(a_singleton_is_held_by_a_ticket_after_ended_jobs),
		TEST(there_are_no_wait_cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
