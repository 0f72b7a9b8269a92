#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>

#include "clock.h"
#include "fixture.h"
#include "lease.h"

static unsigned torn_reads; /* so many reads see a half-copied lease */

ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset)
{
	ssize_t n = __real_pread(fd, out, size, offset);

	if (torn_reads && n >= 2 * RECORD_SIZE) {
		torn_reads--;
		memset((char *)out + RECORD_SIZE + 100, '#', 50);
	}
	return n;
}

static struct statedir dir;

static int set_up(struct scratch *here)
{
	(void)here;
	torn_reads = 0;
	return 0;
}

static struct fixture fixture = { .dir = &dir, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

static struct gpu_record make_gpu(const char *uuid)
{
	struct gpu_record gpu = { .index = 3, .total_mib = 24576 };

	text_copy(gpu.uuid, sizeof(gpu.uuid), uuid);
	text_copy(gpu.bus_id, sizeof(gpu.bus_id), "0000:0a:00.0");
	text_copy(gpu.model, sizeof(gpu.model), "NVIDIA GeForce RTX 4090");
	text_copy(gpu.boot, sizeof(gpu.boot), dir.boot);
	return gpu;
}

static uint32_t add_gpu(const char *uuid)
{
	struct gpu_record gpu = make_gpu(uuid);
	uint32_t slot = 4711;

	assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), 0);
	return slot;
}

static struct lease_file open_slot(uint32_t slot)
{
	struct lease_file file = { .fd = -1 };

	assert_int_equal(lease_open_slot(&dir, slot, &file), 0);
	return file;
}

/* Adds a GPU to a directory that has none, and opens its file. */
static struct lease_file add_first(void)
{
	assert_int_equal(add_gpu("GPU-aa"), 0);
	return open_slot(0);
}

static unsigned read_file(struct lease_file *file, char raw[LEASE_FILE_BYTES])
{
	unsigned records = 4711;

	assert_int_equal(lease_read(file, raw, &records), 0);
	return records;
}

static struct lease make_lease(uint64_t ticket)
{
	struct lease lease = { .ticket = ticket, .since_ms = 17 };

	assert_int_equal(owner_self(&lease.owner), 0);
	text_copy(lease.boot, sizeof(lease.boot), dir.boot);
	gpuset_add(&lease.gpus, 0);
	gpuset_add(&lease.gpus, 127);
	text_copy(lease.user, sizeof(lease.user), "alice");
	text_copy(lease.command, sizeof(lease.command), "python train.py");
	return lease;
}

/* --- slots and names ---------------------------------------------------------------- */

static void a_gpu_gets_one_file_and_one_slot(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;

	(void)state;
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_int_equal(add_gpu("GPU-bb"), 1);
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_true(fixture_exists(dir.fd, "gpu", "GPU-aa.lease"));
	file = open_slot(1);
	assert_int_equal(read_file(&file, raw), LEASES_PER_GPU); /* written already */
	assert_false(file.is_doubtful);
	assert_string_equal(file.gpu.uuid, "GPU-bb");
	assert_int_equal(file.gpu.index, 3);
	assert_int_equal(file.gpu.total_mib, 24576);
	assert_string_equal(file.gpu.model, "NVIDIA GeForce RTX 4090");
	assert_int_equal(file.slot, 1);
	for (unsigned at = 1; at <= LEASES_PER_GPU; at++) {
		struct lease lease;

		assert_int_equal(lease_decode(raw, at, &lease), LEASE_NONE);
	}
	lease_release(&file);
	lease_release(&file);
	assert_int_equal(lease_open_slot(&dir, 2, &file), LEASE_NO_SLOT);
}

static void a_slash_in_a_uuid_stays_in_the_folder(void **state)
{
	struct lease_file file;
	static char raw[LEASE_FILE_BYTES];

	(void)state;
	assert_int_equal(add_gpu("MIG-GPU-aa/1/0"), 0);
	assert_int_equal(add_gpu("../../escape"), 1);
	assert_true(fixture_exists(dir.fd, "gpu", "MIG-GPU-aa%2F1%2F0.lease"));
	assert_true(fixture_exists(dir.fd, "gpu", "%2E%2E%2F%2E%2E%2Fescape.lease"));
	file = open_slot(0);
	(void)read_file(&file, raw);
	assert_string_equal(file.gpu.uuid, "MIG-GPU-aa/1/0");
	assert_true(lease_file_is_current(&dir, &file));
	lease_release(&file);
}

