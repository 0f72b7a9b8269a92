#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "process_lease.h"
#include "snapshot.h"

enum { NOW = 1000000, GPUS = 3, TOTAL = 24000 };

static struct statedir dir;
static struct snapshot view;
static int64_t now_ms;

/* The probe's rows are the slots. */
static void probe_idle(int64_t started_ms)
{
	probe_begin(&view.probe, started_ms, started_ms + 10);
	for (unsigned i = 0; i < GPUS; i++) {
		struct probe_gpu *gpu = &view.probe.gpus[view.probe.gpu_count++];

		*gpu = (struct probe_gpu){ .index = (int)i,
			.total_mib = TOTAL,
			.used_mib = 3,
			.is_known = true };
		(void)snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%u", i);
		(void)snprintf(gpu->bus_id, sizeof(gpu->bus_id), "0000:0%u:00.0", i);
		text_copy(gpu->name, sizeof(gpu->name), "RTX");
	}
	view.has_probe = true;
}

static void add_process(uint32_t gpu, int32_t pid, uint64_t mib)
{
	view.probe.processes[view.probe.process_count++] =
		(struct probe_process){ .gpu = gpu, .pid = pid, .used_mib = mib };
}

/* A process that uses little by now. */
static void add_past(uint32_t gpu, int32_t pid, uint64_t peak_mib)
{
	add_process(gpu, pid, 150);
	view.probe.processes[view.probe.process_count - 1].peak_mib = peak_mib;
}

static void add_gpu(unsigned i, const char *boot)
{
	struct gpu_record gpu = { .index = i + 10, .total_mib = TOTAL };
	uint32_t slot;

	(void)snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", i);
	(void)snprintf(gpu.bus_id, sizeof(gpu.bus_id), "0000:0%u:00.0", i);
	text_copy(gpu.model, sizeof(gpu.model), "RTX");
	text_copy(gpu.boot, sizeof(gpu.boot), boot);
	assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), 0);
	assert_int_equal(slot, i);
}

static int set_up(struct scratch *here)
{
	(void)here;
	now_ms = NOW;
	for (unsigned i = 0; i < GPUS; i++)
		add_gpu(i, dir.boot);
	return 0;
}

static void tear_down(void)
{
	snapshot_release(&view); /* may be called twice */
}

static struct fixture fixture = {
	.dir = &dir, .view = &view, .set_up = set_up, .tear_down = tear_down
};

#define TEST(f) FIXTURE_TEST(f, fixture)

/* Looks at the state, with the probe as it is. */
static void look(void)
{
	fixture_look(&view, now_ms);
}

/* Returns when the one lease on the GPU ends at the latest; 0: none, or unknown. */
static int64_t end_ms(unsigned slot)
{
	assert_in_range(view.plan[slot].use_count, 0, 1);
	return view.plan[slot].use_count ? view.plan[slot].uses[0].end_ms : 0;
}

static void check_states(const enum gpu_state *wanted)
{
	for (unsigned slot = 0; slot < GPUS; slot++) {
		if (view.gpus[slot].state != wanted[slot])
			fail_msg("GPU %u is in state %d, not %d", slot,
				view.gpus[slot].state, wanted[slot]);
		assert_int_equal(view.plan[slot].state, wanted[slot]);
	}
}

#define CHECK_STATES(...) check_states((const enum gpu_state[GPUS]){ __VA_ARGS__ })

static struct lease lease_of(const struct owner *owner, const char *slots)
{
	struct lease lease = { .ticket = 7, .owner = *owner, .since_ms = NOW - 5000 };

	for (; *slots; slots++)
		gpuset_add(&lease.gpus, (unsigned)(*slots - '0'));
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	text_copy(lease.user, sizeof(lease.user), "alice");
	return lease;
}

static void write_to(unsigned slot, unsigned at, const struct lease *lease)
{
	fixture_write_lease(dir.fd, slot, at, lease);
}

