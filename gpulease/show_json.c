#include "explain.h"
#include "operands.h"
#include "parse.h"
#include "render_json.h"
#include "show.h"

/* --- members ----------------------------------------------------------------------- */

static void put_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

static void put_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

static void put_number(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_unsigned(json, value);
}

static void put_number_if(
	struct json *json, const char *key, bool is_known, uint64_t value)
{
	json_key(json, key);
	if (is_known)
		json_unsigned(json, value);
	else
		json_null(json);
}

/* A negative value is null. */
static void put_span(struct json *json, const char *key, int64_t value)
{
	put_number_if(json, key, value >= 0, (uint64_t)value);
}

/* 0 is null. */
static void put_time(struct json *json, const char *key, int64_t value)
{
	put_number_if(json, key, value > 0, (uint64_t)value);
}

/* A share of a GPU in percent; @is_known is false where that does not apply. */
static void put_share(struct json *json, const char *key, bool is_known, int64_t percent)
{
	json_key(json, key);
	if (is_known)
		json_hundredths(json, (uint64_t)percent);
	else
		json_null(json);
}

/* What a job has, or wants to have, of a GPU. */
static void put_need(struct json *json, const struct need *need)
{
	bool is_whole = need_is_whole(need);

	put_share(json, "share", need->percent && !is_whole, need->percent);
	put_number_if(json, "vram_mib", need->mib, need->mib);
	put_bool(json, "exclusive", is_whole);
}

static void begin(
	struct json *json, const char *format, int64_t now_ms, const char *directory)
{
	json_begin_object(json);
	put_text(json, "format", format);
	put_time(json, "taken_unix_ms", now_ms);
	put_text(json, "state_directory", directory);
}

static void finish(struct json *json)
{
	json_end(json);
	json_finish(json);
}

/* --- the queue --------------------------------------------------------------------- */

/* The ids in the list of a request. */
static void put_ids(struct json *json, const char *key, const char *list)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOB);
	struct operand job;

	json_key(json, key);
	json_begin_array(json);
	while (*list && operand_next(&walk, &job, NULL) == 0)
		json_unsigned(json, job.first);
	json_end(json);
}

/* The kinds of reasons, as programs know them. */
static const char *const reasons[] = {
	[VERDICT_START] = NULL,
	[VERDICT_LEASED] = "leased",
	[VERDICT_BEHIND] = "behind",
	[VERDICT_GPU] = "gpu",
	[VERDICT_HELD] = "held",
	[VERDICT_LIMIT] = "limit",
};

static void put_job(
	struct json *json, const struct view *view, const struct view_job *job)
{
	json_begin_object(json);
	put_number(json, "position", (uint64_t)(job - view->jobs) + 1);
	put_number(json, "ticket", job->ticket);
	json_put_text(json, "name", job->name);
	put_text(json, "user", job->user);
	put_number_if(json, "pid", job->pid, job->pid);
	put_number(json, "gpus", job->gpus);
	put_need(json, &job->need);
	json_key(json, "priority");
	json_signed(json, job->priority);
	put_ids(json, "after", job->after);
	put_ids(json, "after_ok", job->after_ok);
	put_bool(json, "singleton", job->is_singleton);
	put_time(json, "limit_ms", job->limit_ms);
	put_time(json, "since_unix_ms", view->real_ms - job->waits_ms);
	put_span(json, "waits_ms", job->waits_ms);
	put_time(json, "start_at_unix_ms", job->start_ms);
	put_bool(json, "can_start", job->verdict == VERDICT_START);
	put_bool(json, "stopped", job->is_stopped);
	json_put_text(json, "reason_kind", reasons[job->verdict]);
	put_number_if(json, "behind", job->behind, job->behind);
	put_number_if(json, "held_by", job->held_by, job->held_by);
	put_text(json, "why", job->why);
	json_put_text(json, "command", job->command);
	json_end(json);
}

static void put_queue(struct json *json, const struct view *view)
{
	json_key(json, "queue");
	json_begin_array(json);
	for (size_t i = 0; i < view->job_count; i++)
		put_job(json, view, &view->jobs[i]);
	json_end(json);
	put_bool(json, "queue_is_cut", view->has_more_jobs);
}

void show_queue_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	begin(&json, "gpulease-queue/1", view->real_ms, view->directory);
	put_queue(&json, view);
	finish(&json);
}

/* --- the status -------------------------------------------------------------------- */

static void put_card(struct json *json, const struct view_gpu *gpu)
{
	put_number(json, "index", gpu->index);
	put_span(json, "instance", gpu->instance);
	json_put_text(json, "parent", gpu->parent);
	put_text(json, "uuid", gpu->uuid);
	json_put_text(json, "bus_id", gpu->bus_id);
	json_put_text(json, "model", gpu->model);
	put_number_if(json, "memory_total_mib", gpu->total_mib, gpu->total_mib);
	put_number_if(json, "memory_used_mib", gpu->used_mib != PROBE_MIB_UNKNOWN,
		gpu->used_mib);
	put_span(json, "utilization_percent", gpu->utilization);
}

static void put_migs(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	json_key(json, "mig");
	json_begin_array(json);
	for (size_t i = 0; i < view->mig_count; i++) {
		const struct probe_mig *mig = &view->migs[i];

		if (gpu->row < 0 || mig->gpu != (uint32_t)gpu->row)
			continue;
		json_begin_object(json);
		put_number(json, "device", mig->device);
		put_text(json, "profile", mig->profile);
		put_text(json, "uuid", mig->uuid);
		json_end(json);
	}
	json_end(json);
}

