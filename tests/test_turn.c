/*
 * A broker's turns on two simulated GPUs, with others who act in the middle of them: in
 * the window between planning and locking, and between reading and waiting.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>

#include "clock.h"
#include "commit.h"
#include "fixture_broker.h"

enum { GPUS = 2 };

static const struct prober_config config = SIMULATED(GPUS);

static struct statedir dir;
static struct broker broker;
static struct lease_file files[GPUS]; /* as others have them open */

/* --- what others do in the middle --------------------------------------------------- */

static void (*before_lock)(void);  /* once: what was planned is about to be locked */
static void (*after_leases)(void); /* once: the leases have been read */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);

static void call_once(void (**hook)(void))
{
	void (*call)(void) = *hook;

	*hook = NULL;
	if (call)
		call();
}

int __wrap_flock(int fd, int operation)
{
	if (operation & LOCK_EX)
		call_once(&before_lock);
	return __real_flock(fd, operation);
}

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset)
{
	ssize_t n = __real_pread(fd, out, size, offset);
	struct stat st, last;

	/* the last of the lease files: what is read behind it are lives */
	if (after_leases && fstat(fd, &st) == 0 &&
		fstat(files[GPUS - 1].fd, &last) == 0 && st.st_ino == last.st_ino)
		call_once(&after_leases);
	return n;
}

/* --- a directory with two GPUs ------------------------------------------------------ */

static int setup(void **state)
{
	before_lock = after_leases = NULL;
	if (fixture_broker_setup(state, &config, &dir, &broker) < 0)
		return -1;
	return fixture_open_files(dir.fd, files, GPUS);
}

static int teardown(void **state)
{
	fixture_release_files(files, GPUS);
	return fixture_broker_teardown(state, &dir, &broker);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct request request_of(uint32_t gpus, const char *slots)
{
	return (struct request){ .gpus = gpus, .allow = fixture_set(slots) };
}

static void join(uint32_t gpus, const char *slots)
{
	struct request request = request_of(gpus, slots);

	fixture_join(&broker, &request);
}

static void check_turn(int wanted)
{
	fixture_check_turn(&broker, wanted);
}

static void write_lease(unsigned slot, const struct owner *owner, const char *slots)
{
	struct lease lease = {
		.ticket = 1000, .owner = *owner, .gpus = fixture_set(slots)
	};

	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[slot], 1, &lease), 0);
}

/* Whose lease stands in the file of @slot; "": nobody's. */
static const char *holder_of(unsigned slot)
{
	static char raw[LEASE_FILE_BYTES];
	static struct lease lease;
	unsigned records;

	assert_int_equal(lease_read(&files[slot], raw, &records), 0);
	if (lease_decode(raw, 1, &lease) != LEASE_RECORD)
		return "";
	return lease.owner.token;
}

static void pause_gpu(unsigned slot, uint32_t is_paused)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records;

	assert_int_equal(lease_read(&files[slot], raw, &records), 0);
	files[slot].gpu.is_paused = is_paused;
	assert_int_equal(lease_write_gpu(&files[slot], &files[slot].gpu), 0);
}

/* A ticket of @owner with that name, who wants @gpus of @slots. */
static uint64_t append_named(
	const struct owner *owner, const char *name, uint32_t gpus, const char *slots)
{
	struct ticket ticket = { .state = TICKET_WAITING,
		.owner = *owner,
		.request = request_of(gpus, slots),
		.turn_ms = clock_boot_ms() };
	uint64_t number = 0;

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	text_copy(ticket.request.name, sizeof(ticket.request.name), name);
	assert_int_equal(ticket_append(&broker.queue.file, &ticket, &number), 0);
	return number;
}

static uint64_t append_ticket(const struct owner *owner, uint32_t gpus, const char *slots)
{
	return append_named(owner, "", gpus, slots);
}

static uint64_t hint(void)
{
	struct ticket_header header;

	ticket_read_header(&broker.queue.file, &header);
	return header.hint;
}

/* --- starting ----------------------------------------------------------------------- */

static void alone_a_job_starts_at_once(void **state)
{
	struct ticket ticket;

	(void)state;
	join(2, "01");
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(0), broker.ticket.owner.token);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	assert_int_equal(
		ticket_read(&broker.queue.file, broker.number, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.state, TICKET_GRANTED);
	assert_false(fixture_exists(dir.fd, BEACON_BELL, ticket.owner.token));
	assert_int_equal(beacon_look(&dir, ticket.owner.token, NULL), BEACON_HELD);
	for (unsigned slot = 0; slot < GPUS; slot++)
		assert_int_equal(lease_lock(&files[slot], 0), 0); /* no lock is left */
}

