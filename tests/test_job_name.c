/* The names of jobs: what a record keeps, and the link with the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fixture.h"
#include "lease.h"
#include "live_fifo.h"

#define TOKEN "0123456789abcdef"

/* Bytes of which names are made here: what records escape, and characters of several bytes. */
static const char *const units[] = { "n", " ", "%", "=", "\xc3\xa4", "\xe2\x80\xa6",
	"\xff", "a b", "x=%", "/../" };

static void make_name(char out[NAME_SIZE_MAX], const char *unit, size_t size)
{
	for (size_t i = 0; i < size; i++)
		out[i] = unit[i % strlen(unit)];
	out[size] = '\0';
}

/* What a record says of the name of a lease. */
static struct lease through_record(const struct lease *lease)
{
	struct lease_file file = { .fd = memfd_create("lease", MFD_CLOEXEC) };
	static char raw[LEASE_FILE_BYTES];
	struct lease read;

	assert_int_equal(lease_write(&file, 1, lease), 0);
	assert_int_equal(pread(file.fd, raw, sizeof(raw), 0), 2 * RECORD_SIZE);
	assert_int_equal(lease_decode(raw, 1, &read), LEASE_RECORD);
	lease_release(&file);
	return read;
}

/* Whether the two names are told apart by a record, and by the record with its link. */
static void check_pair(const struct statedir *dir, const char *name, const char *other)
{
	struct lease lease = { .ticket = 1 }, read;
	uint64_t hash = job_name_copy(lease.name, name);

	text_copy(lease.owner.token, TOKEN_SIZE, TOKEN);
	lease.name_hash = hash;
	read = through_record(&lease);
	assert_int_equal(read.name_hash, hash);
	assert_int_equal(
		job_name_key(read.name, read.name_hash), job_name_key(name, hash));
	assert_int_not_equal(job_name_key(read.name, read.name_hash),
		job_name_key(other, job_name_hash(other)));
	assert_int_equal(job_name_is_whole(read.name, read.name_hash), !hash);
	if (!hash) {
		assert_string_equal(read.name, name);
		return;
	}
	assert_memory_equal(read.name, name, strlen(read.name));
	assert_false(job_name_complete(dir, TOKEN, hash, read.name));
	assert_int_equal(job_name_write(dir, TOKEN, name), 0);
	assert_int_equal(job_name_write(dir, TOKEN, name), 0);
	assert_true(job_name_complete(dir, TOKEN, hash, read.name));
	assert_string_equal(read.name, name);
	job_name_remove(dir, TOKEN);
}

static void names_that_differ_in_their_last_byte_are_told_apart(void **state)
{
	struct statedir dir = fixture_dir(*state);
	char name[NAME_SIZE_MAX], other[NAME_SIZE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t size = 1; size < NAME_SIZE_MAX; size++) {
			make_name(name, units[i], size);
			make_name(other, units[i], size);
			other[size - 1] ^= 1;
			check_pair(&dir, name, other);
			/* and where one is the beginning of the other */
			make_name(other, units[i], size - 1);
			check_pair(&dir, name, other);
		}
	statedir_release(&dir);
}

/* A name is not whole if its link is that of another name, is no link, or leads elsewhere. */
static void a_link_that_does_not_fit_is_not_believed(void **state)
{
	static const char *const targets[] = { "", "n", "name:", "/etc/passwd",
		"name:nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnx" };
	struct statedir dir = fixture_dir(*state);
	char name[NAME_SIZE_MAX], kept[NAME_SIZE_MAX], huge[1000];
	uint64_t hash;

	make_name(name, "n", 40);
	hash = job_name_hash(name);
	make_name(kept, "n", 32);
	for (size_t i = 0; i <= ARRAY_SIZE(targets); i++) {
		(void)snprintf(huge, sizeof(huge), "name:%0900d", 1);
		(void)!symlinkat(i < ARRAY_SIZE(targets) ? targets[i] : huge, dir.live_fd,
			TOKEN ".name");
		assert_false(job_name_complete(&dir, TOKEN, hash, kept));
		assert_int_equal(strlen(kept), 32);
		job_name_remove(&dir, TOKEN);
	}
	assert_int_equal(mknodat(dir.live_fd, TOKEN ".name", S_IFREG | 0600, 0), 0);
	assert_false(job_name_complete(&dir, TOKEN, hash, kept));
	assert_false(job_name_complete(&dir, "../../etc/passwd", hash, kept));
	statedir_release(&dir);
}

static bool has_lease(void *token, const char *its)
{
	return strcmp(token, its) == 0;
}

static bool has_link(const struct statedir *dir)
{
	struct stat st;

	return fstatat(dir->live_fd, TOKEN ".name", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_sweep_keeps_a_name_that_is_new_or_that_a_lease_needs(void **state)
{
	struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct statedir dir = fixture_dir(*state);

	assert_int_equal(job_name_write(&dir, TOKEN, "some name"), 0);
	live_fifo_sweep(&dir, NULL, NULL);
	assert_true(has_link(&dir));
	assert_int_equal(
		utimensat(dir.live_fd, TOKEN ".name", long_ago, AT_SYMLINK_NOFOLLOW), 0);
	live_fifo_sweep(&dir, has_lease, (char[]){ TOKEN });
	assert_true(has_link(&dir));
	live_fifo_sweep(&dir, has_lease, (char[]){ "fedcba9876543210" });
	assert_false(has_link(&dir));
	statedir_release(&dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SCRATCH_TEST(names_that_differ_in_their_last_byte_are_told_apart),
		SCRATCH_TEST(a_link_that_does_not_fit_is_not_believed),
		SCRATCH_TEST(a_sweep_keeps_a_name_that_is_new_or_that_a_lease_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
