/* The samples of a job on its GPUs, at given times, through a shared probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>

#include "sampler.h"
#include "clock.h"
#include "fixture.h"
#include "sim_memory.h"

enum { TOTAL_MIB = 24576, SAMPLE_MS = 5000 }; /* the default */

static struct statedir dir;
static struct broker broker;
static struct sampler sampler;
static struct probe probe;
static struct prober_config config;
static struct config settings;

/* --- a machine with two GPUs, both leased by the job --------------------------------- */

static void add_gpu(const char *uuid, uint32_t index)
{
	struct gpu_record gpu = { .index = index, .total_mib = TOTAL_MIB };
	uint32_t slot;

	text_copy(gpu.uuid, sizeof(gpu.uuid), uuid);
	text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
	assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), 0);
}

static void write_lease(unsigned slot, const struct owner *owner, unsigned at)
{
	struct lease lease = { .ticket = 1, .owner = *owner, .gpus = fixture_set("01") };

	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	fixture_write_lease(dir.fd, slot, at, &lease);
}

/* Returns the peak in record @at of the lease file of @slot. */
static uint64_t noted(unsigned slot, unsigned at)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	struct lease lease = { .peak_mib = UINT64_MAX };
	unsigned records;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_read(&file, raw, &records), 0);
	assert_int_equal(lease_decode(raw, at, &lease), LEASE_RECORD);
	lease_release(&file);
	return lease.peak_mib;
}

static int set_up(struct scratch *here)
{
	struct owner other = { .pid = 1 };

	(void)here;
	add_gpu("GPU-a", 0);
	add_gpu("GPU-b", 1);
	memset(&broker, 0, sizeof(broker));
	config_default(&settings);
	config = (struct prober_config){ .nvidia_smi = "/proc/nonexistent",
		.usage = USAGE_POLICY_DEFAULT };
	assert_int_equal(broker_init(&broker, &dir, &config), 0);
	assert_int_equal(owner_self(&broker.ticket.owner), 0);
	broker.ticket.request.gpus = 2;
	text_copy(other.token, sizeof(other.token), "0123456789abcdef");
	for (unsigned slot = 0; slot < 2; slot++) {
		write_lease(slot, &other, 1);
		write_lease(slot, &broker.ticket.owner, 2);
	}
	liveness_set_begin(&broker.view.lives);
	assert_int_equal(snapshot_read(&broker.view, clock_boot_ms()), 0);
	liveness_set_end(&broker.view.lives);
	return 0;
}

static void tear_down(void)
{
	broker_release(&broker);
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up, .tear_down = tear_down };

#define TEST(f) FIXTURE_TEST(f, fixture)

static void begin_now(uint64_t declared_mib)
{
	struct gpuset both = fixture_set("01");

	sampler_begin(&sampler, &broker, broker.ticket.owner.token, &both, declared_mib,
		&settings);
}

/* Begins, and goes on to a moment for all jobs, more than 20 s after the start. */
static void begin(uint64_t declared_mib)
{
	begin_now(declared_mib);
	sampler.due_ms = sampler.look_ms = (sampler.begun_ms / SAMPLE_MS + 5) * SAMPLE_MS;
}

/* Whether sampler_take_excess() returns the GPU with that name next. */
static bool exceeds_on(const char *name)
{
	const struct sample_gpu *gpu = sampler_take_excess(&sampler);

	return gpu ? strcmp(gpu->name.text, name) == 0 : !name[0];
}

/* --- results of nvidia-smi ---------------------------------------------------------- */

static void saw_gpu(const char *uuid, uint64_t used_mib, int utilization)
{
	struct probe_gpu *gpu = &probe.gpus[probe.gpu_count++];

	*gpu = (struct probe_gpu){ .index = (int)probe.gpu_count - 1,
		.is_known = used_mib != PROBE_MIB_UNKNOWN,
		.total_mib = TOTAL_MIB,
		.used_mib = used_mib,
		.utilization = utilization };
	text_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
}

static void saw_process(uint32_t row, pid_t pid, uint64_t mib)
{
	probe.processes[probe.process_count++] =
		(struct probe_process){ .gpu = row, .pid = pid, .used_mib = mib };
}

