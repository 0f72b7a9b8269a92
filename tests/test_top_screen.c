/*
 * The screen of --top: what it shows, how it fits, and that no text breaks it.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>
#include <cmocka.h>

#include "top_screen.h"

/* 15:34:10 on 24 November 2026, in a place two hours east of Greenwich. */
#define NOW INT64_C(1795527250000)
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

static struct top_host hosts[3];
static struct top_view view;
static struct top_frame frame;
static char json[4 << 20];

/* --- models ---------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		memset(&hosts[i], 0, sizeof(hosts[i]));
		hosts[i].machine = MACHINE_NONE;
		hosts[i].ended = ENDED_JOBS_NONE;
	}
	view = (struct top_view){ .columns = 80,
		.rows = 24,
		.has_utf8 = true,
		.now_unix_ms = NOW,
		.utc_offset_s = 7200,
		.own_user = "alice",
		.can_act = true,
		.chosen_job = -1 };
	view.today_unix_ms = NOW - 15 * HOUR_MS - 34 * MINUTE_MS - 10000;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		machine_release(&hosts[i].machine);
		ended_jobs_release(&hosts[i].ended);
	}
	return 0;
}

/* Reads a machine from lists of GPUs and of tickets, and from further members. */
static void machine_is(
	struct top_host *host, const char *gpus, const char *queue, const char *more)
{
	struct text text = TEXT_ON(json);

	text_addf(&text, "{\"host\":\"lab3\",\"taken_unix_ms\":%lld,\"gpus\":[%s],",
		(long long)NOW, gpus);
	text_addf(&text, "\"queue\":[%s]%s}", queue, more);
	assert_false(text.cut);
	assert_int_equal(machine_read(json, text.used, &host->machine), 0);
}

static void ended_is(struct top_host *host, const char *jobs)
{
	struct text text = TEXT_ON(json);

	text_addf(&text, "{\"taken_unix_ms\":%lld,\"jobs\":[%s]}", (long long)NOW, jobs);
	assert_false(text.cut);
	assert_int_equal(ended_jobs_read(json, text.used, &host->ended), 0);
}

#define GPU(index, used, state, more)                                         \
	"{\"index\":" #index ",\"instance\":null,\"uuid\":\"GPU-" #index      \
	"\",\"model\":\"NVIDIA H100\",\"memory_total_mib\":81920,"            \
	"\"memory_used_mib\":" #used ",\"utilization_percent\":44,\"state\":" \
	"\"" state "\"" more "}"
#define LEASES(list) ",\"leases\":[" list "]"
#define LEASE(job, user, name, more)                                                 \
	"{\"ticket\":" #job ",\"user\":\"" user "\",\"name\":\"" name                \
	"\",\"command\":\"python " name ".py\",\"age_ms\":3600000,"                  \
	"\"started_unix_ms\":1795523650000,\"limit_ms\":15120000,\"exclusive\":true" \
	"" more "}"
#define TICKET(position, job, user, more)                                             \
	"{\"position\":" #position ",\"ticket\":" #job ",\"user\":\"" user            \
	"\",\"name\":\"gnn\",\"gpus\":4,\"since_unix_ms\":1795524790000,"             \
	"\"waits_ms\":2460000,\"start_at_unix_ms\":1795538770000,\"why\":\"after job" \
	" 412\"" more "}"
#define ENDED(job, user, state)                                                    \
	"{\"ticket\":" #job ",\"user\":\"" user "\",\"name\":\"sweep\",\"state\":" \
	"\"" state "\",\"started_unix_ms\":1795519621000,\"gone_unix_ms\":"        \
	"1795527061000,\"alive_unix_ms\":1795527061000,\"ran_at_least_ms\":"       \
	"7440000,\"gpu_seconds\":14880}"

/* Eight GPUs as in a lab, one of them shared. */
static const char lab_gpus[] = GPU(0, 62464, "leased",
	LEASES(LEASE(412, "alice", "llama-sft", ""))) "," GPU(1, 62464, "leased",
	LEASES(LEASE(412, "alice", "llama-sft", ""))) "," GPU(2, 62464, "leased",
	LEASES(LEASE(412, "alice", "llama-sft", ""))) "," GPU(3, 62464, "leased",
	LEASES(LEASE(412, "alice", "llama-sft", ""))) "," GPU(4, 17408, "leased",
	LEASES(LEASE(415, "bob", "eval", ",\"share\":0.5") "," LEASE(418, "carol",
		"serve", ",\"peak_mib\":6144,\"limit_ms\":0"))) "," GPU(5, 1024, "leased",
	LEASES(LEASE(409, "carol", "notebook",
		",\"unused\":true,\"unused_for_ms\":7800000,\"watched\":true"))) "," GPU(6,
	0, "idle", ",\"idle_for_ms\":11100000") "," GPU(7, 0, "paused",
	",\"paused\":true,\"why\":\"is paused by root: fan\"");

static const char lab_queue[] = TICKET(1, 420, "dave", "") "," TICKET(
	2, 421, "erin", ",\"priority\":5") "," TICKET(3, 422, "alice", "");

static void lab(void)
{
	machine_is(&hosts[0], lab_gpus, lab_queue, "");
	ended_is(&hosts[0], ENDED(407, "erin", "oom") "," ENDED(408, "bob", "finished"));
}

static void draw(void)
{
	top_screen_draw(hosts, 1, &view, &frame);
}

static void resize(unsigned columns, unsigned rows)
{
	view.columns = columns;
	view.rows = rows;
	draw();
}

/* --- what is on it --------------------------------------------------------------- */

