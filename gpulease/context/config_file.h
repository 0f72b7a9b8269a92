/*
 * Reads the configuration file: the one of --config, else the one that GPULEASE_CONFIG names, else
 * /etc/gpulease.conf.  The keys are in lib/config.
 */
#ifndef GPULEASE_CONFIG_FILE_H
#define GPULEASE_CONFIG_FILE_H

#include "config.h"

#define CONFIG_FILE "/etc/gpulease.conf"

/*
 * Returns the file that the user names by @option, the value of --config, or by GPULEASE_CONFIG.
 * Returns NULL if neither does, so that CONFIG_FILE counts, and in a set-group-ID program, which
 * ignores the variable.
 */
const char *config_file_named(const char *option);

/*
 * Sets *@ret to the defaults, changed by the file that config_file_named() returns for @option; if
 * that is NULL, by CONFIG_FILE, which may be missing.  *@ret_exists, unless NULL, is whether there
 * is a file.  Returns 0, or a negative errno with the message in @why: the file cannot be read, is
 * too big, may be written to by others, or has an error.  *@ret then may hold a part of the file.
 */
MUST_CHECK int config_file_load(
	const char *option, struct config *ret, bool *ret_exists, struct why *why);

#endif
