/*
 * The pieces of nvidia-smi's text: bytes, columns, numbers, bus ids, and words that stand in place
 * of a value.  Pure; used by the smi modules.
 */
#ifndef GPULEASE_SMIVALUE_H
#define GPULEASE_SMIVALUE_H

#include "base.h"

/* Some bytes of the output, of any value.  ->at is NULL once all pieces have been taken. */
struct span {
	const char *at;
	size_t size;
};

enum smi_value { SMI_VALUE_PLAIN, SMI_VALUE_UNSUPPORTED, SMI_VALUE_ERROR };

/* Returns @in without the spaces, tabs and carriage returns at both ends. */
struct span span_trim(struct span in);

/*
 * Takes the bytes before the next @stop, or all of them, off the front of *@rest, and trims them;
 * false if nothing is left.
 */
bool span_take_until(struct span *rest, char stop, struct span *ret);

/* Takes @prefix, in upper or lower case, off the front of *@in; false if it is not there. */
bool span_take_prefix(struct span *in, const char *prefix);

/* Whether @in is @word, in upper or lower case. */
bool span_equals(struct span in, const char *word);

/* Writes @in to the @size bytes at @out, made printable and cut to fit. */
void span_copy(struct span in, char *out, size_t size);

/* Reads a decimal number of at most @max; false if @in is anything else. */
bool span_to_number(struct span in, uint64_t max, uint64_t *ret);

/* Whether @in is a UUID, `GPU-…` or `MIG-…`, shorter than @size bytes. */
bool span_is_uuid(struct span in, size_t size);

/*
 * Takes a PCI bus id off the front of *@in and writes it to @out as sysfs does, 0000:0a:00.0.
 * nvidia-smi writes capitals, and 8 or 4 digits of the domain.  Returns false if there is none.
 */
bool span_take_bus_id(struct span *in, char *out, size_t size);

/*
 * Returns whether @in is a value, or a word in place of one: `[N/A]`, `[GPU is lost]`, `ERR!` …
 * The word counts with or without brackets, in upper or lower case.
 */
enum smi_value span_judge(struct span in);

#endif
