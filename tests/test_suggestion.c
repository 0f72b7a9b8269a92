/*
 * What users of other systems are told when they use a name of theirs, and what is suggested for a
 * misspelled option.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "option_table.h"
#include "suggestion.h"

struct row {
	const char *given, *suggested;
};

/* What is suggested for the option, or with @is_word the command, @given; "" for nothing. */
static struct why suggestion_for(const char *given, bool is_word)
{
	struct why why = WHY_NONE;

	why_set(&why, "x");
	if (!is_word)
		suggestion_for_option(option_table, given, strlen(given), &why);
	else if (!suggestion_for_word(option_table, given, &why))
		assert_string_equal(why.text, "x");
	return why;
}

static void check(const struct row *rows, size_t count, bool is_word)
{
	for (size_t i = 0; i < count; i++) {
		struct why why = suggestion_for(rows[i].given, is_word);

		if (!strstr(why.text, rows[i].suggested))
			fail_msg("%s: '%s' is not '%s'", rows[i].given, why.text,
				rows[i].suggested);
	}
}

static void options_of_other_systems_have_a_name_here(void **state)
{
	static const struct row rows[] = {
		{ "num-gpus", "x; did you mean -n N?" },
		{ "time-limit",
			"did you mean --time LIMIT (5 means minutes, 5s seconds)?" },
		{ "timeout", "did you mean --time LIMIT (5 means minutes, 5s " },
		{ "gpu", "--gpus N for so many, or --gpu-ids 0 for GPU 0?" },
		{ "g", "--gpus N for so many, or --gpu-ids 0 for GPU 0?" },
		{ "allowed_gpus", "did you mean --allow LIST?" },
		{ "memory", "did you mean --vram SIZE?" },
		{ "gpu-memory", "did you mean --vram SIZE?" },
		{ "conda-env", "did you mean --conda?" },
		{ "depends", "did you mean --after ID, or --after-ok ID?" },
		{ "kill", "did you mean --cancel?" }, /* not --kill-on-bad-exit */
		{ "parsable", "x; leave it out, --submit prints only the id" },
		{ "env-setup-cmd", "did you mean --setup?" },
		{ "max-job-time", "see max-time in gpulease.conf(5)" },
		{ "env_setup_cmd", "did you mean --setup?" },
		{ "interactive", "x; leave it out, the command has your terminal" },
		{ "background", "did you mean --submit?" },
		{ "poll", "leave it out" },
		{ "jobs-file", "did you mean --batch FILE?" },
		{ "array", "did you mean --batch FILE?" },
		{ "arrays", "see gpulease --help" },
		{ "arra", "see gpulease --help" },
		{ "", "see gpulease --help" },
	};

	(void)state;
	check(rows, ARRAY_SIZE(rows), false);
}

static void commands_of_other_systems_have_an_option_here(void **state)
{
	static const struct row rows[] = {
		{ "list", "x; did you mean --status, or --queue for what waits?" },
		{ "jobs", "did you mean --status, or --queue " }, /* not --jobs */
		{ "wait", "did you mean --wait-for?" },
		{ "screens", "did you mean --sessions?" },
		{ "squeue", "did you mean --status, or --queue " },
		{ "mgpu_queue", "did you mean --status, or --queue " },
		{ "cancel", "did you mean --cancel?" },
		{ "run", "x; leave it out" },
		{ "python", "x; did you mean python3?" },
		{ "GB", "x; write a size as one word: 8G" },
		{ "train", "x" },
		{ "enter-session", "x" },
		{ "", "x" },
	};

	(void)state;
	check(rows, ARRAY_SIZE(rows), true);
}

/* The string after @text. */
static const char *next(const char *text)
{
	return text + strlen(text) + 1;
}

/* An option that is renamed has to be renamed in the table, too. */
static void every_option_that_is_suggested_exists(void **state)
{
	(void)state;
	for (const char *names = foreign_names; *names; names = next(next(names)))
		for (const char *at = next(names); (at = strstr(at, "--")); at += 2) {
			size_t size = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");

			if (!options_find(option_table, at + 2, size))
				fail_msg("%s: there is no %s", names, at);
		}
}

static void each_name_leads_to_the_text_of_its_row(void **state)
{
	(void)state;
	for (const char *row = foreign_names; *row; row = next(next(row))) {
		char names[128], *rest = names, *name;

		text_copy(names, sizeof(names), row);
		assert_string_equal(names, row);
		assert_null(strchr(names, '_')); /* a given `_` is read as `-` */
		while ((name = strsep(&rest, " "))) {
			struct why why = suggestion_for(name, true);

			if (!*name || !strstr(why.text, next(row)))
				fail_msg("%s: '%s'", name, why.text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_other_systems_have_a_name_here),
		cmocka_unit_test(commands_of_other_systems_have_an_option_here),
		cmocka_unit_test(every_option_that_is_suggested_exists),
		cmocka_unit_test(each_name_leads_to_the_text_of_its_row),
	};

	option_table_make();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
