#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "clock.h"
#include "probe.h"
#include "probe_marks.h"
#include "probe_lock.h"
#include "probe_run.h"
#include "scratch.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define UUID(n) "GPU-0000000" #n "-aaaa-0000-0000-000000000000"

enum { PATIENCE_MS = 20000 };

static const struct usage_policy usage = { .idle_mib = 200 };
static struct probe probe, loaded; /* too large for the stack */

/* --- the shared result --------------------------------------------------------------- */

static void add_gpu(struct probe *to, const char *uuid, uint64_t used_mib)
{
	struct probe_gpu *gpu = &to->gpus[to->gpu_count];

	*gpu = (struct probe_gpu){
		.index = (int)to->gpu_count++,
		.total_mib = 24576,
		.used_mib = used_mib,
		.utilization = 5,
		.is_known = true,
		.name = "NVIDIA A=30 100%",
		.compute_mode = "Default",
		.bus_id = "0000:01:00.0",
	};
	text_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
}

static void add_process(struct probe *to, uint32_t gpu, int32_t pid, uint64_t used_mib)
{
	to->processes[to->process_count++] =
		(struct probe_process){ .gpu = gpu, .pid = pid, .used_mib = used_mib };
}

static void add_mig(struct probe *to, uint32_t gpu, uint32_t device, const char *uuid)
{
	struct probe_mig *mig = &to->migs[to->mig_count++];

	*mig = (struct probe_mig){
		.gpu = gpu, .device = device, .profile = "1g.10gb+me"
	};
	text_copy(mig->uuid, sizeof(mig->uuid), uuid);
}

/* The state directory that the scratch one is. */
static struct statedir dir_of(const struct scratch *s)
{
	struct statedir dir = { .fd = s->dirfd, .boot = BOOT, .pidns = 4711 };

	return dir;
}

static int store(const struct scratch *s)
{
	struct statedir dir = dir_of(s);

	return probe_store(&dir, &usage, NULL, &probe);
}

static int load(const struct scratch *s)
{
	struct statedir dir = dir_of(s);

	return probe_load(&dir, &loaded);
}

static void make_probe(int64_t started_ms)
{
	probe = (struct probe){ .started_ms = started_ms,
		.finished_ms = started_ms + 50 };
}

static void assert_same_gpu(const struct probe_gpu *a, const struct probe_gpu *b)
{
	assert_int_equal(a->index, b->index);
	assert_string_equal(a->uuid, b->uuid);
	assert_string_equal(a->bus_id, b->bus_id);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->compute_mode, b->compute_mode);
	assert_string_equal(a->trouble, b->trouble);
	assert_true(a->total_mib == b->total_mib && a->used_mib == b->used_mib);
	assert_int_equal(a->utilization, b->utilization);
	assert_int_equal(a->is_known, b->is_known);
	assert_int_equal(a->has_mig, b->has_mig);
	assert_true(a->idle_since_ms == b->idle_since_ms);
}

