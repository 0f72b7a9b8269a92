/*
 * Reads the configuration file: /etc/gpulease.conf, or the one of --config.  The keys are in
 * lib/config.
 */
#ifndef GPULEASE_CONFIG_FILE_H
#define GPULEASE_CONFIG_FILE_H

#include "config.h"

#define CONFIG_FILE "/etc/gpulease.conf"

/*
 * Sets *@ret to the defaults, changed by the file at @path; if @path is NULL, by CONFIG_FILE, which
 * may be missing.  *@ret_exists, unless NULL, is whether there is a file.  Returns 0, or a negative
 * errno with the message in @why: the file cannot be read, is too big, may be written to by others,
 * or has an error.  *@ret then may hold a part of the file.
 */
MUST_CHECK int config_file_load(
	const char *path, struct config *ret, bool *ret_exists, struct why *why);

#endif
