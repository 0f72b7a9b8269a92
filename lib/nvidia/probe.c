#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fdio.h"
#include "probe.h"
#include "probe_marks.h"
#include "record.h"

/*
 * The shared result, the file `probe`: a header record, then a record for each GPU, process and MIG
 * instance.  It is replaced as a whole.  A crash leaves `probe.new`, which the next store removes.
 */
static const char RESULT[] = "probe", TEMPORARY[] = "probe.new";

enum { RECORDS_MAX = 1 + GPUSET_MAX + PROBE_PROCESSES_MAX + PROBE_MIGS_MAX };

/* --- records ------------------------------------------------------------------------ */

enum { VIEW_SIZE = 80 };

struct probe_header {
	char boot[64];
	char view[VIEW_SIZE];
	int64_t started_ms, finished_ms;
	uint32_t gpus, processes, migs;
	char trouble[WHY_SIZE];
};

/* A GPU as a record: the fields of types that records lack (int, bool) stand beside ->gpu. */
struct gpu_row {
	struct probe_gpu gpu;
	int64_t index, utilization;
	uint32_t is_known, has_mig;
};

struct process_row {
	uint32_t gpu, pid;
	uint64_t used_mib, peak_mib, start;
};

#define TEXT_FIELD(type, name, kind, field)                                   \
	{                                                                     \
		name, kind, offsetof(type, field), sizeof(((type *)0)->field) \
	}
#define FIELD(type, name, kind, field)               \
	{                                            \
		name, kind, offsetof(type, field), 0 \
	}

static const struct record_field header_fields[] = {
	TEXT_FIELD(struct probe_header, "boot", RECORD_TEXT, boot),
	TEXT_FIELD(struct probe_header, "view", RECORD_TEXT, view),
	FIELD(struct probe_header, "started", RECORD_I64, started_ms),
	FIELD(struct probe_header, "finished", RECORD_I64, finished_ms),
	FIELD(struct probe_header, "gpus", RECORD_U32, gpus),
	FIELD(struct probe_header, "processes", RECORD_U32, processes),
	FIELD(struct probe_header, "migs", RECORD_U32, migs),
	TEXT_FIELD(struct probe_header, "trouble", RECORD_REST, trouble),
};

static const struct record_field gpu_fields[] = {
	FIELD(struct gpu_row, "index", RECORD_I64, index),
	TEXT_FIELD(struct gpu_row, "uuid", RECORD_TEXT, gpu.uuid),
	TEXT_FIELD(struct gpu_row, "bus", RECORD_TEXT, gpu.bus_id),
	FIELD(struct gpu_row, "total", RECORD_U64, gpu.total_mib),
	FIELD(struct gpu_row, "used", RECORD_U64, gpu.used_mib),
	FIELD(struct gpu_row, "utilization", RECORD_I64, utilization),
	FIELD(struct gpu_row, "known", RECORD_U32, is_known),
	FIELD(struct gpu_row, "mig", RECORD_U32, has_mig),
	FIELD(struct gpu_row, "idle", RECORD_I64, gpu.idle_since_ms),
	TEXT_FIELD(struct gpu_row, "mode", RECORD_TEXT, gpu.compute_mode),
	TEXT_FIELD(struct gpu_row, "name", RECORD_TEXT, gpu.name),
	TEXT_FIELD(struct gpu_row, "trouble", RECORD_REST, gpu.trouble),
};

static const struct record_field process_fields[] = {
	FIELD(struct process_row, "gpu", RECORD_U32, gpu),
	FIELD(struct process_row, "pid", RECORD_U32, pid),
	FIELD(struct process_row, "used", RECORD_U64, used_mib),
	FIELD(struct process_row, "peak", RECORD_U64, peak_mib),
	FIELD(struct process_row, "start", RECORD_U64, start),
};