/* Shares the result of a probe that began at @started_ms. */
static void share(int64_t started_ms)
{
	probe.started_ms = started_ms;
	probe.finished_ms = started_ms; /* one from the future would not serve */
	assert_int_equal(probe_store(&dir, &config.usage, NULL, &probe), 0);
}

static void saw(int64_t started_ms, uint64_t a_mib, uint64_t b_mib)
{
	probe_begin(&probe, 0, 0);
	saw_gpu("GPU-a", a_mib, 40);
	saw_gpu("GPU-b", b_mib, 81);
	share(started_ms);
}

/* --- when to sample ----------------------------------------------------------------- */

static void all_samplers_use_the_same_moments(void **state)
{
	struct pollfd fds[PROBE_POLL_FDS];
	int64_t due_ms;

	(void)state;
	begin(0);
	due_ms = sampler_wake_ms(&sampler);
	assert_int_equal(sampler_poll_fds(&sampler, fds), 0);
	/* nothing is due before */
	saw(due_ms - 1000, 5000, 5000);
	sampler_step(&sampler, due_ms - 1);
	assert_int_equal(sampler.count, 0);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms);
	sampler_step(&sampler, due_ms + 7);
	assert_int_equal(sampler.count, 1);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + SAMPLE_MS);
	/* a sampler that was stopped meanwhile uses them again */
	sampler_step(&sampler, due_ms + 3600 * 1000 + 2000);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + 3600 * 1000 + SAMPLE_MS);
	assert_false(prober_is_busy(&broker.prober));
}

static void a_job_is_sampled_soon_after_its_start_and_then_with_all_others(void **state)
{
	/* how long after a moment for all jobs it starts */
	static const int64_t offsets_ms[] = { 0, 1, 2600, 3500, 4200, 4999 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets_ms); i++) {
		begin_now(0);
		sampler.begun_ms =
			(sampler.begun_ms / SAMPLE_MS + 10 * (int64_t)i) * SAMPLE_MS +
			offsets_ms[i];
		sampler.due_ms = sampler.begun_ms;
		for (int64_t ms = 1; ms <= 20000; ms++) {
			bool is_early =
				ms == 500 || ms == 1000 || ms == 2000 || ms == 5000;

			if (!is_early && (offsets_ms[i] + ms) % SAMPLE_MS)
				continue;
			saw(sampler.due_ms, 300, 300);
			sampler_step(&sampler, sampler.due_ms);
			assert_int_equal(sampler.due_ms, sampler.begun_ms + ms);
			assert_int_equal(sampler_wake_ms(&sampler), sampler.due_ms);
		}
	}
}

static void the_first_moment_is_half_a_second_after_the_start(void **state)
{
	(void)state;
	begin_now(0);
	assert_in_range(sampler.due_ms - sampler.begun_ms, 1, 500);
	if (sampler.due_ms - sampler.begun_ms < 500)
		assert_int_equal(sampler.due_ms % SAMPLE_MS, 0);
	assert_int_equal(sampler_wake_ms(&sampler), sampler.due_ms);
}

static void early_samples_need_younger_results(void **state)
{
	(void)state;
	begin_now(0);
	sampler.due_ms = sampler.look_ms = sampler.begun_ms + 2000;
	saw(sampler.begun_ms + 1499, 300, 300);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.count, 1);
	assert_true(broker.prober.run.is_running);
	begin_now(0);
	sampler.begun_ms += 100000;
	sampler.due_ms = sampler.look_ms = sampler.begun_ms + 2000;
	prober_release(&broker.prober);
	saw(sampler.begun_ms + 1500, 300, 300);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.count, 1);
	assert_true(sampler.due_ms > sampler.begun_ms + 2000);
}

static void the_interval_is_configured(void **state)
{
	int64_t due_ms;

	(void)state;
	settings.sample_interval_ms = 60000;
	begin_now(0);
	sampler.due_ms = sampler.look_ms = due_ms =
		(sampler.begun_ms / 60000 + 2) * 60000;
	saw(due_ms - 2500, 300,
		300); /* an interval does not make an older result fresh */
	sampler_step(&sampler, due_ms);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + 60000);
	settings.sample_interval_ms = 1000;
	begin(0);
	saw(sampler.due_ms - 501, 300, 300);
	due_ms = sampler.due_ms;
	sampler_step(&sampler, due_ms);
	assert_int_equal(sampler.due_ms, due_ms);
	assert_true(broker.prober.run.is_running);
}

