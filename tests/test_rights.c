#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/prctl.h>

#include "fixture.h"
#include "rights.h"

enum { USER = 61184, LENT = 61185 }; /* nobody's on this machine */

static const struct scratch *here;

static int setup(void **state)
{
	int r = scratch_setup(state);

	here = *state;
	/* whoever comes may look for names, but only the group may read the file */
	if (r == 0 && (chmod(here->path, 0755) < 0 || chown(here->path, 0, 0) < 0))
		r = geteuid() == 0 ? -1 : 0;
	return r;
}

static bool can_read(void)
{
	autofd int fd = openat(here->dirfd, "secret", O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

/* Runs @part in a process of a user to which a group is lent; what it returns. */
static int as_lent(int (*part)(void))
{
	int status = 0, fd = openat(here->dirfd, "secret", O_CREAT | O_RDWR, 0040);
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 0, LENT), 0);
	(void)close(fd);
	pid = fork();
	if (pid == 0) {
		if (setgid(USER) < 0 || setresgid(USER, LENT, LENT) < 0 ||
			setresuid(USER, USER, USER) < 0)
			_exit(99);
		_exit(part());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int what_is_lent_opens_files(void)
{
	return rights_are_lent() && can_read() ? 0 : 1;
}

static int as_the_user_it_does_not(void)
{
	bool before = can_read(), meanwhile, after;

	rights_as_user_begin();
	meanwhile = can_read();
	rights_as_user_end();
	after = can_read();
	return before && !meanwhile && after ? 0 : 1;
}

static int dropped_it_never_comes_back(void)
{
	if (rights_drop() < 0 || rights_are_lent() || can_read())
		return 1;
	if (setegid(LENT) == 0 || setgid(LENT) == 0 || setresgid(-1U, LENT, -1U) == 0)
		return 2;
	return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 3;
}

#define AS_LENT(part)                               \
	static void part##_test(void **state)       \
	{                                           \
		(void)state;                        \
		if (geteuid() != 0)                 \
			skip();                     \
		assert_int_equal(as_lent(part), 0); \
	}

AS_LENT(what_is_lent_opens_files)
AS_LENT(as_the_user_it_does_not)
AS_LENT(dropped_it_never_comes_back)

static void without_a_lent_group_nothing_changes(void **state)
{
	gid_t group = getgid();

	(void)state;
	assert_false(rights_are_lent());
	rights_as_user_begin();
	rights_as_user_end();
	assert_int_equal(rights_drop(), 0);
	assert_int_equal(getgid(), group);
	assert_int_equal(getegid(), group);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_lent_opens_files_test),
		TEST(as_the_user_it_does_not_test),
		TEST(dropped_it_never_comes_back_test),
		TEST(without_a_lent_group_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
