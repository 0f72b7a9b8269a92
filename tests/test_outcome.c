/* Whether and how jobs have ended, of one attempt and of several. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "end_record.h"
#include "fixture.h"
#include "history.h"
#include "outcome.h"

enum { NOW = 1000000, TELL = 2000, EXACT = 10000, ON = 1 };

static struct statedir dir;
static struct queue queue;
static struct snapshot view;
static struct snapshot_lease leases[4];
static struct outcome_look look;
static struct watch watch;

static int set_up(struct scratch *here)
{
	(void)here;
	watch = WATCH_NONE;
	return 0;
}

static void tear_down(void)
{
	watch_release(&watch);
}

static struct fixture fixture = { .dir = &dir,
	.view = &view,
	.queue = &queue,
	.leases = leases,
	.lease_count = ARRAY_SIZE(leases),
	.set_up = set_up,
	.tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* --- jobs and their attempts -------------------------------------------------------- */

static uint64_t append(const struct owner *owner, uint64_t job, uint32_t attempt)
{
	struct ticket ticket = { .state = TICKET_GRANTED,
		.job = job,
		.attempt = attempt,
		.owner = *owner,
		.since_ms = clock_boot_ms() };
	uint64_t number = 0;

	ticket.request.gpus = 1;
	ticket.request.is_supervised = 1;
	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	text_copy(ticket.request.command, COMMAND_SIZE_MAX, "train.py");
	assert_int_equal(ticket_append(&queue.file, &ticket, &number), 0);
	return number;
}

/* The same process goes on with a new token, as a supervisor does. */
static struct owner again(const struct owner *owner)
{
	struct owner next = *owner;

	assert_int_equal(token_make(next.token), 0);
	return next;
}

/* Job @job is tried again by @owner: the new ticket, and the first names it. */
static uint64_t try_again(const struct owner *owner, uint64_t job, uint32_t attempt)
{
	uint64_t number = append(owner, job, attempt);
	struct ticket first;

	assert_int_equal(ticket_read(&queue.file, job, &first), TICKET_RECORD);
	first.latest = number;
	assert_int_equal(ticket_rewrite(&queue.file, job, &first), 0);
	return number;
}

static void lease_to(
	unsigned at, const struct owner *owner, uint64_t ticket, uint64_t job)
{
	leases[at] = (struct snapshot_lease){ .is_of_this_boot = true,
		.lease = { .ticket = ticket,
			.job = job,
			.owner = *owner,
			.since_ms = clock_boot_ms() } };
	if (view.lease_count <= at)
		view.lease_count = at + 1;
}

static void begin(int64_t now_ms)
{
	assert_int_equal(queue_begin(&queue, 0), 0);
	liveness_set_begin(&view.lives);
	outcome_begin(&look, &queue, &view, now_ms);
}

static void check_lives(struct outcome *job, int64_t now_ms)
{
	begin(now_ms);
	assert_int_equal(outcome_judge(job, &look, ON), 0);
	assert_int_equal(job->over_ms, 0);
	liveness_set_end(&view.lives);
}

/* Checks that it is over, with that exit status; -1: unknown. */
static void check_over(struct outcome *job, int64_t now_ms, int status)
{
	begin(now_ms);
	assert_int_equal(outcome_judge(job, &look, ON), 1);
	assert_int_equal(outcome_learn_status(job, &look, ON), 0);
	liveness_set_end(&view.lives);
	assert_int_equal(job->status, status);
	if (status >= 0)
		assert_true(job->is_settled);
}

static const struct liveness *liveness_of(const struct owner *owner)
{
	for (size_t i = 0; i < view.lives.count; i++)
		if (strcmp(view.lives.all[i].owner.token, owner->token) == 0)
			return &view.lives.all[i];
	return NULL;
}

static bool is_watched(const struct owner *owner)
{
	return liveness_of(owner) && liveness_of(owner)->is_watched;
}

static void tell_end(uint64_t job, uint32_t attempt, const char *status)
{
	struct history_end end = {
		.ticket = job, .attempt = attempt, .since_ms = clock_real_ms()
	};

	text_copy(end.status, sizeof(end.status), status);
	assert_int_equal(history_append(&dir, &end), 0);
}

/* --- whether ------------------------------------------------------------------------ */

