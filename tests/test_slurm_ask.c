/* Questions to the programs of Slurm, which are scripts here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exitcodes.h"
#include "scratch.h"
#include "slurm_ask.h"

/* Makes a program `squeue` with this code, the only program of Slurm in PATH. */
static void make_program(const struct scratch *scratch, const char *code)
{
	char text[512], path[256];

	(void)snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", code);
	assert_int_equal(scratch_write(scratch, "squeue", text), 0);
	assert_int_equal(fchmodat(scratch->dirfd, "squeue", 0755, 0), 0);
	(void)snprintf(path, sizeof(path), "%s:/usr/bin:/bin", scratch->path);
	assert_int_equal(setenv("PATH", path, 1), 0);
}

/* Asks the program, and returns what slurm_ask_well() does. */
static int ask_well(struct answer *answer)
{
	struct slurm_words words = { .count = 0 };
	int r;

	slurm_words_add(&words, "squeue");
	r = slurm_ask_well(&words, -1, answer);
	slurm_words_release(&words);
	return r;
}

static void variables_that_change_jobs_are_removed(void **state)
{
	static const char *const removed[] = { "SLURM_NTASKS", "SBATCH_GPUS",
		"SALLOC_PARTITION", "SQUEUE_FORMAT", "SACCT_FORMAT", "SINFO_FORMAT",
		"SCANCEL_STATE" };
	static const char *const kept[] = { "SLURM_CONF", "SLURM_JWT", "PATH", "SLURMX" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
		assert_int_equal(setenv(removed[i], "1", 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_int_equal(setenv(kept[i], "/usr/bin:/bin", 1), 0);
	slurm_environment_clean();
	for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
		assert_null(getenv(removed[i]));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_non_null(getenv(kept[i]));
}

static void a_program_that_is_silent_has_a_deadline(void **state)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;

	make_program(*state, "exec sleep 20");
	slurm_words_add(&words, "squeue");
	assert_int_equal(slurm_ask(&words, -1, 50, &answer), EXIT_MISUSE);
	slurm_words_release(&words);
}

static void a_failure_is_no_answer(void **state)
{
	struct answer answer;

	make_program(*state, "echo 7; echo no >&2; exit 1");
	assert_int_equal(ask_well(&answer), EXIT_MISUSE);
	make_program(*state, "echo 7");
	assert_int_equal(ask_well(&answer), 0);
	assert_string_equal(answer.text, "7\n");
	answer_release(&answer);
}

static void times_are_seconds_for_the_program_alone(void **state)
{
	struct answer answer;

	make_program(*state, "echo \"$SLURM_TIME_FORMAT\"");
	assert_int_equal(ask_well(&answer), 0);
	assert_string_equal(answer.text, "%s\n");
	answer_release(&answer);
	assert_null(getenv("SLURM_TIME_FORMAT"));
}

static void a_program_that_is_not_there_is_refused(void **state)
{
	struct answer answer;

	make_program(*state, "true");
	assert_int_equal(slurm_find("squeue"), 0);
	assert_int_equal(slurm_find("no-such-program"), EXIT_MISUSE);
	assert_int_equal(setenv("PATH", "/proc/nonexistent", 1), 0);
	assert_int_equal(ask_well(&answer), EXIT_MISUSE);
}

static void each_question_has_a_mark_of_its_own(void **state)
{
	static const char *const names[] = { "JobID", NULL, "State" };
	struct slurm_words words = { .count = 0 };
	struct slurm_mark mark = slurm_mark(), other = slurm_mark();
	char wanted[64];

	(void)state;
	assert_string_not_equal(mark.text, other.text);
	slurm_words_add_fields(&words, names, ARRAY_SIZE(names), &mark);
	(void)snprintf(wanted, sizeof(wanted), "JobID:\x1f%s\x1f,State:\x1f", mark.text);
	assert_string_equal(words.list[1], wanted);
	slurm_words_release(&words);
}

static void fields_that_are_missing_are_empty(void **state)
{
	char bytes[] = "1\x1f\x1f"
		       "c\x1f"
		       "d\n\n2",
	     *text = bytes, *fields[3];

	(void)state;
	assert_int_equal(slurm_next_line(&text, fields, 3), 3);
	assert_string_equal(fields[0], "1");
	assert_string_equal(fields[1], "");
	assert_string_equal(fields[2], "c");
	assert_int_equal(slurm_next_line(&text, fields, 3), 1);
	assert_int_equal(slurm_next_line(&text, fields, 3), 1);
	assert_string_equal(fields[0], "2");
	assert_string_equal(fields[2], "");
	assert_int_equal(slurm_next_line(&text, fields, 3), -1);
}

static void other_texts_than_numbers_are_0(void **state)
{
	(void)state;
	assert_int_equal(slurm_number("12", 12), 12);
	assert_int_equal(slurm_number("13", 12), 0);
	assert_int_equal(slurm_number("N/A", 12), 0);
	assert_int_equal(slurm_number("", 12), 0);
	assert_int_equal(slurm_number("-1", 12), 0);
	assert_int_equal(slurm_number("1x", 12), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_that_change_jobs_are_removed),
		SCRATCH_TEST(a_program_that_is_silent_has_a_deadline),
		SCRATCH_TEST(a_failure_is_no_answer),
		SCRATCH_TEST(times_are_seconds_for_the_program_alone),
		SCRATCH_TEST(a_program_that_is_not_there_is_refused),
		cmocka_unit_test(each_question_has_a_mark_of_its_own),
		cmocka_unit_test(fields_that_are_missing_are_empty),
		cmocka_unit_test(other_texts_than_numbers_are_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
