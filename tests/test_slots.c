#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "inventory.h"

static struct statedir dir;
static struct snapshot view;

static struct gpu_record make_gpu(unsigned slot)
{
	struct gpu_record gpu = { .index = slot };

	(void)snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", slot);
	text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
	return gpu;
}

static void show(struct snapshot *to, const char *uuid, unsigned index)
{
	struct probe_gpu *gpu = &to->probe.gpus[to->probe.gpu_count++];

	*gpu = (struct probe_gpu){
		.index = (int)index, .total_mib = 24576, .is_known = true
	};
	text_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
}

static void show_nothing(struct snapshot *to)
{
	probe_begin(&to->probe, 1000, 1010);
	to->has_probe = true;
}

/* Takes all 128 slots for GPUs of this boot. */
static int set_up(struct scratch *here)
{
	int r = 0;

	(void)here;
	for (unsigned i = 0; i < GPUSET_MAX && r == 0; i++) {
		struct gpu_record gpu = make_gpu(i);
		uint32_t slot;

		r = lease_add_gpu(&dir, &gpu, &slot);
	}
	show_nothing(&view);
	return r;
}

static struct fixture fixture = { .dir = &dir, .view = &view, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

/* Makes the GPU of @slot one that was last seen in another boot. */
static void set_gone(unsigned slot, bool is_paused)
{
	struct gpu_record gpu = make_gpu(slot);
	struct lease_file file;

	text_copy(gpu.boot, sizeof(gpu.boot), "another-boot");
	gpu.is_paused = is_paused;
	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_write_gpu(&file, &gpu), 0);
	lease_release(&file);
}

static int adopt_as(const char *token)
{
	int r;

	fixture_look(&view, 2000);
	r = inventory_adopt(&view, token);
	fixture_look(&view, 2000);
	return r;
}

static int adopt(void)
{
	return adopt_as("");
}

static void check_link(unsigned slot, const char *wanted)
{
	char name[32], to[64] = "";

	(void)snprintf(name, sizeof(name), "gpu/slot.%u", slot);
	assert_true(readlinkat(dir.fd, name, to, sizeof(to) - 1) > 0);
	assert_string_equal(to, wanted);
}

/* Checks that the next new GPU gets @slot; -1: none. */
static void check_next(int slot)
{
	static unsigned number = 500;
	char uuid[16];

	(void)snprintf(uuid, sizeof(uuid), "GPU-%u", ++number);
	show_nothing(&view);
	show(&view, uuid, 0);
	assert_int_equal(adopt(), slot >= 0);
	assert_int_equal(snapshot_find_gpu(&view, uuid), slot);
}

/* --- which -------------------------------------------------------------------------- */

static void slots_of_gpus_that_are_gone_are_reused(void **state)
{
	(void)state;
	set_gone(5, false);
	set_gone(6, true); /* it is paused, and the pause has to be kept */
	set_gone(7, false);
	set_gone(8, false);
	show(&view, "GPU-7", 0); /* it is back */
	assert_int_equal(adopt(), 1);
	check_next(5);
	check_link(5, "GPU-501.lease");
	check_next(8);
	check_next(-1);
	check_link(6, "GPU-6.lease");
	check_link(7, "GPU-7.lease");
}

static void slots_that_lead_nowhere_are_reused(void **state)
{
	(void)state;
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.3", 0), 0);
	assert_int_equal(symlinkat("-", dir.fd, "gpu/slot.3"), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-9.lease", 0), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.11", 0), 0);
	assert_int_equal(symlinkat("../../etc/passwd", dir.fd, "gpu/slot.11"), 0);
	check_next(3);
	check_next(9);
	check_next(-1);
	check_link(11, "../../etc/passwd"); /* gpulease does not remove such a link */
}

static void a_gpu_that_comes_back_gets_another_slot(void **state)
{
	(void)state;
	set_gone(5, false);
	set_gone(9, false);
	check_next(5);
	show_nothing(&view);
	show(&view, "GPU-5", 0);
	assert_int_equal(adopt(), 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-5"), 9);
	assert_int_equal(adopt(), 1); /* its record says so */
	assert_string_equal(view.gpus[9].file.gpu.slot, "9");
}

/* --- when --------------------------------------------------------------------------- */

static uint64_t take_ticket(const struct owner *owner, uint32_t state)
{
	struct ticket ticket = { .state = state, .owner = *owner };
	struct ticket_file file;
	uint64_t number;

	text_copy(ticket.boot, sizeof(ticket.boot), dir.boot);
	assert_int_equal(ticket_open(dir.fd, &file), 0);
	assert_int_equal(ticket_append(&file, &ticket, &number), 0);
	ticket_release(&file);
	return number;
}

/* Checks that no slot is reused while @other lives, and one is afterwards. */
static void check_kept_by(struct other *other)
{
	check_next(-1);
	other_end(other);
	check_next(5);
}

static void no_slot_is_reused_while_a_ticket_lives(void **state)
{
	struct other other = other_start(dir.fd, OTHER_ALONE);

	(void)state;
	set_gone(5, false);
	(void)take_ticket(&other.owner, TICKET_WAITING);
	check_kept_by(&other);
}

static void no_slot_is_reused_while_a_left_process_lives(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);

	(void)state;
	set_gone(5, false);
	(void)take_ticket(&other.owner, TICKET_GRANTED);
	other_kill(&other);
	check_kept_by(&other);
}

