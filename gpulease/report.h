/*
 * The report at the end of a job: what it got, used and how it ended.  Pure.
 */
#ifndef GPULEASE_REPORT_H
#define GPULEASE_REPORT_H

#include "care.h"
#include "sampler.h"

struct report {
	uint64_t job;
	uint32_t attempt; /* 0 or 1: the first */
	const char *name; /* "" */
	struct attempt_end end;
	const char *by; /* CAUSE_CANCEL: who wanted it, "" not known */
	uint64_t
		preempted_by; /* CAUSE_PREEMPT: the ticket that comes first, 0: not known */
	enum care_next next; /* what comes after it */
	int64_t next_delay_ms;
	uint64_t next_vram_mib; /* CARE_RETRY_OOM: what it declares then, 0: nothing */
	int64_t waited_ms;
	unsigned gpu_count;
	struct need need;              /* of each GPU */
	const struct sampler *sampler; /* NULL: nothing was looked at */
	bool log_is_full; /* output was lost: the disk, or a limit on the size of files */
};

/* Appends the lines, each ended by a newline. */
void report_write(const struct report *report, struct text *out);

/* Appends what @job uses too much, in a line of its own without a newline. */
void report_excess(uint64_t job, const struct sampler *sampler, struct text *out);

/* Appends @mib as people read it: "500MiB", "18.5G". */
void report_add_size(uint64_t mib, struct text *out);

/* Likewise a time: "2h13m". */
void report_add_span(int64_t ms, struct text *out);

/* "peak 17.9G of 18.0G declared, within 10 %"; @declared_mib 0: nothing was. */
void report_add_peak(uint64_t peak_mib, uint64_t declared_mib, unsigned tolerance_percent,
	struct text *out);

#endif