static void show_frame(void)
{
	for (unsigned i = 0; i < frame.rows; i++)
		print_message("%2u |%s\n", i, frame.row[i]);
}

/* The first row with @part; fails without one. */
static unsigned row_with(const char *part)
{
	for (unsigned i = 0; i < frame.rows; i++)
		if (strstr(frame.row[i], part))
			return i;
	show_frame();
	fail_msg("no row has '%s'", part);
	return 0;
}

static void has(const char *part)
{
	(void)row_with(part);
}

static void has_not(const char *part)
{
	for (unsigned i = 0; i < frame.rows; i++)
		if (strstr(frame.row[i], part)) {
			show_frame();
			fail_msg("row %u has '%s'", i, part);
		}
}

static void row_is(unsigned row, const char *expected)
{
	assert_true(row < frame.rows);
	assert_string_equal(frame.row[row], expected);
}

static void a_lab_is_one_screen(void **state)
{
	static const char *const rows[] = {
		" gpulease on lab3   8 GPUs: 6 leased 1 idle 1 paused   3 wait          15:34:10",
		"",
		"GPU MEMORY          UTIL USER   JOB NAME       LEFT COMMAND",
		" 0  ████████░░  61G  44% alice  412 llama-sft 3h12m python llama-sft.py",
		" 1  ████████░░  61G  44% alice  412 llama-sft 3h12m python llama-sft.py",
		" 2  ████████░░  61G  44% alice  412 llama-sft 3h12m python llama-sft.py",
		" 3  ████████░░  61G  44% alice  412 llama-sft 3h12m python llama-sft.py",
		" 4  ██░░░░░░░░  17G  44% bob    415 eval      3h12m python eval.py",
		"                 6G      carol  418 serve         - python serve.py",
		" 5  ░░░░░░░░░░   1G  44% carol  409 notebook  3h12m at 0% for 2h10m ! python no…",
		" 6  ░░░░░░░░░░   0G  44% -        - idle 3h05m",
		" 7  ░░░░░░░░░░   0G  44% -        - paused by root: fan",
		"",
		"POS TICKET USER  GPUS NAME WAITS START WHY",
		"  1    420 dave     4 gnn    41m 18:46 after job 412",
		"  2    421 erin     4 gnn    41m 18:46 after job 412",
		"  3    422 alice    4 gnn    41m 18:46 after job 412",
		"",
		"ENDED  408 bob sweep finished 15:31 (2h04m)   407 erin sweep oom 15:31 (2h04m)",
	};

	(void)state;
	lab();
	draw();
	assert_int_equal(frame.rows, 24);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(frame.row[i], rows[i]) != 0) {
			show_frame();
			fail_msg("row %u should be:\n   |%s", i, rows[i]);
		}
	row_is(23,
		" up/dn choose  f follow  a attach  c cancel  u mine  t times  h hosts  "
		"? q");
}

#define WINDOW(gpus, begun, until, more)                                                 \
	"{\"gpus\":\"" gpus "\",\"has_begun\":" begun ",\"from_unix_ms\":1795524790000," \
	"\"until_unix_ms\":" until more "}"

static void windows_are_below_the_gpus(void **state)
{
	(void)state;
	machine_is(&hosts[0], lab_gpus, lab_queue,
		",\"windows\":[" WINDOW("7", "false", "null", "") "," WINDOW("0,1",
			"true", "1795538770000",
			",\"but\":\"1000,1001\",\"by\":\"root\",\"reason\":\"demo\"") "]");
	draw();
	row_is(row_with(" 7  ") + 1,
		"GPU 0,1: kept until 18:46 but for uid 1000,1001 by root: demo");
	row_is(row_with(" 7  ") + 2, "GPU 7: kept from 14:53");
	row_is(row_with("POS TICKET") - 1, "");
	resize(80, 12);
	has("(+1 more) GPU 0,1: kept until");
	has_not("GPU 7: kept");
	has("POS TICKET");
	resize(60, 10);
	has("(+1 more) GPU 0,1: kept until");
	has("GPU MEM");
	has("POS TICKET");
}

static void every_size_has_title_and_keys(void **state)
{
	static const struct {
		unsigned columns, rows;
	} sizes[] = { { 60, 10 }, { 61, 11 }, { 80, 24 }, { 119, 30 }, { 120, 30 },
		{ 140, 40 }, { 300, 200 }, { 2000, 300 } };

	(void)state;
	lab();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		resize(sizes[i].columns, sizes[i].rows);
		assert_int_equal(frame.rows, sizes[i].rows);
		assert_int_equal(row_with("lab3"), 0);
		assert_int_equal(row_with("? q"), sizes[i].rows - 1);
		has("GPU ");
		has("POS TICKET");
	}
	resize(80, 10000);
	assert_int_equal(frame.rows, TOP_ROWS_MAX);
}

static void a_small_terminal_has_one_line(void **state)
{
	static const struct {
		unsigned columns, rows;
		const char *row;
	} sizes[] = {
		{ 59, 9, "--top needs 60x10, the terminal has 59x9" },
		{ 59, 200, "--top needs 60x10, the terminal has 59x200" },
		{ 200, 9, "--top needs 60x10, the terminal has 200x9" },
		{ 12, 1, "--top needs…" },
	};

	(void)state;
	lab();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		resize(sizes[i].columns, sizes[i].rows);
		assert_int_equal(frame.rows, 1);
		row_is(0, sizes[i].row);
	}
	resize(1, 0);
	assert_int_equal(frame.rows, 0);
}

