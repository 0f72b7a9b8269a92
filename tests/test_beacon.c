#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include <dirent.h>

#include "fixture.h"

static struct owner make_owner(void)
{
	struct owner owner;

	assert_int_equal(owner_self(&owner), 0);
	return owner;
}

static mode_t mode_of(int dirfd, const char *folder, const char *token)
{
	char name[64];
	struct stat st;

	(void)snprintf(name, sizeof(name), "%s/%s", folder, token);
	assert_int_equal(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISFIFO(st.st_mode));
	return st.st_mode & 07777;
}

static void a_fifo_that_is_held_says_so_until_it_is_let_go(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int fd = beacon_create(&dir, BEACON_LIVE, &owner);

	assert_true(fd >= 0);
	assert_int_equal(beacon_look(&dir, owner.token, NULL), BEACON_HELD);
	close_fd(&fd);
	assert_int_equal(beacon_look(&dir, owner.token, NULL), BEACON_GONE);
	beacon_remove(&dir, BEACON_LIVE, owner.token);
	assert_false(fixture_exists(dir.fd, BEACON_LIVE, owner.token));
	assert_int_equal(beacon_look(&dir, owner.token, NULL), BEACON_GONE);
	statedir_release(&dir);
}

static void what_was_inherited_is_let_go_and_nothing_else(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner(), other = make_owner();
	int fd = beacon_create(&dir, BEACON_LIVE, &owner), looking = -1;
	int foreign = beacon_create(&dir, BEACON_LIVE, &other);
	int inherited = fcntl(fd, F_DUPFD, 100);

	assert_int_equal(beacon_look(&dir, owner.token, &looking), BEACON_HELD);
	beacon_let_go(&dir, owner.token);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(fcntl(inherited, F_GETFD), -1);
	assert_int_equal(beacon_look_again(looking), BEACON_GONE);
	assert_int_equal(beacon_look(&dir, other.token, NULL), BEACON_HELD);
	beacon_let_go(&dir, "0123456789abcdef"); /* there is none */
	assert_int_equal(fcntl(foreign, F_GETFD), FD_CLOEXEC);
	close_fd(&looking);
	close_fd(&foreign);
	statedir_release(&dir);
}

static void the_modes_do_not_depend_on_the_umask(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	mode_t old = umask(077);
	int live = beacon_create(&dir, BEACON_LIVE, &owner);
	int bell = beacon_create(&dir, BEACON_BELL, &owner);

	(void)umask(old);
	assert_true(live >= 0 && bell >= 0);
	assert_int_equal(mode_of(dir.fd, BEACON_LIVE, owner.token), 0640);
	assert_int_equal(mode_of(dir.fd, BEACON_BELL, owner.token), 0660);
	close_fd(&live);
	close_fd(&bell);
	statedir_release(&dir);
}

static void the_descriptor_of_a_look_hangs_up_with_the_last_holder(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_HEIR);
	int fd = -1;

	assert_int_equal(beacon_look(&dir, other.owner.token, &fd), BEACON_HELD);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	other_kill(&other);
	assert_false(fixture_is_ready(fd, 0)); /* its heir holds it */
	assert_int_equal(beacon_look_again(fd), BEACON_HELD);
	other_kill_heir(&other);
	assert_true(fixture_is_ready(fd, 0));
	assert_int_equal(beacon_look_again(fd), BEACON_GONE);
	close_fd(&fd);
	statedir_release(&dir);
}

/* What makes reading before polling necessary. */
static void a_fifo_opened_too_late_is_gone_although_poll_never_says_so(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE);
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), BEACON_LIVE "/%s", dead.token);
	fd = openat(dir.fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_false(fixture_is_ready(fd, 0));
	assert_int_equal(beacon_look_again(fd), BEACON_GONE);
	close_fd(&fd);
	assert_int_equal(beacon_look(&dir, dead.token, &fd), BEACON_GONE);
	assert_int_equal(fd, -1);
	statedir_release(&dir);
}

static void what_is_no_fifo_decides_nothing(void **state)
{
	static const char *const plain = "00000000000000aa", *const link_name =
								     "00000000000000bb";
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	int fd = 4711;

	assert_int_equal(scratch_write(s, "live/00000000000000aa", ""), 0);
	assert_int_equal(symlinkat(plain, dir.fd, "live/00000000000000bb"), 0);
	assert_int_equal(beacon_look(&dir, plain, &fd), BEACON_UNDECIDED);
	assert_int_equal(fd, -1);
	assert_int_equal(beacon_look(&dir, link_name, &fd), BEACON_UNDECIDED);
	assert_int_equal(fd, -1);
	statedir_release(&dir);
}

