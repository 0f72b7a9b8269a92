/*
 * Any bytes as a record: the fuzzer writes the body, the checksum is made here, because it
 * would never guess one.  What decodes must encode, and to a record that says the same; only
 * a text whose escaped form is longer than its array is cut, once.
 */
#include <string.h>

#include "gpuset.h"
#include "record.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

enum { SUM_SIZE = 13 };

struct sample {
	uint32_t small;
	uint64_t large;
	int64_t wide;
	uint64_t hex;
	struct gpuset set;
	char text[24];
	char extra[96];
	char rest[128];
};

#define AT(field) offsetof(struct sample, field), sizeof(((struct sample *)0)->field)

static const struct record_field fields[] = {
	{ "small", RECORD_U32, AT(small) },
	{ "large", RECORD_U64, AT(large) },
	{ "wide", RECORD_I64, AT(wide) },
	{ "hex", RECORD_HEX, AT(hex) },
	{ "set", RECORD_SET, AT(set) },
	{ "text", RECORD_TEXT, AT(text) },
	{ NULL, RECORD_EXTRA, AT(extra) },
	{ "rest", RECORD_REST, AT(rest) },
};

static const struct record_schema schema = RECORD_SCHEMA("sample/1", fields);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void seal(char *raw)
{
	uint32_t sum = 2166136261u;
	char trailer[SUM_SIZE + 1];

	for (size_t i = 0; i < RECORD_SIZE - SUM_SIZE; i++)
		sum = (sum ^ (unsigned char)raw[i]) * 16777619u;
	(void)snprintf(trailer, sizeof(trailer), "sum=%08x\n", sum);
	memcpy(raw + RECORD_SIZE - SUM_SIZE, trailer, SUM_SIZE);
}

/* Whether @b says the same as @a. */
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
	check(raw); /* as it is: mostly no good record */
	seal(raw);
	check(raw);
	return 0;
}
