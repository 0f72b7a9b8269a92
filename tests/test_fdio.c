#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fdio.h"
#include "fixture.h"

/* --- system calls that are short or fail -------------------------------------------- */

static size_t at_most;       /* bytes that one write takes; 0: all */
static unsigned interrupted; /* this many calls fail with EINTR */
static int write_errno;      /* after the first write */
static void (*before_create)(void);

ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *in, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *in, size_t size, off_t offset);
int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);

static bool is_interrupted(void)
{
	if (!interrupted)
		return false;
	interrupted--;
	errno = EINTR;
	return true;
}

ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset)
{
	if (is_interrupted())
		return -1;
	return __real_pread(fd, out, size, offset);
}

ssize_t __wrap_pwrite(int fd, const void *in, size_t size, off_t offset)
{
	if (is_interrupted())
		return -1;
	if (write_errno && offset > 0) {
		errno = write_errno;
		return -1;
	}
	return __real_pwrite(fd, in, at_most && size > at_most ? at_most : size, offset);
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & O_CREAT) {
		void (*call)(void) = before_create;

		mode = va_arg(list, mode_t);
		before_create = NULL;
		if (call)
			call();
	}
	va_end(list);
	return __real_openat(dirfd, path, flags, mode);
}

static const struct scratch *here;

static int setup(void **state)
{
	int r = scratch_setup(state);

	at_most = 0;
	interrupted = 0;
	write_errno = 0;
	before_create = NULL;
	here = *state;
	return r;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)

