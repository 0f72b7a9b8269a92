/*
 * A broker's turns on two simulated GPUs.  Other processes act in the middle of a turn: between
 * planning and locking, and between reading and waiting.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>

#include "clock.h"
#include "commit.h"
#include "draw.h"
#include "fixture_broker.h"
#include "sim_memory.h"

enum { GPUS = 2 };

static const struct prober_config config = SIMULATED(GPUS);

static struct statedir dir;
static struct broker broker;
static struct lease_file files[GPUS]; /* as other processes have them open */

/* --- what others do in the middle --------------------------------------------------- */

static void (*before_lock)(
	void); /* called once, when the planned files are about to be locked */
static void (*after_leases)(void); /* called once, when the leases have been read */

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

	/* the last of the lease files: after it only the liveness of owners is read */
	if (after_leases && fstat(fd, &st) == 0 &&
		fstat(files[GPUS - 1].fd, &last) == 0 && st.st_ino == last.st_ino)
		call_once(&after_leases);
	return n;
}

/* --- a directory with two GPUs ------------------------------------------------------ */

static int set_up(struct scratch *here)
{
	(void)here;
	before_lock = after_leases = NULL;
	if (fixture_broker_open(&broker, &dir, &config) < 0)
		return -1;
	return fixture_open_files(dir.fd, files, GPUS);
}

static void tear_down(void)
{
	fixture_release_files(files, GPUS);
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

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

/* The token of the lease in the file of @slot; "": there is none. */
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

/* Appends a ticket of @owner with that name, for @gpus of @slots. */
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
	assert_false(fixture_exists(dir.fd, FIFO_BELL, ticket.owner.token));
	assert_int_equal(live_fifo_look(&dir, ticket.owner.token, NULL), LIVE_FIFO_HELD);
	for (unsigned slot = 0; slot < GPUS; slot++)
		assert_int_equal(lease_lock(&files[slot], 0), 0); /* no lock is left */
}

static struct other rival;

static void rival_takes_gpu_1(void)
{
	write_lease(1, &rival.owner, "1");
}

static void gpus_that_another_process_took_first_stay_taken(void **state)
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

static void a_lease_of_several_gpus_counts_from_one_record(void **state)
{
	(void)state;
	rival = other_start(dir.fd, OTHER_LIVE);
	/* its owner is still writing it: the file of GPU 0 does not have it yet */
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

static void rival_is_armed(void)
{
	after_leases = rival_takes_gpu_1;
}

/* Another process takes a GPU between the last reading of the leases and our own lease. */
static void no_limit_is_exceeded_by_two_at_once(void **state)
{
	static const struct plan_limits limits[] = { { .all_percent = 100 },
		{ .all_leases = 1 }, { .all_percent = 200 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		bool is_allowed = limits[i].all_percent == 200;

		rival = other_start(dir.fd, OTHER_LIVE);
		broker.view.limits = limits[i];
		if (i == 0)
			join(1, "0");
		before_lock =
			rival_is_armed; /* the next reading is that under the lock */
		check_turn(is_allowed ? BROKER_GRANTED : BROKER_WAITING);
		assert_null(after_leases);
		assert_string_equal(holder_of(1), rival.owner.token);
		assert_string_equal(
			holder_of(0), is_allowed ? broker.ticket.owner.token : "");
		assert_true(is_allowed || broker.result.verdict.kind == VERDICT_LIMIT);
		other_end(&rival);
	}
}

static void a_pause_at_the_last_moment_counts(void **state)
{
	(void)state;
	join(1, "0");
	before_lock = pause_gpu_0;
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_GPU);
	assert_int_equal(broker.result.verdict.state, GPU_PAUSED);
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

static void a_cancel_at_the_last_moment_counts(void **state)
{
	(void)state;
	join(1, "01");
	before_lock = cancel_me;
	check_turn(BROKER_CANCELLED);
	assert_int_equal(broker.result.cancelled_by, getuid());
	assert_string_equal(holder_of(0), "");
	assert_int_equal(lease_lock(&files[0], 0), 0);
}

static void try_again(int64_t not_before_ms)
{
	struct request request = broker.ticket.request;
	struct why why = WHY_NONE;

	assert_int_equal(broker_requeue(&broker, &request, not_before_ms, &why), 0);
}

static void a_cancel_at_the_last_moment_counts_in_a_later_attempt(void **state)
{
	(void)state;
	join(1, "01");
	check_turn(BROKER_GRANTED);
	try_again(0);
	before_lock = cancel_me;
	check_turn(BROKER_CANCELLED);
	assert_string_equal(holder_of(1), "");
}

static void a_cancel_before_the_new_ticket_counts(void **state)
{
	struct ticket_header header;

	(void)state;
	join(0, "01"); /* it needs no turn, so it has never read controls */
	cancel_me();
	ticket_read_header(&broker.queue.file, &header);
	header.hint = broker.number + 2; /* other processes have moved the hint past it */
	assert_int_equal(ticket_write_header(&broker.queue.file, &header), 0);
	try_again(0);
	check_turn(BROKER_CANCELLED);
}

static void a_ticket_waits_until_the_time_of_its_next_attempt(void **state)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		int64_t soon_ms = clock_boot_ms() + 3600 * 1000;

		fixture_again(state);
		join(wanted, "01");
		if (wanted)
			check_turn(BROKER_GRANTED);
		try_again(soon_ms);
		check_turn(BROKER_WAITING);
		assert_int_equal(broker.result.held.hold, DEPENDENCY_UNTIL);
		assert_int_equal(broker.result.verdict.start_ms, soon_ms);
		assert_int_equal(broker.state.wake_ms, soon_ms);
		assert_true(broker.bell_fd >= 0); /* it can be cancelled */
		cancel_me();
		check_turn(BROKER_CANCELLED);
	}
}

