#include <errno.h>

#include "option_parser.h"
#include "parse.h"

#include "no_messages.h" /* the last one */

/* The state of options_parse(). */
struct option_scan {
	const struct option_def *table;
	char **argv;
	unsigned at;   /* the word being read */
	unsigned kept; /* words argv[1..kept] are operands found so far */
	void *settings;
	struct options_result result;
	bool stopped;   /* OPTION_STOP was given: the rest is ignored */
	bool commanded; /* OPTION_COMMAND was given: a command follows even after a verb */
	struct why *why;
};

/* Whether words that are not options are operands of a verb. */
static bool option_scan_wants_operands(const struct option_scan *scan)
{
	return scan->result.verb && !scan->commanded;
}

/* Whether the next operand begins a command: the options after it belong to the command. */
static bool option_scan_has_operands(const struct option_scan *scan)
{
	unsigned leads = scan->result.verb->leads;

	return leads && scan->kept >= leads;
}

struct option_spelling option_spell(const struct option_def *def, bool by_letter)
{
	struct option_spelling spelling;
	struct text text = TEXT_ON(spelling.text);

	if (def->name && !(by_letter && def->letter))
		text_addf(&text, "--%s", def->name);
	else
		text_addf(&text, "-%c", def->letter);
	return spelling;
}

enum option_takes option_takes(const struct option_def *def)
{
	if (!def->metavar || def->kind == OPTION_REFUSED)
		return TAKES_NONE;
	if (def->kind == OPTION_VERB)
		return TAKES_OPERANDS;
	if (def->metavar[0] == '[' && def->metavar[strlen(def->metavar) - 1] == ']')
		return TAKES_OPTIONAL;
	return TAKES_REQUIRED;
}

/* --- one option -------------------------------------------------------------------- */

/* Sets @why to the message for an unknown option, with what was probably meant. */
static int option_scan_unknown(struct option_scan *scan, const char *word)
{
	size_t size = strcspn(word, "="), dashes = strspn(word, "-");

	why_set(scan->why, "unknown option '%s'", quote_bytes(word, size).text);
	suggestion_for_option(scan->table, word + dashes, size - dashes, scan->why);
	return -EINVAL;
}

/* Sets @why to the option and @reason, what is wrong with its value. */
static int option_scan_bad_value(
	struct option_scan *scan, const char *spelling, const struct why *reason)
{
	why_set(scan->why, "%s: %s", spelling, reason->text);
	return -EINVAL;
}

/* Stores @value at ->offset of @settings, by the kind of the option. */
static int option_store(
	const struct option_def *def, const char *value, void *settings, struct why *why)
{
	char *at = (char *)settings + def->offset;

	switch (def->kind) {
	case OPTION_FLAG:
	case OPTION_COMMAND:
		*(bool *)at = true;
		return 0;
	case OPTION_TALLY:
		++*(unsigned *)at;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = value;
		return 0;
	case OPTION_DURATION:
		return parse_duration_ms(value, (int64_t *)at, why);
	case OPTION_LIMIT:
		return parse_time_limit_ms(value, (int64_t *)at, why);
	case OPTION_CUSTOM:
		return def->read(value, at, why);
	case OPTION_REFUSED:
		why_set(why, "%s", def->help);
		return -EINVAL;
	case OPTION_STOP:
		if (value)
			*(const char **)at = value;
		return 0;
	case OPTION_NOTED:
		if (def->offset)
			*(const char **)at = value;
		return 0;
	case OPTION_NOTHING:
	case OPTION_VERB:
	case OPTION_END:
		break;
	}
	return 0;
}

static int option_scan_set_verb(struct option_scan *scan, const struct option_def *def)
{
	const struct option_def *verb = scan->result.verb;

	if (def->kind == OPTION_STOP)
		scan->stopped = true;
	else if (verb && verb != def) {
		why_set(scan->why, "--%s and --%s are two things to do; give one",
			verb->name, def->name);
		return -EINVAL;
	}
	scan->result.verb = def;
	return 0;
}

/* Whether there is a value that is not empty.  An option without effect may have an empty one. */
static bool has_value(const struct option_def *def, const char *value)
{
	return value &&
	       (*value || def->kind == OPTION_NOTHING || def->kind == OPTION_NOTED);
}

/*
 * Handles the option @def of the word argv[at].  @value is the value in the same word, or NULL; if
 * the option needs one it is taken from the next word.
 */
