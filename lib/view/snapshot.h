/*
 * A reader's view of the state: the GPUs, their leases, which owners live, and what nvidia-smi last
 * showed.  From these it derives the facts that a plan rests on.  A snapshot is taken without a
 * lock; a process that changes something takes it again with the locks held.
 *
 *	snapshot_read.c    lease files, owners, and the look for processes of dead leases
 *	snapshot_gpu_state.c   the state of every GPU
 *	snapshot_facts.c   the facts for the plan, and how the GPUs are linked
 *	snapshot.c         the rest: life cycle, finding GPUs and leases, names of GPUs
 *
 * The caller reads the tickets before it takes a snapshot, and judges their owners after that.  In
 * the other order, a ticket that is granted in between would appear neither as waiting nor as a
 * lease.
 */
#ifndef GPULEASE_SNAPSHOT_H
#define GPULEASE_SNAPSHOT_H

#include "integrity.h"
#include "lease.h"
#include "liveness.h"
#include "policy.h"
#include "probe_data.h"
#include "windows.h"

/*
 * Whether the plan goes on as if the lease had ended, see preempt.h.  NOT: it does not.  MAYBE: it
 * does until preempt_choose() has tried to spare the lease.  NEEDED: it does, because our ticket
 * cannot start without the end of the lease.
 */
enum aside { ASIDE_NOT, ASIDE_MAYBE, ASIDE_NEEDED };

/* A lease that was found in the file of at least one GPU of its set. */
struct snapshot_lease {
	struct lease lease;
	struct gpuset seen; /* the slots with its record in their files */
	bool is_of_this_boot, is_dead, is_over;
	/* its supervisor is dead: the fields about its owner are about its command */
	bool is_orphaned;
	bool is_placed; /* it is certain which GPUs the slots of its set mean */
	/* last seen alive, first seen dead, first seen over by this process; 0: never */
	int64_t alive_ms, dead_ms, over_ms;
	int status; /* its exit status, -1: not known */
	/* a record names a leftover process that cannot be judged from here */
	bool is_unclear;
	enum aside aside;
	uint16_t early; /* 1 + its index in ->early of the facts; 0: it is not there */
	int64_t sent_back_ms; /* when it has to end, because it is preempted; 0: it is not */
	int64_t usual_end_ms; /* while foretell.h plans: when such jobs end; 0: by its limit */
	/* what the probe shows of it on GPUs that it shares; see usage.h */
	bool is_seen;                /* the probe shows a process of it */
	uint64_t seen_mib, here_mib; /* the most on any GPU; on the GPU being judged */
	/* its owner is dead: since when no probe has shown a process of it; 0: one has */
	int64_t quiet_ms;
};

struct snapshot_gpu {
	struct lease_file file;  /* .fd -1: known only by the probe */
	unsigned records;        /* in the file, after record 0 */
	bool exists;             /* of this boot, or in the probe */
	bool is_unusable;        /* its file is no lease file, or cannot be opened */
	bool is_broken;          /* its record 0 cannot be read */
	bool is_doubtful;        /* a lease may be lost: its file is damaged or missing */
	int64_t locked_until_ms; /* this process did not get the lock: do not try before */
	int row;                 /* in the probe, -1: none; of an instance its parent's */
	int mig; /* of an instance: row in the probe's ->migs, -1: not listed */
	/* of an instance: a process on its parent without a lease; 0: none */
	uint32_t stranger;
	int lease;             /* the lowest live lease on it, -1: none */
	bool is_shared;        /* all its leases leave room for others */
	bool lingers;          /* the owner of a lease on it is dead, but not the lease */
	uint64_t foreign_mib;  /* memory in use that belongs to no lease; see usage.h */
	uint64_t settling_mib; /* memory in use of leases that have just ended */
	bool has_dead;         /* its file has a void lease of this boot: just released */
	int64_t released_ms;   /* when the last void lease in its file was seen over */
	/* the process that causes GPU_EXTERNAL or GPU_SETTLING, 0: unknown */
	uint32_t culprit;
	/* of a GPU not in use: how much the culprit was seen with; 0: it is in use, or free */
	uint64_t past_mib;
	enum gpu_state state; /* as the plan sees it */
};

struct snapshot {
	const struct statedir *dir;
	struct usage_policy usage;
	/*
	 * The snapshot is to be shown, not to start jobs: a GPU is as the last probe shows it,
	 * however old that is, and unknown without a probe.  A process that starts jobs takes a GPU
	 * as free in both cases, and then probes.
	 */
	bool is_for_show;
	/*
	 * A running process that will get a lease: it and its children are not foreign.  0: none.
	 */
	uint32_t adoptee;
	struct liveness_set lives;
	unsigned known; /* how many of ->gpus were ever set */
	unsigned slots; /* the slots from 0 that may be in use */
	struct snapshot_lease *leases;
	size_t lease_count, lease_room;
	struct token_index lease_index; /* of the tokens of their owners */
	bool is_any_unclear;            /* a lease is ->is_unclear */
	size_t broken_records;          /* skipped: neither void nor readable */
	/*
	 * ->unknown is a live job without a readable lease (integrity.h).  It is searched for only
	 * while a GPU is doubtful.  While there is one, the doubtful GPUs are withheld, and the end
	 * of that job is watched.
	 */
	bool has_unknown_job;
	int64_t unknown_since_ms; /* since when there is one; 0: there is none */
	struct integrity_job unknown;
	/*
	 * The folder gpu/ when its links were last read, and how often it was found changed.  A
	 * change is a new GPU, a reused slot, or damage: gpulease removes no names there.
	 */
	struct snapshot_names {
		uint64_t inode;
		struct timespec changed;
		bool is_sure; /* ->changed is so old that the next change makes it differ */
		unsigned changes;
	} names;
	struct windows windows;    /* as they were when ->names were last read */
	bool has_probe, has_links; /* ->probe and ->links are set */
	struct plan_facts facts;   /* what the plan reads: ->plan, ->users, ->links … */
	struct plan_use *uses;
	size_t use_room;
	struct plan_early *early;
	size_t early_room;
	struct plan_limits limits;

