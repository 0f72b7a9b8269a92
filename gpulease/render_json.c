#include <assert.h>

#include "render_json.h"

/* --- structure --------------------------------------------------------------------- */

static bool is_in_object(const struct json *json)
{
	return json->depth && json->ends[json->depth - 1] == '}';
}

static void new_line(const struct json *json)
{
	(void)fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

/* What stands before a key or an element. */
static void separate(struct json *json)
{
	if (json->has_member)
		(void)fputc(',', json->out);
	if (json->depth)
		new_line(json);
	json->has_member = true;
}

/* What stands before a value, whose place is checked. */
static void begin_value(struct json *json)
{
	assert(!json->is_done);
	assert(json->has_key == is_in_object(json));
	if (!json->has_key)
		separate(json);
	json->has_key = false;
	json->is_done = json->depth == 0;
}

static void begin_level(struct json *json, char begin, char end)
{
	assert(json->depth < JSON_DEPTH_MAX);
	begin_value(json);
	(void)fputc(begin, json->out);
	json->ends[json->depth++] = end;
	json->has_member = json->is_done = false;
}

void json_begin_object(struct json *json)
{
	begin_level(json, '{', '}');
}

void json_begin_array(struct json *json)
{
	begin_level(json, '[', ']');
}

void json_end(struct json *json)
{
	assert(json->depth && !json->has_key);
	json->depth--;
	if (json->has_member)
		new_line(json);
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

/* How many bytes the UTF-8 character with that first byte has, 0: none begins so. */
static size_t length_by_lead(unsigned char lead)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = { { 0x80, 0 }, { 0xe0, 0xc0 }, { 0xf0, 0xe0 }, { 0xf8, 0xf0 } };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if ((lead & forms[i].mask) == forms[i].lead)
			return i + 1;
	return 0;
}

static uint32_t decode(const unsigned char *in, size_t length)
{
	uint32_t point = length == 1 ? in[0] : in[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		point = point << 6 | (in[i] & 0x3f);
	return point;
}

static void print_escape(FILE *out, uint32_t point)
{
	if (point >= 0x10000) {
		point -= 0x10000;
		(void)fprintf(out, "\\u%04x\\u%04x", 0xd800 | point >> 10,
			0xdc00 | (point & 0x3ff));
	} else {
		(void)fprintf(out, "\\u%04x", point);
	}
}

/*
 * Writes the character at @in and returns how many bytes it has.  text.h knows what is well
 * formed and what a terminal may show: the latter passes through it unchanged, a well-formed
 * rest becomes one `?`, and every byte of a broken sequence one.
 */
static size_t print_character(FILE *out, const char *in, size_t size)
{
	size_t length = length_by_lead((unsigned char)in[0]);
	char shown[8];
	struct text text = TEXT_ON(shown);

	if (!length || length > size) {
		print_escape(out, 0xfffd);
		return 1;
	}
	text_add_printable(&text, in, length);
	if (text.used != 1 && shown[0] == '?') {
		print_escape(out, 0xfffd);
		return 1;
	}
	if (memcmp(shown, in, text.used) != 0) {
		print_escape(out, decode((const unsigned char *)in, length));
		return length;
	}
	if (in[0] == '"' || in[0] == '\\')
		(void)fputc('\\', out);
	(void)fputs(shown, out);
	return length;
}

static void print_string(FILE *out, const char *bytes, size_t size)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < size;)
		i += print_character(out, bytes + i, size - i);
	(void)fputc('"', out);
}

void json_key(struct json *json, const char *key)
{
	assert(is_in_object(json) && !json->has_key);
	separate(json);
	print_string(json->out, key, strlen(key));
	(void)fputs(": ", json->out);
	json->has_key = true;
}

void json_bytes(struct json *json, const char *bytes, size_t size)
{
	begin_value(json);
	print_string(json->out, bytes, size);
}

void json_text(struct json *json, const char *text)
{
	json_bytes(json, text, strlen(text));
}

/* --- the other values -------------------------------------------------------------- */

void json_unsigned(struct json *json, uint64_t value)
{
	begin_value(json);
	(void)fprintf(json->out, "%llu", (unsigned long long)value);
}

void json_signed(struct json *json, int64_t value)
{
	begin_value(json);
	(void)fprintf(json->out, "%lld", (long long)value);
}

void json_hundredths(struct json *json, uint64_t value)
{
	uint64_t rest = value % 100;

	begin_value(json);
	(void)fprintf(json->out, "%llu", (unsigned long long)(value / 100));
	if (rest)
		(void)fprintf(json->out, rest % 10 ? ".%02u" : ".%u",
			(unsigned)(rest % 10 ? rest : rest / 10));
}

void json_bool(struct json *json, bool value)
{
	begin_value(json);
	(void)fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json)
{
	begin_value(json);
	(void)fputs("null", json->out);
}

void json_put_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && text[0])
		json_text(json, text);
	else
		json_null(json);
}
