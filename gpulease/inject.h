/*
 * The GPUs of a job in the arguments of its command: {gpus} {ngpus} {uuids} {id}, and the
 * option of --inject.  Pure but for memory.
 *
 * {{gpus}} becomes {gpus}, and behind a `$`, where a shell means a variable, nothing changes:
 * ${id} stays as it is.  So do all other braces.
 */
#ifndef GPULEASE_INJECT_H
#define GPULEASE_INJECT_H

#include "base.h"

struct inject_values {
	const char *gpus, *ngpus, *uuids, *id;
};

/*
 * *@ret becomes @words, of which the first @fixed stay as they are, with these filled into the
 * others.  Where @option is not NULL its value there becomes ->gpus, be it `OPTION V` or
 * `OPTION=V`; if it is not there it is appended.  A word that begins like an option is no value.
 * An @option that ends in `=` has only the second form.  What stands behind a word `--` are no
 * options: these stay, and what is appended goes before it.  Without GPUs the option is left
 * out instead, with its value.
 *
 * The list and what is new in it are one block of memory, freed by the caller with free(); the
 * rest is that of @words and @option.  0 or -ENOMEM.
 */
MUST_CHECK int inject_arguments(char **words, size_t fixed, const char *option,
	const struct inject_values *values, char ***ret);

#endif
