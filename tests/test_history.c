#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "history.h"

enum { MIB = 1024 * 1024 };

static struct history_end end_of(uint64_t ticket)
{
	struct history_end end = { .ticket = ticket,
		.uid = 1000,
		.since_ms = 10,
		.alive_ms = 20,
		.gone_ms = 30 };

	text_copy(end.user, sizeof(end.user), "alice");
	text_copy(end.gpus, sizeof(end.gpus), "0,3");
	text_copy(end.how, sizeof(end.how), "cancel");
	text_copy(end.by, sizeof(end.by), "root");
	text_copy(end.status, sizeof(end.status), "137");
	text_copy(end.name, sizeof(end.name), "train 1");
	text_copy(end.command, sizeof(end.command), "python train.py --x=1");
	return end;
}

static void append(const struct scratch *s, uint64_t ticket)
{
	struct history_end end = end_of(ticket);

	assert_int_equal(history_append(s->dirfd, &end), 0);
}

/* The newest @most are tickets @first, @first + 1 … */
static void check_newest(
	const struct scratch *s, size_t most, size_t wanted, uint64_t first)
{
	struct history_end *ends = NULL;
	size_t count = 4711;

	assert_int_equal(history_read(s->dirfd, most, &ends, &count), 0);
	assert_int_equal(count, wanted);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ends[i].ticket, first + i);
	free(ends);
}

static void an_end_comes_back_as_it_was_told(void **state)
{
	struct scratch *s = *state;
	struct history_end *ends = NULL;
	size_t count;

	append(s, 7);
	assert_int_equal(history_read(s->dirfd, 10, &ends, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ends[0].ticket, 7);
	assert_int_equal(ends[0].uid, 1000);
	assert_string_equal(ends[0].user, "alice");
	assert_string_equal(ends[0].gpus, "0,3");
	assert_string_equal(ends[0].how, "cancel");
	assert_string_equal(ends[0].by, "root");
	assert_string_equal(ends[0].status, "137");
	assert_string_equal(ends[0].name, "train 1");
	assert_string_equal(ends[0].command, "python train.py --x=1");
	assert_int_equal(ends[0].since_ms, 10);
	assert_int_equal(ends[0].alive_ms, 20);
	assert_int_equal(ends[0].gone_ms, 30);
	free(ends);
}

static void the_newest_are_read_oldest_first(void **state)
{
	struct scratch *s = *state;

	for (uint64_t i = 1; i <= 20; i++)
		append(s, i);
	check_newest(s, 5, 5, 16);
	check_newest(s, 20, 20, 1);
	check_newest(s, 1000, 20, 1);
	check_newest(s, 0, 0, 0);
}

static void no_history_is_an_empty_one(void **state)
{
	struct scratch *s = *state;

	check_newest(s, 10, 0, 0);
	assert_int_equal(scratch_write(s, "history", ""), 0);
	check_newest(s, 10, 0, 0);
}

static void broken_lines_and_halves_are_left_out(void **state)
{
	struct scratch *s = *state;
	int fd;

	append(s, 1);
	append(s, 2);
	append(s, 3);
	fd = openat(s->dirfd, "history", O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "#", 1, RECORD_SIZE + 40), 1);
	assert_int_equal(ftruncate(fd, 3 * RECORD_SIZE - 5), 0);
	check_newest(s, 10, 1, 1);
	assert_int_equal(ftruncate(fd, 1 * RECORD_SIZE), 0);
	append(s, 2);
	check_newest(s, 10, 2, 1);
	(void)close(fd);
}