/* Appends that @uid lets our job go. */
static void release_me(uint32_t uid)
{
	struct control control = {
		.verb = CONTROL_RELEASE, .ticket = broker_job(&broker), .uid = uid
	};

	text_copy(control.boot, sizeof(control.boot), dir.boot);
	assert_int_equal(ticket_append_control(&broker.queue.file, &control), 0);
}

/* Checks that our job has a new ticket after @other, and that its first ticket leads there. */
static void check_joined_anew(uint64_t first, uint64_t other)
{
	struct ticket ticket;

	assert_int_equal(broker_job(&broker), first);
	assert_true(broker.number > other);
	assert_int_equal(ticket_read(&broker.queue.file, first, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.state, TICKET_LEFT);
	assert_int_equal(ticket.latest, broker.number);
	assert_int_equal(
		ticket_read(&broker.queue.file, broker.number, &ticket), TICKET_RECORD);
	assert_int_equal(ticket.job, first);
	assert_int_equal(ticket.not_before_ms, 0);
	assert_int_equal(ticket.attempt, 1);
	assert_string_equal(ticket.owner.token, broker.ticket.owner.token);
}

static void a_held_job_comes_when_it_is_released(void **state)
{
	for (uint32_t wanted = 0; wanted < 2; wanted++) {
		struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
		uint64_t first, number;

		fixture_again(state);
		broker.input.is_held = true;
		join(wanted, "01");
		first = broker.number;
		check_turn(BROKER_WAITING);
		assert_int_equal(broker.result.held.hold, DEPENDENCY_UNTIL);
		assert_true(broker.result.verdict.start_ms == TICKET_HELD);
		assert_true(broker.state.wake_ms == INT64_MAX);
		release_me((uint32_t)getuid() + 1); /* another user */
		check_turn(BROKER_WAITING);
		assert_int_equal(broker.number, first);
		number = append_ticket(&other.owner, 2, "01");
		release_me((uint32_t)getuid());
		/* the job that came meanwhile goes first */
		check_turn(wanted ? BROKER_WAITING : BROKER_GRANTED);
		check_joined_anew(first, number);
		other_end(&other);
		if (wanted)
			check_turn(BROKER_GRANTED);
		assert_string_equal(
			holder_of(0), wanted ? broker.ticket.owner.token : "");
	}
}

/* Cancels our job, and moves the hint past that, as if our ticket waited no more. */
static void cancel_me_before_the_hint(void)
{
	struct ticket_header header;
	uint64_t end;

	cancel_me();
	ticket_read_header(&broker.queue.file, &header);
	assert_int_equal(ticket_end(&broker.queue.file, &end), 0);
	header.hint = end;
	assert_int_equal(ticket_write_header(&broker.queue.file, &header), 0);
}

static void a_cancel_before_a_released_job_joins_anew_counts(void **state)
{
	(void)state;
	broker.input.is_held = true;
	join(1, "01");
	check_turn(BROKER_WAITING);
	release_me((uint32_t)getuid());
	after_leases = cancel_me_before_the_hint;
	check_turn(BROKER_CANCELLED);
	assert_null(after_leases);
}

static void a_job_that_begins_later_comes_then(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	int64_t soon_ms = clock_boot_ms() + 3600 * 1000;
	uint64_t first, number;

	(void)state;
	broker.input.begin_ms = soon_ms;
	join(1, "01");
	first = broker.number;
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.start_ms, soon_ms);
	assert_int_equal(broker.result.verdict.held_by, 0);
	assert_int_equal(broker.state.wake_ms, soon_ms);
	number = append_ticket(&other.owner, 2, "01");
	/* as if the time had come */
	broker.ticket.not_before_ms = clock_boot_ms();
	check_turn(BROKER_WAITING);
	check_joined_anew(first, number);
	other_end(&other);
	check_turn(BROKER_GRANTED);
	/* a further attempt, too, waits for its own time alone */
	try_again(soon_ms);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker_job(&broker), first);
	assert_int_equal(broker.result.verdict.held_by, 2);
	number = broker.number;
	broker.ticket.not_before_ms = clock_boot_ms();
	check_turn(BROKER_WAITING); /* which writes it into the record */
	check_turn(BROKER_GRANTED);
	assert_int_equal(broker.number, number);
}

static void a_released_job_still_begins_at_its_time(void **state)
{
	int64_t soon_ms = clock_boot_ms() + 3600 * 1000;
	uint64_t first;

	(void)state;
	broker.input.is_held = true;
	broker.input.begin_ms = soon_ms;
	join(1, "01");
	first = broker.number;
	check_turn(BROKER_WAITING);
	release_me(0);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.number, first);
	assert_int_equal(broker.result.verdict.start_ms, soon_ms);
}

