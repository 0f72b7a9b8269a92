/*
 * The administrator's configuration: `key = value`, one a line, `#` begins a comment.  Every
 * key may be left out.  A line `[models]` ends them: behind it is the table of models.  Pure:
 * reads a text, not a file.
 */
#ifndef GPULEASE_CONFIG_H
#define GPULEASE_CONFIG_H

#include "models.h"
#include "text.h"

enum { CONFIG_BYTES_MAX = 64 * 1024, CONFIG_PATH_SIZE = 256, CONFIG_GROUP_SIZE = 64 };
enum { CONFIG_GPUS_SIZE = 128, CONFIG_OPTION_SIZE = 32 };

/* The keys, in the order of the table and of --show-config. */
enum config_key {
	CONFIG_DIRECTORY,
	CONFIG_NVIDIA_SMI,
	CONFIG_PROBE_DEADLINE,
	CONFIG_IDLE_THRESHOLD,
	CONFIG_BUSY_UTILIZATION,
	CONFIG_MARGIN,
	CONFIG_SPIKE_BUFFER,
	CONFIG_SETTLE_TIME,
	CONFIG_LINGER_TIME,
	CONFIG_ADMIN_GROUP,
	CONFIG_MAX_WAITING,
	CONFIG_ALL_WAITING,
	CONFIG_USER_GPUS,
	CONFIG_USER_JOBS,
	CONFIG_ALL_GPUS,
	CONFIG_ALL_JOBS,
	CONFIG_MAX_TIME,
	CONFIG_DEFAULT_TIME,
	CONFIG_MAX_PRIORITY,
	CONFIG_PREFER,
	CONFIG_BIND,
	CONFIG_MODEL_OPTION,
	CONFIG_SHOW_COMMANDS,
	CONFIG_RECORD_ENDS,
	CONFIG_HISTORY_SIZE,
	CONFIG_TOLERANCE,
	CONFIG_RETRY_DELAY,
	CONFIG_RETRY_DELAY_MAX,
	CONFIG_SLURM_ALLOCATION,
	CONFIG_KEYS
};

/* Memory up to which a GPU counts as idle: so many MiB, or where not 0, percent of the card. */
struct config_threshold {
	uint64_t mib;
	unsigned percent;
};

struct config {
	char directory[CONFIG_PATH_SIZE];  /* absolute */
	char nvidia_smi[CONFIG_PATH_SIZE]; /* absolute; "": found in PATH */
	int64_t probe_deadline_ms;
	struct config_threshold idle;
	unsigned busy_percent; /* 0: utilization does not matter */
	uint64_t margin_mib;
	unsigned spike_buffer_percent;
	int64_t settle_ms, linger_ms;
	char admin_group[CONFIG_GROUP_SIZE]; /* a name or a number; "": none */
	/* tickets that wait, GPUs and leases at once, of a user and of all; 0: any number */
	unsigned max_waiting, all_waiting;
	unsigned user_gpus, user_jobs, all_gpus, all_jobs;
	int64_t max_time_ms,
		default_time_ms;       /* 0: none; the second is not the longer one */
	unsigned max_priority;         /* that others than root may ask for */
	char prefer[CONFIG_GPUS_SIZE]; /* good for operands.h; "": nothing */
	bool binds;
	char model_option[CONFIG_OPTION_SIZE];
	bool shows_own_commands_only;
	bool records_ends;
	uint64_t history_mib;       /* beyond which the history is put aside */
	unsigned tolerance_percent; /* by which a declaration may be off */
	int64_t retry_delay_ms, retry_delay_max_ms; /* the first is not the longer one */
	bool shares_in_slurm; /* no state directory of its own for a Slurm allocation */
	struct model_table
		models; /* lies in what was read; ->text is NULL: there is none */
	unsigned lines[CONFIG_KEYS]; /* where each was set; 0: it is the default */
};

/* What is in force where nothing is configured. */
void config_default(struct config *config);

/*
 * Reads the @size bytes at @text over what @config holds.  @file is named in the reason.
 * Both have to stay where they are as long as ->models is used.
 * 0, or -EINVAL: @why names file, line and key, and what is allowed; @config is then
 * half-written.  A key that stands twice is an error; lines may end in CR LF.
 */
MUST_CHECK int config_parse(const char *file, const char *text, size_t size,
	struct config *config, struct why *why);

/* "idle-threshold", the name of @key. */
const char *config_key_name(enum config_key key);

/*
 * Appends the value of @key as it may stand in a file: what is read from there is the same.
 * Nothing where no value is set, as it can be of `nvidia-smi` and `admin-group`.
 */
void config_format(const struct config *config, enum config_key key, struct text *out);

#endif
