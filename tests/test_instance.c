#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "fixture_inventory.h"
#include "instance.h"
#include "inventory.h"
#include "process_lease.h"

/*
 * GPU 0 has MIG enabled, GPU 1 has not.  Slots come in the order of the first adoption: the
 * two GPUs, then the instances.
 */
enum { NOW = 1000000, PARENT = 0, WHOLE = 1, A = 2, B = 3, C = 4, SLOTS = 5 };
enum { TOTAL = 81559, IDLE = 60 };

static struct statedir dir;
static struct snapshot view;
static int64_t now_ms;

static void add_mig(uint32_t device, const char *profile, const char *uuid)
{
	struct probe_mig *mig = &view.probe.migs[view.probe.mig_count++];

	*mig = (struct probe_mig){ .gpu = 0, .device = device };
	text_copy(mig->profile, sizeof(mig->profile), profile);
	text_copy(mig->uuid, sizeof(mig->uuid), uuid);
}

static void probe_gpus(void)
{
	probe_begin(&view.probe, now_ms, now_ms + 10);
	for (unsigned i = 0; i < 2; i++) {
		struct probe_gpu *gpu = &view.probe.gpus[view.probe.gpu_count++];

		*gpu = (struct probe_gpu){ .index = (int)i + 4,
			.total_mib = TOTAL,
			.used_mib = IDLE,
			.utilization = -1,
			.is_known = true,
			.has_mig = i == 0 };
		(void)snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%u", i);
		(void)snprintf(gpu->bus_id, sizeof(gpu->bus_id), "0000:0%u:00.0", i);
		text_copy(gpu->name, sizeof(gpu->name), "NVIDIA H100");
	}
	view.has_probe = true;
}

static void probe_idle(void)
{
	probe_gpus();
	add_mig(0, "3g.40gb", "MIG-aaaa");
	add_mig(1, "2g.20gb", "MIG-bbbb");
	add_mig(2, "1g.10gb", "MIG-GPU-0/9/0");
}

static void add_process(int32_t pid, uint64_t mib)
{
	view.probe.processes[view.probe.process_count++] = (struct probe_process){
		.gpu = 0, .pid = pid, .used_mib = mib, .peak_mib = mib
	};
	if (mib != PROBE_MIB_UNKNOWN)
		view.probe.gpus[0].used_mib += mib;
}

static void look(void)
{
	fixture_look(&view, now_ms);
}

static int adopt(void)
{
	return fixture_adopt(&view, now_ms);
}

static int set_up(struct scratch *here)
{
	(void)here;
	now_ms = NOW;
	probe_idle();
	assert_int_equal(adopt(), SLOTS);
	return 0;
}

static struct fixture fixture = { .dir = &dir, .view = &view, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

static void check_states(enum gpu_state a, enum gpu_state b, enum gpu_state c)
{
	const enum gpu_state wanted[] = { a, b, c };

	for (unsigned i = 0; i < 3; i++)
		if (view.gpus[A + i].state != wanted[i])
			fail_msg("instance %u is in state %d, not %d", i,
				view.gpus[A + i].state, wanted[i]);
}

/* A lease on one slot, for a part of it. */
static void lease_part(const struct owner *owner, unsigned slot, unsigned percent)
{
	struct lease one = { .ticket = 7,
		.owner = *owner,
		.since_ms = NOW - 5000,
		.share_percent = percent };

	gpuset_add(&one.gpus, slot);
	text_copy(one.boot, sizeof(one.boot), dir.boot);
	fixture_write_lease(dir.fd, slot, 1, &one);
}

static void lease(const struct owner *owner, unsigned slot)
{
	lease_part(owner, slot, WHOLE_PERCENT);
}

/* Makes a lease on @slot with an owner that has just died; after a look nothing has settled. */
static struct owner just_ended(unsigned slot)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	lease(&other.owner, slot);
	look();
	assert_int_equal(view.gpus[slot].state, GPU_LEASED);
	other_end(&other);
	look();
	now_ms += 1000;
	probe_idle();
	return other.owner;
}

