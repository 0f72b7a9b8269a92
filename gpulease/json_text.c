#include <errno.h>

#include "json_text.h"

/* --- writing ----------------------------------------------------------------------- */

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

static void add_escape(struct text *out, uint32_t point)
{
	if (point >= 0x10000) {
		point -= 0x10000;
		text_addf(out, "\\u%04x\\u%04x", 0xd800 | point >> 10,
			0xdc00 | (point & 0x3ff));
	} else {
		text_addf(out, "\\u%04x", point);
	}
}

/*
 * text.h knows what is well formed and what a terminal may show: the latter passes through it
 * unchanged, a well-formed rest becomes one `?`, and every byte of a broken sequence one.
 */
size_t json_add_character(struct text *out, const char *in, size_t size)
{
	size_t length = length_by_lead((unsigned char)in[0]);
	char shown[8];
	struct text text = TEXT_ON(shown);

	if (!length || length > size) {
		add_escape(out, 0xfffd);
		return 1;
	}
	text_add_printable(&text, in, length);
	if (text.used != 1 && shown[0] == '?') {
		add_escape(out, 0xfffd);
		return 1;
	}
	if (memcmp(shown, in, text.used) != 0) {
		add_escape(out, decode((const unsigned char *)in, length));
		return length;
	}
	if (in[0] == '"' || in[0] == '\\')
		text_add(out, "\\");
	text_add(out, shown);
	return length;
}

/* How many bytes at @in stand for themselves without a look at what they are. */
static size_t plain_length(const char *in, size_t size)
{
	size_t i = 0;

	while (i < size && in[i] >= ' ' && in[i] < 0x7f && in[i] != '"' && in[i] != '\\')
		i++;
	return i;
}

void json_add_string(struct text *out, const char *bytes, size_t size)
{
	text_add(out, "\"");
	for (size_t i = 0; i < size;) {
		size_t plain = plain_length(bytes + i, size - i);

		text_add_bytes(out, bytes + i, plain);
		i += plain;
		if (i < size)
			i += json_add_character(out, bytes + i, size - i);
	}
	text_add(out, "\"");
}

/* --- reading ----------------------------------------------------------------------- */

enum { DEPTH_MAX = 8 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct json_walk *walk)
{
	while (walk->at < walk->end && is_blank(*walk->at))
		walk->at++;
}

/* Whether @c stands there, behind blanks; it is passed then. */
static bool skip_byte(struct json_walk *walk, char c)
{
	skip_blanks(walk);
	if (walk->at == walk->end || *walk->at != c)
		return false;
	walk->at++;
	return true;
}

/* The value of the 4 hexadecimal digits at @at, or -EINVAL. */
static int read_hex4(const char *at, const char *end)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	int point = 0;

	if (end - at < 4)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		const char *digit = at[i] ? strchr(digits, at[i]) : NULL;

		if (!digit)
			return -EINVAL;
		point = point << 4 | (int)((digit - digits) & 15);
	}
	return point;
}

/* How many bytes the escape has that begins at @at with its backslash, 0: it is none. */
static size_t escape_length(const char *at, const char *end)
{
	if (end - at < 2 || !at[1] || !strchr("\"\\/bfnrtu", at[1]))
		return 0;
	if (at[1] != 'u')
		return 2;
	return read_hex4(at + 2, end) < 0 ? 0 : 6;
}

/* The string behind the quote at ->at - 1. */
static int read_string(struct json_walk *walk, struct json_value *ret)
{
	const char *at = walk->at;

	while (at < walk->end && *at != '"') {
		size_t length = 1;

		if ((unsigned char)*at < ' ')
			return -EINVAL;
		if (*at == '\\')
			length = escape_length(at, walk->end);
		if (!length)
			return -EINVAL;
		at += length;
	}
	if (at == walk->end)
		return -EINVAL;
	*ret = (struct json_value){ JSON_STRING, walk->at, (size_t)(at - walk->at) };
	walk->at = at + 1;
	return 0;
}

