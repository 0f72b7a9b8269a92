#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/vfs.h>

#include "fixture.h"

enum { SOMEBODY = 61184 }; /* no user of this machine's */

/* --- file systems, and the system's directory --------------------------------------- */

#define SYSTEM "/proc/nonexistent/gpulease"

static long magic;           /* 0: the kernel's answer */
static unsigned magic_calls; /* so many get it */
static int system_errno;     /* of the system's directory; 0: the kernel's answer */
static void (*before_rename)(void);

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
int __real_fchmodat(int fd, const char *name, mode_t mode, int flags);
int __wrap_fchmodat(int fd, const char *name, mode_t mode, int flags);

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int r = __real_fstatfs(fd, fs);

	if (r == 0 && magic && magic_calls) {
		magic_calls--;
		fs->f_type = magic;
	}
	return r;
}

int __wrap_stat(const char *path, struct stat *st)
{
	if (system_errno && strcmp(path, SYSTEM) == 0) {
		errno = system_errno;
		return -1;
	}
	return __real_stat(path, st);
}

/* The last call before a new folder gets its name. */
int __wrap_fchmodat(int fd, const char *name, mode_t mode, int flags)
{
	void (*call)(void) = before_rename;

	before_rename = NULL;
	if (call)
		call();
	return __real_fchmodat(fd, name, mode, flags);
}

static const struct scratch *here;

static int setup(void **state)
{
	int r = scratch_setup(state);

	magic = 0;
	magic_calls = 1000;
	system_errno = ENOENT;
	before_rename = NULL;
	here = *state;
	return r;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, scratch_teardown)

static int try_shared(const char *path, struct statedir *dir, struct why *why)
{
	struct statedir_choice choice = {
		.explicit_path = path, .system_path = SYSTEM, .home = "/proc/nonexistent"
	};

	*dir = STATEDIR_NONE;
	*why = WHY_NONE;
	return statedir_open(&choice, dir, why);
}

/* The scratch directory is refused with @error for a reason that says @part. */
static void check_refused(int error, const char *part)
{
	struct statedir dir;
	struct why why;
	int before = fixture_open_fds(), r = try_shared(here->path, &dir, &why);

	if (r != error || !strstr(why.text, part) || !strstr(why.text, here->path))
		fail_msg("%d '%s' does not say '%s'", r, why.text, part);
	assert_int_equal(dir.fd, -1);
	assert_int_equal(fixture_open_fds(), before);
	assert_false(fixture_exists(here->dirfd, ".", "gpu"));
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(here->dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISDIR(st.st_mode));
	return st.st_mode & 07777;
}

/* --- what is used ------------------------------------------------------------------- */

static void the_named_directory_is_used_and_gets_its_folders(void **state)
{
	static const char *const folders[] = { "gpu", FIFO_LIVE, FIFO_BELL };
	struct statedir dir;
	struct why why;
	struct stat st;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	assert_string_equal(dir.path, here->path);
	assert_false(dir.is_private || dir.is_fallback);
	assert_int_equal(dir.owner, geteuid());
	assert_int_equal(strlen(dir.boot), BOOT_SIZE - 1);
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_true(dir.pidns == st.st_ino);
	assert_int_equal(fcntl(dir.fd, F_GETFD), FD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		assert_int_equal(mode_of(folders[i]), 02770);
	statedir_release(&dir);
	statedir_release(&dir);
	assert_int_equal(dir.fd, -1);
}

static void the_modes_do_not_depend_on_the_umask(void **state)
{
	mode_t old = umask(077);
	struct statedir dir;
	struct why why;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	(void)umask(0);
	assert_int_equal(mode_of("gpu"), 02770);
	assert_int_equal(unlinkat(dir.fd, "gpu", AT_REMOVEDIR), 0);
	statedir_release(&dir);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	(void)umask(old);
	assert_int_equal(mode_of("gpu"), 02770);
	statedir_release(&dir);
}

static void a_directory_of_ones_own_is_private(void **state)
{
	struct statedir dir;
	struct why why;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 0755), 0); /* others may look */
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	assert_true(dir.is_private);
	assert_int_equal(mode_of("live"), 0750 & 02770);
	statedir_release(&dir);
}

