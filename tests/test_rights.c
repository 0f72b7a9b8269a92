#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/prctl.h>

#include "fixture.h"
#include "rights.h"
#include "userfile.h"

enum { USER = 61184, LENT = 61185 }; /* unused on this machine */

static const struct scratch *here;

static int setup(void **state)
{
	int r = scratch_setup(state);

	here = *state;
	/* every user may search the folder, but only the group may read the file */
	if (r == 0 && (chmod(here->path, 0777) < 0 || chown(here->path, 0, 0) < 0))
		r = geteuid() == 0 ? -1 : 0;
	return r;
}

static bool can_read(void)
{
	autofd int fd = openat(here->dirfd, "secret", O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

/* Runs @part in a process of a user with a lent group, and returns its result. */
static int as_lent(int (*part)(void))
{
	int status = 0, fd = openat(here->dirfd, "secret", O_CREAT | O_RDWR, 0040);
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 0, LENT), 0);
	(void)close(fd);
	pid = fork();
	if (pid == 0) {
		if (setgid(USER) < 0 || setresgid(USER, LENT, LENT) < 0 ||
			setresuid(USER, USER, USER) < 0)
			_exit(99);
		_exit(part());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int a_lent_group_opens_files(void)
{
	return rights_are_lent() && can_read() ? 0 : 1;
}

static int with_the_users_rights_it_does_not(void)
{
	bool before = can_read(), meanwhile, after;

	rights_as_user_begin();
	meanwhile = can_read();
	rights_as_user_end();
	after = can_read();
	return before && !meanwhile && after ? 0 : 1;
}

static int a_dropped_group_never_comes_back(void)
{
	if (rights_drop() < 0 || rights_are_lent() || can_read())
		return 1;
	if (setegid(LENT) == 0 || setgid(LENT) == 0 || setresgid(-1U, LENT, -1U) == 0)
		return 2;
	return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 3;
}

/* --- files that the user names ------------------------------------------------------ */

/* Returns the size of the file of the state: 3, unless it was written to. */
static off_t state_size(void)
{
	struct stat st;

	return stat("state/file", &st) == 0 ? st.st_size : -1;
}

/*
 * Makes a folder and a file with the group and mode of the state, and opens both as a supervisor
 * has them open; also a folder of the user's own.
 */
static int make_state(int *ret_folder, int *ret_file)
{
	if (mkdir("state", 0700) < 0 || mkdir("own", 0700) < 0 ||
		chown("state", (uid_t)-1, LENT) < 0 || chmod("state", 02770) < 0)
		return -1;
	*ret_folder = open("state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret_file =
		openat(*ret_folder, "file", O_RDWR | O_CREAT | O_CLOEXEC | O_EXCL, 0660);
	return *ret_file >= 0 && write(*ret_file, "abc", 3) == 3 ? 0 : -1;
}

static bool opens(const char *path, int flags)
{
	autofd int fd = userfile_open(path, flags, 0600);

	return fd >= 0;
}

/* Tries everything with @path, and with names in @folder, a folder of the state. */
static int try_all(const char *path, const char *folder)
{
	char name[128];

	if (opens(path, O_RDONLY) || opens(path, O_WRONLY | O_CREAT | O_TRUNC) ||
		opens(path, O_RDWR | O_APPEND) || opens(folder, O_RDONLY | O_DIRECTORY) ||
		opens(folder, O_PATH))
		return 10;
	(void)snprintf(name, sizeof(name), "%s/new", folder);
	if (opens(name, O_WRONLY | O_CREAT) || opens(name, O_WRONLY | O_CREAT | O_EXCL) ||
		userfile_mkdir(name, 0700) == 0 || userfile_symlink("x", name) == 0 ||
		userfile_rename("own", name) == 0 || userfile_chdir(folder) == 0)
		return 11;
	(void)snprintf(name, sizeof(name), "%s/file", folder);
	if (userfile_rename(name, "taken") == 0 || access("state/new", F_OK) == 0 ||
		state_size() != 3)
		return 12;
	return 0;
}

static int no_file_of_the_state_is_opened(void)
{
	char file[64], folder[64];
	int folder_fd, file_fd, r;

	if (chdir(here->path) < 0 || mkdir("u", 0700) < 0 || chdir("u") < 0 ||
		make_state(&folder_fd, &file_fd) < 0)
		return 1;
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", file_fd);
	(void)snprintf(folder, sizeof(folder), "/proc/self/fd/%d", folder_fd);
	r = try_all(file, folder);
	if (r == 0 && (symlink(file, "file") < 0 || symlink(folder, "folder") < 0))
		r = 2;
	if (r == 0)
		r = try_all("file", "folder");
	/* nor later, once the group is given up */
	if (r == 0)
		r = rights_drop() == 0 ? try_all(file, folder) : 3;
	return r;
}

/* Returns whether the file @path says "x" after it was opened with @flags and written to. */
static bool writes(const char *path, int flags)
{
	char text[8] = "";
	autofd int fd = userfile_open(path, flags, 0640);
	autofd int again = -1;

	if (fd < 0 || write(fd, "x", 1) != 1)
		return false;
	again = open(path, O_RDONLY | O_CLOEXEC);
	return read(again, text, sizeof(text)) == 1 && text[0] == 'x';
}

static int the_users_own_files_are_opened(void)
{
	enum { FLAGS = O_WRONLY | O_CREAT | O_TRUNC };
	struct stat st;

	if (chdir(here->path) < 0 || userfile_mkdir("u/", 0700) < 0 ||
		userfile_mkdir("u", 0700) != -EEXIST || userfile_chdir("u") < 0)
		return 1;
	(void)umask(0);
	if (!writes("new", FLAGS) || stat("new", &st) < 0 ||
		(st.st_mode & 07777) != 0640 || st.st_gid != USER)
		return 2;
	if (!writes("./new", FLAGS) || !writes("../u/other", FLAGS) ||
		userfile_rename("other", "./third") < 0 ||
		userfile_symlink("third", "fourth") < 0 || !writes("fourth", FLAGS))
		return 3;
	if (userfile_open("new", FLAGS | O_EXCL, 0600) != -EEXIST ||
		userfile_open("none", O_RDONLY, 0) != -ENOENT ||
		userfile_open("none/new", FLAGS, 0600) != -ENOENT)
		return 4;
	return opens("/dev/null", O_RDWR | O_TRUNC) && userfile_chdir("/") == 0 ? 0 : 5;
}

#define AS_LENT(part)                               \
	static void part##_test(void **state)       \
	{                                           \
		(void)state;                        \
		if (geteuid() != 0)                 \
			skip_because("needs root"); \
		assert_int_equal(as_lent(part), 0); \
	}

AS_LENT(a_lent_group_opens_files)
AS_LENT(with_the_users_rights_it_does_not)
AS_LENT(a_dropped_group_never_comes_back)
AS_LENT(no_file_of_the_state_is_opened)
AS_LENT(the_users_own_files_are_opened)

static void without_a_lent_group_nothing_changes(void **state)
{
	gid_t group = getgid();

	(void)state;
	assert_false(rights_are_lent());
	rights_as_user_begin();
	rights_as_user_end();
	assert_int_equal(rights_drop(), 0);
	assert_int_equal(getgid(), group);
	assert_int_equal(getegid(), group);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lent_group_opens_files_test),
		TEST(with_the_users_rights_it_does_not_test),
		TEST(a_dropped_group_never_comes_back_test),
		TEST(no_file_of_the_state_is_opened_test),
		TEST(the_users_own_files_are_opened_test),
		TEST(without_a_lent_group_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
