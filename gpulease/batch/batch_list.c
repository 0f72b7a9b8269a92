#include <errno.h>
#include <strings.h>

#include "batch_after.h"
#include "batch_attributes.h"
#include "batch_csv.h"
#include "batch_list.h"
#include "parse.h"
#include "text.h"
#include "words.h"

static const char blanks[] = " \t\r";
static const char byte_order_mark[] = "\xef\xbb\xbf";

/* --- keys -------------------------------------------------------------------------- */

uint64_t batch_key(const char *command, const char *name)
{
	/* with the NUL between command and name, so that "ab" + "c" differs from "a" + "bc" */
	uint64_t key = text_hash(TEXT_HASH_BEGIN, command, strlen(command) + 1);

	if (name)
		key = text_hash(key, name, strlen(name));
	return key ? key : 1;
}

/* --- one line ---------------------------------------------------------------------- */

/* The state of parsing one file. */
struct reading {
	enum batch_format format;
	const char *python;
	const struct batch_known *known;
	char *rest, *end;     /* the rest of the copied text; a NUL follows it */
	struct text commands; /* of a table, one after the other */
	unsigned number;      /* of the current line, from 1 */
	struct batch_list list;
	struct why reason; /* without file and line */
};

enum line_outcome { LINE_SKIPPED = 1 }; /* blank, a comment, or a title */

static bool is_trailing_blank(const char *command, size_t size)
{
	char last = command[size - 1];

	return last == '\r' ||
	       (strchr(blanks, last) && (size < 2 || command[size - 2] != '\\'));
}

/*
 * Returns the size without the blanks at the end, so that one more blank there is not an edit.  A
 * blank after a backslash is part of the last word.
 */
static size_t size_without_blanks(const char *command, size_t size)
{
	while (size && is_trailing_blank(command, size))
		size--;
	return size;
}

/*
 * Whether the command ends with an odd number of backslashes, which for a shell continues the line.
 */
static bool is_continued(const char *command)
{
	size_t size = strlen(command), backslashes = 0;

	while (backslashes < size && command[size - backslashes - 1] == '\\')
		backslashes++;
	return backslashes % 2;
}

static const char csv_title[] = "priority,script";

/* Whether @at begins with the title of a table, which no shell command does. */
static bool is_csv_title(const char *at)
{
	return strncasecmp(at, csv_title, sizeof(csv_title) - 1) == 0;
}

/* Whether @at begins like a row of a table: with a number and a comma. */
static bool is_csv_row(const char *at)
{
	at += *at == '-';
	return is_digit(*at) && at[strspn(at, "0123456789")] == ',';
}

/* Whether the line @at, which has @number, belongs to a script, and not to a list of commands. */
static bool is_of_script(const char *at, unsigned number)
{
	/* `#!/usr/bin/env -S gpulease --batch` makes a jobs file a program */
	if (number == 1 && strncmp(at, "#!", 2) == 0 && !strstr(at, "gpulease"))
		return true;
	return strncmp(at, "#SBATCH", 7) == 0;
}

enum batch_format batch_format_of(
	enum batch_format asked, const char *file, const char *text, size_t size)
{
	static const char ending[] = ".csv";
	size_t length = strlen(file), least = sizeof(ending) - 1;
	const char *at = text, *end = text + size;

	if (asked != BATCH_AUTO)
		return asked;
	if (length > least && strcasecmp(file + length - least, ending) == 0)
		return BATCH_CSV;
	if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0)
		at += 3;
	/* skip blank lines and remarks */
	for (; at < end && *at && strchr("# \t\r\n", *at); at++)
		if (*at == '#') {
			const char *newline = memchr(at, '\n', (size_t)(end - at));

			at = newline ? newline : end - 1;
		}
	return (size_t)(end - at) >= sizeof(csv_title) - 1 && is_csv_title(at)
		       ? BATCH_CSV
		       : BATCH_AUTO;
}

/* Reads the attributes and the command at @at into @line.  Returns 0 or -EINVAL. */
static int line_read_command(char *at, struct batch_line *line, struct why *why)
{
	if (batch_has_attributes(at)) {
		if (batch_attributes_take(&at, &line->attributes, why) < 0)
			return -EINVAL;
		at += strspn(at, blanks);
		if (!*at) {
			why_set(why, "there is no command after the attributes");
			return -EINVAL;
		}
	}
	at[size_without_blanks(at, strlen(at))] = '\0';
	if (is_continued(at)) {
		why_set(why, "it ends with a backslash; a command has to be on one line");
		return -EINVAL;
	}
	line->command = at;
	return 0;
}

