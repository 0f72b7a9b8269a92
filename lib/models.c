#include <errno.h>

#include "models.h"
#include "parse.h"
#include "part.h"
#include "words.h"

enum { NEED_SIZE = 32 };

/* What is looked for, and where it was found first. */
struct hit {
	unsigned line; /* 0: not yet */
	struct model_need need;
};

/* A name that was there, and where. */
struct place {
	uint64_t hash;
	unsigned line; /* 0: none */
};

/* One reading of a table. */
struct scan {
	struct part rest;
	unsigned line;
	struct place *places; /* of the names so far, at their hashes or behind */
	size_t places_mask;
	const char *wanted; /* NULL: nothing */
	struct hit model, fallback;
	bool has_models;   /* of the JSON: its member was there */
	struct why reason; /* without file and line */
};

/* --- needs ------------------------------------------------------------------------- */

/* Only memory has a unit. */
static int parse_need(const char *text, struct model_need *ret, struct why *why)
{
	struct model_need need = { .gpus = 1 };
	size_t size = strlen(text);
	int r;

	if (text[strspn(text, ".0123456789")] && size > 1 && text[0] >= '0' &&
		text[0] <= '9')
		r = parse_size_mib(text, &need.vram_mib, why);
	else
		r = parse_gpu_need(text, &need.gpus, &need.share_percent, why);
	if (r == 0)
		*ret = need;
	return r;
}

static int refuse_second(struct scan *scan, const char *name, unsigned first)
{
	why_set(&scan->reason,
		"'%s' is set twice; write it once, it stands in line %u too",
		quote(name).text, first);
	return -EINVAL;
}

/* Names that hash alike pass for one; there is room for all of the table. */
static int note_place(struct scan *scan, const char *name)
{
	uint64_t hash = text_hash(TEXT_HASH_BEGIN, name, strlen(name));
	size_t at = hash & scan->places_mask;

	for (; scan->places[at].line; at = (at + 1) & scan->places_mask)
		if (scan->places[at].hash == hash)
			return refuse_second(scan, name, scan->places[at].line);
	scan->places[at] = (struct place){ hash, scan->line };
	return 0;
}

/* The need @value of @name, or where @name is NULL of all others. */
static int take_need(struct scan *scan, const char *name, struct part value)
{
	char text[NEED_SIZE];
	struct model_need need = { .gpus = 0 };
	struct why wrong = WHY_NONE;

	if (part_size(value) >= sizeof(text) ||
		memchr(value.begin, '\0', part_size(value))) {
		why_set(&scan->reason, "'%s' is not a need; write 0.5, 2 or 18G",
			quote_bytes(value.begin, part_size(value)).text);
		return -EINVAL;
	}
	memcpy(text, value.begin, part_size(value));
	text[part_size(value)] = '\0';
	if (parse_need(text, &need, &wrong) < 0) {
		why_set(&scan->reason, "%s: %s", quote(name ? name : "default").text,
			wrong.text);
		return -EINVAL;
	}
	if (!name && scan->fallback.line)
		return refuse_second(scan, "default", scan->fallback.line);
	if (name && note_place(scan, name) < 0)
		return -EINVAL;
	if (!name || (scan->wanted && strcmp(name, scan->wanted) == 0))
		*(name ? &scan->model : &scan->fallback) =
			(struct hit){ .line = scan->line, .need = need };
	return 0;
}

/* --- lines ------------------------------------------------------------------------- */

static int read_line(struct scan *scan, struct part line)
{
	struct part left = part_before(line, '='), name = part_trim(left), value;
	char text[MODELS_NAME_SIZE];

	if (*line.begin == '[' || left.end == line.end) {
		why_set(&scan->reason, "'%s' is no model; write NAME = NEED",
			quote_bytes(line.begin, part_size(line)).text);
		return -EINVAL;
	}
	value = part_trim((struct part){ left.end + 1, line.end });
	if (!part_size(name) || !part_size(value)) {
		why_set(&scan->reason, "the %s is missing; write NAME = NEED",
			part_size(name) ? "need" : "name");
		return -EINVAL;
	}
	if (part_size(name) >= sizeof(text)) {
		why_set(&scan->reason, "the name '%s' is too long",
			quote_bytes(name.begin, part_size(name)).text);
		return -EINVAL;
	}
	memcpy(text, name.begin, part_size(name));
	text[part_size(name)] = '\0';
	return take_need(scan, part_is(name, "default") ? NULL : text, value);
}

static int read_lines(struct scan *scan)
{
	int r = 0;

	for (;; scan->line++) {
		struct part line = part_take_line(&scan->rest);

		if (part_size(line))
			r = read_line(scan, line);
		if (r < 0 || scan->rest.begin == scan->rest.end)
			return r;
	}
}

