/*
 * A line of the table priority,script,conda_env,arguments,allowed_gpus (batch_list.h), both
 * ways.  Pure.
 */
#ifndef GPULEASE_BATCH_CSV_H
#define GPULEASE_BATCH_CSV_H

#include "batch_list.h"

/* The most that batch_csv_read() appends to @commands for the @size bytes of @lines lines. */
size_t batch_csv_room(const char *text, size_t size, size_t lines, const char *python);

/*
 * Reads @line, in whose bytes the attributes stay; the command is appended to @commands, with
 * its NUL.  0; BATCH_CSV_TITLE: it names the columns; -EINVAL.
 */
enum { BATCH_CSV_TITLE = 1 };
MUST_CHECK int batch_csv_read(char *line, const char *python, struct text *commands,
	struct batch_line *ret, struct why *why);

/*
 * Appends the line that is read as the line @command for a shell.  0, or -EINVAL where there is
 * none.  A line that was written is still to be read again: not all commands survive it.
 */
MUST_CHECK int batch_csv_write(const struct batch_attributes *attributes,
	const char *command, struct text *out, struct why *why);

/* How @command says python; "python" where it does not. */
const char *batch_csv_python(const char *command);

#endif