static void without_descriptors_nothing_is_decided(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int fd = beacon_create(&dir, BEACON_LIVE, &owner);
	enum beacon_state held, gone;
	struct rlimit old, none;

	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	held = beacon_look(&dir, owner.token, NULL);
	close_fd(&fd);
	gone = beacon_look(&dir, owner.token, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(held, BEACON_UNDECIDED);
	assert_int_equal(gone, BEACON_UNDECIDED);
	statedir_release(&dir);
}

static void a_ring_wakes_the_owner_and_only_the_owner(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner one = make_owner(), two = make_owner();
	int bell = beacon_create(&dir, BEACON_BELL, &one);
	int other_bell = beacon_create(&dir, BEACON_BELL, &two);

	assert_false(fixture_is_ready(bell, POLLIN));
	beacon_ring(&dir, one.token);
	assert_true(fixture_is_ready(bell, POLLIN));
	assert_false(fixture_is_ready(other_bell, POLLIN));
	beacon_drain(bell);
	assert_false(fixture_is_ready(bell, POLLIN));
	beacon_ring_all(&dir);
	assert_true(fixture_is_ready(bell, POLLIN));
	assert_true(fixture_is_ready(other_bell, POLLIN));
	close_fd(&bell);
	close_fd(&other_bell);
	beacon_ring(&dir, one.token); /* its owner is gone: nothing happens */
	beacon_ring(&dir, "0123456789abcdef");
	statedir_release(&dir);
}

static void a_full_bell_holds_up_nobody(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = beacon_create(&dir, BEACON_BELL, &owner);

	assert_true(bell >= 0);
	assert_true(fcntl(bell, F_SETPIPE_SZ, 4096) > 0);
	for (int i = 0; i < 10000; i++)
		beacon_ring(&dir, owner.token);
	assert_true(fixture_is_ready(bell, POLLIN));
	beacon_drain(bell);
	assert_false(fixture_is_ready(bell, POLLIN));
	close_fd(&bell);
	statedir_release(&dir);
}

static void ringing_writes_into_no_plain_file(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct stat st;

	assert_int_equal(scratch_write(s, "precious", ""), 0);
	assert_int_equal(scratch_write(s, "bell/00000000000000aa", ""), 0);
	assert_int_equal(symlinkat("../precious", dir.fd, "bell/00000000000000bb"), 0);
	beacon_ring(&dir, "00000000000000aa");
	beacon_ring(&dir, "00000000000000bb");
	beacon_ring_all(&dir);
	assert_int_equal(fstatat(dir.fd, "precious", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(fstatat(dir.fd, "bell/00000000000000aa", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	statedir_release(&dir);
}

static void only_tokens_are_removed(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);

	assert_int_equal(scratch_write(s, "precious", ""), 0);
	assert_int_equal(scratch_write(s, "live/other", ""), 0);
	beacon_remove(&dir, BEACON_LIVE, "../precious");
	beacon_remove(&dir, BEACON_LIVE, "other");
	beacon_remove(&dir, BEACON_LIVE, "");
	assert_true(fixture_exists(dir.fd, ".", "precious"));
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, "other"));
	statedir_release(&dir);
}

static void a_fifo_that_cannot_be_made_leaves_nothing(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	char path[64];
	int before = fixture_open_fds();

	/* its name is taken by a folder, so that it cannot be renamed */
	(void)snprintf(path, sizeof(path), BEACON_LIVE "/%s", owner.token);
	assert_int_equal(mkdirat(dir.fd, path, 0700), 0);
	assert_true(beacon_create(&dir, BEACON_LIVE, &owner) < 0);
	assert_int_equal(fixture_open_fds(), before);
	assert_int_equal(unlinkat(dir.fd, path, AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir.fd, BEACON_LIVE, AT_REMOVEDIR), 0); /* empty */
	assert_int_equal(beacon_create(&dir, BEACON_LIVE, &owner), -ENOENT);
	statedir_release(&dir);
}

static void make_temporary(
	int dirfd, const char *folder, const struct owner *owner, char *name, size_t size)
{
	char path[200];

	(void)snprintf(name, size, "tmp.%u.%llu.%llu.%llu.%s", owner->pid,
		(unsigned long long)owner->inode, (unsigned long long)owner->start,
		(unsigned long long)owner->pidns, owner->token);
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkfifoat(dirfd, path, 0600), 0);
}

static void a_sweep_removes_what_the_dead_have_left(void **state)
{
	static const char *const folders[] = { BEACON_LIVE, BEACON_BELL };
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);
	char name[160];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_true(fixture_exists(dir.fd, folders[i], dead.token));
		make_temporary(dir.fd, folders[i], &dead, name, sizeof(name));
	}
	beacon_sweep(&dir);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_false(fixture_exists(dir.fd, folders[i], dead.token));
		assert_false(fixture_exists(dir.fd, folders[i], name));
	}
	statedir_release(&dir);
}

