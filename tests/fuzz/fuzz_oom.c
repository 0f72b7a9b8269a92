/*
 * Any bytes as the output of a command: the search stays inside them, and has the same outcome in
 * upper and lower case, and line by line.
 */
#include <assert.h>
#include <ctype.h>

#include "output_oom.h"
#include "fuzz.h"

/* A copy whose end is the end of its memory. */
static char *copy(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1);

	assert(text);
	if (size)
		memcpy(text, data, size);
	return text;
}

static bool any_line_says_so(const char *text, size_t size)
{
	bool says_so = false;

	for (size_t from = 0, at = 0; at <= size; at++)
		if (at == size || text[at] == '\n') {
			says_so = says_so || text_says_oom(text + from, at - from);
			from = at + 1;
		}
	return says_so;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = copy(data, size);
	bool says_so = text_says_oom(text, size);

	assert(any_line_says_so(text, size) == says_so);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	assert(text_says_oom(text, size) == says_so);
	return 0;
}
