#include <errno.h>

#include "clock.h"
#include "explain.h"
#include "look.h"
#include "parse.h"
#include "process.h"
#include "view.h"

enum {
	PROBE_FRESH_MS = 1000, /* a result this old is not asked for again */
	ACTS_WITHIN_MS = 3000, /* who could start and has not is worth a word */
};

/* A pid as it can be used here: that of another pid namespace is none. */
static uint32_t pid_here(const struct look *look, const struct owner *owner)
{
	return owner->pidns == look->context->dir.pidns ? owner->pid : 0;
}

/* --- GPUs -------------------------------------------------------------------------- */

/* Of a command that did not fit into its record /proc may have the rest. */
static void read_rest(uint32_t pid, char *out, size_t size)
{
	static const char mark[] = "\xe2\x80\xa6";
	size_t used = strlen(out), mark_size = sizeof(mark) - 1;
	char whole[VIEW_COMMAND_SIZE];

	if (!pid || used < mark_size || strcmp(out + used - mark_size, mark) != 0)
		return;
	/* unless it calls itself something else by now */
	if (process_command(pid, whole, sizeof(whole)) &&
		strncmp(whole, out, used - mark_size) == 0)
		text_copy(out, size, whole);
}

static void fill_lease(
	const struct look *look, const struct snapshot_lease *held, struct view_gpu *out)
{
	const struct lease *lease = &held->lease;
	struct text user = TEXT_ON(out->user);

	out->ticket = lease->ticket;
	out->pid = held->is_dead ? 0 : pid_here(look, &lease->owner);
	out->age_ms = max_i64(0, look->now_ms - lease->since_ms);
	out->limit_ms = lease->limit_ms;
	describe_user(lease->owner.uid, lease->user, &user);
	if (!may_show_commands_of(lease->owner.uid))
		return;
	text_copy(out->name, sizeof(out->name), lease->name);
	text_copy(out->command, sizeof(out->command), lease->command);
	read_rest(out->pid, out->command, sizeof(out->command));
}

/* What is known of the card: from nvidia-smi, or else from when it was known last. */
static void fill_card(
	const struct snapshot *from, const struct snapshot_gpu *gpu, struct view_gpu *out)
{
	const struct gpu_record *record = &gpu->file.gpu;
	const struct probe_gpu *seen = gpu->row >= 0 ? &from->probe.gpus[gpu->row] : NULL;

	text_copy(out->uuid, sizeof(out->uuid), record->uuid);
	text_copy(out->bus_id, sizeof(out->bus_id), record->bus_id);
	text_copy(out->model, sizeof(out->model), record->model);
	out->total_mib = record->total_mib;
	out->used_mib = PROBE_MIB_UNKNOWN;
	out->utilization = VIEW_UNKNOWN;
	out->idle_ms = VIEW_UNKNOWN;
	out->is_paused = record->is_paused;
	text_copy(out->paused_by, sizeof(out->paused_by), record->paused_by);
	text_copy(out->reason, sizeof(out->reason), record->reason);
	if (!seen)
		return;
	if (seen->bus_id[0])
		text_copy(out->bus_id, sizeof(out->bus_id), seen->bus_id);
	if (seen->name[0])
		text_copy(out->model, sizeof(out->model), seen->name);
	if (seen->total_mib)
		out->total_mib = seen->total_mib;
	out->used_mib = seen->is_known ? seen->used_mib : PROBE_MIB_UNKNOWN;
	out->utilization = seen->utilization;
	if (seen->idle_since_ms > 0)
		out->idle_ms = max_i64(0, from->probe.finished_ms - seen->idle_since_ms);
}

static void fill_gpu(const struct look *look, unsigned slot, struct view_gpu *out)
{
	const struct snapshot *from = &look->snapshot;
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	struct text why = TEXT_ON(out->why);

	fill_card(from, gpu, out);
	out->index = snapshot_gpu_index(from, slot);
	out->row = gpu->row >= 0 ? gpu->row : VIEW_UNKNOWN;
	out->state = gpu->state;
	out->age_ms = VIEW_UNKNOWN;
	if (gpu->lease >= 0) {
		const struct snapshot_lease *held = &from->leases[gpu->lease];

		/* a pause comes after the lease that it found */
		out->state = held->is_dead ? GPU_LINGERING : GPU_LEASED;
		fill_lease(look, held, out);
	} else if (gpu->culprit) {
		out->pid = gpu->culprit;
		process_user(gpu->culprit, out->user, sizeof(out->user));
		if (may_show_process(gpu->culprit))
			(void)process_command(
				gpu->culprit, out->command, sizeof(out->command));
	}
	if (gpu->state != GPU_LEASED)
		explain_gpu(from, slot, &why);
}

/* Of this boot; and all that are on record where nobody can say what there is. */
static bool is_shown(const struct snapshot *from, unsigned slot)
{
	const struct snapshot_gpu *gpu = &from->gpus[slot];

	return gpu->exists || gpu->lease >= 0 ||
	       (!from->has_probe && gpu->file.fd >= 0 && !gpu->is_broken);
}

static int compare_gpus(const void *a, const void *b)
{
	const struct view_gpu *x = a, *y = b;

	return x->index != y->index ? (x->index > y->index) - (x->index < y->index)
				    : strcmp(x->uuid, y->uuid);
}

static int fill_gpus(const struct look *look, struct view *view)
{
	const struct snapshot *from = &look->snapshot;

	view->gpus = calloc(from->slots + 1, sizeof(*view->gpus));
	if (!view->gpus)
		return -ENOMEM;
	for (unsigned slot = 0; slot < from->slots; slot++) {
		view->broken_records +=
			from->gpus[slot].is_broken || from->gpus[slot].is_unusable;
		if (is_shown(from, slot))
			fill_gpu(look, slot, &view->gpus[view->gpu_count++]);
	}
	qsort(view->gpus, view->gpu_count, sizeof(*view->gpus), compare_gpus);
	return 0;
}

