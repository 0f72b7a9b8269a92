/* A jobs file that changes: when it is read again, and which lines count. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <cmocka.h>

#include "batch_file.h"
#include "batch_list.h"
#include "clock.h"
#include "scratch.h"

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);

static bool has_no_inotify;

int __wrap_inotify_init1(int flags)
{
	if (!has_no_inotify)
		return __real_inotify_init1(flags);
	errno = EMFILE;
	return -1;
}

/* What another process does while the file is being looked at. */
static void (*meanwhile)(void);

char *__real_realpath(const char *name, char *out);
char *__wrap_realpath(const char *name, char *out);

char *__wrap_realpath(const char *name, char *out)
{
	void (*now)(void) = meanwhile;

	meanwhile = NULL;
	if (now)
		now();
	return __real_realpath(name, out);
}

static int64_t ahead_ms; /* how much the clock is ahead */

int64_t __real_clock_real_ms(void);
int64_t __wrap_clock_real_ms(void);

int64_t __wrap_clock_real_ms(void)
{
	return __real_clock_real_ms() + ahead_ms;
}

/* --- what the tests are about ------------------------------------------------------ */

static struct batch_file file;
static struct scratch *scratch;
static char path[128];
static int64_t now_ms;

static int setup(void **state)
{
	if (scratch_setup(state) < 0)
		return -1;
	scratch = *state;
	has_no_inotify = false;
	meanwhile = NULL;
	ahead_ms = 0;
	(void)snprintf(path, sizeof(path), "%s/jobs.txt", scratch->path);
	return 0;
}

static int teardown(void **state)
{
	batch_file_release(&file);
	return scratch_teardown(state);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void put(const char *name, const char *text)
{
	assert_int_equal(scratch_write(scratch, name, text), 0);
}

/* Makes the file as old as if it was not written for a minute. */
static void age(const char *name)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = 0 } };

	times[1].tv_sec = clock_real_ms() / 1000 - 60;
	assert_int_equal(utimensat(scratch->dirfd, name, times, 0), 0);
}

