/*
 * Options of Slurm that gpulease-slurm obeys: it reads the whole command line.
 */
#include "diag.h"
#include "exitcodes.h"
#include "slurm_program.h"
#include "verbs.h"

static int hand_over(const char *part)
{
	slurm_program_become(part);
	diag("this needs gpulease-slurm, which is not installed; install gpulease again: "
	     "make install");
	return EXIT_MISUSE;
}

/* --container-image and other options of pyxis: which line runs the container. */
int verb_container(struct settings *settings)
{
	(void)settings;
	return hand_over("container");
}

/* --submit --script */
int verb_script(struct settings *settings)
{
	(void)settings;
	return hand_over("submit");
}