static void wide_columns_begin_at_120(void **state)
{
	static const char *const wide[] = { "5 MINUTES", "SHARE", "RUNS", "PEAK",
		"PRIORITY", "TODAY", "8 x H100" };

	(void)state;
	lab();
	for (size_t i = 0; i < ARRAY_SIZE(wide); i++) {
		resize(120, 40);
		has(wide[i]);
		resize(119, 40);
		has_not(wide[i]);
	}
	/* the models are equal, and no job has a peak: columns without a cell are left out */
	machine_is(
		&hosts[0], GPU(0, 0, "leased", LEASES(LEASE(1, "x", "x", ""))), "", "");
	resize(140, 24);
	has_not("MODEL");
	has_not("SHARE");
	has_not("PEAK");
	has("RUNS");
}

static void models_that_differ_have_a_column(void **state)
{
	(void)state;
	machine_is(&hosts[0],
		GPU(0, 0, "idle", "") "," GPU(1, 0, "idle", ",\"model\":\"NVIDIA A100\""),
		"", "");
	resize(140, 24);
	has("2 GPUs: 2 idle");
	has(" 0  H100");
	has(" 1  A100");
}

/* --- states ---------------------------------------------------------------------- */

static void each_state_says_why(void **state)
{
	static const struct {
		const char *gpu, *row;
	} cases[] = {
		{ GPU(3, 0, "idle", ""), " - idle" },
		{ GPU(3, 0, "idle", ",\"idle_for_ms\":0"), " - idle" },
		{ GPU(3, 0, "external",
			  ",\"user\":\"zoe\",\"pid\":77,\"command\":\"jupyter\""),
			"zoe     - external: pid 77 jupyter" },
		{ GPU(3, 0, "external", ",\"why\":\"used outside gpulease\""),
			"external: used outside gpulease" },
		{ GPU(3, 0, "settling", ",\"why\":\"was just released\""),
			"settling: was just released" },
		{ GPU(3, 0, "locked", ",\"why\":\"is locked by pid 9\""),
			"- locked by pid 9" },
		{ GPU(3, 0, "unknown", ",\"why\":\"its state is unknown\""),
			"unknown: its state is unknown" },
		{ GPU(3, 0, "unknown", ",\"why\":null"), "- unknown" },
		{ GPU(3, 0, "unknown", ",\"why\":\"MIG is enabled\",\"mig\":[{}]"),
			"- MIG is enabled" },
		{ GPU(3, 0, "paused", ",\"paused\":true"), "- paused" },
		{ GPU(3, 0, "leased",
			  ",\"paused\":true" LEASES(LEASE(1, "bob", "x", ""))),
			"paused: python x.py" },
		{ GPU(3, 0, "external", LEASES(LEASE(1, "bob", "x", ""))),
			"external: python x.py" },
		{ GPU(3, 0, "lingering",
			  LEASES(LEASE(1, "bob", "x", ",\"lingering\":true"))),
			"ended, but left processes: " },
		{ GPU(3, 0, "leased",
			  LEASES(LEASE(
				  1, "bob", "x", ",\"unused_ms\":5,\"watched\":false"))),
			"not watched: python x.py" },
		{ GPU(3, 0, "leased",
			  LEASES(LEASE(
				  1, "bob", "x", ",\"unused_ms\":5,\"watched\":true"))),
			" python x.py" },
		{ GPU(3, 0, "leased", LEASES(LEASE(1, "bob", "x", ""))), " python x.py" },
		{ GPU(3, 0, "leased",
			  LEASES(LEASE(1, "bob", "x", ",\"age_ms\":99999999"))),
			" <1s python" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		machine_is(&hosts[0], cases[i].gpu, "", "");
		draw();
		has(cases[i].row);
		has(" 3  ");
		has_not("idle <1s"); /* seen idle once only: the time is not known */
	}
}

static void mig_instances_have_rows(void **state)
{
	(void)state;
	machine_is(&hosts[0],
		GPU(0, 0, "unknown", ",\"mig\":[{\"device\":1},{\"device\":2}]") "," GPU(
			0, 5120, "leased",
			",\"instance\":1,\"memory_total_mib\":10240,\"model\":\"A MIG 1g.10gb\"" LEASES(
				LEASE(7, "bob", "x", ""))) "," GPU(0, null, "idle",
			",\"instance\":2,\"memory_used_mib\":null"),
		"", "");
	draw();
	has("1 GPU, 2 MIG: 1 leased 1 idle");
	has(" 0  ");
	has("divided into MIG instances");
	has("0:1 █████░░░░░   5G  44% bob     7 x");
	has("0:2 ░░░░░░░░░░    -  44% -       - idle");
	resize(140, 24);
	has("0:1 MIG 1g.10gb ");
}

static void a_job_without_a_gpu_is_shown(void **state)
{
	(void)state;
	machine_is(&hosts[0], GPU(0, 0, "idle", ""), "",
		",\"running_without_gpus\":[" LEASE(9, "bob", "prep", "") "]");
	draw();
	has(" -                       bob     9 prep 3h12m python prep.py");
	assert_int_equal(frame.job_count, 1);
}

static void an_empty_machine_says_why(void **state)
{
	(void)state;
	machine_is(&hosts[0], "", "",
		",\"nvidia_smi\":{\"found\":true,\"trouble\":\"nvidia-smi fails: 9\"}");
	draw();
	has("no GPUs");
	assert_int_equal(row_with(" ! nvidia-smi fails: 9"), 1);
	machine_is(&hosts[0], "", "",
		",\"nvidia_smi\":{\"is_old\":true,\"answer_age_ms\":40000}");
	draw();
	has(" ! nvidia-smi does not answer, its last answer is old: 40s");
	hosts[0].machine = MACHINE_NONE;
	draw();
	has("this machine   no answer yet");
	text_copy(hosts[0].trouble, sizeof(hosts[0].trouble), "ssh: no route");
	draw();
	has(" ! ssh: no route");
}

static void what_is_shown_of_a_silent_machine_has_a_time(void **state)
{
	(void)state;
	lab();
	view.now_unix_ms = NOW + MINUTE_MS;
	text_copy(hosts[0].trouble, sizeof(hosts[0].trouble), "no answer in 5s");
	draw();
	has("15:35:10");
	has(" ! no answer in 5s; what is shown is from 15:34:10");
}

/* --- times ----------------------------------------------------------------------- */

static void times_are_spans_or_clock_times(void **state)
{
	(void)state;
	lab();
	resize(140, 40);
	has("RUNS");
	has("LEFT");
	has("1h00m 3h12m");
	view.is_clock = true;
	draw();
	has("SINCE  ENDS");
	has("14:34 18:46");
	has("SINCE START");
	has("14:53 18:46");
	has_not("3h12m");
}

static void another_day_has_a_date(void **state)
{
	static const struct {
		int64_t start_ms;
		const char *text;
	} cases[] = {
		{ INT64_C(1795557599999), "23:59" },
		{ INT64_C(1795557600000), "11-25 00:00" },
		{ INT64_C(1795471200000), "00:00" },
		{ INT64_C(1795471199999), "11-23 23:59" },
		{ INT64_C(1835388000000), "02-29 00:00" }, /* of the leap year 2028 */
		{ INT64_C(1835474400000), "03-01 00:00" },
		{ INT64_C(1798754400000), "01-01 00:00" },
		{ INT64_C(1798754399999), "12-31 23:59" },
		{ 0, " - " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char ticket[512], wanted[64];

		(void)snprintf(ticket, sizeof(ticket), "%s,\"start_at_unix_ms\":%lld}",
			"{\"position\":1,\"ticket\":2,\"user\":\"x\",\"why\":\"WHY\"",
			(long long)cases[i].start_ms);
		machine_is(&hosts[0], "", ticket, "");
		draw();
		(void)snprintf(wanted, sizeof(wanted), "%s WHY", cases[i].text);
		has(cases[i].start_ms ? wanted : "    - WHY");
	}
}

/* --- too much for the screen ----------------------------------------------------- */

/* Appends @count tickets of @user, from job @job on. */
static void many_tickets(struct text *out, unsigned count, unsigned job, const char *user)
{
	for (unsigned i = 0; i < count; i++)
		text_addf(out,
			"%s{\"position\":%u,\"ticket\":%u,\"user\":\"%s\",\"name\":\"n\","
			"\"gpus\":1,\"waits_ms\":%u000,\"why\":\"behind job 1\"}",
			out->used ? "," : "", i + 1, job + i, user, i);
}

static void many_gpus(struct text *out, unsigned count, unsigned job)
{
	for (unsigned i = 0; i < count; i++)
		text_addf(out,
			"%s{\"index\":%u,\"uuid\":\"GPU-%u\",\"state\":\"leased\","
			"\"memory_total_mib\":81920,\"memory_used_mib\":%u,"
			"\"utilization_percent\":%u,\"model\":\"NVIDIA H100\",\"leases\":"
			"[{\"ticket\":%u,\"user\":\"alice\",\"name\":\"n%u\",\"age_ms\":9,"
			"\"command\":\"python train.py\",\"limit_ms\":99999999}]}",
			out->used ? "," : "", i, i, i * 512, i % 101, job + i, i);
}

static char gpus_text[1 << 20], queue_text[1 << 20];

static void crowd(unsigned gpus, unsigned tickets)
{
	struct text gpu_list = TEXT_ON(gpus_text), queue_list = TEXT_ON(queue_text);

	many_gpus(&gpu_list, gpus, 1);
	many_tickets(&queue_list, tickets, 1001, "bob");
	machine_is(&hosts[0], gpus_text, queue_text, "");
}

static void eight_gpus_and_a_queue_of_ten_fit(void **state)
{
	(void)state;
	crowd(8, 10);
	ended_is(&hosts[0], ENDED(408, "bob", "finished"));
	draw();
	has("  1   1001 bob");
	has(" 10   1010 bob");
	has(" 7  ");
	has("ENDED  408");
	has_not("more");
}

static void what_does_not_fit_is_counted(void **state)
{
	(void)state;
	crowd(128, 1000);
	draw();
	has("128 GPUs: 128 leased   1000 wait");
	has("    +115 more");
	has("    +995 more");
	resize(60, 10);
	has("    +125 more");
	has("    +999 more");
	assert_int_equal(frame.job_count, 1024);
	assert_int_equal(frame.jobs[127], 128);
	assert_int_equal(frame.jobs[128], 1001);
}

static void the_lists_scroll_one_after_the_other(void **state)
{
	unsigned gpus, queue;

	(void)state;
	crowd(100, 100);
	draw();
	gpus = frame.last_first_row;
	view.first_row = 5;
	draw();
	assert_int_equal(frame.last_first_row, gpus);
	has("    -5 above +");
	has(" 5  ");
	has("  1   1001");
	view.first_row = gpus;
	draw();
	has("99  ");
	has("100   1100");
	has_not("more");
	queue = row_with("-95 above");
	view.first_row = gpus + 1000;
	draw();
	assert_int_equal(row_with("-95 above"), queue);
}

static void the_chosen_job_is_visible(void **state)
{
	static const struct {
		int64_t job;
		unsigned first_row;
		const char *part;
	} cases[] = { { 1, 0, " 0 >" }, { 100, 0, "99 >" }, { 1, 60, " 0 >" },
		{ 50, 0, "49 >" }, { 1100, 0, "100>  1100" },
		{ 1001, 500, "  1>  1001" } };

	(void)state;
	crowd(100, 100);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		view.chosen_job = cases[i].job;
		view.first_row = cases[i].first_row;
		resize(60, 10);
		has(cases[i].part);
		resize(80, 24);
		has(cases[i].part);
	}
}

static void a_job_can_be_chosen_once(void **state)
{
	static const int64_t jobs[] = { 412, 415, 418, 409, 420, 421, 422 };

	(void)state;
	lab();
	draw();
	assert_int_equal(frame.job_count, ARRAY_SIZE(jobs));
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		assert_int_equal(frame.jobs[i], jobs[i]);
}

/* --- whose jobs ------------------------------------------------------------------ */

static void only_the_jobs_of_a_user_are_shown(void **state)
{
	(void)state;
	lab();
	view.is_mine = true;
	draw();
	has("only alice");
	has(" 4  ██░░░░░░░░  17G  44% bob    415 -         3h12m");
	has_not("eval");
	has_not("serve");
	has("422 alice");
	has_not("dave");
	has_not("ENDED");
	assert_int_equal(frame.job_count, 2);
	view.is_mine = false;
	view.user = "carol";
	draw();
	has("only carol");
	has(" 4  ██░░░░░░░░  17G  44% carol  418 serve");
	has_not("llama");
	has_not("POS");
	has_not("ENDED");
	assert_int_equal(frame.job_count, 2);
	view.user = "erin";
	draw();
	has("ENDED  407 erin sweep oom 15:31 (2h04m)");
	has_not("bob sweep");
}

/* --- colours, characters --------------------------------------------------------- */

static void colours_are_only_on_demand(void **state)
{
	(void)state;
	lab();
	view.chosen_job = 412;
	draw();
	has_not("\033");
	view.has_colour = true;
	draw();
	has("\033[31mat 0% for 2h10m ! ");
	has("\033[7m 0  ");
	has("\033[7m 3  ");
	has_not("\033[7m 4  ");
	assert_string_equal(frame.row[3] + strlen(frame.row[3]) - 5, " \033[0m");
	has("\033[1malice\033[0m");
}

static void without_utf8_all_is_ascii(void **state)
{
	(void)state;
	machine_is(&hosts[0],
		GPU(0, 40960, "leased",
			LEASES(LEASE(1, "j\xc3\xb6rg", "\xe8\xae\xad\xe7\xbb\x83", ""))),
		"", "");
	view.has_utf8 = false;
	draw();
	has("#####.....  40G  44% j?rg ");
	has(" ?? ");
	for (unsigned i = 0; i < frame.rows; i++)
		for (const char *at = frame.row[i]; *at; at++)
			assert_in_range(*at, ' ', '~');
}

static void wide_names_keep_the_columns(void **state)
{
	/* 24 columns of Chinese, and of full-width letters: twelve characters are too many */
	static const char *const names[] = {
		"\xe8\xae\xad\xe7\xbb\x83\xe8\xae\xad\xe7\xbb\x83\xe8\xae\xad\xe7\xbb\x83"
		"\xe8\xae\xad\xe7\xbb\x83",
		"\xef\xbc\xa1\xef\xbc\xa1\xef\xbc\xa1\xef\xbc\xa1\xef\xbc\xa1\xef\xbc\xa1"
		"\xef\xbc\xa1\xef\xbc\xa1",
		"\xe2\x9c\x85\xe2\x9c\x85\xe2\x9c\x85\xe2\x9c\x85\xe2\x9c\x85\xe2\x9c\x85"
		"\xe2\x9c\x85\xe2\x9c\x85",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char gpu[1024], wanted[64];

		(void)snprintf(gpu, sizeof(gpu), "%s%s%s",
			"{\"index\":0,\"state\":\"leased\",\"leases\":[{\"ticket\":1,"
			"\"user\":\"bob\",\"name\":\"",
			names[i], "\",\"command\":\"COMMAND\"}]}");
		machine_is(&hosts[0], gpu, "", "");
		draw();
		/* five characters and the mark of the cut are 11 of 12 columns */
		(void)snprintf(
			wanted, sizeof(wanted), " %.15s…      - COMMAND", names[i]);
		has(wanted);
	}
}

/* --- other parts ----------------------------------------------------------------- */

static void the_gpu_hours_of_today_are_added(void **state)
{
	(void)state;
	/* bob: half of an ended job of 8 GPU hours was today; alice: one hour on each of 4 GPUs */
	machine_is(&hosts[0], lab_gpus, "", "");
	ended_is(&hosts[0],
		"{\"ticket\":1,\"user\":\"dora\",\"state\":\"finished\",\"gpu_seconds\":28800,"
		"\"started_unix_ms\":1795464000000,\"alive_unix_ms\":1795478400000},"
		"{\"ticket\":2,\"user\":\"old\",\"state\":\"finished\",\"gpu_seconds\":28800,"
		"\"started_unix_ms\":1795400000000,\"alive_unix_ms\":1795410000000}");
	resize(140, 40);
	has("TODAY  GPU hours:  dora 4.0  alice 4.0  carol 2.0  bob 0.5");
	has_not("old 8");
	ended_jobs_release(&hosts[0].ended);
	machine_is(&hosts[0], "", "", "");
	draw();
	has("TODAY  GPU hours:  none");
}

static void gpu_hours_are_a_least_value_if_ends_are_missing(void **state)
{
	struct ended_job *list = calloc(TOP_ENDED_MOST, sizeof(*list));

	(void)state;
	assert_non_null(list);
	for (size_t i = 0; i < TOP_ENDED_MOST; i++)
		list[i] = (struct ended_job){ .user = "dora",
			.gpu_seconds = 36,
			.started_unix_ms = NOW - 36000,
			.alive_unix_ms = NOW,
			.gone_unix_ms = NOW };
	machine_is(&hosts[0], "", "", "");
	hosts[0].ended = (struct ended_jobs){
		.list = list, .count = TOP_ENDED_MOST, .room = TOP_ENDED_MOST
	};
	resize(140, 40);
	has("TODAY  GPU hours, at least:  dora 10.0");
	list[0].gone_unix_ms =
		NOW - 24 * 3600 * 1000; /* the list goes back beyond midnight */
	draw();
	has("TODAY  GPU hours:  dora 10.0");
	list[0].gone_unix_ms = NOW;
	hosts[0].ended.count--; /* the history has no more */
	draw();
	has("TODAY  GPU hours:  dora 10.0");
	ended_jobs_release(&hosts[0].ended);
}

static void users_of_today_without_room_are_not_silent(void **state)
{
	struct ended_job *list = calloc(40, sizeof(*list));

	(void)state;
	assert_non_null(list);
	for (unsigned i = 0; i < 40; i++) {
		list[i] = (struct ended_job){ .gpu_seconds = 36000 + i,
			.started_unix_ms = NOW - 36000,
			.alive_unix_ms = NOW,
			.gone_unix_ms = NOW };
		(void)snprintf(list[i].user, sizeof(list[i].user), "user%02u", i);
	}
	machine_is(&hosts[0], "", "", "");
	hosts[0].ended = (struct ended_jobs){ .list = list, .count = 40, .room = 40 };
	for (unsigned columns = TOP_WIDE_COLUMNS; columns < TOP_WIDE_COLUMNS + 14;
		columns++) {
		resize(columns, 40);
		has(" 10.0  …");
	}
	ended_jobs_release(&hosts[0].ended);
}

static void the_log_of_the_chosen_job_is_at_the_bottom(void **state)
{
	(void)state;
	lab();
	view.chosen_job = 412;
	view.log_count = TOP_LOG_LINES;
	for (unsigned i = 0; i < TOP_LOG_LINES; i++)
		(void)snprintf(view.log[i], TOP_LOG_LINE_SIZE, "step %u", i);
	resize(140, 40);
	has("LOG of job 412");
	has("step 0");
	has("step 7");
	resize(140, 24);
	has_not("step 0");
	has("step 7");
	resize(80, 40);
	has_not("LOG of job");
}

static void a_notice_replaces_the_keys(void **state)
{
	(void)state;
	lab();
	text_copy(view.notice, sizeof(view.notice), "cancel job 412 of alice? y/n");
	draw();
	row_is(23, "cancel job 412 of alice? y/n");
	has_not("? q");
}

static void keys_depend_on_rights_and_room(void **state)
{
	(void)state;
	lab();
	resize(60, 10);
	row_is(9, " up/dn choose  f follow  a attach  c cancel  u mine  ? q");
	view.can_act = false;
	draw();
	row_is(9, " up/dn choose  f follow  u mine  t times  h hosts  ? q");
	view.is_help = true;
	resize(80, 24);
	has_not("cancel");
	has("scroll the lists");
	has(" OTHER ");
	view.can_act = true;
	draw();
	has("cancel the chosen job");
	resize(60, 10);
	has("+");
}

static void the_hosts_are_a_table(void **state)
{
	(void)state;
	lab();
	hosts[1].machine = MACHINE_NONE;
	text_copy(hosts[1].name, sizeof(hosts[1].name), "lab4.example.org");
	text_copy(hosts[1].trouble, sizeof(hosts[1].trouble), "ssh: timed out");
	text_copy(hosts[2].name, sizeof(hosts[2].name), "lab5");
	view.are_hosts = true;
	view.host = 1;
	top_screen_draw(hosts, ARRAY_SIZE(hosts), &view, &frame);
	has(" gpulease on 3 machines");
	has("HOST             GPUS IDLE LEASED OTHER WAIT LONGEST TROUBLE");
	has("lab3                8    1      6     1    3     41m -");
	has("lab4.example.org>   -    -      -     -    -       - ssh: timed out");
	has("lab5                -    -      -     -    -       - no answer yet");
	has("? q");
}

static void samples_move_to_the_left(void **state)
{
	(void)state;
	machine_is(&hosts[0], GPU(0, 0, "idle", ""), "", "");
	for (unsigned i = 0; i < TOP_SAMPLES + 20; i++) {
		hosts[0].machine.gpus[0].utilization_percent = i < TOP_SAMPLES ? 0 : 100;
		top_host_sample(&hosts[0]);
	}
	assert_int_equal(hosts[0].sample_count, TOP_SAMPLES);
	resize(140, 24);
	has(" ▁▁▁▁▁▁▁▁▁▁▁▁▁██ ");
	view.has_utf8 = false;
	draw();
	has(" _____________## ");
	/* other GPUs: the samples begin again */
	machine_is(&hosts[0], GPU(1, 0, "idle", ""), "", "");
	top_host_sample(&hosts[0]);
	assert_int_equal(hosts[0].sample_count, 1);
	assert_int_equal(hosts[0].samples[0][0], 44);
	assert_int_equal(hosts[0].samples[1][0], -1);
}

/* --- any text, any size ---------------------------------------------------------- */

static uint64_t seed;

static unsigned below(unsigned limit)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % limit;
}

