/*
 * The options of pyxis, srun's plugin for containers, taken out of a command line.  Pure.
 */
#ifndef GPULEASE_CONTAINER_OPTIONS_H
#define GPULEASE_CONTAINER_OPTIONS_H

#include "text.h"

/* What the options say.  All text is in argv. */
struct container_wish {
	const char *image, *mounts, *workdir, *name, *save,
		*variables; /* NULL: not given */
	const char *bundle; /* of --container, Slurm's own option for OCI bundles; NULL */
	bool has_home, has_entrypoint, keeps_user, is_readonly;
	bool is_ignored; /* set by options that ask for what happens anyway */
};

/*
 * The words of a command line: ->options are those that are neither of pyxis nor --export, and
 * ->command is what they run.  Both end with NULL and point into argv.
 */
struct container_words {
	char **options, **command;
	unsigned count;       /* of the options */
	bool has_pty;         /* --pty is one of the options */
	const char *exported; /* the value of the last --export; NULL */
};

/*
 * Splits @argv, a command line of gpulease.  Sets *@ret_first to the first option of pyxis, as it
 * is called.  Returns 0, -ENOMEM, or -EINVAL with the reason in @why.
 */
MUST_CHECK int container_options_read(char **argv, struct container_wish *wish,
	struct container_words *ret, const char **ret_first, struct why *why);

#endif