static struct other rival;

static void rival_takes_gpu_1(void)
{
	write_lease(1, &rival.owner, "1");
}

static void who_was_quicker_keeps_its_gpus(void **state)
{
	(void)state;
	rival = other_start(dir.fd, OTHER_LIVE);
	join(2, "01");
	before_lock = rival_takes_gpu_1; /* after we have planned to take both */
	check_turn(BROKER_WAITING);
	assert_null(before_lock);
	assert_string_equal(holder_of(0), "");
	assert_string_equal(holder_of(1), rival.owner.token);
	for (unsigned slot = 0; slot < GPUS; slot++) {
		assert_int_equal(lease_lock(&files[slot], 0), 0);
		lease_unlock(&files[slot]);
	}
	other_end(&rival);
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
}

static void a_lease_of_several_gpus_shows_in_the_one_that_is_read(void **state)
{
	(void)state;
	rival = other_start(dir.fd, OTHER_LIVE);
	/* it is writing: the file of GPU 0 does not have it yet */
	write_lease(1, &rival.owner, "01");
	join(1, "0");
	check_turn(BROKER_WAITING);
	assert_string_equal(holder_of(0), "");
	other_end(&rival);
	check_turn(BROKER_GRANTED);
}

static void pause_gpu_0(void)
{
	pause_gpu(0, 1);
}

static void a_pause_in_the_last_moment_counts(void **state)
{
	(void)state;
	join(1, "0");
	before_lock = pause_gpu_0;
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.verdict.kind, VERDICT_GPU);
	assert_int_equal(broker.verdict.state, GPU_PAUSED);
	assert_string_equal(holder_of(0), "");
}

static void cancel_me(void)
{
	struct control control = { .verb = CONTROL_CANCEL,
		.ticket = broker_job(&broker),
		.uid = (uint32_t)getuid() };

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&broker.queue.file, &control), 0);
}

static void a_cancel_in_the_last_moment_counts(void **state)
{
	(void)state;
	join(1, "01");
	before_lock = cancel_me;
	check_turn(BROKER_CANCELLED);
	assert_int_equal(broker.cancelled_by, getuid());
	assert_string_equal(holder_of(0), "");
	assert_int_equal(lease_lock(&files[0], 0), 0);
}

static void try_again(int64_t not_before_ms)
{
	struct request request = broker.ticket.request;
	struct why why = WHY_NONE;

	assert_int_equal(broker_requeue(&broker, &request, not_before_ms, &why), 0);
}

static void in_the_last_moment_before_the_next_attempt_too(void **state)
{
	(void)state;
	join(1, "01");
	check_turn(BROKER_GRANTED);
	try_again(0);
	before_lock = cancel_me;
	check_turn(BROKER_CANCELLED);
	assert_string_equal(holder_of(1), "");
}

static void what_was_said_before_the_new_ticket_counts(void **state)
{
	struct ticket_header header;

	(void)state;
	join(0, "01"); /* it needs no turn, so it has never looked */
	cancel_me();
	ticket_read_header(&broker.queue.file, &header);
	header.hint = broker.number + 2; /* others have passed it */
	assert_int_equal(ticket_write_header(&broker.queue.file, &header), 0);
	try_again(0);
	check_turn(BROKER_CANCELLED);
}

static void who_is_tried_again_later_waits_for_that(void **state)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		int64_t soon_ms = clock_boot_ms() + 3600 * 1000;

		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
		join(wanted, "01");
		if (wanted)
			check_turn(BROKER_GRANTED);
		try_again(soon_ms);
		check_turn(BROKER_WAITING);
		assert_int_equal(broker.held.hold, HOLD_UNTIL);
		assert_int_equal(broker.verdict.start_ms, soon_ms);
		assert_int_equal(broker.wake_ms, soon_ms);
		assert_true(broker.bell_fd >= 0); /* it can be cancelled */
		cancel_me();
		check_turn(BROKER_CANCELLED);
	}
}

static void a_locked_gpu_is_left_for_another(void **state)
{
	(void)state;
	assert_int_equal(lease_lock(&files[0], 0), 0); /* and its holder is stopped */
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	assert_string_equal(holder_of(0), "");
}

/* --- who comes first ---------------------------------------------------------------- */

