#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "clock.h"
#include "commit.h"
#include "ending.h"
#include "fixture.h"
#include "history.h"
#include "kin.h"

enum { GPUS = 3, MINUTE = 60000 };

/* Slot numbers and the order of uuids are not the same. */
static const char *const uuids[GPUS] = { "GPU-c", "GPU-a", "GPU-b" };

static struct statedir dir;
static struct snapshot view;

/* --- what is locked in which order, and a disk that is full ------------------------- */

static ino_t locked[16];
static unsigned lock_count;
static int writes_left;      /* -1: as many as you like */
static unsigned write_count; /* of what was not zeros */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
ssize_t __real_pwrite(int fd, const void *in, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *in, size_t size, off_t offset);

int __wrap_flock(int fd, int operation)
{
	struct stat st;

	if ((operation & LOCK_EX) && lock_count < ARRAY_SIZE(locked) &&
		fstat(fd, &st) == 0)
		locked[lock_count++] = st.st_ino;
	return __real_flock(fd, operation);
}

ssize_t __wrap_pwrite(int fd, const void *in, size_t size, off_t offset)
{
	static const char zeros[RECORD_SIZE];
	bool is_void = size == RECORD_SIZE && memcmp(in, zeros, size) == 0;

	/* what only makes void is let through: those blocks are there */
	if (writes_left == 0 && !is_void) {
		errno = ENOSPC;
		return -1;
	}
	if (!is_void) {
		writes_left -= writes_left > 0;
		write_count++;
	}
	return __real_pwrite(fd, in, size, offset);
}

/* --- a state directory with three GPUs ---------------------------------------------- */

static int setup(void **state)
{
	int r = fixture_view_setup(state, &dir, &view);

	if (r < 0)
		return r;
	writes_left = -1;
	for (unsigned i = 0; i < GPUS; i++) {
		struct gpu_record gpu = { .index = i + 4 };
		uint32_t slot;

		text_copy(gpu.uuid, sizeof(gpu.uuid), uuids[i]);
		text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
		r |= lease_add_gpu(&dir, &gpu, &slot);
	}
	lock_count = 0;
	return r;
}

static int teardown(void **state)
{
	writes_left = -1;
	return fixture_view_teardown(state, &dir, &view);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct lease lease_of(const struct owner *owner, const char *slots)
{
	struct lease lease = {
		.ticket = 7, .owner = *owner, .gpus = fixture_set(slots), .since_ms = 500
	};

	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	text_copy(lease.user, sizeof(lease.user), "alice");
	text_copy(lease.command, sizeof(lease.command), "python train.py");
	return lease;
}

static struct lease my_lease(const char *slots)
{
	struct owner owner;

	assert_int_equal(owner_self(&owner), 0);
	return lease_of(&owner, slots);
}

static void write_to(unsigned slot, unsigned at, const struct lease *lease)
{
	fixture_write_lease(dir.fd, slot, at, lease);
}

static void write_everywhere(const struct lease *lease)
{
	gpuset_for_each (slot, &lease->gpus)
		write_to((unsigned)slot, 2, lease);
}

static void look(int64_t now_ms)
{
	fixture_look(&view, now_ms);
}

static int commit(const char *slots, const struct lease *lease)
{
	struct gpuset set = fixture_set(slots);
	int r;

	assert_int_equal(commit_lock(&view, &set), 0);
	look(2000);
	assert_true(commit_is_locked(&view, &set));
	r = commit_write(&view, &set, lease);
	commit_unlock(&view);
	return r;
}

/* The tokens in the file of @slot; NULL: no record. */
static void check_file(unsigned slot, const char *first, const char *second)
{
	static char raw[LEASE_FILE_BYTES];
	const char *wanted[] = { first, second };
	struct lease_file file;
	unsigned records;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_read(&file, raw, &records), 0);
	for (unsigned at = 1; at <= records; at++) {
		const char *token = at <= 2 ? wanted[at - 1] : NULL;
		struct lease lease;

		assert_int_equal(
			lease_decode(raw, at, &lease), token ? LEASE_RECORD : LEASE_NONE);
		if (token)
			assert_string_equal(lease.owner.token, token);
	}
	lease_release(&file);
}

