#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "probe.h"
#include "record.h"
#include "topology.h"

#define PAIR                                               \
	"\tGPU0\tGPU1\tGPU3\tNUMA Affinity\n"              \
	"GPU0\t X \tNV4\tSYS\t0\nGPU1\tNV4\t X \tSYS\t0\n" \
	"GPU3\tSYS\tSYS\t X \t1\n"

static struct probe probe;
static struct smitopo answer;
static struct topology made, loaded;
static struct links links;

/* @count simulated GPUs with the UUIDs A, B, C … and the indices 0, 1, 2 … */
static void see(unsigned count)
{
	probe_simulate(count, 1000, 5000, &probe);
	for (unsigned i = 0; i < count; i++)
		(void)snprintf(probe.gpus[i].uuid, sizeof(probe.gpus[i].uuid), "GPU-%c",
			(char)('A' + i));
}

static void parse(const char *text)
{
	struct why why;

	assert_int_equal(smitopo_parse(text, strlen(text), &answer, &why), 0);
}

static void make_topology(unsigned gpus, const char *text, int64_t asked_ms)
{
	memset(&made, 0x5a, sizeof(made));
	see(gpus);
	parse(text);
	topology_from(&answer, &probe, asked_ms, &made);
}

static void assert_same(const struct topology *a, const struct topology *b)
{
	assert_true(a->asked_ms == b->asked_ms);
	assert_string_equal(a->trouble.text, b->trouble.text);
	assert_int_equal(a->count, b->count);
	for (unsigned i = 0; i < a->count; i++) {
		assert_string_equal(a->gpus[i].uuid, b->gpus[i].uuid);
		assert_int_equal(a->gpus[i].node, b->gpus[i].node);
		assert_memory_equal(a->gpus[i].level, b->gpus[i].level, a->count);
	}
}

/* --- from an answer ------------------------------------------------------------------ */

static void indices_become_uuids_and_no_gpu_is_forgotten(void **state)
{
	(void)state;
	/* GPU C has index 2, of which nothing is said */
	make_topology(4, PAIR, 777);
	assert_true(made.asked_ms == 777);
	assert_int_equal(made.count, 4);
	assert_string_equal(made.gpus[3].uuid, "GPU-D");
	assert_int_equal(made.gpus[0].level[1], LINK_NV + 4);
	assert_int_equal(made.gpus[3].level[1], LINK_SYS);
	assert_int_equal(made.gpus[0].level[2], LINK_UNKNOWN);
	assert_int_equal(made.gpus[2].level[0], LINK_UNKNOWN);
	for (int i = 0; i < 4; i++)
		assert_int_equal(made.gpus[i].level[i], LINK_SELF);
	assert_int_equal(made.gpus[3].node, 1);
	assert_int_equal(made.gpus[2].node, NODE_UNKNOWN);
	assert_false(made.is_sound);
}

static void only_a_whole_answer_is_sound(void **state)
{
	(void)state;
	make_topology(2, "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n", 1);
	assert_true(made.is_sound);
	make_topology(2, "\tGPU0\tGPU1\nGPU0\t X \tPIX\n", 1);
	assert_false(made.is_sound);
	make_topology(2, "\tGPU0\nGPU0\t X \n", 1);
	assert_false(made.is_sound);
	topology_from(NULL, &probe, 1, &made);
	assert_false(made.is_sound);
	assert_int_equal(made.count, 2);
	assert_int_equal(made.gpus[0].level[1], LINK_UNKNOWN);
	assert_string_equal(made.trouble.text, "");
}

static void gpus_without_a_uuid_are_left_out(void **state)
{
	(void)state;
	see(4);
	parse(PAIR);
	probe.gpus[0].uuid[0] = '\0';
	topology_from(&answer, &probe, 1, &made);
	assert_int_equal(made.count, 3);
	assert_string_equal(made.gpus[0].uuid, "GPU-B");
	assert_int_equal(made.gpus[0].level[2], LINK_SYS);
	assert_int_equal(made.gpus[2].node, 1);
	assert_true(topology_serves(&made, &probe, 1));
}

