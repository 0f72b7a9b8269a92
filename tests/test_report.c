/* The report at the end of a job, line by line. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report.h"
#include "show_queue.h"
#include "page.h"

#define EXITED(status) ((status) << 8)

enum { LIFE_MS = 3725000 };

static struct sampler sampler;

static void seen(unsigned at, const char *name, uint64_t peak_mib, unsigned busy_mean,
	unsigned busy_peak)
{
	struct sample_gpu *gpu = &sampler.gpus[at];

	*gpu = (struct sample_gpu){ .slot = at,
		.total_mib = 24 * 1024,
		.seen_ms = 1000 + LIFE_MS,
		.unseen_ms = 5000,
		.now_mib = peak_mib,
		.peak_mib = peak_mib,
		.busy_count = 4,
		.busy_sum = 4 * busy_mean,
		.busy_peak = busy_peak };
	text_copy(gpu->name.text, sizeof(gpu->name.text), name);
}

static int setup(void **state)
{
	(void)state;
	sampler = (struct sampler){ .tolerance_percent = 10,
		.begun_ms = 1000,
		.interval_ms = 5000,
		.count = 4,
		.gpu_count = 2 };
	seen(0, "0", 18 * 1024, 87, 100);
	seen(1, "3", 20480, 0, 0);
	return 0;
}

static struct report report_of(struct attempt_end end)
{
	return (struct report){ .job = 12,
		.name = "",
		.end = end,
		.gpu_count = 1,
		.need = NEED_WHOLE,
		.waited_ms = 180000 };
}

static void writes(const struct report *report, const char *wanted)
{
	char lines[4096];
	struct text text = TEXT_ON(lines);

	report_write(report, &text);
	assert_string_equal(lines, wanted);
}

static void ends_with(const struct report *report, const char *wanted)
{
	char lines[4096];
	struct text text = TEXT_ON(lines);
	size_t size = strlen(wanted);

	report_write(report, &text);
	if (text.used < size || strcmp(lines + text.used - size, wanted) != 0)
		fail_msg("'%s' does not end with '%s'", lines, wanted);
}

static void it_says_what_the_job_got_used_and_how_it_ended(void **state)
{
	struct report report = report_of((struct attempt_end){ .ran_ms = LIFE_MS });

	(void)state;
	report.name = "train";
	report.gpu_count = 2;
	report.sampler = &sampler;
	writes(&report,
		"job 12 'train' ended: exit status 0, after 1h02m, waited 3m00s, 2 GPUs, "
		"2.07 GPU-hours\n"
		"job 12, GPU 0: peak 18.0G of the card's 24.0G; utilization 87 % on average, "
		"100 % at most\n"
		"job 12, GPU 3: peak 20.0G of the card's 24.0G; utilization 0 % on average, "
		"0 % at most\n");
}

static void a_name_begins_no_line(void **state)
{
	struct report report = report_of((struct attempt_end){ .ran_ms = 0 });

	(void)state;
	report.name = "a\ngpulease: job 7 ended";
	report.gpu_count = 0;
	writes(&report,
		"job 12 'a?gpulease: job 7 ended' ended: exit status 0, after <1s, "
		"waited 3m00s\n");
}

static void it_compares_with_what_was_declared(void **state)
{
	static const struct {
		uint64_t declared_mib, peak_mib;
		const char *words;
	} cases[] = {
		{ 18000, 18000, "peak 17.6G of 17.6G declared, within 10 %" },
		{ 18000, 19800, "peak 19.3G of 17.6G declared, within 10 %" },
		{ 18000, 19801, "peak 19.3G of 17.6G declared, over by more than 10 %" },
		{ 18000, 16200, "peak 15.8G of 17.6G declared, within 10 %" },
		{ 18000, 16199, "peak 15.8G of 17.6G declared, under by more than 10 %" },
		{ 500, 1024, "peak 1.0G of 0.5G declared, over by more than 10 %" },
		{ 2000, 0, "peak n/a of 2.0G declared, none of its processes was seen" },
		{ 0, 0, "peak n/a, none of its processes was seen" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report report =
			report_of((struct attempt_end){ .ran_ms = LIFE_MS });
		char wanted[512];

		seen(0, "0:1", cases[i].peak_mib, 0, 0);
		sampler.gpus[0].busy_count = 0;
		sampler.gpu_count = 1;
		report.sampler = &sampler;
		report.gpu_count = 1;
		report.need =
			(struct need){ .percent = 50, .mib = cases[i].declared_mib };
		(void)snprintf(wanted, sizeof(wanted), "\njob 12, GPU 0:1: %s\n",
			cases[i].words);
		ends_with(&report, wanted);
	}
}

static void few_samples_are_not_compared(void **state)
{
	static const struct {
		uint64_t declared_mib, peak_mib;
		const char *words;
	} cases[] = {
		{ 18000, 18000,
			"peak at least 17.6G of 17.6G declared, too few samples to compare" },
		{ 18000, 900,
			"peak at least 0.9G of 17.6G declared, too few samples to compare" },
		{ 18000, 19801,
			"peak at least 19.3G of 17.6G declared, over by more than 10 %" },
		{ 0, 900, "peak at least 0.9G of the card's 24.0G" },
		{ 18000, 0,
			"peak n/a of 17.6G declared, none of its processes was seen" },
	};
	/* a gap between two samples; the last sample long before the end; one early sample */
	static const struct {
		int64_t unseen_ms, last_ms, life_ms;
	} gaps[] = {
		{ 10001, LIFE_MS, LIFE_MS },
		{ 5000, LIFE_MS - 10001, LIFE_MS },
		{ 500, 500, 3000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(gaps); i++) {
		size_t gap = i % ARRAY_SIZE(gaps), at = i / ARRAY_SIZE(gaps);
		struct report report =
			report_of((struct attempt_end){ .ran_ms = gaps[gap].life_ms });
		char wanted[512];

		seen(0, "0", cases[at].peak_mib, 0, 0);
		sampler.gpus[0].busy_count = 0;
		sampler.gpus[0].unseen_ms = gaps[gap].unseen_ms;
		sampler.gpus[0].seen_ms = sampler.begun_ms + gaps[gap].last_ms;
		sampler.gpu_count = 1;
		report.sampler = &sampler;
		report.need =
			(struct need){ .percent = 50, .mib = cases[at].declared_mib };
		(void)snprintf(
			wanted, sizeof(wanted), "\njob 12, GPU 0: %s\n", cases[at].words);
		ends_with(&report, wanted);
	}
}