static int open_to_append(const char *name)
{
	int fd = openat(scratch->dirfd, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void add(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void append(const char *name, const char *text)
{
	autofd int fd = open_to_append(name);

	add(fd, text);
}

static void move(const char *from, const char *to)
{
	assert_int_equal(renameat(scratch->dirfd, from, scratch->dirfd, to), 0);
}

static void gone(const char *name)
{
	assert_int_equal(unlinkat(scratch->dirfd, name, 0), 0);
}

static void begin_with(const char *name)
{
	struct why why = WHY_NONE;

	if (batch_file_open(name, &file, &why) < 0 || batch_file_read(&file, &why) < 0)
		fail_msg("%s", why.text);
	now_ms = clock_boot_ms();
}

static void begin(const char *text)
{
	put("jobs.txt", text);
	age("jobs.txt");
	begin_with(path);
}

static void has(const char *text)
{
	if (file.size != strlen(text) || memcmp(file.text, text, file.size) != 0)
		fail_msg("'%.*s' instead of '%s'", (int)file.size, file.text, text);
}

static int step(void)
{
	struct why why = WHY_NONE;
	int r = batch_file_step(&file, now_ms, &why);

	assert_true((r < 0) == (why.text[0] != '\0'));
	return r;
}

static bool is_awake(void)
{
	struct pollfd fds[BATCH_FILE_FDS];
	unsigned count = batch_file_poll(&file, fds);

	return count && poll(fds, count, 0) == 1;
}

/* An event wakes the test, and the file has @text at once. */
static void finds_at_once(const char *text)
{
	assert_true(is_awake());
	assert_int_equal(step(), 1);
	has(text);
}

/* Waits until the next deadline of the file. */
static void sleeps(void)
{
	int64_t wake_ms = batch_file_wake_ms(&file);

	assert_true(wake_ms > now_ms);
	assert_true(wake_ms <= now_ms + BATCH_QUIET_MS);
	now_ms = wake_ms;
}

static void has_nothing_to_wait_for(void)
{
	assert_int_equal(step(), 0);
	assert_false(is_awake());
	assert_true(batch_file_wake_ms(&file) == INT64_MAX);
}

/* --- changes ----------------------------------------------------------------------- */

static void a_file_is_read_at_once_when_its_writer_closes_it(void **state)
{
	(void)state;
	begin("a\n");
	has("a\n");
	has_nothing_to_wait_for();
	append("jobs.txt", "b\n");
	finds_at_once("a\nb\n");
	put("jobs.txt", "c\n");
	finds_at_once("c\n");
	put("jobs.txt", "d\n"); /* of the same size */
	finds_at_once("d\n");
	has_nothing_to_wait_for();
}

static void a_file_is_read_at_once_when_it_is_replaced(void **state)
{
	(void)state;
	begin("a\n");
	for (int i = 0; i < 3; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "b%d\n", i);
		put("new", text);
		move("new", "jobs.txt");
		finds_at_once(text);
	}
	/* the file that replaced it is watched, too */
	append("jobs.txt", "c\n");
	finds_at_once("b2\nc\n");
	has_nothing_to_wait_for();
}

static void a_file_is_not_read_while_it_is_written(void **state)
{
	autofd int fd = -1;

	(void)state;
	begin("a\nb\n");
	fd = open_to_append("jobs.txt");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(step(), 0);
	has("a\nb\n");
	now_ms += 600;
	add(fd, "c\n");
	assert_int_equal(step(), 0);
	now_ms += 600;
	assert_int_equal(step(), 0);
	has("a\nb\n");
	sleeps();
	assert_int_equal(step(), 1);
	has("c\n");
}

static void a_close_ends_the_wait_for_quiet(void **state)
{
	int fd;

	(void)state;
	begin("a\n");
	fd = open_to_append("jobs.txt");
	add(fd, "b\n");
	assert_int_equal(step(), 0);
	(void)close(fd);
	finds_at_once("a\nb\n");
	has_nothing_to_wait_for();
}

static int writer = -1;

static void truncate_it(void)
{
	assert_int_equal(ftruncate(writer, 0), 0);
}

static void a_write_during_a_read_is_waited_for(void **state)
{
	(void)state;
	begin("a\n");
	writer = open_to_append("jobs.txt");
	append("jobs.txt", "b\n");
	meanwhile = truncate_it;
	assert_int_equal(step(), 0);
	has("a\n");
	add(writer, "c\n");
	close_fd(&writer);
	finds_at_once("c\n");
}

static void a_file_with_the_same_text_has_not_changed(void **state)
{
	(void)state;
	begin("a\n");
	put("jobs.txt", "a\n");
	assert_true(is_awake());
	assert_int_equal(step(), 0);
	put("new", "a\n");
	move("new", "jobs.txt");
	assert_int_equal(step(), 0);
	age("jobs.txt");
	assert_int_equal(step(), 0);
}

static void other_files_in_the_folder_do_not_count(void **state)
{
	int fd;

	(void)state;
	begin("a\n");
	put("jobs.txt~", "x\n");
	put("jobs", "x\n");
	assert_int_equal(step(), 0);
	assert_true(batch_file_wake_ms(&file) == INT64_MAX);
	/* writes to them do not even cause a wakeup */
	fd = open_to_append("jobs");
	add(fd, "y\n");
	assert_false(is_awake());
	(void)close(fd);
	/* nor do they cause a read while the file is being written */
	fd = open_to_append("jobs.txt");
	add(fd, "b\n");
	put("jobs", "z\n");
	assert_int_equal(step(), 0);
	has("a\n");
	(void)close(fd);
}

/* --- the last line ----------------------------------------------------------------- */

static void a_last_line_without_newline_counts_later(void **state)
{
	(void)state;
	begin("a\n");
	append("jobs.txt", "b\nhalf");
	finds_at_once("a\nb\n");
	sleeps();
	assert_int_equal(step(), 0); /* its mtime is still recent */
	has("a\nb\n");
	ahead_ms = BATCH_QUIET_MS;
	sleeps();
	assert_int_equal(step(), 1);
	has("a\nb\nhalf");
	has_nothing_to_wait_for();
}

static void in_an_old_file_the_last_line_counts_at_once(void **state)
{
	(void)state;
	begin("a\nb");
	has("a\nb");
	has_nothing_to_wait_for();
}

static void at_the_first_read_the_last_line_counts(void **state)
{
	(void)state;
	put("jobs.txt", "only");
	begin_with(path);
	has("only");
	/* and it keeps counting when the file is looked at again within a second */
	append("jobs.txt", "");
	now_ms++;
	assert_int_equal(step(), 0);
	has("only");
	append("jobs.txt", " one\n");
	finds_at_once("only one\n");
}

static void an_empty_file_is_not_an_error(void **state)
{
	(void)state;
	begin("");
	has("");
	append("jobs.txt", "a\n");
	finds_at_once("a\n");
	put("jobs.txt", "");
	finds_at_once("");
}

/* --- gone, and back ---------------------------------------------------------------- */

static void a_missing_file_is_reported_after_a_second_and_once(void **state)
{
	(void)state;
	begin("a\n");
	gone("jobs.txt");
	assert_true(is_awake());
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -ENOENT);
	has("a\n");
	has_nothing_to_wait_for();
	put("jobs.txt", "b\n");
	assert_true(is_awake());
	finds_at_once("b\n");
	move("jobs.txt", "elsewhere");
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -ENOENT);
}

