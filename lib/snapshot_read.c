/* The first half of a look: the lease files, and who of their owners lives. */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "array.h"
#include "clock.h"
#include "snapshot.h"

/* How often the account is taken before it is believed that somebody is missing. */
enum { ACCOUNT_TRIES = 3 };

/* --- reading the lease files ------------------------------------------------------- */

static int add_lease(
	struct snapshot *snapshot, const struct lease *lease, struct snapshot_lease **ret)
{
	struct snapshot_lease *leases = array_grow(snapshot->leases, sizeof(*leases),
		snapshot->lease_count, &snapshot->lease_room);

	if (!leases)
		return -ENOMEM;
	snapshot->leases = leases;
	*ret = &snapshot->leases[snapshot->lease_count++];
	**ret = (struct snapshot_lease){ .lease = *lease };
	return 0;
}

/* Judges the owner of a lease that was not seen before. */
static int judge_lease(
	struct snapshot *snapshot, struct snapshot_lease *seen, int64_t now_ms)
{
	const struct command none = COMMAND_NONE;
	struct owner left;
	struct life *life;

	seen->status = -1;
	seen->is_of_this_boot = strcmp(seen->lease.boot, snapshot->dir->boot) == 0;
	if (!seen->is_of_this_boot) {
		seen->is_dead = seen->is_over = true;
		seen->dead_ms = seen->over_ms = now_ms;
		return 0;
	}
	life = lives_judge_job(&snapshot->lives, &seen->lease.owner,
		seen->lease.released_ms ? &none : &seen->lease.runs, now_ms);
	if (!life)
		return -ENOMEM;
	if (seen->lease.released_ms)
		life_end(life, lease_is_final(&seen->lease), now_ms);
	if (life_is_dead(life) && life->fifo == LIFE_ENDED &&
		leftover_parse(seen->lease.left, &left) == 0)
		life_leave(&snapshot->lives, life, &left, false, now_ms);
	seen->is_unclear = life->rest == LIFE_LIVES && life_wants_look(life);
	snapshot->is_any_unclear = snapshot->is_any_unclear || seen->is_unclear;
	seen->is_dead = life_is_dead(life);
	seen->is_over = life_is_over(life);
	seen->is_orphaned = life->is_orphaned;
	seen->alive_ms = life->alive_ms;
	seen->dead_ms = life->dead_ms;
	seen->over_ms = life->over_ms;
	seen->status = life->status;
	life->is_watched = !seen->is_over;
	return 0;
}

static int add_new_lease(struct snapshot *snapshot, const struct lease *lease,
	int64_t now_ms, struct snapshot_lease **ret)
{
	int r = add_lease(snapshot, lease, ret);

	return r < 0 ? r : judge_lease(snapshot, *ret, now_ms);
}

/* Adds another record of @seen: only the record in one of its files may have ->left. */
static int add_record(struct snapshot *snapshot, struct snapshot_lease *seen,
	const struct lease *record, int64_t now_ms)
{
	struct lease *lease = &seen->lease;

	if (!record->left[0] || lease->left[0] || lease_is_final(lease))
		return 0;
	text_copy(lease->left, sizeof(lease->left), record->left);
	return judge_lease(snapshot, seen, now_ms);
}

static int read_records(struct snapshot *snapshot, struct snapshot_gpu *gpu,
	const char *raw, int64_t now_ms)
{
	gpu->has_dead = false;
	gpu->released_ms = 0;
	for (unsigned at = 1; at <= gpu->records; at++) {
		struct snapshot_lease *seen;
		struct lease lease;
		int r = 0;

		switch (lease_decode(raw, at, &lease)) {
		case LEASE_NONE:
			continue;
		case LEASE_BROKEN:
			snapshot->broken_records++;
			gpu->is_doubtful = true;
			continue;
		case LEASE_RECORD:
			break;
		}
		seen = snapshot_find_token(snapshot, lease.owner.token);
		if (seen)
			r = add_record(snapshot, seen, &lease, now_ms);
		else
			r = add_new_lease(snapshot, &lease, now_ms, &seen);
		if (r < 0)
			return r;
		gpuset_add(&seen->seen, gpu->file.slot);
		if (seen->is_over) {
			gpu->has_dead = gpu->has_dead || seen->is_of_this_boot;
			gpu->released_ms = max_i64(gpu->released_ms, seen->over_ms);
		}
	}
	return 0;
}

