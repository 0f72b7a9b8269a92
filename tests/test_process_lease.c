#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "process_lease.h"
#include "text.h"

/* A new token in each run, because several runs may go on at once. */
static char token[TOKEN_SIZE], stranger[TOKEN_SIZE];

static int make_tokens(void **state)
{
	(void)state;
	if (token_make(token) < 0)
		return -1;
	token[0] = '8'; /* more than 63 bits */
	text_copy(stranger, sizeof(stranger), token);
	stranger[TOKEN_SIZE - 2] = token[TOKEN_SIZE - 2] == '0' ? '1' : '0';
	return 0;
}

/* An entry of an environment: @before and @value, kept until the next call. */
static const char *entry(const char *before, const char *value, const char *behind)
{
	static char text[96];

	(void)snprintf(text, sizeof(text), "%s%s%s", before, value, behind);
	return text;
}

static bool carries(const char *variable, uint64_t tag)
{
	pid_t pid = fixture_start_sleep(variable, tag);
	bool found = process_lease_carries_token((uint32_t)pid, token);

	fixture_kill(&pid);
	return found;
}

static void a_tag_is_63_bits_of_the_token(void **state)
{
	(void)state;
	assert_true(process_lease_tag("8123456789abcdef") == 0x0123456789abcdef);
	assert_true(process_lease_tag("ffffffffffffffff") == INT64_MAX);
	assert_true(process_lease_tag("0000000000000001") == 1);
	assert_true(process_lease_tag("8000000000000000") == 0);
	assert_true(process_lease_tag("") == 0);
	assert_true(process_lease_tag("0123456789abcdefg") == 0);
	assert_true(process_lease_tag("../../etc/passwd") == 0);
}

static void the_tag_of_any_process_is_read(void **state)
{
	pid_t tagged = fixture_start_sleep(NULL, process_lease_tag(token)),
	      plain = fixture_start_sleep(NULL, 0);

	(void)state;
	assert_true(process_lease_tag_of_process((uint32_t)tagged) ==
		    process_lease_tag(token));
	assert_true(process_lease_tag_of_process((uint32_t)plain) == 0);
	fixture_kill(&tagged);
	fixture_kill(&plain);
	assert_true(process_lease_tag_of_process((uint32_t)tagged) == 0);
}

static void either_sign_is_enough(void **state)
{
	(void)state;
	assert_true(carries(entry("GPULEASE_TOKEN=", token, ""), 0));
	assert_true(carries(NULL, process_lease_tag(token)));
	assert_false(carries(NULL, 0));
}

static void only_the_whole_variable_counts(void **state)
{
	char cut[TOKEN_SIZE];

	(void)state;
	text_copy(cut, sizeof(cut) - 1, token);
	assert_false(carries(entry("GPULEASE_TOKEN=", stranger, ""), 0));
	assert_false(carries(entry("GPULEASE_TOKEN=", token, "0"), 0));
	assert_false(carries(entry("GPULEASE_TOKEN=", cut, ""), 0));
	assert_false(carries(entry("GPULEASE_TOKEN=", "", ""), 0));
	assert_false(carries(entry("XGPULEASE_TOKEN=", token, ""), 0));
	assert_false(carries(entry("A=GPULEASE_TOKEN=", token, ""), 0));
	assert_false(carries(token, 0));
	assert_false(carries(NULL, process_lease_tag(stranger)));
	assert_false(carries(NULL, 17));
}

static void without_a_token_no_process_matches(void **state)
{
	pid_t plain = fixture_start_sleep("GPULEASE_TOKEN=", 0);

	(void)state;
	assert_false(process_lease_carries_token((uint32_t)plain, ""));
	assert_false(process_lease_carries_token((uint32_t)plain, "0000000000000000"));
	fixture_kill(&plain);
}

static void a_child_of_a_child_is_a_descendant(void **state)
{
	struct other other = other_start(-1, OTHER_HEIR);
	uint32_t me = (uint32_t)getpid();

	(void)state;
	assert_true(process_lease_is_descendant((uint32_t)other.heir, me));
	assert_true(
		process_lease_is_descendant((uint32_t)other.heir, (uint32_t)other.pid));
	assert_true(process_lease_is_descendant(me, me));
	assert_false(
		process_lease_is_descendant((uint32_t)other.pid, (uint32_t)other.heir));
	assert_false(process_lease_is_descendant(me, (uint32_t)other.pid));
	assert_false(process_lease_is_descendant(0, me));
	assert_false(process_lease_is_descendant((uint32_t)other.pid, 0));
	other_end(&other);
	assert_false(process_lease_is_descendant((uint32_t)other.pid, me));
}

