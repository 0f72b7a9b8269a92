/*
 * Metrics for Prometheus: which samples a machine has.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "metrics_text.h"
#include "page.h"

/* Prints the metrics of the machine with these members besides the time. */
static void metrics_begin(struct page *page, const char *members)
{
	char json[8192];
	struct text text = TEXT_ON(json);
	struct machine machine = MACHINE_NONE;

	text_addf(&text, "{\"taken_unix_ms\": 1%s%s}", members[0] ? ", " : "", members);
	assert_false(text.cut);
	assert_int_equal(machine_read(json, text.used, &machine), 0);
	page_begin(page);
	assert_int_equal(metrics_text_print(&machine, page->out), 0);
	machine_release(&machine);
}

/* Whether the text has the line, which page_has() would also find as a part of one. */
static bool has_line(struct page *page, const char *line)
{
	size_t size = strlen(line);

	assert_int_equal(fflush(page->out), 0);
	for (const char *at = page->text; (at = strstr(at, line)); at++)
		if ((at == page->text || at[-1] == '\n') && at[size] == '\n')
			return true;
	return false;
}

static void check_lines(struct page *page, const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!has_line(page, lines[i]))
			fail_msg("no line '%s' in:\n%s", lines[i], page->text);
}

#define HAS_LINES(page, ...)                                         \
	do {                                                         \
		static const char *const lines_[] = { __VA_ARGS__ }; \
		check_lines(page, lines_, ARRAY_SIZE(lines_));       \
	} while (0)

/* How many samples the family has. */
static size_t samples_of(struct page *page, const char *family)
{
	size_t count = 0, size = strlen(family);

	assert_int_equal(fflush(page->out), 0);
	for (const char *at = page->text; (at = strstr(at, family)); at++)
		count += (at == page->text || at[-1] == '\n') &&
			 (at[size] == '{' || at[size] == ' ');
	return count;
}

static void a_machine_without_gpus_has_the_whole_form(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page, "\"version\": \"0.1\", \"nvidia_smi\": {\"found\": true, "
			     "\"answer_age_ms\": 1500}");
	HAS_LINES(&page, "# TYPE gpulease_build_info gauge",
		"# HELP gpulease_build_info The version of gpulease; the value is 1.",
		"gpulease_build_info{version=\"0.1\"} 1",
		"# UNIT gpulease_gpu_memory_bytes bytes",
		"gpulease_longest_wait_seconds 0", "gpulease_probe_age_seconds 1.5",
		"gpulease_probe_success 1");
	assert_int_equal(samples_of(&page, "gpulease_leased_gpus"), 0);
	assert_string_equal(page.text + page.size - strlen("\n# EOF\n"), "\n# EOF\n");
	page_end(&page);
}

static void a_gpu_has_its_values_in_base_units(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 3, \"uuid\": \"GPU-3\", \"model\": \"Card\", "
		"\"memory_total_mib\": 81559, \"memory_used_mib\": 1, "
		"\"utilization_percent\": 7, \"state\": \"external\"}]");
	HAS_LINES(&page, "gpulease_gpu_info{gpu=\"3\",uuid=\"GPU-3\",model=\"Card\"} 1",
		"gpulease_gpu_memory_bytes{gpu=\"3\"} 85520809984",
		"gpulease_gpu_memory_used_bytes{gpu=\"3\"} 1048576",
		"gpulease_gpu_utilization_ratio{gpu=\"3\"} 0.07",
		"gpulease_gpu_state{gpu=\"3\",state=\"external\"} 1",
		"gpulease_gpu_state{gpu=\"3\",state=\"idle\"} 0");
	assert_int_equal(samples_of(&page, "gpulease_gpu_state"), 8);
	page_end(&page);
}

static void each_state_is_one_of_the_set(void **state)
{
	static const char *const words[] = { "idle", "leased", "lingering", "settling",
		"locked", "external", "unknown", "paused" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char members[128], line[128];
		struct page page;

		(void)snprintf(members, sizeof(members),
			"\"gpus\": [{\"index\": 0, \"state\": \"%s\"}]", words[i]);
		(void)snprintf(line, sizeof(line),
			"gpulease_gpu_state{gpu=\"0\",state=\"%s\"} 1", words[i]);
		metrics_begin(&page, members);
		if (!has_line(&page, line))
			fail_msg("no line '%s'", line);
		page_end(&page);
	}
}

static void unknown_values_have_no_sample(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 0, \"uuid\": \"GPU-0\", \"state\": \"unknown\", "
		"\"memory_total_mib\": null, \"memory_used_mib\": null, "
		"\"utilization_percent\": null}], "
		"\"nvidia_smi\": {\"found\": false, \"answer_age_ms\": null}");
	assert_int_equal(samples_of(&page, "gpulease_gpu_memory_bytes"), 0);
	assert_int_equal(samples_of(&page, "gpulease_gpu_memory_used_bytes"), 0);
	assert_int_equal(samples_of(&page, "gpulease_gpu_utilization_ratio"), 0);
	assert_int_equal(samples_of(&page, "gpulease_probe_age_seconds"), 0);
	HAS_LINES(&page, "gpulease_gpu_state{gpu=\"0\",state=\"unknown\"} 1",
		"gpulease_probe_success 0");
	page_end(&page);
}