static struct history_end *ends;

static size_t read_history(void)
{
	size_t count = 0;

	free(ends);
	ends = fixture_history(dir.fd, 100, &count);
	return count;
}

/* --- locks -------------------------------------------------------------------------- */

static void locks_are_taken_in_the_order_of_the_uuids(void **state)
{
	static const char *const order[] = { "gpu/GPU-a.lease", "gpu/GPU-b.lease",
		"gpu/GPU-c.lease" };
	struct gpuset set = fixture_set("012"), some = fixture_set("0"),
		      none = GPUSET_NONE;
	struct stat st;

	(void)state;
	look(1000);
	lock_count = 0;
	assert_false(commit_is_locked(&view, &some));
	assert_int_equal(commit_lock(&view, &set), 0);
	assert_int_equal(lock_count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fstatat(dir.fd, order[i], &st, 0), 0);
		assert_true(locked[i] == st.st_ino);
	}
	assert_true(commit_is_locked(&view, &set) && commit_is_locked(&view, &some));
	commit_unlock(&view);
	commit_unlock(&view);
	assert_false(commit_is_locked(&view, &some));
	assert_true(commit_is_locked(&view, &none));
}

static void who_does_not_get_all_locks_keeps_none(void **state)
{
	struct gpuset set = fixture_set("012"), others = fixture_set("02");
	int64_t before_ms = clock_boot_ms(), after_ms;
	int reader = openat(dir.fd, "gpu/GPU-a.lease", O_RDONLY | O_CLOEXEC);

	(void)state;
	look(1000);
	/* it is enough to be able to read the file */
	assert_int_equal(flock(reader, LOCK_SH), 0);
	assert_int_equal(commit_lock(&view, &set), COMMIT_LOCKED);
	after_ms = clock_boot_ms();
	for (unsigned slot = 0; slot < GPUS; slot++)
		assert_false(view.gpus[slot].file.is_locked);
	assert_true(view.gpus[1].locked_until_ms >= before_ms + 1000);
	assert_true(view.gpus[1].locked_until_ms <= after_ms + 1000);
	assert_int_equal(view.gpus[0].locked_until_ms, 0);
	assert_int_equal(view.gpus[2].locked_until_ms, 0);
	look(after_ms);
	assert_int_equal(view.gpus[1].state, GPU_LOCKED);
	/* the others are to be had meanwhile */
	assert_int_equal(commit_lock(&view, &others), 0);
	commit_unlock(&view);
	(void)close(reader);
	assert_int_equal(commit_lock(&view, &set), 0);
	commit_unlock(&view);
}

static void all_that_are_locked_are_found_in_one_go(void **state)
{
	struct gpuset set = fixture_set("012");
	int one = openat(dir.fd, "gpu/GPU-a.lease", O_RDONLY | O_CLOEXEC);
	int two = openat(dir.fd, "gpu/GPU-c.lease", O_RDONLY | O_CLOEXEC);

	(void)state;
	look(1000);
	assert_int_equal(flock(one, LOCK_EX), 0);
	assert_int_equal(flock(two, LOCK_SH), 0);
	assert_int_equal(commit_lock(&view, &set), COMMIT_LOCKED);
	assert_true(view.gpus[0].locked_until_ms && view.gpus[1].locked_until_ms);
	assert_int_equal(view.gpus[2].locked_until_ms, 0);
	(void)close(one);
	(void)close(two);
}

static void a_file_replaced_under_the_lock_is_not_locked_any_more(void **state)
{
	struct gpuset set = fixture_set("01");
	struct gpu_record gpu = { .index = 9 };
	uint32_t slot;

	(void)state;
	look(1000);
	assert_int_equal(commit_lock(&view, &set), 0);
	text_copy(gpu.uuid, sizeof(gpu.uuid), uuids[1]);
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-a.lease", 0), 0);
	assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), 0);
	look(1000);
	assert_false(commit_is_locked(&view, &set));
	commit_unlock(&view);
}

