#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "process_lease.h"
#include "tree.h"

/* A child, its child, and an orphan of that, in a session of its own. */
struct family {
	pid_t child, grandchild, orphan;
};

static struct tree tree;

static int setup(void **state)
{
	(void)state;
	tree = TREE_NONE;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static int teardown(void **state)
{
	(void)state;
	tree_release(&tree);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void leave_an_orphan(int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		pid = fork();
		if (pid == 0)
			fixture_rest();
		(void)!write(out, &pid, sizeof(pid));
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void become_family(int out)
{
	pid_t pid;

	(void)setpgid(0, 0);
	pid = fork();
	if (pid == 0)
		fixture_rest();
	(void)!write(out, &pid, sizeof(pid));
	leave_an_orphan(out);
	(void)!write(out, "", 1);
	fixture_rest();
}

static struct family start_family(void)
{
	struct family family = { 0 };
	int ends[2];
	char done;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	family.child = fork();
	if (family.child == 0)
		become_family(ends[1]);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &family.grandchild, sizeof(pid_t)), sizeof(pid_t));
	assert_int_equal(read(ends[0], &family.orphan, sizeof(pid_t)), sizeof(pid_t));
	/* its parent has exited: the orphan has another parent now */
	assert_int_equal(read(ends[0], &done, 1), 1);
	(void)close(ends[0]);
	return family;
}

static void end_family(struct family *family)
{
	fixture_kill(&family->child);
	fixture_kill(&family->grandchild);
	fixture_kill(&family->orphan);
}

static bool is_below(pid_t pid)
{
	for (size_t i = 0; i < tree.count; i++)
		if (tree.all[i].pid == (uint32_t)pid)
			return tree.all[i].is_below;
	return false;
}

static int signal_of(pid_t pid)
{
	int status = 0;

	assert_true(fixture_await_end(pid));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void all_descendants_are_found(void **state)
{
	struct family family = start_family();

	(void)state;
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_int_equal(tree_count(&tree), 3);
	assert_true(is_below(family.child));
	assert_true(is_below(family.grandchild));
	assert_true(is_below(family.orphan));
	assert_false(is_below(getpid()));
	assert_false(is_below(getppid()));
	end_family(&family);
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_int_equal(tree_count(&tree), 0);
}

static void an_excluded_process_is_left_out_with_its_descendants(void **state)
{
	struct family family = start_family();
	const uint32_t but[] = { 0, (uint32_t)family.child };

	(void)state;
	assert_int_equal(tree_read(&tree, but, 2), 0);
	assert_int_equal(tree_count(&tree), 1);
	assert_true(is_below(family.orphan));
	end_family(&family);
}

static void a_zombie_does_not_count(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(fixture_await_end(pid));
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_int_equal(tree_count(&tree), 0);
	assert_int_equal(tree_signal(&tree, SIGKILL, 0), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_signal_reaches_one_group_or_the_others_or_all(void **state)
{
	struct family family = start_family();

	(void)state;
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_int_equal(tree_signal(&tree, SIGTERM, -family.child), 1);
	assert_int_equal(signal_of(family.orphan), SIGTERM);
	assert_int_equal(tree_signal(&tree, SIGKILL, family.child), 2);
	assert_int_equal(signal_of(family.child), SIGKILL);
	assert_int_equal(signal_of(family.grandchild), SIGKILL);
	family = start_family();
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_int_equal(tree_signal(&tree, SIGKILL, 0), 3);
	end_family(&family);
}

static void a_later_process_with_the_same_pid_is_not_signaled(void **state)
{
	struct family family = start_family();

	(void)state;
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	for (size_t i = 0; i < tree.count; i++)
		tree.all[i].start++;
	assert_int_equal(tree_signal(&tree, SIGKILL, 0), 0);
	end_family(&family);
}

/* Starts a child with the name @name; sets *@ret_pid. */
static void start_named(const char *name, bool has_session, pid_t *ret_pid)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		if (has_session)
			(void)setsid();
		(void)prctl(PR_SET_NAME, name);
		(void)!write(ends[1], "x", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void a_job_in_the_background_is_apart_but_not_the_fork_of_one(void **state)
{
	pid_t job, notifier, fork_of_one;

	(void)state;
	start_named(PROCESS_LEASE_SUBMITTED, true, &job);
	start_named(PROCESS_LEASE_NOTIFIER, true, &notifier);
	start_named(PROCESS_LEASE_SUBMITTED, false, &fork_of_one);
	assert_int_equal(tree_read(&tree, NULL, 0), 0);
	assert_false(is_below(job));
	assert_false(is_below(notifier));
	assert_true(is_below(fork_of_one));
	assert_int_equal(tree_signal(&tree, SIGKILL, 0), 1);
	assert_int_equal(signal_of(fork_of_one), SIGKILL);
	(void)kill(job, SIGKILL);
	assert_int_equal(signal_of(job), SIGKILL);
	(void)kill(notifier, SIGKILL);
	assert_int_equal(signal_of(notifier), SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_descendants_are_found),
		TEST(an_excluded_process_is_left_out_with_its_descendants),
		TEST(a_zombie_does_not_count),
		TEST(a_signal_reaches_one_group_or_the_others_or_all),
		TEST(a_later_process_with_the_same_pid_is_not_signaled),
		TEST(a_job_in_the_background_is_apart_but_not_the_fork_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