static void a_stored_result_is_loaded(void **state)
{
	struct scratch *s = *state;
	struct stat st;
	mode_t before = umask(077);

	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	add_gpu(&probe, UUID(1), 507);
	probe.gpus[1].has_mig = true;
	probe.gpus[1].utilization = -1;
	add_gpu(&probe, "", PROBE_MIB_UNKNOWN);
	probe.gpus[2].is_known = false;
	probe.gpus[2].index = -1;
	text_copy(probe.gpus[2].trouble, 96,
		"GPU is lost.  Reboot the system to recover it");
	add_process(&probe, 1, 4711, 490);
	add_process(&probe, 1, 0, PROBE_MIB_UNKNOWN);
	add_mig(&probe, 1, 0, "MIG-aaaaaaaa-0000-0000-0000-000000000000");
	add_mig(&probe, 1, 12, "MIG-" UUID(1) "/12/0");
	assert_int_equal(store(s), 0);
	(void)umask(before);
	assert_int_equal(fstatat(s->dirfd, "probe", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_size, 8 * 512);

	memset(&loaded, 0x55, sizeof(loaded));
	assert_int_equal(load(s), 0);
	assert_true(loaded.started_ms == 1000 && loaded.finished_ms == 1050);
	assert_int_equal(loaded.gpu_count, 3);
	assert_int_equal(loaded.process_count, 2);
	for (int i = 0; i < 3; i++)
		assert_same_gpu(&loaded.gpus[i], &probe.gpus[i]);
	assert_memory_equal(
		loaded.processes, probe.processes, 2 * sizeof(struct probe_process));
	assert_int_equal(loaded.mig_count, 2);
	assert_memory_equal(loaded.migs, probe.migs, 2 * sizeof(struct probe_mig));
	assert_true(loaded.gpus[0].idle_since_ms == 1050);
	assert_true(loaded.gpus[1].idle_since_ms == 0);
	assert_string_equal(loaded.trouble.text, "");
}

static void the_largest_result_with_the_longest_texts_is_stored(void **state)
{
	struct scratch *s = *state;

	make_probe(1000);
	for (unsigned i = 0; i < GPUSET_MAX; i++) {
		add_gpu(&probe, UUID(0), UINT64_MAX - 1);
		memset(probe.gpus[i].uuid, 'G', 95);
		memset(probe.gpus[i].bus_id, 'b', 31);
		memset(probe.gpus[i].name, ' ', 95);
		memset(probe.gpus[i].compute_mode, '%', 23);
		memset(probe.gpus[i].trouble, '=', 95);
		probe.gpus[i].total_mib = UINT64_MAX - 1;
	}
	for (int i = 0; i < PROBE_PROCESSES_MAX; i++)
		add_process(&probe, GPUSET_MAX - 1, INT32_MAX, UINT64_MAX);
	for (uint32_t i = 0; i < PROBE_MIGS_MAX; i++) {
		add_mig(&probe, GPUSET_MAX - 1, UINT32_MAX, "");
		memset(probe.migs[i].uuid, 'M', 95);
		memset(probe.migs[i].profile, '%', 31);
	}
	memset(probe.trouble.text, ' ', sizeof(probe.trouble.text) - 1);
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	assert_int_equal(loaded.gpu_count, GPUSET_MAX);
	assert_int_equal(loaded.process_count, PROBE_PROCESSES_MAX);
	assert_int_equal(loaded.mig_count, PROBE_MIGS_MAX);
}

static void a_failed_result_does_not_replace_one_that_shows_a_gpu(void **state)
{
	struct scratch *s = *state;

	make_probe(1000);
	why_set(&probe.trouble, "nvidia-smi: no message (exit status 12)");
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), PROBE_NONE); /* useless for other processes */
	make_probe(2000);
	add_gpu(&probe, UUID(0), PROBE_MIB_UNKNOWN);
	probe.gpus[0].is_known = false;
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0); /* as long as nothing better is known */
	make_probe(3000);
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	for (unsigned gpus = 0; gpus < 2; gpus++) {
		make_probe(4000);
		why_set(&probe.trouble, "nvidia-smi: no message (exit status 12)");
		if (gpus)
			add_gpu(&probe, UUID(0), PROBE_MIB_UNKNOWN);
		probe.gpus[0].is_known = false;
		assert_int_equal(store(s), 0);
		assert_int_equal(load(s), 0);
		assert_true(loaded.started_ms == 3000);
		assert_true(loaded.gpus[0].is_known);
	}
	/* a result with a lost GPU is shared, because another GPU is known */
	make_probe(5000);
	add_gpu(&probe, UUID(0), PROBE_MIB_UNKNOWN);
	probe.gpus[0].is_known = false;
	add_gpu(&probe, UUID(1), 3);
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	assert_true(loaded.started_ms == 5000);
}

static void a_damaged_result_is_ignored(void **state)
{
	struct scratch *s = *state;
	struct statedir rebooted = dir_of(s);
	autofd int fd = -1;
	char byte;

	text_copy(rebooted.boot, sizeof(rebooted.boot), "another boot");
	assert_int_equal(load(s), PROBE_NONE);
	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	add_process(&probe, 0, 4711, 3);
	assert_int_equal(store(s), 0);
	loaded.started_ms = 77;
	assert_int_equal(probe_load(&rebooted, &loaded), PROBE_NONE);

	/* any changed byte, and any other length */
	fd = openat(s->dirfd, "probe", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t at = 0; at < 3 * 512; at += 101) {
		char other;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = (char)(byte ^ 1);
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		assert_int_equal(load(s), PROBE_NONE);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(load(s), 0);
	loaded.started_ms = 77;
	for (off_t size = 3 * 512 - 1; size >= 0; size -= 511) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(load(s), PROBE_NONE);
	}
	assert_int_equal(ftruncate(fd, 64 << 20), 0);
	assert_int_equal(load(s), PROBE_NONE);
	assert_true(loaded.started_ms == 77);
}

static void an_instance_without_its_gpu_is_refused(void **state)
{
	struct scratch *s = *state;

	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	add_mig(&probe, 0, 0, "MIG-a");
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	make_probe(2000);
	add_gpu(&probe, UUID(0), 3);
	add_mig(&probe, 1, 0, "MIG-a");
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), PROBE_NONE);
}