	/*
	 * Mostly only the beginning of these arrays is touched.  They come last, the smallest
	 * first, so that the process does not hold memory for the rest.
	 */
	struct plan_users users;
	struct plan_gpu plan[GPUSET_MAX];
	struct snapshot_gpu gpus[GPUSET_MAX]; /* by slot; not even zeroed after ->known */
	struct probe probe;
	struct links links;
};

/* Begins an empty snapshot of @dir.  The caller keeps @dir; the snapshot owns everything else. */
void snapshot_init(struct snapshot *snapshot, const struct statedir *dir);
void snapshot_release(struct snapshot *snapshot);

/* Closes the lease files; snapshot_read() opens them again. */
void snapshot_close_files(struct snapshot *snapshot);

/* Whether names in gpu/ may have changed since snapshot_read() read them. */
bool snapshot_has_new_names(const struct snapshot *snapshot);

/*
 * The first step of a snapshot: reads the lease files and judges the owners.  Files stay open from
 * one snapshot to the next; a file that was deleted or replaced is opened again.  Returns 0 or a
 * negative errno.
 */
MUST_CHECK int snapshot_read(struct snapshot *snapshot, int64_t now_ms);

/*
 * snapshot_wants_look(): whether this process has to look for processes of leases (leftover.h) to
 * know if the leases are over.  A look is needed for leases in the files of @set (NULL: in any
 * file) that are over by their owners and FIFOs, and for leases that are ->is_unclear.
 *
 * snapshot_look(): looks through all processes if a look is needed, once for each lease.  Returns
 * how many leases turned out not to be over: if any, the caller has to call snapshot_read() again.
 * Or returns a negative errno.
 */
bool snapshot_wants_look(struct snapshot *snapshot, const struct gpuset *set);
MUST_CHECK int snapshot_look(
	struct snapshot *snapshot, const struct gpuset *set, int64_t now_ms);

/* Does snapshot_read() and a look for all leases: for readers that take no GPUs. */
MUST_CHECK int snapshot_read_and_look(struct snapshot *snapshot, int64_t now_ms);

/*
 * The second step.  The caller may renew ->probe before it.  Judges the states of all GPUs and sets
 * ->plan and ->facts.  GPUs that only the probe shows get the next slots, for this snapshot only.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int snapshot_judge(struct snapshot *snapshot, int64_t now_ms);

/* The last part of snapshot_judge(): sets ->plan and ->facts from the states of the GPUs. */
MUST_CHECK int snapshot_find_facts(struct snapshot *snapshot, int64_t now_ms);

/*
 * Fills in how the GPUs are linked, if @prober knows it.  Called before or after snapshot_judge(),
 * but after the caller has renewed ->probe.
 */
struct prober;
void snapshot_find_links(struct snapshot *view, struct prober *prober, int64_t now_ms);

/* Returns the process that is the job: the owner or, if that is a dead supervisor, its command. */
struct owner snapshot_lease_process(const struct snapshot_lease *lease);

/* Returns how much @lease takes of each of its GPUs: all, unless it declares a part. */
struct need lease_need(const struct lease *lease);

/* Whether the GPU is withheld: its file may have lost the lease of an unknown job. */
bool snapshot_withholds(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/* Whether the probe is too old to judge the GPU: a lease on it has ended since. */
bool snapshot_is_outdated(
	const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/*
 * Whether the probe does not show that the GPU is usable: it does not list the GPU, does not know
 * its state, or shows that it cannot be used.  The caller has a probe.
 */
bool snapshot_is_blind(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/* Searches again for an unknown job (integrity.h).  True also if the search fails. */
bool snapshot_has_unknown(const struct snapshot *snapshot);

/* Returns the GPU of @slot, at most ->known; if it is ->known, begins an empty GPU there. */
struct snapshot_gpu *snapshot_gpu_at(struct snapshot *snapshot, unsigned slot);

/* Returns the slot of the GPU with that UUID, or -1. */
int snapshot_find_gpu(const struct snapshot *snapshot, const char *uuid);

/*
 * Returns the lease with that token, dead or alive, or NULL.  Leases are not found by their
 * tickets, because the numbers begin anew when the ticket file is replaced.
 */
struct snapshot_lease *snapshot_find_token(struct snapshot *snapshot, const char *token);

/* Returns nvidia-smi's index of GPU @slot, by the probe or else by its file; or its parent's. */
uint32_t snapshot_gpu_index(const struct snapshot *snapshot, unsigned slot);

/* Returns nvidia-smi's number of the instance on its parent; -1: @slot is no instance. */
int64_t snapshot_gpu_device(const struct snapshot *snapshot, unsigned slot);

/* The name of a GPU for people: its index, "0"; of instance 1 on it, "0:1". */
struct gpu_name {
	char text[80]; /* a node of a cluster may be before it (view.h) */
};
struct gpu_name snapshot_gpu_name(const struct snapshot *snapshot, unsigned slot);

#endif
