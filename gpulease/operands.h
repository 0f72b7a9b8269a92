/*
 * The operands of the verbs: `12 14,15`, `0-3,5`, `GPU-5ab1…`.  Pure.
 */
#ifndef GPULEASE_OPERANDS_H
#define GPULEASE_OPERANDS_H

#include "text.h"

/* One job, or GPUs by index or by the beginning of their UUID. */
struct operand {
	uint64_t first, last; /* a job: both its id; GPUs: indices, where @uuid is NULL */
	const char *uuid;     /* @uuid_size bytes of argv, no NUL behind them */
	size_t uuid_size;
};

enum operand_kind { OPERAND_JOB, OPERAND_GPU };
enum { OPERAND_DONE = 1 };

/* A walk over operands; neither allocates nor changes them. */
struct operand_walk {
	char *const *words;
	unsigned count;
	enum operand_kind kind;
	const char *at; /* NULL: the next word's beginning */
};

#define OPERAND_WALK(operands, operand_count, of_kind)                           \
	{                                                                        \
		.words = (operands), .count = (operand_count), .kind = (of_kind) \
	}

/*
 * Reads the next one.  0; OPERAND_DONE: there was none left; -EINVAL: what is there is
 * none, @why says so.  Sets *@ret only on 0.
 */
MUST_CHECK int operand_next(
	struct operand_walk *walk, struct operand *ret, struct why *why);

#endif
