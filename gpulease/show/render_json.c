#include <assert.h>

#include "json_text.h"
#include "render_json.h"

/* --- structure --------------------------------------------------------------------- */

static bool is_in_object(const struct json *json)
{
	return json->depth && json->ends[json->depth - 1] == '}';
}

static void json_new_line(const struct json *json)
{
	(void)fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

/* Writes the comma and the line break before a key or an element. */
static void json_separate(struct json *json)
{
	if (json->has_member)
		(void)fputc(',', json->out);
	if (json->depth)
		json_new_line(json);
	json->has_member = true;
}

/* Checks that a value may come here, and writes what separates it from the one before. */
static void json_begin_value(struct json *json)
{
	assert(!json->is_done);
	assert(json->has_key == is_in_object(json));
	if (!json->has_key)
		json_separate(json);
	json->has_key = false;
	json->is_done = json->depth == 0;
}

static void json_begin_level(struct json *json, char begin, char end)
{
	assert(json->depth < JSON_DEPTH_MAX);
	json_begin_value(json);
	(void)fputc(begin, json->out);
	json->ends[json->depth++] = end;
	json->has_member = json->is_done = false;
}

void json_begin_object(struct json *json)
{
	json_begin_level(json, '{', '}');
}

void json_begin_array(struct json *json)
{
	json_begin_level(json, '[', ']');
}

void json_end(struct json *json)
{
	assert(json->depth && !json->has_key);
	json->depth--;
	if (json->has_member)
		json_new_line(json);
	(void)fputc(json->ends[json->depth], json->out);
	json->has_member = true;
	json->is_done = json->depth == 0;
}

void json_finish(struct json *json)
{
	assert(json->is_done);
	(void)fputc('\n', json->out);
}

/* --- texts ------------------------------------------------------------------------- */

static void print_string(FILE *out, const char *bytes, size_t size)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < size;) {
		char character[JSON_CHARACTER_SIZE];
		struct text text = TEXT_ON(character);

		i += json_add_character(&text, bytes + i, size - i);
		(void)fputs(character, out);
	}
	(void)fputc('"', out);
}

void json_key(struct json *json, const char *key)
{
	assert(is_in_object(json) && !json->has_key);
	json_separate(json);
	print_string(json->out, key, strlen(key));
	(void)fputs(": ", json->out);
	json->has_key = true;
}

void json_bytes(struct json *json, const char *bytes, size_t size)
{
	json_begin_value(json);
	print_string(json->out, bytes, size);
}

void json_text(struct json *json, const char *text)
{
	json_bytes(json, text, strlen(text));
}

/* --- the other values -------------------------------------------------------------- */

void json_unsigned(struct json *json, uint64_t value)
{
	json_begin_value(json);
	(void)fprintf(json->out, "%llu", (unsigned long long)value);
}

void json_signed(struct json *json, int64_t value)
{
	json_begin_value(json);
	(void)fprintf(json->out, "%lld", (long long)value);
}

void json_hundredths(struct json *json, uint64_t value)
{
	uint64_t rest = value % 100;

	json_begin_value(json);
	(void)fprintf(json->out, "%llu", (unsigned long long)(value / 100));
	if (rest)
		(void)fprintf(json->out, rest % 10 ? ".%02u" : ".%u",
			(unsigned)(rest % 10 ? rest : rest / 10));
}

void json_bool(struct json *json, bool value)
{
	json_begin_value(json);
	(void)fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json)
{
	json_begin_value(json);
	(void)fputs("null", json->out);
}

void json_verbatim(struct json *json, const char *bytes, size_t size)
{
	json_begin_value(json);
	(void)fwrite(bytes, 1, size, json->out);
}

void json_put_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && text[0])
		json_text(json, text);
	else
		json_null(json);
}
