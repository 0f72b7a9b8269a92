/*
 * gpulease has no message for a command line that it cannot read: it becomes gpulease-view, which
 * reads the line again and says what is wrong.  So the modules of gpulease/cli that read the line
 * are compiled twice, for gpulease WITHOUT_HELP (BARE in the Makefile).  Include this last.
 */
#ifndef GPULEASE_NO_MESSAGES_H
#define GPULEASE_NO_MESSAGES_H

#include "suggestion.h"

#ifdef WITHOUT_HELP
/* sizeof: the arguments count as used, and are not evaluated */
#define why_set(why, ...) ((void)(why), (void)sizeof(snprintf(NULL, 0, __VA_ARGS__)))
#define why_add_remedy(why, ...) why_set(why, __VA_ARGS__)
#define why_wrap(why, inner, ...) ((void)(inner), why_set(why, __VA_ARGS__))
#define suggestion_for_option(table, name, size, why) \
	((void)(table), (void)(name), (void)(size), (void)(why))
#endif

#endif
