/*
 * Text in memory of the caller: a bounded buffer that never allocates and never overruns; and
 * `struct why`, one line that tells a user why an operation failed.
 */
#ifndef GPULEASE_TEXT_H
#define GPULEASE_TEXT_H

#include "base.h"

/* ->at holds ->used bytes of text and a NUL.  ->cut: something did not fit and was left out. */
struct text {
	char *at;
	size_t size;
	size_t used;
	bool cut;
};

/* An empty text in the array @array, which must not be a pointer. */
#define TEXT_ON(array) text_on(array, sizeof(array))

/* The bytes in the names of variables.  Longer lists of bytes end with it, so all share it. */
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

/* Returns an empty text in the @size bytes at @at; @size is at least 1. */
struct text text_on(char *at, size_t size);

/* Append as much as fits, and set ->cut if that is not everything. */
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t size);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Copies as much of @string as fits to the @size bytes at @out, up to the end of a character of
 * UTF-8, always with a NUL.
 */
void text_copy(char *out, size_t size, const char *string);

/*
 * Appends the @size bytes at @in so that they are safe on one line of a terminal: printable UTF-8
 * is kept.  Each control character, also those for separators of lines and for the direction of
 * text, and each byte of malformed UTF-8 becomes `?`.
 */
void text_add_printable(struct text *out, const char *in, size_t size);

/* Appends @string, up to its NUL, as text_add_printable() does. */
void text_add_visible(struct text *out, const char *string);

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether @c is a blank inside a line. */
static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the part of @path after its last slash: @path itself if it has none. */
const char *text_base_name(const char *path);

/* Returns the number of items in @list, which has commas between them; 0 for "". */
unsigned text_count_items(const char *list);

/*
 * Returns the columns that the first @size bytes of @string need: one per UTF-8 character, and two
 * per emoji and per character of Chinese, Japanese or Korean.  Only the first byte of a character
 * decides.
 */
size_t text_columns(const char *string, size_t size);

/*
 * Returns the FNV-1a hash (64 bit) of the @size bytes at @bytes.  @hash is TEXT_HASH_BEGIN, or the
 * hash of the bytes that come before these.  Pure.
 */
#define TEXT_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t text_hash(uint64_t hash, const char *bytes, size_t size);

enum { WHY_SIZE = 320 };

/*
 * A reason for a user: one line, in lower case, without a final period.  It may end with what the
 * user can do about it: "PROBLEM; REMEDY".
 */
struct why {
	char text[WHY_SIZE];
	size_t remedy_at; /* where REMEDY begins in ->text; 0: there is none */
};

#define WHY_NONE ((struct why){ .text = "" })

/* In each of these, @why may be NULL, and a text that is too long is cut. */

/* Sets the reason, without a remedy; what was there before is replaced. */
void why_set(struct why *why, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends "; " and the remedy to a reason that has none yet. */
void why_add_remedy(struct why *why, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets the reason to a prefix and the text of @inner, which keeps its remedy. */
void why_wrap(struct why *why, const struct why *inner, const char *format, ...)
	PRINTF_LIKE(3, 4);

#endif
