/*
 * Every lease begins here, and its record is replaced here, under the locks of its files.
 *
 * A lease is written file by file.  A crash in between leaves some of its records, with a dead
 * owner, so the lease is void.  Before a record is replaced its end goes into the history; a crash
 * between the two repeats the line, and never loses it.
 */
#include <errno.h>

#include "bell.h"
#include "clock.h"
#include "commit.h"
#include "end_record.h"
#include "fifo.h"

enum {
	LOCK_TRY_MS = 50,
	LOCKED_FOR_MS = 1000, /* how long a GPU counts as locked after a failed try */
	GIVE_BACK_TRIES = 20, /* of LOCK_TRY_MS for locked files */
};

/* --- locks ---------------------------------------------------------------------- */

/*
 * Sorts the slots of @set by their uuids and returns how many there are.  All processes lock lease
 * files in this order.  Otherwise two of them could each hold a file that the other needs.
 */
static unsigned slots_by_uuid(
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
	unsigned slots[GPUSET_MAX], count = slots_by_uuid(view, set, slots);
	int64_t until_ms = clock_boot_ms() + LOCK_TRY_MS;
	bool is_any_locked = false;

	for (unsigned i = 0; i < count; i++) {
		struct snapshot_gpu *gpu = &view->gpus[slots[i]];
		/*
		 * After the deadline each of the other files is still tried once, so that
		 * ->locked_until_ms is set for all that are locked.
		 */
		int r = gpu->file.fd < 0 ? -EBADF : lease_lock(&gpu->file, until_ms);

		if (r == LEASE_LOCKED) {
			gpu->locked_until_ms = clock_boot_ms() + LOCKED_FOR_MS;
			is_any_locked = true;
		} else if (r < 0) {
			commit_unlock(view);
			return r;
		}
	}
	if (is_any_locked)
		commit_unlock(view);
	return is_any_locked ? COMMIT_LOCKED : 0;
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

/* --- leases that are over ------------------------------------------------------- */

/*
 * Prepares a record for its replacement.  Removes its FIFOs, because only the record names them.
 * Records the end if the file is that of the lease's lowest GPU, so that the end is recorded once.
 */
static void bury_record(struct snapshot *view, unsigned slot, const struct lease *lease)
{
	const struct snapshot_lease *over = snapshot_find_token(view, lease->owner.token);
	bool is_lowest = gpuset_next(&lease->gpus, 0) == (int)slot;

	fifo_remove(view->dir, FIFO_LIVE, lease->owner.token);
	/* preemptible jobs keep their bell while they run */
	fifo_remove(view->dir, FIFO_BELL, lease->owner.token);
	if (over && !lease->is_recorded && is_lowest)
		end_record_append(view, over);
	if (lease->name_hash && is_lowest)
		job_name_remove(view->dir, lease->owner.token);
}

/* --- mending -------------------------------------------------------------------- */

/*
 * Writes the live leases back that should stand in the file and do not.  They are known from the
 * files of their other GPUs, and must not be lost if those files are damaged next.
 */
static int restore_leases(
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
		/* the next record that is free; lease_mend_begin() has cleared the broken ones */
		while (at <= records && lease_decode(raw, at, &old) == LEASE_RECORD)
			at++;
		if (at <= LEASES_PER_GPU)
			r = lease_write(file, at++, &missing->lease);
	}
	return r;
}

/*
 * Makes the locked, doubtful file whole: record 0, its unreadable records, missing leases.  A crash
 * in between leaves the file doubtful.  Returns 0 or a negative errno.
 */
static int mend_file(
	struct snapshot *view, struct lease_file *file, const char *raw, unsigned records)
{
	int r;

	text_copy(file->gpu.boot, sizeof(file->gpu.boot), view->dir->boot);
	lease_name_slot(file, file->gpu.slot);
	r = lease_mend_begin(file, raw, records);
	if (r == 0)
		r = restore_leases(view, file, raw, records);
	return r < 0 ? r : lease_mend_end(file);
}

/* With the files of @set locked: reads everything again and mends the doubtful files. */
static int mend_locked(struct snapshot *view, const struct gpuset *set)
{
	static char raw[LEASE_FILE_BYTES];
	bool is_mended = false;

	if (snapshot_read(view, clock_boot_ms()) < 0 || view->has_unknown_job)
		return COMMIT_READ;
	gpuset_for_each (slot, set) {
		struct lease_file *file = &view->gpus[slot].file;
		unsigned records;

		/* a file that was replaced meanwhile was opened again, without the lock */
		if (file->is_locked && view->gpus[slot].is_doubtful &&
			lease_read(file, raw, &records) >= 0)
			is_mended = mend_file(view, file, raw, records) == 0 || is_mended;
	}
	return is_mended ? COMMIT_MENDED : COMMIT_READ;
}

