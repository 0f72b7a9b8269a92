#include <errno.h>

#include "config_values.h"
#include "gpuset.h"
#include "parse.h"
#include "strview.h"
#include "user_limits.h"

/* --- the keys ---------------------------------------------------------------------- */

enum { MANY = 1000000 };

/* clang-format off */
static const struct config_key_def keys[CONFIG_KEYS] = {
#define KEY(key, of_kind, field, if_not, instead) \
	.name = key, .kind = &(of_kind), .offset = offsetof(struct config, field), \
	.initial = if_not, .allowed = instead
	[CONFIG_DIRECTORY] = { KEY("directory", config_path, directory, "/var/lib/gpulease",
		"one like /var/lib/gpulease") },
	[CONFIG_NVIDIA_SMI] = { KEY("nvidia-smi", config_path, nvidia_smi, NULL,
		"one like /usr/bin/nvidia-smi") },
	[CONFIG_PROBE_DEADLINE] = { KEY("probe-deadline", config_duration, probe_deadline_ms, "10s",
		"100ms to 10m"), .range = { 100, 600000 } },
	[CONFIG_IDLE_THRESHOLD] = { KEY("idle-threshold", config_use, idle, "200M",
		"a size, like 200M, or 1% to 100%"), .range = { 1, 100 } },
	[CONFIG_BUSY_UTILIZATION] = { KEY("busy-utilization", config_percentage_or_off,
		busy_percent, "off", "1% to 100%, or off"), .range = { 1, 100 } },
	[CONFIG_MARGIN] = { KEY("margin", config_size, margin_mib, "512M",
		"a size, like 512M, or 0") },
	[CONFIG_SPIKE_BUFFER] = { KEY("spike-buffer", config_percentage, spike_buffer_percent, "10%",
		"0% to 100%"), .range = { 0, 100 } },
	[CONFIG_SETTLE_TIME] = { KEY("settle-time", config_duration, settle_ms, "60s",
		"one like 60s or 5m"), .range = { 0, INT64_MAX } },
	/* a leftover process may need a moment before it uses its GPUs */
	[CONFIG_LINGER_TIME] = { KEY("linger-time", config_duration, linger_ms, "60s",
		"one like 60s or 5m, at least 1s"), .range = { 1000, INT64_MAX } },
	[CONFIG_ADMIN_GROUP] = { KEY("admin-group", config_group, admin_group, NULL,
		"its name or its number") },
	[CONFIG_MAX_WAITING] = { KEY("max-waiting", config_count_or_none, max_waiting, "300",
		"1 to 1000000, or none"), .range = { 1, MANY } },
	[CONFIG_ALL_WAITING] = { KEY("all-waiting", config_count_or_none, all_waiting, "none",
		"1 to 1000000, or none"), .range = { 1, MANY } },
	[CONFIG_USER_GPUS] = { KEY("user-gpus", config_count_or_none, user_gpus, "none",
		"1 to 128, or none"), .range = { 1, GPUSET_MAX } },
	[CONFIG_USER_JOBS] = { KEY("user-jobs", config_count_or_none, user_jobs, "none",
		"1 to 1000000, or none"), .range = { 1, MANY } },
	[CONFIG_ALL_GPUS] = { KEY("all-gpus", config_count_or_none, all_gpus, "none",
		"1 to 128, or none"), .range = { 1, GPUSET_MAX } },
	[CONFIG_ALL_JOBS] = { KEY("all-jobs", config_count_or_none, all_jobs, "none",
		"1 to 1000000, or none"), .range = { 1, MANY } },
	[CONFIG_MAX_TIME] = { KEY("max-time", config_duration_or_none, max_time_ms, "none",
		"one like 90m or 2d, at least 1s, or none"), .range = { 1000, INT64_MAX } },
	[CONFIG_DEFAULT_TIME] = { KEY("default-time", config_duration_or_none,
		default_time_ms, "none", "one like 90m or 2d, at least 1s, or none"),
		.range = { 1000, INT64_MAX } },
	[CONFIG_MAX_PRIORITY] = { KEY("max-priority", config_count, max_priority, "0",
		"0 to 1000000"), .range = { 0, MANY } },
	[CONFIG_FAIR_SHARE] = { KEY("fair-share", config_share, share, "none",
		"one like 15m/7d/24h, or none"), .range = { 1, 30 } },
	[CONFIG_PREFER] = { KEY("prefer", config_gpus, prefer, NULL,
		"at most 16, as 3,0-2 or UUIDs"), .range = { 1, 16 } },
	[CONFIG_BIND] = { KEY("bind", config_choice, binds, "no", "no or yes"),
		.words = { "no", "yes" } },
	[CONFIG_MODEL_OPTION] = { KEY("model-option", config_option, model_option, "--llm",
		"one like --llm, of at most 31 bytes") },
	[CONFIG_SHOW_COMMANDS] = { KEY("show-commands", config_choice, shows_own_commands_only, "all",
		"all or own"), .words = { "all", "own" } },
	[CONFIG_RECORD_ENDS] = { KEY("record-ends", config_choice, records_ends, "no",
		"no or yes"), .words = { "no", "yes" } },
	[CONFIG_HISTORY_SIZE] = { KEY("history-size", config_size, history_mib, "16M",
		"a size, like 16M, from 1M to 1T"), .range = { 1, 1024 * 1024 } },
	[CONFIG_SAMPLE_INTERVAL] = { KEY("sample-interval", config_duration,
		sample_interval_ms, "5s", "1s to 1h"), .range = { 1000, 3600000 } },
	[CONFIG_TOLERANCE] = { KEY("tolerance", config_percentage, tolerance_percent, "10%",
		"0% to 100%"), .range = { 0, 100 } },
	[CONFIG_IDLE_AFTER] = { KEY("idle-after", config_duration_or_none, idle_after_ms, "30m",
		"one like 30m or 2h, at least 1s, or none"), .range = { 1000, INT64_MAX } },
	[CONFIG_IDLE_END] = { KEY("idle-end", config_duration_or_none, idle_end_ms, "none",
		"one like 2h, at least 1s, or none"), .range = { 1000, INT64_MAX } },
	[CONFIG_IDLE_BELOW] = { KEY("idle-below", config_percentage, idle_below_percent, "1%",
		"1% to 100%"), .range = { 1, 100 } },
	[CONFIG_IDLE_INTERVAL] = { KEY("idle-interval", config_duration, idle_interval_ms, "60s",
		"100ms to 1h"), .range = { 100, 3600000 } },
	[CONFIG_RETRY_DELAY] = { KEY("retry-delay", config_duration, retry_delay_ms, "5s",
		"one like 5s or 1m"), .range = { 0, INT64_MAX } },
	[CONFIG_RETRY_DELAY_MAX] = { KEY("retry-delay-max", config_duration,
		retry_delay_max_ms, "5m", "one like 5m or 1h"), .range = { 0, INT64_MAX } },
	[CONFIG_SLURM_ALLOCATION] = { KEY("slurm-allocation", config_choice, shares_in_slurm,
		"own", "own or shared"), .words = { "own", "shared" } },
	[CONFIG_ENGINE] = { KEY("engine", config_choice, uses_slurm, "local",
		"local or slurm"), .words = { "local", "slurm" } },
#undef KEY
};
/* clang-format on */

