/*
 * The texts that come from the table of options.  The caller checks @out for errors.
 */
#ifndef GPULEASE_HELP_H
#define GPULEASE_HELP_H

#include <stdio.h>

#include "text.h"

/* What there is to know first, or about @topic: a group of options, or all.  -ENOENT: none. */
MUST_CHECK int help_print(const char *topic, FILE *out);
/* Appends what @topic may be: "run, choose, ..., all". */
void help_add_topics(struct text *out);
void version_print(FILE *out);

/*
 * One spelling of an option a line, for the checks of completion and manual: the
 * spelling, what it takes (none, optional, required, operands) and its group (run, look,
 * act, any, srun, ignored, refused), with a tab between them.
 */
void options_print(FILE *out);

#endif
