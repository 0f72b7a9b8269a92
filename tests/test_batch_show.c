/* The output of a batch: what is printed when, and what is written to status.txt. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "batch_show.h"
#include "diag.h"
#include "fdio.h"
#include "page.h"
#include "scratch.h"

enum { T0_MS = 1000000 };

static struct batch_show show;
static struct batch_journal journal;
static struct batch_jobs jobs;
static struct batch_board board;
static const struct batch_line any_line;
static struct scratch *scratch;
static uint64_t order[] = { 1, 2 };
static char printed[64 * 1024];
static int own_stdout = -1, out = -1;

/* From here on stdout is a file. */
static void begin(bool is_json, bool is_quiet)
{
	out = openat(
		scratch->dirfd, "out", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(out >= 0);
	(void)fflush(stdout);
	assert_true(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
	batch_show_begin(&show,
		&(struct output_settings){ .json = is_json, .quiet = is_quiet }, 10,
		&journal);
}

static int setup(void **state)
{
	if (scratch_setup(state) < 0)
		return -1;
	scratch = *state;
	own_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	journal = BATCH_JOURNAL_NONE;
	journal.folder_fd = scratch->dirfd;
	text_copy(journal.folder, sizeof(journal.folder), scratch->path);
	jobs = BATCH_JOBS_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct batch_job *job = batch_jobs_add(&jobs, i, "", "true");

		if (!job)
			return -1;
		job->line = &any_line;
	}
	board = (struct batch_board){ .file = "jobs.txt",
		.jobs = &jobs,
		.order = order,
		.order_count = ARRAY_SIZE(order) };
	return setenv("TZ", "UTC", 1);
}

static void restore_stdout(void)
{
	(void)fflush(stdout);
	if (own_stdout >= 0)
		(void)dup2(own_stdout, STDOUT_FILENO);
	close_fd(&own_stdout);
}

static int teardown(void **state)
{
	restore_stdout();
	clearerr(stdout);
	close_fd(&out);
	free(show.pending);
	show.pending = NULL;
	batch_jobs_release(&jobs);
	return scratch_teardown(state);
}

#define SHOW_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Returns what was printed since the last call. */
static const char *output(void)
{
	assert_int_equal(
		fdio_read_text(scratch->dirfd, "out", printed, sizeof(printed)), 0);
	assert_int_equal(ftruncate(out, 0), 0);
	return printed;
}

static void happens(enum batch_event_kind kind, uint64_t number)
{
	struct batch_event event = BATCH_EVENT_OF(kind, number);

	text_copy(event.text, sizeof(event.text), "word");
	batch_show_event(&show, &event, batch_jobs_find(&jobs, number), &board);
}

static int64_t step(int64_t now_ms)
{
	return batch_show_step(&show, &board, now_ms, false);
}

static void end(int64_t now_ms)
{
	assert_true(batch_show_step(&show, &board, now_ms, true) == INT64_MAX);
	assert_null(show.pending);
}

static bool has_status(void)
{
	return unlinkat(scratch->dirfd, "status.txt", 0) == 0;
}

/* --- lines ------------------------------------------------------------------------- */

static void lines_come_with_the_next_step(void **state)
{
	(void)state;
	begin(false, false);
	assert_false(show.is_live);
	happens(BATCH_NOTE, 1);
	happens(BATCH_SEEN, 1); /* that is not printed */
	happens(BATCH_NOTE, 2);
	assert_string_equal(output(), "");
	(void)step(T0_MS);
	assert_string_equal(output(), "00:00:00 entry 1: word\n00:00:00 entry 2: word\n");
	(void)step(T0_MS);
	assert_string_equal(output(), "");
	happens(BATCH_SUMMARY, 0);
	end(T0_MS);
	assert_string_equal(output(), "word\n");
}

static void quiet_it_prints_nothing(void **state)
{
	(void)state;
	begin(false, true);
	happens(BATCH_NOTE, 1);
	happens(BATCH_SUMMARY, 0);
	(void)step(T0_MS);
	end(T0_MS);
	assert_string_equal(output(), "");
	assert_true(has_status());
}

static void changes_of_memory_are_printed_only_with_verbose(void **state)
{
	(void)state;
	begin(false, false);
	happens(BATCH_MEMORY, 1);
	(void)step(T0_MS);
	assert_string_equal(output(), "");
	show.is_verbose = true;
	happens(BATCH_MEMORY, 1);
	(void)step(T0_MS);
	assert_string_equal(output(), "00:00:00 entry 1 uses 0.0G\n");
	show.is_verbose = false;
	happens(BATCH_EXCESS, 1);
	(void)step(T0_MS);
	assert_non_null(strstr(output(), "entry 1 uses 0.0G on GPU "));
	end(T0_MS);
}

static void with_json_changes_of_memory_are_always_printed(void **state)
{
	(void)state;
	begin(true, false);
	happens(BATCH_MEMORY, 1);
	happens(BATCH_EXCESS, 1);
	(void)step(T0_MS);
	assert_non_null(strstr(output(), "{\"event\": \"memory\", \"job\": 1}\n"
					 "{\"event\": \"excess\", \"job\": 1}\n"));
	end(T0_MS);
}

static void with_json_each_event_is_a_line(void **state)
{
	struct batch_event event;
	const char *lines;
	size_t size;

	(void)state;
	begin(true, true); /* --json prints events even with --quiet */
	happens(BATCH_SEEN, 1);
	happens(BATCH_NOTE, 2);
	(void)step(T0_MS);
	lines = output();
	size = strcspn(lines, "\n");
	assert_non_null(strstr(lines, "\"format\": \"gpulease-batch/1\""));
	assert_int_equal(batch_event_parse(lines, size, &event), 0);
	assert_int_equal(event.kind, BATCH_EVENT_NONE); /* readers skip it */
	lines += size + 1;
	size = strcspn(lines, "\n");
	assert_int_equal(batch_event_parse(lines, size, &event), 0);
	assert_int_equal(event.kind, BATCH_SEEN);
	lines += size + 1;
	size = strcspn(lines, "\n");
	assert_int_equal(batch_event_parse(lines, size, &event), 0);
	assert_int_equal(event.job, 2);
	assert_string_equal(lines + size, "\n");
	end(T0_MS);
	assert_string_equal(output(), "");
}

static void no_output_stays_in_a_buffer_that_a_child_inherits(void **state)
{
	(void)state;
	begin(false, false);
	happens(BATCH_NOTE, 1);
	(void)step(T0_MS);
	(void)output();
	(void)fflush(stdout);
	assert_string_equal(output(), "");
	end(T0_MS);
}

/* --- slow readers ------------------------------------------------------------------ */

static void a_slow_reader_is_not_waited_for(void **state)
{
	char bytes[4096];
	size_t seen = 0, sent = 0;
	int ends[2];
	ssize_t n;

	(void)state;
	begin(false, false);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)dup2(ends[1], STDOUT_FILENO);
	(void)close(ends[1]);
	/* more than a pipe takes: this would hang */
	for (; sent < 300000; sent += strlen("00:00:00 entry 1: word\n")) {
		happens(BATCH_NOTE, 1);
		(void)step(T0_MS);
	}
	assert_true(show.pending_size > 0);
	assert_true(step(T0_MS + 1) > T0_MS + 1); /* and it does not busy-wait */
	assert_true(step(T0_MS + 1) < T0_MS + 1000);
	for (int i = 0; i < 1000 && show.pending_size; i++) {
		n = read(ends[0], bytes, sizeof(bytes));
		assert_true(n > 0);
		seen += (size_t)n;
		(void)step(T0_MS + 2);
	}
	end(T0_MS + 3);
	restore_stdout();
	while ((n = read(ends[0], bytes, sizeof(bytes))) > 0)
		seen += (size_t)n;
	(void)close(ends[0]);
	assert_int_equal(seen, sent); /* no line was lost or repeated */
}