static const char *any_text(void)
{
	static const char *const texts[] = { "", "x", "alice", "\\u001b[2J\\u001b[31m",
		"\\r\\n\\t\\u0000\\u0007", "\\u202egnp.exe",
		"\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5",
		"\xe8\xae\xad\xe7\xbb\x83\xe4\xbb\xbb\xe5\x8a\xa1\xe8\xae\xad\xe7\xbb\x83",
		"\xe2\x9c\x85\xe2\x8c\x9a\xe2\xad\x90", "e\xcc\x81\xcc\x81\xcc\x81",
		"\\\"\\\\", "\xef\xbc\xa1\xef\xbc\xa2\xef\xbc\xa3",
		"\xff\xfe\xc0\x80\xed\xa0\x80",
		"0123456789012345678901234567890123456789012345678901234567890123456789",
		"\xe1\x84\x80\xe1\x85\xa1", "\xe2\x9d\xa4\xef\xb8\x8f",
		"\xf3\xa0\x80\x81", "\xf4\x90\x80\x80 %s%n", "idle", "leased", "external",
		"paused" };

	return texts[below(ARRAY_SIZE(texts))];
}

static long long any_number(void)
{
	static const long long numbers[] = { -1, 0, 1, 44, 100, 5000, 81920,
		1795527250000, INT64_MAX, INT64_MIN, INT64_MAX / 2 };

	return below(3) ? (long long)below(100000) : numbers[below(ARRAY_SIZE(numbers))];
}

