/*
 * The record: the form in which gpulease keeps state in files.  It is 512 bytes of text,
 *
 *	TYPE/VERSION key=value key=value …       sum=0123abcd\n
 *
 * padded with spaces, so that `cat` shows the state.  In keys and values, bytes below 0x21, 0x7f,
 * `%` and `=` are escaped as %XX.  `sum` is FNV-1a (32 bit) over the bytes before it.  512 zero
 * bytes are a void record.
 *
 * Records are at multiples of 512, so none crosses a page.  If a process is killed while it writes
 * a record, either the whole record is written or nothing.  (Measured: a record across two pages
 * tears in half of the kills.)  A reader without a lock can still see a half-copied record: its sum
 * is wrong, and the reader reads again.
 *
 * A schema (a table of fields with their offsets in a struct) drives both directions.  A field that
 * is 0 or empty is not written.  Pure: no I/O.
 */
#ifndef GPULEASE_RECORD_H
#define GPULEASE_RECORD_H

#include "base.h"

enum { RECORD_SIZE = 512 };

enum record_kind {
	RECORD_U32, /* uint32_t, decimal */
	RECORD_U64, /* uint64_t, decimal */
	RECORD_I64, /* int64_t, decimal */
	RECORD_MS, /* the same, in milliseconds; read as at most RECORD_MS_MOST, or minus that */
	RECORD_HEX, /* uint64_t, hexadecimal */
	RECORD_SET, /* struct gpuset, hexadecimal */
	RECORD_TEXT, /* char[size]; cut if its escaped form does not fit into @size bytes */
	RECORD_REST, /* char[size], the last text: cut to the room left, and marked with … */
	RECORD_EXTRA, /* char[size]: all fields that no other row names, unchanged */
};

/* 36 million years: a damaged record may name any time, and sums of a few must not overflow. */
#define RECORD_MS_MOST (INT64_C(1) << 60)

struct record_field {
	const char *key;
	uint8_t kind; /* enum record_kind */
	uint16_t offset;
	uint16_t size; /* of texts: the size of the array */
};

struct record_schema {
	const char *type; /* "ticket/1" */
	const struct record_field *fields;
	size_t count;
};

#define RECORD_SCHEMA(name, table)                                            \
	{                                                                     \
		.type = (name), .fields = (table), .count = ARRAY_SIZE(table) \
	}

enum record_state { RECORD_GOOD, RECORD_VOID, RECORD_BROKEN };

/* A record of zeros, which is void. */
extern const char record_void[RECORD_SIZE];

/* Checks the 512 bytes at @raw.  RECORD_BROKEN: the sum is wrong, perhaps half-copied. */
enum record_state record_judge(const char *raw);

/* Whether @raw begins as a record of @type ("ticket/1"); its sum is not checked. */
bool record_is(const char *raw, const char *type);

/* Returns how many bytes @text needs in a record, where some are escaped.  Pure. */
size_t record_text_size(const char *text);

/*
 * Clears the fields of the struct at @out and reads the record at @raw into them.  Returns 0;
 * -EBADMSG if the record is void or broken; -ENOMSG if it has another type; or -EINVAL if a value
 * does not fit its field or a byte should have been escaped.  After -EINVAL @out is half-written.
 */
MUST_CHECK int record_decode(
	const struct record_schema *schema, const char *raw, void *out);

/*
 * Writes the struct at @in as a record of 512 bytes to @raw.  Returns 0, or -EMSGSIZE if the fields
 * other than a RECORD_REST do not fit.
 */
MUST_CHECK int record_encode(
	const struct record_schema *schema, const void *in, char *raw);

#endif