static void a_recent_result_is_used_and_counts_once(void **state)
{
	static const struct {
		int64_t before_ms;
		bool is_enough;
	} cases[] = { { 2500, true }, { 0, true }, { 1, true } };
	int64_t due_ms;

	(void)state;
	begin(0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		due_ms = sampler.due_ms = sampler.due_ms + SAMPLE_MS;
		saw(due_ms - cases[i].before_ms, 300, 300);
		sampler_step(&sampler, due_ms);
		assert_int_equal(sampler.count, i + 1);
		assert_false(prober_is_busy(&broker.prober));
		assert_int_equal(sampler_wake_ms(&sampler), due_ms + SAMPLE_MS);
	}
	/* the same result does not count twice, so a new one is asked for */
	due_ms = sampler.due_ms;
	sampler_step(&sampler, due_ms);
	assert_int_equal(sampler.count, ARRAY_SIZE(cases));
	assert_true(broker.prober.run.is_running);
}

static void an_older_result_counts_but_is_not_enough(void **state)
{
	(void)state;
	begin(0);
	sampler.due_ms += SAMPLE_MS;
	saw(sampler.due_ms - 2501, 300, 300);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.count, 1);
	assert_true(broker.prober.run.is_running);
}

static void results_older_than_the_lease_do_not_count(void **state)
{
	(void)state;
	saw(clock_boot_ms() - 10, 5000, 5000);
	begin(0);
	sampler.begun_ms = sampler.due_ms - 1; /* as late as possible */
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.count, 0);
	assert_int_equal(sampler_peak_mib(&sampler), 0);
	assert_true(broker.prober.run.is_running);
}

static void one_sampler_probes_and_the_others_use_its_result(void **state)
{
	autofd int other = -1;
	int64_t due_ms;

	(void)state;
	begin(0);
	due_ms = sampler.due_ms;
	other = fixture_lock_probe(dir.fd, 0);
	assert_true(other >= 0);
	sampler_step(&sampler, due_ms);
	assert_false(broker.prober.run.is_running);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + 250);
	sampler_step(&sampler, due_ms + 250);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + 500);
	saw(due_ms + 3, 300, 300);
	close_fd(&other);
	sampler_step(&sampler, due_ms + 500);
	assert_int_equal(sampler.count, 1);
	assert_false(broker.prober.run.is_running);
	assert_int_equal(sampler_wake_ms(&sampler), due_ms + SAMPLE_MS);
}

static void a_slow_prober_is_awaited_but_not_a_stopped_one(void **state)
{
	autofd int other = -1;
	int64_t due_ms;

	(void)state;
	begin(0);
	other = fixture_lock_probe(dir.fd, 0);
	assert_true(other >= 0);
	for (unsigned i = 0; i < 4; i++) { /* results come 4 s later */
		due_ms = sampler.due_ms;
		for (int64_t now_ms = due_ms; now_ms <= due_ms + 1750; now_ms += 250)
			sampler_step(&sampler, now_ms);
		assert_int_equal(sampler_wake_ms(&sampler), due_ms + SAMPLE_MS);
		saw(due_ms + 1, 300, 300);
	}
	assert_false(broker.prober.run.is_running);
	assert_int_equal(sampler.count, 3);
	due_ms = sampler.due_ms;
	for (int64_t now_ms = due_ms; now_ms <= due_ms + 1750; now_ms += 250)
		sampler_step(&sampler, now_ms);
	assert_int_equal(sampler.count, 4);
	assert_false(broker.prober.run.is_running);
	/* no result has come since */
	sampler_step(&sampler, sampler.due_ms);
	assert_true(broker.prober.run.is_running);
}

