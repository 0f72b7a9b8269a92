/*
 * --submit --script: gpulease-slurm reads the command line as sbatch does.
 */
#include "diag.h"
#include "exitcodes.h"
#include "slurm_program.h"
#include "verbs.h"

int verb_script(struct settings *settings)
{
	(void)settings;
	slurm_program_become("submit");
	diag("--script needs gpulease-slurm; run make install");
	return EXIT_MISUSE;
}
