#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "life.h"

/* Dead, but somebody it left behind holds the FIFO. */
static bool is_lingering(const struct life *life)
{
	return life_is_dead(life) && !life_is_over(life);
}

static struct life *judge(struct lives *lives, const struct owner *owner, int64_t now_ms)
{
	struct life *life = lives_judge(lives, owner, true, now_ms);

	assert_non_null(life);
	return life;
}

static void a_job_that_ends_with_all_it_started_is_over(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = judge(&lives, &other.owner, 100);

	assert_false(life_is_dead(life) || life_is_over(life) || is_lingering(life));
	assert_false(life_is_unwatchable(life));
	assert_true(life->pidfd >= 0 && life->fifo_fd >= 0);
	assert_int_equal(life->dead_ms, 0);
	assert_int_equal(life->over_ms, 0);
	other_kill(&other);
	assert_true(fixture_is_ready(life->pidfd, POLLIN));
	assert_true(fixture_is_ready(life->fifo_fd, 0));
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_dead(life) && life_is_over(life));
	assert_false(is_lingering(life) || life_is_unwatchable(life));
	assert_int_equal(life->alive_ms, 200); /* until the wake-up that found it dead */
	assert_int_equal(life->dead_ms, 200);
	assert_int_equal(life->over_ms, 200);
	life = judge(&lives, &other.owner, 300);
	assert_int_equal(life->dead_ms, 200);
	assert_int_equal(life->over_ms, 200);
	lives_release(&lives);
	statedir_release(&dir);
}

static void an_heir_makes_it_linger_and_nothing_that_has_fired_is_watched(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = judge(&lives, &other.owner, 100);

	other_kill(&other);
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_dead(life) && is_lingering(life));
	assert_false(life_is_over(life) || life_is_unwatchable(life));
	assert_int_equal(life->pidfd, -1); /* or every poll would return at once */
	assert_true(life->fifo_fd >= 0);
	assert_false(fixture_is_ready(life->fifo_fd, 0));
	assert_int_equal(life->dead_ms, 200);
	assert_int_equal(life->over_ms, 0);
	other_kill_heir(&other);
	assert_true(fixture_is_ready(life->fifo_fd, 0));
	life = judge(&lives, &other.owner, 300);
	assert_true(life_is_over(life));
	assert_int_equal(life->dead_ms, 200);
	assert_int_equal(life->over_ms, 300);
	assert_int_equal(life->fifo_fd, -1);
	lives_release(&lives);
	statedir_release(&dir);
}

static void who_was_dead_before_anybody_looked_is_over_at_once(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life;

	/* its FIFO is there still, and would never poll as hung up */
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
	life = judge(&lives, &dead, 100);
	assert_true(life_is_dead(life) && life_is_over(life));
	assert_int_equal(life->over_ms, 100);
	assert_int_equal(life->pidfd, -1);
	assert_int_equal(life->fifo_fd, -1);
	lives_release(&lives);
	statedir_release(&dir);
}

static void how_it_ended_is_known_once_somebody_has_waited_for_it(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = judge(&lives, &other.owner, 100);
	int before = fixture_open_fds();

	assert_int_equal(life->status, -1);
	assert_false(life_may_tell(life));
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(other.pid));
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_over(life));
	assert_int_equal(life->pidfd, -1); /* nothing to watch */
	assert_int_equal(life->status, -1);
	if (!life_may_tell(life)) /* before Linux 6.15 */
		skip();
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	assert_true(life_may_tell(life)); /* nobody has asked since */
	life = judge(&lives, &other.owner, 300);
	assert_int_equal(life->status, 128 + SIGKILL);
	assert_false(life_may_tell(life));
	assert_true(
		fixture_open_fds() < before); /* neither of the two is held any more */
	lives_release(&lives);
	statedir_release(&dir);
}

