/*
 * Any bytes as the answers of nvidia-smi.  The first byte chooses how it ended; the rest,
 * separated by lines of `===`, is the stdout and the stderr of the query for GPUs, then of the
 * query for processes, then of the list.
 */
#include <string.h>

#include "smilist.h"
#include "fuzz.h"

static void must_be_printable(const char *text, size_t size)
{
	char copy[WHY_SIZE];
	struct text again = TEXT_ON(copy);

	MUST(memchr(text, '\0', size));
	text_add_printable(&again, text, strlen(text));
	MUST(strcmp(copy, text) == 0);
}

static void check_gpu(const struct probe *probe, uint32_t row)
{
	const struct probe_gpu *gpu = &probe->gpus[row];

	must_be_printable(gpu->uuid, sizeof(gpu->uuid));
	must_be_printable(gpu->bus_id, sizeof(gpu->bus_id));
	must_be_printable(gpu->name, sizeof(gpu->name));
	must_be_printable(gpu->compute_mode, sizeof(gpu->compute_mode));
	must_be_printable(gpu->trouble, sizeof(gpu->trouble));
	MUST(gpu->index >= -1 && gpu->utilization >= -1 && gpu->utilization <= 100);
	MUST(gpu->idle_since_ms == 0 && gpu->total_mib != PROBE_MIB_UNKNOWN);
	MUST(gpu->is_known == (gpu->trouble[0] == '\0'));
	MUST(gpu->is_known == (gpu->used_mib != PROBE_MIB_UNKNOWN));
	MUST(!gpu->is_known || (gpu->index >= 0 && gpu->uuid[0]));
	if (gpu->uuid[0]) {
		MUST(strspn(gpu->uuid,
			     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			     "0123456789-/") == strlen(gpu->uuid));
		MUST(probe_find_gpu(probe, gpu->uuid) == (int)row);
	}
}

static void check_mig(const struct probe *probe, uint32_t row)
{
	const struct probe_mig *mig = &probe->migs[row];

	MUST(mig->gpu < probe->gpu_count && mig->profile[0]);
	must_be_printable(mig->profile, sizeof(mig->profile));
	must_be_printable(mig->uuid, sizeof(mig->uuid));
	MUST(strncasecmp(mig->uuid, "MIG-", 4) == 0);
	for (uint32_t i = 0; i < row; i++)
		MUST(strcmp(probe->migs[i].uuid, mig->uuid) != 0);
}

static void check(const struct probe *probe)
{
	MUST(probe->gpu_count <= GPUSET_MAX);
	MUST(probe->process_count <= PROBE_PROCESSES_MAX);
	MUST((probe->gpu_count == 0) == (probe->trouble.text[0] != '\0'));
	must_be_printable(probe->trouble.text, sizeof(probe->trouble.text));
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		check_gpu(probe, i);
	for (uint32_t i = 0; i < probe->process_count; i++) {
		MUST(probe->processes[i].gpu < probe->gpu_count);
		MUST(probe->processes[i].pid >= 0);
	}
	MUST(probe->mig_count <= PROBE_MIGS_MAX);
	for (uint32_t i = 0; i < probe->mig_count; i++)
		check_mig(probe, i);
}

static struct span part(struct span *rest)
{
	struct span out = *rest;
	const char *end = rest->size ? memmem(rest->at, rest->size, "===\n", 4) : NULL;

	if (end) {
		out.size = (size_t)(end - rest->at);
		*rest = (struct span){ end + 4, rest->size - out.size - 4 };
	} else {
		*rest = (struct span){ NULL, 0 };
	}
	return out;
}

static struct smi_output output_from(struct span *rest, uint8_t how)
{
	static const int codes[] = { 0, -1, 2, 6, 9, 14, 15, 255 };
	struct span out = part(rest);
	struct span err = part(rest);

	return (struct smi_output){
		.out = out.at,
		.out_size = out.size,
		.err = err.at,
		.err_size = err.size,
		.exit_code = how & 8 ? -1 : codes[how & 7],
		.signal = how & 8 ? 9 : 0,
		.is_cut = how & 16,
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct probe probe;
	struct span rest;
	struct smi_output output;
	unsigned fields;
	uint8_t how;
	bool has_mig;

	if (size == 0)
		return 0;
	how = (uint8_t)(data[0] - '0'); /* `0` is a good end, for files made by hand */
	fields = how & 32 ? SMI_ALL & ~(unsigned)SMI_OPTIONAL : SMI_ALL;
	rest = (struct span){ (const char *)data + 1, size - 1 };
	probe = (struct probe){ 0 };
	output = output_from(&rest, how);
	MUST((smi_refused_field(&output) & ~(unsigned)SMI_OPTIONAL) == 0);
	has_mig = smi_has_mig(&output, fields);
	smi_parse_gpus(&output, fields, &probe);
	for (uint32_t i = 0; i < probe.gpu_count; i++)
		MUST(!probe.gpus[i].has_mig || has_mig);
	output = output_from(&rest, how & 128 ? 0 : how);
	smi_parse_processes(&output, &probe);
	output = output_from(&rest, how & 64 ? 0 : how);
	smi_parse_list(&output, &probe);
	check(&probe);
	return 0;
}