/* Appends the members of any object: those of GPUs, leases, tickets and ended jobs. */
static void any_members(struct text *out)
{
	static const char *const numbers[] = { "index", "instance", "memory_total_mib",
		"memory_used_mib", "utilization_percent", "idle_for_ms", "pid", "ticket",
		"age_ms", "started_unix_ms", "limit_ms", "vram_mib", "peak_mib", "share",
		"unused_for_ms", "unused_ms", "unused_ok_ms", "position", "gpus",
		"priority", "since_unix_ms", "waits_ms", "start_at_unix_ms",
		"alive_unix_ms", "gone_unix_ms", "ran_at_least_ms", "gpu_seconds" };
	static const char *const texts[] = { "state", "uuid", "model", "user", "why",
		"command", "name" };
	static const char *const flags[] = { "paused", "lingering", "over_declared",
		"unused", "watched", "stopped", "can_start" };

	text_add(out, "{\"x\":0");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (below(3))
			text_addf(out, ",\"%s\":%lld", numbers[i], any_number());
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (below(4))
			text_addf(out, ",\"%s\":\"%s%s\"", texts[i], any_text(),
				any_text());
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (below(2))
			text_addf(out, ",\"%s\":true", flags[i]);
}

static void any_list(struct text *out, unsigned most, bool has_leases)
{
	unsigned count = below(most);

	for (unsigned i = 0; i < count; i++) {
		unsigned leases = has_leases ? below(4) : 0;

		text_add(out, i ? "," : "");
		any_members(out);
		text_add(out, ",\"leases\":[");
		for (unsigned lease = 0; lease < leases; lease++) {
			text_add(out, lease ? "," : "");
			any_members(out);
			text_add(out, "}");
		}
		text_add(out, below(8) ? "]}" : "],\"mig\":[{}]}");
	}
}

