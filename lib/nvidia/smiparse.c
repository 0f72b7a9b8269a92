#include "smiparse.h"

/* Exit codes of nvidia-smi that have a meaning here (they are the codes of NVML). */
enum {
	EXIT_BAD_ARGUMENT = 2,
	EXIT_CORRUPT_INFOROM = 14, /* a warning: the output is complete */
	EXIT_GPU_LOST = 15,
	EXIT_RESET_REQUIRED = 16,
};

enum { PROCESS_COLUMNS = 3 };

/* --- lines that are no rows ---------------------------------------------------------- */

/* What the lines of one nvidia-smi were. */
struct reading {
	unsigned rows;       /* all rows, also of GPUs or processes that are not known */
	unsigned lost;       /* messages about a GPU that cannot be opened */
	unsigned named;      /* of these messages, how many name the GPU */
	unsigned astray;     /* processes on GPUs that are not in the probe */
	struct span message; /* the first other line; ->at is NULL: none */
};

/* Returns the GPU that a message names by its bus id or, if it has none, by its index. */
static struct probe_gpu *find_lost(struct probe *probe, int index, const char *bus_id)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		struct probe_gpu *gpu = &probe->gpus[i];

		if (bus_id[0] && gpu->bus_id[0] ? strcmp(gpu->bus_id, bus_id) == 0
						: index >= 0 && gpu->index == index)
			return gpu;
	}
	return NULL;
}

/*
 * Reads the message about a GPU that the driver cannot open, and adds the GPU as unknown:
 * `Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error`, without the space
 * before the bus id in other versions, `…GPU0: 0000:24:00.0: GPU is lost.  Reboot …` since 545.
 * The message can be in either output, and the same GPU may also have a row full of errors.
 * Returns false if the line is no such message.
 */
static bool read_lost_gpu(struct span line, struct probe *probe, struct reading *reading)
{
	char bus_id[sizeof(probe->gpus[0].bus_id)] = "", reason[64];
	struct span number;
	struct probe_gpu *gpu;
	uint64_t index = 0;
	bool has_index = false;

	if (!span_take_prefix(&line, "Unable to determine the device handle for GPU"))
		return false;
	line = span_trim(line);
	if (!span_take_bus_id(&line, bus_id, sizeof(bus_id)) &&
		span_take_until(&line, ':', &number)) {
		has_index = span_to_number(number, SMI_INDEX_MAX, &index);
		line = span_trim(line);
		(void)span_take_bus_id(&line, bus_id, sizeof(bus_id));
	}
	(void)span_take_prefix(&line, ":");
	span_copy(span_trim(line), reason, sizeof(reason));
	reading->lost++;
	reading->named += has_index || bus_id[0];
	gpu = find_lost(probe, has_index ? (int)index : -1, bus_id);
	if (!gpu && probe->gpu_count < GPUSET_MAX && !probe->trouble.text[0]) {
		gpu = &probe->gpus[probe->gpu_count++];
		*gpu = (struct probe_gpu){ .index = -1, .utilization = -1 };
	}
	if (!gpu)
		return true;
	if (has_index)
		gpu->index = (int)index;
	if (bus_id[0])
		text_copy(gpu->bus_id, sizeof(gpu->bus_id), bus_id);
	smi_make_unknown(gpu, "%s", reason[0] ? reason : "the driver cannot open it");
	return true;
}

/* Finds the line `Field "x" is not a valid field to query.` */
unsigned smi_refused_field(const struct smi_output *output)
{
	struct span text = { output->out, output->out_size }, line;

	if (output->exit_code != EXIT_BAD_ARGUMENT && output->exit_code != -1)
		return 0;
	while (span_take_until(&text, '\n', &line)) {
		struct span name;

		if (!span_take_prefix(&line, "Field \"") ||
			!span_take_until(&line, '"', &name) ||
			!span_equals(span_trim(line), "is not a valid field to query."))
			continue;
		return smi_field_named(name) & SMI_OPTIONAL;
	}
	return 0;
}