static void instead_of_a_locked_gpu_another_one_is_taken(void **state)
{
	(void)state;
	assert_int_equal(lease_lock(&files[0], 0),
		0); /* as if the holder of the lock were stopped */
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	assert_string_equal(holder_of(0), "");
}

/* --- the order of tickets ---------------------------------------------------------------- */

static void an_earlier_ticket_starts_first(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number = append_ticket(&ahead.owner, 2, "01");

	(void)state;
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_LEASED);
	assert_int_equal(broker_position(&broker), 2);
	(void)number;
	other_end(&ahead);
	check_turn(BROKER_GRANTED);
}

/* The lease of this job in the file of @slot. */
static struct lease own_lease(unsigned slot)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease lease;
	unsigned records;

	assert_int_equal(lease_read(&files[slot], raw, &records), 0);
	assert_int_equal(lease_decode(raw, 1, &lease), LEASE_RECORD);
	assert_string_equal(lease.owner.token, broker.ticket.owner.token);
	return lease;
}

static void who_acts_before_a_ticket_ahead_says_so_in_its_lease(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	append_ticket(&ahead.owner, 1, "01");
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_int_equal(own_lease(1).early, LEASE_EARLY);
	assert_int_equal(broker_survey(&broker), 0);
	assert_int_equal(broker.view.facts.early_count, 1);
	assert_int_equal(broker.view.facts.early[0].place.number, broker.number);
	assert_int_equal(broker.view.facts.early[0].percent, 100);
	assert_int_equal(broker.view.plan[1].uses[0].early, 1);
	other_end(&ahead);
}

static void who_is_first_is_not_early(void **state)
{
	(void)state;
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_int_equal(own_lease(0).early, 0);
	assert_int_equal(broker_survey(&broker), 0);
	assert_int_equal(broker.view.facts.early_count, 0);
}

static void free_gpus_that_the_head_needs_are_not_taken(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number = append_ticket(&ahead.owner, 2, "01");

	(void)state;
	write_lease(0, &holder.owner, "0");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_BEHIND);
	assert_int_equal(broker.result.verdict.behind, number);
	other_end(&ahead);
	other_end(&holder);
}

static void a_waiting_ticket_with_a_lease_counts_as_granted(void **state)
{
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct lease lease = { .owner = ahead.owner, .gpus = fixture_set("0") };

	(void)state;
	/* its owner is stopped between writing its lease and its ticket: it wants no second GPU */
	lease.ticket = append_ticket(&ahead.owner, 1, "01");
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	join(1, "01");
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(1), broker.ticket.owner.token);
	assert_int_equal(hint(), lease.ticket); /* and yet the hint does not pass it */
	other_end(&ahead);
}

/* --- the hint ----------------------------------------------------------------------- */

static void the_hint_stops_at_the_first_live_waiting_ticket(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other ahead = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t first;

	(void)state;
	pause_gpu(0, 1);
	(void)append_ticket(&dead, 1, "0");
	(void)append_ticket(&dead, 1, "0");
	first = append_ticket(
		&ahead.owner, 1, "0"); /* it waits for a GPU that is not leased */
	(void)append_ticket(&dead, 1, "0");
	join(1, "1");
	check_turn(BROKER_GRANTED);
	assert_int_equal(hint(), first);
	other_end(&ahead);
}

static void the_hint_passes_a_first_ticket_that_has_started(void **state)
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
	/* it may be a live ticket that is just being rewritten */
	assert_int_equal(
		pwrite(broker.queue.file.fd, "#", 1, (off_t)broken * RECORD_SIZE + 40),
		1);
	join(1, "1");
	check_turn(BROKER_GRANTED);
	assert_int_equal(hint(), broken);
	other_end(&ahead);
}

static void a_hint_after_the_own_ticket_does_not_hang_it(void **state)
{
	struct ticket_header header = { .hint = 100 };

	(void)state;
	join(1, "01");
	assert_int_equal(ticket_write_header(&broker.queue.file, &header), 0);
	check_turn(BROKER_GRANTED);
}

/* --- waking up ---------------------------------------------------------------------- */

/* Waits for an event; false: there was none. */
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

static void the_end_of_a_lease_ends_the_wait(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	/* while the ticket waits for a live lease, no timer runs */
	assert_true(broker.state.wake_ms == INT64_MAX);
	assert_false(is_woken_now());
	other_kill(&holder);
	assert_true(is_woken_now());
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.state, GPU_LINGERING);
	assert_false(
		is_woken_now()); /* a pidfd that is readable already is not watched again */
	other_kill_heir(&holder);
	assert_true(is_woken_now());
	check_turn(BROKER_GRANTED);
}

static void the_end_of_a_ticket_that_may_start_ends_the_wait(void **state)
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

static void the_end_of_the_blocked_head_ends_the_wait(void **state)
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

