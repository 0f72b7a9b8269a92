#include <errno.h>

#include "array.h"
#include "json_fields.h"
#include "machine_read.h"

/* clang-format off */
#define ROW(kind, type, field, key) { key, kind, offsetof(struct type, field), 0, NULL }
#define TEXT_ROW(type, field, key)                                                      \
	{ key, FIELD_TEXT, offsetof(struct type, field), sizeof(((struct type *)0)->field), NULL }
#define EACH(key, reader) { key, FIELD_EACH, 0, 0, reader }
#define END { NULL, FIELD_TEXT, 0, 0, NULL }

/* --- leases ------------------------------------------------------------------------------ */

static const struct json_field lease_fields[] = {
	ROW(FIELD_NUMBER, machine_lease, job, "ticket"),
	ROW(FIELD_NUMBER, machine_lease, attempt, "attempt"),
	ROW(FIELD_NUMBER, machine_lease, pid, "pid"),
	ROW(FIELD_NUMBER, machine_lease, age_ms, "age_ms"),
	ROW(FIELD_NUMBER, machine_lease, started_unix_ms, "started_unix_ms"),
	ROW(FIELD_NUMBER, machine_lease, limit_ms, "limit_ms"),
	ROW(FIELD_NUMBER, machine_lease, vram_mib, "vram_mib"),
	ROW(FIELD_NUMBER, machine_lease, peak_mib, "peak_mib"),
	ROW(FIELD_DECIMAL, machine_lease, share, "share"),
	ROW(FIELD_BOOL, machine_lease, is_exclusive, "exclusive"),
	ROW(FIELD_BOOL, machine_lease, is_lingering, "lingering"),
	ROW(FIELD_BOOL, machine_lease, is_over_declared, "over_declared"),
	ROW(FIELD_NUMBER, machine_lease, utilization_percent, "utilization_mean_percent"),
	ROW(FIELD_NUMBER, machine_lease, unused_for_ms, "unused_for_ms"),
	ROW(FIELD_NUMBER, machine_lease, unused_ms, "unused_ms"),
	ROW(FIELD_NUMBER, machine_lease, unused_ok_ms, "unused_ok_ms"),
	ROW(FIELD_BOOL, machine_lease, is_unused, "unused"),
	ROW(FIELD_BOOL, machine_lease, is_watched, "watched"),
	TEXT_ROW(machine_lease, user, "user"),
	TEXT_ROW(machine_lease, name, "name"),
	TEXT_ROW(machine_lease, command, "command"),
	END
};
/* clang-format on */

/* Adds the lease in @object, of the GPU with the index @gpu. */
static int add_lease(struct machine *machine, const struct json_value *object, size_t gpu)
{
	struct machine_lease *list = array_grow(machine->leases, sizeof(*list),
		machine->lease_count, &machine->lease_room);
	struct machine_lease *lease;

	if (!list)
		return -ENOMEM;
	machine->leases = list;
	lease = &list[machine->lease_count++];
	*lease = (struct machine_lease){ .gpu = gpu,
		.job = -1,
		.attempt = -1,
		.pid = -1,
		.age_ms = -1,
		.started_unix_ms = -1,
		.limit_ms = -1,
		.vram_mib = -1,
		.peak_mib = -1,
		.utilization_percent = -1,
		.unused_for_ms = -1,
		.unused_ms = -1,
		.unused_ok_ms = -1 };
	return json_fields_read(lease_fields, object, lease);
}

static int add_job_without_gpu(const struct json_value *object, void *machine)
{
	return add_lease(machine, object, SIZE_MAX);
}

/* --- GPUs --------------------------------------------------------------------------------- */

/* A GPU, and the leases in it, which become entries of a list of the machine. */
struct gpu_place {
	struct machine_gpu gpu;
	struct machine *machine;
};

static int add_lease_of_gpu(const struct json_value *object, void *record)
{
	struct machine *machine = ((struct gpu_place *)record)->machine;

	return add_lease(machine, object, machine->gpu_count);
}

static int note_instance(const struct json_value *object, void *record)
{
	(void)object;
	((struct gpu_place *)record)->gpu.is_divided = true;
	return 0;
}