static void write_everywhere(const struct lease *lease)
{
	gpuset_for_each (slot, &lease->gpus)
		write_to((unsigned)slot, 1, lease);
}

static void pause_gpu(unsigned slot, uint32_t is_paused)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	unsigned records;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_read(&file, raw, &records), 0);
	file.gpu.is_paused = is_paused;
	assert_int_equal(lease_write_gpu(&file, &file.gpu), 0);
	lease_release(&file);
}

/* --- leases ------------------------------------------------------------------------- */

static void a_live_lease_takes_its_gpus(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "02");
	struct snapshot_lease *seen;

	(void)state;
	write_everywhere(&lease);
	probe_idle(NOW);
	look();
	CHECK_STATES(GPU_LEASED, GPU_FREE, GPU_LEASED);
	assert_int_equal(view.lease_count, 1);
	seen = fixture_find_ticket(&view, 7);
	assert_non_null(seen);
	assert_ptr_equal(seen, snapshot_find_token(&view, other.owner.token));
	assert_false(seen->is_dead || seen->is_over);
	assert_true(gpuset_equals(&seen->seen, &lease.gpus));
	assert_string_equal(seen->lease.user, "alice");
	assert_int_equal(end_ms(0), 0);
	assert_int_equal(view.lives.count, 1);
	assert_true(view.lives.all[0].is_watched);
	assert_null(fixture_find_ticket(&view, 8));
	other_end(&other);
	now_ms += 1000;
	probe_idle(now_ms);
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	assert_true(fixture_find_ticket(&view, 7)->is_over);
	assert_int_equal(fixture_find_ticket(&view, 7)->over_ms, now_ms);
	assert_true(view.gpus[0].has_dead && view.plan[0].is_just_released);
	assert_false(view.gpus[1].has_dead || view.plan[1].is_just_released);
	assert_int_equal(view.gpus[0].released_ms, now_ms);
	assert_false(view.lives.all[0].is_watched);
}

static void one_visible_record_shows_the_whole_lease(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "012");

	(void)state;
	probe_idle(NOW);
	write_to(1, 3,
		&lease); /* the others are still to be written, or the owner stopped */
	look();
	CHECK_STATES(GPU_LEASED, GPU_LEASED, GPU_LEASED);
	assert_int_equal(view.lease_count, 1);
	assert_int_equal(gpuset_count(&fixture_find_ticket(&view, 7)->seen), 1);
	other_end(&other);
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	assert_true(view.gpus[1].has_dead);
	assert_false(view.gpus[0].has_dead);
}

static void the_latest_end_of_a_lease_is_known(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	lease.limit_ms = 60000;
	lease.grace_ms = 10000;
	write_everywhere(&lease);
	probe_idle(NOW);
	look();
	assert_int_equal(end_ms(0), lease.since_ms + 70000);
	assert_int_equal(end_ms(1), 0);
	other_end(&other);
}

static void a_dead_owner_with_a_live_child_lingers(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	probe_idle(NOW);
	other_kill(&other);
	look();
	CHECK_STATES(GPU_FREE, GPU_LINGERING, GPU_FREE);
	assert_true(fixture_find_ticket(&view, 7)->is_dead);
	assert_false(fixture_find_ticket(&view, 7)->is_over);
	assert_int_equal(fixture_find_ticket(&view, 7)->dead_ms, NOW);
	assert_true(view.lives.all[0].is_watched);
	assert_int_equal(end_ms(1), 0);
	other_kill_heir(&other);
	look();
	assert_true(fixture_find_ticket(&view, 7)->is_over);
}

static void a_lease_of_another_boot_is_void(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	text_copy(lease.boot, sizeof(lease.boot), "00000000000000000000000000000000");
	write_everywhere(&lease);
	probe_idle(NOW - 1000); /* nothing of this boot was just released */
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	assert_false(view.gpus[0].has_dead);
	assert_true(view.leases[0].is_over);
	assert_null(fixture_find_ticket(&view, 7));
	assert_int_equal(view.lives.count, 0);
	other_end(&other);
}

