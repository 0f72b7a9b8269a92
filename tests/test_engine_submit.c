#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_after.h"
#include "engine_state.h"
#include "engine_submit.h"
#include "submit_output.h"
#include "submit_script.h"

static void the_id_is_found_behind_other_lines(void **state)
{
	static const struct {
		const char *text;
		uint64_t id;
	} cases[] = {
		{ "123\n", 123 },
		{ "123", 123 },
		{ "123;cluster\n", 123 },
		{ "Welcome to the cluster!\n7 nodes are down\n\n123;main\n", 123 },
		{ "you have 3 jobs\n42\n", 42 },
		{ "", 0 },
		{ "\n", 0 },
		{ "0\n", 0 },
		{ "12 apples\n", 0 },
		{ "Submitted batch job 12\n", 0 },
		{ "99999999999999999999999999\n", 0 },
		{ "18446744073709551616\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(submission_read_id(cases[i].text), cases[i].id);
}

static void tokens_differ(void **state)
{
	char one[SUBMISSION_TOKEN_SIZE], other[SUBMISSION_TOKEN_SIZE];

	(void)state;
	submission_make_token(one);
	submission_make_token(other);
	assert_int_equal(strlen(one), 16);
	assert_int_equal(strspn(one, "0123456789abcdef"), 16);
	assert_string_not_equal(one, other);
}

static void patterns_become_those_of_sbatch(void **state)
{
	static const struct {
		const char *pattern, *folder, *wanted;
	} cases[] = {
		{ "out", "/home/ada", "/home/ada/out" },
		{ "/tmp/%x-%h-%%h.log", "/home/ada", "/tmp/%x-%N-%%h.log" },
		{ "%j", "/100%/%j", "/100%%/%%j/%j" },
		{ "none", "/home/ada", "/dev/null" },
		{ "out", "/a\\b%", "/a\\\\b%/out" },
	};
	char out[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			submit_output_pattern(cases[i].pattern, cases[i].folder, out), 0);
		assert_string_equal(out, cases[i].wanted);
	}
}

static void the_path_of_a_log_is_known_unless_it_depends_on_the_node(void **state)
{
	static const struct {
		const char *pattern, *wanted; /* NULL: not known */
	} cases[] = {
		{ "/l/%j.log", "/l/12.log" },
		{ "/l/%5j-%x-%u", "/l/00012-train-ada" },
		{ "/100%%/%A", "/100%/12" },
		{ "/l/%N", NULL },
		{ "/l/%t", NULL },
		{ "/l/%", NULL },
		{ "/a\\\\b%/%j\\c", "/a\\b%/%jc" },
	};
	char out[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = submit_output_path(cases[i].pattern, 12, "train", "ada", out);

		assert_int_equal(r == 0, cases[i].wanted != NULL);
		if (r == 0)
			assert_string_equal(out, cases[i].wanted);
	}
}

static int note_id(void *arg, uint64_t id)
{
	struct text *text = arg;

	text_addf(text, " %llu", (unsigned long long)id);
	return 0;
}

static void the_ids_of_a_dependency_are_found(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "afterok:12", " 12" },
		{ "afterok:12:13,afterany:14?after:15", " 12 13 14 15" },
		{ "after:12+5:13", " 12 13" },
		{ "aftercorr:17_3", " 17" },
		{ "singleton", "" },
		{ "afterok:", "" },
		{ "afterok:x:7", " 7" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char ids[64];
		struct text text = TEXT_ON(ids);

		assert_int_equal(engine_after_each_id(cases[i].text, note_id, &text), 0);
		assert_string_equal(ids, cases[i].wanted);
	}
}

static void the_name_of_the_cluster_is_found(void **state)
{
	static const struct {
		const char *text, *wanted; /* NULL: none */
	} cases[] = {
		{ "# a comment\nClusterName=Main\nSlurmctldHost=a\n", "main" },
		{ "CLUSTERNAME = lab # ours\n", "lab" },
		{ "ClusterName             = testbed\n", "testbed" },
		{ "#ClusterName=main\n", NULL },
		{ "ClusterNameX=main\n", NULL },
		{ "ClusterName=../../etc\n", NULL },
		{ "ClusterName=\n", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = strdup(cases[i].text), name[32];

		assert_non_null(text);
		assert_int_equal(engine_state_read_name(text, name, sizeof(name)),
			cases[i].wanted != NULL);
		if (cases[i].wanted)
			assert_string_equal(name, cases[i].wanted);
		free(text);
	}
}

/* The script that sbatch gets, run here. */
static void the_script_gives_the_words_to_the_node(void **state)
{
	int fd = submit_script_open();
	char path[64];
	const char *words[] = { "env", "SLURM_JOB_ID=7", "sh", path, "/proc/nonexistent",
		"token", "/proc/nonexistent", "folder=/", "--", "sh", "-c",
		"echo \"$1:$PWD\"; exit 5", "x", "a  'b", NULL };
	struct answer answer = ANSWER_NONE;

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)getpid(), fd);
	assert_int_equal(answer_begin(&answer, (char **)words), 0);
	answer_wait(&answer, 10000);
	assert_int_equal(answer.fault, 0);
	assert_int_equal(answer.status, 5);
	assert_string_equal(answer.text, "a  'b:/\n");
	answer_release(&answer);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_id_is_found_behind_other_lines),
		cmocka_unit_test(tokens_differ),
		cmocka_unit_test(patterns_become_those_of_sbatch),
		cmocka_unit_test(
			the_path_of_a_log_is_known_unless_it_depends_on_the_node),
		cmocka_unit_test(the_ids_of_a_dependency_are_found),
		cmocka_unit_test(the_name_of_the_cluster_is_found),
		cmocka_unit_test(the_script_gives_the_words_to_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
