/*
 * What a probe and the probes before it say together: since when each GPU has been idle, and the
 * most memory that each process was seen to use.  Pure.
 */
#ifndef GPULEASE_PROBE_MARKS_H
#define GPULEASE_PROBE_MARKS_H

#include "probe_data.h"

/* If two probes are further apart, they say nothing about the time between them. */
enum { PROBE_GAP_MAX_MS = 15000 };

/*
 * Sets idle_since_ms of every GPU of @probe.  A GPU is idle if it is known, neither its memory in
 * use nor that of any process on it is over the idle threshold of @policy, and its utilization
 * is below the busy threshold.  It has been idle since this probe ended, or since the time that
 * @before says if @before ended at most PROBE_GAP_MAX_MS before this probe began.  @before may
 * be NULL.
 */
void probe_mark_idle(struct probe *probe, const struct probe *before,
	const struct usage_policy *policy);

/*
 * Sets peak_mib of every process of @probe: the most that this probe and the probes before it
 * have seen of the process.  The caller has set ->start of each.  @before has peaks of its own,
 * and may be NULL.
 */
void probe_mark_peaks(struct probe *probe, const struct probe *before);

#endif