/* --- the exit ------------------------------------------------------------------------ */

bool smi_is_sound(const struct smi_output *output, struct span message, struct why *why)
{
	char text[200];

	span_copy(message, text, sizeof(text));
	if (output->signal)
		why_set(why, "nvidia-smi was killed by signal %d", output->signal);
	else if (output->is_cut)
		why_set(why, "nvidia-smi wrote more than can be read");
	else if (output->exit_code > 0 && output->exit_code != EXIT_CORRUPT_INFOROM)
		why_set(why, "nvidia-smi: %s (exit status %d)",
			text[0] ? text : "no message", output->exit_code);
	else if (output->exit_code < 0 && output->out_size > 0 &&
		 output->out[output->out_size - 1] != '\n')
		/* exit unknown: it may have been killed in the middle of a number */
		why_set(why, "nvidia-smi stopped in the middle of a line");
	else
		return true;
	return false;
}

/*
 * Whether a bad exit status only reports a sick GPU, which its row shows as well.  That is so if
 * nvidia-smi exited by itself, printed no other message, and printed rows or messages about GPUs or
 * ended with the exit code for a sick GPU.
 */
static bool is_sick_gpu(const struct smi_output *output, const struct reading *reading,
	const struct probe *probe)
{
	bool has_sick = false;

	for (uint32_t i = 0; i < probe->gpu_count; i++)
		has_sick = has_sick || !probe->gpus[i].is_known;
	return has_sick && !output->signal && !output->is_cut && output->exit_code > 0 &&
	       !reading->message.at &&
	       (reading->rows + reading->lost > 0 || output->exit_code == EXIT_GPU_LOST ||
		       output->exit_code == EXIT_RESET_REQUIRED);
}

static void make_all_unknown(
	struct probe *probe, const char *before, const struct why *why)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		smi_make_unknown(&probe->gpus[i], "%s%s", before, why->text);
}

/* --- the two queries ----------------------------------------------------------------- */

typedef void read_row(
	struct span line, unsigned fields, struct probe *probe, struct reading *reading);

/* Whether a line is a row: begins with a number, a UUID, or a word in place of a value. */
static bool is_row(struct span line)
{
	struct span first;
	uint64_t number;

	return span_take_until(&line, ',', &first) && line.at &&
	       (span_to_number(first, SMI_INDEX_MAX, &number) ||
		       span_is_uuid(first, first.size + 1) ||
		       span_judge(first) != SMI_VALUE_PLAIN);
}

/*
 * Reads each line of both outputs as a message about a lost GPU, as a row, or as another message.
 * Rows are on stdout only; messages can be in either.
 */
static struct reading read_output_lines(const struct smi_output *output, unsigned fields,
	struct probe *probe, read_row *row)
{
	struct span texts[] = { { output->out, output->out_size },
		{ output->err, output->err_size } };
	struct reading reading = { 0 };
	struct span line;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		while (span_take_until(&texts[i], '\n', &line)) {
			if (line.size == 0 || read_lost_gpu(line, probe, &reading))
				continue;
			if (i == 0 && is_row(line))
				row(line, fields, probe, &reading);
			else if (!reading.message.at)
				reading.message = line;
		}
	}
	return reading;
}

static void add_gpu_row(
	struct span line, unsigned fields, struct probe *probe, struct reading *reading)
{
	reading->rows++;
	if (probe->gpu_count < GPUSET_MAX)
		smi_read_gpu(line, fields, &probe->gpus[probe->gpu_count++]);
}

/* Drops rows that have only errors: each is of a GPU that a message has named already. */
static void drop_nameless(struct probe *probe, unsigned named)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		const struct probe_gpu *gpu = &probe->gpus[i];

		if (named > 0 && gpu->index < 0 && !gpu->uuid[0] && !gpu->bus_id[0])
			named--;
		else
			probe->gpus[kept++] = *gpu;
	}
	probe->gpu_count = kept;
}

