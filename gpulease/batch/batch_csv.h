/*
 * Reads and writes a line of the table priority,script,conda_env,arguments,allowed_gpus
 * (batch_list.h).  Pure.
 */
#ifndef GPULEASE_BATCH_CSV_H
#define GPULEASE_BATCH_CSV_H

#include "batch_list.h"

/*
 * Returns the most bytes that batch_csv_read() can append to @commands for the @lines lines in the
 * @size bytes at @text.
 */
size_t batch_csv_room(const char *text, size_t size, size_t lines, const char *python);

enum batch_csv_outcome { BATCH_CSV_TITLE = 1 };

/*
 * Reads @line, which is changed: the attributes of *@ret point into it.  Appends the command, with
 * its NUL, to @commands.  Returns 0; BATCH_CSV_TITLE if the line names the columns; or -EINVAL with
 * the reason in @why.
 */
MUST_CHECK int batch_csv_read(char *line, const char *python, struct text *commands,
	struct batch_line *ret, struct why *why);

/*
 * Appends the line of the table for the shell command @command.  Returns 0, or with the reason in
 * @why -EINVAL if an attribute has no column, or -ENOMEM.  The caller has to read the line again
 * and compare, because not every command can be expressed.
 */
MUST_CHECK int batch_csv_write(const struct batch_attributes *attributes,
	const char *command, struct text *out, struct why *why);

/* Returns the name of python that @command begins with; "python" if it begins otherwise. */
const char *batch_csv_python(const char *command);

#endif