static void any_machine(void)
{
	struct text text = TEXT_ON(json);

	text_add(&text, "{\"host\":\"");
	text_addf(&text, "%s%s\",\"taken_unix_ms\":%lld,\"running_without_gpus\":[",
		any_text(), any_text(), (long long)NOW);
	any_list(&text, 4, false);
	text_add(&text, "],\"gpus\":[");
	any_list(&text, 20, true);
	text_add(&text, "],\"queue\":[");
	any_list(&text, 30, false);
	text_add(&text, "],\"windows\":[");
	for (unsigned i = below(6); i > 0; i--)
		text_addf(&text, "{\"gpus\":\"%s\",\"has_begun\":%s,\"by\":\"%s\"}%s",
			any_text(), below(2) ? "true" : "false", any_text(),
			i > 1 ? "," : "");
	text_addf(&text, "],\"nvidia_smi\":{\"trouble\":\"%s\"}}", any_text());
	assert_false(text.cut);
	assert_int_equal(machine_read(json, text.used, &hosts[0].machine), 0);
	text = TEXT_ON(json);
	text_addf(&text, "{\"taken_unix_ms\":%lld,\"jobs\":[", (long long)NOW);
	any_list(&text, 10, false);
	text_add(&text, "]}");
	assert_int_equal(ended_jobs_read(json, text.used, &hosts[0].ended), 0);
	for (unsigned i = below(200); i > 0; i--)
		top_host_sample(&hosts[0]);
}