static void who_is_not_waited_for_is_let_go_with_its_life(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	int before = fixture_open_fds();

	(void)judge(&lives, &other.owner, 100);
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(other.pid));
	(void)judge(&lives, &other.owner, 200);
	lives_begin(&lives);
	lives_end(&lives);
	assert_int_equal(fixture_open_fds(), before);
	other_end(&other);
	lives_release(&lives);
	statedir_release(&dir);
}

static void who_has_let_go_of_its_fifo_lives_on(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_ALONE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = judge(&lives, &other.owner, 100);

	/* no FIFO at all, or one that the command has closed: the process decides */
	assert_int_equal(life->fifo, LIFE_ENDED);
	assert_int_equal(life->fifo_fd, -1);
	assert_false(life_is_dead(life) || life_is_over(life));
	assert_false(life_is_unwatchable(life));
	other_kill(&other);
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_over(life));
	lives_release(&lives);
	statedir_release(&dir);
}

static void a_half_that_has_fired_stays_fired(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	struct owner revenant = other.owner;
	struct life *life;
	char name[64];
	int again;

	(void)judge(&lives, &other.owner, 100);
	other_kill(&other);
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_over(life));
	/* somebody opens the same FIFO again, and somebody has the same pid again */
	(void)snprintf(name, sizeof(name), BEACON_LIVE "/%s", other.owner.token);
	again = openat(dir.fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(again >= 0);
	assert_int_equal(beacon_look(&dir, other.owner.token, NULL), BEACON_HELD);
	revenant.pid = (uint32_t)getpid();
	life = judge(&lives, &revenant, 300);
	assert_true(life_is_dead(life) && life_is_over(life));
	assert_int_equal(life->over_ms, 200);
	(void)close(again);
	lives_release(&lives);
	statedir_release(&dir);
}

static void a_lingering_one_may_be_declared_over_by_its_name(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = judge(&lives, &other.owner, 100);

	/* of one that lives the name alone says nothing while the FIFO is held */
	assert_false(life_is_over(life));
	other_kill(&other);
	assert_true(is_lingering(judge(&lives, &other.owner, 200)));
	beacon_remove(&dir, BEACON_LIVE, other.owner.token);
	life = judge(&lives, &other.owner, 300);
	assert_true(life_is_over(life));
	assert_int_equal(life->fifo_fd, -1);
	other_end(&other);
	lives_release(&lives);
	statedir_release(&dir);
}

static void in_another_namespace_the_fifo_decides(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life;

	other.owner.pidns++;
	/* also where the FIFO was not asked for */
	life = lives_judge(&lives, &other.owner, false, 100);
	assert_non_null(life);
	assert_int_equal(life->process, LIFE_UNKNOWN);
	assert_int_equal(life->fifo, LIFE_LIVES);
	assert_false(life_is_dead(life) || life_is_unwatchable(life));
	other_kill(&other);
	assert_true(fixture_is_ready(life->fifo_fd, 0));
	life = lives_judge(&lives, &other.owner, false, 200);
	assert_true(life_is_dead(life) && life_is_over(life));
	assert_int_equal(life->dead_ms, 200);
	lives_release(&lives);
	statedir_release(&dir);
}

/* Who was adopted holds none, so only who sees the process can tell that it has ended. */
static void without_a_fifo_the_process_alone_decides(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_ALONE);
	struct lives lives = LIVES_ON(&dir);
	struct owner elsewhere = other.owner;
	struct life *life;

	other.owner.is_adopted = elsewhere.is_adopted = 1;
	elsewhere.pidns++;
	elsewhere.token[0] ^= 1;
	life = judge(&lives, &other.owner, 100);
	assert_false(life_is_dead(life) || life_is_unwatchable(life));
	life = judge(&lives, &elsewhere, 100);
	assert_false(life_is_dead(life) || life_is_over(life));
	assert_true(life_is_unwatchable(life));
	other_kill(&other);
	life = judge(&lives, &other.owner, 200);
	assert_true(life_is_dead(life) && life_is_over(life));
	life = judge(&lives, &elsewhere, 200);
	assert_false(life_is_dead(life) || life_is_over(life));
	lives_release(&lives);
	statedir_release(&dir);
}

