#include <errno.h>

#include "hex.h"
#include "json_read.h"
#include "text.h"

enum { DEPTH_MAX = 8 }; /* of objects and arrays in a value */

static void skip_blanks(struct json_walk *walk)
{
	while (walk->at < walk->end && (is_blank(*walk->at) || *walk->at == '\n'))
		walk->at++;
}

bool json_is_at_end(struct json_walk *walk)
{
	skip_blanks(walk);
	return walk->at == walk->end;
}

bool json_take(struct json_walk *walk, char c)
{
	skip_blanks(walk);
	if (walk->at == walk->end || *walk->at != c)
		return false;
	walk->at++;
	return true;
}

/* Returns the value of the 4 hexadecimal digits at @at, or -EINVAL. */
static int read_hex4(const char *at, const char *end)
{
	uint64_t point;

	if (end - at < 4 || hex_read(at, 4, HEX_ANY, &point) < 0)
		return -EINVAL;
	return (int)point;
}

/* Returns the length of the escape that has its backslash at @at; 0: it is not an escape. */
static size_t escape_length(const char *at, const char *end)
{
	if (end - at < 2 || !at[1] || !strchr("\"\\/bfnrtu", at[1]))
		return 0;
	if (at[1] != 'u')
		return 2;
	return read_hex4(at + 2, end) < 0 ? 0 : 6;
}

int json_take_string(struct json_walk *walk, struct json_value *ret)
{
	const char *begin = walk->at;

	while (walk->at < walk->end && *walk->at != '"') {
		size_t length = 1;

		if ((unsigned char)*walk->at < ' ')
			return JSON_STRING_OPEN;
		if (*walk->at == '\\')
			length = escape_length(walk->at, walk->end);
		if (!length)
			return JSON_STRING_ESCAPE;
		walk->at += length;
	}
	if (walk->at == walk->end)
		return JSON_STRING_OPEN;
	*ret = (struct json_value){ JSON_STRING, begin, (size_t)(walk->at - begin) };
	walk->at++;
	return 0;
}

int json_take_nested(struct json_walk *walk, struct json_value *ret)
{
	char ends[DEPTH_MAX];
	unsigned depth = 0;

	*ret = (struct json_value){ .kind = JSON_NESTED, .at = walk->at };
	do {
		char c = walk->at < walk->end ? *walk->at++ : '\0';
		struct json_value string;

		if (!c || (strchr("]}", c) && ends[--depth] != c))
			return -EINVAL;
		if (c == '"' && json_take_string(walk, &string) != 0)
			return -EINVAL;
		if (strchr("[{", c)) {
			if (depth == DEPTH_MAX)
				return -EINVAL;
			ends[depth++] = c == '[' ? ']' : '}';
		}
	} while (depth);
	ret->size = (size_t)(walk->at - ret->at);
	return 0;
}

static bool is_in_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' ||
	       c == 'E';
}

