/*
 * The last probe of the GPUs, shared through the state directory, so that many waiters together
 * start one nvidia-smi and not one each.
 *
 *	probe         the last result: records probe/1, pgpu/1 …, pproc/1 …, pmig/1 …
 *
 * probe_lock.h decides which process may probe.
 *
 * `probe` is replaced by rename(2), so a reader finds a whole result.  The reader checks the
 * checksums, the counts and the boot id all the same, and ignores a result that fails a check.
 *
 * A result serves only processes that see the machine as its writer did.  In another pid
 * namespace processes have other numbers; in another mount namespace or root (a container) there
 * may be other GPUs, or the same GPUs under other numbers.  Processes there ignore the result and
 * replace it by their own.
 *
 * A result without any GPU is not shared.  A result in which no GPU is known does not replace a
 * result in which one is: the nvidia-smi of one user may fail (permissions, limits) while it works
 * for all other users.
 *
 * A crash while probing leaves an nvidia-smi that ends by itself.  A crash while storing leaves
 * `probe.new`, which the next process that stores a result removes.
 */
#ifndef GPULEASE_PROBE_H
#define GPULEASE_PROBE_H

#include "probe_data.h"
#include "statedir.h"

enum probe_outcome { PROBE_NONE = 1 };

/*
 * Reads the last result in @dir.  Returns 0; PROBE_NONE if there is no result, or if it is broken,
 * of another boot, or of a process that sees the machine otherwise; or a negative errno.  Sets
 * *@ret only when it returns 0.
 */
MUST_CHECK int probe_load(const struct statedir *dir, struct probe *ret);

/*
 * Marks @probe by the results before it, and stores it as the last result.
 *
 * Marks how long each GPU has been idle (probe_mark_idle()) and how much each process was seen to
 * use (probe_mark_peaks()).  Both go by the stored result or, if there is none, by @before: the
 * last result that the caller has seen, or NULL.
 *
 * A stored result that was started later than @probe stays, and so does one that @probe must not
 * replace (see above).  In a hardened @dir a probe that is not sound is not stored: the user who
 * started it may have spoiled it.  Returns 0 or a negative errno; after an error only the other
 * processes lack the result.
 */
MUST_CHECK int probe_store(const struct statedir *dir, const struct usage_policy *policy,
	const struct probe *before, struct probe *probe);

/* Copies @from to *@to without touching the unused rows; see probe_begin(). */
void probe_copy(const struct probe *from, struct probe *to);

/* Sets *@ret to @gpus idle GPUs (at most GPUSET_MAX) of @mib MiB each, seen at @now_ms. */
void probe_simulate(unsigned gpus, uint64_t mib, int64_t now_ms, struct probe *ret);

#endif
