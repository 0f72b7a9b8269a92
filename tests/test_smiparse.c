#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "scratch.h"
#include "smilist.h"

#define UUID0 "GPU-00000000-aaaa-0000-0000-000000000000"
#define UUID1 "GPU-11111111-aaaa-0000-0000-000000000000"
#define ROW0 "0, " UUID0 ", 00000000:01:00.0, 24576, 507, 3, [N/A], Default, NVIDIA A30\n"
#define ROW1 \
	"1, " UUID1 ", 00000000:0C:00.0, 24576, 2, 0, Disabled, Default, NVIDIA A30\n"
#define CANNOT "Unable to determine the device handle for GPU"

static struct smi_output output_from(const char *out, const char *err, int exit_code)
{
	return (struct smi_output){
		.out = out,
		.out_size = strlen(out),
		.err = err,
		.err_size = strlen(err),
		.exit_code = exit_code,
	};
}

/* What the texts of both queries come to, both having ended well. */
static const struct probe *parse(const char *gpus, const char *processes)
{
	static struct probe probe;
	struct smi_output output = output_from(gpus, "", 0);

	probe = (struct probe){ 0 };
	smi_parse_gpus(&output, SMI_ALL, &probe);
	output = output_from(processes, "", 0);
	smi_parse_processes(&output, &probe);
	return &probe;
}

static void healthy_rows_are_read_in_full(void **state)
{
	const struct probe *probe = parse(ROW0 ROW1, "");
	const struct probe_gpu *gpu = &probe->gpus[1];

	(void)state;
	assert_int_equal(probe->gpu_count, 2);
	assert_string_equal(probe->trouble.text, "");
	assert_true(probe->gpus[0].is_known);
	assert_true(probe->gpus[0].used_mib == 507);
	assert_int_equal(probe->gpus[0].utilization, 3);
	assert_int_equal(gpu->index, 1);
	assert_string_equal(gpu->uuid, UUID1);
	assert_string_equal(gpu->bus_id, "0000:0c:00.0");
	assert_true(gpu->total_mib == 24576 && gpu->used_mib == 2);
	assert_string_equal(gpu->compute_mode, "Default");
	assert_string_equal(gpu->name, "NVIDIA A30");
	assert_false(gpu->has_mig);
	assert_string_equal(gpu->trouble, "");
}

/* --- one row ------------------------------------------------------------------------- */

static const struct row_case {
	const char *row;
	const char *trouble; /* "" for a known GPU */
	uint64_t total_mib, used_mib;
} row_cases[] = {
	{ "0, GPU-A, 00000000:01:00.0, 81559, 19818, 100, Enabled, Default, H100", "",
		81559, 19818 },
	/* as old drivers write it, with another end of line, with units */
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, [Not Supported], n/a, Default, K2200", "",
		2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, [N/A], Default, K2200\r", "", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 81559 MiB, 12 MiB, 7 %, [N/A], Default, X", "", 81559,
		12 },
	{ "0,GPU-A,0000:04:00.0,2004,0,0,[N/A],Default,X", "", 2004, 0 },
	{ "0, GPU-A, [N/A], 2004, 0, [N/A], [Function Not Found], [N/A], [N/A]", "", 2004,
		0 },
	/* a broken GPU often reads as empty */
	{ "0, GPU-A, 0000:04:00.0, [GPU requires reset], 0, 0, [N/A], Default, X",
		"memory.total is [GPU requires reset]", 0, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, [GPU requires reset], [N/A], Default, X",
		"utilization.gpu is [GPU requires reset]", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, [GPU is lost], Default, X",
		"mig.mode.current is [GPU is lost]", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, [Unknown Error], 0, [N/A], Default, X",
		"memory.used is [Unknown Error]", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, unknown error, 0, [N/A], Default, X",
		"memory.used is unknown error", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, [N/A], ERR!, X", "compute_mode is ERR!",
		2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, [N/A], Default, [A new kind of trouble]",
		"name is [A new kind of trouble]", 2004, 0 },
	{ "[Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], "
	  "[Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]",
		"index is [Unknown Error]", 0, 0 },
	{ "0, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], Orin (nvgpu)",
		"uuid is [N/A]", 0, 0 },
	{ "0, GPU-????????, 0000:04:00.0, 2004, 0, 0, [N/A], Default, X",
		"uuid is GPU-????????", 2004, 0 },
	{ "0, GPU-A/../B, 0000:04:00.0, 2004, 0, 0, [N/A], Default, X",
		"uuid is GPU-A/../B", 2004, 0 },
	/* numbers that are none */
	{ "0, GPU-A, 0000:04:00.0, 2004, -1, 0, [N/A], Default, X", "memory.used is -1",
		2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, , 0, [N/A], Default, X", "memory.used is empty",
		2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 0, 0, 0, [N/A], Default, X", "memory.total is 0", 0,
		0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 18446744073709551616, 0, [N/A], Default, X",
		"memory.used is 18446744073709551616", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 101, [N/A], Default, X",
		"utilization.gpu is 101", 2004, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, Perhaps, Default, X",
		"mig.mode.current is Perhaps", 2004, 0 },
	{ "0, GPU-A, 0000:0400.0, 2004, 0, 0, [N/A], Default, X",
		"pci.bus_id is 0000:0400.0", 2004, 0 },
	/* columns that are missing */
	{ "0, GPU-A, 0000:04:00.0, 2004, 0", "its row ends before utilization.gpu", 2004,
		0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, 0, 0, [N/A], Default",
		"its row ends before name", 2004, 0 },
	{ "0, GPU-A", "its row ends before pci.bus_id", 0, 0 },
	/* only one of the two memory columns is known */
	{ "0, GPU-A, 0000:04:00.0, [N/A], 5, 0, [N/A], Default, X",
		"memory.total is unknown", 0, 0 },
	{ "0, GPU-A, 0000:04:00.0, 2004, [N/A], 0, [N/A], Default, X",
		"memory.used is unknown", 2004, 0 },
};