static void check_content(const char *name, const char *text)
{
	char out[64];

	assert_int_equal(fdio_read_text(here->dirfd, name, out, sizeof(out)), 0);
	assert_string_equal(out, text);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(here->dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* --- reading and writing ------------------------------------------------------------ */

static void short_writes_and_interrupted_calls_are_continued(void **state)
{
	static const char text[] = "0123456789abcdef";
	char out[sizeof(text)] = "";
	size_t size = 0;
	int fd = fdio_open_shared(here->dirfd, "file", O_RDWR);

	(void)state;
	assert_true(fd >= 0);
	at_most = 3;
	interrupted = 2;
	assert_int_equal(fdio_pwrite(fd, text, sizeof(text), 100), 0);
	assert_int_equal(interrupted, 0);
	interrupted = 2;
	assert_int_equal(fdio_pread(fd, out, sizeof(out), 100, &size), 0);
	assert_int_equal(size, sizeof(text));
	assert_string_equal(out, text);
	close_fd(&fd);
}

static void a_read_is_short_only_at_the_end(void **state)
{
	char out[8] = "xxxxxxx";
	size_t size = 4711;
	int fd;

	assert_int_equal(scratch_write(*state, "file", "abc"), 0);
	fd = fdio_open_shared(here->dirfd, "file", O_RDONLY);
	assert_int_equal(fdio_pread(fd, out, 5, 1, &size), 0);
	assert_int_equal(size, 2);
	assert_memory_equal(out, "bcx", 3);
	assert_int_equal(fdio_pread(fd, out, 5, 3, &size), 0);
	assert_int_equal(size, 0);
	size = 4711;
	close_fd(&fd);
	assert_int_equal(fdio_pread(-1, out, 5, 0, &size), -EBADF);
	assert_int_equal(size, 4711);
}

static void text_ends_with_a_nul_and_has_a_bound(void **state)
{
	char out[4];

	assert_int_equal(scratch_write(*state, "file", "abcdef"), 0);
	assert_int_equal(fdio_read_text(here->dirfd, "file", out, sizeof(out)), 0);
	assert_string_equal(out, "abc");
	assert_int_equal(fdio_read_text(here->dirfd, "file", out, 1), 0);
	assert_string_equal(out, "");
	assert_int_equal(fdio_read_text(here->dirfd, "none", out, sizeof(out)), -ENOENT);
}

static void links_are_not_followed_and_fifos_not_waited_for(void **state)
{
	char out[8];

	assert_int_equal(scratch_write(*state, "file", "abc"), 0);
	assert_int_equal(symlinkat("file", here->dirfd, "link"), 0);
	assert_int_equal(mkfifoat(here->dirfd, "fifo", 0600), 0);
	assert_int_equal(fdio_read_text(here->dirfd, "link", out, sizeof(out)), -ELOOP);
	assert_int_equal(fdio_open_shared(here->dirfd, "link", O_RDWR), -ELOOP);
	assert_int_equal(fdio_read_text(here->dirfd, "fifo", out, sizeof(out)), 0);
	assert_string_equal(out, "");
}

static void a_name_leads_to_the_open_file_or_not(void **state)
{
	autofd int fd = -1;

	assert_int_equal(scratch_write(*state, "file", "abc"), 0);
	assert_int_equal(scratch_write(*state, "new", "abc"), 0);
	assert_int_equal(symlinkat("file", here->dirfd, "link"), 0);
	fd = openat(here->dirfd, "file", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(fdio_is_named(here->dirfd, "file", fd));
	assert_false(fdio_is_named(here->dirfd, "new", fd));
	assert_false(fdio_is_named(here->dirfd, "link", fd));
	assert_false(fdio_is_named(here->dirfd, "file", -1));
	assert_int_equal(renameat(here->dirfd, "new", here->dirfd, "file"), 0);
	assert_false(fdio_is_named(here->dirfd, "file", fd));
	assert_int_equal(unlinkat(here->dirfd, "file", 0), 0);
	assert_false(fdio_is_named(here->dirfd, "file", fd));
}

/* --- creating ----------------------------------------------------------------------- */

static void make_it_first(void)
{
	assert_int_equal(scratch_write(here, "file", "theirs"), 0);
}

static void a_shared_file_is_created_once(void **state)
{
	int fd;

	(void)state;
	before_create = make_it_first; /* between the first open and the second */
	fd = fdio_open_shared(here->dirfd, "file", O_RDWR);
	assert_true(fd >= 0);
	assert_null(before_create);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close_fd(&fd);
	check_content("file", "theirs");
	assert_int_equal(mode_of("file"), 0600);
}

static void modes_are_set_whatever_the_umask(void **state)
{
	mode_t old = umask(077);
	int fd = fdio_open_shared(here->dirfd, "shared", O_RDWR);

	(void)state;
	assert_true(fd >= 0);
	close_fd(&fd);
	assert_int_equal(
		fdio_publish(here->dirfd, "published", "tmp", "abc", 3, 0664), 0);
	assert_int_equal(fdio_replace(here->dirfd, "replaced", "tmp", "abc", 3, 0640), 0);
	(void)umask(old);
	assert_int_equal(mode_of("shared"), 0660);
	assert_int_equal(mode_of("published"), 0664);
	assert_int_equal(mode_of("replaced"), 0640);
}

static void a_second_publish_leaves_the_file_unchanged(void **state)
{
	(void)state;
	assert_int_equal(fdio_publish(here->dirfd, "file", "tmp", "one", 3, 0600), 0);
	assert_int_equal(fdio_publish(here->dirfd, "file", "tmp", "two", 3, 0600), 0);
	check_content("file", "one");
	assert_false(fixture_exists(here->dirfd, ".", "tmp"));
	assert_int_equal(fdio_replace(here->dirfd, "file", "tmp", "three", 5, 0600), 0);
	check_content("file", "three");
	assert_false(fixture_exists(here->dirfd, ".", "tmp"));
}

static void a_temporary_name_in_use_is_an_error(void **state)
{
	assert_int_equal(scratch_write(*state, "tmp", "somebody's"), 0);
	assert_int_equal(
		fdio_publish(here->dirfd, "file", "tmp", "one", 3, 0600), -EEXIST);
	assert_int_equal(
		fdio_replace(here->dirfd, "file", "tmp", "one", 3, 0600), -EEXIST);
	assert_false(fixture_exists(here->dirfd, ".", "file"));
	check_content("tmp", "somebody's");
}

static void a_full_disk_leaves_neither_name(void **state)
{
	(void)state;
	at_most = 2;
	write_errno = ENOSPC;
	assert_int_equal(
		fdio_publish(here->dirfd, "file", "tmp", "abc", 3, 0600), -ENOSPC);
	assert_int_equal(
		fdio_replace(here->dirfd, "file", "tmp", "abc", 3, 0600), -ENOSPC);
	assert_false(fixture_exists(here->dirfd, ".", "file"));
	assert_false(fixture_exists(here->dirfd, ".", "tmp"));
}

static void a_rename_that_fails_leaves_no_temporary_name(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(here->dirfd, "folder", 0700), 0);
	assert_true(fdio_replace(here->dirfd, "folder", "tmp", "abc", 3, 0600) < 0);
	assert_false(fixture_exists(here->dirfd, ".", "tmp"));
}

/* --- holes -------------------------------------------------------------------------- */

static void a_file_is_read_whole_or_not_at_all(void **state)
{
	static const struct {
		size_t least, most;
		int result;
	} rows[] = {
		{ 1, 100, 0 },
		{ 5, 5, 0 },
		{ 6, 100, FDIO_NONE },
		{ 1, 4, FDIO_NONE },
	};

	(void)state;
	assert_int_equal(scratch_write(here, "file", "12345"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *bytes = NULL;
		size_t size = 4711;

		assert_int_equal(fdio_read_all(here->dirfd, "file", rows[i].least,
					 rows[i].most, &bytes, &size),
			rows[i].result);
		assert_int_equal(size, rows[i].result == 0 ? 5 : 4711);
		if (rows[i].result == 0)
			assert_memory_equal(bytes, "12345", 5);
		else
			assert_null(bytes);
	}
}

static void only_regular_files_are_read(void **state)
{
	char *bytes = NULL;
	size_t size;

	(void)state;
	assert_int_equal(symlinkat("/etc/passwd", here->dirfd, "link"), 0);
	assert_int_equal(mkfifoat(here->dirfd, "fifo", 0600), 0);
	assert_int_equal(
		fdio_read_all(here->dirfd, "none", 1, 9999, &bytes, &size), FDIO_NONE);
	assert_int_equal(
		fdio_read_all(here->dirfd, "fifo", 0, 9999, &bytes, &size), FDIO_NONE);
	assert_int_equal(
		fdio_read_all(here->dirfd, ".", 0, 99999, &bytes, &size), FDIO_NONE);
	assert_int_equal(
		fdio_read_all(here->dirfd, "link", 1, 9999, &bytes, &size), FDIO_NONE);
	assert_null(bytes);
}

static void a_punched_range_reads_as_zeros(void **state)
{
	static char bytes[3 * 4096], zeros[4096];
	int fd = fdio_open_shared(here->dirfd, "file", O_RDWR), r;
	size_t size;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(fdio_pwrite(fd, bytes, sizeof(bytes), 0), 0);
	assert_int_equal(fdio_punch(fd, 4096, 4096), 0); /* nothing */
	r = fdio_punch(fd, 4096, 8192);
	if (r == -EOPNOTSUPP)
		skip_because("the file system gives no blocks back");
	assert_int_equal(r, 0);
	assert_int_equal(fdio_pread(fd, bytes, sizeof(bytes), 0, &size), 0);
	assert_int_equal(size, sizeof(bytes));
	assert_memory_equal(bytes + 4096, zeros, 4096);
	assert_int_equal(bytes[4095], 'x');
	assert_int_equal(bytes[8192], 'x');
	close_fd(&fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(short_writes_and_interrupted_calls_are_continued),
		TEST(a_read_is_short_only_at_the_end),
		TEST(text_ends_with_a_nul_and_has_a_bound),
		TEST(a_file_is_read_whole_or_not_at_all),
		TEST(only_regular_files_are_read),
		TEST(links_are_not_followed_and_fifos_not_waited_for),
		TEST(a_name_leads_to_the_open_file_or_not),
		TEST(a_shared_file_is_created_once),
		TEST(modes_are_set_whatever_the_umask),
		TEST(a_second_publish_leaves_the_file_unchanged),
		TEST(a_temporary_name_in_use_is_an_error),
		TEST(a_full_disk_leaves_neither_name),
		TEST(a_rename_that_fails_leaves_no_temporary_name),
		TEST(a_punched_range_reads_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