static int skip_nested(struct json_walk *walk, struct json_value *ret)
{
	char ends[DEPTH_MAX];
	unsigned depth = 0;

	*ret = (struct json_value){ .kind = JSON_NESTED, .at = walk->at };
	do {
		char c = walk->at < walk->end ? *walk->at++ : '\0';
		struct json_value string;

		if (!c || (strchr("]}", c) && ends[--depth] != c))
			return -EINVAL;
		if (c == '"' && read_string(walk, &string) < 0)
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

static int read_number(struct json_walk *walk, struct json_value *ret)
{
	const char *begin = walk->at;

	while (walk->at < walk->end && is_in_number(*walk->at))
		walk->at++;
	*ret = (struct json_value){ JSON_NUMBER, begin, (size_t)(walk->at - begin) };
	return ret->size ? 0 : -EINVAL;
}

static int read_value(struct json_walk *walk, struct json_value *ret)
{
	if (skip_byte(walk, '"'))
		return read_string(walk, ret);
	if (walk->at < walk->end && (*walk->at == '[' || *walk->at == '{'))
		return skip_nested(walk, ret);
	if (walk->at < walk->end && *walk->at >= 'f')
		return read_word(walk, ret);
	return read_number(walk, ret);
}

int json_next(
	struct json_walk *walk, struct json_value *ret_key, struct json_value *ret_value)
{
	bool is_first = !walk->has_begun;

	if (is_first && !skip_byte(walk, '{'))
		return -EINVAL;
	walk->has_begun = true;
	if (skip_byte(walk, '}')) {
		skip_blanks(walk);
		return walk->at == walk->end ? 0 : -EINVAL;
	}
	if ((!is_first && !skip_byte(walk, ',')) || !skip_byte(walk, '"') ||
		read_string(walk, ret_key) < 0 || !skip_byte(walk, ':') ||
		read_value(walk, ret_value) < 0)
		return -EINVAL;
	return JSON_MEMBER;
}

/* --- values ------------------------------------------------------------------------ */

/* Appends @point as UTF-8, if a terminal may show it. */
static void add_point(struct text *out, uint32_t point)
{
	char bytes[4];
	size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (size_t i = size - 1; i > 0; i--, point >>= 6)
		bytes[i] = (char)(0x80 | (point & 0x3f));
	bytes[0] = (char)(size == 1 ? point : (0xf00u >> size & 0xf0) | point);
	text_add_printable(out, bytes, size);
}

/* Appends what the escape at @at says and returns how many bytes it has. */
static size_t add_escaped(struct text *out, const char *at, const char *end)
{
	static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *letter = strchr(letters, at[1]);
	uint32_t point, low;

	if (at[1] != 'u') {
		text_add_printable(out, letter ? meant + (letter - letters) : at + 1, 1);
		return 2;
	}
	point = (uint32_t)read_hex4(at + 2, end);
	if (point >= 0xd800 && point < 0xdc00 && end - at >= 12 && at[6] == '\\' &&
		at[7] == 'u') {
		low = (uint32_t)read_hex4(at + 8, end);
		if (low >= 0xdc00 && low < 0xe000) {
			add_point(out, 0x10000 + ((point & 0x3ff) << 10) + (low & 0x3ff));
			return 12;
		}
	}
	add_point(out, point >= 0xd800 && point < 0xe000 ? 0xfffd : point);
	return 6;
}

/* How many bytes at @in are none of ASCII: whole characters, or broken. */
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
		size_t plain = plain_length(at, (size_t)(end - at)), wide;

		text_add_bytes(out, at, plain);
		at += plain;
		wide = wide_length(at, (size_t)(end - at));
		if (wide && !out->cut)
			text_add_printable(out, at, wide);
		at += wide;
		if (at < end && *at == '\\' && !out->cut)
			at += add_escaped(out, at, end);
	}
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