static void only_a_recent_answer_with_gpus_is_a_success(void **state)
{
	static const struct {
		const char *answer, *used_mib;
		bool is_success;
	} cases[] = {
		{ "\"answer_age_ms\": 10", "0", true },
		{ "\"answer_age_ms\": 90000, \"is_old\": true", "0", false },
		{ "\"answer_age_ms\": 10, \"trouble\": \"it has failed\"", "0", false },
		{ "\"answer_age_ms\": null", "0", false },
		{ "\"answer_age_ms\": 10", "null", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char members[256];
		struct page page;

		(void)snprintf(members, sizeof(members),
			"\"nvidia_smi\": {%s}, \"gpus\": [{\"index\": 0, "
			"\"memory_used_mib\": null}, {\"index\": 1, "
			"\"memory_used_mib\": %s}]",
			cases[i].answer, cases[i].used_mib);
		metrics_begin(&page, members);
		if (!has_line(&page, cases[i].is_success ? "gpulease_probe_success 1"
							 : "gpulease_probe_success 0"))
			fail_msg("case %zu", i);
		page_end(&page);
	}
}

static void instances_stand_for_a_divided_gpu(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 0, \"uuid\": \"GPU-0\", \"memory_total_mib\": 80, "
		"\"state\": \"unknown\", \"mig\": [{\"device\": 0}]}, "
		"{\"index\": 0, \"instance\": 0, \"uuid\": \"MIG-a\", \"state\": \"idle\", "
		"\"mig\": [{\"device\": 0}]}, "
		"{\"index\": 0, \"instance\": 1, \"uuid\": \"MIG-b\", \"state\": \"leased\"}]");
	HAS_LINES(&page, "gpulease_gpu_info{gpu=\"0:0\",uuid=\"MIG-a\",model=\"\"} 1",
		"gpulease_gpu_state{gpu=\"0:1\",state=\"leased\"} 1");
	page_has_not(&page, "gpu=\"0\"");
	page_end(&page);
}

/* After a GPU was taken out, another one has its index; the same sample twice would be invalid. */
static void an_index_has_one_gpu(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 1, \"uuid\": \"GPU-gone\", \"state\": \"unknown\"}, "
		"{\"index\": 1, \"uuid\": \"GPU-here\", \"state\": \"idle\"}, "
		"{\"index\": 2, \"uuid\": \"GPU-x\", \"state\": \"unknown\"}, "
		"{\"index\": 2, \"uuid\": \"GPU-y\", \"state\": \"unknown\"}]");
	assert_int_equal(samples_of(&page, "gpulease_gpu_info"), 2);
	page_has(&page, "GPU-here");
	page_has(&page, "GPU-x");
	page_end(&page);
}

static void a_window_that_has_begun_keeps_its_gpus(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 0}, {\"index\": 1}, {\"index\": 11}, "
		"{\"index\": 2, \"instance\": 3}, {\"index\": 4}], "
		"\"windows\": [{\"gpus\": \"11,2:3\", \"has_begun\": true}, "
		"{\"gpus\": \"0\", \"has_begun\": false}, "
		"{\"gpus\": \"4\", \"has_begun\": true}]");
	HAS_LINES(&page, "gpulease_gpu_window{gpu=\"0\"} 0",
		"gpulease_gpu_window{gpu=\"1\"} 0", "gpulease_gpu_window{gpu=\"11\"} 1",
		"gpulease_gpu_window{gpu=\"2:3\"} 1", "gpulease_gpu_window{gpu=\"4\"} 1");
	page_end(&page);
	metrics_begin(&page, "\"engine\": \"slurm\", \"gpus\": [{\"index\": 0}]");
	assert_int_equal(samples_of(&page, "gpulease_gpu_window"), 0);
	page_end(&page);
}

#define LEASE(job, user, more) "{\"ticket\": " #job ", \"user\": \"" user "\"" more "}"

static void leases_are_added_up_by_user(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"gpus\": [{\"index\": 0, \"leases\": [" LEASE(4, "zoe",
			"") "]}, "
			    "{\"index\": 1, \"leases\": [" LEASE(4, "zoe",
				    ", \"unused\": true") "]}, "
							  "{\"index\": 2, \"leases\": [" LEASE(
								  5, "bob",
								  ", \"share\": 0.25") ", " LEASE(6,
								  "bob",
								  ", \"share\": 0.5, \"unused\": true") ", " LEASE(7,
								  "zoe",
								  ", \"lingering\": true, \"vram_mib\": 1024") "]}], "
													       "\"running_without_gpus\": [" LEASE(
														       8,
														       "eve",
														       "") "]");
	HAS_LINES(&page, "gpulease_leased_gpus{user=\"zoe\"} 3",
		"gpulease_leased_gpus{user=\"bob\"} 0.75",
		"gpulease_leased_gpus{user=\"eve\"} 0",
		"gpulease_idle_leased_gpus{user=\"zoe\"} 1",
		"gpulease_idle_leased_gpus{user=\"bob\"} 0.5",
		"gpulease_idle_leased_gpus{user=\"eve\"} 0",
		/* job 4 has two GPUs, job 7 has ended */
		"gpulease_running_jobs{user=\"zoe\"} 1",
		"gpulease_running_jobs{user=\"bob\"} 2",
		"gpulease_running_jobs{user=\"eve\"} 1",
		"gpulease_waiting_gpus{user=\"eve\"} 0");
	page_has(&page, "gpulease_leased_gpus{user=\"bob\"} 0.75\n"
			"gpulease_leased_gpus{user=\"eve\"} 0\n"
			"gpulease_leased_gpus{user=\"zoe\"} 3\n");
	assert_int_equal(samples_of(&page, "gpulease_waiting_jobs"), 0);
	page_end(&page);
}

