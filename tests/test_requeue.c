/*
 * A job's way from one attempt to the next on two simulated GPUs, and what other processes see of
 * it: how its owner, which lives on, gives the lease back, and what a crash in between leaves.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "commit.h"
#include "fixture_broker.h"
#include "process_lease.h"

enum { GPUS = 2 };

static const struct prober_config config = SIMULATED(GPUS);

static struct statedir dir;
static struct broker broker; /* of the job that gets another attempt */
static struct broker waiter;
static struct lease_file files[GPUS];

static int set_up(struct scratch *here)
{
	(void)here;
	if (fixture_broker_open(&broker, &dir, &config) < 0)
		return -1;
	memset(&waiter, 0, sizeof(waiter));
	if (broker_init(&waiter, &dir, &config) < 0)
		return -1;
	return fixture_open_files(dir.fd, files, GPUS);
}

static void tear_down(void)
{
	fixture_release_files(files, GPUS);
	broker_release(&waiter);
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static void join(struct broker *one, uint32_t gpus, const char *slots)
{
	struct request request = {
		.gpus = gpus, .allow = fixture_set(slots), .is_supervised = 1
	};

	fixture_join(one, &request);
}

/* Takes turns and waits until the ticket is granted. */
static void come_through(struct broker *one)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
	struct why why = WHY_NONE;
	int r;

	while ((r = broker_turn(one)) != BROKER_GRANTED) {
		if (r < 0 || clock_boot_ms() >= until_ms)
			fail_msg("it is not granted: %d, %s", r, why.text);
		assert_int_equal(broker_wait(one, until_ms), 0);
	}
}

/* Reads record 1 of the file of @slot; false: there is none. */
static bool read_lease(unsigned slot, struct lease *ret)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records;

	assert_int_equal(lease_read(&files[slot], raw, &records), 0);
	return lease_decode(raw, 1, ret) == LEASE_RECORD;
}

static void requeue(void)
{
	struct request request = broker.ticket.request;
	struct why why = WHY_NONE;

	if (broker_requeue(&broker, &request, 0, &why) < 0)
		fail_msg("%s", why.text);
}

/* --- the tickets -------------------------------------------------------------------- */

static void the_new_ticket_names_the_first_and_the_first_the_latest(void **state)
{
	struct ticket ticket;
	struct lease lease;
	uint64_t first, second;
	char token[TOKEN_SIZE];

	(void)state;
	join(&broker, 1, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	first = broker.number;
	text_copy(token, sizeof(token), broker.ticket.owner.token);
	assert_int_equal(
		broker_note_command(&broker, &(struct command){ .pid = 4711 }), 0);
	assert_true(read_lease(0, &lease));
	assert_int_equal(lease.runs.pid, 4711);
	requeue();
	second = broker.number;
	assert_true(second > first);
	assert_int_equal(broker_job(&broker), first);
	assert_string_not_equal(token, broker.ticket.owner.token);
	assert_int_equal(ticket_read(&broker.queue.file, second, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.job, first);
	assert_int_equal(ticket.attempt, 2);
	assert_int_equal(ticket.state, TICKET_WAITING);
	assert_int_equal(ticket.runs.pid, 0);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, ticket.owner.token));
	come_through(&broker);
	requeue();
	assert_int_equal(broker.ticket.attempt, 3);
	assert_int_equal(broker_give_back(&broker), 0);
	for (uint64_t number = first; number <= second; number++) {
		assert_int_equal(
			ticket_read(&broker.queue.file, number, &ticket), TICKET_RECORD);
		assert_int_equal(ticket.state, TICKET_LEFT);
		assert_int_equal(ticket.latest, number == first ? broker.number : 0);
	}
}

