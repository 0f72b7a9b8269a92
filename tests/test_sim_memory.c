/* What processes show of their use of simulated GPUs, and which records count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "prober.h"
#include "record.h"
#include "sim_memory.h"

enum { GPUS = 3, CARD_MIB = 24576 };

static struct probe probe;

/* Reads the use of GPUs that were idle. */
static int look(const struct statedir *dir)
{
	probe_simulate(GPUS, CARD_MIB, 5000, &probe);
	return sim_memory_read(dir, &probe);
}

static bool is_there(const struct statedir *dir, const char *name)
{
	struct stat st;

	return fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void name_of(pid_t pid, char out[32])
{
	(void)snprintf(out, 32, "sim/%d", (int)pid);
}

/* Shows @mib on the GPUs @slots, as this process. */
static struct sim_memory showing(
	const struct statedir *dir, const char *slots, uint64_t mib, uint32_t utilization)
{
	struct gpuset gpus = fixture_set(slots);
	struct sim_memory memory = SIM_MEMORY_INIT;

	assert_int_equal(sim_memory_begin(dir, &gpus, &memory), 0);
	assert_int_equal(sim_memory_show(&memory, mib, utilization), 0);
	return memory;
}

/* A child that shows @mib on GPU 0 until it is killed. */
static pid_t showing_child(const struct statedir *dir, uint64_t mib)
{
	struct gpuset gpus = fixture_set("0");
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct sim_memory memory = SIM_MEMORY_INIT;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (sim_memory_begin(dir, &gpus, &memory) == 0 &&
			sim_memory_show(&memory, mib, 50) == 0)
			(void)!write(ready[1], "x", 1);
		(void)close(ready[1]);
		fixture_rest();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

/* Changes @key of the record in @name, and corrects its checksum. */
static void forge(const struct statedir *dir, const char *name, const char *key,
	unsigned long long value)
{
	static const struct record_field fields[] = {
		{ "pidns", RECORD_U64, offsetof(struct sim_use, pidns), 0 },
		{ "boot", RECORD_TEXT, offsetof(struct sim_use, boot), BOOT_SIZE },
		{ "start", RECORD_U64, offsetof(struct sim_use, start), 0 },
		{ "gpus", RECORD_SET, offsetof(struct sim_use, gpus), 0 },
		{ "used", RECORD_U64, offsetof(struct sim_use, used_mib), 0 },
	};
	static const struct record_schema schema = RECORD_SCHEMA("sim/1", fields);
	autofd int fd = openat(dir->fd, name, O_RDWR | O_CLOEXEC);
	char raw[RECORD_SIZE];
	struct sim_use use;
	size_t size;

	assert_int_equal(fdio_pread(fd, raw, sizeof(raw), 0, &size), 0);
	assert_int_equal(record_decode(&schema, raw, &use), 0);
	if (strcmp(key, "start") == 0)
		use.start = value;
	else if (strcmp(key, "pidns") == 0)
		use.pidns = value;
	else
		(void)snprintf(use.boot, sizeof(use.boot), "%032llx", value);
	assert_int_equal(record_encode(&schema, &use, raw), 0);
	assert_int_equal(fdio_pwrite(fd, raw, sizeof(raw), 0), 0);
}

/* --- showing ------------------------------------------------------------------------ */

static void readers_do_not_create_the_folder(void **state)
{
	struct statedir dir = fixture_dir(*state);

	assert_int_equal(look(&dir), SIM_MEMORY_NONE);
	assert_int_equal(probe.process_count, 0);
	assert_false(is_there(&dir, "sim"));
	statedir_release(&dir);
}

static void use_is_seen_until_it_ends(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct sim_memory memory = showing(&dir, "02", 3000, 91);
	char name[32];

	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.process_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(probe.processes[i].gpu, 2 * i);
		assert_int_equal(probe.processes[i].pid, getpid());
		assert_int_equal(probe.processes[i].used_mib, 3000);
		assert_int_equal(probe.gpus[2 * i].used_mib, 3000);
		assert_int_equal(probe.gpus[2 * i].utilization, 91);
	}
	assert_true(probe.processes[0].start != 0);
	assert_int_equal(probe.gpus[1].used_mib, 0);
	assert_int_equal(probe.gpus[1].utilization, 0);
	/* less than before, which is kept */
	assert_int_equal(sim_memory_show(&memory, 1000, 10), 0);
	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.processes[1].used_mib, 1000);
	assert_int_equal(probe.processes[1].peak_mib, 3000);
	sim_memory_end(&memory);
	sim_memory_end(&memory);
	name_of(getpid(), name);
	assert_false(is_there(&dir, name));
	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.process_count, 0);
	assert_int_equal(probe.gpus[0].used_mib, 0);
	statedir_release(&dir);
}

static void use_of_a_gpu_is_at_most_its_memory(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct sim_memory memory = showing(&dir, "012345", CARD_MIB - 1000, 200);
	pid_t other = showing_child(&dir, UINT64_MAX);

	assert_int_equal(look(&dir), 0);
	fixture_kill(&other);
	assert_int_equal(probe.process_count, GPUS + 1); /* there are no others */
	for (uint32_t i = 0; i < probe.process_count; i++)
		assert_in_range(probe.processes[i].used_mib, CARD_MIB - 1000, CARD_MIB);
	assert_int_equal(probe.gpus[0].used_mib, CARD_MIB);
	assert_int_equal(probe.gpus[1].used_mib, CARD_MIB - 1000);
	assert_int_equal(probe.gpus[1].utilization, 100);
	sim_memory_end(&memory);
	statedir_release(&dir);
}

/* --- which records count -------------------------------------------------------------- */