static void a_driver_that_shows_nothing_is_asked_ever_less_often(void **state)
{
	int64_t due_ms, gap_ms = 0;

	(void)state;
	begin(0);
	for (unsigned i = 0; i < 10; i++) {
		due_ms = sampler.due_ms;
		saw(due_ms, PROBE_MIB_UNKNOWN, PROBE_MIB_UNKNOWN);
		sampler_step(&sampler, due_ms);
		assert_true(sampler.due_ms - due_ms >= gap_ms);
		gap_ms = sampler.due_ms - due_ms;
		assert_int_equal(sampler.due_ms % SAMPLE_MS, 0);
		if (i == 0)
			assert_int_equal(gap_ms, 2 * SAMPLE_MS);
	}
	assert_int_equal(gap_ms, 61 * SAMPLE_MS);
	assert_int_equal(sampler.count, 0);
	due_ms = sampler.due_ms;
	saw(due_ms, 300, PROBE_MIB_UNKNOWN);
	sampler_step(&sampler, due_ms);
	assert_int_equal(sampler.count, 1);
	assert_int_equal(sampler.gpus[0].seen_ms, due_ms);
	assert_int_equal(sampler.gpus[1].seen_ms, 0);
	assert_int_equal(sampler.due_ms - due_ms, SAMPLE_MS);
}

static void without_gpus_nothing_is_sampled(void **state)
{
	struct gpuset none = GPUSET_NONE, both = fixture_set("01");
	struct pollfd fds[PROBE_POLL_FDS];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		broker.prober.config.nvidia_smi = i == 1 ? NULL : "/proc/nonexistent";
		sampler_begin(&sampler, &broker, broker.ticket.owner.token,
			i == 0 ? &none : &both, 1000, &settings);
		assert_true(sampler_wake_ms(&sampler) == INT64_MAX);
		assert_int_equal(sampler_poll_fds(&sampler, fds), 0);
		sampler_step(&sampler, clock_boot_ms() + 86400000);
		assert_false(prober_is_busy(&broker.prober));
	}
}

static void simulated_gpus_are_sampled_every_second(void **state)
{
	struct gpuset first =
		fixture_set("2"); /* the slots after those of the GPUs with UUIDs */
	struct sim_memory memory = SIM_MEMORY_INIT;
	struct gpuset shown = fixture_set("0");
	bool has_probe = false;
	int64_t due_ms;

	(void)state;
	broker.prober.config.sim_gpus = 2;
	broker.prober.config.sim_mib = TOTAL_MIB;
	prober_refresh(&broker.prober, clock_boot_ms(), &probe, &has_probe);
	add_gpu(probe.gpus[0].uuid, 0);
	assert_int_equal(snapshot_read(&broker.view, clock_boot_ms()), 0);
	sampler_begin(&sampler, &broker, broker.ticket.owner.token, &first, TOTAL_MIB,
		&settings);
	due_ms = sampler.due_ms = sampler.look_ms =
		(sampler.begun_ms / SAMPLE_SIMULATED_MS + 10) * SAMPLE_SIMULATED_MS;
	/* without a process that shows its use there is no sample; the next is due as soon */
	for (unsigned i = 0; i < 3; i++, due_ms += SAMPLE_SIMULATED_MS) {
		assert_int_equal(sampler_wake_ms(&sampler), due_ms);
		sampler_step(&sampler, due_ms);
		assert_int_equal(sampler.count, 0);
		assert_false(prober_is_busy(&broker.prober));
	}
	assert_int_equal(sim_memory_begin(&dir, &shown, &memory), 0);
	assert_int_equal(sim_memory_show(&memory, 3000, 91), 0);
	sampler_step(&sampler, due_ms);
	sim_memory_end(&memory);
	assert_int_equal(sampler.count, 1);
	assert_int_equal(sampler_peak_mib(&sampler), 3000);
	assert_int_equal(sampler.gpus[0].busy_peak, 91);
	/* once a process has shown its use, no use counts as a sample */
	sampler_step(&sampler, due_ms + SAMPLE_SIMULATED_MS);
	assert_int_equal(sampler.count, 2);
	assert_int_equal(sampler.gpus[0].now_mib, 0);
}

