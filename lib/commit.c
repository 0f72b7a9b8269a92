#include <errno.h>

#include "clock.h"
#include "commit.h"
#include "ending.h"

enum {
	LOCK_TRY_MS = 50,
	LOCKED_FOR_MS = 1000, /* before a file that stayed locked is tried again */
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

bool commit_could_lock(struct snapshot *view, const struct gpuset *set)
{
	bool could = true;

	gpuset_for_each (slot, set) {
		struct lease_file *file = &view->gpus[slot].file;

		could = could && (unsigned)slot < view->known && file->fd >= 0 &&
			lease_lock(file, 0) == 0;
		if (could)
			lease_unlock(file);
	}
	return could;
}

/* --- what is over ------------------------------------------------------------------ */

/*
 * Makes ready to replace a record: its FIFO goes first, its name would be lost with it.  The
 * file of a lease's lowest GPU is where its end is told, so that it is told once.
 */
static void bury(struct snapshot *view, unsigned slot, const struct lease *lease)
{
	const struct snapshot_lease *over = snapshot_find_token(view, lease->owner.token);

	beacon_remove(view->dir, BEACON_LIVE, lease->owner.token);
	/* of one that could be preempted */
	beacon_remove(view->dir, BEACON_BELL, lease->owner.token);
	if (over && !lease->is_recorded && gpuset_next(&lease->gpus, 0) == (int)slot)
		ending_tell(view, over);
}

/* --- mending ----------------------------------------------------------------------- */

/*
 * Puts the live leases back that should stand in the file and do not: they are known from the
 * files of their other GPUs, which may be damaged next.
 */
static int restore(
	struct snapshot *view, struct lease_file *file, const char *raw, unsigned records)
{
	unsigned at = 1;
	int r = 0;

	for (size_t i = 0; i < view->lease_count && r == 0; i++) {
		const struct snapshot_lease *missing = &view->leases[i];
		struct lease old;

		if (missing->is_over || gpuset_has(&missing->seen, file->slot) ||
			!gpuset_has(&missing->lease.gpus, file->slot))
			continue;
		while (at <= records && lease_decode(raw, at, &old) == LEASE_RECORD)
			at++;
		if (at <= LEASES_PER_GPU)
			r = lease_write(file, at++, &missing->lease);
	}
	return r;
}

static int mend(
	struct snapshot *view, struct lease_file *file, const char *raw, unsigned records)
{
	int r;

	text_copy(file->gpu.boot, sizeof(file->gpu.boot), view->dir->boot);
	lease_name_slot(file, file->gpu.slot);
	r = lease_mend_begin(file, raw, records);
	if (r == 0)
		r = restore(view, file, raw, records);
	return r < 0 ? r : lease_mend_end(file);
}

/* With the files of @set locked: everything is read and accounted for again. */
static bool mend_locked(struct snapshot *view, const struct gpuset *set)
{
	static char raw[LEASE_FILE_BYTES];
	bool is_mended = false;

	if (snapshot_read(view, clock_boot_ms()) < 0 || view->is_account_open)
		return false;
	gpuset_for_each (slot, set) {
		struct lease_file *file = &view->gpus[slot].file;
		unsigned records;

		/* one that was replaced under the lock is not locked any more */
		if (file->is_locked && view->gpus[slot].is_doubtful &&
			lease_read(file, raw, &records) >= 0)
			is_mended = mend(view, file, raw, records) == 0 || is_mended;
	}
	return is_mended;
}

bool commit_mend(struct snapshot *view)
{
	struct gpuset set = GPUSET_NONE;
	bool is_mended = false;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].is_doubtful && view->gpus[slot].file.fd >= 0 &&
			view->gpus[slot].locked_until_ms <= clock_boot_ms())
			gpuset_add(&set, slot);
	if (view->is_account_open || gpuset_is_empty(&set))
		return false;
	if (commit_lock(view, &set) == 0)
		is_mended = mend_locked(view, &set);
	commit_unlock(view);
	return is_mended;
}

/* --- writing ----------------------------------------------------------------------- */

/* The record of a live lease that shares the GPU stays; what was seen of it is kept there. */
static int keep(struct lease_file *file, unsigned at, const struct lease *old,
	const struct snapshot_lease *live)
{
	struct lease seen = *old;

	if (live->lease.peak_mib <= old->peak_mib)
		return 0;
	seen.peak_mib = live->lease.peak_mib;
	return lease_write(file, at, &seen);
}

