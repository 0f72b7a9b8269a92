/* The log lines, the summary and the board of a batch. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "batch_board.h"
#include "batch_report.h"
#include "page.h"

#define MINUTE_MS (60 * 1000LL)
#define HOUR_MS (60 * MINUTE_MS)
#define AT_MS (1795220315LL * 1000) /* 2026-11-21 00:18:35 UTC */

static struct batch_jobs jobs;
static const struct batch_line any_line;

static int setup(void **state)
{
	(void)state;
	jobs = BATCH_JOBS_NONE;
	return setenv("TZ", "UTC", 1);
}

static int teardown(void **state)
{
	(void)state;
	batch_jobs_release(&jobs);
	return 0;
}

#define BOARD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Adds a job with a line in the file; pointers to other jobs become invalid. */
static struct batch_job *add(const char *name, const char *command)
{
	struct batch_job *job = batch_jobs_add(&jobs, 7, name, command);

	assert_non_null(job);
	job->line = &any_line;
	return job;
}

static void running(
	const char *name, const char *gpus, int64_t since_ms, int64_t limit_ms)
{
	struct batch_job *job = add(name, "python train.py");

	job->state = BATCH_RUNNING;
	text_copy(job->gpus, sizeof(job->gpus), gpus);
	job->started_ms = AT_MS - since_ms;
	job->limit_ms = limit_ms;
}

static void waiting(const char *command, const char *reason, uint64_t ticket)
{
	struct batch_job *job = add("", command);

	job->state = ticket ? BATCH_IN_QUEUE : BATCH_NEW;
	job->ticket = ticket;
	job->reason = reason ? strdup(reason) : NULL;
}

static struct batch_job *ended(const char *name, enum batch_cause cause, int status)
{
	struct batch_job *job = add(name, "true");

	job->state = BATCH_ENDED;
	job->was_started = cause != BATCH_NOT_RUN;
	job->cause = cause;
	job->status = status;
	job->ended_ms = AT_MS - HOUR_MS + (int64_t)job->number;
	job->ran_ms = 12000;
	return job;
}

/* --- lines ------------------------------------------------------------------------- */

static void tells(
	const struct batch_event *event, const struct batch_job *job, const char *wanted)
{
	const struct batch_counts counts = { .all = 50, .waiting = 47, .dropped = 1 };
	char line[4096];
	struct text text = TEXT_ON(line);

	batch_report_event(event, job, &counts, 10, &text);
	assert_string_equal(line, wanted);
}

static struct batch_event event_of(enum batch_event_kind kind)
{
	struct batch_event event = BATCH_EVENT_OF(kind, 3);

	event.at_ms = AT_MS;
	return event;
}

static void a_start_has_its_gpus_and_its_command(void **state)
{
	struct batch_event event = event_of(BATCH_STARTED);
	struct batch_job *job;

	(void)state;
	(void)add("", "");
	(void)add("", "");
	job = add("train", "python train.py --lr 1");
	event.ticket = 17;
	event.attempt = 1;
	text_copy(event.gpus, sizeof(event.gpus), "0");
	tells(&event, job,
		"00:18:35 entry 3 'train' started on GPU 0, job 17 (2 of 50): "
		"python train.py --lr 1");
	event.attempt = 2;
	text_copy(event.gpus, sizeof(event.gpus), "0,3");
	tells(&event, job,
		"00:18:35 entry 3 'train' started again, attempt 2, on GPUs 0,3, job 17 "
		"(2 of 50): python train.py --lr 1");
	event.gpus[0] = '\0';
	event.attempt = 1;
	tells(&event, NULL, "00:18:35 entry 3 started without a GPU, job 17 (2 of 50)");
}