static void the_end_of_a_later_head_ends_the_wait(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other first = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other head = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);

	(void)state;
	write_lease(0, &holder.owner, "0");
	(void)append_ticket(&first.owner, GPUS + 1, "01"); /* more than there are */
	(void)append_ticket(&head.owner, 2, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
	other_kill(&head);
	assert_true(is_woken_now()); /* by an event, not by a timer */
	check_turn(BROKER_GRANTED);
	other_end(&first);
	other_end(&holder);
}

/* Also when all GPUs are given away and the plan is cut short. */
static void a_singleton_waits_for_its_namesake_even_without_gpus(void **state)
{
	struct request request = request_of(0, "01");
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other head = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other singleton = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	uint64_t number;

	(void)state;
	write_lease(0, &holder.owner, "01");
	(void)append_ticket(&head.owner, 1, "01");
	number = append_named(&singleton.owner, "nightly", 1, "01");
	request.is_singleton = true;
	text_copy(request.name, sizeof(request.name), "nightly");
	fixture_join(&broker, &request);
	check_turn(BROKER_WAITING);
	assert_int_equal(broker.result.verdict.kind, VERDICT_HELD);
	assert_int_equal(broker.result.verdict.held_by, number);
	assert_false(is_woken_now());
	other_kill(&singleton);
	assert_true(wait_for_event());
	check_turn(BROKER_GRANTED);
	other_end(&head);
	other_end(&holder);
}

/* Its GPU may need a moment to become free, so the next probes follow at short intervals again. */
static void the_end_of_a_foreign_process_starts_a_probe(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);
	struct other stranger = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	broker.view.gpus[0].state = GPU_EXTERNAL;
	broker.view.gpus[0].culprit = (uint32_t)stranger.pid;
	broker.state.probe_backoff = 5;
	assert_false(is_woken_now());
	assert_int_equal(broker.state.probe_backoff, 5);
	assert_int_equal(kill(stranger.pid, SIGKILL), 0); /* it is not reaped yet */
	assert_true(wait_for_event());
	assert_int_equal(broker.state.probe_backoff, 0);
	other_end(&stranger);
	other_end(&holder);
}

/* Other tickets do not wait for it there, and a later one is woken at once. */
static void a_gpu_that_its_own_thresholds_refuse_is_left_to_others(void **state)
{
	static const struct usage_policy own = { .idle_mib = 100, .settle_ms = 60000 };
	struct gpuset used = fixture_set("0"), left = fixture_set("1");
	struct sim_memory memory = SIM_MEMORY_INIT;
	struct other later = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct ticket ticket;
	char name[64];
	int bell_fd;

	(void)state;
	assert_int_equal(sim_memory_begin(&dir, &used, &memory), 0);
	assert_int_equal(sim_memory_show(&memory, 150, 0), 0);
	broker.input.own_usage = &own;
	join(2, "01");
	append_ticket(&later.owner, 1, "0");
	(void)snprintf(name, sizeof(name), "bell/%s", later.owner.token);
	bell_fd = openat(dir.fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (unsigned i = 0; i < 2; i++) {
		check_turn(BROKER_WAITING);
		assert_int_equal(ticket_read(&broker.queue.file, broker.number, &ticket),
			TICKET_RECORD);
		assert_true(gpuset_equals(&ticket.request.allow, &left));
		assert_string_equal(ticket.stuck, "own:0");
		assert_true(gpuset_equals(&broker.result.refused, &used));
		assert_int_equal(broker.view.plan[0].state, GPU_FREE);
		/* only the first turn has told something new */
		assert_true(fixture_is_ready(bell_fd, POLLIN) == (i == 0));
		bell_drain(bell_fd);
	}
	close_fd(&bell_fd);
	sim_memory_end(&memory);
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(0), broker.ticket.owner.token);
	other_end(&later);
}

static void an_owner_that_was_dead_from_the_start_is_no_obstacle(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);

	(void)state;
	/* its FIFO is still there, without a writer: poll(2) alone would never report that */
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
	write_lease(0, &dead, "01");
	join(2, "01");
	check_turn(BROKER_GRANTED);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
}

static void resume_and_ring(void)
{
	pause_gpu(0, 0);
	pause_gpu(1, 0);
	bell_ring_all(&dir);
}

/* A record that makes a GPU want a new probe, however new the last one is. */
static void who_does_not_wait_looks_twice_at_most(void **state)
{
	unsigned looks = 0;

	(void)state;
	join(1, "01");
	broker.view.has_probe =
		false; /* that of the survey may be as new as the ticket */
	while (looks < 9 && broker_looks_again(&broker, BROKER_PROBING)) {
		broker.view.has_probe = true;
		broker.view.probe.started_ms = broker.ticket.since_ms + ++looks;
	}
	assert_int_equal(looks, 2);
	assert_false(broker_looks_again(&broker, BROKER_GRANTED));
}

static void a_ring_in_the_middle_of_a_turn_is_not_lost(void **state)
{
	(void)state;
	pause_gpu(0, 1);
	pause_gpu(1, 1);
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_true(broker.state.wake_ms ==
		    INT64_MAX); /* only a ring ends the wait for a paused GPU */
	bell_ring(&dir, broker.ticket.owner.token); /* an earlier ring: it is drained */
	after_leases = resume_and_ring;
	check_turn(BROKER_WAITING); /* when it was read the GPU was still paused */
	assert_null(after_leases);
	assert_true(is_woken_now());
	check_turn(BROKER_GRANTED);
}

