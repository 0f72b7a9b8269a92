#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/file.h>

#include "clock.h"
#include "fixture.h"
#include "history.h"

/* What is told goes there; nothing of it but the descriptor counts. */
static struct statedir dir_of(const struct scratch *s, uint64_t records)
{
	struct statedir dir = STATEDIR_NONE;

	dir.fd = s->dirfd;
	dir.history_bytes = records * RECORD_SIZE;
	return dir;
}

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

static int tell(const struct scratch *s, const struct history_end *end)
{
	struct statedir dir = dir_of(s, 0);

	return history_append(&dir, end);
}

static void append(const struct scratch *s, uint64_t ticket)
{
	struct history_end end = end_of(ticket);

	assert_int_equal(tell(s, &end), 0);
}

/* The newest @most are tickets @first, @first + 1 … */
static void check_newest(
	const struct scratch *s, size_t most, size_t wanted, uint64_t first)
{
	size_t count = 4711;
	struct history_end *ends = fixture_history(s->dirfd, most, &count);

	assert_int_equal(count, wanted);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ends[i].ticket, first + i);
	free(ends);
}

static void an_end_is_read_as_it_was_written(void **state)
{
	struct scratch *s = *state;
	struct history_end *ends = NULL;
	size_t count;

	append(s, 7);
	ends = fixture_history(s->dirfd, 10, &count);
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
	assert_int_equal(tell(s, &end), -ELOOP);
}

