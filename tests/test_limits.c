#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "../gpulease/limits.h"
#include "fixture.h"
#include "kin.h"
#include "ticket.h"

/* What a child has found, told by its exit status. */
enum { GOOD = 0, BAD = 1 };

/* Limits are changed in a process of its own. */
static int run_apart(int (*check)(const struct scratch *), const struct scratch *s)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check(s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status)); /* and not killed by SIGXFSZ */
	return WEXITSTATUS(status);
}

static bool limit(unsigned resource, rlim_t soft, rlim_t hard)
{
	struct rlimit wanted = { .rlim_cur = soft, .rlim_max = hard };

	return prlimit(0, resource, &wanted, NULL) == 0;
}

static bool is_limit(unsigned resource, rlim_t soft, rlim_t hard)
{
	struct rlimit now;

	return prlimit(0, resource, NULL, &now) == 0 && now.rlim_cur == soft &&
	       now.rlim_max == hard;
}

static int check_rounding(const struct scratch *s)
{
	(void)s;
	if (!limit(RLIMIT_FSIZE, 700, 1300) || !limit(RLIMIT_NOFILE, 20, 50))
		return BAD;
	limits_raise();
	if (!is_limit(RLIMIT_FSIZE, 1024, 1300) || !is_limit(RLIMIT_NOFILE, 50, 50))
		return BAD;
	limits_restore();
	return is_limit(RLIMIT_FSIZE, 700, 1300) && is_limit(RLIMIT_NOFILE, 20, 50) ? GOOD
										    : BAD;
}

static void soft_limits_are_raised_rounded_and_given_back(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_rounding, NULL), GOOD);
}

static int check_unlimited(const struct scratch *s)
{
	struct rlimit before;

	(void)s;
	if (getrlimit(RLIMIT_FSIZE, &before) < 0 || before.rlim_max != RLIM_INFINITY)
		return GOOD;
	limits_raise();
	return is_limit(RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY) ? GOOD : BAD;
}

static void no_limit_stays_none(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_unlimited, NULL), GOOD);
}

static int check_signal(const struct scratch *s)
{
	struct sigaction seen;

	(void)s;
	limits_raise();
	if (sigaction(SIGXFSZ, NULL, &seen) < 0 || seen.sa_handler != SIG_IGN)
		return BAD;
	limits_restore();
	limits_restore();
	return sigaction(SIGXFSZ, NULL, &seen) == 0 && seen.sa_handler == SIG_DFL ? GOOD
										  : BAD;
}

static void sigxfsz_is_ignored_meanwhile(void **state)
{
	(void)state;
	(void)signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(run_apart(check_signal, NULL), GOOD);
}

static int check_child_signal(const struct scratch *s)
{
	struct sigaction seen;

	(void)s;
	(void)signal(SIGCHLD, SIG_IGN);
	limits_raise();
	limits_raise(); /* a second time nothing happens */
	if (sigaction(SIGCHLD, NULL, &seen) < 0 || seen.sa_handler != SIG_DFL)
		return BAD;
	limits_restore();
	return sigaction(SIGCHLD, NULL, &seen) == 0 && seen.sa_handler == SIG_IGN ? GOOD
										  : BAD;
}

static void sigchld_is_not_ignored_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_child_signal, NULL), GOOD);
}

static bool is_treated(int signal, void (*handler)(int))
{
	struct sigaction seen;

	return sigaction(signal, NULL, &seen) == 0 && seen.sa_handler == handler;
}

static int check_ignoring(const struct scratch *s)
{
	static const struct {
		int signal;
		void (*ignore)(void);
		void (*before)(int);
	} cases[] = {
		{ SIGHUP, limits_ignore_hangup, SIG_DFL },
		{ SIGHUP, limits_ignore_hangup, SIG_IGN },
		{ SIGPIPE, limits_ignore_broken_pipe, SIG_DFL },
		{ SIGPIPE, limits_ignore_broken_pipe, SIG_IGN },
	};

	(void)s;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)signal(cases[i].signal, cases[i].before);
		limits_raise();
		if (!is_treated(cases[i].signal, cases[i].before))
			return BAD;
		cases[i].ignore();
		if (!is_treated(cases[i].signal, SIG_IGN))
			return BAD;
		limits_restore();
		if (!is_treated(cases[i].signal, cases[i].before))
			return BAD;
	}
	return GOOD;
}

static void signals_that_are_ignored_for_a_while_are_given_back(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_ignoring, NULL), GOOD);
}

/* The first ticket fits, the second would be cut in the middle. */
static int check_append(const struct scratch *s)
{
	struct ticket_file file = TICKET_FILE_NONE;
	struct ticket ticket = { .state = TICKET_WAITING };
	uint64_t number;
	struct stat st;

	if (!limit(RLIMIT_FSIZE, 1300, 1300))
		return BAD;
	limits_raise();
	if (token_make(ticket.owner.token) < 0 || ticket_open(s->dirfd, &file) < 0 ||
		ticket_append(&file, &ticket, &number) < 0 || number != 1)
		return BAD;
	if (ticket_append(&file, &ticket, &number) != -EFBIG)
		return BAD;
	return fstat(file.fd, &st) == 0 && st.st_size == 1024 ? GOOD : BAD;
}

static void under_a_limit_an_append_is_whole_or_nothing(void **state)
{
	assert_int_equal(run_apart(check_append, *state), GOOD);
}

static int check_tag(const struct scratch *s)
{
	static const char token[] = "8123456789abcdef";
	struct rlimit before;

	(void)s;
	if (getrlimit(RLIMIT_LOCKS, &before) < 0)
		return BAD;
	limits_tag("no token");
	if (!is_limit(RLIMIT_LOCKS, before.rlim_cur, before.rlim_max))
		return BAD;
	limits_tag(token);
	if (!is_limit(RLIMIT_LOCKS, kin_tag(token), before.rlim_max))
		return BAD;
	/* where the hard limit is lower there is none */
	if (!limit(RLIMIT_LOCKS, 10, 1000))
		return BAD;
	limits_tag(token);
	return is_limit(RLIMIT_LOCKS, 10, 1000) ? GOOD : BAD;
}

static void the_tag_is_a_soft_limit_where_it_fits(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_tag, NULL), GOOD);
}

/* In the parent: the child has the tag then, and the parent has not. */
static int check_tag_of_other(const struct scratch *s)
{
	static const char token[] = "8123456789abcdef";
	pid_t child = fork();
	struct rlimit before;
	uint64_t tag;

	(void)s;
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	if (child < 0 || getrlimit(RLIMIT_LOCKS, &before) < 0)
		return BAD;
	limits_tag_process((uint32_t)child, token);
	tag = kin_tag_of_process((uint32_t)child);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return tag == kin_tag(token) &&
			       is_limit(RLIMIT_LOCKS, before.rlim_cur, before.rlim_max)
		       ? GOOD
		       : BAD;
}

static void another_process_can_be_tagged(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_tag_of_other, NULL), GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soft_limits_are_raised_rounded_and_given_back),
		cmocka_unit_test(no_limit_stays_none),
		cmocka_unit_test(sigxfsz_is_ignored_meanwhile),
		cmocka_unit_test(sigchld_is_not_ignored_meanwhile),
		cmocka_unit_test(signals_that_are_ignored_for_a_while_are_given_back),
		SCRATCH_TEST(under_a_limit_an_append_is_whole_or_nothing),
		cmocka_unit_test(the_tag_is_a_soft_limit_where_it_fits),
		cmocka_unit_test(another_process_can_be_tagged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