/* clang-format off */
static const struct json_field gpu_fields[] = {
	ROW(FIELD_NUMBER, gpu_place, gpu.index, "index"),
	ROW(FIELD_NUMBER, gpu_place, gpu.instance, "instance"),
	ROW(FIELD_NUMBER, gpu_place, gpu.total_mib, "memory_total_mib"),
	ROW(FIELD_NUMBER, gpu_place, gpu.used_mib, "memory_used_mib"),
	ROW(FIELD_NUMBER, gpu_place, gpu.utilization_percent, "utilization_percent"),
	ROW(FIELD_NUMBER, gpu_place, gpu.idle_for_ms, "idle_for_ms"),
	ROW(FIELD_NUMBER, gpu_place, gpu.pid, "pid"),
	ROW(FIELD_BOOL, gpu_place, gpu.is_paused, "paused"),
	TEXT_ROW(gpu_place, gpu.state, "state"),
	TEXT_ROW(gpu_place, gpu.node, "node"),
	TEXT_ROW(gpu_place, gpu.uuid, "uuid"),
	TEXT_ROW(gpu_place, gpu.model, "model"),
	TEXT_ROW(gpu_place, gpu.user, "user"),
	TEXT_ROW(gpu_place, gpu.why, "why"),
	TEXT_ROW(gpu_place, gpu.paused_by, "paused_by"),
	TEXT_ROW(gpu_place, gpu.command, "command"),
	EACH("leases", add_lease_of_gpu),
	EACH("mig", note_instance),
	END
};
/* clang-format on */

static int add_gpu(const struct json_value *object, void *record)
{
	struct machine *machine = record;
	struct gpu_place place = { .machine = machine,
		.gpu = { .index = -1,
			.instance = -1,
			.total_mib = -1,
			.used_mib = -1,
			.utilization_percent = -1,
			.idle_for_ms = -1,
			.pid = -1 } };
	struct machine_gpu *list = array_grow(
		machine->gpus, sizeof(*list), machine->gpu_count, &machine->gpu_room);
	int r;

	if (!list)
		return -ENOMEM;
	machine->gpus = list;
	r = json_fields_read(gpu_fields, object, &place);
	/* an instance lists the instances of its GPU, too */
	place.gpu.is_divided = place.gpu.is_divided && place.gpu.instance < 0;
	list[machine->gpu_count++] = place.gpu;
	return r;
}

/* --- the queue ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct json_field ticket_fields[] = {
	ROW(FIELD_NUMBER, machine_ticket, position, "position"),
	ROW(FIELD_NUMBER, machine_ticket, job, "ticket"),
	ROW(FIELD_NUMBER, machine_ticket, attempt, "attempt"),
	ROW(FIELD_NUMBER, machine_ticket, pid, "pid"),
	ROW(FIELD_NUMBER, machine_ticket, gpus, "gpus"),
	ROW(FIELD_NUMBER, machine_ticket, vram_mib, "vram_mib"),
	ROW(FIELD_NUMBER, machine_ticket, priority, "priority"),
	ROW(FIELD_NUMBER, machine_ticket, limit_ms, "limit_ms"),
	ROW(FIELD_NUMBER, machine_ticket, since_unix_ms, "since_unix_ms"),
	ROW(FIELD_NUMBER, machine_ticket, waits_ms, "waits_ms"),
	ROW(FIELD_NUMBER, machine_ticket, start_at_unix_ms, "start_at_unix_ms"),
	ROW(FIELD_NUMBER, machine_ticket, held_by, "held_by"),
	ROW(FIELD_NUMBER, machine_ticket, behind, "behind"),
	ROW(FIELD_DECIMAL, machine_ticket, share, "share"),
	ROW(FIELD_BOOL, machine_ticket, is_exclusive, "exclusive"),
	ROW(FIELD_BOOL, machine_ticket, is_stopped, "stopped"),
	ROW(FIELD_BOOL, machine_ticket, can_start, "can_start"),
	TEXT_ROW(machine_ticket, user, "user"),
	TEXT_ROW(machine_ticket, name, "name"),
	TEXT_ROW(machine_ticket, reason_kind, "reason_kind"),
	TEXT_ROW(machine_ticket, why, "why"),
	TEXT_ROW(machine_ticket, command, "command"),
	END
};
/* clang-format on */

static int add_ticket(const struct json_value *object, void *record)
{
	struct machine *machine = record;
	struct machine_ticket *list = array_grow(machine->queue, sizeof(*list),
		machine->queue_count, &machine->queue_room);
	struct machine_ticket *ticket;

	if (!list)
		return -ENOMEM;
	machine->queue = list;
	ticket = &list[machine->queue_count++];
	*ticket = (struct machine_ticket){ .position = -1,
		.job = -1,
		.attempt = -1,
		.pid = -1,
		.gpus = -1,
		.vram_mib = -1,
		.limit_ms = -1,
		.since_unix_ms = -1,
		.waits_ms = -1,
		.start_at_unix_ms = -1,
		.held_by = -1,
		.behind = -1 };
	return json_fields_read(ticket_fields, object, ticket);
}