static void a_pipe_without_a_reader_ends_the_output_silently(void **state)
{
	int ends[2];

	(void)state;
	begin(false, false);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)dup2(ends[1], STDOUT_FILENO);
	(void)close(ends[1]);
	(void)close(ends[0]);
	happens(BATCH_NOTE, 1);
	(void)step(T0_MS);
	assert_true(show.is_closed);
	assert_false(show.has_no_output); /* a reader that leaves is not an error */
	happens(BATCH_NOTE, 1);
	assert_int_equal(show.pending_size, 0);
	(void)step(T0_MS + 1000);
	end(T0_MS + 2000);
	assert_true(has_status());
	/* nor does a child print it, with its own stdout */
	(void)dup2(out, STDOUT_FILENO);
	(void)fflush(stdout);
	assert_string_equal(output(), "");
	(void)signal(SIGPIPE, SIG_DFL);
}

/* --- the board on a terminal ------------------------------------------------------- */

/* Returns how many rows the last erasing sequence goes up; -1: there is none. */
static int erased(const char *text)
{
	const char *at = strstr(text, "\r\033[");
	int rows = -1;

	if (at)
		(void)sscanf(at, "\r\033[%dA\033[J", &rows);
	return rows;
}

static int rows_of(const char *text)
{
	int rows = 0;

	for (; *text; text++)
		rows += *text == '\n';
	return rows;
}