static void a_fifo_that_cannot_be_read_never_means_death(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct owner owner = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct lives lives = LIVES_ON(&dir);
	char name[64];
	struct life *life;

	owner.pidns++;
	(void)snprintf(name, sizeof(name), BEACON_LIVE "/%s", owner.token);
	assert_int_equal(scratch_write(s, name, ""), 0); /* no FIFO: undecided */
	life = judge(&lives, &owner, 100);
	assert_false(life_is_dead(life) || life_is_over(life));
	assert_true(life_is_unwatchable(life));
	assert_int_equal(life->unwatchable_ms, 100);
	life = judge(&lives, &owner, 200);
	assert_int_equal(life->unwatchable_ms, 100); /* since when */
	assert_int_equal(unlinkat(dir.fd, name, 0), 0);
	life = judge(&lives, &owner, 300);
	assert_true(life_is_over(life));
	assert_false(life_is_unwatchable(life));
	assert_int_equal(life->unwatchable_ms, 0);
	lives_release(&lives);
	statedir_release(&dir);
}

static void a_dead_one_whose_fifo_cannot_be_read_lingers(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct owner owner = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct lives lives = LIVES_ON(&dir);
	struct life *life;
	char name[64];

	(void)snprintf(name, sizeof(name), BEACON_LIVE "/%s", owner.token);
	assert_int_equal(scratch_write(s, name, ""), 0);
	life = judge(&lives, &owner, 100);
	assert_true(life_is_dead(life) && is_lingering(life));
	assert_false(life_is_over(life));
	assert_true(life_is_unwatchable(life)); /* so a timer has to look */
	lives_release(&lives);
	statedir_release(&dir);
}

static void a_ticket_needs_only_its_process(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lives lives = LIVES_ON(&dir);
	struct life *life = lives_judge(&lives, &other.owner, false, 100);

	assert_non_null(life);
	assert_int_equal(life->fifo_fd, -1);
	assert_false(life_is_dead(life) || life_is_unwatchable(life));
	other_kill(&other);
	life = lives_judge(&lives, &other.owner, false, 200);
	assert_true(life_is_dead(life));
	other_end(&other);
	lives_release(&lives);
	statedir_release(&dir);
}

static void who_is_in_use_no_more_is_forgotten(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct lives lives = LIVES_ON(&dir);
	int before = fixture_open_fds();

	lives_begin(&lives);
	judge(&lives, &one.owner, 100)->is_watched = true;
	judge(&lives, &two.owner, 100)->is_watched = true;
	lives_end(&lives);
	assert_int_equal(lives.count, 2);
	assert_int_equal(fixture_open_fds(), before + 4);
	lives_begin(&lives);
	assert_false(lives.all[0].is_watched || lives.all[1].is_watched);
	(void)judge(&lives, &two.owner, 200);
	lives_end(&lives);
	assert_int_equal(lives.count, 1);
	assert_string_equal(lives.all[0].owner.token, two.owner.token);
	assert_int_equal(fixture_open_fds(), before + 2);
	lives_release(&lives);
	assert_int_equal(fixture_open_fds(), before);
	lives_release(&lives);
	other_end(&one);
	other_end(&two);
	statedir_release(&dir);
}

static void many_lives_are_followed_at_once(void **state)
{
	enum { MANY = 40 };
	static struct other others[MANY];
	struct statedir dir = fixture_dir(*state);
	struct lives lives = LIVES_ON(&dir);

	for (size_t i = 0; i < MANY; i++)
		others[i] = other_start(dir.fd, OTHER_LIVE);
	for (size_t i = 0; i < MANY; i++)
		(void)judge(&lives, &others[i].owner, 100);
	for (size_t i = 0; i < MANY; i += 2)
		other_kill(&others[i]);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(
			life_is_over(judge(&lives, &others[i].owner, 200)), i % 2 == 0);
	for (size_t i = 0; i < MANY; i++)
		other_end(&others[i]);
	lives_release(&lives);
	statedir_release(&dir);
}