static void a_broken_lease_is_skipped_and_counted(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");
	struct lease_file file;

	(void)state;
	write_to(0, 3, &lease);
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(pwrite(file.fd, "#", 1, 2 * RECORD_SIZE), 1);
	lease_release(&file);
	probe_idle(NOW);
	look();
	CHECK_STATES(GPU_LEASED, GPU_FREE, GPU_FREE);
	assert_int_equal(view.broken_records, 1);
	other_end(&other);
}

/* --- what the probe says ------------------------------------------------------------ */

static void without_a_probe_the_plan_takes_gpus_for_free_and_show_for_unknown(
	void **state)
{
	(void)state;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	view.is_for_show = true;
	look();
	CHECK_STATES(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
}

static void memory_of_no_lease_makes_a_gpu_external(void **state)
{
	(void)state;
	probe_idle(NOW);
	view.probe.gpus[0].used_mib = 200; /* at the idle threshold */
	view.probe.gpus[1].used_mib = 201;
	look();
	CHECK_STATES(GPU_FREE, GPU_EXTERNAL, GPU_FREE);
	assert_int_equal(view.gpus[1].culprit, 0);
	view.usage.idle_mib = 500;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	view.usage.idle_percent = 1; /* of 24000 */
	view.probe.gpus[0].used_mib = 240;
	view.probe.gpus[1].used_mib = 241;
	look();
	CHECK_STATES(GPU_FREE, GPU_EXTERNAL, GPU_FREE);
	probe_idle(NOW);
	add_process(0, 5, 241);
	add_process(1, 5, 240);
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
}

/* Its process lives and may take the memory again, unless a job has left it. */
static void a_past_peak_of_a_stranger_makes_a_gpu_external(void **state)
{
	struct other job = other_start(dir.fd, OTHER_LIVE);
	struct other left = other_start(dir.fd, OTHER_ALONE);
	struct other stranger = other_start(dir.fd, OTHER_ALONE);
	struct lease lease = lease_of(&job.owner, "0");
	struct rlimit tag = { .rlim_cur = process_lease_tag(job.owner.token),
		.rlim_max = RLIM_INFINITY };

	(void)state;
	assert_int_equal(prlimit(left.pid, RLIMIT_LOCKS, &tag, NULL), 0);
	probe_idle(NOW);
	add_past(0, stranger.pid, 200); /* the idle threshold */
	add_past(1, stranger.pid, 12000);
	add_past(1, left.pid, 13000); /* of a job of long ago */
	add_past(2, left.pid, 13000);
	look();
	CHECK_STATES(GPU_FREE, GPU_EXTERNAL, GPU_FREE);
	assert_int_equal(view.gpus[1].culprit, stranger.pid);
	assert_int_equal(view.gpus[1].past_mib, 12000);
	assert_int_equal(view.gpus[2].past_mib, 0);
	/* the job runs on GPU 0, and its process uses GPU 2 */
	write_everywhere(&lease);
	look();
	CHECK_STATES(GPU_LEASED, GPU_EXTERNAL, GPU_EXTERNAL);
	assert_int_equal(view.gpus[1].culprit, left.pid);
	other_end(&job);
	/* a process that will get a lease is not foreign */
	view.adoptee = (uint32_t)stranger.pid;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	view.adoptee = 0;
	other_end(&left);
	other_end(&stranger);
}

static void a_busy_gpu_is_external_unless_leased(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "2");

	(void)state;
	write_everywhere(&lease);
	probe_idle(NOW);
	view.probe.gpus[0].utilization = 100;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_LEASED); /* it is not configured */
	view.usage.busy_percent = 10;
	view.probe.gpus[0].utilization = 9;
	view.probe.gpus[1].utilization = 10;
	view.probe.gpus[2].utilization = 100;
	look();
	CHECK_STATES(GPU_FREE, GPU_EXTERNAL, GPU_LEASED);
	assert_int_equal(view.gpus[1].culprit, 0);
	view.probe.gpus[1].utilization = -1;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_LEASED);
	/* nvidia-smi speaks of the last second: what a job has just done is not external */
	other_end(&other);
	look();
	probe_idle(NOW + 10);
	view.probe.gpus[2].utilization = 100;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_SETTLING);
}

