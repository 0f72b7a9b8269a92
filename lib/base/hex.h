/*
 * Hexadecimal digits, as records, tokens and other programs' output have them.  Pure.
 */
#ifndef GPULEASE_HEX_H
#define GPULEASE_HEX_H

#include "base.h"

/* Which letters count as digits.  gpulease itself writes lower case, except after `%`. */
enum hex_case {
	HEX_LOWER = 1u << 0,
	HEX_UPPER = 1u << 1,
	HEX_ANY = HEX_LOWER | HEX_UPPER,
};

/* Returns the value of the digit @c, or -1 if @c is no digit. */
static inline int hex_digit(char c, enum hex_case letters)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((letters & HEX_LOWER) && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if ((letters & HEX_UPPER) && c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Reads the number that the @size bytes at @text are.  Returns 0, or -EINVAL if @size is 0, a
 * byte is no digit, or the number needs more than 64 bits.  Sets *@ret only when it returns 0.
 */
MUST_CHECK int hex_read(
	const char *text, size_t size, enum hex_case letters, uint64_t *ret);

#endif