/* What has fired is not watched any more: whoever went by the first judgement waits in vain. */
static void who_ends_between_two_judgements_of_a_turn_is_noticed(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lives lives = LIVES_ON(&dir);

	lives_begin(&lives);
	(void)judge(&lives, &other.owner, 100);
	(void)judge(&lives, &other.owner, 100);
	assert_false(lives.has_changed);
	other_kill(&other);
	(void)judge(&lives, &other.owner, 200);
	assert_true(lives.has_changed);
	lives_begin(&lives);
	assert_false(lives.has_changed);
	(void)judge(&lives, &other.owner, 300);
	other_kill_heir(&other);
	(void)judge(&lives, &other.owner, 400);
	assert_true(lives.has_changed);
	lives_begin(
		&lives); /* one that is found so in the next turn is what that acts on */
	(void)judge(&lives, &other.owner, 500);
	assert_false(lives.has_changed);
	lives_release(&lives);
	statedir_release(&dir);
}

/* --- the command of a supervisor ------------------------------------------------------ */

/* A supervisor and its command, which has closed the FIFO. */
static struct supervised {
	struct statedir dir;
	struct other supervisor, other;
	struct command runs;
	struct lives lives;
} s;

static struct command command_of(const struct owner *owner)
{
	return (struct command){
		.pid = owner->pid, .inode = owner->inode, .start = owner->start
	};
}

static int supervised_setup(void **state)
{
	if (fixture_dir_setup(state, &s.dir) < 0)
		return -1;
	s.supervisor = other_start(s.dir.fd, OTHER_LIVE | OTHER_HEIR);
	s.other = other_start(s.dir.fd, OTHER_ALONE);
	s.runs = command_of(&s.other.owner);
	s.lives = LIVES_ON(&s.dir);
	return 0;
}

static int supervised_teardown(void **state)
{
	lives_release(&s.lives);
	other_end(&s.supervisor);
	other_end(&s.other);
	return fixture_dir_teardown(state, &s.dir);
}

#define SUPERVISED_TEST(f) \
	cmocka_unit_test_setup_teardown(f, supervised_setup, supervised_teardown)

/* Judges the supervisor with its command. */
static struct life *judge_job(int64_t now_ms)
{
	struct life *life =
		lives_judge_job(&s.lives, &s.supervisor.owner, &s.runs, now_ms);

	assert_non_null(life);
	return life;
}

