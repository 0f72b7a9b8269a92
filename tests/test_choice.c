#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "choice.h"

static struct plan_gpu gpus[GPUSET_MAX];
static struct room rooms[GPUSET_MAX];
static struct links links;
static struct preference prefer;

/* --- made-up machines --------------------------------------------------------------- */

/* So many GPUs of 80 GiB, all free, of which nothing is known but their numbers. */
static struct choice machine(unsigned count, unsigned wanted)
{
	struct choice choice = { .gpus = gpus,
		.room = rooms,
		.count = wanted,
		.need = NEED_WHOLE,
		.prefer = &prefer };

	memset(gpus, 0, sizeof(gpus));
	memset(&links, 0, sizeof(links));
	prefer.count = 0;
	for (unsigned slot = 0; slot < count; slot++) {
		gpus[slot] = (struct plan_gpu){
			.exists = true, .index = slot, .total_mib = 81920
		};
		rooms[slot] = room_at(&gpus[slot], INT64_MAX);
		gpuset_add(&choice.from, slot);
	}
	choice.free = choice.from;
	return choice;
}

static void join(unsigned a, unsigned b, uint8_t level)
{
	links.level[a][b] = links.level[b][a] = level;
}

/* All pairs at @level, all on NUMA node 0. */
static struct choice linked(unsigned count, unsigned wanted, uint8_t level)
{
	struct choice choice = machine(count, wanted);

	choice.links = &links;
	for (unsigned a = 0; a < count; a++)
		for (unsigned b = 0; b < a; b++)
			join(a, b, level);
	return choice;
}

/* Takes these away, as leased. */
static void lease(struct choice *choice, const char *slots)
{
	for (; *slots; slots++) {
		gpuset_remove(&choice->from, (unsigned)(*slots - '0'));
		gpuset_remove(&choice->free, (unsigned)(*slots - '0'));
	}
}

static void check(const struct choice *choice, const char *wanted)
{
	struct gpuset set = choose(choice);
	char got[GPUSET_MAX + 1];
	unsigned used = 0;

	gpuset_for_each (slot, &set)
		got[used++] = (char)('0' + slot);
	got[used] = '\0';
	assert_string_equal(got, wanted);
}

static void prefers(const char *slots)
{
	for (prefer.count = 0; *slots; slots++)
		prefer.slots[prefer.count++] = (uint8_t)(*slots - '0');
}

/* --- one ---------------------------------------------------------------------------- */

static void the_lowest_index_is_taken_if_all_else_is_equal(void **state)
{
	struct choice choice = machine(4, 1);

	(void)state;
	gpus[0].index = 9;
	check(&choice, "1");
	choice.count = 3;
	check(&choice, "123");
	choice.count = 4;
	check(&choice, "0123");
	gpus[1].is_just_released = true; /* wants a fresh probe */
	choice.count = 1;
	check(&choice, "2");
}

static void preferred_gpus_come_first(void **state)
{
	struct choice choice = machine(4, 1);

	(void)state;
	prefers("32");
	gpus[3].is_just_released = true;
	check(&choice, "3");
	choice.count = 2;
	check(&choice, "23");
	choice.count = 3;
	check(&choice, "023");
	lease(&choice, "3");
	choice.count = 1;
	check(&choice, "2");
}

static void a_single_one_is_taken_where_it_hurts_least(void **state)
{
	struct choice choice = linked(6, 1, LINK_SYS);

	(void)state;
	join(0, 1, LINK_NV + 4);
	join(2, 3, LINK_NV + 4);
	join(4, 5, LINK_PIX);
	check(&choice, "4"); /* the weakest of the pairs */
	lease(&choice, "3");
	check(&choice, "2"); /* one that is broken already */
	lease(&choice, "2");
	check(&choice, "4");
	/* one good link counts more than many bad ones */
	choice = linked(6, 1, LINK_NODE);
	join(4, 5, LINK_PHB);
	for (unsigned slot = 0; slot < 4; slot++) {
		join(slot, 4, LINK_SYS);
		join(slot, 5, LINK_SYS);
	}
	check(&choice, "0");
}

static void an_instance_is_taken_before_a_gpu(void **state)
{
	struct choice choice = machine(3, 1);

	(void)state;
	gpus[2].is_instance = true;
	check(&choice, "2");
	prefers("1");
	check(&choice, "1");
}

/* --- several ------------------------------------------------------------------------ */

static void several_have_the_best_links(void **state)
{
	struct choice choice = linked(4, 2, LINK_SYS);

	(void)state;
	join(1, 3, LINK_PHB);
	check(&choice, "13");
	join(0, 2, LINK_NV + 1);
	check(&choice, "02");
	join(1, 3, LINK_NV + 2); /* two links are more than one */
	check(&choice, "13");
	prefers("0");
	check(&choice, "02");
	prefers("03");
	check(&choice, "03");
}

