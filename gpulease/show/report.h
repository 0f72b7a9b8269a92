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
	const char *by;       /* CAUSE_CANCEL: the user that cancelled it, "": unknown */
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

/* Appends that a job uses more of @gpu than it declared.  The caller has appended its name. */
void report_excess(
	uint64_t used_mib, const char *gpu, uint64_t declared_mib, struct text *out);

/* Appends a size for people: "0.5G", "18.5G". */
void report_add_size(uint64_t mib, struct text *out);

/* Appends a span for people: "2h13m". */
void report_add_span(int64_t ms, struct text *out);

/* The memory that a job was seen to use, and what it declared; 0: none. */
struct report_peak {
	uint64_t seen_mib, declared_mib;
	unsigned tolerance_percent;
	bool is_spanned; /* the samples span its life (use_verdict.h) */
};

/*
 * Appends "peak 17.9G of 18.0G declared, within 10 %".  If the samples do not span the life of the
 * job, the text says "at least", and compares the peak only if it is over.
 */
void report_add_peak(const struct report_peak *peak, struct text *out);

#endif
