#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "fixture.h"
#include "process_lease.h"
#include "terminate.h"

enum { NOW = 1000000, GRACE = 10000 };

static struct statedir dir;
static struct liveness_set lives;

static int set_up(struct scratch *here)
{
	(void)here;
	lives = LIVENESS_SET_ON(&dir);
	return 0;
}

static void tear_down(void)
{
	liveness_set_release(&lives);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

enum { IGNORES = 1u << 0, LEADS = 1u << 1, HAS_CHILD = 1u << 2 };

/* A job: carries its tag, and ends as TERM has it or not. */
struct job {
	pid_t pid, child;
	struct owner owner;
};

static void become_job(unsigned how, int out)
{
	struct job job = { .pid = getpid() };
	struct rlimit limit;

	if (how & LEADS)
		(void)setpgid(0, 0);
	(void)signal(SIGTERM, how & IGNORES ? SIG_IGN : SIG_DFL);
	if (owner_self(&job.owner) < 0 || fifo_create(&dir, FIFO_LIVE, &job.owner) < 0 ||
		getrlimit(RLIMIT_LOCKS, &limit) < 0)
		_exit(1);
	limit.rlim_cur = process_lease_tag(job.owner.token);
	(void)setrlimit(RLIMIT_LOCKS, &limit);
	if (how & HAS_CHILD) {
		job.child = fork();
		if (job.child == 0)
			fixture_rest();
	}
	(void)!write(out, &job, sizeof(job));
	(void)close(out);
	fixture_rest();
}

static struct job start(unsigned how)
{
	struct job job = { .pid = 0 };
	int ends[2];

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	job.pid = fork();
	if (job.pid == 0)
		become_job(how, ends[1]);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &job, sizeof(job)), sizeof(job));
	(void)close(ends[0]);
	return job;
}

static void finish(struct job *job)
{
	fixture_kill(&job->pid);
	fixture_kill(&job->child);
}

static struct termination end_of(const struct job *job)
{
	return (struct termination){ .owner = job->owner, .grace_ms = GRACE };
}

/* A step at @now_ms; returns when to come back, 0: it is over, or a negative errno. */
static int64_t step(struct termination *termination, int64_t now_ms)
{
	struct liveness *life =
		liveness_set_judge(&lives, &termination->owner, true, now_ms);
	int64_t wake_ms = 4711;
	int r;

	assert_non_null(life);
	r = terminate_step(termination, life, dir.pidns, now_ms, &wake_ms);
	return r == TERMINATE_LATER ? wake_ms : r;
}

