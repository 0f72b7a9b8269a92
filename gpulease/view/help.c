#include <errno.h>

#include "batch_attributes.h"
#include "diag.h"
#include "engine_help.h"
#include "exitcodes.h"
#include "help.h"
#include "option_table.h"
#include "parse.h"

enum { WIDTH = 78, COLUMN = 28 }; /* of a line, and before the explanations */

static const struct {
	const char *name, *title;
	bool by_row;   /* a row for each option; else all names in one paragraph */
	bool is_first; /* shown by plain --help */
} groups[] = {
	[GROUP_RUN] = { "run", "Running a command", true, true },
	[GROUP_CHOOSE] = { "choose", "Which GPUs, and how much of each", true, false },
	[GROUP_ORDER] = { "order", "When to start", true, false },
	[GROUP_CARE] = { "care", "Limits, retries and reports", true, false },
	[GROUP_BACK] = { "back", "In the background and in sessions", true, true },
	[GROUP_BATCH] = { "batch", "Lists of commands in a file", true, false },
	[GROUP_SETUP] = { "setup", "What the command gets", true, false },
	[GROUP_LEASE] = { "lease", "A lease without a command", true, false },
	[GROUP_LOOK] = { "look", "Looking", true, true },
	[GROUP_ENDED] = { "ended", "Which ended jobs --history and --accounting show",
		true, false },
	[GROUP_VIEW] = { "view", "Live view, pictures, metrics, several machines", true,
		false },
	[GROUP_ACT] = { "act", "Acting", true, true },
	[GROUP_WINDOWS] = { "windows", "Pauses that begin later, or not for all", true,
		false },
	[GROUP_ANY] = { "any", "With all of them", true, true },
	[GROUP_SRUN] = { "srun", "Options of srun", true, false },
	[GROUP_IGNORED] = { "ignored", "Options of srun without effect:", false, false },
	[GROUP_REFUSED] = { "refused", "Options of srun that are refused:", false,
		false },
};

static const char *const takes_names[] = {
	[TAKES_NONE] = "none",
	[TAKES_OPTIONAL] = "optional",
	[TAKES_REQUIRED] = "required",
	[TAKES_OPERANDS] = "operands",
};

/* Lines with four blanks are commands, which tests/cli/docs.sh runs. */
static const char agents[] =
	"## GPUs\n"
	"\n"
	"People share the GPUs of this machine.  Start each command that needs a GPU\n"
	"with gpulease.  It waits for free GPUs, leases them and becomes the command:\n"
	"output, signals and exit status are those of the command.\n"
	"\n"
	"    gpulease -n 2 -t 2h -- python train.py     # two GPUs, at most two hours\n"
	"    gpulease --vram 8G -- python eval.py       # needs 8G, shares the GPU\n"
	"    gpulease --max-wait 10m -- python eval.py  # gives up after that time\n"
	"    gpulease -n 2 --dry-run -- true            # exit status 0: would start now\n"
	"    id=$(gpulease --submit --name fit -- python train.py)  # in the background\n"
	"    gpulease --wait-for \"$id\"  # its exit status is that of the job\n"
	"    gpulease --log \"$id\"       # the output of the job\n"
	"    gpulease --cancel \"$id\"    # ends the job; end only what you have started\n"
	"    gpulease --batch jobs.txt  # each line of the file is a job in the queue\n"
	"    gpulease --status --json   # the GPUs and the queue; man gpulease-json\n"
	"    gpulease --history --json  # the jobs that have ended\n"
	"\n"
	"- Never set CUDA_VISIBLE_DEVICES: gpulease does.  The command sees its GPUs as\n"
	"  0, 1, ..., and what it starts with gpulease runs on them.\n"
	"- A line on stderr says why a job waits.  Waiting is normal; do not retry.\n"
	"- Read JSON and exit statuses; the text of tables and messages changes.\n"
	"- Exit status: the command's; 124: gave up waiting; 143, or 124 with --submit:\n"
	"  the time limit; 125: refused, stderr says why; 126, 127: no such command.\n"
	"- To try a line without GPUs: GPULEASE_SIM=4 in the environment simulates four.\n";

/* Appends how to write an option: `-I, --immediate[=DUR]`, `--name TEXT`. */
static void help_add_synopsis(struct text *text, const struct option_def *def)
{
	if (def->letter)
		text_addf(text, "-%c%s", def->letter, def->name ? ", " : "");
	if (def->name)
		text_addf(text, "--%s", def->name);
	if (option_takes(def) == TAKES_OPTIONAL)
		text_addf(text, "[=%s", def->metavar + 1);
	else if (def->metavar)
		text_addf(text, " %s", def->metavar);
}

static void help_print_rows(FILE *out, unsigned group)
{
	(void)fprintf(out, "\n%s:\n", groups[group].title);
	for (const struct option_def *def = option_table; def->kind; def++) {
		char synopsis[WIDTH];
		struct text text = TEXT_ON(synopsis);

		if (def->group != group)
			continue;
		help_add_synopsis(&text, def);
		/* without room for a blank between them, the explanation has a line of its own */
		if (text.used > COLUMN - 3)
			(void)fprintf(
				out, "  %s\n%*s%s\n", synopsis, COLUMN, "", def->help);
		else
			(void)fprintf(out, "  %-*s%s\n", COLUMN - 2, synopsis, def->help);
	}
}

/* Prints @word, on a new line if it does not fit on the current one; *@column is the position. */
static void help_print_word(FILE *out, const char *word, size_t *column)
{
	size_t size = strlen(word);

	if (*column + 1 + size > WIDTH) {
		(void)fprintf(out, "\n ");
		*column = 1;
	}
	(void)fprintf(out, " %s", word);
	*column += 1 + size;
}

