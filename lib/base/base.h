/*
 * What every file of gpulease may use: attributes, descriptors and memory that are
 * released when their variable leaves scope, and the list of banned functions.
 */
#ifndef GPULEASE_BASE_H
#define GPULEASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns the descriptor and sets *@fd to -1: the caller owns the descriptor from then on. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes *@fd if it is not negative, and sets it to -1.  May be called again. */
static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

static inline void free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

/* `autofd int fd = …;` closes fd at the end of its scope; autofree frees a pointer there. */
#define autofd __attribute__((cleanup(close_fd)))
#define autofree __attribute__((cleanup(free_pointer)))

#include "banned.h"

#endif
