#include <errno.h>

#include "clock.h"
#include "commit.h"
#include "history.h"

enum {
	LOCK_TRY_MS = 50,
	LOCKED_FOR_MS = 1000, /* before a file that stayed locked is tried again */
	LINGER_MS = 60000,
};

/* --- locks ------------------------------------------------------------------------- */

/* The slots of @set in the order of their uuids: the one order in which locks are taken. */
static unsigned by_uuid(
	const struct snapshot *view, const struct gpuset *set, unsigned slots[GPUSET_MAX])
{
	unsigned count = 0;

	gpuset_for_each (slot, set) {
		unsigned at = count++;

		for (; at > 0 && strcmp(view->gpus[slots[at - 1]].file.gpu.uuid,
					 view->gpus[slot].file.gpu.uuid) > 0;
			at--)
			slots[at] = slots[at - 1];
		slots[at] = (unsigned)slot;
	}
	return count;
}

int commit_lock(struct snapshot *view, const struct gpuset *set)
{
	unsigned slots[GPUSET_MAX], count = by_uuid(view, set, slots);
	int64_t until_ms = clock_boot_ms() + LOCK_TRY_MS;
	bool is_short = false;

	for (unsigned i = 0; i < count; i++) {
		struct snapshot_gpu *gpu = &view->gpus[slots[i]];
		/* when one has taken all the time the rest is still tried, once */
		int r = gpu->file.fd < 0 ? -EBADF : lease_lock(&gpu->file, until_ms);

		if (r == LEASE_LOCKED) {
			gpu->locked_until_ms = clock_boot_ms() + LOCKED_FOR_MS;
			is_short = true;
		} else if (r < 0) {
			commit_unlock(view);
			return r;
		}
	}
	if (is_short)
		commit_unlock(view);
	return is_short ? COMMIT_LOCKED : 0;
}

bool commit_is_locked(const struct snapshot *view, const struct gpuset *set)
{
	gpuset_for_each (slot, set)
		if (!view->gpus[slot].file.is_locked)
			return false;
	return true;
}

void commit_unlock(struct snapshot *view)
{
	for (unsigned slot = 0; slot < view->known; slot++)
		lease_unlock(&view->gpus[slot].file);
}

/* --- what is over ------------------------------------------------------------------ */

static void name_gpus(
	const struct snapshot *view, const struct gpuset *set, char *out, size_t size)
{
	struct text text = text_on(out, size);

	gpuset_for_each (slot, set)
		text_addf(&text, "%s%u", text.used ? "," : "",
			snapshot_gpu_index(view, (unsigned)slot));
}

void commit_describe_end(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end)
{
	const struct lease *lease = &over->lease;

	history_describe(lease, over->alive_ms ? over->alive_ms : lease->since_ms,
		over->over_ms, end);
	name_gpus(view, &lease->gpus, end->gpus, sizeof(end->gpus));
	if (!over->is_of_this_boot) {
		/* its clock is not ours */
		end->since_ms = end->alive_ms = end->gone_ms = 0;
		text_copy(end->how, sizeof(end->how), "reboot");
	} else if (over->is_cancelled) {
		text_copy(end->how, sizeof(end->how), "cancel");
		(void)snprintf(end->by, sizeof(end->by), "%u", over->cancelled_by);
	} else if (lease->limit_ms &&
		   over->over_ms >= lease->since_ms + lease->limit_ms &&
		   over->alive_ms >= lease->since_ms + lease->limit_ms) {
		text_copy(end->how, sizeof(end->how), "limit");
	}
}

/* Tells the history; @how and @by where the caller knows better, else NULL. */
static void record_end(const struct snapshot *view, const struct snapshot_lease *over,
	const char *how, const char *by)
{
	struct history_end end;

	commit_describe_end(view, over, &end);
	if (how) {
		text_copy(end.how, sizeof(end.how), how);
		text_copy(end.by, sizeof(end.by), by ? by : "");
	}
	(void)!history_append(view->dir->fd, &end);
}

/*
 * Makes ready to replace a record: its FIFO goes first, its name would be lost with it.  The
 * file of a lease's lowest GPU is where its end is told, so that it is told once.
 */
static void bury(struct snapshot *view, unsigned slot, const struct lease *lease)
{
	const struct snapshot_lease *over = snapshot_find_token(view, lease->owner.token);

	beacon_remove(view->dir->fd, BEACON_LIVE, lease->owner.token);
	if (over && !lease->is_recorded && gpuset_next(&lease->gpus, 0) == (int)slot)
		record_end(view, over, NULL, NULL);
}

