#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>

#include "explain.h"

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

static int find_owner(uint32_t pid, uint32_t *ret_uid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st) < 0)
		return -errno;
	*ret_uid = st.st_uid;
	return 0;
}

bool may_show_process(uint32_t pid)
{
	uint32_t uid;

	return !hides_others || (find_owner(pid, &uid) == 0 && may_show_commands_of(uid));
}

void describe_process(uint32_t pid, struct text *out)
{
	struct process_stat process;
	uint32_t uid = 0;

	if (find_owner(pid, &uid) < 0 || process_stat_read(pid, &process) < 0) {
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
	const struct lease *lease = &view->leases[gpu->lease].lease;

	text_addf(out, "is leased to ticket %llu (", (unsigned long long)lease->ticket);
	describe_user(lease->owner.uid, lease->user, out);
	text_add(out, ")");
}

static void explain_lingering(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	const struct lease *lease = &view->leases[gpu->lease].lease;

	text_addf(out, "is kept by processes that ticket %llu left behind",
		(unsigned long long)lease->ticket);
}

static void explain_settling(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	(void)view;
	text_add(out, "was just released, its memory is still held");
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
	add_culprit(gpu, " by a process that nvidia-smi does not show", out);
	if (usage_is_busy(&view->usage, seen))
		text_addf(out, ", its utilization is %d%%", seen->utilization);
}

static void add_migs(const struct snapshot *view, uint32_t row, struct text *out)
{
	const struct probe *probe = &view->probe;
	const char *before = ": ";
	unsigned count = 0;

	for (uint32_t i = 0; i < probe->mig_count; i++)
		count += probe->migs[i].gpu == row;
	if (count == 0)
		return;
	text_addf(out, " (%u instance%s", count, count == 1 ? "" : "s");
	for (uint32_t i = 0; i < probe->mig_count; i++) {
		if (probe->migs[i].gpu != row)
			continue;
		text_add(out, before);
		text_add_printable(
			out, probe->migs[i].profile, strlen(probe->migs[i].profile));
		before = ", ";
	}
	text_add(out, ")");
}

static void explain_mig(
	const struct snapshot *view, const struct snapshot_gpu *gpu, struct text *out)
{
	text_add(out, "MIG is enabled");
	add_migs(view, (uint32_t)gpu->row, out);
	text_add(out, "; MIG instances are not leased yet");
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

	text_add(out, "is in an unknown state: ");
	if (gpu->is_unusable)
		text_add(out, "its lease file cannot be used");
	else if (snapshot_withholds(view, gpu))
		explain_doubt(view, out);
	else if (seen && seen->has_mig)
		explain_mig(view, gpu, out);
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

void explain_gpu(const struct snapshot *view, unsigned slot, struct text *out)
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
	const struct snapshot_gpu *gpu = &view->gpus[slot];

	if (explain[gpu->state])
		explain[gpu->state](view, gpu, out);
}

/* --- verdicts ---------------------------------------------------------------------- */

void explain_verdict(
	const struct snapshot *view, const struct verdict *verdict, struct text *out)
{
	if (verdict->kind == VERDICT_BEHIND) {
		text_addf(out, "behind ticket %llu, which comes first",
			(unsigned long long)verdict->behind);
		return;
	}
	text_addf(out, "needs %u GPU%s, ", verdict->wanted,
		verdict->wanted == 1 ? "" : "s");
	if (verdict->free == 0)
		text_add(out, "none is free");
	else
		text_addf(out, "%u %s free", verdict->free,
			verdict->free == 1 ? "is" : "are");
	if (verdict->state == GPU_FREE || verdict->state == GPU_LEASED)
		return;
	text_addf(out, "; GPU %u ", snapshot_gpu_index(view, verdict->slot));
	explain_gpu(view, verdict->slot, out);
}