static void an_end_says_why(void **state)
{
	static const struct {
		enum batch_cause cause;
		int status;
		int64_t ran_ms;
		const char *text, *words;
	} cases[] = {
		{ BATCH_ITSELF, 0, 86000, "", "ended: exit status 0 after 1m26s" },
		{ BATCH_ITSELF, 1, 12000, "", "ended: exit status 1 after 12s" },
		{ BATCH_ITSELF, 128, 10, "", "ended: exit status 128 after <1s" },
		{ BATCH_ITSELF, 139, 10, "", "ended: exit status 139 (SEGV) after <1s" },
		{ BATCH_ITSELF, 255, 10, "", "ended: exit status 255 after <1s" },
		{ BATCH_BY_OOM, 1, 3000, "",
			"ended: out of GPU memory (exit status 1) after 3s" },
		{ BATCH_BY_LIMIT, 124, 2 * HOUR_MS, "", "ended: time limit after 2h00m" },
		{ BATCH_BY_CANCEL, 143, 0, "", "ended: cancelled" },
		{ BATCH_BY_CANCEL, 143, 5000, "bob", "ended: cancelled by bob after 5s" },
		{ BATCH_BY_PREEMPT, 143, 5000, "",
			"ended: sent back for another job or a window after 5s" },
		{ BATCH_NOT_RUN, 125, 0, "there are \033[1mtwo\n",
			"cannot run: there are ?[1mtwo?" },
		{ BATCH_IS_LOST, 137, 0, "", "lost: its supervisor was killed" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct batch_event event = event_of(BATCH_OVER);
		char wanted[256];

		event.cause = cases[i].cause;
		event.status = cases[i].status;
		event.ran_ms = cases[i].ran_ms;
		text_copy(event.text, sizeof(event.text), cases[i].text);
		(void)snprintf(
			wanted, sizeof(wanted), "00:18:35 entry 3 %s", cases[i].words);
		tells(&event, NULL, wanted);
	}
}

static void a_cancel_by_its_line_says_so(void **state)
{
	static const char *const texts[] = { "", "bob", "by its line in the file" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct batch_event event = event_of(BATCH_OVER);

		event.cause = BATCH_BY_CANCEL;
		event.is_by_line = true;
		text_copy(event.text, sizeof(event.text), texts[i]);
		tells(&event, NULL,
			"00:18:35 entry 3 ended: cancelled by its line in the file");
	}
}

static void an_end_has_the_report(void **state)
{
	struct batch_event event = event_of(BATCH_OVER);

	(void)state;
	text_copy(event.name, sizeof(event.name), "train");
	event.ran_ms = 86000;
	event.peak_mib = 18330;
	event.vram_mib = 18 * 1024;
	event.spans_run = true;
	event.busy_mean = 96;
	event.busy_peak = 100;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak 17.9G of "
		"18.0G declared, within 10 %; utilization 96 %");
	event.peak_mib = 20480;
	event.busy_mean = -1;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak 20.0G of "
		"18.0G declared, over by more than 10 %");
	event.peak_mib = 1024;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak 1.0G of "
		"18.0G declared, under by more than 10 %");
	event.vram_mib = 0;
	event.busy_mean = 0;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak 1.0G; "
		"utilization 0 %");
	event.spans_run = false;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak at least "
		"1.0G; utilization 0 %");
	event.vram_mib = 18 * 1024;
	event.busy_mean = -1;
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak at least "
		"1.0G of 18.0G declared, too few samples to compare");
	event.peak_mib = 0;
	tells(&event, NULL, "00:18:35 entry 3 'train' ended: exit status 0 after 1m26s");
	event.busy_mean = 50; /* it was sampled, but no process of it was seen */
	tells(&event, NULL,
		"00:18:35 entry 3 'train' ended: exit status 0 after 1m26s; peak n/a of "
		"18.0G declared, none of its processes was seen; utilization 50 %");
}

static void an_interrupted_job_is_not_a_failure(void **state)
{
	struct batch_event event = event_of(BATCH_OVER);

	(void)state;
	event.is_interrupted = true;
	event.status = 143;
	event.ran_ms = 5000;
	tells(&event, NULL, "00:18:35 entry 3 ended: interrupted after 5s");
}

static void a_dropped_job_says_so(void **state)
{
	struct batch_event event = event_of(BATCH_OVER);
	struct batch_job *job;

	(void)state;
	(void)add("", "");
	(void)add("", "");
	job = ended("", BATCH_NOT_RUN, 0);
	job->is_dropped = true;
	event.cause = BATCH_NOT_RUN;
	text_copy(event.text, sizeof(event.text), "done before");
	tells(&event, job, "00:18:35 entry 3 dropped: done before");
}

