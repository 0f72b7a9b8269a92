/*
 * How the GPUs of this machine are linked, shared through the state directory: asked for once
 * after a boot, and only by a job for which it makes a difference.
 *
 *	topology        records topo/1, tgpu/1 …
 *	topology.lock   empty; its flock(2) keeps all but one from asking
 *
 * `topology` is replaced by rename(2), so a reader finds a whole result.  GPUs go by their
 * UUIDs, so that it serves containers, too, which may see fewer of them or under other
 * numbers: whoever finds GPUs missing in it asks again, and theirs replaces it.  It names all
 * GPUs there were, those also that nvidia-smi said nothing of.
 *
 * That nothing could be learned (an old driver) is a result, too, for TOPOLOGY_RETRY_MS.
 *
 * A crash while asking leaves an nvidia-smi that ends by itself; one while storing leaves
 * `topology.new`, which the next to store removes.
 */
#ifndef GPULEASE_TOPOLOGY_H
#define GPULEASE_TOPOLOGY_H

#include "probe_data.h"
#include "smitopo.h"
#include "statedir.h"

enum { TOPOLOGY_NONE = 1, TOPOLOGY_BUSY = 1, TOPOLOGY_RETRY_MS = 10 * 60 * 1000 };

struct topology_gpu {
	char uuid[96];
	int16_t node;              /* of NUMA, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX]; /* LINK_… to each of ->gpus */
};

/* Only the first ->count of its arrays are ever touched: the whole has 28 KiB. */
struct topology {
	int64_t asked_ms;   /* CLOCK_BOOTTIME */
	bool is_sound;      /* whole and undisturbed; not of one that was loaded */
	struct why trouble; /* why nothing is known, "" if something is */
	unsigned count;
	struct topology_gpu gpus[GPUSET_MAX];
};

/*
 * Reads the result in @dir.  0; TOPOLOGY_NONE: there is none, or it is of another boot or
 * broken; or a negative errno.  *@ret holds nothing of use but on 0.
 */
MUST_CHECK int topology_load(const struct statedir *dir, struct topology *ret);

/*
 * Makes @topology the result.  In a hardened @dir one that is not sound is not stored: its
 * asker may have spoiled it.  0 or a negative errno; then only the others lack it.
 */
MUST_CHECK int topology_store(
	const struct statedir *dir, const struct topology *topology);

/*
 * Takes the lock of those who ask, without waiting.  0 and the descriptor, to be closed after
 * the result has been stored; TOPOLOGY_BUSY; or a negative errno.  A courtesy, as the locks of
 * probe_lock.h are.
 */
MUST_CHECK int topology_lock_try(int dirfd, int *ret_fd);

/*
 * Sets *@ret to what @answer says of the GPUs of @probe, whose indices it goes by; @answer
 * NULL: nothing is known, and the caller says why.
 */
void topology_from(const struct smitopo *answer, const struct probe *probe,
	int64_t asked_ms, struct topology *ret);

/*
 * Sets *@ret for the simulated GPUs of @probe: the first half on one NUMA node, the rest on
 * another, all on one where they are fewer than 4.
 */
void topology_simulate(const struct probe *probe, struct topology *ret);

/* Whether it names every GPU of @probe and is not a failure that has grown old. */
bool topology_serves(
	const struct topology *topology, const struct probe *probe, int64_t now_ms);

/*
 * Fills in the first @slots rows and columns of *@ret, and nothing else.  @uuids tells the GPU
 * of each slot, of a MIG instance its parent; NULL or "": none.  What is not known becomes
 * LINK_UNKNOWN and NODE_UNKNOWN; two slots of one GPU, and a slot with itself, LINK_SELF.
 */
void topology_to_links(const struct topology *topology, const char *const uuids[],
	unsigned slots, struct links *ret);

#endif