static void a_requeue_that_fails_leaves_the_job_as_it_was(void **state)
{
	struct request request;
	struct why why = WHY_NONE;
	struct ticket before;
	struct lease lease;
	uint64_t number;
	int fd;

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	before = broker.ticket;
	number = broker.number;
	request = before.request;
	fd = broker.queue.file.append_fd;
	broker.queue.file.append_fd = -1; /* as if the disk were full */
	assert_true(broker_requeue(&broker, &request, 0, &why) < 0);
	broker.queue.file.append_fd = fd;
	assert_true(why.text[0]);
	assert_memory_equal(&before, &broker.ticket, sizeof(before));
	assert_int_equal(broker.number, number);
	assert_true(broker.live_fd >= 0);
	assert_int_equal(
		broker_give_back(&broker), 0); /* there is nothing to give back */
	assert_true(read_lease(0, &lease));
	assert_int_equal(lease.released_ms, 0);
	assert_int_equal(live_fifo_look(&dir, before.owner.token, NULL), LIVE_FIFO_HELD);
}

static void a_new_ticket_file_between_attempts_is_joined(void **state)
{
	char token[TOKEN_SIZE];

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	join(&waiter, 1, "1"); /* so that the job gets another number then */
	fixture_check_turn(&waiter, BROKER_GRANTED);
	assert_int_equal(unlinkat(dir.fd, "tickets", 0), 0);
	requeue();
	text_copy(token, sizeof(token), broker.ticket.owner.token);
	come_through(&broker);
	assert_string_equal(broker.ticket.owner.token, token);
	assert_int_equal(broker_job(&broker), broker.number);
	assert_int_equal(broker.number, 1);
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
}

/* --- giving back -------------------------------------------------------------------- */

static void no_other_job_gets_the_gpus_before_they_are_given_back(void **state)
{
	(void)state;
	join(&broker, 2, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	join(&waiter, 1, "1");
	fixture_check_turn(&waiter, BROKER_WAITING);
	requeue();
	fixture_check_turn(&waiter, BROKER_WAITING);
	assert_int_equal(waiter.result.verdict.kind, VERDICT_LEASED);
	assert_int_equal(broker_give_back(&broker), 0);
	assert_int_equal(broker_survey(&waiter), 0);
	/* it has to wait for a probe that began after it had seen the lease released */
	assert_true(waiter.view.gpus[1].has_dead);
	assert_int_equal(waiter.view.gpus[1].released_ms, waiter.state.now_ms);
	come_through(&waiter);
}

static void giving_back_changes_all_records_and_removes_the_fifo(void **state)
{
	struct lease lease;
	char token[TOKEN_SIZE];

	(void)state;
	join(&broker, 2, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	text_copy(token, sizeof(token), broker.ticket.owner.token);
	requeue();
	assert_int_equal(live_fifo_look(&dir, token, NULL), LIVE_FIFO_HELD);
	assert_int_equal(broker_give_back(&broker), 0);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, token));
	for (unsigned slot = 0; slot < GPUS; slot++) {
		assert_true(read_lease(slot, &lease));
		assert_true(lease.released_ms > 0);
		assert_string_equal(lease.owner.token, token);
		assert_int_equal(lease_lock(&files[slot], 0), 0); /* no lock is left */
		lease_unlock(&files[slot]);
	}
	assert_int_equal(broker_give_back(&broker), 0); /* a second call does nothing */
}

static void a_process_that_teardown_could_not_end_keeps_the_lease(void **state)
{
	struct lease lease;
	struct owner left;
	char variable[64];
	pid_t pid;

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	(void)snprintf(variable, sizeof(variable), PROCESS_LEASE_TOKEN_VARIABLE "=%s",
		broker.ticket.owner.token);
	pid = fixture_start_sleep(variable, 0);
	requeue();
	assert_int_equal(broker_give_back(&broker), 0);
	assert_true(read_lease(0, &lease));
	assert_true(lease.released_ms > 0);
	assert_int_equal(leftover_parse(lease.left, &left), 0);
	assert_int_equal(left.pid, pid);
	fixture_kill(&pid);
}