static void an_attempt_says_what_follows(void **state)
{
	struct batch_event event = event_of(BATCH_ATTEMPT);

	(void)state;
	event.cause = BATCH_BY_OOM;
	event.status = 1;
	event.ran_ms = 3000;
	event.vram_mib = 2000;
	event.next_mib = 2500;
	tells(&event, NULL,
		"00:18:35 entry 3 ended: out of GPU memory (exit status 1) after 3s, tried "
		"again with 2.5G");
	event.cause = BATCH_ITSELF;
	event.next_mib = 2000;
	event.delay_ms = 5000;
	tells(&event, NULL,
		"00:18:35 entry 3 ended: exit status 1 after 3s, tried again in 5s");
	event.cause = BATCH_BY_LIMIT;
	event.delay_ms = 0;
	tells(&event, NULL,
		"00:18:35 entry 3 ended: time limit after 3s, goes back into the queue");
}

static void other_events_are_short_or_not_shown(void **state)
{
	struct batch_event event = event_of(BATCH_MEMORY);

	(void)state;
	event.used_mib = 4300;
	event.peak_mib = 5300;
	tells(&event, NULL, "00:18:35 entry 3 uses 4.2G");
	event.kind = BATCH_EXCESS;
	event.vram_mib = 3000;
	text_copy(event.gpus, sizeof(event.gpus), "1\033");
	tells(&event, NULL,
		"00:18:35 entry 3 uses 4.2G on GPU 1? and declared 2.9G: its neighbors may "
		"run out of memory");
	event = event_of(BATCH_NOTE);
	text_copy(event.text, sizeof(event.text), "what\x9b is\r");
	tells(&event, NULL, "00:18:35 entry 3: what? is?");
	event.job = 0;
	tells(&event, NULL, "00:18:35 what? is?");
	event.kind = BATCH_SUMMARY;
	tells(&event, NULL, "what? is?");
	for (enum batch_event_kind kind = 0; kind < BATCH_KINDS; kind++) {
		static const bool is_told[BATCH_KINDS] = {
			[BATCH_STARTED] = true,
			[BATCH_ATTEMPT] = true,
			[BATCH_OVER] = true,
			[BATCH_MEMORY] = true,
			[BATCH_EXCESS] = true,
			[BATCH_NOTE] = true,
			[BATCH_SUMMARY] = true,
		};

		event = event_of(kind);
		if (!is_told[kind])
			tells(&event, NULL, "");
	}
}

/* Names and commands never reach a terminal unescaped. */
static void a_line_has_no_control_characters(void **state)
{
	struct batch_event event = event_of(BATCH_STARTED);

	(void)state;
	(void)add("", "");
	(void)add("", "");
	text_copy(event.gpus, sizeof(event.gpus), "\033");
	tells(&event, add("a\033[2Jb", "x\ty\n\xff\xe2\x80\xae"),
		"00:18:35 entry 3 'a?[2Jb' started on GPU ?, job 0 (2 of 50): "
		"x?y???");
}

/* --- counts ------------------------------------------------------------------------ */