/* --- writing ------------------------------------------------------------------------ */

static void a_lease_is_written_into_every_file(void **state)
{
	struct lease lease = my_lease("02");

	(void)state;
	look(1000);
	assert_int_equal(commit("02", &lease), 0);
	check_file(0, lease.owner.token, NULL);
	check_file(1, NULL, NULL);
	check_file(2, lease.owner.token, NULL);
	assert_int_equal(read_history(), 0);
}

static void what_is_over_is_removed_and_its_fifo_too(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct owner half = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease old = lease_of(&dead, "01"), torn = lease_of(&half, "02"),
		     lease = my_lease("0");

	(void)state;
	write_everywhere(&old);
	write_to(0, 1, &torn); /* killed while it was writing */
	look(1000);
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
	assert_int_equal(commit("0", &lease), 0);
	check_file(0, lease.owner.token, NULL);
	check_file(1, NULL, dead.token); /* not ours to write */
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, half.token));
}

static void a_write_that_fails_leaves_no_record_of_the_lease(void **state)
{
	(void)state;
	for (int good = 0; good < 3; good++) {
		struct lease lease = my_lease("012");

		writes_left = -1;
		look(1000);
		writes_left = good;
		assert_int_equal(commit("012", &lease), -ENOSPC);
		writes_left = -1;
		for (unsigned slot = 0; slot < GPUS; slot++)
			check_file(slot, NULL, NULL);
	}
}

/* Record 0 says which slot it is, as it does once the GPU has been seen again. */
static void name_slot(unsigned slot)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	unsigned records;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(lease_read(&file, raw, &records), 0);
	lease_name_slot(&file, file.gpu.slot);
	assert_int_equal(lease_write_gpu(&file, &file.gpu), 0);
	lease_release(&file);
}

static void damage(unsigned slot, unsigned at)
{
	struct lease_file file;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(pwrite(file.fd, "#", 1, (off_t)at * RECORD_SIZE + 9), 1);
	lease_release(&file);
}

static bool is_doubtful(unsigned slot)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	unsigned records;
	bool is;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_true(lease_read(&file, raw, &records) >= 0);
	is = file.is_doubtful;
	lease_release(&file);
	return is;
}

static void a_broken_lease_is_replaced_and_its_file_mended(void **state)
{
	struct lease lease = my_lease("0");

	(void)state;
	write_to(0, 1, &lease);
	write_to(0, 2, &lease);
	damage(0, 1);
	damage(0, 2);
	damage(0, 0);
	look(1000);
	assert_true(is_doubtful(0));
	assert_int_equal(commit("0", &lease), 0);
	check_file(0, lease.owner.token, NULL);
	assert_false(is_doubtful(0));
}

static void what_is_in_doubt_is_mended_once_nobody_is_unknown(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	damage(1, 2);
	damage(2, 4);
	look(1000);
	assert_false(commit_mend(&view));
	assert_true(is_doubtful(1) && is_doubtful(2));
	other_end(&other);
	look(2000);
	assert_true(commit_mend(&view));
	assert_false(is_doubtful(1) || is_doubtful(2));
	look(3000);
	assert_false(commit_mend(&view));
}

static void mending_puts_live_leases_back(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "02"), dead;
	struct owner gone = fixture_dead_owner(dir.fd, 0);

	(void)state;
	dead = lease_of(&gone, "02");
	for (unsigned slot = 0; slot < GPUS; slot++)
		name_slot(slot);
	write_everywhere(&lease);
	write_to(2, 3, &dead);
	damage(0, 2);
	look(1000);
	assert_true(commit_mend(&view));
	check_file(0, lease.owner.token, NULL);
	assert_false(is_doubtful(0));
	other_end(&other);
}

static void who_dies_while_mending_leaves_the_file_in_doubt(void **state)
{
	(void)state;
	for (int good = 0; good < 2; good++) {
		damage(0, 1);
		look(1000);
		writes_left = good; /* record 0, then the record */
		assert_false(commit_mend(&view));
		writes_left = -1;
		assert_true(is_doubtful(0));
	}
	look(2000);
	assert_true(commit_mend(&view));
	assert_false(is_doubtful(0));
}