static void a_killed_process_uses_nothing_and_its_file_is_removed(void **state)
{
	struct statedir dir = fixture_dir(*state);
	pid_t child = showing_child(&dir, 3000), pid = child;
	char name[32];

	name_of(child, name);
	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.process_count, 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_true(fixture_await_end(child)); /* a zombie, of which /proc still tells */
	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.process_count, 0);
	assert_int_equal(probe.gpus[0].used_mib, 0);
	assert_false(is_there(&dir, name));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	statedir_release(&dir);
}

static void a_record_counts_only_for_the_process_it_names(void **state)
{
	static const struct {
		const char *key;
		bool is_removed;
	} cases[] = {
		{ "start", true },  /* the number was used again */
		{ "boot", true },   /* before the machine started */
		{ "pidns", false }, /* in a container: unknown */
	};
	struct statedir dir = fixture_dir(*state);
	char name[32];

	name_of(getpid(), name);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sim_memory memory = showing(&dir, "0", 3000, 91);

		forge(&dir, name, cases[i].key, 12345);
		assert_int_equal(look(&dir), 0);
		if (probe.process_count || probe.gpus[0].used_mib)
			fail_msg("%s is believed", cases[i].key);
		if (is_there(&dir, name) == cases[i].is_removed)
			fail_msg("%s: the file", cases[i].key);
		sim_memory_end(&memory);
	}
	statedir_release(&dir);
}

static void a_file_without_a_record_is_ignored(void **state)
{
	static const struct {
		const char *name, *text;
		bool is_removed;
	} cases[] = {
		{ "sim/1", "", false }, /* just created, by a live process */
		{ "sim/1", "sim/1 used=3000\n", false }, /* half-copied */
		{ "sim/2147483647", "", true },          /* no process has that pid */
		{ "sim/README", "sim/1 used=3000\n", false }, /* not ours */
		{ "sim/99999999999", "", false },
	};
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);

	assert_int_equal(mkdirat(dir.fd, "sim", 0700), 0);
	assert_int_equal(symlinkat("/dev/zero", dir.fd, "sim/3"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(scratch_write(s, cases[i].name, cases[i].text), 0);
		assert_int_equal(look(&dir), 0);
		assert_int_equal(probe.process_count, 0);
		if (is_there(&dir, cases[i].name) == cases[i].is_removed)
			fail_msg("case %zu", i);
	}
	statedir_release(&dir);
}

static void an_old_file_with_the_same_pid_is_replaced(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct sim_memory memory;
	char name[32];

	name_of(getpid(), name);
	assert_int_equal(mkdirat(dir.fd, "sim", 0700), 0);
	assert_int_equal(scratch_write(s, name, "of another"), 0);
	memory = showing(&dir, "1", 500, 1);
	assert_int_equal(look(&dir), 0);
	assert_int_equal(probe.gpus[1].used_mib, 500);
	sim_memory_end(&memory);
	statedir_release(&dir);
}

static void a_file_in_place_of_the_folder_is_an_error(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct gpuset gpus = fixture_set("0");
	struct sim_memory memory = SIM_MEMORY_INIT;

	assert_int_equal(scratch_write(s, "sim", ""), 0);
	assert_int_equal(look(&dir), -ENOTDIR);
	assert_int_equal(sim_memory_begin(&dir, &gpus, &memory), -ENOTDIR);
	assert_int_equal(memory.fd, -1);
	statedir_release(&dir);
}

/* --- the prober --------------------------------------------------------------------- */

static void a_simulated_gpu_is_idle_since_its_use_ended(void **state)
{
	struct prober_config config = {
		.sim_gpus = GPUS, .sim_mib = CARD_MIB, .usage = USAGE_POLICY_DEFAULT
	};
	struct statedir dir = fixture_dir(*state);
	struct prober prober;
	bool has_probe = false;
	struct sim_memory memory;

	prober_init(&prober, &dir, &config);
	prober_refresh(&prober, 1000, &probe, &has_probe);
	assert_true(has_probe);
	assert_false(prober.sees_use);
	assert_int_equal(probe.gpus[0].idle_since_ms, 1000);
	memory = showing(&dir, "0", 3000, 91);
	prober_refresh(&prober, 2000, &probe, &has_probe);
	assert_true(prober.sees_use);
	assert_int_equal(probe.gpus[0].idle_since_ms, 0);
	assert_int_equal(probe.gpus[1].idle_since_ms, 1000);
	assert_int_equal(probe.process_count, 1);
	sim_memory_end(&memory);
	prober_refresh(&prober, 3000, &probe, &has_probe);
	assert_true(prober.sees_use);
	assert_int_equal(probe.gpus[0].idle_since_ms, 3000);
	assert_int_equal(probe.gpus[1].idle_since_ms, 1000);
	prober_refresh(&prober, 4000, &probe, &has_probe);
	assert_int_equal(probe.gpus[0].idle_since_ms, 3000);
	prober_release(&prober);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(readers_do_not_create_the_folder),
		SCRATCH_TEST(use_is_seen_until_it_ends),
		SCRATCH_TEST(use_of_a_gpu_is_at_most_its_memory),
		SCRATCH_TEST(a_killed_process_uses_nothing_and_its_file_is_removed),
		SCRATCH_TEST(a_record_counts_only_for_the_process_it_names),
		SCRATCH_TEST(a_file_without_a_record_is_ignored),
		SCRATCH_TEST(an_old_file_with_the_same_pid_is_replaced),
		SCRATCH_TEST(a_file_in_place_of_the_folder_is_an_error),
		SCRATCH_TEST(a_simulated_gpu_is_idle_since_its_use_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
