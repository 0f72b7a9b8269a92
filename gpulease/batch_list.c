#include <errno.h>
#include <strings.h>

#include "batch_after.h"
#include "batch_attributes.h"
#include "batch_csv.h"
#include "batch_list.h"
#include "parse.h"
#include "words.h"

static const char blanks[] = " \t\r";
static const char byte_order_mark[] = "\xef\xbb\xbf";

/* --- keys -------------------------------------------------------------------------- */

uint64_t batch_key(const char *command, const char *name)
{
	/* with the NUL between the two */
	uint64_t key = text_hash(TEXT_HASH_BEGIN, command, strlen(command) + 1);

	if (name)
		key = text_hash(key, name, strlen(name));
	return key ? key : 1;
}

/* --- a line ------------------------------------------------------------------------ */

/* One reading of a file. */
struct reading {
	enum batch_format format;
	const char *python;
	const struct batch_known *known;
	char *rest, *end;     /* of the copy of its text, behind which is a NUL */
	struct text commands; /* of the second form, one behind the other */
	unsigned number;      /* of the line that is read */
	struct batch_list list;
	size_t room;       /* for lines */
	struct why reason; /* without file and line */
};

enum { LINE_SKIPPED = 1 };

static bool is_cut(const char *command, size_t size)
{
	char last = command[size - 1];

	return last == '\r' ||
	       (strchr(blanks, last) && (size < 2 || command[size - 2] != '\\'));
}

/*
 * Without the blanks behind a command, so that one more is no edit of it.  One that a backslash
 * stands before is part of the last word.
 */
static size_t size_without_blanks(const char *command, size_t size)
{
	while (size && is_cut(command, size))
		size--;
	return size;
}

/* For a shell the next line would belong to it. */
static bool is_continued(const char *command)
{
	size_t size = strlen(command), backslashes = 0;

	while (backslashes < size && command[size - backslashes - 1] == '\\')
		backslashes++;
	return backslashes % 2;
}

/* The first line of the other form, which is none of a shell's. */
static bool is_of_table(const char *at)
{
	static const char begin[] = "priority,script";

	return strncasecmp(at, begin, sizeof(begin) - 1) == 0;
}

static int read_command(char *at, struct batch_line *line, struct why *why)
{
	if (batch_has_attributes(at)) {
		if (batch_attributes_take(&at, &line->attributes, why) < 0)
			return -EINVAL;
		at += strspn(at, blanks);
		if (!*at) {
			why_set(why, "there is no command behind the attributes");
			return -EINVAL;
		}
	}
	at[size_without_blanks(at, strlen(at))] = '\0';
	if (is_continued(at)) {
		why_set(why, "it ends in a backslash; a command stands on one line");
		return -EINVAL;
	}
	line->command = at;
	return 0;
}

/* Reads the line @at, which ends with a NUL.  0, LINE_SKIPPED, -EINVAL or -EMEDIUMTYPE. */
static int read_line(struct reading *reading, char *at, struct batch_line *line)
{
	int r;

	at += strspn(at, blanks);
	if (!*at || *at == '#')
		return LINE_SKIPPED;
	*line = (struct batch_line){ .number = reading->number };
	if (reading->format != BATCH_CSV && is_of_table(at)) {
		why_set(&reading->reason, "this is a table; add --batch-format csv");
		return -EMEDIUMTYPE;
	}
	if (reading->format == BATCH_CSV)
		r = batch_csv_read(
			at, reading->python, &reading->commands, line, &reading->reason);
	else
		r = read_command(at, line, &reading->reason);
	if (r == 0 && strlen(line->command) > BATCH_LINE_MAX) {
		why_set(&reading->reason, "its command has more than %d bytes",
			BATCH_LINE_MAX);
		return -EINVAL;
	}
	if (r == 0)
		line->key = batch_key(line->command, line->attributes.name);
	return r == BATCH_CSV_TITLE ? LINE_SKIPPED : r;
}

/* --- all of them ------------------------------------------------------------------- */

