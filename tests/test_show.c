/*
 * Status, queue and history, from plain structs to what people and programs read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "show_history.h"
#include "show_job.h"
#include "show_queue.h"
#include "show_status.h"
#include "json_valid.h"
#include "page.h"

/* --- the status -------------------------------------------------------------------- */

/* The holders of the GPUs, in their order. */
static const struct view_holder sample_holders[] = {
	{ .ticket = 7,
		.attempt = 1,
		.pid = 41,
		.user = "alice",
		.name = "run\0331",
		.need = NEED_WHOLE,
		.age_ms = 60000,
		.limit_ms = 3600000,
		.command = "python\ntrain.py \xff" },
	{ .pid = 99, .user = "bob", .age_ms = -1, .command = "jupyter" },
	{ .ticket = 8,
		.attempt = 1,
		.user = "carol",
		.need = NEED_WHOLE,
		.age_ms = 1000,
		.command = "sh" },
	{ .ticket = 14,
		.attempt = 1,
		.pid = 61,
		.user = "dave",
		.need = { .percent = 50 },
		.age_ms = 1000,
		.peak_mib = 300,
		.command = "x" },
	{ .ticket = 15,
		.attempt = 1,
		.user = "erin",
		.is_lingering = true,
		.need = { .percent = 25, .mib = 18 * 1024 },
		.age_ms = 2000,
		.limit_ms = 60000,
		.command = "y" },
	{ .ticket = 16,
		.attempt = 1,
		.pid = 63,
		.user = "frank",
		.need = { .mib = 18000 },
		.age_ms = 3000,
		.limit_ms = 1000, /* over: its process is about to be ended */
		.command = "z" },
};

static struct view_gpu sample_gpus[] = {
	{ .index = 0,
		.instance = -1,
		.uuid = "GPU-a",
		.bus_id = "0000:01:00.0",
		.model = "H200",
		.total_mib = 1000,
		.used_mib = 900,
		.utilization = 99,
		.idle_ms = -1,
		.foreign_mib = -1,
		.state = GPU_LEASED,
		.holders = &sample_holders[0],
		.holder_count = 1 },
	{ .index = 1,
		.instance = -1,
		.uuid = "GPU-b",
		.used_mib = PROBE_MIB_UNKNOWN,
		.utilization = -1,
		.idle_ms = -1,
		.free_percent = -1,
		.free_mib = -1,
		.state = GPU_UNKNOWN,
		.why = "is in an unknown state: lost",
		.why_verb_size = 3 },
	{ .index = 2,
		.instance = -1,
		.uuid = "GPU-c",
		.used_mib = PROBE_MIB_UNKNOWN,
		.utilization = -1,
		.idle_ms = -1,
		.free_percent = -1,
		.free_mib = -1,
		.state = GPU_UNKNOWN,
		.why = "is in an unknown state: lost",
		.why_verb_size = 3 },
	{ .index = 3,
		.instance = -1,
		.uuid = "GPU-d",
		.total_mib = 1000,
		.used_mib = 1,
		.utilization = 0,
		.idle_ms = 7200000,
		.free_percent = 100,
		.free_mib = 488,
		.state = GPU_FREE },
	{ .index = 4,
		.instance = -1,
		.uuid = "GPU-e",
		.total_mib = 1000,
		.used_mib = 800,
		.utilization = -1,
		.idle_ms = -1,
		.foreign_mib = 880,
		.state = GPU_EXTERNAL,
		.holders = &sample_holders[1],
		.holder_count = 1,
		.why = "is used outside gpulease by pid 99 (bob, jupyter)",
		.why_verb_size = 3 },
	{ .index = 5,
		.instance = -1,
		.uuid = "GPU-f",
		.total_mib = 1000,
		.used_mib = 0,
		.utilization = -1,
		.idle_ms = -1,
		.state = GPU_LEASED,
		.holders = &sample_holders[2],
		.holder_count = 1,
		.is_paused = true,
		.paused_by = "root",
		.reason = "fan",
		.why = "is paused by root: fan",
		.why_verb_size = 3 },
};

static struct view_gpu shared_gpu = { .index = 6,
	.instance = -1,
	.uuid = "GPU-g",
	.model = "NVIDIA H200",
	.total_mib = 81920,
	.used_mib = 3000,
	.utilization = 7,
	.idle_ms = -1,
	.free_percent = 7,
	.free_mib = 1000,
	.foreign_mib = 2200,
	.state = GPU_LEASED,
	.holders = &sample_holders[3],
	.holder_count = 3,
	.why = "is leased to job 14 (dave) and 2 others, and is also used",
	.why_verb_size = 3 };

