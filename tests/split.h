/*
 * A line as words, the way a program gets them.
 */
#ifndef GPULEASE_TESTS_SPLIT_H
#define GPULEASE_TESTS_SPLIT_H

#include "text.h"

struct words {
	char text[512];
	char *argv[64];
};

/* The words of @line, with one space between them; `''` is the empty one. */
static inline void split(const char *line, struct words *words)
{
	char *rest = words->text;
	size_t count = 0;

	text_copy(words->text, sizeof(words->text), line);
	while (rest && *rest) {
		char *word = strsep(&rest, " ");

		assert_true(count + 1 < ARRAY_SIZE(words->argv));
		words->argv[count++] = strcmp(word, "''") == 0 ? word + 2 : word;
	}
	words->argv[count] = NULL;
}

#endif
