/*
 * What another program does, which runs without rights and reads the whole command line again.
 */
#include "diag.h"
#include "exitcodes.h"
#include "slurm_program.h"
#include "verbs.h"

static int hand_over(const char *name, const char *part)
{
	other_program_become(name, part);
	diag("this needs %s, which is not installed; install gpulease again: make install",
		name);
	return EXIT_MISUSE;
}

/* --container-image and other options of pyxis: which line runs the container. */
int verb_container(struct settings *settings)
{
	(void)settings;
	return hand_over(SLURM_PROGRAM, "container");
}

/* --submit --script */
int verb_script(struct settings *settings)
{
	(void)settings;
	return hand_over(SLURM_PROGRAM, "submit");
}

/* --top, --timeline, --metrics, --add and --sessions, and the verbs that go with --host. */
int verb_view(struct settings *settings)
{
	(void)settings;
	return hand_over(VIEW_PROGRAM, "view");
}
