/* A lease for a process that was there before it, on the GPUs that it uses already. */
#include <errno.h>
#include <poll.h>

#include "broker_parts.h"
#include "clock.h"
#include "commit.h"
#include "instance.h"
#include "kin.h"

enum { LOCKS_MS = 2000, AGAIN_MS = 5 };

/* The lease files were not to be had, or were made anew: look again. */
enum { ADOPT_AGAIN = 1 };

/* --- which GPUs -------------------------------------------------------------------- */

/* The slot of the GPU in row @row of the probe; what is on a MIG instance nobody can tell. */
static int find_slot(const struct snapshot *view, uint32_t row, struct why *why)
{
	const struct probe_gpu *seen = &view->probe.gpus[row];
	int slot = snapshot_find_gpu(view, seen->uuid);

	if (seen->has_mig) {
		why_set(why,
			"GPU %d has MIG, and nvidia-smi does not say which instance "
			"a process uses",
			seen->index);
		return -ENODEV;
	}
	if (slot < 0 || !seen->uuid[0]) {
		why_set(why, "GPU %d is in an unknown state", seen->index);
		return -ENODEV;
	}
	return slot;
}

/* The GPUs that the heir and its children use.  0, or -ENODEV. */
static int find_used(const struct broker *broker, struct gpuset *ret, struct why *why)
{
	const struct snapshot *view = &broker->view;
	const struct probe *probe = &view->probe;

	*ret = GPUSET_NONE;
	for (uint32_t i = 0; view->has_probe && i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		int slot;

		if (process->pid <= 0 ||
			!kin_is_descendant((uint32_t)process->pid, broker->heir->pid))
			continue;
		slot = find_slot(view, process->gpu, why);
		if (slot < 0)
			return slot;
		gpuset_add(ret, (unsigned)slot);
	}
	if (!gpuset_is_empty(ret))
		return 0;
	why_set(why, "process %u uses no GPU, as far as nvidia-smi shows",
		broker->heir->pid);
	return -ENODEV;
}

/* --- whether it may have them ------------------------------------------------------- */

/* Whether the leases on GPU @slot leave it what is needed; it is there already. */
static int check_gpu(const struct snapshot *view, unsigned slot, const struct need *need,
	struct why *why)
{
	const struct plan_gpu *gpu = &view->facts.gpus[slot];
	const struct snapshot_gpu *file = &view->gpus[slot];
	struct gpu_name name = snapshot_gpu_name(view, slot);
	struct room room = room_at(gpu, INT64_MIN);
	const struct lease *lease;

	if (snapshot_withholds(view, file)) {
		why_set(why, "GPU %s is withheld: its lease file is damaged", name.text);
		return -EBUSY;
	}
	if (file->lease < 0 || room_fits(&room, gpu, need, view->facts.margin_mib))
		return 0;
	lease = &view->leases[file->lease].lease;
	why_set(why, "GPU %s is leased by job %llu of %s%s", name.text,
		(unsigned long long)lease_job(lease), lease->user,
		file->is_shared ? ", and there is no room for another" : "");
	return -EBUSY;
}

static int check(struct broker *broker, struct why *why)
{
	const struct plan_facts *facts = &broker->view.facts;
	const struct gpuset *set = &broker->verdict.gpus;
	struct need need = request_need(&broker->ticket.request);
	struct quota_excess excess;
	struct quota quota;
	int r = 0;

	gpuset_for_each (slot, set)
		if (r == 0)
			r = check_gpu(&broker->view, (unsigned)slot, &need, why);
	if (r < 0)
		return r;
	quota_begin(&quota, &facts->limits, facts->users, facts->user_count);
	if (quota_forbids(&quota, broker->heir->uid, gpuset_count(set), &need, &excess)) {
		why_set(why, "a limit of the configuration is reached (%s)",
			excess.kind == LIMIT_USER_GPUS || excess.kind == LIMIT_USER_LEASES
				? "user-gpus, user-jobs"
				: "all-gpus, all-jobs");
		return -EDQUOT;
	}
	if (owner_judge(broker->heir, broker->dir->pidns, NULL) == OWNER_DEAD) {
		why_set(why, "process %u has ended", broker->heir->pid);
		return -ESRCH;
	}
	return 0;
}

/* --- taking them ------------------------------------------------------------------- */

static int read_all(struct broker *broker, struct why *why)
{
	int r = queue_begin(&broker->queue, broker->number);

	lives_begin(&broker->view.lives);
	if (r >= 0)
		r = broker_look(broker);
	lives_end(&broker->view.lives);
	if (r < 0)
		why_set(why, "cannot use the state in '%s': %s", broker->dir->path,
			strerror(-r));
	return r;
}

/* With the locks held: everything once more, then the lease. */
static int adopt_locked(struct broker *broker, struct why *why)
{
	struct gpuset used;
	int r = read_all(broker, why);

	if (r == 0)
		r = find_used(broker, &used, why);
	if (r < 0)
		return r;
	if (!commit_is_locked(&broker->view, &broker->verdict.gpus))
		return ADOPT_AGAIN;
	if (!gpuset_equals(&used, &broker->verdict.gpus)) {
		why_set(why, "the GPUs that process %u uses are just changing",
			broker->heir->pid);
		return -EAGAIN;
	}
	r = check(broker, why);
	return r < 0 ? r : broker_write_lease(broker, why);
}

static int adopt_once(struct broker *broker, struct why *why)
{
	int r = commit_lock(&broker->view, &broker->verdict.gpus);

	if (r == COMMIT_LOCKED || r == -EBADF) {
		why_set(why, "a lease file of its GPUs is locked by somebody");
		broker->adopted_ms = 0; /* a file that is missing is made */
		return read_all(broker, why) < 0 ? -EIO : ADOPT_AGAIN;
	}
	if (r < 0) {
		why_set(why, "cannot lock a lease file: %s", strerror(-r));
		return r;
	}
	r = adopt_locked(broker, why);
	commit_unlock(&broker->view);
	return r;
}

int broker_adopt(struct broker *broker, const struct request *request, const char *user,
	struct why *why)
{
	int64_t until_ms = clock_boot_ms() + LOCKS_MS;
	struct request found = *request;
	int r;

	broker->view.adoptee = broker->heir->pid;
	r = find_used(broker, &broker->verdict.gpus, why);
	if (r < 0)
		return r;
	found.gpus = gpuset_count(&broker->verdict.gpus);
	if (request->gpus && request->gpus != found.gpus) {
		why_set(why, "process %u uses %u GPU%s, not %u", broker->heir->pid,
			found.gpus, found.gpus == 1 ? "" : "s", request->gpus);
		return -EINVAL;
	}
	r = broker_join(broker, &found, user, why);
	if (r < 0)
		return r;
	while ((r = adopt_once(broker, why)) == ADOPT_AGAIN && clock_boot_ms() < until_ms)
		(void)poll(NULL, 0, AGAIN_MS);
	if (r == 0)
		broker_finish(broker);
	broker_leave(broker);
	return r == ADOPT_AGAIN ? -EBUSY : r;
}
