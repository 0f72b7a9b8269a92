/*
 * --help and --complete, which gpulease-view prints, and --version.  A gpulease without
 * gpulease-view beside it still says where to read on.
 */
#include <stdio.h>

#include "exitcodes.h"
#include "other_program.h"
#include "verbs.h"

int verb_help(struct settings *settings)
{
	(void)settings;
	other_program_become(VIEW_PROGRAM, "view");
	(void)printf(
		"Usage: gpulease [options] [--] command [argument ...]\n"
		"       gpulease --status | --queue | --cancel JOB ... | ...\n"
		"gpulease-view, which has the list of options, is not installed; see "
		"man gpulease.\n");
	return EXIT_DONE;
}

/* The shell asks while the user types: without gpulease-view there is nothing to offer. */
int verb_complete(struct settings *settings)
{
	(void)settings;
	other_program_become(VIEW_PROGRAM, "view");
	return EXIT_DONE;
}

int verb_version(struct settings *settings)
{
	(void)settings;
	(void)printf("gpulease %s\n", GPULEASE_VERSION);
	return EXIT_DONE;
}
