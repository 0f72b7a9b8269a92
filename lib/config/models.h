/*
 * A table of models and their needs.  It has one of two forms:
 *
 *	NAME = NEED	one line per model; `#` begins a comment; `default = NEED` is for all others
 *	{"default_requirement": 1.0, "models": {"NAME": 0.5}}
 *
 * A NEED is a number of GPUs (`2`), a share of one GPU (`0.5`), or memory (`18G`, not in JSON).  A
 * number is rounded up: below 1 to whole percent, above 1 to whole GPUs.
 *
 * Nothing is kept in memory: each question reads the whole text.  Pure but for memory.
 */
#ifndef GPULEASE_MODELS_H
#define GPULEASE_MODELS_H

#include "text.h"

enum { MODELS_BYTES_MAX = 64 * 1024, MODELS_NAME_SIZE = 256 };

struct model_need {
	unsigned gpus;
	unsigned share_percent; /* of one GPU; 0: whole GPUs */
	uint64_t vram_mib;      /* declared memory of one GPU; 0: none is declared */
};

/* A table.  The caller owns the texts, which have to outlive this struct. */
struct model_table {
	const char *file; /* its name in messages */
	const char *text; /* NULL: there is no table */
	size_t size;
	unsigned line; /* the line of the file at which ->text begins */
};

enum models_outcome { MODELS_UNKNOWN = 1 };

/*
 * Reads all of @table and sets *@ret to the need of the model @name, or to the default.  Returns 0;
 * MODELS_UNKNOWN if the table has neither; -ENOMEM, with @why; or -EINVAL, and @why names the file
 * and line of an error, which may be in another entry.
 */
MUST_CHECK int models_find(const struct model_table *table, const char *name,
	struct model_need *ret, struct why *why);

/* Checks all of @table.  Returns 0, -EINVAL or -ENOMEM as models_find(). */
MUST_CHECK int models_check(const struct model_table *table, struct why *why);

/*
 * Returns the value of @option in @command, which begins with the program: `--llm NAME` or
 * `--llm=NAME`, the last one if there are several.  Returns NULL if the option is missing.
 */
const char *models_option_value(char *const command[], const char *option);

/*
 * Does the same for a shell command line (words.h) and copies the value to @out.  A value that is
 * too long for any table is cut, but stays too long.  Returns false if the option is missing.
 */
enum { MODELS_VALUE_SIZE = MODELS_NAME_SIZE + 1 };
bool models_line_value(const char *line, const char *option, char out[MODELS_VALUE_SIZE]);

#endif
