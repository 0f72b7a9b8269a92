/*
 * The text of a job script: from a file, from stdin, or made from a command.
 */
#ifndef GPULEASE_SBATCH_SCRIPT_H
#define GPULEASE_SBATCH_SCRIPT_H

#include "text.h"

enum { SCRIPT_SIZE_MAX = 4 * 1024 * 1024 };

/* ->text has ->size bytes and a NUL; the process keeps it.  ->name is for messages and the job. */
struct sbatch_script {
	char *text;
	size_t size;
	const char *name;
};

/*
 * Reads the script @path; NULL or "-" is stdin.  Without a slash, a file that is not in this folder
 * is searched in $PATH.  Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int sbatch_script_read(
	const char *path, struct sbatch_script *ret, struct why *why);

/* Makes a script of the shell command @command.  Returns 0 or -ENOMEM. */
MUST_CHECK int sbatch_script_wrap(const char *command, struct sbatch_script *ret);

#endif
