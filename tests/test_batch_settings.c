/* The settings of a job: its line and the command line together. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "batch_settings.h"
#include "command_line.h"

#define GIVEN(what) (1u << BATCH_##what)

static struct settings read_defaults(const char *option, const char *value)
{
	static struct settings settings; /* it points into itself */
	const char *argv[] = { "gpulease", "--batch", "jobs.txt", option, value, NULL };
	char *words[ARRAY_SIZE(argv)];
	struct why why = WHY_NONE;

	memcpy(words, argv, sizeof(argv));
	if (command_line_parse(words, &settings, &why) < 0)
		fail_msg("%s", why.text);
	return settings;
}

static void a_line_is_a_job_of_its_own(void **state)
{
	struct settings defaults = read_defaults("--json", NULL), made;
	struct batch_line line = { .command = "python train.py | tee log" };
	char *words[4];

	(void)state;
	batch_settings(&defaults, &line, 0, words, &made);
	assert_int_equal(made.verb.kind, VERB_RUN);
	assert_true(made.environment.submit);
	assert_false(made.output.json);
	assert_ptr_equal(made.environment.line, line.command);
	assert_string_equal(made.environment.command[0], "/bin/sh");
	assert_string_equal(made.environment.command[1], "-c");
	assert_string_equal(made.environment.command[2], "python train.py | tee log");
	assert_null(made.environment.command[3]);
	assert_int_equal(made.request.gpus, 1);
	assert_false(made.request.need_given);
	assert_null(made.request.name);
	assert_null(made.output.out);
	assert_int_equal(made.verb.operand_count, 0);
}

static void a_line_with_a_setup_is_run_by_its_shell(void **state)
{
	struct settings defaults = read_defaults(NULL, NULL), made;
	struct batch_line lines[] = {
		{ .command = "a; b",
			.attributes = { .given = GIVEN(SETUP), .setup = "true" } },
		{ .command = "a; b",
			.attributes = { .given = GIVEN(CONDA), .conda = "torch" } },
	};
	char *words[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		batch_settings(&defaults, &lines[i], 0, words, &made);
		assert_string_equal(made.environment.command[0], "a; b");
		assert_null(made.environment.command[1]);
		assert_ptr_equal(made.environment.setup, lines[i].attributes.setup);
		assert_ptr_equal(made.environment.conda, lines[i].attributes.conda);
	}
	defaults = read_defaults("--setup", "module load cuda");
	batch_settings(
		&defaults, &(struct batch_line){ .command = "a" }, 0, words, &made);
	assert_string_equal(made.environment.command[0], "a");
}

static void a_line_wins_over_the_command_line(void **state)
{
	struct batch_line line = {
		.command = "true",
		.attributes = {
			.given = GIVEN(TIMEOUT) | GIVEN(RETRIES) | GIVEN(FAIL_RETRIES) |
				 GIVEN(PRIORITY) | GIVEN(ALLOW) | GIVEN(NAME),
			.limit_ms = 60000,
			.oom_retries = 0,
			.retries = 2,
			.priority = -3,
			.allow = "0-1",
			.name = "prep",
		},
	};
	struct settings defaults = read_defaults(NULL, NULL), made;
	char *words[4];

	(void)state;
	defaults.care.limit_ms = 5000;
	defaults.care.oom_retries = 4;
	defaults.care.retries = 5;
	defaults.request.priority = 7;
	defaults.request.allow = "2";
	batch_settings(&defaults, &line, 0, words, &made);
	assert_int_equal(made.care.limit_ms, 60000);
	assert_true(made.care.limit_given);
	assert_int_equal(made.care.oom_retries, 0);
	assert_int_equal(made.care.retries, 2);
	assert_int_equal(made.request.priority, -3);
	assert_true(made.request.priority_given);
	assert_string_equal(made.request.allow, "0-1");
	assert_string_equal(made.request.name, "prep");
	line.attributes.given = 0;
	batch_settings(&defaults, &line, 0, words, &made);
	assert_int_equal(made.care.limit_ms, 5000);
	assert_false(made.care.limit_given);
	assert_int_equal(made.care.oom_retries, 4);
	assert_int_equal(made.care.retries, 5);
	assert_int_equal(made.request.priority, 7);
	assert_string_equal(made.request.allow, "2");
	assert_null(made.request.name);
}

/* What the command line and one line ask for. */
struct need_case {
	struct {
		unsigned gpus, share_percent;
		uint64_t vram_mib;
		bool exclusive, is_given;
	} all;
	struct batch_attributes line;
	uint64_t raised_mib;
	struct {
		unsigned gpus, share_percent;
		uint64_t vram_mib;
		bool exclusive, is_given;
	} made;
};