static void the_path_is_the_real_path(void **state)
{
	char link_path[128];
	struct statedir dir;
	struct why why;

	(void)state;
	(void)snprintf(link_path, sizeof(link_path), "%s/link", here->path);
	assert_int_equal(mkdirat(here->dirfd, "real", 0700), 0);
	assert_int_equal(symlinkat("real", here->dirfd, "link"), 0);
	assert_int_equal(try_shared(link_path, &dir, &why), 0);
	assert_non_null(strstr(dir.path, "/real"));
	statedir_release(&dir);
}

/* --- what is refused ---------------------------------------------------------------- */

static void a_directory_that_cannot_be_trusted_is_refused(void **state)
{
	(void)state;
	assert_int_equal(fchmod(here->dirfd, 01777), 0);
	check_refused(-EACCES, "everybody may write there");
	check_refused(-EACCES, "mode 1777");
	assert_int_equal(fchmod(here->dirfd, 0702), 0);
	check_refused(-EACCES, "everybody may write there");
	assert_int_equal(fchmod(here->dirfd, 0770), 0);
	check_refused(-EACCES, "chmod g+s");
}

static void another_users_own_directory_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(fchmod(here->dirfd, 0755), 0);
	assert_int_equal(fchown(here->dirfd, SOMEBODY, SOMEBODY), 0);
	check_refused(-EACCES, "it is private to another user");
	check_refused(-EACCES, "owner 61184");
}

/* Opens the scratch directory as another user; the reason comes back in @why. */
static int try_as_somebody(struct why *why)
{
	struct {
		int result;
		struct why why;
	} report = { .result = -EPIPE };
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct statedir dir;

		if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 &&
			setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0)
			report.result = try_shared(here->path, &dir, &report.why);
		(void)!write(ends[1], &report, sizeof(report));
		_exit(0);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &report, sizeof(report)), sizeof(report));
	(void)close(ends[0]);
	(void)waitpid(pid, NULL, 0);
	*why = report.why;
	return report.result;
}

static void a_directory_without_write_access_is_refused(void **state)
{
	struct why why;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(fchmod(here->dirfd, 02775), 0);
	assert_int_equal(try_as_somebody(&why), -EACCES);
	assert_non_null(strstr(why.text, "you may not write there"));
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_as_somebody(&why), -EACCES);
	assert_non_null(strstr(why.text, "mode 2770"));
	assert_int_equal(fchown(here->dirfd, 0, SOMEBODY), 0);
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_as_somebody(&why), 0);
}

static void file_systems_that_do_not_share_locks_are_refused(void **state)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} table[] = { { 0x6969, "NFS" }, { 0xff534d42, "CIFS" }, { 0xfe534d42, "SMB" },
		{ 0x65735546, "FUSE" }, { 0x01021997, "9p" }, { 0x0bd00bd0, "Lustre" } };
	struct statedir dir;
	struct why why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		/* as the kernel gives it, and sign-extended as on some machines */
		magic = (long)table[i].magic;
		check_refused(-ENOTSUP, table[i].name);
		magic = (long)(int32_t)table[i].magic;
		check_refused(-ENOTSUP, table[i].name);
	}
	magic = 0x01021994; /* tmpfs */
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	statedir_release(&dir);
}

static void a_missing_or_bad_directory_is_never_replaced_by_another(void **state)
{
	struct statedir dir;
	struct why why;
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/none", here->path);
	assert_int_equal(try_shared(path, &dir, &why), -ENOENT);
	assert_non_null(strstr(why.text, path));
	assert_false(fixture_exists(here->dirfd, ".", "none"));
	assert_int_equal(scratch_write(here, "none", ""), 0);
	assert_int_equal(try_shared(path, &dir, &why), -ENOTDIR);
	assert_non_null(strstr(why.text, path));
	system_errno = EACCES; /* it may well be there */
	assert_true(try_shared("", &dir, &why) < 0);
	assert_non_null(strstr(why.text, SYSTEM));
}

/* --- where there is none ------------------------------------------------------------ */

static int try_own(struct statedir_choice choice, struct statedir *dir)
{
	struct why why = WHY_NONE;

	*dir = STATEDIR_NONE;
	return statedir_open(&choice, dir, &why);
}

