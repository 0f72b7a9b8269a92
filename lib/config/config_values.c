#include <errno.h>

#include "config_values.h"
#include "gpuset.h"
#include "operands.h"
#include "parse.h"

enum { DAY_MS = 24 * 3600 * 1000 };

/* --- texts --------------------------------------------------------------- */

static int read_path(const struct config_key_def *def, const char *value, void *at)
{
	(void)def;
	if (value[0] != '/')
		return -EINVAL;
	text_copy(at, CONFIG_PATH_SIZE, value);
	return 0;
}

static int read_group(const struct config_key_def *def, const char *value, void *at)
{
	(void)def;
	if (strlen(value) >= CONFIG_GROUP_SIZE || strpbrk(value, " \t:,"))
		return -EINVAL;
	text_copy(at, CONFIG_GROUP_SIZE, value);
	return 0;
}

/* char[]; a list of GPUs; the range limits their number */
static int read_gpus(const struct config_key_def *def, const char *value, void *at)
{
	unsigned count;

	if (strlen(value) >= CONFIG_GPUS_SIZE ||
		operand_count_gpus(value, GPUSET_MAX, &count, NULL) < 0)
		return -EINVAL;
	if (count > (unsigned)def->range.most)
		return -ERANGE;
	text_copy(at, CONFIG_GPUS_SIZE, value);
	return 0;
}

/* char[]; the name of an option, with its dashes */
static int read_option(const struct config_key_def *def, const char *value, void *at)
{
	(void)def;
	if (value[0] != '-' || !value[strspn(value, "-")] || strpbrk(value, " \t=") ||
		strlen(value) >= CONFIG_OPTION_SIZE)
		return -EINVAL;
	text_copy(at, CONFIG_OPTION_SIZE, value);
	return 0;
}

static void format_text(
	const struct config_key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_add(out, at);
}

/* int64_t, in milliseconds */
static int read_milliseconds(
	const struct config_key_def *def, const char *value, void *at)
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
	const struct config_key_def *def, const void *at, struct text *out)
{
	char span[DURATION_SIZE];

	(void)def;
	format_exact_duration(*(const int64_t *)at, span);
	text_add(out, span);
}

/* int64_t, in milliseconds; `none` is 0 */
static int read_milliseconds_or_none(
	const struct config_key_def *def, const char *value, void *at)
{
	if (strcmp(value, "none") != 0)
		return read_milliseconds(def, value, at);
	*(int64_t *)at = 0;
	return 0;
}

static void format_milliseconds_or_none(
	const struct config_key_def *def, const void *at, struct text *out)
{
	if (*(const int64_t *)at)
		format_milliseconds(def, at, out);
	else
		text_add(out, "none");
}

/*
 * struct config_share: three durations with slashes between them, RATE/DAYS/MOST; `none` is zeros.
 * The range is that of the days.
 */
static int read_share(const struct config_key_def *def, const char *value, void *at)
{
	struct config_share share = { .rate_ms = 0 };
	int64_t *const parts[] = { &share.rate_ms, &share.window_ms, &share.most_ms };
	char part[DURATION_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(parts) && strcmp(value, "none") != 0; i++) {
		size_t size = strcspn(value, "/");

		if (size >= sizeof(part) || !value[size] != (i == 2))
			return -EINVAL;
		text_copy(part, size + 1, value);
		if (parse_duration_ms(part, parts[i], NULL) < 0)
			return -EINVAL;
		if (!*parts[i] || share.window_ms % DAY_MS ||
			share.window_ms > def->range.most * DAY_MS)
			return -ERANGE;
		value += size + (i < 2);
	}
	memcpy(at, &share, sizeof(share));
	return 0;
}

static void format_share(
	const struct config_key_def *def, const void *at, struct text *out)
{
	const struct config_share *share = at;

	if (!share->rate_ms) {
		text_add(out, "none");
		return;
	}
	format_milliseconds(def, &share->rate_ms, out);
	text_add(out, "/");
	format_milliseconds(def, &share->window_ms, out);
	text_add(out, "/");
	format_milliseconds(def, &share->most_ms, out);
}

/* uint64_t, in MiB; `0` without a unit is no memory */
static int read_size(const struct config_key_def *def, const char *value, void *at)
{
	uint64_t mib = 0;

	if (strcmp(value, "0") != 0 && parse_size_mib(value, &mib, NULL) < 0)
		return -EINVAL;
	if (def->range.most &&
		(mib < (uint64_t)def->range.least || mib > (uint64_t)def->range.most))
		return -ERANGE;
	*(uint64_t *)at = mib;
	return 0;
}