static struct view_job sample_jobs[] = {
	{ .ticket = 9,
		.attempt = 1,
		.gpus = 4,
		.need = NEED_WHOLE,
		.pid = 55,
		.user = "dave",
		.verdict = VERDICT_LEASED,
		.waits_ms = 125000,
		.why = "needs 4 GPUs, 1 is free",
		.command = "a" },
	{ .ticket = 12,
		.attempt = 1,
		.gpus = 1,
		.need = NEED_WHOLE,
		.user = "erin",
		.name = "x",
		.waits_ms = 1000,
		.limit_ms = 60000,
		.is_stopped = true,
		.why = "can start now; its process is stopped",
		.command = "b" },
};

static struct view_job sharing_jobs[] = {
	{ .ticket = 20,
		.attempt = 1,
		.gpus = 1,
		.need = { .percent = 50 },
		.priority = -2,
		.user = "dave",
		.waits_ms = 1000,
		.start_ms = INT64_C(1700000060000),
		.verdict = VERDICT_BEHIND,
		.behind = 9,
		.why = "behind job 9" },
	{ .ticket = 21,
		.attempt = 1,
		.gpus = 2,
		.need = { .mib = 18 * 1024 },
		.user = "dave",
		.after = "3,14",
		.after_ok = "5",
		.is_singleton = true,
		.verdict = VERDICT_HELD,
		.held_by = 14,
		.why = "comes after job 14",
		.command = "a b" },
	{ .ticket = 22,
		.attempt = 1,
		.gpus = 1,
		.need = { .percent = 5, .mib = 1000 },
		.user = "dave",
		.verdict = VERDICT_LIMIT,
		.limit_line = 12,
		.why = "limit" },
	{ .ticket = 23,
		.attempt = 1,
		.gpus = 2,
		.need = { .percent = WHOLE_PERCENT, .mib = 1024 },
		.user = "dave",
		.verdict = VERDICT_GPU,
		.why = "GPU 1 is paused" },
};

static struct view sample(void)
{
	return (struct view){
		.real_ms = INT64_C(1700000000000),
		.directory = "/var/lib/gpulease",
		.has_nvidia_smi = true,
		.probe_age_ms = 34000,
		.is_probe_old = true,
		.gpus = sample_gpus,
		.gpu_count = ARRAY_SIZE(sample_gpus),
		.jobs = sample_jobs,
		.job_count = ARRAY_SIZE(sample_jobs),
	};
}

static const struct table_style plain = { .width = 0 };

/* Compares lines part by part: test_render.c checks the positions of columns. */
static void the_status_has_a_row_for_each_gpu_and_notes_below(void **state)
{
	static const char *const parts[] = { "0.9/1.0G   99%  leased", "alice   41",
		"run?1  python?train.py ?\n", "  ?/?G  ", "leased, paused",
		"GPU 1,2: in an unknown state: lost\n", "GPU 5: paused by root: fan\n",
		"bob     99", "2h00m", "nvidia-smi: last answer 34s ago\n",
		"  1    9  dave     4  22:11:15  2m05s  -     needs 4 GPUs, 1 is free  ",
		"its process is stopped  b\n" };
	struct view view = sample();
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_status(&view, &plain, page.out), 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	page_has_not(&page, "GPU 4:");
	page_has_not(&page, "GPU 0:");
	page_has_not(&page, "\033");
	page_end(&page);
}

/* A row for each of its leases; what is the GPU's stands in the first alone. */
static void a_shared_gpu_has_a_row_for_each_lease(void **state)
{
	struct view view = { .real_ms = INT64_C(1700000000000),
		.is_simulated = true,
		.gpus = &shared_gpu,
		.gpu_count = 1 };
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_status(&view, &plain, page.out), 0);
	page_is(&page,
		"1 x NVIDIA H200, 80.0G\n"
		"GPU  MEMORY  UTIL  STATE      SHARE     JOB  USER   PID  AGE  LEFT  COMMAND\n"
		"  6    2.9G    7%  leased     0.5        14  dave    61   1s     -  x\n"
		"                   lingering  0.25+18G   15  erin     -   2s   58s  y\n"
		"                   leased     17.6G      16  frank   63   3s   <1s  z\n"
		"GPU 6: leased to job 14 (dave) and 2 others, and is also used\n"
		"\nno job waits\n");
}

