#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draw.h"
#include "fixture.h"
#include "history_keep.h"

enum { FULL = 60, USERS = 5, FLOODER = 1000 };

static struct statedir dir_of(const struct scratch *s)
{
	return (struct statedir){ .fd = s->dirfd, .history_bytes = FULL * RECORD_SIZE };
}

static void append(const struct scratch *s, uint64_t ticket, uint32_t uid)
{
	struct statedir dir = dir_of(s);
	struct history_end end = {
		.ticket = ticket, .uid = uid, .since_ms = 10, .gone_ms = 30
	};

	text_copy(end.status, sizeof(end.status), "0");
	assert_int_equal(history_append(&dir, &end), 0);
}

static uint64_t inode_of(const struct scratch *s, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_ino;
}

static int64_t records_of(const struct scratch *s, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_size / RECORD_SIZE;
}

static void the_users_with_most_lines_have_equally_many(void **state)
{
	static const struct {
		uint64_t counts[4];
		size_t users;
		uint64_t lines, fair;
	} cases[] = {
		{ { 0 }, 0, 100, UINT64_MAX },
		{ { 100 }, 1, 100, UINT64_MAX },
		{ { 101 }, 1, 100, 100 },
		{ { 1, 1000 }, 2, 100, 99 },
		{ { 50, 50 }, 2, 100, UINT64_MAX },
		{ { 51, 51 }, 2, 100, 50 },
		{ { 1, 2, 3, 1000 }, 4, 100, 94 },
		{ { 1, 2, 300, 1000 }, 4, 100, 48 },
		{ { 7, 7, 7, 7 }, 4, 3, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t fair = history_fair_part(
			cases[i].counts, cases[i].users, cases[i].lines);

		assert_int_equal(fair, cases[i].fair);
	}
}

static void a_flood_of_one_user_hides_no_end_of_another(void **state)
{
	struct scratch *s = *state;
	uint32_t uids[] = { 0, 7, 4294967294u };
	uint64_t ticket = 100;
	struct history_end end;

	for (uint32_t i = 0; i < ARRAY_SIZE(uids); i++)
		append(s, i + 1, uids[i]);
	for (unsigned i = 0; i < 12 * FULL; i++) {
		struct history_end *all;
		size_t count, others = 0;

		append(s, ticket++, FLOODER);
		if (i % 7)
			continue;
		for (uint32_t k = 0; k < ARRAY_SIZE(uids); k++)
			assert_int_equal(history_find(s->dirfd, k + 1, 0, &end), 0);
		all = fixture_history(s->dirfd, 100 * FULL, &count);
		for (size_t k = 0; k < count; k++)
			others += all[k].uid != FLOODER;
		assert_int_equal(others, ARRAY_SIZE(uids));
		assert_true(count <= 3 * FULL + 1);
		/* the newest ones of the user are there, in their order */
		assert_int_equal(all[count - 1].ticket, ticket - 1);
		free(all);
	}
}

/* Random users, some with many lines: each keeps the newest of its lines, and at least its part. */
static void each_user_keeps_its_newest_lines(void **state)
{
	struct scratch *s = *state;
	uint64_t seed = 20261128;

	for (unsigned round = 0; round < 10; round++) {
		uint64_t last[USERS] = { 0 }, written[USERS] = { 0 }, ticket = 1;
		unsigned weights[USERS];
		struct history_end *all;
		uint64_t kept[USERS] = { 0 };
		size_t count;

		for (unsigned i = 0; i < USERS; i++)
			weights[i] = 1u << draw(&seed, 9);
		for (unsigned i = 0; i < 10 * FULL; i++) {
			unsigned user = (unsigned)draw(&seed, USERS);

			while (draw(&seed, 256) >= weights[user])
				user = (unsigned)draw(&seed, USERS);
			append(s, ticket++, user);
			written[user]++;
		}
		all = fixture_history(s->dirfd, 100 * FULL, &count);
		for (size_t i = 0; i < count; i++) {
			/* in their order */
			assert_true(all[i].ticket > last[all[i].uid]);
			last[all[i].uid] = all[i].ticket;
			kept[all[i].uid]++;
		}
		for (unsigned i = 0; i < USERS; i++)
			assert_true(kept[i] == written[i] || kept[i] >= FULL / USERS);
		free(all);
		(void)unlinkat(s->dirfd, "history", 0);
		(void)unlinkat(s->dirfd, "history.1", 0);
		(void)unlinkat(s->dirfd, "history.2", 0);
	}
}

/* Else the files would soon belong to a user, and writing them depend on that user's quota. */
static void the_two_files_that_are_written_stay_the_same_ones(void **state)
{
	struct scratch *s = *state;
	uint64_t one, two, ticket = 1;

	while (ticket <= FULL + 1)
		append(s, ticket++, FLOODER);
	one = inode_of(s, "history");
	two = inode_of(s, "history.1");
	for (unsigned turns = 1; turns < 6; turns++) {
		for (unsigned i = 0; i < FULL; i++)
			append(s, ticket++, FLOODER);
		assert_int_equal(inode_of(s, "history"), turns % 2 ? two : one);
		assert_int_equal(inode_of(s, "history.1"), turns % 2 ? one : two);
	}
}

static void a_crash_before_the_names_change_repeats_no_line_for_long(void **state)
{
	struct scratch *s = *state;
	struct history_end *all;
	size_t count;

	for (uint64_t ticket = 1; ticket <= 2 * FULL; ticket++)
		append(s, ticket, FLOODER);
	assert_int_equal(history_keep(s->dirfd, "history.2", "history.1", FULL), 0);
	append(s, 2 * FULL + 1, FLOODER);
	all = fixture_history(s->dirfd, 100 * FULL, &count);
	assert_int_equal(count, 2 * FULL + 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(all[i].ticket, i + 1);
	free(all);
}

/* The parts of a long name stand before the line; a later version may write other records there. */
static void a_record_of_another_kind_stays_with_the_line_after_it(void **state)
{
	struct scratch *s = *state;
	char raw[RECORD_SIZE] = "rest/1 ";
	autofd int fd = -1;
	struct stat st;

	for (uint64_t ticket = 1; ticket <= FULL / 2; ticket++) {
		append(s, ticket, ticket == 2 ? 7 : FLOODER);
		if (ticket > 2)
			continue;
		close_fd(&fd);
		fd = openat(s->dirfd, "history", O_RDWR | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(fd, raw, sizeof(raw)), RECORD_SIZE);
	}
	assert_int_equal(history_keep(s->dirfd, "kept", "history", 10), 0);
	close_fd(&fd);
	fd = openat(s->dirfd, "kept", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 10 * RECORD_SIZE);
	assert_int_equal(pread(fd, raw, sizeof(raw), 0), RECORD_SIZE);
	assert_memory_equal(raw, "rest/1", 6);
	assert_int_equal(pread(fd, raw, sizeof(raw), RECORD_SIZE), RECORD_SIZE);
	assert_int_equal(history_glance_uid(raw), 7);
	assert_int_equal(pread(fd, raw, sizeof(raw), 2 * RECORD_SIZE), RECORD_SIZE);
	assert_memory_equal(raw, "ended/1", 7);
	assert_int_equal(history_glance_uid(raw), FLOODER);
}

static void without_a_place_for_what_is_kept_the_file_grows_to_twice_its_size(
	void **state)
{
	struct scratch *s = *state;
	uint64_t ticket = 1;

	while (ticket <= 2 * FULL)
		append(s, ticket++, FLOODER);
	assert_int_equal(mkdirat(s->dirfd, "history.2", 0700), 0);
	for (unsigned i = 0; i < FULL; i++)
		append(s, ticket++, FLOODER);
	assert_int_equal(records_of(s, "history"), 2 * FULL);
	append(s, ticket, FLOODER);
	assert_int_equal(records_of(s, "history"), 1);
	assert_int_equal(unlinkat(s->dirfd, "history.2", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_users_with_most_lines_have_equally_many),
		SCRATCH_TEST(a_flood_of_one_user_hides_no_end_of_another),
		SCRATCH_TEST(each_user_keeps_its_newest_lines),
		SCRATCH_TEST(the_two_files_that_are_written_stay_the_same_ones),
		SCRATCH_TEST(a_crash_before_the_names_change_repeats_no_line_for_long),
		SCRATCH_TEST(a_record_of_another_kind_stays_with_the_line_after_it),
		SCRATCH_TEST(
			without_a_place_for_what_is_kept_the_file_grows_to_twice_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