/* --- JSON -------------------------------------------------------------------------- */

static void skip_blanks(struct scan *scan)
{
	for (; part_size(scan->rest) && strchr(" \t\r\n", *scan->rest.begin) &&
		*scan->rest.begin;
		scan->rest.begin++)
		scan->line += *scan->rest.begin == '\n';
}

/* Takes @c behind blanks, if it is there. */
static bool has_next(struct scan *scan, char c)
{
	skip_blanks(scan);
	if (!part_size(scan->rest) || *scan->rest.begin != c)
		return false;
	scan->rest.begin++;
	return true;
}

static int expected(struct scan *scan, const char *what)
{
	struct part next = { scan->rest.begin,
		part_size(scan->rest) ? scan->rest.begin + 1 : scan->rest.begin };

	why_set(&scan->reason, "here should be %s, not %s%s%s", what,
		part_size(next) ? "'" : "the end",
		quote_bytes(next.begin, part_size(next)).text,
		part_size(next) ? "'" : "");
	return -EINVAL;
}

/* The four digits behind \u, as a number; -1 where they are none. */
static int read_hex(struct scan *scan)
{
	int value = 0;

	for (int i = 0; i < 4; i++, scan->rest.begin++) {
		static const char digits[] = "0123456789abcdefABCDEF";
		const char *found = part_size(scan->rest) && *scan->rest.begin
					    ? strchr(digits, *scan->rest.begin)
					    : NULL;

		if (!found)
			return -1;
		value = value * 16 + (int)(found - digits) -
			(found - digits > 15 ? 6 : 0);
	}
	return value;
}