/* --- beside others ------------------------------------------------------------------- */

static struct lease share_of(
	const struct owner *owner, const char *slots, uint32_t percent)
{
	struct lease lease = lease_of(owner, slots);

	lease.share_percent = percent;
	return lease;
}

static struct lease my_share(const char *slots, uint32_t percent)
{
	struct lease lease = my_lease(slots);

	lease.share_percent = percent;
	return lease;
}

/* A file as it is, to be compared with what becomes of it. */
struct image {
	char bytes[LEASE_FILE_BYTES];
};

static void take_image(unsigned slot, struct image *image)
{
	struct lease_file file;

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	assert_int_equal(pread(file.fd, image->bytes, sizeof(image->bytes), 0),
		sizeof(image->bytes));
	lease_release(&file);
}

/* Records @from to @to are the same, byte for byte. */
static void check_same(
	const struct image *a, const struct image *b, unsigned from, unsigned to)
{
	assert_memory_equal(a->bytes + (size_t)from * RECORD_SIZE,
		b->bytes + (size_t)from * RECORD_SIZE,
		(size_t)(to - from + 1) * RECORD_SIZE);
}

/* Whose lease record @at is; "": nobody's. */
static const char *token_at(const struct image *image, unsigned at)
{
	static struct lease lease;

	return lease_decode(image->bytes, at, &lease) == LEASE_RECORD ? lease.owner.token
								      : "";
}

/* The leases of one process that lives, under names of their own. */
static struct lease many_of(const struct owner *owner, const char *slots, unsigned number)
{
	struct lease lease = share_of(owner, slots, 1);

	(void)snprintf(lease.owner.token, sizeof(lease.owner.token), "%016x", number);
	lease.ticket = 100 + number;
	return lease;
}

static void who_shares_the_gpu_keeps_its_record_byte_for_byte(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct lease first = share_of(&one.owner, "0", 30),
		     third = share_of(&two.owner, "01", 40), mine = my_share("0", 20);
	static struct image before, after;

	(void)state;
	write_to(0, 1, &first);
	write_to(0, 3, &third);
	write_to(1, 1, &third);
	take_image(0, &before);
	look(1000);
	write_count = 0;
	assert_int_equal(commit("0", &mine), 0);
	assert_int_equal(write_count, 1);
	take_image(0, &after);
	check_same(&before, &after, 0, 1);
	assert_string_equal(token_at(&after, 2), mine.owner.token);
	check_same(&before, &after, 3, LEASES_PER_GPU);
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, one.owner.token));
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, two.owner.token));
	other_end(&one);
	other_end(&two);
}

static void of_the_dead_beside_the_living_all_go_and_the_first_is_used(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct owner gone = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease leases[] = { share_of(&one.owner, "0", 30), share_of(&dead, "0", 10),
		share_of(&gone, "0", 10), share_of(&two.owner, "0", 30) };
	struct lease mine = my_share("0", 20);
	static struct image before, after;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(leases); i++)
		write_to(0, i + 1, &leases[i]);
	take_image(0, &before);
	look(1000);
	assert_int_equal(commit("0", &mine), 0);
	take_image(0, &after);
	check_same(&before, &after, 1, 1);
	assert_string_equal(token_at(&after, 2), mine.owner.token);
	assert_string_equal(token_at(&after, 3), "");
	check_same(&before, &after, 4, LEASES_PER_GPU);
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, dead.token));
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, gone.token));
	assert_int_equal(read_history(), 2);
	other_end(&one);
	other_end(&two);
}