/* What gpulease does before it becomes the command. */
static void tag(const struct other *other, const char *token)
{
	struct rlimit limit = { process_lease_tag(token), RLIM_INFINITY };

	assert_int_equal(prlimit(other->pid, RLIMIT_LOCKS, &limit, NULL), 0);
}

/* --- what an instance is -------------------------------------------------------------- */

static void a_profile_bounds_the_memory(void **state)
{
	static const struct {
		const char *profile;
		uint64_t really; /* as drivers have shown it */
	} table[] = { { "1g.5gb", 4864 }, { "1g.6gb", 5952 }, { "1g.10gb", 9984 },
		{ "1g.12gb", 11008 }, { "1g.18gb", 16384 }, { "2g.20gb", 20096 },
		{ "3g.40gb", 40448 }, { "7g.80gb", 81152 }, { "1c.3g.40gb", 40448 },
		{ "1g.10gb+me", 9984 }, { "1g.18gb+me.all", 16384 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (instance_least_mib(table[i].profile) > table[i].really ||
			instance_most_mib(table[i].profile) < table[i].really)
			fail_msg("%s is not within bounds", table[i].profile);
	assert_int_equal(instance_least_mib("3g.40gb"), 36000);
	assert_int_equal(instance_least_mib(""), 0);
	assert_int_equal(instance_least_mib("gb"), 0);
	assert_int_equal(instance_least_mib("3g"), 0);
	assert_int_equal(instance_most_mib("3g.99999999999999999999gb"), 0);
}

static void instances_get_files_and_slots(void **state)
{
	const struct gpu_record *gpu = &view.gpus[A].file.gpu;

	(void)state;
	assert_int_equal(view.slots, SLOTS);
	assert_string_equal(gpu->uuid, "MIG-aaaa");
	assert_string_equal(gpu->model, "NVIDIA H100 MIG 3g.40gb");
	assert_string_equal(gpu->bus_id, "0000:00:00.0");
	assert_string_equal(gpu->boot, dir.boot);
	assert_int_equal(gpu->index, 4);
	assert_int_equal(gpu->device, 0);
	assert_int_equal(gpu->total_mib, 36000);
	assert_int_equal(view.gpus[C].file.gpu.device, 2);
	assert_string_equal(view.gpus[C].file.gpu.uuid, "MIG-GPU-0/9/0");
	assert_true(fixture_exists(dir.fd, "gpu", "MIG-GPU-0%2F9%2F0.lease"));
	assert_int_equal(view.gpus[PARENT].file.gpu.has_mig, 1);
	assert_int_equal(view.gpus[WHOLE].file.gpu.has_mig, 0);
	assert_int_equal(adopt(), 0);
}

static void a_long_name_leaves_room_for_the_profile(void **state)
{
	(void)state;
	memset(view.probe.gpus[0].name, 'x', sizeof(view.probe.gpus[0].name) - 1);
	assert_true(adopt() > 0);
	assert_int_equal(adopt(), 0); /* all of it is in the file */
	assert_non_null(strstr(view.gpus[A].file.gpu.model, "x MIG 3g.40gb"));
}

static void an_instance_is_called_by_its_gpu_and_number(void **state)
{
	(void)state;
	assert_string_equal(snapshot_gpu_name(&view, PARENT).text, "4");
	assert_string_equal(snapshot_gpu_name(&view, B).text, "4:1");
	view.has_probe = false; /* its file says so, too */
	look();
	assert_string_equal(snapshot_gpu_name(&view, B).text, "4:1");
}

static void instances_without_files_are_known_by_the_probe(void **state)
{
	(void)state;
	add_mig(3, "1g.10gb", "MIG-dddd");
	look();
	assert_int_equal(view.slots, SLOTS + 1);
	assert_true(view.gpus[SLOTS].exists && view.plan[SLOTS].is_instance);
	assert_int_equal(view.gpus[SLOTS].state, GPU_FREE);
	assert_int_equal(view.plan[SLOTS].total_mib, 9000);
	assert_string_equal(snapshot_gpu_name(&view, SLOTS).text, "4:3");
}

/* --- which there are ------------------------------------------------------------------- */

static void a_parent_is_not_leased_and_no_instance_in_its_place(void **state)
{
	struct gpuset all = inventory_all(&view), wanted = fixture_set("1234");

	(void)state;
	assert_true(gpuset_equals(&all, &wanted));
	assert_false(view.plan[PARENT].exists);
	assert_int_equal(view.gpus[PARENT].state, GPU_UNKNOWN);
	assert_true(view.plan[A].exists && view.plan[A].is_instance);
	assert_false(view.plan[WHOLE].is_instance);
	assert_int_equal(view.plan[A].total_mib, 36000);
	check_states(GPU_FREE, GPU_FREE, GPU_FREE);
	/* without nvidia-smi it is still known to be one */
	view.has_probe = false;
	look();
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
}

static void an_instance_that_is_not_listed_beside_others_is_gone(void **state)
{
	struct gpuset all, wanted = fixture_set("13");

	(void)state;
	probe_gpus();
	add_mig(0, "2g.20gb", "MIG-bbbb");
	assert_int_equal(adopt(), 3);
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
	assert_string_equal(snapshot_gpu_name(&view, B).text, "4:0");
	view.has_probe = false; /* without a probe it is known from the files */
	look();
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
	/* back again, in its old slot */
	probe_idle();
	assert_int_equal(adopt(), 3);
	wanted = fixture_set("1234");
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
}

static void without_mig_all_instances_are_gone_and_the_gpu_is_back(void **state)
{
	struct gpuset all, wanted = fixture_set("01");

	(void)state;
	probe_gpus();
	view.probe.gpus[0].has_mig = false;
	look(); /* also before any process has changed the files */
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
	assert_int_equal(view.gpus[PARENT].state, GPU_FREE);
	assert_int_equal(adopt(), 4);
}

static void a_list_that_is_missing_makes_them_unknown(void **state)
{
	struct gpuset all, wanted = fixture_set("1234");

	(void)state;
	probe_gpus();
	assert_int_equal(adopt(), 0);
	all = inventory_all(&view);
	assert_true(gpuset_equals(&all, &wanted));
	check_states(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
	assert_string_equal(snapshot_gpu_name(&view, B).text, "4:1");
	/* as does a parent that is sick */
	probe_idle();
	view.probe.mig_count = 0;
	view.probe.gpus[0].is_known = false;
	view.probe.gpus[0].uuid[0] = '\0';
	look();
	check_states(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
}

static void a_live_lease_keeps_an_instance_that_is_gone(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	lease(&other.owner, A);
	probe_gpus();
	add_mig(1, "2g.20gb", "MIG-bbbb");
	adopt();
	assert_true(view.gpus[A].exists);
	assert_false(view.gpus[C].exists);
	assert_int_equal(view.gpus[A].state, GPU_LEASED);
	other_end(&other);
	look();
	assert_false(view.gpus[A].exists);
}

static void a_gone_instance_is_no_longer_shared(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	lease_part(&other.owner, A, 50);
	adopt();
	assert_int_equal(view.plan[A].state, GPU_LEASED);
	view.probe.mig_count = 0;
	add_mig(1, "2g.20gb", "MIG-bbbb");
	look();
	assert_true(view.gpus[A].exists);
	assert_int_equal(view.plan[A].state, GPU_UNKNOWN);
	other_end(&other);
}

static void a_gone_instance_is_not_free_without_its_lease(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	lease(&other.owner, A);
	probe_gpus();
	add_mig(1, "2g.20gb", "MIG-bbbb");
	look();
	assert_int_equal(view.plan[A].state, GPU_LEASED);
	view.leases[0].aside = ASIDE_NEEDED;
	assert_int_equal(snapshot_find_facts(&view, now_ms), 0);
	assert_int_equal(view.plan[A].state, GPU_UNKNOWN);
	other_end(&other);
}

static void when_all_slots_are_taken_the_others_stay(void **state)
{
	struct gpu_record gpu = { .index = 0 };
	uint32_t slot;

	(void)state;
	text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
	for (unsigned i = SLOTS; i < GPUSET_MAX - 1; i++) {
		(void)snprintf(gpu.uuid, sizeof(gpu.uuid), "MIG-old%u", i);
		assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), 0);
	}
	add_mig(3, "1g.10gb", "MIG-dddd");
	add_mig(4, "1g.10gb", "MIG-eeee");
	view.probe.gpus[1].total_mib = 1;
	assert_int_equal(adopt(), 2); /* one new, one changed */
	assert_int_equal(view.slots, GPUSET_MAX);
	assert_int_equal(snapshot_find_gpu(&view, "MIG-dddd"), GPUSET_MAX - 1);
	assert_int_equal(snapshot_find_gpu(&view, "MIG-eeee"), -1);
	assert_int_equal(view.gpus[WHOLE].file.gpu.total_mib, 1);
}

/* --- how they are judged --------------------------------------------------------------- */

static void a_foreign_process_on_the_parent_holds_them_all(void **state)
{
	struct other other = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	add_process(other.pid, 5000);
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[A].culprit, other.pid);
	assert_int_equal(view.gpus[C].culprit, other.pid);
	assert_int_equal(view.gpus[WHOLE].state, GPU_FREE);
	probe_idle();
	add_process(other.pid, 100); /* next to nothing */
	look();
	check_states(GPU_FREE, GPU_FREE, GPU_FREE);
	probe_idle();
	add_process(other.pid, PROBE_MIB_UNKNOWN); /* whatever it may be */
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	other_end(&other);
}

static void a_process_of_a_lease_beside_it_blocks_no_instance(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct other apart = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	lease(&other.owner, A);
	add_process(other.heir, 30000);
	look();
	check_states(GPU_LEASED, GPU_FREE, GPU_FREE);
	/* one that only carries the token, as those of containers do */
	tag(&apart, other.owner.token);
	add_process(apart.pid, 5000);
	look();
	check_states(GPU_LEASED, GPU_FREE, GPU_FREE);
	tag(&apart, "0123456789abcdef");
	look();
	check_states(GPU_LEASED, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[B].culprit, apart.pid);
	other_end(&other);
	other_end(&apart);
}

static void a_process_of_a_lease_on_another_gpu_is_a_stranger(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	lease(&other.owner, WHOLE);
	add_process(other.pid, 5000);
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	other_end(&other);
}

static void a_process_of_an_instance_of_another_gpu_is_a_stranger(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	const unsigned elsewhere = SLOTS;

	(void)state;
	view.probe.gpus[1].has_mig = true;
	add_mig(0, "7g.80gb", "MIG-dddd");
	view.probe.migs[view.probe.mig_count - 1].gpu = 1;
	assert_true(adopt() > 0);
	lease(&other.owner, elsewhere);
	look();
	assert_int_equal(view.gpus[elsewhere].state, GPU_LEASED);
	check_states(GPU_FREE, GPU_FREE, GPU_FREE);
	add_process(other.pid, 5000);
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[A].culprit, other.pid);
	other_end(&other);
}