/* Appends a ticket for one of the two GPUs and so long. */
static void append_limited(const struct owner *owner, int64_t limit_ms)
{
	struct ticket ticket = { .state = TICKET_WAITING,
		.owner = *owner,
		.request = request_of(1, "01"),
		.turn_ms = clock_boot_ms() };
	uint64_t number;

	ticket.request.limit_ms = limit_ms;
	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	assert_int_equal(ticket_append(&broker.queue.file, &ticket, &number), 0);
}

/*
 * Our job of higher priority takes one GPU for four hours, so the ticket that needs both waits for
 * four hours, and a job of two hours may pass it.
 */
static void a_start_rings_those_that_it_lets_start(void **state)
{
	enum { HOUR_MS = 3600000 };
	struct request request = request_of(1, "01");
	struct other head = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other brief = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct other lengthy = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	const struct other *others[] = { &head, &brief, &lengthy };

	(void)state;
	append_ticket(&head.owner, 2, "01");
	append_limited(&lengthy.owner, INT64_C(5) * HOUR_MS);
	append_limited(&brief.owner, INT64_C(2) * HOUR_MS);
	request.priority = 1;
	request.limit_ms = INT64_C(4) * HOUR_MS;
	fixture_join(&broker, &request);
	check_turn(BROKER_GRANTED);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char name[64];
		int fd;

		(void)snprintf(name, sizeof(name), "bell/%s", others[i]->owner.token);
		fd = openat(dir.fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_true(fixture_is_ready(fd, POLLIN) == (others[i] == &brief));
		close_fd(&fd);
	}
	other_end(&head);
	other_end(&brief);
	other_end(&lengthy);
}

static void bells_are_emptied(void **state)
{
	(void)state;
	pause_gpu(0, 1);
	pause_gpu(1, 1);
	join(1, "01");
	bell_ring(&dir, broker.ticket.owner.token);
	check_turn(BROKER_WAITING);
	assert_false(is_woken_now());
}

/* --- what is lost ------------------------------------------------------------------- */

static void a_lost_ticket_is_replaced(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	assert_int_equal(unlinkat(dir.fd, "tickets", 0), 0);
	check_turn(BROKER_WAITING);
	assert_true(broker.result.has_rejoined);
	check_turn(BROKER_WAITING);
	assert_false(broker.result.has_rejoined);
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
	fifo_remove(&dir, FIFO_LIVE, token);
	fifo_remove(&dir, FIFO_BELL, token);
	broker.state.is_damaged = true; /* as broker_wait() finds after 15 s */
	check_turn(BROKER_WAITING);
	assert_false(broker.state.is_damaged);
	assert_int_equal(live_fifo_look(&dir, token, NULL), LIVE_FIFO_HELD);
	assert_false(fixture_is_ready(broker.bell_fd, POLLIN));
	bell_ring(&dir, token);
	assert_true(fixture_is_ready(broker.bell_fd, POLLIN));
	other_end(&holder);
}

static void leaving_removes_the_fifos(void **state)
{
	struct other holder = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_lease(0, &holder.owner, "01");
	join(1, "01");
	check_turn(BROKER_WAITING);
	broker_leave(&broker);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, broker.ticket.owner.token));
	assert_false(fixture_exists(dir.fd, FIFO_BELL, broker.ticket.owner.token));
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
	assert_int_equal(broker.result.verdict.kind, VERDICT_GPU);
	assert_int_equal(broker.result.verdict.state, GPU_UNKNOWN);
	assert_true(broker.state.wake_ms >= broker.state.now_ms + 1000);
	assert_true(broker.state.wake_ms <= broker.state.now_ms + 30000);
	other_end(&rival);
	/* the end of the unknown job is an event */
	broker.state.wake_ms = INT64_MAX;
	assert_int_equal(broker_wait(&broker, clock_boot_ms() + 20000), 0);
	check_turn(BROKER_GRANTED);
	assert_string_equal(holder_of(0), broker.ticket.owner.token);
	assert_true(clock_boot_ms() < broker.state.now_ms + 10000);
}

/* --- two singletons ----------------------------------------------------------------- */

static struct broker other;
static int other_turn;
static unsigned reads_left; /* so many readings of the leases, then the other one comes */

static void join_singleton(
	struct broker *of, uint32_t gpus, const char *slots, int32_t priority)
{
	struct request request = request_of(gpus, slots);

	text_copy(request.name, sizeof(request.name), "same");
	request.is_singleton = 1;
	request.priority = priority;
	fixture_join(of, &request);
}

/* The other one overtakes the first, and takes a turn. */
static void another_singleton_comes(void)
{

	if (--reads_left) {
		after_leases = another_singleton_comes;
		return;
	}
	join_singleton(&other, broker.ticket.request.gpus, "1", 1);
	other_turn = broker_turn(&other);
}

