#include <limits.h>

#include "choice.h"

/*
 * Returns the place of the slot in the preference of the job.  Slots that are not in it come after
 * it.
 */
static unsigned choice_wish(const struct choice *choice, unsigned slot)
{
	const struct preference *prefer = choice->prefer;
	unsigned at = 0;

	if (!prefer)
		return 0;
	while (at < prefer->count && prefer->slots[at] != slot)
		at++;
	return at;
}

static unsigned link_level(const struct choice *choice, int a, int b)
{
	return choice->links && a != b ? choice->links->level[a][b] : 0;
}

/* The pull of free GPUs on a slot: first the level of the best link counts, then the sum of all. */
enum { PULL_BEST = 1 << 16 };

static unsigned add_pull(unsigned pull, unsigned link)
{
	unsigned best = pull / PULL_BEST;

	return (link > best ? link : best) * PULL_BEST + pull % PULL_BEST + link;
}

/*
 * Measures how strongly each slot to choose from is linked to free GPUs.  To take a slot with much
 * pull would leave the rest with worse links.  A slot that is not free itself is none of them, so
 * it has no pull.
 */
static void measure_pull(const struct choice *choice, unsigned pull[GPUSET_MAX])
{
	gpuset_for_each (slot, &choice->from) {
		pull[slot] = 0;
		if (!choice->links || !gpuset_has(&choice->free, (unsigned)slot))
			continue;
		gpuset_for_each (other, &choice->free)
			pull[slot] =
				add_pull(pull[slot], link_level(choice, slot, other));
	}
}

/* --- one GPU at a time -------------------------------------------------------------- */

/* Ranks of two candidates: the first of them that differs decides, and the smaller is better. */
enum { RANKS = 7 };
struct ranks {
	uint64_t of[RANKS];
};

/* Of a job that needs the whole GPU and leaves nothing of it. */
static struct ranks rank_whole(
	const struct choice *choice, unsigned slot, const unsigned pull[GPUSET_MAX])
{
	const struct plan_gpu *gpu = &choice->gpus[slot];

	return (struct ranks){ {
		choice_wish(choice, slot),
		!gpu->is_instance, /* a job that needs several GPUs cannot use instances */
		pull[slot],
		gpu->is_just_released,
		gpu->index,
	} };
}

/*
 * Of a job that needs a part: what it asks for, and then the rest, is left least.  Of two GPUs with
 * as much left, one that is in use comes first.  It does not matter whether the GPU was just
 * released, because another job that gets a part of it would change that.
 */
static struct ranks rank_part(
	const struct choice *choice, unsigned slot, const unsigned pull[GPUSET_MAX])
{
	const struct plan_gpu *gpu = &choice->gpus[slot];
	uint64_t percent = choice->room[slot].percent - choice->need.percent;
	uint64_t mib = choice->room[slot].mib - need_mib(&choice->need, gpu->total_mib);

	return (struct ranks){ {
		choice_wish(choice, slot),
		!gpu->is_instance,
		choice->need.mib ? mib : percent,
		gpuset_has(&choice->free, slot),
		choice->need.mib ? percent : mib,
		pull[slot],
		gpu->index,
	} };
}

static struct ranks rank_slot(
	const struct choice *choice, unsigned slot, const unsigned pull[GPUSET_MAX])
{
	return need_is_whole(&choice->need) ? rank_whole(choice, slot, pull)
					    : rank_part(choice, slot, pull);
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
			struct ranks ranks = rank_slot(choice, (unsigned)slot, pull);

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

/* --- several linked GPUs ------------------------------------------------------------ */

/* Up to so many GPUs, every set is tried. */
enum { ALL_SETS_MAX = 8 };

/* A set that grows slot by slot, and how each slot outside is linked to it. */
struct growth {
	struct gpuset set, outside;
	unsigned count;
	unsigned worst[GPUSET_MAX],
		sum[GPUSET_MAX]; /* of the links of a slot into the set */
	unsigned set_worst, set_sum, released, indices;
	int node; /* the NUMA node of the whole set, or NODE_UNKNOWN */
};

static void growth_add(const struct choice *choice, struct growth *growth, unsigned slot)
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
	growth->released += gpu->is_just_released;
	growth->indices += gpu->index;
	growth->count++;
	gpuset_add(&growth->set, slot);
	gpuset_remove(&growth->outside, slot);
	gpuset_for_each (other, &growth->outside) {
		unsigned link = link_level(choice, (int)slot, other);

		growth->sum[other] += link;
		if (link < growth->worst[other])
			growth->worst[other] = link;
	}
}

