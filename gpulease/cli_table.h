/*
 * The table of gpulease's options, and the readers of their values.  One row drives
 * parsing, --help, completion and the check of the manual.  Between cli.c, cli_table.c,
 * cli_values.c, cli_sharing.c and help.c.
 */
#ifndef GPULEASE_CLI_TABLE_H
#define GPULEASE_CLI_TABLE_H

#include "cli.h"
#include "operands.h"
#include "options.h"

/* How --help groups the rows. */
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
	GROUP_ACT,
	GROUP_ANY,
	GROUP_SRUN,    /* srun's, honoured */
	GROUP_IGNORED, /* srun's, accepted; said with -v */
	GROUP_REFUSED, /* srun's, an error */
	GROUP_HIDDEN,
};

/* `[TYPE:]N` from one of srun's GPU options. */
struct gpu_wish {
	bool given;
	unsigned count, share_percent;
	char model[MODEL_SIZE];
};

/* srun's GPU options: all that are given have to agree. */
enum gpu_source { FROM_GPUS, FROM_GRES, FROM_PER_NODE, FROM_PER_TASK, GPU_SOURCES };

/* What the options say before they are understood together. */
struct command_line {
	struct settings settings;
	const char *n;     /* of -n: GPUs, or srun's tasks */
	const char *tasks; /* of --ntasks: always tasks */
	const char *after, *after_ok;
	struct gpu_wish gpus[GPU_SOURCES];
};

extern const struct option_def cli_options[];

/*
 * What is understood together about GPUs: the lists, and what contradicts the number of GPUs,
 * which was @spelled so.  0 or -EINVAL.
 */
MUST_CHECK int settle_sharing(
	struct settings *settings, const char *spelled, struct why *why);

/* Likewise of --batch and --add: their operands.  1 where it is one of them, 0, -EINVAL. */
MUST_CHECK int settle_batch(struct settings *settings, const char *verb, struct why *why);

/* Likewise of jobs that are looked after, and of leases without a command. */
MUST_CHECK int settle_care(const struct settings *settings, struct why *why);
MUST_CHECK int refuse_command(
	struct settings *settings, const char *word, struct why *why);

/*
 * That the first @count operands are there, at least one, and can be read as @kind.  0, or
 * -EINVAL.
 */
MUST_CHECK int check_operands(const struct settings *settings, unsigned count,
	const char *verb, enum operand_kind kind, struct why *why);

/*
 * The operands of the verbs about single jobs, @verb by its name: 1 where it is one of them, 0
 * where not, -EINVAL.
 */
MUST_CHECK int settle_job_operands(
	struct settings *settings, const char *verb, struct why *why);

int read_gpus(const char *value, void *wish, struct why *why);
int read_gres(const char *value, void *wish, struct why *why);
int read_size(const char *value, void *mib, struct why *why);
int read_model(const char *value, void *model, struct why *why);
int read_exclusive(const char *value, void *flag, struct why *why);
int read_bind(const char *value, void *wish, struct why *why);
int read_gpu_ids(const char *value, void *list, struct why *why);
int read_gpu_list(const char *value, void *list, struct why *why);
int read_prefer(const char *value, void *list, struct why *why);
int read_priority(const char *value, void *settings, struct why *why);
int read_after(const char *value, void *ids, struct why *why);
int read_dependency(const char *value, void *settings, struct why *why);
int read_immediate(const char *value, void *settings, struct why *why);
int read_warning(const char *value, void *settings, struct why *why);
int read_status(const char *value, void *status, struct why *why);
int read_on_limit(const char *value, void *what, struct why *why);
int read_times(const char *value, void *count, struct why *why);
int read_style(const char *value, void *style, struct why *why);
int read_pid(const char *value, void *pid, struct why *why);
int read_when(const char *value, void *real_ms, struct why *why);
int read_states(const char *value, void *list, struct why *why);
int read_nodes(const char *value, void *unused, struct why *why);
int read_one_task(const char *value, void *unused, struct why *why);
int read_open_mode(const char *value, void *unused, struct why *why);
int read_export(const char *value, void *list, struct why *why);
int read_file(const char *value, void *pattern, struct why *why);
int read_batch_format(const char *value, void *format, struct why *why);
int read_jobs(const char *value, void *count, struct why *why);
int read_engine(const char *value, bool *ret_podman, struct why *why);
int read_history(const char *value, uint64_t *ret, struct why *why);

#endif
