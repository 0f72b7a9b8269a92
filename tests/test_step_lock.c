#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>

#include "clock.h"
#include "fixture.h"
#include "step_lock.h"

static struct statedir dir;
static struct fixture fixture = { .dir = &dir };

static uint8_t four[] = { 3, 0, 1, 2 };
static const char token[] = "0123456789abcdef";

/* Whether flock(2) is to check that no other step can choose just now. */
static bool is_turn_checked;
static unsigned checks;

/* Whether the next file of a GPU is swept just before it is locked. */
static bool is_swept;

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
	if (is_turn_checked && how & LOCK_NB) {
		int turn =
			openat(dir.live_fd, "0123456789abcdef.steps", O_RDWR | O_CLOEXEC);
		struct stat own, other;

		assert_true(turn >= 0);
		assert_int_equal(fstat(turn, &own), 0);
		assert_int_equal(fstat(fd, &other), 0);
		if (own.st_ino != other.st_ino) {
			assert_int_equal(__real_flock(turn, LOCK_SH | LOCK_NB), -1);
			checks++;
		}
		(void)close(turn);
	}
	if (is_swept && how & LOCK_NB) {
		is_swept = false;
		step_lock_sweep(dir.live_fd, "0123456789abcdef.3");
	}
	return __real_flock(fd, how);
}

static struct step_lock make_lock(unsigned slots, unsigned wanted)
{
	return (struct step_lock){ .dir = &dir,
		.token = token,
		.slots = four,
		.slot_count = slots,
		.wanted = wanted };
}

static bool has_file(const char *suffix)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s.%s", token, suffix);
	return fixture_exists(dir.fd, FIFO_LIVE, name);
}

static void a_step_takes_the_first_free_gpus_of_its_list(void **state)
{
	struct step_lock first = make_lock(4, 1), second = make_lock(4, 2);

	(void)state;
	assert_int_equal(step_lock_try(&first), 0);
	assert_true(gpuset_has(&first.gpus, 3));
	assert_int_equal(step_lock_try(&second), 0);
	assert_int_equal(gpuset_count(&second.gpus), 2);
	assert_true(gpuset_has(&second.gpus, 0) && gpuset_has(&second.gpus, 1));
	step_lock_release(&first);
	step_lock_release(&second);
}

static void a_step_takes_all_or_nothing(void **state)
{
	struct step_lock first = make_lock(3, 2), second = make_lock(3, 2),
			 third = make_lock(3, 1);

	(void)state;
	assert_int_equal(step_lock_try(&first), 0);
	assert_int_equal(step_lock_try(&second), STEP_LOCK_BUSY);
	assert_int_equal(second.count, 0);
	assert_true(gpuset_is_empty(&second.gpus));
	assert_int_equal(step_lock_try(&third), 0);
	step_lock_release(&first);
	assert_int_equal(step_lock_try(&second), 0);
	step_lock_release(&second);
	step_lock_release(&third);
}