static void thirty_one_leases_are_the_most(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease mine = my_share("01", 1), over = share_of(&dead, "1", 1);
	static struct image before[2], after[2];

	(void)state;
	for (unsigned at = 1; at <= LEASES_PER_GPU; at++) {
		struct lease lease = many_of(&other.owner, "1", at);

		write_to(1, at, &lease);
	}
	for (unsigned slot = 0; slot < 2; slot++)
		take_image(slot, &before[slot]);
	look(1000);
	assert_int_equal(commit("01", &mine), -ENOSPC);
	for (unsigned slot = 0; slot < 2; slot++) {
		take_image(slot, &after[slot]);
		check_same(&before[slot], &after[slot], 0, LEASES_PER_GPU);
	}
	write_to(1, LEASES_PER_GPU, &over); /* the last of them has ended */
	assert_int_equal(commit("01", &mine), 0);
	take_image(1, &after[1]);
	check_same(&before[1], &after[1], 0, LEASES_PER_GPU - 1);
	assert_string_equal(token_at(&after[1], LEASES_PER_GPU), mine.owner.token);
	other_end(&other);
}

static void a_write_that_fails_takes_nobody_elses_record_back(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease theirs = share_of(&other.owner, "02", 30), mine = my_share("02", 20);
	static struct image before[GPUS], after[GPUS];

	(void)state;
	write_to(0, 1, &theirs);
	write_to(2, 2, &theirs);
	for (unsigned slot = 0; slot < GPUS; slot++)
		take_image(slot, &before[slot]);
	for (int good = 0; good < 2; good++) {
		look(1000);
		writes_left = good;
		assert_int_equal(commit("02", &mine), -ENOSPC);
		writes_left = -1;
		for (unsigned slot = 0; slot < GPUS; slot++) {
			take_image(slot, &after[slot]);
			check_same(&before[slot], &after[slot], 0, LEASES_PER_GPU);
		}
	}
	other_end(&other);
}

/* A lease of two GPUs can be read in the file of the other: it goes back before mine comes. */
static void a_lease_that_is_put_back_is_not_overwritten(void **state)
{
	struct other one = other_start(dir.fd, OTHER_LIVE);
	struct other two = other_start(dir.fd, OTHER_LIVE);
	struct lease lost = share_of(&one.owner, "02", 30),
		     other = share_of(&two.owner, "0", 30), mine = my_share("0", 20);
	static struct image image;

	(void)state;
	for (unsigned slot = 0; slot < GPUS; slot++)
		name_slot(slot);
	write_to(0, 1, &lost);
	write_to(2, 1, &lost);
	write_to(0, 2, &other);
	damage(0, 1);
	look(1000);
	assert_true(is_doubtful(0));
	assert_int_equal(commit("0", &mine), 0);
	take_image(0, &image);
	assert_string_equal(token_at(&image, 1), one.owner.token);
	assert_string_equal(token_at(&image, 2), two.owner.token);
	assert_string_equal(token_at(&image, 3), mine.owner.token);
	assert_string_equal(token_at(&image, 4), "");
	assert_false(is_doubtful(0));
	other_end(&one);
	other_end(&two);
}

static void probe(int64_t finished_ms, int64_t idle_0_ms, int64_t idle_1_ms);

/* Nvidia-smi saw the process there, with so much memory. */
static void probe_process(unsigned slot, pid_t pid, uint64_t mib)
{
	view.probe.processes[view.probe.process_count++] = (struct probe_process){
		.gpu = slot, .pid = pid, .used_mib = mib, .peak_mib = mib
	};
	view.probe.gpus[slot].used_mib += mib;
}

static uint64_t peak_at(unsigned slot, unsigned at)
{
	static struct image image;
	struct lease lease;

	take_image(slot, &image);
	assert_int_equal(lease_decode(image.bytes, at, &lease), LEASE_RECORD);
	return lease.peak_mib;
}

