/*
 * The kinds of values in the configuration, each with its reader and its writer.  Only config.c,
 * which has the table of keys, and user_limits.c use this.  Pure.
 */
#ifndef GPULEASE_CONFIG_VALUES_H
#define GPULEASE_CONFIG_VALUES_H

#include "config.h"

/* The size of the longest value, a path. */
enum { CONFIG_VALUE_SIZE = CONFIG_PATH_SIZE };

struct config_key_def {
	const char *name;
	const struct config_kind *kind;
	size_t offset;       /* of the value in struct config */
	const char *initial; /* the default; NULL: no value */
	const char *allowed; /* the allowed values, for messages */
	union {
		struct {
			int64_t least, most;
		} range;              /* in percent, ms, MiB or a number, by the kind */
		const char *words[2]; /* of a choice: the words for false and for true */
	};
};

/* A kind of value.  @at is the place of the value in struct config. */
struct config_kind {
	const char *noun; /* for messages: "'x' is not a duration" */
	/* Returns 0; -EINVAL: not of this kind; -ERANGE: outside the range of the key. */
	int (*read)(const struct config_key_def *def, const char *value, void *at);
	void (*format)(
		const struct config_key_def *def, const void *at, struct text *out);
};

/* Returns the row of @key. */
const struct config_key_def *config_find_def(enum config_key key);

/*
 * Reads the value @text of a key into @config.  Returns 0; or -EINVAL, and @why names ->name of
 * @def and the allowed values.
 */
MUST_CHECK int config_read_value(struct config *config, const struct config_key_def *def,
	struct strview text, struct why *why);

extern const struct config_kind config_path, config_group, config_duration,
	config_duration_or_none, config_size, config_percentage, config_percentage_or_off,
	config_use, config_count, config_count_or_none, config_choice, config_gpus,
	config_option, config_share;

#endif
