#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "clock.h"
#include "commit.h"
#include "end_record.h"
#include "fixture.h"
#include "history.h"
#include "process_lease.h"

enum { GPUS = 3, MINUTE = 60000 };

/* Slot numbers and the order of uuids are not the same. */
static const char *const uuids[GPUS] = { "GPU-c", "GPU-a", "GPU-b" };

static struct statedir dir;
static struct snapshot view;

/* --- what is locked in which order, and a disk that is full ------------------------- */

static ino_t locked[16];
static unsigned lock_count;
static int writes_left;      /* how many writes succeed; -1: all */
static unsigned write_count; /* of writes that were not only zeros */
static bool is_disk_bad;     /* record 0 never reads as it was written */

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

	/* a full disk still lets zeros be written, because these blocks exist */
	if (writes_left == 0 && !is_void) {
		errno = ENOSPC;
		return -1;
	}
	if (!is_void) {
		writes_left -= writes_left > 0;
		write_count++;
	}
	if (is_disk_bad && offset == 0 && size == RECORD_SIZE) {
		char spoiled[RECORD_SIZE];

		memcpy(spoiled, in, size);
		spoiled[9] = '#';
		return __real_pwrite(fd, spoiled, size, offset);
	}
	return __real_pwrite(fd, in, size, offset);
}

/* --- a state directory with three GPUs ---------------------------------------------- */

static int set_up(struct scratch *here)
{
	int r = 0;

	(void)here;
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

static void tear_down(void)
{
	writes_left = -1;
}

static struct fixture fixture = {
	.dir = &dir, .view = &view, .set_up = set_up, .tear_down = tear_down
};

#define TEST(f) FIXTURE_TEST(f, fixture)

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

/* Checks the tokens in the file of @slot; NULL: no record. */
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

static void without_all_locks_none_is_kept(void **state)
{
	struct gpuset set = fixture_set("012"), others = fixture_set("02");
	int64_t before_ms = clock_boot_ms(), after_ms;
	int reader = openat(dir.fd, "gpu/GPU-a.lease", O_RDONLY | O_CLOEXEC);

	(void)state;
	look(1000);
	/* for a flock it is enough to be able to read the file */
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
	/* the other files can be locked meanwhile */
	assert_int_equal(commit_lock(&view, &others), 0);
	commit_unlock(&view);
	(void)close(reader);
	assert_int_equal(commit_lock(&view, &set), 0);
	commit_unlock(&view);
}

static void one_try_finds_all_locked_files(void **state)
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

static void a_limit_is_written_if_no_other_process_has_changed_it(void **state)
{
	struct gpuset set = fixture_set("02");
	struct lease lease = my_lease("02");
	const char *token = lease.owner.token;

	(void)state;
	lease.limit_ms = 1000;
	look(1000);
	assert_int_equal(commit("02", &lease), 0);
	assert_int_equal(commit_note_limit(&view, token, &set, 1000, 3000), 0);
	look(1000);
	assert_int_equal(snapshot_find_token(&view, token)->lease.limit_ms, 3000);
	assert_int_equal(
		commit_note_limit(&view, token, &set, 1000, 4000), COMMIT_LOCKED);
	assert_int_equal(commit_note_limit(&view, token, &set, 3000, 5000), 0);
	look(1000);
	assert_int_equal(snapshot_find_token(&view, token)->lease.limit_ms, 5000);
}

static void a_lease_that_is_over_is_removed_with_its_fifo(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct owner half = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease old = lease_of(&dead, "01"), torn = lease_of(&half, "02"),
		     lease = my_lease("0");

	(void)state;
	write_everywhere(&old);
	write_to(0, 1, &torn); /* killed while it was writing */
	look(1000);
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
	assert_int_equal(commit("0", &lease), 0);
	check_file(0, lease.owner.token, NULL);
	check_file(1, NULL,
		dead.token); /* GPU 1 is not in the set: its file is left alone */
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, half.token));
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

/* Writes the slot into record 0, as a probe that shows the GPU does. */
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

static void a_file_that_cannot_be_mended_gets_no_lease(void **state)
{
	struct lease lease = my_lease("0");

	(void)state;
	damage(0, 0);
	look(1000);
	is_disk_bad = true;
	assert_true(commit("0", &lease) < 0);
	is_disk_bad = false;
	assert_true(is_doubtful(0));
}

