/*
 * Notes on options that have no effect on one machine.
 */
#ifndef GPULEASE_IGNORED_OPTIONS_H
#define GPULEASE_IGNORED_OPTIONS_H

#include "settings.h"

/*
 * Prints one line about the given options of srun that promise what gpulease does not do.  With -v
 * it also names the other options without effect.  A second call prints nothing.
 */
void ignored_options_note(struct settings *settings);

#endif
