/*
 * The attributes of a line of a jobs file, `[gpus=2 vram=18G cancel]`: their table, and both
 * ways through it.  Pure.
 */
#ifndef GPULEASE_BATCH_ATTRIBUTES_H
#define GPULEASE_BATCH_ATTRIBUTES_H

#include "batch_list.h"

/* Whether attributes stand at @line, and not the shell's own `[`. */
bool batch_has_attributes(const char *line);

/*
 * Reads those at *@at, which batch_has_attributes(), and moves *@at behind them.  Their values
 * are put into the same bytes and ended by NUL.  0 or -EINVAL.
 */
MUST_CHECK int batch_attributes_take(
	char **at, struct batch_attributes *ret, struct why *why);

/* Sets the one attribute by @value, which has to stay.  0 or -EINVAL: "NAME: what is wrong". */
MUST_CHECK int batch_attribute_set(struct batch_attributes *attributes,
	enum batch_attribute which, char *value, struct why *why);

/* What it is called in a line. */
const char *batch_attribute_name(enum batch_attribute which);

/* Appends those that are ->given, "[gpus=2 cancel]"; "[]" where there is none. */
void batch_attributes_write(const struct batch_attributes *attributes, struct text *out);

/* Drops the blanks around the commas of @list and at its ends. */
void batch_squeeze(char *list);

#endif
