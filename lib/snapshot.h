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

/* Planned without, as if it had ended; see preempt.h. */
enum aside { ASIDE_NOT, ASIDE_MAYBE, ASIDE_NEEDED };

/* A lease, found in the file of at least one GPU of its set. */
struct snapshot_lease {
	struct lease lease;
	struct gpuset seen; /* the slots whose files hold it */
	bool is_of_this_boot, is_dead, is_over;
	/* its supervisor is dead: what is said here of its owner is true of its command */
	bool is_orphaned;
	bool is_placed;                     /* it is certain which GPUs its set means */
	int64_t alive_ms, dead_ms, over_ms; /* when this process saw it so; 0: never */
	int status;                         /* its exit status, -1: not known */
	bool is_unclear; /* a record names a left process, which cannot be judged from here */
	enum aside aside;
	int64_t sent_back_ms; /* when it ends because it is sent back; 0: it is not */
	bool is_cancelled;    /* by @cancelled_by, as a waiter knows */
	uint32_t cancelled_by;
	/* on GPUs that it shares, as the probe shows it; see usage.h */
	bool is_seen;                /* any process of it */
	uint64_t seen_mib, here_mib; /* the most on any; while one is looked at */
	int64_t quiet_ms; /* owner dead: since when no process of it was seen; 0: one is */
};

struct snapshot_gpu {
	struct lease_file file; /* .fd -1: known from the probe alone */
	unsigned records;       /* in the file, behind record 0 */
	bool exists;            /* of this boot, or in the probe */
	bool is_unusable;       /* what has its name is no lease file, or not for us */
	bool is_broken;         /* its record 0 cannot be read */
	bool is_doubtful;       /* a lease may be lost: its file is damaged, or missing */
	int64_t locked_until_ms; /* set by a waiter that did not get the lock */
	int row;                 /* in the probe, -1: none; of an instance its parent's */
	int mig; /* of an instance: the row in the probe's ->migs, -1: not listed */
	uint32_t
		stranger; /* a process beside it that is no lease's, 0: none; instance.h */
	int lease;        /* the lowest live lease on it, -1: none */
	bool is_shared;   /* and it leaves room for others */
	bool lingers;     /* somebody is left of a lease on it whose owner is dead */
	uint64_t foreign_mib;  /* held by nobody's lease; see usage.h */
	uint64_t settling_mib; /* held by what leases have left that have just ended */
	bool has_dead;         /* a void lease still stands in its file: just released */
	int64_t released_ms;   /* when the last of those was seen over */
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
	/* Its memory, and its children's, is no stranger's: it is to get a lease.  0: nobody. */
	uint32_t adoptee;
	struct lives lives;
	unsigned known;
	unsigned slots; /* those that may be in use */
	struct snapshot_lease *leases;
	size_t lease_count, lease_room;
	struct token_index lease_index; /* of their owners' tokens */
	bool is_any_unclear;            /* ->is_unclear of one of them */
	size_t broken_records;          /* skipped: neither void nor readable */
	struct gpuset moved; /* slots that led to other GPUs; the caller clears it */
	/*
	 * While a GPU is doubtful: whether a job lives that may be the one whose lease is lost.
	 * Then such GPUs are withheld, and its end is watched.
	 */
	bool is_account_open;
	/*
	 * The folder gpu/ as it was when its links were read last, and how often it was found
	 * changed.  gpulease only adds names there, so a change is a new GPU, a reused slot, or
	 * damage.
	 */
	struct snapshot_names {
		uint64_t inode;
		struct timespec changed;
		bool is_sure; /* ->changed is so old that the next change makes it differ */
		unsigned changes;
	} names;
	int64_t account_open_ms; /* since when; 0: it is not */
	struct account_job unknown;
	bool has_probe, has_links; /* below */
	struct plan_facts facts;   /* ->plan and all that belongs to it */
	struct plan_use *uses;
	size_t use_room;
	struct plan_limits limits;