static void links_and_fifos_are_not_read(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(symlinkat("/etc/passwd", s->dirfd, "probe"), 0);
	assert_int_equal(load(s), PROBE_NONE);
	assert_int_equal(unlinkat(s->dirfd, "probe", 0), 0);
	assert_int_equal(mkfifoat(s->dirfd, "probe", 0600), 0);
	assert_int_equal(load(s), PROBE_NONE);
}

static void a_temporary_file_of_a_crash_does_not_stop_storing(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(scratch_write(s, "probe.new", "half a rec"), 0);
	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	assert_int_equal(faccessat(s->dirfd, "probe.new", F_OK, 0), -1);
}

static void a_later_result_is_not_replaced_by_an_earlier_one(void **state)
{
	struct scratch *s = *state;

	make_probe(2000);
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	make_probe(1000);
	probe.finished_ms = 2500; /* a slow one */
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	assert_true(loaded.started_ms == 2000);
	/* a result from the future is not later but wrong */
	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	assert_int_equal(load(s), 0);
	assert_true(loaded.started_ms == 1000);
}

static void another_view_of_the_machine_has_its_own_results(void **state)
{
	struct scratch *s = *state;
	struct statedir other = dir_of(s);
	static struct probe theirs;

	other.pidns++;
	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	assert_int_equal(store(s), 0);
	loaded.started_ms = 77;
	assert_int_equal(probe_load(&other, &loaded), PROBE_NONE);
	assert_true(loaded.started_ms == 77);
	/* it is replaced, though it is later, and says nothing about idleness */
	theirs = probe;
	theirs.started_ms = 500;
	theirs.finished_ms = 1100;
	assert_int_equal(probe_store(&other, &usage, NULL, &theirs), 0);
	assert_true(theirs.gpus[0].idle_since_ms == 1100);
	assert_int_equal(load(s), PROBE_NONE);
	assert_int_equal(probe_load(&other, &loaded), 0);
	/* unlike the result that the caller has seen */
	loaded = probe;
	make_probe(3000);
	add_gpu(&probe, UUID(0), 3);
	other = dir_of(s);
	assert_int_equal(probe_store(&other, &usage, &loaded, &probe), 0);
	assert_true(probe.gpus[0].idle_since_ms == 1050);
	assert_int_equal(load(s), 0);
	assert_true(loaded.gpus[0].idle_since_ms == 1050);
}

static void what_its_starter_may_have_spoiled_is_not_shared_in_the_hardened_form(
	void **state)
{
	struct scratch *s = *state;
	struct statedir dir = dir_of(s);

	make_probe(1000);
	add_gpu(&probe, UUID(0), 3);
	dir.is_hardened = true;
	assert_int_equal(probe_store(&dir, &usage, NULL, &probe), 0);
	assert_true(probe.gpus[0].idle_since_ms ==
		    1050); /* this process uses it all the same */
	assert_int_equal(load(s), PROBE_NONE);
	probe.is_sound = true;
	assert_int_equal(probe_store(&dir, &usage, NULL, &probe), 0);
	assert_int_equal(load(s), 0);
	make_probe(2000);
	why_set(&probe.trouble, "nvidia-smi was stopped");
	assert_int_equal(probe_store(&dir, &usage, NULL, &probe), 0);
	assert_int_equal(load(s), 0);
	assert_true(loaded.started_ms == 1000);
}

/* --- idle since ---------------------------------------------------------------------- */

static const struct idle_case {
	int64_t started_ms;
	uint64_t used_mib, process_mib; /* 0: no process */
	bool is_known;
	int64_t idle_since_ms;
} idle_cases[] = {
	/* one probe after the other */
	{ 1000, 200, 0, true, 1050 },
	{ 2000, 200, 0, true, 1050 },
	{ 17050, 3, 200, true, 1050 }, /* 15 s after the end of the last */
	{ 32101, 3, 0, true, 32151 },  /* 1 ms more: the time between is unknown */
	{ 33000, 201, 0, true, 0 },    /* in use */
	{ 34000, 3, 0, true, 34050 },
	{ 35000, 3, 201, true, 0 }, /* by a process, though the memory does not show it */
	{ 36000, 3, 0, true, 36050 },
	{ 37000, 3, 0, false, 0 }, /* unknown is never idle */
	{ 38000, 3, 0, true, 38050 },
	{ 39000, 3, PROBE_MIB_UNKNOWN, true, 0 },
};