static void who_came_before_starts_before(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number = append_ticket(&ahead.owner, 2, "01");

	(void)state;
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.verdict.kind, VERDICT_LEASED);
	assert_int_equal(broker_position(&broker), 2);
	(void)number;
	other_end(&ahead);
	check_turn(BROKER_GRANTED);
}

static void the_head_is_not_overtaken_on_what_is_free(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number = append_ticket(&ahead.owner, 2, "01");

	(void)state;
	write_lease(0, &holder.owner, "0");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.verdict.kind, VERDICT_BEHIND);
	assert_int_equal(broker.verdict.behind, number);
	other_end(&ahead);
	other_end(&holder);
}

static void a_waiting_ticket_with_a_lease_counts_as_granted(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct lease lease = { .owner = ahead.owner, .gpus = fixture_set("0") };

	(void)state;
	/* stopped between its lease and its ticket: it wants no second GPU */
	lease.ticket = append_ticket(&ahead.owner, 1, "01");
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	assert_int_equal(hint(), lease.ticket); /* and yet it is not passed by the hint */
	other_end(&ahead);
}

/* --- the hint ----------------------------------------------------------------------- */

static void the_hint_stops_at_the_first_who_waits_and_lives(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t first;

	(void)state;
	pause_gpu(0, 1);
	(void)append_ticket(&dead, 1, "0");
	(void)append_ticket(&dead, 1, "0");
	first = append_ticket(&ahead.owner, 1, "0"); /* waits for what is no lease's */
	(void)append_ticket(&dead, 1, "0");
	join(1, "1");
	check_turn(BROKER_GRANTED);
	assert_int_equal(hint(), first);
	other_end(&ahead);
}

static void with_nobody_before_it_the_hint_passes_who_has_started(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);

	(void)state;
	(void)append_ticket(&dead, 1, "0");
	(void)append_ticket(&dead, 2, "01");
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_int_equal(hint(), broker.number + 1);
}

static void a_broken_record_is_not_passed_at_once(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t broken = append_ticket(&ahead.owner, 1, "0");

	(void)state;
	/* it may be a live ticket, half rewritten */
	assert_int_equal(
		pwrite(broker.queue.file.fd, "#", 1, (off_t)broken * RECORD_SIZE + 40),
		1);
	join(1, "1");
	check_turn(BROKER_GRANTED);
	assert_int_equal(hint(), broken);
	other_end(&ahead);
}

static void a_hint_that_has_passed_me_does_not_hang_me(void **state)
{
	struct ticket_header header = { .hint = 100 };

	(void)state;
	join(1, "01");
	assert_int_equal(ticket_write_header(&broker.queue.file, &header), 0);
	check_turn(BROKER_GRANTED);
}

/* --- waking up ---------------------------------------------------------------------- */

/* Waits for an event; false where there was none. */
static bool wait_for_event(void)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;

	assert_int_equal(broker_wait(&broker, until_ms), 0);
	return clock_boot_ms() < until_ms;
}

static bool is_woken_now(void)
{
	assert_int_equal(broker_wait(&broker, clock_boot_ms()), 0);
	for (size_t i = 0; i < broker.watch.count; i++)
		if (broker.watch.fds[i].revents)
			return true;
	return false;
}

static void the_end_of_a_lease_wakes(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_true(broker.wake_ms == INT64_MAX); /* behind a live lease no timer runs */
	assert_false(is_woken_now());
	other_kill(&holder);
	assert_true(is_woken_now());
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.verdict.state, GPU_LINGERING);
	assert_false(is_woken_now()); /* what has fired is not watched again */
	other_kill_heir(&holder);
	assert_true(is_woken_now());
	check_turn(BROKER_GRANTED);
}

