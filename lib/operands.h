/*
 * Jobs and GPUs as people name them: `12 14,15`; `0-3,5`, `0:1`, `GPU-5ab1…`.  For the
 * operands of the verbs and for lists behind options.  Their form is checked, not whether
 * there are such.  Pure.
 */
#ifndef GPULEASE_OPERANDS_H
#define GPULEASE_OPERANDS_H

#include "text.h"

/*
 * One job, or GPUs by index or by the beginning of their UUID, or an instance of MIG: `0:1`
 * is instance 1 of GPU 0.
 */
struct operand {
	uint64_t first, last; /* a job: both its id; GPUs: indices, where @uuid is NULL */
	bool has_instance; /* only ->instance of the GPU ->first is meant, not the GPU */
	uint64_t instance;
	const char *uuid; /* @uuid_size bytes of the text, no NUL behind them */
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

/* A walk over one list. */
#define OPERAND_LIST(list, of_kind)             \
	{                                       \
		.kind = (of_kind), .at = (list) \
	}

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

/*
 * Checks a list of GPUs in the text @list.  *@ret_count is how many it names, ranges counted
 * out; one that is named twice counts twice.  0 or -EINVAL.
 */
MUST_CHECK int operand_count_gpus(
	const char *list, unsigned most, unsigned *ret_count, struct why *why);

/* Whether a list that was checked names a GPU twice in the same way; @why says which. */
bool operand_has_twice(const char *list, struct why *why);

#endif