static void a_step_below_the_holder_of_its_gpus_chooses_among_them(void **state)
{
	uint8_t slots[] = { 3, 0, 1, 2 };
	struct step_lock beside = make_lock(1, 1), outer = make_lock(4, 2), inner;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(step_lock_try(&beside), 0); /* has 3 */
	assert_int_equal(step_lock_try(&outer), 0);  /* has 0 and 1 */
	step_lock_release(&beside);
	pid = fork();
	if (pid == 0) {
		(void)alarm(LAST_RESORT_S);
		inner = make_lock(4, 1);
		inner.slots = slots;
		/* although 3 is free, and comes first */
		status = step_lock_try(&inner) != STEP_LOCK_INSIDE || inner.count ||
			 inner.slot_count != 2 || inner.level != 1 ||
			 step_lock_try(&inner) != 0 || !gpuset_has(&inner.gpus, 0) ||
			 inner.count != 1;
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(has_file("128"));
	step_lock_release(&outer);
}

static void a_file_that_is_swept_meanwhile_is_made_again(void **state)
{
	struct step_lock first = make_lock(1, 1), second = make_lock(1, 1);

	(void)state;
	is_swept = true;
	assert_int_equal(step_lock_try(&first), 0);
	assert_true(has_file("3"));
	assert_int_equal(step_lock_try(&second), STEP_LOCK_BUSY);
	step_lock_release(&first);
	step_lock_release(&second);
}

static void steps_choose_one_after_another(void **state)
{
	struct step_lock first = make_lock(3, 2), second = make_lock(3, 2);

	(void)state;
	checks = 0;
	is_turn_checked = true;
	assert_int_equal(step_lock_try(&first), 0);
	assert_int_equal(step_lock_try(&second), STEP_LOCK_BUSY);
	is_turn_checked = false;
	assert_int_equal(checks, 6);
	step_lock_release(&first);
	step_lock_release(&second);
}

static int lock_as_another(const char *name)
{
	int fd = openat(dir.live_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(__real_flock(fd, LOCK_EX), 0);
	return fd;
}

static void a_step_that_is_stopped_while_it_chooses_holds_up_no_other(void **state)
{
	struct step_lock lock = make_lock(2, 1), more = make_lock(2, 2),
			 number = make_lock(0, 0);
	int turn = lock_as_another("0123456789abcdef.steps"),
	    gpu = lock_as_another("0123456789abcdef.3"), r;

	(void)state;
	/* it returns, so that the caller can give up; only then it goes on without the turn */
	assert_int_equal(step_lock_try(&lock), STEP_LOCK_BUSY);
	assert_true(lock.watch.until_ms < INT64_MAX);
	while ((r = step_lock_try(&lock)) == STEP_LOCK_BUSY)
		assert_true(watch_wait(&lock.watch) >= 0);
	assert_int_equal(r, 0);
	assert_true(gpuset_has(&lock.gpus, 0) && lock.count == 1);
	/* only what the stopped step has locked is missing, and that is asked again */
	more.stuck_since_ms = 1;
	assert_int_equal(step_lock_try(&more), STEP_LOCK_BUSY);
	assert_int_equal(more.count, 0);
	assert_true(more.watch.until_ms < INT64_MAX);
	/* a number needs no turn */
	assert_int_equal(step_lock_try(&number), 0);
	assert_int_equal(number.number, 1);
	(void)close(turn);
	(void)close(gpu);
	step_lock_release(&lock);
	assert_int_equal(step_lock_try(&more), 0);
	step_lock_release(&more);
	step_lock_release(&number);
}

/* A child that locks @wanted of the first @slots GPUs, and rests until it is killed. */
static pid_t start_holder(unsigned slots, unsigned wanted)
{
	struct step_lock lock = make_lock(slots, wanted);
	int ends[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)alarm(LAST_RESORT_S);
		byte = step_lock_try(&lock) == 0 ? '+' : '-';
		(void)!write(ends[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	assert_int_equal(byte, '+');
	return pid;
}

static void the_end_of_a_holder_ends_the_wait(void **state)
{
	struct step_lock lock = make_lock(1, 1);
	pid_t holder = start_holder(1, 1);

	(void)state;
	assert_int_equal(step_lock_try(&lock), STEP_LOCK_BUSY);
	assert_int_equal(lock.watch.count, 1);
	assert_true(lock.watch.until_ms == INT64_MAX);
	assert_int_equal(watch_look(&lock.watch), 0);
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(watch_wait(&lock.watch), 0);
	assert_int_equal(step_lock_try(&lock), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	step_lock_release(&lock);
}

static void a_holder_that_is_not_known_is_waited_for_with_a_timer(void **state)
{
	static const char *const texts[] = { "", "x", "0,0,0,0", "1,1,1,1", "99999999" };
	struct scratch *s = *state;
	struct step_lock first = make_lock(1, 1), second = make_lock(1, 1);

	assert_int_equal(step_lock_try(&first), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(
			scratch_write(s, "live/0123456789abcdef.3", texts[i]), 0);
		assert_int_equal(step_lock_try(&second), STEP_LOCK_BUSY);
		assert_int_equal(second.watch.count, 0);
		assert_true(second.watch.until_ms <= clock_boot_ms() + 1000);
	}
	step_lock_release(&first);
	assert_int_equal(step_lock_try(&second), 0);
	step_lock_release(&second);
}

static void steps_of_different_levels_do_not_exclude_each_other(void **state)
{
	struct step_lock outer = make_lock(1, 1), inner = make_lock(1, 1),
			 other = make_lock(1, 1);

	(void)state;
	inner.level = other.level = 1;
	assert_int_equal(step_lock_try(&outer), 0);
	assert_int_equal(step_lock_try(&inner), 0);
	assert_int_equal(step_lock_try(&other), STEP_LOCK_BUSY);
	step_lock_release(&outer);
	assert_int_equal(step_lock_try(&other), STEP_LOCK_BUSY);
	step_lock_release(&inner);
	step_lock_release(&other);
}

static void steps_are_numbered(void **state)
{
	struct step_lock lock = make_lock(1, 1), busy = make_lock(1, 1),
			 number = make_lock(0, 0);

	(void)state;
	assert_int_equal(step_lock_try(&lock), 0);
	assert_int_equal(lock.number, 0);
	assert_int_equal(step_lock_try(&busy), STEP_LOCK_BUSY);
	assert_int_equal(step_lock_try(&number), 0);
	assert_int_equal(number.number, 1);
	step_lock_release(&lock);
	assert_int_equal(step_lock_try(&busy), 0);
	assert_int_equal(busy.number, 2);
	step_lock_release(&busy);
	step_lock_release(&number);
}

static void only_files_are_locked(void **state)
{
	struct scratch *s = *state;
	struct step_lock lock = make_lock(1, 1);

	assert_int_equal(mkfifoat(s->dirfd, "live/0123456789abcdef.3", 0600), 0);
	assert_int_equal(step_lock_try(&lock), -EINVAL);
	assert_int_equal(unlinkat(s->dirfd, "live/0123456789abcdef.3", 0), 0);
	assert_int_equal(
		symlinkat("../precious", s->dirfd, "live/0123456789abcdef.3"), 0);
	assert_int_equal(step_lock_try(&lock), -ELOOP);
	assert_false(fixture_exists(dir.fd, ".", "precious"));
	step_lock_release(&lock);
}

static void a_sweep_removes_what_no_lease_needs(void **state)
{
	struct scratch *s = *state;
	struct step_lock lock = make_lock(2, 1);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	char name[64];

	(void)snprintf(name, sizeof(name), "live/%s.0", other.owner.token);
	assert_int_equal(scratch_write(s, name, ""), 0);
	assert_int_equal(scratch_write(s, "live/0123456789abcdef.0", ""), 0);
	assert_int_equal(scratch_write(s, "live/0123456789abcdefg", ""), 0);
	assert_int_equal(step_lock_try(&lock), 0); /* slot 3, of a lease without a FIFO */
	live_fifo_sweep(&dir, NULL, NULL);
	assert_true(has_file("3"));
	assert_false(has_file("0"));
	assert_false(has_file("steps"));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, name + strlen("live/")));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, "0123456789abcdefg"));
	step_lock_release(&lock);
	live_fifo_sweep(&dir, NULL, NULL);
	assert_false(has_file("3"));
	other_end(&other);
}

static void names_of_locks_begin_with_a_token(void **state)
{
	static const char *const bad[] = { "", ".", "0123456789abcdef",
		"0123456789abcde.1", "0123456789abcdefg.1",
		"tmp.1.2.3.4.0123456789abcdef" };

	(void)state;
	assert_true(step_lock_is_name("0123456789abcdef.0"));
	assert_true(step_lock_is_name("0123456789abcdef.steps"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(step_lock_is_name(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(a_step_takes_the_first_free_gpus_of_its_list, fixture),
		FIXTURE_TEST(a_step_takes_all_or_nothing, fixture),
		FIXTURE_TEST(
			a_step_below_the_holder_of_its_gpus_chooses_among_them, fixture),
		FIXTURE_TEST(steps_choose_one_after_another, fixture),
		FIXTURE_TEST(a_step_that_is_stopped_while_it_chooses_holds_up_no_other,
			fixture),
		FIXTURE_TEST(a_file_that_is_swept_meanwhile_is_made_again, fixture),
		FIXTURE_TEST(the_end_of_a_holder_ends_the_wait, fixture),
		FIXTURE_TEST(
			a_holder_that_is_not_known_is_waited_for_with_a_timer, fixture),
		FIXTURE_TEST(
			steps_of_different_levels_do_not_exclude_each_other, fixture),
		FIXTURE_TEST(steps_are_numbered, fixture),
		FIXTURE_TEST(only_files_are_locked, fixture),
		FIXTURE_TEST(a_sweep_removes_what_no_lease_needs, fixture),
		cmocka_unit_test(names_of_locks_begin_with_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