static void a_probe_that_began_while_the_job_waited_is_finished(void **state)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
	struct gpuset none = GPUSET_NONE;
	struct pollfd fds[PROBE_POLL_FDS];

	(void)state;
	prober_want(&broker.prober, clock_boot_ms());
	assert_true(broker.prober.run.is_running);
	sampler_begin(&sampler, &broker, broker.ticket.owner.token, &none, 0, &settings);
	while (broker.prober.run.is_running && clock_boot_ms() < until_ms) {
		unsigned count = sampler_poll_fds(&sampler, fds);

		assert_true(count > 0);
		assert_true(sampler_wake_ms(&sampler) < INT64_MAX);
		(void)poll(fds, count, 100);
		sampler_step(&sampler, clock_boot_ms());
	}
	assert_int_equal(sampler_poll_fds(&sampler, fds), 0);
	assert_true(sampler_wake_ms(&sampler) == INT64_MAX);
}

/* --- what counts --------------------------------------------------------------------- */

static void only_processes_of_the_job_count(void **state)
{
	struct other child = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	begin(0);
	probe_begin(&probe, 0, 0);
	saw_gpu("GPU-b", 9000, 10); /* in another order than the slots */
	saw_gpu("GPU-a", 8000, 20);
	saw_process(0, child.pid, 3000);
	saw_process(0, getpid(), 500);
	saw_process(0, 1, 5000);
	saw_process(1, child.pid, 1000);
	saw_process(1, child.pid, PROBE_MIB_UNKNOWN);
	saw_process(1, 0, 700);
	share(sampler.due_ms);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.gpus[0].now_mib, 1000);
	assert_int_equal(sampler.gpus[1].now_mib, 3500);
	assert_int_equal(sampler_peak_mib(&sampler), 3500);
	/* the names come from the same result */
	assert_string_equal(snapshot_gpu_name(&broker.view, 0).text, "1");
	other_end(&child);
}

static void alone_and_without_processes_all_memory_in_use_counts(void **state)
{
	static const struct {
		unsigned share_percent;
		uint64_t used_mib, counts_mib;
	} cases[] = {
		{ 0, 8000, 8000 },
		{ 100, 8000, 8000 },
		{ 0, 201, 201 },
		{ 0, 200, 0 }, /* as much as an idle GPU has */
		{ 50, 8000, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		broker.ticket.request.share_percent = cases[i].share_percent;
		begin(0);
		sampler.due_ms += (int64_t)i * SAMPLE_MS;
		probe_begin(&probe, 0, 0);
		saw_gpu("GPU-a", cases[i].used_mib, 0);
		saw_process(0, 1, 100); /* the container's */
		share(sampler.due_ms);
		sampler_step(&sampler, sampler.due_ms);
		assert_int_equal(sampler.count, 1);
		if (sampler.gpus[0].now_mib != cases[i].counts_mib)
			fail_msg("case %zu", i);
	}
	broker.ticket.request.share_percent = 0;
	broker.ticket.request.vram_mib = 1000;
	begin(1000);
	sampler.due_ms += 10 * (int64_t)SAMPLE_MS;
	saw(sampler.due_ms, 8000, 8000);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler_peak_mib(&sampler), 0);
}

static void peak_and_mean_are_kept(void **state)
{
	static const struct {
		uint64_t a_mib, b_mib;
		int a, b;
	} samples[] = { { 1000, 500, 10, -1 }, { 3000, 400, 100, -1 },
		{ 2000, 700, 41, -1 } };
	struct end_facts facts = { .status = 0 };
	unsigned mean, peak;

	(void)state;
	begin(0);
	assert_false(sampler_utilization(&sampler, &mean, &peak));
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		probe_begin(&probe, 0, 0);
		saw_gpu("GPU-a", samples[i].a_mib, samples[i].a);
		saw_gpu("GPU-b", samples[i].b_mib, samples[i].b);
		share(sampler.due_ms);
		sampler_step(&sampler, sampler.due_ms);
	}
	assert_int_equal(sampler.count, 3);
	assert_int_equal(sampler.gpus[0].peak_mib, 3000);
	assert_int_equal(sampler.gpus[0].now_mib, 2000);
	assert_int_equal(sampler.gpus[1].peak_mib, 700);
	assert_int_equal(sampler.gpus[1].busy_count, 0);
	sampler_describe(&sampler, 30000, &facts);
	assert_string_equal(facts.peaks, "3000,700");
	assert_string_equal(facts.utilization, "50/100");
}

