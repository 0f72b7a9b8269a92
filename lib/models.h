/*
 * What models need: a table from names to GPUs, a share of one, or memory.  Two forms:
 *
 *	NAME = NEED	a line each, `#` begins a comment; `default = NEED` is for all others
 *	{"default_requirement": 1.0, "models": {"NAME": 0.5}}
 *
 * A NEED is a number of GPUs, below 1 a share of one, or memory: `2`, `0.5`, `18G` (the last
 * not in JSON).  It is rounded up: to whole percents, above 1 to whole GPUs.
 *
 * Nothing is kept but where the text lies: who asks for a model has all of it read again.
 * Pure but for memory.
 */
#ifndef GPULEASE_MODELS_H
#define GPULEASE_MODELS_H

#include "text.h"

enum { MODELS_BYTES_MAX = 64 * 1024, MODELS_NAME_SIZE = 256 };

struct model_need {
	unsigned gpus;
	unsigned share_percent; /* of the one GPU; 0: whole ones */
	uint64_t vram_mib;      /* declared, of one GPU; 0: not */
};

/* A text with a table, of the caller's, that has to stay. */
struct model_table {
	const char *file; /* what the reasons call it */
	const char *text; /* NULL: there is no table */
	size_t size;
	unsigned line; /* the number of its first line in the file */
};

/* Of models_find(): the table has neither the model nor a default. */
enum { MODELS_UNKNOWN = 1 };

/*
 * Reads all of @table.  *@ret is what the model @name needs, else the default.  0,
 * MODELS_UNKNOWN, -ENOMEM with @why, or -EINVAL: @why names file and line of what is wrong in
 * it, which may be elsewhere.
 */
MUST_CHECK int models_find(const struct model_table *table, const char *name,
	struct model_need *ret, struct why *why);

/* Reads all of it, for what is wrong in it.  0, -EINVAL or -ENOMEM, as models_find(). */
MUST_CHECK int models_check(const struct model_table *table, struct why *why);

/*
 * What stands behind @option in @command, whose first word is the program's name: `--llm
 * NAME` or `--llm=NAME`, the last one if there are several.  NULL: it is not there.
 */
const char *models_option_value(char *const command[], const char *option);

/*
 * The same in a line for a shell (words.h), into @out; a name that is too long for any table is
 * cut and still is.  False: it is not there.
 */
enum { MODELS_VALUE_SIZE = MODELS_NAME_SIZE + 1 };
bool models_line_value(const char *line, const char *option, char out[MODELS_VALUE_SIZE]);

#endif