/* A line of a log, which no reader has made printable: a byte pattern, many times. */
static void any_log_line(char line[TOP_LOG_LINE_SIZE])
{
	static const char *const patterns[] = { "\xf0\x9f\x94\xa5 \033[2J", "\xff",
		"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xe2\x80\xae", "\xc2\x9b", "\x7f\x01\t", "\xf0\x9f", "loss 0.1 " };
	struct text text = text_on(line, TOP_LOG_LINE_SIZE);
	const char *pattern = patterns[below(ARRAY_SIZE(patterns))];

	while (!text.cut)
		text_add(&text, pattern);
}

static void any_view(void)
{
	static const char *const users[] = { "alice", "x", "" };
	size_t queued = hosts[0].machine.queue_count;

	view.columns = 60 + below(140);
	view.rows = 10 + below(60);
	view.has_colour = below(2);
	view.has_utf8 = below(4);
	view.is_mine = !below(6);
	view.is_clock = below(2);
	view.is_help = !below(10);
	view.are_hosts = !below(10);
	view.can_act = below(2);
	view.first_row = below(3) ? 0 : below(60);
	view.user = below(6) ? NULL : users[below(ARRAY_SIZE(users))];
	view.chosen_job = queued && below(2)
				  ? hosts[0].machine.queue[below((unsigned)queued)].job
				  : -1;
	view.log_count = below(TOP_LOG_LINES + 1);
	for (unsigned i = 0; i < view.log_count; i++)
		any_log_line(view.log[i]);
	text_copy(view.notice, sizeof(view.notice), below(5) ? "" : "\xe8\xae\xad? y/n");
}