int commit_mend(struct snapshot *view)
{
	struct gpuset set = GPUSET_NONE;
	int r = 0;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].is_doubtful && view->gpus[slot].file.fd >= 0 &&
			view->gpus[slot].locked_until_ms <= clock_boot_ms())
			gpuset_add(&set, slot);
	if (view->has_unknown_job || gpuset_is_empty(&set))
		return 0;
	if (commit_lock(view, &set) == 0)
		r = mend_locked(view, &set);
	commit_unlock(view);
	return r;
}

/* --- writing -------------------------------------------------------------------- */

/*
 * Keeps the record of a live lease that shares the GPU.  If this process has seen a higher memory
 * peak of that lease it writes the peak into the record.  Returns 0 or a negative errno.
 */
static int keep_record(struct lease_file *file, unsigned at, const struct lease *old,
	const struct snapshot_lease *live)
{
	struct lease seen = *old;

	if (live->lease.peak_mib <= old->peak_mib)
		return 0;
	seen.peak_mib = live->lease.peak_mib;
	return lease_write(file, at, &seen);
}

/*
 * Removes the leases that are over from the file of @slot and writes @lease into the first free
 * record, *@ret_at.  Returns 0 or a negative errno; then *@ret_at may be set, too.
 */
static int write_lease_of(
	struct snapshot *view, unsigned slot, const struct lease *lease, unsigned *ret_at)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &view->gpus[slot].file;
	unsigned records = 0, free_at = 0;
	int r = lease_read(file, raw, &records);

	/* a doubtful GPU is in the plan only if no live lease can be missing from its file */
	if (r >= 0 && file->is_doubtful) {
		r = mend_file(view, file, raw, records);
		if (r == 0) /* again, with the leases that were written back */
			r = lease_read(file, raw, &records);
	}
	if (r > 0) /* LEASE_TROUBLE: record 0 is still broken, although it was just written */
		r = -EIO;
	for (unsigned at = 1; at <= LEASES_PER_GPU && r == 0; at++) {
		const struct snapshot_lease *known = NULL;
		struct lease old;

		if (at <= records && lease_decode(raw, at, &old) == LEASE_RECORD) {
			known = snapshot_find_token(view, old.owner.token);
			/* a record that the snapshot lacks cannot be judged: keep it, too */
			if (!known || !known->is_over) {
				r = known ? keep_record(file, at, &old, known) : 0;
				continue;
			}
			bury_record(view, slot, &old);
			if (free_at) /* the first free record is overwritten anyway */
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
		r = write_lease_of(view, (unsigned)slot, lease, &at[slot]);
		/* also after a failed write, which may have left a part of the record */
		if (at[slot])
			gpuset_add(&written, (unsigned)slot);
		if (r < 0)
			break;
	}
	/* one record would claim all GPUs of the lease, so remove every one */
	if (r < 0)
		gpuset_for_each (slot, &written)
			(void)!lease_clear(&view->gpus[slot].file, at[slot]);
	return r;
}

bool commit_is_current(const struct snapshot *view, const struct gpuset *set)
{
	gpuset_for_each (slot, set)
		if (!lease_file_is_current(view->dir, &view->gpus[slot].file))
			return false;
	return true;
}

void commit_erase(struct snapshot *view, const struct gpuset *set, const char *token)
{
	static char raw[LEASE_FILE_BYTES];

	gpuset_for_each (slot, set) {
		struct lease_file *file = &view->gpus[slot].file;
		unsigned records = 0;

		if (lease_read(file, raw, &records) < 0)
			continue;
		for (unsigned at = 1; at <= records; at++) {
			struct lease lease;

			if (lease_decode(raw, at, &lease) == LEASE_RECORD &&
				strcmp(lease.owner.token, token) == 0)
				(void)!lease_clear(file, at);
		}
	}
}

/* Does the work of commit_forget_slot() in the file of slot @at_slot. */
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
		bury_record(view, at_slot, &old);
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

/* --- changes of a live lease: given back, command, leftover process -------------- */

/* What to change in the records of one lease. */
struct lease_change {
	const char *token;
	bool is_released;
	const struct command *runs; /* NULL: keep the command that is noted */
	int64_t limit_ms;           /* 0: keep the limit, which never becomes less */
	int64_t was_ms;             /* only if this is the limit; 0: in any case */
	/* the leftover process, as in the record; "": none; NULL: keep it */
	const char *left;
	const char *note;         /* NULL: keep it */
	const char *cancelled_by; /* NULL: keep it */
};