static int read_word(struct json_walk *walk, struct json_value *ret)
{
	static const struct {
		char word[6];
		enum json_kind kind;
	} words[] = { { "true", JSON_BOOL }, { "false", JSON_BOOL },
		{ "null", JSON_NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t size = strlen(words[i].word);

		if ((size_t)(walk->end - walk->at) < size ||
			memcmp(walk->at, words[i].word, size) != 0)
			continue;
		*ret = (struct json_value){ words[i].kind, walk->at, size };
		walk->at += size;
		return 0;
	}
	return -EINVAL;
}

struct json_value json_take_number(struct json_walk *walk)
{
	const char *begin;

	skip_blanks(walk);
	begin = walk->at;
	while (walk->at < walk->end && is_in_number(*walk->at))
		walk->at++;
	return (struct json_value){ JSON_NUMBER, begin, (size_t)(walk->at - begin) };
}

static int read_value(struct json_walk *walk, struct json_value *ret)
{
	if (json_take(walk, '"'))
		return json_take_string(walk, ret) == 0 ? 0 : -EINVAL;
	if (walk->at < walk->end && (*walk->at == '[' || *walk->at == '{'))
		return json_take_nested(walk, ret);
	if (walk->at < walk->end && *walk->at >= 'f')
		return read_word(walk, ret);
	*ret = json_take_number(walk);
	return ret->size ? 0 : -EINVAL;
}

int json_next(
	struct json_walk *walk, struct json_value *ret_key, struct json_value *ret_value)
{
	bool is_first = !walk->has_begun;

	if (is_first && !json_take(walk, '{'))
		return -EINVAL;
	walk->has_begun = true;
	if (json_take(walk, '}'))
		return json_is_at_end(walk) ? 0 : -EINVAL;
	if ((!is_first && !json_take(walk, ',')) || !json_take(walk, '"') ||
		json_take_string(walk, ret_key) != 0 || !json_take(walk, ':') ||
		read_value(walk, ret_value) < 0)
		return -EINVAL;
	return JSON_MEMBER;
}

int json_element(struct json_walk *walk, struct json_value *ret)
{
	bool is_first = !walk->has_begun;

	if (is_first && !json_take(walk, '['))
		return -EINVAL;
	walk->has_begun = true;
	if (json_take(walk, ']'))
		return json_is_at_end(walk) ? 0 : -EINVAL;
	if ((!is_first && !json_take(walk, ',')) || read_value(walk, ret) < 0)
		return -EINVAL;
	return JSON_MEMBER;
}

/* --- values ------------------------------------------------------------------------ */

/* Writes @point as UTF-8.  Returns how many bytes it has. */
static size_t utf8_encode(uint32_t point, char bytes[4])
{
	size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (size_t i = size - 1; i > 0; i--, point >>= 6)
		bytes[i] = (char)(0x80 | (point & 0x3f));
	bytes[0] = (char)(size == 1 ? point : (0xf00u >> size & 0xf0) | point);
	return size;
}

static bool is_surrogate(uint32_t point)
{
	return point >= 0xd800 && point < 0xe000;
}

/*
 * Sets *@ret to the character of the escape at @at, which json_take_string() has accepted; half a
 * pair of surrogates is one of its own.  Returns the length of the escape.
 */
static size_t decode_escape(const char *at, const char *end, uint32_t *ret)
{
	static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *letter = strchr(letters, at[1]);
	uint32_t low;

	if (at[1] != 'u') {
		*ret = (unsigned char)(letter ? meant[letter - letters] : at[1]);
		return 2;
	}
	*ret = (uint32_t)read_hex4(at + 2, end);
	if (*ret < 0xd800 || *ret >= 0xdc00 || end - at < 12 || at[6] != '\\' ||
		at[7] != 'u')
		return 6;
	low = (uint32_t)read_hex4(at + 8, end);
	if (low < 0xdc00 || low >= 0xe000)
		return 6;
	*ret = 0x10000 + ((*ret & 0x3ff) << 10) + (low & 0x3ff);
	return 12;
}

size_t json_plain_length(const char *in, size_t size)
{
	size_t i = 0;

	while (i < size && in[i] >= ' ' && in[i] < 0x7f && in[i] != '"' && in[i] != '\\')
		i++;
	return i;
}

/* Returns the number of bytes at @in that are not ASCII: whole characters, or broken ones. */
static size_t wide_length(const char *in, size_t size)
{
	size_t i = 0;

	while (i < size && (unsigned char)in[i] >= 0x7f)
		i++;
	return i;
}

void json_unescape(const struct json_value *value, struct text *out)
{
	const char *at = value->at, *end = at + value->size;

	while (at < end && !out->cut) {
		size_t plain = json_plain_length(at, (size_t)(end - at)), wide;

		text_add_bytes(out, at, plain);
		at += plain;
		wide = wide_length(at, (size_t)(end - at));
		if (wide && !out->cut)
			text_add_printable(out, at, wide);
		at += wide;
		if (at < end && *at == '\\' && !out->cut) {
			uint32_t point;
			char bytes[4];

			at += decode_escape(at, end, &point);
			text_add_printable(out, bytes,
				utf8_encode(is_surrogate(point) ? 0xfffd : point, bytes));
		}
	}
}

int json_decode(const struct json_value *value, struct text *out)
{
	const char *at = value->at, *end = at + value->size;

	while (at < end) {
		const char *escape = memchr(at, '\\', (size_t)(end - at));
		uint32_t point;
		char bytes[4];

		text_add_bytes(out, at, (size_t)((escape ? escape : end) - at));
		if (!escape)
			break;
		at = escape + decode_escape(escape, end, &point);
		if (!point || is_surrogate(point))
			return -EINVAL;
		text_add_bytes(out, bytes, utf8_encode(point, bytes));
	}
	return 0;
}

int json_read_unsigned(const struct json_value *value, uint64_t max, uint64_t *ret)
{
	uint64_t number = 0;

	if (value->kind != JSON_NUMBER)
		return -EINVAL;
	for (size_t i = 0; i < value->size; i++) {
		unsigned digit = (unsigned)value->at[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
			__builtin_add_overflow(number, digit, &number))
			return -EINVAL;
	}
	if (number > max)
		return -EINVAL;
	*ret = number;
	return 0;
}

int json_read_signed(
	const struct json_value *value, int64_t min, int64_t max, int64_t *ret)
{
	struct json_value digits = *value;
	bool is_negative = value->size > 1 && value->at[0] == '-';
	uint64_t number = 0;

	digits.at += is_negative;
	digits.size -= is_negative;
	if (json_read_unsigned(
		    &digits, is_negative ? -(uint64_t)min : (uint64_t)max, &number) < 0)
		return -EINVAL;
	*ret = is_negative ? (int64_t)-number : (int64_t)number;
	return 0;
}