static const struct need_case need_cases[] = {
	/* nothing is asked for, so a model may add it */
	{ { 1, 0, 0, false, false }, { 0 }, 0, { 1, 0, 0, false, false } },
	{ { 1, 0, 0, false, false }, { GIVEN(GPUS), .gpus = 2 }, 0,
		{ 2, 0, 0, false, true } },
	{ { 1, 0, 0, false, false }, { GIVEN(VRAM), .vram_mib = 500 }, 0,
		{ 1, 0, 500, false, true } },
	/* the command line stays where the line says nothing */
	{ { 2, 0, 500, false, true }, { 0 }, 0, { 2, 0, 500, false, true } },
	{ { 1, 0, 500, false, true }, { GIVEN(GPUS), .gpus = 2 }, 0,
		{ 2, 0, 500, false, true } },
	{ { 2, 0, 0, false, true }, { GIVEN(VRAM), .vram_mib = 500 }, 0,
		{ 2, 0, 500, false, true } },
	/* memory replaces a share; a line with both has both */
	{ { 1, 50, 0, false, true }, { GIVEN(VRAM), .vram_mib = 500 }, 0,
		{ 1, 0, 500, false, true } },
	{ { 1, 50, 0, false, true },
		{ GIVEN(VRAM) | GIVEN(GPUS), .gpus = 1, .share_percent = 25,
			.vram_mib = 500 },
		0, { 1, 25, 500, false, true } },
	{ { 1, 50, 0, false, true }, { GIVEN(GPUS), .gpus = 1 }, 0,
		{ 1, 0, 0, false, true } },
	/* a share is never exclusive; no GPU means no memory */
	{ { 1, 0, 0, true, false }, { GIVEN(GPUS), .gpus = 1, .share_percent = 50 }, 0,
		{ 1, 50, 0, false, true } },
	{ { 1, 0, 0, true, false }, { GIVEN(VRAM), .vram_mib = 500 }, 0,
		{ 1, 0, 500, true, true } },
	{ { 1, 0, 500, false, true }, { GIVEN(GPUS), .gpus = 0 }, 0,
		{ 0, 0, 0, false, true } },
	{ { 0, 0, 0, false, true }, { GIVEN(VRAM), .vram_mib = 500 }, 0,
		{ 1, 0, 500, false, true } },
	/* raised after out of memory; a model still adds the rest */
	{ { 1, 0, 0, false, false }, { GIVEN(VRAM), .vram_mib = 500 }, 625,
		{ 1, 0, 625, false, true } },
	{ { 1, 0, 0, false, false }, { 0 }, 625, { 1, 0, 625, false, false } },
	{ { 1, 50, 0, false, true }, { 0 }, 625, { 1, 50, 625, false, true } },
	{ { 0, 0, 0, false, true }, { 0 }, 625, { 0, 0, 0, false, true } },
};

static void a_line_replaces_the_whole_need(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(need_cases); i++) {
		const struct need_case *it = &need_cases[i];
		struct settings defaults = read_defaults(NULL, NULL), made;
		struct batch_line line = { .command = "true", .attributes = it->line };
		char *words[4];

		defaults.request.gpus = it->all.gpus;
		defaults.request.share_percent = it->all.share_percent;
		defaults.request.vram_mib = it->all.vram_mib;
		defaults.request.exclusive = it->all.exclusive;
		defaults.request.need_given = it->all.is_given;
		batch_settings(&defaults, &line, it->raised_mib, words, &made);
		if (made.request.gpus != it->made.gpus ||
			made.request.share_percent != it->made.share_percent ||
			made.request.vram_mib != it->made.vram_mib ||
			made.request.exclusive != it->made.exclusive ||
			made.request.need_given != it->made.is_given)
			fail_msg("case %zu", i);
	}
}

static void jobs_it_comes_after_end_before_it_has_a_ticket(void **state)
{
	struct settings defaults = read_defaults(NULL, NULL), made;
	struct batch_line line = { .command = "true",
		.attributes = { .given = GIVEN(AFTER), .after = "prep" } };
	char *words[4];

	(void)state;
	batch_settings(&defaults, &line, 0, words, &made);
	assert_null(made.request.after);
	assert_null(made.request.after_ok);
}