static void a_sweep_spares_the_living(void **state)
{
	static const char *const folders[] = { BEACON_LIVE, BEACON_BELL };
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct other other = other_start(dir.fd, OTHER_LIVE | OTHER_BELL);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	char mine[160], elsewhere[160];

	dead.pidns++; /* whether it is dead there cannot be told from here */
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		make_temporary(dir.fd, folders[i], &other.owner, mine, sizeof(mine));
		make_temporary(dir.fd, folders[i], &dead, elsewhere, sizeof(elsewhere));
	}
	assert_int_equal(scratch_write(s, "live/notes", ""), 0);
	assert_int_equal(scratch_write(s, "bell/tmp.x", ""), 0);
	beacon_sweep(&dir);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_true(fixture_exists(dir.fd, folders[i], other.owner.token));
		assert_true(fixture_exists(dir.fd, folders[i], mine));
		assert_true(fixture_exists(dir.fd, folders[i], elsewhere));
	}
	assert_true(fixture_exists(dir.fd, BEACON_LIVE, "notes"));
	assert_true(fixture_exists(dir.fd, BEACON_BELL, "tmp.x"));
	other_end(&other);
	statedir_release(&dir);
}

static void a_sweep_rings_no_bell(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = beacon_create(&dir, BEACON_BELL, &owner), before;

	beacon_ring(&dir, owner.token);
	before = fixture_open_fds();
	beacon_sweep(&dir);
	assert_int_equal(fixture_open_fds(), before);
	assert_true(fixture_is_ready(bell, POLLIN)); /* the ring has not been stolen */
	beacon_drain(bell);
	beacon_sweep(&dir);
	assert_false(fixture_is_ready(bell, POLLIN));
	close_fd(&bell);
	statedir_release(&dir);
}

/* Makes @count bells that no process has open. */
static void make_dead_bells(const struct statedir *dir, unsigned count)
{
	char name[TOKEN_SIZE];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "%016x", i * 2654435761u);
		assert_int_equal(mkfifoat(dir->bell_fd, name, 0600), 0);
	}
}

static unsigned count_names(int at_fd)
{
	int fd = openat(at_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(names);
	while ((entry = readdir(names)))
		count += entry->d_name[0] != '.';
	(void)closedir(names);
	return count;
}

static void ringing_all_reaches_all_and_sweeps_the_dead(void **state)
{
	enum { DEAD = 4500, LIVING = 40 };
	struct statedir dir = fixture_dir(*state);
	int bells[LIVING];

	for (int i = 0; i < LIVING / 2; i++) {
		struct owner owner = make_owner();

		bells[i] = beacon_create(&dir, BEACON_BELL, &owner);
	}
	make_dead_bells(&dir, DEAD);
	for (int i = LIVING / 2; i < LIVING; i++) {
		struct owner owner = make_owner();

		bells[i] = beacon_create(&dir, BEACON_BELL, &owner);
	}
	beacon_ring_all(&dir);
	for (int i = 0; i < LIVING; i++)
		assert_true(fixture_is_ready(bells[i], POLLIN));
	assert_int_equal(count_names(dir.bell_fd), LIVING);
	for (int i = 0; i < LIVING; i++)
		close_fd(&bells[i]);
	statedir_release(&dir);
}

static void a_folder_with_many_names_is_swept_part_by_part(void **state)
{
	enum { DEAD = 2500, MOST = 10000 };
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = beacon_create(&dir, BEACON_BELL, &owner);
	unsigned sweeps = 0, left = DEAD;

	make_dead_bells(&dir, DEAD);
	beacon_sweep(&dir);
	assert_true(count_names(dir.bell_fd) > DEAD / 3); /* it costs no more than that */
	while (left > 1 && sweeps++ < MOST) {
		beacon_sweep(&dir);
		left = count_names(dir.bell_fd);
	}
	assert_int_equal(left, 1);
	assert_true(fixture_exists(dir.fd, BEACON_BELL, owner.token));
	close_fd(&bell);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_fifo_that_is_held_says_so_until_it_is_let_go),
		SCRATCH_TEST(what_was_inherited_is_let_go_and_nothing_else),
		SCRATCH_TEST(the_modes_do_not_depend_on_the_umask),
		SCRATCH_TEST(the_descriptor_of_a_look_hangs_up_with_the_last_holder),
		SCRATCH_TEST(a_fifo_opened_too_late_is_gone_although_poll_never_says_so),
		SCRATCH_TEST(what_is_no_fifo_decides_nothing),
		SCRATCH_TEST(without_descriptors_nothing_is_decided),
		SCRATCH_TEST(a_ring_wakes_the_owner_and_only_the_owner),
		SCRATCH_TEST(a_full_bell_holds_up_nobody),
		SCRATCH_TEST(ringing_all_reaches_all_and_sweeps_the_dead),
		SCRATCH_TEST(a_folder_with_many_names_is_swept_part_by_part),
		SCRATCH_TEST(ringing_writes_into_no_plain_file),
		SCRATCH_TEST(only_tokens_are_removed),
		SCRATCH_TEST(a_fifo_that_cannot_be_made_leaves_nothing),
		SCRATCH_TEST(a_sweep_removes_what_the_dead_have_left),
		SCRATCH_TEST(a_sweep_spares_the_living),
		SCRATCH_TEST(a_sweep_rings_no_bell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