	/* of all of these mostly just the beginning is touched: last, the smallest first */
	struct plan_user users[PLAN_USERS_MAX];
	struct plan_gpu plan[GPUSET_MAX];
	struct snapshot_gpu
		gpus[GPUSET_MAX]; /* by slot; beyond ->known not even cleared */
	struct probe probe;
	struct links links;
};

/* An empty snapshot of @dir, which the caller keeps; all its memory is snapshot's own. */
void snapshot_init(struct snapshot *snapshot, const struct statedir *dir);
void snapshot_release(struct snapshot *snapshot);

/* Whether names in gpu/ may have changed since snapshot_read() looked at them. */
bool snapshot_has_new_names(const struct snapshot *snapshot);

/*
 * Reads the lease files and judges the owners: the first half of a look.  Files stay open
 * from one look to the next; one that was deleted or replaced is opened again.  0 or a
 * negative errno.
 */
MUST_CHECK int snapshot_read(struct snapshot *snapshot, int64_t now_ms);

/*
 * snapshot_wants_look(): whether this process has to look for processes of leases (leftover.h) to
 * know if these are over.  That is so for leases in the files of @set (NULL: in any file) that are
 * over by their owners and FIFOs, and for leases that are ->is_unclear.
 *
 * snapshot_look(): looks through all processes if that is so, once for each lease.  Returns how
 * many leases turned out not to be over, and then the caller has to call snapshot_read() again; or
 * a negative errno.
 */
bool snapshot_wants_look(struct snapshot *snapshot, const struct gpuset *set);
MUST_CHECK int snapshot_look(
	struct snapshot *snapshot, const struct gpuset *set, int64_t now_ms);

/* snapshot_read(), and a look for processes of all leases: for readers that take no GPUs. */
MUST_CHECK int snapshot_read_and_look(struct snapshot *snapshot, int64_t now_ms);

/*
 * The second half, when ->probe is as new as it will be: the states of all GPUs, ->plan and
 * ->facts.  GPUs that only the probe knows get the next slots, for this snapshot alone.  0
 * or a negative errno.
 */
MUST_CHECK int snapshot_judge(struct snapshot *snapshot, int64_t now_ms);

/* The last part of that: ->plan and ->facts from the states of the GPUs. */
MUST_CHECK int snapshot_find_facts(struct snapshot *snapshot, int64_t now_ms);

/*
 * Fills in how the GPUs are linked, where @prober knows it; when ->probe is as new as it will
 * be, before or after the second half.
 */
struct prober;
void snapshot_find_links(struct snapshot *view, struct prober *prober, int64_t now_ms);

/* The process that is the job itself: the owner or, once that is dead, its command. */
struct owner snapshot_lease_process(const struct snapshot_lease *lease);

/* What @lease leaves of its GPUs; which is nothing where it does not say. */
struct need lease_need(const struct lease *lease);

/* Whether the GPU is withheld because a lease in its file may be lost. */
bool snapshot_withholds(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/* Whether what the probe says of the GPU is of no use, for a lease on it has ended since. */
bool snapshot_is_outdated(
	const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/*
 * Whether the probe, which there is, says nothing of the GPU that it could be handed out by: it
 * does not show it, nothing certain of it, or that nobody can use it.
 */
bool snapshot_is_blind(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

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

/* Nvidia-smi's index of GPU @slot, of an instance its parent's: by the probe, or the last. */
uint32_t snapshot_gpu_index(const struct snapshot *snapshot, unsigned slot);

/* Nvidia-smi's number of the instance on its GPU; -1: @slot is none. */
int64_t snapshot_gpu_device(const struct snapshot *snapshot, unsigned slot);

/* What people call GPU @slot: its index, "0"; instance 1 there, "0:1". */
struct gpu_name {
	char text[24];
};
struct gpu_name snapshot_gpu_name(const struct snapshot *snapshot, unsigned slot);

#endif