/* --- writing ----------------------------------------------------------------------- */

/* Removes what is over from one file and puts @lease into the first record. */
static int write_one(struct snapshot *view, unsigned slot, const struct lease *lease)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &view->gpus[slot].file;
	unsigned records = 0;
	int r = lease_read(file, raw, &records);

	if (r != 0)
		return r < 0 ? r : -EBADMSG;
	for (unsigned at = 1; at <= records && r == 0; at++) {
		struct lease old;

		switch (lease_decode(raw, at, &old)) {
		case LEASE_NONE:
			continue;
		case LEASE_RECORD:
			bury(view, slot, &old);
			break;
		case LEASE_BROKEN:
			break;
		}
		if (at > 1) /* the first is overwritten */
			r = lease_clear(file, at);
	}
	return r < 0 ? r : lease_write(file, 1, lease);
}

int commit_write(
	struct snapshot *view, const struct gpuset *set, const struct lease *lease)
{
	struct gpuset written = GPUSET_NONE;
	int r = 0;

	gpuset_for_each (slot, set) {
		gpuset_add(&written, (unsigned)slot);
		r = write_one(view, (unsigned)slot, lease);
		if (r < 0)
			break;
	}
	if (r < 0)
		gpuset_for_each (slot, &written)
			(void)!lease_clear(&view->gpus[slot].file, 1);
	return r;
}

void commit_record_end(
	struct snapshot *view, const char *token, const char *how, const char *by)
{
	static char raw[LEASE_FILE_BYTES];
	struct snapshot_lease *over = snapshot_find_token(view, token);
	struct gpuset lowest = GPUSET_NONE;
	struct lease_file *file;
	unsigned records = 0;
	int slot = over ? gpuset_next(&over->lease.gpus, 0) : -1;

	if (slot < 0 || !over->is_over)
		return;
	gpuset_add(&lowest, (unsigned)slot);
	file = &view->gpus[slot].file;
	if (commit_lock(view, &lowest) != 0)
		return;
	if (lease_read(file, raw, &records) != 0)
		records = 0;
	for (unsigned at = 1; at <= records; at++) {
		struct lease lease;

		if (lease_decode(raw, at, &lease) != LEASE_RECORD || lease.is_recorded ||
			strcmp(lease.owner.token, token) != 0)
			continue;
		over->alive_ms = over->over_ms; /* we were there */
		record_end(view, over, how, by);
		lease.is_recorded = 1;
		(void)!lease_write(file, at, &lease);
	}
	commit_unlock(view);
}

/* --- lingering --------------------------------------------------------------------- */

/* Whether the probes say that all GPUs of @lease have been idle since its owner died. */
static bool has_lingered(const struct snapshot *view, const struct snapshot_lease *lease)
{
	int64_t since_ms = lease->dead_ms;

	gpuset_for_each (slot, &lease->lease.gpus) {
		int row = view->gpus[slot].row;
		int64_t idle_ms = row < 0 ? 0 : view->probe.gpus[row].idle_since_ms;

		if (!idle_ms)
			return false;
		since_ms = max_i64(since_ms, idle_ms);
	}
	return view->probe.finished_ms - since_ms >= LINGER_MS;
}

bool commit_end_lingering(struct snapshot *view)
{
	bool found = false;

	for (size_t i = 0; view->has_probe && i < view->lease_count; i++) {
		struct snapshot_lease *lease = &view->leases[i];
		struct gpuset lowest = GPUSET_NONE;

		if (!lease->is_dead || lease->is_over || !has_lingered(view, lease))
			continue;
		gpuset_add(&lowest, (unsigned)gpuset_next(&lease->lease.gpus, 0));
		if (commit_lock(view, &lowest) != 0)
			continue;
		beacon_remove(view->dir->fd, BEACON_LIVE, lease->lease.owner.token);
		commit_unlock(view);
		if (beacon_is_named(view->dir->fd, BEACON_LIVE, lease->lease.owner.token))
			continue; /* not ours to remove: it is not over for the others */
		lease->is_over = true;
		lease->over_ms = clock_boot_ms();
		commit_record_end(view, lease->lease.owner.token, "lingered", NULL);
		found = true;
	}
	return found;
}
