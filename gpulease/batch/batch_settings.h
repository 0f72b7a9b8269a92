/*
 * The settings of one job: what the command line asks for all jobs, and what the job's line asks.
 * Pure.
 */
#ifndef GPULEASE_BATCH_SETTINGS_H
#define GPULEASE_BATCH_SETTINGS_H

#include "batch_list.h"

/*
 * Sets *@ret to the settings of the job of @line; the attributes of the line win over @defaults.
 * @vram_mib replaces the memory that the job declares; 0 leaves it.  ->command of *@ret is @words,
 * and the texts are those of @defaults and @line, which have to stay.
 */
void batch_settings(const struct settings *defaults, const struct batch_line *line,
	uint64_t vram_mib, char *words[4], struct settings *ret);

/*
 * Returns a hash of what decides, besides the command and the name of @line, what the command does:
 * the conda environment, the setup, --export, --inject and its style, and the @directory that it
 * runs in.  Never 0.
 */
uint64_t batch_environment(const struct settings *defaults, const char *directory,
	const struct batch_line *line);

/*
 * Returns the command of @line, to be freed by the caller, or NULL without memory.  With --inject
 * the value of the option becomes `{gpus}`; a missing option is appended.  If the job gets no GPU,
 * the option and its value are removed.
 */
char *batch_inject(const struct settings *defaults, const struct batch_line *line);

#endif