static void a_gpu_is_idle_since_the_first_probe_that_saw_it_idle(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(idle_cases); i++) {
		const struct idle_case *c = &idle_cases[i];

		make_probe(c->started_ms);
		if (i % 2) /* it is the UUID that counts, not the row */
			add_gpu(&probe, UUID(9), 5000);
		add_gpu(&probe, UUID(0), c->used_mib);
		add_gpu(&probe, UUID(8), 5000); /* so that no probe counts as failed */
		probe.gpus[i % 2].is_known = c->is_known;
		if (c->process_mib)
			add_process(&probe, i % 2, 4711, c->process_mib);
		assert_int_equal(store(s), 0);
		assert_int_equal(load(s), 0);
		assert_int_equal(loaded.gpus[i % 2].idle_since_ms, c->idle_since_ms);
	}
}

static const struct threshold_case {
	uint64_t idle_mib;
	unsigned idle_percent, busy_percent;
	uint64_t total_mib, used_mib;
	int utilization;
	bool is_idle;
} threshold_cases[] = {
	{ 500, 0, 0, 24576, 500, 100, true }, { 500, 0, 0, 24576, 501, 0, false },
	{ 0, 5, 0, 24576, 1228, 0, true }, { 0, 5, 0, 24576, 1229, 0, false },
	{ 0, 100, 0, 24576, 24576, 0, true },
	{ 0, 1, 0, UINT64_MAX - 1, 1000000, 0, true }, /* nothing overflows */
	{ 0, 5, 0, 0, 200, 0, true }, /* of unknown size: the default threshold */
	{ 0, 5, 0, 0, 201, 0, false }, { 200, 0, 10, 24576, 3, 9, true },
	{ 200, 0, 10, 24576, 3, 10, false }, { 200, 0, 100, 24576, 3, 100, false },
	{ 200, 0, 10, 24576, 3, -1, true }, /* unknown does not count */
};

static void the_thresholds_decide_what_is_idle(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threshold_cases); i++) {
		const struct threshold_case *c = &threshold_cases[i];
		const struct usage_policy policy = { .idle_mib = c->idle_mib,
			.idle_percent = c->idle_percent,
			.busy_percent = c->busy_percent };

		make_probe(1000);
		add_gpu(&probe, UUID(0), c->used_mib);
		probe.gpus[0].total_mib = c->total_mib;
		probe.gpus[0].utilization = c->utilization;
		probe_mark_idle(&probe, NULL, &policy);
		if ((probe.gpus[0].idle_since_ms != 0) != c->is_idle)
			fail_msg("case %zu", i);
	}
	make_probe(1000); /* a process has the same threshold */
	add_gpu(&probe, UUID(0), 3);
	add_process(&probe, 0, 4711, 1229);
	probe_mark_idle(&probe, NULL, &(struct usage_policy){ .idle_percent = 5 });
	assert_int_equal(probe.gpus[0].idle_since_ms, 0);
}

/* --- running nvidia-smi -------------------------------------------------------------- */

#define SMI "tests/bin/nvidia-smi"

static char fake_dir[128], search[] = "PATH=/usr/bin:/bin";
static char *const environment[] = { fake_dir, search, NULL };

static void start(const struct scratch *s, struct probe_run *run, int64_t limit_ms)
{
	if (access(SMI, X_OK) < 0)
		skip_because("not started in the root of the source");
	(void)snprintf(fake_dir, sizeof(fake_dir), "FAKE_SMI_DIR=%s", s->path);
	probe_run_start(run, SMI, environment, limit_ms, clock_boot_ms());
}

/* Polls and steps as a broker does, until the run is done; false where it takes too long. */
static bool finish(struct probe_run *run)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (probe_run_step(run, clock_boot_ms(), &probe) == PROBE_RUNNING) {
		struct pollfd fds[PROBE_POLL_FDS];
		unsigned count = probe_run_poll_fds(run, fds);
		int64_t now = clock_boot_ms();

		if (now > until)
			return false;
		(void)poll(fds, count, (int)max_i64(0, probe_run_deadline_ms(run) - now));
	}
	return true;
}

static bool vanish(struct spawn *spawn)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (!spawn_is_gone(spawn) && clock_boot_ms() < until) {
		struct pollfd fd = { .fd = spawn->pidfd, .events = POLLIN };

		(void)poll(&fd, 1, 10);
	}
	return spawn->pid == 0;
}

static void run_to_the_end(const struct scratch *s)
{
	struct probe_run run = PROBE_RUN_INIT;
	bool has_ended;

	start(s, &run, 0);
	has_ended = finish(&run);
	probe_run_release(&run);
	assert_true(has_ended);
}

static unsigned count_calls(const struct scratch *s)
{
	autofd int fd = openat(s->dirfd, "count", O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));
	unsigned lines = 0;

	for (ssize_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	return lines;
}