/* A folder's time moves with the ticks of the clock: a second change may leave it the same. */
enum { NAMES_SETTLE_MS = 1000 };

static bool is_same_folder(const struct snapshot_names *names, const struct stat *st)
{
	return names->inode == st->st_ino &&
	       names->changed.tv_sec == st->st_mtim.tv_sec &&
	       names->changed.tv_nsec == st->st_mtim.tv_nsec;
}

bool snapshot_has_new_names(const struct snapshot *snapshot)
{
	struct stat st;

	return !snapshot->names.is_sure || fstat(snapshot->dir->gpu_fd, &st) < 0 ||
	       !is_same_folder(&snapshot->names, &st);
}

/*
 * If the folder has changed: closes the files whose slots lead elsewhere.  A slot becomes another
 * GPU's when it is reused (slots.h), or after damage.  Two processes that disagreed about a slot
 * would undo each other's records without end.
 */
static void follow_names(struct snapshot *snapshot)
{
	struct snapshot_names *names = &snapshot->names;
	struct stat st = { 0 };

	if (fstat(snapshot->dir->gpu_fd, &st) == 0 && names->is_sure &&
		is_same_folder(names, &st))
		return;
	names->inode = st.st_ino;
	names->changed = st.st_mtim;
	names->is_sure = clock_age_ms(clock_real_ms(),
				 (int64_t)st.st_mtim.tv_sec * 1000) > 2 * NAMES_SETTLE_MS;
	names->changes++;
	for (unsigned slot = 0; slot < snapshot->known; slot++) {
		struct lease_file *file = &snapshot->gpus[slot].file;

		if (file->fd >= 0 && !lease_slot_is_current(snapshot->dir, file))
			lease_release(file);
	}
}

/* Makes sure that the file of @slot is open; LEASE_NO_SLOT behind the last one. */
static int open_gpu(struct snapshot *snapshot, unsigned slot)
{
	struct snapshot_gpu *gpu = snapshot_gpu_at(snapshot, slot);
	char before[UUID_SIZE];
	int r;

	if (gpu->file.fd >= 0 && lease_file_is_current(snapshot->dir, &gpu->file))
		return 0;
	lease_release(&gpu->file);
	text_copy(before, sizeof(before), gpu->file.gpu.uuid);
	r = lease_open_slot(snapshot->dir, slot, &gpu->file);
	if (before[0] && gpu->file.gpu.uuid[0] && strcmp(before, gpu->file.gpu.uuid) != 0)
		gpuset_add(&snapshot->moved, slot);
	if (r != 0)
		gpu->exists = gpu->has_dead = gpu->is_broken = false;
	return r;
}

/* Two slots with one file: the second is none, or its GPU would be given away twice. */
static bool is_alias(const struct snapshot *snapshot, unsigned slot)
{
	const char *uuid = snapshot->gpus[slot].file.gpu.uuid;
	int first = snapshot_find_gpu(snapshot, uuid);

	return uuid[0] && first >= 0 && first < (int)slot;
}

static int read_gpu(struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	static char raw[LEASE_FILE_BYTES]; /* 16 KiB that no process need have twice */
	int r = lease_read(&gpu->file, raw, &gpu->records);

	gpu->is_broken = r == LEASE_TROUBLE;
	gpu->is_doubtful = gpu->file.is_doubtful;
	gpu->exists = r == 0 && strcmp(gpu->file.gpu.boot, snapshot->dir->boot) == 0;
	return r < 0 ? r : read_records(snapshot, gpu, raw, now_ms);
}

