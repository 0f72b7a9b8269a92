/*
 * The administrator's configuration: one `key = value` per line; `#` begins a comment.  Every key
 * has a default.  After a line `[limits]` come the limits of users and groups (user_limits.h).
 * After a line `[models]` the rest is the table of models (models.h).  Pure: it reads a text, not a
 * file.
 */
#ifndef GPULEASE_CONFIG_H
#define GPULEASE_CONFIG_H

#include "models.h"
#include "strview.h"
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
	CONFIG_FAIR_SHARE,
	CONFIG_PREFER,
	CONFIG_BIND,
	CONFIG_MODEL_OPTION,
	CONFIG_SHOW_COMMANDS,
	CONFIG_RECORD_ENDS,
	CONFIG_HISTORY_SIZE,
	CONFIG_SAMPLE_INTERVAL,
	CONFIG_TOLERANCE,
	CONFIG_IDLE_AFTER,
	CONFIG_IDLE_END,
	CONFIG_IDLE_BELOW,
	CONFIG_IDLE_INTERVAL,
	CONFIG_RETRY_DELAY,
	CONFIG_RETRY_DELAY_MAX,
	CONFIG_SLURM_ALLOCATION,
	CONFIG_ENGINE,
	CONFIG_KEYS
};

/* The used memory up to which a GPU counts as idle. */
struct config_threshold {
	uint64_t mib;     /* counts if ->percent is 0 */
	unsigned percent; /* of the GPU's memory */
};

/* The lines of [limits].  The caller owns the texts, which have to outlive this struct. */
struct limits_table {
	const char *file; /* its name in messages */
	struct strview
		text; /* from the end of the line `[limits]` on; ->begin NULL: no table */
	unsigned line; /* the number of the line `[limits]` */
};

/* By how much a job of a user that had GPU-hours counts as having come later. */
struct config_share {
	int64_t rate_ms;   /* for each GPU-hour; 0: not at all */
	int64_t window_ms; /* of the last so many days */
	int64_t most_ms;   /* at most */
};

struct config {
	char directory[CONFIG_PATH_SIZE];  /* absolute */
	char nvidia_smi[CONFIG_PATH_SIZE]; /* absolute; "": search PATH */
	int64_t probe_deadline_ms;
	struct config_threshold idle;
	unsigned busy_percent; /* 0: utilization does not matter */
	uint64_t margin_mib;
	unsigned spike_buffer_percent;
	int64_t settle_ms, linger_ms;
	char admin_group[CONFIG_GROUP_SIZE]; /* a name or a number; "": none */
	/* limits on waiting tickets, GPUs and leases, per user and for all; 0: no limit */
	unsigned max_waiting, all_waiting;
	unsigned user_gpus, user_jobs, all_gpus, all_jobs;
	/* 0: no limit; the default is at most the maximum, if there is one */
	int64_t max_time_ms, default_time_ms;
	unsigned max_priority; /* for all users except root */
	struct config_share share;
	char prefer[CONFIG_GPUS_SIZE]; /* well-formed for operands.h; "": no preference */
	bool binds;
	char model_option[CONFIG_OPTION_SIZE];
	bool shows_own_commands_only;
	bool records_ends;
	uint64_t history_mib;       /* the size at which `history` becomes `history.1` */
	int64_t sample_interval_ms; /* of the memory of supervised jobs */
	/* a declaration may differ from the use by this much */
	unsigned tolerance_percent;
	/* of jobs that do not use their GPUs, see use_rule.h; 0: none */
	int64_t idle_after_ms, idle_end_ms;
	unsigned idle_below_percent;
	int64_t idle_interval_ms;                   /* between two samples for that */
	int64_t retry_delay_ms, retry_delay_max_ms; /* the first is at most the second */
	bool shares_in_slurm; /* a Slurm allocation gets no state directory of its own */
	bool uses_slurm;      /* jobs run on the Slurm cluster (engine_choice.h) */
	struct limits_table limits;
	/* part of the text that was read; ->text NULL: no table */
	struct model_table models;
	/* the line that sets the key; 0: it has its default */
	unsigned lines[CONFIG_KEYS];
};

/* Returns by how much a job counts as later for @gpu_ms GPU-milliseconds.  Pure. */
int64_t config_share_late_ms(const struct config_share *share, uint64_t gpu_ms);

/* Sets every key to its default. */
void config_default(struct config *config);

/*
 * Reads the @size bytes at @text into *@config, over the values that it holds.  @file is the name
 * for messages.  Both texts have to outlive the use of ->limits and ->models.  Returns 0; or
 * -EINVAL, and @why names the file, the line, the key and the allowed values; @config is
 * half-written then.  A key that is set twice is an error.  Lines may end with CR LF.
 */
MUST_CHECK int config_parse(const char *file, const char *text, size_t size,
	struct config *config, struct why *why);

/*
 * Reads @value as the value of @key into @config.  Returns 0; or -EINVAL, and @why names the key
 * and the allowed values.
 */
MUST_CHECK int config_set(
	struct config *config, enum config_key key, const char *value, struct why *why);

/* Returns the name of @key, "idle-threshold". */
const char *config_key_name(enum config_key key);

/*
 * Appends the value of @key in the form for a file; reading it gives the same value.  Appends
 * nothing if there is no value, as is possible for `nvidia-smi`, `admin-group` and `prefer`.
 */
void config_format(const struct config *config, enum config_key key, struct text *out);

#endif