#define GPU0 "0 " UUID(0) " 00000000:01:00.0 24576 NVIDIA A30, PCIe\n"
#define GPU1 "1 " UUID(1) " 00000000:0C:00.0 24576 NVIDIA A30\n"

static void a_probe_tells_gpus_and_processes(void **state)
{
	struct scratch *s = *state;
	int64_t before_ms = clock_boot_ms();

	assert_int_equal(scratch_write(s, "gpus", GPU0 GPU1), 0);
	assert_int_equal(scratch_write(s, "procs", "1 4711 500\n0 4712 [N/A]\n"), 0);
	assert_int_equal(scratch_write(s, "base.1", "7\n"), 0);
	run_to_the_end(s);
	assert_string_equal(probe.trouble.text, "");
	assert_int_equal(probe.gpu_count, 2);
	assert_true(probe.gpus[0].is_known && probe.gpus[1].is_known);
	assert_string_equal(probe.gpus[0].name, "NVIDIA A30, PCIe");
	assert_true(probe.gpus[0].used_mib == 0 && probe.gpus[1].used_mib == 507);
	assert_int_equal(probe.process_count, 2);
	assert_int_equal(probe.processes[0].gpu, 1);
	assert_int_equal(probe.processes[0].pid, 4711);
	assert_true(
		probe.started_ms >= before_ms && probe.finished_ms >= probe.started_ms);
	assert_int_equal(count_calls(s), 2);
}

static void both_queries_run_at_the_same_time(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;

	assert_int_equal(scratch_write(s, "hang", ""), 0);
	start(s, &run, PATIENCE_MS);
	/* both have been called before either has answered */
	while (count_calls(s) < 2) {
		assert_int_equal(
			probe_run_step(&run, clock_boot_ms(), &probe), PROBE_RUNNING);
		(void)poll(NULL, 0, 1);
	}
	probe_run_release(&run);
}

static void mig_instances_are_listed_if_mig_is_enabled(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(scratch_write(s, "gpus", GPU0 GPU1), 0);
	assert_int_equal(scratch_write(s, "mig.0", "Disabled\n"), 0);
	assert_int_equal(scratch_write(s, "mig.1", "Enabled\n"), 0);
	assert_int_equal(
		scratch_write(s, "migs", "1 0 3g.40gb MIG-aa\n1 1 1g.10gb MIG-bb\n"), 0);
	run_to_the_end(s);
	assert_string_equal(probe.trouble.text, "");
	assert_int_equal(probe.gpu_count, 2);
	assert_int_equal(probe.mig_count, 2);
	assert_int_equal(probe.migs[1].gpu, 1);
	assert_int_equal(probe.migs[1].device, 1);
	assert_string_equal(probe.migs[1].profile, "1g.10gb");
	assert_string_equal(probe.migs[1].uuid, "MIG-bb");
	assert_int_equal(count_calls(s), 3);
	/* and the list is not asked for if MIG is disabled */
	assert_int_equal(scratch_write(s, "mig.1", "Disabled\n"), 0);
	run_to_the_end(s);
	assert_int_equal(probe.mig_count, 0);
	assert_int_equal(count_calls(s), 5);
}

static void without_the_list_only_the_instances_are_missing(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	struct pollfd fds[PROBE_POLL_FDS];
	pid_t pid;

	assert_int_equal(scratch_write(s, "gpus", GPU0), 0);
	assert_int_equal(scratch_write(s, "mig.0", "Enabled\n"), 0);
	assert_int_equal(scratch_write(s, "migs", "0 0 3g.40gb MIG-aa\n"), 0);
	assert_int_equal(scratch_write(s, "hang.list", ""), 0);
	start(s, &run, PATIENCE_MS);
	while (run.list.pid == 0 || run.processes.pid) {
		assert_int_equal(
			probe_run_step(&run, clock_boot_ms(), &probe), PROBE_RUNNING);
		(void)poll(NULL, 0, 1);
	}
	pid = run.list.pid;
	assert_in_range(probe_run_poll_fds(&run, fds), 2, SPAWN_POLL_FDS);
	assert_int_equal(probe_run_step(&run, clock_boot_ms() + PATIENCE_MS, &probe), 0);
	assert_string_equal(probe.trouble.text, "");
	assert_true(probe.gpus[0].is_known && probe.gpus[0].has_mig);
	assert_int_equal(probe.mig_count, 0);
	assert_true(vanish(&run.list));
	assert_int_equal(kill(pid, 0), -1);
	probe_run_release(&run);
}

