#include <errno.h>

#include "batch_numbers.h"

/* Appends the numbers in @range: "3" or "1-4"; nothing if it is empty. */
static void range_write(uint64_t range[2], struct text *out)
{
	if (!range[0])
		return;
	text_addf(out, "%s%llu", out->used ? "," : "", (unsigned long long)range[0]);
	if (range[1] != range[0])
		text_addf(out, "-%llu", (unsigned long long)range[1]);
}

void batch_add_number(uint64_t number, bool is_last, uint64_t range[2], struct text *out)
{
	if (range[0] && number == range[1] + 1) {
		range[1] = number;
	} else {
		range_write(range, out);
		range[0] = range[1] = number;
	}
	if (is_last) {
		range_write(range, out);
		range[0] = range[1] = 0;
	}
}

/* Reads a number from 1 at *@at and moves *@at after it.  Returns 0 or -EINVAL. */
static int range_read_number(const char **at, const char *end, uint64_t *ret)
{
	uint64_t number = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		unsigned digit = (unsigned)(**at - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return -EINVAL;
		number = number * 10 + digit;
	}
	*ret = number;
	return number ? 0 : -EINVAL;
}

/*
 * Reads a number or a range, and the comma after it, which needs another one.  Returns 0 or
 * -EINVAL.
 */
static int range_read(const char **at, const char *end, uint64_t range[2])
{
	if (range_read_number(at, end, &range[0]) < 0)
		return -EINVAL;
	range[1] = range[0];
	if (*at < end && **at == '-') {
		(*at)++;
		if (range_read_number(at, end, &range[1]) < 0 || range[1] < range[0])
			return -EINVAL;
	}
	if (*at == end)
		return 0;
	return *(*at)++ == ',' && *at < end ? 0 : -EINVAL;
}

bool batch_is_numbers(const char *text, size_t size)
{
	const char *end = text + size;
	uint64_t range[2];

	while (text < end)
		if (range_read(&text, end, range) < 0)
			return false;
	return true;
}

int batch_each_number(
	const char *text, size_t size, int (*add)(void *arg, uint64_t number), void *arg)
{
	const char *end;
	uint64_t range[2];
	int r = 0;

	if (!size) /* @text may be NULL then */
		return 0;
	if (!batch_is_numbers(text, size))
		return -EINVAL;
	end = text + size;
	while (r == 0 && text < end) {
		r = range_read(&text, end, range);
		for (uint64_t i = 0; r == 0 && i <= range[1] - range[0]; i++)
			r = add(arg, range[0] + i);
	}
	return r;
}