static void the_summary_counts_the_jobs(void **state)
{
	static const struct {
		struct batch_counts counts;
		const char *words;
	} cases[] = {
		{ { .all = 50, .finished = 47, .failed = 2, .cancelled = 1 },
			"50 jobs: 47 finished, 2 failed, 1 cancelled, in 3h05m" },
		{ { .all = 1, .finished = 1 }, "1 job: 1 finished, in 3h05m" },
		{ { .all = 3, .waiting = 2, .failed = 1 },
			"3 jobs: 2 waiting, 0 finished, 1 failed, in 3h05m" },
		{ { .all = 2, .dropped = 2 }, "2 jobs: 0 finished, 2 dropped, in 3h05m" },
		{ { .all = 0 }, "0 jobs: 0 finished, in 3h05m" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[256];
		struct text text = TEXT_ON(line);

		batch_report_summary(
			&cases[i].counts, 3 * HOUR_MS + 5 * MINUTE_MS, &text);
		assert_string_equal(line, cases[i].words);
	}
}

static void each_job_counts_in_its_section(void **state)
{
	struct batch_counts counts;

	(void)state;
	running("", "0", 0, 0);
	running("", "0", 0, 0);
	jobs.all[1].line = NULL; /* its line was deleted, and it still runs */
	waiting("a", NULL, 0);
	waiting("b", NULL, 12);
	waiting("c", NULL, 13);
	jobs.all[4].line = NULL; /* being recalled */
	(void)ended("", BATCH_ITSELF, 0);
	ended("", BATCH_ITSELF, 0)->line = NULL;
	ended("", BATCH_ITSELF, 0)->is_from_earlier = true;
	(void)ended("", BATCH_ITSELF, 1);
	(void)ended("", BATCH_BY_LIMIT, 124);
	(void)ended("", BATCH_BY_CANCEL, 143);
	ended("", BATCH_NOT_RUN, 0)->is_dropped = true;
	(void)ended("", BATCH_ITSELF, 1);
	jobs.all[12].line = NULL; /* of an earlier file */
	jobs.all[12].is_from_earlier = true;

	counts = batch_count(&jobs);
	assert_int_equal(counts.all, 11);
	assert_int_equal(counts.running, 2);
	assert_int_equal(counts.waiting, 2);
	assert_int_equal(counts.finished, 3);
	assert_int_equal(counts.failed, 2);
	assert_int_equal(counts.cancelled, 1);
	assert_int_equal(counts.dropped, 1);
}

static void the_failures_have_their_logs(void **state)
{
	struct page page;

	(void)state;
	(void)ended("old", BATCH_ITSELF, 1);
	(void)ended("y", BATCH_ITSELF, 0);
	(void)ended("a\033b", BATCH_ITSELF, 3);
	(void)ended("", BATCH_BY_LIMIT, 124);
	ended("x", BATCH_ITSELF, 2)->is_from_earlier = true;

	page_begin(&page);
	batch_report_failures(&jobs, "/d/jobs\033.logs", 3, page.out);
	page_is(&page,
		"failed: entry 3 'a?b', exit status 3, log /d/jobs?.logs/3-a_b.log\n"
		"failed: entry 4, time limit, log /d/jobs?.logs/4-true.log\n"
		"failed earlier: entry 5 'x', exit status 2, log /d/jobs?.logs/5-x.log\n");
}

static void lists(const char *lines)
{
	struct page page;

	page_begin(&page);
	batch_report_failures(&jobs, "/d", 9, page.out);
	page_is(&page, lines);
}

static void a_failure_is_listed_once(void **state)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, 1);
	struct batch_job *gone;

	(void)state;
	(void)ended("x", BATCH_ITSELF, 2);
	gone = ended("y", BATCH_ITSELF, 3);
	gone->is_from_earlier = true;
	gone->line = NULL;
	lists("failed: entry 1 'x', exit status 2, log /d/1-x.log\n");
	lists("");
	/* its line is put back */
	gone->line = &any_line;
	lists("failed earlier: entry 2 'y', exit status 3, log /d/2-y.log\n");
	lists("");
	/* it runs again and fails again */
	event.status = 4;
	assert_int_equal(batch_jobs_apply(&jobs, &event), 0);
	lists("failed: entry 1 'x', exit status 4, log /d/1-x.log\n");
	lists("");
}

/* --- the board --------------------------------------------------------------------- */

static void print(unsigned width, unsigned rows, FILE *out)
{
	const struct table_style style = { .width = width };
	uint64_t *order = calloc(jobs.count + 1, sizeof(*order));
	struct batch_board board = { .file = "jobs.txt",
		.jobs = &jobs,
		.order = order,
		.order_count = jobs.count,
		.now_ms = AT_MS,
		.begun_ms = AT_MS - 3 * HOUR_MS - 5 * MINUTE_MS };

	assert_non_null(order);
	for (size_t i = 0; i < jobs.count; i++)
		order[i] = jobs.count - i; /* the file has them in reverse order */
	batch_board_print(&board, &style, rows, out);
	free(order);
}

static void shows(unsigned width, unsigned rows, const char *wanted)
{
	struct page page;

	page_begin(&page);
	print(width, rows, page.out);
	page_is(&page, wanted);
}

