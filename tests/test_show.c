/*
 * Status, queue and history, from plain structs to what people and programs read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "../gpulease/show.h"
#include "json_valid.h"
#include "page.h"

/* --- the status -------------------------------------------------------------------- */

static struct view_gpu sample_gpus[] = {
	{ .index = 0,
		.uuid = "GPU-a",
		.bus_id = "0000:01:00.0",
		.model = "H200",
		.total_mib = 1000,
		.used_mib = 900,
		.utilization = 99,
		.idle_ms = -1,
		.state = GPU_LEASED,
		.ticket = 7,
		.pid = 41,
		.user = "alice",
		.name = "run\0331",
		.age_ms = 60000,
		.limit_ms = 3600000,
		.command = "python\ntrain.py \xff" },
	{ .index = 1,
		.uuid = "GPU-b",
		.used_mib = PROBE_MIB_UNKNOWN,
		.utilization = -1,
		.idle_ms = -1,
		.age_ms = -1,
		.state = GPU_UNKNOWN,
		.why = "is in an unknown state: lost" },
	{ .index = 2,
		.uuid = "GPU-c",
		.used_mib = PROBE_MIB_UNKNOWN,
		.utilization = -1,
		.idle_ms = -1,
		.age_ms = -1,
		.state = GPU_UNKNOWN,
		.why = "is in an unknown state: lost" },
	{ .index = 3,
		.uuid = "GPU-d",
		.total_mib = 1000,
		.used_mib = 1,
		.utilization = 0,
		.idle_ms = 7200000,
		.age_ms = -1,
		.state = GPU_FREE },
	{ .index = 4,
		.uuid = "GPU-e",
		.total_mib = 1000,
		.used_mib = 800,
		.utilization = -1,
		.idle_ms = -1,
		.age_ms = -1,
		.state = GPU_EXTERNAL,
		.pid = 99,
		.user = "bob",
		.command = "jupyter",
		.why = "is used outside gpulease by pid 99 (bob, jupyter)" },
	{ .index = 5,
		.uuid = "GPU-f",
		.total_mib = 1000,
		.used_mib = 0,
		.utilization = -1,
		.idle_ms = -1,
		.age_ms = 1000,
		.state = GPU_LEASED,
		.ticket = 8,
		.user = "carol",
		.is_paused = true,
		.paused_by = "root",
		.reason = "fan",
		.why = "is paused by root: fan",
		.command = "sh" },
};

static struct view_job sample_jobs[] = {
	{ .ticket = 9,
		.gpus = 4,
		.pid = 55,
		.user = "dave",
		.waits_ms = 125000,
		.why = "needs 4 GPUs, 1 is free",
		.command = "a" },
	{ .ticket = 12,
		.gpus = 1,
		.user = "erin",
		.name = "x",
		.waits_ms = 1000,
		.limit_ms = 60000,
		.is_stopped = true,
		.can_start = true,
		.why = "can start now; its process is stopped",
		.command = "b" },
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

/* Lines are compared part by part: where the columns stand is the table's business. */
static void the_status_says_all(void **state)
{
	static const char *const parts[] = { "900/1000 MiB   99%  leased", "alice   41",
		"run?1  python?train.py ?\n", "?/? MiB", "leased, paused",
		"GPU 1,2: in an unknown state: lost\n", "GPU 5: paused by root: fan\n",
		"bob     99", "2h00m", "nvidia-smi: last answer 34s ago\n",
		"  1       9  dave     4  22:11:15  2m05s  -     needs 4 GPUs, 1 is free\n",
		"its process is stopped\n" };
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

static void what_the_states_rest_on(void **state)
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
		page_has(&page, "\nnobody waits\n");
		if (cases[i].said)
			page_has(&page, cases[i].said);
		else
			page_has_not(&page, "nvidia-smi");
		page_end(&page);
	}
}

static void a_status_for_programs(void **state)
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
		.gpus = "1",
		.since_ms = INT64_C(1699900000000),
		.alive_ms = INT64_C(1699900060000),
		.gone_ms = INT64_C(1699900060010),
		.how = "cancel",
		.by = "root\033",
		.name = "n",
		.command = "b" },
	{ .ticket = 5,
		.user = "carol",
		.gpus = ",x,",
		.since_ms = INT64_C(1699999000000),
		.alive_ms = INT64_C(1699999000000),
		.gone_ms = INT64_C(1700000000000),
		.command = "c" },
};

static void a_history_for_people(void **state)
{
	struct page page;

	(void)state;
	page_begin(&page);
	assert_int_equal(show_history(sample_ends, ARRAY_SIZE(sample_ends),
				 INT64_C(1700000000000), &plain, page.out),
		0);
	page_is(&page, "TICKET  USER   GPUS  STARTED                 RAN  HOW"
		       "                 NAME  COMMAND\n"
		       "     3  alice  0,12  -                         -  reboot"
		       "              -     a\n"
		       "     4  bob    1     2023-11-13 18:26      1m00s  "
		       "cancelled by root?  n     b\n"
		       "     5  carol  ,x,   21:56:40          up to 16m  ended"
		       "               -     c\n");
	page_begin(&page);
	assert_int_equal(show_history(NULL, 0, 1, &plain, page.out), 0);
	page_is(&page, "nothing has ended yet\n");
}

static void a_history_for_programs(void **state)
{
	static const char *const parts[] = { "\"gpulease-history/1\"",
		"\"gpus\": [\n        0,\n        12\n      ]", "\"gpus\": []",
		"\"started_unix_ms\": null", "\"ran_at_most_ms\": 60010",
		"\"ran_at_least_ms\": 0", "\"how\": \"ended\"",
		"\"by\": \"root\\u001b\"" };
	struct page page;
	size_t at;

	(void)state;
	page_begin(&page);
	show_history_json(sample_ends, ARRAY_SIZE(sample_ends), 1, "/x", page.out);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_says_all),
		cmocka_unit_test(what_the_states_rest_on),
		cmocka_unit_test(a_status_for_programs),
		cmocka_unit_test(a_history_for_people),
		cmocka_unit_test(a_history_for_programs),
	};

	/* times of day are local */
	(void)setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