static void *config_field(struct config *config, const struct config_key_def *def)
{
	return (char *)config + def->offset;
}

const struct config_key_def *config_find_def(enum config_key key)
{
	return &keys[key];
}

static const struct config_key_def *config_find_key(struct strview name)
{
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (strview_is(name, keys[key].name))
			return &keys[key];
	return NULL;
}

/* Suggests the keys with the same first letter; all keys would not fit into the message. */
static int config_explain_unknown(struct strview name, struct why *why)
{
	char names[sizeof(why->text)];
	struct text list = TEXT_ON(names);

	for (int key = 0; key < CONFIG_KEYS; key++)
		if (strview_size(name) && (*name.begin | 0x20) == keys[key].name[0])
			text_addf(&list, "%s%s", list.used ? ", " : "", keys[key].name);
	why_set(why, "unknown key '%s'",
		quote_bytes(name.begin, strview_size(name)).text);
	why_add_remedy(why, "%s%s%ssee gpulease.conf(5)", list.used ? "is it " : "",
		names, list.used ? "? " : "");
	return -EINVAL;
}

/* --- lines ------------------------------------------------------------------------- */

int config_read_value(struct config *config, const struct config_key_def *def,
	struct strview text, struct why *why)
{
	const char *noun = def->kind->noun;
	char value[CONFIG_VALUE_SIZE];
	int r;