static void fill(void)
{
	struct batch_job *job;

	running("train", "0", 12 * MINUTE_MS, HOUR_MS);
	jobs.all[0].used_mib = 12000;
	jobs.all[0].peak_mib = 18330;
	jobs.all[0].vram_mib = 18 * 1024;
	running("", "1,2", 5000, 0);
	jobs.all[1].used_mib = jobs.all[1].peak_mib = 2048;
	jobs.all[1].vram_mib = 1024;
	jobs.all[1].is_over = true;
	running("late", "3", 2 * HOUR_MS, HOUR_MS);
	waiting("python a.py", "behind job 12", 20);
	waiting("python b.py", NULL, 0);
	waiting("python c.py", NULL, 21);
	(void)ended("prep", BATCH_ITSELF, 0);
	(void)ended("x", BATCH_BY_OOM, 1);
	job = ended("", BATCH_BY_CANCEL, 143);
	job->reason = strdup("bob");
	job->is_by_line = true;
}

static void the_board_shows_jobs_that_run_wait_and_are_done(void **state)
{
	(void)state;
	fill();
	jobs.all[6].is_from_earlier = true;
	shows(0, 0,
		"jobs.txt: 3 running, 3 waiting, 1 finished, 1 failed, 1 cancelled, of 9; "
		"since 21:13:35\n"
		"ENTRY  RUNNING          GPU  TIME                         MEMORY\n"
		"    3  late             3    [##########] 2h00m of 1h00m  -\n"
		"    2  python train.py  1,2  5s                           2.0G of 1.0G, over\n"
		"    1  train            0    [##........] 12m of 1h00m    11.7G of 18.0G\n"
		"ENTRY  WAITING      JOB  WHY\n"
		"    6  python c.py   21  in the queue\n"
		"    5  python b.py    -  not in the queue yet\n"
		"    4  python a.py   20  behind job 12\n"
		"ENTRY  DONE  HOW                                TIME\n"
		"    7  prep  ok, earlier                        12s\n"
		"    8  x     out of GPU memory (exit status 1)  12s\n"
		"    9  true  cancelled by its line in the file  12s\n");
}

static void the_board_shows_what_is_under_way(void **state)
{
	const struct table_style style = { .width = 0 };
	struct batch_board board = { .file = "-", .jobs = &jobs, .is_watching = true };
	struct page page;

	(void)state;
	page_begin(&page);
	batch_board_print(&board, &style, 0, page.out);
	page_is(&page, "standard input: 0 running, 0 waiting, 0 finished, of 0; "
		       "since 00:00:00; watching\n");
	board.is_stopping = true;
	board.file = "a\033b";
	page_begin(&page);
	batch_board_print(&board, &style, 0, page.out);
	page_is(&page, "a?b: 0 running, 0 waiting, 0 finished, of 0; "
		       "since 00:00:00; stopping\n");
}

/* A job between two attempts has no GPU; its line may have been deleted. */
static void between_two_attempts_a_job_waits(void **state)
{
	(void)state;
	running("train", "", HOUR_MS, 2 * HOUR_MS);
	running("big", "", HOUR_MS, 0);
	for (size_t i = 0; i < 2; i++) {
		jobs.all[i].is_between = true;
		jobs.all[i].attempt = 1;
		jobs.all[i].ticket = 7 + i;
		jobs.all[i].cause = i ? BATCH_BY_PREEMPT : BATCH_BY_OOM;
		jobs.all[i].status = 1;
	}
	shows(0, 0,
		"jobs.txt: 0 running, 2 waiting, 0 finished, of 2; since 21:13:35\n"
		"ENTRY  WAITING  JOB  WHY\n"
		"    2  big        8  sent back for another job or a window, goes back "
		"into the queue\n"
		"    1  train      7  out of GPU memory (exit status 1), tried again\n");
	jobs.all[0].reason = strdup("behind job 9");
	jobs.all[1].line = NULL;
	jobs.all[1].is_between = false;
	shows(0, 0,
		"jobs.txt: 1 running, 1 waiting, 0 finished, of 2; since 21:13:35\n"
		"ENTRY  RUNNING  JOB  TIME\n"
		"    2  big        8  1h00m\n"
		"ENTRY  WAITING  JOB  WHY\n"
		"    1  train      7  for attempt 2: behind job 9\n");
}

