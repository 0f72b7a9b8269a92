#include "completion.h"
#include "help.h"
#include "history.h"
#include "option_table.h"
#include "option_values.h"

/* Where the word to complete stands. */
struct place {
	const struct option_def *verb,
		*valued;   /* the word is a value of ->valued; NULL: none */
	unsigned operands; /* of the verb, before the word */
	bool is_last;      /* after `--`: no options come */
	unsigned at;       /* the word; or where the command before it begins */
};

/* --- values ------------------------------------------------------------------------ */

/* What the name of a value stands for. */
static const struct {
	const char *name, *lines;
} names[] = {
	{ "ID", "@jobs" },
	{ "JOB", "@jobs\nmine\nall" },
	{ "GPU", "@gpus" },
	{ "FILE", "@files" },
	{ "DIR", "@folders" },
	{ "SIG", "@signals" },
	{ "USER", "@users" },
};

/* The values of options that share the name of their value with other options. */
static const struct {
	int (*read)(const char *value, void *at, struct why *why);
	const char *lines;
} readers[] = {
	{ read_gpu_ids, "@gpus" },
	{ read_gpu_list, "@gpus" },
	{ read_prefer, "@gpus" },
	{ read_on_limit, "kill\nrequeue" },
	{ read_batch_format, "lines\ncsv" },
	{ read_style, "local\nphysical" },
	{ read_export, "ALL\nNONE" },
	{ read_begin, "now+1hour\ntomorrow\nmidnight\nnoon" },
};

static void completion_print_topics(FILE *out)
{
	char topics[256];
	struct text text = TEXT_ON(topics);

	help_add_topics(&text);
	for (const char *at = topics; *at; at++)
		if (*at != ' ')
			(void)fputc(*at == ',' ? '\n' : *at, out);
	(void)fputc('\n', out);
}

/*
 * Prints what the name of a value stands for, the @size bytes at @name.  A name in small letters
 * stands for itself.
 */
static void completion_print_name(const char *name, size_t size, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == size &&
			memcmp(names[i].name, name, size) == 0)
			(void)fprintf(out, "%s\n", names[i].lines);
	if (size == strlen("TOPIC") && memcmp(name, "TOPIC", size) == 0)
		completion_print_topics(out);
	if (size > 1 && strspn(name, "abcdefghijklmnopqrstuvwxyz-") >= size)
		(void)fprintf(out, "%.*s\n", (int)size, name);
}

/* Prints what the value of @def can be; of a verb, the operand after @operands others. */
static void completion_print_values(
	const struct option_def *def, unsigned operands, FILE *out)
{
	const char *at = def->metavar ? def->metavar : "", *blank;

	for (size_t i = 0; def->read && i < ARRAY_SIZE(readers); i++)
		if (readers[i].read == def->read) {
			(void)fprintf(out, "%s\n", readers[i].lines);
			return;
		}
	for (unsigned state = 0; def->read == read_states && state < END_STATES; state++)
		(void)fprintf(out, "%s\n", end_state_names[state]);
	/* the operands of `ID SIG` differ */
	for (; operands && (blank = strchr(at, ' ')); operands--)
		at = blank + 1;
	while (*at && *at != ' ') {
		size_t size = strcspn(at, "[]|.,:=@ ");

		completion_print_name(at, size, out);
		at += size ? size : 1;
	}
}

/* Prints all options that go with @verb, or all if it is NULL. */
static void completion_print_options(const struct option_def *verb, FILE *out)
{
	for (const struct option_def *def = option_table; def->kind; def++) {
		if (def->group == GROUP_HIDDEN || def->group == GROUP_REFUSED ||
			(verb && (def->kind == OPTION_VERB ||
					 !(def->verbs & verb->verbs))))
			continue;
		for (int by_letter = 1; by_letter >= 0; by_letter--)
			if (by_letter ? def->letter != 0 : def->name != NULL)
				(void)fprintf(out, "%s\t%s\n",
					option_spell(def, by_letter).text, def->help);
	}
}

/* --- the place --------------------------------------------------------------------- */

/* Returns the option that @word is, without a value in the same word; or NULL. */
static const struct option_def *completion_find_option(const char *word)
{
	if (word[0] != '-' || !word[1])
		return NULL;
	if (word[1] == '-')
		return options_find(option_table, word + 2, strcspn(word + 2, "="));
	return word[2] ? NULL : options_find_letter(option_table, word[1]);
}

/*
 * Handles the option words[@at].  @last is the index of the word to complete.  Returns the index of
 * the last word of the option.
 */
static unsigned completion_pass_option(
	struct place *place, char **words, unsigned at, unsigned last)
{
	const struct option_def *def = completion_find_option(words[at]);
	/* bash splits --name=value in three */
	bool is_split = strcmp(words[at + 1], "=") == 0;
	unsigned value = is_split ? at + 2 : at + 1;
	bool is_value, has_value;

	if (!def)
		return at;
	if (def->kind == OPTION_VERB)
		place->verb = def;
	else if (def->kind == OPTION_COMMAND)
		place->verb = NULL; /* --follow --submit: a command follows */
	has_value = words[at][1] == '-' && strchr(words[at], '=');
	is_value = is_split || option_takes(def) == TAKES_REQUIRED ||
		   (def->kind == OPTION_STOP && option_takes(def) == TAKES_OPTIONAL &&
			   words[at + 1][0] != '-');
	if (def->kind == OPTION_VERB && (is_split || has_value))
		place->operands++;
	if (has_value || !is_value)
		return at;
	if (value == last)
		place->valued = def;
	return value;
}

static struct place completion_find_place(char **words, unsigned last)
{
	struct place place = { .verb = NULL };

	for (; place.at < last; place.at++) {
		const char *word = words[place.at];
		unsigned leads = place.verb ? place.verb->leads : 0;

		if (!place.is_last && strcmp(word, "--") == 0)
			place.is_last = true;
		else if (!place.is_last && word[0] == '-' && word[1])
			place.at = completion_pass_option(&place, words, place.at, last);
		else if (place.verb && !(leads && place.operands >= leads))
			place.operands++;
		else
			return place;
	}
	place.at = last;
	return place;
}

void completion_print(char **words, unsigned count, FILE *out)
{
	unsigned last = count ? count - 1 : 0;
	struct place place = completion_find_place(words, last);
	const struct option_def *verb = place.verb;
	bool is_command = place.at < last;
	const char *word = is_command || place.is_last || !count ? "" : words[last];

	if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
		place.valued = completion_find_option(word);
	if (place.valued)
		completion_print_values(place.valued, 0, out);
	else if (word[0] == '-')
		completion_print_options(verb, out);
	else if (verb && !is_command && !(verb->leads && place.operands >= verb->leads))
		completion_print_values(verb, place.operands, out);
	else
		(void)fprintf(out, "@command %u\n", place.at);
}
