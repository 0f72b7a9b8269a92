/*
 * The lease files: gpu/<uuid>.lease, one per GPU.
 *
 * Record 0 describes the GPU: its UUID, copies of what nvidia-smi last said of it, and whether it
 * is paused.  It has no owner and outlives a reboot.  Records 1 to 31 are leases.  A lease of
 * several GPUs stands in the file of each, with the whole set, so one readable record shows all of
 * the lease.  A lease with a dead owner is void.  Its record stays until another lease replaces
 * it, and until then shows that the GPU was just released.
 *
 * gpu/slot.<n> is a symbolic link to the file.  <n> is the slot, by which sets name the GPU.  The
 * link stays, unless the GPU is gone and no job lives: slots.h.
 *
 * A file is written only under its flock.  A process that reads it without the lock may only plan.
 * A file is made complete and then linked to its name, and is never unlinked or renamed.  A crash
 * while leases are written leaves records with a dead owner.
 *
 * A file is in doubt if it may have lost a lease: the file has fewer than 32 records, a record is
 * neither void nor good, the file was made again for a slot that had one (`lost`), or record 0
 * names another slot than the file has.  integrity.h says what that means for the GPU.
 */
#ifndef GPULEASE_LEASE_H
#define GPULEASE_LEASE_H

#include "leftover.h"
#include "ticket.h"

struct statedir;

enum {
	LEASES_PER_GPU = 31,
	UUID_SIZE = 96,
	MODEL_NAME_SIZE = 96,
	REASON_SIZE = 160,
	SLOT_TEXT_SIZE = 4,
	RECORDER_SIZE = 12,
	UID_TEXT_SIZE = 11,
	NOTE_SIZE = 64
};

/* The values of ->recorded_by: the process that writes the exact line of the end (end_record.h). */
#define RECORDER_WATCHDOG "watchdog"
#define RECORDER_SUPERVISOR "supervisor"

struct gpu_record {
	char uuid[UUID_SIZE];
	uint32_t index;   /* copied from nvidia-smi, for people */
	uint32_t has_mig; /* its MIG instances are leased, and not the GPU itself */
	uint32_t device;  /* of a MIG instance: its number on the GPU ->index */
	uint32_t is_paused;
	/* leases of an earlier file may be lost, or record 0 was lost */
	uint32_t is_lost;
	char slot[SLOT_TEXT_SIZE]; /* its slot when it was last written; "": not known */
	uint64_t total_mib;        /* 0: not known */
	/* in which the GPU was last seen; an earlier one voids nothing */
	char boot[BOOT_SIZE];
	char bus_id[32];
	char model[MODEL_NAME_SIZE];
	char paused_by[USER_SIZE];
	char extra[64];
	char reason[REASON_SIZE];
};

struct lease {
	uint64_t ticket;
	uint64_t job; /* the id of the job, if that is not ->ticket; else 0 */
	uint32_t attempt;
	struct owner owner;
	/* the command of its owner, a supervisor: the job itself once the owner is dead */
	struct command runs;
	char boot[BOOT_SIZE];
	struct gpuset gpus;
	uint32_t share_percent;
	uint32_t
		counts_percent; /* what each GPU counts for limits and fair-share; 0: as ->share_percent */
	uint32_t is_recorded; /* its end is in the history */
	/* RECORDER_…; "": the process that replaces the record */
	char recorded_by[RECORDER_SIZE];
	uint64_t vram_mib, peak_mib; /* declared; the most that was seen */
	int64_t limit_ms, grace_ms;
	int64_t since_ms; /* CLOCK_BOOTTIME */
	int64_t waited_ms;
	/*
	 * It began although the plan also starts a job that comes before it in the queue, and that
	 * had not acted yet: ->order_ms of its ticket, or LEASE_EARLY if that is 0.  0: not so.
	 */
	int64_t early;
	/* when the owner, which lives on, gave it back: CLOCK_BOOTTIME; 0: it has not */
	int64_t released_ms;
	/* a process of the job that lives although ->owner is dead, see leftover.h; "": unknown */
	char left[LEFTOVER_TEXT_SIZE];
	int64_t priority;
	uint32_t is_supervised, is_preemptible; /* as in the request */
	int64_t leave_ms;
	int64_t unused_ok_ms; /* as in the request */
	/* the owner is a shell: ending the job also ends what the shell has started */
	uint32_t is_shell;
	/*
	 * the uid that has ended the job: written before the job got TERM, only while it lived, and
	 * only in the file of the lowest GPU (commit_mark_cancelled()); "": none
	 */
	char cancelled_by[UID_TEXT_SIZE];
	char note[NOTE_SIZE]; /* what the job says of itself (--note) */
	char user[USER_SIZE];
	char name[NAME_SIZE_MAX]; /* as in the request */
	uint64_t name_hash;
	char extra[48];
	char command[COMMAND_SIZE_MAX];
};

/* ->early of a lease with a plain ticket. */
enum { LEASE_EARLY = 1 };

/* Returns the id of the job that has the lease.  Pure. */
static inline uint64_t lease_job(const struct lease *lease)
{
	return lease->job ? lease->job : lease->ticket;
}

/* Returns what each GPU of the lease counts, in percent.  Pure. */
static inline unsigned lease_counts_percent(const struct lease *lease)
{
	return lease->counts_percent ? lease->counts_percent : lease->share_percent;
}

