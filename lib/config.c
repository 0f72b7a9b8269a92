#include <errno.h>

#include "config.h"
#include "parse.h"

/* The longest value, also of a path. */
enum { VALUE_SIZE = CONFIG_PATH_SIZE };

enum value_kind {
	VALUE_PATH,      /* char[CONFIG_PATH_SIZE] */
	VALUE_GROUP,     /* char[CONFIG_GROUP_SIZE] */
	VALUE_DURATION,  /* int64_t, milliseconds */
	VALUE_THRESHOLD, /* struct config_threshold */
	VALUE_SIZE_MIB,  /* uint64_t */
	VALUE_PERCENT,   /* unsigned */
	VALUE_PERCENT_OFF,
	VALUE_COUNT, /* unsigned; 0 written as none */
	VALUE_WORD,  /* bool: the second of two words */
};

static const struct key_def {
	const char *name;
	enum value_kind kind;
	size_t offset;
	const char *words[2]; /* VALUE_WORD: for false, for true */
	const char *initial;
} keys[CONFIG_KEYS] = {
#define AT(field) offsetof(struct config, field)
	[CONFIG_DIRECTORY] = { "directory", VALUE_PATH, AT(directory),
		.initial = "/var/lib/gpulease" },
	[CONFIG_NVIDIA_SMI] = { "nvidia-smi", VALUE_PATH, AT(nvidia_smi) },
	[CONFIG_PROBE_DEADLINE] = { "probe-deadline", VALUE_DURATION,
		AT(probe_deadline_ms), .initial = "10s" },
	[CONFIG_IDLE_THRESHOLD] = { "idle-threshold", VALUE_THRESHOLD, AT(idle),
		.initial = "200MiB" },
	[CONFIG_BUSY_UTILIZATION] = { "busy-utilization", VALUE_PERCENT_OFF,
		AT(busy_percent), .initial = "off" },
	[CONFIG_MARGIN] = { "margin", VALUE_SIZE_MIB, AT(margin_mib),
		.initial = "512MiB" },
	[CONFIG_SPIKE_BUFFER] = { "spike-buffer", VALUE_PERCENT, AT(spike_buffer_percent),
		.initial = "10%" },
	[CONFIG_SETTLE_TIME] = { "settle-time", VALUE_DURATION, AT(settle_ms),
		.initial = "60s" },
	[CONFIG_LINGER_TIME] = { "linger-time", VALUE_DURATION, AT(linger_ms),
		.initial = "60s" },
	[CONFIG_ADMIN_GROUP] = { "admin-group", VALUE_GROUP, AT(admin_group) },
	[CONFIG_MAX_WAITING] = { "max-waiting", VALUE_COUNT, AT(max_waiting),
		.initial = "1000" },
	[CONFIG_SHOW_COMMANDS] = { "show-commands", VALUE_WORD,
		AT(shows_own_commands_only), { "all", "own" }, "all" },
	[CONFIG_RECORD_ENDS] = { "record-ends", VALUE_WORD, AT(records_ends),
		{ "no", "yes" }, "no" },
#undef AT
};

/* --- values ------------------------------------------------------------------------ */

static int read_path(const char *value, char *out, struct why *why)
{
	if (value[0] != '/' || strlen(value) >= CONFIG_PATH_SIZE) {
		why_set(why, "'%s' is not an absolute path of at most %d bytes",
			quote(value).text, CONFIG_PATH_SIZE - 1);
		return -EINVAL;
	}
	text_copy(out, CONFIG_PATH_SIZE, value);
	return 0;
}

static int read_group(const char *value, char *out, struct why *why)
{
	if (strlen(value) >= CONFIG_GROUP_SIZE || strpbrk(value, " \t:,")) {
		why_set(why, "'%s' is not the name of a group", quote(value).text);
		return -EINVAL;
	}
	text_copy(out, CONFIG_GROUP_SIZE, value);
	return 0;
}