static void a_column_without_values_is_left_out(void **state)
{
	struct view view = sample();
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_status(&view, &plain, page.out), 0);
	page_has_not(&page, "SHARE");
	page_has_not(&page, "PRIO");
	page_end(&page);
}

static void the_queue_shows_what_each_job_wants(void **state)
{
	struct view view = { .real_ms = INT64_C(1700000000000),
		.jobs = sharing_jobs,
		.job_count = ARRAY_SIZE(sharing_jobs) };
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_queue(&view, &plain, page.out), 0);
	page_is(&page,
		"POS  JOB  USER     GPUS  PRIO  SINCE     WAITS  WHY                 "
		"COMMAND\n"
		"  1   20  dave      0.5    -2  22:13:19     1s  behind job 9        "
		"-\n"
		"  2   21  dave    2x18G     0  22:13:20    <1s  comes after job 14  "
		"a b\n"
		"  3   22  dave  0.05+1G     0  22:13:20    <1s  limit               "
		"-\n"
		"  4   23  dave        2     0  22:13:20    <1s  GPU 1 is paused     "
		"-\n");
}

static void the_queue_says_how_many_jobs_run(void **state)
{
	static const char *const lines[] = { "no job waits\n",
		"no job waits; 1 job runs: see --status\n",
		"no job waits; 2 jobs run: see --status\n" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		struct view view = { .running = i };
		struct page page;

		page_begin(&page);
		assert_int_equal(show_queue(&view, &plain, page.out), 0);
		page_is(&page, lines[i]);
	}
}

static void jobs_without_a_gpu_have_a_table_of_their_own(void **state)
{
	static struct view_holder jobs[] = {
		{ .ticket = 31,
			.attempt = 1,
			.user = "dave",
			.pid = 70,
			.age_ms = 61000,
			.name = "prep",
			.command = "make data" },
		{ .ticket = 32, .attempt = 2, .user = "erin", .age_ms = 1000 },
	};
	struct view view = { .real_ms = INT64_C(1700000000000),
		.directory = "/d",
		.gpuless = jobs,
		.gpuless_count = ARRAY_SIZE(jobs) };
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_queue(&view, &plain, page.out), 0);
	page_is(&page, "no job waits\n\nrunning without a GPU:\n"
		       "JOB  TRY  USER  PID    AGE  NAME  COMMAND\n"
		       " 31    -  dave   70  1m01s  prep  make data\n"
		       " 32    2  erin    -     1s  -     -\n");
	page_begin(&page);
	show_queue_json(&view, page.out);
	page_has(&page, "\"running_without_gpus\": [");
	page_has(&page, "\"started_unix_ms\": 1699999939000");
	page_end(&page);
}

/* --- narrow terminals -------------------------------------------------------------- */

static const struct view_holder long_holder = { .ticket = 1024,
	.attempt = 1,
	.pid = 1234567,
	.user = "ilse",
	.name = "resnet50-base",
	.need = NEED_WHOLE,
	.age_ms = 7200000,
	.limit_ms = 4 * 3600000,
	.command = "python train.py --config configs/resnet50.yaml --epochs 90" };

static struct view_job long_job = { .ticket = 1030,
	.attempt = 2,
	.gpus = 4,
	.need = NEED_WHOLE,
	.priority = 5,
	.user = "ilse",
	.name = "llama-sweep-17",
	.waits_ms = 3600000,
	.verdict = VERDICT_LEASED,
	.why = "needs 4 GPUs, 2 are free; GPU 5 is used outside gpulease by pid 991 "
	       "(alice, python); at the latest about 14:20",
	.command = "python sweep.py --seed 17 --out runs/17" };

/* Eight equal cards; all but two are leased. */
static struct view machine(struct view_gpu gpus[8])
{
	for (uint32_t i = 0; i < 8; i++)
		gpus[i] = (struct view_gpu){ .index = i,
			.instance = -1,
			.model = "NVIDIA H100 80GB HBM3",
			.total_mib = 81559,
			.used_mib = i < 6 ? 76000 : 4,
			.utilization = i < 6 ? 100 : 0,
			.idle_ms = i < 6 ? -1 : 7200000,
			.state = i < 6 ? GPU_LEASED : GPU_FREE,
			.holders = &long_holder,
			.holder_count = i < 6 };
	return (struct view){ .real_ms = INT64_C(1700000000000),
		.is_simulated = true,
		.gpus = gpus,
		.gpu_count = 8,
		.jobs = &long_job,
		.job_count = 1 };
}