static void append_status(
	const struct scratch *s, uint64_t ticket, int64_t since_ms, const char *status)
{
	struct history_end end = { .ticket = ticket, .since_ms = since_ms };

	text_copy(end.status, sizeof(end.status), status);
	assert_int_equal(tell(s, &end), 0);
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

static void many_processes_append_at_once_and_every_line_is_whole(void **state)
{
	enum { TELLERS = 6, EACH = 60 };
	struct scratch *s = *state;
	/* it is put aside once: nothing of it goes */
	struct statedir dir = dir_of(s, TELLERS * EACH * 2 / 3);
	struct history_end *ends = NULL;
	bool seen[TELLERS * EACH] = { false };
	pid_t pids[TELLERS];
	size_t count;

	for (unsigned i = 0; i < TELLERS; i++) {
		pids[i] = fork();
		for (unsigned k = 0; pids[i] == 0 && k < EACH; k++) {
			struct history_end end = { .ticket = i * EACH + k };

			if (history_append(&dir, &end) < 0)
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
	ends = fixture_history(s->dirfd, 10000, &count);
	assert_int_equal(count, TELLERS * EACH);
	assert_int_not_equal(
		faccessat(s->dirfd, "history.1", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	for (size_t i = 0; i < count; i++) {
		assert_true(ends[i].ticket < TELLERS * EACH);
		assert_false(seen[ends[i].ticket]);
		seen[ends[i].ticket] = true;
	}
	free(ends);
}

/* --- the size ---------------------------------------------------------------------- */

enum { FULL = 4 }; /* records, where a test says no other number */

static void append_within(const struct scratch *s, uint64_t first, uint64_t last)
{
	struct statedir dir = dir_of(s, FULL);

	for (uint64_t ticket = first; ticket <= last; ticket++) {
		struct history_end end = end_of(ticket);

		assert_int_equal(history_append(&dir, &end), 0);
	}
}

/* How many records @name has, -1: there is no such file. */
static int records_of(const struct scratch *s, const char *name)
{
	struct stat st;

	if (fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return (int)(st.st_size / RECORD_SIZE);
}

static void a_full_file_is_put_aside(void **state)
{
	struct scratch *s = *state;
	struct stat st;
	mode_t old;

	append_within(s, 1, FULL);
	assert_int_equal(records_of(s, "history.1"), -1);
	old = umask(077);
	append_within(s, FULL + 1, FULL + 1);
	(void)umask(old);
	assert_int_equal(records_of(s, "history.1"), FULL);
	assert_int_equal(records_of(s, "history"), 1);
	assert_int_equal(fstatat(s->dirfd, "history", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	check_newest(s, 100, FULL + 1, 1);
	check_newest(s, 3, 3, FULL - 1);
	append_within(s, FULL + 2, 2 * FULL);
	check_newest(s, 100, 2 * FULL, 1);
	append_within(s, 2 * FULL + 1, 2 * FULL + 1);
	check_newest(s, 100, 2 * FULL + 1, 1); /* see history_keep.h */
	/* the oldest one goes, and never more than it */
	append_within(s, 2 * FULL + 2, 3 * FULL + 1);
	check_newest(s, 100, 2 * FULL + 1, FULL + 1);
}

static void the_size_has_a_default(void **state)
{
	struct scratch *s = *state;
	autofd int fd = -1;

	append(s, 1);
	fd = openat(s->dirfd, "history", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, HISTORY_BYTES - 1), 0);
	append(s, 2); /* after the half record */
	assert_int_equal(records_of(s, "history.1"), -1);
	append(s, 3);
	assert_int_equal(records_of(s, "history.1"), HISTORY_BYTES / RECORD_SIZE + 1);
	check_newest(s, 2, 2, 2);
	check_newest(s, 100, 3, 1);
}

static void an_end_is_found_in_the_older_file(void **state)
{
	struct scratch *s = *state;

	append_within(s, 1, FULL + 2);
	check_found(s, 2, 0, "137");
	check_found(s, FULL + 2, 0, "137");
	check_found(s, FULL + 3, 0, NULL);
}

static void the_history_goes_on_after_a_crash(void **state)
{
	struct scratch *s = *state;

	append_within(s, 1, FULL);
	/* killed when it had renamed it */
	assert_int_equal(renameat(s->dirfd, "history", s->dirfd, "history.1"), 0);
	check_newest(s, 100, FULL, 1);
	append_within(s, FULL + 1, FULL + 1);
	check_newest(s, 100, FULL + 1, 1);
}

static void a_writer_follows_the_name(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = dir_of(s, FULL);
	struct history_end end = end_of(FULL + 2);
	struct history_file file;

	assert_int_equal(history_open(&dir, &file), 0);
	append_within(s, 1, FULL + 1); /* puts it aside */
	assert_int_equal(history_write(&file, &end), 0);
	assert_int_equal(records_of(s, "history.1"), FULL);
	assert_int_equal(records_of(s, "history"), 2);
	append_within(s, FULL + 3, 3 * FULL);
	/* there is nothing left of what it had open */
	end.ticket = 3 * FULL + 1;
	assert_int_equal(history_write(&file, &end), 0);
	check_newest(s, 1, 1, 3 * FULL + 1);
	assert_int_equal(unlinkat(s->dirfd, "history", 0), 0);
	end.ticket++;
	assert_int_equal(history_write(&file, &end), 0);
	check_newest(s, 1, 1, 3 * FULL + 2);
	history_release(&file);
	history_release(&file);
}

/* As the watchdog is, once it has given the group up. */
static void a_writer_that_cannot_follow_the_name_writes_while_its_file_has_one(
	void **state)
{
	struct scratch *s = *state;
	struct statedir dir = dir_of(s, FULL);
	struct history_end end = end_of(77);
	struct history_file file;

	assert_int_equal(history_open(&dir, &file), 0);
	file.dirfd = -1;
	append_within(s, 1, FULL + 1);
	assert_int_equal(history_write(&file, &end), 0);
	assert_int_equal(records_of(s, "history.1"), FULL + 1);
	append_within(s, FULL + 2, 2 * FULL + 1);
	assert_int_equal(history_write(&file, &end), 0); /* it has the first name again */
	assert_int_equal(records_of(s, "history"), 2);
	assert_int_equal(unlinkat(s->dirfd, "history", 0), 0);
	assert_int_equal(history_write(&file, &end), -ESTALE);
	history_release(&file);
}

static void no_writer_waits_for_the_process_that_renames(void **state)
{
	struct scratch *s = *state;
	autofd int fd = -1;

	append_within(s, 1, FULL);
	fd = openat(s->dirfd, "history", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	append_within(s, FULL + 1, FULL + 2);
	assert_int_equal(records_of(s, "history"), FULL + 2);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	append_within(s, FULL + 3, FULL + 3);
	assert_int_equal(records_of(s, "history.1"), FULL + 2);
	check_newest(s, 100, FULL + 3, 1);
}

static void a_file_that_cannot_be_renamed_grows(void **state)
{
	struct scratch *s = *state;

	append_within(s, 1, FULL);
	assert_int_equal(mkdirat(s->dirfd, "history.1", 0700), 0);
	append_within(s, FULL + 1, FULL + 1);
	assert_int_equal(records_of(s, "history"), FULL + 1);
	assert_int_equal(unlinkat(s->dirfd, "history.1", AT_REMOVEDIR), 0);
	check_newest(s, 100, FULL + 1, 1);
}

/* --- what others do in between ------------------------------------------------------ */

static const struct scratch *meddled;
static bool meddles_in_flock, meddles_in_write, meddles_in_open;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
ssize_t __real_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);
int __real_openat(int dirfd, const char *name, int flags, ...);
int __wrap_openat(int dirfd, const char *name, int flags, ...);

static bool is_disk_full; /* what is there already can be written again */

/* Another process renames the full file first. */
int __wrap_flock(int fd, int operation)
{
	if (meddles_in_flock && (operation & LOCK_EX)) {
		meddles_in_flock = false;
		append_within(meddled, FULL + 1, FULL + 1);
	}
	return __real_flock(fd, operation);
}

/* Another process appends first, after the same half record. */
ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
	if (is_disk_full) {
		errno = ENOSPC;
		return -1;
	}
	if (meddles_in_write) {
		meddles_in_write = false;
		append(meddled, 2);
	}
	return __real_write(fd, buffer, size);
}

/* The file is renamed while a reader has it open. */
int __wrap_openat(int dirfd, const char *name, int flags, ...)
{
	mode_t mode = 0;

	if (flags & O_CREAT) {
		va_list arguments;

		va_start(arguments, flags);
		mode = (mode_t)va_arg(arguments, unsigned);
		va_end(arguments);
	}
	if (meddles_in_open && strcmp(name, "history.1") == 0) {
		meddles_in_open = false;
		append_within(meddled, FULL + 1, FULL + 1);
	}
	return __real_openat(dirfd, name, flags, mode);
}

static void the_second_to_put_it_aside_leaves_it(void **state)
{
	meddled = *state;
	append_within(meddled, 1, FULL);
	meddles_in_flock = true;
	append_within(meddled, FULL + 2, FULL + 2);
	assert_false(meddles_in_flock);
	assert_int_equal(records_of(meddled, "history.1"), FULL);
	assert_int_equal(records_of(meddled, "history"), 2);
	check_newest(meddled, 100, FULL + 2, 1);
}

static void a_line_beside_its_place_is_written_again(void **state)
{
	autofd int fd = -1;

	meddled = *state;
	append(meddled, 1);
	fd = openat(meddled->dirfd, "history", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, RECORD_SIZE + 5), 0);
	meddles_in_write = true;
	append(meddled, 3);
	assert_false(meddles_in_write);
	check_newest(meddled, 100, 3, 1);
}

static void a_file_that_is_renamed_during_a_read_is_read_once(void **state)
{
	meddled = *state;
	append_within(meddled, 1, FULL);
	meddles_in_open = true;
	check_newest(meddled, 100, FULL + 1, 1);
	assert_false(meddles_in_open);
}

/* --- what is told ------------------------------------------------------------------- */

static void fill_text(char *out, size_t size)
{
	memset(out, '9', size - 1);
	out[size - 1] = '\0';
}

static struct history_end longest(void)
{
	struct history_end end = { .ticket = UINT64_C(1) << 54,
		.attempt = 1000000,
		.uid = UINT32_MAX,
		.gpu_count = 128,
		.share_percent = 99,
		.vram_mib = 1 << 30,
		.at_ms = INT64_C(315360000000),
		.waited_ms = INT64_C(315360000000),
		.since_ms = INT64_C(9999999999999),
		.alive_ms = INT64_C(9999999999999),
		.gone_ms = INT64_C(9999999999999),
		.log_is_full = 1 };

	fill_text(end.boot, sizeof(end.boot));
	fill_text(end.user, sizeof(end.user));
	fill_text(end.gpus, sizeof(end.gpus));
	fill_text(end.peaks, sizeof(end.peaks));
	text_copy(end.utilization, sizeof(end.utilization), "100/100");
	/* with the long name of a second user, who has cancelled it, it goes without the peaks */
	text_copy(end.how, sizeof(end.how), HISTORY_PREEMPT);
	text_copy(end.by, sizeof(end.by), HISTORY_BY_WINDOW);
	text_copy(end.status, sizeof(end.status), "255");
	fill_text(end.name, sizeof(end.name));
	end.name_hash = job_name_hash(end.name);
	fill_text(end.command, sizeof(end.command));
	return end;
}

/* A name of @size bytes: @unit again and again. */
static void long_name(struct history_end *end, const char *unit, size_t size)
{
	for (size_t i = 0; i < size; i++)
		end->name[i] = unit[i % strlen(unit)];
	end->name[size] = '\0';
	end->name_hash = job_name_hash(end->name);
}

static const char *const units[] = { "n", "%", " =", "\xc3\xa4", "\x80", "\n%a",
	"\xe2\x80\xa6%" };

/* Whatever bytes a name has, at each length, between other lines, in chunks and in two files. */
static void a_name_is_read_whole(void **state)
{
	struct scratch *s = *state;
	struct history_end *ends, wanted = longest();
	size_t count, at = 0, rows = ARRAY_SIZE(units) * NAME_SIZE_MAX;
	uint64_t number = 0;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t size = 0; size < NAME_SIZE_MAX; size++) {
			long_name(&wanted, units[i], size);
			wanted.ticket = ++number;
			assert_int_equal(tell(s, &wanted), 0);
		}
	ends = fixture_history(s->dirfd, rows + 1, &count);
	assert_int_equal(count, rows);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t size = 0; size < NAME_SIZE_MAX; size++, at++) {
			long_name(&wanted, units[i], size);
			assert_int_equal(ends[at].ticket, at + 1);
			assert_string_equal(ends[at].name, wanted.name);
		}
	free(ends);
}

/* Also where the line before it is that of another job. */
static void a_name_without_its_lines_is_a_beginning(void **state)
{
	struct scratch *s = *state;
	struct history_end end = end_of(2), *ends;
	size_t count;

	append(s, 1);
	long_name(&end, "n", 40);
	end.name[20] = '\0'; /* its writer could not read the rest */
	assert_int_equal(tell(s, &end), 0);
	ends = fixture_history(s->dirfd, 3, &count);
	assert_int_equal(count, 2);
	assert_string_equal(ends[0].name, "train 1");
	assert_string_equal(ends[1].name, end.name);
	assert_false(job_name_is_whole(ends[1].name, ends[1].name_hash));
	free(ends);
}

static void the_longest_end_fits(void **state)
{
	struct scratch *s = *state;
	struct history_end end = longest(), *ends;
	size_t count;

	assert_int_equal(tell(s, &end), 0);
	ends = fixture_history(s->dirfd, 10, &count);
	assert_int_equal(count, 1);
	assert_string_equal(ends[0].peaks, end.peaks);
	assert_string_equal(ends[0].name, end.name);
	assert_string_equal(ends[0].status, "255");
	assert_string_equal(ends[0].utilization, "100/100");
	free(ends);
	/* and what can be no number of ours goes without the peaks */
	end.ticket = end.vram_mib = UINT64_MAX;
	end.attempt = end.gpu_count = end.share_percent = end.log_is_full = UINT32_MAX;
	end.waited_ms = end.since_ms = end.alive_ms = end.gone_ms = INT64_MIN;
	fill_text(end.how, sizeof(end.how));
	assert_int_equal(tell(s, &end), 0);
	ends = fixture_history(s->dirfd, 10, &count);
	assert_int_equal(count, 2);
	assert_string_equal(ends[1].peaks, "");
	assert_string_equal(ends[1].status, "255");
	free(ends);
}

static void the_state_follows_from_how_and_status(void **state)
{
	static const struct {
		const char *how, *status, *name;
	} cases[] = {
		{ "", "", "ended" },
		{ "", "0", "finished" },
		{ "", "1", "failed" },
		{ "", "143", "failed" },
		{ HISTORY_CANCEL, "143", "cancelled" },
		{ HISTORY_LIMIT, "", "timed-out" },
		{ HISTORY_OOM, "1", "oom" },
		{ HISTORY_PREEMPT, "143", "preempted" },
		{ HISTORY_REQUEUE, "0", "requeued" },
		{ HISTORY_REBOOT, "", "lost" },
		{ HISTORY_LOST, "", "lost" },
		{ HISTORY_LINGERED, "", "ended" },
		{ HISTORY_LINGERED, "0", "finished" },
		{ HISTORY_PAUSE, "", "paused" },
		{ HISTORY_RESUME, "", "resumed" },
		{ HISTORY_WINDOW, "", "window-set" },
		{ HISTORY_NO_WINDOW, "", "window-removed" },
		{ "of a later version", "2", "failed" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct history_end end = { .ticket = 1 };

		text_copy(end.how, sizeof(end.how), cases[i].how);
		text_copy(end.status, sizeof(end.status), cases[i].status);
		assert_string_equal(end_state_names[history_state(&end)], cases[i].name);
	}
}

static void gpus_are_counted_if_the_record_has_no_count(void **state)
{
	struct history_end end = { .gpu_count = 3, .gpus = "0" };

	(void)state;
	assert_int_equal(history_gpu_count(&end), 3);
	end.gpu_count = 0;
	assert_int_equal(history_gpu_count(&end), 1);
	text_copy(end.gpus, sizeof(end.gpus), "0,3,12");
	assert_int_equal(history_gpu_count(&end), 3);
	end.gpus[0] = '\0';
	assert_int_equal(history_gpu_count(&end), 0);
}

static void times_are_real_time(void **state)
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

/* --- a full disk --------------------------------------------------------------------- */

static void check_gap(const struct scratch *s, uint64_t missing)
{
	struct history_gap gap = { .missing = 4711 };

	assert_int_equal(history_find_gap(s->dirfd, &gap), 0);
	assert_int_equal(gap.missing, missing);
	if (missing)
		assert_in_range(
			gap.last_ms, clock_real_ms() - PATIENCE_MS, clock_real_ms());
}

static void a_line_that_has_no_room_is_marked_as_missing(void **state)
{
	struct scratch *s = *state;
	struct history_end end = end_of(3), *ends;
	struct stat before, after;
	size_t count;

	append(s, 1);
	append(s, 2);
	check_gap(s, 0);
	(void)history_take_trouble(); /* left by another test */
	assert_int_equal(fstatat(s->dirfd, "history", &before, 0), 0);
	is_disk_full = true;
	assert_int_equal(tell(s, &end), -ENOSPC);
	assert_int_equal(tell(s, &end), -ENOSPC);
	is_disk_full = false;
	assert_int_equal(fstatat(s->dirfd, "history", &after, 0), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(history_take_trouble(), -ENOSPC);
	assert_int_equal(history_take_trouble(), 0);
	check_gap(s, 2);
	append(s, 4);
	/* the marked line is what it was */
	ends = fixture_history(s->dirfd, 3, &count);
	assert_int_equal(count, 3);
	assert_int_equal(ends[1].ticket, 2);
	assert_string_equal(ends[1].command, end.command);
	free(ends);
	check_gap(s, 2);
}

static void the_longest_line_can_be_marked(void **state)
{
	struct scratch *s = *state;
	struct history_end end = end_of(1), *ends;
	size_t count;

	memset(end.command, 'x', sizeof(end.command) - 1);
	memset(end.name, 'y', sizeof(end.name) - 1);
	end.name_hash = job_name_hash(end.name);
	assert_int_equal(tell(s, &end), 0);
	is_disk_full = true;
	assert_int_equal(tell(s, &end), -ENOSPC);
	is_disk_full = false;
	check_gap(s, 1);
	ends = fixture_history(s->dirfd, 2, &count);
	assert_int_equal(count, 1);
	assert_string_equal(ends[0].name, end.name);
	assert_string_equal(ends[0].status, "137");
	free(ends);
}

static void a_new_file_without_a_line_leaves_the_mark_to_the_older_one(void **state)
{
	struct scratch *s = *state;
	struct history_end end = end_of(2);

	append(s, 1);
	assert_int_equal(renameat(s->dirfd, "history", s->dirfd, "history.1"), 0);
	assert_int_equal(scratch_write(s, "history", ""), 0);
	is_disk_full = true;
	assert_int_equal(tell(s, &end), -ENOSPC);
	is_disk_full = false;
	check_gap(s, 1);
	/* without any line nothing can be marked: only the writer says so */
	assert_int_equal(unlinkat(s->dirfd, "history.1", 0), 0);
	is_disk_full = true;
	assert_int_equal(tell(s, &end), -ENOSPC);
	is_disk_full = false;
	check_gap(s, 0);
	assert_int_equal(history_take_trouble(), -ENOSPC);
}

static void marks_made_at_once_all_count(void **state)
{
	enum { CHILDREN = 4, LINES = 25 };
	struct scratch *s = *state;
	pid_t children[CHILDREN];
	int status;

	append(s, 1);
	is_disk_full = true;
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct statedir dir = dir_of(s, 0);
			struct history_end end = end_of(2);
			bool is_bad = false;

			for (int line = 0; line < LINES; line++)
				is_bad |= history_append(&dir, &end) != -ENOSPC;
			_exit(is_bad);
		}
	}
	is_disk_full = false;
	for (int i = 0; i < CHILDREN; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	check_gap(s, CHILDREN * LINES);
}

/* --- two lines of one end ------------------------------------------------------------ */

static void tell_kind(const struct scratch *s, uint64_t ticket, int64_t since_ms,
	const char *kind, const char *status, const char *how)
{
	struct history_end end = { .ticket = ticket,
		.uid = 1000,
		.since_ms = since_ms,
		.alive_ms = since_ms + 20,
		.gone_ms = since_ms + (*kind == 'p' ? 25 : 30),
		.is_provisional = *kind == 'p',
		.is_exact = *kind == 'e' };

	text_copy(end.status, sizeof(end.status), status);
	text_copy(end.how, sizeof(end.how), how);
	if (*how)
		text_copy(end.by, sizeof(end.by), "1001");
	assert_int_equal(tell(s, &end), 0);
}

/* The ends in the order of their lines, "TICKET:STATUS:HOW ". */
static void check_ends(const struct scratch *s, const char *wanted)
{
	char text[512] = "";
	size_t count = 0, used = 0;
	struct history_end *ends = fixture_history(s->dirfd, 16, &count);

	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%llu:%s:%s ",
			(unsigned long long)ends[i].ticket, ends[i].status, ends[i].how);
	assert_string_equal(text, wanted);
	free(ends);
}

static void the_exact_line_stands_for_the_provisional_one(void **state)
{
	struct scratch *s = *state;

	tell_kind(s, 5, 1000, "provisional", "", "");
	check_ends(s, "5:: "); /* it is shown until the exact line is there */
	tell_kind(s, 6, 1000, "plain", "0", "");
	tell_kind(s, 5, 1001, "exact", "3", "");
	check_ends(s, "6:0: 5:3: ");
	/* an older gpulease writes no provisional line */
	tell_kind(s, 7, 1000, "plain", "", "");
	tell_kind(s, 7, 1000, "exact", "4", "");
	check_ends(s, "6:0: 5:3: 7:4: ");
	/* a process took the lease twice, and was killed in between */
	tell_kind(s, 8, 1000, "provisional", "", "");
	tell_kind(s, 8, 1000, "provisional", "", "");
	check_ends(s, "6:0: 5:3: 7:4: 8:: ");
}

static void the_order_of_the_two_does_not_matter(void **state)
{
	struct scratch *s = *state;
	struct history_end *ends;
	size_t count;

	tell_kind(s, 5, 1000, "exact", "3", "");
	for (uint64_t i = 0; i < 100; i++) /* more than are read in one go */
		append(s, 100 + i);
	/* in the next file */
	assert_int_equal(renameat(s->dirfd, "history", s->dirfd, "history.1"), 0);
	tell_kind(s, 5, 1000, "provisional", "", HISTORY_CANCEL);
	tell_kind(s, 6, 1000, "plain", "0", "");
	check_found(s, 5, 0, "3");
	check_newest(s, 1, 1, 6);
	ends = fixture_history(s->dirfd, 2, &count);
	assert_int_equal(ends[0].ticket, 199); /* the provisional line is not shown */
	free(ends);
	ends = fixture_history(s->dirfd, 102, &count);
	assert_int_equal(count, 102);
	assert_int_equal(ends[0].ticket, 5);
	assert_string_equal(ends[0].how, HISTORY_CANCEL);
	free(ends);
}

static void one_end_has_the_facts_of_all_its_lines(void **state)
{
	struct scratch *s = *state;
	struct history_end *ends;
	size_t count;

	tell_kind(s, 5, 1000, "provisional", "143", HISTORY_CANCEL);
	tell_kind(s, 5, 1000, "exact", "", "");
	tell_kind(s, 6, 1000, "provisional", "", HISTORY_LINGERED);
	tell_kind(s, 6, 1000, "exact", "0", "");
	tell_kind(s, 7, 1000, "provisional", "", HISTORY_LIMIT); /* a guess */
	tell_kind(s, 7, 1000, "exact", "1", "");
	tell_kind(s, 8, 1000, "provisional", "", HISTORY_LOST); /* a guess, too */
	tell_kind(s, 8, 1000, "exact", "0", "");
	check_ends(s, "5:143:cancel 6:0:lingered 7:1: 8:0: ");
	ends = fixture_history(s->dirfd, 4, &count);
	assert_string_equal(ends[0].by, "1001");
	/* without the processes that the job left behind */
	assert_int_equal(ends[1].gone_ms, 1025);
	assert_int_equal(ends[1].alive_ms, 1020);
	free(ends);
}

static void ends_that_only_look_alike_stay_two(void **state)
{
	struct scratch *s = *state;
	struct history_end end = { .ticket = 5, .uid = 1001, .since_ms = 1000 };

	tell_kind(s, 5, 1000, "provisional", "", "");
	tell_kind(s, 5, 1000 + 60001, "exact", "3", ""); /* of another ticket file */
	end.is_exact = 1;
	assert_int_equal(tell(s, &end), 0); /* another user's */
	end.uid = 1000;
	end.attempt = 2;
	assert_int_equal(tell(s, &end), 0);
	check_ends(s, "5:: 5:3: 5:: 5:: ");
}

static void the_status_of_an_earlier_attempt_is_not_found(void **state)
{
	struct scratch *s = *state;
	struct history_end end = { .ticket = 5, .since_ms = 1000, .status = "1" };

	assert_int_equal(tell(s, &end), 0);
	end = (struct history_end){
		.ticket = 5, .since_ms = 2000, .attempt = 2, .is_provisional = 1
	};
	assert_int_equal(tell(s, &end), 0);
	assert_int_equal(history_find(s->dirfd, 5, 0, &end), 0);
	assert_int_equal(end.attempt, 2);
	assert_int_equal(end.is_provisional, 1);
	assert_string_equal(end.status, "");
}

/* --- events ------------------------------------------------------------------------ */

/* Appends an event of this kind, as a later version may. */
static void append_event_of(const struct scratch *s, const char *how)
{
	static const struct record_field fields[] = { { "how", RECORD_TEXT, 0, 16 } };
	static const struct record_schema schema = RECORD_SCHEMA("event/1", fields);
	autofd int fd = openat(s->dirfd, "history", O_WRONLY | O_APPEND | O_CLOEXEC);
	char raw[RECORD_SIZE], word[16];

	text_copy(word, sizeof(word), how);
	assert_int_equal(record_encode(&schema, word, raw), 0);
	assert_int_equal(write(fd, raw, sizeof(raw)), sizeof(raw));
}

static void an_event_is_read_only_by_a_reader_that_asks(void **state)
{
	struct scratch *s = *state;
	struct history_end event = { .gone_ms = 50, .since_ms = 70, .until_ms = 90 },
			   read;
	static struct history_reader reader;

	append(s, 1);
	text_copy(event.how, sizeof(event.how), HISTORY_WINDOW);
	text_copy(event.but, sizeof(event.but), "1000,1001");
	text_copy(event.command, sizeof(event.command), "a demo");
	assert_true(history_is_event(&event));
	assert_int_equal(tell(s, &event), 0);
	append_event_of(s, "of-later");
	append(s, 2);
	check_newest(s, 10, 2, 1);
	check_found(s, 0, 0, NULL);
	assert_int_equal(history_reader_open(s->dirfd, &reader), 0);
	reader.wants_events = true;
	assert_int_equal(history_next(&reader, &read), 0);
	assert_int_equal(read.ticket, 2);
	assert_false(history_is_event(&read));
	assert_int_equal(history_next(&reader, &read), 0);
	assert_int_equal(history_state(&read), END_WINDOW_SET);
	assert_int_equal(read.gone_ms, 50);
	assert_int_equal(read.since_ms, 70);
	assert_int_equal(read.until_ms, 90);
	assert_string_equal(read.but, "1000,1001");
	assert_string_equal(read.command, "a demo");
	assert_int_equal(history_next(&reader, &read), 0);
	assert_int_equal(read.ticket, 1);
	assert_int_equal(history_next(&reader, &read), HISTORY_NONE);
	history_reader_release(&reader);
}

/* --- which end a line is of ---------------------------------------------------------- */

enum { HOUR_MS = 3600000 };

/* An end in boot @boot at @at_ms of its clock; the real-time clock was @step_ms ahead. */
static struct history_end end_at(
	const char *boot, int64_t at_ms, int64_t step_ms, const char *kind)
{
	struct history_end end = { .ticket = 5,
		.uid = 1000,
		.at_ms = at_ms,
		.since_ms = at_ms + step_ms,
		.gone_ms = at_ms + 20 + step_ms,
		.is_provisional = *kind == 'p',
		.is_exact = *kind == 'e' };

	text_copy(end.boot, sizeof(end.boot), boot);
	text_copy(end.status, sizeof(end.status), *kind == 'p' ? "" : "3");
	return end;
}

static void an_end_is_found_whatever_the_clock_was_set_to(void **state)
{
	static const int64_t steps[] = { -48 * HOUR_MS, -2 * HOUR_MS, -61000, 0, 61000,
		2 * HOUR_MS, 48 * HOUR_MS };
	struct scratch *s = *state;
	struct statedir dir = dir_of(s, 0);
	int64_t at_ms = clock_boot_ms() - 5000;
	int64_t to_real_ms = clock_real_ms() - clock_boot_ms();
	char begin[HISTORY_BOOT_SIZE];
	struct history_end end;

	text_copy(dir.boot, sizeof(dir.boot), "0123456789abcdef0123456789abcdef");
	(void)snprintf(begin, sizeof(begin), "%.8s", dir.boot);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		end = end_at(begin, at_ms, to_real_ms + steps[i], "plain");
		assert_int_equal(history_append(&dir, &end), 0);
		assert_int_equal(history_find_of_boot(&dir, 5, at_ms, &end), 0);
		assert_int_equal(end.since_ms, at_ms + to_real_ms + steps[i]);
		/* of an earlier job with that number, or of another boot */
		assert_int_equal(
			history_find_of_boot(&dir, 5, at_ms + 1, &end), HISTORY_NONE);
	}
	end = end_at("76543210", at_ms + 1000, to_real_ms, "plain");
	end.ticket = 6;
	assert_int_equal(history_append(&dir, &end), 0);
	assert_int_equal(history_find_of_boot(&dir, 6, at_ms, &end), HISTORY_NONE);
	/* an earlier version knows only the time of day */
	end = end_at("", 0, at_ms + to_real_ms - 50000, "plain");
	end.ticket = 7;
	assert_int_equal(history_append(&dir, &end), 0);
	assert_int_equal(history_find_of_boot(&dir, 7, at_ms, &end), 0);
	assert_int_equal(
		history_find_of_boot(&dir, 7, at_ms + 20000, &end), HISTORY_NONE);
}

static void two_lines_are_one_end_by_the_boot_clock(void **state)
{
	static const struct {
		const char *boots[2];
		int64_t at_ms[2], step_ms; /* between the two lines */
		size_t ends;
	} cases[] = {
		{ { "01234567", "01234567" }, { 1000, 1000 }, 0, 1 },
		{ { "01234567", "01234567" }, { 1000, 1000 }, 7 * HOUR_MS, 1 },
		{ { "01234567", "01234567" }, { 1000, 1000 }, -7 * HOUR_MS, 1 },
		{ { "01234567", "01234567" }, { 1000, 1001 }, 0, 2 },
		{ { "01234567", "76543210" }, { 1000, 1000 }, 0, 2 },
		/* an earlier version wrote one of them, or both */
		{ { "", "01234567" }, { 1000, 1000 }, 50000, 1 },
		{ { "01234567", "" }, { 1000, 1000 }, -50000, 1 },
		{ { "", "" }, { 1000, 1000 }, 50000, 1 },
		{ { "", "01234567" }, { 1000, 1000 }, HOUR_MS, 2 },
	};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct history_end *ends,
			lines[] = { end_at(cases[i].boots[0], cases[i].at_ms[0], HOUR_MS,
					    "provisional"),
				end_at(cases[i].boots[1], cases[i].at_ms[1],
					HOUR_MS + cases[i].step_ms, "exact") };
		size_t count;

		(void)unlinkat(s->dirfd, "history", 0);
		assert_int_equal(tell(s, &lines[i % 2]), 0);
		assert_int_equal(tell(s, &lines[1 - i % 2]), 0);
		ends = fixture_history(s->dirfd, 9, &count);
		assert_int_equal(count, cases[i].ends);
		free(ends);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(an_end_is_read_as_it_was_written),
		SCRATCH_TEST(an_event_is_read_only_by_a_reader_that_asks),
		SCRATCH_TEST(the_newest_are_read_oldest_first),
		SCRATCH_TEST(no_history_is_an_empty_one),
		SCRATCH_TEST(broken_lines_and_halves_are_left_out),
		SCRATCH_TEST(the_file_is_shared_and_never_a_link),
		SCRATCH_TEST(the_end_of_one_job_is_found),
		SCRATCH_TEST(no_more_than_the_newest_are_searched),
		SCRATCH_TEST(many_processes_append_at_once_and_every_line_is_whole),
		SCRATCH_TEST(a_full_file_is_put_aside),
		SCRATCH_TEST(the_size_has_a_default),
		SCRATCH_TEST(an_end_is_found_in_the_older_file),
		SCRATCH_TEST(the_history_goes_on_after_a_crash),
		SCRATCH_TEST(a_writer_follows_the_name),
		SCRATCH_TEST(
			a_writer_that_cannot_follow_the_name_writes_while_its_file_has_one),
		SCRATCH_TEST(no_writer_waits_for_the_process_that_renames),
		SCRATCH_TEST(a_file_that_cannot_be_renamed_grows),
		SCRATCH_TEST(the_second_to_put_it_aside_leaves_it),
		SCRATCH_TEST(a_line_beside_its_place_is_written_again),
		SCRATCH_TEST(a_file_that_is_renamed_during_a_read_is_read_once),
		SCRATCH_TEST(a_name_is_read_whole),
		SCRATCH_TEST(a_name_without_its_lines_is_a_beginning),
		SCRATCH_TEST(the_longest_end_fits),
		cmocka_unit_test(the_state_follows_from_how_and_status),
		cmocka_unit_test(gpus_are_counted_if_the_record_has_no_count),
		cmocka_unit_test(times_are_real_time),
		SCRATCH_TEST(a_line_that_has_no_room_is_marked_as_missing),
		SCRATCH_TEST(the_longest_line_can_be_marked),
		SCRATCH_TEST(a_new_file_without_a_line_leaves_the_mark_to_the_older_one),
		SCRATCH_TEST(marks_made_at_once_all_count),
		SCRATCH_TEST(the_exact_line_stands_for_the_provisional_one),
		SCRATCH_TEST(the_order_of_the_two_does_not_matter),
		SCRATCH_TEST(one_end_has_the_facts_of_all_its_lines),
		SCRATCH_TEST(ends_that_only_look_alike_stay_two),
		SCRATCH_TEST(the_status_of_an_earlier_attempt_is_not_found),
		SCRATCH_TEST(an_end_is_found_whatever_the_clock_was_set_to),
		SCRATCH_TEST(two_lines_are_one_end_by_the_boot_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