static void a_file_removed_and_created_again_was_never_missing(void **state)
{
	(void)state;
	begin("a\n");
	gone("jobs.txt");
	assert_int_equal(step(), 0);
	put("jobs.txt", "a\nb\n");
	finds_at_once("a\nb\n");
	/* renamed to a backup and created again */
	move("jobs.txt", "jobs.txt~");
	assert_int_equal(step(), 0);
	put("jobs.txt", "c\n");
	finds_at_once("c\n");
	has_nothing_to_wait_for();
}

static void a_new_file_is_read_when_it_is_complete(void **state)
{
	int fd;

	(void)state;
	begin("a\n");
	gone("jobs.txt");
	fd = openat(scratch->dirfd, "jobs.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(step(), 0);
	has("a\n");
	add(fd, "b\n");
	assert_int_equal(step(), 0);
	has("a\n");
	(void)close(fd);
	finds_at_once("b\n");
}

static void after_a_move_of_the_folder_the_timer_works(void **state)
{
	char inside[160];

	(void)state;
	assert_int_equal(mkdirat(scratch->dirfd, "folder", 0700), 0);
	put("folder/jobs.txt", "a\n");
	age("folder/jobs.txt");
	(void)snprintf(inside, sizeof(inside), "%s/folder/jobs.txt", scratch->path);
	begin_with(inside);
	move("folder", "old");
	assert_true(is_awake());
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -ENOENT);
	sleeps();
	assert_int_equal(step(), 0);
	assert_int_equal(mkdirat(scratch->dirfd, "folder", 0700), 0);
	put("folder/jobs.txt", "b\n");
	sleeps();
	assert_int_equal(step(), 1);
	has("b\n");
	/* and by now it is watched again */
	append("folder/jobs.txt", "c\n");
	finds_at_once("b\nc\n");
}

/* --- links ------------------------------------------------------------------------- */

static void links_are_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(scratch->dirfd, "far", 0700), 0);
	put("far/one", "a\n");
	put("far/two", "x\n");
	age("far/one");
	assert_int_equal(symlinkat("far/one", scratch->dirfd, "jobs.txt"), 0);
	begin_with(path);
	has("a\n");
	append("far/one", "b\n");
	finds_at_once("a\nb\n");
	/* what it names is replaced */
	put("far/new", "c\n");
	move("far/new", "far/one");
	finds_at_once("c\n");
	/* it names something else */
	assert_int_equal(symlinkat("far/two", scratch->dirfd, "link"), 0);
	move("link", "jobs.txt");
	finds_at_once("x\n");
	append("far/two", "y\n");
	finds_at_once("x\ny\n");
	append("far/one", "d\n");
	assert_int_equal(step(), 0);
	has("x\ny\n");
}