static void an_unknown_optional_field_is_left_out(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(scratch_write(s, "gpus", GPU0), 0);
	assert_int_equal(scratch_write(s, "invalid", "mig.mode.current\n"), 0);
	run_to_the_end(s);
	assert_string_equal(probe.trouble.text, "");
	assert_true(probe.gpus[0].is_known);
	assert_int_equal(count_calls(s), 3);
}

static void only_one_field_is_left_out(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(scratch_write(s, "gpus", GPU0), 0);
	assert_int_equal(
		scratch_write(s, "invalid", "mig.mode.current\ncompute_mode\n"), 0);
	run_to_the_end(s);
	assert_string_equal(probe.trouble.text,
		"nvidia-smi: Field \"compute_mode\" is not a valid field to query. "
		"(exit status 2)");
	assert_int_equal(count_calls(s), 3);
}

static void a_missing_driver_or_program_is_reported(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	struct scratch nowhere = { .path = "/proc/nonexistent" };
	static const char reason[] =
		"nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate with the "
		"NVIDIA driver.";

	run_to_the_end(&nowhere);
	assert_memory_equal(probe.trouble.text, reason, sizeof(reason) - 1);
	assert_int_equal(probe.gpu_count, 0);
	start(s, &run, 0);
	assert_true(finish(&run));
	probe_run_start(
		&run, "/proc/nonexistent/nvidia-smi", environment, 0, clock_boot_ms());
	assert_true(finish(&run));
	assert_string_equal(probe.trouble.text,
		"cannot run '/proc/nonexistent/nvidia-smi': No such file or directory");
	probe_run_release(&run);
}

static void a_hanging_nvidia_smi_is_killed_at_the_limit(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	pid_t pids[2];

	assert_int_equal(scratch_write(s, "gpus", GPU0), 0);
	assert_int_equal(scratch_write(s, "hang", ""), 0);
	start(s, &run, 300);
	pids[0] = run.gpus.pid;
	pids[1] = run.processes.pid;
	assert_true(finish(&run));
	assert_string_equal(probe.trouble.text, "nvidia-smi did not answer within 1 s");
	assert_int_equal(probe.gpu_count, 0);
	assert_in_range(probe.finished_ms - probe.started_ms, 300, 5000);
	assert_true(probe_run_deadline_ms(&run) == INT64_MAX);
	/* the children end; then a run can start again */
	assert_true(vanish(&run.gpus) && vanish(&run.processes));
	assert_int_equal(kill(pids[0], 0), -1);
	assert_int_equal(kill(pids[1], 0), -1);
	assert_int_equal(unlinkat(s->dirfd, "hang", 0), 0);
	start(s, &run, 0);
	assert_true(finish(&run));
	assert_true(probe.gpus[0].is_known);
	probe_run_release(&run);
}

static void while_an_abandoned_child_lives_no_other_is_started(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	struct pollfd fds[PROBE_POLL_FDS];
	pid_t stuck = fork();

	assert_true(stuck >= 0);
	/* as if it were in D state: it was killed but still exists */
	if (stuck == 0) {
		(void)alarm(60); /* in case the test fails */
		for (;;)
			(void)pause();
	}
	run.processes.pid = stuck;
	start(s, &run, 0);
	assert_int_equal(probe_run_poll_fds(&run, fds), 0);
	assert_true(probe_run_deadline_ms(&run) <= clock_boot_ms());
	assert_int_equal(probe_run_step(&run, clock_boot_ms(), &probe), 0);
	assert_memory_equal(probe.trouble.text, "an nvidia-smi (pid ", 19);
	assert_int_equal(count_calls(s), 0);
	probe_run_release(&run);
}

