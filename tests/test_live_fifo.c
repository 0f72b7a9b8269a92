#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "fixture.h"

static bool
	is_refused; /* what the kernel says to another user; root may open everything */

int __real_openat(int dirfd, const char *name, int flags, ...);
int __wrap_openat(int dirfd, const char *name, int flags, ...);

int __wrap_openat(int dirfd, const char *name, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	if (is_refused) {
		errno = EACCES;
		return -1;
	}
	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return __real_openat(dirfd, name, flags, mode);
}

static struct owner make_owner(void)
{
	struct owner owner;

	assert_int_equal(owner_self(&owner), 0);
	return owner;
}

static void a_fifo_is_held_until_its_last_writer_closes_it(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int fd = fifo_create(&dir, FIFO_LIVE, &owner);

	assert_true(fd >= 0);
	assert_int_equal(live_fifo_look(&dir, owner.token, NULL), LIVE_FIFO_HELD);
	close_fd(&fd);
	assert_int_equal(live_fifo_look(&dir, owner.token, NULL), LIVE_FIFO_GONE);
	fifo_remove(&dir, FIFO_LIVE, owner.token);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, owner.token));
	assert_int_equal(live_fifo_look(&dir, owner.token, NULL), LIVE_FIFO_GONE);
	statedir_release(&dir);
}

static void only_the_inherited_descriptors_of_one_fifo_are_closed(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner(), other = make_owner();
	int fd = fifo_create(&dir, FIFO_LIVE, &owner), looking = -1;
	int foreign = fifo_create(&dir, FIFO_LIVE, &other);
	int inherited = fcntl(fd, F_DUPFD, 100);

	assert_int_equal(live_fifo_look(&dir, owner.token, &looking), LIVE_FIFO_HELD);
	live_fifo_close_inherited(&dir, owner.token);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(fcntl(inherited, F_GETFD), -1);
	assert_int_equal(live_fifo_look_again(looking), LIVE_FIFO_GONE);
	assert_int_equal(live_fifo_look(&dir, other.token, NULL), LIVE_FIFO_HELD);
	live_fifo_close_inherited(&dir, "0123456789abcdef"); /* there is none */
	assert_int_equal(fcntl(foreign, F_GETFD), FD_CLOEXEC);
	close_fd(&looking);
	close_fd(&foreign);
	statedir_release(&dir);
}

static void the_descriptor_of_a_look_hangs_up_with_the_last_writer(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	int fd = -1;

	assert_int_equal(live_fifo_look(&dir, other.owner.token, &fd), LIVE_FIFO_HELD);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	other_kill(&other);
	assert_false(fixture_is_ready(fd, 0)); /* its heir holds it */
	assert_int_equal(live_fifo_look_again(fd), LIVE_FIFO_HELD);
	other_kill_heir(&other);
	assert_true(fixture_is_ready(fd, 0));
	assert_int_equal(live_fifo_look_again(fd), LIVE_FIFO_GONE);
	close_fd(&fd);
	statedir_release(&dir);
}

/* What makes reading before polling necessary. */
static void a_fifo_opened_too_late_is_gone_although_poll_never_reports_it(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), FIFO_LIVE "/%s", dead.token);
	fd = openat(dir.fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_false(fixture_is_ready(fd, 0));
	assert_int_equal(live_fifo_look_again(fd), LIVE_FIFO_GONE);
	close_fd(&fd);
	assert_int_equal(live_fifo_look(&dir, dead.token, &fd), LIVE_FIFO_GONE);
	assert_int_equal(fd, -1);
	statedir_release(&dir);
}