/*
 * Removes what is over from the file of @slot and puts @lease into the first record that is
 * free, *@ret_at.
 */
static int write_one(
	struct snapshot *view, unsigned slot, const struct lease *lease, unsigned *ret_at)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &view->gpus[slot].file;
	unsigned records = 0, free_at = 0;
	int r = lease_read(file, raw, &records);

	/* it is planned to be given away, so nobody's lease is lost in there */
	if (r >= 0 && file->is_doubtful) {
		r = mend(view, file, raw, records);
		if (r == 0) /* with what was put back */
			r = lease_read(file, raw, &records);
	}
	for (unsigned at = 1; at <= LEASES_PER_GPU && r == 0; at++) {
		const struct snapshot_lease *known = NULL;
		struct lease old;

		if (at <= records && lease_decode(raw, at, &old) == LEASE_RECORD) {
			known = snapshot_find_token(view, old.owner.token);
			if (!known || !known->is_over) {
				r = known ? keep(file, at, &old, known) : 0;
				continue;
			}
			bury(view, slot, &old);
			if (free_at) /* the first is overwritten */
				r = lease_clear(file, at);
		}
		if (!free_at)
			free_at = at;
	}
	if (r == 0 && !free_at)
		r = -ENOSPC;
	*ret_at = free_at;
	return r < 0 ? r : lease_write(file, free_at, lease);
}

int commit_write(
	struct snapshot *view, const struct gpuset *set, const struct lease *lease)
{
	unsigned at[GPUSET_MAX];
	struct gpuset written = GPUSET_NONE;
	int r = 0;

	gpuset_for_each (slot, set) {
		at[slot] = 0;
		r = write_one(view, (unsigned)slot, lease, &at[slot]);
		if (at[slot])
			gpuset_add(&written, (unsigned)slot);
		if (r < 0)
			break;
	}
	if (r < 0)
		gpuset_for_each (slot, &written)
			(void)!lease_clear(&view->gpus[slot].file, at[slot]);
	return r;
}

/* As commit_forget_slot(), in the file of slot @at_slot alone. */
static int forget_slot_in(struct snapshot *view, unsigned at_slot, unsigned slot)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &view->gpus[at_slot].file;
	unsigned records = 0;
	int r = lease_read(file, raw, &records);

	for (unsigned at = 1; at <= records && r >= 0; at++) {
		const struct snapshot_lease *known;
		struct lease old;

		if (lease_decode(raw, at, &old) != LEASE_RECORD)
			continue;
		known = snapshot_find_token(view, old.owner.token);
		if (!known || !known->is_over || !gpuset_has(&known->lease.gpus, slot))
			continue;
		bury(view, at_slot, &old);
		r = lease_clear(file, at);
	}
	return r < 0 ? r : 0;
}

int commit_forget_slot(struct snapshot *view, const struct gpuset *set, unsigned slot)
{
	int r = 0;

	gpuset_for_each (at_slot, set) {
		r = forget_slot_in(view, (unsigned)at_slot, slot);
		if (r < 0)
			break;
	}
	return r;
}

/* --- giving back, what runs, what is left ------------------------------------------- */

/* What to write into the records of a lease. */
struct remark {
	const char *token;
	bool is_released;
	const struct command *runs; /* NULL: as it is */
	const char *left;           /* as in the record, "": nothing is */
};

/* Writes it into the file, which is locked. */
static int remark_locked(struct lease_file *file, const struct remark *remark)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records = 0;
	int r = lease_read(file, raw, &records);

	for (unsigned at = 1; at <= records && r >= 0; at++) {
		struct lease lease;

		if (lease_decode(raw, at, &lease) != LEASE_RECORD ||
			lease_is_final(&lease) ||
			strcmp(lease.owner.token, remark->token) != 0)
			continue;
		if (remark->is_released && !lease.released_ms)
			lease.released_ms = clock_boot_ms();
		if (remark->runs)
			lease.runs = *remark->runs;
		text_copy(lease.left, sizeof(lease.left), remark->left);
		r = lease_write(file, at, &lease);
	}
	return r < 0 ? r : 0;
}

