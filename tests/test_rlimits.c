#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "rlimits.h"
#include "fixture.h"
#include "process_lease.h"
#include "ticket.h"

/* What a child has found, as its exit status says. */
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
	rlimits_raise();
	if (!is_limit(RLIMIT_FSIZE, 1024, 1300) || !is_limit(RLIMIT_NOFILE, 50, 50))
		return BAD;
	rlimits_restore();
	return is_limit(RLIMIT_FSIZE, 700, 1300) && is_limit(RLIMIT_NOFILE, 20, 50) ? GOOD
										    : BAD;
}

static void soft_limits_are_raised_rounded_and_restored(void **state)
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
	rlimits_raise();
	return is_limit(RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY) ? GOOD : BAD;
}

static void an_unlimited_limit_stays_unlimited(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_unlimited, NULL), GOOD);
}

static int check_signal(const struct scratch *s)
{
	struct sigaction seen;

	(void)s;
	rlimits_raise();
	if (sigaction(SIGXFSZ, NULL, &seen) < 0 || seen.sa_handler != SIG_IGN)
		return BAD;
	rlimits_restore();
	rlimits_restore();
	return sigaction(SIGXFSZ, NULL, &seen) == 0 && seen.sa_handler == SIG_DFL ? GOOD
										  : BAD;
}

static void sigxfsz_is_ignored_until_the_limits_are_restored(void **state)
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
	rlimits_raise();
	rlimits_raise(); /* a second time nothing happens */
	if (sigaction(SIGCHLD, NULL, &seen) < 0 || seen.sa_handler != SIG_DFL)
		return BAD;
	rlimits_restore();
	return sigaction(SIGCHLD, NULL, &seen) == 0 && seen.sa_handler == SIG_IGN ? GOOD
										  : BAD;
}

static void sigchld_is_not_ignored_until_the_limits_are_restored(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_child_signal, NULL), GOOD);
}

static bool is_treated(int signal, void (*handler)(int))
{
	struct sigaction seen;

	return sigaction(signal, NULL, &seen) == 0 && seen.sa_handler == handler;
}

static int check_obeying(const struct scratch *s)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTSTP };

	(void)s;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		(void)signal(signals[i], SIG_IGN);
	rlimits_raise();
	rlimits_ignore_hangup();
	rlimits_obey_terminal();
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!is_treated(signals[i], SIG_DFL))
			return BAD;
	/* so does the command */
	rlimits_restore();
	return is_treated(SIGHUP, SIG_DFL) ? GOOD : BAD;
}

static void a_job_with_a_terminal_obeys_its_signals(void **state)
{
	(void)state;
	assert_int_equal(run_apart(check_obeying, NULL), GOOD);
}

static int check_ignoring(const struct scratch *s)
{
	static const struct {
		int signal;
		void (*ignore)(void);
		void (*before)(int);
	} cases[] = {
		{ SIGHUP, rlimits_ignore_hangup, SIG_DFL },
		{ SIGHUP, rlimits_ignore_hangup, SIG_IGN },
		{ SIGPIPE, rlimits_ignore_broken_pipe, SIG_DFL },
		{ SIGPIPE, rlimits_ignore_broken_pipe, SIG_IGN },
	};

	(void)s;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)signal(cases[i].signal, cases[i].before);
		rlimits_raise();
		if (!is_treated(cases[i].signal, cases[i].before))
			return BAD;
		cases[i].ignore();
		if (!is_treated(cases[i].signal, SIG_IGN))
			return BAD;
		rlimits_restore();
		if (!is_treated(cases[i].signal, cases[i].before))
			return BAD;
	}
	return GOOD;
}

static void ignored_signals_are_restored(void **state)
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
	rlimits_raise();
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
	rlimits_tag("no token");
	if (!is_limit(RLIMIT_LOCKS, before.rlim_cur, before.rlim_max))
		return BAD;
	rlimits_tag(token);
	if (!is_limit(RLIMIT_LOCKS, process_lease_tag(token), before.rlim_max))
		return BAD;
	/* where the hard limit is lower there is none */
	if (!limit(RLIMIT_LOCKS, 10, 1000))
		return BAD;
	rlimits_tag(token);
	return is_limit(RLIMIT_LOCKS, 10, 1000) ? GOOD : BAD;
}

static void the_tag_is_the_soft_limit_if_the_hard_one_allows(void **state)
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
	rlimits_tag_process((uint32_t)child, token);
	tag = process_lease_tag_of_process((uint32_t)child);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return tag == process_lease_tag(token) &&
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
		cmocka_unit_test(soft_limits_are_raised_rounded_and_restored),
		cmocka_unit_test(an_unlimited_limit_stays_unlimited),
		cmocka_unit_test(sigxfsz_is_ignored_until_the_limits_are_restored),
		cmocka_unit_test(sigchld_is_not_ignored_until_the_limits_are_restored),
		cmocka_unit_test(a_job_with_a_terminal_obeys_its_signals),
		cmocka_unit_test(ignored_signals_are_restored),
		SCRATCH_TEST(under_a_limit_an_append_is_whole_or_nothing),
		cmocka_unit_test(the_tag_is_the_soft_limit_if_the_hard_one_allows),
		cmocka_unit_test(another_process_can_be_tagged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
