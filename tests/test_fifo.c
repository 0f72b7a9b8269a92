#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "clock.h"
#include "fixture.h"

static const int64_t HOUR_MS = 3600 * 1000;
static int64_t later_ms; /* how far the clock is set forward */

int64_t __real_clock_real_ms(void);
int64_t __wrap_clock_real_ms(void);

int64_t __wrap_clock_real_ms(void)
{
	return __real_clock_real_ms() + later_ms;
}

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

static void the_modes_do_not_depend_on_the_umask(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	mode_t old = umask(077);
	int live = fifo_create(&dir, FIFO_LIVE, &owner);
	int bell = fifo_create(&dir, FIFO_BELL, &owner);

	(void)umask(old);
	assert_true(live >= 0 && bell >= 0);
	assert_int_equal(mode_of(dir.fd, FIFO_LIVE, owner.token), 0640);
	assert_int_equal(mode_of(dir.fd, FIFO_BELL, owner.token), 0660);
	close_fd(&live);
	close_fd(&bell);
	statedir_release(&dir);
}

static void only_tokens_are_removed(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);

	assert_int_equal(scratch_write(s, "precious", ""), 0);
	assert_int_equal(scratch_write(s, "live/other", ""), 0);
	fifo_remove(&dir, FIFO_LIVE, "../precious");
	fifo_remove(&dir, FIFO_LIVE, "other");
	fifo_remove(&dir, FIFO_LIVE, "");
	assert_true(fixture_exists(dir.fd, ".", "precious"));
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, "other"));
	statedir_release(&dir);
}

static void a_fifo_that_cannot_be_made_leaves_nothing(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	char path[64];
	int before = fixture_open_fds();

	/* its name is taken by a folder, so that it cannot be renamed */
	(void)snprintf(path, sizeof(path), FIFO_LIVE "/%s", owner.token);
	assert_int_equal(mkdirat(dir.fd, path, 0700), 0);
	assert_true(fifo_create(&dir, FIFO_LIVE, &owner) < 0);
	assert_int_equal(fixture_open_fds(), before);
	assert_int_equal(unlinkat(dir.fd, path, AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir.fd, FIFO_LIVE, AT_REMOVEDIR), 0); /* empty */
	assert_int_equal(fifo_create(&dir, FIFO_LIVE, &owner), -ENOENT);
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

static void sweep_both_folders(const struct statedir *dir)
{
	live_fifo_sweep(dir, NULL, NULL);
	bell_sweep(dir);
}

static void a_sweep_removes_fifos_of_dead_owners(void **state)
{
	static const char *const folders[] = { FIFO_LIVE, FIFO_BELL };
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_LIVE | OTHER_BELL);
	char name[160];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_true(fixture_exists(dir.fd, folders[i], dead.token));
		make_temporary(dir.fd, folders[i], &dead, name, sizeof(name));
	}
	sweep_both_folders(&dir);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_false(fixture_exists(dir.fd, folders[i], dead.token));
		assert_false(fixture_exists(dir.fd, folders[i], name));
	}
	statedir_release(&dir);
}

/* Its maker is in another pid namespace. */
static void a_sweep_removes_an_old_temporary_name_whatever_its_maker(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner dead = fixture_dead_owner(dir.fd, OTHER_ALONE);
	char name[160];

	dead.pidns++;
	make_temporary(dir.fd, FIFO_LIVE, &dead, name, sizeof(name));
	later_ms = 23 * HOUR_MS;
	live_fifo_sweep(&dir, NULL, NULL);
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, name));
	later_ms = 25 * HOUR_MS;
	live_fifo_sweep(&dir, NULL, NULL);
	assert_false(fixture_exists(dir.fd, FIFO_LIVE, name));
	later_ms = 0;
	statedir_release(&dir);
}

static void a_sweep_keeps_fifos_of_living_owners(void **state)
{
	static const char *const folders[] = { FIFO_LIVE, FIFO_BELL };
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
	sweep_both_folders(&dir);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		assert_true(fixture_exists(dir.fd, folders[i], other.owner.token));
		assert_true(fixture_exists(dir.fd, folders[i], mine));
		assert_true(fixture_exists(dir.fd, folders[i], elsewhere));
	}
	assert_true(fixture_exists(dir.fd, FIFO_LIVE, "notes"));
	assert_true(fixture_exists(dir.fd, FIFO_BELL, "tmp.x"));
	other_end(&other);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(the_modes_do_not_depend_on_the_umask),
		SCRATCH_TEST(only_tokens_are_removed),
		SCRATCH_TEST(a_fifo_that_cannot_be_made_leaves_nothing),
		SCRATCH_TEST(a_sweep_removes_fifos_of_dead_owners),
		SCRATCH_TEST(a_sweep_removes_an_old_temporary_name_whatever_its_maker),
		SCRATCH_TEST(a_sweep_keeps_fifos_of_living_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
