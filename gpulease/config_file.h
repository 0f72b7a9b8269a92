/*
 * The configuration as a file: /etc/gpulease.conf, or another one that the user names where
 * the program has no more rights than the user.
 */
#ifndef GPULEASE_CONFIG_FILE_H
#define GPULEASE_CONFIG_FILE_H

#include "config.h"

#define CONFIG_FILE "/etc/gpulease.conf"

/*
 * Fills in *@ret: the defaults, and over them the file at @path, or CONFIG_FILE where @path is
 * NULL, which may be missing.  *@ret_exists, which may be NULL, says whether there is one.
 * 0, or a negative errno with the reason in @why: unreadable, too big, a file that others may
 * write to, or an error in it.
 */
MUST_CHECK int config_file_load(
	const char *path, struct config *ret, bool *ret_exists, struct why *why);

#endif