/*
 * Changes the records of the lease in the locked file.  Returns 0, COMMIT_LOCKED if the limit is
 * another one than ->was_ms, COMMIT_MARKED, or a negative errno.
 */
static int change_locked(struct lease_file *file, const struct lease_change *change)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records = 0;
	int r = lease_read(file, raw, &records);

	for (unsigned at = 1; at <= records && r >= 0; at++) {
		struct lease lease;

		/* a lease that is over for good stays so */
		if (lease_decode(raw, at, &lease) != LEASE_RECORD ||
			lease_is_final(&lease) ||
			strcmp(lease.owner.token, change->token) != 0)
			continue;
		if (change->was_ms && change->was_ms != lease.limit_ms)
			return COMMIT_LOCKED;
		if (change->cancelled_by && change->cancelled_by[0] &&
			lease.cancelled_by[0])
			return COMMIT_MARKED;
		if (change->is_released && !lease.released_ms)
			lease.released_ms = clock_boot_ms();
		if (change->runs)
			lease.runs = *change->runs;
		lease.limit_ms = max_i64(lease.limit_ms, change->limit_ms);
		if (change->left)
			text_copy(lease.left, sizeof(lease.left), change->left);
		if (change->note)
			text_copy(lease.note, sizeof(lease.note), change->note);
		if (change->cancelled_by)
			text_copy(lease.cancelled_by, sizeof(lease.cancelled_by),
				change->cancelled_by);
		r = lease_write(file, at, &lease);
	}
	return r < 0 ? r : 0;
}

/*
 * Changes the lease in the file of @slot.  A file that is missing or cannot be used needs no
 * change, because no process reads the lease there.  Returns 0, COMMIT_LOCKED, or a negative errno.
 */
static int change_in_file(
	struct snapshot *view, unsigned slot, const struct lease_change *change)
{
	struct gpuset one = GPUSET_NONE;
	int r;

	if (slot >= view->known || view->gpus[slot].file.fd < 0)
		return 0;
	gpuset_add(&one, slot);
	r = commit_lock(view, &one);
	if (r == 0)
		r = change_locked(&view->gpus[slot].file, change);
	commit_unlock(view);
	return r;
}

/*
 * Changes the lease in one file after the other, each under its own lock.  They need not change at
 * once: readers merge the records of a lease.  Goes on after a failure.  Returns a negative errno
 * if there was one, else COMMIT_LOCKED if a file was locked, else 0.
 */
static int change_in_files(struct snapshot *view, const struct gpuset *set,
	const struct lease_change *change)
{
	int worst = 0;

	gpuset_for_each (slot, set) {
		int r = change_in_file(view, (unsigned)slot, change);

		if (r != 0 && worst >= 0)
			worst = r;
	}
	return worst;
}

int commit_release(struct snapshot *view, const char *token, const struct gpuset *set,
	const struct owner *left)
{
	char text[LEFTOVER_TEXT_SIZE] = "";
	int r;

	if (left)
		leftover_format(left, text);
	fifo_remove(view->dir, FIFO_LIVE, token);
	r = change_in_files(view, set,
		&(struct lease_change){
			.token = token, .is_released = true, .left = text });
	/* the watchdog of a shell, which lives on, has nothing to watch any more */
	bell_ring(view->dir, token);
	return r;
}

void commit_give_back(struct snapshot *view, const char *token, const struct gpuset *set,
	const struct owner *left)
{
	for (int tries = GIVE_BACK_TRIES; tries > 0; tries--)
		if (commit_release(view, token, set, left) != COMMIT_LOCKED)
			break;
	bell_ring_all(view->dir);
}

int commit_note_limit(struct snapshot *view, const char *token, const struct gpuset *set,
	int64_t was_ms, int64_t limit_ms)
{
	struct lease_change change = {
		.token = token, .was_ms = was_ms, .limit_ms = limit_ms
	};
	struct gpuset first = GPUSET_NONE;
	int r;

	/* readers take the limit of the first file */
	gpuset_add(&first, (unsigned)gpuset_next(set, 0));
	r = change_in_files(view, &first, &change);
	change.was_ms = 0;
	if (r == 0)
		(void)change_in_files(view, set, &change);
	return r;
}

int commit_note_command(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct command *runs)
{
	return change_in_files(view, set,
		&(struct lease_change){ .token = token, .runs = runs, .left = "" });
}

