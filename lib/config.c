#include <errno.h>

#include "config.h"
#include "parse.h"

/* Room for any value; the longest is a path. */
enum { VALUE_SIZE = CONFIG_PATH_SIZE };

struct key_def {
	const char *name;
	const struct value_kind *kind;
	size_t offset;       /* of what the kind keeps, in struct config */
	const char *initial; /* NULL: nothing is set */
	const char *allowed; /* what to write, for who has written something else */
	struct {
		int64_t least, most;
	} range;              /* percent or ms */
	const char *words[2]; /* of a choice: for false, for true */
};

/* How a value is read from a text into @at, and written as one. */
struct value_kind {
	const char *noun; /* "'x' is not a duration" */
	/* 0; -EINVAL: it is none; -ERANGE: it is one, but not in the key's range */
	int (*read)(const struct key_def *def, const char *value, void *at);
	void (*format)(const struct key_def *def, const void *at, struct text *out);
};

/* --- kinds of values --------------------------------------------------------------- */

static int read_path(const struct key_def *def, const char *value, void *at)
{
	(void)def;
	if (value[0] != '/')
		return -EINVAL;
	text_copy(at, CONFIG_PATH_SIZE, value);
	return 0;
}

static int read_group(const struct key_def *def, const char *value, void *at)
{
	(void)def;
	if (strlen(value) >= CONFIG_GROUP_SIZE || strpbrk(value, " \t:,"))
		return -EINVAL;
	text_copy(at, CONFIG_GROUP_SIZE, value);
	return 0;
}

static void format_path(const struct key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_add(out, at);
}

static void format_group(const struct key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_add(out, at);
}

/* int64_t, in milliseconds */
static int read_milliseconds(const struct key_def *def, const char *value, void *at)
{
	int64_t ms;

	if (parse_duration_ms(value, &ms, NULL) < 0)
		return -EINVAL;
	if (ms < def->range.least || ms > def->range.most)
		return -ERANGE;
	*(int64_t *)at = ms;
	return 0;
}

static void format_milliseconds(
	const struct key_def *def, const void *at, struct text *out)
{
	int64_t ms = *(const int64_t *)at;

	(void)def;
	text_addf(out, ms % 1000 ? "%lldms" : "%llds",
		(long long)(ms % 1000 ? ms : ms / 1000));
}

/* uint64_t, in MiB; a bare 0 is the one way to write none */
static int read_size(const struct key_def *def, const char *value, void *at)
{
	(void)def;
	if (strcmp(value, "0") == 0)
		*(uint64_t *)at = 0;
	else if (parse_size_mib(value, at, NULL) < 0)
		return -EINVAL;
	return 0;
}

static void format_size(const struct key_def *def, const void *at, struct text *out)
{
	uint64_t mib = *(const uint64_t *)at;

	(void)def;
	text_addf(out, mib ? "%lluMiB" : "%llu", (unsigned long long)mib);
}

/* unsigned; a whole number whose sign must stand there */
static int read_percent(const struct key_def *def, const char *value, void *at)
{
	size_t size = strlen(value);
	char number[VALUE_SIZE];
	uint64_t percent;

	if (size < 2 || value[size - 1] != '%')
		return -EINVAL;
	text_copy(number, size, value); /* all but the sign */
	if (parse_u64(number, UINT32_MAX, &percent, NULL) < 0)
		return -EINVAL;
	if ((int64_t)percent < def->range.least || (int64_t)percent > def->range.most)
		return -ERANGE;
	*(unsigned *)at = (unsigned)percent;
	return 0;
}

static void format_percent(const struct key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_addf(out, "%u%%", *(const unsigned *)at);
}

/* The same, 0 written as off. */
static int read_percent_or_off(const struct key_def *def, const char *value, void *at)
{
	if (strcmp(value, "off") != 0)
		return read_percent(def, value, at);
	*(unsigned *)at = 0;
	return 0;
}

static void format_percent_or_off(
	const struct key_def *def, const void *at, struct text *out)
{
	if (*(const unsigned *)at)
		format_percent(def, at, out);
	else
		text_add(out, "off");
}

static int read_threshold(const struct key_def *def, const char *value, void *at)
{
	struct config_threshold read = { 0 };
	int r = read_percent(def, value, &read.percent);

	if (r == -EINVAL)
		r = parse_size_mib(value, &read.mib, NULL);
	if (r == 0)
		*(struct config_threshold *)at = read;
	return r;
}

