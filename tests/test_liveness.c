#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "fixture.h"
#include "liveness.h"
#include "watch.h"

/* Dead, but a process that it left holds the FIFO. */
static bool is_lingering(const struct liveness *job)
{
	return liveness_is_dead(job) && !liveness_is_over(job);
}

static struct liveness *judge(
	struct liveness_set *set, const struct owner *owner, int64_t now_ms)
{
	struct liveness *job = liveness_set_judge(set, owner, true, now_ms);

	assert_non_null(job);
	return job;
}

static void a_job_that_ends_with_all_it_started_is_over(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = judge(&set, &other.owner, 100);

	assert_false(liveness_is_dead(job) || liveness_is_over(job) || is_lingering(job));
	assert_false(liveness_is_unwatchable(job));
	assert_true(job->pidfd >= 0 && job->fifo_fd >= 0);
	assert_int_equal(job->dead_ms, 0);
	assert_int_equal(job->over_ms, 0);
	other_kill(&other);
	assert_true(fixture_is_ready(job->pidfd, POLLIN));
	assert_true(fixture_is_ready(job->fifo_fd, 0));
	job = judge(&set, &other.owner, 200);
	assert_true(liveness_is_dead(job) && liveness_is_over(job));
	assert_false(is_lingering(job) || liveness_is_unwatchable(job));
	assert_int_equal(job->alive_ms, 200); /* until the wake-up that found it dead */
	assert_int_equal(job->dead_ms, 200);
	assert_int_equal(job->over_ms, 200);
	job = judge(&set, &other.owner, 300);
	assert_int_equal(job->dead_ms, 200);
	assert_int_equal(job->over_ms, 200);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void an_heir_makes_it_linger_and_nothing_that_has_fired_is_watched(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = judge(&set, &other.owner, 100);

	other_kill(&other);
	job = judge(&set, &other.owner, 200);
	assert_true(liveness_is_dead(job) && is_lingering(job));
	assert_false(liveness_is_over(job) || liveness_is_unwatchable(job));
	assert_int_equal(job->pidfd, -1); /* or every poll would return at once */
	assert_true(job->fifo_fd >= 0);
	assert_false(fixture_is_ready(job->fifo_fd, 0));
	assert_int_equal(job->dead_ms, 200);
	assert_int_equal(job->over_ms, 0);
	other_kill_heir(&other);
	assert_true(fixture_is_ready(job->fifo_fd, 0));
	job = judge(&set, &other.owner, 300);
	assert_true(liveness_is_over(job));
	assert_int_equal(job->dead_ms, 200);
	assert_int_equal(job->over_ms, 300);
	assert_int_equal(job->fifo_fd, -1);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_job_that_died_before_the_first_look_is_over_at_once(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job;

	/* its FIFO is there still, and would never poll as hung up */
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
	job = judge(&set, &dead, 100);
	assert_true(liveness_is_dead(job) && liveness_is_over(job));
	assert_int_equal(job->over_ms, 100);
	assert_int_equal(job->pidfd, -1);
	assert_int_equal(job->fifo_fd, -1);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void the_status_is_known_once_the_process_is_reaped(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = judge(&set, &other.owner, 100);
	int before = fixture_open_fds();

	assert_int_equal(job->status, -1);
	assert_false(liveness_may_tell(job));
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(other.pid));
	job = judge(&set, &other.owner, 200);
	assert_true(liveness_is_over(job));
	assert_int_equal(job->pidfd, -1); /* nothing to watch */
	assert_int_equal(job->status, -1);
	if (!liveness_may_tell(job)) /* before Linux 6.15 */
		skip();
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	assert_true(liveness_may_tell(job)); /* the status was not asked for since */
	job = judge(&set, &other.owner, 300);
	assert_int_equal(job->status, 128 + SIGKILL);
	assert_false(liveness_may_tell(job));
	assert_true(
		fixture_open_fds() < before); /* neither of the two is held any more */
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void the_pidfd_of_an_unreaped_process_is_closed_with_its_job(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	int before = fixture_open_fds();

	(void)judge(&set, &other.owner, 100);
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(other.pid));
	(void)judge(&set, &other.owner, 200);
	liveness_set_begin(&set);
	liveness_set_end(&set);
	assert_int_equal(fixture_open_fds(), before);
	other_end(&other);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_process_that_closed_its_fifo_still_lives(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_ALONE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = judge(&set, &other.owner, 100);

	/* no FIFO at all, or one that the command has closed: the process decides */
	assert_int_equal(job->fifo, LIVENESS_ENDED);
	assert_int_equal(job->fifo_fd, -1);
	assert_false(liveness_is_dead(job) || liveness_is_over(job));
	assert_false(liveness_is_unwatchable(job));
	other_kill(&other);
	job = judge(&set, &other.owner, 200);
	assert_true(liveness_is_over(job));
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_half_that_has_fired_stays_fired(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct owner revenant = other.owner;
	struct liveness *job;
	char name[64];
	int again;

	(void)judge(&set, &other.owner, 100);
	other_kill(&other);
	job = judge(&set, &other.owner, 200);
	assert_true(liveness_is_over(job));
	/* a process opens the FIFO again, and another process has the pid again */
	(void)snprintf(name, sizeof(name), FIFO_LIVE "/%s", other.owner.token);
	again = openat(dir.fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(again >= 0);
	assert_int_equal(live_fifo_look(&dir, other.owner.token, NULL), LIVE_FIFO_HELD);
	revenant.pid = (uint32_t)getpid();
	job = judge(&set, &revenant, 300);
	assert_true(liveness_is_dead(job) && liveness_is_over(job));
	assert_int_equal(job->over_ms, 200);
	(void)close(again);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_lingering_one_may_be_declared_over_by_its_name(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = judge(&set, &other.owner, 100);

	/* of one that lives the name alone says nothing while the FIFO is held */
	assert_false(liveness_is_over(job));
	other_kill(&other);
	assert_true(is_lingering(judge(&set, &other.owner, 200)));
	fifo_remove(&dir, FIFO_LIVE, other.owner.token);
	job = judge(&set, &other.owner, 300);
	assert_true(liveness_is_over(job));
	assert_int_equal(job->fifo_fd, -1);
	other_end(&other);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void in_another_namespace_the_fifo_decides(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job;

	other.owner.pidns++;
	/* also where the FIFO was not asked for */
	job = liveness_set_judge(&set, &other.owner, false, 100);
	assert_non_null(job);
	assert_int_equal(job->process, LIVENESS_UNKNOWN);
	assert_int_equal(job->fifo, LIVENESS_LIVES);
	assert_false(liveness_is_dead(job) || liveness_is_unwatchable(job));
	other_kill(&other);
	assert_true(fixture_is_ready(job->fifo_fd, 0));
	job = liveness_set_judge(&set, &other.owner, false, 200);
	assert_true(liveness_is_dead(job) && liveness_is_over(job));
	assert_int_equal(job->dead_ms, 200);
	liveness_set_release(&set);
	statedir_release(&dir);
}

/* What a process in the first pid namespace sees, and one in a container does not. */
static bool sees_all;

bool __wrap_namespaces_sees_all(void);

bool __wrap_namespaces_sees_all(void)
{
	return sees_all;
}

enum unseen_end { LIVES, LINGERS, IS_OVER };

/*
 * An adopted owner in another pid namespace.  Its watchdog holds the FIFO, or was killed, or the
 * whole namespace has ended; in leases of earlier versions there is no FIFO.
 */
static const struct unseen_case {
	const char *text;
	enum owner_adoption adoption;
	bool has_writer, is_visible, sees_all;
	enum unseen_end end;
} unseen_cases[] = {
	{ "watched", OWNER_WATCHED, true, false, false, LIVES },
	{ "watched, seen from outside", OWNER_WATCHED, true, false, true, LIVES },
	{ "a killed watchdog, seen", OWNER_WATCHED, false, true, false, LIVES },
	{ "a killed watchdog, all seen", OWNER_WATCHED, false, true, true, LIVES },
	{ "an ended namespace", OWNER_WATCHED, false, false, false, LINGERS },
	{ "an ended namespace, all seen", OWNER_WATCHED, false, false, true, IS_OVER },
	{ "earlier version", OWNER_UNWATCHED, false, false, false, LIVES },
	{ "earlier version, seen", OWNER_UNWATCHED, false, true, false, LIVES },
	{ "earlier version, ended", OWNER_UNWATCHED, false, false, true, IS_OVER },
};

static void an_adopted_owner_elsewhere_is_judged_by_its_watchdog_or_by_a_search(
	void **state)
{
	struct statedir dir = fixture_dir(*state);

	for (size_t i = 0; i < ARRAY_SIZE(unseen_cases); i++) {
		const struct unseen_case *one = &unseen_cases[i];
		struct other heir = other_start(dir.fd, OTHER_ALONE);
		struct other watchdog =
			other_start(dir.fd, one->has_writer ? OTHER_LIVE : OTHER_ALONE);
		struct liveness_set set = LIVENESS_SET_ON(&dir);
		struct owner owner = heir.owner;
		struct liveness *job;
		enum unseen_end end;

		text_copy(owner.token, sizeof(owner.token), watchdog.owner.token);
		owner.is_adopted = one->adoption;
		owner.pidns++;
		owner.pid = 1;
		/* no process here is the owner */
		owner.inode += one->is_visible ? 0 : 1ull << 40;
		owner.start += !one->is_visible;
		sees_all = one->sees_all;
		for (int turn = 0; turn < 2 && (heir.owner.inode || !one->is_visible);
			turn++) {
			job = judge(&set, &owner, 100);
			end = liveness_is_over(job) ? IS_OVER
			      : is_lingering(job)   ? LINGERS
						    : LIVES;
			if (end != one->end)
				fail_msg("%s: %d", one->text, end);
			assert_int_equal(liveness_is_unwatchable(job),
				!one->has_writer && !one->is_visible && end != IS_OVER);
		}
		/* once seen, it is followed like any other process */
		other_kill(&heir);
		if (heir.owner.inode && one->is_visible)
			assert_true(liveness_is_over(judge(&set, &owner, 200)));
		other_end(&heir);
		other_end(&watchdog);
		liveness_set_release(&set);
	}
	statedir_release(&dir);
}

static void in_its_own_namespace_an_adopted_owner_needs_no_watchdog(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other heir = other_start(dir.fd, OTHER_ALONE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job;

	heir.owner.is_adopted = OWNER_WATCHED;
	job = judge(&set, &heir.owner, 100);
	assert_false(liveness_is_dead(job) || liveness_is_unwatchable(job));
	other_kill(&heir);
	job = judge(&set, &heir.owner, 200);
	assert_true(liveness_is_dead(job) && liveness_is_over(job));
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_fifo_that_cannot_be_read_never_means_death(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct owner owner = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	char name[64];
	struct liveness *job;

	owner.pidns++;
	(void)snprintf(name, sizeof(name), FIFO_LIVE "/%s", owner.token);
	assert_int_equal(scratch_write(s, name, ""), 0); /* no FIFO: undecided */
	job = judge(&set, &owner, 100);
	assert_false(liveness_is_dead(job) || liveness_is_over(job));
	assert_true(liveness_is_unwatchable(job));
	assert_int_equal(job->unwatchable_ms, 100);
	job = judge(&set, &owner, 200);
	assert_int_equal(job->unwatchable_ms, 100); /* since when */
	assert_int_equal(unlinkat(dir.fd, name, 0), 0);
	job = judge(&set, &owner, 300);
	assert_true(liveness_is_over(job));
	assert_false(liveness_is_unwatchable(job));
	assert_int_equal(job->unwatchable_ms, 0);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_dead_job_with_an_unreadable_fifo_lingers(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct owner owner = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job;
	char name[64];

	(void)snprintf(name, sizeof(name), FIFO_LIVE "/%s", owner.token);
	assert_int_equal(scratch_write(s, name, ""), 0);
	job = judge(&set, &owner, 100);
	assert_true(liveness_is_dead(job) && is_lingering(job));
	assert_false(liveness_is_over(job));
	assert_true(liveness_is_unwatchable(job)); /* so a timer has to look */
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_ticket_needs_only_its_process(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct liveness *job = liveness_set_judge(&set, &other.owner, false, 100);

	assert_non_null(job);
	assert_int_equal(job->fifo_fd, -1);
	assert_false(liveness_is_dead(job) || liveness_is_unwatchable(job));
	other_kill(&other);
	job = liveness_set_judge(&set, &other.owner, false, 200);
	assert_true(liveness_is_dead(job));
	other_end(&other);
	liveness_set_release(&set);
	statedir_release(&dir);
}

static void a_job_that_is_no_longer_used_is_forgotten(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	int before = fixture_open_fds();

	liveness_set_begin(&set);
	judge(&set, &one.owner, 100)->is_watched = true;
	judge(&set, &two.owner, 100)->is_watched = true;
	liveness_set_end(&set);
	assert_int_equal(set.count, 2);
	assert_int_equal(fixture_open_fds(), before + 4);
	liveness_set_begin(&set);
	assert_false(set.all[0].is_watched || set.all[1].is_watched);
	(void)judge(&set, &two.owner, 200);
	liveness_set_end(&set);
	assert_int_equal(set.count, 1);
	assert_string_equal(set.all[0].owner.token, two.owner.token);
	assert_int_equal(fixture_open_fds(), before + 2);
	liveness_set_release(&set);
	assert_int_equal(fixture_open_fds(), before);
	liveness_set_release(&set);
	other_end(&one);
	other_end(&two);
	statedir_release(&dir);
}

static void many_lives_are_followed_at_once(void **state)
{
	enum { MANY = 40 };
	static struct other others[MANY];
	struct statedir dir = fixture_dir(*state);
	struct liveness_set set = LIVENESS_SET_ON(&dir);

	for (size_t i = 0; i < MANY; i++)
		others[i] = other_start(dir.fd, OTHER_LIVE);
	for (size_t i = 0; i < MANY; i++)
		(void)judge(&set, &others[i].owner, 100);
	for (size_t i = 0; i < MANY; i += 2)
		other_kill(&others[i]);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(
			liveness_is_over(judge(&set, &others[i].owner, 200)), i % 2 == 0);
	for (size_t i = 0; i < MANY; i++)
		other_end(&others[i]);
	liveness_set_release(&set);
	statedir_release(&dir);
}

/*
 * A descriptor that has fired is not watched any more: a caller that relies on the
 * first judgement would wait in vain.
 */
static void an_end_between_two_judgements_of_a_turn_is_noticed(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct liveness_set set = LIVENESS_SET_ON(&dir);

	liveness_set_begin(&set);
	(void)judge(&set, &other.owner, 100);
	(void)judge(&set, &other.owner, 100);
	assert_false(set.has_changed);
	other_kill(&other);
	(void)judge(&set, &other.owner, 200);
	assert_true(set.has_changed);
	liveness_set_begin(&set);
	assert_false(set.has_changed);
	(void)judge(&set, &other.owner, 300);
	other_kill_heir(&other);
	(void)judge(&set, &other.owner, 400);
	assert_true(set.has_changed);
	liveness_set_begin(
		&set); /* one that is found so in the next turn is what that acts on */
	(void)judge(&set, &other.owner, 500);
	assert_false(set.has_changed);
	liveness_set_release(&set);
	statedir_release(&dir);
}

/* --- the command of a supervisor ------------------------------------------------------ */

/* A supervisor and its command, which has closed the FIFO. */
static struct supervised {
	struct statedir dir;
	struct other supervisor, other;
	struct command runs;
	struct liveness_set set;
} s;

static struct command command_of(const struct owner *owner)
{
	return (struct command){
		.pid = owner->pid, .inode = owner->inode, .start = owner->start
	};
}

static int set_up_supervised(struct scratch *here)
{
	(void)here;
	s.supervisor = other_start(s.dir.fd, OTHER_LIVE | OTHER_HEIR);
	s.other = other_start(s.dir.fd, OTHER_ALONE);
	s.runs = command_of(&s.other.owner);
	s.set = LIVENESS_SET_ON(&s.dir);
	return 0;
}

static void tear_down_supervised(void)
{
	liveness_set_release(&s.set);
	other_end(&s.supervisor);
	other_end(&s.other);
}

static struct fixture supervised = {
	.dir = &s.dir, .set_up = set_up_supervised, .tear_down = tear_down_supervised
};

#define SUPERVISED_TEST(f) FIXTURE_TEST(f, supervised)

/* Judges the supervisor with its command. */
static struct liveness *judge_job(int64_t now_ms)
{
	struct liveness *job =
		liveness_set_judge_job(&s.set, &s.supervisor.owner, &s.runs, now_ms);

	assert_non_null(job);
	return job;
}

static void a_command_takes_the_place_of_its_dead_supervisor(void **state)
{
	struct liveness *job;

	(void)state;
	other_kill_heir(&s.supervisor); /* only the supervisor holds the FIFO */
	assert_false(judge_job(100)->is_orphaned);
	other_kill(&s.supervisor);
	job = judge_job(200);
	assert_true(job->is_orphaned);
	assert_false(liveness_is_dead(job) || liveness_is_over(job) || is_lingering(job));
	assert_int_equal(job->fifo, LIVENESS_ENDED);
	assert_int_equal(job->runs.pid, s.other.pid);
	assert_int_equal(job->dead_ms, 0);
	assert_false(liveness_is_unwatchable(job));
	assert_false(fixture_is_ready(job->pidfd, POLLIN));
	/* also where the owner is judged without it */
	assert_false(liveness_is_dead(judge(&s.set, &s.supervisor.owner, 300)));
	assert_int_equal(kill(s.other.pid, SIGKILL), 0);
	assert_true(fixture_await_end(s.other.pid));
	assert_true(fixture_is_ready(job->pidfd, POLLIN));
	job = judge(&s.set, &s.supervisor.owner, 400);
	assert_true(liveness_is_over(job));
	assert_int_equal(job->dead_ms, 400);
	assert_int_equal(job->pidfd, -1);
	other_kill(&s.other);       /* reaps it */
	if (liveness_may_tell(job)) /* from Linux 6.15 on */
		assert_int_equal(
			judge(&s.set, &s.supervisor.owner, 500)->status, 128 + SIGKILL);
}

static void a_command_that_ended_before_its_supervisor_changes_nothing(void **state)
{
	struct liveness *job;

	(void)state;
	(void)judge_job(100);
	other_kill(&s.other);
	job = judge_job(200);
	assert_false(liveness_is_dead(job) || job->is_orphaned);
	other_end(&s.supervisor);
	for (int64_t now_ms = 300; now_ms < 500; now_ms += 100) {
		job = judge_job(now_ms);
		assert_true(liveness_is_over(job));
		assert_false(job->is_orphaned);
		assert_int_equal(job->over_ms, 300);
	}
}

static void a_command_that_is_learned_of_late_counts_too(void **state)
{
	(void)state;
	other_end(&s.supervisor);
	assert_true(liveness_is_over(judge(&s.set, &s.supervisor.owner, 100)));
	assert_false(liveness_is_over(judge_job(200)));
	other_kill(&s.other);
	assert_true(liveness_is_over(judge(&s.set, &s.supervisor.owner, 300)));
}

static void a_command_that_cannot_be_judged_lives_as_long_as_the_fifo_is_held(
	void **state)
{
	struct liveness *job;

	(void)state;
	s.runs =
		(struct command){ .pid = s.other.owner.pid }; /* no more is known of it */
	other_kill(&s.supervisor);
	job = judge_job(100);
	assert_int_equal(job->process, LIVENESS_UNKNOWN);
	assert_false(liveness_is_dead(job)); /* so nothing lingers */
	other_kill_heir(&s.supervisor);
	assert_true(liveness_is_over(judge_job(200)));
}

static void a_lease_that_was_given_back_has_no_command(void **state)
{
	(void)state;
	liveness_end(judge_job(100), true, 200);
	assert_true(liveness_is_over(judge(&s.set, &s.supervisor.owner, 300)));
}

/* --- with few descriptors ------------------------------------------------------------- */

enum { CROWD = 14, CROWD_FDS = 8 };

/* Judges and watches the crowd as a turn does: the even ones as leases, the others as tickets. */
static void watch_crowd(struct liveness_set *set, const struct other *crowd,
	struct watch *watch, int64_t now_ms)
{
	liveness_set_begin(set);
	for (unsigned i = 0; i < CROWD; i++)
		assert_non_null(
			liveness_set_judge(set, &crowd[i].owner, i % 2 == 0, now_ms));
	liveness_set_end(set);
	for (unsigned i = 0; i < CROWD; i++)
		if (!liveness_is_dead(&set->all[i]))
			set->all[i].is_watched = true;
	watch_begin(watch);
	assert_int_equal(liveness_set_watch(set, watch, now_ms), 0);
}

static bool is_any_ready(const struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (fixture_is_ready(watch->fds[i].fd, watch->fds[i].events))
			return true;
	return false;
}

static void few_descriptors_are_enough_to_notice_every_end(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct watch watch = WATCH_NONE;
	struct other crowd[CROWD];
	int before;

	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = other_start(dir.fd, OTHER_LIVE);
	before = fixture_open_fds();
	set.most = CROWD_FDS;
	set.look_ms = 700;
	for (unsigned i = 0; i < CROWD; i++) {
		int64_t now_ms = 1000 * (1 + (int64_t)i);

		watch_crowd(&set, crowd, &watch, now_ms);
		assert_true(fixture_open_fds() - before <= CROWD_FDS);
		assert_false(is_any_ready(&watch));
		other_kill(&crowd[i]);
		/* an event, or a look that is due; there is one while any has no descriptor */
		assert_true(is_any_ready(&watch) || watch.until_ms == now_ms + 700);
		if (CROWD - i > CROWD_FDS)
			assert_int_equal(watch.until_ms, now_ms + 700);
		else if (i >= CROWD / 2)
			assert_true(is_any_ready(&watch));
		watch_crowd(&set, crowd, &watch, now_ms + 700);
		assert_true(liveness_is_dead(&set.all[i]) || set.has_changed);
		watch_crowd(&set, crowd, &watch, now_ms + 701);
		assert_true(liveness_is_dead(&set.all[i]));
	}
	liveness_set_let_go(&set);
	assert_int_equal(set.count, 0);
	assert_int_equal(fixture_open_fds(), before);
	liveness_set_release(&set);
	watch_release(&watch);
	statedir_release(&dir);
}

static void a_ticket_is_judged_without_keeping_anything(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct watch watch = WATCH_NONE;
	struct liveness *job;
	int before = fixture_open_fds();

	set.most = CROWD_FDS;
	job = liveness_set_judge(&set, &other.owner, false, 100);
	assert_false(liveness_is_dead(job));
	assert_int_equal(fixture_open_fds(), before);
	job->is_watched = true;
	watch_begin(&watch);
	other_kill(&other);
	/* it has ended since: the wait ends at once */
	assert_int_equal(liveness_set_watch(&set, &watch, 200), 0);
	assert_true(set.has_changed);
	assert_int_equal(watch.until_ms, 200);
	assert_true(liveness_is_dead(job));
	liveness_set_release(&set);
	watch_release(&watch);
	statedir_release(&dir);
}

static void without_descriptors_nobody_is_dead(void **state)
{
	struct statedir dir = fixture_dir(*state);
	/* its FIFO has no writer, so only its process shows that it lives */
	struct other other = other_start(dir.fd, OTHER_ALONE);
	struct liveness_set set = LIVENESS_SET_ON(&dir);
	struct rlimit before, none;
	struct liveness *job;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	for (set.most = 0; set.most <= 1; set.most++) {
		job = judge(&set, &other.owner, 50);
		close_fd(&job->pidfd);
		job->process = LIVENESS_UNKNOWN;
		job->fifo = LIVENESS_ENDED;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		job = liveness_set_judge(&set, &other.owner, true, 100);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_false(liveness_is_dead(job) || liveness_is_over(job));
		liveness_set_let_go(&set);
	}
	other_kill(&other);
	assert_true(liveness_is_over(judge(&set, &other.owner, 200)));
	liveness_set_release(&set);
	statedir_release(&dir);
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
		SCRATCH_TEST(a_job_that_died_before_the_first_look_is_over_at_once),
		SCRATCH_TEST(the_status_is_known_once_the_process_is_reaped),
		SCRATCH_TEST(the_pidfd_of_an_unreaped_process_is_closed_with_its_job),
		SCRATCH_TEST(a_process_that_closed_its_fifo_still_lives),
		SCRATCH_TEST(a_half_that_has_fired_stays_fired),
		SCRATCH_TEST(a_lingering_one_may_be_declared_over_by_its_name),
		SCRATCH_TEST(in_another_namespace_the_fifo_decides),
		SCRATCH_TEST(
			an_adopted_owner_elsewhere_is_judged_by_its_watchdog_or_by_a_search),
		SCRATCH_TEST(in_its_own_namespace_an_adopted_owner_needs_no_watchdog),
		SCRATCH_TEST(a_fifo_that_cannot_be_read_never_means_death),
		SCRATCH_TEST(a_dead_job_with_an_unreadable_fifo_lingers),
		SCRATCH_TEST(a_ticket_needs_only_its_process),
		SCRATCH_TEST(a_job_that_is_no_longer_used_is_forgotten),
		SCRATCH_TEST(many_lives_are_followed_at_once),
		SCRATCH_TEST(an_end_between_two_judgements_of_a_turn_is_noticed),
		SCRATCH_TEST(few_descriptors_are_enough_to_notice_every_end),
		SCRATCH_TEST(a_ticket_is_judged_without_keeping_anything),
		SCRATCH_TEST(without_descriptors_nobody_is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
