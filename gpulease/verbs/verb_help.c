/*
 * --help, --version, --list-options and --complete: print text that is made from the table of
 * options.
 */
#include "batch_attributes.h"
#include "completion.h"
#include "diag.h"
#include "exitcodes.h"
#include "help.h"
#include "parse.h"
#include "verbs.h"

/* Prints the attributes of a line of a jobs file, which are not in the table of options. */
static void help_print_attributes(void)
{
	char lines[2048];
	struct text text = TEXT_ON(lines);

	batch_attributes_explain(HELP_COLUMN, &text);
	(void)printf(
		"\nAttributes of a line of the file, as in [gpus=2 name=big] COMMAND:\n%s",
		lines);
}

int verb_help(struct settings *settings)
{
	char topics[160];
	struct text text = TEXT_ON(topics);

	if (help_print(settings->verb.topic, stdout) == 0) {
		if (settings->verb.topic &&
			(strcmp(settings->verb.topic, "batch") == 0 ||
				strcmp(settings->verb.topic, "all") == 0))
			help_print_attributes();
		return EXIT_DONE;
	}
	help_add_topics(&text);
	diag("there is no help on '%s'; the topics are %s",
		quote(settings->verb.topic).text, topics);
	return EXIT_MISUSE;
}

int verb_version(struct settings *settings)
{
	(void)settings;
	version_print(stdout);
	return EXIT_DONE;
}

int verb_list_options(struct settings *settings)
{
	(void)settings;
	options_print(stdout);
	return EXIT_DONE;
}

int verb_complete(struct settings *settings)
{
	completion_print(settings->verb.operands, settings->verb.operand_count, stdout);
	return EXIT_DONE;
}