static int fill_migs(const struct look *look, struct view *view)
{
	const struct probe *probe = &look->snapshot.probe;

	if (!look->snapshot.has_probe || probe->mig_count == 0)
		return 0;
	view->migs = calloc(probe->mig_count, sizeof(*view->migs));
	if (!view->migs)
		return -ENOMEM;
	memcpy(view->migs, probe->migs, probe->mig_count * sizeof(*view->migs));
	view->mig_count = probe->mig_count;
	return 0;
}

/* --- the queue --------------------------------------------------------------------- */

static void explain_start(const struct look *look, const struct ticket *ticket,
	const struct view_job *job, struct text *why)
{
	int64_t age_ms = clock_age_ms(look->now_ms, ticket->turn_ms);
	char age[DURATION_SIZE];

	text_add(why, "can start now");
	if (job->is_stopped || age_ms < ACTS_WITHIN_MS || age_ms == INT64_MAX)
		return;
	format_duration(age_ms, age);
	text_addf(why, "; has not looked for %s", age);
}

static void fill_job(const struct look *look, const struct queue_row *row,
	struct plan *plan, struct view_job *job)
{
	const struct ticket *ticket = &row->ticket;
	const struct request *request = &ticket->request;
	const struct plan_row planned = {
		.ticket = row->number,
		.gpus = request->gpus,
		.limit_ms = request->limit_ms,
		.grace_ms = request->grace_ms,
		.allow = request->allow,
	};
	struct text user = TEXT_ON(job->user), why = TEXT_ON(job->why);
	struct plan aside = *plan;
	struct verdict verdict;

	job->ticket = row->number;
	job->gpus = request->gpus;
	job->pid = pid_here(look, &ticket->owner);
	job->waits_ms = max_i64(0, look->now_ms - ticket->since_ms);
	job->limit_ms = request->limit_ms;
	job->is_stopped = job->pid && process_is_stopped(job->pid);
	describe_user(ticket->owner.uid, ticket->user, &user);
	if (may_show_commands_of(ticket->owner.uid)) {
		text_copy(job->name, sizeof(job->name), request->name);
		text_copy(job->command, sizeof(job->command), request->command);
	}
	/* one that is stopped is passed over: it takes nothing from those behind it */
	verdict = plan_next(job->is_stopped ? &aside : plan, &planned);
	job->can_start = verdict.kind == VERDICT_START;
	if (job->can_start)
		explain_start(look, ticket, job, &why);
	else
		explain_verdict(&look->snapshot, &verdict, &why);
	if (job->is_stopped)
		text_add(&why, "; its process is stopped");
}

static int fill_jobs(struct look *look, struct view *view)
{
	struct plan plan;

	view->jobs = calloc(look->row_count + 1, sizeof(*view->jobs));
	if (!view->jobs)
		return -ENOMEM;
	plan_begin(&plan, look->snapshot.plan, look->now_ms);
	for (size_t i = 0; i < look->row_count; i++) {
		const struct queue_row *row = &look->rows[i];
		const struct snapshot_lease *lease =
			snapshot_find_token(&look->snapshot, row->ticket.owner.token);

		/* its owner is between its lease and its ticket: it waits no longer */
		if (lease && !lease->is_over)
			continue;
		fill_job(look, row, &plan, &view->jobs[view->job_count++]);
	}
	view->has_more_jobs = look->has_more_rows;
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

static void fill_probe(const struct look *look, struct view *view)
{
	const struct snapshot *from = &look->snapshot;
	const struct prober_config *config = &look->prober.config;

	view->is_simulated = config->sim_gpus != 0;
	view->has_nvidia_smi = config->nvidia_smi != NULL;
	view->is_probe_old = look->is_probe_old;
	view->probe_age_ms = VIEW_UNKNOWN;
	if (!from->has_probe)
		return;
	view->probe_age_ms = max_i64(0, look->now_ms - from->probe.finished_ms);
	text_copy(view->trouble, sizeof(view->trouble), from->probe.trouble.text);
}

static int take(struct look *look, struct view *view, struct why *why)
{
	int r = look_probe(look, look->begun_ms - PROBE_FRESH_MS);

	if (r == 0)
		r = look_read(look, why);
	if (r == 0 && look_is_doubtful(look)) {
		r = look_probe(look, look->begun_ms);
		if (r == 0)
			r = look_read(look, why);
	}
	if (r < 0)
		return r;
	*view = (struct view){
		.real_ms = clock_real_ms(),
		.directory = look->context->dir.path,
		.broken_records = look->snapshot.broken_records + look->has_broken_row,
	};
	fill_probe(look, view);
	r = fill_gpus(look, view);
	if (r == 0)
		r = fill_migs(look, view);
	if (r == 0)
		r = fill_jobs(look, view);
	return r;
}

static struct look look; /* too big for the stack */

int view_take(const struct context *context, struct view *ret, struct why *why)
{
	struct view view = VIEW_NONE;
	int r;

	look_init(&look, context, VIEW_JOBS_MAX);
	r = take(&look, &view, why);
	look_release(&look);
	if (r < 0) {
		view_release(&view);
		if (!why->text[0])
			why_set(why, "cannot look: %s", strerror(-r));
		return r;
	}
	*ret = view;
	return 0;
}

void view_release(struct view *view)
{
	free(view->gpus);
	free(view->migs);
	free(view->jobs);
	*view = VIEW_NONE;
}