static void every_form_of_a_row_is_known_or_has_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row_cases); i++) {
		const struct row_case *c = &row_cases[i];
		const struct probe *probe = parse(c->row, "");
		const struct probe_gpu *gpu = &probe->gpus[0];
		bool is_known = c->trouble[0] == '\0';

		assert_int_equal(probe->gpu_count, 1);
		assert_string_equal(gpu->trouble, c->trouble);
		assert_int_equal(gpu->is_known, is_known);
		assert_true(gpu->total_mib == c->total_mib);
		assert_true(
			gpu->used_mib == (is_known ? c->used_mib : PROBE_MIB_UNKNOWN));
		assert_string_equal(probe->trouble.text, "");
	}
}

static void commas_in_a_name_stay_in_the_name(void **state)
{
	const struct probe *probe =
		parse("0, GPU-A, 0000:04:00.0, 9, 1, 0, [N/A], Default, A, B,C", "");

	(void)state;
	assert_string_equal(probe->gpus[0].name, "A, B,C");
	assert_true(probe->gpus[0].is_known);
}

static void bus_ids_are_written_as_sysfs_does(void **state)
{
	static const char *const cases[][2] = {
		{ "00000000:0C:00.0", "0000:0c:00.0" },
		{ "0000:04:00.0", "0000:04:00.0" },
		{ "0000000F:01:00.0", "000f:01:00.0" },
		{ "00010000:FF:1F.7", "10000:ff:1f.7" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char row[200];

		(void)snprintf(row, sizeof(row),
			"0, GPU-A, %s, 9, 1, 0, [N/A], Default, X", cases[i][0]);
		assert_string_equal(parse(row, "")->gpus[0].bus_id, cases[i][1]);
	}
}

static void mig_and_closed_gpus_are_known_and_marked(void **state)
{
	const struct probe *probe =
		parse("0, GPU-A, 0000:04:00.0, 9, 1, [N/A], Enabled, prohibited, X\n"
		      "1, GPU-B, 0000:05:00.0, 9, 1, 0, Disabled, Exclusive_Process, X\n",
			"");

	(void)state;
	assert_true(probe->gpus[0].is_known && probe->gpus[0].has_mig);
	assert_int_equal(probe->gpus[0].utilization, -1);
	assert_true(probe_gpu_is_prohibited(&probe->gpus[0]));
	assert_true(probe->gpus[1].is_known && !probe->gpus[1].has_mig);
	assert_false(probe_gpu_is_prohibited(&probe->gpus[1]));
}

static void control_characters_do_not_reach_the_result(void **state)
{
	static const char row[] = "0, GPU-A, 0000:04:00.0, 9, 1, 0, [N/A], Default, "
				  "A\0\033[1mB\n0, \0, x\n";
	static struct probe probe;
	struct smi_output output = { .out = row, .out_size = sizeof(row) - 1 };

	(void)state;
	probe = (struct probe){ 0 };
	smi_parse_gpus(&output, SMI_ALL, &probe);
	assert_string_equal(probe.gpus[0].name, "A??[1mB");
	assert_int_equal(probe.gpu_count, 2);
	assert_string_equal(probe.gpus[1].trouble, "uuid is ?");
}

/* --- GPUs that cannot be opened ------------------------------------------------------ */

static const struct lost_case {
	const char *message;
	int index;
	const char *bus_id, *trouble;
} lost_cases[] = {
	{ CANNOT " 0000:0B:00.0: Unknown Error", -1, "0000:0b:00.0", "Unknown Error" },
	{ CANNOT "0000:07:00.0: Unknown Error", -1, "0000:07:00.0", "Unknown Error" },
	{ CANNOT "3: 0000:24:00.0: GPU is lost.  Reboot the system to recover this GPU",
		3, "0000:24:00.0",
		"GPU is lost.  Reboot the system to recover this GPU" },
	{ CANNOT " 00000000:0B:00.0: GPU is lost", -1, "0000:0b:00.0", "GPU is lost" },
	{ CANNOT "5: what is this", 5, "", "what is this" },
	{ CANNOT, -1, "", "the driver cannot open it" },
};

static void a_lost_gpu_is_kept_as_an_unknown_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lost_cases); i++) {
		const struct lost_case *c = &lost_cases[i];
		char text[400];
		const struct probe *probe;
		const struct probe_gpu *lost;

		(void)snprintf(text, sizeof(text), "%s\n%s", c->message, ROW1);
		probe = parse(text, "");
		assert_int_equal(probe->gpu_count, 2);
		lost = &probe->gpus[0];
		assert_false(lost->is_known);
		assert_int_equal(lost->index, c->index);
		assert_string_equal(lost->bus_id, c->bus_id);
		assert_string_equal(lost->trouble, c->trouble);
		assert_true(lost->used_mib == PROBE_MIB_UNKNOWN);
		assert_true(probe->gpus[1].is_known);
	}
}

