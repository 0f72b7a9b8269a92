/* What is removed with a folder of a job, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "remove_folder.h"
#include "scratch.h"

static void make_folder(int dirfd, const char *name, mode_t mode)
{
	assert_int_equal(mkdirat(dirfd, name, 0700), 0);
	assert_int_equal(fchmodat(dirfd, name, mode, 0), 0);
}

static void make_file(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0400);

	assert_true(fd >= 0);
	(void)close(fd);
}

static bool is_there(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void all_kinds_of_files_go_and_nothing_beside_them(void **state)
{
	int dirfd = ((struct scratch *)*state)->dirfd;

	make_folder(dirfd, "precious", 0755);
	make_file(dirfd, "precious/file");
	make_folder(dirfd, "job", 0700);
	make_file(dirfd, "job/.hidden");
	make_file(dirfd, "job/a\nb");
	assert_int_equal(linkat(dirfd, "precious/file", dirfd, "job/hard", 0), 0);
	assert_int_equal(symlinkat("../precious", dirfd, "job/link"), 0);
	assert_int_equal(symlinkat("/", dirfd, "job/root"), 0);
	assert_int_equal(mkfifoat(dirfd, "job/fifo", 0600), 0);
	make_folder(dirfd, "job/empty", 0);
	make_folder(dirfd, "job/folder", 0700);
	assert_int_equal(symlinkat("../../precious", dirfd, "job/folder/link"), 0);
	make_folder(dirfd, "job/folder/deeper", 0700);
	make_file(dirfd, "job/folder/deeper/file");
	assert_int_equal(fchmodat(dirfd, "job/folder/deeper", 0500, 0), 0);
	assert_int_equal(fchmodat(dirfd, "job/folder", 0, 0), 0);
	assert_int_equal(remove_folder(dirfd, "job"), 0);
	assert_false(is_there(dirfd, "job"));
	assert_true(is_there(dirfd, "precious/file"));
}

static void a_tree_of_any_depth_goes(void **state)
{
	int dirfd = ((struct scratch *)*state)->dirfd, at;

	make_folder(dirfd, "job", 0700);
	at = openat(dirfd, "job", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 300; i++) {
		int next;

		assert_int_equal(mkdirat(at, "a", 0700), 0);
		next = openat(at, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
		make_file(at, "file");
	}
	(void)close(at);
	assert_int_equal(remove_folder(dirfd, "job"), 0);
	assert_false(is_there(dirfd, "job"));
}

static void a_link_in_its_place_stays(void **state)
{
	int dirfd = ((struct scratch *)*state)->dirfd;

	make_folder(dirfd, "precious", 0755);
	make_file(dirfd, "precious/file");
	assert_int_equal(symlinkat("precious", dirfd, "job"), 0);
	assert_int_equal(remove_folder(dirfd, "job"), -ENOTDIR);
	assert_true(is_there(dirfd, "precious/file"));
	assert_true(is_there(dirfd, "job"));
}

/* In a child, with mounts of its own.  Exits with 77 if it may have none. */
static void remove_around_a_mount(const char *path, const char *in, const char *from)
{
	if (unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		chdir(path) < 0 || mount(from, in, NULL, MS_BIND, NULL) < 0)
		_exit(77);
	_exit(remove_folder(AT_FDCWD, "job") == 0);
}

static void what_is_mounted_in_it_stays(void **state)
{
	static const char *const places[] = { "job/data", "job/a/b/data" };
	struct scratch *scratch = *state;
	int dirfd = scratch->dirfd;

	make_folder(dirfd, "precious", 0755);
	make_file(dirfd, "precious/file");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int status;
		pid_t child;

		make_folder(dirfd, "job", 0700);
		make_file(dirfd, "job/file");
		make_folder(dirfd, "job/a", 0700);
		make_folder(dirfd, "job/a/b", 0700);
		make_folder(dirfd, places[i], 0700);
		child = fork();
		if (child == 0)
			remove_around_a_mount(scratch->path, places[i], "precious");
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WEXITSTATUS(status) == 77)
			skip_because("no mounts of its own");
		assert_int_equal(status, 0);
		assert_true(is_there(dirfd, "precious/file"));
		assert_false(is_there(dirfd, "job/file"));
		assert_int_equal(remove_folder(dirfd, "job"), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(all_kinds_of_files_go_and_nothing_beside_them),
		SCRATCH_TEST(a_tree_of_any_depth_goes),
		SCRATCH_TEST(a_link_in_its_place_stays),
		SCRATCH_TEST(what_is_mounted_in_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
