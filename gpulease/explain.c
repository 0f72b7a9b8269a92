#include <pwd.h>

#include "explain.h"
#include "instance.h"
#include "parse.h"
#include "proc.h"

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
	};

	return words[state];
}

void describe_user(uint32_t uid, const char *recorded, struct text *out)
{
	const struct passwd *entry;

	if (recorded && recorded[0]) {
		text_add_printable(out, recorded, strlen(recorded));
		return;
	}
	entry = getpwuid(uid);
	if (entry)
		text_add_printable(out, entry->pw_name, strlen(entry->pw_name));
	else
		text_addf(out, "%u", uid);
}

/* --- what others may see ----------------------------------------------------------- */

static bool hides_others;

void explain_hide_others(void)
{
	hides_others = true;
}

bool may_show_commands_of(uint32_t uid)
{
	return !hides_others || getuid() == 0 || getuid() == uid;
}

bool may_show_process(uint32_t pid)
{
	uint32_t uid;

	return !hides_others ||
	       (proc_find_user(pid, &uid) == 0 && may_show_commands_of(uid));
}

void describe_process(uint32_t pid, struct text *out)
{
	struct process_stat process;
	uint32_t uid = 0;

	if (proc_find_user(pid, &uid) < 0 || process_stat_read(pid, &process) < 0) {
		text_add(out, "not visible here");
		return;
	}
	describe_user(uid, NULL, out);
	if (!may_show_commands_of(uid))
		return;
	text_add(out, ", ");
	text_add_printable(out, process.comm, strlen(process.comm));
}

/* --- GPUs -------------------------------------------------------------------------- */

static void add_culprit(
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

static void explain_leased(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct lease *first = &view->leases[gpu->lease].lease;
	unsigned others = 0;
	char size[MIB_TEXT_SIZE];

	for (size_t i = (size_t)gpu->lease + 1; i < view->lease_count; i++) {
		const struct snapshot_lease *other = &view->leases[i];

		if (other->is_over || !gpuset_has(&other->lease.gpus, gpu->file.slot))
			continue;
		if (other->lease.ticket < first->ticket)
			first = &other->lease;
		others++;
	}
	text_addf(
		out, "is leased to ticket %llu (", (unsigned long long)lease_job(first));
	describe_user(first->owner.uid, first->user, out);
	text_add(out, ")");
	if (others)
		text_addf(out, " and %u other%s", others, others == 1 ? "" : "s");
	if (!gpu->foreign_mib) {
		if (gpu->settling_mib)
			text_add(out, ", and memory of one that has ended is still held");
		return;
	}
	text_add(out, ", and is also used outside gpulease");
	add_culprit(gpu, "", out);
	format_mib(gpu->foreign_mib, size);
	text_addf(out, ", counted as %s", size);
}

static void explain_lingering(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct lease *lease = &view->leases[gpu->lease].lease;

	text_addf(out, "is kept by processes that ticket %llu left behind",
		(unsigned long long)lease_job(lease));
}

static void explain_settling(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	(void)view;
	text_add(out, gpu->lease < 0
			      ? "was just released, its memory is still held"
			      : "was just left by a job, whose memory is still held");
	add_culprit(gpu, "", out);
}

static void explain_locked(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	uint32_t pid = gpu->file.fd < 0 ? 0 : lease_lock_holder(&gpu->file);

	(void)view;
	if (pid)
		text_addf(out, "is locked by pid %u", pid);
	else
		text_add(out, "is locked by pid ?");
}

static void explain_external(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct probe_gpu *seen = &view->probe.gpus[gpu->row];

	text_add(out, "is used outside gpulease");
	if (gpu_is_instance(&gpu->file.gpu)) /* nvidia-smi does not say which */
		text_add(out, " (it or one beside it)");
	add_culprit(gpu, " by a process that nvidia-smi does not show", out);
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

/* A lease may be lost, and somebody lives who may have it. */
static void explain_doubt(const struct snapshot *view, struct text *out)
{
	const struct account_job *job = &view->unknown;

	text_add(
		out, "its lease file is damaged, and a job that nobody knows still runs");
	if (job->ticket && job->owner.pidns == view->dir->pidns) {
		text_addf(out, ": pid %u (", job->owner.pid);
		describe_process(job->owner.pid, out);
		text_add(out, ")");
	} else if (job->owner.token[0]) {
		text_addf(out, ": who holds live/%s", job->owner.token);
	} else {
		text_add(out, ", as far as can be told: live/ cannot be read");
	}
}

static void explain_unknown(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct probe_gpu *seen = gpu->row < 0 ? NULL : &view->probe.gpus[gpu->row];

	if (seen && seen->is_known && seen->has_mig && !gpu->is_unusable &&
		!snapshot_withholds(view, gpu) && !gpu_is_instance(&gpu->file.gpu)) {
		explain_mig(view, gpu, out);
		return;
	}
	text_add(out, "is in an unknown state: ");
	if (gpu->is_unusable)
		text_add(out, "its lease file cannot be used");
	else if (snapshot_withholds(view, gpu))
		explain_doubt(view, out);
	else if (seen && seen->is_known && probe_gpu_is_prohibited(seen))
		text_add(out, "its compute mode is Prohibited");
	else if (seen && seen->trouble[0])
		text_add_printable(out, seen->trouble, strlen(seen->trouble));
	else if (!view->has_probe)
		text_add(out, "nvidia-smi has not answered");
	else if (view->probe.trouble.text[0])
		text_add_printable(
			out, view->probe.trouble.text, strlen(view->probe.trouble.text));
	else
		text_add(out, "nvidia-smi does not list it");
}

static void explain_paused(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct gpu_record *record = &gpu->file.gpu;

	(void)view;
	text_add(out, "is paused");
	if (record->paused_by[0]) {
		text_add(out, " by ");
		text_add_printable(out, record->paused_by, strlen(record->paused_by));
	}
	if (record->reason[0]) {
		text_add(out, ": ");
		text_add_printable(out, record->reason, strlen(record->reason));
	}
}

static void explain_state(const struct snapshot *view, unsigned slot,
	enum gpu_state state, struct text *out)
{
	static void (*const explain[GPU_STATES])(
		const struct snapshot *, const struct snapshot_gpu *, struct text *) = {
		[GPU_LEASED] = explain_leased,
		[GPU_LINGERING] = explain_lingering,
		[GPU_SETTLING] = explain_settling,
		[GPU_LOCKED] = explain_locked,
		[GPU_EXTERNAL] = explain_external,
		[GPU_UNKNOWN] = explain_unknown,
		[GPU_PAUSED] = explain_paused,
	};

	if (explain[state])
		explain[state](view, &view->gpus[slot], out);
}

void explain_gpu(const struct snapshot *view, unsigned slot, struct text *out)
{
	explain_state(view, slot, view->gpus[slot].state, out);
}

void explain_blame(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	text_addf(out, "GPU %s ", snapshot_gpu_name(view, verdict->slot).text);
	explain_state(view, verdict->slot, verdict->state, out);
}