	if (text.begin == text.end) {
		why_set(why, "%s: the value is missing", def->name);
		why_add_remedy(why, "write %s", def->allowed);
		return -EINVAL;
	}
	if (strview_size(text) >= sizeof(value) ||
		memchr(text.begin, '\0', strview_size(text))) {
		why_set(why, "%s: '%s' %s", def->name,
			quote_bytes(text.begin, strview_size(text)).text,
			strview_size(text) >= sizeof(value) ? "is too long"
							    : "has a NUL in it");
		why_add_remedy(why, "write %s", def->allowed);
		return -EINVAL;
	}
	memcpy(value, text.begin, strview_size(text));
	value[strview_size(text)] = '\0';
	r = def->kind->read(def, value, config_field(config, def));
	if (r < 0) {
		why_set(why, "%s: '%s' is %s%s", def->name, quote(value).text,
			r == -ERANGE ? "out of range" : "not ", r == -ERANGE ? "" : noun);
		why_add_remedy(why, "write %s", def->allowed);
	}
	return r < 0 ? -EINVAL : 0;
}

int config_set(
	struct config *config, enum config_key key, const char *value, struct why *why)
{
	return config_read_value(config, &keys[key],
		(struct strview){ value, value + strlen(value) }, why);
}

static int config_read_setting(
	struct strview text, unsigned number, struct config *config, struct why *why)
{
	struct strview left = strview_before(text, '='), name = strview_trim(left);
	const struct config_key_def *def = config_find_key(name);
	unsigned *first;

	if (!def)
		return config_explain_unknown(name, why);
	first = &config->lines[def - keys];
	if (*first) {
		why_set(why, "%s: is set twice, also in line %u", def->name, *first);
		why_add_remedy(why, "remove one");
		return -EINVAL;
	}
	if (left.end == text.end) {
		why_set(why, "%s: the = is missing", def->name);
		why_add_remedy(why, "write %s = VALUE", def->name);
		return -EINVAL;
	}
	*first = number;
	return config_read_value(config, def,
		strview_trim((struct strview){ left.end + 1, text.end }), why);
}

/* --- all of it --------------------------------------------------------------------- */

/*
 * Checks values that depend on each other, whatever the order of the lines.  Returns the line to
 * name in the message, or 0 if all is well.
 */