static void one_of_two_singletons_starts_whenever_the_second_comes(void **state)
{
	unsigned seen = 0;

	for (unsigned at = 1, gpus = 0; gpus < 2; at++) {
		int first;

		fixture_again(state);
		assert_int_equal(fixture_broker_open(&other, &dir, &config), 0);
		join_singleton(&broker, gpus, "0", 0);
		reads_left = at;
		after_leases = another_singleton_comes;
		first = broker_turn(&broker);
		if (reads_left) { /* the turn was over before */
			after_leases = NULL;
			assert_int_equal(first, BROKER_GRANTED);
			at = 0;
			gpus++;
		} else {
			seen++;
			/* whichever was first, the other one waits for its end */
			if (first == BROKER_GRANTED) {
				assert_int_equal(other_turn, BROKER_WAITING);
				fixture_check_turn(&other, BROKER_WAITING);
				assert_int_equal(
					other.result.held.hold, DEPENDENCY_SINGLETON);
			} else {
				assert_int_equal(first, BROKER_WAITING);
				assert_int_equal(other_turn, BROKER_GRANTED);
				assert_int_equal(
					broker.result.held.hold, DEPENDENCY_SINGLETON);
			}
		}
		broker_release(&other);
	}
	assert_true(
		seen >=
		4); /* in the first reading and with the locks held, with GPUs and without */
}

/* Its owner may be stopped: the waiter does not spin, and others pass it over. */
static void a_singleton_waits_while_its_name_is_locked(void **state)
{
	struct ticket_file file = TICKET_FILE_NONE;

	(void)state;
	assert_int_equal(ticket_open(dir.fd, &file), 0);
	join_singleton(&broker, 1, "0", 0);
	assert_int_equal(ticket_lock_name(&file, broker.ticket.owner.uid, "same", 0), 0);
	check_turn(BROKER_WAITING);
	assert_true(broker.state.wake_ms > clock_boot_ms() + 500);
	assert_string_not_equal(broker.ticket.stuck, "");
	assert_string_equal(holder_of(0), "");

	ticket_unlock_name(&file, broker.ticket.owner.uid, "same");
	assert_int_equal(ticket_lock_name(&file, broker.ticket.owner.uid, "else", 0), 0);
	check_turn(BROKER_GRANTED);
	/* which has its lease, and keeps the lock no longer */
	assert_int_equal(ticket_lock_name(&file, broker.ticket.owner.uid, "same", 0), 0);
	ticket_release(&file);
}

/* --- the lease files are deleted ---------------------------------------------------- */

/* Deletes all lease files; then the other job takes a turn with new ones. */
static void another_job_takes_the_gpu(void)
{
	struct request request = broker.ticket.request;
	char name[64];

	if (--reads_left) {
		after_leases = another_job_takes_the_gpu;
		return;
	}
	for (unsigned slot = 0; slot < GPUS; slot++) {
		(void)snprintf(name, sizeof(name), "%s.lease", files[slot].gpu.uuid);
		assert_int_equal(unlinkat(dir.gpu_fd, name, 0), 0);
		(void)snprintf(name, sizeof(name), "slot.%u", slot);
		assert_int_equal(unlinkat(dir.gpu_fd, name, 0), 0);
	}
	assert_int_equal(fixture_broker_open(&other, &dir, &config), 0);
	request.priority = 1; /* it does not wait for the first */
	fixture_join(&other, &request);
	other_turn = broker_turn(&other);
}

static void no_gpu_is_given_twice_whenever_the_lease_files_are_deleted(void **state)
{
	for (unsigned at = 1;; at++) {
		struct request request = request_of(2, "01");
		int first;

		fixture_again(state);
		fixture_join(&broker, &request);
		reads_left = at;
		after_leases = another_job_takes_the_gpu;
		first = broker_turn(&broker);
		after_leases = NULL;
		if (reads_left)
			break;
		assert_false(first == BROKER_GRANTED && other_turn == BROKER_GRANTED);
		broker_release(&other);
	}
}

static void damage_gpu_0(void)
{
	damage(0);
}

static void damage_at_the_last_moment_counts(void **state)
{
	(void)state;
	rival = other_start(
		dir.fd, OTHER_LIVE); /* a job without a lease that can be read */
	join(1, "0");
	before_lock = damage_gpu_0;
	check_turn(BROKER_WAITING);
	assert_null(before_lock);
	assert_int_equal(broker.result.verdict.state, GPU_UNKNOWN);
	other_end(&rival);
	check_turn(BROKER_GRANTED);
}

/* --- a choice of GPUs --------------------------------------------------------------- */

enum { MANY = 5, CHOICES = 60 };

static struct lease_file of_gpus[MANY]; /* by the slots of the beginning */

/* Lets the links of the slots lead to the GPUs in another order. */
static void mix_links(uint64_t *seed)
{
	unsigned order[MANY] = { 0, 1, 2, 3, 4 };

	for (unsigned left = MANY; left > 1; left--) {
		unsigned at = draw(seed, left), last = order[left - 1];

		order[left - 1] = order[at];
		order[at] = last;
	}
	for (unsigned slot = 0; slot < MANY; slot++)
		assert_int_equal(
			lease_reuse_slot(&dir, slot, of_gpus[order[slot]].gpu.uuid), 0);
}