static void memory_a_lease_left_settles_and_is_external_later(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&lease);
	other_end(&other);
	look(); /* seen over, at NOW */
	probe_idle(NOW + 10);
	view.probe.gpus[0].used_mib = 9000;
	now_ms = NOW + 59999;
	look();
	CHECK_STATES(GPU_SETTLING, GPU_FREE, GPU_FREE);
	now_ms = NOW + 60000;
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
	view.usage.settle_ms = 90000;
	look();
	CHECK_STATES(GPU_SETTLING, GPU_FREE, GPU_FREE);
	view.usage.settle_ms = 0;
	now_ms = NOW;
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
}

static void a_process_with_memory_makes_a_gpu_external_and_is_named(void **state)
{
	(void)state;
	probe_idle(NOW);
	view.probe.gpus[1].used_mib = 9000;
	add_process(1, 4, 3000);
	add_process(1, getpid(), 5000);
	add_process(1, 6, 1000);
	add_process(2, 5, 100); /* below the threshold */
	add_process(0, 5, PROBE_MIB_UNKNOWN);
	look();
	CHECK_STATES(GPU_FREE, GPU_EXTERNAL, GPU_FREE);
	assert_int_equal(view.gpus[1].culprit, getpid());
	/* also where the sum has not caught up */
	probe_idle(NOW);
	add_process(0, 5, 201);
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
	assert_int_equal(view.gpus[0].culprit, 5);
}

static void unknown_is_never_free(void **state)
{
	(void)state;
	probe_idle(NOW);
	view.probe.gpus[0].is_known = false;
	view.probe.gpus[1].has_mig = true;
	text_copy(view.probe.gpus[2].compute_mode,
		sizeof(view.probe.gpus[2].compute_mode), "Prohibited");
	look();
	CHECK_STATES(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
	probe_idle(NOW);
	view.probe.gpu_count = 2; /* a missing row */
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_UNKNOWN);
	assert_int_equal(view.gpus[2].row, -1);
	view.probe.gpu_count = 0; /* no answer at all */
	look();
	CHECK_STATES(GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN);
	assert_true(view.gpus[0].exists); /* of this boot: waited for */
}

static void a_gpu_that_lost_its_name_is_known_by_its_bus(void **state)
{
	(void)state;
	probe_idle(NOW);
	view.probe.gpus[1].uuid[0] = '\0';
	view.probe.gpus[1].is_known = false;
	look();
	CHECK_STATES(GPU_FREE, GPU_UNKNOWN, GPU_FREE);
	assert_int_equal(view.gpus[1].row, 1);
}

static void memory_of_an_ended_lease_settles(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&dead, "01");

	(void)state;
	write_everywhere(&lease);
	/* a probe from before says nothing of it */
	probe_idle(NOW - 1);
	view.probe.gpus[0].used_mib = 9000;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	view.is_for_show = true;
	look();
	CHECK_STATES(GPU_SETTLING, GPU_FREE, GPU_FREE);
	view.is_for_show = false;
	now_ms += 100;
	probe_idle(NOW + 50);
	view.probe.gpus[0].used_mib = 9000;
	view.probe.gpus[2].used_mib = 9000; /* not leased before */
	look();
	CHECK_STATES(GPU_SETTLING, GPU_FREE, GPU_EXTERNAL);
	probe_idle(NOW + 60);
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	/* another process is seen with it, which is not of that lease */
	probe_idle(NOW + 70);
	view.probe.gpus[0].used_mib = 9000;
	add_process(0, getpid(), 9000);
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
	assert_int_equal(view.gpus[0].culprit, getpid());
}