static void it_serves_probes_if_it_names_their_gpus(void **state)
{
	(void)state;
	make_topology(4, PAIR, 777);
	assert_true(topology_serves(&made, &probe, INT64_MAX));
	/* fewer, in another order */
	see(2);
	text_copy(probe.gpus[0].uuid, sizeof(probe.gpus[0].uuid), "GPU-D");
	assert_true(topology_serves(&made, &probe, 777));
	see(5);
	assert_false(topology_serves(&made, &probe, 777));
}

static void a_failure_serves_for_ten_minutes(void **state)
{
	(void)state;
	see(2);
	topology_from(NULL, &probe, 1000, &made);
	why_set(&made.trouble, "no");
	assert_true(topology_serves(&made, &probe, 1000));
	assert_true(topology_serves(&made, &probe, 1000 + TOPOLOGY_RETRY_MS - 1));
	assert_false(topology_serves(&made, &probe, 1000 + TOPOLOGY_RETRY_MS));
	/* one from the future would for ever */
	assert_false(topology_serves(&made, &probe, 999));
	see(3);
	assert_false(topology_serves(&made, &probe, 1000));
}

/* --- by slots ------------------------------------------------------------------------ */

static void links_go_by_slots_and_touch_no_more(void **state)
{
	static const char *const uuids[] = { "GPU-D", NULL, "GPU-A", "GPU-Z", "GPU-B", "",
		"GPU-A" };
	enum { SLOTS = ARRAY_SIZE(uuids) };

	(void)state;
	make_topology(4, PAIR, 1);
	memset(&links, 0x5a, sizeof(links));
	topology_to_links(&made, uuids, SLOTS, &links);
	assert_int_equal(links.level[2][4], LINK_NV + 4);
	assert_int_equal(links.level[4][2], LINK_NV + 4);
	assert_int_equal(links.level[0][2], LINK_SYS);
	assert_int_equal(links.node[0], 1);
	assert_int_equal(links.node[4], 0);
	/* an empty slot, a GPU that is not named, a slot without a UUID */
	for (int slot = 1; slot <= 5; slot += 2) {
		assert_int_equal(links.node[slot], NODE_UNKNOWN);
		assert_int_equal(links.level[slot][0], LINK_UNKNOWN);
		assert_int_equal(links.level[0][slot], LINK_UNKNOWN);
		assert_int_equal(links.level[slot][slot], LINK_SELF);
	}
	assert_int_equal(links.level[3][5], LINK_UNKNOWN);
	/* two instances of one GPU */
	assert_int_equal(links.level[2][6], LINK_SELF);
	assert_int_equal(links.level[6][4], LINK_NV + 4);
	assert_int_equal(links.level[0][SLOTS], 0x5a);
	assert_int_equal(links.level[SLOTS][0], 0x5a);
	assert_int_equal(links.node[SLOTS], 0x5a5a);
}

static void simulated_gpus_lie_on_two_nodes(void **state)
{
	static const char *const expected[] = { "", "0", "00", "000", "0011", "00111",
		"000111" };

	(void)state;
	for (unsigned gpus = 1; gpus < ARRAY_SIZE(expected); gpus++) {
		const char *nodes = expected[gpus];

		see(gpus);
		topology_simulate(&probe, &made);
		assert_int_equal(made.count, gpus);
		assert_true(topology_serves(&made, &probe, INT64_MAX));
		for (unsigned i = 0; i < gpus; i++) {
			assert_int_equal(made.gpus[i].node, nodes[i] - '0');
			for (unsigned j = 0; j < gpus; j++)
				assert_int_equal(made.gpus[i].level[j],
					i == j                 ? LINK_SELF
					: nodes[i] == nodes[j] ? LINK_NODE
							       : LINK_SYS);
		}
	}
}

/* --- in the state directory ---------------------------------------------------------- */

static void a_stored_result_is_loaded(void **state)
{
	struct statedir dir = fixture_dir(*state);

	assert_int_equal(topology_load(&dir, &loaded), TOPOLOGY_NONE);
	make_topology(4, PAIR, 777);
	assert_int_equal(topology_store(&dir, &made), 0);
	memset(&loaded, 0x5a, sizeof(loaded));
	assert_int_equal(topology_load(&dir, &loaded), 0);
	assert_same(&loaded, &made);
	assert_false(loaded.is_sound);
	/* a failure replaces it, and says why */
	topology_from(NULL, &probe, 888, &made);
	why_set(&made.trouble, "nvidia-smi: no = 100%%");
	assert_int_equal(topology_store(&dir, &made), 0);
	assert_int_equal(topology_load(&dir, &loaded), 0);
	assert_same(&loaded, &made);
	assert_false(fixture_exists(dir.fd, ".", "topology.new"));
	statedir_release(&dir);
}

