/* Numbers of GPUs, and shares of one. */
#include <errno.h>

#include "gpuset.h"
#include "parse.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number of GPUs in percent of one. */
struct gpu_percent {
	uint64_t whole; /* rounded down; anything beyond ALL_GPUS: too many */
	bool has_rest, has_point;
};

enum { GPU_PERCENT = 100, ALL_GPUS = GPUSET_MAX * GPU_PERCENT };

/* Reads `2`, `0.5` or `.5`. */
static bool read_gpus(const char *text, struct gpu_percent *ret)
{
	struct gpu_percent read = { .whole = 0 };
	const char *at = text;
	uint64_t gpus = 0;

	if (*at != '.' && !is_digit(*at))
		return false;
	for (; is_digit(*at); at++)
		if (gpus <= GPUSET_MAX)
			gpus = gpus * 10 + (uint64_t)(*at - '0');
	read.whole = (gpus > GPUSET_MAX ? GPUSET_MAX + 1 : gpus) * GPU_PERCENT;
	read.has_point = *at == '.';
	if (read.has_point) {
		if (!is_digit(*++at))
			return false;
		for (uint64_t scale = 10; is_digit(*at); at++, scale /= 10) {
			read.whole += (uint64_t)(*at - '0') * scale;
			read.has_rest = read.has_rest || (!scale && *at != '0');
		}
	}
	*ret = read;
	return !*at;
}

static int explain_gpus(const char *text, struct why *why)
{
	if (text[0] == '-' && is_digit(text[1]))
		why_set(why, "'%s' is less than no GPU; write a number from 0 to %d",
			quote(text).text, GPUSET_MAX);
	else
		why_set(why,
			"'%s' is not a number of GPUs; write one from 0 to %d, or a "
			"share, as 0.5",
			quote(text).text, GPUSET_MAX);
	return -EINVAL;
}

/* What to write instead of @read, which is between two of what is allowed. */
static int explain_share(
	const char *text, const struct gpu_percent *read, struct why *why)
{
	unsigned percent = (unsigned)read->whole, gpus = percent / GPU_PERCENT;
	struct quoted quoted = quote(text);

	if (gpus > 0)
		why_set(why, "'%s': above 1 only whole numbers of GPUs; write %u or %u",
			quoted.text, gpus, gpus + 1);
	else if (!read->has_rest)
		why_set(why,
			"'%s' is no share of a GPU; write 0.01 to 0.99, or 0 for none",
			quoted.text);
	else if (percent == 0)
		why_set(why, "'%s' is less than the smallest share of a GPU; write 0.01",
			quoted.text);
	else
		why_set(why,
			"'%s' is no whole percentage of a GPU; write 0.%02u or %s%02u",
			quoted.text, percent, percent < 99 ? "0." : "1.",
			(percent + 1) % GPU_PERCENT);
	return -EINVAL;
}

static int explain_too_many(const char *text, struct why *why)
{
	why_set(why, "'%s' GPUs are too many; gpulease manages at most %d",
		quote(text).text, GPUSET_MAX);
	return -EINVAL;
}

static int read_possible(const char *text, struct gpu_percent *read, struct why *why)
{
	if (!read_gpus(text, read))
		return explain_gpus(text, why);
	return read->whole + read->has_rest > ALL_GPUS ? explain_too_many(text, why) : 0;
}

int parse_gpu_count(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why)
{
	struct gpu_percent read;
	int r = read_possible(text, &read, why);
	bool is_share;

	if (r < 0)
		return r;
	is_share = read.whole > 0 && read.whole < GPU_PERCENT;
	if (read.has_rest || (!is_share && read.whole % GPU_PERCENT) ||
		(read.whole == 0 && read.has_point))
		return explain_share(text, &read, why);
	*ret = is_share ? 1 : (unsigned)(read.whole / GPU_PERCENT);
	*ret_percent = is_share ? (unsigned)read.whole : 0;
	return 0;
}

int parse_gpu_need(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why)
{
	struct gpu_percent read;
	int r = read_possible(text, &read, why);
	unsigned percent;

	if (r < 0)
		return r;
	percent = (unsigned)read.whole + read.has_rest;
	*ret = (percent + GPU_PERCENT - 1) / GPU_PERCENT;
	*ret_percent = percent < GPU_PERCENT ? percent : 0;
	return 0;
}
