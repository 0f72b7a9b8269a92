#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "bind.h"
#include "scratch.h"

static struct bind_cpus cpus;

/* --- lists ---------------------------------------------------------------------------- */

static bool has(unsigned cpu)
{
	return cpus.bits[cpu / BIND_WORD] >> cpu % BIND_WORD & 1;
}

static unsigned count_cpus(void)
{
	unsigned count = 0;

	for (unsigned cpu = 0; cpu < BIND_CPUS_MAX; cpu++)
		count += has(cpu);
	return count;
}

static void a_cpulist_has_cpus_and_ranges(void **state)
{
	static const struct {
		const char *text;
		unsigned count;
		unsigned some[4]; /* CPUs in the list */
	} cases[] = {
		{ "0-3,8,10-11", 7, { 0, 3, 8, 11 } },
		{ "0-3,8,10-11\n", 7, { 0, 3, 8, 10 } },
		{ "5", 1, { 5, 5, 5, 5 } },
		{ "", 0, { 0 } },
		{ "\n", 0, { 0 } },
		{ "0-15,32-47,64-79,96-111\n", 64, { 15, 32, 79, 111 } },
		{ "63-64,8191", 3, { 63, 64, 8191, 64 } },
		{ "0-8191", BIND_CPUS_MAX, { 0, 63, 64, 8191 } },
		{ "7-7", 1, { 7, 7, 7, 7 } },
		{ "1,1,0-1", 2, { 0, 1, 0, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cpus = (struct bind_cpus){ .bits = { 0 } };
		assert_int_equal(bind_read_cpulist(cases[i].text, &cpus), 0);
		if (count_cpus() != cases[i].count)
			fail_msg("'%s' has %u", cases[i].text, count_cpus());
		for (int j = 0; j < 4 && cases[i].count; j++)
			if (!has(cases[i].some[j]))
				fail_msg(
					"'%s' lacks %u", cases[i].text, cases[i].some[j]);
	}
}

static void a_malformed_cpulist_is_refused(void **state)
{
	static const char *const cases[] = { "x", "0-", "-3", "-", "3-0", "0,,1", ",",
		"0,", "0x1", "8192", "0-8192", "18446744073709551616", "0-3:2/4", "1 2",
		"ff", "+1", "0--1", "1-2-3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cpus = (struct bind_cpus){ .bits = { 0 } };
		if (bind_read_cpulist(cases[i], &cpus) != -EINVAL)
			fail_msg("'%s'", cases[i]);
	}
}

/* --- binding -------------------------------------------------------------------------- */

#define GPU_A "0000:01:00.0"
#define GPU_B "0000:02:00.0"

/* Makes the device @bus_id below the directory; an attribute that is NULL is left out. */
static void make_device(
	const struct scratch *s, const char *bus_id, const char *list, const char *node)
{
	static const char *const folders[] = { "bus", "bus/pci", "bus/pci/devices" };
	char path[100], file[140];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		(void)mkdirat(s->dirfd, folders[i], 0700);
	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", bus_id);
	assert_int_equal(mkdirat(s->dirfd, path, 0700), 0);
	(void)snprintf(file, sizeof(file), "%s/local_cpulist", path);
	assert_true(!list || scratch_write(s, file, list) == 0);
	(void)snprintf(file, sizeof(file), "%s/numa_node", path);
	assert_true(!node || scratch_write(s, file, node) == 0);
}

/* The binding of a process. */
struct bound {
	int result;
	unsigned long cpus[BIND_CPUS_MAX / BIND_WORD];
	int policy; /* -1: the kernel does not show it */
	unsigned long nodes[BIND_NODES_MAX / BIND_WORD];
};

static void look(struct bound *bound)
{
	memset(bound->cpus, 0, sizeof(bound->cpus));
	(void)!sched_getaffinity(
		0, sizeof(bound->cpus), (cpu_set_t *)(void *)bound->cpus);
	bound->policy = -1;
	(void)syscall(SYS_get_mempolicy, &bound->policy, bound->nodes,
		(unsigned long)BIND_NODES_MAX, NULL, 0ul);
}

/* Binds a child and returns its binding. */
static struct bound bind_child(
	const struct scratch *s, const char *const bus_ids[], unsigned count)
{
	static struct bound bound;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		memset(&bound, 0, sizeof(bound));
		bound.result = bind_near(bus_ids, count, s->path);
		look(&bound);
		_exit(write(ends[1], &bound, sizeof(bound)) != sizeof(bound));
	}
	(void)close(ends[1]);
	assert_true(pid > 0);
	assert_int_equal(read(ends[0], &bound, sizeof(bound)), sizeof(bound));
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return bound;
}

/* Returns the lowest CPU from @from on that this process may use; -1: none. */
static int next_cpu(int from)
{
	struct bound now;

	look(&now);
	for (int cpu = from; cpu < BIND_CPUS_MAX; cpu++)
		if (now.cpus[(unsigned)cpu / BIND_WORD] >> (unsigned)cpu % BIND_WORD & 1)
			return cpu;
	return -1;
}

static bool has_cpus(const struct bound *bound, int a, int b)
{
	unsigned long expected[BIND_CPUS_MAX / BIND_WORD] = { 0 };

	expected[(unsigned)a / BIND_WORD] |= 1ul << (unsigned)a % BIND_WORD;
	expected[(unsigned)b / BIND_WORD] |= 1ul << (unsigned)b % BIND_WORD;
	return memcmp(bound->cpus, expected, sizeof(expected)) == 0;
}

static void it_is_bound_to_the_cpus_near_any_of_its_gpus(void **state)
{
	static const char *const both[] = { GPU_A, GPU_B };
	struct scratch *s = *state;
	int a = next_cpu(0), b = next_cpu(a + 1);
	char list[60];
	struct bound bound;

	if (b < 0)
		skip_because("there is one CPU");
	/* this process may not use some of the near CPUs */
	(void)snprintf(list, sizeof(list), "%d,8000-8191\n", b);
	make_device(s, GPU_A, list, "0\n");
	(void)snprintf(list, sizeof(list), "%d\n", a);
	make_device(s, GPU_B, list, "0\n");
	bound = bind_child(s, both, 1);
	assert_int_equal(bound.result, 0);
	assert_true(has_cpus(&bound, b, b));
	bound = bind_child(s, both + 1, 1);
	assert_true(has_cpus(&bound, a, a));
	bound = bind_child(s, both, 2);
	assert_int_equal(bound.result, 0);
	assert_true(has_cpus(&bound, a, b));
}

/* A mode of set_mempolicy(2). */
enum { DEFAULT = 0, PREFERRED = 1 };

static void it_prefers_the_memory_of_the_near_node(void **state)
{
	static const char *const both[] = { GPU_A, GPU_B };
	static const struct {
		const char *nodes[2];
		int policy;
	} cases[] = {
		{ { "0\n", "0\n" }, PREFERRED },
		{ { "-1\n", "-1\n" }, DEFAULT },
		{ { "0\n", "-1\n" }, DEFAULT },
		{ { "0\n", NULL }, DEFAULT },
		{ { "1024\n", "0\n" }, DEFAULT },
	};
	unsigned long node = 1;

	/* set_mempolicy(2) is not allowed everywhere */
	if (syscall(SYS_set_mempolicy, PREFERRED, &node, 8ul) < 0 ||
		syscall(SYS_set_mempolicy, DEFAULT, NULL, 0ul) < 0)
		skip_because("memory policies are not allowed here");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scratch *s;
		struct bound bound;

		/* the same devices again */
		(void)scratch_teardown(state);
		assert_int_equal(scratch_setup(state), 0);
		s = *state;
		make_device(s, GPU_A, "0-8191\n", cases[i].nodes[0]);
		make_device(s, GPU_B, "0-8191\n", cases[i].nodes[1]);
		bound = bind_child(s, both, 2);
		assert_int_equal(bound.result, 0);
		if (bound.policy != cases[i].policy)
			fail_msg("case %zu: policy %d", i, bound.policy);
		assert_int_equal(bound.nodes[0], cases[i].policy == PREFERRED);
	}
}

