/*
 * Any text as a jobs file: if it is refused, the reason is one printable line that names file and
 * line; each line that is read can be written, and is then read as the same again.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "batch_attributes.h"
#include "fuzz_batch.h"

static void check_same(const struct batch_line *line, const struct batch_line *other)
{
	const struct batch_attributes *a = &line->attributes, *b = &other->attributes;

	assert(line->key && line->key == other->key);
	assert(strcmp(line->command, other->command) == 0);
	assert(a->given == b->given && a->is_cancelled == b->is_cancelled);
	assert(a->gpus == b->gpus && a->share_percent == b->share_percent);
	assert(a->vram_mib == b->vram_mib && a->limit_ms == b->limit_ms);
	assert(a->oom_retries == b->oom_retries && a->retries == b->retries);
	assert(a->priority == b->priority && fuzz_is_same(a->allow, b->allow));
	assert(fuzz_is_same(a->after, b->after) &&
		fuzz_is_same(a->after_ok, b->after_ok));
	assert(fuzz_is_same(a->name, b->name) && fuzz_is_same(a->setup, b->setup));
	assert(fuzz_is_same(a->conda, b->conda));
}

/* A job that comes after others is alone in its file: the others are missing. */
static void check_again(const struct batch_line *line)
{
	struct batch_line alone = *line;
	char *words[] = { (char *)(uintptr_t)line->command, NULL };
	struct batch_list list = BATCH_LIST_NONE;
	struct why why = WHY_NONE;
	char *at = malloc(2 * BATCH_LINE_MAX);
	struct text out;

	assert(at);
	out = text_on(at, 2 * BATCH_LINE_MAX);
	if (batch_line_write(BATCH_LINES, &line->attributes, NULL, words, &out, &why) <
		0) {
		/* a line of the greatest length may become longer when it is written */
		assert(strstr(why.text, "it has more than"));
		free(at);
		return;
	}
	out.used = 0;
	alone.attributes.given &= ~(1u << BATCH_AFTER | 1u << BATCH_AFTER_OK);
	alone.attributes.after = alone.attributes.after_ok = NULL;
	assert(batch_line_write(
		       BATCH_LINES, &alone.attributes, NULL, words, &out, &why) == 0);
	assert(batch_list_parse(
		       BATCH_LINES, "x", at, out.used, "python", NULL, &list, &why) == 0);
	assert(list.count == 1);
	check_same(&alone, &list.lines[0]);
	batch_list_release(&list);
	free(at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_batch(BATCH_LINES, data, size, check_again);
}