/* A process with @token in the environment it was started with. */
static pid_t start_process_with(const char *token)
{
	char variable[64];
	char *const argv[] = { (char *)"sleep", (char *)"60", NULL };
	char *const envp[] = { variable, NULL };
	int ends[2];
	pid_t pid;
	char byte;

	(void)snprintf(
		variable, sizeof(variable), PROCESS_LEASE_TOKEN_VARIABLE "=%s", token);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)execve("/bin/sleep", argv, envp);
		_exit(127);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* it has become the command */
	(void)close(ends[0]);
	return pid;
}

static void memory_of_a_left_process_settles_too(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&dead, "0");
	pid_t child = start_process_with(dead.token);

	(void)state;
	write_everywhere(&lease);
	probe_idle(NOW);
	view.probe.gpus[0].used_mib = view.probe.gpus[1].used_mib = 9000;
	add_process(0, child, 9000);
	add_process(1, child, 9000);
	look();
	CHECK_STATES(GPU_SETTLING, GPU_EXTERNAL, GPU_FREE);
	assert_int_equal(view.gpus[0].culprit, child);
	fixture_kill(&child);
}

static void an_mps_server_does_not_count(void **state)
{
	char old[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, old), 0);
	probe_idle(NOW);
	add_process(0, getpid(), 9000);
	assert_int_equal(prctl(PR_SET_NAME, "nvidia-cuda-mps-server"), 0);
	look();
	assert_int_equal(prctl(PR_SET_NAME, old), 0);
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	look();
	CHECK_STATES(GPU_EXTERNAL, GPU_FREE, GPU_FREE);
}

/* --- other states ------------------------------------------------------------------- */

static void a_paused_gpu_is_paused_leased_or_not(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	pause_gpu(0, 1);
	pause_gpu(1, 1);
	probe_idle(NOW);
	look();
	CHECK_STATES(GPU_PAUSED, GPU_PAUSED, GPU_FREE);
	pause_gpu(0, 0);
	pause_gpu(1, 0);
	look();
	CHECK_STATES(GPU_FREE, GPU_LEASED, GPU_FREE);
	other_end(&other);
}

static void a_gpu_that_could_not_be_locked_is_locked_for_a_while(void **state)
{
	(void)state;
	probe_idle(NOW);
	look();
	view.gpus[1].locked_until_ms = NOW + 500;
	look();
	CHECK_STATES(GPU_FREE, GPU_LOCKED, GPU_FREE);
	now_ms = NOW + 500;
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
}

static void a_gpu_of_another_boot_exists_once_a_probe_has_shown_it(void **state)
{
	(void)state;
	snapshot_release(&view);
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-2.lease", 0), 0);
	add_gpu(2, "00000000000000000000000000000000");
	look();
	assert_true(view.gpus[1].exists && view.plan[1].exists);
	assert_false(view.gpus[2].exists || view.plan[2].exists);
	probe_idle(NOW);
	look();
	assert_true(view.gpus[2].exists && view.plan[2].exists);
}