static void samples_span_a_run_without_long_gaps(void **state)
{
	struct end_facts facts = { .status = 0 };
	int64_t begun_ms;

	(void)state;
	begin_now(0);
	begun_ms = sampler.begun_ms;
	assert_false(sampler_is_spanned(&sampler, 100));
	sampler.due_ms = begun_ms + 500;
	saw(sampler.due_ms, 900, PROBE_MIB_UNKNOWN);
	sampler_step(&sampler, sampler.due_ms);
	assert_false(sample_gpu_is_spanned(&sampler, &sampler.gpus[0], 600));
	for (int64_t at_ms = 3500; at_ms <= 30500; at_ms += 3000) {
		sampler.due_ms = begun_ms + at_ms;
		saw(sampler.due_ms, 1000, at_ms == 18500 ? 700 : PROBE_MIB_UNKNOWN);
		sampler_step(&sampler, sampler.due_ms);
	}
	assert_true(sample_gpu_is_spanned(&sampler, &sampler.gpus[0], 32000));
	assert_false(sample_gpu_is_spanned(&sampler, &sampler.gpus[0], 41000));
	/* of the other GPU there was one sample */
	assert_false(sample_gpu_is_spanned(&sampler, &sampler.gpus[1], 32000));
	assert_false(sampler_is_spanned(&sampler, 32000));
	sampler_describe(&sampler, 32000, &facts);
	assert_false(facts.spans_run);
	sampler.gpu_count = 1;
	assert_true(sampler_is_spanned(&sampler, 32000));
	sampler_describe(&sampler, 32000, &facts);
	assert_true(facts.spans_run);
	/* a gap in the middle, with samples before and after it */
	sampler.due_ms = begun_ms + 42000;
	saw(sampler.due_ms, 1000, 700);
	sampler_step(&sampler, sampler.due_ms);
	assert_false(sampler_is_spanned(&sampler, 42000));
}

static void without_any_of_its_processes_the_peak_is_unknown(void **state)
{
	struct end_facts facts = { .status = 0 };

	(void)state;
	broker.ticket.request.vram_mib = 1000;
	begin(1000);
	probe_begin(&probe, 0, 0);
	saw_gpu("GPU-a", 8000, 7);
	saw_gpu("GPU-b", 0, 9);
	saw_process(0, 1, 7000);
	share(sampler.due_ms);
	sampler_step(&sampler, sampler.due_ms);
	assert_int_equal(sampler.count, 1);
	sampler_describe(&sampler, 30000, &facts);
	assert_string_equal(facts.peaks, "");
	assert_false(facts.spans_run);
	assert_string_equal(facts.utilization, "8/9");
}

static void a_number_that_does_not_fit_is_left_out_whole(void **state)
{
	struct end_facts facts = { .status = 0 };

	(void)state;
	begin(0);
	sampler_describe(&sampler, 30000, &facts);
	assert_string_equal(facts.peaks, "");
	assert_string_equal(facts.utilization, "");
	sampler.count = 1;
	sampler.gpu_count = 16;
	for (unsigned i = 0; i < 16; i++)
		sampler.gpus[i] = (struct sample_gpu){ .peak_mib = 10000 + i,
			.busy_count = 1,
			.busy_sum = 100,
			.busy_peak = 100 };
	sampler_describe(&sampler, 30000, &facts);
	assert_string_equal(facts.peaks, "10000,10001,10002,10003,10004,10005,10006,"
					 "10007,10008,10009");
	assert_string_equal(facts.utilization, "100/100");
}

/* --- the peak in the lease ----------------------------------------------------------- */

/* Whether the job is then first seen to exceed what it has declared. */
static bool step_with(uint64_t mib)
{
	saw(sampler.due_ms, mib, 300);
	sampler_step(&sampler, sampler.due_ms);
	return sampler_take_excess(&sampler) != NULL;
}