static void who_commits_beside_it_notes_a_higher_peak_and_no_lower_one(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease theirs = share_of(&other.owner, "0", 30), mine = my_share("0", 20);
	static struct image before, after;

	(void)state;
	theirs.peak_mib = 3000;
	write_to(0, 4, &theirs);
	look(1000);
	probe(1500, 0, 0);
	probe_process(0, other.pid, 3000);
	take_image(0, &before);
	assert_int_equal(commit("0", &mine), 0);
	take_image(0, &after);
	check_same(&before, &after, 4, 4);

	probe(1600, 0, 0);
	probe_process(0, other.pid, 3001);
	write_count = 0;
	write_to(0, 1, &theirs); /* its record stands twice: both learn it */
	write_count = 0;
	mine = my_share("0", 20);
	assert_int_equal(commit("0", &mine), 0);
	assert_int_equal(peak_at(0, 4), 3001);
	theirs.peak_mib = 3001;
	assert_int_equal(write_count, 3);
	write_count = 0;
	assert_int_equal(commit("0", &mine), 0);
	assert_int_equal(write_count, 1);
	other_end(&other);
}

/* --- history ------------------------------------------------------------------------ */

static void an_end_is_told_once_by_who_takes_the_lowest_gpu(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease old = lease_of(&other.owner, "12");
	struct lease one = my_lease("2"), two = my_lease("1"), three = my_lease("1");
	int64_t to_real_ms;

	(void)state;
	write_everywhere(&old);
	look(1000);
	look(1500); /* still alive */
	other_kill(&other);
	assert_int_equal(commit("2", &one), 0);
	assert_int_equal(read_history(), 0);
	assert_int_equal(commit("1", &two), 0);
	assert_int_equal(read_history(), 1);
	to_real_ms = clock_real_ms() - clock_boot_ms();
	assert_int_equal(ends[0].ticket, 7);
	assert_string_equal(ends[0].gpus, "5,6"); /* as people call them */
	assert_string_equal(ends[0].user, "alice");
	assert_string_equal(ends[0].command, "python train.py");
	assert_string_equal(ends[0].how, "");
	assert_int_equal(ends[0].uid, getuid());
	assert_in_range(ends[0].since_ms - to_real_ms + 100, 500, 700);
	assert_in_range(ends[0].alive_ms - to_real_ms + 100, 2000, 2200);
	assert_in_range(ends[0].gone_ms - to_real_ms + 100, 2000, 2200);
	/* the record is gone, so nobody tells it again */
	lives_release(&view.lives);
	two.owner.pid = 0;
	write_to(1, 1, &three);
	assert_int_equal(read_history(), 1);
}

static void a_lease_of_another_boot_ended_with_it(void **state)
{
	struct lease old = my_lease("0"), lease = my_lease("0");

	(void)state;
	text_copy(old.boot, sizeof(old.boot), "00000000000000000000000000000000");
	write_everywhere(&old);
	look(1000);
	assert_int_equal(commit("0", &lease), 0);
	assert_int_equal(read_history(), 1);
	assert_string_equal(ends[0].how, "reboot");
	assert_int_equal(ends[0].since_ms, 0);
	assert_int_equal(ends[0].alive_ms, 0);
	/* it is over by now: that much is known */
	assert_in_range(ends[0].gone_ms, clock_real_ms() - PATIENCE_MS, clock_real_ms());
}

static void who_was_there_tells_it_and_nobody_else(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease old = lease_of(&dead, "01"), lease = my_lease("01");

	(void)state;
	write_everywhere(&old);
	look(1000);
	ending_record(&view, dead.token, "limit", "root");
	assert_int_equal(read_history(), 1);
	assert_string_equal(ends[0].how, "limit");
	assert_string_equal(ends[0].by, "root");
	check_file(0, NULL, dead.token); /* it still marks the GPU as just released */
	ending_record(&view, dead.token, "limit", NULL);
	assert_int_equal(read_history(), 1);
	assert_int_equal(commit("01", &lease), 0);
	assert_int_equal(read_history(), 1);
	ending_record(&view, dead.token, "limit", NULL);
	ending_record(&view, "0123456789abcdef", "limit", NULL);
	assert_int_equal(read_history(), 1);
}

static void what_is_not_over_has_no_end(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease old = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&old);
	look(1000);
	ending_record(&view, other.owner.token, "limit", NULL);
	other_kill(&other);
	look(1000);
	ending_record(&view, other.owner.token, "limit", NULL);
	assert_int_equal(read_history(), 0);
	other_end(&other);
}