static void help_print_paragraph(FILE *out, unsigned group)
{
	size_t column = strlen(groups[group].title);

	(void)fprintf(out, "%s", groups[group].title);
	for (const struct option_def *def = option_table; def->kind; def++) {
		char synopsis[WIDTH];
		struct text text = TEXT_ON(synopsis);

		if (def->group != group)
			continue;
		if (def->letter)
			text_addf(&text, "-%c/", def->letter);
		text_addf(&text, "--%s", def->name);
		help_print_word(out, synopsis, &column);
	}
	(void)fprintf(out, "\n");
}

static void help_print_exit_codes(FILE *out)
{
#define EXIT_CODE_TEXT(name, status, meaning) "; " #status " " meaning
	static const char title[] = "Exit status: the command's own; 128+n for signal n";
	char codes[512], *rest = codes, *word;
	size_t column = strlen(title);

	text_copy(codes, sizeof(codes), EXIT_CODES(EXIT_CODE_TEXT));
	(void)fprintf(out, "\n%s", title);
	while ((word = strsep(&rest, " ")))
		if (*word == ';')
			column += (size_t)fprintf(out, ";");
		else
			help_print_word(out, word, &column);
	(void)fprintf(out, "\n");
#undef EXIT_CODE_TEXT
}

static void help_print_group(FILE *out, unsigned group)
{
	if (groups[group].by_row)
		help_print_rows(out, group);
	else
		help_print_paragraph(out, group);
}

static void help_print_topics(FILE *out)
{
	(void)fprintf(out, "\nMore:\n");
	for (unsigned group = 0; group < ARRAY_SIZE(groups); group++)
		if (groups[group].by_row && !groups[group].is_first)
			(void)fprintf(out, "  --help=%-*s%s\n", COLUMN - 9,
				groups[group].name, groups[group].title);
	(void)fprintf(out, "  --help=%-*s%s\n", COLUMN - 9, "slurm",
		"What becomes of each option on a Slurm cluster");
	(void)fprintf(out, "  --help=%-*s%s\n", COLUMN - 9, "agents",
		"Lines for the AGENTS.md of coding agents and scripts");
	(void)fprintf(out, "  --help=%-*s%s\n", COLUMN - 9, "all",
		"all options; for the manual: man gpulease");
}

/* Prints --help=slurm, with a part for each group. */
static void help_print_engine(FILE *out)
{
	static const char *const other_titles[] = {
		[GROUP_IGNORED] = "Options of srun without effect on one machine",
		[GROUP_REFUSED] = "More options of srun",
	};

	engine_help_print_title(out);
	for (unsigned group = 0; group < ARRAY_SIZE(groups); group++) {
		const char *title = groups[group].title;

		if (group < ARRAY_SIZE(other_titles) && other_titles[group])
			title = other_titles[group];
		engine_help_print_group(group, title, out);
	}
}

/* Prints the attributes of a line of a jobs file, which are not in the table of options. */
static void help_print_attributes(FILE *out)
{
	char lines[2048];
	struct text text = TEXT_ON(lines);

	batch_attributes_explain(COLUMN, &text);
	(void)fprintf(out,
		"\nAttributes of a line of the file, as in [gpus=2 name=big] COMMAND:\n%s",
		lines);
}

void help_add_topics(struct text *out)
{
	for (unsigned group = 0; group < ARRAY_SIZE(groups); group++)
		text_addf(out, "%s, ", groups[group].name);
	text_add(out, "slurm, agents, all");
}

int help_print(const char *topic, FILE *out)
{
	bool is_all = topic && strcmp(topic, "all") == 0, found = false;

	for (unsigned group = 0; topic && group < ARRAY_SIZE(groups); group++)
		if (strcmp(topic, groups[group].name) == 0) {
			help_print_group(out, group);
			found = true;
		}
	if (topic && strcmp(topic, "slurm") == 0) {
		help_print_engine(out);
		found = true;
	}
	if (topic && strcmp(topic, "agents") == 0)
		found = fputs(agents, out) >= 0;
	if (topic && strcmp(topic, "batch") == 0)
		help_print_attributes(out);
	if (found)
		return 0;
	if (topic && !is_all)
		return -ENOENT;
	(void)fprintf(out,
		"Usage: gpulease [options] [--] command [argument ...]\n"
		"       gpulease --status | --queue | --cancel JOB ... | ...\n"
		"Waits for free GPUs of this machine, leases them and becomes the "
		"command with\n"
		"CUDA_VISIBLE_DEVICES set.  They are free again when it ends, however "
		"it ends.\n");
	for (unsigned group = 0; group < ARRAY_SIZE(groups); group++)
		if (is_all || groups[group].is_first)
			help_print_group(out, group);
	if (!is_all)
		help_print_topics(out);
	help_print_exit_codes(out);
	if (is_all)
		help_print_attributes(out);
	return 0;
}

int help_main(const struct settings *settings)
{
	char topics[160];
	struct text text = TEXT_ON(topics);

	if (help_print(settings->verb.topic, stdout) == 0)
		return EXIT_DONE;
	help_add_topics(&text);
	diag("there is no help on '%s'; the topics are %s",
		quote(settings->verb.topic).text, topics);
	return EXIT_MISUSE;
}

void options_print(FILE *out)
{
	for (const struct option_def *def = option_table; def->kind; def++) {
		const char *takes = takes_names[option_takes(def)];

		if (def->group == GROUP_HIDDEN)
			continue;
		for (int by_letter = 1; by_letter >= 0; by_letter--)
			if (by_letter ? def->letter != 0 : def->name != NULL) {
				(void)fprintf(out, "%s\t%s\t%s\t",
					option_spell(def, by_letter).text, takes,
					groups[def->group].name);
				engine_help_print_fields(def, out);
				(void)fputc('\n', out);
			}
	}
}