/* Copies @row without its colours to @out.  Fails at other control characters. */
static void strip(const char *row, struct text *out)
{
	static const char *const sequences[] = { "\033[0m", "\033[1m", "\033[2m",
		"\033[7m", "\033[31m", "\033[32m", "\033[33m", "\033[34m" };
	bool is_plain = true;

	while (*row) {
		size_t i = 0, size = 0;

		for (; *row == '\033' && !size && i < ARRAY_SIZE(sequences); i++)
			if (strncmp(row, sequences[i], strlen(sequences[i])) == 0)
				size = strlen(sequences[i]);
		if (size) {
			is_plain = i == 1;
			row += size;
			continue;
		}
		if ((unsigned char)*row < ' ' || *row == 0x7f)
			fail_msg("control character %d", *row);
		text_add_bytes(out, row++, 1);
	}
	assert_true(is_plain);
}

/* What the C library counts; text_columns() is the other opinion. */
static unsigned terminal_columns(const char *row)
{
	const char *end = row + strlen(row);
	unsigned columns = 0;
	mbstate_t shift = { 0 };

	while (row < end) {
		wchar_t point;
		size_t size = mbrtowc(&point, row, (size_t)(end - row), &shift);
		int width;

		if (size == (size_t)-1 || size == (size_t)-2)
			fail_msg("malformed UTF-8: %s", row);
		width = wcwidth(point);
		columns += width > 0 ? (unsigned)width : 0;
		row += size;
	}
	return columns;
}

static void check_frame(bool has_locale)
{
	static char plain[TOP_ROW_SIZE];

	assert_int_equal(frame.rows, view.rows);
	for (unsigned i = 0; i < frame.rows; i++) {
		struct text text = TEXT_ON(plain);

		assert_true(strlen(frame.row[i]) < TOP_ROW_SIZE - 1);
		strip(frame.row[i], &text);
		/* a C1 control character, and one that turns the direction of text */
		assert_null(strstr(plain, "\xc2\x9b"));
		assert_null(strstr(plain, "\xe2\x80\xae"));
		if (text_columns(plain, text.used) > view.columns ||
			(has_locale && terminal_columns(plain) > view.columns))
			fail_msg("%u columns, row %u: %s", view.columns, i, plain);
	}
	for (size_t i = 0; i < frame.job_count; i++)
		for (size_t other = 0; other < i; other++)
			assert_int_not_equal(frame.jobs[i], frame.jobs[other]);
}

static void no_text_breaks_the_screen(void **state)
{
	bool has_locale = setlocale(LC_CTYPE, "C.UTF-8") != NULL;

	(void)state;
	for (seed = 1; seed < UINT64_C(600) << 32; seed += UINT64_C(1) << 32) {
		uint64_t begun = seed;

		any_machine();
		for (unsigned i = 0; i < 5; i++) {
			any_view();
			draw();
			check_frame(has_locale);
		}
		seed = begun;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lab_is_one_screen),
		cmocka_unit_test(windows_are_below_the_gpus),
		cmocka_unit_test(every_size_has_title_and_keys),
		cmocka_unit_test(a_small_terminal_has_one_line),
		cmocka_unit_test(wide_columns_begin_at_120),
		cmocka_unit_test(models_that_differ_have_a_column),
		cmocka_unit_test(each_state_says_why),
		cmocka_unit_test(mig_instances_have_rows),
		cmocka_unit_test(a_job_without_a_gpu_is_shown),
		cmocka_unit_test(an_empty_machine_says_why),
		cmocka_unit_test(what_is_shown_of_a_silent_machine_has_a_time),
		cmocka_unit_test(times_are_spans_or_clock_times),
		cmocka_unit_test(another_day_has_a_date),
		cmocka_unit_test(eight_gpus_and_a_queue_of_ten_fit),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(the_lists_scroll_one_after_the_other),
		cmocka_unit_test(the_chosen_job_is_visible),
		cmocka_unit_test(a_job_can_be_chosen_once),
		cmocka_unit_test(only_the_jobs_of_a_user_are_shown),
		cmocka_unit_test(colours_are_only_on_demand),
		cmocka_unit_test(without_utf8_all_is_ascii),
		cmocka_unit_test(wide_names_keep_the_columns),
		cmocka_unit_test(the_gpu_hours_of_today_are_added),
		cmocka_unit_test(gpu_hours_are_a_least_value_if_ends_are_missing),
		cmocka_unit_test(users_of_today_without_room_are_not_silent),
		cmocka_unit_test(the_log_of_the_chosen_job_is_at_the_bottom),
		cmocka_unit_test(a_notice_replaces_the_keys),
		cmocka_unit_test(keys_depend_on_rights_and_room),
		cmocka_unit_test(the_hosts_are_a_table),
		cmocka_unit_test(samples_move_to_the_left),
		cmocka_unit_test(no_text_breaks_the_screen),
	};
	struct CMUnitTest each[ARRAY_SIZE(tests)];

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		each[i] = tests[i];
		each[i].setup_func = set_up;
		each[i].teardown_func = tear_down;
	}
	return cmocka_run_group_tests(each, NULL, NULL);
}
