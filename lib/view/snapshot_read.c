/*
 * Implements snapshot_read() and snapshot_look() of snapshot.h: reads the lease files, judges which
 * owners live, and looks for processes of leases that seem to be over.
 */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "array.h"
#include "clock.h"
#include "snapshot.h"

/* How many times everything is read before a job without a readable lease counts as unknown. */
enum { UNKNOWN_JOB_TRIES = 3 };

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

/*
 * Sets what the liveness of its owner says of the lease @seen.  Called for its first record, and
 * again if a further record names a leftover process.
 */
static int judge_lease(
	struct snapshot *snapshot, struct snapshot_lease *seen, int64_t now_ms)
{
	const struct command none = COMMAND_NONE;
	struct owner left;
	struct liveness *life;

	seen->status = -1;
	/* no process outlives a boot, and pids of another boot mean nothing */
	seen->is_of_this_boot = strcmp(seen->lease.boot, snapshot->dir->boot) == 0;
	if (!seen->is_of_this_boot) {
		seen->is_dead = seen->is_over = true;
		seen->dead_ms = seen->over_ms = now_ms;
		return 0;
	}
	/* a lease that was given back is over, whether its command lives or not */
	life = liveness_set_judge_job(&snapshot->lives, &seen->lease.owner,
		seen->lease.released_ms ? &none : &seen->lease.runs, now_ms);
	if (!life)
		return -ENOMEM;
	if (seen->lease.released_ms)
		liveness_end(life, lease_is_final(&seen->lease), now_ms);
	/* once the FIFO has no writer, only the process that the record names keeps the lease */
	if (liveness_is_dead(life) && life->fifo == LIVENESS_ENDED &&
		leftover_parse(seen->lease.left, &left) == 0)
		liveness_leave(&snapshot->lives, life, &left, false, now_ms);
	seen->is_unclear = life->rest == LIVENESS_LIVES && liveness_wants_look(life);
	snapshot->is_any_unclear = snapshot->is_any_unclear || seen->is_unclear;
	seen->is_dead = liveness_is_dead(life);
	seen->is_over = liveness_is_over(life);
	seen->is_orphaned = life->is_orphaned;
	seen->alive_ms = life->alive_ms;
	seen->dead_ms = life->dead_ms;
	seen->over_ms = life->over_ms;
	seen->status = life->status;
	/* the end of any live lease can change a plan */
	life->is_watched = !seen->is_over;
	return 0;
}

static int add_new_lease(struct snapshot *snapshot, const struct lease *lease,
	int64_t now_ms, struct snapshot_lease **ret)
{
	int r = add_lease(snapshot, lease, ret);

	return r < 0 ? r : judge_lease(snapshot, *ret, now_ms);
}

/*
 * Adds another record of the lease @seen.  All its records are equal, but ->left may stand in only
 * one of them (commit_look()), so it is taken from whichever has it.
 */
static int add_record(struct snapshot *snapshot, struct snapshot_lease *seen,
	const struct lease *record, int64_t now_ms)
{
	struct lease *lease = &seen->lease;

	if (!record->left[0] || lease->left[0] || lease_is_final(lease))
		return 0;
	text_copy(lease->left, sizeof(lease->left), record->left);
	return judge_lease(snapshot, seen, now_ms);
}

/* Reads the leases in @raw, the bytes of one lease file. */
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
		if (seen->is_over && seen->is_of_this_boot) {
			gpu->has_dead = true;
			gpu->released_ms = max_i64(gpu->released_ms, seen->over_ms);
		}
	}
	return 0;
}

/*
 * The time stamp of a folder has the precision of a clock tick.  So a second change soon after the
 * first may leave the stamp as it is; a stamp that is older than this shows every later change.
 */
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
 * If the folder gpu/ has changed, closes the files of slots that lead to other files now, and reads
 * the windows again.  A slot gets another GPU when it is reused (slots.h), or after damage.  Two
 * processes that disagreed about a slot would undo each other's records without end.
 *
 * Returns 0 or a negative errno: without the windows no job may start.
 */
static int follow_names(struct snapshot *snapshot)
{
	struct snapshot_names *names = &snapshot->names;
	struct stat st = { 0 };
	int r;

	if (fstat(snapshot->dir->gpu_fd, &st) == 0 && names->is_sure &&
		is_same_folder(names, &st))
		return 0;
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
	/* after the time stamp was taken: a later change makes it differ, and is read then */
	snapshot->facts.windows = NULL; /* what it leads to is freed */
	snapshot->facts.window_count = 0;
	r = windows_read(snapshot->dir, &snapshot->windows);
	names->is_sure = names->is_sure && r == 0;
	return r;
}