static void waiting_jobs_are_added_up_by_reason(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"queue\": [{\"user\": \"ann\", \"gpus\": 4, \"reason_kind\": \"leased\", "
		"\"waits_ms\": 61500}, "
		"{\"user\": \"ann\", \"gpus\": 2, \"share\": 0.5, "
		"\"reason_kind\": \"behind\", \"waits_ms\": 1000}, "
		"{\"user\": \"ann\", \"gpus\": 1, \"reason_kind\": \"behind\"}, "
		"{\"user\": \"bob\", \"gpus\": 0, \"reason_kind\": null}, "
		"{\"user\": \"bob\", \"gpus\": 1, \"reason_kind\": \"of a later version\"}]");
	HAS_LINES(&page, "gpulease_waiting_jobs{user=\"ann\",reason=\"leased\"} 1",
		"gpulease_waiting_jobs{user=\"ann\",reason=\"behind\"} 2",
		"gpulease_waiting_jobs{user=\"bob\",reason=\"none\"} 2",
		"gpulease_waiting_gpus{user=\"ann\"} 6",
		"gpulease_waiting_gpus{user=\"bob\"} 1",
		"gpulease_running_jobs{user=\"ann\"} 0",
		"gpulease_longest_wait_seconds 61.5");
	assert_int_equal(samples_of(&page, "gpulease_waiting_jobs"), 3);
	page_end(&page);
}

static void labels_are_escaped(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"version\": \"1\\u000a2\", "
		"\"gpus\": [{\"index\": 0, \"uuid\": \"a\\\\b\", \"model\": \"x\\\"} 9\"}], "
		"\"queue\": [{\"user\": \"\\\\\", \"reason_kind\": \"held\"}]");
	HAS_LINES(&page, "gpulease_build_info{version=\"1?2\"} 1",
		"gpulease_gpu_info{gpu=\"0\",uuid=\"a\\\\b\",model=\"x\\\"} 9\"} 1",
		"gpulease_waiting_jobs{user=\"\\\\\",reason=\"held\"} 1");
	page_end(&page);
}

static void gpus_of_a_cluster_have_their_nodes(void **state)
{
	struct page page;

	(void)state;
	metrics_begin(&page,
		"\"engine\": \"slurm\", \"gpus\": ["
		"{\"node\": \"n1\", \"index\": 0, \"uuid\": \"n1/0\", \"state\": \"idle\"},"
		"{\"node\": \"n2\", \"index\": 0, \"uuid\": \"n2/0\", \"state\": \"leased\"}]");
	HAS_LINES(&page,
		"gpulease_gpu_info{gpu=\"n1/0\",uuid=\"n1/0\",model=\"\",node=\"n1\"} 1",
		"gpulease_gpu_state{gpu=\"n1/0\",state=\"idle\"} 1",
		"gpulease_gpu_state{gpu=\"n2/0\",state=\"leased\"} 1");
	assert_null(strstr(page.text, "\ngpulease_probe_success"));
	page_end(&page);
}

/* machine_read() replaces a line feed, but the text must not depend on that. */
static void a_line_feed_in_a_label_is_escaped(void **state)
{
	struct machine machine = MACHINE_NONE;
	struct page page;

	(void)state;
	text_copy(machine.version, sizeof(machine.version), "1\n2");
	page_begin(&page);
	assert_int_equal(metrics_text_print(&machine, page.out), 0);
	HAS_LINES(&page, "gpulease_build_info{version=\"1\\n2\"} 1");
	page_end(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_gpus_has_the_whole_form),
		cmocka_unit_test(a_gpu_has_its_values_in_base_units),
		cmocka_unit_test(each_state_is_one_of_the_set),
		cmocka_unit_test(unknown_values_have_no_sample),
		cmocka_unit_test(only_a_recent_answer_with_gpus_is_a_success),
		cmocka_unit_test(instances_stand_for_a_divided_gpu),
		cmocka_unit_test(an_index_has_one_gpu),
		cmocka_unit_test(a_window_that_has_begun_keeps_its_gpus),
		cmocka_unit_test(leases_are_added_up_by_user),
		cmocka_unit_test(waiting_jobs_are_added_up_by_reason),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(gpus_of_a_cluster_have_their_nodes),
		cmocka_unit_test(a_line_feed_in_a_label_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