static void a_second_name_of_the_file_is_watched(void **state)
{
	(void)state;
	begin("a\n");
	assert_int_equal(mkdirat(scratch->dirfd, "far", 0700), 0);
	assert_int_equal(
		linkat(scratch->dirfd, "jobs.txt", scratch->dirfd, "far/other", 0), 0);
	assert_int_equal(step(), 0);
	append("far/other", "b\n");
	finds_at_once("a\nb\n");
}

/* --- what cannot be read ----------------------------------------------------------- */

static void refuses(const char *name, int error, const char *words)
{
	struct why why = WHY_NONE;
	int r = batch_file_open(name, &file, &why);

	assert_int_equal(r, error);
	if (!strstr(why.text, words) || !strstr(why.text, name))
		fail_msg("%s", why.text);
}

static void a_file_that_is_not_regular_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifoat(scratch->dirfd, "jobs.txt", 0600), 0);
	refuses(path, -EINVAL, "is not a regular file");
	refuses(scratch->path, -EINVAL, "is not a regular file");
	refuses("/dev/null", -EINVAL, "'-' reads standard input");
}

static void a_missing_file_is_refused(void **state)
{
	(void)state;
	refuses(path, -ENOENT, "No such file");
	refuses("", -ENOENT, "No such file");
	refuses("/proc/1/no/such/file", -ENOENT, "cannot read");
}

static void a_file_that_is_too_large_is_refused(void **state)
{
	autofd int fd = -1;

	(void)state;
	put("jobs.txt", "");
	fd = open_to_append("jobs.txt");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX + 1), 0);
	refuses(path, -EFBIG, "larger than 16M");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX), 0);
	begin_with(path);
}

static void a_file_that_becomes_unreadable_is_reported_once(void **state)
{
	autofd int fd = -1;

	(void)state;
	begin("a\n");
	fd = open_to_append("jobs.txt");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX + 1), 0);
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -EFBIG);
	has("a\n");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX + 2), 0);
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), 0);
	/* another error is reported as well */
	gone("jobs.txt");
	assert_int_equal(mkfifoat(scratch->dirfd, "jobs.txt", 0600), 0);
	now_ms += 2 * BATCH_QUIET_MS;
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -EINVAL);
	gone("jobs.txt");
	put("jobs.txt", "a\n");
	assert_int_equal(step(), 0); /* as before */
	append("jobs.txt", "b\n");
	finds_at_once("a\nb\n");
}

static void the_file_is_only_read(void **state)
{
	struct stat before, after;

	(void)state;
	put("jobs.txt", "a\nb");
	age("jobs.txt");
	assert_int_equal(fchmodat(scratch->dirfd, "jobs.txt", 0400, 0), 0);
	assert_int_equal(fstatat(scratch->dirfd, "jobs.txt", &before, 0), 0);
	begin_with(path);
	now_ms += 2 * BATCH_LOOK_MS;
	(void)!step();
	assert_int_equal(fstatat(scratch->dirfd, "jobs.txt", &after, 0), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof(before.st_ctim));
}

/* --- without inotify --------------------------------------------------------------- */

static void without_inotify_the_file_is_checked_every_second(void **state)
{
	(void)state;
	has_no_inotify = true;
	begin("a\n");
	assert_false(is_awake());
	sleeps();
	assert_int_equal(step(), 0);
	append("jobs.txt", "b\n");
	assert_int_equal(step(), 0); /* not before its time */
	has("a\n");
	sleeps();
	assert_int_equal(step(), 0); /* it may still be written */
	has("a\n");
	sleeps();
	assert_int_equal(step(), 1);
	has("a\nb\n");
	gone("jobs.txt");
	sleeps();
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -ENOENT);
	sleeps();
	assert_int_equal(step(), 0);
	put("jobs.txt", "c\n");
	sleeps();
	(void)!step();
	sleeps();
	(void)!step();
	has("c\n");
	sleeps();
}