/* Cuts the next line off, a NUL in place of how it ends. */
static int take_line(struct reading *reading, char **ret)
{
	char *begin = reading->rest;
	size_t left = (size_t)(reading->end - begin), size;
	char *end = memchr(begin, '\n', left);

	reading->number++;
	reading->rest = end ? end + 1 : reading->end;
	size = (size_t)((end ? end : reading->end) - begin);
	if (memchr(begin, '\0', size)) {
		why_set(&reading->reason, "there is a NUL byte in it; a jobs file is "
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

static int read_lines(struct reading *reading)
{
	struct batch_list *list = &reading->list;

	while (reading->rest < reading->end) {
		struct batch_line line;
		char *at;
		int r = take_line(reading, &at);

		if (r == 0)
			r = read_line(reading, at, &line);
		if (r == LINE_SKIPPED)
			continue;
		if (r == 0 && list->count == BATCH_LINES_MAX) {
			why_set(&reading->reason,
				"that is one too many; there may be %d of them",
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
 * Two pieces of memory: the copy of the text, in which the lines of the first form stay, with
 * room behind it for the commands of the second; and as many lines as it can be.  What of it is
 * not needed is not touched either.
 */
static int begin_reading(struct reading *reading, const char *text, size_t size)
{
	size_t lines = 1, room = 1;

	text = size ? text : ""; /* it may be NULL */
	for (const char *at = text; lines < BATCH_LINES_MAX; lines++, at++) {
		at = memchr(at, '\n', size - (size_t)(at - text));
		if (!at)
			break;
	}
	if (reading->format == BATCH_CSV) /* the one too many is read, too */
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

/* The end of a path that is long, so that the reason has its place behind it. */
static const char *shorten(const char *file)
{
	const char *slash = strrchr(file, '/');

	return strlen(file) > 120 && slash ? slash + 1 : file;
}

int batch_list_parse(enum batch_format format, const char *file, const char *text,
	size_t size, const char *python, const struct batch_known *known,
	struct batch_list *ret, struct why *why)
{
	struct reading reading = { .format = format, .python = python, .known = known };
	int r = begin_reading(&reading, text, size);

	if (r == 0)
		r = read_lines(&reading);
	if (r == 0) {
		*ret = reading.list;
		return 0;
	}
	batch_list_release(&reading.list);
	if (r == -ENOMEM)
		why_set(why, "%.120s: %s", shorten(file), reading.reason.text);
	else
		why_set(why, "%.120s, line %u: %s", shorten(file), reading.number,
			reading.reason.text);
	return r;
}

size_t batch_list_good_size(enum batch_format format, const char *text, size_t size,
	const char *python, const struct batch_known *known)
{
	struct reading reading = { .format = format, .python = python, .known = known };
	const char *at = text;
	int r = begin_reading(&reading, text, size);

	if (r == 0)
		r = read_lines(&reading);
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

/* What a shell is to read of @command, to be freed; NULL without memory. */
static char *command_text(char *const command[])
{
	size_t size = 1;
	struct text text;
	char *at;

	for (char *const *word = command; *word; word++)
		size += 4 * strlen(*word) + 3; /* each byte of it may be a quote */
	at = malloc(size);
	if (!at)
		return NULL;
	text = text_on(at, size);
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

/* Whether a line that begins with @command would be taken for something else. */
static bool is_ambiguous(const char *command)
{
	return *command == '#' || is_of_table(command) || batch_has_attributes(command) ||
	       strncmp(command, byte_order_mark, 3) == 0;
}

static int add_line(enum batch_format format, const struct batch_attributes *attributes,
	const char *command, struct text *out, struct why *why)
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

/* Reads what was written; it has to come to @command. */
static int check_written(enum batch_format format, const char *written,
	const char *command, struct why *why)
{
	struct reading reading = { .format = format,
		.python = batch_csv_python(command) };
	struct batch_line line = { .command = "" };
	int r = begin_reading(&reading, written, strlen(written));
	char *at;

	if (r == 0)
		r = take_line(&reading, &at);
	if (r == 0)
		r = read_line(&reading, at, &line);
	if (r < 0) {
		*why = reading.reason;
	} else if (strcmp(line.command, command) != 0) {
		r = -EINVAL;
		why_set(why, "it would be read as '%s'%s", quote(line.command).text,
			format == BATCH_CSV ? "; --batch-format=lines has no such limits"
					    : "");
	}
	batch_list_release(&reading.list);
	return r < 0 ? r : 0;
}

int batch_line_write(enum batch_format format, const struct batch_attributes *attributes,
	char *const command[], struct text *out, struct why *why)
{
	autofree char *text = command_text(command);
	size_t begin = out->used;
	int r = -EINVAL;

	if (!text)
		why_set(why, "not enough memory");
	else if (!*text)
		why_set(why, "there is no command");
	else
		r = add_line(format, attributes, text, out, why);
	if (r == 0 && strchr(out->at + begin, '\n')) {
		why_set(why, "a line of a jobs file cannot have a newline in it");
		r = -EINVAL;
	} else if (r == 0 && (out->cut || out->used - begin > BATCH_LINE_MAX)) {
		why_set(why, "it has more than %d bytes", BATCH_LINE_MAX);
		r = -EINVAL;
	} else if (r == 0) {
		r = check_written(format, out->at + begin, text, why);
	}
	if (r < 0) {
		out->used = begin;
		out->at[begin] = '\0';
	}
	return r < 0 ? -EINVAL : 0;
}
