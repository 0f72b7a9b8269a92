/*
 * Who has used how much of the machine: sums over what has ended and over what runs.  Pure but
 * for memory.
 *
 *	accounting_init -> accounting_add … -> accounting_finish -> accounting_release
 *
 * GPU time is the number of GPUs times the time that a job had them, as far as that lies
 * within the period: a share counts as its part, declared memory alone as a whole GPU, an
 * instance of MIG as a GPU.  Where nobody saw a job end, it is at least the time until it was
 * last seen alive, at most that until it was first seen over.  Each attempt has its own time
 * and its own wait; the job is one.
 */
#ifndef GPULEASE_ACCOUNTING_H
#define GPULEASE_ACCOUNTING_H

#include "ended_filter.h"

/* Times and spans in milliseconds. */
struct accounting_row {
	uint32_t uid;
	char user[USER_SIZE];    /* as recorded; "": nowhere */
	uint64_t jobs, attempts; /* attempts: as many or more */
	uint64_t running;        /* of the attempts */
	uint64_t gpu_least_ms, gpu_most_ms;
	/* utilization: percent times milliseconds, and those milliseconds */
	uint64_t busy, measured_ms;
	int64_t *waits_ms; /* of each attempt; sorted by accounting_finish() */
	size_t wait_count, wait_room;
};

struct accounting {
	const struct ended_filter *filter;
	unsigned gpus;             /* of the machine; the caller's, 0: not known */
	struct history_gap gap;    /* what the history lacks; the caller's */
	int64_t from_ms, until_ms; /* the period; from_ms 0: from the first entry on */
	struct accounting_row total;
	struct accounting_row *rows;
	size_t count, room;
	struct accounting_job *retried; /* jobs whose earlier attempts are to come */
	size_t retried_count, retried_room;
	int64_t first_ms; /* the beginning of the first entry; 0: there is none */
};

/* Begins, at @now_ms; the filter stays the caller's. */
void accounting_init(
	struct accounting *accounting, const struct ended_filter *filter, int64_t now_ms);
void accounting_release(struct accounting *accounting);

/*
 * Adds @end where the filter admits it; the latest first, so that the attempts of a job are
 * one.  One that is running ends now, in a state that nobody knows.  0 or -ENOMEM.
 */
MUST_CHECK int accounting_add(
	struct accounting *accounting, const struct history_end *end, bool is_running);

/* Settles the period and sorts: who has used most comes first. */
void accounting_finish(struct accounting *accounting);

/* Of a row, after that: -1 where there is nothing to tell it from. */
int64_t accounting_mean_wait_ms(const struct accounting_row *row);
int64_t accounting_p95_wait_ms(const struct accounting_row *row);
int accounting_utilization(const struct accounting_row *row); /* percent */

/*
 * The part that the row's GPU time, at least, is of all that the machine's GPUs have in the
 * period, in hundredths of a percent; -1 where there is no such time.
 */
int64_t accounting_share(
	const struct accounting *accounting, const struct accounting_row *row);

/* "87/100" of a record: mean and peak in percent; false where it says nothing. */
bool ended_utilization(
	const struct history_end *end, unsigned *ret_mean, unsigned *ret_peak);

/* GPU time of an end between two moments, as above.  Milliseconds. */
uint64_t ended_gpu_ms(const struct history_end *end, int64_t from_ms, int64_t to_ms);

#endif