int commit_note_text(struct snapshot *view, const char *token, const struct gpuset *set,
	const char *note)
{
	return change_in_files(
		view, set, &(struct lease_change){ .token = token, .note = note });
}

int commit_mark_cancelled(
	struct snapshot *view, const char *token, const struct gpuset *set, uint32_t uid)
{
	struct gpuset first = GPUSET_NONE;
	unsigned slot = (unsigned)gpuset_next(set, 0);
	char by[UID_TEXT_SIZE];
	int r;

	if (gpuset_is_empty(set) || slot >= view->known || view->gpus[slot].file.fd < 0)
		return 0;
	gpuset_add(&first, slot);
	(void)snprintf(by, sizeof(by), "%u", uid);
	r = commit_lock(view, &first);
	if (r == 0)
		r = change_locked(&view->gpus[slot].file,
			&(struct lease_change){ .token = token, .cancelled_by = by });
	return r;
}

void commit_unmark_cancelled(
	struct snapshot *view, const char *token, const struct gpuset *set)
{
	unsigned slot = (unsigned)gpuset_next(set, 0);

	if (!gpuset_is_empty(set) && slot < view->known &&
		view->gpus[slot].file.is_locked)
		(void)!change_locked(&view->gpus[slot].file,
			&(struct lease_change){ .token = token, .cancelled_by = "" });
}

/*
 * Notes in the lease the leftover process that the look has found, unless the lease names it
 * already.  One file is enough, the first that can be locked: a plan reads all files.
 */
static void note_leftover(struct snapshot *view, const struct snapshot_lease *lease)
{
	const struct liveness *life =
		liveness_set_find(&view->lives, lease->lease.owner.token);
	char text[LEFTOVER_TEXT_SIZE];

	if (!life || life->rest != LIVENESS_LIVES || !life->has_found)
		return;
	leftover_format(&life->left_behind, text);
	if (strcmp(text, lease->lease.left) == 0)
		return;
	gpuset_for_each (slot, &lease->seen)
		if (change_in_file(view, (unsigned)slot,
			    &(struct lease_change){ .token = lease->lease.owner.token,
				    .left = text }) == 0)
			return;
}

int commit_look(struct snapshot *view, const struct gpuset *set)
{
	int r = snapshot_look(view, set, clock_boot_ms());

	if (r <= 0)
		return r;
	for (size_t i = 0; i < view->lease_count; i++)
		note_leftover(view, &view->leases[i]);
	return COMMIT_LEFT;
}

/* --- lingering ------------------------------------------------------------------ */

/*
 * Whether all GPUs of @lease were idle for the linger time after its owner had died.  Only a probe
 * can show that, so the time counts up to the end of the last one.
 */
static bool has_lingered(const struct snapshot *view, const struct snapshot_lease *lease)
{
	int64_t since_ms = lease->dead_ms;

	gpuset_for_each (slot, &lease->lease.gpus) {
		int row = view->gpus[slot].row;
		int64_t idle_ms = row < 0 ? 0 : view->probe.gpus[row].idle_since_ms;

		/* on a shared GPU it is enough that no process of this lease is seen */
		if (view->gpus[slot].is_shared && row >= 0)
			idle_ms = max_i64(idle_ms, lease->quiet_ms);
		if (!idle_ms)
			return false;
		since_ms = max_i64(since_ms, idle_ms);
	}
	return view->probe.finished_ms - since_ms >= view->usage.linger_ms;
}

/*
 * Marks the lease as released, so that all processes see it as over even if a process of the job
 * lives that does not hold the live FIFO.
 */
static void declare_over(struct snapshot *view, const struct snapshot_lease *lease)
{
	struct liveness *life = liveness_set_find(&view->lives, lease->lease.owner.token);

	(void)change_in_files(view, &lease->seen,
		&(struct lease_change){ .token = lease->lease.owner.token,
			.is_released = true,
			.left = "" });
	if (life)
		liveness_end(life, true, clock_boot_ms());
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
		/* not while another process commits there: it has planned with this lease alive */
		if (commit_lock(view, &lowest) != 0)
			continue;
		fifo_remove(view->dir, FIFO_LIVE, lease->lease.owner.token);
		commit_unlock(view);
		if (fifo_is_named(view->dir, FIFO_LIVE, lease->lease.owner.token))
			continue; /* we may not remove it: others see the lease as alive */
		declare_over(view, lease);
		lease->is_over = true;
		lease->over_ms = clock_boot_ms();
		end_record_write(view, lease->lease.owner.token, HISTORY_LINGERED, NULL);
		found = true;
	}
	return found;
}