static void pause_all(uint32_t is_paused)
{
	for (unsigned i = 0; i < MANY; i++) {
		static char raw[LEASE_FILE_BYTES];
		unsigned records;

		assert_int_equal(lease_read(&of_gpus[i], raw, &records), 0);
		of_gpus[i].gpu.is_paused = is_paused;
		assert_int_equal(lease_write_gpu(&of_gpus[i], &of_gpus[i].gpu), 0);
	}
}

/* Draws a request that can start: some of the GPUs, and of these perhaps a preferred one. */
static struct request draw_choice(uint64_t *seed, int *ret_best)
{
	struct request request = { .share_percent = 100 };

	do
		request.allow.bits[0] = draw(seed, 1u << MANY);
	while (gpuset_is_empty(&request.allow));
	request.gpus = 1 + draw(seed, gpuset_count(&request.allow));
	*ret_best = -1;
	if (draw(seed, 2)) {
		*ret_best = gpuset_next(&request.allow, draw(seed, MANY));
		/* a slot that no GPU has may stand before it */
		if (*ret_best >= 0)
			(void)snprintf(request.prefer, sizeof(request.prefer), "%s%02x",
				draw(seed, 2) ? "7f" : "", (unsigned)*ret_best);
	}
	/* every GPU, or so many that they are named by no list */
	if (gpuset_count(&request.allow) == MANY && draw(seed, 2))
		request.allow = GPUSET_ALL;
	return request;
}

/* Checks that the GPUs of the lease are @request's, by their UUIDs. */
static void check_chosen(const struct request *request, int best)
{
	const struct gpuset *gpus = &broker.result.verdict.gpus;
	bool has_best = false;

	assert_int_equal(gpuset_count(gpus), request->gpus);
	gpuset_for_each (slot, gpus) {
		const char *uuid = broker.view.gpus[slot].file.gpu.uuid;
		unsigned i = 0;

		while (i < MANY && strcmp(of_gpus[i].gpu.uuid, uuid) != 0)
			i++;
		assert_true(i < MANY && gpuset_has(&request->allow, i));
		has_best = has_best || (int)i == best;
	}
	assert_true(best < 0 || has_best);
}

/* The links of the slots come back in another order while the job waits, and while it runs. */
static void a_choice_of_gpus_outlives_a_change_of_slots(void **state)
{
	static const struct prober_config many = SIMULATED(MANY);
	uint64_t seed = 20261;

	for (unsigned i = 0; i < CHOICES; i++) {
		struct request request;
		struct why why = WHY_NONE;
		struct gpuset allow;
		int best;

		fixture_again(state);
		broker_release(&broker);
		assert_int_equal(fixture_broker_open(&broker, &dir, &many), 0);
		assert_int_equal(fixture_open_files(dir.fd, of_gpus, MANY), 0);
		request = draw_choice(&seed, &best);
		pause_all(1);
		if (i % 3 == 0) /* between the choice and the ticket */
			mix_links(&seed);
		fixture_join(&broker, &request);
		check_turn(BROKER_WAITING);
		mix_links(&seed);
		check_turn(BROKER_WAITING);
		mix_links(&seed);
		pause_all(0);
		check_turn(BROKER_GRANTED);
		check_chosen(&request, best);
		mix_links(&seed);
		/* a further attempt has the request of the first one */
		allow = broker.ticket.request.allow;
		assert_int_equal(broker_requeue(&broker, &request, 0, &why), 0);
		assert_true(gpuset_equals(&broker.ticket.request.allow, &allow));
		check_turn(BROKER_GRANTED);
		check_chosen(&request, best);
		fixture_release_files(of_gpus, MANY);
	}
}

/* When a job of another boot ended is not known: no probe could come after it. */
static void a_lease_of_another_boot_makes_no_probe_too_old(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct lease lease = { .ticket = 1000, .owner = dead };
	int64_t now_ms = clock_boot_ms(), released_ms;

	(void)state;
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	assert_int_equal(lease_write(&files[0], 1, &lease), 0);
	lease.owner.token[0] = lease.owner.token[0] == '0' ? '1' : '0';
	text_copy(lease.boot, sizeof(lease.boot), "another-boot");
	assert_int_equal(lease_write(&files[0], 2, &lease), 0);
	liveness_set_begin(&broker.view.lives);
	assert_int_equal(snapshot_read(&broker.view, now_ms), 0);
	released_ms = broker.view.gpus[0].released_ms;
	assert_true(broker.view.gpus[0].has_dead);
	assert_int_equal(snapshot_read(&broker.view, now_ms + 60000), 0);
	liveness_set_end(&broker.view.lives);
	assert_int_equal(broker.view.gpus[0].released_ms, released_ms);
}