static void a_doubtful_file_is_mended_once_no_job_is_unknown(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "1");

	(void)state;
	write_everywhere(&lease);
	damage(1, 2);
	damage(2, 4);
	look(1000);
	assert_int_equal(commit_mend(&view), 0);
	assert_true(is_doubtful(1) && is_doubtful(2));
	other_end(&other);
	look(2000);
	assert_int_equal(commit_mend(&view), COMMIT_MENDED);
	assert_false(is_doubtful(1) || is_doubtful(2));
	look(3000);
	assert_int_equal(commit_mend(&view), 0);
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
	assert_int_equal(commit_mend(&view), COMMIT_MENDED);
	check_file(0, lease.owner.token, NULL);
	assert_false(is_doubtful(0));
	other_end(&other);
}

static void a_death_while_mending_leaves_the_file_doubtful(void **state)
{
	(void)state;
	for (int good = 0; good < 2; good++) {
		damage(0, 1);
		look(1000);
		writes_left = good; /* record 0, then the record */
		assert_int_equal(commit_mend(&view), COMMIT_READ);
		writes_left = -1;
		assert_true(is_doubtful(0));
	}
	look(2000);
	assert_int_equal(commit_mend(&view), COMMIT_MENDED);
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

/* A copy of a file, to be compared with the file later. */
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

/* Checks that records @from to @to are the same, byte for byte. */
static void check_same(
	const struct image *a, const struct image *b, unsigned from, unsigned to)
{
	assert_memory_equal(a->bytes + (size_t)from * RECORD_SIZE,
		b->bytes + (size_t)from * RECORD_SIZE,
		(size_t)(to - from + 1) * RECORD_SIZE);
}

/* The token of the lease in record @at; "": there is none. */
static const char *token_at(const struct image *image, unsigned at)
{
	static struct lease lease;

	return lease_decode(image->bytes, at, &lease) == LEASE_RECORD ? lease.owner.token
								      : "";
}

/* Leases of one live process, each with a token of its own. */
static struct lease many_of(const struct owner *owner, const char *slots, unsigned number)
{
	struct lease lease = share_of(owner, slots, 1);

	(void)snprintf(lease.owner.token, sizeof(lease.owner.token), "%016x", number);
	lease.ticket = 100 + number;
	return lease;
}

static void a_sharer_keeps_its_record_byte_for_byte(void **state)
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
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, one.owner.token));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, two.owner.token));
	other_end(&one);
	other_end(&two);
}

static void all_dead_leases_go_and_the_first_record_is_used(void **state)
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
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, dead.token));
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, gone.token));
	assert_int_equal(read_history(), 2);
	other_end(&one);
	other_end(&two);
}

static void a_gpu_has_at_most_thirty_one_leases(void **state)
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

static void a_write_that_fails_removes_no_other_lease(void **state)
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

/* A lost lease is known from the file of its other GPU: it is written back before the new one. */
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

/* As if nvidia-smi had shown the process there, with so much memory. */
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

static void a_sharer_notes_a_higher_peak_and_no_lower_one(void **state)
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
	write_to(0, 1, &theirs); /* it has two records here: both get the peak */
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

static void the_end_is_recorded_once_by_the_taker_of_the_lowest_gpu(void **state)
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
	assert_string_equal(ends[0].gpus, "5,6"); /* as nvidia-smi numbers them */
	assert_string_equal(ends[0].user, "alice");
	assert_string_equal(ends[0].command, "python train.py");
	assert_string_equal(ends[0].how, "");
	assert_int_equal(ends[0].uid, getuid());
	assert_in_range(ends[0].since_ms - to_real_ms + 100, 500, 700);
	assert_in_range(ends[0].alive_ms - to_real_ms + 100, 2000, 2200);
	assert_in_range(ends[0].gone_ms - to_real_ms + 100, 2000, 2200);
	/* the record is gone, so no process records the end again */
	liveness_set_release(&view.lives);
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
	/* all that is known is that it is over by now */
	assert_in_range(ends[0].gone_ms, clock_real_ms() - PATIENCE_MS, clock_real_ms());
}

static void only_the_process_that_saw_the_end_records_it(void **state)
{
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	struct lease old = lease_of(&dead, "01"), lease = my_lease("01");

	(void)state;
	write_everywhere(&old);
	look(1000);
	end_record_write(&view, dead.token, "limit", "root");
	assert_int_equal(read_history(), 1);
	assert_string_equal(ends[0].how, "limit");
	assert_string_equal(ends[0].by, "root");
	check_file(0, NULL, dead.token); /* it still marks the GPU as just released */
	end_record_write(&view, dead.token, "limit", NULL);
	assert_int_equal(read_history(), 1);
	assert_int_equal(commit("01", &lease), 0);
	assert_int_equal(read_history(), 1);
	end_record_write(&view, dead.token, "limit", NULL);
	end_record_write(&view, "0123456789abcdef", "limit", NULL);
	assert_int_equal(read_history(), 1);
}

