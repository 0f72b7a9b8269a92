/*
 * --report: the lines at the end of an attempt that say what it got, what it used, how it ended and
 * what comes next.  Pure.
 */
#ifndef GPULEASE_REPORT_H
#define GPULEASE_REPORT_H

#include "retry_policy.h"
#include "sampler.h"

struct report {
	uint64_t job;
	uint32_t attempt; /* 0 or 1: the first attempt */
	const char *name; /* of the job, "": none */
	struct attempt_end end;
	const char *by; /* CAUSE_CANCEL: the user that cancelled it, "": unknown */
	uint64_t
		preempted_by; /* CAUSE_PREEMPT: the ticket that gets the GPUs, 0: unknown */
	enum retry_next next; /* what comes after this attempt */
	int64_t next_delay_ms;
	uint64_t
		next_vram_mib; /* RETRY_NEXT_OOM: what the next attempt declares, 0: nothing */
	int64_t waited_ms;
	unsigned gpu_count;
	struct need need;              /* of each GPU */
	const struct sampler *sampler; /* NULL: the use was not sampled */
	bool log_is_full; /* output was lost: full disk, or a limit on the size of files */
};

/* Appends the lines of the report, each with its newline. */
void report_write(const struct report *report, struct text *out);

/* Appends a line, without newline, that says how much more than declared @job uses. */
void report_excess(uint64_t job, const struct sampler *sampler, struct text *out);

/* Appends a size for people: "0.5G", "18.5G". */
void report_add_size(uint64_t mib, struct text *out);

/* Appends a span for people: "2h13m". */
void report_add_span(int64_t ms, struct text *out);

/* Appends "peak 17.9G of 18.0G declared, within 10 %"; @declared_mib 0: nothing was declared. */
void report_add_peak(uint64_t peak_mib, uint64_t declared_mib, unsigned tolerance_percent,
	struct text *out);

#endif
