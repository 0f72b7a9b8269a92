/*
 * The last look at the GPUs, shared through the state directory, so that many waiters start
 * one nvidia-smi and not one each.
 *
 *	probe         the last result: records probe/1, pgpu/1 …, pproc/1 …, pmig/1 …
 *	probe.lock    empty; its flock(2) makes probing single-flight
 *
 * `probe` is replaced by rename(2), so a reader finds a whole result; checksums, counts and
 * the boot id are checked all the same, and one that does not hold is as good as none.
 *
 * A crash while probing leaves an nvidia-smi that ends by itself; the lock falls with its
 * holder.  A crash while storing leaves `probe.new`, which the next to store removes.
 */
#ifndef GPULEASE_PROBE_H
#define GPULEASE_PROBE_H

#include "probe_data.h"

enum { PROBE_NONE = 1, PROBE_BUSY = 1 };

/* Used memory up to which a GPU counts as idle, if nothing else is configured. */
enum { PROBE_IDLE_MIB = 200 };

/* Longer apart, two probes say nothing about the time between them. */
enum { PROBE_GAP_MAX_MS = 15000 };

/*
 * Reads the last result of the boot @boot.  0; PROBE_NONE: there is none, or it is of another
 * boot or broken; or a negative errno.  Sets *@ret on 0 only.
 */
MUST_CHECK int probe_load(int dirfd, const char *boot, struct probe *ret);

/*
 * Marks in @probe how long each GPU has been idle (probe_mark_idle()) and makes it the last
 * result.  One that was started later and is there already stays.  0 or a negative errno;
 * then only the others lack the result.
 */
MUST_CHECK int probe_store(
	int dirfd, const char *boot, uint64_t idle_mib, struct probe *probe);

/*
 * Sets idle_since_ms of every GPU of @probe.  A GPU is idle if it is known and neither its
 * memory nor a process on it is over @idle_mib; since the end of this probe, or since when
 * @before says, if that ended at most PROBE_GAP_MAX_MS before this one began.  @before may be
 * NULL.
 */
void probe_mark_idle(struct probe *probe, const struct probe *before, uint64_t idle_mib);

/*
 * Takes the lock of those who probe, without waiting.  0 and the descriptor, which is to be
 * closed after the result has been stored; PROBE_BUSY: somebody is probing; or a negative
 * errno.  A courtesy: who has waited long enough for the result of another, or may not open
 * the file, probes by himself.
 *
 * nvidia-smi may be started with the lock held: the child closes its copy before exec, so
 * one that hangs never holds it.  In between the lock can outlast its holder by that moment.
 */
MUST_CHECK int probe_lock_try(int dirfd, int *ret_fd);

/* Sets *@ret to @gpus idle GPUs (at most GPUSET_MAX) of @mib MiB each, seen at @now_ms. */
void probe_simulate(unsigned gpus, uint64_t mib, int64_t now_ms, struct probe *ret);

#endif
