#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>

#include "fixture.h"

static struct owner make_owner(void)
{
	struct owner owner;

	assert_int_equal(owner_self(&owner), 0);
	return owner;
}

static void a_ring_wakes_only_the_owner_of_the_bell(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner one = make_owner(), two = make_owner();
	int bell = fifo_create(&dir, FIFO_BELL, &one);
	int other_bell = fifo_create(&dir, FIFO_BELL, &two);

	assert_false(fixture_is_ready(bell, POLLIN));
	bell_ring(&dir, one.token);
	assert_true(fixture_is_ready(bell, POLLIN));
	assert_false(fixture_is_ready(other_bell, POLLIN));
	bell_drain(bell);
	assert_false(fixture_is_ready(bell, POLLIN));
	bell_ring_all(&dir);
	assert_true(fixture_is_ready(bell, POLLIN));
	assert_true(fixture_is_ready(other_bell, POLLIN));
	close_fd(&bell);
	close_fd(&other_bell);
	bell_ring(&dir, one.token); /* its owner is gone: nothing happens */
	bell_ring(&dir, "0123456789abcdef");
	statedir_release(&dir);
}

static void a_full_bell_blocks_no_ringer(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = fifo_create(&dir, FIFO_BELL, &owner);

	assert_true(bell >= 0);
	assert_true(fcntl(bell, F_SETPIPE_SZ, 4096) > 0);
	for (int i = 0; i < 10000; i++)
		bell_ring(&dir, owner.token);
	assert_true(fixture_is_ready(bell, POLLIN));
	bell_drain(bell);
	assert_false(fixture_is_ready(bell, POLLIN));
	close_fd(&bell);
	statedir_release(&dir);
}

static void ringing_writes_to_no_regular_file(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct stat st;

	assert_int_equal(scratch_write(s, "precious", ""), 0);
	assert_int_equal(scratch_write(s, "bell/00000000000000aa", ""), 0);
	assert_int_equal(symlinkat("../precious", dir.fd, "bell/00000000000000bb"), 0);
	bell_ring(&dir, "00000000000000aa");
	bell_ring(&dir, "00000000000000bb");
	bell_ring_all(&dir);
	assert_int_equal(fstatat(dir.fd, "precious", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(fstatat(dir.fd, "bell/00000000000000aa", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	statedir_release(&dir);
}

static void a_sweep_rings_no_bell(void **state)
{
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = fifo_create(&dir, FIFO_BELL, &owner), before;

	bell_ring(&dir, owner.token);
	before = fixture_open_fds();
	bell_sweep(&dir);
	assert_int_equal(fixture_open_fds(), before);
	assert_true(fixture_is_ready(bell, POLLIN)); /* the ring has not been stolen */
	bell_drain(bell);
	bell_sweep(&dir);
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

static void ringing_all_reaches_every_bell_and_removes_the_dead_ones(void **state)
{
	enum { DEAD = 4500, LIVING = 40 };
	struct statedir dir = fixture_dir(*state);
	int bells[LIVING];

	for (int i = 0; i < LIVING / 2; i++) {
		struct owner owner = make_owner();

		bells[i] = fifo_create(&dir, FIFO_BELL, &owner);
	}
	make_dead_bells(&dir, DEAD);
	for (int i = LIVING / 2; i < LIVING; i++) {
		struct owner owner = make_owner();

		bells[i] = fifo_create(&dir, FIFO_BELL, &owner);
	}
	bell_ring_all(&dir);
	for (int i = 0; i < LIVING; i++)
		assert_true(fixture_is_ready(bells[i], POLLIN));
	assert_int_equal(count_names(dir.bell_fd), LIVING);
	for (int i = 0; i < LIVING; i++)
		close_fd(&bells[i]);
	statedir_release(&dir);
}

static void a_folder_with_many_names_is_swept_in_parts(void **state)
{
	enum { DEAD = 2500, MOST = 10000 };
	struct statedir dir = fixture_dir(*state);
	struct owner owner = make_owner();
	int bell = fifo_create(&dir, FIFO_BELL, &owner);
	unsigned sweeps = 0, left = DEAD;

	make_dead_bells(&dir, DEAD);
	bell_sweep(&dir);
	assert_true(count_names(dir.bell_fd) > DEAD / 3); /* it costs no more than that */
	while (left > 1 && sweeps++ < MOST) {
		bell_sweep(&dir);
		left = count_names(dir.bell_fd);
	}
	assert_int_equal(left, 1);
	assert_true(fixture_exists(dir.fd, FIFO_BELL, owner.token));
	close_fd(&bell);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_ring_wakes_only_the_owner_of_the_bell),
		SCRATCH_TEST(a_full_bell_blocks_no_ringer),
		SCRATCH_TEST(ringing_writes_to_no_regular_file),
		SCRATCH_TEST(a_sweep_rings_no_bell),
		SCRATCH_TEST(ringing_all_reaches_every_bell_and_removes_the_dead_ones),
		SCRATCH_TEST(a_folder_with_many_names_is_swept_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
