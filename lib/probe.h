/*
 * The last look at the GPUs, shared through the state directory, so that many waiters start
 * one nvidia-smi and not one each.
 *
 *	probe         the last result: records probe/1, pgpu/1 …, pproc/1 …, pmig/1 …
 *
 * probe_lock.h says which process may probe.
 *
 * `probe` is replaced by rename(2), so a reader finds a whole result; checksums, counts and
 * the boot id are checked all the same, and one that does not hold is as good as none.
 *
 * It serves those who see the machine as its writer did: in another pid namespace processes
 * have other numbers, in another mount namespace or root (a container) there may be other
 * GPUs, or the same ones numbered otherwise.  To them it is none, and theirs replaces it.
 *
 * A result without any GPU is not shared, and a result that tells the state of no GPU does not
 * replace one that does: the nvidia-smi of one user may fail (permissions, limits) while it works
 * for all other users.
 *
 * A crash while probing leaves an nvidia-smi that ends by itself.  A crash while storing leaves
 * `probe.new`, which the next to store removes.
 */
#ifndef GPULEASE_PROBE_H
#define GPULEASE_PROBE_H

#include "probe_data.h"
#include "statedir.h"

enum { PROBE_NONE = 1 };

/* Longer apart, two probes say nothing about the time between them. */
enum { PROBE_GAP_MAX_MS = 15000 };

/*
 * Reads the last result in @dir.  0; PROBE_NONE: there is none, or it is of another boot, of
 * others who see the machine otherwise, or broken; or a negative errno.  Sets *@ret on 0 only.
 */
MUST_CHECK int probe_load(const struct statedir *dir, struct probe *ret);

/*
 * Marks in @probe how long each GPU has been idle (probe_mark_idle()) and how much each process
 * was seen to use (probe_mark_peaks()), by the last result or, where that is none, by @before,
 * the last that the caller has seen, which may be NULL; and makes it the last result.  One that
 * was started later and is there already stays, and so does one that @probe must not replace,
 * see above.  In a hardened @dir one that is not sound is not stored: its starter may have
 * spoiled it.  0 or a negative errno; then only other processes lack the result.
 */
MUST_CHECK int probe_store(const struct statedir *dir, const struct usage_policy *policy,
	const struct probe *before, struct probe *probe);

/* Sets *@to to @from without touching rows that are not there; see probe_begin(). */
void probe_copy(const struct probe *from, struct probe *to);

/*
 * Sets idle_since_ms of every GPU of @probe.  A GPU is idle if it is known, neither its memory
 * nor a process on it is over the threshold of @policy, and it computes less than what that
 * calls busy; since the end of this probe, or since when
 * @before says, if that ended at most PROBE_GAP_MAX_MS before this one began.  @before may be
 * NULL.
 */
void probe_mark_idle(struct probe *probe, const struct probe *before,
	const struct usage_policy *policy);

/*
 * Sets peak_mib of every process of @probe, whose ->start is set: the most that this probe
 * and those before it have seen of it.  @before, with peaks of its own, may be NULL.
 */
void probe_mark_peaks(struct probe *probe, const struct probe *before);

/* Sets *@ret to @gpus idle GPUs (at most GPUSET_MAX) of @mib MiB each, seen at @now_ms. */
void probe_simulate(unsigned gpus, uint64_t mib, int64_t now_ms, struct probe *ret);

#endif
