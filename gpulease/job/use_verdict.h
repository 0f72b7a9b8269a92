/*
 * What the samples of a job's memory say about the memory that it declared.  Pure.
 *
 * A peak that was seen is a lower bound.  So one sample is enough to say that a job used too much.
 * To say that it stayed within what it declared, or used less, the samples must span its life: no
 * stretch of its life may be without a sample for longer than a quarter of it, and none for longer
 * than two intervals.  The stretches from the start to the first sample, and from the last sample
 * to the end, count like those between two samples.
 */
#ifndef GPULEASE_USE_VERDICT_H
#define GPULEASE_USE_VERDICT_H

#include "base.h"

/*
 * Whether samples span the @life_ms of a job, if the longest stretch without a sample was
 * @unseen_ms, and samples were due every @interval_ms.
 */
bool use_is_spanned(int64_t unseen_ms, int64_t life_ms, int64_t interval_ms);

/* Whether @seen_mib is more than @declared_mib plus the tolerance; not if 0 MiB were declared. */
bool use_exceeds(uint64_t declared_mib, uint64_t seen_mib, unsigned tolerance_percent);

/* UNKNOWN: the samples do not say.  UNDER, OVER: by more than the tolerance. */
enum use_verdict { USE_UNKNOWN, USE_WITHIN, USE_UNDER, USE_OVER };

/* Compares the peak @seen_mib with @declared_mib; @is_spanned: as of use_is_spanned(). */
enum use_verdict use_compare(uint64_t declared_mib, uint64_t seen_mib, bool is_spanned,
	unsigned tolerance_percent);

#endif
