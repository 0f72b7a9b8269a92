/*
 * The pieces of nvidia-smi's text: bytes, columns, numbers, bus ids and the words that stand
 * in place of a value.  Pure; for smiparse.c.
 */
#ifndef GPULEASE_SMIVALUE_H
#define GPULEASE_SMIVALUE_H

#include "base.h"

/* Some bytes of the output; any byte may be among them.  ->at is NULL behind the last piece. */
struct span {
	const char *at;
	size_t size;
};

enum smi_value { SMI_VALUE_PLAIN, SMI_VALUE_UNSUPPORTED, SMI_VALUE_ERROR };

struct span span_trim(struct span in);

/* Takes what is before the next @stop, or all, off the front of *@rest; false at the end. */
bool span_take_until(struct span *rest, char stop, struct span *ret);

/* Takes @prefix, in any case, off the front of *@in; false where it does not begin so. */
bool span_take_prefix(struct span *in, const char *prefix);

/* Whether @in is @word, in any case. */
bool span_equals(struct span in, const char *word);

/* Writes @in to the @size bytes at @out, printable and cut to fit. */
void span_copy(struct span in, char *out, size_t size);

/* Reads a decimal number of at most @max; false where @in is anything else. */
bool span_to_number(struct span in, uint64_t max, uint64_t *ret);

/* Whether @in is `GPU-` or `MIG-` and what may follow, shorter than @size bytes. */
bool span_is_uuid(struct span in, size_t size);

/*
 * Takes a PCI bus id off the front of *@in and writes it as sysfs does, 0000:0a:00.0;
 * nvidia-smi gives the domain 8 digits or 4, in capitals.  False where there is none.
 */
bool span_take_bus_id(struct span *in, char *out, size_t size);

/* Whether @in is a value or a word that stands for one: `[N/A]`, `[GPU is lost]`, `ERR!` … */
enum smi_value span_judge(struct span in);

#endif