static void the_board_is_erased_before_lines(void **state)
{
	const char *text;
	int rows;

	(void)state;
	begin(false, false);
	show.is_live = true;
	(void)step(T0_MS);
	text = output();
	rows = rows_of(text);
	assert_int_equal(rows, 4); /* a head, a title, two waiting jobs */
	assert_int_equal(erased(text), -1);

	jobs.all[0].state = BATCH_ENDED;
	happens(BATCH_NOTE, 1);
	(void)step(T0_MS + 100);
	text = output();
	assert_int_equal(erased(text), rows);
	assert_non_null(strstr(text, "\033[J00:00:00 entry 1: word\njobs.txt: "));
	rows = rows_of(text) - 1;
	assert_int_equal(rows, 5);

	/* something else is about to be printed */
	batch_show_clear(&show);
	text = output();
	assert_int_equal(erased(text), rows);
	assert_int_equal(rows_of(text), 0);
	(void)step(T0_MS + 200);
	text = output();
	assert_int_equal(erased(text), -1);
	assert_int_equal(rows_of(text), rows);

	happens(BATCH_SUMMARY, 0);
	end(T0_MS + 201);
	text = output();
	assert_int_equal(erased(text), rows);
	assert_non_null(strstr(text, "\033[Jword\n"));
	assert_int_equal(rows_of(text), 1);
}

static void the_board_is_drawn_ten_times_a_second_at_most(void **state)
{
	(void)state;
	begin(false, false);
	show.is_live = true;
	(void)step(T0_MS);
	(void)output();
	happens(BATCH_NOTE, 1);
	assert_true(step(T0_MS + 30) == T0_MS + 100);
	assert_string_equal(output(), ""); /* and nothing flickers in between */
	happens(BATCH_NOTE, 1);
	(void)step(T0_MS + 100);
	assert_int_equal(rows_of(output()), 2 + 4);
	end(T0_MS + 100);
}

static void the_board_shows_time_passing_while_a_job_runs(void **state)
{
	(void)state;
	begin(false, false);
	show.is_live = true;
	(void)step(T0_MS);
	assert_true(step(T0_MS + 250) == INT64_MAX);
	jobs.all[0].state = BATCH_RUNNING;
	assert_true(step(T0_MS + 300) == T0_MS + 1000);
	(void)output();
	assert_true(step(T0_MS + 1000) == T0_MS + 2000);
	assert_true(rows_of(output()) > 0);
	end(T0_MS + 1001);
}

/* --- status.txt -------------------------------------------------------------------- */

static void the_status_file_is_written_after_a_change(void **state)
{
	char text[4096];

	(void)state;
	begin(false, false);
	assert_true(step(T0_MS) == INT64_MAX);
	assert_int_equal(
		fdio_read_text(scratch->dirfd, "status.txt", text, sizeof(text)), 0);
	assert_string_equal(text, "jobs.txt: 0 running, 2 waiting, 0 finished, of 2; "
				  "since 00:00:00\n"
				  "ENTRY  WAITING  WHY\n"
				  "    1  true     not in the queue yet\n"
				  "    2  true     not in the queue yet\n"
				  "as of 1970-01-01 00:00:00\n");
	assert_true(has_status());
	assert_true(step(T0_MS + 5000) == INT64_MAX);
	assert_false(has_status());
	batch_show_changed(&show);
	assert_true(step(T0_MS + 5000) == INT64_MAX);
	assert_true(has_status());
	end(T0_MS + 5001);
	assert_false(has_status());
}