static void a_job_is_followed_from_attempt_to_attempt(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct owner two = again(&one.owner), three = again(&one.owner);
	uint64_t job = append(&one.owner, 0, 0), latest;
	struct outcome followed = OUTCOME_OF(job);

	(void)state;
	lease_to(0, &one.owner, job, 0);
	check_lives(&followed, NOW);
	assert_true(is_watched(&one.owner));
	assert_int_equal(followed.attempt, 1);
	/* the new ticket is there, the old lease is given back, in this order */
	latest = try_again(&two, job, 2);
	check_lives(&followed, NOW + 1);
	leases[0].is_over = true;
	begin(NOW + 2);
	liveness_end(liveness_set_judge(&view.lives, &one.owner, true, NOW + 2), true,
		NOW + 2);
	assert_int_equal(outcome_judge(&followed, &look, ON), 0);
	liveness_set_end(&view.lives);
	assert_int_equal(followed.latest, latest);
	assert_int_equal(followed.attempt, 2);
	assert_true(is_watched(&two));
	/* and once more between two looks */
	latest = try_again(&three, job, 3);
	begin(NOW + 3);
	liveness_end(liveness_set_judge(&view.lives, &two, true, NOW + 3), true, NOW + 3);
	assert_int_equal(outcome_judge(&followed, &look, ON), 0);
	liveness_set_end(&view.lives);
	assert_int_equal(followed.latest, latest);
	other_kill(&one);
	check_over(&followed, NOW + 4, 128 + SIGKILL);
	other_end(&one);
}

static void the_command_of_a_killed_supervisor_is_still_the_job(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other command = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	uint64_t job = append(&one.owner, 0, 0);
	uint64_t second = try_again(&command.owner, job, 2);
	struct outcome followed = OUTCOME_OF(job);

	(void)state;
	lease_to(0, &command.owner, second, job);
	other_end(&one);
	other_kill(&command); /* its command inherits the lease */
	check_lives(&followed, NOW);
	assert_true(is_watched(&command.owner));
	/* that it was given up is no event */
	assert_true(look.wake_ms < INT64_MAX);
	leases[0].is_over = true; /* overwritten: its FIFO tells */
	check_lives(&followed, NOW + 1);
	other_kill_heir(&command);
	check_over(&followed, NOW + 2, -1); /* no process saw its end */
	other_end(&command);
}

/* What it has started may hold its FIFO for ever. */
static void a_job_without_gpus_is_over_with_its_process(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	uint64_t job = append(&other.owner, 0, 0);
	struct outcome followed = OUTCOME_OF(job);
	struct ticket ticket;

	(void)state;
	assert_int_equal(ticket_read(&queue.file, job, &ticket), TICKET_RECORD);
	ticket.request.gpus = 0;
	assert_int_equal(ticket_rewrite(&queue.file, job, &ticket), 0);
	check_lives(&followed, NOW);
	other_kill(&other);
	begin(NOW + 1);
	assert_int_equal(outcome_judge(&followed, &look, ON), 1);
	liveness_set_end(&view.lives);
	other_kill_heir(&other);
}

static void the_number_of_an_attempt_means_its_job(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct owner two = again(&one.owner);
	uint64_t job = append(&one.owner, 0, 0), second = try_again(&two, job, 2);
	struct outcome followed = OUTCOME_OF(second);
	uint64_t found = 0;

	(void)state;
	check_lives(&followed, NOW);
	assert_int_equal(followed.job, job);
	assert_int_equal(followed.latest, second);
	assert_int_equal(outcome_find_job(&queue.file, queue.end, second, &found), 0);
	assert_int_equal(found, job);
	assert_int_equal(outcome_find_job(&queue.file, queue.end, job, &found), 0);
	assert_int_equal(found, job);
	other_end(&one);
}

static void the_last_end_counts_if_only_the_latest_ticket_was_swept(void **state)
{
	static const char zeros[RECORD_SIZE];
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t job = append(&dead, 0, 0), second = try_again(&dead, job, 2);
	struct outcome followed = OUTCOME_OF(job);

	(void)state;
	assert_int_equal(pwrite(queue.file.fd, zeros, sizeof(zeros),
				 (off_t)(second * RECORD_SIZE)),
		sizeof(zeros));
	tell_end(job, 1, "1");
	check_over(&followed, NOW, -1); /* that was not the end of the job */
	tell_end(job, 2, "0");
	check_over(&followed, NOW + 1, 0);
}

