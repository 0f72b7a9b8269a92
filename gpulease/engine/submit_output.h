/*
 * The files of -o, -e and -i for sbatch.
 *
 * sbatch does not check them: Slurm makes a missing folder since 23.02, and before that a job
 * without its folder fails later, without a message.  So gpulease makes it at submission.  Relative
 * paths are those of the present folder, in which the job will begin.
 */
#ifndef GPULEASE_SUBMIT_OUTPUT_H
#define GPULEASE_SUBMIT_OUTPUT_H

#include <limits.h>

#include "engine_line.h"
#include "slurm_ask.h"
#include "text.h"

/* Appends the pattern that stands for the file @path and no other.  Pure. */
void submit_output_literally(const char *path, struct text *out);

/* Appends @pattern, the value of -o, -e or -i, as Slurm reads it: `%h` is `%N`.  Pure. */
void submit_output_add_pattern(const char *pattern, struct text *out);

/*
 * Writes @pattern, the value of -o, -e or -i, as sbatch reads it, as an absolute path: `none` is
 * /dev/null, and `%h` is `%N`.  @folder is where a relative one begins.  Returns 0 or
 * -ENAMETOOLONG.  Pure.
 */
MUST_CHECK int submit_output_pattern(
	const char *pattern, const char *folder, char out[PATH_MAX]);

/*
 * Writes the path that @pattern, as submit_output_pattern() has written it, means for the job @id
 * with @name.  Returns 0, or -ENOENT: only the node knows it.  Pure.
 */
MUST_CHECK int submit_output_path(const char *pattern, uint64_t id, const char *name,
	const char *user, char out[PATH_MAX]);

/*
 * Makes the folders for the output file @pattern, as srun or sbatch reads it, and checks whether
 * the file can be opened, as far as its name is known.  Makes nothing for --dry-run.  Returns 0, or
 * a negative errno with the reason in @why.
 */
MUST_CHECK int submit_output_prepare(
	const struct engine_line *line, const char *pattern, struct why *why);

/*
 * Appends the options for the files of @line; @log is that of the job, a pattern, for what has no
 * file.  Returns 0, or EXIT_MISUSE after a message: a file cannot be opened.
 */
MUST_CHECK int submit_output_words(
	const struct engine_line *line, const char *log, struct slurm_words *words);

/*
 * Writes the file of -o for the job @id.  Returns 0, or -ENOENT: there is no -o, or only the node
 * knows the name.
 */
MUST_CHECK int submit_output_of(
	const struct engine_line *line, uint64_t id, char out[PATH_MAX]);

/* Writes the name of the job: that of -J, else of its command. */
void submit_output_job_name(const struct engine_line *line, char *out, size_t size);

#endif
