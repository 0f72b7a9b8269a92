#include "gpu_reason.h"
#include "instance.h"
#include "privacy.h"
#include "wait_reason.h"

const char *state_word(enum gpu_state state)
{
	static const char *const words[GPU_STATES] = {
		[GPU_FREE] = "idle",
		[GPU_LEASED] = "leased",
		[GPU_LINGERING] = "lingering",
		[GPU_SETTLING] = "settling",
		[GPU_LOCKED] = "locked",
		[GPU_EXTERNAL] = "external",
		[GPU_UNKNOWN] = "unknown",
		[GPU_PAUSED] = "paused",
		[GPU_KEPT] = "kept",
	};

	return words[state];
}

/* --- a sentence for each state, without its verb ----------------------------------- */

/* Appends the process that uses the GPU, or @otherwise if no process is known to. */
static void gpu_add_culprit(
	const struct snapshot_gpu *gpu, const char *otherwise, struct text *out)
{
	if (!gpu->culprit) {
		text_add(out, otherwise);
		return;
	}
	text_addf(out, " by pid %u (", gpu->culprit);
	describe_process(gpu->culprit, out);
	text_add(out, ")");
}

/* Names the lease with the lowest ticket, then says how many others there are. */
static void explain_leased(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct lease *first = &view->leases[gpu->lease].lease;
	unsigned others = 0;

	for (size_t i = (size_t)gpu->lease + 1; i < view->lease_count; i++) {
		const struct snapshot_lease *other = &view->leases[i];

		if (other->is_over || !gpuset_has(&other->lease.gpus, gpu->file.slot))
			continue;
		if (other->lease.ticket < first->ticket)
			first = &other->lease;
		others++;
	}
	text_addf(out, "leased to job %llu (", (unsigned long long)lease_job(first));
	describe_user(first->owner.uid, first->user, out);
	text_add(out, ")");
	if (others)
		text_addf(out, " and %u other%s", others, others == 1 ? "" : "s");
	if (!gpu->foreign_mib) {
		if (gpu->settling_mib)
			text_add(out, ", and memory of an ended lease is still held");
		return;
	}
	text_add(out, ", and is also used outside gpulease");
	gpu_add_culprit(gpu, "", out);
	text_add(out, ", counted as ");
	explain_size(gpu->foreign_mib, true, out);
}

static void explain_lingering(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct lease *lease = &view->leases[gpu->lease].lease;

	text_addf(out, "kept by processes that job %llu left running",
		(unsigned long long)lease_job(lease));
}

static void explain_settling(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	(void)view;
	text_add(out, gpu->lease < 0
			      ? "was just released, its memory is still held"
			      : "was just left by a job, but its memory is still held");
	gpu_add_culprit(gpu, "", out);
}

static void explain_locked(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	uint32_t pid = gpu->file.fd < 0 ? 0 : lease_lock_holder(&gpu->file);

	(void)view;
	if (pid)
		text_addf(out, "locked by pid %u", pid);
	else
		text_add(out, "locked by pid ?");
}

static void explain_external(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct probe_gpu *seen = &view->probe.gpus[gpu->row];

	text_add(out, "used outside gpulease");
	if (gpu_is_instance(&gpu->file.gpu)) /* nvidia-smi names the card only */
		text_add(out, " (this instance or another one of its GPU)");
	gpu_add_culprit(gpu, " by a process that nvidia-smi does not show", out);
	if (gpu->past_mib) {
		text_add(out, ", seen with ");
		explain_size(gpu->past_mib, true, out);
	}
	if (usage_is_busy(&view->usage, seen))
		text_addf(out, ", its utilization is %d%%", seen->utilization);
}

static void explain_mig(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct probe *probe = &view->probe;
	unsigned count = 0;

	text_add(out, "MIG is enabled");
	for (uint32_t i = 0; i < probe->mig_count; i++)
		if ((int)probe->migs[i].gpu == gpu->row)
			text_addf(out, "%s %u:%u", count++ ? "," : "; its instances",
				snapshot_gpu_index(view, gpu->file.slot),
				probe->migs[i].device);
	text_add(out, count ? " are leased instead" : ", and no instance of it is known");
}

