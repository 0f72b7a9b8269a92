/*
 * --after, --after-ok, --singleton and --dependency as --dependency of Slurm.
 *
 * Slurm counts a job that it does not know as ended well, so the ids are looked up first.  A job
 * that Slurm has forgotten is left out if it has ended as it should.
 */
#ifndef GPULEASE_ENGINE_AFTER_H
#define GPULEASE_ENGINE_AFTER_H

#include "engine_line.h"
#include "slurm_ask.h"

/*
 * Looks up the jobs that @line names.  Returns 0; or an exit status after a message: a job is
 * unknown, or Slurm has forgotten it and it has failed (EXIT_GAVE_UP).
 */
MUST_CHECK int engine_after_check(const struct engine_line *line);

/*
 * Appends --dependency, and for sbatch --kill-on-invalid-dep, if @line needs them, without the jobs
 * that engine_after_check() has found to be met.
 */
void engine_after_words(const struct engine_line *line, struct slurm_words *words);

/*
 * Calls @each for each id in @text, the value of --dependency: a number behind a colon.  Returns 0,
 * or the first other value that @each returns.  Pure.
 */
MUST_CHECK int engine_after_each_id(
	const char *text, int (*each)(void *arg, uint64_t id), void *arg);

#endif