/* One file; what cannot be used stops no other.  LEASE_NO_SLOT behind the last one. */
static int read_slot(struct snapshot *snapshot, unsigned slot, int64_t now_ms)
{
	struct snapshot_gpu *gpu = snapshot_gpu_at(snapshot, slot);
	int r = open_gpu(snapshot, slot);

	if (r == LEASE_NO_SLOT)
		return r;
	snapshot->slots = slot + 1;
	gpu->is_unusable = false;
	if (is_alias(snapshot, slot)) {
		lease_release(&gpu->file);
		gpu->file = (struct lease_file){ .fd = -1, .slot = slot };
		r = -EMLINK;
	}
	if (r == 0)
		r = read_gpu(snapshot, gpu, now_ms);
	if (r == 0 || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	/* one that was deleted is made again with the next probe */
	gpu->is_unusable = r != -ENOENT;
	gpu->is_doubtful = r == -ENOENT;
	gpu->exists = false;
	return 0;
}

/*
 * A lease that does not stand in the files of all its GPUs names the others by their slots
 * alone, and a slot may have become another GPU's.
 */
static void place(const struct snapshot *snapshot, struct snapshot_lease *lease)
{
	struct gpuset missing = gpuset_minus(&lease->lease.gpus, &lease->seen);

	lease->is_placed = true;
	gpuset_for_each (slot, &missing) {
		const struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		if ((unsigned)slot >= snapshot->slots || gpu->file.fd < 0 ||
			gpu->is_broken || gpu->file.gpu.is_lost ||
			!gpu->file.gpu.slot[0] || lease_has_moved(&gpu->file))
			lease->is_placed = false;
	}
}

/* A set may name slots that are not (any more); a lease has what it stands in the file of. */
static void bound_sets(struct snapshot *snapshot)
{
	struct gpuset known = GPUSET_NONE;

	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		gpuset_add(&known, slot);
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		struct gpuset *gpus = &snapshot->leases[i].lease.gpus;

		place(snapshot, &snapshot->leases[i]);
		*gpus = gpuset_and(gpus, &known);
		*gpus = gpuset_or(gpus, &snapshot->leases[i].seen);
	}
}

/* Returns 1 where a GPU is doubtful, 0, or a negative errno. */
static int read_slots(struct snapshot *snapshot, int64_t now_ms)
{
	int r, doubtful = 0;

	snapshot->lease_count = 0;
	token_index_reset(&snapshot->lease_index);
	snapshot->broken_records = 0;
	snapshot->is_any_unclear = false;
	snapshot->slots = 0;
	follow_names(snapshot);
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		r = read_slot(snapshot, slot, now_ms);
		if (r == LEASE_NO_SLOT)
			break;
		if (r < 0)
			return r;
		doubtful = doubtful || snapshot->gpus[slot].is_doubtful;
	}
	bound_sets(snapshot);
	return doubtful;
}

static bool has_lease(const void *snapshot, const char *token)
{
	const struct snapshot_lease *lease =
		snapshot_find_token((struct snapshot *)snapshot, token);

	return lease && lease->is_placed;
}

/* Whose end would settle the account is watched, by what is known of it. */
static int watch_unknown(struct snapshot *snapshot, int64_t now_ms)
{
	struct life *life;

	if (!snapshot->account_open_ms)
		snapshot->account_open_ms = now_ms;
	if (!snapshot->unknown.owner.token[0])
		return 0;
	life = lives_judge(&snapshot->lives, &snapshot->unknown.owner, true, now_ms);
	if (!life)
		return -ENOMEM;
	life->is_watched = !life_is_over(life);
	return 0;
}

int snapshot_read(struct snapshot *snapshot, int64_t now_ms)
{
	for (int left = ACCOUNT_TRIES;;) {
		int r = read_slots(snapshot, now_ms);

		snapshot->is_account_open = false;
		if (r > 0)
			r = account_find(
				snapshot->dir, has_lease, snapshot, &snapshot->unknown);
		if (r == ACCOUNT_OPEN && --left > 0) {
			/* may be one who joined or got its lease while we read */
			(void)poll(NULL, 0, 1);
			continue;
		}
		snapshot->is_account_open = r == ACCOUNT_OPEN;
		if (r == ACCOUNT_OPEN)
			return watch_unknown(snapshot, now_ms);
		snapshot->account_open_ms = 0;
		return r;
	}
}

bool snapshot_withholds(const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	return gpu->is_doubtful && snapshot->is_account_open;
}

bool snapshot_has_unknown(const struct snapshot *snapshot)
{
	struct account_job unknown;

	return account_find(snapshot->dir, has_lease, snapshot, &unknown) != 0;
}
