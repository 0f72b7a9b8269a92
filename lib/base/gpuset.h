/*
 * A set of GPUs, by their slot numbers (gpu/slot.<n> in the state directory).  Records hold it as
 * a hexadecimal number: bit n stands for slot n.
 */
#ifndef GPULEASE_GPUSET_H
#define GPULEASE_GPUSET_H

#include "base.h"

enum { GPUSET_MAX = 128 };

struct gpuset {
	uint64_t bits[GPUSET_MAX / 64];
};

#define GPUSET_NONE ((struct gpuset){ .bits = { 0 } })
#define GPUSET_ALL ((struct gpuset){ .bits = { UINT64_MAX, UINT64_MAX } })

/* The size of the longest hexadecimal form, with its NUL. */
enum { GPUSET_HEX_SIZE = GPUSET_MAX / 4 + 1 };

/* A slot that does not exist, such as -1 of gpuset_next(), is in no set and changes none. */
static inline void gpuset_add(struct gpuset *set, unsigned slot)
{
	if (slot < GPUSET_MAX)
		set->bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void gpuset_remove(struct gpuset *set, unsigned slot)
{
	if (slot < GPUSET_MAX)
		set->bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static inline bool gpuset_has(const struct gpuset *set, unsigned slot)
{
	return slot < GPUSET_MAX && (set->bits[slot / 64] >> slot % 64 & 1);
}

unsigned gpuset_count(const struct gpuset *set);
bool gpuset_is_empty(const struct gpuset *set);
bool gpuset_equals(const struct gpuset *a, const struct gpuset *b);
struct gpuset gpuset_and(const struct gpuset *a, const struct gpuset *b);
struct gpuset gpuset_or(const struct gpuset *a, const struct gpuset *b);
struct gpuset gpuset_minus(const struct gpuset *a, const struct gpuset *b);

/* Returns the lowest slot in @set that is not below @from; -1 if there is none. */
int gpuset_next(const struct gpuset *set, unsigned from);

/* Loops over the slots of @set in ascending order; declares `int slot`. */
#define gpuset_for_each(slot, set)                      \
	for (int slot = gpuset_next(set, 0); slot >= 0; \
		slot = gpuset_next(set, (unsigned)slot + 1))

/* Writes the hexadecimal form without leading zeros: "0" for the empty set. */
void gpuset_to_hex(const struct gpuset *set, char out[GPUSET_HEX_SIZE]);

/*
 * Reads the set from @size digits in lower case.  Returns 0, or -EINVAL if @size is 0, if the set
 * could not hold that many digits, or if a byte is no digit.
 */
MUST_CHECK int gpuset_from_hex(const char *hex, size_t size, struct gpuset *set);

#endif