/* Opens the file of @slot unless it is open; LEASE_NO_SLOT after the last slot. */
static int open_gpu(struct snapshot *snapshot, unsigned slot)
{
	struct snapshot_gpu *gpu = snapshot_gpu_at(snapshot, slot);
	int r;

	if (gpu->file.fd >= 0 && lease_file_is_current(snapshot->dir, &gpu->file))
		return 0;
	lease_release(&gpu->file);
	r = lease_open_slot(snapshot->dir, slot, &gpu->file);
	if (r != 0)
		gpu->exists = gpu->has_dead = gpu->is_broken = false;
	return r;
}

/* Whether a lower slot leads to the same GPU: if both counted, the GPU would be leased twice. */
static bool is_alias(const struct snapshot *snapshot, unsigned slot)
{
	const char *uuid = snapshot->gpus[slot].file.gpu.uuid;
	int first = snapshot_find_gpu(snapshot, uuid);

	return uuid[0] && first >= 0 && first < (int)slot;
}

static int read_lease_file(
	struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	/* 16 KiB, static: one buffer is enough for a process */
	static char raw[LEASE_FILE_BYTES];
	int r = lease_read(&gpu->file, raw, &gpu->records);

	gpu->is_broken = r == LEASE_TROUBLE;
	gpu->is_doubtful = gpu->file.is_doubtful;
	gpu->exists = r == 0 && strcmp(gpu->file.gpu.boot, snapshot->dir->boot) == 0;
	return r < 0 ? r : read_records(snapshot, gpu, raw, now_ms);
}

/*
 * Opens and reads the file of one slot.  A file that cannot be used makes its GPU unusable, but is
 * no error.  Returns 0, LEASE_NO_SLOT after the last slot, or a negative errno.
 */
static int read_gpu_slot(struct snapshot *snapshot, unsigned slot, int64_t now_ms)
{
	struct snapshot_gpu *gpu = snapshot_gpu_at(snapshot, slot);
	int r = open_gpu(snapshot, slot);

	if (r == LEASE_NO_SLOT)
		return r;
	/* from here on the slot counts, even if its file cannot be used */
	snapshot->slots = slot + 1;
	gpu->is_unusable = false;
	if (is_alias(snapshot, slot)) {
		lease_release(&gpu->file);
		gpu->file = (struct lease_file){ .fd = -1, .slot = slot };
		r = -EMLINK;
	}
	if (r == 0)
		r = read_lease_file(snapshot, gpu, now_ms);
	/* a lack of memory or descriptors says nothing about the file: the whole read fails */
	if (r == 0 || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	/* the next probe makes a deleted file again; until then its leases may be lost */
	gpu->is_unusable = r != -ENOENT;
	gpu->is_doubtful = r == -ENOENT;
	gpu->exists = false;
	return 0;
}

/*
 * Sets ->is_placed of a lease.  If the files of some of its GPUs lack its record, the lease names
 * these GPUs only by their slots, and a slot may have got another GPU since: certainly so if the
 * record is in the file of a slot that the lease does not name.
 */
static void check_placement(const struct snapshot *snapshot, struct snapshot_lease *lease)
{
	const struct gpuset *gpus = &lease->lease.gpus, *seen = &lease->seen;
	struct gpuset missing = gpuset_minus(gpus, seen),
		      strange = gpuset_minus(seen, gpus);

	lease->is_placed =
		gpuset_is_empty(&strange) || gpuset_count(seen) >= gpuset_count(gpus);
	gpuset_for_each (slot, &missing) {
		const struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		if ((unsigned)slot >= snapshot->slots || gpu->file.fd < 0 ||
			gpu->is_broken || gpu->file.gpu.is_lost ||
			!gpu->file.gpu.slot[0] || lease_has_moved(&gpu->file))
			lease->is_placed = false;
	}
}

/*
 * Limits the set of each lease to slots that exist, because a damaged set may name others.  Adds
 * the GPUs with a record of the lease in their files, whatever the set says.
 */
static void bound_sets(struct snapshot *snapshot)
{
	struct gpuset known = GPUSET_NONE;

	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		gpuset_add(&known, slot);
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		struct gpuset *gpus = &snapshot->leases[i].lease.gpus;

		check_placement(snapshot, &snapshot->leases[i]);
		*gpus = gpuset_and(gpus, &known);
		*gpus = gpuset_or(gpus, &snapshot->leases[i].seen);
	}
}

/* Reads all lease files.  Returns 1 if a GPU is doubtful, 0 if none is, or a negative errno. */
static int read_slots(struct snapshot *snapshot, int64_t now_ms)
{
	int r, doubtful = 0;

	snapshot->lease_count = 0;
	token_index_reset(&snapshot->lease_index);
	snapshot->is_any_unclear = false;
	snapshot->slots = 0;
	r = follow_names(snapshot);
	if (r < 0)
		return r;
	snapshot->broken_records = snapshot->windows.broken;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		r = read_gpu_slot(snapshot, slot, now_ms);
		if (r == LEASE_NO_SLOT)
			break;
		if (r < 0)
			return r;
		doubtful = doubtful || snapshot->gpus[slot].is_doubtful;
	}
	bound_sets(snapshot);
	return doubtful;
}

