/* Parsing what tmux and screen print about their sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "session_list.h"

static struct session all[SESSIONS_MAX];

static size_t parse(enum session_program program, const char *text)
{
	size_t count = 0;

	session_parse(program, text, strlen(text), all, &count);
	return count;
}

static void a_line_of_tmux_is_a_session(void **state)
{
	(void)state;
	assert_int_equal(parse(SESSION_TMUX, "mine 1\n"
					     "gpulease-12-train 0\n"
					     "gpulease-7-my_job 2\n"
					     "gpulease-new-00112233 0\n"),
		3);
	assert_string_equal(all[0].name, "gpulease-12-train");
	assert_int_equal(all[0].job, 12);
	assert_false(all[0].is_attached);
	assert_int_equal(all[1].job, 7);
	assert_true(all[1].is_attached);
	assert_int_equal(all[2].job, 0);
	assert_int_equal(all[2].program, SESSION_TMUX);
}

static void a_line_of_screen_has_the_pid_first(void **state)
{
	(void)state;
	assert_int_equal(
		parse(SESSION_SCREEN,
			"There are screens on:\n"
			"\t4711.gpulease-12-train\t(11/21/26 10:00:00)\t(Detached)\n"
			"\t4712.pts-0.host\t(Attached)\n"
			"\t4713.gpulease-13-a\t(Attached)\n"
			"3 Sockets in /run/screen/S-eva.\n"),
		2);
	assert_string_equal(all[0].name, "gpulease-12-train");
	assert_int_equal(all[0].job, 12);
	assert_false(all[0].is_attached);
	assert_int_equal(all[1].job, 13);
	assert_true(all[1].is_attached);
	assert_int_equal(all[1].program, SESSION_SCREEN);
}

static void the_queue_follows_the_job(void **state)
{
	static const struct {
		const char *text;
		uint64_t job;
		uint32_t queue;
	} table[] = {
		{ "gpulease-12-train 0\n", 12, 0 },
		{ "gpulease-12_00a1b2-train 0\n", 12, 0xa1b2 },
		{ "gpulease-12_ffffff- 0\n", 12, 0xffffff },
		{ "gpulease-12-a_00a1b2-train 0\n", 12, 0 },
		{ "gpulease-12_00a1b-train 0\n", 0, 0 },
		{ "gpulease-12_00a1b2c-train 0\n", 0, 0 },
		{ "gpulease-12_00A1B2-train 0\n", 0, 0 },
		{ "gpulease-12_-train 0\n", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		assert_int_equal(parse(SESSION_TMUX, table[i].text), 1);
		assert_int_equal(all[0].job, table[i].job);
		assert_int_equal(all[0].queue, table[i].queue);
	}
}

static void other_lines_are_left_out(void **state)
{
	static const char *const texts[] = { "", "\n\n", "gpulease", "no server running",
		"\tx4711.gpulease-1-a\t(Detached)", "\t.gpulease-1-a\t(Detached)",
		"gpulease-1-"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(parse(SESSION_TMUX, texts[i]), 0);
		assert_int_equal(parse(SESSION_SCREEN, texts[i]), 0);
	}
}

static void a_job_is_a_whole_number(void **state)
{
	(void)state;
	assert_int_equal(parse(SESSION_TMUX, "gpulease-12x-a 0\ngpulease--a 0\n"
					     "gpulease-99999999999999999999-a 0\n"
					     "gpulease-123456789012345678901234-a 0\n"),
		4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(all[i].job, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_tmux_is_a_session),
		cmocka_unit_test(a_line_of_screen_has_the_pid_first),
		cmocka_unit_test(the_queue_follows_the_job),
		cmocka_unit_test(other_lines_are_left_out),
		cmocka_unit_test(a_job_is_a_whole_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