/* Waits for an event; false: there was none except the look for damage. */
static bool is_woken(struct broker *one)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;

	assert_int_equal(broker_wait(one, until_ms), 0);
	return clock_boot_ms() < until_ms && !one->state.is_damaged;
}

static void the_bell_wakes_waiters(void **state)
{
	autofd int left = -1; /* a descriptor that the ended attempt left open */

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	left = fcntl(broker.live_fd, F_DUPFD_CLOEXEC, 0);
	assert_true(left >= 0);
	join(&waiter, 1, "0");
	fixture_check_turn(&waiter, BROKER_WAITING);
	requeue();
	assert_int_equal(broker_wait(&waiter, clock_boot_ms()), 0);
	fixture_check_turn(&waiter, BROKER_WAITING);
	assert_int_equal(broker_give_back(&broker), 0);
	assert_true(is_woken(&waiter));
	fixture_check_turn(&waiter, BROKER_GRANTED);
}

static void a_waiter_without_a_bell_is_woken_by_the_fifo(void **state)
{
	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	join(&waiter, 1, "0");
	fixture_check_turn(&waiter, BROKER_WAITING);
	fifo_remove(&dir, FIFO_BELL, waiter.ticket.owner.token);
	requeue();
	fixture_check_turn(&waiter, BROKER_WAITING);
	assert_int_equal(broker_give_back(&broker), 0);
	assert_true(is_woken(&waiter));
	fixture_check_turn(&waiter, BROKER_GRANTED);
}

static void giving_back_waits_for_a_locked_file(void **state)
{
	struct lease lease;

	(void)state;
	join(&broker, 2, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	join(&waiter, 1, "1");
	requeue();
	assert_int_equal(lease_lock(&files[0], 0),
		0); /* as if the holder of the lock were stopped */
	assert_int_equal(broker_give_back(&broker), BROKER_LOCKED);
	assert_true(read_lease(1, &lease));
	assert_true(lease.released_ms > 0);
	fixture_check_turn(
		&waiter, BROKER_WAITING); /* the other file still has the lease */
	fixture_check_turn(&broker, BROKER_WAITING);
	assert_int_equal(broker.result.verdict.state, GPU_LOCKED);
	assert_true(broker.state.wake_ms < INT64_MAX);
	assert_true(read_lease(0, &lease));
	assert_int_equal(lease.released_ms, 0);
	lease_unlock(&files[0]);
	fixture_check_turn(
		&broker, BROKER_WAITING); /* its ticket comes after the waiter's now */
	assert_true(read_lease(0, &lease));
	assert_true(lease.released_ms > 0);
	come_through(&waiter);
}

static void a_file_that_was_made_again_is_given_back_too(void **state)
{
	char path[UUID_SIZE + 16];
	struct lease lease;

	(void)state;
	join(&broker, 2, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	(void)snprintf(path, sizeof(path), "gpu/%s.lease", files[0].gpu.uuid);
	assert_int_equal(unlinkat(dir.fd, path, 0), 0);
	assert_int_equal(broker_survey(&waiter), 0); /* makes the file again */
	lease_release(&files[0]);
	assert_int_equal(lease_open_slot(&dir, 0, &files[0]), 0);
	assert_true(read_lease(1, &lease)); /* and the mending writes the lease back */
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	join(&waiter, 2, "01");
	requeue();
	assert_int_equal(broker_give_back(&broker), 0);
	assert_true(read_lease(0, &lease));
	assert_true(lease.released_ms > 0);
	come_through(&waiter);
}

static void a_missing_file_keeps_no_job_waiting(void **state)
{
	char path[UUID_SIZE + 16];

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	(void)snprintf(path, sizeof(path), "gpu/%s.lease", files[0].gpu.uuid);
	assert_int_equal(unlinkat(dir.fd, path, 0), 0);
	requeue();
	assert_int_equal(broker_give_back(&broker), 0);
	come_through(&broker);
}

/* --- what others make of it --------------------------------------------------------- */

static void its_own_old_lease_does_not_keep_the_job_waiting(void **state)
{
	(void)state;
	join(&broker, 2, "01");
	fixture_check_turn(&broker, BROKER_GRANTED);
	requeue();
	assert_int_equal(broker_give_back(&broker), 0);
	come_through(&broker);
	assert_int_equal(broker.ticket.attempt, 2);
}

/* Runs @act in a child that has been granted both GPUs, and kills it. */
static void killed_after(void (*act)(void))
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct request request = {
			.gpus = 2, .allow = fixture_set("01"), .is_supervised = 1
		};
		struct why why = WHY_NONE;

		if (broker_join(&broker, &request, "alice", &why) == 0 &&
			broker_turn(&broker) == BROKER_GRANTED) {
			act();
			(void)!write(ends[1], "x", 1);
		}
		(void)close(ends[1]);
		fixture_rest();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	fixture_kill(&pid);
}

static void requeue_alone(void)
{
	struct request request = broker.ticket.request;
	struct why why = WHY_NONE;

	(void)!broker_requeue(&broker, &request, 0, &why);
}

static void release_one_of_two(void)
{
	struct gpuset one = fixture_set("1");

	requeue_alone();
	(void)!commit_release(&broker.view, broker.state.debt.token, &one, NULL);
}

static void release_without_telling(void)
{
	requeue_alone();
	(void)!commit_release(
		&broker.view, broker.state.debt.token, &broker.state.debt.gpus, NULL);
}

static void a_death_while_giving_back_keeps_no_gpu(void **state)
{
	static void (*const acts[])(
		void) = { requeue_alone, release_one_of_two, release_without_telling };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		killed_after(acts[i]);
		join(&waiter, 2, "01");
		come_through(&waiter);
		broker_leave(&waiter);
		broker_release(&waiter);
		for (unsigned slot = 0; slot < GPUS; slot++)
			assert_int_equal(lease_clear(&files[slot], 1), 0);
		memset(&waiter, 0, sizeof(waiter));
		assert_int_equal(broker_init(&waiter, &dir, &config), 0);
	}
}