static void format_size(
	const struct config_key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_add_mib(*(const uint64_t *)at, out);
}

/* unsigned; a whole number followed by `%` */
static int read_percent(const struct config_key_def *def, const char *value, void *at)
{
	size_t size = strlen(value);
	char number[CONFIG_VALUE_SIZE];
	uint64_t percent;

	if (size < 2 || value[size - 1] != '%')
		return -EINVAL;
	text_copy(number, size, value); /* without the `%` */
	if (parse_u64(number, UINT32_MAX, &percent, NULL) < 0)
		return -EINVAL;
	if ((int64_t)percent < def->range.least || (int64_t)percent > def->range.most)
		return -ERANGE;
	*(unsigned *)at = (unsigned)percent;
	return 0;
}

static void format_percent(
	const struct config_key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_addf(out, "%u%%", *(const unsigned *)at);
}

/* unsigned; `off` is 0 */
static int read_percent_or_off(
	const struct config_key_def *def, const char *value, void *at)
{
	if (strcmp(value, "off") != 0)
		return read_percent(def, value, at);
	*(unsigned *)at = 0;
	return 0;
}

static void format_percent_or_off(
	const struct config_key_def *def, const void *at, struct text *out)
{
	if (*(const unsigned *)at)
		format_percent(def, at, out);
	else
		text_add(out, "off");
}

static int read_threshold(const struct config_key_def *def, const char *value, void *at)
{
	struct config_threshold read = { 0 };
	int r = read_percent(def, value, &read.percent);

	if (r == -EINVAL)
		r = parse_size_mib(value, &read.mib, NULL);
	if (r == 0)
		*(struct config_threshold *)at = read;
	return r;
}

static void format_threshold(
	const struct config_key_def *def, const void *at, struct text *out)
{
	const struct config_threshold *threshold = at;

	if (threshold->percent)
		format_percent(def, &threshold->percent, out);
	else
		format_size(def, &threshold->mib, out);
}

/* unsigned */
static int read_count(const struct config_key_def *def, const char *value, void *at)
{
	uint64_t count;

	if (parse_u64(value, UINT64_MAX, &count, NULL) < 0)
		return -EINVAL;
	if (count < (uint64_t)def->range.least || count > (uint64_t)def->range.most)
		return -ERANGE;
	*(unsigned *)at = (unsigned)count;
	return 0;
}

static void format_count(
	const struct config_key_def *def, const void *at, struct text *out)
{
	(void)def;
	text_addf(out, "%u", *(const unsigned *)at);
}

/* unsigned; `none` is 0 */
static int read_count_or_none(
	const struct config_key_def *def, const char *value, void *at)
{
	if (strcmp(value, "none") != 0)
		return read_count(def, value, at);
	*(unsigned *)at = 0;
	return 0;
}

static void format_count_or_none(
	const struct config_key_def *def, const void *at, struct text *out)
{
	if (*(const unsigned *)at)
		format_count(def, at, out);
	else
		text_add(out, "none");
}

/* bool; one of the two words of the key */
static int read_choice(const struct config_key_def *def, const char *value, void *at)
{
	for (size_t i = 0; i < ARRAY_SIZE(def->words); i++)
		if (strcmp(value, def->words[i]) == 0) {
			*(bool *)at = i == 1;
			return 0;
		}
	return -EINVAL;
}

static void format_choice(
	const struct config_key_def *def, const void *at, struct text *out)
{
	text_add(out, def->words[*(const bool *)at]);
}

#define KIND(name, noun, reader, writer) \
	const struct config_kind name = { noun, read_##reader, format_##writer }
KIND(config_path, "an absolute path", path, text);
KIND(config_group, "a group", group, text);
KIND(config_duration, "a duration", milliseconds, milliseconds);
KIND(config_duration_or_none, "a duration", milliseconds_or_none, milliseconds_or_none);
KIND(config_size, "a size", size, size);
KIND(config_percentage, "a percentage", percent, percent);
KIND(config_percentage_or_off, "a percentage", percent_or_off, percent_or_off);
KIND(config_use, "a threshold", threshold, threshold);
KIND(config_count, "a number", count, count);
KIND(config_count_or_none, "a number", count_or_none, count_or_none);
KIND(config_choice, "a choice", choice, choice);
KIND(config_gpus, "a list of GPUs", gpus, text);
KIND(config_option, "an option", option, text);
KIND(config_share, "three durations", share, share);
#undef KIND
