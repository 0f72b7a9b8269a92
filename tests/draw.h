/* Pseudo-random numbers of tests and tools, which a seed repeats. */
#ifndef GPULEASE_TESTS_DRAW_H
#define GPULEASE_TESTS_DRAW_H

#include <stdint.h>

/* The next number below @bound; @state is not 0. */
static inline unsigned draw(uint64_t *state, unsigned bound)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (unsigned)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % bound;
}

#endif
