#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine_help.h"
#include "engine_options.h"
#include "help.h"
#include "option_table.h"
#include "page.h"

static void every_option_has_an_entry(void **state)
{
	(void)state;
	option_table_make();
	for (const struct option_def *def = option_table; def->kind; def++)
		if (!engine_option_find(def))
			fail_msg("%s has no entry in engine_options.c",
				option_spell(def, false).text);
}

static void every_entry_has_an_option(void **state)
{
	(void)state;
	option_table_make();
	for (const struct engine_option *option = engine_options; option->name;
		option++) {
		size_t size = strlen(option->name);
		const struct option_def *def =
			options_find(option_table, option->name, size);

		if (!def && size == 1)
			def = options_find_letter(option_table, *option->name);
		/* and by the name by which the engine looks for it */
		if (!def || engine_option_find(def) != option)
			fail_msg("there is no option %s, or it has two entries",
				option->name);
	}
}

static bool is_passed(const struct engine_option *option)
{
	return option->action == ENGINE_JOB || option->action == ENGINE_STEP;
}

static void every_text_stands_in_one_line_of_a_message(void **state)
{
	(void)state;
	for (const struct engine_option *option = engine_options; option->name;
		option++) {
		const char *text = option->text;

		if (!text && is_passed(option))
			continue;
		if (!text || !*text || strlen(text) > 90 || strpbrk(text, "\n\t"))
			fail_msg("the text of --%s", option->name);
		if (text[strlen(text) - 1] == '.' && option->action != ENGINE_REFUSE)
			fail_msg("the text of --%s has a full stop", option->name);
	}
}

/* Only then is the value of an option that is refused on one machine read. */
static void what_one_machine_refuses_says_what_follows_it(void **state)
{
	(void)state;
	option_table_make();
	for (const struct option_def *def = option_table; def->kind; def++) {
		const struct engine_option *option = engine_option_find(def);

		if ((def->kind == OPTION_REFUSED) != (option->takes != 0))
			fail_msg("%s: it is %srefused on one machine",
				option_spell(def, false).text,
				option->takes ? "not " : "");
	}
}

/* Of --help=slurm, with blanks instead of line breaks. */
static void read_help(char *out, size_t size)
{
	struct page page;

	page_begin(&page);
	assert_int_equal(help_print("slurm", page.out), 0);
	page_has(&page, "--engine");
	for (const char *line = page.text, *end; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (end - line > 78)
			fail_msg("too wide: %.*s", (int)(end - line), line);
	}
	text_copy(out, size, page.text);
	page_end(&page);
	for (char *at = out; *at; at++)
		if (*at == '\n' || *at == ',')
			*at = ' ';
}

static void the_help_names_every_option_once_in_lines_that_fit(void **state)
{
	static char help[32768];

	(void)state;
	option_table_make();
	read_help(help, sizeof(help));
	for (const struct option_def *def = option_table; def->kind; def++) {
		char name[64];
		struct text text = TEXT_ON(name);
		const char *found;

		text_add(&text, " ");
		if (def->letter)
			text_addf(&text, "-%c%s", def->letter, def->name ? "/" : "");
		if (def->name)
			text_addf(&text, "--%s", def->name);
		text_add(&text, " ");
		found = strstr(help, name);
		if ((def->group != GROUP_HIDDEN) != (found != NULL))
			fail_msg("%s is %s the help", name, found ? "in" : "not in");
	}
}

static void options_of_the_same_fate_share_an_entry(void **state)
{
	struct page page;

	(void)state;
	option_table_make();
	page_begin(&page);
	engine_help_print_group(GROUP_LEASE, "A title", page.out);
	page_is(&page,
		"\nA title:\n"
		"  --lease-only              refused: allocate with salloc --gpus=N\n"
		"  --pid                     refused: Slurm cannot take up a process that runs\n"
		"                            already\n"
		"  --shell                   refused: allocate with salloc --gpus=N, which\n"
		"                            starts a shell\n");
	page_begin(&page);
	engine_help_print_group(GROUP_SETUP, "A title", page.out);
	page_is(&page, "\nA title:\n"
		       "  --setup, --conda, --inject, --inject-style\n"
		       "                            on the node\n");
}

static void a_check_can_read_what_becomes_of_an_option(void **state)
{
	static const struct {
		const char *name, *fields;
	} rows[] = {
		{ "partition", "job --partition\trequired" },
		{ "tasks-per-node", "job --ntasks-per-node\trequired" },
		{ "mpi", "step --mpi\trequired" },
		{ "nice", "job --nice\toptional" },
		{ "exclude", "job --exclude\trequired" },
		{ "hold", "job --hold\tnone" },
		{ "time", "self\trequired" },
		{ "vram", "refuse\trequired" },
		{ "bind", "ignore\toptional" },
	};

	(void)state;
	option_table_make();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct page page;

		page_begin(&page);
		engine_help_print_fields(
			options_find(option_table, rows[i].name, strlen(rows[i].name)),
			page.out);
		page_is(&page, rows[i].fields);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_has_an_entry),
		cmocka_unit_test(every_entry_has_an_option),
		cmocka_unit_test(every_text_stands_in_one_line_of_a_message),
		cmocka_unit_test(what_one_machine_refuses_says_what_follows_it),
		cmocka_unit_test(the_help_names_every_option_once_in_lines_that_fit),
		cmocka_unit_test(options_of_the_same_fate_share_an_entry),
		cmocka_unit_test(a_check_can_read_what_becomes_of_an_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
