/*
 * The parser of a jobs file: what its lines ask for.  Pure but for memory.
 *
 * A line is one shell command.  Blank lines and lines that begin with `#` are skipped.  Attributes
 * may stand before the command: `[gpus=2 vram=18G cancel] python train.py`.  A value that contains
 * blanks or `]` is quoted, as "…" (with \" and \\) or '…'.  A `[` that is followed by anything
 * else than blanks and a letter, or than `]`, is the shell's own `[`; after `[]` it always is.
 * Blanks at the end of a command and the \r of DOS do not count.
 *
 * A name is not a number and has no comma, so that the items of `after` are unambiguous.  Each name
 * in `after` is the name of a line, and there are no cycles of names.  Numbers of jobs are not
 * checked here, because only the runner knows them.
 *
 * The other format (BATCH_CSV) is the table priority,script,conda_env,arguments,allowed_gpus.  The
 * first four fields are as in RFC 4180, within one line; the fifth is all that follows the fourth
 * comma.  A lower priority comes first.  A line with exactly these words is the title.
 */
#ifndef GPULEASE_BATCH_LIST_H
#define GPULEASE_BATCH_LIST_H

#include "settings.h"

enum {
	BATCH_FILE_MAX = 16 * 1024 * 1024, /* bytes of a jobs file */
	BATCH_LINE_MAX =
		100000, /* bytes of a line: the kernel takes 128 KiB per argument */
	BATCH_LINES_MAX = 100000,
	BATCH_NAME_MAX = 256, /* bytes of a name, with its NUL */
};

/* The bits of ->given. */
enum batch_attribute {
	BATCH_GPUS,
	BATCH_VRAM,
	BATCH_TIMEOUT,
	BATCH_RETRIES,
	BATCH_FAIL_RETRIES,
	BATCH_PRIORITY,
	BATCH_ALLOW,
	BATCH_AFTER,
	BATCH_AFTER_OK,
	BATCH_NAME,
	BATCH_CONDA,
	BATCH_SETUP,
	BATCH_CANCELLED,
	BATCH_ATTRIBUTES,
};

/*
 * What a line says besides its command.  Texts belong to the list.  An attribute that is not in
 * ->given is 0 or NULL.
 */
struct batch_attributes {
	unsigned given; /* 1u << BATCH_… */
	unsigned gpus, share_percent;
	uint64_t vram_mib;
	int64_t limit_ms;     /* timeout */
	unsigned oom_retries; /* retries */
	unsigned retries;     /* fail-retries */
	int64_t priority;     /* higher first, in both formats */
	const char *allow;    /* as for --allow, checked */
	/* names of lines, or numbers of jobs, without blanks around the commas: "prep,12" */
	const char *after;
	const char *after_ok;
	const char *name, *conda, *setup;
	bool is_cancelled;
};

struct batch_line {
	unsigned number; /* in the file, from 1 */
	/* identifies it: a hash of its command and name, so other attributes may change */
	uint64_t key;
	uint64_t environment; /* batch_environment(), set by the runner; 0: unknown */
	const char *command;  /* for a shell; belongs to the list */
	struct batch_attributes attributes;
};

struct batch_list {
	struct batch_line *lines;
	size_t count;
	char *text; /* all texts of the lines point into it */
};

/* Knows the names that may stand in `after` although no line has them. */
struct batch_known {
	bool (*has)(const void *arg, const char *name, size_t size);
	const void *arg;
};

#define BATCH_LIST_NONE ((struct batch_list){ .lines = NULL })

/*
 * Returns BATCH_CSV for BATCH_AUTO if the file @file, with the @size bytes at @text, is a table:
 * its name ends in .csv, or its first line is the title of one.  Else returns @asked.
 */
enum batch_format batch_format_of(
	enum batch_format asked, const char *file, const char *text, size_t size);

/*
 * Parses the @size bytes at @text, the contents of the file @file, in @format.  BATCH_AUTO means
 * lines, none of which may look like a row of a table.  @python is the program that runs a script
 * of a table without a conda environment: python or python3.  @known (NULL: none) knows more names
 * for `after`.
 *
 * Returns 0 and sets *@ret, which batch_list_release() frees and which does not refer to @text.
 * Otherwise the reason is in @why: -EINVAL, "FILE, line N: what is wrong and what is allowed" for
 * the first error; -EMEDIUMTYPE, the same, if the text is a script, or with BATCH_AUTO a table;
 * -ENOMEM.
 */
MUST_CHECK int batch_list_parse(enum batch_format format, const char *file,
	const char *text, size_t size, const char *python,
	const struct batch_known *known, struct batch_list *ret, struct why *why);

/*
 * Returns the number of bytes of @text before the first line that batch_list_parse() refuses: @size
 * if it refuses none, and 0 without memory.
 */
size_t batch_list_good_size(enum batch_format format, const char *text, size_t size,
	const char *python, const struct batch_known *known);

void batch_list_release(struct batch_list *list);

/* Returns the key of a line with @command and @name (NULL or "": none); never 0. */
uint64_t batch_key(const char *command, const char *name);

/*
 * Appends the line, without a newline, that batch_list_parse() reads as @command with @attributes.
 * If @command has one word, that is a line for a shell; several words are quoted for it.  @before
 * is a word that comes before them; NULL: none.  For a table, @command may be a script with
 * arguments, which batch_list_parse() reads as the program that runs the script and @command.
 *
 * Returns 0, or -EINVAL with the reason in @why if @format cannot express it; then @out is as
 * before.
 */
MUST_CHECK int batch_line_write(enum batch_format format,
	const struct batch_attributes *attributes, const char *before,
	char *const command[], struct text *out, struct why *why);

/* Returns a hash of all that @line says, which changes when any attribute does.  Not reentrant. */
uint64_t batch_line_hash(const struct batch_line *line);

#endif