static void the_largest_result_fits(void **state)
{
	struct statedir dir = fixture_dir(*state);

	probe_simulate(GPUSET_MAX, 1000, 5000, &probe);
	for (unsigned i = 0; i < GPUSET_MAX; i++) {
		memset(probe.gpus[i].uuid, 'f', sizeof(probe.gpus[i].uuid) - 1);
		(void)snprintf(probe.gpus[i].uuid, 12, "MIG-GPU-%03u", i);
		probe.gpus[i].uuid[11] = 'f';
	}
	topology_simulate(&probe, &made);
	made.gpus[127].level[0] = made.gpus[0].level[127] = LINK_NV + 200;
	assert_int_equal(topology_store(&dir, &made), 0);
	assert_int_equal(topology_load(&dir, &loaded), 0);
	assert_same(&loaded, &made);
	statedir_release(&dir);
}

static void a_result_that_may_be_spoiled_is_not_stored(void **state)
{
	struct statedir dir = fixture_dir(*state);

	dir.is_hardened = true;
	make_topology(4, PAIR, 777);
	assert_int_equal(topology_store(&dir, &made), 0);
	assert_int_equal(topology_load(&dir, &loaded), TOPOLOGY_NONE);
	made.is_sound = true;
	assert_int_equal(topology_store(&dir, &made), 0);
	assert_int_equal(topology_load(&dir, &loaded), 0);
	statedir_release(&dir);
}

static void a_temporary_file_of_a_crash_is_replaced(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);

	make_topology(4, PAIR, 777);
	assert_int_equal(scratch_write(s, "topology.new", "half"), 0);
	assert_int_equal(topology_store(&dir, &made), 0);
	assert_int_equal(topology_load(&dir, &loaded), 0);
	assert_false(fixture_exists(dir.fd, ".", "topology.new"));
	statedir_release(&dir);
}

/* Writes the stored result with @size bytes, of which byte @at is @c. */
static void damage(const struct statedir *dir, size_t size, size_t at, char c)
{
	char raw[4 * RECORD_SIZE + RECORD_SIZE];
	autofd int fd = openat(dir->fd, "topology", O_RDWR | O_CLOEXEC);
	size_t had;

	assert_true(fd >= 0);
	assert_int_equal(fdio_pread(fd, raw, sizeof(raw), 0, &had), 0);
	assert_int_equal(had, sizeof(raw));
	if (at < had)
		raw[at] = c;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(fdio_pwrite(fd, raw, size, 0), 0);
}

static void a_damaged_result_and_one_of_another_boot_are_ignored(void **state)
{
	static const struct {
		size_t size, at;
	} cases[] = {
		{ 5 * RECORD_SIZE, 20 },
		{ 5 * RECORD_SIZE, 4 * RECORD_SIZE + 30 },
		{ 4 * RECORD_SIZE, SIZE_MAX },
		{ 5 * RECORD_SIZE - 1, SIZE_MAX },
		{ 100, SIZE_MAX },
		{ 0, SIZE_MAX },
	};
	struct statedir dir = fixture_dir(*state);

	make_topology(4, PAIR, 777);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(topology_store(&dir, &made), 0);
		damage(&dir, cases[i].size, cases[i].at, '!');
		if (topology_load(&dir, &loaded) != TOPOLOGY_NONE)
			fail_msg("case %zu", i);
	}
	assert_int_equal(topology_store(&dir, &made), 0);
	dir.boot[0] = dir.boot[0] == '0' ? '1' : '0';
	assert_int_equal(topology_load(&dir, &loaded), TOPOLOGY_NONE);
	statedir_release(&dir);
}