static void a_gpu_half_added_by_a_crashed_process_is_completed(void **state)
{
	struct lease_file file;
	static char raw[LEASE_FILE_BYTES];

	(void)state;
	/* killed between the file and its slot; a temporary file of a dead process */
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.0", 0), 0);
	(void)snprintf(raw, sizeof(raw), "gpu/tmp.0123456789abcdef");
	assert_int_equal(scratch_write(*state, raw, "half"), 0);
	assert_int_equal(add_gpu("GPU-bb"), 0);
	assert_int_equal(add_gpu("GPU-aa"), 1);
	file = open_slot(1);
	(void)read_file(&file, raw);
	assert_string_equal(file.gpu.uuid, "GPU-aa");
	lease_release(&file);
}

static void a_slot_that_leads_elsewhere_is_refused(void **state)
{
	static const char *const targets[] = { "../tickets", "/etc/passwd", ".hidden",
		".." };
	struct lease_file file;

	assert_int_equal(scratch_write(*state, "tickets", "x"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		assert_int_equal(symlinkat(targets[i], dir.fd, "gpu/slot.0"), 0);
		assert_true(lease_open_slot(&dir, 0, &file) < 0);
		assert_int_equal(unlinkat(dir.fd, "gpu/slot.0", 0), 0);
	}
	/* not a link, a link to a link, to a FIFO, to nothing */
	assert_int_equal(scratch_write(*state, "gpu/slot.0", ""), 0);
	assert_true(lease_open_slot(&dir, 0, &file) < 0);
	assert_int_equal(symlinkat("a.lease", dir.fd, "gpu/slot.1"), 0);
	assert_int_equal(symlinkat("slot.0", dir.fd, "gpu/a.lease"), 0);
	assert_int_equal(lease_open_slot(&dir, 1, &file), -ELOOP);
	assert_int_equal(unlinkat(dir.fd, "gpu/a.lease", 0), 0);
	assert_int_equal(lease_open_slot(&dir, 1, &file), -ENOENT);
	assert_int_equal(mkfifoat(dir.fd, "gpu/a.lease", 0600), 0);
	assert_int_equal(lease_open_slot(&dir, 1, &file), -EINVAL);
}

static void the_129th_gpu_has_no_slot(void **state)
{
	struct gpu_record gpu;
	uint32_t slot;
	char uuid[16];

	(void)state;
	for (unsigned i = 0; i < GPUSET_MAX; i++) {
		(void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
		assert_int_equal(add_gpu(uuid), i);
	}
	gpu = make_gpu("GPU-more");
	assert_int_equal(lease_add_gpu(&dir, &gpu, &slot), LEASE_NO_SLOT);
	assert_int_equal(add_gpu("GPU-77"), 77);
}

static void two_processes_give_a_gpu_the_same_slot(void **state)
{
	enum { MAKERS = 8, GPUS = 12 };
	struct lease_file file;
	pid_t pids[MAKERS];
	unsigned slots = 0;

	(void)state;
	for (unsigned i = 0; i < MAKERS; i++) {
		pids[i] = fork();
		for (unsigned k = 0; pids[i] == 0 && k < GPUS; k++) {
			struct gpu_record gpu = { .index = k };
			uint32_t slot;

			(void)snprintf(
				gpu.uuid, sizeof(gpu.uuid), "GPU-%u", (k + i) % GPUS);
			if (lease_add_gpu(&dir, &gpu, &slot) < 0)
				_exit(1);
		}
		if (pids[i] == 0)
			_exit(0);
	}
	for (unsigned i = 0; i < MAKERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	while (lease_open_slot(&dir, slots, &file) == 0) {
		static char raw[LEASE_FILE_BYTES];

		(void)read_file(&file, raw); /* each is complete */
		assert_int_equal(add_gpu(file.gpu.uuid), slots);
		lease_release(&file);
		slots++;
	}
	assert_int_equal(slots, GPUS);
}

static void a_deleted_or_replaced_file_is_noticed(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;

	(void)state;
	file = add_first();
	(void)read_file(&file, raw);
	assert_true(lease_file_is_current(&dir, &file));
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-aa.lease", 0), 0);
	assert_false(lease_file_is_current(&dir, &file));
	assert_int_equal(add_gpu("GPU-aa"), 0); /* made again, in its slot */
	assert_false(lease_file_is_current(&dir, &file));
	lease_release(&file);
}

static void the_file_is_shared_whatever_the_umask(void **state)
{
	mode_t old = umask(077);
	struct stat st;

	(void)state;
	assert_int_equal(add_gpu("GPU-aa"), 0);
	(void)umask(old);
	assert_int_equal(fstatat(dir.fd, "gpu/GPU-aa.lease", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

/* --- the lock ----------------------------------------------------------------------- */

static void a_lock_is_taken_once(void **state)
{
	struct lease_file one, two;

	(void)state;
	one = add_first();
	two = open_slot(0);
	assert_false(one.is_locked);
	assert_int_equal(lease_lock(&one, 0), 0);
	assert_true(one.is_locked);
	assert_int_equal(lease_lock(&two, 0), LEASE_LOCKED);
	assert_false(two.is_locked);
	assert_int_equal(lease_lock(&two, clock_boot_ms() + 5), LEASE_LOCKED);
	lease_unlock(&two); /* which it has not */
	assert_int_equal(lease_lock(&two, 0), LEASE_LOCKED);
	assert_int_equal(lease_lock_holder(&two), getpid());
	lease_unlock(&one);
	assert_int_equal(lease_lock_holder(&two), 0);
	assert_int_equal(lease_lock(&two, 0), 0);
	lease_release(&two); /* also gives it back */
	assert_int_equal(lease_lock(&one, 0), 0);
	lease_release(&one);
}

static void a_lock_falls_with_its_holder(void **state)
{
	struct lease_file file;
	int ends[2];
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct lease_file theirs = { .fd = -1 };

		if (lease_open_slot(&dir, 0, &theirs) == 0 && lease_lock(&theirs, 0) == 0)
			(void)!write(ends[1], "!", 1);
		fixture_rest();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	file = open_slot(0);
	assert_int_equal(lease_lock(&file, 0), LEASE_LOCKED);
	assert_int_equal(lease_lock_holder(&file), pid);
	fixture_kill(&pid);
	assert_int_equal(lease_lock(&file, 0), 0);
	lease_release(&file);
}

static void a_reader_with_a_shared_lock_withholds_it(void **state)
{
	struct lease_file file;
	int reader;

	(void)state;
	file = add_first();
	reader = openat(dir.fd, "gpu/GPU-aa.lease", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(reader, LOCK_SH), 0);
	assert_int_equal(
		lease_lock(&file, 0), LEASE_LOCKED); /* and does not wait for ever */
	(void)close(reader);
	assert_int_equal(lease_lock(&file, 0), 0);
	lease_release(&file);
}

/* --- records ------------------------------------------------------------------------ */

static void a_lease_comes_back_as_it_was_written(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease lease = make_lease(5), seen;
	struct lease_file file;

	(void)state;
	file = add_first();
	lease.limit_ms = 3600000;
	lease.grace_ms = 10000;
	lease.vram_mib = 9000;
	lease.share_percent = 50;
	lease.is_recorded = 1;
	assert_int_equal(lease_write(&file, 1, &lease), 0);
	assert_int_equal(lease_write(&file, LEASES_PER_GPU, &lease), 0);
	assert_int_equal(read_file(&file, raw), LEASES_PER_GPU);
	assert_int_equal(lease_decode(raw, 2, &seen), LEASE_NONE);
	for (unsigned at = 1; at <= LEASES_PER_GPU; at += LEASES_PER_GPU - 1) {
		memset(&seen, 0xff, sizeof(seen));
		assert_int_equal(lease_decode(raw, at, &seen), LEASE_RECORD);
		assert_int_equal(seen.ticket, 5);
		assert_same_owner(&seen.owner, &lease.owner);
		assert_true(gpuset_equals(&seen.gpus, &lease.gpus));
		assert_string_equal(seen.boot, dir.boot);
		assert_string_equal(seen.user, "alice");
		assert_string_equal(seen.command, "python train.py");
		assert_int_equal(seen.limit_ms, 3600000);
		assert_int_equal(seen.grace_ms, 10000);
		assert_int_equal(seen.vram_mib, 9000);
		assert_int_equal(seen.share_percent, 50);
		assert_int_equal(seen.is_recorded, 1);
		assert_int_equal(seen.since_ms, 17);
	}
	assert_int_equal(lease_clear(&file, 1), 0);
	assert_int_equal(read_file(&file, raw), LEASES_PER_GPU);
	assert_int_equal(lease_decode(raw, 1, &seen), LEASE_NONE);
	lease_release(&file);
}

static void record_0_is_the_gpu_and_keeps_unknown_fields(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;
	struct gpu_record gpu;

	(void)state;
	file = add_first();
	(void)read_file(&file, raw);
	gpu = file.gpu;
	gpu.is_paused = 1;
	text_copy(gpu.paused_by, sizeof(gpu.paused_by), "root");
	text_copy(gpu.reason, sizeof(gpu.reason), "fan broken: see 100% load");
	text_copy(gpu.extra, sizeof(gpu.extra), "rack=7 shape=round");
	assert_int_equal(lease_write_gpu(&file, &gpu), 0);
	memset(&file.gpu, 0, sizeof(file.gpu));
	text_copy(file.gpu.uuid, sizeof(file.gpu.uuid), "GPU-aa");
	(void)read_file(&file, raw);
	assert_int_equal(file.gpu.is_paused, 1);
	assert_string_equal(file.gpu.paused_by, "root");
	assert_string_equal(file.gpu.reason, "fan broken: see 100% load");
	assert_string_equal(file.gpu.uuid, "GPU-aa");
	assert_string_equal(file.gpu.extra, "rack=7 shape=round");
	lease_release(&file);
}

static void a_lease_half_copied_is_read_again(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease lease = make_lease(5), seen;
	struct lease_file file;

	(void)state;
	file = add_first();
	assert_int_equal(lease_write(&file, 1, &lease), 0);
	for (unsigned torn = 1; torn <= 3; torn++) {
		torn_reads = torn;
		(void)read_file(&file, raw);
		assert_int_equal(torn_reads, 0);
		assert_int_equal(lease_decode(raw, 1, &seen), LEASE_RECORD);
	}
	torn_reads = 1000;
	(void)read_file(&file, raw); /* the others and the GPU are still good */
	assert_int_equal(lease_decode(raw, 1, &seen), LEASE_BROKEN);
	lease_release(&file);
}

static void a_broken_gpu_record_is_trouble_and_a_broken_lease_is_skipped(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease lease = make_lease(5), seen;
	struct lease_file file;
	unsigned records;

	(void)state;
	file = add_first();
	assert_int_equal(lease_write(&file, 1, &lease), 0);
	text_copy(lease.owner.token, TOKEN_SIZE, "../x");
	assert_int_equal(lease_write(&file, 2, &lease), 0);
	assert_int_equal(pwrite(file.fd, "garbage", 7, 3 * RECORD_SIZE), 7);
	(void)read_file(&file, raw);
	assert_int_equal(lease_decode(raw, 1, &seen), LEASE_RECORD);
	assert_int_equal(lease_decode(raw, 2, &seen), LEASE_BROKEN);
	assert_int_equal(lease_decode(raw, 3, &seen), LEASE_BROKEN);
	assert_int_equal(pwrite(file.fd, "garbage", 7, 0), 7);
	assert_int_equal(lease_read(&file, raw, &records), LEASE_TROUBLE);
	assert_int_equal(ftruncate(file.fd, 0), 0);
	assert_int_equal(lease_read(&file, raw, &records), LEASE_TROUBLE);
	lease_release(&file);
}

/* What lease_read() says of GPU-aa's file. */
static bool is_doubtful(void)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file = open_slot(0);
	unsigned records;
	bool is;

	assert_true(lease_read(&file, raw, &records) >= 0);
	is = file.is_doubtful;
	lease_release(&file);
	return is;
}

static void damage_that_can_hide_a_lease_puts_a_file_in_doubt(void **state)
{
	struct lease lease = make_lease(5);
	struct lease_file file;

	(void)state;
	file = add_first();
	assert_int_equal(lease_write(&file, 3, &lease), 0);
	assert_false(is_doubtful());
	assert_int_equal(pwrite(file.fd, "#", 1, 3 * RECORD_SIZE + 200), 1);
	assert_true(is_doubtful());
	assert_int_equal(lease_clear(&file, 3), 0);
	assert_false(is_doubtful());
	assert_int_equal(ftruncate(file.fd, LEASE_FILE_BYTES - 1), 0);
	assert_true(is_doubtful());
	assert_int_equal(ftruncate(file.fd, LEASE_FILE_BYTES + 100), 0);
	assert_false(is_doubtful());
	assert_int_equal(pwrite(file.fd, "#", 1, 100), 1);
	assert_true(is_doubtful());
	lease_release(&file);
}

static void a_file_made_again_is_in_doubt(void **state)
{
	(void)state;
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/GPU-aa.lease", 0), 0);
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_true(is_doubtful());
}

static void a_copy_of_another_file_is_in_doubt(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file one, two;
	unsigned records;

	(void)state;
	assert_int_equal(add_gpu("GPU-aa"), 0);
	assert_int_equal(add_gpu("GPU-bb"), 1);
	one = open_slot(0);
	two = open_slot(1);
	(void)read_file(&two, raw);
	assert_int_equal(pwrite(one.fd, raw, sizeof(raw), 0), sizeof(raw));
	assert_int_equal(lease_read(&one, raw, &records), LEASE_TROUBLE);
	assert_true(one.is_doubtful);
	assert_string_equal(one.gpu.uuid, "GPU-aa");
	lease_release(&one);
	lease_release(&two);
}

static void mending_keeps_good_records_and_makes_the_file_whole(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease lease = make_lease(5), seen;
	struct lease_file file;
	unsigned records;

	(void)state;
	file = add_first();
	(void)read_file(&file, raw);
	assert_int_equal(lease_write(&file, 2, &lease), 0);
	assert_int_equal(pwrite(file.fd, "garbage", 7, 3 * RECORD_SIZE), 7);
	assert_int_equal(pwrite(file.fd, "garbage", 7, 0), 7);
	assert_int_equal(ftruncate(file.fd, 4 * RECORD_SIZE + 17), 0);
	assert_int_equal(lease_read(&file, raw, &records), LEASE_TROUBLE);
	assert_int_equal(records, 3);
	assert_int_equal(lease_mend_begin(&file, raw, records), 0);
	assert_true(is_doubtful()); /* killed here: still */
	assert_int_equal(lease_mend_end(&file), 0);
	assert_false(is_doubtful());
	assert_int_equal(read_file(&file, raw), LEASES_PER_GPU);
	assert_int_equal(lease_decode(raw, 2, &seen), LEASE_RECORD);
	assert_int_equal(lease_decode(raw, 3, &seen), LEASE_NONE);
	lease_release(&file);
}

static void a_file_without_end_is_read_no_further_than_31_leases(void **state)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file file;

	(void)state;
	file = add_first();
	assert_int_equal(ftruncate(file.fd, 1 << 24), 0);
	assert_int_equal(read_file(&file, raw), LEASES_PER_GPU);
	lease_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_gpu_gets_one_file_and_one_slot),
		TEST(a_slash_in_a_uuid_stays_in_the_folder),
		TEST(a_gpu_half_added_by_a_crashed_process_is_completed),
		TEST(a_slot_that_leads_elsewhere_is_refused),
		TEST(the_129th_gpu_has_no_slot),
		TEST(two_processes_give_a_gpu_the_same_slot),
		TEST(a_deleted_or_replaced_file_is_noticed),
		TEST(the_file_is_shared_whatever_the_umask),
		TEST(a_lock_is_taken_once),
		TEST(a_lock_falls_with_its_holder),
		TEST(a_reader_with_a_shared_lock_withholds_it),
		TEST(a_lease_comes_back_as_it_was_written),
		TEST(record_0_is_the_gpu_and_keeps_unknown_fields),
		TEST(a_lease_half_copied_is_read_again),
		TEST(a_broken_gpu_record_is_trouble_and_a_broken_lease_is_skipped),
		TEST(damage_that_can_hide_a_lease_puts_a_file_in_doubt),
		TEST(a_file_made_again_is_in_doubt),
		TEST(a_copy_of_another_file_is_in_doubt),
		TEST(mending_keeps_good_records_and_makes_the_file_whole),
		TEST(a_file_without_end_is_read_no_further_than_31_leases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