/* --- windows ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct json_field window_fields[] = {
	TEXT_ROW(machine_window, gpus, "gpus"),
	TEXT_ROW(machine_window, but, "but"),
	TEXT_ROW(machine_window, by, "by"),
	TEXT_ROW(machine_window, reason, "reason"),
	ROW(FIELD_NUMBER, machine_window, from_unix_ms, "from_unix_ms"),
	ROW(FIELD_NUMBER, machine_window, until_unix_ms, "until_unix_ms"),
	ROW(FIELD_BOOL, machine_window, has_begun, "has_begun"),
	END
};
/* clang-format on */

static int add_window(const struct json_value *object, void *record)
{
	struct machine *machine = record;
	struct machine_window *list = array_grow(machine->windows, sizeof(*list),
		machine->window_count, &machine->window_room);
	struct machine_window *window;

	if (!list)
		return -ENOMEM;
	machine->windows = list;
	window = &list[machine->window_count++];
	*window = (struct machine_window){ .from_unix_ms = -1, .until_unix_ms = -1 };
	return json_fields_read(window_fields, object, window);
}

/* --- the machine -------------------------------------------------------------------------- */

/* clang-format off */
static const struct json_field nvidia_smi_fields[] = {
	ROW(FIELD_BOOL, machine, has_nvidia_smi, "found"),
	ROW(FIELD_NUMBER, machine, answer_age_ms, "answer_age_ms"),
	ROW(FIELD_BOOL, machine, is_answer_old, "is_old"),
	TEXT_ROW(machine, trouble, "trouble"),
	END
};
/* clang-format on */

static int read_nvidia_smi(const struct json_value *object, void *machine)
{
	return json_fields_read(nvidia_smi_fields, object, machine);
}

/* clang-format off */
static const struct json_field machine_fields[] = {
	TEXT_ROW(machine, version, "version"),
	TEXT_ROW(machine, host, "host"),
	TEXT_ROW(machine, engine, "engine"),
	ROW(FIELD_NUMBER, machine, taken_unix_ms, "taken_unix_ms"),
	ROW(FIELD_BOOL, machine, is_simulated, "simulated"),
	ROW(FIELD_BOOL, machine, is_queue_cut, "queue_is_cut"),
	{ "nvidia_smi", FIELD_WHOLE, 0, 0, read_nvidia_smi },
	EACH("gpus", add_gpu),
	EACH("queue", add_ticket),
	EACH("windows", add_window),
	EACH("running_without_gpus", add_job_without_gpu),
	END
};
/* clang-format on */

/* Forgets what the machine had, but not its memory. */
static void machine_empty(struct machine *machine)
{
	struct machine empty = MACHINE_NONE;

	empty.gpus = machine->gpus;
	empty.gpu_room = machine->gpu_room;
	empty.leases = machine->leases;
	empty.lease_room = machine->lease_room;
	empty.queue = machine->queue;
	empty.queue_room = machine->queue_room;
	empty.windows = machine->windows;
	empty.window_room = machine->window_room;
	*machine = empty;
}

int machine_read(const char *json, size_t size, struct machine *machine)
{
	struct json_value whole = { .kind = JSON_NESTED, .at = json, .size = size };
	int r;

	machine_empty(machine);
	r = json_fields_read(machine_fields, &whole, machine);
	if (r == 0 && machine->taken_unix_ms < 0)
		r = -EINVAL;
	if (r < 0)
		machine_empty(machine);
	return r;
}

void machine_release(struct machine *machine)
{
	free(machine->gpus);
	free(machine->leases);
	free(machine->queue);
	free(machine->windows);
	*machine = MACHINE_NONE;
}

/* --- jobs that have ended ------------------------------------------------------------------ */

static int add_index(const struct json_value *value, void *record)
{
	struct ended_job *job = record;
	uint64_t index;

	if (job->gpu_listed < ARRAY_SIZE(job->gpus) &&
		json_read_unsigned(value, UINT8_MAX, &index) == 0)
		job->gpus[job->gpu_listed++] = (uint8_t)index;
	return 0;
}

