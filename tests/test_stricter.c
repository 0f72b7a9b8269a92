#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "stricter.h"

enum { NOW = 1000000, GPUS = 3, TOTAL = 24000 };

static struct statedir dir;
static struct snapshot view;
static const struct usage_policy machine = {
	.idle_mib = 200, .margin_mib = 500, .spike_percent = 10
};

static int set_up(struct scratch *scratch)
{
	(void)scratch;
	view.usage = machine;
	for (unsigned i = 0; i < GPUS; i++) {
		struct gpu_record gpu = { .index = i, .total_mib = TOTAL };
		uint32_t slot;

		(void)snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", i);
		text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
		if (lease_add_gpu(&dir, &gpu, &slot) < 0)
			return -1;
	}
	return 0;
}

static struct fixture fixture = { .dir = &dir, .view = &view, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* Process @pid uses so much of each GPU; on GPU 2 it has used more. */
static void probe(pid_t pid, uint64_t mib, uint64_t past_mib)
{
	probe_begin(&view.probe, NOW, NOW);
	for (uint32_t i = 0; i < GPUS; i++) {
		uint64_t used_mib = mib * (i + 1);

		view.probe.gpus[view.probe.gpu_count] = (struct probe_gpu){
			.is_known = true, .total_mib = TOTAL, .used_mib = used_mib
		};
		(void)snprintf(view.probe.gpus[view.probe.gpu_count++].uuid,
			sizeof(view.probe.gpus[0].uuid), "GPU-%u", i);
		view.probe.processes[view.probe.process_count++] =
			(struct probe_process){ .gpu = i,
				.pid = pid,
				.used_mib = used_mib,
				.peak_mib = i == 2 ? past_mib : used_mib };
	}
	view.has_probe = true;
}

/* Checks which GPUs @own refuses, and that the view is judged by the machine's thresholds. */
static void check(
	struct usage_policy own, const struct request *request, const char *refused)
{
	struct gpuset wanted = fixture_set(refused), found;

	assert_int_equal(stricter_judge(&view, &own, request, NOW, &found), 0);
	assert_true(gpuset_equals(&found, &wanted));
	assert_memory_equal(&view.usage, &machine, sizeof(machine));
	assert_int_equal(view.facts.margin_mib, machine.margin_mib);
}

static void only_what_the_own_thresholds_refuse_is_taken_out(void **state)
{
	struct other stranger = other_start(dir.fd, OTHER_ALONE);
	struct request whole = { .gpus = 1, .allow = GPUSET_ALL };
	struct usage_policy own = machine;

	(void)state;
	probe(stranger.pid, 60, 190); /* 60, 120, 180 MiB */
	fixture_look(&view, NOW);
	check(own, &whole, "");
	own.idle_mib = 185;
	check(own, &whole, "2"); /* by its peak */
	assert_int_equal(view.gpus[2].state, GPU_FREE);
	assert_int_equal(view.plan[2].state, GPU_FREE);
	assert_int_equal(view.gpus[2].culprit, stranger.pid);
	own.idle_mib = 100;
	check(own, &whole, "12");
	/* a GPU that the job may not have, or that the machine refuses as well, is not listed */
	whole.allow = fixture_set("01");
	check(own, &whole, "1");
	probe(stranger.pid, 150, 450);
	fixture_look(&view, NOW);
	check(own, &whole, "0");
	assert_int_equal(view.gpus[1].state, GPU_EXTERNAL);
	other_end(&stranger);
}

static void margin_and_buffer_count_for_declared_memory(void **state)
{
	static const struct {
		uint64_t vram_mib, margin_mib;
		unsigned spike_percent;
		const char *refused;
	} cases[] = {
		/* outside: 5500, 11000 and 16500 MiB with the machine's buffer */
		{ 18000, 500, 10, "" }, { 18000, 501, 10, "0" }, { 18000, 500, 11, "0" },
		{ 7000, 5999, 10, "2" }, /* not on GPU 1 */
		{ 7000, 6001, 10, "12" }, { 7000, 500, 70, "12" },
		{ 7500, 5000, 100, "1" }, /* GPU 2 is full for all */
	};
	struct other stranger = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	probe(stranger.pid, 5000, 15000);
	fixture_look(&view, NOW);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {
			.gpus = 1, .vram_mib = cases[i].vram_mib, .allow = GPUSET_ALL
		};
		struct usage_policy own = machine;

		own.margin_mib = cases[i].margin_mib;
		own.spike_percent = cases[i].spike_percent;
		check(own, &request, cases[i].refused);
	}
	other_end(&stranger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_the_own_thresholds_refuse_is_taken_out),
		TEST(margin_and_buffer_count_for_declared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
