/*
 * The attributes of a line of a jobs file, `[gpus=2 vram=18G cancel]`: the table that reads
 * them, writes them and explains them.  Pure.
 */
#ifndef GPULEASE_BATCH_ATTRIBUTES_H
#define GPULEASE_BATCH_ATTRIBUTES_H

#include "batch_list.h"

/* Whether @line begins with attributes, and not with the shell's own `[`. */
bool batch_has_attributes(const char *line);

/*
 * Reads the attributes at *@at, for which batch_has_attributes() is true, and moves *@at after
 * them.  Unquotes their values in place: *@ret points into the line.  Returns 0, or -EINVAL with
 * the reason in @why.
 */
MUST_CHECK int batch_attributes_take(
	char **at, struct batch_attributes *ret, struct why *why);

/*
 * Sets the attribute @which to @value, which has to stay and may be changed.  Returns 0, or -EINVAL
 * with the reason, "NAME: what is wrong".
 */
MUST_CHECK int batch_attribute_set(struct batch_attributes *attributes,
	enum batch_attribute which, char *value, struct why *why);

/* Returns the word for @which in a line. */
const char *batch_attribute_name(enum batch_attribute which);

/*
 * Appends a line for each attribute, for people: two blanks, `gpus=2`, and from @column on what
 * it does.  2 KiB are enough for all of them.
 */
void batch_attributes_explain(unsigned column, struct text *out);

/* Appends the attributes in ->given, "[gpus=2 cancel]"; "[]" if there are none. */
void batch_attributes_write(const struct batch_attributes *attributes, struct text *out);

/* Whether the @size bytes of an item of `after` are the number of an entry: digits only. */
bool batch_is_job_number(const char *item, size_t size);

/* Removes the blanks around the commas of @list and at both ends, in place. */
void batch_attributes_squeeze(char *list);

#endif