/* --- lingering ---------------------------------------------------------------------- */

/* What nvidia-smi said at @finished_ms: idle since then, by GPU; 0: not idle. */
static void probe(int64_t finished_ms, int64_t idle_0_ms, int64_t idle_1_ms)
{
	int64_t idle_ms[] = { idle_0_ms, idle_1_ms, finished_ms };

	probe_begin(&view.probe, finished_ms - 10, finished_ms);
	for (unsigned i = 0; i < GPUS; i++) {
		struct probe_gpu *gpu = &view.probe.gpus[view.probe.gpu_count++];

		*gpu = (struct probe_gpu){
			.index = (int)i + 4, .is_known = true, .idle_since_ms = idle_ms[i]
		};
		text_copy(gpu->uuid, sizeof(gpu->uuid), uuids[i]);
	}
	view.has_probe = true;
}

/* Whether a look at @now_ms ends the lease that lingers since @since_ms. */
static bool is_ended_at(int64_t now_ms)
{
	look(now_ms);
	return commit_end_lingering(&view);
}

static void a_minute_of_idleness_ends_what_lingers(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease lease = lease_of(&other.owner, "01");

	(void)state;
	write_everywhere(&lease);
	other_kill(&other);
	look(DEAD);
	assert_false(commit_end_lingering(&view)); /* no probe at all */
	probe(DEAD + MINUTE - 1, DEAD, DEAD);
	assert_false(is_ended_at(DEAD + MINUTE));
	probe(DEAD + 2 * MINUTE, DEAD, 0); /* one of its GPUs is in use */
	assert_false(is_ended_at(DEAD + 2 * MINUTE));
	probe(DEAD + 2 * MINUTE, DEAD, DEAD + MINUTE + 1);
	assert_false(is_ended_at(DEAD + 2 * MINUTE));
	assert_int_equal(view.gpus[0].state, GPU_LINGERING);
	probe(DEAD + 3 * MINUTE, 1, DEAD + MINUTE);
	assert_true(is_ended_at(DEAD + 3 * MINUTE));
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, other.owner.token));
	/* final, for everybody, although the heir lives */
	look(DEAD + 3 * MINUTE);
	assert_true(fixture_find_ticket(&view, 7)->is_over);
	assert_false(commit_end_lingering(&view));
	assert_int_equal(kill(other.heir, 0), 0);
	assert_int_equal(read_history(), 1);
	assert_string_equal(ends[0].how, "lingered");
	other_end(&other);
}

static void the_linger_time_can_be_another(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	view.usage.linger_ms = 5000;
	write_everywhere(&lease);
	other_kill(&other);
	look(DEAD);
	probe(DEAD + 4999, DEAD, DEAD);
	assert_false(is_ended_at(DEAD + 4999));
	probe(DEAD + 5000, DEAD, DEAD);
	assert_true(is_ended_at(DEAD + 5000));
	other_end(&other);
}

/* Another works on the GPU all the time; what nobody sees is the process that was left. */
static void beside_others_it_is_enough_not_to_be_seen(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct other busy = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = share_of(&other.owner, "0", 30),
		     theirs = share_of(&busy.owner, "0", 30);

	(void)state;
	view.usage.linger_ms = 20000;
	write_to(0, 1, &lease);
	write_to(0, 2, &theirs);
	other_kill(&other);
	look(DEAD);
	for (int64_t now_ms = DEAD; now_ms < DEAD + 60000; now_ms += 10000) {
		probe(now_ms, 0, 0);
		probe_process(0, busy.pid, 5000);
		assert_int_equal(is_ended_at(now_ms), now_ms >= DEAD + 20000);
		if (now_ms >= DEAD + 20000)
			break;
	}
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, other.owner.token));
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, busy.owner.token));
	other_end(&other);
	other_end(&busy);
}

