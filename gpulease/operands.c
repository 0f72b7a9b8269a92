#include <errno.h>

#include "gpuset.h"
#include "operands.h"
#include "parse.h"

enum { NUMBER_SIZE = 24 }; /* more digits than any number of 64 bits has */

/* parse_u64() on bytes without a NUL behind them. */
static int read_number(const char *at, size_t size, uint64_t max, uint64_t *ret)
{
	char digits[NUMBER_SIZE];

	if (size >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, at, size);
	digits[size] = '\0';
	return parse_u64(digits, max, ret, NULL);
}

static int read_job(const char *at, size_t size, struct operand *ret, struct why *why)
{
	uint64_t id;

	if (read_number(at, size, INT64_MAX, &id) < 0) {
		why_set(why, "'%s' is not the id of a job; see gpulease --queue",
			quote_bytes(at, size).text);
		return -EINVAL;
	}
	*ret = (struct operand){ .first = id, .last = id };
	return 0;
}

static bool is_uuid(const char *at, size_t size)
{
	return size > 4 && (memcmp(at, "GPU-", 4) == 0 || memcmp(at, "MIG-", 4) == 0);
}

static int read_gpu(const char *at, size_t size, struct operand *ret, struct why *why)
{
	const char *dash = memchr(at, '-', size);
	size_t first_size = dash ? (size_t)(dash - at) : size;
	struct operand gpu = { 0 };

	if (is_uuid(at, size)) {
		*ret = (struct operand){ .uuid = at, .uuid_size = size };
		return 0;
	}
	if (read_number(at, first_size, GPUSET_MAX - 1, &gpu.first) < 0)
		goto none;
	gpu.last = gpu.first;
	if (dash && read_number(dash + 1, size - first_size - 1, GPUSET_MAX - 1,
			    &gpu.last) < 0)
		goto none;
	if (gpu.last < gpu.first)
		goto none;
	*ret = gpu;
	return 0;
none:
	why_set(why,
		"'%s' is not a GPU; write its index (0), several (0-3,5) or its UUID",
		quote_bytes(at, size).text);
	return -EINVAL;
}

int operand_next(struct operand_walk *walk, struct operand *ret, struct why *why)
{
	const char *at;
	size_t size;

	if (!walk->at) {
		if (!walk->count)
			return OPERAND_DONE;
		walk->at = walk->words[0];
	}
	at = walk->at;
	size = strcspn(at, ",");
	walk->at = at[size] ? at + size + 1 : NULL;
	if (!walk->at) {
		walk->words++;
		walk->count--;
	}
	if (walk->kind == OPERAND_JOB)
		return read_job(at, size, ret, why);
	return read_gpu(at, size, ret, why);
}