/* Returns the slot that makes the set best. */
static unsigned growth_next_slot(const struct choice *choice, const struct growth *growth,
	const unsigned pull[GPUSET_MAX])
{
	struct ranks best_ranks = { { 0 } };
	int best = -1;

	gpuset_for_each (slot, &growth->outside) {
		const struct plan_gpu *gpu = &choice->gpus[slot];
		bool is_near = choice->links->node[slot] == growth->node;
		struct ranks ranks = { {
			choice_wish(choice, (unsigned)slot),
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

static struct growth growth_begin(const struct choice *choice)
{
	struct growth growth = { .outside = choice->from, .set_worst = LINK_SELF };

	gpuset_for_each (slot, &choice->from) {
		growth.worst[slot] = LINK_SELF;
		growth.sum[slot] = 0;
	}
	return growth;
}

/* Returns the links from the set to GPUs that stay free, which these GPUs lose. */
static unsigned measure_cut(const struct choice *choice, const struct growth *growth)
{
	struct gpuset stay = gpuset_minus(&choice->free, &growth->set);
	unsigned cut = 0;

	gpuset_for_each (slot, &growth->set)
		gpuset_for_each (other, &stay)
			cut = add_pull(cut, link_level(choice, slot, other));
	return cut;
}

static struct ranks growth_rank(const struct choice *choice, const struct growth *growth)
{
	return (struct ranks){ {
		UINT_MAX - (uint64_t)growth->set_worst,
		UINT_MAX - (uint64_t)growth->set_sum,
		growth->node == NODE_UNKNOWN,
		measure_cut(choice, growth),
		growth->released,
		growth->indices,
	} };
}

/* The best set so far. */
struct best {
	struct gpuset set;
	struct ranks ranks;
};

static void best_consider(
	const struct choice *choice, const struct growth *growth, struct best *best)
{
	struct ranks ranks = growth_rank(choice, growth);

	if (gpuset_is_empty(&best->set) || is_better(&ranks, &best->ranks))
		*best = (struct best){ .set = growth->set, .ranks = ranks };
}

/* Tries every set of ->count slots. */
static void try_all(const struct choice *choice, struct best *best)
{
	unsigned slots[ALL_SETS_MAX], count = 0;

	gpuset_for_each (slot, &choice->from)
		slots[count++] = (unsigned)slot;
	/* the lowest slots are the highest bits: their sets come first */
	for (unsigned mask = (1u << count) - 1; mask > 0; mask--) {
		struct growth growth = growth_begin(choice);

		if ((unsigned)__builtin_popcount(mask) != choice->count)
			continue;
		for (unsigned i = 0; i < count; i++)
			if (mask >> (count - 1 - i) & 1)
				growth_add(choice, &growth, slots[i]);
		best_consider(choice, &growth, best);
	}
}

/*
 * Grows a set from each slot that is preferred most, always by the best slot; takes the best set.
 */
static void try_seeds(const struct choice *choice, const unsigned pull[GPUSET_MAX],
	unsigned first, struct best *best)
{
	gpuset_for_each (slot, &choice->from) {
		struct growth growth = growth_begin(choice);

		if (choice_wish(choice, (unsigned)slot) != first)
			continue;
		growth_add(choice, &growth, (unsigned)slot);
		while (growth.count < choice->count)
			growth_add(
				choice, &growth, growth_next_slot(choice, &growth, pull));
		best_consider(choice, &growth, best);
	}
}

static struct gpuset choose_linked(
	const struct choice *choice, const unsigned pull[GPUSET_MAX])
{
	struct best best = { .set = GPUSET_NONE };
	unsigned first = UINT_MAX, last = 0;

	gpuset_for_each (slot, &choice->from) {
		unsigned at = choice_wish(choice, (unsigned)slot);

		first = at < first ? at : first;
		last = at > last ? at : last;
	}
	/* try_all() does not look at the preference: only if all slots are equal in it */
	if (first == last && gpuset_count(&choice->from) <= ALL_SETS_MAX)
		try_all(choice, &best);
	else
		try_seeds(choice, pull, first, &best);
	return best.set;
}

struct gpuset choose(const struct choice *choice)
{
	unsigned pull[GPUSET_MAX];

	/* there is nothing to choose */
	if (gpuset_count(&choice->from) == choice->count)
		return choice->from;
	measure_pull(choice, pull);
	if (choice->count > 1 && choice->links && need_is_whole(&choice->need))
		return choose_linked(choice, pull);
	return choose_singly(choice, pull);
}
