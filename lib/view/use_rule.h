/*
 * What happens to a job that does not use its GPUs: it is told, then warned twice, then ended.
 * Pure.
 *
 * A job is ended only while another one waits for its GPUs, and only a good while after its first
 * warning.  Once no job waits, or a GPU is used again, all begins anew.
 */
#ifndef GPULEASE_USE_RULE_H
#define GPULEASE_USE_RULE_H

#include "base.h"

enum use_step {
	USE_NOTHING,
	USE_TELL,       /* unused for ->after_ms */
	USE_WARN_FIRST, /* the job will be ended at ->end_at_ms */
	USE_WARN_LAST,
	USE_END,
};

/* The keys `idle-after` and `idle-end`, and what the job asks for. */
struct use_limits {
	int64_t after_ms; /* 0: never told */
	int64_t end_ms;   /* 0: never ended */
	int64_t ok_ms; /* --idle-ok: a longer time than both; 0: not given; -1: for ever */
};

/* Returns the limits with ->ok_ms worked in: 0 where the job is never told, or never ended. */
struct use_limits use_limits_of_job(const struct use_limits *limits);

struct use_case {
	struct use_limits limits; /* from use_limits_of_job() */
	int64_t now_ms;           /* of the sample */
	/* for how long all GPUs of the job are unused, now and at the sample before */
	int64_t unused_ms, before_ms;
	int64_t warned_ms;  /* of the first warning; 0: there was none */
	unsigned warnings;  /* how many there were: 0, 1, 2 */
	bool is_waited_for; /* another job waits for its GPUs */
};

/*
 * Returns what to do now, and sets *@ret_end_at_ms, when the job is to be ended, for a warning.
 * The caller keeps ->warned_ms and ->warnings: 0 after USE_NOTHING of a job that is not waited for.
 */
enum use_step use_rule_judge(const struct use_case *now, int64_t *ret_end_at_ms);

#endif
