#include <errno.h>
#include <strings.h>

#include "batch_attributes.h"
#include "batch_csv.h"
#include "parse.h"
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

/* Without the blanks around it, in the same bytes. */
static char *trim(char *text)
{
	char *begin = text + strspn(text, blanks);
	size_t size = strlen(begin);

	while (size && strchr(blanks, begin[size - 1]))
		size--;
	begin[size] = '\0';
	return begin;
}

/* The field whose quote is at *@at, in place; *@at is behind its end then.  NULL: no end. */
static char *unquote(char **at)
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
 * Takes a field at *@rest, which is behind the comma then, or NULL where it was the last one.
 * @is_rest: commas are part of it.
 */
static int take_field(char **rest, bool is_rest, char **ret, struct why *why)
{
	char *at = *rest + strspn(*rest, blanks);

	if (*at != '"') {
		*ret = at;
		at = is_rest ? NULL : strchr(at, ',');
		if (at)
			*at++ = '\0';
		*rest = at;
		*ret = trim(*ret);
		return 0;
	}
	*ret = unquote(&at);
	if (!*ret) {
		why_set(why, "the quote before '%s' has no end", quote(at + 1).text);
		return -EINVAL;
	}
	at += strspn(at, blanks);
	if (*at && (*at != ',' || is_rest)) {
		why_set(why,
			"'%s' stands behind the quoted '%s'; a quote in a field is "
			"doubled",
			quote(at).text, quote(*ret).text);
		return -EINVAL;
	}
	*rest = *at ? at + 1 : NULL;
	*ret = trim(*ret);
	return 0;
}

static int take_fields(char *line, char *fields[CSV_COLUMNS], struct why *why)
{
	static char nothing[1];

	for (int i = 0; i < CSV_COLUMNS; i++) {
		fields[i] = nothing;
		if (line && take_field(&line, i == CSV_ALLOWED, &fields[i], why) < 0)
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

static bool has_ending(const char *text, const char *ending)
{
	size_t size = strlen(text), least = strlen(ending);

	return size > least && strcmp(text + size - least, ending) == 0;
}

/* What runs @script, NULL: itself. */
static const char *runner_of(const char *script, const char *python)
{
	if (has_ending(script, ".py"))
		return python;
	return has_ending(script, ".sh") ? "bash" : NULL;
}

static void add_command(
	const char *script, const char *arguments, const char *python, struct text *out)
{
	static const char home[] = "~/";
	const char *runner = runner_of(script, python);
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
	/* for each line a runner, quotes around the script, two blanks, a NUL */
	size_t room = size + lines * (strlen(python) + sizeof("python") + 5);

	/* in quotes it takes four */
	for (const char *at = text; (at = memchr(at, '\'', size - (size_t)(at - text)));
		at++)
		room += 3;
	return room;
}

static int set_priority(struct batch_attributes *ret, char *field, struct why *why)
{
	int r = batch_attribute_set(ret, BATCH_PRIORITY, field, why);

	ret->priority = -ret->priority;
	return r;
}

/* Tables that were padded with commas have empty items behind the last one. */
static void drop_empty(char *list)
{
	char *to = list;

	for (const char *from = list; *from; from++)
		if (*from != ',' || (to > list && to[-1] != ','))
			*to++ = *from;
	if (to > list && to[-1] == ',')
		to--;
	*to = '\0';
}

static int set_attributes(
	char *const fields[CSV_COLUMNS], struct batch_attributes *ret, struct why *why)
{
	int r = set_priority(ret, fields[CSV_PRIORITY], why);

	if (r == 0 && *fields[CSV_CONDA])
		r = batch_attribute_set(ret, BATCH_CONDA, fields[CSV_CONDA], why);
	batch_squeeze(fields[CSV_ALLOWED]);
	drop_empty(fields[CSV_ALLOWED]);
	if (r == 0 && *fields[CSV_ALLOWED])
		r = batch_attribute_set(ret, BATCH_ALLOW, fields[CSV_ALLOWED], why);
	return r;
}

int batch_csv_read(char *line, const char *python, struct text *commands,
	struct batch_line *ret, struct why *why)
{
	char *fields[CSV_COLUMNS];
	int r = take_fields(line, fields, why);

	if (r < 0)
		return r;
	if (is_title(fields))
		return BATCH_CSV_TITLE;
	if (!*fields[CSV_SCRIPT]) {
		why_set(why, "there is no script; write "
			     "priority,script,conda_env,arguments,allowed_gpus");
		return -EINVAL;
	}
	r = set_attributes(fields, &ret->attributes, why);
	if (r < 0)
		return r;
	ret->command = commands->at + commands->used;
	add_command(fields[CSV_SCRIPT], fields[CSV_ARGUMENTS],
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

static void add_field(const char *field, struct text *out)
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

/* Only what has a column. */
static int refuse_others(unsigned given, struct why *why)
{
	given &= ~(1u << BATCH_PRIORITY | 1u << BATCH_CONDA | 1u << BATCH_ALLOW);
	if (!given)
		return 0;
	why_set(why,
		"there is no column for %s in csv, just for priority, conda and allow",
		batch_attribute_name((enum batch_attribute)__builtin_ctz(given)));
	return -EINVAL;
}

/*
 * Takes the script off *@command: its second word, where the first is what runs it, else the
 * first.  @words has room for both.
 */
static const char *take_script(const char **command, char *words, size_t size)
{
	struct text first = text_on(words, size), second = text_on(words + size, size);
	const char *python = batch_csv_python(*command), *at = *command, *runner;

	(void)words_take(&at, &first);
	*command = at;
	if (!words_take(&at, &second))
		return first.at;
	runner = runner_of(second.at, python);
	if (!runner || strcmp(first.at, runner) != 0)
		return first.at;
	*command = at;
	return second.at;
}

static int add_row(const struct batch_attributes *attributes, const char *command,
	struct text *out, struct why *why)
{
	size_t size = strlen(command) + 1;
	autofree char *words = malloc(2 * size);
	const char *script;

	if (!words) {
		why_set(why, "not enough memory");
		return -ENOMEM;
	}
	script = take_script(&command, words, size);
	text_addf(out, "%lld,", -(long long)attributes->priority);
	add_field(script, out);
	text_add(out, ",");
	add_field(attributes->conda ? attributes->conda : "", out);
	text_add(out, ",");
	add_field(command + strspn(command, blanks), out);
	if (attributes->allow)
		text_addf(out, ",%s", attributes->allow);
	return 0;
}

int batch_csv_write(const struct batch_attributes *attributes, const char *command,
	struct text *out, struct why *why)
{
	int r = refuse_others(attributes->given, why);

	return r == 0 ? add_row(attributes, command, out, why) : r;
}