static void a_hanging_nvidia_smi_does_not_hold_the_lock(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	const struct probe_patience patience = { .first_ms = 0, .others_ms = 0 };
	struct statedir dir = { .fd = s->dirfd };
	struct probe_lock lock = PROBE_LOCK_NONE, again = PROBE_LOCK_NONE;
	bool is_free;

	assert_int_equal(scratch_write(s, "hang", ""), 0);
	assert_int_equal(probe_lock_take(&dir, &lock, &patience, 1000), 0);
	start(s, &run, 0);
	/* until both have been exec'd: then they have called */
	while (faccessat(s->dirfd, "count", F_OK, 0) < 0 || run.gpus.exec_fd >= 0 ||
		run.processes.exec_fd >= 0) {
		assert_int_equal(
			probe_run_step(&run, clock_boot_ms(), &probe), PROBE_RUNNING);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(kill(run.gpus.pid, 0), 0);
	close_fd(&lock.fd);
	assert_int_equal(probe_lock_take(&dir, &again, &patience, 1000), 0);
	/* otherwise it would have taken the second lock */
	is_free = faccessat(s->dirfd, "probe.lock.2", F_OK, 0) < 0;
	close_fd(&again.fd);
	probe_run_release(&run);
	assert_true(is_free);
}

/* --- a disturbed nvidia-smi ---------------------------------------------------------- */

static void a_child_that_ends_by_itself_is_sound(void **state)
{
	static const struct {
		const char *file, *text;
		bool is_sound;
	} cases[] = { { "exit", "0", true }, { "exit", "14", true },
		{ "exit", "1", false }, { "exit", "15", false },
		{ "procs.raw", "garbage, here\n", true },
		{ "gpus.raw", "what is this\n", false }, { "gpus.raw", "", false } };
	struct scratch *s = *state;

	assert_int_equal(scratch_write(s, "gpus", GPU0 GPU1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(scratch_write(s, cases[i].file, cases[i].text), 0);
		run_to_the_end(s);
		if (probe.is_sound != cases[i].is_sound)
			fail_msg("case %zu", i);
		assert_int_equal(unlinkat(s->dirfd, cases[i].file, 0), 0);
	}
	assert_int_equal(
		scratch_write(s, "gpus", "= 0, " UUID(0) ", [Unknown Error]\n" GPU1), 0);
	run_to_the_end(s);
	assert_int_equal(probe.gpu_count, 2);
	assert_false(probe.is_sound);
}

static const char *const queries[] = { "gpus", "procs", "list" };

/* Starts a run in which the child for @query hangs.  Returns its pid. */
static struct spawn *start_hanging(
	const struct scratch *s, struct probe_run *run, const char *query)
{
	char file[32];

	(void)snprintf(file, sizeof(file), "hang.%s", query);
	assert_int_equal(scratch_write(s, "gpus", GPU0 GPU1), 0);
	assert_int_equal(scratch_write(s, "mig.1", "Enabled\n"), 0);
	assert_int_equal(scratch_write(s, file, ""), 0);
	start(s, run, PATIENCE_MS);
	while (!run->has_listed) {
		if (strcmp(query, "gpus") == 0)
			return &run->gpus;
		assert_int_equal(
			probe_run_step(run, clock_boot_ms(), &probe), PROBE_RUNNING);
		(void)poll(NULL, 0, 1);
	}
	return query[0] == 'p' ? &run->processes : &run->list;
}

static void unhang(const struct scratch *s)
{
	(void)unlinkat(s->dirfd, "hang.gpus", 0);
	(void)unlinkat(s->dirfd, "hang.procs", 0);
	(void)unlinkat(s->dirfd, "hang.list", 0);
}

static void output_of_a_killed_child_is_not_used(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		struct probe_run run = PROBE_RUN_INIT;
		struct spawn *child = start_hanging(s, &run, queries[i]);
		bool has_ended;

		assert_int_equal(kill(child->pid, SIGKILL), 0);
		has_ended = finish(&run);
		probe_run_release(&run);
		assert_true(has_ended);
		unhang(s);
		assert_false(probe.is_sound);
		assert_int_equal(probe.mig_count, 0);
		for (uint32_t gpu = 0; gpu < probe.gpu_count; gpu++)
			assert_true(probe.gpus[gpu].is_known == (i == 2));
		assert_int_equal(probe.gpu_count, i == 2 ? 2 : 0);
		if (i < 2)
			assert_string_equal(
				probe.trouble.text, "nvidia-smi was killed by signal 9");
	}
}

static void a_stopped_child_is_not_waited_for(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		struct probe_run run = PROBE_RUN_INIT;
		struct spawn *child = start_hanging(s, &run, queries[i]);
		bool has_ended;

		assert_int_equal(kill(child->pid, SIGSTOP), 0);
		has_ended = finish(&run);
		assert_true(has_ended);
		assert_string_equal(probe.trouble.text, "nvidia-smi was stopped");
		assert_int_equal(probe.gpu_count, 0);
		assert_false(probe.is_sound);
		assert_in_range(probe.finished_ms - probe.started_ms, 0, PATIENCE_MS / 2);
		assert_true(vanish(child));
		/* the next one is another, also where it asks for no list */
		unhang(s);
		(void)unlinkat(s->dirfd, "mig.1", 0);
		assert_true(
			vanish(&run.gpus) && vanish(&run.processes) && vanish(&run.list));
		start(s, &run, 0);
		has_ended = finish(&run);
		probe_run_release(&run);
		assert_true(has_ended);
		assert_true(probe.is_sound);
	}
}