/* What the GPU has of its first holder, and each entry of ->leases. */
static void put_holder(
	struct json *json, const struct view *view, const struct view_holder *holder)
{
	put_number_if(json, "ticket", holder->ticket, holder->ticket);
	json_put_text(json, "name", holder->name);
	json_put_text(json, "user", holder->user);
	put_number_if(json, "pid", holder->pid, holder->pid);
	json_put_text(json, "command", holder->command);
	put_span(json, "age_ms", holder->age_ms);
	put_time(json, "started_unix_ms",
		holder->age_ms >= 0 ? view->real_ms - holder->age_ms : 0);
	put_time(json, "limit_ms", holder->limit_ms);
}

static void put_leases(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	json_key(json, "leases");
	json_begin_array(json);
	for (size_t i = 0; i < gpu->holder_count; i++) {
		const struct view_holder *holder = &gpu->holders[i];

		if (!holder->ticket)
			continue;
		json_begin_object(json);
		put_holder(json, view, holder);
		put_bool(json, "lingering", holder->is_lingering);
		put_need(json, &holder->need);
		put_number_if(json, "peak_mib", holder->peak_mib, holder->peak_mib);
		json_end(json);
	}
	json_end(json);
}

static void put_gpu(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	static const struct view_holder nobody = { .age_ms = VIEW_UNKNOWN };

	json_begin_object(json);
	put_card(json, gpu);
	put_text(json, "state", state_word(gpu->state));
	json_put_text(json, "why", gpu->why);
	put_bool(json, "paused", gpu->is_paused);
	json_put_text(json, "paused_by", gpu->is_paused ? gpu->paused_by : "");
	json_put_text(json, "pause_reason", gpu->is_paused ? gpu->reason : "");
	put_span(json, "idle_for_ms", gpu->idle_ms);
	put_holder(json, view, gpu->holder_count ? gpu->holders : &nobody);
	put_share(json, "free_share", gpu->free_percent >= 0, gpu->free_percent);
	put_span(json, "free_mib", gpu->free_mib);
	put_span(json, "foreign_mib", gpu->foreign_mib);
	put_leases(json, view, gpu);
	put_migs(json, view, gpu);
	json_end(json);
}

static void put_probe(struct json *json, const struct view *view)
{
	json_key(json, "nvidia_smi");
	json_begin_object(json);
	put_bool(json, "found", view->has_nvidia_smi);
	put_span(json, "answer_age_ms", view->probe_age_ms);
	put_bool(json, "is_old", view->is_probe_old);
	json_put_text(json, "trouble", view->trouble);
	json_end(json);
}

void show_status_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	begin(&json, "gpulease-status/1", view->real_ms, view->directory);
	put_bool(&json, "simulated", view->is_simulated);
	put_probe(&json, view);
	put_number(&json, "broken_records", view->broken_records);
	json_key(&json, "gpus");
	json_begin_array(&json);
	for (size_t i = 0; i < view->gpu_count; i++)
		put_gpu(&json, view, &view->gpus[i]);
	json_end(&json);
	put_queue(&json, view);
	finish(&json);
}

/* --- the history ------------------------------------------------------------------- */

/* "0,3" of a record, or "0:1", an instance; what is no number is left out. */
static void put_indices(struct json *json, const char *list)
{
	const char *colon = strchr(list, ':');
	uint64_t device;
	bool is_instance = colon && parse_u64(colon + 1, UINT32_MAX, &device, NULL) == 0;

	json_key(json, "gpus");
	json_begin_array(json);
	for (;; list++) {
		size_t size = strcspn(list, ",:");
		char word[16];
		uint64_t index;

		(void)snprintf(word, sizeof(word), "%.*s",
			(int)min_i64((int64_t)size, 15), list);
		if (parse_u64(word, UINT32_MAX, &index, NULL) == 0)
			json_unsigned(json, index);
		list += size + strcspn(list + size, ",");
		if (!*list)
			break;
	}
	json_end(json);
	put_number_if(json, "instance", is_instance, is_instance ? device : 0);
}

static void put_end(struct json *json, const struct history_end *end)
{
	int64_t least = -1, most = -1;
	uint64_t status = 0;
	bool has_status = parse_u64(end->status, 255, &status, NULL) == 0;

	(void)ended_span_ms(end, &least, &most);
	json_begin_object(json);
	put_number(json, "ticket", end->ticket);
	json_put_text(json, "name", end->name);
	put_text(json, "user", end->user);
	put_number(json, "uid", end->uid);
	put_indices(json, end->gpus);
	put_time(json, "started_unix_ms", end->since_ms);
	put_time(json, "alive_unix_ms", end->alive_ms);
	put_time(json, "gone_unix_ms", end->gone_ms);
	put_span(json, "ran_at_least_ms", least);
	put_span(json, "ran_at_most_ms", most);
	put_text(json, "how", ended_how(end));
	json_put_text(json, "by", end->by);
	put_number_if(json, "status", has_status, status);
	json_put_text(json, "command", end->command);
	json_end(json);
}

void show_history_json(const struct history_end *ends, size_t count, int64_t now_ms,
	const char *directory, FILE *out)
{
	struct json json = JSON_ON(out);

	begin(&json, "gpulease-history/1", now_ms, directory);
	json_key(&json, "jobs");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		put_end(&json, &ends[i]);
	json_end(&json);
	finish(&json);
}