/* Writes records of leases into the files, which may name other GPUs, boots and times. */
static void forge_leases(uint64_t *seed, const struct owner owners[2])
{
	static const char *const sets[] = { "", "0", "1", "01" };
	static const int64_t times[] = { 0, 1, INT64_MAX, INT64_MIN };

	for (unsigned at = 1; at <= 6; at++) {
		struct lease lease = { .ticket = 1000 + draw(seed, 2),
			.owner = owners[draw(seed, 2)],
			.gpus = fixture_set(sets[draw(seed, 4)]),
			.since_ms = times[draw(seed, 4)],
			.limit_ms = times[draw(seed, 4)],
			.grace_ms = times[draw(seed, 4)],
			.released_ms = times[draw(seed, 4)] };

		/* the same lease, or another one of the same process */
		if (draw(seed, 2))
			lease.owner.token[0] = "0123"[draw(seed, 4)];
		text_copy(lease.boot, sizeof(lease.boot),
			draw(seed, 2) ? dir.boot : "another-boot");
		assert_int_equal(
			lease_write(&files[draw(seed, GPUS)], 1 + at / 2, &lease), 0);
	}
}

/* Such records keep nobody who does not wait, neither with probes nor in the estimates. */
static void forged_leases_do_not_keep_who_does_not_wait(void **state)
{
	uint64_t seed = 20262;

	for (unsigned i = 0; i < CHOICES; i++) {
		struct foretold foretold;
		unsigned waits = 0;
		int r;

		fixture_again(state);
		rival = other_start(dir.fd, OTHER_LIVE);
		forge_leases(&seed, (const struct owner[]){ rival.owner,
					    fixture_dead_owner(dir.fd, OTHER_ALONE) });
		join(1 + i / 2 % 2, "01");
		while ((r = broker_turn(&broker)) != BROKER_GRANTED &&
			broker_looks_again(&broker, r)) {
			assert_true(++waits < 9);
			assert_int_equal(
				broker_wait(&broker, clock_boot_ms() + PATIENCE_MS), 0);
		}
		/* so that sums of a few do not overflow */
		for (size_t at = 0; at < broker.view.lease_count; at++) {
			const struct lease *lease = &broker.view.leases[at].lease;
			int64_t end_ms = 0;

			assert_false(
				__builtin_add_overflow(
					lease->since_ms, lease->limit_ms, &end_ms) ||
				__builtin_add_overflow(end_ms, lease->grace_ms, &end_ms));
			assert_true(lease->since_ms > INT64_MIN);
		}
		assert_true(broker_estimate(&broker) >= 0);
		broker_foretell(&broker, &foretold);
		other_end(&rival);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(alone_a_job_starts_at_once),
		TEST(gpus_that_another_process_took_first_stay_taken),
		TEST(a_lease_of_several_gpus_counts_from_one_record),
		TEST(no_limit_is_exceeded_by_two_at_once),
		TEST(a_pause_at_the_last_moment_counts),
		TEST(a_cancel_at_the_last_moment_counts),
		TEST(a_cancel_at_the_last_moment_counts_in_a_later_attempt),
		TEST(a_cancel_before_the_new_ticket_counts),
		TEST(a_ticket_waits_until_the_time_of_its_next_attempt),
		TEST(a_held_job_comes_when_it_is_released),
		TEST(a_cancel_before_a_released_job_joins_anew_counts),
		TEST(a_job_that_begins_later_comes_then),
		TEST(a_released_job_still_begins_at_its_time),
		TEST(instead_of_a_locked_gpu_another_one_is_taken),
		TEST(an_earlier_ticket_starts_first),
		TEST(who_acts_before_a_ticket_ahead_says_so_in_its_lease),
		TEST(who_is_first_is_not_early),
		TEST(free_gpus_that_the_head_needs_are_not_taken),
		TEST(a_waiting_ticket_with_a_lease_counts_as_granted),
		TEST(the_hint_stops_at_the_first_live_waiting_ticket),
		TEST(the_hint_passes_a_first_ticket_that_has_started),
		TEST(a_broken_record_is_not_passed_at_once),
		TEST(a_hint_after_the_own_ticket_does_not_hang_it),
		TEST(the_end_of_a_lease_ends_the_wait),
		TEST(the_end_of_a_ticket_that_may_start_ends_the_wait),
		TEST(the_end_of_the_blocked_head_ends_the_wait),
		TEST(the_end_of_a_later_head_ends_the_wait),
		TEST(a_singleton_waits_for_its_namesake_even_without_gpus),
		TEST(the_end_of_a_foreign_process_starts_a_probe),
		TEST(a_gpu_that_its_own_thresholds_refuse_is_left_to_others),
		TEST(an_owner_that_was_dead_from_the_start_is_no_obstacle),
		TEST(who_does_not_wait_looks_twice_at_most),
		TEST(a_ring_in_the_middle_of_a_turn_is_not_lost),
		TEST(a_start_rings_those_that_it_lets_start),
		TEST(bells_are_emptied),
		TEST(a_lost_ticket_is_replaced),
		TEST(fifos_that_were_removed_are_made_again),
		TEST(leaving_removes_the_fifos),
		TEST(a_lost_lease_is_waited_for_without_probes),
		TEST(one_of_two_singletons_starts_whenever_the_second_comes),
		TEST(a_singleton_waits_while_its_name_is_locked),
		TEST(no_gpu_is_given_twice_whenever_the_lease_files_are_deleted),
		TEST(damage_at_the_last_moment_counts),
		TEST(a_choice_of_gpus_outlives_a_change_of_slots),
		TEST(a_lease_of_another_boot_makes_no_probe_too_old),
		TEST(forged_leases_do_not_keep_who_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
