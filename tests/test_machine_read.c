/*
 * Reading what gpulease prints of a machine and of ended jobs, and the tables of members by which
 * that is done (json_fields.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_fields.h"
#include "machine_read.h"

/* --- the tables ------------------------------------------------------------------ */

struct record {
	char text[8];
	int64_t number;
	double decimal;
	bool flag;
	unsigned elements;
	size_t whole; /* its size */
};

static int count_element(const struct json_value *value, void *record)
{
	((struct record *)record)->elements++;
	return value->kind == JSON_NULL ? -EDOM : 0;
}

static int note_size(const struct json_value *value, void *record)
{
	((struct record *)record)->whole = value->size;
	return 0;
}

static int read_record(const char *text, struct record *record)
{
	static const struct json_field fields[] = {
		{ "text", FIELD_TEXT, offsetof(struct record, text), sizeof(record->text),
			NULL },
		{ "number", FIELD_NUMBER, offsetof(struct record, number), 0, NULL },
		{ "decimal", FIELD_DECIMAL, offsetof(struct record, decimal), 0, NULL },
		{ "flag", FIELD_BOOL, offsetof(struct record, flag), 0, NULL },
		{ "list", FIELD_EACH, 0, 0, count_element },
		{ "whole", FIELD_WHOLE, 0, 0, note_size },
		{ NULL, FIELD_TEXT, 0, 0, NULL },
	};
	struct json_value object = {
		.kind = JSON_NESTED, .at = text, .size = strlen(text)
	};

	*record = (struct record){ .text = "old", .number = -1, .decimal = 0.5 };
	return json_fields_read(fields, &object, record);
}

static void each_kind_is_read(void **state)
{
	struct record record;

	(void)state;
	assert_int_equal(
		read_record("{\"other\":[{}],\"text\":\"a\\u0041\",\"number\":-12,"
			    "\"decimal\":12.25,\"flag\":true,\"list\":[1,\"x\",{}],"
			    "\"whole\":{\"a\":1}}",
			&record),
		0);
	assert_string_equal(record.text, "aA");
	assert_int_equal(record.number, -12);
	assert_true(record.decimal > 12.2499 && record.decimal < 12.2501);
	assert_true(record.flag);
	assert_int_equal(record.elements, 3);
	assert_int_equal(record.whole, 7);
}

static void what_does_not_fit_its_row_is_left(void **state)
{
	static const char *const objects[] = { "{}", "{\"text\":null,\"number\":null}",
		"{\"decimal\":null,\"flag\":null,\"list\":null,\"whole\":null}",
		"{\"number\":\"1\",\"decimal\":\"1\",\"flag\":1,\"list\":{\"a\":1}}",
		"{\"number\":1.5,\"decimal\":-1,\"flag\":\"true\",\"list\":\"[1]\"}",
		"{\"number\":true,\"decimal\":1e3,\"flag\":[true],\"list\":3}",
		"{\"number\":9223372036854775808,\"decimal\":1.2.3,\"list\":[]}",
		"{\"number\":[1],\"decimal\":[1]}",
		"{\"numbe\":1,\"numbers\":1,\"\":1}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		struct record record;

		assert_int_equal(read_record(objects[i], &record), 0);
		assert_string_equal(record.text, "old");
		assert_int_equal(record.number, -1);
		assert_true(record.decimal > 0.4999 && record.decimal < 0.5001);
		assert_false(record.flag);
		assert_int_equal(record.elements, 0);
		assert_int_equal(record.whole, 0);
	}
}

