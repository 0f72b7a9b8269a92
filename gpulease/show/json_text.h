/*
 * Strings in JSON.  Pure.
 *
 * A string may hold any bytes.  What a terminal may show stands for itself; everything else is
 * escaped; a byte that is not UTF-8 becomes U+FFFD.
 */
#ifndef GPULEASE_JSON_TEXT_H
#define GPULEASE_JSON_TEXT_H

#include "text.h"

/* The size of the longest character, a pair of escaped surrogates, with its NUL. */
enum { JSON_CHARACTER_SIZE = 13 };

/* Appends the character that begins at @in, of @size > 0 bytes.  Returns its length at @in. */
size_t json_add_character(struct text *out, const char *in, size_t size);

/* Appends the string with its quotes. */
void json_add_string(struct text *out, const char *bytes, size_t size);

#endif
