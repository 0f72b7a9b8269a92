#include <errno.h>

#include "config_values.h"
#include "parse.h"
#include "user_limits.h"

enum { NUMBER_SIZE = 16 };

/* The words of a line, each with the key whose values it takes. */
static const struct {
	const char *name;
	enum config_key key;
} words[] = {
	{ "gpus", CONFIG_USER_GPUS },
	{ "jobs", CONFIG_USER_JOBS },
	{ "time", CONFIG_MAX_TIME },
	{ "priority", CONFIG_MAX_PRIORITY },
};

/* --- lines ------------------------------------------------------------------------- */

/* Takes the first word from *@rest. */
static struct strview take_word(struct strview *rest)
{
	struct strview all = strview_trim(*rest), word = { all.begin, all.begin };

	while (word.end < all.end && !is_blank(*word.end))
		word.end++;
	*rest = strview_trim((struct strview){ word.end, all.end });
	return word;
}

/* Splits @text.  Returns false if it is no line of the table; its limits are not checked. */
static bool split_line(struct strview text, struct limits_line *ret)
{
	struct strview left = strview_before(text, '='), name = left;
	struct strview who = take_word(&name);

	ret->is_group = strview_is(who, "group");
	ret->name = take_word(&name);
	ret->words = (struct strview){ left.end + (left.end < text.end), text.end };
	return (ret->is_group || strview_is(who, "user")) && left.end < text.end &&
	       strview_size(ret->name) && !strview_size(name) &&
	       !memchr(ret->name.begin, ':', strview_size(ret->name)) &&
	       !memchr(ret->name.begin, ',', strview_size(ret->name));
}

/* Reads one limit, "gpus 1", into @config, for line @number.  Returns 0 or -EINVAL. */
static int read_limit(
	struct strview value, unsigned number, struct config *config, struct why *why)
{
	struct strview name = take_word(&value);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct config_key_def def = *config_find_def(words[i].key);
		unsigned *line = &config->lines[words[i].key];

		if (!strview_is(name, words[i].name))
			continue;
		def.name = words[i].name;
		if (*line == number) {
			why_set(why, "%s: is set twice", def.name);
			return -EINVAL;
		}
		*line = number;
		return config_read_value(config, &def, value, why);
	}
	why_set(why, "'%s' is no limit",
		quote_bytes(name.begin, strview_size(name)).text);
	why_add_remedy(why, "write gpus, jobs, time or priority, and a value");
	return -EINVAL;
}

/* Sets in @config what @line names.  Returns 0 or -EINVAL. */
static int apply_line(
	const struct limits_line *line, struct config *config, struct why *why)
{
	struct strview rest = line->words;
	bool has_more = true;
	int r = 0;

	while (r == 0 && has_more) {
		struct strview limit = strview_before(rest, ',');

		has_more = limit.end < rest.end;
		rest.begin = limit.end + has_more;
		r = read_limit(limit, line->number, config, why);
	}
	return r;
}

int limits_check(const struct config *config, struct strview text, unsigned number,
	struct why *why)
{
	struct limits_line line = { .number = number };
	struct config scratch = *config;

	if (split_line(text, &line))
		return apply_line(&line, &scratch, why);
	why_set(why, "'%s' is no limit of a user or group",
		quote_bytes(text.begin, strview_size(text)).text);
	why_add_remedy(why, "write group NAME = gpus 1, jobs 4, time 8h, priority 0, or "
			    "user NAME = ...; keys stand above [limits]");
	return -EINVAL;
}

bool limits_next(const struct limits_table *table, struct limits_line *line)
{
	struct strview rest = { line->number ? line->words.end : table->text.begin,
		table->text.end };
	unsigned number = line->number ? line->number : table->line;

	/* the rest of a line whose number is known: a comment, or nothing */
	if (table->line)
		(void)strview_take_line(&rest);
	while (table->line && rest.begin < rest.end) {
		struct strview text = strview_take_line(&rest);

		number++;
		if (!strview_size(text))
			continue;
		line->number = number;
		return *text.begin != '[' && split_line(text, line);
	}
	return false;
}

/* --- who a line is about ----------------------------------------------------------- */

static bool read_number(struct strview text, uint32_t *ret)
{
	char digits[NUMBER_SIZE] = "";
	uint64_t number;

	if (strview_size(text) >= sizeof(digits))
		return false;
	memcpy(digits, text.begin, strview_size(text));
	if (parse_u64(digits, UINT32_MAX, &number, NULL) < 0)
		return false;
	*ret = (uint32_t)number;
	return true;
}

/*
 * Takes the next line of a text like /etc/passwd, "NAME:x:NUMBER:...".  Sets *@name, which is empty
 * for a comment, and *@rest_of_line to what follows the name.  Returns false at the end.
 */
static bool take_entry(
	struct strview *entries, struct strview *name, struct strview *rest_of_line)
{
	struct strview line = strview_before(*entries, '\n');

	if (entries->begin == entries->end)
		return false;
	entries->begin = line.end + (line.end < entries->end);
	*name = strview_before(line, *line.begin == '#' ? '#' : ':');
	*rest_of_line = (struct strview){ name->end, line.end };
	return true;
}

/* Reads the number of an entry, ":x:NUMBER" and what follows. */
static bool read_entry_number(struct strview rest, uint32_t *ret)
{
	for (int colons = 0; colons < 2; colons++) {
		rest.begin = strview_before(rest, ':').end;
		if (rest.begin == rest.end)
			return false;
		rest.begin++;
	}
	return read_number(strview_before(rest, ':'), ret);
}

