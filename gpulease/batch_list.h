/*
 * A jobs file: what its lines ask for.  Pure but for memory.
 *
 * One shell command a line.  Blank lines and those that begin with `#` are skipped.  In front of
 * the command may stand attributes: `[gpus=2 vram=18G cancel] python train.py`.  A value with
 * blanks or `]` in it stands in quotes, "…" (with \" and \\) or '…'.  Where `[` is followed by
 * anything but blanks and a letter, or `]`, it is the shell's own `[`; behind `[]` it always is.
 * Blanks behind a command do not count, nor the \r of DOS.
 *
 * A name is no number and has no comma, so that `after` can tell one from another and from a
 * number; each name in it is one of a line, and no lines wait for each other by their names.
 * Numbers are not looked at here: whose they are is only known to who numbers the jobs.
 *
 * The other form (BATCH_CSV) is the table priority,script,conda_env,arguments,allowed_gpus: the
 * first four fields as in RFC 4180, within one line, all that follows the fourth comma is the
 * last one.  A lower priority comes first there.  A line of these very words is its title.
 */
#ifndef GPULEASE_BATCH_LIST_H
#define GPULEASE_BATCH_LIST_H

#include "cli.h"

enum {
	BATCH_FILE_MAX = 16 * 1024 * 1024, /* bytes of a jobs file */
	BATCH_LINE_MAX = 100000, /* of a line: the kernel takes 128 KiB a word */
	BATCH_LINES_MAX = 100000,
	BATCH_NAME_MAX = 64, /* bytes of a name, with its NUL */
};

/* For ->given. */
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
 * What a line says beside its command; all texts belong to the list.  What is not ->given is 0
 * or NULL.
 */
struct batch_attributes {
	unsigned given; /* 1u << BATCH_… */
	unsigned gpus, share_percent;
	uint64_t vram_mib;
	int64_t limit_ms;     /* timeout */
	unsigned oom_retries; /* retries */
	unsigned retries;     /* fail-retries */
	int64_t priority;     /* higher first, whatever the form */
	const char *allow;    /* as of --allow, checked */
	/* names of lines, or numbers of jobs, without blanks around the commas: "prep,12" */
	const char *after;
	const char *after_ok;
	const char *name, *conda, *setup;
	bool is_cancelled;
};

struct batch_line {
	unsigned number; /* in the file, from 1 */
	/* what it is known by: of its command and name, so other attributes may change */
	uint64_t key;
	const char *command; /* for a shell; the list's, as all texts */
	struct batch_attributes attributes;
};

struct batch_list {
	struct batch_line *lines;
	size_t count;
	char *text; /* what all the texts point into */
};

/* Names that lines may come after although no line has them. */
struct batch_known {
	bool (*has)(const void *arg, const char *name, size_t size);
	const void *arg;
};

#define BATCH_LIST_NONE ((struct batch_list){ .lines = NULL })

/*
 * Reads the @size bytes at @text, which stay the caller's, as the file @file in the form
 * @format.  0; -EINVAL: @why is "FILE, line N: what is wrong and what is allowed", with the
 * first error only; -EMEDIUMTYPE, likewise: it is a table, and @format another; -ENOMEM, with
 * @why.  @python is how a script without a shell or a
 * conda environment of its own is run in the second form: python, or python3.  A name in `after`
 * is that of a line, or @known knows it, which may be NULL.
 */
MUST_CHECK int batch_list_parse(enum batch_format format, const char *file,
	const char *text, size_t size, const char *python,
	const struct batch_known *known, struct batch_list *ret, struct why *why);

/*
 * How many bytes of @text stand before the line that batch_list_parse() would call wrong; all of
 * it where none is, and without memory none.
 */
size_t batch_list_good_size(enum batch_format format, const char *text, size_t size,
	const char *python, const struct batch_known *known);

void batch_list_release(struct batch_list *list);

/* What lines with @command and @name (NULL or "": none) are known by. */
uint64_t batch_key(const char *command, const char *name);

/*
 * Appends the line, without a newline, that batch_list_parse() reads as @command (one word: a
 * line for a shell; several: words, which are quoted for it) with @attributes.  0, or -EINVAL
 * with the reason in @why: it cannot be written in that form.
 */
MUST_CHECK int batch_line_write(enum batch_format format,
	const struct batch_attributes *attributes, char *const command[],
	struct text *out, struct why *why);

#endif