static void a_gpu_without_a_file_is_known_for_now(void **state)
{
	struct probe_gpu *more;

	(void)state;
	probe_idle(NOW);
	more = &view.probe.gpus[view.probe.gpu_count++];
	*more = view.probe.gpus[0];
	more->index = 7;
	text_copy(more->uuid, sizeof(more->uuid), "GPU-new");
	look();
	assert_int_equal(view.slots, GPUS + 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-new"), GPUS);
	assert_int_equal(view.gpus[GPUS].file.fd, -1);
	assert_int_equal(view.plan[GPUS].state, GPU_FREE);
	assert_int_equal(snapshot_gpu_index(&view, GPUS), 7);
	look();
	assert_int_equal(view.slots, GPUS + 1);
	probe_idle(NOW);
	look();
	assert_int_equal(view.slots, GPUS);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-new"), -1);
}

static void the_index_is_from_the_probe_or_the_last_known(void **state)
{
	(void)state;
	look();
	assert_int_equal(snapshot_gpu_index(&view, 1), 11);
	probe_idle(NOW);
	look();
	assert_int_equal(snapshot_gpu_index(&view, 1), 1);
	assert_int_equal(view.plan[1].index, 1);
	view.probe.gpus[1].index = -1;
	look();
	assert_int_equal(snapshot_gpu_index(&view, 1), 11);
}

static void files_stay_open_and_a_replaced_one_is_opened_again(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");
	int before;

	(void)state;
	probe_idle(NOW);
	look();
	before = fixture_open_fds();
	look();
	assert_int_equal(fixture_open_fds(), before);
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-1.lease", 0), 0);
	look();
	assert_int_equal(view.gpus[1].file.fd, -1);
	assert_int_equal(
		view.gpus[2].file.fd >= 0, true); /* later files are still read */
	add_gpu(1, dir.boot);
	write_everywhere(&lease);
	look();
	CHECK_STATES(GPU_FREE, GPU_LEASED, GPU_FREE);
	other_end(&other);
}

static void break_record(unsigned slot, unsigned at)
{
	struct lease_file file;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(pwrite(file.fd, "#", 1, (off_t)at * RECORD_SIZE + 300), 1);
	lease_release(&file);
}

static void a_damaged_file_withholds_its_gpu_while_a_job_is_unknown(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	for (unsigned at = 0; at < 2; at++) {
		break_record(1, at);
		probe_idle(NOW);
		look();
		assert_int_equal(view.gpus[1].is_broken, at == 0 || at == 1);
		assert_true(view.gpus[1].is_doubtful);
	}
	CHECK_STATES(GPU_FREE, GPU_UNKNOWN, GPU_FREE);
	assert_string_equal(view.unknown.owner.token, other.owner.token);
	assert_int_equal(view.unknown_since_ms, now_ms);
	assert_int_equal(view.lives.count, 1);
	assert_true(view.lives.all[0].is_watched); /* its end wakes this process */
	other_end(&other);
	look();
	CHECK_STATES(GPU_FREE, GPU_FREE, GPU_FREE);
	assert_int_equal(view.unknown_since_ms, 0);
}

static void a_lease_after_a_broken_gpu_record_still_counts(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	break_record(1, 0);
	probe_idle(NOW);
	look();
	CHECK_STATES(GPU_FREE, GPU_LEASED, GPU_FREE);
	assert_false(view.has_unknown_job);
	other_end(&other);
}

static void a_half_seen_lease_with_a_strange_slot_is_unknown(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "01");

	(void)state;
	write_to(0, 1, &lease);
	break_record(2, 5);
	probe_idle(NOW);
	look(); /* the record of GPU 1 does not say that it is slot 1 */
	CHECK_STATES(GPU_LEASED, GPU_LEASED, GPU_UNKNOWN);
	write_to(1, 1, &lease);
	look();
	CHECK_STATES(GPU_LEASED, GPU_LEASED, GPU_FREE);
	other_end(&other);
}

/* Has the file of @slot say which slot it has, as it does once gpulease has written it. */
static void name_slot(unsigned slot)
{
	struct lease_file file;
	struct gpu_record gpu;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	gpu = view.gpus[slot].file.gpu;
	lease_name_slot(&file, gpu.slot);
	assert_int_equal(lease_write_gpu(&file, &gpu), 0);
	lease_release(&file);
}

static void a_lease_whose_slots_have_got_other_gpus_is_unknown(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "02");

	(void)state;
	look();
	for (unsigned slot = 0; slot < GPUS; slot++)
		name_slot(slot);
	/* its GPUs were those of slots 0 and 2; one of them is slot 1 now, the other is which? */
	write_to(1, 1, &lease);
	break_record(2, 5);
	probe_idle(NOW);
	look();
	assert_true(view.has_unknown_job);
	/* with a record for each of its GPUs nothing is missing */
	write_to(0, 1, &lease);
	look();
	assert_false(view.has_unknown_job);
	other_end(&other);
}

