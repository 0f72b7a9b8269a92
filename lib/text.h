/*
 * Text in memory of the caller: a bounded buffer that never allocates and never overruns,
 * and `struct why`, the one line that tells a user why something did not work.
 */
#ifndef GPULEASE_TEXT_H
#define GPULEASE_TEXT_H

#include "base.h"

/* @used bytes of @at hold text, always followed by a NUL; @cut says that something did not fit. */
struct text {
	char *at;
	size_t size;
	size_t used;
	bool cut;
};

/* An empty text over the array @array (not a pointer). */
#define TEXT_ON(array) text_on(array, sizeof(array))

/* An empty text over the @size bytes at @at; @size is at least 1. */
struct text text_on(char *at, size_t size);

/* Each appends what fits and sets ->cut if something did not. */
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t size);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/* Copies @string into the @size bytes at @out, cut at the end, always NUL-terminated. */
void text_copy(char *out, size_t size, const char *string);

/*
 * Makes the @size bytes at @in fit for a terminal and one line: well-formed printable UTF-8
 * passes, every other byte (control characters, C1, broken sequences, bidirectional and
 * line-separator controls) becomes `?`.  Appended to @out.
 */
void text_add_printable(struct text *out, const char *in, size_t size);

/* How many columns the UTF-8 in the first @size bytes of @string take: one a character. */
size_t text_columns(const char *string, size_t size);

/* FNV-1a of the @size bytes at @bytes, going on from @hash; of the first TEXT_HASH_BEGIN.  Pure. */
#define TEXT_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t text_hash(uint64_t hash, const char *bytes, size_t size);

/* A reason for a user: one line, lower case, without full stop. */
struct why {
	char text[320];
};

#define WHY_NONE ((struct why){ .text = "" })

/* Sets the reason, cut if it is too long; what was there before is replaced. @why may be NULL. */
void why_set(struct why *why, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