/* Whether the lease was given back or declared over, and no leftover process keeps it.  Pure. */
static inline bool lease_is_final(const struct lease *lease)
{
	return lease->released_ms && !lease->left[0];
}

struct lease_file {
	int fd; /* -1 while not open */
	bool is_locked;
	bool is_doubtful; /* the file is in doubt, see above; set by lease_read() */
	uint32_t slot;
	struct gpu_record gpu;
};

/* The content of one of the records 1 to 31. */
enum lease_kind { LEASE_NONE, LEASE_RECORD, LEASE_BROKEN };

/* The size of a whole file, which is read at once. */
enum { LEASE_FILE_BYTES = (1 + LEASES_PER_GPU) * RECORD_SIZE };

/*
 * NO_SLOT: there is no such slot, or no free one.  LOCKED: another process holds the lock.
 * TROUBLE: record 0 is broken, or is that of another GPU.
 */
enum lease_outcome { LEASE_NO_SLOT = 1, LEASE_LOCKED, LEASE_TROUBLE };

/*
 * Opens the lease file of slot @slot.  Sets ->gpu.uuid by the name of the file, even if the file
 * cannot be opened.  Returns 0, LEASE_NO_SLOT (there is no such slot), or a negative errno.
 */
MUST_CHECK int lease_open_slot(
	const struct statedir *dir, uint32_t slot, struct lease_file *file);
void lease_release(struct lease_file *file);

/* Whether the name in gpu/ still leads to the open file. */
bool lease_file_is_current(const struct statedir *dir, const struct lease_file *file);

/* Whether the link of the file's slot still leads to the name of the file. */
bool lease_slot_is_current(const struct statedir *dir, const struct lease_file *file);

/*
 * Makes a lease file and a slot for the GPU, as far as they are missing.  The new file is marked as
 * lost if the slot was there already, or if @gpu says so.  *@ret_slot is its slot.  Returns 0,
 * LEASE_NO_SLOT (all 128 are taken), or a negative errno.  A crash between the two leaves a file
 * without a slot, which the next call for the GPU completes.
 */
MUST_CHECK int lease_add_gpu(
	const struct statedir *dir, const struct gpu_record *gpu, uint32_t *ret_slot);

/* Whether the link of @slot leads to no lease file, because the link before it was lost. */
bool lease_slot_is_lost(const struct statedir *dir, uint32_t slot);

/*
 * Makes the link of @slot lead to the file of GPU @uuid, whatever it led to; slots.h says when that
 * is allowed.  Returns 0 or a negative errno.  A crash leaves the old link or the new one.
 */
MUST_CHECK int lease_reuse_slot(
	const struct statedir *dir, uint32_t slot, const char *uuid);

/*
 * Takes the file's flock.  Waits until @until_ms at most (CLOCK_BOOTTIME).  INT64_MAX: waits as
 * long as it takes; only for a process that no other process waits for.  Returns 0, LEASE_LOCKED,
 * or a negative errno.
 */
MUST_CHECK int lease_lock(struct lease_file *file, int64_t until_ms);
void lease_unlock(struct lease_file *file);

/* Returns the pid of the process that holds the file's flock, by /proc/locks; 0: not listed. */
uint32_t lease_lock_holder(const struct lease_file *file);

/*
 * Reads the whole file into @raw, and sets @file->gpu and ->is_doubtful.  *@ret_records counts the
 * records after record 0.  Reads again a few times if a sum is bad.  Returns 0; LEASE_TROUBLE, if
 * record 0 is broken or another GPU's, with ->gpu as it was before and the leases in @raw; or a
 * negative errno.
 */
MUST_CHECK int lease_read(
	struct lease_file *file, char raw[LEASE_FILE_BYTES], unsigned *ret_records);

/* Whether record 0, as it was read last, names another slot than the file has now. */
bool lease_has_moved(const struct lease_file *file);

/* Writes the slot that the file has now, as record 0 names it. */
void lease_name_slot(const struct lease_file *file, char out[SLOT_TEXT_SIZE]);

/* Decodes record @at (1 to 31) of @raw, which lease_read() has read.  Pure. */
enum lease_kind lease_decode(const char *raw, unsigned at, struct lease *lease);

/*
 * Reads the file and finds the lease with @token: record *@ret_at.  *@ret_at 0: the file has none.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int lease_find(
	struct lease_file *file, const char *token, struct lease *ret, unsigned *ret_at);

/*
 * Write @lease as record @at, make record @at void, write record 0.  The caller holds the lock.
 * They return 0 or a negative errno.
 */
MUST_CHECK int lease_write(
	struct lease_file *file, unsigned at, const struct lease *lease);
MUST_CHECK int lease_clear(struct lease_file *file, unsigned at);
MUST_CHECK int lease_write_gpu(struct lease_file *file, const struct gpu_record *gpu);

/*
 * Mend a file in doubt, which lease_read() has read as @raw.  The caller holds the lock, and knows
 * which live leases belong into the file.  ->gpu becomes record 0.  The first marks the file as
 * lost and clears the records that cannot be read.  The caller then writes the missing leases, and
 * the second removes the mark.  A crash in between leaves the file in doubt.  Both return 0 or
 * -errno.
 */
MUST_CHECK int lease_mend_begin(
	struct lease_file *file, const char *raw, unsigned records);
MUST_CHECK int lease_mend_end(struct lease_file *file);

#endif