static void a_file_that_is_no_lease_file_stops_no_other(void **state)
{
	(void)state;
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-1.lease", 0), 0);
	assert_int_equal(mkdirat(dir.fd, "gpu/GPU-1.lease", 0700), 0);
	probe_idle(NOW);
	look();
	CHECK_STATES(GPU_FREE, GPU_UNKNOWN, GPU_FREE);
	assert_int_equal(view.slots, GPUS);
	/* two slots with one file: the second does not count */
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.2", 0), 0);
	assert_int_equal(symlinkat("GPU-0.lease", dir.fd, "gpu/slot.2"), 0);
	snapshot_release(&view); /* another process, which has no file open */
	look();
	assert_int_equal(view.plan[0].state, GPU_FREE);
	assert_true(view.gpus[2].is_unusable);
	assert_false(view.plan[2].exists);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-2"), 3); /* without a slot */
}

static void a_slot_that_leads_to_another_gpu_is_followed(void **state)
{
	(void)state;
	look();
	assert_string_equal(view.gpus[0].file.gpu.uuid, "GPU-0");
	/* links that were lost are made again, by whichever process is the first */
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.0", 0), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.1", 0), 0);
	assert_true(snapshot_has_new_names(&view));
	assert_int_equal(symlinkat("GPU-1.lease", dir.fd, "gpu/slot.0"), 0);
	assert_int_equal(symlinkat("GPU-0.lease", dir.fd, "gpu/slot.1"), 0);
	look();
	assert_string_equal(view.gpus[0].file.gpu.uuid, "GPU-1");
	assert_string_equal(view.gpus[1].file.gpu.uuid, "GPU-0");
	assert_string_equal(view.gpus[2].file.gpu.uuid, "GPU-2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_live_lease_takes_its_gpus),
		TEST(one_visible_record_shows_the_whole_lease),
		TEST(the_latest_end_of_a_lease_is_known),
		TEST(a_dead_owner_with_a_live_child_lingers),
		TEST(a_lease_of_another_boot_is_void),
		TEST(a_broken_lease_is_skipped_and_counted),
		TEST(without_a_probe_the_plan_takes_gpus_for_free_and_show_for_unknown),
		TEST(memory_of_no_lease_makes_a_gpu_external),
		TEST(a_past_peak_of_a_stranger_makes_a_gpu_external),
		TEST(a_busy_gpu_is_external_unless_leased),
		TEST(memory_a_lease_left_settles_and_is_external_later),
		TEST(a_process_with_memory_makes_a_gpu_external_and_is_named),
		TEST(unknown_is_never_free),
		TEST(a_gpu_that_lost_its_name_is_known_by_its_bus),
		TEST(memory_of_an_ended_lease_settles),
		TEST(memory_of_a_left_process_settles_too),
		TEST(an_mps_server_does_not_count),
		TEST(a_paused_gpu_is_paused_leased_or_not),
		TEST(a_gpu_that_could_not_be_locked_is_locked_for_a_while),
		TEST(a_gpu_of_another_boot_exists_once_a_probe_has_shown_it),
		TEST(a_gpu_without_a_file_is_known_for_now),
		TEST(the_index_is_from_the_probe_or_the_last_known),
		TEST(files_stay_open_and_a_replaced_one_is_opened_again),
		TEST(a_damaged_file_withholds_its_gpu_while_a_job_is_unknown),
		TEST(a_lease_after_a_broken_gpu_record_still_counts),
		TEST(a_half_seen_lease_with_a_strange_slot_is_unknown),
		TEST(a_lease_whose_slots_have_got_other_gpus_is_unknown),
		TEST(a_file_that_is_no_lease_file_stops_no_other),
		TEST(a_slot_that_leads_to_another_gpu_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