static void format_threshold(const struct key_def *def, const void *at, struct text *out)
{
	const struct config_threshold *threshold = at;

	if (threshold->percent)
		format_percent(def, &threshold->percent, out);
	else
		format_size(def, &threshold->mib, out);
}

/* unsigned; 0 written as none */
static int read_count(const struct key_def *def, const char *value, void *at)
{
	uint64_t count = 0;

	if (strcmp(value, "none") != 0) {
		if (parse_u64(value, UINT64_MAX, &count, NULL) < 0)
			return -EINVAL;
		if ((int64_t)count < def->range.least ||
			count > (uint64_t)def->range.most)
			return -ERANGE;
	}
	*(unsigned *)at = (unsigned)count;
	return 0;
}

static void format_count(const struct key_def *def, const void *at, struct text *out)
{
	(void)def;
	if (*(const unsigned *)at)
		text_addf(out, "%u", *(const unsigned *)at);
	else
		text_add(out, "none");
}

/* bool; one of two words */
static int read_choice(const struct key_def *def, const char *value, void *at)
{
	for (size_t i = 0; i < ARRAY_SIZE(def->words); i++)
		if (strcmp(value, def->words[i]) == 0) {
			*(bool *)at = i == 1;
			return 0;
		}
	return -EINVAL;
}

static void format_choice(const struct key_def *def, const void *at, struct text *out)
{
	text_add(out, def->words[*(const bool *)at]);
}