static void numbers_that_no_ticket_has_are_no_job(void **state)
{
	static const char zeros[RECORD_SIZE];
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct control control = { .verb = CONTROL_CANCEL, .ticket = 1 };
	uint64_t job = append(&dead, 0, 0), gone = append(&dead, 0, 0), end = 0,
		 found = 0;

	(void)state;
	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&queue.file, &control), 0);
	assert_int_equal(
		pwrite(queue.file.fd, zeros, RECORD_SIZE, (off_t)gone * RECORD_SIZE),
		RECORD_SIZE);
	assert_int_equal(ticket_end(&queue.file, &end), 0);
	assert_int_equal(outcome_find_job(&queue.file, end, job, &found), 0);
	assert_int_equal(outcome_find_job(&queue.file, end, gone, &found), 0);
	assert_int_equal(found, gone);
	for (uint64_t number = gone + 1; number < end + 3; number++)
		assert_int_equal(outcome_find_job(&queue.file, end, number, &found),
			OUTCOME_NO_JOB);
	assert_int_equal(outcome_find_job(&queue.file, end, 0, &found), OUTCOME_NO_JOB);
	assert_int_equal(
		outcome_find_job(&queue.file, end, UINT64_MAX, &found), OUTCOME_NO_JOB);
}

static void a_lease_given_back_by_a_shell_is_over(void **state)
{
	struct owner program = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct other shell = other_start(dir.fd, OTHER_ALONE);
	uint64_t job = append(&program, 0, 0);
	struct outcome followed = OUTCOME_OF(job);

	(void)state;
	lease_to(0, &shell.owner, job, 0);
	leases[0].lease.is_shell = 1;
	check_lives(&followed, NOW);
	assert_true(is_watched(&shell.owner));
	assert_in_range(look.wake_ms, NOW + 1, NOW + 60000); /* no event tells */
	leases[0].is_over = true;
	check_over(&followed, NOW + 1, -1);
	other_end(&shell);
}

static void its_end_wakes_the_watcher(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct outcome followed = OUTCOME_OF(append(&one.owner, 0, 0));

	(void)state;
	check_lives(&followed, NOW);
	assert_true(look.wake_ms == INT64_MAX); /* no timer */
	watch_begin(&watch);
	assert_int_equal(outcome_watch(&look, &watch), 0);
	assert_int_equal(watch.count, 2); /* its pidfd and its FIFO */
	assert_true(watch.until_ms == INT64_MAX);
	assert_int_equal(poll(watch.fds, watch.count, 0), 0);
	other_kill(&one);
	assert_true(poll(watch.fds, watch.count, PATIENCE_MS) > 0);
	check_over(&followed, NOW + 1, 128 + SIGKILL);
	watch_begin(&watch);
	assert_int_equal(outcome_watch(&look, &watch), 0);
	assert_int_equal(watch.count, 0);
	other_end(&one);
}

/* --- how ---------------------------------------------------------------------------- */

static void the_status_of_an_earlier_attempt_is_not_the_jobs(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct owner next = again(&dead);
	uint64_t job = append(&dead, 0, 0);
	struct outcome followed = OUTCOME_OF(job), late = followed, first = followed;

	(void)state;
	tell_end(job, 0, "7");
	check_over(&first, NOW, 7);
	(void)try_again(&next, job, 2);
	check_over(&followed, NOW, -1);
	assert_false(followed.is_settled);
	assert_in_range(look.wake_ms, NOW + 1, NOW + 100);
	check_over(&followed, NOW + TELL, -1);
	assert_true(followed.is_settled);
	tell_end(job, 2, "0");
	check_over(&late, NOW, 0);
}

static void the_status_of_the_lease_owner_counts_not_of_the_ticket_owner(void **state)
{
	struct other program = other_start(dir.fd, OTHER_LIVE);
	struct other heir = other_start(dir.fd, OTHER_ALONE);
	uint64_t job = append(&program.owner, 0, 0);
	struct outcome followed = OUTCOME_OF(job);
	autofd int pidfd = pidfd_open_process((uint32_t)heir.pid);
	int status;

	(void)state;
	lease_to(0, &heir.owner, job, 0);
	check_lives(&followed, NOW);
	other_kill(&program);
	check_lives(&followed, NOW + 1);
	assert_int_equal(kill(heir.pid, SIGTERM), 0);
	assert_true(fixture_await_end(heir.pid));
	assert_int_equal(waitpid(heir.pid, NULL, 0), heir.pid);
	if (pidfd_exit_status(pidfd, &status) != 0) /* before Linux 6.15 */
		skip_because("before Linux 6.15");
	leases[0].is_over = true;
	check_over(&followed, NOW + 2, 128 + SIGTERM);
	other_end(&program);
}