static void a_lingering_lease_holds_only_its_instance(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);

	(void)state;
	lease(&other.owner, A);
	look();
	tag(&(struct other){ .pid = other.heir }, other.owner.token);
	other_kill(&other);
	add_process(other.heir, 20000);
	look();
	check_states(GPU_LINGERING, GPU_FREE, GPU_FREE);
	other_end(&other);
}

static void memory_that_no_process_shows_is_bounded_by_the_leases(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	view.probe.gpus[0].used_mib = 201;
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[A].culprit, 0);
	view.probe.gpus[0].used_mib = 200;
	look();
	check_states(GPU_FREE, GPU_FREE, GPU_FREE);
	lease(&other.owner, A);
	view.probe.gpus[0].used_mib = 40 * 1024 + 200; /* all that it can have */
	look();
	check_states(GPU_LEASED, GPU_FREE, GPU_FREE);
	view.probe.gpus[0].used_mib++;
	look();
	check_states(GPU_LEASED, GPU_EXTERNAL, GPU_EXTERNAL);
	other_end(&other);
}

static void memory_of_a_lease_that_has_ended_settles_there_alone(void **state)
{
	(void)state;
	(void)just_ended(A);
	view.probe.gpus[0].used_mib = 30000;
	look();
	check_states(GPU_SETTLING, GPU_FREE, GPU_FREE);
	now_ms += view.usage.settle_ms; /* then it is foreign */
	probe_idle();
	view.probe.gpus[0].used_mib = 30000;
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	probe_idle();
	look();
	check_states(GPU_FREE, GPU_FREE, GPU_FREE);
}