/* Appends \uXXXX, and the second half of a pair of them, as UTF-8. */
static bool add_escaped(struct scan *scan, struct text *out)
{
	int code = read_hex(scan), low;
	char utf8[5] = "";

	if (code >= 0xd800 && code < 0xdc00) {
		if (part_size(scan->rest) < 2 || scan->rest.begin[0] != '\\' ||
			scan->rest.begin[1] != 'u')
			return false;
		scan->rest.begin += 2;
		low = read_hex(scan);
		if (low < 0xdc00 || low > 0xdfff)
			return false;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code <= 0 || (code >= 0xdc00 && code <= 0xdfff)) {
		return false; /* a NUL is in no name */
	}
	if (code < 0x80) {
		utf8[0] = (char)code;
	} else if (code < 0x800) {
		utf8[0] = (char)(0xc0 | code >> 6);
		utf8[1] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		utf8[0] = (char)(0xe0 | code >> 12);
		utf8[1] = (char)(0x80 | (code >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (code & 0x3f));
	} else {
		utf8[0] = (char)(0xf0 | code >> 18);
		utf8[1] = (char)(0x80 | (code >> 12 & 0x3f));
		utf8[2] = (char)(0x80 | (code >> 6 & 0x3f));
		utf8[3] = (char)(0x80 | (code & 0x3f));
	}
	text_add(out, utf8);
	return true;
}

/* What stands behind a backslash. */
static bool add_escape(struct scan *scan, struct text *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = part_size(scan->rest) ? *scan->rest.begin++ : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	if (c == 'u')
		return add_escaped(scan, out);
	if (found)
		text_add_bytes(out, &to[found - from], 1);
	return found;
}

static int read_string(struct scan *scan, char out[MODELS_NAME_SIZE])
{
	struct text text = text_on(out, MODELS_NAME_SIZE);

	if (!has_next(scan, '"'))
		return expected(scan, "a name in \"\"");
	while (part_size(scan->rest) && (unsigned char)*scan->rest.begin >= 0x20) {
		const char *c = scan->rest.begin++;

		if (*c == '"' && text.cut) {
			why_set(&scan->reason, "the name '%s' is too long",
				quote(out).text);
			return -EINVAL;
		}
		if (*c == '"')
			return 0;
		if (*c != '\\') {
			text_add_bytes(&text, c, 1);
		} else if (!add_escape(scan, &text)) {
			why_set(&scan->reason, "a bad escape in the name '%s'",
				quote(out).text);
			return -EINVAL;
		}
	}
	return expected(scan, "the end of a name in \"\"");
}

/* JSON's numbers begin and end with digits; exponents are not read. */
static int read_number(struct scan *scan, const char *name)
{
	struct part value;

	skip_blanks(scan);
	value = (struct part){ scan->rest.begin, scan->rest.begin };
	while (value.end < scan->rest.end && *value.end &&
		strchr("+-.0123456789eE", *value.end))
		value.end++;
	if (!part_size(value) || *value.begin == '.')
		return expected(scan, "a number of GPUs");
	scan->rest.begin = value.end;
	if (memchr(value.begin, 'e', part_size(value)) ||
		memchr(value.begin, 'E', part_size(value))) {
		why_set(&scan->reason, "'%s' has an exponent; write 0.5 or 2",
			quote_bytes(value.begin, part_size(value)).text);
		return -EINVAL;
	}
	return take_need(scan, name, value);
}

/* `{"NAME": …, …}`; @member reads what stands behind the colon. */
static int read_object(
	struct scan *scan, int (*member)(struct scan *scan, const char *name))
{
	char name[MODELS_NAME_SIZE];
	int r;

	if (!has_next(scan, '{'))
		return expected(scan, "'{'");
	if (has_next(scan, '}'))
		return 0;
	do {
		r = read_string(scan, name);
		if (r == 0 && !has_next(scan, ':'))
			r = expected(scan, "':'");
		if (r == 0)
			r = member(scan, name);
		if (r < 0)
			return r;
	} while (has_next(scan, ','));
	return has_next(scan, '}') ? 0 : expected(scan, "',' or '}'");
}

static int read_member(struct scan *scan, const char *name)
{
	if (strcmp(name, "default_requirement") == 0)
		return read_number(scan, NULL);
	if (strcmp(name, "models") != 0 || scan->has_models) {
		why_set(&scan->reason,
			"'%s' %s; there are \"default_requirement\" and \"models\", each "
			"once",
			quote(name).text,
			scan->has_models ? "is one too many" : "means nothing");
		return -EINVAL;
	}
	scan->has_models = true;
	return read_object(scan, read_number);
}

static int read_json(struct scan *scan)
{
	int r = read_object(scan, read_member);

	skip_blanks(scan);
	if (r == 0 && part_size(scan->rest))
		r = expected(scan, "the end");
	return r;
}

/* --- all of it --------------------------------------------------------------------- */

/* Of a model there are at least four bytes, `a=1` and a newline: half of the places stay free. */
static struct place *make_places(size_t table_size, size_t *ret_mask)
{
	size_t count = 2;

	while (count < table_size / 2 + 2)
		count *= 2;
	*ret_mask = count - 1;
	return calloc(count, sizeof(struct place));
}

static int read_table(const struct model_table *table, struct scan *scan, struct why *why)
{
	autofree struct place *places = make_places(table->size, &scan->places_mask);
	struct scan ahead;
	int r;

	if (!places) {
		why_set(why, "not enough memory for '%s'", quote(table->file).text);
		return -ENOMEM;
	}
	scan->rest = (struct part){ table->text, table->text + table->size };
	scan->line = table->line;
	scan->places = places;
	ahead = *scan;
	r = has_next(&ahead, '{') ? read_json(scan) : read_lines(scan);
	if (r < 0)
		why_set(why, "%s, line %u: %s", table->file, scan->line,
			scan->reason.text);
	return r;
}

int models_find(const struct model_table *table, const char *name, struct model_need *ret,
	struct why *why)
{
	struct scan scan = { .wanted = name };
	const struct hit *hit;
	int r = table->text ? read_table(table, &scan, why) : 0;

	if (r < 0)
		return r;
	hit = scan.model.line ? &scan.model : &scan.fallback;
	if (!hit->line)
		return MODELS_UNKNOWN;
	*ret = hit->need;
	return 0;
}

int models_check(const struct model_table *table, struct why *why)
{
	struct scan scan = { .wanted = NULL };

	return read_table(table, &scan, why);
}

const char *models_option_value(char *const command[], const char *option)
{
	size_t size = strlen(option);
	const char *value = NULL;

	for (char *const *word = command; *word && *++word;) {
		if (strncmp(*word, option, size) != 0)
			continue;
		if ((*word)[size] == '=')
			value = *word + size + 1;
		else if (!(*word)[size] && word[1])
			value = *++word;
	}
	return value;
}

bool models_line_value(const char *line, const char *option, char out[MODELS_VALUE_SIZE])
{
	size_t size = strlen(option);
	bool is_program = true, is_found = false;
	char at[2 * MODELS_VALUE_SIZE];
	struct text word = TEXT_ON(at);

	for (; words_take(&line, &word); word = TEXT_ON(at), is_program = false) {
		if (is_program || strncmp(at, option, size) != 0)
			continue;
		if (at[size] == '=') {
			text_copy(out, MODELS_VALUE_SIZE, at + size + 1);
			is_found = true;
		} else if (!at[size]) {
			word = TEXT_ON(at);
			if (!words_take(&line, &word))
				break;
			text_copy(out, MODELS_VALUE_SIZE, at);
			is_found = true;
		}
	}
	return is_found;
}