static void a_job_that_comes_after_others_says_so(void **state)
{
	struct batch_line line = { .attributes = { .after = "prep,2" } };
	struct page page;

	(void)state;
	waiting("a", NULL, 0);
	jobs.all[0].line = &line;
	page_begin(&page);
	print(0, 0, page.out);
	page_has(&page, "after prep,2\n");
	page_end(&page);
	line.attributes = (struct batch_attributes){ .after_ok = "x" };
	page_begin(&page);
	print(0, 0, page.out);
	page_has(&page, "after x\n");
	page_end(&page);
}

/* Returns the number of lines; each has at most @width columns. */
static unsigned lines_of(unsigned width, unsigned rows)
{
	struct page page;
	unsigned lines = 0;

	page_begin(&page);
	print(width, rows, page.out);
	assert_int_equal(fflush(page.out), 0);
	for (const char *at = page.text; *at; lines++) {
		size_t size = strcspn(at, "\n");

		if (width && text_columns(at, size) > width)
			fail_msg("wider than %u: %.*s", width, (int)size, at);
		assert_int_equal(at[size], '\n');
		at += size + 1;
	}
	page_end(&page);
	return lines;
}

static void the_board_keeps_to_its_width_and_rows(void **state)
{
	(void)state;
	fill();
	for (int i = 0; i < 100; i++) {
		waiting("a rather long command with \xc3\xa4\xc3\xb6\xc3\xbc in it, and more",
			"a reason that is long enough to be cut somewhere", 0);
		(void)ended("a name that is longer than most", BATCH_ITSELF, i % 2);
	}
	for (unsigned width = 1; width < 140; width++)
		(void)lines_of(width, 0);
	for (unsigned rows = 1; rows < 80; rows++)
		if (lines_of(80, rows) > rows)
			fail_msg("more than %u rows", rows);
	/* all room is used */
	assert_int_equal(lines_of(80, 30), 30);
	assert_int_equal(lines_of(80, 60), 49);
	assert_int_equal(lines_of(80, 0), 1 + 4 + 22 + 22);
}

static void few_rows_are_shared_by_all_sections(void **state)
{
	(void)state;
	fill();
	shows(0, 7,
		"jobs.txt: 3 running, 3 waiting, 1 finished, 1 failed, 1 cancelled, of 9; "
		"since 21:13:35\n"
		"ENTRY  RUNNING  GPU  TIME\n"
		"    3  late     3    [##########] 2h00m of 1h00m\n"
		"ENTRY  WAITING      JOB  WHY\n"
		"    6  python c.py   21  in the queue\n"
		"ENTRY  DONE  HOW                                TIME\n"
		"    8  x     out of GPU memory (exit status 1)  12s\n");
	shows(0, 9,
		"jobs.txt: 3 running, 3 waiting, 1 finished, 1 failed, 1 cancelled, of 9; "
		"since 21:13:35\n"
		"ENTRY  RUNNING  GPU  TIME\n"
		"    3  late     3    [##########] 2h00m of 1h00m\n"
		"  \xe2\x80\xa6 and 2 more\n"
		"ENTRY  WAITING      JOB  WHY\n"
		"    6  python c.py   21  in the queue\n"
		"  \xe2\x80\xa6 and 2 more\n"
		"ENTRY  DONE  HOW                                TIME\n"
		"    8  x     out of GPU memory (exit status 1)  12s\n");
	shows(0, 1,
		"jobs.txt: 3 running, 3 waiting, 1 finished, 1 failed, 1 cancelled, of 9; "
		"since 21:13:35\n");
}

static void many_jobs_are_cut_and_the_rest_is_counted(void **state)
{
	struct page page;

	(void)state;
	ended("early", BATCH_ITSELF, 1)->ended_ms = 1;
	for (int i = 0; i < 9990; i++)
		waiting("python w.py", NULL, 0);
	for (int i = 0; i < 30; i++)
		(void)ended("done", BATCH_ITSELF, 0);
	page_begin(&page);
	print(0, 0, page.out);
	page_has(&page, "  \xe2\x80\xa6 and 9,970 more\nENTRY  DONE");
	page_has(&page, "  \xe2\x80\xa6 and 11 more\n");
	/* the first waiting jobs in the order of the file; all failures and the last jobs done */
	page_has(&page, "WHY\n 9991  python w.py");
	page_has(&page, "\n 9972  python w.py");
	page_has_not(&page, "9971  python");
	page_has(&page, "TIME\n    1  early  exit status 1  12s\n10003  done");
	page_has(&page, "\n10021  done");
	page_has_not(&page, "10002  done");
	page_end(&page);
}