static int add_peak(const struct json_value *value, void *record)
{
	struct ended_job *job = record;
	int64_t peak_mib;

	if (json_read_signed(value, 0, INT64_MAX, &peak_mib) == 0 &&
		peak_mib > job->peak_mib)
		job->peak_mib = peak_mib;
	return 0;
}

/* clang-format off */
static const struct json_field ended_fields[] = {
	ROW(FIELD_NUMBER, ended_job, job, "ticket"),
	ROW(FIELD_NUMBER, ended_job, attempt, "attempt"),
	ROW(FIELD_NUMBER, ended_job, uid, "uid"),
	ROW(FIELD_NUMBER, ended_job, gpu_count, "gpu_count"),
	ROW(FIELD_NUMBER, ended_job, instance, "instance"),
	ROW(FIELD_NUMBER, ended_job, waited_ms, "waited_ms"),
	ROW(FIELD_NUMBER, ended_job, started_unix_ms, "started_unix_ms"),
	ROW(FIELD_NUMBER, ended_job, alive_unix_ms, "alive_unix_ms"),
	ROW(FIELD_NUMBER, ended_job, gone_unix_ms, "gone_unix_ms"),
	ROW(FIELD_NUMBER, ended_job, ran_least_ms, "ran_at_least_ms"),
	ROW(FIELD_NUMBER, ended_job, ran_most_ms, "ran_at_most_ms"),
	ROW(FIELD_NUMBER, ended_job, status, "status"),
	ROW(FIELD_NUMBER, ended_job, utilization_percent, "utilization_mean_percent"),
	ROW(FIELD_NUMBER, ended_job, unused_ms, "unused_ms"),
	ROW(FIELD_NUMBER, ended_job, unused_at_end_ms, "unused_at_end_ms"),
	ROW(FIELD_DECIMAL, ended_job, share, "share"),
	ROW(FIELD_DECIMAL, ended_job, gpu_seconds, "gpu_seconds"),
	TEXT_ROW(ended_job, user, "user"),
	TEXT_ROW(ended_job, name, "name"),
	TEXT_ROW(ended_job, state, "state"),
	TEXT_ROW(ended_job, how, "how"),
	TEXT_ROW(ended_job, by, "by"),
	TEXT_ROW(ended_job, command, "command"),
	EACH("gpus", add_index),
	EACH("peak_mib", add_peak),
	END
};
/* clang-format on */

static int add_ended(const struct json_value *object, void *record)
{
	struct ended_jobs *jobs = record;
	struct ended_job *list =
		array_grow(jobs->list, sizeof(*list), jobs->count, &jobs->room);
	struct ended_job *job;

	if (!list)
		return -ENOMEM;
	jobs->list = list;
	job = &list[jobs->count++];
	*job = (struct ended_job){ .job = -1,
		.attempt = -1,
		.uid = -1,
		.gpu_count = -1,
		.waited_ms = -1,
		.started_unix_ms = -1,
		.alive_unix_ms = -1,
		.gone_unix_ms = -1,
		.ran_least_ms = -1,
		.ran_most_ms = -1,
		.status = -1,
		.utilization_percent = -1,
		.unused_ms = -1,
		.unused_at_end_ms = -1,
		.peak_mib = -1,
		.instance = -1 };
	return json_fields_read(ended_fields, object, job);
}

/* clang-format off */
static const struct json_field history_fields[] = {
	ROW(FIELD_NUMBER, ended_jobs, taken_unix_ms, "taken_unix_ms"),
	ROW(FIELD_NUMBER, ended_jobs, missing_lines, "missing_lines"),
	ROW(FIELD_NUMBER, ended_jobs, missing_unix_ms, "missing_unix_ms"),
	EACH("jobs", add_ended),
	END
};
/* clang-format on */

static void ended_jobs_empty(struct ended_jobs *jobs)
{
	struct ended_jobs empty = ENDED_JOBS_NONE;

	empty.list = jobs->list;
	empty.room = jobs->room;
	*jobs = empty;
}

int ended_jobs_read(const char *json, size_t size, struct ended_jobs *jobs)
{
	struct json_value whole = { .kind = JSON_NESTED, .at = json, .size = size };
	int r;

	ended_jobs_empty(jobs);
	r = json_fields_read(history_fields, &whole, jobs);
	if (r == 0 && jobs->taken_unix_ms < 0)
		r = -EINVAL;
	if (r < 0)
		ended_jobs_empty(jobs);
	return r;
}

void ended_jobs_release(struct ended_jobs *jobs)
{
	free(jobs->list);
	*jobs = ENDED_JOBS_NONE;
}
