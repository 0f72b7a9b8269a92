/*
 * Any text as the table form of a jobs file: as fuzz_batch.c, except that some commands cannot be
 * written in that form.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz_batch.h"

static void check_again(const struct batch_line *line)
{
	char *words[] = { (char *)(uintptr_t)line->command, NULL };
	const struct batch_attributes *a = &line->attributes, *b;
	struct batch_list list = BATCH_LIST_NONE;
	struct why why = WHY_NONE;
	char *at = malloc(2 * BATCH_LINE_MAX);
	struct text out;

	assert(at && line->key);
	out = text_on(at, 2 * BATCH_LINE_MAX);
	if (batch_line_write(BATCH_CSV, a, NULL, words, &out, &why) == 0) {
		assert(batch_list_parse(BATCH_CSV, "x", at, out.used, "python", NULL,
			       &list, &why) == 0);
		assert(list.count == 1 && list.lines[0].key == line->key);
		b = &list.lines[0].attributes;
		assert(a->given == b->given && a->priority == b->priority);
		assert(fuzz_is_same(a->allow, b->allow) &&
			fuzz_is_same(a->conda, b->conda));
	} else {
		assert(why.text[0] && !out.used);
	}
	batch_list_release(&list);
	free(at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_batch(BATCH_CSV, data, size, check_again);
}