static const struct record_field mig_fields[] = {
	FIELD(struct probe_mig, "gpu", RECORD_U32, gpu),
	FIELD(struct probe_mig, "device", RECORD_U32, device),
	TEXT_FIELD(struct probe_mig, "uuid", RECORD_TEXT, uuid),
	TEXT_FIELD(struct probe_mig, "profile", RECORD_REST, profile),
};

static const struct record_schema header_schema = RECORD_SCHEMA("probe/1", header_fields);
static const struct record_schema gpu_schema = RECORD_SCHEMA("pgpu/1", gpu_fields);
static const struct record_schema process_schema =
	RECORD_SCHEMA("pproc/1", process_fields);
static const struct record_schema mig_schema = RECORD_SCHEMA("pmig/1", mig_fields);

static int encode_gpu(const struct probe_gpu *gpu, char *raw)
{
	struct gpu_row row = {
		.gpu = *gpu,
		.index = gpu->index,
		.utilization = gpu->utilization,
		.is_known = gpu->is_known,
		.has_mig = gpu->has_mig,
	};

	return record_encode(&gpu_schema, &row, raw);
}

static int decode_gpu(const char *raw, struct probe_gpu *ret)
{
	struct gpu_row row = { 0 };
	int r = record_decode(&gpu_schema, raw, &row);

	if (r < 0)
		return r;
	/* the file may be damaged, so nothing in it is believed; -1 stands for not known */
	if (row.index < -1 || row.index > INT32_MAX || row.utilization < -1 ||
		row.utilization > 100)
		return -EINVAL;
	*ret = row.gpu;
	ret->index = (int)row.index;
	ret->utilization = (int)row.utilization;
	ret->is_known = row.is_known;
	ret->has_mig = row.has_mig;
	return 0;
}

static int decode_process(const char *raw, uint32_t gpu_count, struct probe_process *ret)
{
	struct process_row row = { 0 };
	int r = record_decode(&process_schema, raw, &row);

	if (r < 0)
		return r;
	if (row.gpu >= gpu_count || row.pid > INT32_MAX)
		return -EINVAL;
	*ret = (struct probe_process){ row.gpu, (int32_t)row.pid, row.used_mib,
		row.peak_mib, row.start };
	return 0;
}

static int decode_mig(const char *raw, uint32_t gpu_count, struct probe_mig *ret)
{
	struct probe_mig row = { 0 };
	int r = record_decode(&mig_schema, raw, &row);

	if (r < 0)
		return r;
	if (row.gpu >= gpu_count)
		return -EINVAL;
	*ret = row;
	return 0;
}

/* Returns how many records encode_probe() writes. */
static size_t count_records(const struct probe *probe)
{
	return 1 + (size_t)probe->gpu_count + probe->process_count + probe->mig_count;
}

/*
 * Writes how this process sees the machine: its pid namespace, its mount namespace, its root, and
 * in a Slurm allocation its device cgroup.  The kernel reuses the numbers of namespaces, so the
 * next container may get the number of the last; it never reuses the number of a mount.  Returns
 * false if the view cannot be determined.
 */
static bool read_view(const struct statedir *dir, char view[VIEW_SIZE])
{
	/* stays 0 before Linux 6.8, which has no mount number that is never reused */
	uint64_t root = 0;
	struct stat ns;

	if (stat("/proc/self/ns/mnt", &ns) < 0)
		return false;
	(void)!fdio_mount_id(AT_FDCWD, "/", true, &root);
	(void)snprintf(view, VIEW_SIZE, "%llu,%llu,%llu", (unsigned long long)dir->pidns,
		(unsigned long long)ns.st_ino, (unsigned long long)root);
	if (dir->view)
		(void)snprintf(view + strlen(view), VIEW_SIZE - strlen(view), ",%llx",
			(unsigned long long)dir->view);
	return true;
}

