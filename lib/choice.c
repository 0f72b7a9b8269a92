#include <limits.h>

#include "choice.h"

/* Where a slot stands in the wishes of the job; who is not wished for comes behind. */
static unsigned wish(const struct choice *choice, unsigned slot)
{
	const struct preference *prefer = choice->prefer;
	unsigned at = 0;

	if (!prefer)
		return 0;
	while (at < prefer->count && prefer->slots[at] != slot)
		at++;
	return at;
}

static unsigned level(const struct choice *choice, int a, int b)
{
	return choice->links && a != b ? choice->links->level[a][b] : 0;
}

/* How strongly each slot to choose from is linked to those that are free. */
static void measure_pull(const struct choice *choice, unsigned pull[GPUSET_MAX])
{
	gpuset_for_each (slot, &choice->from) {
		pull[slot] = 0;
		if (!choice->links)
			continue;
		gpuset_for_each (other, &choice->free)
			pull[slot] += level(choice, slot, other);
	}
}

/* --- one at a time ----------------------------------------------------------------- */

/* What would stay over of the GPU; a job that gets it alone leaves nothing. */
static uint64_t left_over(const struct choice *choice, unsigned slot)
{
	const struct room *room = &choice->room[slot];
	const struct plan_gpu *gpu = &choice->gpus[slot];

	if (need_is_whole(&choice->need))
		return 0;
	if (!choice->need.mib)
		return room->percent - choice->need.percent;
	return room->mib - need_mib(&choice->need, gpu->total_mib);
}

/* The first of these in which they differ decides; the smaller is better. */
enum { RANKS = 6 };
struct ranks {
	uint64_t of[RANKS];
};

static struct ranks rank(
	const struct choice *choice, unsigned slot, const unsigned pull[GPUSET_MAX])
{
	const struct plan_gpu *gpu = &choice->gpus[slot];

	return (struct ranks){ {
		wish(choice, slot),
		!gpu->is_instance, /* of no use to who needs several */
		left_over(choice, slot),
		pull[slot],
		gpu->is_just_released,
		gpu->index,
	} };
}

static bool is_better(const struct ranks *a, const struct ranks *b)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (a->of[i] != b->of[i])
			return a->of[i] < b->of[i];
	return false;
}

static struct gpuset choose_singly(
	const struct choice *choice, const unsigned pull[GPUSET_MAX])
{
	struct gpuset from = choice->from, out = GPUSET_NONE;

	for (unsigned left = choice->count; left > 0; left--) {
		struct ranks best_ranks = { { 0 } };
		int best = -1;

		gpuset_for_each (slot, &from) {
			struct ranks ranks = rank(choice, (unsigned)slot, pull);

			if (best < 0 || is_better(&ranks, &best_ranks)) {
				best = slot;
				best_ranks = ranks;
			}
		}
		gpuset_add(&out, (unsigned)best);
		gpuset_remove(&from, (unsigned)best);
	}
	return out;
}

/* --- several that are linked ------------------------------------------------------- */

/* A set under way, and how each slot outside is linked to it. */
struct growth {
	struct gpuset set, outside;
	unsigned count;
	unsigned worst[GPUSET_MAX], sum[GPUSET_MAX]; /* of links into the set */
	unsigned set_worst, set_sum, set_pull, released, indices;
	int node; /* of all of them, or NODE_UNKNOWN */
};

static void grow(const struct choice *choice, struct growth *growth, unsigned slot,
	const unsigned pull[GPUSET_MAX])
{
	const struct plan_gpu *gpu = &choice->gpus[slot];

	if (growth->count == 0) {
		growth->node = choice->links->node[slot];
	} else {
		growth->set_sum += growth->sum[slot];
		if (growth->worst[slot] < growth->set_worst)
			growth->set_worst = growth->worst[slot];
		if (growth->node != choice->links->node[slot])
			growth->node = NODE_UNKNOWN;
	}
	growth->set_pull += pull[slot];
	growth->released += gpu->is_just_released;
	growth->indices += gpu->index;
	growth->count++;
	gpuset_add(&growth->set, slot);
	gpuset_remove(&growth->outside, slot);
	gpuset_for_each (other, &growth->outside) {
		unsigned link = level(choice, (int)slot, other);

		growth->sum[other] += link;
		if (link < growth->worst[other])
			growth->worst[other] = link;
	}
}

/* The slot that makes the best of the set. */
static unsigned next_slot(const struct choice *choice, const struct growth *growth,
	const unsigned pull[GPUSET_MAX])
{
	struct ranks best_ranks = { { 0 } };
	int best = -1;

	gpuset_for_each (slot, &growth->outside) {
		const struct plan_gpu *gpu = &choice->gpus[slot];
		bool is_near = choice->links->node[slot] == growth->node;
		struct ranks ranks = { {
			wish(choice, (unsigned)slot),
			UINT_MAX - (uint64_t)growth->worst[slot],
			UINT_MAX - (uint64_t)growth->sum[slot],
			!is_near,
			pull[slot] + (uint64_t)gpu->is_just_released,
			gpu->index,
		} };

		if (best < 0 || is_better(&ranks, &best_ranks)) {
			best = slot;
			best_ranks = ranks;
		}
	}
	return (unsigned)best;
}

static struct growth grow_from(
	const struct choice *choice, unsigned seed, const unsigned pull[GPUSET_MAX])
{
	struct growth growth = { .outside = choice->from, .set_worst = LINK_SELF };

	gpuset_for_each (slot, &choice->from) {
		growth.worst[slot] = LINK_SELF;
		growth.sum[slot] = 0;
	}
	grow(choice, &growth, seed, pull);
	while (growth.count < choice->count)
		grow(choice, &growth, next_slot(choice, &growth, pull), pull);
	return growth;
}

/* Links from the set to what stays free: what taking it costs the others. */
static struct ranks judge(const struct growth *growth)
{
	return (struct ranks){ {
		UINT_MAX - (uint64_t)growth->set_worst,
		UINT_MAX - (uint64_t)growth->set_sum,
		growth->node == NODE_UNKNOWN,
		growth->set_pull - 2 * (uint64_t)growth->set_sum,
		growth->released,
		growth->indices,
	} };
}

/* The wished-for are in every set; without them every slot is tried as the first. */
static struct gpuset choose_linked(
	const struct choice *choice, const unsigned pull[GPUSET_MAX])
{
	struct gpuset best = GPUSET_NONE;
	struct ranks best_ranks = { { 0 } };
	unsigned first = UINT_MAX;

	gpuset_for_each (slot, &choice->from)
		if (wish(choice, (unsigned)slot) < first)
			first = wish(choice, (unsigned)slot);
	gpuset_for_each (slot, &choice->from) {
		struct growth growth;
		struct ranks ranks;

		if (wish(choice, (unsigned)slot) != first)
			continue;
		growth = grow_from(choice, (unsigned)slot, pull);
		ranks = judge(&growth);
		if (gpuset_is_empty(&best) || is_better(&ranks, &best_ranks)) {
			best = growth.set;
			best_ranks = ranks;
		}
	}
	return best;
}

struct gpuset choose(const struct choice *choice)
{
	unsigned pull[GPUSET_MAX];

	if (gpuset_count(&choice->from) == choice->count)
		return choice->from;
	measure_pull(choice, pull);
	if (choice->count > 1 && choice->links && need_is_whole(&choice->need))
		return choose_linked(choice, pull);
	return choose_singly(choice, pull);
}