static void a_job_cancelled_while_waiting_is_in_the_history(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct owner next = again(&dead);
	uint64_t job = append(&dead, 0, 0), second;
	struct outcome followed = OUTCOME_OF(job);
	struct history_end end;
	struct ticket ticket;

	(void)state;
	tell_end(job, 0, "1");
	second = try_again(&next, job, 2);
	assert_int_equal(ticket_read(&queue.file, second, &ticket), TICKET_RECORD);
	end_record_append_leaseless(&dir, second, &ticket, 0,
		&(struct end_facts){
			.status = 143, .how = HISTORY_CANCEL, .by = "dave" });
	assert_int_equal(history_find(dir.fd, job, clock_real_ms() - 60000, &end), 0);
	assert_int_equal(end.attempt, 2);
	assert_int_equal(end.since_ms, 0);
	assert_int_equal(end.gpu_count, 0);
	assert_int_equal(history_state(&end), END_CANCELLED);
	assert_string_equal(end.by, "dave");
	assert_string_equal(end.status, "143");
	assert_string_equal(end.command, "train.py");
	assert_in_range(end.waited_ms, 0, PATIENCE_MS);
	check_over(&followed, NOW, 143);
	/* that of an earlier ticket file is another's */
	assert_int_equal(
		history_find(dir.fd, job, clock_real_ms() + 60000, &end), HISTORY_NONE);
}

/* --- what is recorded later ---------------------------------------------------------- */

static void tell_provisional(uint64_t job, const char *how)
{
	struct history_end end = {
		.ticket = job, .since_ms = clock_real_ms(), .is_provisional = 1
	};

	text_copy(end.how, sizeof(end.how), how);
	assert_int_equal(history_append(&dir, &end), 0);
}

static void check_settled(struct outcome *job, int64_t now_ms, bool wanted)
{
	check_over(job, now_ms, -1);
	assert_int_equal(job->is_settled, wanted);
	assert_int_equal(look.wake_ms < INT64_MAX, !wanted);
}

static void an_exact_end_is_waited_for(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t job = append(&dead, 0, 0);
	struct outcome followed = OUTCOME_OF(job), another = OUTCOME_OF(job);

	(void)state;
	tell_provisional(job, "");
	check_settled(&followed, NOW, false);
	check_settled(&followed, NOW + TELL, false);
	check_settled(&followed, NOW + EXACT - 1, false);
	check_settled(&another, NOW, false);
	tell_end(job, 0, "3");
	check_over(&followed, NOW + EXACT - 1, 3);
	/* the recorder may have been killed */
	check_over(&another, NOW + EXACT, 3);
}

static void an_exact_end_that_does_not_come_is_given_up(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t job = append(&dead, 0, 0), lost = append(&dead, 0, 0);
	struct outcome followed = OUTCOME_OF(job), other = OUTCOME_OF(lost);

	(void)state;
	tell_provisional(job, "");
	check_settled(&followed, NOW, false);
	check_settled(&followed, NOW + EXACT, true);
	tell_provisional(lost, HISTORY_LOST); /* its recorder was killed, that is known */
	check_settled(&other, NOW, false);
	check_settled(&other, NOW + TELL, true);
}

static void a_lease_that_remains_shows_that_its_end_will_be_recorded(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	uint64_t job = append(&dead, 0, 0);
	struct outcome followed = OUTCOME_OF(job), plain = OUTCOME_OF(job);

	(void)state;
	lease_to(0, &dead, job, 0);
	leases[0].is_over = true;
	check_settled(&plain, NOW, false);
	check_settled(&plain, NOW + TELL, true);
	text_copy(leases[0].lease.recorded_by, RECORDER_SIZE, RECORDER_WATCHDOG);
	check_settled(&followed, NOW, false);
	check_settled(&followed, NOW + TELL, false);
	leases[0].lease.is_recorded = 1;
	check_settled(&followed, NOW + TELL + 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_is_followed_from_attempt_to_attempt),
		TEST(the_command_of_a_killed_supervisor_is_still_the_job),
		TEST(the_last_end_counts_if_only_the_latest_ticket_was_swept),
		TEST(a_job_without_gpus_is_over_with_its_process),
		TEST(the_number_of_an_attempt_means_its_job),
		TEST(numbers_that_no_ticket_has_are_no_job),
		TEST(a_lease_given_back_by_a_shell_is_over),
		TEST(its_end_wakes_the_watcher),
		TEST(the_status_of_an_earlier_attempt_is_not_the_jobs),
		TEST(the_status_of_the_lease_owner_counts_not_of_the_ticket_owner),
		TEST(a_job_cancelled_while_waiting_is_in_the_history),
		TEST(an_exact_end_is_waited_for),
		TEST(an_exact_end_that_does_not_come_is_given_up),
		TEST(a_lease_that_remains_shows_that_its_end_will_be_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
