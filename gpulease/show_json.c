#include "explain.h"
#include "operands.h"
#include "show_parts.h"

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
	member_number(json, "position", (uint64_t)(job - view->jobs) + 1);
	member_number(json, "ticket", job->ticket);
	member_number(json, "attempt", job->attempt);
	json_put_text(json, "name", job->name);
	member_text(json, "user", job->user);
	member_number_if(json, "pid", job->pid, job->pid);
	member_number(json, "gpus", job->gpus);
	member_need(json, &job->need);
	json_key(json, "priority");
	json_signed(json, job->priority);
	put_ids(json, "after", job->after);
	put_ids(json, "after_ok", job->after_ok);
	member_bool(json, "singleton", job->is_singleton);
	member_time(json, "limit_ms", job->limit_ms);
	member_time(json, "since_unix_ms", view->real_ms - job->waits_ms);
	member_span(json, "waits_ms", job->waits_ms);
	member_time(json, "start_at_unix_ms", job->start_ms);
	member_bool(json, "can_start", job->verdict == VERDICT_START);
	member_bool(json, "stopped", job->is_stopped);
	json_put_text(json, "stuck", job->stuck);
	json_put_text(json, "reason_kind", reasons[job->verdict]);
	member_number_if(json, "behind", job->behind, job->behind);
	member_number_if(json, "held_by", job->held_by, job->held_by);
	member_text(json, "why", job->why);
	json_put_text(json, "command", job->command);
	json_end(json);
}

/*
 * Of a job that runs: what its GPU has of it, each entry of "leases", and of those without.
 */
static void put_holder(
	struct json *json, const struct view *view, const struct view_holder *holder)
{
	member_number_if(json, "ticket", holder->ticket, holder->ticket);
	member_number_if(json, "attempt", holder->ticket, holder->attempt);
	json_put_text(json, "name", holder->name);
	json_put_text(json, "user", holder->user);
	member_number_if(json, "pid", holder->pid, holder->pid);
	json_put_text(json, "command", holder->command);
	member_span(json, "age_ms", holder->age_ms);
	member_time(json, "started_unix_ms",
		holder->age_ms >= 0 ? view->real_ms - holder->age_ms : 0);
	member_time(json, "limit_ms", holder->limit_ms);
}

static void put_gpuless(struct json *json, const struct view *view)
{
	json_key(json, "running_without_gpus");
	json_begin_array(json);
	for (size_t i = 0; i < view->gpuless_count; i++) {
		json_begin_object(json);
		put_holder(json, view, &view->gpuless[i]);
		json_end(json);
	}
	json_end(json);
}

static void put_queue(struct json *json, const struct view *view)
{
	json_key(json, "queue");
	json_begin_array(json);
	for (size_t i = 0; i < view->job_count; i++)
		put_job(json, view, &view->jobs[i]);
	json_end(json);
	member_bool(json, "queue_is_cut", view->has_more_jobs);
	put_gpuless(json, view);
}

void show_queue_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "gpulease-queue/1", view->real_ms, view->directory);
	put_queue(&json, view);
	member_excess(&json, view);
	document_finish(&json);
}

/* --- the status -------------------------------------------------------------------- */

static void put_card(struct json *json, const struct view_gpu *gpu)
{
	member_number(json, "index", gpu->index);
	member_span(json, "instance", gpu->instance);
	json_put_text(json, "parent", gpu->parent);
	member_text(json, "uuid", gpu->uuid);
	json_put_text(json, "bus_id", gpu->bus_id);
	json_put_text(json, "model", gpu->model);
	member_number_if(json, "memory_total_mib", gpu->total_mib, gpu->total_mib);
	member_number_if(json, "memory_used_mib", gpu->used_mib != PROBE_MIB_UNKNOWN,
		gpu->used_mib);
	member_span(json, "utilization_percent", gpu->utilization);
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
		member_number(json, "device", mig->device);
		member_text(json, "profile", mig->profile);
		member_text(json, "uuid", mig->uuid);
		json_end(json);
	}
	json_end(json);
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
		member_bool(json, "lingering", holder->is_lingering);
		member_need(json, &holder->need);
		member_number_if(json, "peak_mib", holder->peak_mib, holder->peak_mib);
		member_bool(json, "over_declared", holder->is_over_declared);
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
	member_text(json, "state", state_word(gpu->state));
	json_put_text(json, "why", gpu->why);
	member_bool(json, "paused", gpu->is_paused);
	json_put_text(json, "paused_by", gpu->is_paused ? gpu->paused_by : "");
	json_put_text(json, "pause_reason", gpu->is_paused ? gpu->reason : "");
	member_span(json, "idle_for_ms", gpu->idle_ms);
	put_holder(json, view, gpu->holder_count ? gpu->holders : &nobody);
	member_share(json, "free_share", gpu->free_percent >= 0, gpu->free_percent);
	member_span(json, "free_mib", gpu->free_mib);
	member_span(json, "foreign_mib", gpu->foreign_mib);
	put_leases(json, view, gpu);
	put_migs(json, view, gpu);
	json_end(json);
}

static void put_probe(struct json *json, const struct view *view)
{
	json_key(json, "nvidia_smi");
	json_begin_object(json);
	member_bool(json, "found", view->has_nvidia_smi);
	member_span(json, "answer_age_ms", view->probe_age_ms);
	member_bool(json, "is_old", view->is_probe_old);
	json_put_text(json, "trouble", view->trouble);
	json_end(json);
}

void show_status_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "gpulease-status/1", view->real_ms, view->directory);
	member_bool(&json, "simulated", view->is_simulated);
	put_probe(&json, view);
	member_number(&json, "broken_records", view->broken_records);
	member_number(&json, "without_slot", view->slotless);
	json_key(&json, "gpus");
	json_begin_array(&json);
	for (size_t i = 0; i < view->gpu_count; i++)
		put_gpu(&json, view, &view->gpus[i]);
	json_end(&json);
	put_queue(&json, view);
	document_finish(&json);
}
