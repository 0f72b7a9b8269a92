/*
 * A parser of command lines that a table drives: one row an option.  It knows nothing of
 * what the options mean.  Pure: it neither prints nor exits nor allocates.
 *
 * `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE`; letters without a value may be
 * bundled (`-vQ`), but to no name of a long option (`-log`); those are not abbreviated.  A
 * value that may be left out is only taken from the same word (`--immediate=5`, `-I5`); where
 * nothing else counts, from the next one, too (`--help srun`).
 * Options end at `--` and at the first word that is none: the command.  Once a verb was given
 * such words are its operands, and options may stand between them.  Given twice, the last
 * value counts; two verbs are an error.
 */
#ifndef GPULEASE_OPTIONS_H
#define GPULEASE_OPTIONS_H

#include "text.h"

enum option_kind {
	OPTION_END,      /* the row behind the last */
	OPTION_FLAG,     /* bool: true */
	OPTION_COMMAND,  /* bool: true; and a command follows, even beside a verb */
	OPTION_TALLY,    /* unsigned: how many times it was given */
	OPTION_TEXT,     /* const char *, into argv; not empty */
	OPTION_DURATION, /* int64_t, milliseconds */
	OPTION_LIMIT,    /* int64_t, milliseconds; a time limit as srun writes it */
	OPTION_CUSTOM,   /* what ->read makes of it */
	OPTION_NOTHING,  /* accepted; any value goes */
	OPTION_REFUSED,  /* known, and an error: ->help says what to do instead */
	OPTION_VERB, /* what to do, instead of running a command; ->value is its number */
	/* a verb after which nothing else on the line counts: --help; const char *: its value */
	OPTION_STOP,
};

/* What stands behind an option. */
enum option_takes { TAKES_NONE, TAKES_OPTIONAL, TAKES_REQUIRED, TAKES_OPERANDS };

struct option_def {
	enum option_kind kind;
	char letter;      /* 0: none */
	const char *name; /* without dashes; NULL: none */
	/* "N"; NULL: takes nothing; wholly in [ ]: may be left out */
	const char *metavar;
	const char *help;
	size_t offset; /* of the result in the settings */
	/* OPTION_CUSTOM: @value is NULL where it was left out; 0 or -EINVAL */
	int (*read)(const char *value, void *at, struct why *why);
	int value; /* OPTION_VERB, OPTION_STOP */
	unsigned
		leads; /* OPTION_VERB: behind so many operands follows a command; 0: none does */
	unsigned group; /* for whoever shows the table */
	unsigned verbs; /* 1u << VERB for each verb that it makes sense with */
};

enum { OPTIONS_MAX = 160 };

/* How often each row of the table was given, and whether by its letter the last time. */
struct option_use {
	unsigned short times;
	bool by_letter;
};

/*
 * @verb is NULL where none was given.  @rest[0..rest_count) is the command, or the
 * operands of the verb, which were moved together at the front of argv; a NULL follows.
 * @stray is the first operand of a verb that an option behind it makes none, or NULL.
 */
struct options_result {
	const struct option_def *verb;
	char **rest;
	unsigned rest_count;
	const char *stray;
	struct option_use use[OPTIONS_MAX];
};

/* "--name" or "-n"; an option without a long name has its letter. */
struct option_spelling {
	char text[40];
};

struct option_spelling option_spell(const struct option_def *def, bool by_letter);

/* The row with the long name of @size bytes at @name, or NULL. */
const struct option_def *options_find(
	const struct option_def *table, const char *name, size_t size);

/* Whether a value may, must or must not follow; for verbs, whether operands do. */
enum option_takes option_takes(const struct option_def *def);

/*
 * Reads @argv (its first word is the program's name, a NULL ends it) by @table into the
 * struct at @settings, which holds the defaults before, and *@ret.  @argv is changed as
 * said above.  0, or -EINVAL: @why names the option, the text and what is allowed;
 * @settings is then half-written, *@ret is not set.
 */
MUST_CHECK int options_parse(const struct option_def *table, char **argv, void *settings,
	struct options_result *ret, struct why *why);

#endif