static void output_of_a_child_that_was_stopped_is_not_used(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	siginfo_t info;
	bool has_ended;

	assert_int_equal(scratch_write(s, "gpus", GPU0 GPU1), 0);
	assert_int_equal(scratch_write(s, "delay", "0.5"), 0);
	start(s, &run, 0);
	assert_int_equal(kill(run.gpus.pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)run.gpus.pid, &info, WSTOPPED | WNOWAIT), 0);
	assert_int_equal(kill(run.gpus.pid, SIGCONT), 0);
	has_ended = finish(&run);
	probe_run_release(&run);
	assert_true(has_ended);
	assert_string_equal(probe.trouble.text, "nvidia-smi was stopped");
	assert_false(probe.is_sound);
}

static void release_ends_a_run(void **state)
{
	struct scratch *s = *state;
	struct probe_run run = PROBE_RUN_INIT;
	struct pollfd fds[PROBE_POLL_FDS];

	assert_int_equal(scratch_write(s, "hang", ""), 0);
	start(s, &run, 0);
	assert_in_range(probe_run_poll_fds(&run, fds), 6, PROBE_POLL_FDS);
	probe_run_release(&run);
	assert_int_equal(probe_run_poll_fds(&run, fds), 0);
	probe_run_release(&run);
}

/* --- simulated GPUs ------------------------------------------------------------------ */

static void simulated_gpus_are_idle_and_distinct(void **state)
{
	(void)state;
	probe_simulate(200, 40960, 5000, &probe);
	assert_int_equal(probe.gpu_count, GPUSET_MAX);
	assert_int_equal(probe.process_count, 0);
	assert_string_equal(
		probe.gpus[17].uuid, "GPU-51111111-0000-4000-8000-000000000011");
	assert_true(probe.started_ms == 5000 && probe.finished_ms == 5000);
	for (uint32_t i = 0; i < probe.gpu_count; i++) {
		assert_int_equal(probe_find_gpu(&probe, probe.gpus[i].uuid), i);
		assert_int_equal(probe.gpus[i].index, i);
		assert_true(probe.gpus[i].is_known && probe.gpus[i].used_mib == 0);
		assert_true(probe.gpus[i].total_mib == 40960);
		for (uint32_t other = 0; other < i; other++)
			assert_string_not_equal(
				probe.gpus[i].bus_id, probe.gpus[other].bus_id);
	}
	probe_simulate(0, 40960, 5000, &probe);
	assert_int_equal(probe.gpu_count, 0);
	assert_string_not_equal(probe.trouble.text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_stored_result_is_loaded),
		SCRATCH_TEST(the_largest_result_with_the_longest_texts_is_stored),
		SCRATCH_TEST(a_failed_result_does_not_replace_one_that_shows_a_gpu),
		SCRATCH_TEST(a_damaged_result_is_ignored),
		SCRATCH_TEST(an_instance_without_its_gpu_is_refused),
		SCRATCH_TEST(links_and_fifos_are_not_read),
		SCRATCH_TEST(a_temporary_file_of_a_crash_does_not_stop_storing),
		SCRATCH_TEST(a_later_result_is_not_replaced_by_an_earlier_one),
		SCRATCH_TEST(another_view_of_the_machine_has_its_own_results),
		SCRATCH_TEST(
			what_its_starter_may_have_spoiled_is_not_shared_in_the_hardened_form),
		SCRATCH_TEST(a_gpu_is_idle_since_the_first_probe_that_saw_it_idle),
		cmocka_unit_test(the_thresholds_decide_what_is_idle),
		SCRATCH_TEST(a_probe_tells_gpus_and_processes),
		SCRATCH_TEST(both_queries_run_at_the_same_time),
		SCRATCH_TEST(mig_instances_are_listed_if_mig_is_enabled),
		SCRATCH_TEST(without_the_list_only_the_instances_are_missing),
		SCRATCH_TEST(an_unknown_optional_field_is_left_out),
		SCRATCH_TEST(only_one_field_is_left_out),
		SCRATCH_TEST(a_missing_driver_or_program_is_reported),
		SCRATCH_TEST(a_hanging_nvidia_smi_is_killed_at_the_limit),
		SCRATCH_TEST(while_an_abandoned_child_lives_no_other_is_started),
		SCRATCH_TEST(a_hanging_nvidia_smi_does_not_hold_the_lock),
		SCRATCH_TEST(a_child_that_ends_by_itself_is_sound),
		SCRATCH_TEST(output_of_a_killed_child_is_not_used),
		SCRATCH_TEST(a_stopped_child_is_not_waited_for),
		SCRATCH_TEST(output_of_a_child_that_was_stopped_is_not_used),
		SCRATCH_TEST(release_ends_a_run),
		cmocka_unit_test(simulated_gpus_are_idle_and_distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