static void it_says_why_it_ended(void **state)
{
	static const struct {
		struct attempt_end end;
		const char *by;
		const char *words;
	} cases[] = {
		{ { .wait_status = EXITED(0) }, NULL, "exit status 0" },
		{ { .wait_status = EXITED(3) }, NULL, "exit status 3" },
		{ { .wait_status = SIGSEGV }, NULL, "signal SEGV" },
		{ { .wait_status = EXITED(1), .is_oom = true }, NULL,
			"out of GPU memory, exit status 1" },
		{ { .cause = CAUSE_LIMIT, .wait_status = SIGTERM, .is_oom = true }, NULL,
			"time limit, signal TERM" },
		{ { .cause = CAUSE_CANCEL, .wait_status = SIGKILL }, "bob",
			"cancelled by bob, signal KILL" },
		{ { .cause = CAUSE_CANCEL, .wait_status = EXITED(0) }, "",
			"cancelled, exit status 0" },
		{ { .cause = CAUSE_PREEMPT, .preempted_by = 31, .wait_status = SIGTERM },
			NULL, "preempted for job 31, signal TERM" },
		{ { .cause = CAUSE_PREEMPT, .wait_status = SIGTERM }, NULL,
			"preempted by a window, signal TERM" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report report = report_of(cases[i].end);
		char wanted[256];

		report.by = cases[i].by;
		report.gpu_count = 0;
		(void)snprintf(wanted, sizeof(wanted),
			"job 12 ended: %s, after <1s, waited 3m00s\n", cases[i].words);
		writes(&report, wanted);
	}
}

static void the_time_on_gpus_counts_shares_as_their_part(void **state)
{
	static const struct {
		int64_t ran_ms;
		unsigned gpus;
		struct need need;
		const char *words;
	} cases[] = {
		{ 1550, 1, NEED_WHOLE,
			"1 GPU, 1.5 GPU-seconds\njob 12: its use of the GPUs was not sampled\n" },
		{ 125000, 2, NEED_WHOLE,
			"2 GPUs, 250.0 GPU-seconds\njob 12: its use of the GPUs was not sampled\n" },
		{ 3599999, 1, NEED_WHOLE,
			"1 GPU, 3599.9 GPU-seconds\njob 12: its use of the GPUs was not sampled\n" },
		{ 3600000, 1, NEED_WHOLE,
			"1 GPU, 1.00 GPU-hours\njob 12: its use of the GPUs was not sampled\n" },
		{ 36000000, 1, { .percent = 25 },
			"0.25 of a GPU, 2.50 GPU-hours\njob 12: its use of the GPUs was not sampled\n" },
		{ 36000000, 1, { .mib = 1024 },
			"1G of a GPU, 10.00 GPU-hours\njob 12: its use of the GPUs was not sampled\n" },
		{ 864000000, 8, NEED_WHOLE,
			"8 GPUs, 1920.00 GPU-hours\njob 12: its use of the GPUs was not sampled\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report report =
			report_of((struct attempt_end){ .ran_ms = cases[i].ran_ms });

		report.gpu_count = cases[i].gpus;
		report.need = cases[i].need;
		report.name = "";
		report.sampler = NULL;
		ends_with(&report, cases[i].words);
	}
}

static void a_job_that_was_not_sampled_says_so(void **state)
{
	struct report report = report_of((struct attempt_end){ .ran_ms = 4999 });

	(void)state;
	sampler.count = 0;
	report.sampler = &sampler;
	writes(&report,
		"job 12 ended: exit status 0, after 4s, waited 3m00s, 1 GPU, "
		"4.9 GPU-seconds\n"
		"job 12: its use of the GPUs was not sampled: it ended before the first "
		"sample\n");
	report.end.ran_ms = 5000;
	writes(&report, "job 12 ended: exit status 0, after 5s, waited 3m00s, 1 GPU, "
			"5.0 GPU-seconds\n"
			"job 12: its use of the GPUs was not sampled\n");
	sampler.count = 1;
	sampler.gpu_count = 1;
	sampler.gpus[0].seen_ms = sampler.gpus[0].busy_count = 0;
	writes(&report, "job 12 ended: exit status 0, after 5s, waited 3m00s, 1 GPU, "
			"5.0 GPU-seconds\n"
			"job 12, GPU 0: nvidia-smi gave no data about it\n");
}

static void it_says_what_comes_next(void **state)
{
	static const struct {
		uint32_t attempt;
		enum retry_next next;
		int64_t delay_ms;
		uint64_t vram_mib;
		const char *words;
	} cases[] = {
		{ 0, RETRY_NEXT_RETRY, 20000, 2000, "is tried again in 20s (attempt 2)" },
		{ 2, RETRY_NEXT_RETRY, 300000, 0, "is tried again in 5m00s (attempt 3)" },
		{ 1, RETRY_NEXT_OOM, 0, 2500,
			"is tried again (attempt 2) and declares 2.5G" },
		{ 1, RETRY_NEXT_OOM, 0, 0, "is tried again (attempt 2)" },
		{ 5, RETRY_NEXT_REQUEUE, 0, 2500,
			"goes back into the queue (attempt 6)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report report = report_of((struct attempt_end){ .ran_ms = 0 });
		char wanted[256], number[32] = "";

		report.attempt = cases[i].attempt;
		report.next = cases[i].next;
		report.next_delay_ms = cases[i].delay_ms;
		report.next_vram_mib = cases[i].vram_mib;
		report.gpu_count = 0;
		report.log_is_full = true;
		if (cases[i].attempt > 1)
			(void)snprintf(number, sizeof(number), ", attempt %u,",
				cases[i].attempt);
		(void)snprintf(wanted, sizeof(wanted),
			"job 12%s ended: exit status 0, after <1s, waited 3m00s\n"
			"job 12: some of its output was lost, because there was no space\n"
			"job 12 %s\n",
			number, cases[i].words);
		writes(&report, wanted);
	}
}

static void a_warning_names_the_gpu_and_what_may_happen(void **state)
{
	char line[256];
	struct text text = TEXT_ON(line);

	(void)state;
	report_excess(11981, "3\033", 7987, &text);
	assert_string_equal(line,
		" uses 11.7G on GPU 3? and declared 7.8G: its neighbors "
		"may run out of memory");
}

/* --- while it runs ------------------------------------------------------------------ */

static const struct view_holder holders[] = {
	{ .ticket = 7,
		.user = "al\033ice",
		.need = { .mib = 18 * 1024 },
		.peak_mib = 20582,
		.is_over_declared = true },
	{ .ticket = 9, .user = "bob", .need = { .mib = 1000 }, .peak_mib = 999 },
	{ .ticket = 8,
		.user = "carol",
		.need = { .percent = 50, .mib = 500 },
		.peak_mib = 800,
		.is_over_declared = true },
};

/* Job 7 is on GPU 0, 1 and 3:2, job 8 on GPU 1, job 9 on GPU 0 and 1. */
static struct view_gpu gpus[] = {
	{ .index = 0, .instance = -1, .holders = &holders[0], .holder_count = 2 },
	{ .index = 1, .instance = -1, .holders = &holders[0], .holder_count = 3 },
	{ .index = 2, .instance = -1 },
	{ .index = 3, .instance = 2, .holders = &holders[0], .holder_count = 1 },
};

static void a_job_that_uses_too_much_is_named_once(void **state)
{
	const struct table_style style = { .width = 0 };
	struct view view = {
		.directory = "", .gpus = gpus, .gpu_count = ARRAY_SIZE(gpus)
	};
	struct page page;

	(void)state;
	page_begin(&page);
	show_excess(&view, &style, page.out);
	page_is(&page,
		"job 7 (al?ice) uses 20.1G on one of GPU 0,1,3:2 and declared 18.0G\n"
		"job 8 (carol) uses 0.8G on GPU 1 and declared 0.5G\n");
	page_begin(&page);
	show_queue_json(&view, page.out);
	page_has(&page, "\"over_declared\": [\n    7,\n    8\n  ]");
	page_end(&page);
	view.gpus = &gpus[2];
	view.gpu_count = 1;
	page_begin(&page);
	show_excess(&view, &style, page.out);
	page_is(&page, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			it_says_what_the_job_got_used_and_how_it_ended, setup),
		cmocka_unit_test(a_name_begins_no_line),
		cmocka_unit_test_setup(it_compares_with_what_was_declared, setup),
		cmocka_unit_test_setup(few_samples_are_not_compared, setup),
		cmocka_unit_test_setup(it_says_why_it_ended, setup),
		cmocka_unit_test_setup(
			the_time_on_gpus_counts_shares_as_their_part, setup),
		cmocka_unit_test_setup(a_job_that_was_not_sampled_says_so, setup),
		cmocka_unit_test_setup(it_says_what_comes_next, setup),
		cmocka_unit_test(a_warning_names_the_gpu_and_what_may_happen),
		cmocka_unit_test(a_job_that_uses_too_much_is_named_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