static void without_a_shared_one_a_private_one_is_made(void **state)
{
	char home[128], wanted[192];
	mode_t old = umask(0);
	struct statedir dir;

	(void)state;
	(void)snprintf(home, sizeof(home), "%s/home", here->path);
	assert_int_equal(mkdirat(here->dirfd, "home", 0755), 0);
	assert_int_equal(
		try_own((struct statedir_choice){ .system_path = SYSTEM, .home = home },
			&dir),
		0);
	(void)umask(old);
	(void)snprintf(wanted, sizeof(wanted), "%s/.local/state/gpulease", home);
	assert_string_equal(dir.path, wanted);
	assert_true(dir.is_private && dir.is_fallback);
	assert_int_equal(mode_of("home/.local"), 0700);
	assert_int_equal(mode_of("home/.local/state/gpulease"), 0700);
	assert_int_equal(mode_of("home/.local/state/gpulease/live"), 0700);
	statedir_release(&dir);
	(void)snprintf(wanted, sizeof(wanted), "%s/state", here->path);
	assert_int_equal(try_own((struct statedir_choice){ .system_path = SYSTEM,
					 .home = home,
					 .state_home = wanted },
				 &dir),
		0);
	assert_int_equal(mode_of("state/gpulease"), 0700);
	statedir_release(&dir);
	/* a relative path is none */
	assert_int_equal(try_own((struct statedir_choice){ .system_path = SYSTEM,
					 .home = home,
					 .state_home = "state" },
				 &dir),
		0);
	assert_non_null(strstr(dir.path, "/home/.local/state"));
	statedir_release(&dir);
}

static void a_private_directory_of_another_user_is_refused(void **state)
{
	struct statedir_choice choice = { .system_path = SYSTEM,
		.state_home = here->path };
	struct statedir dir = STATEDIR_NONE;
	struct why why = WHY_NONE;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(mkdirat(here->dirfd, "gpulease", 0700), 0);
	assert_int_equal(fchownat(here->dirfd, "gpulease", SOMEBODY, SOMEBODY, 0), 0);
	assert_int_equal(statedir_open(&choice, &dir, &why), -EACCES);
	assert_non_null(strstr(why.text, "it is not yours"));
	assert_int_equal(dir.fd, -1);
}

static void every_simulation_has_a_directory_of_its_own(void **state)
{
	struct statedir_choice choice = { .system_path = SYSTEM,
		.state_home = here->path,
		.sim_gpus = 4,
		.sim_mib = 24576,
		.explicit_path = "/proc/nonexistent" };
	struct statedir dir;

	(void)state;
	system_errno = 0;
	assert_int_equal(try_own(choice, &dir), 0);
	assert_non_null(strstr(dir.path, "/gpulease/sim-4x24576"));
	assert_true(dir.is_private);
	assert_false(dir.is_fallback);
	statedir_release(&dir);
}

/*
 * Opens a directory in a process of its own, with a uid that no user has: it leaves no file of a
 * real user.  The home is on the network.  Checks that it is the directory @path.
 */
