/*
 * A reader's view of the state: the GPUs, their leases and who of their owners lives, what
 * nvidia-smi last said, and from all this the facts that a plan rests on.  Taken without a
 * lock; who acts on it takes it again with the locks held.
 *
 * Tickets are read before a snapshot is taken, and lives judged in it: in the other order a
 * ticket that is granted in between would be in neither.
 */
#ifndef GPULEASE_SNAPSHOT_H
#define GPULEASE_SNAPSHOT_H

#include "account.h"
#include "lease.h"
#include "life.h"
#include "policy.h"
#include "probe_data.h"

/* A lease, found in the file of at least one GPU of its set. */
struct snapshot_lease {
	struct lease lease;
	struct gpuset seen; /* the slots whose files hold it */
	bool is_of_this_boot, is_dead, is_over;
	bool is_placed;                     /* it is certain which GPUs its set means */
	int64_t alive_ms, dead_ms, over_ms; /* when this process saw it so; 0: never */
	bool is_cancelled;                  /* by @cancelled_by, as a waiter knows */
	uint32_t cancelled_by;
};

struct snapshot_gpu {
	struct lease_file file; /* .fd -1: known from the probe alone */
	unsigned records;       /* in the file, behind record 0 */
	bool exists;            /* of this boot, or in the probe */
	bool is_unusable;       /* what has its name is no lease file, or not for us */
	bool is_broken;         /* its record 0 cannot be read */
	bool is_doubtful;       /* a lease may be lost: its file is damaged, or missing */
	int64_t locked_until_ms; /* set by a waiter that did not get the lock */
	int row;                 /* in the probe, -1: none */
	int lease;               /* the lowest live lease on it, -1: none */
	bool has_dead;       /* a void lease still stands in its file: just released */
	int64_t released_ms; /* when the last of those was seen over */
	uint32_t
		culprit; /* the process behind GPU_EXTERNAL or GPU_SETTLING, 0: unknown */
	enum gpu_state state; /* as the plan sees it */
};

struct snapshot {
	const struct statedir *dir;
	struct usage_policy usage;
	/*
	 * Taken to be shown, not to act on: GPUs are what the last probe says, however old it
	 * is, and unknown without one.  Who acts takes them for free then and probes.
	 */
	bool is_for_show;
	struct lives lives;
	struct snapshot_gpu
		gpus[GPUSET_MAX]; /* by slot; beyond ->known not even cleared */
	unsigned known;
	unsigned slots; /* those that may be in use */
	struct snapshot_lease *leases;
	size_t lease_count, lease_room;
	size_t broken_records; /* skipped: neither void nor readable */
	/*
	 * While a GPU is doubtful: whether a job lives that may be the one whose lease is lost.
	 * Then such GPUs are withheld, and its end is watched.
	 */
	bool is_account_open;
	int64_t account_open_ms; /* since when; 0: it is not */
	struct account_job unknown;
	bool has_probe;
	struct probe probe;
	struct plan_gpu plan[GPUSET_MAX];
};

/* An empty snapshot of @dir, which the caller keeps; all its memory is snapshot's own. */
void snapshot_init(struct snapshot *snapshot, const struct statedir *dir);
void snapshot_release(struct snapshot *snapshot);

/*
 * Reads the lease files and judges the owners: the first half of a look.  Files stay open
 * from one look to the next; one that was deleted or replaced is opened again.  0 or a
 * negative errno.
 */
MUST_CHECK int snapshot_read(struct snapshot *snapshot, int64_t now_ms);

/*
 * The second half, when ->probe is as new as it will be: the states of all GPUs and ->plan.
 * GPUs that only the probe knows get the next slots, for this snapshot alone.
 */
void snapshot_judge(struct snapshot *snapshot, int64_t now_ms);

/* Whether the GPU is withheld because a lease in its file may be lost. */
bool snapshot_withholds(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/* Whether a job lives, as far as can be told, whose lease is not in @snapshot. */
bool snapshot_has_unknown(const struct snapshot *snapshot);

/* The GPU of @slot, at most one behind those that are known, forgotten if it was not open. */
struct snapshot_gpu *snapshot_gpu_at(struct snapshot *snapshot, unsigned slot);

/* The slot of the GPU with that uuid, -1 where there is none. */
int snapshot_find_gpu(const struct snapshot *snapshot, const char *uuid);

/*
 * The lease with that token, dead or alive; NULL where there is none.  Not by its ticket: the
 * numbers begin anew when the ticket file is replaced.
 */
struct snapshot_lease *snapshot_find_token(struct snapshot *snapshot, const char *token);

/* What people call GPU @slot: nvidia-smi's index, from the probe or the last known. */
uint32_t snapshot_gpu_index(const struct snapshot *snapshot, unsigned slot);

#endif