/* --- has_more ---------------------------------------------------------------------- */

static bool has_more(void)
{
	return batch_file_has_more(&file, now_ms);
}

static void a_file_has_more_until_all_of_it_was_read(void **state)
{
	autofd int fd = -1;

	(void)state;
	begin("a\n");
	assert_false(has_more());
	fd = open_to_append("jobs.txt");
	add(fd, "b\n");
	assert_true(has_more()); /* before any event was read */
	assert_int_equal(step(), 0);
	assert_true(has_more()); /* while the wait for quiet lasts */
	sleeps();
	assert_int_equal(step(), 1);
	assert_false(has_more());
	add(fd, "half");
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), 0);
	assert_true(has_more());
	ahead_ms = BATCH_QUIET_MS;
	sleeps();
	assert_int_equal(step(), 1);
	assert_false(has_more());
	has_nothing_to_wait_for();
}

static void without_inotify_it_has_more_until_it_was_read(void **state)
{
	(void)state;
	has_no_inotify = true;
	begin("a\n");
	assert_false(has_more());
	append("jobs.txt", "b\n");
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), 0);
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), 1);
	assert_false(has_more());
}

static void a_reported_error_is_not_waited_for(void **state)
{
	autofd int fd = -1;

	(void)state;
	begin("a\n");
	fd = open_to_append("jobs.txt");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX + 1), 0);
	assert_true(has_more());
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), -EFBIG);
	assert_false(has_more());
	/* the file is correct again */
	assert_int_equal(ftruncate(fd, 2), 0);
	assert_true(has_more());
	assert_int_equal(step(), 0);
	sleeps();
	assert_int_equal(step(), 0);
	assert_false(has_more());
	gone("jobs.txt");
	assert_true(has_more());
	assert_int_equal(step(), 0);
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), -ENOENT);
	assert_false(has_more());
}

static void a_mended_file_has_more_without_inotify_too(void **state)
{
	autofd int fd = -1;

	(void)state;
	has_no_inotify = true;
	begin("a\n");
	fd = open_to_append("jobs.txt");
	assert_int_equal(ftruncate(fd, BATCH_FILE_MAX + 1), 0);
	sleeps();
	assert_int_equal(step(), -EFBIG);
	assert_false(has_more());
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), 0); /* it may still be written */
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), 1);
	has("");
	assert_false(has_more());
}

static void a_change_without_an_event_is_found(void **state)
{
	char inside[160];

	(void)state;
	assert_int_equal(mkdirat(scratch->dirfd, "outer", 0700), 0);
	assert_int_equal(mkdirat(scratch->dirfd, "outer/inner", 0700), 0);
	put("outer/inner/jobs.txt", "a\n");
	age("outer/inner/jobs.txt");
	(void)snprintf(inside, sizeof(inside), "%s/outer/inner/jobs.txt", scratch->path);
	begin_with(inside);
	move("outer", "old");
	has_nothing_to_wait_for();
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), 0);
	assert_true(has_more());
	sleeps();
	assert_int_equal(step(), -ENOENT);
	assert_false(has_more());
}

/* --- standard input ---------------------------------------------------------------- */

static int own_stdin = -1;

