/*
 * The kinds of values that keys of the configuration have: how each is read from a text and
 * written as one.  Between config.c, its table, and config_values.c.  Pure.
 */
#ifndef GPULEASE_CONFIG_VALUES_H
#define GPULEASE_CONFIG_VALUES_H

#include "config.h"

/* Room for any value; the longest is a path. */
enum { CONFIG_VALUE_SIZE = CONFIG_PATH_SIZE };

struct config_key_def {
	const char *name;
	const struct config_kind *kind;
	size_t offset;       /* of what the kind keeps, in struct config */
	const char *initial; /* NULL: nothing is set */
	const char *allowed; /* what to write, for who has written something else */
	struct {
		int64_t least, most;
	} range;              /* percent, ms, a number, or the bytes of a text */
	const char *words[2]; /* of a choice: for false, for true */
};

/* How a value is read from a text into @at, and written as one. */
struct config_kind {
	const char *noun; /* "'x' is not a duration" */
	/* 0; -EINVAL: it is none; -ERANGE: it is one, but not in the key's range */
	int (*read)(const struct config_key_def *def, const char *value, void *at);
	void (*format)(
		const struct config_key_def *def, const void *at, struct text *out);
};

extern const struct config_kind config_path, config_group, config_duration,
	config_duration_or_none, config_size, config_percentage, config_percentage_or_off,
	config_use, config_count, config_count_or_none, config_choice, config_gpus,
	config_option;

#endif