static void a_command_takes_the_place_of_its_dead_supervisor(void **state)
{
	struct life *life;

	(void)state;
	other_kill_heir(&s.supervisor); /* only the supervisor holds the FIFO */
	assert_false(judge_job(100)->is_orphaned);
	other_kill(&s.supervisor);
	life = judge_job(200);
	assert_true(life->is_orphaned);
	assert_false(life_is_dead(life) || life_is_over(life) || is_lingering(life));
	assert_int_equal(life->fifo, LIFE_ENDED);
	assert_int_equal(life->runs.pid, s.other.pid);
	assert_int_equal(life->dead_ms, 0);
	assert_false(life_is_unwatchable(life));
	assert_false(fixture_is_ready(life->pidfd, POLLIN));
	/* also where the owner is judged without it */
	assert_false(life_is_dead(judge(&s.lives, &s.supervisor.owner, 300)));
	assert_int_equal(kill(s.other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(s.other.pid));
	assert_true(fixture_is_ready(life->pidfd, POLLIN));
	life = judge(&s.lives, &s.supervisor.owner, 400);
	assert_true(life_is_over(life));
	assert_int_equal(life->dead_ms, 400);
	assert_int_equal(life->pidfd, -1);
	other_kill(&s.other);    /* reaps it */
	if (life_may_tell(life)) /* from Linux 6.15 on */
		assert_int_equal(
			judge(&s.lives, &s.supervisor.owner, 500)->status, 128 + SIGKILL);
}

static void a_command_that_ended_before_its_supervisor_changes_nothing(void **state)
{
	struct life *life;

	(void)state;
	(void)judge_job(100);
	other_kill(&s.other);
	life = judge_job(200);
	assert_false(life_is_dead(life) || life->is_orphaned);
	other_end(&s.supervisor);
	for (int64_t now_ms = 300; now_ms < 500; now_ms += 100) {
		life = judge_job(now_ms);
		assert_true(life_is_over(life));
		assert_false(life->is_orphaned);
		assert_int_equal(life->over_ms, 300);
	}
}

static void a_command_that_is_learned_of_late_counts_too(void **state)
{
	(void)state;
	other_end(&s.supervisor);
	assert_true(life_is_over(judge(&s.lives, &s.supervisor.owner, 100)));
	assert_false(life_is_over(judge_job(200)));
	other_kill(&s.other);
	assert_true(life_is_over(judge(&s.lives, &s.supervisor.owner, 300)));
}

static void a_command_that_cannot_be_judged_lives_as_long_as_the_fifo_is_held(
	void **state)
{
	struct life *life;

	(void)state;
	s.runs =
		(struct command){ .pid = s.other.owner.pid }; /* no more is known of it */
	other_kill(&s.supervisor);
	life = judge_job(100);
	assert_int_equal(life->process, LIFE_UNKNOWN);
	assert_false(life_is_dead(life)); /* so nothing lingers */
	other_kill_heir(&s.supervisor);
	assert_true(life_is_over(judge_job(200)));
}

static void a_lease_that_was_given_back_has_no_command(void **state)
{
	(void)state;
	life_end(judge_job(100), true, 200);
	assert_true(life_is_over(judge(&s.lives, &s.supervisor.owner, 300)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_job_that_ends_with_all_it_started_is_over),
		SUPERVISED_TEST(a_command_takes_the_place_of_its_dead_supervisor),
		SUPERVISED_TEST(
			a_command_that_ended_before_its_supervisor_changes_nothing),
		SUPERVISED_TEST(a_command_that_is_learned_of_late_counts_too),
		SUPERVISED_TEST(
			a_command_that_cannot_be_judged_lives_as_long_as_the_fifo_is_held),
		SUPERVISED_TEST(a_lease_that_was_given_back_has_no_command),
		SCRATCH_TEST(
			an_heir_makes_it_linger_and_nothing_that_has_fired_is_watched),
		SCRATCH_TEST(who_was_dead_before_anybody_looked_is_over_at_once),
		SCRATCH_TEST(how_it_ended_is_known_once_somebody_has_waited_for_it),
		SCRATCH_TEST(who_is_not_waited_for_is_let_go_with_its_life),
		SCRATCH_TEST(who_has_let_go_of_its_fifo_lives_on),
		SCRATCH_TEST(a_half_that_has_fired_stays_fired),
		SCRATCH_TEST(a_lingering_one_may_be_declared_over_by_its_name),
		SCRATCH_TEST(in_another_namespace_the_fifo_decides),
		SCRATCH_TEST(without_a_fifo_the_process_alone_decides),
		SCRATCH_TEST(a_fifo_that_cannot_be_read_never_means_death),
		SCRATCH_TEST(a_dead_one_whose_fifo_cannot_be_read_lingers),
		SCRATCH_TEST(a_ticket_needs_only_its_process),
		SCRATCH_TEST(who_is_in_use_no_more_is_forgotten),
		SCRATCH_TEST(many_lives_are_followed_at_once),
		SCRATCH_TEST(who_ends_between_two_judgements_of_a_turn_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