/* Encodes @probe to @raw, as count_records() records. */
static int encode_probe(
	const char *boot, const char *view, const struct probe *probe, char *raw)
{
	struct probe_header header = {
		.started_ms = probe->started_ms,
		.finished_ms = probe->finished_ms,
		.gpus = probe->gpu_count,
		.processes = probe->process_count,
		.migs = probe->mig_count,
	};
	int r;

	text_copy(header.boot, sizeof(header.boot), boot);
	text_copy(header.view, sizeof(header.view), view);
	text_copy(header.trouble, sizeof(header.trouble), probe->trouble.text);
	r = record_encode(&header_schema, &header, raw);
	for (uint32_t i = 0; !r && i < probe->gpu_count; i++)
		r = encode_gpu(&probe->gpus[i], raw += RECORD_SIZE);
	for (uint32_t i = 0; !r && i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		struct process_row row = { process->gpu, (uint32_t)process->pid,
			process->used_mib, process->peak_mib, process->start };

		r = record_encode(&process_schema, &row, raw += RECORD_SIZE);
	}
	for (uint32_t i = 0; !r && i < probe->mig_count; i++)
		r = record_encode(&mig_schema, &probe->migs[i], raw += RECORD_SIZE);
	return r;
}

/* Decodes what encode_probe() wrote; skips records of types that a later version may add. */
static int decode_probe(
	const struct statedir *dir, const char *raw, size_t records, struct probe *ret)
{
	char view[VIEW_SIZE];
	struct probe_header header;
	int r = record_decode(&header_schema, raw, &header);

	if (r < 0)
		return r;
	/* a process that sees other GPUs or other pids must not use this result */
	if (strcmp(header.boot, dir->boot) != 0 || !read_view(dir, view) ||
		strcmp(header.view, view) != 0 || header.gpus > GPUSET_MAX ||
		header.processes > PROBE_PROCESSES_MAX || header.migs > PROBE_MIGS_MAX)
		return -EINVAL;
	probe_begin(ret, header.started_ms, header.finished_ms);
	text_copy(ret->trouble.text, sizeof(ret->trouble.text), header.trouble);
	for (size_t i = 1; i < records && r >= 0; i++) {
		raw += RECORD_SIZE;
		if (record_is(raw, gpu_schema.type) && ret->gpu_count < header.gpus)
			r = decode_gpu(raw, &ret->gpus[ret->gpu_count++]);
		else if (record_is(raw, process_schema.type) &&
			 ret->process_count < header.processes)
			r = decode_process(
				raw, header.gpus, &ret->processes[ret->process_count++]);
		else if (record_is(raw, mig_schema.type) && ret->mig_count < header.migs)
			r = decode_mig(raw, header.gpus, &ret->migs[ret->mig_count++]);
	}
	/* fewer records than the header says: the file was cut */
	if (r < 0 || ret->gpu_count < header.gpus ||
		ret->process_count < header.processes || ret->mig_count < header.migs)
		return -EINVAL;
	return 0;
}

/* --- files -------------------------------------------------------------------------- */

void probe_copy(const struct probe *from, struct probe *to)
{
	probe_begin(to, from->started_ms, from->finished_ms);
	to->is_sound = from->is_sound;
	to->trouble = from->trouble;
	to->gpu_count = from->gpu_count;
	to->process_count = from->process_count;
	to->mig_count = from->mig_count;
	memcpy(to->gpus, from->gpus, from->gpu_count * sizeof(*from->gpus));
	memcpy(to->processes, from->processes,
		from->process_count * sizeof(*from->processes));
	memcpy(to->migs, from->migs, from->mig_count * sizeof(*from->migs));
}