static void the_file_is_shared_and_never_a_link(void **state)
{
	struct scratch *s = *state;
	struct history_end end = end_of(1);
	mode_t old = umask(077);
	struct stat st;

	append(s, 1);
	(void)umask(old);
	assert_int_equal(fstatat(s->dirfd, "history", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(renameat(s->dirfd, "history", s->dirfd, "elsewhere"), 0);
	assert_int_equal(symlinkat("elsewhere", s->dirfd, "history"), 0);
	assert_int_equal(history_append(s->dirfd, &end), -ELOOP);
}

static void append_status(
	const struct scratch *s, uint64_t ticket, int64_t since_ms, const char *status)
{
	struct history_end end = { .ticket = ticket, .since_ms = since_ms };

	text_copy(end.status, sizeof(end.status), status);
	assert_int_equal(history_append(s->dirfd, &end), 0);
}

static void check_found(
	const struct scratch *s, uint64_t ticket, int64_t since_ms, const char *status)
{
	struct history_end end = { .ticket = 4711 };
	int r = history_find(s->dirfd, ticket, since_ms, &end);

	assert_int_equal(r, status ? 0 : HISTORY_NONE);
	assert_int_equal(end.ticket, status ? ticket : 4711);
	if (status)
		assert_string_equal(end.status, status);
}

static void the_end_of_one_job_is_found(void **state)
{
	struct scratch *s = *state;
	struct history_end end;

	check_found(s, 5, 0, NULL);
	append_status(s, 5, 100, "0");
	append_status(s, 55, 100, "3");
	append_status(s, 6, 100, "");
	check_found(s, 5, 0, "0");
	check_found(s, 55, 100, "3");
	check_found(s, 6, 0, "");
	check_found(s, 7, 0, NULL);
	/* of a ticket file before this one */
	check_found(s, 5, 101, NULL);
	/* told twice: the newest, but rather one that knows */
	append_status(s, 5, 200, "");
	check_found(s, 5, 0, "0");
	check_found(s, 5, 150, "");
	append_status(s, 5, 200, "9");
	check_found(s, 5, 0, "9");
	append_status(s, 8, 100, "");
	append_status(s, 8, 200, "");
	assert_int_equal(history_find(s->dirfd, 8, 0, &end), 0);
	assert_int_equal(end.since_ms, 200);
}

static void no_more_than_the_newest_are_searched(void **state)
{
	struct scratch *s = *state;
	autofd int fd = -1;

	append_status(s, 5, 100, "0");
	append_status(s, 6, 100, "0");
	fd = openat(s->dirfd, "history", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (HISTORY_SEARCHED + 1) * (off_t)RECORD_SIZE), 0);
	check_found(s, 5, 0, NULL);
	check_found(s, 6, 0, "0");
	/* broken ones are passed, and half a one at the end */
	assert_int_equal(pwrite(fd, "#", 1, RECORD_SIZE + 40), 1);
	assert_int_equal(ftruncate(fd, 2 * RECORD_SIZE + 7), 0);
	check_found(s, 6, 0, NULL);
	check_found(s, 5, 0, "0");
}

static void many_tell_at_once_and_every_line_is_whole(void **state)
{
	enum { TELLERS = 6, EACH = 60 };
	struct scratch *s = *state;
	struct history_end *ends = NULL;
	bool seen[TELLERS * EACH] = { false };
	pid_t pids[TELLERS];
	size_t count;

	for (unsigned i = 0; i < TELLERS; i++) {
		pids[i] = fork();
		for (unsigned k = 0; pids[i] == 0 && k < EACH; k++) {
			struct history_end end = { .ticket = i * EACH + k };

			if (history_append(s->dirfd, &end) < 0)
				_exit(1);
		}
		if (pids[i] == 0)
			_exit(0);
	}
	for (unsigned i = 0; i < TELLERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(history_read(s->dirfd, 10000, &ends, &count), 0);
	assert_int_equal(count, TELLERS * EACH);
	for (size_t i = 0; i < count; i++) {
		assert_true(ends[i].ticket < TELLERS * EACH);
		assert_false(seen[ends[i].ticket]);
		seen[ends[i].ticket] = true;
	}
	free(ends);
}

static void the_oldest_part_is_given_back(void **state)
{
	enum { KEEP = 16 * MIB };
	struct scratch *s = *state;
	char byte = 'x';
	int fd;

	if (!fixture_can_punch(s->dirfd))
		skip();
	append(s, 1);
	fd = openat(s->dirfd, "history", O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 4096), 1);
	assert_int_equal(pwrite(fd, "x", 1, KEEP + 4096), 1);
	assert_int_equal(ftruncate(fd, 2 * KEEP - 2 * RECORD_SIZE), 0);
	for (uint64_t i = 2; i < 6; i++) /* across the end of the second KEEP */
		append(s, i);
	assert_int_equal(pread(fd, &byte, 1, 4096), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(pread(fd, &byte, 1, KEEP + 4096), 1);
	assert_int_equal(byte, 'x');
	check_newest(s, 4, 4, 2);
	(void)close(fd);
}

static void times_are_told_as_people_read_them(void **state)
{
	struct lease lease = { .ticket = 5, .since_ms = clock_boot_ms() - 7000 };
	struct history_end end;
	int64_t now_ms = clock_real_ms();

	(void)state;
	lease.owner.uid = 1234;
	text_copy(lease.user, sizeof(lease.user), "bob");
	text_copy(lease.name, sizeof(lease.name), "n");
	text_copy(lease.command, sizeof(lease.command), "c");
	history_describe(&lease, lease.since_ms + 1000, lease.since_ms + 2000, &end);
	assert_in_range(end.since_ms, now_ms - 7500, now_ms - 6500);
	assert_in_range(end.alive_ms - end.since_ms, 1000, 1000);
	assert_in_range(end.gone_ms - end.since_ms, 2000, 2000);
	assert_int_equal(end.ticket, 5);
	assert_int_equal(end.uid, 1234);
	assert_string_equal(end.user, "bob");
	assert_string_equal(end.name, "n");
	assert_string_equal(end.command, "c");
	assert_string_equal(end.how, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(an_end_comes_back_as_it_was_told),
		SCRATCH_TEST(the_newest_are_read_oldest_first),
		SCRATCH_TEST(no_history_is_an_empty_one),
		SCRATCH_TEST(broken_lines_and_halves_are_left_out),
		SCRATCH_TEST(the_file_is_shared_and_never_a_link),
		SCRATCH_TEST(the_end_of_one_job_is_found),
		SCRATCH_TEST(no_more_than_the_newest_are_searched),
		SCRATCH_TEST(many_tell_at_once_and_every_line_is_whole),
		SCRATCH_TEST(the_oldest_part_is_given_back),
		cmocka_unit_test(times_are_told_as_people_read_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