static void of_two_ended_leases_neither_covers_the_other(void **state)
{
	(void)state;
	(void)just_ended(A);
	(void)just_ended(B);
	view.probe.gpus[0].used_mib = 15000;
	look();
	check_states(GPU_SETTLING, GPU_SETTLING, GPU_FREE);
}

static void a_left_process_is_named(void **state)
{
	struct other left = other_start(dir.fd, OTHER_ALONE);
	struct owner owner = just_ended(A);

	(void)state;
	tag(&left, owner.token);
	add_process(left.pid, 5000);
	look();
	check_states(GPU_SETTLING, GPU_FREE, GPU_FREE);
	assert_int_equal(view.gpus[A].culprit, left.pid);
	now_ms += view.usage.settle_ms;
	probe_idle();
	add_process(left.pid, 5000);
	look();
	check_states(GPU_EXTERNAL, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[B].culprit, left.pid);
	other_end(&left);
}

static void a_pause_is_of_one_instance(void **state)
{
	struct lease_file file;
	struct gpu_record gpu = view.gpus[B].file.gpu;

	(void)state;
	gpu.is_paused = 1;
	assert_int_equal(lease_open_slot(&dir, B, &file), 0);
	assert_int_equal(lease_write_gpu(&file, &gpu), 0);
	lease_release(&file);
	look();
	check_states(GPU_FREE, GPU_PAUSED, GPU_FREE);
}