/* The GPU's lease file is damaged, and a live job may have held its lost lease. */
static void explain_damaged(const struct snapshot *view, struct text *out)
{
	const struct integrity_job *job = &view->unknown;

	text_add(out, "its lease file is damaged, and an unidentified job still runs");
	if (job->ticket &&
		owner_judge(&job->owner, view->dir->pidns, NULL) == OWNER_ALIVE) {
		text_addf(out, ": pid %u (", job->owner.pid);
		describe_process(job->owner.pid, out);
		text_add(out, ")");
	} else if (job->owner.token[0]) {
		text_add(out, ": a process");
		if (job->ticket) /* its owner has ended, or is in another namespace */
			text_addf(
				out, " of ticket %llu", (unsigned long long)job->ticket);
		text_addf(out, " that holds live/%s", job->owner.token);
	} else {
		text_add(out, ", or may run: live/ cannot be read");
	}
}

static void explain_unknown(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct probe_gpu *seen = gpu->row < 0 ? NULL : &view->probe.gpus[gpu->row];

	text_add(out, "in an unknown state: ");
	if (gpu->is_unusable)
		text_add(out, "its lease file cannot be used");
	else if (snapshot_withholds(view, gpu))
		explain_damaged(view, out);
	else if (seen && seen->is_known && probe_gpu_is_prohibited(seen))
		text_add(out, "its compute mode is Prohibited");
	else if (seen && seen->trouble[0])
		text_add_visible(out, seen->trouble);
	else if (!view->has_probe)
		text_add(out, "nvidia-smi has not answered");
	else if (view->probe.trouble.text[0])
		text_add_visible(out, view->probe.trouble.text);
	else
		text_add(out, "nvidia-smi does not list it");
}

static void explain_paused(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct gpu_record *record = &gpu->file.gpu;

	(void)view;
	text_add(out, "paused");
	explain_by(record->paused_by, record->reason, out);
}

/* --- the sentence ------------------------------------------------------------------ */

/*
 * Whether the GPU itself is not leased because its MIG instances are.  Its state is then "unknown",
 * as it is for a GPU with a fault; a fault comes first.
 */
static bool is_replaced_by_instances(
	const struct snapshot *view, const struct snapshot_gpu *gpu)
{
	const struct probe_gpu *seen = gpu->row < 0 ? NULL : &view->probe.gpus[gpu->row];

	return seen && seen->is_known && seen->has_mig && !gpu->is_unusable &&
	       !snapshot_withholds(view, gpu) && !gpu_is_instance(&gpu->file.gpu);
}

size_t explain_gpu_state(const struct snapshot *view, unsigned slot, enum gpu_state state,
	struct text *out)
{
	static const struct {
		const char *verb; /* "is " or "": the sentence has a verb of its own */
		void (*explain)(const struct snapshot *, const struct snapshot_gpu *,
			struct text *);
	} sentences[GPU_STATES] = {
		[GPU_LEASED] = { "is ", explain_leased },
		[GPU_LINGERING] = { "is ", explain_lingering },
		[GPU_SETTLING] = { "", explain_settling },
		[GPU_LOCKED] = { "is ", explain_locked },
		[GPU_EXTERNAL] = { "is ", explain_external },
		[GPU_UNKNOWN] = { "is ", explain_unknown },
		[GPU_PAUSED] = { "is ", explain_paused },
	};
	const struct snapshot_gpu *gpu = &view->gpus[slot];

	if (!sentences[state].explain)
		return 0;
	if (state == GPU_UNKNOWN && is_replaced_by_instances(view, gpu)) {
		explain_mig(view, gpu, out);
		return 0;
	}
	text_add(out, sentences[state].verb);
	sentences[state].explain(view, gpu, out);
	return strlen(sentences[state].verb);
}

size_t explain_gpu(const struct snapshot *view, unsigned slot, struct text *out)
{
	return explain_gpu_state(view, slot, view->gpus[slot].state, out);
}