/* `5%`: a whole number from @least to 100; the sign must stand there. */
static int read_percent(const char *value, unsigned least, unsigned *ret)
{
	size_t digits = strspn(value, "0123456789");
	char number[4];
	uint64_t percent;

	if (digits == 0 || digits >= sizeof(number) || strcmp(value + digits, "%") != 0)
		return -EINVAL;
	memcpy(number, value, digits);
	number[digits] = '\0';
	if (parse_u64(number, 100, &percent, NULL) < 0 || percent < least)
		return -EINVAL;
	*ret = (unsigned)percent;
	return 0;
}

static int read_threshold(
	const char *value, struct config_threshold *ret, struct why *why)
{
	struct config_threshold out = { 0 };

	if (read_percent(value, 1, &out.percent) < 0 &&
		parse_size_mib(value, &out.mib, NULL) < 0) {
		why_set(why, "'%s' is neither a size, like 200MiB, nor 1%% to 100%%",
			quote(value).text);
		return -EINVAL;
	}
	*ret = out;
	return 0;
}

static int read_count(const char *value, unsigned *ret, struct why *why)
{
	uint64_t count = 0;

	if (strcmp(value, "none") != 0 &&
		(parse_u64(value, 1000000, &count, NULL) < 0 || !count)) {
		why_set(why, "'%s' is not a number from 1 to 1000000, or none",
			quote(value).text);
		return -EINVAL;
	}
	*ret = (unsigned)count;
	return 0;
}

static int read_word(
	const struct key_def *def, const char *value, bool *ret, struct why *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(def->words); i++)
		if (strcmp(value, def->words[i]) == 0) {
			*ret = i == 1;
			return 0;
		}
	why_set(why, "'%s' is neither %s nor %s", quote(value).text, def->words[0],
		def->words[1]);
	return -EINVAL;
}

static int read_value(
	const struct key_def *def, const char *value, void *at, struct why *why)
{
	int r;

	switch (def->kind) {
	case VALUE_PATH:
		return read_path(value, at, why);
	case VALUE_GROUP:
		return read_group(value, at, why);
	case VALUE_DURATION:
		return parse_duration_ms(value, at, why);
	case VALUE_THRESHOLD:
		return read_threshold(value, at, why);
	case VALUE_SIZE_MIB:
		return parse_size_mib(value, at, why);
	case VALUE_PERCENT_OFF:
		if (strcmp(value, "off") == 0) {
			*(unsigned *)at = 0;
			return 0;
		}
		r = read_percent(value, 1, at);
		if (r < 0)
			why_set(why, "'%s' is neither 1%% to 100%% nor off",
				quote(value).text);
		return r;
	case VALUE_PERCENT:
		r = read_percent(value, 0, at);
		if (r < 0)
			why_set(why, "'%s' is not 0%% to 100%%", quote(value).text);
		return r;
	case VALUE_COUNT:
		return read_count(value, at, why);
	case VALUE_WORD:
		return read_word(def, value, at, why);
	}
	return -EINVAL;
}

static void format_value(const struct key_def *def, const void *at, struct text *out)
{
	const struct config_threshold *threshold = at;
	int64_t ms;

	switch (def->kind) {
	case VALUE_PATH:
	case VALUE_GROUP:
		text_add(out, at);
		break;
	case VALUE_DURATION:
		ms = *(const int64_t *)at;
		text_addf(out, ms % 1000 ? "%lldms" : "%llds",
			(long long)(ms % 1000 ? ms : ms / 1000));
		break;
	case VALUE_THRESHOLD:
		if (threshold->percent)
			text_addf(out, "%u%%", threshold->percent);
		else
			text_addf(out, "%lluMiB", (unsigned long long)threshold->mib);
		break;
	case VALUE_SIZE_MIB:
		text_addf(out, "%lluMiB", (unsigned long long)*(const uint64_t *)at);
		break;
	case VALUE_PERCENT_OFF:
	case VALUE_PERCENT:
		if (def->kind == VALUE_PERCENT_OFF && !*(const unsigned *)at)
			text_add(out, "off");
		else
			text_addf(out, "%u%%", *(const unsigned *)at);
		break;
	case VALUE_COUNT:
		if (*(const unsigned *)at)
			text_addf(out, "%u", *(const unsigned *)at);
		else
			text_add(out, "none");
		break;
	case VALUE_WORD:
		text_add(out, def->words[*(const bool *)at]);
		break;
	}
}