static int pipe_begin(void **state)
{
	static int ends[2];

	own_stdin = dup(STDIN_FILENO);
	if (setup(state) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	(void)dup2(ends[0], STDIN_FILENO);
	(void)close(ends[0]);
	*state = &ends[1];
	return 0;
}

static int pipe_end(void **state)
{
	(void)dup2(own_stdin, STDIN_FILENO);
	close_fd(&own_stdin);
	close_fd(*state);
	*state = scratch;
	return teardown(state);
}

#define PIPE_TEST(f) cmocka_unit_test_setup_teardown(f, pipe_begin, pipe_end)

static void a_pipe_is_read_line_by_line(void **state)
{
	int *fd = *state;

	begin_with("-"); /* nothing is there, and nothing is waited for */
	has("");
	assert_false(is_awake());
	assert_true(batch_file_wake_ms(&file) == INT64_MAX);
	add(*fd, "a\nhal");
	finds_at_once("a\n");
	add(*fd, "f");
	assert_true(is_awake());
	assert_int_equal(step(), 0);
	has("a\n");
	add(*fd, "\nc");
	finds_at_once("a\nhalf\n");
	assert_false(file.is_at_end);
	assert_true(has_more());
	close_fd(fd);
	finds_at_once("a\nhalf\nc");
	assert_true(file.is_at_end);
	assert_false(has_more());
	assert_int_equal(step(), 0);
	assert_false(is_awake());
}

static void the_end_of_a_pipe_after_a_whole_line_is_noticed(void **state)
{
	int *fd = *state;

	add(*fd, "a\n");
	begin_with("-");
	has("a\n");
	close_fd(fd);
	assert_true(is_awake());
	assert_int_equal(step(), 0);
	assert_true(file.is_at_end);
	has("a\n");
}

static void standard_input_stays_blocking(void **state)
{
	int *fd = *state, flags = fcntl(STDIN_FILENO, F_GETFL);

	add(*fd, "a\n");
	begin_with("-");
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFL), flags);
	batch_file_release(&file);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFL), flags);
}

static void too_much_from_a_pipe_is_an_error_once(void **state)
{
	char lines[4096];
	int *fd = *state, r = 0;

	memset(lines, '\n', sizeof(lines));
	begin_with("-");
	for (int sent = 0; r >= 0 && sent <= BATCH_FILE_MAX + (int)sizeof(lines);
		sent += (int)sizeof(lines)) {
		assert_int_equal(write(*fd, lines, sizeof(lines)), sizeof(lines));
		r = step();
	}
	assert_int_equal(r, -EFBIG);
	assert_int_equal(file.size, BATCH_FILE_MAX);
	assert_true(file.is_at_end);
	assert_int_equal(step(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(a_file_is_read_at_once_when_its_writer_closes_it),
		FILE_TEST(a_file_is_read_at_once_when_it_is_replaced),
		FILE_TEST(a_file_is_not_read_while_it_is_written),
		FILE_TEST(a_close_ends_the_wait_for_quiet),
		FILE_TEST(a_write_during_a_read_is_waited_for),
		FILE_TEST(a_file_with_the_same_text_has_not_changed),
		FILE_TEST(other_files_in_the_folder_do_not_count),
		FILE_TEST(a_last_line_without_newline_counts_later),
		FILE_TEST(in_an_old_file_the_last_line_counts_at_once),
		FILE_TEST(at_the_first_read_the_last_line_counts),
		FILE_TEST(an_empty_file_is_not_an_error),
		FILE_TEST(a_missing_file_is_reported_after_a_second_and_once),
		FILE_TEST(a_file_removed_and_created_again_was_never_missing),
		FILE_TEST(a_new_file_is_read_when_it_is_complete),
		FILE_TEST(after_a_move_of_the_folder_the_timer_works),
		FILE_TEST(links_are_followed),
		FILE_TEST(a_second_name_of_the_file_is_watched),
		FILE_TEST(a_file_that_is_not_regular_is_refused),
		FILE_TEST(a_missing_file_is_refused),
		FILE_TEST(a_file_that_is_too_large_is_refused),
		FILE_TEST(a_file_that_becomes_unreadable_is_reported_once),
		FILE_TEST(the_file_is_only_read),
		FILE_TEST(without_inotify_the_file_is_checked_every_second),
		FILE_TEST(a_file_has_more_until_all_of_it_was_read),
		FILE_TEST(without_inotify_it_has_more_until_it_was_read),
		FILE_TEST(a_reported_error_is_not_waited_for),
		FILE_TEST(a_mended_file_has_more_without_inotify_too),
		FILE_TEST(a_change_without_an_event_is_found),
		PIPE_TEST(a_pipe_is_read_line_by_line),
		PIPE_TEST(the_end_of_a_pipe_after_a_whole_line_is_noticed),
		PIPE_TEST(standard_input_stays_blocking),
		PIPE_TEST(too_much_from_a_pipe_is_an_error_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
