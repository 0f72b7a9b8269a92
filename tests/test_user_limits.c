/*
 * The limits of users and groups: which lines are refused, which one binds a process, and what a
 * name means that the files do not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "user_limits.h"

#define VIEW(text) ((struct strview){ text, (text) + strlen(text) })

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "# alice:x:1999:\n"
			     "alice:x:1001:1000:Alice # Liddell:/home/alice:/bin/sh\n"
			     "+@lab::::::\n"
			     "bob:x:1002:1000::/home/bob:/bin/sh\n"
			     "broken:1003\n"
			     "last:x:1004";
static const char group[] =
	"root:x:0:\nlab:x:1000:alice,bob\nstudents:!:1010:\nempty::1011:\n";

static struct config config;

static int parse(const char *text, struct why *why)
{
	config_default(&config);
	*why = WHY_NONE;
	return config_parse("x.conf", text, strlen(text), &config, why);
}

static void must_parse(const char *text)
{
	struct why why;

	if (parse(text, &why) < 0)
		fail_msg("'%s': %s", text, why.text);
}

/* The limits of a user with those groups, as the words of a line. */
static const char *words_of(uint32_t uid, const uint32_t *gids, size_t count)
{
	static char words[128];
	struct text text = TEXT_ON(words);
	struct limits_process process = { uid, gids, count, VIEW(passwd), VIEW(group) };
	struct config found;

	limits_find(&config, &process, &found);
	limits_format(&found, &text);
	return words;
}

static void bad_lines_are_refused_with_the_allowed_forms(void **state)
{
	static const char *const bad[][2] = {
		{ "students = gpus 1",
			"x.conf, line 2: 'students = gpus 1' is no limit of a "
			"user or group; write group NAME = gpus 1, *" },
		{ "max-time = 2h",
			"x.conf, line 2: 'max-time = 2h' is no limit of a user" },
		{ "group students", "is no limit of a user or group" },
		{ "group = gpus 1", "is no limit of a user or group" },
		{ "group a b = gpus 1", "is no limit of a user or group" },
		{ "group a:b = gpus 1", "is no limit of a user or group" },
		{ "user a,b = gpus 1", "is no limit of a user or group" },
		{ "groups a = gpus 1", "is no limit of a user or group" },
		{ "[limits]",
			"x.conf, line 2: unknown section '[limits]'; there may be one" },
		{ "user a =", "x.conf, line 2: '' is no limit; write gpus, jobs, time or "
			      "priority, and a value" },
		{ "user a = gpus 1,", "'' is no limit" },
		{ "user a = gpus 1, , jobs 2", "'' is no limit" },
		{ "user a = gpu 1", "'gpu' is no limit" },
		{ "user a = gpus",
			"x.conf, line 2: gpus: the value is missing; write 1 to 128, "
			"or none" },
		{ "user a = gpus 0", "gpus: '0' is out of range; write 1 to 128" },
		{ "user a = gpus 129", "gpus: '129' is out of range" },
		{ "user a = jobs -1", "jobs: '-1' is not a number" },
		{ "user a = jobs 1 2", "jobs: '1 2' is not a number" },
		{ "user a = time 5x",
			"time: '5x' is not a duration; write one like 90m" },
		{ "user a = priority none", "priority: 'none' is not a number" },
		{ "user a = priority 1000001", "priority: '1000001' is out of range" },
		{ "user a = gpus 1, jobs 2, gpus 1", "gpus: is set twice" },
	};
	char text[128];
	struct why why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t size = strcspn(bad[i][1], "*");

		(void)snprintf(text, sizeof(text), "[limits]\n%s\n", bad[i][0]);
		if (parse(text, &why) != -EINVAL)
			fail_msg("'%s' is read", bad[i][0]);
		if (!memmem(why.text, strlen(why.text), bad[i][1], size))
			fail_msg("'%s': %s", bad[i][0], why.text);
	}
	assert_int_equal(parse("[models]\na = 1\n[limits]\n", &why), -EINVAL);
	assert_string_equal(why.text, "x.conf, line 3: [limits]: is a key, not a model; "
				      "write keys above [models]");
}