/* Writes it into one file; a file that is missing or cannot be used shows no process a lease. */
static int remark_one(struct snapshot *view, unsigned slot, const struct remark *remark)
{
	struct gpuset one = GPUSET_NONE;
	int r;

	if (slot >= view->known || view->gpus[slot].file.fd < 0)
		return 0;
	gpuset_add(&one, slot);
	r = commit_lock(view, &one);
	if (r == 0)
		r = remark_locked(&view->gpus[slot].file, remark);
	commit_unlock(view);
	return r;
}

/* Locks one file after the other: a waiter for several GPUs has to see all of them anyway. */
static int remark_all(
	struct snapshot *view, const struct gpuset *set, const struct remark *remark)
{
	int worst = 0;

	gpuset_for_each (slot, set) {
		int r = remark_one(view, (unsigned)slot, remark);

		if (r != 0 && worst >= 0)
			worst = r;
	}
	return worst;
}

int commit_release(struct snapshot *view, const char *token, const struct gpuset *set,
	const struct owner *left)
{
	char text[LEFTOVER_TEXT_SIZE] = "";

	if (left)
		leftover_format(left, text);
	beacon_remove(view->dir, BEACON_LIVE, token);
	return remark_all(view, set,
		&(struct remark){ .token = token, .is_released = true, .left = text });
}

int commit_note_command(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct command *runs)
{
	return remark_all(
		view, set, &(struct remark){ .token = token, .runs = runs, .left = "" });
}

/* Notes the process that was found in the first file that can be locked: a plan reads all. */
static void note_left(struct snapshot *view, const struct snapshot_lease *lease)
{
	const struct life *life = lives_find(&view->lives, lease->lease.owner.token);
	char text[LEFTOVER_TEXT_SIZE];

	if (!life || life->rest != LIFE_LIVES || !life->has_found)
		return;
	leftover_format(&life->left_behind, text);
	if (strcmp(text, lease->lease.left) == 0)
		return;
	gpuset_for_each (slot, &lease->seen)
		if (remark_one(view, (unsigned)slot,
			    &(struct remark){ .token = lease->lease.owner.token,
				    .left = text }) == 0)
			return;
}

int commit_look(struct snapshot *view, const struct gpuset *set)
{
	int r = snapshot_look(view, set, clock_boot_ms());

	if (r <= 0)
		return r;
	for (size_t i = 0; i < view->lease_count; i++)
		note_left(view, &view->leases[i]);
	return COMMIT_LEFT;
}

/* --- lingering --------------------------------------------------------------------- */

/* Whether the probes say that all GPUs of @lease have been idle since its owner died. */
static bool has_lingered(const struct snapshot *view, const struct snapshot_lease *lease)
{
	int64_t since_ms = lease->dead_ms;

	gpuset_for_each (slot, &lease->lease.gpus) {
		int row = view->gpus[slot].row;
		int64_t idle_ms = row < 0 ? 0 : view->probe.gpus[row].idle_since_ms;

		/* beside others it is idle if it is not seen there itself */
		if (view->gpus[slot].is_shared && row >= 0)
			idle_ms = max_i64(idle_ms, lease->quiet_ms);

		if (!idle_ms)
			return false;
		since_ms = max_i64(since_ms, idle_ms);
	}
	return view->probe.finished_ms - since_ms >= view->usage.linger_ms;
}

/* Declares the lease over for all processes, also if a process without the FIFO is left. */
static void declare_over(struct snapshot *view, const struct snapshot_lease *lease)
{
	struct life *life = lives_find(&view->lives, lease->lease.owner.token);

	(void)remark_all(view, &lease->seen,
		&(struct remark){ .token = lease->lease.owner.token,
			.is_released = true,
			.left = "" });
	if (life)
		life_end(life, true, clock_boot_ms());
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
		beacon_remove(view->dir, BEACON_LIVE, lease->lease.owner.token);
		commit_unlock(view);
		if (beacon_is_named(view->dir, BEACON_LIVE, lease->lease.owner.token))
			continue; /* not ours to remove: it is not over for the others */
		declare_over(view, lease);
		lease->is_over = true;
		lease->over_ms = clock_boot_ms();
		ending_record(view, lease->lease.owner.token, HISTORY_LINGERED, NULL);
		found = true;
	}
	return found;
}