static void a_lost_gpu_is_kept_from_stderr_and_after_a_bad_exit(void **state)
{
	struct smi_output output =
		output_from(ROW1, CANNOT " 0000:0B:00.0: Unknown Error\n", 15);
	static struct probe probe;

	(void)state;
	probe = (struct probe){ 0 };
	smi_parse_gpus(&output, SMI_ALL, &probe);
	assert_int_equal(probe.gpu_count, 2);
	assert_true(probe.gpus[0].is_known);
	assert_string_equal(probe.gpus[1].bus_id, "0000:0b:00.0");
	output = output_from("", "", 15);
	smi_parse_processes(&output, &probe);
	assert_true(probe.gpus[0].is_known);
}

static void a_row_of_errors_and_its_message_are_one_gpu(void **state)
{
	const struct probe *probe = parse(ROW0 CANNOT
		"0000:02:00.0: Unknown Error\n"
		"[Unknown Error], [Unknown Error], [Unknown Error], "
		"[Unknown Error], [Unknown Error], [Unknown Error], "
		"[Unknown Error], [Unknown Error], [Unknown Error]\n" ROW1,
		"");

	(void)state;
	assert_int_equal(probe->gpu_count, 3);
	assert_string_equal(probe->gpus[1].bus_id, "0000:02:00.0");
	assert_true(probe->gpus[0].is_known && probe->gpus[2].is_known);
}

static void a_message_about_a_listed_gpu_makes_it_unknown(void **state)
{
	const struct probe *probe =
		parse(ROW0 ROW1, CANNOT " 0000:01:00.0: Unknown Error\n");

	(void)state;
	assert_int_equal(probe->gpu_count, 2);
	assert_string_equal(probe->gpus[0].trouble, "Unknown Error");
	assert_true(probe->gpus[1].is_known);
}

static void gpus_of_one_uuid_are_both_unknown(void **state)
{
	const struct probe *probe = parse(ROW0 ROW1 ROW0, "");

	(void)state;
	assert_int_equal(probe->gpu_count, 3);
	assert_false(probe->gpus[0].is_known);
	assert_true(probe->gpus[1].is_known);
	assert_false(probe->gpus[2].is_known);
	assert_int_equal(probe_find_gpu(probe, UUID0), 0);
	assert_string_equal(probe->gpus[2].uuid, "");
}

static void rows_beyond_the_table_are_left_out(void **state)
{
	static char text[200 * 100];
	struct text rows = TEXT_ON(text);

	(void)state;
	for (int i = 0; i < 140; i++)
		text_addf(&rows, "%d, GPU-%d, 0000:04:00.0, 9, 1, 0, [N/A], Default, X\n",
			i, i);
	assert_int_equal(parse(text, "")->gpu_count, GPUSET_MAX);
}

/* --- the exit ------------------------------------------------------------------------ */