/* Puts two good records into the place of the result, whatever they say. */
static void store_raw(const struct statedir *dir, const char *text, const char *row)
{
	char raw[2 * RECORD_SIZE];
	const char *const parts[] = { text, row };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		char *at = raw + i * RECORD_SIZE;
		uint32_t sum = 2166136261u;
		char line[RECORD_SIZE];

		(void)snprintf(line, sizeof(line), "%-499s", parts[i]);
		memcpy(at, line, 499);
		for (int j = 0; j < 499; j++)
			sum = (sum ^ (uint8_t)at[j]) * 16777619u;
		(void)snprintf(line, sizeof(line), "sum=%08x\n", sum);
		memcpy(at + 499, line, 13);
		assert_int_equal(record_judge(at), RECORD_GOOD);
	}
	(void)unlinkat(dir->fd, "topology", 0);
	assert_int_equal(
		fdio_publish(dir->fd, "topology", "tmp.t", raw, sizeof(raw), 0600), 0);
}

static void records_that_do_not_fit_together_are_ignored(void **state)
{
	static const struct {
		const char *gpus, *row;
		int expected;
	} cases[] = {
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ff", 0 },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ff color=red", 0 },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ff node=-1", 0 },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ff node=-2", TOPOLOGY_NONE },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ff node=40000", TOPOLOGY_NONE },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=ffff", TOPOLOGY_NONE },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=f", TOPOLOGY_NONE },
		{ "gpus=1", "tgpu/1 uuid=GPU-A links=fg", TOPOLOGY_NONE },
		{ "gpus=1", "tgpu/1 uuid=GPU-A", TOPOLOGY_NONE },
		{ "gpus=1", "pgpu/1 uuid=GPU-A links=ff", TOPOLOGY_NONE },
		{ "gpus=2", "tgpu/1 uuid=GPU-A links=ffff", TOPOLOGY_NONE },
		{ "gpus=4294967295", "tgpu/1 uuid=GPU-A links=ffff", TOPOLOGY_NONE },
	};
	struct statedir dir = fixture_dir(*state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char header[200];

		(void)snprintf(header, sizeof(header), "topo/1 boot=%s asked=5 %s",
			dir.boot, cases[i].gpus);
		store_raw(&dir, header, cases[i].row);
		if (topology_load(&dir, &loaded) != cases[i].expected)
			fail_msg("case %zu", i);
	}
	statedir_release(&dir);
}

static void only_a_regular_file_is_read(void **state)
{
	struct statedir dir = fixture_dir(*state);

	assert_int_equal(symlinkat("probe", dir.fd, "topology"), 0);
	assert_int_equal(topology_load(&dir, &loaded), TOPOLOGY_NONE);
	assert_int_equal(unlinkat(dir.fd, "topology", 0), 0);
	assert_int_equal(mkfifoat(dir.fd, "topology", 0600), 0);
	assert_int_equal(topology_load(&dir, &loaded), TOPOLOGY_NONE);
	statedir_release(&dir);
}

static void only_one_process_has_the_lock(void **state)
{
	struct statedir dir = fixture_dir(*state);
	int first = -1, second = -1;

	assert_int_equal(topology_lock_try(dir.fd, &first), 0);
	assert_int_equal(topology_lock_try(dir.fd, &second), TOPOLOGY_BUSY);
	assert_int_equal(second, -1);
	close_fd(&first);
	assert_int_equal(topology_lock_try(dir.fd, &second), 0);
	close_fd(&second);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_become_uuids_and_no_gpu_is_forgotten),
		cmocka_unit_test(only_a_whole_answer_is_sound),
		cmocka_unit_test(gpus_without_a_uuid_are_left_out),
		cmocka_unit_test(it_serves_probes_if_it_names_their_gpus),
		cmocka_unit_test(a_failure_serves_for_ten_minutes),
		cmocka_unit_test(links_go_by_slots_and_touch_no_more),
		cmocka_unit_test(simulated_gpus_lie_on_two_nodes),
		SCRATCH_TEST(a_stored_result_is_loaded),
		SCRATCH_TEST(the_largest_result_fits),
		SCRATCH_TEST(a_result_that_may_be_spoiled_is_not_stored),
		SCRATCH_TEST(a_temporary_file_of_a_crash_is_replaced),
		SCRATCH_TEST(a_damaged_result_and_one_of_another_boot_are_ignored),
		SCRATCH_TEST(records_that_do_not_fit_together_are_ignored),
		SCRATCH_TEST(only_a_regular_file_is_read),
		SCRATCH_TEST(only_one_process_has_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