static void no_slot_is_reused_while_a_fifo_without_ticket_is_held(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	set_gone(5, false);
	check_kept_by(&other);
}

static void no_slot_is_reused_while_a_lease_lives(void **state)
{
	struct other other = other_start(dir.fd, OTHER_ALONE);
	struct lease lease = { .ticket = 7, .owner = other.owner };

	(void)state;
	set_gone(5, false);
	gpuset_add(&lease.gpus, 2);
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	fixture_write_lease(dir.fd, 2, 1, &lease);
	check_kept_by(&other);
}

static void the_own_ticket_keeps_no_slot(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	set_gone(5, false);
	(void)take_ticket(&other.owner, TICKET_WAITING);
	show(&view, "GPU-new", 0);
	assert_int_equal(adopt_as("0123456789abcdef"), 0);
	assert_int_equal(adopt_as(other.owner.token), 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-new"), 5);
	other_end(&other);
}

static void a_file_that_is_locked_keeps_its_slot(void **state)
{
	struct lease_file file;

	(void)state;
	set_gone(5, false);
	assert_int_equal(lease_open_slot(&dir, 5, &file), 0);
	assert_int_equal(lease_lock(&file, 0), 0);
	check_next(-1);
	lease_release(&file);
	check_next(5);
}

/* --- what names it ------------------------------------------------------------------ */

static void the_end_of_a_lease_on_the_slot_is_recorded_first(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	struct lease lease = { .ticket = 7, .owner = dead, .gpus = fixture_set("45") };
	struct history_end *ends;
	size_t count;

	(void)state;
	text_copy(lease.boot, sizeof(lease.boot), "another-boot");
	fixture_write_lease(dir.fd, 4, 1, &lease);
	fixture_write_lease(dir.fd, 5, 1, &lease);
	set_gone(5, false);
	check_next(5);
	assert_int_equal(view.lease_count, 0);
	ends = fixture_history(dir.fd, 2, &count);
	assert_int_equal(count, 1);
	assert_string_equal(ends[0].gpus, "4,5");
	free(ends);
}

/* --- at once ------------------------------------------------------------------------ */

enum { MAKERS = 8, GONE = 12 };

/* In a child: finds slots for GPU @own and for one that all children see. */
static int make_one(unsigned own)
{
	static struct snapshot mine;
	char uuid[16];
	int r;

	snapshot_init(&mine, &dir);
	show_nothing(&mine);
	(void)snprintf(uuid, sizeof(uuid), "GPU-own%u", own);
	show(&mine, uuid, own);
	show(&mine, "GPU-all", 99);
	for (int tries = 0; tries < 2000; tries++) {
		r = snapshot_read(&mine, 2000);
		if (r == 0 && snapshot_find_gpu(&mine, uuid) >= 0 &&
			snapshot_find_gpu(&mine, "GPU-all") >= 0)
			return 0;
		if (r == 0)
			r = inventory_adopt(&mine, "");
		if (r < 0)
			return 1;
		(void)poll(NULL, 0, 1); /* slots_reuse() does not wait for the folder */
	}
	return 1;
}

static void two_processes_never_reuse_one_slot(void **state)
{
	struct gpuset slots = GPUSET_NONE;
	pid_t pids[MAKERS];
	char uuid[16];

	(void)state;
	for (unsigned slot = 0; slot < GONE; slot++)
		set_gone(slot, false);
	for (unsigned i = 0; i < MAKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			/* flocks are by open file, and a child shares the parent's */
			dir.gpu_fd = openat(dir.fd, "gpu", O_RDONLY | O_DIRECTORY);
			_exit(make_one(i));
		}
	}
	for (unsigned i = 0; i < MAKERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	fixture_look(&view, 2000);
	for (unsigned i = 0; i <= MAKERS; i++) {
		int slot;

		(void)snprintf(
			uuid, sizeof(uuid), i < MAKERS ? "GPU-own%u" : "GPU-all", i);
		slot = snapshot_find_gpu(&view, uuid);
		assert_true(
			slot >= 0 && slot < GONE && !gpuset_has(&slots, (unsigned)slot));
		gpuset_add(&slots, (unsigned)slot);
	}
	for (unsigned slot = 0; slot < GONE; slot++) { /* and no GPU has two */
		char name[32];

		(void)snprintf(name, sizeof(name), "GPU-%u.lease", slot);
		if (!gpuset_has(&slots, slot))
			check_link(slot, name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_of_gpus_that_are_gone_are_reused),
		TEST(slots_that_lead_nowhere_are_reused),
		TEST(a_gpu_that_comes_back_gets_another_slot),
		TEST(no_slot_is_reused_while_a_ticket_lives),
		TEST(no_slot_is_reused_while_a_left_process_lives),
		TEST(no_slot_is_reused_while_a_fifo_without_ticket_is_held),
		TEST(no_slot_is_reused_while_a_lease_lives),
		TEST(the_own_ticket_keeps_no_slot),
		TEST(a_file_that_is_locked_keeps_its_slot),
		TEST(the_end_of_a_lease_on_the_slot_is_recorded_first),
		TEST(two_processes_never_reuse_one_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
