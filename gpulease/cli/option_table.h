/*
 * The table of all options.  One row drives parsing, --help, the completion for the shells and the
 * check of the manual.  gpulease has the table without the texts of HELP(); gpulease-view, which
 * prints the help and the completion, has all of it.
 *
 * To add an option: add a row to option_table.c, a field in settings.h, and, if no option_kind fits
 * the value, a reader in option_values.c.  `make lint` names the place in man/ that is missing.
 * For the shells, view/completion.c turns its ->metavar, or its ->read, into the values that can
 * follow.
 */
#ifndef GPULEASE_OPTION_TABLE_H
#define GPULEASE_OPTION_TABLE_H

#include "option_parser.h"
#include "settings.h"

/* How --help groups the rows; the titles are in view/help.c. */
enum option_group {
	GROUP_RUN,
	GROUP_CHOOSE,
	GROUP_ORDER,
	GROUP_CARE,
	GROUP_BACK,
	GROUP_BATCH,
	GROUP_SETUP,
	GROUP_LEASE,
	GROUP_LOOK,
	GROUP_ENDED,
	GROUP_VIEW,
	GROUP_ACT,
	GROUP_WINDOWS,
	GROUP_ANY,
	GROUP_SRUN, /* options of srun with an effect */
	GROUP_IGNORED, /* options of srun without effect; -v, or a note, names the given ones */
	GROUP_REFUSED, /* options of srun that are an error */
	GROUP_HIDDEN,  /* in no help: options by which gpulease starts itself */
};

/* `[TYPE:]N` as --gpus or one of srun's GPU options gives it. */
struct gpu_wish {
	bool given;
	unsigned count, share_percent;
	char model[MODEL_SIZE];
};

/* The options that take `[TYPE:]N`.  All that are given have to ask for the same. */
enum gpu_source { FROM_GPUS, FROM_GRES, FROM_PER_NODE, FROM_PER_TASK, GPU_SOURCES };

/*
 * What the parser writes: the settings, and values that mean something only together with other
 * options.  command_line_parse() turns these values into settings.
 */
struct command_line {
	struct settings settings;
	const char *n;     /* of -n: GPUs; beside a GPU option, srun's tasks */
	const char *tasks; /* of --ntasks: always tasks */
	const char *per_node, *per_gpu; /* of --ntasks-per-node, --ntasks-per-gpu */
	bool is_srun, is_in_lease;      /* the name of the program, and where it runs */
	const char *after, *after_ok;   /* as given */
	struct gpu_wish gpus[GPU_SOURCES];
};

/* Ends with a row of kind OPTION_END. */
extern struct option_def option_table[OPTIONS_MAX];

/*
 * Fills the table; call this before anything that reads it.  A second call changes nothing, so that
 * a program can have its own way with some rows (engine_line.c).
 */
void option_table_make(void);

/* Returns how the row @def was used on the command line that gave @result. */
const struct option_use *option_use_of(
	const struct options_result *result, const struct option_def *def);

/*
 * Returns the first given option that writes to @offset of struct command_line, as the user spelled
 * it; "" when none was given.
 */
struct option_spelling option_given_spelling(
	const struct options_result *result, size_t offset);

#endif