static void the_first_line_that_matches_binds(void **state)
{
	static const uint32_t lab[] = { 1000 }, both[] = { 1000, 1010 },
			      none[] = { 1011 };

	(void)state;
	must_parse("user-gpus = 2 # of all\nmax-time = 2d\nmax-priority = 3\n"
		   "[limits] # of some\n\n"
		   "user alice = gpus 4\r\n"
		   "  group students=gpus 1,jobs 4 , time 8h, priority 0 # and no more\n"
		   "group 1000 = time none, gpus none\n"
		   "user 1004 = jobs 7\n"
		   "[models]\nqwen = 1\n");
	assert_int_equal(config.limits.line, 4);
	assert_int_equal(config.models.line, 11);
	assert_int_equal(config.user_gpus, 2); /* the keys stay what they are */
	/* what a line does not name stays as the key says */
	assert_string_equal(
		words_of(1001, both, 2), "gpus 4, jobs none, time 2d, priority 3");
	assert_string_equal(
		words_of(1002, both, 2), "gpus 1, jobs 4, time 8h, priority 0");
	assert_string_equal(
		words_of(1002, lab, 1), "gpus none, jobs none, time none, priority 3");
	assert_string_equal(
		words_of(1004, none, 1), "gpus 2, jobs 7, time 2d, priority 3");
	assert_string_equal(
		words_of(1002, none, 1), "gpus 2, jobs none, time 2d, priority 3");
	assert_string_equal(
		words_of(1002, NULL, 0), "gpus 2, jobs none, time 2d, priority 3");
}

static void each_value_knows_its_line(void **state)
{
	static const uint32_t lab[] = { 1000 };
	struct limits_process process = { 1002, lab, 1, VIEW(passwd), VIEW(group) };
	struct config found;

	(void)state;
	must_parse("default-time = 12h\n\n[limits]\nuser bob = gpus 1, time 8h");
	limits_find(&config, &process, &found);
	assert_int_equal(found.lines[CONFIG_USER_GPUS], 4);
	assert_int_equal(found.lines[CONFIG_MAX_TIME], 4);
	assert_int_equal(found.lines[CONFIG_USER_JOBS], 0);
	assert_int_equal(found.lines[CONFIG_DEFAULT_TIME], 4);
	assert_true(found.default_time_ms == found.max_time_ms);
	assert_true(config.default_time_ms == 12 * 3600000);
}

static void an_unknown_name_gives_nothing_and_may_take(void **state)
{
	static const uint32_t named[] = { 1000, 1010 }, other[] = { 1000, 5000 };

	(void)state;
	must_parse("user-gpus = 4\n[limits]\n"
		   "group ldap-staff = gpus none, time 1d\n"
		   "group ldap-students = gpus 1, jobs none, priority 0\n"
		   "user zoe = gpus 3, jobs 9\n"
		   "group lab = gpus 8, time 2d, priority 5\n"
		   "group gone = jobs 1\n");
	/* all numbers of this process have names: these groups and this user are others */
	assert_string_equal(
		words_of(1002, named, 2), "gpus 8, jobs none, time 2d, priority 5");
	/* group 5000 has no name, so it may be each of the two */
	assert_string_equal(
		words_of(1002, other, 2), "gpus 1, jobs none, time 1d, priority 0");
	/* and user 1005 may be zoe */
	assert_string_equal(
		words_of(1005, named, 2), "gpus 3, jobs 9, time 2d, priority 5");
	/* without a line that matches, the keys are what becomes stricter */
	assert_string_equal(
		words_of(1002, other + 1, 1), "gpus 1, jobs 1, time 1d, priority 0");
}

static void the_lines_are_listed_with_what_is_unknown(void **state)
{
	struct limits_process process = { 0, NULL, 0, VIEW(passwd), VIEW(group) };
	static const bool known[] = { true, false, true, true, false, false, true };
	static const unsigned numbers[] = { 2, 3, 5, 6, 7, 8, 9 };
	struct limits_line line = { .number = 0 };
	size_t count = 0;

	(void)state;
	must_parse(
		"[limits] # [models]\nuser alice = gpus 1\ngroup alice = gpus 1\n# no\n"
		"user 77 = gpus 1\ngroup empty = gpus 1\nuser broken = gpus 1\n"
		"user +@lab = gpus 1\nuser last = gpus 1");
	for (; limits_next(&config.limits, &line); count++) {
		assert_int_equal(line.number, numbers[count]);
		if (limits_is_known(&line, &process) != known[count])
			fail_msg("line %u", line.number);
	}
	assert_int_equal(count, ARRAY_SIZE(known));
	must_parse("[limits]");
	line.number = 0;
	assert_false(limits_next(&config.limits, &line));
	must_parse("margin = 1G");
	assert_false(limits_next(&config.limits, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_lines_are_refused_with_the_allowed_forms),
		cmocka_unit_test(the_first_line_that_matches_binds),
		cmocka_unit_test(each_value_knows_its_line),
		cmocka_unit_test(an_unknown_name_gives_nothing_and_may_take),
		cmocka_unit_test(the_lines_are_listed_with_what_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