static const struct exit_case {
	const char *out, *err;
	int exit_code, signal;
	const char *trouble; /* of the probe; "" where GPU 0 is known */
} exit_cases[] = {
	{ ROW0, "", 0, 0, "" },
	{ ROW0, "", 14, 0, "" },
	{ "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n" ROW0, "", 14, 0, "" },
	{ ROW0, "", -1, 0, "" },
	{ "No devices were found\n", "", 0, 0, "nvidia-smi: No devices were found" },
	{ "No devices were found\n", "", 6, 0,
		"nvidia-smi: No devices were found (exit status 6)" },
	{ "", "", 0, 0, "nvidia-smi: no GPU listed" },
	{ "\n\n", "", 0, 0, "nvidia-smi: no GPU listed" },
	{ "", "", 12, 0, "nvidia-smi: no message (exit status 12)" },
	{ "", "cannot open shared object\n", 127, 0,
		"nvidia-smi: cannot open shared object (exit status 127)" },
	{ "Failed to initialize NVML: Driver/library version mismatch\n"
	  "NVML library version: 535.161\n",
		"", 18, 0,
		"nvidia-smi: Failed to initialize NVML: Driver/library version mismatch "
		"(exit status 18)" },
	{ "Failed to initialize NVML: Unknown Error\n", "", 255, 0,
		"nvidia-smi: Failed to initialize NVML: Unknown Error (exit status 255)" },
	{ "", "", -1, 9, "nvidia-smi was killed by signal 9" },
	{ "bad\033[1m\ttext", "", 1, 0, "nvidia-smi: bad?[1m?text (exit status 1)" },
};

static void the_exit_decides_whether_there_is_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(exit_cases); i++) {
		const struct exit_case *c = &exit_cases[i];
		struct smi_output output = output_from(c->out, c->err, c->exit_code);
		static struct probe probe;
		bool is_good = c->trouble[0] == '\0';

		probe = (struct probe){ 0 };
		output.signal = c->signal;
		smi_parse_gpus(&output, SMI_ALL, &probe);
		assert_string_equal(probe.trouble.text, c->trouble);
		assert_int_equal(probe.gpu_count, is_good ? 1 : 0);
		assert_int_equal(probe.gpus[0].is_known, is_good);
	}
}

