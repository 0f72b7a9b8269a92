#include <errno.h>

#include "gpuset.h"
#include "hex.h"

enum { WORDS = GPUSET_MAX / 64 };

unsigned gpuset_count(const struct gpuset *set)
{
	unsigned count = 0;

	for (int i = 0; i < WORDS; i++)
		count += (unsigned)__builtin_popcountll(set->bits[i]);
	return count;
}

bool gpuset_is_empty(const struct gpuset *set)
{
	return gpuset_count(set) == 0;
}

bool gpuset_equals(const struct gpuset *a, const struct gpuset *b)
{
	return memcmp(a->bits, b->bits, sizeof(a->bits)) == 0;
}

struct gpuset gpuset_and(const struct gpuset *a, const struct gpuset *b)
{
	struct gpuset out;

	for (int i = 0; i < WORDS; i++)
		out.bits[i] = a->bits[i] & b->bits[i];
	return out;
}

struct gpuset gpuset_or(const struct gpuset *a, const struct gpuset *b)
{
	struct gpuset out;

	for (int i = 0; i < WORDS; i++)
		out.bits[i] = a->bits[i] | b->bits[i];
	return out;
}

struct gpuset gpuset_minus(const struct gpuset *a, const struct gpuset *b)
{
	struct gpuset out;

	for (int i = 0; i < WORDS; i++)
		out.bits[i] = a->bits[i] & ~b->bits[i];
	return out;
}

int gpuset_next(const struct gpuset *set, unsigned from)
{
	for (unsigned word = from / 64; word < WORDS; word++) {
		uint64_t rest = set->bits[word];

		if (word == from / 64)
			rest &= UINT64_MAX << from % 64;
		if (rest)
			return (int)(word * 64) + __builtin_ctzll(rest);
	}
	return -1;
}

void gpuset_to_hex(const struct gpuset *set, char out[GPUSET_HEX_SIZE])
{
	if (set->bits[1])
		(void)snprintf(out, GPUSET_HEX_SIZE, "%llx%016llx",
			(unsigned long long)set->bits[1],
			(unsigned long long)set->bits[0]);
	else
		(void)snprintf(
			out, GPUSET_HEX_SIZE, "%llx", (unsigned long long)set->bits[0]);
}

int gpuset_from_hex(const char *hex, size_t size, struct gpuset *set)
{
	struct gpuset out = GPUSET_NONE;

	if (size == 0 || size >= GPUSET_HEX_SIZE)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		int digit = hex_digit(hex[i], HEX_LOWER);

		if (digit < 0)
			return -EINVAL;
		out.bits[1] = out.bits[1] << 4 | out.bits[0] >> 60;
		out.bits[0] = out.bits[0] << 4 | (uint64_t)digit;
	}
	*set = out;
	return 0;
}
