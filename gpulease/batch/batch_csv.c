#include <errno.h>
#include <strings.h>

#include "batch_attributes.h"
#include "batch_csv.h"
#include "parse.h"
#include "script.h"
#include "words.h"

enum csv_column {
	CSV_PRIORITY,
	CSV_SCRIPT,
	CSV_CONDA,
	CSV_ARGUMENTS,
	CSV_ALLOWED,
	CSV_COLUMNS
};

static const char *const columns[CSV_COLUMNS] = { "priority", "script", "conda_env",
	"arguments", "allowed_gpus" };

static const char blanks[] = " \t\r";

/* --- fields ------------------------------------------------------------------------ */

/* Removes the blanks at both ends of @text, in place. */
static char *csv_trim(char *text)
{
	char *begin = text + strspn(text, blanks);
	size_t size = strlen(begin);

	while (size && strchr(blanks, begin[size - 1]))
		size--;
	begin[size] = '\0';
	return begin;
}

/*
 * Unquotes the field at *@at in place, and moves *@at after it.  Returns NULL if the quote is not
 * closed.
 */
static char *csv_unquote(char **at)
{
	char *begin = *at + 1, *to = begin, *from = begin;

	for (; *from && (*from != '"' || from[1] == '"'); from++) {
		from += *from == '"';
		*to++ = *from;
	}
	if (!*from)
		return NULL;
	*to = '\0';
	*at = from + 1;
	return begin;
}

/*
 * Takes the field at *@rest, and moves *@rest after its comma, or sets it to NULL after the last
 * field.  With @is_rest commas are part of the field.  Returns 0 or -EINVAL.
 */
static int csv_take_field(char **rest, bool is_rest, char **ret, struct why *why)
{
	char *at = *rest + strspn(*rest, blanks);

	if (*at != '"') {
		*ret = at;
		at = is_rest ? NULL : strchr(at, ',');
		if (at)
			*at++ = '\0';
		*rest = at;
		*ret = csv_trim(*ret);
		return 0;
	}
	*ret = csv_unquote(&at);
	if (!*ret) {
		why_set(why, "the quote before '%s' is not closed", quote(at + 1).text);
		return -EINVAL;
	}
	at += strspn(at, blanks);
	if (*at && (*at != ',' || is_rest)) {
		why_set(why,
			"'%s' follows the quoted '%s'; write a quote in a field twice",
			quote(at).text, quote(*ret).text);
		return -EINVAL;
	}
	*rest = *at ? at + 1 : NULL;
	*ret = csv_trim(*ret);
	return 0;
}

static int csv_take_fields(char *line, char *fields[CSV_COLUMNS], struct why *why)
{
	static char nothing[1];

	for (int i = 0; i < CSV_COLUMNS; i++) {
		fields[i] = nothing;
		if (line && csv_take_field(&line, i == CSV_ALLOWED, &fields[i], why) < 0)
			return -EINVAL;
	}
	return 0;
}

static bool is_title(char *const fields[CSV_COLUMNS])
{
	for (int i = 0; i < CSV_COLUMNS; i++)
		if (strcasecmp(fields[i], columns[i]) != 0 &&
			(i != CSV_SCRIPT || strcasecmp(fields[i], "script_path") != 0))
			return false;
	return true;
}

/* --- commands ---------------------------------------------------------------------- */

static void csv_add_command(
	const char *script, const char *arguments, const char *python, struct text *out)
{
	static const char home[] = "~/";
	const char *runner = script_runner(script, python);
	size_t tilde = strncmp(script, home, 2) == 0 && script[2] ? 2 : 0;

	if (runner)
		text_addf(out, "%s ", runner);
	text_add_bytes(out, home, tilde);
	words_add_quoted(out, script + tilde);
	if (*arguments)
		text_add(out, " ");
	text_add(out, arguments);
}

size_t batch_csv_room(const char *text, size_t size, size_t lines, const char *python)
{
	/* for each line a program, quotes around the script, two blanks, a NUL */
	size_t room = size + lines * (strlen(python) + sizeof("python") + 5);

	/* a quote becomes four bytes when the script is quoted */
	for (const char *at = text; (at = memchr(at, '\'', size - (size_t)(at - text)));
		at++)
		room += 3;
	return room;
}

static int csv_set_priority(struct batch_attributes *ret, char *field, struct why *why)
{
	int r = batch_attribute_set(ret, BATCH_PRIORITY, field, why);

	ret->priority = -ret->priority;
	return r;
}