static void rows_before_a_bad_end_are_unknown(void **state)
{
	static const struct {
		const char *out;
		int exit_code, signal;
		bool is_cut;
		const char *trouble;
	} cases[] = {
		{ ROW0, 255, 0, false, "nvidia-smi: no message (exit status 255)" },
		{ ROW0, -1, 11, false, "nvidia-smi was killed by signal 11" },
		{ ROW0, 0, 0, true, "nvidia-smi wrote more than can be read" },
		{ ROW0 "1, GPU-", -1, 0, false,
			"nvidia-smi stopped in the middle of a line" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct smi_output output =
			output_from(cases[i].out, "", cases[i].exit_code);
		static struct probe probe;

		probe = (struct probe){ 0 };
		output.signal = cases[i].signal;
		output.is_cut = cases[i].is_cut;
		smi_parse_gpus(&output, SMI_ALL, &probe);
		assert_false(probe.gpus[0].is_known);
		assert_string_equal(probe.gpus[0].trouble, cases[i].trouble);
	}
}

static void only_an_optional_field_can_be_refused(void **state)
{
	static const struct {
		const char *out;
		int exit_code;
		unsigned field;
	} cases[] = {
		{ "Field \"mig.mode.current\" is not a valid field to query.\n\n", 2,
			SMI_MIG_MODE },
		{ "Field \"compute_mode\" is not a valid field to query.\n", 2,
			SMI_COMPUTE_MODE },
		{ "note\nField \"utilization.gpu\" is not a valid field to query.", -1,
			SMI_UTILIZATION },
		{ "Field \"uuid\" is not a valid field to query.\n", 2, 0 },
		{ "Field \"device_minor\" is not a valid field to query.\n", 2, 0 },
		{ "Field \"compute_mode\" is not a valid field to query.\n", 0, 0 },
		{ "Field \"compute_mode\" is new.\n", 2, 0 },
		{ "Field \"compute_mode", 2, 0 },
		{ "", 2, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct smi_output output =
			output_from(cases[i].out, "", cases[i].exit_code);

		assert_int_equal(smi_refused_field(&output), cases[i].field);
	}
}

static void a_query_without_optional_fields_is_read_by_its_own_columns(void **state)
{
	static struct probe probe;
	struct smi_output output =
		output_from("0, GPU-A, 0000:04:00.0, 9, 1, Default, X\n", "", 0);
	char query[SMI_QUERY_SIZE];

	(void)state;
	smi_gpu_query(SMI_ALL & ~(unsigned)(SMI_MIG_MODE | SMI_UTILIZATION), query);
	assert_string_equal(query,
		"--query-gpu=index,uuid,pci.bus_id,memory.total,memory.used,"
		"compute_mode,name");
	smi_gpu_query(SMI_ALL, query);
	assert_string_equal(query,
		"--query-gpu=index,uuid,pci.bus_id,memory.total,memory.used,"
		"utilization.gpu,mig.mode.current,compute_mode,name");
	probe = (struct probe){ 0 };
	smi_parse_gpus(
		&output, SMI_ALL & ~(unsigned)(SMI_MIG_MODE | SMI_UTILIZATION), &probe);
	assert_true(probe.gpus[0].is_known);
	assert_int_equal(probe.gpus[0].utilization, -1);
	assert_string_equal(probe.gpus[0].name, "X");
}

/* --- processes ----------------------------------------------------------------------- */

static void processes_belong_to_the_gpu_of_their_uuid(void **state)
{
	const struct probe *probe = parse(ROW0 ROW1, UUID1
		", 4711, 2566\n" UUID0 ", 4711, [N/A]\r\n" UUID1
		", [Insufficient Permissions], 12\n"
		"GPU-elsewhere, 5, 5\nNo running processes found\n" UUID0 ", 12, 3 MiB");

	(void)state;
	assert_int_equal(probe->process_count, 4);
	assert_int_equal(probe->processes[0].gpu, 1);
	assert_int_equal(probe->processes[0].pid, 4711);
	assert_true(probe->processes[0].used_mib == 2566);
	assert_int_equal(probe->processes[1].gpu, 0);
	assert_true(probe->processes[1].used_mib == PROBE_MIB_UNKNOWN);
	assert_int_equal(probe->processes[2].pid, 0);
	assert_true(probe->processes[2].used_mib == 12);
	assert_true(probe->processes[3].used_mib == 3);
	assert_true(probe->gpus[0].is_known && probe->gpus[1].is_known);
}

static void a_malformed_process_row_makes_its_gpu_unknown(void **state)
{
	static const char *const rows[] = { UUID0 ", 4711\n", UUID0 ", 4711, 12, 13\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct probe *probe = parse(ROW0 ROW1, rows[i]);

		assert_string_equal(
			probe->gpus[0].trouble, "a process row does not have 3 columns");
		assert_true(probe->gpus[1].is_known);
		assert_int_equal(probe->process_count, 0);
	}
}

static void unreadable_processes_make_all_gpus_unknown(void **state)
{
	static const struct {
		const char *out;
		int exit_code;
	} cases[] = {
		{ "Failed to initialize NVML: Unknown Error\n", 255 },
		{ "", 1 },
		{ UUID0 ", 4711, 12\n", 255 },
		{ UUID0 ", 4711, 1", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct probe probe;
		struct smi_output output = output_from(ROW0 ROW1, "", 0);

		probe = (struct probe){ 0 };
		smi_parse_gpus(&output, SMI_ALL, &probe);
		output = output_from(cases[i].out, "", cases[i].exit_code);
		smi_parse_processes(&output, &probe);
		assert_false(probe.gpus[0].is_known);
		assert_false(probe.gpus[1].is_known);
		assert_memory_equal(probe.gpus[0].trouble, "processes: nvidia-smi", 21);
	}
}

static void a_failed_process_query_is_not_excused_by_a_sick_gpu(void **state)
{
	static const char *const outputs[] = {
		"Failed to initialize NVML: Unknown Error\n",
		CANNOT
		" 0000:0B:00.0: Unknown Error\nFailed to initialize NVML: Unknown Error\n",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		static struct probe probe;
		struct smi_output output =
			output_from(ROW0 CANNOT " 0000:0B:00.0: Unknown Error", "", 0);

		probe = (struct probe){ 0 };
		smi_parse_gpus(&output, SMI_ALL, &probe);
		assert_true(probe.gpus[0].is_known);
		output = output_from(outputs[i], "", 255);
		smi_parse_processes(&output, &probe);
		assert_false(probe.gpus[0].is_known);
	}
}

static void more_processes_than_fit_make_their_gpu_unknown(void **state)
{
	static char text[600 * 60];
	struct text rows = TEXT_ON(text);
	const struct probe *probe;

	(void)state;
	for (int i = 1; i <= PROBE_PROCESSES_MAX + 1; i++)
		text_addf(&rows, "%s, %d, 1\n", UUID1, i);
	probe = parse(ROW0 ROW1, text);
	assert_int_equal(probe->process_count, PROBE_PROCESSES_MAX);
	assert_true(probe->gpus[0].is_known);
	assert_string_equal(probe->gpus[1].trouble, "more than 512 processes");
}

#define UNIFIED     \
	"0, " UUID0 \
	", 0000000F:01:00.0, [N/A], [Not Supported], 0, [N/A], Default, GB10\n"

static void unified_memory_in_use_is_the_sum_over_the_processes(void **state)
{
	static const struct {
		const char *processes;
		bool is_known;
		uint64_t used_mib;
	} cases[] = {
		{ "", true, 0 },
		{ UUID0 ", 77, 100\n" UUID0 ", 78, 23\n", true, 123 },
		{ UUID0 ", 77, 100\n" UUID0 ", 78, [N/A]\n", false, PROBE_MIB_UNKNOWN },
		{ UUID0 ", 77, 100\n[Not Found], 78, 5\n", false, PROBE_MIB_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct probe_gpu *gpu =
			&parse(UNIFIED, cases[i].processes)->gpus[0];

		assert_int_equal(gpu->is_known, cases[i].is_known);
		assert_true(gpu->total_mib == 0 && gpu->used_mib == cases[i].used_mib);
	}
}

/* --- MIG instances ------------------------------------------------------------------- */

#define LISTED0 "GPU 0: NVIDIA A30 (UUID: " UUID0 ")\n"
#define LISTED1 "GPU 1: NVIDIA A30 (UUID: " UUID1 ")\n"

/* What the list comes to after ROW0 and ROW1. */
static const struct probe *parse_list(const struct smi_output *output)
{
	static struct probe probe;
	struct probe_mig untouched;

	probe = *parse(ROW0 ROW1, "");
	memset(probe.migs, 0x55, sizeof(probe.migs));
	smi_parse_list(output, &probe);
	memset(&untouched, 0x55, sizeof(untouched));
	for (uint32_t i = probe.mig_count; i < PROBE_MIGS_MAX; i++)
		assert_memory_equal(&probe.migs[i], &untouched, sizeof(untouched));
	assert_int_equal(probe.gpu_count, 2);
	assert_true(probe.gpus[0].is_known && probe.gpus[1].is_known);
	return &probe;
}

static const struct probe *parse_good_list(const char *text)
{
	struct smi_output output = output_from(text, "", 0);

	return parse_list(&output);
}

static void instances_are_listed_if_a_row_says_mig_is_enabled(void **state)
{
	static const struct {
		const char *out;
		unsigned fields;
		bool has_mig;
	} cases[] = {
		{ ROW0 ROW1, SMI_ALL, false },
		{ ROW0 "1, GPU-A, 0000:04:00.0, 9, 1, [N/A], Enabled, Default, X\n",
			SMI_ALL, true },
		/* also of a GPU that is not known */
		{ "1, GPU-A, 0000:04:00.0, 9, [Unknown Error], 0, Enabled, Default, X",
			SMI_ALL, true },
		{ "0, GPU-A, 0000:04:00.0, 9, 1, 0, Disabled, Default, Enabled", SMI_ALL,
			false },
		{ "0, GPU-A, 0000:04:00.0, 9, 1, 0, Default, Enabled",
			SMI_ALL & ~(unsigned)SMI_MIG_MODE, false },
		{ "No devices were found\n", SMI_ALL, false },
		{ "Enabled\n", SMI_ALL, false },
		{ "", SMI_ALL, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct smi_output output = output_from(cases[i].out, "", 0);

		assert_int_equal(smi_has_mig(&output, cases[i].fields), cases[i].has_mig);
	}
}

static void instances_belong_to_the_gpu_above_them(void **state)
{
	const struct probe *probe = parse_good_list(
		"  MIG 1g.10gb     Device  9: (UUID: MIG-before-any)\n" LISTED1
		"  MIG 3g.40gb     Device  0: (UUID: MIG-aa)\n"
		"a message\n"
		"  MIG 1g.10gb     Device 12: (UUID: MIG-bb)\n"
		"GPU 2: not in the rows (UUID: GPU-22222222)\n"
		"  MIG 1g.10gb     Device  0: (UUID: MIG-cc)\n" LISTED0
		"  MIG 1c.3g.71gb  Device  0: (UUID: MIG-dd)\n"
		"  MIG 3g.71gb     Device  1: (UUID: MIG-aa)\n"
		"GPU 3: it cannot be read\n"
		"  MIG 1g.10gb     Device  0: (UUID: MIG-ee)\n");
	static const struct probe_mig migs[] = { { 1, 0, "3g.40gb", "MIG-aa" },
		{ 1, 12, "1g.10gb", "MIG-bb" }, { 0, 0, "1c.3g.71gb", "MIG-dd" } };

	(void)state;
	assert_int_equal(probe->mig_count, ARRAY_SIZE(migs));
	for (size_t i = 0; i < ARRAY_SIZE(migs); i++) {
		assert_int_equal(probe->migs[i].gpu, migs[i].gpu);
		assert_int_equal(probe->migs[i].device, migs[i].device);
		assert_string_equal(probe->migs[i].profile, migs[i].profile);
		assert_string_equal(probe->migs[i].uuid, migs[i].uuid);
	}
}

static const struct mig_case {
	const char *line;
	const char *profile;
	uint32_t device;
	const char *uuid;
} mig_cases[] = {
	{ "  MIG 1g.10gb     Device  6: (UUID: MIG-981c86e9-3607-57d7-9426-295347e4b925)",
		"1g.10gb", 6, "MIG-981c86e9-3607-57d7-9426-295347e4b925" },
	/* before R470 */
	{ "  MIG 1g.5gb Device 3: (UUID: MIG-" UUID0 "/10/0)\r", "1g.5gb", 3,
		"MIG-" UUID0 "/10/0" },
	/* with a media engine */
	{ "  MIG 1g.10gb+me  Device  0: (UUID: MIG-a)", "1g.10gb+me", 0, "MIG-a" },
	{ "\tMIG 1g.5gb\x1b Device 0: (UUID: MIG-a)", "1g.5gb?", 0, "MIG-a" },
};

static const char *const mig_garbage[] = {
	"  MIG 1g.10gb     Device  0: (UUID: GPU-a)",
	"  MIG 1g.10gb     Device  0: (UUID: MIG-)",
	"  MIG 1g.10gb     Device  0: (UUID: MIG-../x)",
	"  MIG 1g.10gb     Device  0: (UUID: MIG-a",
	"  MIG 1g.10gb     Device  0: (UUID: ",
	"  MIG 1g.10gb     Device  0: (UUID: )",
	"  MIG 1g.10gb     Device  0:",
	"  MIG 1g.10gb     Device  0 (UUID: MIG-a)",
	"  MIG 1g.10gb     Device   : (UUID: MIG-a)",
	"  MIG 1g.10gb     Device -1: (UUID: MIG-a)",
	"  MIG 1g.10gb     Device 4294967296: (UUID: MIG-a)",
	"  MIG 1g.10gb     Slice  0: (UUID: MIG-a)",
	"  MIG 1g.10gb (UUID: MIG-a)",
	"  MIG (UUID: MIG-a)",
	"  MIG 0123456789.0123456789.0123456789.gb Device 0: (UUID: MIG-a)",
	"  MIC 1g.10gb     Device  0: (UUID: MIG-a)",
	" (UUID: MIG-a)",
};

/* Parses @line below a GPU with a name that looks like the end of its line. */
static const struct probe *parse_instance(const char *line)
{
	char text[400];

	(void)snprintf(text, sizeof(text),
		"GPU 0: Orin (nvgpu) (UUID: GPU-x) (UUID: " UUID0 ")\n%s\n", line);
	return parse_good_list(text);
}

static void every_form_of_an_instance_is_read_or_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mig_cases); i++) {
		const struct mig_case *c = &mig_cases[i];
		const struct probe *probe = parse_instance(c->line);

		assert_int_equal(probe->mig_count, 1);
		assert_int_equal(probe->migs[0].gpu, 0);
		assert_string_equal(probe->migs[0].profile, c->profile);
		assert_int_equal(probe->migs[0].device, c->device);
		assert_string_equal(probe->migs[0].uuid, c->uuid);
	}
	for (size_t i = 0; i < ARRAY_SIZE(mig_garbage); i++)
		assert_int_equal(parse_instance(mig_garbage[i])->mig_count, 0);
}

static void a_list_that_failed_has_no_instances(void **state)
{
	static const struct {
		int exit_code, signal;
		bool is_cut;
		uint32_t count;
	} cases[] = {
		{ 0, 0, false, 1 },
		{ 14, 0, false, 1 },
		{ -1, 0, false, 1 },
		{ 9, 0, false, 0 },
		{ 255, 0, false, 0 },
		{ -1, 9, false, 0 },
		{ 0, 0, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct smi_output output = output_from(LISTED0
			"  MIG 1g.10gb     Device  0: (UUID: MIG-a)\n",
			"", cases[i].exit_code);

		output.signal = cases[i].signal;
		output.is_cut = cases[i].is_cut;
		assert_int_equal(parse_list(&output)->mig_count, cases[i].count);
	}
}

static void instances_beyond_the_table_are_left_out(void **state)
{
	static char text[100 * (PROBE_MIGS_MAX + 2)];
	struct text list = TEXT_ON(text);

	(void)state;
	text_add(&list, LISTED0);
	for (int i = 0; i <= PROBE_MIGS_MAX; i++)
		text_addf(&list, "  MIG 1g.10gb     Device %2d: (UUID: MIG-%d)\n", i, i);
	assert_int_equal(parse_good_list(text)->mig_count, PROBE_MIGS_MAX);
}

/* --- real outputs -------------------------------------------------------------------- */

#define SAMPLES "../shared/reference/nvidia-smi-samples/"

static void error_samples_give_a_reason_and_no_known_gpu(void **state)
{
	static const char *const names[] = { "error-no-driver.txt",
		"error-no-devices.txt", "error-driver-library-mismatch-535.txt",
		"error-nvml-unknown-error.txt", "error-all-gpus-lost-then-no-devices.txt",
		"error-lost-gpu-old-format.txt", "error-lost-gpu-525-535-format.txt",
		"error-invalid-field.txt" };

	(void)state;
	if (access(SAMPLES, R_OK) < 0)
		skip_because("the samples of nvidia-smi are not there");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[128], text[1024];
		autofd int fd = -1;
		const struct probe *probe;
		ssize_t size;

		(void)snprintf(path, sizeof(path), SAMPLES "%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		size = read(fd, text, sizeof(text) - 1);
		assert_true(size > 0);
		text[size] = '\0';
		probe = parse(text, "");
		assert_int_equal(probe->gpu_count == 0, probe->trouble.text[0] != '\0');
		for (uint32_t gpu = 0; gpu < probe->gpu_count; gpu++) {
			assert_false(probe->gpus[gpu].is_known);
			assert_string_not_equal(probe->gpus[gpu].bus_id, "");
		}
	}
}

/* The reference samples, where they are: how many instances each has. */
static void listed_samples_are_read_in_full(void **state)
{
	static const struct {
		const char *name;
		uint32_t count;
	} samples[] = {
		{ "list-4xRTX2080Ti.reformatted.txt", 0 },
		{ "list-mig-a100-legacy-uuid.txt", 7 },
		{ "list-mig-h100-7x1g.10gb.txt", 7 },
		{ "list-mig-h100-masked.txt", 4 },
		{ "list-mig-h100-mixed.txt", 4 },
		{ "list-mig-h200-shared-gi-masked.txt", 5 },
	};

	(void)state;
	if (access(SAMPLES, R_OK) < 0)
		skip_because("the samples of nvidia-smi are not there");
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		static struct probe probe;
		char path[128], text[2048];
		autofd int fd = -1;
		struct smi_output output;
		struct span rest, line;
		ssize_t size;

		(void)snprintf(path, sizeof(path), SAMPLES "%s", samples[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		size = read(fd, text, sizeof(text) - 1);
		assert_true(size > 0);
		text[size] = '\0';
		/* the GPU of its first line is there */
		probe = (struct probe){ .gpu_count = 1 };
		rest = (struct span){ strstr(text, "(UUID: ") + 7, 96 };
		assert_true(span_take_until(&rest, ')', &line));
		span_copy(line, probe.gpus[0].uuid, sizeof(probe.gpus[0].uuid));
		output = output_from(text, "", 0);
		smi_parse_list(&output, &probe);
		assert_int_equal(probe.mig_count, samples[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_rows_are_read_in_full),
		cmocka_unit_test(every_form_of_a_row_is_known_or_has_a_reason),
		cmocka_unit_test(commas_in_a_name_stay_in_the_name),
		cmocka_unit_test(bus_ids_are_written_as_sysfs_does),
		cmocka_unit_test(mig_and_closed_gpus_are_known_and_marked),
		cmocka_unit_test(control_characters_do_not_reach_the_result),
		cmocka_unit_test(a_lost_gpu_is_kept_as_an_unknown_one),
		cmocka_unit_test(a_lost_gpu_is_kept_from_stderr_and_after_a_bad_exit),
		cmocka_unit_test(a_row_of_errors_and_its_message_are_one_gpu),
		cmocka_unit_test(a_message_about_a_listed_gpu_makes_it_unknown),
		cmocka_unit_test(gpus_of_one_uuid_are_both_unknown),
		cmocka_unit_test(rows_beyond_the_table_are_left_out),
		cmocka_unit_test(the_exit_decides_whether_there_is_data),
		cmocka_unit_test(rows_before_a_bad_end_are_unknown),
		cmocka_unit_test(only_an_optional_field_can_be_refused),
		cmocka_unit_test(
			a_query_without_optional_fields_is_read_by_its_own_columns),
		cmocka_unit_test(processes_belong_to_the_gpu_of_their_uuid),
		cmocka_unit_test(a_malformed_process_row_makes_its_gpu_unknown),
		cmocka_unit_test(unreadable_processes_make_all_gpus_unknown),
		cmocka_unit_test(a_failed_process_query_is_not_excused_by_a_sick_gpu),
		cmocka_unit_test(more_processes_than_fit_make_their_gpu_unknown),
		cmocka_unit_test(unified_memory_in_use_is_the_sum_over_the_processes),
		cmocka_unit_test(error_samples_give_a_reason_and_no_known_gpu),
		cmocka_unit_test(instances_are_listed_if_a_row_says_mig_is_enabled),
		cmocka_unit_test(instances_belong_to_the_gpu_above_them),
		cmocka_unit_test(every_form_of_an_instance_is_read_or_left_out),
		cmocka_unit_test(a_list_that_failed_has_no_instances),
		cmocka_unit_test(instances_beyond_the_table_are_left_out),
		cmocka_unit_test(listed_samples_are_read_in_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