static void who_is_seen_beside_others_lingers_on(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct other busy = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = share_of(&other.owner, "01", 30),
		     theirs = share_of(&busy.owner, "0", 30);
	struct rlimit tag = { .rlim_cur = kin_tag(other.owner.token),
		.rlim_max = RLIM_INFINITY };

	(void)state;
	view.usage.linger_ms = 20000;
	write_everywhere(&lease);
	write_to(0, 1, &theirs);
	other_kill(&other);
	assert_int_equal(prlimit(other.heir, RLIMIT_LOCKS, &tag, NULL), 0);
	for (int64_t now_ms = DEAD; now_ms <= DEAD + 60000; now_ms += 10000) {
		probe(now_ms, 0, 0);
		probe_process(0, busy.pid, 5000);
		/* it still has a little of the second GPU, now and then */
		if ((now_ms - DEAD) % 20000 == 0)
			probe_process(1, other.heir, 100);
		assert_false(is_ended_at(now_ms));
	}
	other_end(&other);
	other_end(&busy);
}

static void idleness_before_its_death_does_not_count(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&lease);
	look(DEAD - MINUTE);
	other_kill(&other);
	probe(DEAD + MINUTE - 1, 1, 1);
	look(DEAD);
	assert_false(is_ended_at(DEAD + MINUTE - 1));
	probe(DEAD + MINUTE, 1, 1);
	assert_true(is_ended_at(DEAD + MINUTE));
	other_end(&other);
}

static void who_lives_does_not_linger_however_idle(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&lease);
	look(1000);
	probe(100 * MINUTE, 1, 1);
	assert_false(is_ended_at(100 * MINUTE));
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, other.owner.token));
	other_end(&other);
}

static void a_set_with_slots_that_nobody_has_does_no_harm(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease lease = lease_of(&other.owner, "0"), mine = my_lease("0");

	(void)state;
	gpuset_add(&lease.gpus, 5);
	gpuset_add(&lease.gpus, 127);
	write_to(0, 2, &lease);
	other_kill(&other);
	look(1000);
	probe(100 * MINUTE, 1000, 1000);
	(void)is_ended_at(100 * MINUTE);
	other_end(&other);
	look(101 * MINUTE);
	assert_int_equal(commit("0", &mine), 0);
	assert_int_equal(read_history(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(locks_are_taken_in_the_order_of_the_uuids),
		TEST(who_does_not_get_all_locks_keeps_none),
		TEST(all_that_are_locked_are_found_in_one_go),
		TEST(a_file_replaced_under_the_lock_is_not_locked_any_more),
		TEST(a_lease_is_written_into_every_file),
		TEST(what_is_over_is_removed_and_its_fifo_too),
		TEST(a_write_that_fails_leaves_no_record_of_the_lease),
		TEST(a_broken_lease_is_replaced_and_its_file_mended),
		TEST(what_is_in_doubt_is_mended_once_nobody_is_unknown),
		TEST(mending_puts_live_leases_back),
		TEST(who_dies_while_mending_leaves_the_file_in_doubt),
		TEST(who_shares_the_gpu_keeps_its_record_byte_for_byte),
		TEST(of_the_dead_beside_the_living_all_go_and_the_first_is_used),
		TEST(thirty_one_leases_are_the_most),
		TEST(a_write_that_fails_takes_nobody_elses_record_back),
		TEST(a_lease_that_is_put_back_is_not_overwritten),
		TEST(who_commits_beside_it_notes_a_higher_peak_and_no_lower_one),
		TEST(an_end_is_told_once_by_who_takes_the_lowest_gpu),
		TEST(a_lease_of_another_boot_ended_with_it),
		TEST(who_was_there_tells_it_and_nobody_else),
		TEST(what_is_not_over_has_no_end),
		TEST(a_minute_of_idleness_ends_what_lingers),
		TEST(the_linger_time_can_be_another),
		TEST(beside_others_it_is_enough_not_to_be_seen),
		TEST(who_is_seen_beside_others_lingers_on),
		TEST(idleness_before_its_death_does_not_count),
		TEST(who_lives_does_not_linger_however_idle),
		TEST(a_set_with_slots_that_nobody_has_does_no_harm),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(ends);
	return failed;
}