static void the_slowest_link_counts_before_their_sum(void **state)
{
	struct choice choice = linked(6, 3, LINK_SYS);

	(void)state;
	/* 0-1-2 has two fast links and a slow one, 3-4-5 three middling ones */
	join(0, 1, LINK_NV + 12);
	join(1, 2, LINK_NV + 12);
	join(3, 4, LINK_PIX);
	join(4, 5, LINK_PIX);
	join(3, 5, LINK_PIX);
	check(&choice, "345");
	join(0, 2, LINK_PIX);
	check(&choice, "012");
}

static void among_equals_one_node_then_the_smallest_hole(void **state)
{
	struct choice choice = linked(6, 2, LINK_SYS);

	(void)state;
	for (unsigned slot = 0; slot < 6; slot++)
		links.node[slot] = slot == 1 || slot == 4 ? 1 : 0;
	links.node[0] = NODE_UNKNOWN;
	check(&choice, "14");
	/* nodes of three: with one taken the rest of that node is the smaller hole */
	choice = linked(6, 2, LINK_SYS);
	for (unsigned a = 0; a < 6; a++)
		for (unsigned b = 0; b < a; b++)
			if (a / 3 == b / 3)
				join(a, b, LINK_NODE);
	check(&choice, "01");
	lease(&choice, "3");
	check(&choice, "45");
}

static void many_gpus_are_searched_from_each(void **state)
{
	struct choice choice = linked(16, 4, LINK_SYS);

	(void)state;
	for (unsigned a = 5; a < 9; a++)
		for (unsigned b = 5; b < a; b++)
			join(a, b, LINK_NV + 4);
	check(&choice, "5678");
	lease(&choice, "6");
	choice.count = 3;
	check(&choice, "578");
}

/* --- parts of one ------------------------------------------------------------------- */

static void take(unsigned slot, unsigned percent, uint64_t mib)
{
	room_take(&rooms[slot], &gpus[slot],
		&(struct need){ .percent = percent, .mib = mib });
}

static void the_least_stays_over_of_a_share(void **state)
{
	struct choice choice = machine(4, 1);

	(void)state;
	choice.need = (struct need){ .percent = 30 };
	take(1, 40, 0);
	take(2, 60, 0);
	take(3, 50, 0);
	check(&choice, "2");
	choice.need.percent = 45;
	gpuset_remove(&choice.from, 2);
	check(&choice, "3");
	choice.count = 2;
	check(&choice, "13");
	prefers("0");
	choice.count = 1;
	check(&choice, "0");
}

static void the_least_stays_over_of_memory(void **state)
{
	struct choice choice = machine(3, 1);

	(void)state;
	choice.need = (struct need){ .mib = 10000 };
	gpus[0].total_mib =
		24576; /* a smaller card fits better than an empty large one */
	rooms[0] = room_at(&gpus[0], INT64_MAX);
	check(&choice, "0");
	take(2, 0, 70000);
	check(&choice, "2");
}

static void of_equal_ones_a_part_is_had_of_one_in_use(void **state)
{
	struct choice choice = linked(4, 1, LINK_NV + 4);

	(void)state;
	/* a GPU of which only memory is taken leaves as much of a share as a whole GPU */
	choice.need = (struct need){ .percent = 20 };
	take(2, 0, 11000);
	gpuset_remove(&choice.free, 2);
	check(&choice, "2");
	take(3, 0, 20000);
	gpuset_remove(&choice.free, 3);
	check(&choice, "3");
	choice.links = NULL;
	check(&choice, "3");
	/* even if a smaller card that is free would leave less memory */
	gpus[0].total_mib = 24576;
	rooms[0] = room_at(&gpus[0], INT64_MAX);
	check(&choice, "3");
	/* memory of a GPU of which only a share is taken */
	choice = linked(4, 1, LINK_NV + 4);
	choice.need = (struct need){ .mib = 10000 };
	rooms[1].percent = 50;
	gpuset_remove(&choice.free, 1);
	check(&choice, "1");
	/* a part of a GPU in use breaks no link between free ones */
	choice = linked(3, 1, LINK_NV + 4);
	choice.need = (struct need){ .percent = 20 };
	rooms[0].percent = rooms[1].percent = 60;
	gpuset_remove(&choice.free, 0);
	gpuset_remove(&choice.free, 1);
	join(0, 2, LINK_NV + 12);
	check(&choice, "0");
	/* a GPU that was just released is as good */
	gpus[0].is_just_released = true;
	check(&choice, "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_index_is_taken_if_all_else_is_equal),
		cmocka_unit_test(preferred_gpus_come_first),
		cmocka_unit_test(a_single_one_is_taken_where_it_hurts_least),
		cmocka_unit_test(an_instance_is_taken_before_a_gpu),
		cmocka_unit_test(several_have_the_best_links),
		cmocka_unit_test(the_slowest_link_counts_before_their_sum),
		cmocka_unit_test(among_equals_one_node_then_the_smallest_hole),
		cmocka_unit_test(many_gpus_are_searched_from_each),
		cmocka_unit_test(the_least_stays_over_of_a_share),
		cmocka_unit_test(the_least_stays_over_of_memory),
		cmocka_unit_test(of_equal_ones_a_part_is_had_of_one_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