static void a_prohibited_parent_gives_no_instance(void **state)
{
	(void)state;
	text_copy(view.probe.gpus[0].compute_mode, 24, "Prohibited");
	look();
	check_states(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_profile_bounds_the_memory),
		TEST(instances_get_files_and_slots),
		TEST(a_long_name_leaves_room_for_the_profile),
		TEST(an_instance_is_called_by_its_gpu_and_number),
		TEST(instances_without_files_are_known_by_the_probe),
		TEST(a_parent_is_not_leased_and_no_instance_in_its_place),
		TEST(an_instance_that_is_not_listed_beside_others_is_gone),
		TEST(without_mig_all_instances_are_gone_and_the_gpu_is_back),
		TEST(a_list_that_is_missing_makes_them_unknown),
		TEST(a_live_lease_keeps_an_instance_that_is_gone),
		TEST(a_gone_instance_is_no_longer_shared),
		TEST(a_gone_instance_is_not_free_without_its_lease),
		TEST(when_all_slots_are_taken_the_others_stay),
		TEST(a_foreign_process_on_the_parent_holds_them_all),
		TEST(a_process_of_a_lease_beside_it_blocks_no_instance),
		TEST(a_process_of_a_lease_on_another_gpu_is_a_stranger),
		TEST(a_process_of_an_instance_of_another_gpu_is_a_stranger),
		TEST(a_lingering_lease_holds_only_its_instance),
		TEST(memory_that_no_process_shows_is_bounded_by_the_leases),
		TEST(memory_of_a_lease_that_has_ended_settles_there_alone),
		TEST(of_two_ended_leases_neither_covers_the_other),
		TEST(a_left_process_is_named),
		TEST(a_pause_is_of_one_instance),
		TEST(a_prohibited_parent_gives_no_instance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