static void each_gpu_of_which_it_uses_too_much_is_told_once(void **state)
{
	(void)state;
	begin(10000);
	text_copy(sampler.gpus[1].name.text, sizeof(sampler.gpus[1].name.text), "1");
	saw(sampler.due_ms, 11000, 11000);
	sampler_step(&sampler, sampler.due_ms);
	assert_true(exceeds_on(""));
	saw(sampler.due_ms, 11000, 11001);
	sampler_step(&sampler, sampler.due_ms);
	assert_true(exceeds_on("1"));
	assert_true(exceeds_on(""));
	saw(sampler.due_ms, 11001, 11002);
	sampler_step(&sampler, sampler.due_ms);
	assert_true(exceeds_on("0"));
	assert_true(exceeds_on(""));
	begin(10000); /* the next attempt */
	saw(sampler.due_ms, 12000, 12000);
	sampler_step(&sampler, sampler.due_ms);
	assert_true(exceeds_on("0"));
	assert_true(exceeds_on("1"));
	assert_true(exceeds_on(""));
	assert_int_equal(sampler_now_mib(&sampler), 12000);
}

static void it_warns_once_and_notes_the_peak_in_the_lease(void **state)
{
	(void)state;
	begin(10000);
	assert_false(step_with(9000));
	assert_int_equal(noted(0, 2), 9000);
	assert_int_equal(noted(1, 2), 9000); /* each record has the peak over all GPUs */
	assert_int_equal(noted(0, 1), 0);    /* another job's record */
	assert_false(step_with(10990));
	assert_int_equal(noted(0, 2), 10990);
	assert_false(step_with(11000));
	assert_int_equal(noted(0, 2), 10990); /* grown too little to be written */
	assert_true(step_with(11001));
	assert_int_equal(noted(0, 2), 11001);
	assert_int_equal(noted(1, 2), 11001);
	assert_false(step_with(12000));
	assert_false(step_with(300));
	assert_false(step_with(13000));
	assert_int_equal(noted(0, 2), 13000);
}

static void small_growth_is_not_written(void **state)
{
	(void)state;
	begin(0);
	assert_false(step_with(201));
	assert_int_equal(noted(0, 2), 300); /* the peak of the other GPU */
	assert_false(step_with(314));
	assert_int_equal(noted(0, 2), 300);
	assert_false(step_with(315)); /* 5 % */
	assert_int_equal(noted(0, 2), 315);
	assert_false(step_with(10000));
	assert_false(step_with(10063));
	assert_int_equal(noted(0, 2), 10000);
	assert_false(step_with(10064));
	assert_int_equal(noted(0, 2), 10064);
}

static void a_locked_lease_file_is_not_awaited(void **state)
{
	struct lease_file file;

	(void)state;
	begin(10000);
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(flock(file.fd, LOCK_EX | LOCK_NB), 0);
	assert_true(step_with(12000));
	assert_int_equal(noted(0, 2), 0);
	assert_int_equal(noted(1, 2), 12000);
	lease_release(&file);
	assert_false(step_with(12000));
	assert_int_equal(noted(0, 2), 12000);
	/* and it releases the lock */
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(flock(file.fd, LOCK_EX | LOCK_NB), 0);
	lease_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_samplers_use_the_same_moments),
		TEST(a_job_is_sampled_soon_after_its_start_and_then_with_all_others),
		TEST(the_first_moment_is_half_a_second_after_the_start),
		TEST(early_samples_need_younger_results),
		TEST(the_interval_is_configured),
		TEST(a_recent_result_is_used_and_counts_once),
		TEST(an_older_result_counts_but_is_not_enough),
		TEST(results_older_than_the_lease_do_not_count),
		TEST(one_sampler_probes_and_the_others_use_its_result),
		TEST(a_slow_prober_is_awaited_but_not_a_stopped_one),
		TEST(a_driver_that_shows_nothing_is_asked_ever_less_often),
		TEST(without_gpus_nothing_is_sampled),
		TEST(simulated_gpus_are_sampled_every_second),
		TEST(a_probe_that_began_while_the_job_waited_is_finished),
		TEST(only_processes_of_the_job_count),
		TEST(alone_and_without_processes_all_memory_in_use_counts),
		TEST(peak_and_mean_are_kept),
		TEST(samples_span_a_run_without_long_gaps),
		TEST(without_any_of_its_processes_the_peak_is_unknown),
		TEST(a_number_that_does_not_fit_is_left_out_whole),
		TEST(each_gpu_of_which_it_uses_too_much_is_told_once),
		TEST(it_warns_once_and_notes_the_peak_in_the_lease),
		TEST(small_growth_is_not_written),
		TEST(a_locked_lease_file_is_not_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
