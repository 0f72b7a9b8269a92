#include <errno.h>

#include "gpuset.h"
#include "operands.h"
#include "parse.h"

enum { NUMBER_SIZE = 24 }; /* more digits than any number of 64 bits has */

/* parse_u64() for bytes without a NUL. */
static int operand_read_number(const char *at, size_t size, uint64_t max, uint64_t *ret)
{
	char digits[NUMBER_SIZE];

	if (size >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, at, size);
	digits[size] = '\0';
	return parse_u64(digits, max, ret, NULL);
}

/* Reads `12`, or, if @has_names, a word that is not as ids and ranges are. */
static int operand_read_job(
	const char *at, size_t size, bool has_names, struct operand *ret, struct why *why)
{
	uint64_t id;

	if (has_names && strspn(at, "0123456789-:") < size) {
		*ret = (struct operand){ .word = at, .word_size = size };
		return 0;
	}
	if (operand_read_number(at, size, INT64_MAX, &id) < 0) {
		why_set(why, "'%s' is not the id of a job; see gpulease --status",
			quote_bytes(at, size).text);
		return -EINVAL;
	}
	*ret = (struct operand){ .first = id, .last = id };
	return 0;
}

/* Returns -EINVAL if the range @ret, written as the @size bytes at @at, ends before it begins. */
static int operand_check_range(
	const char *at, size_t size, const struct operand *ret, struct why *why)
{
	if (ret->first <= ret->last)
		return 0;
	why_set(why, "'%s' is the wrong way round; write %llu-%llu",
		quote_bytes(at, size).text, (unsigned long long)ret->last,
		(unsigned long long)ret->first);
	return -EINVAL;
}

static bool operand_is_uuid(const char *at, size_t size)
{
	if (size <= 4 || (memcmp(at, "GPU-", 4) != 0 && memcmp(at, "MIG-", 4) != 0))
		return false;
	for (size_t i = 0; i < size;
		i++) /* the older form of MIG has slashes: MIG-GPU-…/1/0 */
		if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'A' && at[i] <= 'Z') ||
			    (at[i] >= 'a' && at[i] <= 'z') || at[i] == '-' ||
			    at[i] == '/'))
			return false;
	return true;
}

/* Reads `3`, `0-3` or `0:1`; no number may be above @max. */
static int operand_read_numbers(
	const char *at, size_t size, uint64_t max, struct operand *ret)
{
	size_t first_size = 0, rest;
	uint64_t second;

	while (first_size < size && at[first_size] != '-' && at[first_size] != ':')
		first_size++;
	if (operand_read_number(at, first_size, max, &ret->first) < 0)
		return -EINVAL;
	ret->last = ret->first;
	if (first_size == size)
		return 0;
	rest = first_size + 1;
	if (operand_read_number(at + rest, size - rest, max, &second) < 0)
		return -EINVAL;
	ret->has_instance = at[first_size] == ':';
	if (ret->has_instance)
		ret->instance = second;
	else
		ret->last = second;
	return 0;
}

/* Reads `12`, `3-12`, or a word. */
static int operand_read_jobs(
	const char *at, size_t size, struct operand *ret, struct why *why)
{
	struct operand jobs = { 0 };

	if (operand_read_numbers(at, size, INT64_MAX, &jobs) < 0 || jobs.has_instance)
		jobs = (struct operand){ .word = at, .word_size = size };
	*ret = jobs;
	return operand_check_range(at, size, ret, why);
}

static int operand_read_gpu(
	const char *at, size_t size, struct operand *ret, struct why *why)
{
	struct operand gpu = { 0 };

	if (operand_is_uuid(at, size)) {
		*ret = (struct operand){ .word = at, .word_size = size };
		return 0;
	}
	if (operand_read_numbers(at, size, GPUSET_MAX - 1, &gpu) < 0) {
		why_set(why,
			"'%s' is not a GPU; write its index (0), several (0-3,5), an "
			"instance (0:1) or its UUID",
			quote_bytes(at, size).text);
		return -EINVAL;
	}
	*ret = gpu;
	return operand_check_range(at, size, ret, why);
}

int operand_next(struct operand_walk *walk, struct operand *ret, struct why *why)
{
	const char *at;
	size_t size;

	if (!walk->at) {
		if (!walk->count)
			return OPERAND_DONE;
		walk->at = *walk->words++;
		walk->count--;
	}
	at = walk->at;
	size = strcspn(at, ",");
	walk->at = at[size] ? at + size + 1 : NULL;
	if (walk->kind <= OPERAND_NAME || (walk->kind == OPERAND_JOBS && !size))
		return operand_read_job(at, size, walk->kind == OPERAND_NAME, ret, why);
	if (walk->kind == OPERAND_JOBS)
		return operand_read_jobs(at, size, ret, why);
	return operand_read_gpu(at, size, ret, why);
}

/* --- lists ------------------------------------------------------------------------- */

int operand_count_gpus(
	const char *list, unsigned most, unsigned *ret_count, struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_GPU);
	struct operand gpu;
	uint64_t count = 0;
	int r;

	while ((r = operand_next(&walk, &gpu, why)) == 0) {
		count += gpu.last - gpu.first + 1;
		if (count > most) {
			why_set(why, "'%s' names more than %u GPUs", quote(list).text,
				most);
			return -EINVAL;
		}
	}
	if (r < 0)
		return r;
	*ret_count = (unsigned)count;
	return 0;
}

/* Whether two operands have a GPU or an instance in common, as far as the texts show. */
static bool operand_overlaps(const struct operand *a, const struct operand *b)
{
	if (a->word || b->word)
		return a->word && b->word && a->word_size == b->word_size &&
		       memcmp(a->word, b->word, a->word_size) == 0;
	return a->has_instance == b->has_instance && a->instance == b->instance &&
	       a->first <= b->last && b->first <= a->last;
}

/* Returns what two operands both name; @at is the text of @gpu, which comes first. */
static struct quoted operand_quote_common(
	const char *at, const struct operand *gpu, const struct operand *other)
{
	char index[NUMBER_SIZE];

	if (gpu->word || gpu->has_instance)
		return quote_bytes(at, strcspn(at, ","));
	(void)snprintf(index, sizeof(index), "%llu",
		(unsigned long long)(gpu->first > other->first ? gpu->first
							       : other->first));
	return quote(index);
}

bool operand_has_twice(const char *list, struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_GPU);
	struct operand gpu, other;
	const char *at = list;

	while (operand_next(&walk, &gpu, NULL) == 0) {
		struct operand_walk later = walk;

		/* compare with each later operand; a walk over a list ends with the list */
		while (operand_next(&later, &other, NULL) == 0)
			if (operand_overlaps(&gpu, &other)) {
				why_set(why, "'%s' names '%s' twice", quote(list).text,
					operand_quote_common(at, &gpu, &other).text);
				return true;
			}
		at = walk.at;
	}
	return false;
}
