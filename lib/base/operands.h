/*
 * Jobs and GPUs as people name them: `12 14,15`, `3-12`, `mine`; `0-3,5`, `0:1`, `GPU-5ab1…`.
 * Verbs take them as operands, options as lists.  Only the form is checked here, not whether the
 * job or the GPU exists.  Pure.
 */
#ifndef GPULEASE_OPERANDS_H
#define GPULEASE_OPERANDS_H

#include "text.h"

/*
 * One operand: a job; jobs, by a range of ids or by a word; GPUs, by their indices or by the
 * beginning of a UUID; or a MIG instance, `0:1` for instance 1 of GPU 0.
 */
struct operand {
	uint64_t first,
		last; /* of a job: its id, twice; of GPUs: indices, if @word is NULL */
	bool has_instance; /* the operand is ->instance of the GPU ->first, not the GPU */
	uint64_t instance;
	/* of jobs: a word; of a GPU: a UUID; inside the parsed text, without a NUL */
	const char *word;
	size_t word_size;
};

/*
 * OPERAND_NAME: a job, or a word that names one.  OPERAND_JOBS: a job, several (12-15), or a
 * word that names some.
 */
enum operand_kind { OPERAND_JOB, OPERAND_NAME, OPERAND_JOBS, OPERAND_GPU };
enum operand_outcome { OPERAND_DONE = 1 };

/* A walk over operands.  It allocates nothing and does not change the words. */
struct operand_walk {
	char *const *words;
	unsigned count;
	enum operand_kind kind;
	const char *at; /* the rest of the current word; NULL: the next word is due */
};

/* Initializes a walk over one list, `0-3,5`. */
#define OPERAND_LIST(list, of_kind)             \
	{                                       \
		.kind = (of_kind), .at = (list) \
	}

/* Initializes a walk over @operand_count words, each of which may be a list. */
#define OPERAND_WALK(operands, operand_count, of_kind)                           \
	{                                                                        \
		.words = (operands), .count = (operand_count), .kind = (of_kind) \
	}

/*
 * Reads the next operand.  Returns 0 and sets *@ret; OPERAND_DONE if none is left; or -EINVAL,
 * with the reason in @why, if the text there is no operand.
 */
MUST_CHECK int operand_next(
	struct operand_walk *walk, struct operand *ret, struct why *why);

/*
 * Checks the list of GPUs in @list.  Returns 0 and sets *@ret_count to the number of GPUs that it
 * names: a range counts each of its GPUs, and a GPU that is named twice counts twice.  Returns
 * -EINVAL, with the reason in @why, if the list is malformed or names more than @most GPUs.
 */
MUST_CHECK int operand_count_gpus(
	const char *list, unsigned most, unsigned *ret_count, struct why *why);

/*
 * Whether a well-formed list names a GPU twice in one way: by index, by UUID, or as an instance.
 * Then @why says which GPU.
 */
bool operand_has_twice(const char *list, struct why *why);

#endif
