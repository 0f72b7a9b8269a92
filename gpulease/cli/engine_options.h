/*
 * What the engine slurm does with each option: the table that gpulease-engine obeys and that
 * --help=slurm prints.  It has an entry for each row of the table of options; a unit test demands
 * that.  Pure data.
 *
 * Slurm's own options for a job go to srun, or with --submit to sbatch; those for the tasks go to
 * srun, which a job of --submit runs only for several tasks or if there are such options.
 */
#ifndef GPULEASE_ENGINE_OPTIONS_H
#define GPULEASE_ENGINE_OPTIONS_H

#include "option_parser.h"

enum engine_action {
	ENGINE_JOB, /* passed to srun or sbatch; ->text is Slurm's name, NULL: the same */
	ENGINE_STEP,   /* passed to srun; likewise */
	ENGINE_SELF,   /* gpulease does it; ->text says how */
	ENGINE_REFUSE, /* an error; ->text says why, and what to write instead */
	ENGINE_IGNORE, /* accepted; ->text says why it has no effect, for -v */
};

struct engine_option {
	const char *name; /* the long name, else the letter */
	const char *text;
	unsigned char action; /* enum engine_action */
	/*
	 * '=': a value has to follow, '?': it may follow, '-': none does; 0: as in the table of
	 * options.  A row there that is refused on one machine does not say it.
	 */
	char takes;
	/* the value of an option with ENGINE_SELF is not read as on one machine */
	bool is_raw;
};

/* Ends with a row without a name. */
extern const struct engine_option engine_options[];

/* Returns the entry of @def, or NULL: a hidden option may have none. */
const struct engine_option *engine_option_find(const struct option_def *def);

#endif