#define KIND(name, noun, how) \
	static const struct value_kind name = { noun, read_##how, format_##how }
KIND(path, "an absolute path", path);
KIND(group, "a group", group);
KIND(duration, "a duration", milliseconds);
KIND(size_mib, "a size", size);
KIND(percentage, "a percentage", percent);
KIND(percentage_or_off, "a percentage", percent_or_off);
KIND(use, "a threshold", threshold);
KIND(count_or_none, "a number", count);
KIND(choice, "a choice", choice);
#undef KIND

/* --- the keys ---------------------------------------------------------------------- */

/* clang-format off */
static const struct key_def keys[CONFIG_KEYS] = {
#define KEY(key, of_kind, field, if_not, instead) \
	.name = key, .kind = &(of_kind), .offset = offsetof(struct config, field), \
	.initial = if_not, .allowed = instead
	[CONFIG_DIRECTORY] = { KEY("directory", path, directory, "/var/lib/gpulease",
		"one like /var/lib/gpulease") },
	[CONFIG_NVIDIA_SMI] = { KEY("nvidia-smi", path, nvidia_smi, NULL,
		"one like /usr/bin/nvidia-smi") },
	[CONFIG_PROBE_DEADLINE] = { KEY("probe-deadline", duration, probe_deadline_ms, "10s",
		"100ms to 10m"), .range = { 100, 600000 } },
	[CONFIG_IDLE_THRESHOLD] = { KEY("idle-threshold", use, idle, "200MiB",
		"a size, like 200MiB, or 1% to 100%"), .range = { 1, 100 } },
	[CONFIG_BUSY_UTILIZATION] = { KEY("busy-utilization", percentage_or_off,
		busy_percent, "off", "1% to 100%, or off"), .range = { 1, 100 } },
	[CONFIG_MARGIN] = { KEY("margin", size_mib, margin_mib, "512MiB",
		"a size, like 512MiB, or 0") },
	[CONFIG_SPIKE_BUFFER] = { KEY("spike-buffer", percentage, spike_buffer_percent, "10%",
		"0% to 100%"), .range = { 0, 100 } },
	[CONFIG_SETTLE_TIME] = { KEY("settle-time", duration, settle_ms, "60s",
		"one like 60s or 5m"), .range = { 0, INT64_MAX } },
	/* what a job leaves behind may need a moment before it uses its GPUs */
	[CONFIG_LINGER_TIME] = { KEY("linger-time", duration, linger_ms, "60s",
		"one like 60s or 5m, at least 1s"), .range = { 1000, INT64_MAX } },
	[CONFIG_ADMIN_GROUP] = { KEY("admin-group", group, admin_group, NULL,
		"its name or its number") },
	[CONFIG_MAX_WAITING] = { KEY("max-waiting", count_or_none, max_waiting, "1000",
		"1 to 1000000, or none"), .range = { 1, 1000000 } },
	[CONFIG_SHOW_COMMANDS] = { KEY("show-commands", choice, shows_own_commands_only, "all",
		"all or own"), .words = { "all", "own" } },
	[CONFIG_RECORD_ENDS] = { KEY("record-ends", choice, records_ends, "no",
		"no or yes"), .words = { "no", "yes" } },
#undef KEY
};
/* clang-format on */

static void *field_of(struct config *config, const struct key_def *def)
{
	return (char *)config + def->offset;
}

static const struct key_def *find_key(const char *name, size_t size)
{
	for (int key = 0; key < CONFIG_KEYS; key++)
		if (strlen(keys[key].name) == size &&
			memcmp(keys[key].name, name, size) == 0)
			return &keys[key];
	return NULL;
}

static void explain_unknown(const char *name, size_t size, struct why *why)
{
	char names[sizeof(why->text)];
	struct text list = TEXT_ON(names);

	for (int key = 0; key < CONFIG_KEYS; key++)
		text_addf(&list, "%s%s", key ? ", " : "", keys[key].name);
	why_set(why, "unknown key '%s'; the keys are %s", quote_bytes(name, size).text,
		names);
}

/* --- lines ------------------------------------------------------------------------- */

/* What lies between two pointers. */
struct part {
	const char *begin, *end;
};

static size_t size_of(struct part part)
{
	return (size_t)(part.end - part.begin);
}

/* A line may end as those of DOS do. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct part trim(struct part part)
{
	while (part.begin < part.end && is_blank(*part.begin))
		part.begin++;
	while (part.end > part.begin && is_blank(part.end[-1]))
		part.end--;
	return part;
}

/* What of @whole comes before the first @c, or all of it. */
static struct part before(struct part whole, char c)
{
	const char *found =
		size_of(whole) ? memchr(whole.begin, c, size_of(whole)) : NULL;

	return (struct part){ whole.begin, found ? found : whole.end };
}

static int set_value(struct config *config, const struct key_def *def, struct part part,
	struct why *why)
{
	const char *noun = def->kind->noun;
	char value[VALUE_SIZE];
	int r;

	if (part.begin == part.end) {
		why_set(why, "%s: the value is missing; write %s", def->name,
			def->allowed);
		return -EINVAL;
	}
	if (size_of(part) >= sizeof(value) || memchr(part.begin, '\0', size_of(part))) {
		why_set(why, "%s: '%s' %s; write %s", def->name,
			quote_bytes(part.begin, size_of(part)).text,
			size_of(part) >= sizeof(value) ? "is too long"
						       : "has a NUL in it",
			def->allowed);
		return -EINVAL;
	}
	memcpy(value, part.begin, size_of(part));
	value[size_of(part)] = '\0';
	r = def->kind->read(def, value, field_of(config, def));
	if (r < 0)
		why_set(why, "%s: '%s' is %s%s; write %s", def->name, quote(value).text,
			r == -ERANGE ? "out of range" : "not ", r == -ERANGE ? "" : noun,
			def->allowed);
	return r < 0 ? -EINVAL : 0;
}

static int read_line(
	struct part line, unsigned number, struct config *config, struct why *why)
{
	struct part text = trim(before(line, '#')), left = before(text, '='),
		    name = trim(left);
	const struct key_def *def = find_key(name.begin, size_of(name));
	unsigned *first;

	if (text.begin == text.end)
		return 0;
	if (!def) {
		explain_unknown(name.begin, size_of(name), why);
		return -EINVAL;
	}
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
	return set_value(config, def, trim((struct part){ left.end + 1, text.end }), why);
}

/* --- all of it --------------------------------------------------------------------- */

int config_parse(const char *file, const char *text, size_t size, struct config *config,
	struct why *why)
{
	struct part rest = { text, text + size };
	struct why reason = WHY_NONE;

	for (unsigned number = 1; rest.begin < rest.end; number++) {
		struct part line = before(rest, '\n');

		if (read_line(line, number, config, &reason) < 0) {
			why_set(why, "%s, line %u: %s", file, number, reason.text);
			return -EINVAL;
		}
		rest.begin = line.end < rest.end ? line.end + 1 : rest.end;
	}
	return 0;
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
