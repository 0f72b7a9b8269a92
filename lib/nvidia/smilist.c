#include <strings.h>

#include "smilist.h"

bool smi_has_mig(const struct smi_output *output, unsigned fields)
{
	struct span text = { output->out, output->out_size }, line;
	struct probe_gpu gpu;

	while (span_take_until(&text, '\n', &line)) {
		/* reads messages as rows, too: they have no "Enabled" in that column */
		smi_read_gpu(line, fields, &gpu);
		if (gpu.has_mig)
			return true;
	}
	return false;
}

/*
 * Takes ` (UUID: …)` off the end of *@line, and writes the UUID to @out.  Searches from the end,
 * because the name before it may have parentheses, too.
 */
static bool take_uuid(struct span *line, char *out, size_t size)
{
	for (size_t at = line->size; at-- > 0;) {
		struct span uuid = { line->at + at, line->size - at };

		if (!span_take_prefix(&uuid, " (UUID: "))
			continue;
		if (uuid.size == 0 || uuid.at[--uuid.size] != ')' ||
			!span_is_uuid(uuid, size))
			return false;
		span_copy(uuid, out, size);
		line->size = at;
		return true;
	}
	return false;
}

/* Reads `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`.  Returns the row of the GPU, or -1. */
static int read_listed_gpu(struct span line, const struct probe *probe)
{
	char uuid[sizeof(probe->gpus[0].uuid)];

	return take_uuid(&line, uuid, sizeof(uuid)) ? probe_find_gpu(probe, uuid) : -1;
}

/*
 * Reads `MIG 3g.40gb     Device  0: (UUID: MIG-…)`, or before driver R470
 * `MIG 1g.5gb Device 0: (UUID: MIG-GPU-…/7/0)`.
 */
static bool read_mig(struct span line, struct probe_mig *mig)
{
	struct span profile;
	uint64_t device;

	if (!take_uuid(&line, mig->uuid, sizeof(mig->uuid)) ||
		strncasecmp(mig->uuid, "MIG-", 4) != 0 ||
		!span_take_prefix(&line, "MIG "))
		return false;
	line = span_trim(line);
	if (!span_take_until(&line, ' ', &profile) || profile.size == 0 ||
		profile.size >= sizeof(mig->profile))
		return false;
	line = span_trim(line);
	if (!span_take_prefix(&line, "Device ") || line.size == 0 ||
		line.at[--line.size] != ':' ||
		!span_to_number(span_trim(line), SMI_INDEX_MAX, &device))
		return false;
	span_copy(profile, mig->profile, sizeof(mig->profile));
	mig->device = (uint32_t)device;
	return true;
}

static void add_mig(struct span line, uint32_t gpu, struct probe *probe)
{
	struct probe_mig mig = { .gpu = gpu };

	if (probe->mig_count == PROBE_MIGS_MAX || !read_mig(line, &mig))
		return;
	for (uint32_t i = 0; i < probe->mig_count; i++)
		if (strcmp(probe->migs[i].uuid, mig.uuid) == 0)
			return;
	probe->migs[probe->mig_count++] = mig;
}

void smi_parse_list(const struct smi_output *output, struct probe *probe)
{
	struct span text = { output->out, output->out_size }, line;
	struct why why;
	int gpu = -1;

	if (!smi_is_sound(output, (struct span){ NULL, 0 }, &why))
		return;
	while (span_take_until(&text, '\n', &line)) {
		struct span rest = line;

		/* sets -1 if the line cannot be read: its instances are not the last GPU's */
		if (span_take_prefix(&rest, "GPU "))
			gpu = read_listed_gpu(line, probe);
		else if (gpu >= 0)
			add_mig(line, (uint32_t)gpu, probe);
	}
}
