/*
 * The record: the one form in which gpulease keeps state in files.  512 bytes of text,
 *
 *	TYPE/VERSION key=value key=value …       sum=0123abcd\n
 *
 * padded with spaces, so that `cat` shows the state.  In keys and values a byte below 0x21,
 * 0x7f, `%` and `=` stands as %XX.  `sum` is FNV-1a (32 bit) over the bytes before it.
 * Records lie at multiples of 512, hence inside one page: a write of one is all or nothing
 * for a process that is killed (measured: a record across two pages tears in half of the
 * kills).  A reader without a lock can still see one half-copied: a bad sum, read again.
 * All zeros is a void record.
 *
 * A schema, a table of fields with their offsets in a struct, drives both directions.  A
 * field that is 0 or empty is not written.  Pure: no I/O.
 */
#ifndef GPULEASE_RECORD_H
#define GPULEASE_RECORD_H

#include "base.h"

enum { RECORD_SIZE = 512 };

enum record_kind {
	RECORD_U32,  /* uint32_t, decimal */
	RECORD_U64,  /* uint64_t, decimal */
	RECORD_I64,  /* int64_t, decimal */
	RECORD_HEX,  /* uint64_t, hexadecimal */
	RECORD_SET,  /* struct gpuset, hexadecimal */
	RECORD_TEXT, /* char[size]; cut where its escaped form is longer than the array */
	RECORD_REST, /* char[size], the last text: cut to what is left, marked with … */
	RECORD_EXTRA, /* char[size]: the fields no other row names, kept as they stand */
};

struct record_field {
	const char *key;
	enum record_kind kind;
	size_t offset;
	size_t size; /* of the array, for texts */
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

/* What the 512 bytes at @raw are; RECORD_BROKEN: bad sum, may be half-copied. */
enum record_state record_judge(const char *raw);

/* Whether @raw, judged or not, begins as a record of @type ("ticket/1"). */
bool record_is(const char *raw, const char *type);

/*
 * Reads the record at @raw into the struct at @out, whose fields it clears first.  0, or
 * -EBADMSG: not a good record; -ENOMSG: a record of another type; -EINVAL: a value that is
 * not what its field holds, or a byte that should be escaped.
 */
MUST_CHECK int record_decode(
	const struct record_schema *schema, const char *raw, void *out);

/*
 * Writes the struct at @in as 512 bytes to @raw.  0, or -EMSGSIZE where its fields without
 * a RECORD_REST do not fit.
 */
MUST_CHECK int record_encode(
	const struct record_schema *schema, const void *in, char *raw);

#endif
