/*
 * A record with a field of every kind, and the checksum of a record, computed here once more.
 *
 * A file that includes this first defines the sizes of the arrays for the two long fields:
 * SAMPLE_EXTRA_SIZE for the unknown fields, SAMPLE_REST_SIZE for the rest of the line.
 */
#ifndef GPULEASE_TESTS_RECORD_SAMPLE_H
#define GPULEASE_TESTS_RECORD_SAMPLE_H

#include "gpuset.h"
#include "record.h"

enum { SUM_SIZE = 13 };

struct sample {
	uint32_t small;
	uint64_t large;
	int64_t wide;
	uint64_t hex;
	struct gpuset set;
	char text[24];
	char extra[SAMPLE_EXTRA_SIZE];
	char rest[SAMPLE_REST_SIZE];
};

#define AT(field) offsetof(struct sample, field), sizeof(((struct sample *)0)->field)

static const struct record_field fields[] = {
	{ "small", RECORD_U32, AT(small) },
	{ "large", RECORD_U64, AT(large) },
	{ "wide", RECORD_I64, AT(wide) },
	{ "hex", RECORD_HEX, AT(hex) },
	{ "set", RECORD_SET, AT(set) },
	{ "text", RECORD_TEXT, AT(text) },
	{ "", RECORD_EXTRA, AT(extra) },
	{ "rest", RECORD_REST, AT(rest) },
};

static const struct record_schema schema = RECORD_SCHEMA("sample/1", fields);

/* Puts the checksum of what stands before it at the end of @raw. */
static inline void seal(char raw[RECORD_SIZE])
{
	uint32_t sum = 2166136261u;
	char trailer[SUM_SIZE + 1];

	for (size_t i = 0; i < RECORD_SIZE - SUM_SIZE; i++)
		sum = (sum ^ (unsigned char)raw[i]) * 16777619u;
	(void)snprintf(trailer, sizeof(trailer), "sum=%08x\n", sum);
	memcpy(raw + RECORD_SIZE - SUM_SIZE, trailer, SUM_SIZE);
}

#endif