static void an_option_gets_the_gpus_as_its_value(void **state)
{
	static const struct {
		const char *option, *command, *made;
		struct batch_attributes line;
	} cases[] = {
		{ NULL, "a", "a", { 0 } },
		{ "--cuda", "a -b", "a -b --cuda {gpus}", { 0 } },
		{ "--cuda=", "a -b", "a -b --cuda={gpus}", { 0 } },
		/* the option is there already, with GPUs of another run or without */
		{ "--cuda", "a --cuda 7 -b", "a --cuda {gpus} -b", { 0 } },
		{ "--cuda", "a --cuda=7 -b", "a --cuda={gpus} -b", { 0 } },
		{ "--cuda", "a --cuda", "a --cuda {gpus}", { 0 } },
		{ "--cuda", "a --cuda -b", "a --cuda {gpus} -b", { 0 } },
		{ "--cuda", "a --cuda -1", "a --cuda {gpus}", { 0 } },
		{ "--cuda", "a --cuda '1, 2' b", "a --cuda {gpus} b", { 0 } },
		{ "--cuda", "a --cuda; b", "a --cuda {gpus}; b", { 0 } },
		{ "--cuda", "a --cuda 1 --cuda 2 b", "a --cuda {gpus}  b", { 0 } },
		{ "--cuda=", "a --cuda", "a --cuda --cuda={gpus}", { 0 } },
		{ "--cuda=", "a --cuda=3", "a --cuda={gpus}", { 0 } },
		{ "gpus=", "a gpus=3 x", "a gpus={gpus} x", { 0 } },
		/* it is a part of another word */
		{ "--cuda", "a '-m --cuda 0'", "a '-m --cuda 0' --cuda {gpus}", { 0 } },
		/* another option is there */
		{ "--cuda", "a --cudas 0", "a --cudas 0 --cuda {gpus}", { 0 } },
		{ "--cuda", "a x--cuda 0", "a x--cuda 0 --cuda {gpus}", { 0 } },
		{ "--cuda", "a --cudas --cuda 1", "a --cudas --cuda {gpus}", { 0 } },
		/* no GPU, no value */
		{ "--cuda", "a", "a", { GIVEN(GPUS), .gpus = 0 } },
		{ "--cuda", "a --cuda 7", "a ", { GIVEN(GPUS), .gpus = 0 } },
		{ "--cuda", "a", "a --cuda {gpus}", { GIVEN(GPUS), .gpus = 2 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings defaults = read_defaults(NULL, NULL), settings;
		struct batch_line line = { .command = cases[i].command,
			.attributes = cases[i].line };
		autofree char *made = NULL;
		char *words[4];

		defaults.environment.inject = cases[i].option;
		made = batch_inject(&defaults, &line);
		if (!made || strcmp(made, cases[i].made) != 0)
			fail_msg("case %zu: %s", i, made);
		batch_settings(&defaults, &line, 0, words, &settings);
		assert_null(
			settings.environment.inject); /* the job itself does not inject */
	}
}

static uint64_t environment_of(const char *option, const char *value,
	const char *directory, const struct batch_attributes *attributes)
{
	struct settings defaults = read_defaults(option, value);
	struct batch_line line = { .command = "a", .attributes = *attributes };

	return batch_environment(&defaults, directory, &line);
}

static void what_decides_the_result_is_the_environment(void **state)
{
	static const struct batch_attributes none = { .given = 0 };
	static const struct batch_attributes others[] = {
		{ .given = GIVEN(CONDA), .conda = "a" },
		{ .given = GIVEN(CONDA), .conda = "b" },
		{ .given = GIVEN(SETUP), .setup = "a" },
		{ .given = GIVEN(SETUP), .setup = "b" },
		{ .given = GIVEN(SETUP) | GIVEN(CONDA), .setup = "b", .conda = "a" },
		{ .given = GIVEN(SETUP) | GIVEN(CONDA), .setup = "a", .conda = "b" },
	};
	static const struct batch_attributes resources = {
		.given = ~(GIVEN(CONDA) | GIVEN(SETUP)),
		.gpus = 2,
		.vram_mib = 1,
		.limit_ms = 1,
		.oom_retries = 1,
		.retries = 1,
		.priority = 1,
		.allow = "0",
		.after = "x",
		.after_ok = "x",
		.name = "x",
		.is_cancelled = true,
	};
	static const char *const options[][2] = { { "--conda", "a" }, { "--setup", "a" },
		{ "--export", "ALL,A=1" } };
	uint64_t seen[16], all = 0;

	(void)state;
	seen[all++] = environment_of(NULL, NULL, "/here", &none);
	seen[all++] = environment_of(NULL, NULL, "/there", &none);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		seen[all++] = environment_of(NULL, NULL, "/here", &others[i]);
	seen[all++] = environment_of("--export", "ALL,A=1", "/here", &none);
	for (size_t i = 0; i < all; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(seen[i] && seen[i] != seen[j]);
	assert_true(environment_of(NULL, NULL, "/here", &resources) == seen[0]);
	/* where an attribute and an option ask for the same, the result is the same */
	for (size_t i = 0; i < 2; i++)
		assert_true(environment_of(options[i][0], options[i][1], "/here",
				    &none) == seen[2 + 2 * i]);
	assert_true(environment_of("-n", "2", "/here", &none) == seen[0]);
	assert_true(environment_of("--export", "ALL", "/here", &none) == seen[0]);
	assert_true(environment_of("--conda", "z", "/here", &others[0]) == seen[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_decides_the_result_is_the_environment),
		cmocka_unit_test(a_line_is_a_job_of_its_own),
		cmocka_unit_test(a_line_with_a_setup_is_run_by_its_shell),
		cmocka_unit_test(a_line_wins_over_the_command_line),
		cmocka_unit_test(a_line_replaces_the_whole_need),
		cmocka_unit_test(jobs_it_comes_after_end_before_it_has_a_ticket),
		cmocka_unit_test(an_option_gets_the_gpus_as_its_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