static void check_local(const char *path)
{
	int status = -1;
	pid_t pid;

	assert_int_equal(fchmod(here->dirfd, 0777), 0);
	pid = fork();
	if (pid == 0) {
		struct statedir_choice choice = { .system_path = SYSTEM,
			.state_home = here->path };
		struct statedir dir = STATEDIR_NONE;
		bool good;

		if (setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
			_exit(1);
		magic = 0x6969;
		magic_calls = 1;
		good = statedir_open(&choice, &dir, NULL) == 0 && dir.is_private &&
		       strcmp(dir.path, path) == 0;
		(void)unlinkat(dir.fd, "gpu", AT_REMOVEDIR);
		(void)unlinkat(dir.fd, FIFO_LIVE, AT_REMOVEDIR);
		(void)unlinkat(dir.fd, FIFO_BELL, AT_REMOVEDIR);
		(void)rmdir(path);
		_exit(good ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void local_path(const char *suffix, char out[64])
{
	(void)snprintf(out, 64, "/var/tmp/gpulease-%u%s", (unsigned)SOMEBODY, suffix);
}

static void a_home_on_the_network_is_passed_by(void **state)
{
	char path[64];

	(void)state;
	local_path("", path);
	if (geteuid() != 0 || access(path, F_OK) == 0)
		skip_because("needs root, and a path in /var/tmp that is free");
	check_local(path);
}

static void a_name_that_another_user_has_taken_is_passed_by(void **state)
{
	static const char *const taken[] = { "", ".1", ".2" };
	char path[64];

	(void)state;
	local_path("", path);
	if (geteuid() != 0 || access(path, F_OK) == 0)
		skip_because("needs root, and a path in /var/tmp that is free");
	local_path(taken[0], path);
	assert_int_equal(mkdir(path, 0777), 0);
	local_path(taken[1], path);
	assert_int_equal(symlink("/etc", path), 0);
	local_path(taken[2], path);
	assert_int_equal(mkdir(path, 0700), 0);
	local_path(".3", path);
	check_local(path);
	/* the user's own one stays the one, also when a name before it is free again */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		local_path(taken[i], path);
		assert_int_equal(remove(path), 0);
	}
	local_path(".3", path);
	check_local(path);
}

/* --- two at once -------------------------------------------------------------------- */

static struct stat made;

static void make_folder(void)
{
	assert_int_equal(mkdirat(here->dirfd, "gpu", 0700), 0);
	assert_int_equal(fstatat(here->dirfd, "gpu", &made, 0), 0);
}

/* Also an empty one: the process that made it may have it open. */
static void a_folder_that_another_process_has_made_meanwhile_stays(void **state)
{
	struct statedir dir;
	struct why why;
	struct stat now;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 0700), 0);
	before_rename = make_folder;
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	assert_null(before_rename);
	assert_int_equal(fstatat(here->dirfd, "gpu", &now, 0), 0);
	assert_int_equal(now.st_ino, made.st_ino);
	statedir_release(&dir);
}

static void many_make_it_at_once_and_none_loses_a_fifo(void **state)
{
	enum { MAKERS = 12 };
	struct other_report reports[MAKERS];
	pid_t pids[MAKERS];
	int ends[2];

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (unsigned i = 0; i < MAKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct other_report report = { .error = 0 };
			struct statedir dir;
			struct why why;

			report.error = try_shared(here->path, &dir, &why);
			if (report.error == 0)
				report = other_become(dir.fd, OTHER_LIVE | OTHER_BELL);
			(void)!write(ends[1], &report, sizeof(report));
			fixture_rest();
		}
	}
	for (unsigned i = 0; i < MAKERS; i++) {
		assert_int_equal(read(ends[0], &reports[i], sizeof(reports[i])),
			sizeof(reports[i]));
		assert_int_equal(reports[i].error, 0);
	}
	for (unsigned i = 0; i < MAKERS; i++) {
		struct statedir dir = fixture_dir_of(here->dirfd);

		assert_int_equal(live_fifo_look(&dir, reports[i].owner.token, NULL),
			LIVE_FIFO_HELD);
		statedir_release(&dir);
		assert_true(
			fixture_exists(here->dirfd, FIFO_BELL, reports[i].owner.token));
	}
	for (unsigned i = 0; i < MAKERS; i++)
		fixture_kill(&pids[i]);
	assert_int_equal(mode_of("live"), 02770);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void removed_folders_are_made_again(void **state)
{
	struct statedir dir;
	struct why why;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	assert_int_equal(unlinkat(dir.fd, FIFO_LIVE, AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu", AT_REMOVEDIR), 0);
	assert_int_equal(statedir_repair(&dir), 0);
	assert_int_equal(mode_of("gpu"), 02770);
	assert_int_equal(mode_of(FIFO_LIVE), 02770);
	statedir_release(&dir);
}

/* Checks that the directory is refused because of its folder @name. */
static void check_folder_refused(const char *name, int error, const char *part)
{
	int before = fixture_open_fds(), r;
	struct statedir dir;
	struct why why;

	r = try_shared(here->path, &dir, &why);
	if (r != error || !strstr(why.text, part) || !strstr(why.text, name))
		fail_msg("%d '%s' does not say '%s' of '%s'", r, why.text, part, name);
	assert_int_equal(dir.fd, -1);
	assert_int_equal(fixture_open_fds(), before);
}

static void a_link_in_the_place_of_a_folder_is_refused(void **state)
{
	static const char *const folders[] = { "gpu", FIFO_LIVE, FIFO_BELL };
	struct statedir dir;
	struct why why;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(mkdirat(here->dirfd, "elsewhere", 0770), 0);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_int_equal(try_shared(here->path, &dir, &why), 0);
		statedir_release(&dir);
		assert_int_equal(unlinkat(here->dirfd, folders[i], AT_REMOVEDIR), 0);
		assert_int_equal(symlinkat("elsewhere", here->dirfd, folders[i]), 0);
		check_folder_refused(folders[i], -ENOTDIR, "not a folder");
		assert_int_equal(unlinkat(here->dirfd, folders[i], 0), 0);
	}
	/* nothing was written there: it can be removed */
	assert_int_equal(unlinkat(here->dirfd, "elsewhere", AT_REMOVEDIR), 0);
}

static void a_folder_is_checked_as_the_directory_is(void **state)
{
	struct statedir dir;
	struct why why;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	assert_int_equal(fchmodat(dir.fd, FIFO_LIVE, 02777, 0), 0);
	check_folder_refused(FIFO_LIVE, -EACCES, "everybody may write there");
	assert_int_equal(fchmodat(dir.fd, FIFO_LIVE, 0770, 0), 0);
	check_folder_refused(FIFO_LIVE, -EACCES, "would not get its group");
	assert_int_equal(fchmodat(dir.fd, FIFO_LIVE, 02770, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchmod(here->dirfd, 0700), 0);
		assert_int_equal(fchownat(dir.fd, "gpu", SOMEBODY, (gid_t)-1, 0), 0);
		check_folder_refused("gpu", -EACCES, "it is not yours");
	}
	statedir_release(&dir);
}

static bool is_same_folder(int fd, const char *name)
{
	struct stat open_one, named;

	return fstat(fd, &open_one) == 0 &&
	       fstatat(here->dirfd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

static void a_folder_that_was_replaced_is_followed(void **state)
{
	struct statedir dir;
	struct why why;
	int gpu_fd;

	(void)state;
	assert_int_equal(fchmod(here->dirfd, 02770), 0);
	assert_int_equal(try_shared(here->path, &dir, &why), 0);
	gpu_fd = dir.gpu_fd;
	assert_int_equal(renameat(dir.fd, "gpu", dir.fd, "before"), 0);
	statedir_refresh(&dir); /* nothing is there to follow */
	assert_true(is_same_folder(gpu_fd, "before"));
	assert_int_equal(symlinkat("before", dir.fd, "gpu"), 0);
	statedir_refresh(&dir);
	assert_true(is_same_folder(gpu_fd, "before"));
	assert_int_equal(unlinkat(dir.fd, "gpu", 0), 0);
	assert_int_equal(statedir_repair(&dir), 0);
	assert_int_equal(dir.gpu_fd, gpu_fd);
	assert_true(is_same_folder(gpu_fd, "gpu"));
	assert_int_equal(fcntl(gpu_fd, F_GETFD), FD_CLOEXEC);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_named_directory_is_used_and_gets_its_folders),
		TEST(the_modes_do_not_depend_on_the_umask),
		TEST(a_link_in_the_place_of_a_folder_is_refused),
		TEST(a_folder_is_checked_as_the_directory_is),
		TEST(a_folder_that_was_replaced_is_followed),
		TEST(a_directory_of_ones_own_is_private),
		TEST(the_path_is_the_real_path),
		TEST(a_directory_that_cannot_be_trusted_is_refused),
		TEST(another_users_own_directory_is_refused),
		TEST(a_directory_without_write_access_is_refused),
		TEST(file_systems_that_do_not_share_locks_are_refused),
		TEST(a_missing_or_bad_directory_is_never_replaced_by_another),
		TEST(without_a_shared_one_a_private_one_is_made),
		TEST(a_private_directory_of_another_user_is_refused),
		TEST(every_simulation_has_a_directory_of_its_own),
		TEST(a_home_on_the_network_is_passed_by),
		TEST(a_name_that_another_user_has_taken_is_passed_by),
		TEST(a_folder_that_another_process_has_made_meanwhile_stays),
		TEST(many_make_it_at_once_and_none_loses_a_fifo),
		TEST(removed_folders_are_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