static void a_running_job_without_a_line_is_shown(void **state)
{
	const struct table_style style = { .width = 0 };
	struct batch_board board = { .file = "f", .jobs = &jobs };
	struct page page;

	(void)state;
	running("orphan", "0", 0, 0);
	waiting("gone", NULL, 5);
	jobs.all[0].line = jobs.all[1].line = NULL;
	page_begin(&page);
	batch_board_print(&board, &style, 0, page.out);
	page_has(&page, "orphan");
	page_has_not(&page, "gone");
	page_end(&page);
	board.order = (uint64_t[]){ 1, 2, 99 }; /* not twice, and not an unknown one */
	board.order_count = 3;
	page_begin(&page);
	batch_board_print(&board, &style, 0, page.out);
	page_is(&page, "f: 1 running, 0 waiting, 0 finished, of 1; since 00:00:00\n"
		       "ENTRY  RUNNING  GPU  TIME\n"
		       "    1  orphan   0    <1s\n");
}

static void the_board_has_no_control_characters(void **state)
{
	struct page page;

	(void)state;
	running("a\033]0;x\007", "\033", 0, 0);
	waiting("b\033[2J\n\xc2\x9b", "c\033\r", 0);
	ended("d\t", BATCH_NOT_RUN, 125)->reason = strdup("e\033\xff");
	page_begin(&page);
	print(0, 0, page.out);
	page_has(&page, "a?]0;x?");
	page_has(&page, "b?[2J??  c??\n");
	page_has(&page, "d?    cannot run: e??");
	page_has_not(&page, "\033");
	page_has_not(&page, "\r");
	page_end(&page);
}

static void colours_appear_when_wanted(void **state)
{
	const struct table_style style = { .has_colour = true };
	struct batch_board board = { .file = "f", .jobs = &jobs };
	struct page page;

	(void)state;
	(void)ended("a", BATCH_ITSELF, 0);
	(void)ended("b", BATCH_ITSELF, 1);
	board.order = (uint64_t[]){ 1, 2 };
	board.order_count = 2;
	page_begin(&page);
	batch_board_print(&board, &style, 0, page.out);
	page_has(&page, "\033[32mok\033[0m");
	page_has(&page, "\033[31mexit status 1\033[0m");
	page_end(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOARD_TEST(a_start_has_its_gpus_and_its_command),
		BOARD_TEST(an_end_says_why),
		BOARD_TEST(a_cancel_by_its_line_says_so),
		BOARD_TEST(an_end_has_the_report),
		BOARD_TEST(an_interrupted_job_is_not_a_failure),
		BOARD_TEST(a_dropped_job_says_so),
		BOARD_TEST(an_attempt_says_what_follows),
		BOARD_TEST(other_events_are_short_or_not_shown),
		BOARD_TEST(a_line_has_no_control_characters),
		BOARD_TEST(the_summary_counts_the_jobs),
		BOARD_TEST(each_job_counts_in_its_section),
		BOARD_TEST(the_failures_have_their_logs),
		BOARD_TEST(a_failure_is_listed_once),
		BOARD_TEST(the_board_shows_jobs_that_run_wait_and_are_done),
		BOARD_TEST(the_board_shows_what_is_under_way),
		BOARD_TEST(between_two_attempts_a_job_waits),
		BOARD_TEST(a_job_that_comes_after_others_says_so),
		BOARD_TEST(the_board_keeps_to_its_width_and_rows),
		BOARD_TEST(few_rows_are_shared_by_all_sections),
		BOARD_TEST(many_jobs_are_cut_and_the_rest_is_counted),
		BOARD_TEST(a_running_job_without_a_line_is_shown),
		BOARD_TEST(the_board_has_no_control_characters),
		BOARD_TEST(colours_appear_when_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
