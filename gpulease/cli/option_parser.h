/*
 * Parses a command line by a table with a row for each option.  It does not know what the options
 * mean.  Pure: it neither prints nor exits nor allocates.
 *
 * The forms are `--name VALUE`, `--name=VALUE`, `-n VALUE` and `-nVALUE`.  In a long name `_` is
 * `-`.  Letters without a value can be bundled (`-vQ`), unless the bundle reads like a long option
 * (`-log`).  Long options cannot be abbreviated.  An optional value is taken only from the same
 * word (`--immediate=5`, `-I5`), except for options such as --help, which take the next word, too
 * (`--help srun`).  A value that has to be given is not empty, except for OPTION_NOTHING and
 * OPTION_NOTED.
 *
 * Options end at `--` or at the first other word, which begins the command.  After a verb such
 * words are its operands, and options may stand between them.  If an option is given twice, the
 * last value counts.  Two verbs are an error.
 */
#ifndef GPULEASE_OPTION_PARSER_H
#define GPULEASE_OPTION_PARSER_H

#include "text.h"

enum option_kind {
	OPTION_END,      /* ends the table */
	OPTION_FLAG,     /* bool: true */
	OPTION_COMMAND,  /* bool: true; a command follows, even after a verb */
	OPTION_TALLY,    /* unsigned: how often it was given */
	OPTION_TEXT,     /* const char *, into argv */
	OPTION_DURATION, /* int64_t, milliseconds */
	OPTION_LIMIT,    /* int64_t, milliseconds; a time limit as srun writes it */
	OPTION_CUSTOM,   /* ->read stores the value */
	OPTION_NOTHING,  /* accepted with any value; stores nothing */
	/* the same, but ->help is a note on what has no effect; with ->offset: const char * */
	OPTION_NOTED,
	OPTION_REFUSED, /* an error: ->help says what to do instead */
	OPTION_VERB, /* what to do, instead of running a command; ->value is its number */
	/* const char *: its value; a verb after which the rest is ignored, such as --help */
	OPTION_STOP,
};

/* What follows an option. */
enum option_takes { TAKES_NONE, TAKES_OPTIONAL, TAKES_REQUIRED, TAKES_OPERANDS };

/*
 * A text that only gpulease-view prints.  It is empty in gpulease itself (BARE in the Makefile),
 * which has little room.  Empty is not NULL, which means that an option is hidden.
 */
#ifdef WITHOUT_HELP
#define HELP(text) ""
#else
#define HELP(text) text
#endif

struct option_def {
	const char *name; /* without dashes; NULL: none */
	/* the value's name, "N"; NULL: takes none; all of it in [ ]: may be left out */
	const char *metavar;
	const char *help; /* NULL: hidden; HELP() if the parser does not print it */
	/* OPTION_CUSTOM: @value is NULL where it was left out; 0 or -EINVAL */
	int (*read)(const char *value, void *at, struct why *why);
	uint64_t verbs;        /* a bit for each verb that the option goes with */
	unsigned short offset; /* of the result in the settings */
	unsigned char kind;    /* enum option_kind */
	char letter;           /* 0: none */
	unsigned char value;   /* OPTION_VERB, OPTION_STOP */
	/* OPTION_VERB: a command follows after this many operands; 0: never */
	unsigned char leads;
	unsigned char group; /* for --help */
};

enum { OPTIONS_MAX = 256 };

/* How often each row of the table was given, and whether by its letter the last time. */
struct option_use {
	unsigned short times;
	bool by_letter;
};

/*
 * ->verb is the verb, NULL if none was given.  ->rest[0..rest_count) is the command, or the
 * operands of the verb, moved to the front of argv; a NULL follows.  ->stray is an operand that
 * belongs to no verb, because a later option of kind OPTION_COMMAND turned the verb into an
 * option; or NULL.
 */
struct options_result {
	const struct option_def *verb;
	char **rest;
	unsigned rest_count;
	const char *stray;
	struct option_use use[OPTIONS_MAX];
};

/* An option as the user writes it: "--name" or "-n". */
struct option_spelling {
	char text[40];
};

/* Spells @def by its letter or its long name; by the one that it has if it has only one. */
struct option_spelling option_spell(const struct option_def *def, bool by_letter);

/* Returns the row with the long name of @size bytes at @name, where `_` is `-`, or NULL. */
const struct option_def *options_find(
	const struct option_def *table, const char *name, size_t size);

/* Returns the row with @letter, or NULL. */
const struct option_def *options_find_letter(const struct option_def *table, char letter);

/* Whether a value may, must or must not follow; for verbs, whether operands do. */
enum option_takes option_takes(const struct option_def *def);

/*
 * Parses @argv, which begins with the name of the program and ends with NULL, by @table.  Stores
 * the values in the struct at @settings, over its defaults, and the rest in *@ret; moves operands
 * in @argv.  Returns 0, or -EINVAL: @why names the option, the text and what is allowed; @settings
 * is then partly written and *@ret is not set.
 */
MUST_CHECK int options_parse(const struct option_def *table, char **argv, void *settings,
	struct options_result *ret, struct why *why);

#endif