static void the_end_of_who_is_to_start_first_wakes(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	(void)append_ticket(&ahead.owner, 2, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
	other_kill(&ahead);
	assert_true(wait_for_event());
	check_turn(BROKER_GRANTED);
}

static void the_end_of_the_blocked_head_wakes(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	write_lease(0, &holder.owner, "0");
	(void)append_ticket(&ahead.owner, 2, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
	other_kill(&ahead);
	assert_true(wait_for_event());
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	other_end(&holder);
}

static void so_does_that_of_one_that_is_not_the_first_blocked(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other first = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other head = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	write_lease(0, &holder.owner, "0");
	(void)append_ticket(&first.owner, GPUS + 1, "01"); /* which there are not */
	(void)append_ticket(&head.owner, 2, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
	other_kill(&head);
	assert_true(is_woken_now()); /* it is no timer */
	check_turn(BROKER_GRANTED);
	other_end(&first);
	other_end(&holder);
}

/* Where nothing is left for anybody, too. */
static void a_namesake_comes_first_though_no_gpu_is_wanted(void **state)
{
	struct request request = request_of(0, "01");
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other head = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other namesake = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number;

	(void)state;
	write_lease(0, &holder.owner, "01");
	(void)append_ticket(&head.owner, 1, "01");
	number = append_named(&namesake.owner, "nightly", 1, "01");
	request.is_singleton = true;
	text_copy(request.name, sizeof(request.name), "nightly");
	fixture_join(&broker, &request);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.verdict.kind, VERDICT_HELD);
	assert_int_equal(broker.verdict.held_by, number);
	assert_false(is_woken_now());
	other_kill(&namesake);
	assert_true(wait_for_event());
	check_turn(BROKER_GRANTED);
	other_end(&head);
	other_end(&holder);
}

/* What it used may need a moment to be free: the next probes come soon after each other again. */
static void the_end_of_a_stranger_begins_the_probes_anew(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other stranger = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	broker.view.gpus[0].state = GPU_EXTERNAL;
	broker.view.gpus[0].culprit = (uint32_t)stranger.pid;
	broker.probe_backoff = 5;
	assert_false(is_woken_now());
	assert_int_equal(broker.probe_backoff, 5);
	assert_int_equal(
		kill(stranger.pid, SIGKILL), 0); /* and nobody has reaped it yet */
	assert_true(wait_for_event());
	assert_int_equal(broker.probe_backoff, 0);
	other_end(&stranger);
	other_end(&holder);
}

static void who_was_dead_before_anybody_looked_is_no_obstacle(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);

	(void)state;
	/* its FIFO is still there, without a writer: poll alone would never tell */
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
	write_lease(0, &dead, "01");
	join(2, "01");
	check_turn(BROKER_GRANTED);
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
}

static void resume_and_ring(void)
{
	pause_gpu(0, 0);
	pause_gpu(1, 0);
	beacon_ring_all(&dir);
}

static void a_ring_in_the_middle_of_a_turn_is_not_lost(void **state)
{
	(void)state;
	pause_gpu(0, 1);
	pause_gpu(1, 1);
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_true(broker.wake_ms == INT64_MAX); /* a pause is ended by a ring alone */
	beacon_ring(&dir, broker.ticket.owner.token); /* one from before: drained */
	after_leases = resume_and_ring;
	check_turn(BROKER_WAITING); /* what it has read says paused */
	assert_null(after_leases);
	assert_true(is_woken_now());
	check_turn(BROKER_GRANTED);
}

static void bells_are_emptied(void **state)
{
	(void)state;
	pause_gpu(0, 1);
	pause_gpu(1, 1);
	join(1, "01");
	beacon_ring(&dir, broker.ticket.owner.token);
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
}

/* --- what is lost ------------------------------------------------------------------- */

static void who_lost_its_ticket_takes_another(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(unlinkat(dir.fd, "tickets", 0), 0);
	check_turn(BROKER_WAITING);
	assert_true(broker.has_rejoined);
	check_turn(BROKER_WAITING);
	assert_false(broker.has_rejoined);
	assert_int_equal(broker.number, 1);
	other_end(&holder);
	check_turn(BROKER_GRANTED);
}

static void fifos_that_were_removed_are_made_again(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	const char *token;

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	token = broker.ticket.owner.token;
	check_turn(BROKER_WAITING);
	beacon_remove(&dir, BEACON_LIVE, token);
	beacon_remove(&dir, BEACON_BELL, token);
	broker.is_damaged = true; /* as the wait finds after a while */
	check_turn(BROKER_WAITING);
	assert_false(broker.is_damaged);
	assert_int_equal(beacon_look(&dir, token, NULL), BEACON_HELD);
	assert_false(fixture_is_ready(broker.bell_fd, POLLIN));
	beacon_ring(&dir, token);
	assert_true(fixture_is_ready(broker.bell_fd, POLLIN));
	other_end(&holder);
}

static void who_leaves_takes_its_fifos_along(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	broker_leave(&broker);
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, broker.ticket.owner.token));
	assert_false(fixture_exists(dir.fd, BEACON_BELL, broker.ticket.owner.token));
	other_end(&holder);
}

/* --- a damaged lease file ----------------------------------------------------------- */

