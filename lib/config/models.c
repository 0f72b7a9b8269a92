#include <errno.h>

#include "json_read.h"
#include "models.h"
#include "parse.h"
#include "parse_gpus.h"
#include "strview.h"
#include "words.h"

enum { NEED_SIZE = 32 };

/* A need that was asked for, once it is found. */
struct hit {
	unsigned line; /* 0: not found yet */
	struct model_need need;
};

/* A name of the table, as an entry of the hash table that finds duplicates. */
struct place {
	uint64_t hash;
	unsigned line; /* 0: the place is free */
};

/* One reading of a table. */
struct scan {
	struct strview rest;   /* what is left of a table of lines */
	struct json_walk json; /* what is left of a table in JSON */
	const char *counted;   /* the place in the JSON to which ->line belongs */
	unsigned line;
	struct place *places; /* the names so far, at their hash or the next free place */
	size_t places_mask;
	const char *wanted; /* the model to find; NULL: none */
	struct hit model, fallback;
	bool has_models;   /* JSON: the member "models" was read */
	struct why reason; /* without the file and the line */
};

/* --- needs ------------------------------------------------------------------------- */

/* Reads a need: memory if it has a unit, else a number of GPUs. */
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

static int scan_refuse_second(struct scan *scan, const char *name, unsigned first)
{
	why_set(&scan->reason, "'%s' is set twice, also in line %u", quote(name).text,
		first);
	why_add_remedy(&scan->reason, "remove one");
	return -EINVAL;
}

/*
 * Enters @name into the hash table, or refuses it as a duplicate.  Two names with one hash (64 bit)
 * count as one.  There is room for all names of the text.
 */
static int scan_note_name(struct scan *scan, const char *name)
{
	uint64_t hash = text_hash(TEXT_HASH_BEGIN, name, strlen(name));
	size_t at = hash & scan->places_mask;

	for (; scan->places[at].line; at = (at + 1) & scan->places_mask)
		if (scan->places[at].hash == hash)
			return scan_refuse_second(scan, name, scan->places[at].line);
	scan->places[at] = (struct place){ hash, scan->line };
	return 0;
}

/* Takes the need @value of the model @name; a NULL @name means the default. */
static int scan_take_need(struct scan *scan, const char *name, struct strview value)
{
	char text[NEED_SIZE];
	struct model_need need = { .gpus = 0 };
	struct why wrong = WHY_NONE;

	if (strview_size(value) >= sizeof(text) ||
		memchr(value.begin, '\0', strview_size(value))) {
		why_set(&scan->reason, "'%s' is not a need",
			quote_bytes(value.begin, strview_size(value)).text);
		why_add_remedy(&scan->reason, "write 0.5, 2 or 18G");
		return -EINVAL;
	}
	memcpy(text, value.begin, strview_size(value));
	text[strview_size(value)] = '\0';
	if (parse_need(text, &need, &wrong) < 0) {
		why_wrap(&scan->reason, &wrong,
			"%s: ", quote(name ? name : "default").text);
		return -EINVAL;
	}
	if (!name && scan->fallback.line)
		return scan_refuse_second(scan, "default", scan->fallback.line);
	if (name && scan_note_name(scan, name) < 0)
		return -EINVAL;
	if (!name || (scan->wanted && strcmp(name, scan->wanted) == 0))
		*(name ? &scan->model : &scan->fallback) =
			(struct hit){ .line = scan->line, .need = need };
	return 0;
}

/* --- lines ------------------------------------------------------------------------- */

static int scan_line(struct scan *scan, struct strview line)
{
	struct strview left = strview_before(line, '='), name = strview_trim(left), value;
	char text[MODELS_NAME_SIZE];

	if (*line.begin == '[' || left.end == line.end) {
		why_set(&scan->reason, "'%s' is not a model",
			quote_bytes(line.begin, strview_size(line)).text);
		why_add_remedy(&scan->reason, "write NAME = NEED");
		return -EINVAL;
	}
	value = strview_trim((struct strview){ left.end + 1, line.end });
	if (!strview_size(name) || !strview_size(value)) {
		why_set(&scan->reason, "the %s is missing",
			strview_size(name) ? "need" : "name");
		why_add_remedy(&scan->reason, "write NAME = NEED");
		return -EINVAL;
	}
	if (strview_size(name) >= sizeof(text)) {
		why_set(&scan->reason, "the name '%s' is too long",
			quote_bytes(name.begin, strview_size(name)).text);
		return -EINVAL;
	}
	memcpy(text, name.begin, strview_size(name));
	text[strview_size(name)] = '\0';
	return scan_take_need(scan, strview_is(name, "default") ? NULL : text, value);
}

static int scan_lines(struct scan *scan)
{
	int r = 0;

	for (;; scan->line++) {
		struct strview line = strview_take_line(&scan->rest);

		if (strview_size(line))
			r = scan_line(scan, line);
		if (r < 0 || scan->rest.begin == scan->rest.end)
			return r;
	}
}

