/*
 * Texts in JSON, and objects of one line: the parts of both directions that are not about
 * layout.  Pure.
 *
 * A string may hold any bytes.  What may be shown on a terminal stands for itself; everything
 * else is escaped; a byte that is not UTF-8 becomes U+FFFD.
 */
#ifndef GPULEASE_JSON_TEXT_H
#define GPULEASE_JSON_TEXT_H

#include "text.h"

/* Bytes that a character needs at most, with a NUL: a pair of surrogates. */
enum { JSON_CHARACTER_SIZE = 13 };

/* Appends the character at @in, of which there are @size > 0 bytes; returns how many it has. */
size_t json_add_character(struct text *out, const char *in, size_t size);

/* Appends the string with its quotes. */
void json_add_string(struct text *out, const char *bytes, size_t size);

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL, JSON_NESTED };

/* As it stands in the text; a string is without its quotes, its escapes are as they were. */
struct json_value {
	enum json_kind kind;
	const char *at;
	size_t size;
};

/* A walk over the members of one object, which is all that the text holds. */
struct json_walk {
	const char *at, *end;
	bool has_begun;
};

#define JSON_WALK(text, text_size) \
	((struct json_walk){ .at = (text), .end = (text) + (text_size) })

/*
 * Reads the next member.  JSON_MEMBER; 0: the object has ended, and so has the text; -EINVAL:
 * that is no object.  Of a value that is an object or an array only the brackets and strings
 * are looked at, to a depth of 8.
 */
enum { JSON_MEMBER = 1 };
MUST_CHECK int json_next(
	struct json_walk *walk, struct json_value *ret_key, struct json_value *ret_value);

/*
 * Appends what the string @value says, fit for a terminal (text_add_printable()); where there
 * is no room it ends after a whole character, with ->cut.
 */
void json_unescape(const struct json_value *value, struct text *out);

/* A number without fraction and exponent.  0, or -EINVAL: another value, or out of range. */
MUST_CHECK int json_read_unsigned(
	const struct json_value *value, uint64_t max, uint64_t *ret);
MUST_CHECK int json_read_signed(
	const struct json_value *value, int64_t min, int64_t max, int64_t *ret);

#endif