static void a_text_is_cut_at_a_character(void **state)
{
	static const struct {
		const char *json, *text;
	} cases[] = {
		{ "{\"text\":\"12345678\"}", "1234567" },
		{ "{\"text\":\"123456\xc3\xa4\"}", "123456" },
		{ "{\"text\":\"12345\\u00e4\"}", "12345\xc3\xa4" },
		{ "{\"text\":\"a\\u001b[2J\"}", "a?[2J" },
		{ "{\"text\":\"\xff\xfe\"}", "??" },
		{ "{\"text\":\"\"}", "" },
		{ "{\"text\":7}", "old" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record record;

		assert_int_equal(read_record(cases[i].json, &record), 0);
		assert_string_equal(record.text, cases[i].text);
	}
}

static void a_reader_can_end_the_reading(void **state)
{
	struct record record;

	(void)state;
	assert_int_equal(
		read_record("{\"list\":[1,null,2],\"number\":3}", &record), -EDOM);
	assert_int_equal(record.elements, 2);
	assert_int_equal(record.number, -1);
	assert_int_equal(read_record("{\"number\":3,\"text\":}", &record), -EINVAL);
	assert_int_equal(read_record("[]", &record), -EINVAL);
}

/* --- a machine ------------------------------------------------------------------- */

static const char whole_machine[] =
	"{\"format\":\"gpulease-status/1\",\"version\":\"0.1\",\"host\":\"lab3\","
	"\"taken_unix_ms\":1795527250000,\"simulated\":true,\"nvidia_smi\":{\"found\":true,"
	"\"answer_age_ms\":1500,\"is_old\":true,\"trouble\":\"it hangs\"},\"gpus\":["
	"{\"index\":0,\"instance\":null,\"uuid\":\"GPU-1\",\"model\":\"H100\","
	"\"memory_total_mib\":81920,\"memory_used_mib\":1024,\"utilization_percent\":97,"
	"\"state\":\"leased\",\"why\":null,\"paused\":true,\"paused_by\":\"root\","
	"\"idle_for_ms\":0,\"user\":\"alice\",\"pid\":12,\"command\":\"a\",\"leases\":["
	"{\"ticket\":412,\"attempt\":2,\"name\":\"sft\",\"user\":\"alice\",\"pid\":12,"
	"\"command\":\"python a.py\",\"age_ms\":60000,\"started_unix_ms\":1795527190000,"
	"\"limit_ms\":90000,\"lingering\":true,\"share\":0.25,\"vram_mib\":4096,"
	"\"exclusive\":true,\"peak_mib\":900,\"over_declared\":true,"
	"\"utilization_mean_percent\":50,\"unused_for_ms\":1,\"unused_ms\":2,"
	"\"unused_ok_ms\":3,\"unused\":true,\"watched\":true},{\"ticket\":413}],\"mig\":[]},"
	"{\"index\":1,\"instance\":null,\"state\":\"unknown\",\"mig\":[{\"device\":0}]},"
	"{\"index\":1,\"instance\":0,\"memory_used_mib\":null,\"mig\":[{\"device\":0}],\"leases\":[{\"ticket\":414}]}],"
	"\"queue\":[{\"position\":1,\"ticket\":420,\"attempt\":1,\"name\":null,\"user\":"
	"\"dave\",\"pid\":9,\"gpus\":4,\"share\":0.5,\"vram_mib\":1,\"exclusive\":true,"
	"\"priority\":-3,\"limit_ms\":7,\"since_unix_ms\":8,\"waits_ms\":9,"
	"\"start_at_unix_ms\":10,\"can_start\":true,\"stopped\":true,\"reason_kind\":"
	"\"behind\",\"behind\":419,\"held_by\":418,\"why\":\"behind job 419\",\"command\":"
	"null}],\"windows\":[{\"id\":1,\"gpus\":\"0,1:0\",\"has_begun\":true,"
	"\"from_unix_ms\":11,\"until_unix_ms\":12,\"but\":\"1000,1001\",\"by\":\"root\","
	"\"reason\":\"demo\"},{\"id\":2,\"gpus\":\"1\",\"has_begun\":false,"
	"\"from_unix_ms\":13,\"until_unix_ms\":null,\"but\":null,\"by\":null,"
	"\"reason\":null}],\"queue_is_cut\":true,\"running_without_gpus\":[{\"ticket\":500,"
	"\"user\":\"erin\",\"age_ms\":4}]}";

static void check_gpus(const struct machine *machine)
{
	const struct machine_gpu *gpu = machine->gpus;

	assert_int_equal(machine->gpu_count, 3);
	assert_int_equal(gpu->index, 0);
	assert_int_equal(gpu->instance, -1);
	assert_string_equal(gpu->uuid, "GPU-1");
	assert_string_equal(gpu->model, "H100");
	assert_int_equal(gpu->total_mib, 81920);
	assert_int_equal(gpu->used_mib, 1024);
	assert_int_equal(gpu->utilization_percent, 97);
	assert_string_equal(gpu->state, "leased");
	assert_string_equal(gpu->why, "");
	assert_true(gpu->is_paused);
	assert_string_equal(gpu->paused_by, "root");
	assert_int_equal(gpu->idle_for_ms, 0);
	assert_string_equal(gpu->user, "alice");
	assert_int_equal(gpu->pid, 12);
	assert_string_equal(gpu->command, "a");
	assert_false(gpu->is_divided);
	assert_true(gpu[1].is_divided);
	assert_false(gpu[2].is_divided);
	assert_int_equal(gpu[2].instance, 0);
	assert_int_equal(gpu[2].used_mib, -1);
	assert_int_equal(gpu[2].idle_for_ms, -1);
}

static void check_leases(const struct machine *machine)
{
	const struct machine_lease *lease = machine->leases;
	static const int64_t jobs[] = { 412, 413, 414, 500 };
	static const size_t gpus[] = { 0, 0, 2, SIZE_MAX };

	assert_int_equal(machine->lease_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(lease[i].job, jobs[i]);
		assert_true(lease[i].gpu == gpus[i]);
	}
	assert_int_equal(lease->attempt, 2);
	assert_string_equal(lease->name, "sft");
	assert_string_equal(lease->user, "alice");
	assert_string_equal(lease->command, "python a.py");
	assert_int_equal(lease->pid, 12);
	assert_int_equal(lease->age_ms, 60000);
	assert_int_equal(lease->started_unix_ms, 1795527190000);
	assert_int_equal(lease->limit_ms, 90000);
	assert_int_equal(lease->vram_mib, 4096);
	assert_int_equal(lease->peak_mib, 900);
	assert_true(lease->share > 0.2499 && lease->share < 0.2501);
	assert_true(lease->is_lingering && lease->is_exclusive);
	assert_true(lease->is_over_declared && lease->is_unused && lease->is_watched);
	assert_int_equal(lease->utilization_percent, 50);
	assert_int_equal(lease->unused_for_ms, 1);
	assert_int_equal(lease->unused_ms, 2);
	assert_int_equal(lease->unused_ok_ms, 3);
}

static void check_queue(const struct machine *machine)
{
	const struct machine_ticket *ticket = machine->queue;

	assert_int_equal(machine->queue_count, 1);
	assert_true(machine->is_queue_cut);
	assert_int_equal(ticket->position, 1);
	assert_int_equal(ticket->job, 420);
	assert_int_equal(ticket->attempt, 1);
	assert_int_equal(ticket->pid, 9);
	assert_int_equal(ticket->gpus, 4);
	assert_int_equal(ticket->vram_mib, 1);
	assert_int_equal(ticket->priority, -3);
	assert_int_equal(ticket->limit_ms, 7);
	assert_int_equal(ticket->since_unix_ms, 8);
	assert_int_equal(ticket->waits_ms, 9);
	assert_int_equal(ticket->start_at_unix_ms, 10);
	assert_int_equal(ticket->behind, 419);
	assert_int_equal(ticket->held_by, 418);
	assert_true(ticket->is_exclusive && ticket->is_stopped && ticket->can_start);
	assert_string_equal(ticket->name, "");
	assert_string_equal(ticket->user, "dave");
	assert_string_equal(ticket->reason_kind, "behind");
	assert_string_equal(ticket->why, "behind job 419");
}

static void check_windows(const struct machine *machine)
{
	const struct machine_window *window = machine->windows;

	assert_int_equal(machine->window_count, 2);
	assert_string_equal(window->gpus, "0,1:0");
	assert_true(window->has_begun);
	assert_int_equal(window->from_unix_ms, 11);
	assert_int_equal(window->until_unix_ms, 12);
	assert_string_equal(window->but, "1000,1001");
	assert_string_equal(window->by, "root");
	assert_string_equal(window->reason, "demo");
	assert_false(window[1].has_begun);
	assert_int_equal(window[1].until_unix_ms, -1);
	assert_string_equal(window[1].by, "");
}

static void all_members_of_a_machine_are_read(void **state)
{
	struct machine machine = MACHINE_NONE;

	(void)state;
	assert_int_equal(
		machine_read(whole_machine, sizeof(whole_machine) - 1, &machine), 0);
	assert_string_equal(machine.host, "lab3");
	assert_string_equal(machine.version, "0.1");
	assert_int_equal(machine.taken_unix_ms, 1795527250000);
	assert_true(machine.is_simulated && machine.has_nvidia_smi);
	assert_true(machine.is_answer_old);
	assert_int_equal(machine.answer_age_ms, 1500);
	assert_string_equal(machine.trouble, "it hangs");
	check_gpus(&machine);
	check_leases(&machine);
	check_queue(&machine);
	check_windows(&machine);
	machine_release(&machine);
	assert_null(machine.gpus);
	machine_release(&machine);
}

static int read_text(const char *text, struct machine *machine)
{
	return machine_read(text, strlen(text), machine);
}

static void missing_members_are_unknown(void **state)
{
	struct machine machine = MACHINE_NONE;

	(void)state;
	assert_int_equal(read_text("{\"taken_unix_ms\":1,\"gpus\":[{\"leases\":[{}]}],"
				   "\"queue\":[{}],\"running_without_gpus\":[{}]}",
				 &machine),
		0);
	assert_int_equal(machine.answer_age_ms, -1);
	assert_int_equal(machine.gpus[0].index, -1);
	assert_int_equal(machine.gpus[0].total_mib, -1);
	assert_int_equal(machine.gpus[0].utilization_percent, -1);
	assert_int_equal(machine.gpus[0].pid, -1);
	assert_int_equal(machine.lease_count, 2);
	for (size_t i = 0; i < machine.lease_count; i++) {
		assert_int_equal(machine.leases[i].job, -1);
		assert_int_equal(machine.leases[i].limit_ms, -1);
		assert_int_equal(machine.leases[i].unused_for_ms, -1);
		assert_int_equal(machine.leases[i].unused_ms, -1);
		assert_int_equal(machine.leases[i].unused_ok_ms, -1);
		assert_int_equal(machine.leases[i].utilization_percent, -1);
		assert_false(machine.leases[i].is_watched);
	}
	assert_int_equal(machine.queue[0].job, -1);
	assert_int_equal(machine.queue[0].priority, 0);
	assert_int_equal(machine.queue[0].start_at_unix_ms, -1);
	machine_release(&machine);
}

static void a_machine_replaces_the_one_before(void **state)
{
	struct machine machine = MACHINE_NONE;
	const struct machine_gpu *gpus;

	(void)state;
	assert_int_equal(read_text(whole_machine, &machine), 0);
	gpus = machine.gpus;
	assert_int_equal(
		read_text("{\"taken_unix_ms\":5,\"gpus\":[{\"index\":7}]}", &machine), 0);
	assert_ptr_equal(machine.gpus, gpus); /* the same memory */
	assert_int_equal(machine.gpu_count, 1);
	assert_string_equal(machine.gpus[0].model, "");
	assert_int_equal(machine.lease_count, 0);
	assert_int_equal(machine.queue_count, 0);
	assert_int_equal(machine.window_count, 0);
	assert_false(machine.is_queue_cut || machine.is_simulated);
	assert_string_equal(machine.trouble, "");
	assert_string_equal(machine.host, "");
	machine_release(&machine);
}

static void a_text_that_ends_early_is_refused(void **state)
{
	struct machine machine = MACHINE_NONE;
	char *copy;

	(void)state;
	for (size_t size = 0; size < sizeof(whole_machine) - 1; size++) {
		/* a copy without a byte behind it, so that sanitizers see a read too far */
		copy = malloc(size + !size);
		assert_non_null(copy);
		memcpy(copy, whole_machine, size);
		assert_int_equal(machine_read(copy, size, &machine), -EINVAL);
		assert_int_equal(machine.gpu_count, 0);
		assert_int_equal(machine.lease_count, 0);
		assert_int_equal(machine.queue_count, 0);
		assert_int_equal(machine.taken_unix_ms, -1);
		free(copy);
	}
	machine_release(&machine);
}

static void what_is_no_machine_is_refused(void **state)
{
	static const char *const texts[] = { "", " ", "null", "7", "[]", "{}",
		"{\"gpus\":[]}", "{\"taken_unix_ms\":null}", "{\"taken_unix_ms\":\"1\"}",
		"gpulease: cannot", "{\"taken_unix_ms\":1} {}",
		"{\"taken_unix_ms\":1,\"gpus\":[7]}",
		"{\"taken_unix_ms\":1,\"queue\":[[]]}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct machine machine = MACHINE_NONE;

		if (read_text(texts[i], &machine) != -EINVAL)
			fail_msg("'%s' was read", texts[i]);
		machine_release(&machine);
	}
}

/* --- ended jobs ------------------------------------------------------------------ */

static const char whole_history[] =
	"{\"format\":\"gpulease-history/1\",\"taken_unix_ms\":9,\"missing_lines\":2,"
	"\"missing_unix_ms\":8,\"jobs\":[{\"ticket\":407,\"attempt\":3,\"uid\":1000,"
	"\"gpu_count\":4,\"instance\":1,\"waited_ms\":10,\"started_unix_ms\":11,"
	"\"alive_unix_ms\":12,\"gone_unix_ms\":13,\"ran_at_least_ms\":14,"
	"\"ran_at_most_ms\":15,\"status\":137,\"utilization_mean_percent\":61,"
	"\"unused_ms\":16,\"unused_at_end_ms\":17,\"share\":0.5,\"gpu_seconds\":12.5,"
	"\"user\":\"erin\",\"name\":\"hw2\",\"state\":\"oom\",\"how\":\"oom\",\"by\":\"root\","
	"\"command\":\"python hw2.py\",\"gpus\":[0,3,\"x\",300,-1,127],"
	"\"peak_mib\":[5,null,70,6]},{\"ticket\":408,\"gpus\":[],\"status\":null}]}";

static void all_members_of_ended_jobs_are_read(void **state)
{
	struct ended_jobs jobs = ENDED_JOBS_NONE;
	const struct ended_job *job;

	(void)state;
	assert_int_equal(
		ended_jobs_read(whole_history, sizeof(whole_history) - 1, &jobs), 0);
	assert_int_equal(jobs.taken_unix_ms, 9);
	assert_int_equal(jobs.missing_lines, 2);
	assert_int_equal(jobs.missing_unix_ms, 8);
	assert_int_equal(jobs.count, 2);
	job = jobs.list;
	assert_int_equal(job->job, 407);
	assert_int_equal(job->attempt, 3);
	assert_int_equal(job->uid, 1000);
	assert_int_equal(job->gpu_count, 4);
	assert_int_equal(job->instance, 1);
	assert_int_equal(job->waited_ms, 10);
	assert_int_equal(job->started_unix_ms, 11);
	assert_int_equal(job->alive_unix_ms, 12);
	assert_int_equal(job->gone_unix_ms, 13);
	assert_int_equal(job->ran_least_ms, 14);
	assert_int_equal(job->ran_most_ms, 15);
	assert_int_equal(job->status, 137);
	assert_int_equal(job->utilization_percent, 61);
	assert_int_equal(job->unused_ms, 16);
	assert_int_equal(job->unused_at_end_ms, 17);
	assert_true(job->share > 0.4999 && job->share < 0.5001);
	assert_true(job->gpu_seconds > 12.4999 && job->gpu_seconds < 12.5001);
	assert_string_equal(job->user, "erin");
	assert_string_equal(job->name, "hw2");
	assert_string_equal(job->state, "oom");
	assert_string_equal(job->how, "oom");
	assert_string_equal(job->by, "root");
	assert_string_equal(job->command, "python hw2.py");
	assert_int_equal(job->gpu_listed, 3);
	assert_int_equal(job->gpus[2], 127);
	assert_int_equal(job->peak_mib, 70);
	assert_int_equal(job[1].job, 408);
	assert_int_equal(job[1].status, -1);
	assert_int_equal(job[1].peak_mib, -1);
	assert_int_equal(job[1].gpu_listed, 0);
	ended_jobs_release(&jobs);
	ended_jobs_release(&jobs);
}

static void a_history_that_ends_early_is_refused(void **state)
{
	struct ended_jobs jobs = ENDED_JOBS_NONE;

	(void)state;
	for (size_t size = 0; size < sizeof(whole_history) - 1; size++) {
		assert_int_equal(ended_jobs_read(whole_history, size, &jobs), -EINVAL);
		assert_int_equal(jobs.count, 0);
		assert_int_equal(jobs.missing_unix_ms, -1);
	}
	assert_int_equal(ended_jobs_read("{\"jobs\":[]}", 11, &jobs), -EINVAL);
	ended_jobs_release(&jobs);
}

/* A list of more GPUs than there is room for is cut. */
static void a_job_has_at_most_128_gpus(void **state)
{
	struct ended_jobs jobs = ENDED_JOBS_NONE;
	char json[2048];
	struct text text = TEXT_ON(json);

	(void)state;
	text_add(&text, "{\"taken_unix_ms\":1,\"jobs\":[{\"gpus\":[0");
	for (unsigned i = 1; i < 200; i++)
		text_addf(&text, ",%u", i);
	text_add(&text, "]}]}");
	assert_int_equal(ended_jobs_read(json, text.used, &jobs), 0);
	assert_int_equal(jobs.list[0].gpu_listed, 128);
	assert_int_equal(jobs.list[0].gpus[127], 127);
	ended_jobs_release(&jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_read),
		cmocka_unit_test(what_does_not_fit_its_row_is_left),
		cmocka_unit_test(a_text_is_cut_at_a_character),
		cmocka_unit_test(a_reader_can_end_the_reading),
		cmocka_unit_test(all_members_of_a_machine_are_read),
		cmocka_unit_test(missing_members_are_unknown),
		cmocka_unit_test(a_machine_replaces_the_one_before),
		cmocka_unit_test(a_text_that_ends_early_is_refused),
		cmocka_unit_test(what_is_no_machine_is_refused),
		cmocka_unit_test(all_members_of_ended_jobs_are_read),
		cmocka_unit_test(a_history_that_ends_early_is_refused),
		cmocka_unit_test(a_job_has_at_most_128_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