int probe_load(const struct statedir *dir, struct probe *ret)
{
	autofree struct probe *probe = NULL;
	autofree char *raw = NULL;
	size_t size;
	int r = fdio_read_all(
		dir->fd, RESULT, RECORD_SIZE, RECORDS_MAX * RECORD_SIZE, &raw, &size);

	if (r != 0)
		return r < 0 ? r : PROBE_NONE;
	probe = malloc(sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	if (decode_probe(dir, raw, size / RECORD_SIZE, probe) < 0)
		return PROBE_NONE;
	probe_copy(probe, ret);
	return 0;
}

/* Stores @raw as the shared result.  Returns 0 or a negative errno. */
static int replace_result(int dirfd, const char *raw, size_t size)
{
	int r = fdio_replace(dirfd, RESULT, TEMPORARY, raw, size, FDIO_MODE_SHARED);

	if (r != -EEXIST)
		return r;
	/*
	 * A crash left the temporary file, or a process that probes without a lock is writing it at
	 * this moment.  In the second case the other process's rename moves our file into place,
	 * perhaps before it is complete; readers ignore it until it is.  Our own rename then
	 * fails with ENOENT, which is no error.
	 */
	(void)unlinkat(dirfd, TEMPORARY, 0);
	r = fdio_replace(dirfd, RESULT, TEMPORARY, raw, size, FDIO_MODE_SHARED);
	return r == -ENOENT ? 0 : r;
}

/* Sets ->start of every process, which tells it from a later process with the same pid. */
static void find_process_starts(struct probe *probe)
{
	for (uint32_t i = 0; i < probe->process_count; i++) {
		struct probe_process *process = &probe->processes[i];
		struct process_stat stat;

		process->start = 0;
		if (process->pid > 0 &&
			process_stat_read((uint32_t)process->pid, &stat) == 0)
			process->start = stat.start;
	}
}

int probe_store(const struct statedir *dir, const struct usage_policy *policy,
	const struct probe *before, struct probe *probe)
{
	size_t size = count_records(probe) * RECORD_SIZE;
	autofree struct probe *last = malloc(sizeof(*last));
	autofree char *raw = malloc(size);
	char view[VIEW_SIZE];
	int r;

	if (!last || !raw)
		return -ENOMEM;
	/* the stored result may be newer than @before: another process may have probed since */
	r = probe_load(dir, last);
	before = r == 0 ? last : before;
	/* the marks are set even if the result is not stored: the caller uses them, too */
	probe_mark_idle(probe, before, policy);
	find_process_starts(probe);
	probe_mark_peaks(probe, before);
	/* never share a result without GPUs, nor, on a hardened machine, an unsound one */
	if (!probe->gpu_count || (dir->is_hardened && !probe->is_sound))
		return 0;
	/* a failure of this process must not hide what another process sees */
	if (r == 0 && probe_has_failed(probe) && !probe_has_failed(last))
		return 0;
	/*
	 * Another process has started a probe later and stored it already.  But a result that
	 * claims to start after this probe has ended is damage, and would stay for ever.
	 */
	if (r == 0 && last->started_ms > probe->started_ms &&
		last->started_ms <= probe->finished_ms)
		return 0;
	if (!read_view(dir, view))
		return -EACCES;
	r = encode_probe(dir->boot, view, probe, raw);
	return r < 0 ? r : replace_result(dir->fd, raw, size);
}

/* --- simulated GPUs ----------------------------------------------------------------- */

void probe_simulate(unsigned gpus, uint64_t mib, int64_t now_ms, struct probe *ret)
{
	probe_begin(ret, now_ms, now_ms);
	for (unsigned i = 0; i < gpus && i < GPUSET_MAX; i++) {
		struct probe_gpu *gpu = &ret->gpus[ret->gpu_count++];

		*gpu = (struct probe_gpu){
			.index = (int)i,
			.total_mib = mib,
			.is_known = true,
		};
		(void)snprintf(gpu->uuid, sizeof(gpu->uuid),
			"GPU-51111111-0000-4000-8000-%012x", i);
		(void)snprintf(gpu->bus_id, sizeof(gpu->bus_id), "0000:%02x:00.0", i + 1);
		text_copy(gpu->name, sizeof(gpu->name), "Simulated GPU");
		text_copy(gpu->compute_mode, sizeof(gpu->compute_mode), "Default");
	}
	if (ret->gpu_count == 0)
		why_set(&ret->trouble, "no simulated GPUs");
}