/* Removes empty items: a table that was padded with commas has some at its end. */
static void csv_drop_empty(char *list)
{
	char *to = list;

	for (const char *from = list; *from; from++)
		if (*from != ',' || (to > list && to[-1] != ','))
			*to++ = *from;
	if (to > list && to[-1] == ',')
		to--;
	*to = '\0';
}

static int csv_set_attributes(
	char *const fields[CSV_COLUMNS], struct batch_attributes *ret, struct why *why)
{
	int r = csv_set_priority(ret, fields[CSV_PRIORITY], why);

	if (r == 0 && *fields[CSV_CONDA])
		r = batch_attribute_set(ret, BATCH_CONDA, fields[CSV_CONDA], why);
	batch_attributes_squeeze(fields[CSV_ALLOWED]);
	csv_drop_empty(fields[CSV_ALLOWED]);
	if (r == 0 && *fields[CSV_ALLOWED])
		r = batch_attribute_set(ret, BATCH_ALLOW, fields[CSV_ALLOWED], why);
	return r;
}

int batch_csv_read(char *line, const char *python, struct text *commands,
	struct batch_line *ret, struct why *why)
{
	char *fields[CSV_COLUMNS];
	int r = csv_take_fields(line, fields, why);

	if (r < 0)
		return r;
	if (is_title(fields))
		return BATCH_CSV_TITLE;
	if (!*fields[CSV_SCRIPT]) {
		why_set(why, "there is no script; write "
			     "priority,script,conda_env,arguments,allowed_gpus");
		return -EINVAL;
	}
	r = csv_set_attributes(fields, &ret->attributes, why);
	if (r < 0)
		return r;
	ret->command = commands->at + commands->used;
	csv_add_command(fields[CSV_SCRIPT], fields[CSV_ARGUMENTS],
		ret->attributes.conda ? "python" : python, commands);
	text_add_bytes(commands, "", 1);
	return 0;
}

/* --- writing ----------------------------------------------------------------------- */

static const char *const pythons[] = { "python", "python3" };

const char *batch_csv_python(const char *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(pythons); i++) {
		size_t size = strlen(pythons[i]);

		if (strncmp(command, pythons[i], size) == 0 && command[size] == ' ')
			return pythons[i];
	}
	return pythons[0];
}

static void csv_add_field(const char *field, struct text *out)
{
	if (!field[strcspn(field, ",\"")]) {
		text_add(out, field);
		return;
	}
	text_add(out, "\"");
	for (; *field; field++)
		text_add(out, *field == '"' ? "\"\"" : (char[]){ *field, '\0' });
	text_add(out, "\"");
}

/* Refuses attributes that have no column.  Returns 0 or -EINVAL. */
static int csv_check_columns(unsigned given, struct why *why)
{
	given &= ~(1u << BATCH_PRIORITY | 1u << BATCH_CONDA | 1u << BATCH_ALLOW);
	if (!given)
		return 0;
	why_set(why, "csv has no column for %s, only for priority, conda and allow",
		batch_attribute_name((enum batch_attribute)__builtin_ctz(given)));
	return -EINVAL;
}

/*
 * Takes the script from *@command: its second word if the first is the program that would run it,
 * else its first.  @words has room for two words of @size.
 */
static const char *csv_take_script(const char **command, char *words, size_t size)
{
	struct text first = text_on(words, size), second = text_on(words + size, size);
	const char *python = batch_csv_python(*command), *at = *command, *runner;

	(void)words_take(&at, &first);
	*command = at;
	if (!words_take(&at, &second))
		return first.at;
	runner = script_runner(second.at, python);
	if (!runner || strcmp(first.at, runner) != 0)
		return first.at;
	*command = at;
	return second.at;
}

static int csv_add_row(const struct batch_attributes *attributes, const char *command,
	struct text *out, struct why *why)
{
	size_t size = strlen(command) + 1;
	autofree char *words = malloc(2 * size);
	const char *script;

	if (!words) {
		why_set(why, "not enough memory");
		return -ENOMEM;
	}
	script = csv_take_script(&command, words, size);
	text_addf(out, "%lld,", -(long long)attributes->priority);
	csv_add_field(script, out);
	text_add(out, ",");
	csv_add_field(attributes->conda ? attributes->conda : "", out);
	text_add(out, ",");
	csv_add_field(command + strspn(command, blanks), out);
	if (attributes->allow)
		text_addf(out, ",%s", attributes->allow);
	return 0;
}

int batch_csv_write(const struct batch_attributes *attributes, const char *command,
	struct text *out, struct why *why)
{
	int r = csv_check_columns(attributes->given, why);

	return r == 0 ? csv_add_row(attributes, command, out, why) : r;
}