static void the_status_file_is_written_four_times_a_second_at_most(void **state)
{
	(void)state;
	begin(false, false);
	(void)step(T0_MS);
	assert_true(has_status());
	happens(BATCH_SEEN, 1);
	assert_true(step(T0_MS + 10) == T0_MS + 250);
	assert_true(step(T0_MS + 249) == T0_MS + 250);
	assert_false(has_status());
	(void)step(T0_MS + 250);
	assert_true(has_status());
	batch_show_changed(&show);
	end(T0_MS + 251); /* but the last state is never left out */
	assert_true(has_status());
}

static void the_status_file_is_written_every_five_seconds_while_a_job_runs(void **state)
{
	char text[4096];

	(void)state;
	begin(false, true);
	jobs.all[0].state = BATCH_RUNNING;
	assert_true(step(T0_MS) == T0_MS + 5000);
	assert_true(has_status());
	assert_true(step(T0_MS + 4999) == T0_MS + 5000);
	assert_false(has_status());
	board.now_ms += 5000;
	jobs.all[0].used_mib = jobs.all[0].peak_mib = 2048;
	assert_true(step(T0_MS + 5000) == T0_MS + 10000);
	assert_int_equal(
		fdio_read_text(scratch->dirfd, "status.txt", text, sizeof(text)), 0);
	assert_non_null(strstr(text, " 5s    2.0G\n"));
	assert_true(has_status());
	/* a change comes earlier; then the time counts from there */
	batch_show_changed(&show);
	assert_true(step(T0_MS + 5100) == T0_MS + 5250);
	assert_true(step(T0_MS + 5250) == T0_MS + 10250);
	/* a job that waits for its next attempt does not run: nothing is on a timer */
	jobs.all[0].is_between = true;
	assert_true(step(T0_MS + 11000) == INT64_MAX);
	jobs.all[0].state = BATCH_ENDED;
	jobs.all[0].is_between = false;
	assert_true(step(T0_MS + 60000) == INT64_MAX);
	end(T0_MS + 60000);
}

static void a_failed_status_file_is_reported_once(void **state)
{
	autofd int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), err = -1;
	char text[1024];

	(void)state;
	begin(false, false);
	journal.folder_fd = -1;
	err = openat(scratch->dirfd, "err", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	(void)dup2(err, STDERR_FILENO);
	(void)step(T0_MS);
	batch_show_changed(&show);
	(void)step(T0_MS + 1000);
	end(T0_MS + 2000);
	(void)dup2(own, STDERR_FILENO);
	assert_int_equal(fdio_read_text(scratch->dirfd, "err", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "cannot write '"));
	assert_int_equal(rows_of(text), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHOW_TEST(lines_come_with_the_next_step),
		SHOW_TEST(quiet_it_prints_nothing),
		SHOW_TEST(changes_of_memory_are_printed_only_with_verbose),
		SHOW_TEST(with_json_changes_of_memory_are_always_printed),
		SHOW_TEST(with_json_each_event_is_a_line),
		SHOW_TEST(no_output_stays_in_a_buffer_that_a_child_inherits),
		SHOW_TEST(a_slow_reader_is_not_waited_for),
		SHOW_TEST(a_pipe_without_a_reader_ends_the_output_silently),
		SHOW_TEST(the_board_is_erased_before_lines),
		SHOW_TEST(the_board_is_drawn_ten_times_a_second_at_most),
		SHOW_TEST(the_board_shows_time_passing_while_a_job_runs),
		SHOW_TEST(the_status_file_is_written_after_a_change),
		SHOW_TEST(the_status_file_is_written_four_times_a_second_at_most),
		SHOW_TEST(the_status_file_is_written_every_five_seconds_while_a_job_runs),
		SHOW_TEST(a_failed_status_file_is_reported_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