static int option_scan_use(struct option_scan *scan, const struct option_def *def,
	bool by_letter, char *value)
{
	struct option_spelling spelling = option_spell(def, by_letter);
	enum option_takes takes = option_takes(def);
	struct option_use *use = &scan->result.use[def - scan->table];
	struct why reason = WHY_NONE;

	if (value && takes == TAKES_NONE && def->kind != OPTION_REFUSED) {
		why_set(scan->why, "%s takes no value, not '%s'", spelling.text,
			quote(value).text);
		return -EINVAL;
	}
	if (!value && takes == TAKES_OPTIONAL && def->kind == OPTION_STOP) {
		const char *next = scan->argv[scan->at + 1];

		value = next && *next != '-' ? scan->argv[scan->at + 1] : NULL;
	}
	if (!value && takes == TAKES_REQUIRED) {
		value = scan->argv[scan->at + 1];
		scan->at += value != NULL;
	}
	if (takes == TAKES_REQUIRED && !has_value(def, value)) {
		why_set(scan->why, "%s needs a value: %s %s", spelling.text,
			spelling.text, def->metavar);
		return -EINVAL;
	}
	use->by_letter = by_letter;
	if (use->times < UINT16_MAX)
		use->times++;
	if (option_store(def, value, scan->settings, &reason) < 0)
		return option_scan_bad_value(scan, spelling.text, &reason);
	if (def->kind == OPTION_COMMAND)
		scan->commanded = true;
	if (def->kind != OPTION_VERB && def->kind != OPTION_STOP)
		return 0;
	if (value && def->kind == OPTION_VERB)
		/* --cancel=12: an operand like those that follow */
		scan->argv[++scan->kept] = value;
	return option_scan_set_verb(scan, def);
}

/* Whether the @size bytes at @given spell @name: srun takes an underscore for a dash. */
static bool option_is_named(const char *name, const char *given, size_t size)
{
	size_t same = 0;

	while (same < size && (given[same] == '_' ? '-' : given[same]) == name[same])
		same++;
	return same == size && !name[size];
}

const struct option_def *options_find(
	const struct option_def *table, const char *name, size_t size)
{
	for (const struct option_def *def = table; def->kind; def++)
		if (def->name && option_is_named(def->name, name, size))
			return def;
	return NULL;
}

static int option_scan_long(struct option_scan *scan, char *word)
{
	const char *name = word + 2;
	size_t size = strcspn(name, "=");
	const struct option_def *def = options_find(scan->table, name, size);

	return def ? option_scan_use(
			     scan, def, false, name[size] ? word + 3 + size : NULL)
		   : option_scan_unknown(scan, word);
}

const struct option_def *options_find_letter(const struct option_def *table, char letter)
{
	for (const struct option_def *def = table; def->kind; def++)
		if (def->letter == letter)
			return def;
	return NULL;
}

/* `-v`, `-vQ`, `-n2`, `-vn2`: the first letter with a value takes the rest of the word. */
static int option_scan_letters(struct option_scan *scan, char *word)
{
	size_t size = strcspn(word + 1, "=");

	/* `-log 3` means --log 3, not -l and -o g */
	if (size > 2 && options_find(scan->table, word + 1, size))
		return option_scan_unknown(scan, word);
	for (char *at = word + 1; *at && !scan->stopped; at++) {
		const struct option_def *def = options_find_letter(scan->table, *at);
		bool last;
		int r;

		if (!def && at > word + 1 && *at > ' ' && *at < 0x7f) {
			why_set(scan->why,
				"unknown option '-%c' in '%s'; see gpulease --help", *at,
				quote(word).text);
			return -EINVAL;
		}
		if (!def)
			return option_scan_unknown(scan, word);
		last = option_takes(def) != TAKES_NONE;
		r = option_scan_use(scan, def, true, last && at[1] ? at + 1 : NULL);
		if (r < 0 || last)
			return r;
	}
	return 0;
}

/* --- the line ---------------------------------------------------------------------- */

/* No option is a digit, so a negative number may be an operand: --set-priority 12 -5. */
static bool is_number(const char *word)
{
	return word[strspn(word, "0123456789")] == '\0';
}

/* Takes argv[@from] and all words after it as the command, or as operands of the verb. */
static void option_scan_keep_rest(struct option_scan *scan, unsigned from)
{
	if (!option_scan_wants_operands(scan)) {
		scan->result.rest = scan->argv + from;
		while (scan->argv[from++])
			scan->result.rest_count++;
		return;
	}
	while (scan->argv[from])
		scan->argv[++scan->kept] = scan->argv[from++];
}

int options_parse(const struct option_def *table, char **argv, void *settings,
	struct options_result *ret, struct why *why)
{
	struct option_scan scan = {
		.table = table, .argv = argv, .settings = settings, .why = why
	};

	for (scan.at = argv[0] ? 1 : 0; argv[scan.at] && !scan.stopped; scan.at++) {
		char *word = argv[scan.at];
		int r = 0;

		if (strcmp(word, "--") == 0) {
			option_scan_keep_rest(&scan, scan.at + 1);
			break;
		}
		if (word[0] == '-' && word[1] == '-') {
			r = option_scan_long(&scan, word);
		} else if (word[0] == '-' && word[1] &&
			   !(scan.kept && is_number(word + 1))) {
			r = option_scan_letters(&scan, word);
		} else if (option_scan_wants_operands(&scan) &&
			   !option_scan_has_operands(&scan)) {
			argv[++scan.kept] = word;
		} else {
			option_scan_keep_rest(&scan, scan.at);
			break;
		}
		if (r < 0)
			return r;
	}
	if (scan.commanded && scan.kept)
		scan.result.stray = argv[1];
	if (option_scan_wants_operands(&scan) && !scan.stopped) {
		scan.result.rest = argv + 1;
		scan.result.rest_count = scan.kept;
		if (argv[0])
			argv[scan.kept + 1] = NULL;
	} else if (!scan.result.rest) {
		scan.result.rest = argv + scan.at;
	}
	*ret = scan.result;
	return 0;
}
