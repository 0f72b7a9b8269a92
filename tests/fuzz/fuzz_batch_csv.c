/*
 * Any text as the table form of a jobs file: as fuzz_batch.c, but that some commands cannot be
 * written there.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "../../gpulease/batch_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reason(const struct why *why)
{
	char printable[sizeof(why->text)];
	struct text shown = TEXT_ON(printable);

	assert(strncmp(why->text, "x, line ", 8) == 0);
	text_add_printable(&shown, why->text, strlen(why->text));
	assert(strcmp(printable, why->text) == 0);
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : !a && !b;
}

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
	if (batch_line_write(BATCH_CSV, a, words, &out, &why) == 0) {
		assert(batch_list_parse(BATCH_CSV, "x", at, out.used, "python", NULL,
			       &list, &why) == 0);
		assert(list.count == 1 && list.lines[0].key == line->key);
		b = &list.lines[0].attributes;
		assert(a->given == b->given && a->priority == b->priority);
		assert(is_same(a->allow, b->allow) && is_same(a->conda, b->conda));
	} else {
		assert(why.text[0] && !out.used);
	}
	batch_list_release(&list);
	free(at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct batch_list list = BATCH_LIST_NONE;
	struct why why = WHY_NONE;
	int r = batch_list_parse(
		BATCH_CSV, "x", (const char *)data, size, "python", NULL, &list, &why);

	if (r < 0)
		check_reason(&why);
	for (size_t i = 0; i < list.count; i++)
		check_again(&list.lines[i]);
	batch_list_release(&list);
	return 0;
}