/* --- JSON -------------------------------------------------------------------------- */

/* Moves ->line to the place up to which the JSON was read.  Only blanks contain newlines. */
static void scan_count_lines(struct scan *scan)
{
	for (; scan->counted < scan->json.at; scan->counted++)
		scan->line += *scan->counted == '\n';
}

/* Says that @what should come next, and returns -EINVAL. */
static int scan_expected(struct scan *scan, const char *what)
{
	const char *next = scan->json.at;
	bool is_end = next == scan->json.end;

	why_set(&scan->reason, "expected %s, not %s%s%s", what, is_end ? "the end" : "'",
		quote_bytes(next, is_end ? 0 : 1).text, is_end ? "" : "'");
	return -EINVAL;
}

static int scan_string(struct scan *scan, char out[MODELS_NAME_SIZE])
{
	struct text text = text_on(out, MODELS_NAME_SIZE);
	struct json_value name;
	const char *begin;
	int r;

	if (!json_take(&scan->json, '"'))
		return scan_expected(scan, "a name in \"\"");
	begin = scan->json.at;
	r = json_take_string(&scan->json, &name);
	if (r == JSON_STRING_OPEN)
		return scan_expected(scan, "the end of a name in \"\"");
	if (r == JSON_STRING_ESCAPE) /* the message shows the name up to the bad escape */
		name = (struct json_value){ JSON_STRING, begin,
			(size_t)(scan->json.at - begin) };
	if (json_decode(&name, &text) < 0 || r == JSON_STRING_ESCAPE) {
		why_set(&scan->reason, "a bad escape in the name '%s'", quote(out).text);
		return -EINVAL;
	}
	if (text.cut) {
		why_set(&scan->reason, "the name '%s' is too long", quote(out).text);
		return -EINVAL;
	}
	return 0;
}

/* Reads a need as a JSON number, without an exponent. */
static int scan_number(struct scan *scan, const char *name)
{
	struct json_value value = json_take_number(&scan->json);

	if (!value.size || *value.at == '.') {
		scan->json.at = value.at;
		return scan_expected(scan, "a number of GPUs");
	}
	if (memchr(value.at, 'e', value.size) || memchr(value.at, 'E', value.size)) {
		why_set(&scan->reason, "'%s' has an exponent",
			quote_bytes(value.at, value.size).text);
		why_add_remedy(&scan->reason, "write 0.5 or 2");
		return -EINVAL;
	}
	scan_count_lines(scan);
	return scan_take_need(
		scan, name, (struct strview){ value.at, value.at + value.size });
}

/* Reads `{"NAME": …, …}`; @member reads each value, after the colon. */
static int scan_object(
	struct scan *scan, int (*member)(struct scan *scan, const char *name))
{
	char name[MODELS_NAME_SIZE];
	int r;

	if (!json_take(&scan->json, '{'))
		return scan_expected(scan, "'{'");
	if (json_take(&scan->json, '}'))
		return 0;
	do {
		r = scan_string(scan, name);
		if (r == 0 && !json_take(&scan->json, ':'))
			r = scan_expected(scan, "':'");
		if (r == 0)
			r = member(scan, name);
		if (r < 0)
			return r;
	} while (json_take(&scan->json, ','));
	return json_take(&scan->json, '}') ? 0 : scan_expected(scan, "',' or '}'");
}

static int scan_member(struct scan *scan, const char *name)
{
	if (strcmp(name, "default_requirement") == 0)
		return scan_number(scan, NULL);
	if (strcmp(name, "models") != 0 || scan->has_models) {
		why_set(&scan->reason, "'%s' %s", quote(name).text,
			scan->has_models ? "is one member too many" : "is unknown");
		why_add_remedy(&scan->reason,
			"write \"default_requirement\" and \"models\", each once");
		return -EINVAL;
	}
	scan->has_models = true;
	return scan_object(scan, scan_number);
}

static int scan_json(struct scan *scan)
{
	int r = scan_object(scan, scan_member);

	if (r == 0 && !json_is_at_end(&scan->json))
		r = scan_expected(scan, "the end");
	scan_count_lines(scan);
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
	struct json_walk ahead = JSON_WALK(table->text, table->size);
	int r;

	if (!places) {
		why_set(why, "not enough memory for '%s'", quote(table->file).text);
		return -ENOMEM;
	}
	scan->rest = (struct strview){ table->text, table->text + table->size };
	scan->line = table->line;
	scan->places = places;
	scan->json = ahead;
	scan->counted = table->text;
	r = json_take(&ahead, '{') ? scan_json(scan) : scan_lines(scan);
	if (r < 0)
		why_wrap(why, &scan->reason, "%s, line %u: ", table->file, scan->line);
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
