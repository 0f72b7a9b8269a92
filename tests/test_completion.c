#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "completion.h"
#include "option_table.h"
#include "page.h"
#include "split.h"

/* Begins the page with what is printed for the words of @line. */
static void complete(const char *line, struct page *page)
{
	struct words words;
	unsigned count = 0;

	split(line, &words);
	while (words.argv[count])
		count++;
	page_begin(page);
	completion_print(words.argv, count, page->out);
}

struct row {
	const char *line, *printed;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct page page;

		complete(rows[i].line, &page);
		page_is(&page, rows[i].printed);
	}
}

static void the_command_completes_itself(void **state)
{
	static const struct row rows[] = {
		{ "", "@command 0\n" },
		{ "''", "@command 0\n" },
		{ "pyt", "@command 0\n" },
		{ "python --sta", "@command 0\n" },
		{ "-n 2 ''", "@command 2\n" },
		{ "-n 2 python --status ''", "@command 2\n" },
		{ "-vQ -n2 --gpus=2 python ''", "@command 3\n" },
		{ "-n 2 -- --odd ''", "@command 3\n" },
		{ "--unknown python ''", "@command 1\n" },
		{ "--follow --submit pyt", "@command 2\n" },
		{ "--submit --sing pyt", "@command 2\n" },
		{ "--add jobs.txt -n 2 pyt", "@command 4\n" },
		{ "--add jobs.txt -- pyt", "@command 3\n" },
		{ "--add = jobs.txt pyt", "@command 3\n" },
	};

	(void)state;
	check_rows(rows, ARRAY_SIZE(rows));
}

static void values_are_what_their_names_say(void **state)
{
	static const struct row rows[] = {
		{ "-n ''", "" },
		{ "-D ''", "@folders\n" },
		{ "--output x", "@files\n" },
		{ "--models ''", "@files\n" },
		{ "--after ''", "@jobs\n@jobs\n" },
		{ "--allow 0", "@gpus\n" },
		{ "--signal ''", "@signals\n" },
		{ "--on-limit ''", "kill\nrequeue\n" },
		{ "--begin ''", "now+1hour\ntomorrow\nmidnight\nnoon\n" },
		{ "--release ''", "@jobs\n" },
		{ "--extend ''", "@jobs\n" },
		{ "--requeue ''", "@jobs\n" },
		{ "--on-limit=r", "kill\nrequeue\n" },
		{ "--on-limit = r", "kill\nrequeue\n" },
		{ "--bind=", "yes\nno\n" },
		{ "--bind ''", "@command 1\n" },
		{ "--gres ''", "gpu\n" },
		{ "--export ''", "ALL\nNONE\n" },
	};

	(void)state;
	check_rows(rows, ARRAY_SIZE(rows));
}

static void verbs_have_operands(void **state)
{
	static const struct row rows[] = {
		{ "--cancel ''", "@jobs\nmine\nall\n" },
		{ "-a 1", "@jobs\n" },
		{ "--follow 12 ''", "@jobs\n" },
		{ "--wait-for ''", "@jobs\nall\nmine\n" },
		{ "--signal-job ''", "@jobs\n" },
		{ "--signal-job 12 ''", "@signals\n" },
		{ "--signal-job=12 ''", "@signals\n" },
		{ "--signal-job 12 --force ''", "@signals\n" },
		{ "--pause 0 ''", "@gpus\n" },
		{ "--batch ''", "@files\n" },
		{ "--add -n 2 ''", "@files\n" },
		{ "--docker-args ''", "podman\n" },
		{ "--doctor ''", "" },
		{ "--log -- -", "@jobs\n" },
		{ "--history --user ''", "@users\n" },
		{ "--history --state ''",
			"ended\nfinished\nfailed\ncancelled\ntimed-out\noom\npreempted\nrequeued\nlost\n" },
	};

	(void)state;
	check_rows(rows, ARRAY_SIZE(rows));
}

static void options_are_those_that_go_with_the_verb(void **state)
{
	struct page page;

	(void)state;
	complete("-", &page);
	page_has(&page, "-n\tlease N GPUs");
	page_has(&page, "\n--status\tshow");
	page_has(&page, "\n--mem\t");
	page_has_not(&page, "--multi-prog");
	page_has_not(&page, "--enter-session");
	page_end(&page);
	complete("--pause 0 --r", &page);
	page_has(&page, "--reason\t");
	page_has_not(&page, "--retries");
	page_has_not(&page, "--resume");
	page_end(&page);
}

static void the_help_has_topics(void **state)
{
	struct page page;

	(void)state;
	complete("--help ''", &page);
	page_has(&page, "run\nchoose\n");
	page_has(&page, "\nall\n");
	page_has_not(&page, ",");
	page_has_not(&page, "--");
	page_end(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_command_completes_itself),
		cmocka_unit_test(values_are_what_their_names_say),
		cmocka_unit_test(verbs_have_operands),
		cmocka_unit_test(options_are_those_that_go_with_the_verb),
		cmocka_unit_test(the_help_has_topics),
	};

	option_table_make();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