/* For integrity_find(); the cast is safe, because only the index of the tokens changes. */
static bool has_placed_lease(const void *snapshot, const char *token)
{
	const struct snapshot_lease *lease =
		snapshot_find_token((struct snapshot *)snapshot, token);

	return lease && lease->is_placed;
}

/* Watches the end of the unknown job, as far as its owner is known. */
static int watch_unknown(struct snapshot *snapshot, int64_t now_ms)
{
	struct liveness *life;

	if (!snapshot->unknown_since_ms)
		snapshot->unknown_since_ms = now_ms;
	if (!snapshot->unknown.owner.token[0]) /* live/ cannot be read: no job is named */
		return 0;
	life = liveness_set_judge(
		&snapshot->lives, &snapshot->unknown.owner, true, now_ms);
	if (!life)
		return -ENOMEM;
	life->is_watched = !liveness_is_over(life);
	return 0;
}

int snapshot_read(struct snapshot *snapshot, int64_t now_ms)
{
	for (int left = UNKNOWN_JOB_TRIES;;) {
		int r = read_slots(snapshot, now_ms);

		snapshot->has_unknown_job = false;
		if (r > 0) /* a GPU is doubtful */
			r = integrity_find(snapshot->dir, has_placed_lease, snapshot,
				&snapshot->unknown);
		if (r == INTEGRITY_UNKNOWN_JOB && --left > 0) {
			/* the job may have joined or got its lease while the files were read */
			(void)poll(NULL, 0, 1);
			continue;
		}
		snapshot->has_unknown_job = r == INTEGRITY_UNKNOWN_JOB;
		if (r == INTEGRITY_UNKNOWN_JOB)
			return watch_unknown(snapshot, now_ms);
		snapshot->unknown_since_ms = 0;
		return r;
	}
}

bool snapshot_withholds(const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	return gpu->is_doubtful && snapshot->has_unknown_job;
}

bool snapshot_has_unknown(const struct snapshot *snapshot)
{
	struct integrity_job unknown;

	return integrity_find(snapshot->dir, has_placed_lease, snapshot, &unknown) != 0;
}

/* --- looking for processes of leases that seem to be over ---------------------------- */

/* Returns the life of lease @at if a look is needed to know whether it is over, else NULL. */
static struct liveness *find_unsettled_life(
	struct snapshot *snapshot, size_t at, const struct gpuset *set)
{
	const struct snapshot_lease *lease = &snapshot->leases[at];
	struct gpuset common = set ? gpuset_and(set, &lease->seen) : lease->seen;
	bool is_wanted = lease->is_over && !gpuset_is_empty(&common);
	struct liveness *life;

	if (!lease->is_of_this_boot || (!is_wanted && !lease->is_unclear))
		return NULL;
	life = liveness_set_find(&snapshot->lives, lease->lease.owner.token);
	return life && liveness_wants_look(life) ? life : NULL;
}

bool snapshot_wants_look(struct snapshot *snapshot, const struct gpuset *set)
{
	for (size_t i = 0; i < snapshot->lease_count; i++)
		if (find_unsettled_life(snapshot, i, set))
			return true;
	return false;
}

/* Notes in the lives which processes were found.  Returns how many leases have one. */
static int note_look_results(struct snapshot *snapshot,
	const struct leftover_search *searches, size_t count, int64_t now_ms)
{
	int found = 0;

	for (size_t i = 0; i < count; i++) {
		struct liveness *life =
			liveness_set_find(&snapshot->lives, searches[i].owner->token);

		if (!life)
			continue;
		if (!searches[i].is_found) {
			liveness_leave_nothing(life);
			continue;
		}
		liveness_leave(&snapshot->lives, life, &searches[i].found, true, now_ms);
		found++;
	}
	return found;
}

int snapshot_look(struct snapshot *snapshot, const struct gpuset *set, int64_t now_ms)
{
	autofree struct leftover_search *searches = NULL;
	size_t count = 0;
	int r;

	if (!snapshot_wants_look(snapshot, set))
		return 0;
	searches = calloc(snapshot->lease_count, sizeof(*searches));
	if (!searches)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->lease_count; i++)
		if (find_unsettled_life(snapshot, i, set))
			searches[count++] = LEFTOVER_OF(&snapshot->leases[i].lease.owner);
	r = leftover_find(searches, count, snapshot->dir->pidns);
	if (r == -ENOMEM)
		return r;
	/* if this process cannot read /proc, leases end with their FIFOs */
	return note_look_results(snapshot, searches, count, now_ms);
}

int snapshot_read_and_look(struct snapshot *snapshot, int64_t now_ms)
{
	int r = snapshot_read(snapshot, now_ms);

	if (r == 0)
		r = snapshot_look(snapshot, NULL, now_ms);
	return r > 0 ? snapshot_read(snapshot, now_ms) : r;
}
