#include <errno.h>
#include <sys/file.h>

#include "live_fifo.h"
#include "clock.h"
#include "commit.h"
#include "slots.h"

/* --- whether a job lives -------------------------------------------------------- */

/* What the search for live jobs needs; @token is that of this process, which does not count. */
struct search {
	const struct statedir *dir;
	const char *token;
};

enum { FOUND = 1 };

/* Stops the search at the live FIFO of another job. */
static int judge_live_fifo(void *arg, const char *token)
{
	const struct search *search = arg;

	return strcmp(token, search->token) != 0 ? FOUND : 0;
}

/* Stops the search at a ticket of this boot that may belong to another live job. */
static int judge_ticket(void *arg, uint64_t number, const struct ticket *ticket)
{
	const struct search *search = arg;

	(void)number;
	return strcmp(ticket->boot, search->dir->boot) == 0 &&
			       strcmp(ticket->owner.token, search->token) != 0 &&
			       ticket_may_live(search->dir, ticket)
		       ? FOUND
		       : 0;
}

static bool has_live_lease(const struct snapshot *view)
{
	for (size_t i = 0; i < view->lease_count; i++)
		if (!view->leases[i].is_over)
			return true;
	return false;
}

/* Whether another job lives, or may live because a file cannot be read. */
static bool is_any_job_alive(const struct snapshot *view, const char *token)
{
	struct search search = { .dir = view->dir, .token = token };
	struct ticket_file file = TICKET_FILE_NONE;
	int r;

	if (has_live_lease(view) ||
		live_fifo_each_held(view->dir, judge_live_fifo, &search) != 0)
		return true;
	r = ticket_open_to_read(view->dir->fd, &file);
	if (r == 0)
		r = ticket_each(&file, 1, UINT64_MAX, judge_ticket, &search);
	ticket_release(&file);
	return r != 0 && r != -ENOENT;
}

/* --- which slots are gone ------------------------------------------------------- */

static bool is_listed(const struct snapshot *view, const char *uuid)
{
	return probe_find_gpu(&view->probe, uuid) >= 0 ||
	       probe_find_mig(&view->probe, uuid) >= 0;
}

/* Whether the slot can be reused as far as its GPU is concerned, see slots.h. */
static bool is_slot_gone(const struct snapshot *view, unsigned slot)
{
	const struct snapshot_gpu *gpu = &view->gpus[slot];
	const struct gpu_record *record = &gpu->file.gpu;

	if (lease_slot_is_lost(view->dir, slot))
		return true;
	if (gpu->is_unusable || gpu->is_broken || !record->uuid[0] ||
		is_listed(view, record->uuid))
		return false;
	/* its file was deleted */
	if (gpu->file.fd < 0)
		return true;
	return !record->is_paused && strcmp(record->boot, view->dir->boot) != 0;
}

/* --- reusing one ---------------------------------------------------------------- */

/*
 * Returns the slots of the files in which a lease names @slot, and @slot itself if it has a file.
 */
static struct gpuset files_that_name(const struct snapshot *view, unsigned slot)
{
	struct gpuset out = GPUSET_NONE;

	for (size_t i = 0; i < view->lease_count; i++)
		if (gpuset_has(&view->leases[i].lease.gpus, slot))
			out = gpuset_or(&out, &view->leases[i].seen);
	if (view->gpus[slot].file.fd >= 0)
		gpuset_add(&out, slot);
	return out;
}

/*
 * With @files locked: reads again, removes the records that name the slot, and makes its link lead
 * to @uuid.  Returns 0; SLOTS_NONE: the state has changed; or a negative errno.
 */
static int reuse_locked(struct snapshot *view, unsigned slot, const struct gpuset *files,
	const char *uuid)
{
	struct gpuset again;
	int r = snapshot_read(view, clock_boot_ms());

	if (r < 0)
		return r;
	again = files_that_name(view, slot);
	if (!is_slot_gone(view, slot) || has_live_lease(view) ||
		!gpuset_equals(&again, files) || !commit_is_locked(view, files))
		return SLOTS_NONE;
	r = commit_forget_slot(view, files, slot);
	return r < 0 ? r : lease_reuse_slot(view->dir, slot, uuid);
}

/* Locks the files that name the slot, and reuses it.  Returns as reuse_locked(). */
static int reuse_slot(struct snapshot *view, unsigned slot, const char *uuid)
{
	struct gpuset files = files_that_name(view, slot);
	int r = commit_lock(view, &files);

	if (r != 0)
		return SLOTS_NONE;
	r = reuse_locked(view, slot, &files, uuid);
	commit_unlock(view);
	return r;
}

/*
 * With the folder locked: reuses the first slot that can be reused.  Reads again before that, since
 * another process may have given the GPU a slot.  Returns as slots_reuse().
 */
static int reuse_any(struct snapshot *view, const char *uuid, const char *token)
{
	bool is_checked = false;
	int r = snapshot_read(view, clock_boot_ms());

	if (r < 0)
		return r;
	if (snapshot_find_gpu(view, uuid) >= 0)
		return 0;
	r = SLOTS_NONE;
	for (unsigned slot = 0; slot < view->slots && r == SLOTS_NONE; slot++) {
		if (!is_slot_gone(view, slot))
			continue;
		/* only once, and only if a GPU is gone: it reads the whole ticket file */
		if (!is_checked && is_any_job_alive(view, token))
			break;
		is_checked = true;
		r = reuse_slot(view, slot, uuid);
	}
	return r;
}

int slots_reuse(struct snapshot *view, const char *uuid, const char *token)
{
	int r;

	for (unsigned slot = 0; slot < view->known; slot++)
		if (view->gpus[slot].file.is_locked)
			return SLOTS_NONE; /* the caller is about to write a lease */
	/* if this process is stopped with the lock, others only cannot reuse slots */
	if (flock(view->dir->gpu_fd, LOCK_EX | LOCK_NB) < 0)
		return SLOTS_NONE;
	r = reuse_any(view, uuid, token);
	(void)flock(view->dir->gpu_fd, LOCK_UN);
	return r;
}
