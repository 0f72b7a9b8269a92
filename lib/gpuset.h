/*
 * A set of GPUs, named by their slot numbers (gpu/slot.<n> in the state directory), written
 * in records as a hexadecimal number whose bit n is slot n.
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

/* Bytes that the hexadecimal form of any set takes, with its NUL. */
enum { GPUSET_HEX_SIZE = GPUSET_MAX / 4 + 1 };

static inline void gpuset_add(struct gpuset *set, unsigned slot)
{
	set->bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void gpuset_remove(struct gpuset *set, unsigned slot)
{
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

/* The lowest slot in @set that is at least @from, -1 where there is none. */
int gpuset_next(const struct gpuset *set, unsigned from);

/* for (int slot = …; over every slot of @set in ascending order. */
#define gpuset_for_each(slot, set)                      \
	for (int slot = gpuset_next(set, 0); slot >= 0; \
		slot = gpuset_next(set, (unsigned)slot + 1))

/* Writes the shortest hexadecimal form, "0" for the empty set. */
void gpuset_to_hex(const struct gpuset *set, char out[GPUSET_HEX_SIZE]);

/* Reads @size bytes of hexadecimal; 0, or -EINVAL where they are none or too many. */
MUST_CHECK int gpuset_from_hex(const char *hex, size_t size, struct gpuset *set);

#endif
