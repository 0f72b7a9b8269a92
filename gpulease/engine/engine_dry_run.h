/*
 * --dry-run: what Slurm would do with the job now, as text or as JSON (gpulease-json(5)).
 */
#ifndef GPULEASE_ENGINE_DRY_RUN_H
#define GPULEASE_ENGINE_DRY_RUN_H

#include "engine_line.h"

/* Asks `srun --test-only`.  Returns the exit status. */
int engine_dry_run(const struct engine_line *line);

/*
 * Reads "Job 46 to start at 2026-11-24T15:52:46 using 1 processors on nodes n1 in partition main",
 * which may follow another text in @line: when the job would start, as seconds since 1970, and
 * where, in @nodes.  A number in place of the date is that number of seconds.  Returns 0 or
 * -EINVAL.
 */
MUST_CHECK int engine_read_test_only(
	const char *line, int64_t *ret_start_s, char *nodes, size_t size);

#endif
