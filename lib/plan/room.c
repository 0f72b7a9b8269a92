#include "room.h"

uint64_t need_mib(const struct need *need, uint64_t total_mib)
{
	/* in two parts, so that nothing overflows */
	return need->mib ? need->mib
			 : total_mib / 100 * need->percent +
				   total_mib % 100 * need->percent / 100;
}

/* Returns the room on the GPU without any lease. */
static struct room room_of(const struct plan_gpu *gpu)
{
	struct room room = { .percent = WHOLE_PERCENT, .leases = ROOM_LEASES };

	if (gpu->total_mib > gpu->foreign_mib)
		room.mib = gpu->total_mib - gpu->foreign_mib;
	return room;
}

struct room room_at(const struct plan_gpu *gpu, int64_t at_ms)
{
	struct room room = room_of(gpu);

	/* all leases have ended, also those without a known end, and nothing settles */
	if (at_ms == INT64_MAX)
		return room;
	room.mib -= room.mib < gpu->settling_mib ? room.mib : gpu->settling_mib;
	for (unsigned i = 0; i < gpu->use_count; i++)
		room_take_use(&room, gpu, &gpu->uses[i], at_ms);
	return room;
}

struct room room_cleared_at(const struct plan_gpu *gpu, int64_t at_ms)
{
	struct room room = room_of(gpu);

	for (unsigned i = 0; i < gpu->use_count; i++)
		if (!gpu->uses[i].is_dead)
			room_take_use(&room, gpu, &gpu->uses[i], at_ms);
	return room;
}

enum gpu_state gpu_state_without_leases(const struct plan_gpu *gpu)
{
	if (gpu->state != GPU_LEASED)
		return gpu->state;
	if (gpu->foreign_mib)
		return GPU_EXTERNAL;
	return gpu->settling_mib ? GPU_SETTLING : GPU_FREE;
}

bool gpu_is_clearing(const struct plan_gpu *gpu)
{
	bool is_clearing = gpu->state == GPU_SETTLING || gpu->state == GPU_LINGERING ||
			   gpu->settling_mib;

	for (unsigned i = 0; i < gpu->use_count && !is_clearing; i++)
		is_clearing = gpu->uses[i].is_dead;
	return is_clearing;
}

/* Takes that much out of @room: @is_declared, a margin of the rest has to stay free. */
static void take(struct room *room, const struct plan_gpu *gpu, unsigned percent,
	uint64_t mib, bool is_declared)
{
	/* one process at a time: even a part takes all of it */
	if (percent == WHOLE_PERCENT || gpu->is_solo) {
		*room = (struct room){ .leases = 0 };
		return;
	}
	room->percent -= room->percent < percent ? room->percent : percent;
	room->mib -= room->mib < mib ? room->mib : mib;
	room->leases -= room->leases > 0;
	room->has_margin = room->has_margin || is_declared;
}

void room_take_use(struct room *room, const struct plan_gpu *gpu,
	const struct plan_use *use, int64_t at_ms)
{
	if (!use->end_ms || use->end_ms > at_ms)
		take(room, gpu, use->percent, use->mib, use->is_declared);
}

void room_take(struct room *room, const struct plan_gpu *gpu, const struct need *need)
{
	take(room, gpu, need->percent, need_mib(need, gpu->total_mib), need->mib != 0);
}

bool room_fits(const struct room *room, const struct plan_gpu *gpu,
	const struct need *need, uint64_t margin_mib)
{
	bool has_margin;

	if (room->leases == 0 || room->percent < need->percent)
		return false;
	/* a whole GPU must have no lease at all */
	if (need_is_whole(need))
		return room->leases == ROOM_LEASES;
	/* shares alone need no margin: with one, two halves would not fit on a GPU */
	has_margin = need->mib || (room->has_margin && gpu->total_mib);
	return room->mib >=
	       need_mib(need, gpu->total_mib) + (has_margin ? margin_mib : 0);
}

/*
 * Whether the state ends when leases end.  The others end by a user or a process outside gpulease.
 */
static bool is_lease_state(enum gpu_state state)
{
	return state == GPU_FREE || state == GPU_LEASED || state == GPU_LINGERING ||
	       state == GPU_SETTLING;
}

bool gpu_admits(const struct plan_gpu *gpu, const struct need *need, bool now)
{
	if (!gpu->exists)
		return false;
	if (need_is_whole(need) || gpu->is_solo)
		return now ? gpu->state == GPU_FREE : is_lease_state(gpu->state);
	/* declared memory fits beside processes outside gpulease: their memory is counted */
	if (gpu->state == GPU_EXTERNAL)
		return !need->percent && !gpu->is_busy;
	/* no share beside use outside gpulease, and no share now beside memory that settles */
	if (need->percent && (gpu->foreign_mib || (now && gpu->settling_mib)))
		return false;
	return is_lease_state(gpu->state) && !(now && gpu->state == GPU_SETTLING);
}