/* The signal that ended @pid, which is reaped; 0: it still lives. */
static int signal_of(pid_t *pid, bool waits)
{
	int status = 0;

	if (waits)
		assert_true(fixture_await_end(*pid));
	if (waitpid(*pid, &status, WNOHANG) != *pid)
		return 0;
	*pid = 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void term_comes_first_and_is_enough_for_most(void **state)
{
	struct job job = start(0);
	struct termination end = end_of(&job);

	(void)state;
	assert_int_equal(step(&end, NOW), NOW + GRACE);
	assert_int_equal(end.begun_ms, NOW);
	assert_int_equal(end.killed_ms, 0);
	assert_int_equal(signal_of(&job.pid, true), SIGTERM);
	assert_int_equal(step(&end, NOW + 1), 0);
}

static void a_process_that_ignores_term_is_killed_after_the_grace(void **state)
{
	struct job job = start(IGNORES);
	struct termination end = end_of(&job);

	(void)state;
	assert_int_equal(step(&end, NOW), NOW + GRACE);
	assert_int_equal(step(&end, NOW + GRACE - 1), NOW + GRACE);
	assert_int_equal(signal_of(&job.pid, false), 0);
	assert_true(step(&end, NOW + GRACE) > NOW + GRACE);
	assert_int_equal(end.killed_ms, NOW + GRACE);
	assert_int_equal(signal_of(&job.pid, true), SIGKILL);
	assert_int_equal(step(&end, NOW + GRACE + 1), 0);
}

static void without_a_grace_the_kill_comes_at_once(void **state)
{
	struct job job = start(IGNORES);
	struct termination end = end_of(&job);

	(void)state;
	end.grace_ms = 0;
	assert_true(step(&end, NOW) > NOW);
	assert_int_equal(signal_of(&job.pid, true), SIGKILL);
}

static void a_group_leader_takes_its_group_along(void **state)
{
	struct job job = start(LEADS | HAS_CHILD), alone = start(HAS_CHILD);
	struct termination end = end_of(&job), other = end_of(&alone);

	(void)state;
	(void)step(&end, NOW);
	assert_int_equal(signal_of(&job.pid, true), SIGTERM);
	assert_int_equal(signal_of(&job.child, true), SIGTERM);
	/* a process that leads no group gets the signal alone: its group may be the user's shell */
	(void)step(&other, NOW);
	assert_int_equal(signal_of(&alone.pid, true), SIGTERM);
	assert_int_equal(signal_of(&alone.child, false), 0);
	finish(&alone);
}

static void processes_left_are_killed_until_the_lease_is_over(void **state)
{
	struct job job = start(HAS_CHILD);
	struct termination end = end_of(&job);
	int64_t wake_ms;

	(void)state;
	(void)step(&end, NOW);
	assert_int_equal(signal_of(&job.pid, true), SIGTERM);
	assert_int_equal(step(&end, NOW + 1), NOW + GRACE); /* not over: it has an heir */
	wake_ms = step(&end, NOW + GRACE);
	assert_true(wake_ms > NOW + GRACE);
	assert_int_equal(signal_of(&job.child, true), SIGKILL);
	assert_int_equal(step(&end, wake_ms), 0);
}

static void an_owner_that_died_before_leaves_term_to_its_heirs(void **state)
{
	struct job job = start(HAS_CHILD);
	struct termination end = end_of(&job);

	(void)state;
	fixture_kill(&job.pid);
	(void)step(&end, NOW);
	assert_int_equal(signal_of(&job.child, true), SIGTERM);
	assert_int_equal(step(&end, NOW + 1), 0);
}

static void a_step_ends_with_its_process_and_touches_nothing_else(void **state)
{
	struct job job = start(IGNORES | HAS_CHILD);
	struct termination end = end_of(&job);

	(void)state;
	end.is_step = true;
	(void)step(&end, NOW);
	(void)step(&end, NOW + GRACE);
	assert_int_equal(signal_of(&job.pid, true), SIGKILL);
	assert_int_equal(step(&end, NOW + GRACE + 1), 0);
	assert_int_equal(signal_of(&job.child, false), 0);
	finish(&job);
}

static void rounds_become_rarer_up_to_a_second(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct termination end = { .owner = other.owner };
	int64_t now_ms = NOW, pause_ms = 0;

	(void)state;
	/* an heir that carries no sign of the lease cannot be found */
	other_kill(&other);
	for (int i = 0; i < 12; i++) {
		int64_t wake_ms = step(&end, now_ms);

		assert_true(wake_ms > now_ms);
		assert_true(wake_ms - now_ms >= pause_ms);
		pause_ms = wake_ms - now_ms;
		now_ms = wake_ms;
	}
	assert_in_range(pause_ms, 500, 2000);
	other_kill_heir(&other);
	assert_int_equal(step(&end, now_ms), 0);
}

bool __wrap_namespaces_sees_all(void);

bool __wrap_namespaces_sees_all(void)
{
	return false;
}

static void a_process_of_another_namespace_is_not_guessed_at(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct termination end = { .owner = other.owner, .grace_ms = GRACE };

	(void)state;
	/* the pid is that of a process here, but not of the owner */
	end.owner.pidns++;
	end.owner.inode += 1ull << 40;
	end.owner.start++;
	assert_int_equal(step(&end, NOW), -ENOTSUP);
	assert_int_equal(waitpid(other.pid, NULL, WNOHANG), 0);
	other_end(&other);
}

static void a_process_of_an_inner_namespace_is_signalled_by_its_pid_here(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct termination end = { .owner = other.owner, .grace_ms = GRACE };

	(void)state;
	if (!other.owner.inode)
		skip_because("needs pidfds with inodes, Linux 6.9");
	end.owner.pidns++;
	end.owner.pid = 1; /* there */
	(void)step(&end, NOW);
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	other.pid = 0;
	other_end(&other);
}

static void a_pid_that_is_used_again_is_not_signalled(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct termination end = { .owner = other.owner, .grace_ms = 0 };

	(void)state;
	/* the recorded process is dead, and this one has its pid */
	end.owner.inode++;
	end.owner.start++;
	(void)step(&end, NOW);
	(void)step(&end, NOW + 1000);
	assert_int_equal(waitpid(other.pid, NULL, WNOHANG), 0);
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(term_comes_first_and_is_enough_for_most),
		TEST(a_process_that_ignores_term_is_killed_after_the_grace),
		TEST(without_a_grace_the_kill_comes_at_once),
		TEST(a_group_leader_takes_its_group_along),
		TEST(processes_left_are_killed_until_the_lease_is_over),
		TEST(an_owner_that_died_before_leaves_term_to_its_heirs),
		TEST(a_step_ends_with_its_process_and_touches_nothing_else),
		TEST(rounds_become_rarer_up_to_a_second),
		TEST(a_process_of_another_namespace_is_not_guessed_at),
		TEST(a_process_of_an_inner_namespace_is_signalled_by_its_pid_here),
		TEST(a_pid_that_is_used_again_is_not_signalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
