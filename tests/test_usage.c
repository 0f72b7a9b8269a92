/* Which leases use the memory that nvidia-smi shows, on shared GPUs. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "fixture.h"
#include "process_lease.h"
#include "usage.h"

enum { TOTAL_MIB = 24576 };

static const struct usage_policy policy = {
	.idle_mib = 200, .linger_ms = 60000, .spike_percent = 10
};
static struct statedir dir;
static struct snapshot view;

static int set_up(struct scratch *here)
{
	struct gpu_record gpu = { .index = 0, .total_mib = TOTAL_MIB };
	uint32_t slot;

	(void)here;
	view.usage = policy;
	text_copy(gpu.uuid, sizeof(gpu.uuid), "GPU-a");
	text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
	return lease_add_gpu(&dir, &gpu, &slot);
}

static struct fixture fixture = { .dir = &dir, .view = &view, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* A tenth of the GPU is @owner's, by record @at. */
static void write_share(unsigned at, const struct owner *owner, uint64_t ticket)
{
	struct lease lease = { .ticket = ticket,
		.owner = *owner,
		.gpus = fixture_set("0"),
		.share_percent = 10,
		.since_ms = 500 };

	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	fixture_write_lease(dir.fd, 0, at, &lease);
}

static void probe(int64_t finished_ms, uint64_t used_mib)
{
	struct probe_gpu *gpu;

	probe_begin(&view.probe, finished_ms - 10, finished_ms);
	gpu = &view.probe.gpus[view.probe.gpu_count++];
	*gpu = (struct probe_gpu){
		.is_known = true, .total_mib = TOTAL_MIB, .used_mib = used_mib
	};
	text_copy(gpu->uuid, sizeof(gpu->uuid), "GPU-a");
	view.has_probe = true;
}

static void probe_process(pid_t pid, uint64_t mib, uint64_t peak_mib)
{
	view.probe.processes[view.probe.process_count++] = (struct probe_process){
		.pid = pid, .used_mib = mib, .peak_mib = peak_mib
	};
}

static void look(int64_t now_ms)
{
	fixture_look(&view, now_ms);
}