static void a_signal_reaches_all_processes_of_a_lease_and_no_others(void **state)
{
	pid_t by_name = fixture_start_sleep(entry("GPULEASE_TOKEN=", token, ""), 0);
	pid_t by_tag = fixture_start_sleep(NULL, process_lease_tag(token));
	pid_t spared = fixture_start_sleep(NULL, process_lease_tag(token));
	pid_t other = fixture_start_sleep(entry("GPULEASE_TOKEN=", stranger, ""), 0);
	pid_t plain = fixture_start_sleep(NULL, 0);

	(void)state;
	assert_int_equal(process_lease_signal_all(
				 token, (uint32_t)getuid(), SIGKILL, (uint32_t)spared),
		2);
	assert_true(fixture_await_end(by_name));
	assert_true(fixture_await_end(by_tag));
	/* nor zombies */
	assert_int_equal(
		process_lease_signal_all(token, (uint32_t)getuid(), 0, (uint32_t)spared),
		0);
	assert_int_equal(waitpid(spared, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(plain, NULL, WNOHANG), 0);
	fixture_kill(&by_name);
	fixture_kill(&by_tag);
	assert_int_equal(
		process_lease_signal_all(token, (uint32_t)getuid(), SIGKILL, 0), 1);
	fixture_kill(&spared);
	fixture_kill(&other);
	fixture_kill(&plain);
}

enum { NOBODY = 65534, SOMEBODY = 61184 };

static void processes_of_another_user_are_left_alone(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	pid = fixture_start_as(NOBODY, process_lease_tag(token));
	assert_int_equal(process_lease_signal_all(token, SOMEBODY, SIGKILL, 0), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(process_lease_signal_all(token, NOBODY, SIGKILL, 0), 1);
	fixture_kill(&pid);
}

/* Reads the signs of process @pid and compares them with the lease of @owner. */
static bool belongs(pid_t pid, const struct owner *owner)
{
	struct process_lease kin;

	process_lease_read((uint32_t)pid, &kin);
	assert_int_equal(process_lease_belongs(&kin, owner),
		process_lease_is_of((uint32_t)pid, owner));
	return process_lease_belongs(&kin, owner);
}

static bool descends(pid_t pid, const struct owner *owner)
{
	struct process_lease kin;

	process_lease_read((uint32_t)pid, &kin);
	return process_lease_descends(&kin, owner);
}

static void a_tag_counts_for_processes_of_the_owners_real_user(void **state)
{
	struct owner owner = { .uid = (uint32_t)getuid(), .pid = (uint32_t)getpid() };
	pid_t own = fixture_start_sleep(NULL, process_lease_tag(token)), others;

	(void)state;
	text_copy(owner.token, sizeof(owner.token), token);
	assert_true(belongs(own, &owner));
	owner.uid = SOMEBODY;
	assert_false(belongs(own, &owner));
	fixture_kill(&own);
	assert_false(belongs(own, &owner));
	if (geteuid() != 0)
		return;
	others = fixture_start_as(NOBODY, process_lease_tag(token));
	owner.uid = 0;
	assert_false(belongs(others, &owner));
	owner.uid = NOBODY;
	assert_true(belongs(others, &owner));
	fixture_kill(&others);
}

static void a_descendant_of_another_user_counts_only_for_root(void **state)
{
	struct owner owner = { .uid = (uint32_t)getuid(), .pid = (uint32_t)getpid() };
	pid_t own = fixture_start_sleep(NULL, 0), others;

	(void)state;
	assert_true(descends(own, &owner));
	owner.uid = SOMEBODY;
	assert_false(descends(own, &owner));
	fixture_kill(&own);
	if (geteuid() != 0)
		return;
	others = fixture_start_as(NOBODY, process_lease_tag(token));
	owner.uid = 0;
	assert_true(descends(others, &owner));
	owner.uid = SOMEBODY;
	assert_false(descends(others, &owner));
	fixture_kill(&others);
}

static void the_calling_process_is_never_signaled(void **state)
{
	struct rlimit old;
	unsigned reached;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_LOCKS, &old), 0);
	fixture_set_tag(process_lease_tag(token));
	reached = process_lease_signal_all(token, (uint32_t)getuid(), SIGKILL, 0);
	(void)setrlimit(RLIMIT_LOCKS, &old);
	assert_int_equal(reached, 0);
}

/* How many processes in @range get a signal from a child that writes its output to @pipe. */
static int reached_by_a_child(enum process_range range, const int pipe[2])
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (dup2(pipe[1], STDOUT_FILENO) < 0)
			_exit(99);
		_exit((int)process_lease_signal(token, (uint32_t)getuid(), 0, 0, range));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void callers_are_told_apart_from_other_processes(void **state)
{
	pid_t other = fixture_start_sleep(NULL, process_lease_tag(token)), reader;
	struct rlimit old;
	int printed[2];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_LOCKS, &old), 0);
	assert_int_equal(pipe2(printed, O_CLOEXEC), 0);
	assert_int_equal(fcntl(printed[0], F_SETFD, 0), 0);
	reader = fixture_start_sleep(NULL, process_lease_tag(token));
	close_fd(&printed[0]);
	fixture_set_tag(process_lease_tag(token)); /* this process is the parent */
	assert_int_equal(reached_by_a_child(PROCESS_LEASE_CALLERS, printed), 2);
	assert_int_equal(reached_by_a_child(PROCESS_LEASE_BUT_CALLERS, printed), 1);
	assert_int_equal(reached_by_a_child(PROCESS_LEASE_ALL, printed), 3);
	fixture_kill(&other);
	assert_int_equal(reached_by_a_child(PROCESS_LEASE_BUT_CALLERS, printed), 0);
	(void)setrlimit(RLIMIT_LOCKS, &old);
	fixture_kill(&reader);
	close_fd(&printed[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tag_is_63_bits_of_the_token),
		cmocka_unit_test(the_tag_of_any_process_is_read),
		cmocka_unit_test(either_sign_is_enough),
		cmocka_unit_test(only_the_whole_variable_counts),
		cmocka_unit_test(without_a_token_no_process_matches),
		cmocka_unit_test(a_child_of_a_child_is_a_descendant),
		cmocka_unit_test(a_signal_reaches_all_processes_of_a_lease_and_no_others),
		cmocka_unit_test(processes_of_another_user_are_left_alone),
		cmocka_unit_test(a_tag_counts_for_processes_of_the_owners_real_user),
		cmocka_unit_test(a_descendant_of_another_user_counts_only_for_root),
		cmocka_unit_test(the_calling_process_is_never_signaled),
		cmocka_unit_test(callers_are_told_apart_from_other_processes),
	};

	return cmocka_run_group_tests(tests, make_tokens, NULL);
}