static unsigned config_check_pairs(const struct config *config, struct why *why)
{
	const struct {
		enum config_key shorter, longer;
		int64_t shorter_ms, longer_ms;
		bool has_end; /* false: the longer one is without limit */
	} pairs[] = {
		{ CONFIG_DEFAULT_TIME, CONFIG_MAX_TIME, config->default_time_ms,
			config->max_time_ms, config->max_time_ms != 0 },
		{ CONFIG_RETRY_DELAY, CONFIG_RETRY_DELAY_MAX, config->retry_delay_ms,
			config->retry_delay_max_ms, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		unsigned line = config->lines[pairs[i].shorter];
		char longest[64];
		struct text text = TEXT_ON(longest);

		if (!pairs[i].has_end || pairs[i].shorter_ms <= pairs[i].longer_ms)
			continue;
		config_format(config, pairs[i].longer, &text);
		why_set(why, "%s: is longer than %s, which is %s",
			keys[pairs[i].shorter].name, keys[pairs[i].longer].name, longest);
		/* if the shorter one is a default, the file has set the longer one */
		return line ? line : config->lines[pairs[i].longer];
	}
	return 0;
}

/* A key below [models] is a mistake: it would be read as a model and have no effect. */
static int config_check_models(const struct model_table *models, struct why *why)
{
	struct strview rest = { models->text, models->text + models->size };

	for (unsigned line = models->line; rest.begin < rest.end; line++) {
		struct strview text = strview_take_line(&rest);
		const struct config_key_def *def =
			config_find_key(strview_trim(strview_before(text, '=')));

		if (def || strview_is(text, "[limits]")) {
			why_set(why, "%s, line %u: %s: is a key, not a model",
				models->file, line, def ? def->name : "[limits]");
			why_add_remedy(why, "write keys above [models]");
			return -EINVAL;
		}
	}
	return models_check(models, why);
}

enum config_line_outcome { CONFIG_LINE_MODELS = 1 };

/*
 * Reads one line that is not empty.  Returns 0; CONFIG_LINE_MODELS if the table of models begins
 * after it; or -EINVAL.  ->limits.text has to end where the text ends.
 */
static int config_read_line(
	struct strview text, unsigned number, struct config *config, struct why *why)
{
	struct limits_table *limits = &config->limits;

	if (*text.begin != '[')
		return limits->line ? limits_check(config, text, number, why)
				    : config_read_setting(text, number, config, why);
	if (strview_is(text, "[models]"))
		return CONFIG_LINE_MODELS;
	if (strview_is(text, "[limits]") && !limits->line) {
		limits->text.begin = text.end;
		limits->line = number;
		return 0;
	}
	why_set(why, "unknown section '%s'",
		quote_bytes(text.begin, strview_size(text)).text);
	why_add_remedy(why, "there may be one [limits], and after it [models]");
	return -EINVAL;
}

int config_parse(const char *file, const char *text, size_t size, struct config *config,
	struct why *why)
{
	struct strview rest = { text, text + size };
	struct why reason = WHY_NONE;
	unsigned number = 0, wrong;
	int r = 0;

	config->limits = (struct limits_table){ .file = file, .text.end = text + size };
	while (r == 0 && rest.begin < rest.end) {
		struct strview line = strview_take_line(&rest);

		number++;
		if (strview_size(line))
			r = config_read_line(line, number, config, &reason);
	}
	wrong = r < 0 ? number : config_check_pairs(config, &reason);
	if (wrong) {
		why_wrap(why, &reason, "%s, line %u: ", file, wrong);
		return -EINVAL;
	}
	if (r != CONFIG_LINE_MODELS)
		return 0;
	config->models = (struct model_table){
		.file = file,
		.text = rest.begin,
		.size = strview_size(rest),
		.line = number + 1,
	};
	return config_check_models(&config->models, why);
}

void config_default(struct config *config)
{
	*config = (struct config){ .lines = { 0 } };
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (keys[key].initial)
			(void)!keys[key].kind->read(&keys[key], keys[key].initial,
				config_field(config, &keys[key]));
}

const char *config_key_name(enum config_key key)
{
	return keys[key].name;
}

void config_format(const struct config *config, enum config_key key, struct text *out)
{
	keys[key].kind->format(&keys[key], (const char *)config + keys[key].offset, out);
}

int64_t config_share_late_ms(const struct config_share *share, uint64_t gpu_ms)
{
	/* whole seconds, and no more of them than make the maximum: the product stays small */
	uint64_t gpu_s = gpu_ms / 1000;
	uint64_t most_s = (uint64_t)(share->most_ms / share->rate_ms + 1) * 3600;

	if (gpu_s > most_s)
		gpu_s = most_s;
	return min_i64(
		(int64_t)(gpu_s * (uint64_t)share->rate_ms / 3600), share->most_ms);
}