static void a_file_that_is_no_fifo_is_undecided(void **state)
{
	static const char *const plain = "00000000000000aa", *const link_name =
								     "00000000000000bb";
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	int fd = 4711;

	assert_int_equal(scratch_write(s, "live/00000000000000aa", ""), 0);
	assert_int_equal(symlinkat(plain, dir.fd, "live/00000000000000bb"), 0);
	assert_int_equal(live_fifo_look(&dir, plain, &fd), LIVE_FIFO_UNDECIDED);
	assert_int_equal(fd, -1);
	assert_int_equal(live_fifo_look(&dir, link_name, &fd), LIVE_FIFO_UNDECIDED);
	assert_int_equal(fd, -1);
	statedir_release(&dir);
}

static void without_free_descriptors_a_fifo_is_undecided(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int fd = fifo_create(&dir, FIFO_LIVE, &owner);
	enum live_fifo_state held, gone;
	struct rlimit old, none;

	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	held = live_fifo_look(&dir, owner.token, NULL);
	close_fd(&fd);
	gone = live_fifo_look(&dir, owner.token, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(held, LIVE_FIFO_UNDECIDED);
	assert_int_equal(gone, LIVE_FIFO_UNDECIDED);
	statedir_release(&dir);
}

/* --- what the owner can do to the access ------------------------------------------------ */

static int change_nothing(int fd)
{
	(void)fd;
	return 0;
}

static int change_by_mode(int fd)
{
	return fchmod(fd, 0600);
}

static int change_by_mode_of_the_owner(int fd)
{
	return fchmod(fd, 0240);
}

static int change_by_group(int fd)
{
	return fchown(fd, (uid_t)-1, 4711); /* only root may have any group */
}

/* A list that takes all rights away, while its mask shows a group that may read. */
static int change_by_list(int fd)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, rights;
			uint32_t id;
		} entries[5];
	} list = { 2, { { 0x01, 6, UINT32_MAX }, { 0x02, 0, 0 }, { 0x04, 0, UINT32_MAX },
			      { 0x10, 4, UINT32_MAX }, { 0x20, 0, UINT32_MAX } } };

	return fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0);
}

static void a_refusal_counts_as_the_end_only_if_the_owner_has_changed_the_access(
	void **state)
{
	static const struct {
		int (*change)(int fd);
		enum live_fifo_state seen;
	} cases[] = {
		{ change_nothing, LIVE_FIFO_UNDECIDED },
		{ change_by_mode, LIVE_FIFO_GONE },
		{ change_by_mode_of_the_owner, LIVE_FIFO_GONE },
		{ change_by_group, LIVE_FIFO_GONE },
		{ change_by_list, LIVE_FIFO_GONE },
	};
	struct statedir dir = fixture_dir(*state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct owner owner = make_owner();
		int fd = fifo_create(&dir, FIFO_LIVE, &owner);
		bool is_there;

		assert_true(fd >= 0);
		if (cases[i].change(fd) < 0) {
			print_message("case %zu cannot be made here\n", i);
			close_fd(&fd);
			continue;
		}
		is_refused = true;
		assert_int_equal(live_fifo_look(&dir, owner.token, NULL), cases[i].seen);
		is_refused = false;
		if (geteuid() == 0) /* else the change keeps the owner itself out */
			assert_int_equal(
				live_fifo_look(&dir, owner.token, NULL), LIVE_FIFO_HELD);
		close_fd(&fd);
		fifo_remove(&dir, FIFO_LIVE, owner.token);
		is_there = fixture_exists(dir.fd, FIFO_LIVE, owner.token);
		assert_false(is_there);
	}
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_fifo_is_held_until_its_last_writer_closes_it),
		SCRATCH_TEST(only_the_inherited_descriptors_of_one_fifo_are_closed),
		SCRATCH_TEST(the_descriptor_of_a_look_hangs_up_with_the_last_writer),
		SCRATCH_TEST(
			a_fifo_opened_too_late_is_gone_although_poll_never_reports_it),
		SCRATCH_TEST(a_file_that_is_no_fifo_is_undecided),
		SCRATCH_TEST(without_free_descriptors_a_fifo_is_undecided),
		SCRATCH_TEST(
			a_refusal_counts_as_the_end_only_if_the_owner_has_changed_the_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
