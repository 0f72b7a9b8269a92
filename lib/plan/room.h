/*
 * The room on one GPU: how much of it its leases leave, and whether that is enough.  Pure.
 *
 * A job needs a whole GPU, or declares what it will use of each of its GPUs: a share in percent,
 * memory, or both.  Other jobs may then have the rest.
 *
 * - Shares of a GPU add up to at most 100.  No job gets a share of a GPU that is also used outside
 *   gpulease.  A job that declares a share but no memory counts with that share of the memory.
 * - Memory fits if the memory of the GPU, less what is used outside gpulease, less what the leases
 *   count with, is enough.  If any job on the GPU has declared memory, a margin stays free, too: so
 *   it does not matter which of two jobs came first.
 * - Memory that settles (of leases that have just ended) takes room as long as it is not free, but
 *   only like a lease: the plan expects it to be free once all leases have ended.
 */
#ifndef GPULEASE_ROOM_H
#define GPULEASE_ROOM_H

#include "gpuset.h"

/* What keeps a GPU from being given away whole, the strongest last; GPU_FREE: nothing. */
enum gpu_state {
	GPU_FREE,
	GPU_LEASED,
	GPU_LINGERING, /* the owner of its lease is dead, but a process that it left lives */
	GPU_SETTLING, /* its lease is over, but its memory is not free yet */
	GPU_LOCKED,   /* another process holds the lock of its lease file */
	GPU_EXTERNAL, /* used outside gpulease */
	GPU_UNKNOWN,  /* nvidia-smi shows no certain state of it */
	GPU_PAUSED,
	GPU_KEPT, /* a window keeps it from this job; only a verdict says so */
	GPU_STATES
};

/* ROOM_LEASES: the records for leases in a lease file. */
enum { WHOLE_PERCENT = 100, ROOM_LEASES = 31 };

/* What a job needs of a GPU.  Percent 100: the whole GPU, alone; 0: only memory is declared. */
struct need {
	unsigned percent;
	uint64_t mib; /* 0: not declared */
};

#define NEED_WHOLE ((struct need){ .percent = WHOLE_PERCENT })

/* One live lease on a GPU. */
struct plan_use {
	unsigned percent; /* 100: the whole GPU; 0: only memory is declared */
	bool is_dead;     /* its owner is dead; it ends with the processes that it left */
	bool is_declared; /* ->mib is what the job has declared, or more */
	uint16_t early;   /* 1 + the index of its job in ->early of the facts; 0: none */
	uint64_t mib;     /* the memory that it counts with */
	int64_t end_ms;   /* when it ends at the latest, CLOCK_BOOTTIME; 0: not known */
};

struct plan_gpu {
	bool exists;
	bool is_just_released; /* a fresh probe is needed before it is given away */
	bool is_instance;      /* of MIG: CUDA shows a process only one instance */
	bool is_solo;          /* it takes one process at a time: cannot be shared */
	bool is_busy; /* it computes for a process outside gpulease: not to be shared */
	enum gpu_state state : 8; /* for a job that needs the whole GPU */
	uint32_t index;           /* what people call it */
	unsigned use_count;
	uint64_t total_mib;          /* 0: not known */
	uint64_t foreign_mib;        /* used outside gpulease, now or soon */
	uint64_t settling_mib;       /* not free yet after leases that have just ended */
	const struct plan_use *uses; /* of live leases */
};

/* What is left of a GPU. */
struct room {
	unsigned percent;
	uint64_t mib;
	unsigned leases; /* how many more leases it may have */
	bool has_margin; /* a margin of ->mib stays free: a lease has declared memory */
};

/* Returns the need of a job that declares this.  A job that declares nothing needs a whole GPU. */
static inline struct need need_declared(unsigned percent, uint64_t mib)
{
	return percent || mib ? (struct need){ .percent = percent, .mib = mib }
			      : NEED_WHOLE;
}

/* Whether @need is a whole GPU. */
static inline bool need_is_whole(const struct need *need)
{
	return need->percent == WHOLE_PERCENT;
}

/* Returns the MiB that @need counts with on a GPU of @total_mib. */
uint64_t need_mib(const struct need *need, uint64_t total_mib);

/*
 * Returns the room that leases which have not ended by @at_ms leave.  INT64_MIN: that all leases
 * leave.  INT64_MAX: the room when all leases have ended and no memory settles.
 */
struct room room_at(const struct plan_gpu *gpu, int64_t at_ms);

/* Likewise, if memory that settles and leases of dead owners were gone at once. */
struct room room_cleared_at(const struct plan_gpu *gpu, int64_t at_ms);

/* Returns the state that a GPU in ->state would have without its leases. */
enum gpu_state gpu_state_without_leases(const struct plan_gpu *gpu);

/* Whether the GPU has memory that settles or a lease of a dead owner: may be gone at any moment. */
bool gpu_is_clearing(const struct plan_gpu *gpu);

/* Takes @need out of @room, at most what is there.  A whole GPU leaves nothing. */
void room_take(struct room *room, const struct plan_gpu *gpu, const struct need *need);

/* Takes what @use has out of @room, unless @use has ended by @at_ms. */
void room_take_use(struct room *room, const struct plan_gpu *gpu,
	const struct plan_use *use, int64_t at_ms);

/* Whether @room is enough for @need.  Does not look at the state of the GPU: gpu_admits() does. */
bool room_fits(const struct room *room, const struct plan_gpu *gpu,
	const struct need *need, uint64_t margin_mib);

/*
 * Whether only leases can keep a job with @need from @gpu.  With @now: whether the present state of
 * @gpu allows the job to start, too.
 */
bool gpu_admits(const struct plan_gpu *gpu, const struct need *need, bool now);

#endif
