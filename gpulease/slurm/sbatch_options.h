/*
 * The options of sbatch: which there are, and what becomes of each.  The table is in
 * sbatch_options.c; it serves the command line, the #SBATCH lines, and the variables SBATCH_*.
 */
#ifndef GPULEASE_SBATCH_OPTIONS_H
#define GPULEASE_SBATCH_OPTIONS_H

#include "text.h"

/* What becomes of an option. */
enum sbatch_use {
	SBATCH_PASSED,  /* gpulease gets it, under the name ->as */
	SBATCH_COUNTED, /* part of the number of tasks and GPUs, under the name ->as */
	SBATCH_OWN,     /* sbatch itself does it */
	SBATCH_NOISE,   /* nothing, on one machine */
	SBATCH_UNMET, /* nothing, although its user may rely on it; ->as says what is not done */
	SBATCH_REFUSED, /* an error; ->as says what to do instead */
};

struct sbatch_row {
	const char *name;
	const char *metavar;  /* as in struct option_def; NULL: takes no value */
	const char *variable; /* behind SBATCH_; NULL: none */
	const char *as;
	unsigned char use; /* enum sbatch_use */
	char letter;
};

enum { SBATCH_ROWS_MAX = 120 };

/* Ends with a row without a name. */
extern const struct sbatch_row sbatch_table[];

/*
 * The options as given, one value for each row of the table: NULL is not given, "" is given without
 * a value.  ->lines has the lines of the script where they stand; 0: elsewhere.
 */
struct sbatch_options {
	const char *values[SBATCH_ROWS_MAX];
	unsigned lines[SBATCH_ROWS_MAX];
};

/* The value of the option @name, which the table has. */
const char *sbatch_options_value(const struct sbatch_options *options, const char *name);

/* Sets the option @name, which the table has, to @value. */
void sbatch_options_set(
	struct sbatch_options *options, const char *name, const char *value);

/*
 * Reads @argv, which begins with the name of the program, over what @options has.  Returns 0 with
 * the words after the options in *@ret_rest, or -EINVAL with the reason in @why.
 */
MUST_CHECK int sbatch_options_read(
	char **argv, struct sbatch_options *options, char ***ret_rest, struct why *why);

/* The same for the #SBATCH line @line of a script: words after the options are an error. */
MUST_CHECK int sbatch_options_read_line(
	char **words, unsigned line, struct sbatch_options *options, struct why *why);

/*
 * Checks the numbers of CPUs and the sizes of memory, which gpulease does not read, by Slurm's
 * rules.  A size may be empty.  0 or -EINVAL.
 */
MUST_CHECK int sbatch_options_check(
	const struct sbatch_options *options, struct why *why);

/*
 * The line of the script that has the option with which @message begins, as in "--time: ..."; 0:
 * none.
 */
unsigned sbatch_options_line_of(
	const struct sbatch_options *options, const char *message);

/* Reads the variables SBATCH_* of this process over what @options has.  0 or -EINVAL. */
MUST_CHECK int sbatch_options_read_variables(
	struct sbatch_options *options, struct why *why);

/* Sets in @options what @over has. */
void sbatch_options_overlay(
	struct sbatch_options *options, const struct sbatch_options *over);

/*
 * Writes the options of @use to @words, each as one word "--as=value", in memory that the caller
 * never frees.  Returns the next word, or NULL if there is no memory.
 */
char **sbatch_options_write(
	const struct sbatch_options *options, enum sbatch_use use, char **words);

#endif
