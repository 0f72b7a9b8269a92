/*
 * Whether a text is JSON, as RFC 8259 has it, strictly: one value, well-formed UTF-8, no raw
 * control character; here neither DEL nor C1, which a terminal would obey, and no surrogate
 * without its other half.
 */
#ifndef GPULEASE_TESTS_JSON_VALID_H
#define GPULEASE_TESTS_JSON_VALID_H

#include <ctype.h>

#include "base.h"

enum { JSON_VALID_DEPTH_MAX = 64 };

/* ->at moves over what is fine and becomes NULL at the first thing that is not. */
struct json_reader {
	const char *at, *end;
	unsigned depth;
};

static inline bool json_is_next(const struct json_reader *reader, char c)
{
	return reader->at && reader->at < reader->end && *reader->at == c;
}

static inline bool json_take(struct json_reader *reader, const char *word)
{
	size_t size = strlen(word);

	if (!reader->at || (size_t)(reader->end - reader->at) < size ||
		memcmp(reader->at, word, size) != 0)
		return false;
	reader->at += size;
	return true;
}

static inline void json_skip_space(struct json_reader *reader)
{
	while (reader->at && reader->at < reader->end && *reader->at &&
		strchr(" \t\r\n", *reader->at))
		reader->at++;
}

static inline bool json_take_digits(struct json_reader *reader)
{
	const char *from = reader->at;

	while (reader->at < reader->end && isdigit((unsigned char)*reader->at))
		reader->at++;
	return reader->at > from;
}

static inline bool json_take_number(struct json_reader *reader)
{
	(void)json_take(reader, "-");
	if (!json_take(reader, "0") && !json_take_digits(reader))
		return false;
	if (json_take(reader, ".") && !json_take_digits(reader))
		return false;
	if (json_take(reader, "e") || json_take(reader, "E")) {
		if (!json_take(reader, "+"))
			(void)json_take(reader, "-");
		return json_take_digits(reader);
	}
	return true;
}

/* Takes the four digits after \u; -1 if they are not hex digits. */
static inline int json_take_unit(struct json_reader *reader)
{
	int unit = 0;

	for (int i = 0; i < 4; i++, reader->at++) {
		int c = reader->at < reader->end ? *reader->at : 0;

		if (!isxdigit(c))
			return -1;
		unit = unit * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
	}
	return unit;
}

static inline bool json_take_escape(struct json_reader *reader)
{
	int unit;

	if (!json_take(reader, "u")) {
		if (reader->at == reader->end || !strchr("\"\\/bfnrt", *reader->at))
			return false;
		return *reader->at++ != '\0';
	}
	unit = json_take_unit(reader);
	if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
		return false;
	if (unit < 0xd800 || unit >= 0xe000)
		return true;
	unit = json_take(reader, "\\u") ? json_take_unit(reader) : -1;
	return unit >= 0xdc00 && unit < 0xe000;
}

/* One raw character of a string. */
static inline bool json_take_character(struct json_reader *reader)
{
	static const struct {
		unsigned char mask, lead;
		unsigned least;
	} forms[] = { { 0x80, 0, 0x20 }, { 0xe0, 0xc0, 0xa0 }, { 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 } };

	for (size_t n = 0; n < ARRAY_SIZE(forms); n++) {
		unsigned char lead = (unsigned char)*reader->at;
		unsigned point = lead & (unsigned char)~forms[n].mask;

		if ((lead & forms[n].mask) != forms[n].lead)
			continue;
		if ((size_t)(reader->end - reader->at) < n + 1)
			return false;
		for (size_t i = 1; i <= n; i++) {
			unsigned char next = (unsigned char)reader->at[i];

			if ((next & 0xc0) != 0x80)
				return false;
			point = point << 6 | (next & 0x3f);
		}
		reader->at += n + 1;
		return point >= forms[n].least && point != 0x7f && point <= 0x10ffff &&
		       (point < 0xd800 || point > 0xdfff);
	}
	return false;
}

static inline bool json_take_string(struct json_reader *reader)
{
	if (!json_take(reader, "\""))
		return false;
	while (reader->at < reader->end && *reader->at != '"')
		if (json_take(reader, "\\") ? !json_take_escape(reader)
					    : !json_take_character(reader))
			return false;
	return json_take(reader, "\"");
}

static inline bool json_take_value(struct json_reader *reader);

/* Takes the members after `{` or `[`, up to @close. */
static inline bool json_take_members(struct json_reader *reader, const char *close)
{
	json_skip_space(reader);
	if (json_take(reader, close))
		return true;
	do {
		json_skip_space(reader);
		if (*close == '}') {
			if (!json_take_string(reader))
				return false;
			json_skip_space(reader);
			if (!json_take(reader, ":"))
				return false;
		}
		if (!json_take_value(reader))
			return false;
	} while (json_take(reader, ","));
	return json_take(reader, close);
}

static inline bool json_take_value(struct json_reader *reader)
{
	bool is_good = reader->depth++ < JSON_VALID_DEPTH_MAX;

	json_skip_space(reader);
	if (!is_good)
		return false;
	if (json_take(reader, "{"))
		is_good = json_take_members(reader, "}");
	else if (json_take(reader, "["))
		is_good = json_take_members(reader, "]");
	else if (json_is_next(reader, '"'))
		is_good = json_take_string(reader);
	else if (!json_take(reader, "true") && !json_take(reader, "false") &&
		 !json_take(reader, "null"))
		is_good = json_take_number(reader);
	json_skip_space(reader);
	reader->depth--;
	return is_good;
}

/* Whether it is; else *@ret_at is how many bytes in front were fine. */
static inline bool json_is_valid(const char *text, size_t size, size_t *ret_at)
{
	struct json_reader reader = { .at = text, .end = text + size };
	bool is_good = json_take_value(&reader) && reader.at == reader.end;

	*ret_at = (size_t)(reader.at - text);
	return is_good;
}

#endif