static const char at_60[] =
	"8 x NVIDIA H100 80GB HBM3, 79.6G each\n"
	"GPU  MEMORY  STATE    JOB  USER  NAME          COMMAND\n"
	"  0   74.2G  leased  1024  ilse  resnet50-ba…  python train…\n";
static const char at_80[] =
	"GPU  MEMORY  UTIL  STATE    JOB  USER   LEFT  NAME           COMMAND\n"
	"  0   74.2G  100%  leased  1024  ilse  2h00m  resnet50-base  python train.py --…\n";
static const char at_132[] =
	"GPU  MEMORY  UTIL  STATE    JOB  USER      PID    AGE   LEFT   IDLE  NAME";
static const char queue_at_60[] =
	"POS   JOB  USER  GPUS  NAME          COMMAND\n"
	"  1  1030  ilse     4  llama-sweep…  python sweep.py --seed…\n";

static void the_columns_fit_the_terminal(void **state)
{
	static const struct {
		unsigned width;
		const char *said, *unsaid;
	} cases[] = {
		{ 60, at_60, "LEFT" },
		{ 60, queue_at_60, "WAITS" },
		{ 80, at_80, "AGE" },
		{ 80,
			"\n    needs 4 GPUs, 2 are free; GPU 5 is used outside gpulease by pid "
			"991 (alice,\n    python); at the latest about 14:20\n",
			"WHY" },
		{ 80, "PRIO  WAITS  NAME", "SINCE" },
		{ 132, at_132, "WHY" },
		{ 132, "SINCE  ", "MODEL" },
		{ 200, "  WHY  ", "MODEL" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct view_gpu gpus[8];
		struct view view = machine(gpus);
		struct table_style style = { .width = cases[i].width };
		struct page page;

		page_begin(&page);
		assert_int_equal(show_status(&view, &style, page.out), 0);
		page_has(&page, cases[i].said);
		page_has_not(&page, cases[i].unsaid);
		for (char *line = page.text; *line; line += strcspn(line, "\n") + 1)
			assert_true(text_columns(line, strcspn(line, "\n")) <=
				    cases[i].width);
		page_end(&page);
	}
}

static void cards_of_one_model_and_two_sizes_are_listed_each(void **state)
{
	struct view_gpu gpus[8];
	struct view view = machine(gpus);
	struct page page;

	(void)state;
	gpus[7].total_mib = 40000;
	page_begin(&page);
	assert_int_equal(show_status(&view, &plain, page.out), 0);
	page_has(&page, "\n  0  H100 80GB HBM3  74.2/79.6G  100%");
	page_has(&page, "\n  7  H100 80GB HBM3   0.0/39.1G    0%");
	page_has_not(&page, " x ");
	page_end(&page);
}

/* --- one job ----------------------------------------------------------------------- */

static void show_one(const struct view *view, const struct job_view *job, unsigned width,
	const char *is)
{
	struct table_style style = { .width = width };
	struct page page;

	page_begin(&page);
	show_job(view, job, &style, page.out);
	page_is(&page, is);
}

static void a_job_that_waits_has_a_line_for_each_fact(void **state)
{
	static struct view_job jobs[] = { { .ticket = 29 },
		{ .ticket = 30,
			.attempt = 2,
			.gpus = 2,
			.need = { .percent = 50, .mib = 1000 },
			.priority = -3,
			.after = "3,14",
			.after_ok = "5",
			.user = "dave",
			.name = "a\033b",
			.waits_ms = 125000,
			.limit_ms = 3600000,
			.why = "comes after job 14, which has not ended" } };
	static struct history_end first = { .ticket = 30,
		.attempt = 1,
		.since_ms = 1000,
		.alive_ms = 4000,
		.gone_ms = 4000,
		.status = "3",
		.how = "ended" };
	struct view view = {
		.real_ms = INT64_C(1700000000000), .jobs = jobs, .job_count = 2
	};
	static struct job_view job = { .id = 30,
		.waits = &jobs[1],
		.ends = &first,
		.end_count = 1,
		.command = "python train.py --seed \n 17",
		.log = "/logs/30.log" };

	(void)state;
	show_one(&view, &job, 40,
		"job        30 'a?b'\n"
		"state      waiting, 2nd in the queue\n"
		"why        comes after job 14, which has\n"
		"           not ended\n"
		"user       dave\n"
		"command    python train.py --seed ? 17\n"
		"needs      0.5 and 1G of each of 2 GPUs\n"
		"priority   -3\n"
		"after      3,14\n"
		"after ok   5\n"
		"queued     22:11:15, 2m05s ago\n"
		"limit      1h00m\n"
		"log        /logs/30.log\n"
		"attempt    2\n"
		"attempt 1  failed, exit status 3, ran 3s\n");
}

static void a_job_that_runs_shows_its_gpus_and_their_use(void **state)
{
	struct view_holder holders[3];
	struct view_gpu gpus[8];
	struct view view = machine(gpus);
	static struct job_view job = { .id = 15 };

	(void)state;
	memcpy(holders, &sample_holders[3], sizeof(holders));
	holders[1].is_lingering = false;
	holders[1].peak_mib = 20 * 1024;
	holders[1].is_over_declared = true;
	text_copy(holders[1].note, sizeof(holders[1].note), "epoch\n 1");
	gpus[2].holders = holders;
	gpus[2].holder_count = 3;
	gpus[3].holders = &holders[1];
	gpus[3].instance = 1;
	gpus[3].utilization = -1;
	gpus[3].used_mib = PROBE_MIB_UNKNOWN;
	job.runs = &holders[1];
	show_one(&view, &job, 0,
		"job        15\n"
		"state      running on GPU 2,3:1\n"
		"user       erin\n"
		"note       epoch? 1\n"
		"needs      0.25 and 18G of each of 2 GPUs\n"
		"started    22:13:18, 2s ago\n"
		"limit      1m00s, 58s left\n"
		"peak       20.0G of 18.0G declared, over\n"
		"GPU 2      74.2/79.6G in use by 3 jobs, 100% busy\n"
		"GPU 3:1    ?/79.6G in use\n");
	holders[1].is_lingering = true;
	gpus[2].holder_count = 1;
	gpus[3].holder_count = 0;
	gpus[4].holders = &holders[1];
	holders[1].age_ms = holders[1].limit_ms = 0;
	holders[1].note[0] = '\0';
	holders[1].peak_mib = 0;
	show_one(&view, &job, 0,
		"job        15\n"
		"state      lingering on GPU 4: it has ended, but processes that it left "
		"run\n"
		"user       erin\n"
		"needs      0.25 and 18G of a GPU\n"
		"started    22:13:20, <1s ago\n"
		"GPU 4      74.2/79.6G in use, 100% busy\n");
}

static void a_job_that_has_ended_shows_its_last_attempt_first(void **state)
{
	struct history_end ends[] = { { .ticket = 4,
					      .attempt = 2,
					      .user = "bob",
					      .gpus = "1,2",
					      .gpu_count = 2,
					      .waited_ms = 300000,
					      .since_ms = INT64_C(1699999900000),
					      .alive_ms = INT64_C(1699999960000),
					      .gone_ms = INT64_C(1699999970000),
					      .vram_mib = 18432,
					      .peaks = "17582,300",
					      .utilization = "87/100",
					      .how = HISTORY_CANCEL,
					      .by = "root",
					      .status = "143",
					      .name = "n" },
		{ .ticket = 4, .attempt = 1, .how = HISTORY_LOST } };
	static struct job_view job = { .id = 4, .end_count = 2, .command = "b" };
	struct view view = { .real_ms = INT64_C(1700000000000), .directory = "/d" };
	struct job_views both = { .view = view, .all = &job, .count = 1 };
	struct page page;
	size_t at;

	(void)state;
	job.ends = ends;
	job.is_known = true;
	show_one(&view, &job, 0,
		"job        4 'n'\n"
		"state      cancelled by root, exit status 143, ran up to 1m10s\n"
		"user       bob\n"
		"command    b\n"
		"on GPU     1,2\n"
		"waited     5m00s\n"
		"started    22:11:40\n"
		"ended      22:12:50, 30s ago\n"
		"GPU time   2m00s\n"
		"peak       17.2G of 18.0G declared\n"
		"busy       87%, at most 100%\n"
		"attempt    2\n"
		"attempt 1  lost\n");
	page_begin(&page);
	show_jobs_json(&both, page.out);
	page_has(&page, "\"gpulease-job/1\"");
	page_has(&page, "\"state\": \"cancelled\"");
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
	job.is_known = false;
	page_begin(&page);
	show_jobs_json(&both, page.out);
	page_has(&page, "\"jobs\": []");
	page_end(&page);
}

static void a_job_without_a_record_says_so(void **state)
{
	static struct job_view job = { .id = 4 };
	struct view view = { .real_ms = 1 };

	(void)state;
	show_one(
		&view, &job, 80, "job        4\nstate      ended; how is not recorded\n");
	view.has_more_jobs = true;
	show_one(&view, &job, 80,
		"job        4\nstate      not known: too many jobs wait\n");
}

static void the_source_of_the_states_is_named(void **state)
{
	static const struct {
		struct view view;
		const char *said;
	} cases[] = {
		{ { .has_nvidia_smi = true, .probe_age_ms = 500 }, NULL },
		{ { .has_nvidia_smi = true, .probe_age_ms = -1, .is_probe_old = true },
			"nvidia-smi: no answer yet; " },
		{ { .probe_age_ms = -1, .is_probe_old = true },
			"nvidia-smi: not in PATH; " },
		{ { .probe_age_ms = 9000, .is_probe_old = true },
			"nvidia-smi: last answer 9s ago, and it is not in PATH here\n" },
		{ { .has_nvidia_smi = true, .trouble = "no driver" }, "no driver\n" },
		{ { .is_simulated = true }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct page page;

		page_begin(&page);
		assert_int_equal(show_status(&cases[i].view, &plain, page.out), 0);
		page_has(&page, "no GPU is known\n");
		page_has(&page, "\nno job waits\n");
		if (cases[i].said)
			page_has(&page, cases[i].said);
		else
			page_has_not(&page, "nvidia-smi");
		page_end(&page);
	}
}

static void the_status_is_valid_json(void **state)
{
	static const char *const parts[] = { "\"format\": \"gpulease-status/1\"",
		"\"name\": \"run\\u001b1\"",
		"\"command\": \"python\\u000atrain.py \\ufffd\"",
		"\"memory_used_mib\": null", "\"state\": \"external\"",
		"\"idle_for_ms\": 7200000", "\"paused_by\": \"root\"",
		"\"limit_ms\": 3600000", "\"position\": 2", "\"stopped\": true",
		"\"since_unix_ms\": 1699999875000", "\"queue_is_cut\": false",
		"\"answer_age_ms\": 34000" };
	struct view view = sample();
	struct page page;
	size_t at;

	(void)state;
	page_begin(&page);
	show_status_json(&view, page.out);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
	page_begin(&page);
	show_queue_json(&view, page.out);
	page_has(&page, "\"gpulease-queue/1\"");
	page_has_not(&page, "\"uuid\"");
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
}

/* JSON without its line ends and blanks, which say nothing. */
static void squeeze(struct page *page)
{
	char *out;

	assert_int_equal(fflush(page->out), 0);
	out = page->text;
	for (const char *in = page->text; *in; in++)
		if (*in != ' ' && *in != '\n')
			*out++ = *in;
	*out = '\0';
}

/* Members of a lease that no process has sampled. */
#define UNKNOWN_USE                                                 \
	"\"utilization_mean_percent\":null,\"unused_for_ms\":null," \
	"\"unused_ms\":null,\"unused\":false,\"unused_ok\":false,"  \
	"\"unused_ok_ms\":null,\"watched\":false,\"note\":null"

static void the_json_shows_shares(void **state)
{
	static const char *const parts[] = {
		"\"ticket\":14,\"attempt\":1,\"name\":null,\"user\":\"dave\",\"pid\":61,"
		"\"command\":\"x\",\"age_ms\":1000,\"started_unix_ms\":1699999999000,"
		"\"limit_ms\":null,\"free_share\":0.07,\"free_mib\":1000,"
		"\"foreign_mib\":2200,\"leases\":[{\"ticket\":14,\"attempt\":1,",
		"\"lingering\":false,\"share\":0.5,\"vram_mib\":null,\"exclusive\":false,"
		"\"peak_mib\":300,\"over_declared\":false," UNKNOWN_USE
		"},{\"ticket\":15,"
		"\"attempt\":1,",
		"\"lingering\":true,\"share\":0.25,\"vram_mib\":18432,\"exclusive\":false,"
		"\"peak_mib\":null,\"over_declared\":false," UNKNOWN_USE
		"},{\"ticket\":16,"
		"\"attempt\":1,",
		"\"share\":null,\"vram_mib\":18000,\"exclusive\":false,\"peak_mib\":null,"
		"\"over_declared\":false," UNKNOWN_USE "}],"
		"\"mig\":[]",
		"\"share\":0.5,\"vram_mib\":null,\"exclusive\":false,\"priority\":-2,"
		"\"after\":[],\"after_ok\":[],\"singleton\":false,",
		"\"start_at_unix_ms\":1700000060000,\"can_start\":false,"
		"\"stopped\":false,\"stuck\":null,\"reason_kind\":\"behind\",\"behind\":9,"
		"\"held_by\":null,",
		"\"gpus\":2,\"share\":null,\"vram_mib\":18432,\"exclusive\":false,"
		"\"priority\":0,\"after\":[3,14],\"after_ok\":[5],\"singleton\":true,",
		"\"start_at_unix_ms\":null,\"can_start\":false,\"stopped\":false,\"stuck\":null,"
		"\"reason_kind\":\"held\",\"behind\":null,\"held_by\":14,",
		"\"share\":0.05,\"vram_mib\":1000,\"exclusive\":false,",
		"\"reason_kind\":\"limit\",\"behind\":null,\"held_by\":null,"
		"\"limit_line\":12,",
		"\"share\":null,\"vram_mib\":1024,\"exclusive\":true,",
		"\"reason_kind\":\"gpu\"",
	};
	struct view view = { .real_ms = INT64_C(1700000000000),
		.directory = "/x",
		.gpus = &shared_gpu,
		.gpu_count = 1,
		.jobs = sharing_jobs,
		.job_count = ARRAY_SIZE(sharing_jobs) };
	struct page page;
	size_t at;

	(void)state;
	page_begin(&page);
	show_status_json(&view, page.out);
	page_has(&page, "{");
	assert_true(json_is_valid(page.text, page.size, &at));
	squeeze(&page);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	page_end(&page);
}

/* Members that do not apply are null, for each kind of holder; an idle GPU is free as a whole. */
static void the_json_shows_whole_gpus(void **state)
{
	static const char *const parts[] = {
		"\"free_share\":0,\"free_mib\":0,\"foreign_mib\":null,\"leases\":[{"
		"\"ticket\":7,\"attempt\":1,",
		"\"share\":null,\"vram_mib\":null,\"exclusive\":true,\"peak_mib\":null,"
		"\"over_declared\":false," UNKNOWN_USE "}],",
		"\"ticket\":null,\"attempt\":null,\"name\":null,\"user\":null,\"pid\":null,\"command\":null,"
		"\"age_ms\":null,\"started_unix_ms\":null,\"limit_ms\":null,"
		"\"free_share\":null,\"free_mib\":null,\"foreign_mib\":0,\"leases\":[],",
		"\"free_share\":1,\"free_mib\":488,",
		"\"user\":\"bob\",\"pid\":99,\"command\":\"jupyter\",\"age_ms\":null,"
		"\"started_unix_ms\":null,\"limit_ms\":null,\"free_share\":0,\"free_mib\":0,"
		"\"foreign_mib\":880,\"leases\":[],",
		"\"reason_kind\":\"leased\"",
		"\"can_start\":true,\"stopped\":true,\"stuck\":null,"
		"\"reason_kind\":null,",
	};
	struct view view = sample();
	struct page page;

	(void)state;
	page_begin(&page);
	show_status_json(&view, page.out);
	squeeze(&page);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	page_end(&page);
}

/* --- the history ------------------------------------------------------------------- */

static const struct history_end sample_ends[] = {
	{ .ticket = 3,
		.uid = 1000,
		.user = "alice",
		.gpus = "0,12",
		.how = "reboot",
		.command = "a" },
	{ .ticket = 4,
		.user = "bob",
		.attempt = 3,
		.gpus = "1",
		.gpu_count = 1,
		.share_percent = 50,
		.vram_mib = 1024,
		.waited_ms = 300000,
		.peaks = "17582",
		.utilization = "87/100",
		.log_is_full = 1,
		.since_ms = INT64_C(1699900000000),
		.alive_ms = INT64_C(1699900060000),
		.gone_ms = INT64_C(1699900060010),
		.how = "cancel",
		.by = "root\033",
		.status = "143",
		.name = "n",
		.command = "b" },
	{ .ticket = 5,
		.user = "carol",
		.gpus = ",x,",
		.since_ms = INT64_C(1699999000000),
		.alive_ms = INT64_C(1699999000000),
		.gone_ms = INT64_C(1700000000000),
		.how = "lingered",
		.command = "c" },
	{ .ticket = 6, .user = "carol", .gpus = "0", .status = "0", .peaks = "1,,2,x" },
};

static void the_history_is_a_table(void **state)
{
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(
		show_history(sample_ends, 3, INT64_C(1700000000000), &plain, page.out),
		0);
	page_is(&page,
		"JOB  TRY  USER   GPUS  STATE               STARTED           WAITED"
		"        RAN   PEAK  UTIL  STATUS  NAME  COMMAND\n"
		"  3    -  alice  0,12  lost by reboot      -                    <1s"
		"          -      -     -       -  -     a\n"
		"  4    3  bob    1     cancelled by root?  2023-11-13 18:26   5m00s"
		"      1m00s  17.2G   87%     143  n     b\n"
		"  5    -  carol  ,x,   ended, given up     21:56:40             <1s"
		"  up to 16m      -     -       -  -     c\n");
	page_begin(&page);
	assert_int_equal(show_history(sample_ends, 1, 1, &plain, page.out), 0);
	page_is(&page, "JOB  USER   GPUS  STATE           STARTED  WAITED  RAN  COMMAND\n"
		       "  3  alice  0,12  lost by reboot  -           <1s    -  a\n");
	page_begin(&page);
	assert_int_equal(show_history(NULL, 0, 1, &plain, page.out), 0);
	page_is(&page, "no job has ended yet\n");
}

static void the_history_is_valid_json(void **state)
{
	static const char *const parts[] = { "\"gpulease-history/1\"",
		"\"gpus\": [\n        0,\n        12\n      ]", "\"gpus\": []",
		"\"started_unix_ms\": null", "\"ran_at_most_ms\": 60010",
		"\"ran_at_least_ms\": 0", "\"how\": \"ended\"",
		"\"by\": \"root\\u001b\",\n      \"status\": 143",
		"\"by\": null,\n      \"status\": null", "\"attempt\": 1",
		"\"attempt\": 3", "\"gpu_count\": 2", "\"share\": 0.5", "\"share\": null",
		"\"vram_mib\": 1024", "\"state\": \"lost\"", "\"state\": \"cancelled\"",
		"\"state\": \"finished\"", "\"waited_ms\": 300000",
		"\"peak_mib\": [\n        17582\n      ]",
		"\"peak_mib\": [\n        1,\n        2\n      ]",
		"\"utilization_mean_percent\": 87", "\"utilization_peak_percent\": 100",
		"\"utilization_peak_percent\": null", "\"gpu_seconds\": 30",
		"\"gpu_seconds\": null", "\"log_is_full\": true",
		"\"log_is_full\": false", "\"missing_lines\": 2",
		"\"missing_unix_ms\": 5" };
	struct page page;
	size_t at;

	(void)state;
	page_begin(&page);
	show_history_json(sample_ends, ARRAY_SIZE(sample_ends),
		&(struct history_gap){ .missing = 2, .last_ms = 5 }, 1, "/x", page.out);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_has_a_row_for_each_gpu_and_notes_below),
		cmocka_unit_test(a_shared_gpu_has_a_row_for_each_lease),
		cmocka_unit_test(a_column_without_values_is_left_out),
		cmocka_unit_test(the_queue_shows_what_each_job_wants),
		cmocka_unit_test(the_queue_says_how_many_jobs_run),
		cmocka_unit_test(jobs_without_a_gpu_have_a_table_of_their_own),
		cmocka_unit_test(the_columns_fit_the_terminal),
		cmocka_unit_test(cards_of_one_model_and_two_sizes_are_listed_each),
		cmocka_unit_test(a_job_that_waits_has_a_line_for_each_fact),
		cmocka_unit_test(a_job_that_runs_shows_its_gpus_and_their_use),
		cmocka_unit_test(a_job_that_has_ended_shows_its_last_attempt_first),
		cmocka_unit_test(a_job_without_a_record_says_so),
		cmocka_unit_test(the_source_of_the_states_is_named),
		cmocka_unit_test(the_status_is_valid_json),
		cmocka_unit_test(the_json_shows_shares),
		cmocka_unit_test(the_json_shows_whole_gpus),
		cmocka_unit_test(the_history_is_a_table),
		cmocka_unit_test(the_history_is_valid_json),
	};

	/* times of day are local */
	(void)setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