/* Two GPUs with one UUID would share one lease file: makes both unknown. */
static void refuse_duplicates(struct probe *probe)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		struct probe_gpu *gpu = &probe->gpus[i];
		int first = gpu->uuid[0] ? probe_find_gpu(probe, gpu->uuid) : -1;

		if (first < 0 || (uint32_t)first == i)
			continue;
		smi_make_unknown(&probe->gpus[first], "its UUID is not unique");
		smi_make_unknown(gpu, "its UUID is not unique");
		gpu->uuid[0] = '\0';
	}
}

void smi_parse_gpus(const struct smi_output *output, unsigned fields, struct probe *probe)
{
	struct reading reading = read_output_lines(output, fields, probe, add_gpu_row);
	struct why why = WHY_NONE;

	drop_nameless(probe, reading.named);
	refuse_duplicates(probe);
	if (smi_is_sound(output, reading.message, &why)) {
		char text[200];

		span_copy(reading.message, text, sizeof(text));
		why_set(&why, "nvidia-smi: %s", text[0] ? text : "no GPU listed");
	} else if (!is_sick_gpu(output, &reading, probe)) {
		make_all_unknown(probe, "", &why);
	}
	if (probe->gpu_count == 0)
		probe->trouble = why;
}

static void add_process_row(
	struct span line, unsigned fields, struct probe *probe, struct reading *reading)
{
	struct span values[PROCESS_COLUMNS] = { { NULL, 0 } }, rest = line;
	struct probe_process process = { .used_mib = PROBE_MIB_UNKNOWN };
	char uuid[sizeof(probe->gpus[0].uuid)];
	uint64_t pid = 0;
	unsigned count = 0;
	int gpu;

	(void)fields;
	reading->rows++;
	while (count < PROCESS_COLUMNS && span_take_until(&rest, ',', &values[count]))
		count++;
	span_copy(values[0], uuid, sizeof(uuid));
	gpu = probe_find_gpu(probe, uuid);
	if (gpu < 0) {
		reading->astray++;
		return;
	}
	if (count < PROCESS_COLUMNS || rest.at) {
		smi_make_unknown(
			&probe->gpus[gpu], "a process row does not have 3 columns");
		return;
	}
	if (probe->process_count == PROBE_PROCESSES_MAX) {
		smi_make_unknown(
			&probe->gpus[gpu], "more than %d processes", PROBE_PROCESSES_MAX);
		return;
	}
	process.gpu = (uint32_t)gpu;
	if (span_to_number(values[1], INT32_MAX, &pid))
		process.pid = (int32_t)pid;
	if (!smi_read_mib(values[2], &process.used_mib))
		process.used_mib = PROBE_MIB_UNKNOWN;
	probe->processes[probe->process_count++] = process;
}

/* Sets the use of each GPU that shares the host's memory: the sum of its processes. */
static void sum_process_memory(struct probe *probe, unsigned astray)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		struct probe_gpu *gpu = &probe->gpus[i];
		uint64_t sum = 0;
		bool is_certain = astray == 0;

		if (!gpu->is_known || gpu->total_mib > 0)
			continue;
		for (uint32_t p = 0; p < probe->process_count; p++) {
			const struct probe_process *process = &probe->processes[p];

			if (process->gpu != i)
				continue;
			is_certain =
				is_certain && process->used_mib != PROBE_MIB_UNKNOWN &&
				!__builtin_add_overflow(sum, process->used_mib, &sum);
		}
		gpu->used_mib = sum;
		if (!is_certain)
			smi_make_unknown(gpu, "the memory of its processes is unknown");
	}
}

void smi_parse_processes(const struct smi_output *output, struct probe *probe)
{
	struct reading reading = read_output_lines(output, 0, probe, add_process_row);
	struct why why;

	if (!smi_is_sound(output, reading.message, &why) &&
		!is_sick_gpu(output, &reading, probe))
		make_all_unknown(probe, "processes: ", &why);
	sum_process_memory(probe, reading.astray);
}
