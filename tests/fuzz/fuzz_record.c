/*
 * Any bytes as a record: the fuzzer writes the body; the checksum is made here, as the fuzzer
 * would never guess one.  A record that can be decoded can be encoded, to a record with the same
 * contents; only a text whose escaped form is longer than its array is cut, once.
 */
#include <string.h>

#define SAMPLE_EXTRA_SIZE 96
#define SAMPLE_REST_SIZE 128 /* so short that no rest is cut again when it is encoded */
#include "../record_sample.h"
#include "fuzz.h"

/* Whether @b has the same contents as @a. */
static bool is_equal(const struct sample *a, const struct sample *b, bool may_be_cut)
{
	return a->small == b->small && a->large == b->large && a->wide == b->wide &&
	       a->hex == b->hex && gpuset_equals(&a->set, &b->set) &&
	       strncmp(a->text, b->text, strlen(b->text)) == 0 &&
	       (may_be_cut || strlen(a->text) == strlen(b->text)) &&
	       strcmp(a->extra, b->extra) == 0 && strcmp(a->rest, b->rest) == 0;
}

static void recode(const struct sample *in, struct sample *out)
{
	char raw[RECORD_SIZE];

	MUST(record_encode(&schema, in, raw) == 0);
	MUST(record_judge(raw) == RECORD_GOOD);
	MUST(record_decode(&schema, raw, out) == 0);
}

static void check(const char *raw)
{
	struct sample first, second, third;

	if (record_decode(&schema, raw, &first) < 0)
		return;
	MUST(record_judge(raw) == RECORD_GOOD);
	recode(&first, &second);
	MUST(is_equal(&first, &second, true));
	recode(&second, &third);
	MUST(is_equal(&second, &third, false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char raw[RECORD_SIZE];

	memset(raw, ' ', sizeof(raw));
	if (size > 0)
		memcpy(raw, data, size < RECORD_SIZE ? size : RECORD_SIZE);
	check(raw); /* unchanged: mostly no valid record */
	seal(raw);
	check(raw);
	return 0;
}
