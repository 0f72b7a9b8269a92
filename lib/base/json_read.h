/*
 * Reads JSON: token by token, or the members of one object or array.  Pure; allocates nothing.
 *
 *	struct json_walk walk = JSON_WALK(line, size);
 *
 *	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER) …
 *
 * A value points into the text, which has to stay.
 */
#ifndef GPULEASE_JSON_READ_H
#define GPULEASE_JSON_READ_H

#include "text.h"

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL, JSON_NESTED };

/* A value as it stands in the text; of a string, what is between its quotes, still escaped. */
struct json_value {
	enum json_kind kind;
	const char *at;
	size_t size;
};

/* A position in a text, which moves past every token that is read. */
struct json_walk {
	const char *at, *end;
	bool has_begun; /* of json_next() and json_element(): the first bracket has been read */
};

#define JSON_WALK(text, text_size) \
	((struct json_walk){ .at = (text), .end = (text) + (text_size) })

/* --- tokens ---------------------------------------------------------------------------------- */

/* Moves past blanks, and past @c if it comes next.  Returns whether it did. */
bool json_take(struct json_walk *walk, char c);

/* Moves past blanks.  Returns whether that is the end of the text. */
bool json_is_at_end(struct json_walk *walk);

enum json_string_fault {
	/* the text ends, or has a control character, before the quote */
	JSON_STRING_OPEN = 1,
	JSON_STRING_ESCAPE, /* that is not an escape of JSON */
};

/*
 * Reads a string after json_take() has taken its opening quote.  Returns 0 or the fault; ->at is
 * then where the fault is.
 */
MUST_CHECK int json_take_string(struct json_walk *walk, struct json_value *ret);

/*
 * Moves past blanks and reads the characters of which numbers consist; they may be no number.
 * ->size is 0 if there are none.
 */
struct json_value json_take_number(struct json_walk *walk);

/*
 * Reads the object or array that begins at ->at, up to its last bracket.  Matches brackets to a
 * depth of 8 and skips strings; checks nothing else.  Returns 0, or -EINVAL; ->at is then anywhere
 * in it.
 */
MUST_CHECK int json_take_nested(struct json_walk *walk, struct json_value *ret);

/* --- objects and arrays ---------------------------------------------------------------------- */

enum json_step { JSON_MEMBER = 1 };

/*
 * Reads the next member of the one object that is all of the text.  Returns JSON_MEMBER, 0 after
 * the last one, or -EINVAL if the text is no such object.  Of a value that is an object or an array
 * only the brackets and strings are checked, to a depth of 8.
 */
MUST_CHECK int json_next(
	struct json_walk *walk, struct json_value *ret_key, struct json_value *ret_value);

/* The same for the next element of the one array that is all of the text. */
MUST_CHECK int json_element(struct json_walk *walk, struct json_value *ret);

/* --- values ---------------------------------------------------------------------------------- */

/*
 * Returns how many bytes at @in, of @size, stand for themselves in a string and on a terminal:
 * printable ASCII without quotes and backslashes.
 */
size_t json_plain_length(const char *in, size_t size);

/*
 * Appends what the string @value says, made printable (text_add_printable()).  Without enough room
 * it ends after a whole character, with ->cut.
 */
void json_unescape(const struct json_value *value, struct text *out);

/*
 * Appends the bytes that the string @value says.  Returns 0, or -EINVAL at an escape that stands
 * for a NUL or for half a pair of surrogates; what came before it is in @out.
 */
MUST_CHECK int json_decode(const struct json_value *value, struct text *out);

/*
 * Reads a number without fraction and exponent.  Returns 0, or -EINVAL if @value is none or is out
 * of range.
 */
MUST_CHECK int json_read_unsigned(
	const struct json_value *value, uint64_t max, uint64_t *ret);
MUST_CHECK int json_read_signed(
	const struct json_value *value, int64_t min, int64_t max, int64_t *ret);

#endif
