/*
 * How the GPUs of this machine are linked, shared through the state directory.  nvidia-smi is asked
 * once after a boot, and only by a job for which the links make a difference.
 *
 *	topology        records topo/1, tgpu/1 …
 *	topology.lock   empty; only the process that holds its flock(2) asks
 *
 * `topology` is replaced by rename(2), so a reader finds a whole result.  GPUs are named by their
 * UUIDs, so the result also serves containers, which may see fewer GPUs or other numbers.  A
 * process that finds one of its GPUs missing in the result asks again and replaces it.  The result
 * names every GPU of the probe, also those that the answer of nvidia-smi does not mention.
 *
 * If nothing could be learned (an old driver), that is a result, too, for TOPOLOGY_RETRY_MS.
 *
 * A crash while asking leaves an nvidia-smi that ends by itself.  A crash while storing leaves
 * `topology.new`, which the next process that stores a result removes.
 */
#ifndef GPULEASE_TOPOLOGY_H
#define GPULEASE_TOPOLOGY_H

#include "probe_data.h"
#include "smitopo.h"
#include "statedir.h"

enum { TOPOLOGY_RETRY_MS = 10 * 60 * 1000 };
enum topology_outcome { TOPOLOGY_NONE = 1, TOPOLOGY_BUSY = 2 };

struct topology_gpu {
	char uuid[96];
	int16_t node;              /* NUMA node, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX]; /* LINK_… to each of ->gpus */
};

/* Only the first ->count rows and columns are ever touched, as the whole struct has 28 KiB. */
struct topology {
	int64_t asked_ms;   /* CLOCK_BOOTTIME */
	bool is_sound;      /* complete and undisturbed; false if loaded */
	struct why trouble; /* why nothing is known, "" if something is */
	unsigned count;
	struct topology_gpu gpus[GPUSET_MAX];
};

/*
 * Reads the result in @dir.  Returns 0; TOPOLOGY_NONE if there is none, or if it is broken or of
 * another boot; or a negative errno.  Unless 0 is returned, *@ret is undefined.
 */
MUST_CHECK int topology_load(const struct statedir *dir, struct topology *ret);

/*
 * Stores @topology as the result.  In a hardened @dir a result that is not sound is not stored: the
 * user who asked may have spoiled it.  Returns 0 or a negative errno; after an error only the other
 * processes lack the result.
 */
MUST_CHECK int topology_store(
	const struct statedir *dir, const struct topology *topology);

/*
 * Takes the lock for asking, without waiting.  Returns 0 and sets *@ret_fd, which the caller closes
 * after it has stored the result; TOPOLOGY_BUSY if another process is asking; or a negative errno.
 * The lock is a courtesy, as the locks of probe_lock.h are.
 */
MUST_CHECK int topology_lock_try(int dirfd, int *ret_fd);

/*
 * Sets *@ret to the links of the GPUs of @probe by @answer, which names GPUs by the indices of
 * @probe.  If @answer is NULL nothing is known, and the caller sets ->trouble.
 */
void topology_from(const struct smitopo *answer, const struct probe *probe,
	int64_t asked_ms, struct topology *ret);

/*
 * Sets *@ret for the simulated GPUs of @probe: the first half is on one NUMA node, the rest on
 * another; fewer than 4 GPUs are all on one node.
 */
void topology_simulate(const struct probe *probe, struct topology *ret);

/* Whether @topology names every GPU of @probe and is not a failure older than TOPOLOGY_RETRY_MS. */
bool topology_serves(
	const struct topology *topology, const struct probe *probe, int64_t now_ms);

/*
 * Fills in the first @slots rows and columns of *@ret, and nothing else.  @uuids has the UUID of
 * each slot's GPU, of a MIG instance its parent's; NULL or "" if the slot has none.  Unknown links
 * and nodes become LINK_UNKNOWN and NODE_UNKNOWN.  Two slots of one GPU, and a slot with itself,
 * are LINK_SELF.
 */
void topology_to_links(const struct topology *topology, const char *const uuids[],
	unsigned slots, struct links *ret);

#endif
