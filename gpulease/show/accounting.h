/*
 * Use of the machine per user: sums over the jobs that have ended and the jobs that run.  Pure but
 * for memory.
 *
 *	accounting_init -> accounting_add … -> accounting_finish -> accounting_release
 *
 * GPU time is the number of GPUs times the time that a job had them within the period.  A share
 * counts as its part, declared memory without a share as a whole GPU, a MIG instance as a GPU.  If
 * the end of a job was not seen, the least GPU time ends when the job was last seen alive, and the
 * most when it was first seen over.  Each attempt has its own time and its own wait; the job counts
 * once.
 */
#ifndef GPULEASE_ACCOUNTING_H
#define GPULEASE_ACCOUNTING_H

#include "ended_filter.h"

/* Times and spans in milliseconds. */
struct accounting_row {
	uint32_t uid;
	char user[USER_SIZE];    /* as recorded; "": not recorded */
	uint64_t jobs, attempts; /* a job has one attempt or more */
	uint64_t running;        /* attempts that still run */
	uint64_t gpu_least_ms, gpu_most_ms;
	/* the sum of percent times milliseconds, and of the milliseconds measured */
	uint64_t busy, measured_ms;
	uint64_t unused_gpu_ms; /* GPU time at 0 %, as far as it was sampled */
	bool has_unused;
	int64_t *waits_ms; /* of each attempt; sorted by accounting_finish() */
	size_t wait_count, wait_room;
};

struct accounting {
	const struct ended_filter *filter;
	unsigned gpus;             /* of the machine; the caller sets it, 0: unknown */
	struct history_gap gap;    /* what the history lacks; the caller sets it */
	int64_t from_ms, until_ms; /* the period; from_ms 0: from the first entry on */
	struct accounting_row total;
	struct accounting_row *rows;
	size_t count, room;
	struct accounting_job
		*retried; /* jobs with earlier attempts that have not been added yet */
	size_t retried_count, retried_room;
	int64_t first_ms; /* the beginning of the first entry; 0: there is none */
};

/* Begins.  The period ends at @now_ms at the latest.  @filter has to stay. */
void accounting_init(
	struct accounting *accounting, const struct ended_filter *filter, int64_t now_ms);
void accounting_release(struct accounting *accounting);

/*
 * Adds @end if the filter admits it.  The caller adds the latest first, so that the attempts of a
 * job are recognized.  An attempt that is running counts as if it ended now; a filter of states
 * does not admit it.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int accounting_add(
	struct accounting *accounting, const struct history_end *end, bool is_running);

/* Fixes the period and sorts the users, the largest use first.  After the last accounting_add(). */
void accounting_finish(struct accounting *accounting);

/* Figures of a row, after accounting_finish(); -1 without any data. */
int64_t accounting_mean_wait_ms(const struct accounting_row *row);
int64_t accounting_p95_wait_ms(const struct accounting_row *row);
int accounting_utilization(const struct accounting_row *row); /* percent */

/*
 * Returns the least GPU time of the row as a part of all GPU time of the machine in the period, in
 * hundredths of a percent; -1 if the machine has no GPU time.
 */
int64_t accounting_share(
	const struct accounting *accounting, const struct accounting_row *row);

/*
 * Reads "87/100" in a record: mean and peak of the utilization in percent.  Returns false if the
 * record has none.
 */
bool ended_utilization(
	const struct history_end *end, unsigned *ret_mean, unsigned *ret_peak);

/* Returns the GPU time of @end between two moments, as above, in milliseconds. */
uint64_t ended_gpu_ms(const struct history_end *end, int64_t from_ms, int64_t to_ms);

#endif
