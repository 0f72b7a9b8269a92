/*
 * Gives a lease to a process that runs already, on the GPUs that it uses.  It does not wait in the
 * queue: the process uses these GPUs in any case.  Declared in broker.h.
 */
#include <errno.h>
#include <poll.h>

#include "broker_parts.h"
#include "clock.h"
#include "commit.h"
#include "instance.h"
#include "process_lease.h"

/* For how long it retries if lease files are locked or change, and how often. */
enum { LOCKS_MS = 2000, AGAIN_MS = 5 };

/* --- which GPUs ----------------------------------------------------------------- */

/*
 * Finds the slot of the GPU in row @row of the probe.  -ENODEV: it is unknown, or it has MIG
 * enabled, because nvidia-smi does not show which instance a process uses.
 */
static int find_probed_slot(const struct snapshot *view, uint32_t row, struct why *why)
{
	const struct probe_gpu *seen = &view->probe.gpus[row];
	int slot = snapshot_find_gpu(view, seen->uuid);

	if (seen->has_mig) {
		why_set(why,
			"GPU %d has MIG enabled: nvidia-smi does not show which instance "
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

/* Finds the GPUs that the heir and its descendants use.  Returns 0, or -ENODEV. */
static int find_used(const struct broker *broker, struct gpuset *ret, struct why *why)
{
	const struct snapshot *view = &broker->view;
	const struct probe *probe = &view->probe;

	*ret = GPUSET_NONE;
	for (uint32_t i = 0; view->has_probe && i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		int slot;

		if (process->pid <= 0 ||
			!process_lease_is_descendant(
				(uint32_t)process->pid, broker->input.heir->pid))
			continue;
		slot = find_probed_slot(view, process->gpu, why);
		if (slot < 0)
			return slot;
		gpuset_add(ret, (unsigned)slot);
	}
	if (!gpuset_is_empty(ret))
		return 0;
	why_set(why, "process %u uses no GPU, as far as nvidia-smi shows",
		broker->input.heir->pid);
	return -ENODEV;
}

/* --- whether it may have them --------------------------------------------------- */

/*
 * Whether the leases on GPU @slot leave room for @need.  The memory of the heir itself does not
 * count (->view.adoptee).  Returns 0, or -EBUSY.
 */
static int check_gpu_room(const struct snapshot *view, unsigned slot,
	const struct need *need, struct why *why)
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

/* Whether the heir may have a lease on its GPUs.  Returns 0, or a negative errno. */
static int check_all(struct broker *broker, struct why *why)
{
	const struct plan_facts *facts = &broker->view.facts;
	const struct gpuset *set = &broker->result.verdict.gpus;
	struct plan_row row = plan_row_of(broker->number, &broker->ticket);
	struct quota_excess excess;
	struct quota quota;
	int r = 0;

	gpuset_for_each (slot, set)
		if (r == 0)
			r = check_gpu_room(&broker->view, (unsigned)slot, &row.need, why);
	if (r < 0)
		return r;
	row.uid = broker->input.heir->uid;
	row.gpus = gpuset_count(set);
	quota_begin(&quota, &facts->limits, facts->users, facts->user_count);
	if (quota_forbids(&quota, &row, NULL, &excess)) {
		why_set(why, "a limit of the configuration is reached (%s)",
			excess.kind == LIMIT_USER_GPUS || excess.kind == LIMIT_USER_LEASES
				? "user-gpus, user-jobs"
				: "all-gpus, all-jobs");
		return -EDQUOT;
	}
	if (owner_judge(broker->input.heir, broker->dir->pidns, NULL) == OWNER_DEAD) {
		why_set(why, "process %u has ended", broker->input.heir->pid);
		return -ESRCH;
	}
	return 0;
}

/* --- taking them ---------------------------------------------------------------- */

/* Reads controls, leases and probe.  Returns 0 or a negative errno. */
static int read_state(struct broker *broker, struct why *why)
{
	int r = queue_begin(&broker->queue, broker->number);

	liveness_set_begin(&broker->view.lives);
	if (r >= 0)
		r = broker_look(broker);
	liveness_set_end(&broker->view.lives);
	if (r < 0)
		why_set(why, "cannot use the state in '%s': %s", broker->dir->path,
			strerror(-r));
	return r;
}

/*
 * With the locks held: reads and checks everything again and writes the lease.  Returns 0,
 * BROKER_AGAIN, or a negative errno.
 */
static int adopt_locked(struct broker *broker, struct why *why)
{
	struct gpuset used;
	int r = read_state(broker, why);

	if (r == 0)
		r = find_used(broker, &used, why);
	if (r < 0)
		return r;
	if (!commit_is_locked(&broker->view, &broker->result.verdict.gpus))
		return BROKER_AGAIN;
	if (!gpuset_equals(&used, &broker->result.verdict.gpus)) {
		why_set(why,
			"process %u has just begun or stopped using a GPU; try again",
			broker->input.heir->pid);
		return -EAGAIN;
	}
	r = check_all(broker, why);
	if (r == 0 && broker->ticket.request.name_hash)
		r = job_name_write(broker->dir, broker->input.heir->token,
			broker->ticket.request.name);
	return r < 0 ? r : broker_write_lease(broker, why);
}

/*
 * Tries once to give the heir its lease.  Returns 0; BROKER_AGAIN: a lease file is locked, missing
 * or changed; or a negative errno.
 */
static int adopt_once(struct broker *broker, struct why *why)
{
	int r = commit_look(&broker->view, &broker->result.verdict.gpus);

	if (r == COMMIT_LEFT)
		return read_state(broker, why) < 0 ? -EIO : BROKER_AGAIN;
	if (r == 0)
		r = commit_lock(&broker->view, &broker->result.verdict.gpus);
	if (r == COMMIT_LOCKED || r == -EBADF) {
		why_set(why, "another process has locked a lease file of its GPUs");
		broker->state.adopted_ms = 0; /* a missing file is made */
		return read_state(broker, why) < 0 ? -EIO : BROKER_AGAIN;
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

	/* its memory on the GPUs is no stranger's */
	broker->view.adoptee = broker->input.heir->pid;
	r = find_used(broker, &broker->result.verdict.gpus, why);
	if (r < 0)
		return r;
	found.gpus = gpuset_count(&broker->result.verdict.gpus);
	if (request->gpus && request->gpus != found.gpus) {
		why_set(why, "process %u uses %u GPU%s, not %u", broker->input.heir->pid,
			found.gpus, found.gpus == 1 ? "" : "s", request->gpus);
		return -EINVAL;
	}
	r = broker_join(broker, &found, user, why);
	if (r < 0)
		return r;
	while ((r = adopt_once(broker, why)) == BROKER_AGAIN &&
		clock_boot_ms() < until_ms)
		(void)poll(NULL, 0, AGAIN_MS);
	if (r == 0)
		broker_finish(broker);
	broker_leave(broker);
	return r == BROKER_AGAIN ? -EBUSY : r;
}