static void declared_memory_counts_until_more_was_seen(void **state)
{
	static const struct {
		struct lease lease;
		uint64_t counts_mib;
	} cases[] = {
		{ { .vram_mib = 3000 }, 3000 },
		{ { .vram_mib = 3000, .peak_mib = 2999 }, 3000 },
		{ { .vram_mib = 3000, .peak_mib = 3000 }, 3000 },
		{ { .vram_mib = 3000, .peak_mib = 3001 }, 3302 },
		{ { .share_percent = 50 }, 12288 },
		{ { .share_percent = 50, .vram_mib = 100, .peak_mib = 1 }, 100 },
		{ { .share_percent = 50, .peak_mib = 12290 }, 13519 },
		{ { .vram_mib = 1, .peak_mib = 105 }, 116 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(usage_budget_mib(&policy, &cases[i].lease, TOTAL_MIB),
			cases[i].counts_mib);
}

static void a_process_belongs_to_its_lease_or_is_foreign(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct other stranger = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	write_share(1, &one.owner, 1);
	write_share(2, &two.owner, 2);
	probe(1000, 7000);
	probe_process(one.pid, 1000, 1000);
	probe_process(two.pid, 3000, 3000);
	probe_process(stranger.pid, 2000, 2500);
	look(1000);
	assert_int_equal(fixture_find_ticket(&view, 1)->seen_mib, 1000);
	assert_int_equal(fixture_find_ticket(&view, 1)->lease.peak_mib, 1000);
	assert_int_equal(fixture_find_ticket(&view, 2)->lease.peak_mib, 3000);
	/* its peak and the buffer, and 1000 that no process accounts for */
	assert_int_equal(view.gpus[0].foreign_mib, 2750 + 1000);
	assert_int_equal(view.gpus[0].culprit, stranger.pid);
	/* a process that will get a lease is not foreign */
	view.adoptee = (uint32_t)stranger.pid;
	look(1000);
	assert_int_equal(view.gpus[0].foreign_mib, 1000);
	assert_int_equal(view.gpus[0].culprit, 0);
	view.adoptee = 0;
	other_end(&one);
	other_end(&two);
	other_end(&stranger);
}

static void a_forged_tag_charges_no_other_lease(void **state)
{
	struct other victim = other_start(dir.fd, OTHER_LIVE);
	struct other forger = other_start(dir.fd, OTHER_ALONE);
	struct owner owner = victim.owner;
	struct rlimit tag = { .rlim_cur = process_lease_tag(owner.token),
		.rlim_max = RLIM_INFINITY };

	(void)state;
	assert_int_equal(prlimit(forger.pid, RLIMIT_LOCKS, &tag, NULL), 0);
	write_share(1, &owner, 1);
	probe(1000, 2000);
	probe_process(forger.pid, 2000, 2000);
	look(1000);
	assert_int_equal(fixture_find_ticket(&view, 1)->seen_mib, 2000);
	/* the same, but for the user of the lease */
	owner.uid = (uint32_t)getuid() + 1;
	write_share(1, &owner, 1);
	probe(1000, 2000);
	probe_process(forger.pid, 2000, 2000);
	look(1000);
	assert_int_equal(fixture_find_ticket(&view, 1)->seen_mib, 0);
	assert_int_equal(view.gpus[0].foreign_mib, 2200);
	assert_int_equal(view.gpus[0].culprit, forger.pid);
	other_end(&victim);
	other_end(&forger);
}

static void use_below_the_idle_threshold_is_ignored(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	write_share(1, &one.owner, 1);
	probe(1000, 1200);
	probe_process(one.pid, 1000, 1000);
	look(1000);
	assert_int_equal(view.gpus[0].foreign_mib, 0);
	probe(1100, 1201);
	probe_process(one.pid, 1000, 1000);
	look(1100);
	assert_int_equal(view.gpus[0].foreign_mib, 201);
	other_end(&one);
}

static void memory_an_ended_lease_left_is_foreign(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct other left = other_start(dir.fd, OTHER_ALONE);
	struct rlimit tag = { .rlim_cur = process_lease_tag(one.owner.token),
		.rlim_max = RLIM_INFINITY };

	(void)state;
	assert_int_equal(prlimit(left.pid, RLIMIT_LOCKS, &tag, NULL), 0);
	write_share(1, &one.owner, 1);
	write_share(2, &two.owner, 2);
	probe(1000, 1000);
	probe_process(left.pid, 1000, 1000);
	look(1000);
	assert_int_equal(view.gpus[0].foreign_mib, 0);
	other_kill(&one);
	look(1000);
	assert_true(fixture_find_ticket(&view, 1)->is_over);
	probe(2000, 1000); /* an older one says nothing of what is left */
	probe_process(left.pid, 1000, 1000);
	look(2000);
	assert_int_equal(view.gpus[0].foreign_mib, 1100);
	assert_int_equal(view.gpus[0].settling_mib, 0);
	other_end(&one);
	other_end(&two);
	other_end(&left);
}

/* Its process is there and shows it, or has gone; or nvidia-smi shows none at all. */
static void for_a_time_memory_of_an_ended_lease_settles(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct other left = other_start(dir.fd, OTHER_ALONE);
	struct other stranger = other_start(dir.fd, OTHER_ALONE);
	struct rlimit tag = { .rlim_cur = process_lease_tag(one.owner.token),
		.rlim_max = RLIM_INFINITY };
	const pid_t pids[] = { left.pid, one.pid, 0 };

	(void)state;
	assert_int_equal(prlimit(left.pid, RLIMIT_LOCKS, &tag, NULL), 0);
	view.usage.settle_ms = 60000;
	write_share(1, &one.owner, 1);
	write_share(2, &two.owner, 2);
	look(1000);
	other_kill(&one);
	look(1000);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		probe(2000, 1000);
		probe_process(pids[i], 1000, 1000);
		look(2000);
		assert_int_equal(view.gpus[0].foreign_mib, 0);
		assert_int_equal(view.gpus[0].settling_mib, 1100);
		assert_int_equal(view.gpus[0].culprit, pids[i]);
		assert_int_equal(view.plan[0].settling_mib, 1100);
	}
	/* a stranger is none of it */
	probe(3000, 3500);
	probe_process(left.pid, 1000, 1000);
	probe_process(stranger.pid, 500, 500);
	look(3000);
	assert_int_equal(view.gpus[0].foreign_mib, 550);
	assert_int_equal(view.gpus[0].settling_mib, 1100 + 2000);
	assert_int_equal(view.gpus[0].culprit, stranger.pid);
	probe(61000, 1000);
	probe_process(left.pid, 1000, 1000);
	look(61000);
	assert_int_equal(view.gpus[0].foreign_mib, 1100);
	assert_int_equal(view.gpus[0].settling_mib, 0);
	other_end(&one);
	other_end(&two);
	other_end(&left);
	other_end(&stranger);
}

/* Time between two looks that are far apart does not count as quiet. */
static void a_lease_is_quiet_only_while_it_is_probed(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	static const struct {
		int64_t at_ms, quiet_ms;
	} looks[] = { { 100000, 100000 }, { 110000, 100000 }, { 125000, 100000 },
		{ 140011, 140011 }, { 150000, 140011 } };

	(void)state;
	write_share(1, &other.owner, 1);
	other_kill(&other);
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		probe(looks[i].at_ms, 0);
		look(looks[i].at_ms);
		assert_int_equal(
			fixture_find_ticket(&view, 1)->quiet_ms, looks[i].quiet_ms);
	}
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(declared_memory_counts_until_more_was_seen),
		TEST(a_process_belongs_to_its_lease_or_is_foreign),
		TEST(a_forged_tag_charges_no_other_lease),
		TEST(use_below_the_idle_threshold_is_ignored),
		TEST(memory_an_ended_lease_left_is_foreign),
		TEST(for_a_time_memory_of_an_ended_lease_settles),
		TEST(a_lease_is_quiet_only_while_it_is_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