/* An owner in another pid namespace can be judged only by its FIFO and by the release. */
static void in_another_pid_namespace_a_release_still_counts(void **state)
{
	struct other far = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = {
		.ticket = 1000, .owner = far.owner, .gpus = fixture_set("0")
	};

	(void)state;
	lease.owner.pidns++;
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	join(&waiter, 1, "0");
	fixture_check_turn(&waiter, BROKER_WAITING);
	lease.released_ms = clock_boot_ms();
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	come_through(&waiter);
	other_end(&far);
}

static void the_left_ticket_is_not_taken_for_a_lost_lease(void **state)
{
	struct lease lease;

	(void)state;
	join(&broker, 1, "0");
	fixture_check_turn(&broker, BROKER_GRANTED);
	join(&waiter, 1, "0");
	fixture_check_turn(&waiter, BROKER_WAITING);
	requeue();
	assert_int_equal(broker_give_back(&broker), 0);
	come_through(&waiter); /* it writes its lease over that record */
	assert_true(read_lease(0, &lease));
	assert_string_equal(lease.owner.token, waiter.ticket.owner.token);
	/* a record on the other GPU that cannot be read */
	assert_int_equal(pwrite(files[1].fd, "#", 1, RECORD_SIZE), 1);
	assert_int_equal(broker_survey(&broker), 0);
	assert_true(broker.view.gpus[1].is_doubtful);
	assert_false(broker.view.has_unknown_job);
}

