/*
 * The room on one GPU: how much of it its leases leave, and whether that is enough.  Pure.
 *
 * A job needs a GPU alone, or declares what it will use of each of its GPUs: a share in
 * percent, memory, or both; then others may have the rest.
 *
 * - Shares of a GPU add up to at most 100.  A share is nobody's to take where the GPU is also
 *   used outside gpulease.  Who declares a share but no memory is counted with that share of
 *   the memory.
 * - Declared memory fits where the total, less what is used outside gpulease, less what the
 *   leases are counted with, is at least the need and a margin.
 * - Memory that settles, of leases that have just ended, is in the way as long as it is held,
 *   but like a lease: once all have ended it is gone.
 */
#ifndef GPULEASE_ROOM_H
#define GPULEASE_ROOM_H

#include "gpuset.h"

/* What keeps a GPU from being given away, the strongest last; GPU_FREE: nothing does. */
enum gpu_state {
	GPU_FREE,
	GPU_LEASED,
	GPU_LINGERING, /* its lease's owner is dead, but somebody it left behind lives */
	GPU_SETTLING,  /* its lease is over, its memory is not free yet */
	GPU_LOCKED,    /* somebody holds its lease file's lock */
	GPU_EXTERNAL,  /* used outside gpulease */
	GPU_UNKNOWN,   /* nvidia-smi says nothing certain of it */
	GPU_PAUSED,
	GPU_STATES
};

/* A lease file has so many records for leases. */
enum { WHOLE_PERCENT = 100, ROOM_LEASES = 31 };

/* What a job needs of a GPU.  Percent 100: all of it, alone; 0: only memory was declared. */
struct need {
	unsigned percent;
	uint64_t mib; /* 0: not declared */
};

#define NEED_WHOLE ((struct need){ .percent = WHOLE_PERCENT })

/* One live lease on a GPU. */
struct plan_use {
	unsigned percent; /* 100: alone; 0: declared memory alone */
	bool is_dead;     /* its owner is: it is over once those left behind have ended */
	uint64_t mib;     /* what it is counted with */
	int64_t end_ms; /* when it ends at the latest, CLOCK_BOOTTIME; 0: nobody knows */
};

struct plan_gpu {
	bool exists;
	bool is_just_released; /* wants a fresh probe */
	bool is_instance;      /* of MIG: CUDA sees one of those at a time */
	bool is_solo;          /* takes one process at a time: cannot be shared */
	bool is_busy; /* computes for somebody outside gpulease: not to be shared */
	enum gpu_state state : 8; /* for a job that needs it alone */
	uint32_t index;           /* what people call it */
	unsigned use_count;
	uint64_t total_mib;    /* 0: not known */
	uint64_t foreign_mib;  /* held outside gpulease, with what is to be expected */
	uint64_t settling_mib; /* by what leases have left that have just ended */
	const struct plan_use *uses; /* of live leases */
};

/* What is left; in struct plan also what was taken. */
struct room {
	unsigned percent;
	uint64_t mib;
	unsigned leases; /* how many more there may be */
};

/* What is needed by who declares that: nothing declared is a GPU of its own. */
static inline struct need need_declared(unsigned percent, uint64_t mib)
{
	return percent || mib ? (struct need){ .percent = percent, .mib = mib }
			      : NEED_WHOLE;
}

/* Whether @need is a GPU of its own. */
static inline bool need_is_whole(const struct need *need)
{
	return need->percent == WHOLE_PERCENT;
}

/* The MiB with which @need is counted on a card of @total_mib. */
uint64_t need_mib(const struct need *need, uint64_t total_mib);

/*
 * The room beside the leases that have not ended by @at_ms; INT64_MIN: beside all of them;
 * INT64_MAX: when all have ended.
 */
struct room room_at(const struct plan_gpu *gpu, int64_t at_ms);

/* The same if what is left of those who have ended were gone: memory that settles, the dead. */
struct room room_cleared_at(const struct plan_gpu *gpu, int64_t at_ms);

/* Whether something of that kind is there, and may be gone at any moment. */
bool gpu_is_clearing(const struct plan_gpu *gpu);

/* Takes @need out of @room, as much as is there; a GPU of its own leaves nothing. */
void room_take(struct room *room, const struct plan_gpu *gpu, const struct need *need);

/* The same with what @use has, unless it has ended by @at_ms. */
void room_take_use(struct room *room, const struct plan_gpu *gpu,
	const struct plan_use *use, int64_t at_ms);

/* Whether @room is enough for @need; says nothing of the GPU's state. */
bool room_fits(const struct room *room, const struct plan_gpu *gpu,
	const struct need *need, uint64_t margin_mib);

/*
 * Whether nothing but leases keeps @gpu from serving @need; with @now also that the state it
 * is in at this moment allows it.
 */
bool gpu_admits(const struct plan_gpu *gpu, const struct need *need, bool now);

#endif