static void with_one_unknown_device_nothing_is_changed(void **state)
{
	static const char *const cases[][2] = {
		{ GPU_A, "0000:05:00.0" }, /* does not exist */
		{ GPU_A, "0000:03:00.0" }, /* without the attribute */
		{ GPU_A, "0000:04:00.0" }, /* with an empty one */
		{ GPU_A, "0000:06:00.0" }, /* with a malformed one */
		{ GPU_A, "" },             /* nvidia-smi showed no address */
		{ GPU_A, "../devices/" GPU_A }, { GPU_A, GPU_A "/" },
		{ GPU_B, GPU_B }, /* CPUs that it may not use */
	};
	struct scratch *s = *state;
	struct bound before = { .result = 0 };
	char list[30];

	(void)snprintf(list, sizeof(list), "%d\n", next_cpu(0));
	make_device(s, GPU_A, list, "0\n");
	make_device(s, GPU_B, "8190-8191\n", "0\n");
	make_device(s, "0000:03:00.0", NULL, "0\n");
	make_device(s, "0000:04:00.0", "\n", "0\n");
	make_device(s, "0000:06:00.0", "0-\n", "0\n");
	look(&before);
	for (size_t i = 0; i <= ARRAY_SIZE(cases); i++) {
		const char *const *ids = cases[i % ARRAY_SIZE(cases)];

		struct bound bound = bind_child(s, ids, i < ARRAY_SIZE(cases) ? 2 : 0);

		if (bound.result != BIND_NOTHING)
			fail_msg("case %zu: %d", i, bound.result);
		assert_memory_equal(bound.cpus, before.cpus, sizeof(before.cpus));
		assert_int_equal(bound.policy, before.policy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpulist_has_cpus_and_ranges),
		cmocka_unit_test(a_malformed_cpulist_is_refused),
		SCRATCH_TEST(it_is_bound_to_the_cpus_near_any_of_its_gpus),
		SCRATCH_TEST(it_prefers_the_memory_of_the_near_node),
		SCRATCH_TEST(with_one_unknown_device_nothing_is_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