static void a_liveness_that_was_ended_stays_ended(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set lives = LIVENESS_SET_ON(&dir);
	struct liveness *life;

	(void)state;
	liveness_set_begin(&lives);
	life = liveness_set_judge(&lives, &other.owner, true, 100);
	assert_false(liveness_is_dead(life));
	liveness_end(life, true, 200);
	assert_true(liveness_is_over(life));
	assert_int_equal(life->pidfd, -1);
	assert_int_equal(life->fifo_fd, -1);
	life = liveness_set_judge(&lives, &other.owner, true, 300);
	assert_true(liveness_is_over(life));
	assert_int_equal(life->dead_ms, 200);
	assert_int_equal(life->over_ms, 200);
	assert_int_equal(life->alive_ms, 100);
	assert_int_equal(life->status, -1);
	assert_false(liveness_is_unwatchable(life));
	liveness_set_end(&lives);
	liveness_set_release(&lives);
	other_end(&other);
}

/* Appends a request to requeue the job, from its attempt with ticket @by, as user @uid. */
static void ask_for_requeue(uint64_t by, uint32_t uid)
{
	struct control control = { .verb = CONTROL_REQUEUE,
		.ticket = broker_job(&broker),
		.by = by,
		.uid = uid,
		.at_ms = clock_boot_ms() };

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&broker.queue.file, &control), 0);
}

static void a_request_counts_for_its_attempt_and_of_its_users(void **state)
{
	uint32_t self = (uint32_t)getuid();
	struct ticket ticket;
	uint64_t first;

	(void)state;
	join(&broker, 1, "01");
	come_through(&broker);
	assert_true(broker.bell_fd >= 0); /* by which it is asked */
	first = broker.number;
	ask_for_requeue(first, 4711); /* of another user */
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
	ask_for_requeue(first, self);
	ask_for_requeue(first - 1, self); /* a late one does not hide it */
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_REQUEUE);
	broker_note_requeue(&broker);
	assert_int_equal(ticket_read(&broker.queue.file, first, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.goes_back, 1);
	requeue();
	assert_int_equal(broker.ticket.goes_back, 0);
	assert_int_equal(broker_give_back(&broker), 0);
	come_through(&broker);
	/* the request was for the attempt before */
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
	ask_for_requeue(broker.number, 0); /* root may */
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_REQUEUE);
	broker.ticket.request.runs_once = 1;
	assert_int_equal(broker_read_orders(&broker), BROKER_ORDER_NONE);
	broker_remove_bell(&broker);
	assert_false(fixture_exists(dir.fd, FIFO_BELL, broker.ticket.owner.token));
}

static void a_kept_bell_is_removed_with_the_lease(void **state)
{
	struct other killed = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct lease lease = {
		.ticket = 1000, .owner = killed.owner, .gpus = fixture_set("0")
	};

	(void)state;
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	other_end(&killed);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, killed.owner.token));
	join(&waiter, 1, "0");
	come_through(&waiter);
	assert_false(fixture_exists(dir.fd, FIFO_BELL, killed.owner.token));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_new_ticket_names_the_first_and_the_first_the_latest),
		TEST(a_requeue_that_fails_leaves_the_job_as_it_was),
		TEST(a_new_ticket_file_between_attempts_is_joined),
		TEST(no_other_job_gets_the_gpus_before_they_are_given_back),
		TEST(giving_back_changes_all_records_and_removes_the_fifo),
		TEST(a_process_that_teardown_could_not_end_keeps_the_lease),
		TEST(the_bell_wakes_waiters),
		TEST(a_waiter_without_a_bell_is_woken_by_the_fifo),
		TEST(giving_back_waits_for_a_locked_file),
		TEST(a_file_that_was_made_again_is_given_back_too),
		TEST(a_missing_file_keeps_no_job_waiting),
		TEST(its_own_old_lease_does_not_keep_the_job_waiting),
		TEST(a_death_while_giving_back_keeps_no_gpu),
		TEST(in_another_pid_namespace_a_release_still_counts),
		TEST(the_left_ticket_is_not_taken_for_a_lost_lease),
		TEST(a_liveness_that_was_ended_stays_ended),
		TEST(a_request_counts_for_its_attempt_and_of_its_users),
		TEST(a_kept_bell_is_removed_with_the_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