/* Finds the number of @name, which may be a number itself. */
static bool find_number(struct strview entries, struct strview name, uint32_t *ret)
{
	struct strview other, rest;

	if (read_number(name, ret))
		return true;
	while (take_entry(&entries, &other, &rest))
		if (strview_size(other) == strview_size(name) &&
			memcmp(other.begin, name.begin, strview_size(name)) == 0 &&
			read_entry_number(rest, ret))
			return true;
	return false;
}

static bool has_name(struct strview entries, uint32_t number)
{
	struct strview name, rest;
	uint32_t other;

	while (take_entry(&entries, &name, &rest))
		if (strview_size(name) && read_entry_number(rest, &other) &&
			other == number)
			return true;
	return false;
}

/* --- what a line means for a process ------------------------------------------------- */

/* The numbers that a line is compared with, and the text that has their names. */
struct identity {
	struct strview entries;
	const uint32_t *numbers;
	size_t count;
};

static struct identity identity_of(
	const struct limits_process *process, const struct limits_line *line)
{
	if (line->is_group)
		return (struct identity){ process->group, process->gids,
			process->gid_count };
	return (struct identity){ process->passwd, &process->uid, 1 };
}

bool limits_is_known(const struct limits_line *line, const struct limits_process *process)
{
	uint32_t number;

	return find_number(identity_of(process, line).entries, line->name, &number);
}

/* UNKNOWN: the name has no number, so it is not known whether the line matches. */
enum match { MATCH_NO, MATCH_YES, MATCH_UNKNOWN };

static enum match match_line(
	const struct limits_line *line, const struct limits_process *process)
{
	struct identity is = identity_of(process, line);
	uint32_t number;

	if (!find_number(is.entries, line->name, &number))
		return MATCH_UNKNOWN;
	for (size_t i = 0; i < is.count; i++)
		if (is.numbers[i] == number)
			return MATCH_YES;
	return MATCH_NO;
}

/* Whether a number of the process has no name.  Only then may a line with such a name be meant. */
static bool has_unnamed(
	const struct limits_line *line, const struct limits_process *process)
{
	struct identity is = identity_of(process, line);

	for (size_t i = 0; i < is.count; i++)
		if (!has_name(is.entries, is.numbers[i]))
			return true;
	return false;
}

/* --- what binds -------------------------------------------------------------------- */

/* Returns the limit as a number, of which a smaller one is stricter. */
static uint64_t strictness(const struct config *config, enum config_key key)
{
	uint64_t value = key == CONFIG_USER_GPUS   ? config->user_gpus
			 : key == CONFIG_USER_JOBS ? config->user_jobs
			 : key == CONFIG_MAX_TIME  ? (uint64_t)config->max_time_ms
						   : config->max_priority + UINT64_C(1);

	return value ? value : UINT64_MAX; /* 0: no limit */
}

/* Makes the limits in @config as strict as @line says, if it names stricter ones. */
static void tighten(const struct limits_line *line, struct config *config)
{
	struct config other = *config;

	(void)!apply_line(line, &other, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		enum config_key key = words[i].key;
		char value[NUMBER_SIZE * 4];
		struct text text = TEXT_ON(value);

		if (strictness(&other, key) >= strictness(config, key))
			continue;
		config_format(&other, key, &text);
		(void)!config_set(config, key, value, NULL);
		config->lines[key] = line->number;
	}
}

/*
 * Makes the limits in @ret as strict as the lines with unknown names say that come before line
 * @before and that may be about @process.
 */
static void tighten_by_unknown(const struct config *config,
	const struct limits_process *process, unsigned before, struct config *ret)
{
	struct limits_line line = { .number = 0 };
	int unnamed[] = { -1, -1 }; /* of users and of groups; -1: not looked for yet */

	while (limits_next(&config->limits, &line) && line.number != before) {
		int *is_unnamed = &unnamed[line.is_group];

		if (match_line(&line, process) != MATCH_UNKNOWN)
			continue;
		if (*is_unnamed < 0)
			*is_unnamed = has_unnamed(&line, process);
		if (*is_unnamed)
			tighten(&line, ret);
	}
}

void limits_find(const struct config *config, const struct limits_process *process,
	struct config *ret)
{
	struct limits_line line = { .number = 0 };
	enum match match = MATCH_NO;
	bool has_unknown = false;

	*ret = *config;
	while (match != MATCH_YES && limits_next(&config->limits, &line)) {
		match = match_line(&line, process);
		has_unknown |= match == MATCH_UNKNOWN;
	}
	if (match == MATCH_YES)
		(void)!apply_line(&line, ret, NULL);
	/* each line before that one may be the first that matches */
	if (has_unknown)
		tighten_by_unknown(
			config, process, match == MATCH_YES ? line.number : 0, ret);
	if (!ret->max_time_ms || ret->default_time_ms <= ret->max_time_ms)
		return;
	ret->default_time_ms = ret->max_time_ms;
	ret->lines[CONFIG_DEFAULT_TIME] = ret->lines[CONFIG_MAX_TIME];
}

void limits_format(const struct config *config, struct text *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		text_addf(out, "%s%s ", i ? ", " : "", words[i].name);
		config_format(config, words[i].key, out);
	}
}