/* --- lines ------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Narrows [*@begin, *@end) to what is between blanks. */
static void trim(const char **begin, const char **end)
{
	while (*begin < *end && is_blank(**begin))
		(*begin)++;
	while (*end > *begin && is_blank((*end)[-1]))
		(*end)--;
}

static int find_key(const char *name, size_t size)
{
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (strlen(keys[key].name) == size &&
			memcmp(keys[key].name, name, size) == 0)
			return key;
	return -1;
}

static void list_keys(struct text *out)
{
	for (int key = 0; key < CONFIG_KEYS; key++)
		text_addf(out, "%s%s", key ? ", " : "", keys[key].name);
}

static int read_line(const char *begin, const char *end, unsigned line,
	struct config *config, struct why *why)
{
	const char *comment = memchr(begin, '#', (size_t)(end - begin));
	const char *equals, *name_end, *value_begin;
	char value[VALUE_SIZE], list[300];
	struct text names = TEXT_ON(list);
	struct why reason = WHY_NONE;
	int key;

	end = comment ? comment : end;
	trim(&begin, &end);
	if (begin == end)
		return 0;
	equals = memchr(begin, '=', (size_t)(end - begin));
	name_end = equals ? equals : end;
	trim(&begin, &name_end);
	key = find_key(begin, (size_t)(name_end - begin));
	if (key < 0) {
		list_keys(&names);
		why_set(why, "unknown key '%s'; the keys are %s",
			quote_bytes(begin, (size_t)(name_end - begin)).text, list);
		return -EINVAL;
	}
	if (!equals || config->lines[key]) {
		why_set(why,
			equals ? "%s: is set twice, first in line %u"
			       : "%s: '= value' is missing",
			keys[key].name, config->lines[key]);
		return -EINVAL;
	}
	value_begin = equals + 1;
	trim(&value_begin, &end);
	if (value_begin == end || (size_t)(end - value_begin) >= sizeof(value) ||
		memchr(value_begin, '\0', (size_t)(end - value_begin))) {
		why_set(why, "%s: its value is %s", keys[key].name,
			value_begin == end ? "empty" : "too long or has a NUL in it");
		return -EINVAL;
	}
	memcpy(value, value_begin, (size_t)(end - value_begin));
	value[end - value_begin] = '\0';
	if (read_value(&keys[key], value, (char *)config + keys[key].offset, &reason) <
		0) {
		why_set(why, "%s: %s", keys[key].name, reason.text);
		return -EINVAL;
	}
	config->lines[key] = line;
	return 0;
}

int config_parse(const char *file, const char *text, size_t size, struct config *config,
	struct why *why)
{
	const char *end = text + size;
	struct why reason = WHY_NONE;
	unsigned line = 1;

	for (const char *at = text; at < end; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = stop ? stop : end;

		if (read_line(at, line_end, line, config, &reason) < 0) {
			why_set(why, "%s, line %u: %s", file, line, reason.text);
			return -EINVAL;
		}
		at = line_end + 1;
	}
	return 0;
}

void config_default(struct config *config)
{
	*config = (struct config){ .lines = { 0 } };
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (keys[key].initial)
			(void)!read_value(&keys[key], keys[key].initial,
				(char *)config + keys[key].offset, NULL);
}

const char *config_key_name(enum config_key key)
{
	return keys[key].name;
}

void config_format(const struct config *config, enum config_key key, struct text *out)
{
	format_value(&keys[key], (const char *)config + keys[key].offset, out);
}
