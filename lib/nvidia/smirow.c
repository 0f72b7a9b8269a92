#include <stdarg.h>

#include "smirow.h"

bool smi_read_mib(struct span in, uint64_t *ret)
{
	if (in.size > 4 && span_equals((struct span){ in.at + in.size - 4, 4 }, " MiB"))
		in.size -= 4;
	return span_to_number(in, PROBE_MIB_UNKNOWN - 1, ret);
}

void smi_make_unknown(struct probe_gpu *gpu, const char *format, ...)
{
	struct text trouble;
	char whole[WHY_SIZE];
	va_list args;

	gpu->is_known = false;
	gpu->used_mib = PROBE_MIB_UNKNOWN;
	if (gpu->trouble[0])
		return;
	va_start(args, format);
	(void)vsnprintf(whole, sizeof(whole), format, args);
	va_end(args);
	trouble = TEXT_ON(gpu->trouble);
	/* cuts between characters, and replaces a character that vsnprintf() has cut */
	text_add_visible(&trouble, whole);
}

/* Each of these functions reads one column; false if the value has another form. */
static bool read_gpu_index(struct span in, struct probe_gpu *gpu)
{
	uint64_t number;

	if (!span_to_number(in, SMI_INDEX_MAX, &number))
		return false;
	gpu->index = (int)number;
	return true;
}

static bool read_uuid(struct span in, struct probe_gpu *gpu)
{
	if (!span_is_uuid(in, sizeof(gpu->uuid)))
		return false;
	span_copy(in, gpu->uuid, sizeof(gpu->uuid));
	return true;
}

static bool read_bus_id(struct span in, struct probe_gpu *gpu)
{
	char bus_id[sizeof(gpu->bus_id)];

	if (span_judge(in) == SMI_VALUE_UNSUPPORTED)
		return true;
	if (!span_take_bus_id(&in, bus_id, sizeof(bus_id)) || in.size > 0)
		return false;
	text_copy(gpu->bus_id, sizeof(gpu->bus_id), bus_id);
	return true;
}

/* If a memory column is not supported, settle_memory() decides once both have been read. */
static bool read_total(struct span in, struct probe_gpu *gpu)
{
	if (span_judge(in) == SMI_VALUE_UNSUPPORTED) {
		gpu->total_mib = PROBE_MIB_UNKNOWN;
		return true;
	}
	return smi_read_mib(in, &gpu->total_mib) && gpu->total_mib > 0;
}

static bool read_used(struct span in, struct probe_gpu *gpu)
{
	if (span_judge(in) == SMI_VALUE_UNSUPPORTED) {
		gpu->used_mib = PROBE_MIB_UNKNOWN;
		return true;
	}
	return smi_read_mib(in, &gpu->used_mib);
}

static bool read_utilization(struct span in, struct probe_gpu *gpu)
{
	uint64_t number;

	if (span_judge(in) == SMI_VALUE_UNSUPPORTED)
		return true;
	if (in.size > 2 && span_equals((struct span){ in.at + in.size - 2, 2 }, " %"))
		in.size -= 2;
	if (!span_to_number(in, 100, &number))
		return false;
	gpu->utilization = (int)number;
	return true;
}

static bool read_mig_mode(struct span in, struct probe_gpu *gpu)
{
	gpu->has_mig = span_equals(in, "Enabled");
	return gpu->has_mig || span_equals(in, "Disabled") ||
	       span_judge(in) == SMI_VALUE_UNSUPPORTED;
}

static bool read_compute_mode(struct span in, struct probe_gpu *gpu)
{
	if (span_judge(in) == SMI_VALUE_PLAIN)
		span_copy(in, gpu->compute_mode, sizeof(gpu->compute_mode));
	return span_judge(in) != SMI_VALUE_ERROR;
}

static bool read_gpu_name(struct span in, struct probe_gpu *gpu)
{
	if (span_judge(in) == SMI_VALUE_PLAIN)
		span_copy(in, gpu->name, sizeof(gpu->name));
	return span_judge(in) != SMI_VALUE_ERROR;
}

static const struct column {
	enum smi_field field;
	const char *name;
	bool (*read)(struct span in, struct probe_gpu *gpu);
} columns[] = {
	{ SMI_INDEX, "index", read_gpu_index },
	{ SMI_UUID, "uuid", read_uuid },
	{ SMI_BUS_ID, "pci.bus_id", read_bus_id },
	{ SMI_TOTAL, "memory.total", read_total },
	{ SMI_USED, "memory.used", read_used },
	{ SMI_UTILIZATION, "utilization.gpu", read_utilization },
	{ SMI_MIG_MODE, "mig.mode.current", read_mig_mode },
	{ SMI_COMPUTE_MODE, "compute_mode", read_compute_mode },
	{ SMI_NAME, "name", read_gpu_name },
};

void smi_gpu_query(unsigned fields, char out[SMI_QUERY_SIZE])
{
	struct text text = text_on(out, SMI_QUERY_SIZE);
	const char *before = "--query-gpu=";

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!(fields & columns[i].field))
			continue;
		text_addf(&text, "%s%s", before, columns[i].name);
		before = ",";
	}
}

unsigned smi_field_named(struct span name)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (span_equals(name, columns[i].name))
			return columns[i].field;
	return 0;
}

static void read_column(
	const struct column *column, struct span in, struct probe_gpu *gpu)
{
	char value[40];

	if (column->read(in, gpu))
		return;
	span_copy(in, value, sizeof(value));
	smi_make_unknown(gpu, "%s is %s", column->name, value[0] ? value : "empty");
}

/*
 * Decides what unsupported memory columns mean.  If both are, the GPU shares the host's memory
 * (GB10).  If only one is, the GPU is unknown.
 */
static void settle_memory(struct probe_gpu *gpu)
{
	bool has_total = gpu->total_mib != PROBE_MIB_UNKNOWN;

	if (!has_total)
		gpu->total_mib = 0;
	if (!gpu->is_known)
		gpu->used_mib = PROBE_MIB_UNKNOWN;
	else if (has_total != (gpu->used_mib != PROBE_MIB_UNKNOWN))
		smi_make_unknown(
			gpu, "memory.%s is unknown", has_total ? "used" : "total");
}

void smi_read_gpu(struct span line, unsigned fields, struct probe_gpu *gpu)
{
	struct span rest = line, value;

	*gpu = (struct probe_gpu){ .index = -1, .utilization = -1, .is_known = true };
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!(fields & columns[i].field))
			continue;
		if (columns[i].field == SMI_NAME && rest.at) {
			value = span_trim(rest);
		} else if (!span_take_until(&rest, ',', &value)) {
			smi_make_unknown(gpu, "its row ends before %s", columns[i].name);
			break;
		}
		read_column(&columns[i], value, gpu);
	}
	settle_memory(gpu);
}