static void a_lease_that_is_not_over_has_no_end(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct lease old = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&old);
	look(1000);
	end_record_write(&view, other.owner.token, "limit", NULL);
	other_kill(&other);
	look(1000);
	end_record_write(&view, other.owner.token, "limit", NULL);
	assert_int_equal(read_history(), 0);
	other_end(&other);
}

/* --- lingering ---------------------------------------------------------------------- */

/* A probe that finished at @finished_ms, and since when each GPU is idle; 0: it is not. */
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

/* Whether a reading at @now_ms ends the lease that lingers since @since_ms. */
static bool is_ended_at(int64_t now_ms)
{
	look(now_ms);
	return commit_end_lingering(&view);
}

static void a_minute_of_idleness_ends_a_lingering_lease(void **state)
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
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	/* it is over for all processes, although the heir lives */
	look(DEAD + 3 * MINUTE);
	assert_true(fixture_find_ticket(&view, 7)->is_over);
	assert_false(commit_end_lingering(&view));
	assert_int_equal(kill(other.heir, 0), 0);
	assert_int_equal(read_history(), 1);
	assert_string_equal(ends[0].how, "lingered");
	other_end(&other);
}

static void the_linger_time_can_be_configured(void **state)
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

/* Another lease uses the GPU all the time; only the left process is not seen there. */
static void on_a_shared_gpu_it_is_enough_not_to_be_seen(void **state)
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
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, busy.owner.token));
	other_end(&other);
	other_end(&busy);
}

static void on_a_shared_gpu_a_seen_process_keeps_the_lease(void **state)
{
	enum { DEAD = 100000 };
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	struct other busy = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = share_of(&other.owner, "01", 30),
		     theirs = share_of(&busy.owner, "0", 30);
	struct rlimit tag = { .rlim_cur = process_lease_tag(other.owner.token),
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
		/* now and then it still has some memory of the second GPU */
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

static void a_live_lease_does_not_linger_however_idle(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);
	struct lease lease = lease_of(&other.owner, "0");

	(void)state;
	write_everywhere(&lease);
	look(1000);
	probe(100 * MINUTE, 1, 1);
	assert_false(is_ended_at(100 * MINUTE));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, other.owner.token));
	other_end(&other);
}

static void a_set_with_unknown_slots_does_no_harm(void **state)
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
		TEST(without_all_locks_none_is_kept),
		TEST(one_try_finds_all_locked_files),
		TEST(a_file_replaced_under_the_lock_is_not_locked_any_more),
		TEST(a_lease_is_written_into_every_file),
		TEST(a_limit_is_written_if_no_other_process_has_changed_it),
		TEST(a_lease_that_is_over_is_removed_with_its_fifo),
		TEST(a_write_that_fails_leaves_no_record_of_the_lease),
		TEST(a_broken_lease_is_replaced_and_its_file_mended),
		TEST(a_file_that_cannot_be_mended_gets_no_lease),
		TEST(a_doubtful_file_is_mended_once_no_job_is_unknown),
		TEST(mending_puts_live_leases_back),
		TEST(a_death_while_mending_leaves_the_file_doubtful),
		TEST(a_sharer_keeps_its_record_byte_for_byte),
		TEST(all_dead_leases_go_and_the_first_record_is_used),
		TEST(a_gpu_has_at_most_thirty_one_leases),
		TEST(a_write_that_fails_removes_no_other_lease),
		TEST(a_lease_that_is_put_back_is_not_overwritten),
		TEST(a_sharer_notes_a_higher_peak_and_no_lower_one),
		TEST(the_end_is_recorded_once_by_the_taker_of_the_lowest_gpu),
		TEST(a_lease_of_another_boot_ended_with_it),
		TEST(only_the_process_that_saw_the_end_records_it),
		TEST(a_lease_that_is_not_over_has_no_end),
		TEST(a_minute_of_idleness_ends_a_lingering_lease),
		TEST(the_linger_time_can_be_configured),
		TEST(on_a_shared_gpu_it_is_enough_not_to_be_seen),
		TEST(on_a_shared_gpu_a_seen_process_keeps_the_lease),
		TEST(idleness_before_its_death_does_not_count),
		TEST(a_live_lease_does_not_linger_however_idle),
		TEST(a_set_with_unknown_slots_does_no_harm),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(ends);
	return failed;
}