/* Reads the line @at, which ends with a NUL.  Returns 0, LINE_SKIPPED, -EINVAL or -EMEDIUMTYPE. */
static int reading_read_line(struct reading *reading, char *at, struct batch_line *line)
{
	int r;

	at += strspn(at, blanks);
	if (is_of_script(at, reading->number)) {
		why_set(&reading->reason,
			"this is a script and not a list of commands; run it with gpulease "
			"--submit, with options in place of #SBATCH lines");
		return -EMEDIUMTYPE;
	}
	if (!*at || *at == '#')
		return LINE_SKIPPED;
	*line = (struct batch_line){ .number = reading->number };
	if (reading->format == BATCH_AUTO && (is_csv_title(at) || is_csv_row(at))) {
		why_set(&reading->reason, "this is a table; add --batch-format csv");
		return -EMEDIUMTYPE;
	}
	if (reading->format == BATCH_CSV)
		r = batch_csv_read(
			at, reading->python, &reading->commands, line, &reading->reason);
	else
		r = line_read_command(at, line, &reading->reason);
	if (r == 0 && strlen(line->command) > BATCH_LINE_MAX) {
		why_set(&reading->reason, "its command has more than %d bytes",
			BATCH_LINE_MAX);
		return -EINVAL;
	}
	if (r == 0)
		line->key = batch_key(line->command, line->attributes.name);
	return r == BATCH_CSV_TITLE ? LINE_SKIPPED : r;
}

/* --- all lines --------------------------------------------------------------------- */

/* Takes the next line and puts a NUL in the place of its newline.  Returns 0 or -EINVAL. */
static int reading_take_line(struct reading *reading, char **ret)
{
	char *begin = reading->rest;
	size_t left = (size_t)(reading->end - begin), size;
	char *end = memchr(begin, '\n', left);

	reading->number++;
	reading->rest = end ? end + 1 : reading->end;
	size = (size_t)((end ? end : reading->end) - begin);
	if (memchr(begin, '\0', size)) {
		why_set(&reading->reason, "it contains a NUL byte; a jobs file is "
					  "text in UTF-8");
		return -EINVAL;
	}
	if (size > BATCH_LINE_MAX) {
		why_set(&reading->reason, "it has more than %d bytes", BATCH_LINE_MAX);
		return -EINVAL;
	}
	if (size && begin[size - 1] == '\r')
		size--;
	begin[size] = '\0';
	*ret = begin;
	return 0;
}

static int reading_read_all(struct reading *reading)
{
	struct batch_list *list = &reading->list;

	while (reading->rest < reading->end) {
		struct batch_line line;
		char *at;
		int r = reading_take_line(reading, &at);

		if (r == 0)
			r = reading_read_line(reading, at, &line);
		if (r == LINE_SKIPPED)
			continue;
		if (r == 0 && list->count == BATCH_LINES_MAX) {
			why_set(&reading->reason,
				"it is one too many; a jobs file has at most %d commands",
				BATCH_LINES_MAX);
			r = -EINVAL;
		}
		if (r < 0)
			return r;
		list->lines[list->count++] = line;
	}
	return batch_after_check(
		list, reading->known, &reading->number, &reading->reason);
}

/*
 * Allocates two pieces of memory: a copy of the text, in which the texts of the lines stay, with
 * room after it for the commands of a table; and the most lines that there can be.  Pages that are
 * not needed are never touched.  Returns 0 or -ENOMEM.
 */
static int reading_begin(struct reading *reading, const char *text, size_t size)
{
	size_t lines = 1, room = 1;

	text = size ? text : ""; /* it may be NULL */
	for (const char *at = text; lines < BATCH_LINES_MAX; lines++, at++) {
		at = memchr(at, '\n', size - (size_t)(at - text));
		if (!at)
			break;
	}
	if (reading->format == BATCH_CSV) /* + 1: a line too many is read as well */
		room += batch_csv_room(text, size, lines + 1, reading->python);
	reading->list.text = malloc(size + 1 + room);
	reading->list.lines = malloc(lines * sizeof(*reading->list.lines));
	if (!reading->list.text || !reading->list.lines) {
		why_set(&reading->reason, "not enough memory");
		return -ENOMEM;
	}
	memcpy(reading->list.text, text, size);
	reading->list.text[size] = '\0';
	reading->rest = reading->list.text;
	reading->end = reading->rest + size;
	reading->commands = text_on(reading->end + 1, room);
	if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0)
		reading->rest += 3;
	return 0;
}

/* Returns only the file name of a long path, so that the reason after it has room. */
static const char *shorten_path(const char *file)
{
	return strlen(file) > 120 ? text_base_name(file) : file;
}

int batch_list_parse(enum batch_format format, const char *file, const char *text,
	size_t size, const char *python, const struct batch_known *known,
	struct batch_list *ret, struct why *why)
{
	struct reading reading = { .format = format, .python = python, .known = known };
	int r = reading_begin(&reading, text, size);

	if (r == 0)
		r = reading_read_all(&reading);
	if (r == 0) {
		*ret = reading.list;
		return 0;
	}
	batch_list_release(&reading.list);
	if (r == -ENOMEM)
		why_set(why, "%.120s: %s", shorten_path(file), reading.reason.text);
	else
		why_set(why, "%.120s, line %u: %s", shorten_path(file), reading.number,
			reading.reason.text);
	return r;
}

