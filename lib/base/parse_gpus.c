#include <errno.h>

#include "gpuset.h"
#include "parse.h"
#include "parse_gpus.h"

/* A number of GPUs, in percent of one GPU. */
struct gpu_percent {
	uint64_t whole; /* the percentage, rounded down; above ALL_GPUS: too many GPUs */
	bool has_rest;  /* rounding has dropped a part */
	bool has_point;
};

enum { GPU_PERCENT = 100, ALL_GPUS = GPUSET_MAX * GPU_PERCENT };

/* Reads `2`, `0.5` or `.5`.  Returns false if @text is not such a number. */
static bool read_gpu_percent(const char *text, struct gpu_percent *ret)
{
	struct gpu_percent read = { .whole = 0 };
	const char *at = text;
	uint64_t gpus = 0;

	if (*at != '.' && !is_digit(*at))
		return false;
	for (; is_digit(*at); at++)
		if (gpus <= GPUSET_MAX) /* above, the exact number does not matter */
			gpus = gpus * 10 + (uint64_t)(*at - '0');
	read.whole = (gpus > GPUSET_MAX ? GPUSET_MAX + 1 : gpus) * GPU_PERCENT;
	read.has_point = *at == '.';
	if (read.has_point) {
		if (!is_digit(*++at))
			return false;
		/* two digits are the percentage; from the third on the scale is 0 */
		for (uint64_t scale = 10; is_digit(*at); at++, scale /= 10) {
			read.whole += (uint64_t)(*at - '0') * scale;
			read.has_rest = read.has_rest || (!scale && *at != '0');
		}
	}
	*ret = read;
	return !*at;
}

/* Whether @text consists of indices, like `0,1,3` and `0-3`. */
static bool is_gpu_indices(const char *text)
{
	return is_digit(*text) && strpbrk(text, ",-") &&
	       !text[strspn(text, "0123456789,-")];
}

static int explain_gpus(const char *text, struct why *why)
{
	if (is_gpu_indices(text))
		why_set(why,
			"'%s' is not a number of GPUs; --allow, --gpu-ids and, in a jobs "
			"file, allow= take a list",
			quote(text).text);
	else if (text[0] == '-' && is_digit(text[1]))
		why_set(why, "'%s' is negative; write a number of GPUs from 0 to %d",
			quote(text).text, GPUSET_MAX);
	else
		why_set(why,
			"'%s' is not a number of GPUs; write a number from 0 to %d, or a "
			"share like 0.5",
			quote(text).text, GPUSET_MAX);
	return -EINVAL;
}

/* Says what to write instead of @read, a number between two that are allowed. */
static int explain_share(
	const char *text, const struct gpu_percent *read, struct why *why)
{
	unsigned percent = (unsigned)read->whole, gpus = percent / GPU_PERCENT;
	struct quoted quoted = quote(text);

	if (gpus > 0)
		why_set(why,
			"'%s' is above 1 and not a whole number of GPUs; write %u or %u",
			quoted.text, gpus, gpus + 1);
	else if (!read->has_rest)
		why_set(why,
			"'%s' is not a share of a GPU; write 0.01 to 0.99, or 0 for no GPU",
			quoted.text);
	else if (percent == 0)
		why_set(why, "'%s' is less than the smallest share of a GPU; write 0.01",
			quoted.text);
	else
		why_set(why,
			"'%s' is not a whole percentage of a GPU; write 0.%02u or %s%02u",
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

static int read_limited_percent(
	const char *text, struct gpu_percent *read, struct why *why)
{
	if (!read_gpu_percent(text, read))
		return explain_gpus(text, why);
	return read->whole + read->has_rest > ALL_GPUS ? explain_too_many(text, why) : 0;
}

int parse_gpu_count(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why)
{
	struct gpu_percent read;
	int r = read_limited_percent(text, &read, why);
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
	int r = read_limited_percent(text, &read, why);
	unsigned percent;

	if (r < 0)
		return r;
	percent = (unsigned)read.whole + read.has_rest;
	*ret = (percent + GPU_PERCENT - 1) / GPU_PERCENT;
	*ret_percent = percent < GPU_PERCENT ? percent : 0;
	return 0;
}