static void damage(unsigned slot)
{
	assert_int_equal(pwrite(files[slot].fd, "#", 1, RECORD_SIZE + 300), 1);
}

static void a_lost_lease_is_waited_for_without_probes(void **state)
{
	(void)state;
	rival = other_start(dir.fd, OTHER_LIVE);
	write_lease(0, &rival.owner, "0");
	damage(0);
	join(1, "0");
	check_turn(BROKER_WAITING); /* not probing */
	assert_int_equal(broker.verdict.kind, VERDICT_GPU);
	assert_int_equal(broker.verdict.state, GPU_UNKNOWN);
	assert_true(broker.wake_ms >= broker.now_ms + 1000);
	assert_true(broker.wake_ms <= broker.now_ms + 30000);
	other_end(&rival);
	/* its end is an event */
	broker.wake_ms = INT64_MAX;
	assert_int_equal(broker_wait(&broker, clock_boot_ms() + 20000), 0);
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(0), broker.ticket.owner.token);
	assert_true(clock_boot_ms() < broker.now_ms + 10000);
}

static void damage_gpu_0(void)
{
	damage(0);
}

static void damage_in_the_last_moment_counts(void **state)
{
	(void)state;
	rival = other_start(dir.fd, OTHER_LIVE); /* a job that nobody knows */
	join(1, "0");
	before_lock = damage_gpu_0;
	check_turn(BROKER_WAITING);
	assert_null(before_lock);
	assert_int_equal(broker.verdict.state, GPU_UNKNOWN);
	other_end(&rival);
	check_turn(BROKER_GRANTED);
}

/* Between the request and the ticket nothing kept the slot. */
static void a_slot_that_became_another_gpus_is_not_taken_for_the_first(void **state)
{
	const struct request request = {
		.gpus = 1, .share_percent = 100, .allow = fixture_set("0")
	};
	char first[UUID_SIZE], second[UUID_SIZE];

	(void)state;
	text_copy(first, sizeof(first), broker.view.gpus[0].file.gpu.uuid);
	text_copy(second, sizeof(second), broker.view.gpus[1].file.gpu.uuid);
	fixture_join(&broker, &request);
	assert_int_equal(lease_reuse_slot(&dir, 0, second), 0);
	assert_int_equal(lease_reuse_slot(&dir, 1, first), 0);
	fixture_check_turn(&broker, BROKER_WAITING);
	assert_true(gpuset_is_empty(&broker.ticket.request.allow));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(alone_a_job_starts_at_once),
		TEST(who_was_quicker_keeps_its_gpus),
		TEST(a_lease_of_several_gpus_shows_in_the_one_that_is_read),
		TEST(a_pause_in_the_last_moment_counts),
		TEST(a_cancel_in_the_last_moment_counts),
		TEST(in_the_last_moment_before_the_next_attempt_too),
		TEST(what_was_said_before_the_new_ticket_counts),
		TEST(who_is_tried_again_later_waits_for_that),
		TEST(a_locked_gpu_is_left_for_another),
		TEST(who_came_before_starts_before),
		TEST(the_head_is_not_overtaken_on_what_is_free),
		TEST(a_waiting_ticket_with_a_lease_counts_as_granted),
		TEST(the_hint_stops_at_the_first_who_waits_and_lives),
		TEST(with_nobody_before_it_the_hint_passes_who_has_started),
		TEST(a_broken_record_is_not_passed_at_once),
		TEST(a_hint_that_has_passed_me_does_not_hang_me),
		TEST(the_end_of_a_lease_wakes),
		TEST(the_end_of_who_is_to_start_first_wakes),
		TEST(the_end_of_the_blocked_head_wakes),
		TEST(so_does_that_of_one_that_is_not_the_first_blocked),
		TEST(a_namesake_comes_first_though_no_gpu_is_wanted),
		TEST(the_end_of_a_stranger_begins_the_probes_anew),
		TEST(who_was_dead_before_anybody_looked_is_no_obstacle),
		TEST(a_ring_in_the_middle_of_a_turn_is_not_lost),
		TEST(bells_are_emptied),
		TEST(who_lost_its_ticket_takes_another),
		TEST(fifos_that_were_removed_are_made_again),
		TEST(who_leaves_takes_its_fifos_along),
		TEST(a_lost_lease_is_waited_for_without_probes),
		TEST(damage_in_the_last_moment_counts),
		TEST(a_slot_that_became_another_gpus_is_not_taken_for_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