size_t batch_list_good_size(enum batch_format format, const char *text, size_t size,
	const char *python, const struct batch_known *known)
{
	struct reading reading = { .format = format, .python = python, .known = known };
	const char *at = text;
	int r = reading_begin(&reading, text, size);

	if (r == 0)
		r = reading_read_all(&reading);
	batch_list_release(&reading.list);
	if (r == 0)
		return size;
	for (unsigned line = 1; at && line < reading.number; line++) {
		at = memchr(at, '\n', size - (size_t)(at - text));
		at = at ? at + 1 : NULL;
	}
	return at ? (size_t)(at - text) : size;
}

void batch_list_release(struct batch_list *list)
{
	free(list->lines);
	free(list->text);
	*list = BATCH_LIST_NONE;
}

/* --- writing ----------------------------------------------------------------------- */

/*
 * Returns @command after the word @before (NULL: none) as one shell command, to be freed by the
 * caller; NULL without memory.
 */
static char *list_command_text(const char *before, char *const command[])
{
	size_t size = before ? strlen(before) + 2 : 1;
	struct text text;
	char *at;

	for (char *const *word = command; *word; word++)
		size += 4 * strlen(*word) + 3; /* a quote takes four bytes */
	at = malloc(size);
	if (!at)
		return NULL;
	text = text_on(at, size);
	if (before)
		text_addf(&text, "%s ", before);
	if (!command[1])
		text_add(&text, command[0] + strspn(command[0], blanks));
	else
		for (char *const *word = command; *word; word++) {
			text_add(&text, word > command ? " " : "");
			words_add_quoted(&text, *word);
		}
	at[size_without_blanks(at, text.used)] = '\0';
	return at;
}

/* Whether a line that begins with @command would be read as something else. */
static bool is_ambiguous(const char *command)
{
	return *command == '#' || is_csv_title(command) || is_csv_row(command) ||
	       batch_has_attributes(command) || strncmp(command, byte_order_mark, 3) == 0;
}

static int list_write_line(enum batch_format format,
	const struct batch_attributes *attributes, const char *command, struct text *out,
	struct why *why)
{
	if (format == BATCH_CSV)
		return batch_csv_write(attributes, command, out, why);
	if (attributes->given || is_ambiguous(command)) {
		batch_attributes_write(attributes, out);
		text_add(out, " ");
	}
	text_add(out, command);
	return 0;
}

/*
 * Whether @read is @command, or, of a table, the program that runs the script @command before it.
 */
static bool is_read_as(enum batch_format format, const char *read, const char *command)
{
	size_t size = strlen(read), tail = strlen(command);
	size_t before = format == BATCH_CSV ? strcspn(read, " ") + 1 : 0;

	return strcmp(read, command) == 0 ||
	       (size == before + tail && strcmp(read + before, command) == 0);
}

/* Checks that the line that was written is read as @command.  Returns 0, -EINVAL or -ENOMEM. */
static int list_check_written(enum batch_format format, const char *written,
	const char *command, struct why *why)
{
	struct reading reading = { .format = format,
		.python = batch_csv_python(command) };
	struct batch_line line = { .command = "" };
	int r = reading_begin(&reading, written, strlen(written));
	char *at;

	if (r == 0)
		r = reading_take_line(&reading, &at);
	if (r == 0)
		r = reading_read_line(&reading, at, &line);
	if (r < 0) {
		*why = reading.reason;
	} else if (!is_read_as(format, line.command, command)) {
		r = -EINVAL;
		why_set(why, "it would be read as '%s'%s", quote(line.command).text,
			format == BATCH_CSV ? "; --batch-format=lines has no such limits"
					    : "");
	}
	batch_list_release(&reading.list);
	return r < 0 ? r : 0;
}

int batch_line_write(enum batch_format format, const struct batch_attributes *attributes,
	const char *before, char *const command[], struct text *out, struct why *why)
{
	autofree char *text = list_command_text(before, command);
	size_t begin = out->used;
	int r = -EINVAL;

	if (!text)
		why_set(why, "not enough memory");
	else if (!*text)
		why_set(why, "there is no command");
	else
		r = list_write_line(format, attributes, text, out, why);
	if (r == 0 && strchr(out->at + begin, '\n')) {
		why_set(why, "a line of a jobs file cannot have a newline in it");
		r = -EINVAL;
	} else if (r == 0 && (out->cut || out->used - begin > BATCH_LINE_MAX)) {
		why_set(why, "it has more than %d bytes", BATCH_LINE_MAX);
		r = -EINVAL;
	} else if (r == 0) {
		r = list_check_written(format, out->at + begin, text, why);
	}
	if (r < 0) {
		out->used = begin;
		out->at[begin] = '\0';
	}
	return r < 0 ? -EINVAL : 0;
}

uint64_t batch_line_hash(const struct batch_line *line)
{
	static char all[2 * BATCH_LINE_MAX];
	struct text text = TEXT_ON(all);
	char *const command[] = { (char *)line->command, NULL };
	struct why why = WHY_NONE;

	return batch_line_write(
		       BATCH_LINES, &line->attributes, NULL, command, &text, &why) < 0
		       ? line->key
		       : batch_key(all, NULL);
}
