/* What each cause of an end means: which state it is, and which exit status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "end_cause.h"

enum { NONE = STATUS_UNKNOWN };

/* For a command that has exited with 0 or 3, that TERM has ended, and whose status is not known. */
static const struct {
	const char *word;
	int of_0, of_3, of_143, of_none;
	enum end_state state; /* of all of them; END_UNKNOWN: the status decides */
} causes[END_CAUSES] = {
	[CAUSE_ITSELF] = { "", 0, 3, 143, NONE, END_UNKNOWN },
	[CAUSE_LIMIT] = { "limit", 124, 124, 124, 124, END_TIMED_OUT },
	[CAUSE_CANCEL] = { "cancel", 143, 3, 143, 143, END_CANCELLED },
	[CAUSE_PREEMPT] = { "preempt", 143, 3, 143, 143, END_PREEMPTED },
	[CAUSE_UNUSED] = { "unused", 124, 124, 124, 124, END_TIMED_OUT },
	[CAUSE_REQUEUE] = { "requeue", 143, 3, 143, 143, END_REQUEUED },
	[CAUSE_OOM] = { "oom", 0, 3, 143, NONE, END_OOM },
	[CAUSE_REBOOT] = { "reboot", NONE, 3, 143, NONE, END_LOST },
	[CAUSE_LOST] = { "lost", NONE, 3, 143, NONE, END_LOST },
	[CAUSE_LINGERED] = { "lingered", 0, 3, 143, NONE, END_UNKNOWN },
};

static void each_cause_has_one_word(void **state)
{
	(void)state;
	for (int i = 0; i < END_CAUSES; i++) {
		assert_string_equal(end_cause_word((enum end_cause)i), causes[i].word);
		assert_int_equal(end_cause_of_word(causes[i].word), i);
	}
	assert_int_equal(end_cause_of_word("of a later version"), CAUSE_ITSELF);
}

static void the_cause_decides_about_the_status(void **state)
{
	(void)state;
	for (int i = 0; i < END_CAUSES; i++) {
		enum end_cause cause = (enum end_cause)i;

		assert_int_equal(end_cause_status(cause, 0), causes[i].of_0);
		assert_int_equal(end_cause_status(cause, 3), causes[i].of_3);
		assert_int_equal(end_cause_status(cause, 143), causes[i].of_143);
		assert_int_equal(end_cause_status(cause, NONE), causes[i].of_none);
	}
}

static void only_a_job_that_ended_by_itself_can_have_finished(void **state)
{
	(void)state;
	for (int i = 0; i < END_CAUSES; i++) {
		enum end_cause cause = (enum end_cause)i;
		bool is_own = causes[i].state == END_UNKNOWN;

		assert_int_equal(end_cause_state(cause, NONE), causes[i].state);
		assert_int_equal(end_cause_state(cause, 0),
			is_own ? END_FINISHED : causes[i].state);
		assert_int_equal(
			end_cause_state(cause, 3), is_own ? END_FAILED : causes[i].state);
	}
}

/* A status that was judged once stays the same if it is judged again. */
static void judging_twice_changes_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < END_CAUSES; i++)
		for (int status = NONE; status < 256; status++) {
			int once = end_cause_status((enum end_cause)i, status);

			assert_int_equal(end_cause_status((enum end_cause)i, once), once);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_has_one_word),
		cmocka_unit_test(the_cause_decides_about_the_status),
		cmocka_unit_test(only_a_job_that_ended_by_itself_can_have_finished),
		cmocka_unit_test(judging_twice_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
