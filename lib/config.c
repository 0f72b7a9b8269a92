#include <errno.h>

#include "config_values.h"
#include "gpuset.h"
#include "parse.h"
#include "part.h"

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
	[CONFIG_IDLE_THRESHOLD] = { KEY("idle-threshold", config_use, idle, "200MiB",
		"a size, like 200MiB, or 1% to 100%"), .range = { 1, 100 } },
	[CONFIG_BUSY_UTILIZATION] = { KEY("busy-utilization", config_percentage_or_off,
		busy_percent, "off", "1% to 100%, or off"), .range = { 1, 100 } },
	[CONFIG_MARGIN] = { KEY("margin", config_size, margin_mib, "512MiB",
		"a size, like 512MiB, or 0") },
	[CONFIG_SPIKE_BUFFER] = { KEY("spike-buffer", config_percentage, spike_buffer_percent, "10%",
		"0% to 100%"), .range = { 0, 100 } },
	[CONFIG_SETTLE_TIME] = { KEY("settle-time", config_duration, settle_ms, "60s",
		"one like 60s or 5m"), .range = { 0, INT64_MAX } },
	/* what a job leaves behind may need a moment before it uses its GPUs */
	[CONFIG_LINGER_TIME] = { KEY("linger-time", config_duration, linger_ms, "60s",
		"one like 60s or 5m, at least 1s"), .range = { 1000, INT64_MAX } },
	[CONFIG_ADMIN_GROUP] = { KEY("admin-group", config_group, admin_group, NULL,
		"its name or its number") },
	[CONFIG_MAX_WAITING] = { KEY("max-waiting", config_count_or_none, max_waiting, "1000",
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
	[CONFIG_HISTORY_SIZE] = { KEY("history-size", config_size, history_mib, "16MiB",
		"a size, like 16MiB, from 1MiB to 1T"), .range = { 1, 1024 * 1024 } },
	[CONFIG_TOLERANCE] = { KEY("tolerance", config_percentage, tolerance_percent, "10%",
		"0% to 100%"), .range = { 0, 100 } },
	[CONFIG_RETRY_DELAY] = { KEY("retry-delay", config_duration, retry_delay_ms, "5s",
		"one like 5s or 1m"), .range = { 0, INT64_MAX } },
	[CONFIG_RETRY_DELAY_MAX] = { KEY("retry-delay-max", config_duration,
		retry_delay_max_ms, "5m", "one like 5m or 1h"), .range = { 0, INT64_MAX } },
	[CONFIG_SLURM_ALLOCATION] = { KEY("slurm-allocation", config_choice, shares_in_slurm,
		"own", "own or shared"), .words = { "own", "shared" } },
#undef KEY
};
/* clang-format on */

static void *field_of(struct config *config, const struct config_key_def *def)
{
	return (char *)config + def->offset;
}

static const struct config_key_def *find_key(struct part name)
{
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (part_is(name, keys[key].name))
			return &keys[key];
	return NULL;
}

/* Names those that begin in the same way: all of them are too many for a line. */
static int explain_unknown(struct part name, struct why *why)
{
	char names[sizeof(why->text)];
	struct text list = TEXT_ON(names);

	for (int key = 0; key < CONFIG_KEYS; key++)
		if (part_size(name) && (*name.begin | 0x20) == keys[key].name[0])
			text_addf(&list, "%s%s", list.used ? ", " : "", keys[key].name);
	why_set(why, "unknown key '%s'; %s%s%ssee gpulease.conf(5)",
		quote_bytes(name.begin, part_size(name)).text, list.used ? "is it " : "",
		names, list.used ? "? " : "");
	return -EINVAL;
}

/* --- lines ------------------------------------------------------------------------- */

static int set_value(struct config *config, const struct config_key_def *def,
	struct part part, struct why *why)
{
	const char *noun = def->kind->noun;
	char value[CONFIG_VALUE_SIZE];
	int r;

	if (part.begin == part.end) {
		why_set(why, "%s: the value is missing; write %s", def->name,
			def->allowed);
		return -EINVAL;
	}
	if (part_size(part) >= sizeof(value) ||
		memchr(part.begin, '\0', part_size(part))) {
		why_set(why, "%s: '%s' %s; write %s", def->name,
			quote_bytes(part.begin, part_size(part)).text,
			part_size(part) >= sizeof(value) ? "is too long"
							 : "has a NUL in it",
			def->allowed);
		return -EINVAL;
	}
	memcpy(value, part.begin, part_size(part));
	value[part_size(part)] = '\0';
	r = def->kind->read(def, value, field_of(config, def));
	if (r < 0)
		why_set(why, "%s: '%s' is %s%s; write %s", def->name, quote(value).text,
			r == -ERANGE ? "out of range" : "not ", r == -ERANGE ? "" : noun,
			def->allowed);
	return r < 0 ? -EINVAL : 0;
}

static int read_line(
	struct part text, unsigned number, struct config *config, struct why *why)
{
	struct part left = part_before(text, '='), name = part_trim(left);
	const struct config_key_def *def = find_key(name);
	unsigned *first;

	if (!def)
		return explain_unknown(name, why);
	first = &config->lines[def - keys];
	if (*first) {
		why_set(why, "%s: is set twice; write it once, it stands in line %u too",
			def->name, *first);
		return -EINVAL;
	}
	if (left.end == text.end) {
		why_set(why, "%s: the = is missing; write %s = VALUE", def->name,
			def->name);
		return -EINVAL;
	}
	*first = number;
	return set_value(
		config, def, part_trim((struct part){ left.end + 1, text.end }), why);
}

/* --- all of it --------------------------------------------------------------------- */

/* What does not go together, whatever the order of the lines; the line to be named, or 0. */
static unsigned check_pairs(const struct config *config, struct why *why)
{
	const struct {
		enum config_key shorter, longer;
		int64_t shorter_ms, longer_ms;
		bool has_end; /* else it may be as long as it wants */
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
		/* the other one may be what was set */
		return line ? line : config->lines[pairs[i].longer];
	}
	return 0;
}

/* What stands below [models] by mistake would be a model, and not be in force. */
static int check_models(const struct model_table *models, struct why *why)
{
	struct part rest = { models->text, models->text + models->size };

	for (unsigned line = models->line; rest.begin < rest.end; line++) {
		const struct config_key_def *def =
			find_key(part_trim(part_before(part_take_line(&rest), '=')));

		if (def) {
			why_set(why,
				"%s, line %u: %s: is a setting, and no model; settings "
				"stand above [models]",
				models->file, line, def->name);
			return -EINVAL;
		}
	}
	return models_check(models, why);
}

/* One line that is not empty; MODELS_FOLLOW where the table of models begins behind it. */
enum { MODELS_FOLLOW = 1 };

static int read_any(
	struct part text, unsigned number, struct config *config, struct why *why)
{
	if (*text.begin != '[')
		return read_line(text, number, config, why);
	if (part_is(text, "[models]"))
		return MODELS_FOLLOW;
	why_set(why, "unknown section '%s'; the only one is [models]",
		quote_bytes(text.begin, part_size(text)).text);
	return -EINVAL;
}

int config_parse(const char *file, const char *text, size_t size, struct config *config,
	struct why *why)
{
	struct part rest = { text, text + size };
	struct why reason = WHY_NONE;
	unsigned number = 0, wrong;
	int r = 0;

	while (r == 0 && rest.begin < rest.end) {
		struct part line = part_take_line(&rest);

		number++;
		if (part_size(line))
			r = read_any(line, number, config, &reason);
	}
	wrong = r < 0 ? number : check_pairs(config, &reason);
	if (wrong) {
		why_set(why, "%s, line %u: %s", file, wrong, reason.text);
		return -EINVAL;
	}
	if (r != MODELS_FOLLOW)
		return 0;
	config->models = (struct model_table){
		.file = file,
		.text = rest.begin,
		.size = part_size(rest),
		.line = number + 1,
	};
	return check_models(&config->models, why);
}

void config_default(struct config *config)
{
	*config = (struct config){ .lines = { 0 } };
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (keys[key].initial)
			(void)!keys[key].kind->read(&keys[key], keys[key].initial,
				field_of(config, &keys[key]));
}

const char *config_key_name(enum config_key key)
{
	return keys[key].name;
}

void config_format(const struct config *config, enum config_key key, struct text *out)
{
	keys[key].kind->format(&keys[key], (const char *)config + keys[key].offset, out);
}
