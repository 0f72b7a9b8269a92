/*
 * The lease files: gpu/<uuid>.lease, one per GPU.
 *
 * Record 0 is the GPU: its uuid, copies of what nvidia-smi last said of it, and whether it is
 * paused; it has no owner and outlives a reboot.  Records 1 to 31 are leases.  A lease of
 * several GPUs stands in the file of each, with the whole set, so that one visible record
 * shows all of it.  A lease whose owner is dead is void; it stays until somebody replaces it,
 * and marks the GPU as just released until then.
 *
 * gpu/slot.<n> is a symbolic link to the file: the slot number, by which sets name the GPU.  It
 * stays, unless the GPU is gone and no job lives: slots.h.
 *
 * Written only under the file's flock; who reads without it only plans.  Files are made
 * complete and linked, never unlinked or renamed.  A crash while leases are written leaves
 * records with a dead owner.
 *
 * A file is in doubt where a lease may have stood that cannot be read any more: it is shorter
 * than 32 records, one of them is neither void nor good, it was made again for a slot that had
 * one (`lost`), or its slot is another than it was.  What that means for its GPU is account.h's.
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
	RECORDER_SIZE = 12
};

/* The values of ->recorded_by: which process tells the history how the job ended. */
#define RECORDER_WATCHDOG "watchdog"
#define RECORDER_SUPERVISOR "supervisor"

struct gpu_record {
	char uuid[UUID_SIZE];
	uint32_t index;   /* nvidia-smi's, copied for readers; everybody uses their own */
	uint32_t has_mig; /* its instances are leased, it is not */
	uint32_t device;  /* of an instance: its number on the GPU ->index */
	uint32_t is_paused;
	uint32_t is_lost; /* the leases of an earlier file, or an earlier record 0 */
	char slot[SLOT_TEXT_SIZE]; /* a number, as sets mean it; "": not yet known */
	uint64_t total_mib;        /* 0: not known */
	char boot[BOOT_SIZE];      /* the boot in which it was last seen; voids nothing */
	char bus_id[32];
	char model[MODEL_NAME_SIZE];
	char paused_by[USER_SIZE];
	char extra[64];
	char reason[REASON_SIZE];
};

struct lease {
	uint64_t ticket;
	uint64_t job; /* its id, where that is another number */
	uint32_t attempt;
	struct owner owner;
	/* the command of its owner, a supervisor: the job itself once the owner is dead */
	struct command runs;
	char boot[BOOT_SIZE];
	struct gpuset gpus;
	uint32_t share_percent;
	uint32_t is_recorded;            /* its end is in the history already */
	char recorded_by[RECORDER_SIZE]; /* "": the process that replaces the record */
	uint64_t vram_mib, peak_mib;     /* declared; seen, a lower bound */
	int64_t limit_ms, grace_ms;
	int64_t since_ms; /* CLOCK_BOOTTIME */
	int64_t waited_ms;
	/* given back by its owner, who lives on: CLOCK_BOOTTIME; 0: it was not */
	int64_t released_ms;
	/* a process of the job that lives although ->owner is dead, see leftover.h; "": unknown */
	char left[LEFTOVER_TEXT_SIZE];
	int64_t priority;
	uint32_t is_supervised, is_preemptible; /* as in the request */
	int64_t leave_ms;
	uint32_t
		is_shell; /* its owner is: whoever ends the job ends what it has started */
	char user[USER_SIZE];
	char name[NAME_SIZE_MAX];
	char extra[48];
	char command[COMMAND_SIZE_MAX];
};

/* The id of the job that has it.  Pure. */
static inline uint64_t lease_job(const struct lease *lease)
{
	return lease->job ? lease->job : lease->ticket;
}

/* Whether it was given back or declared over, and no process of it keeps it.  Pure. */
static inline bool lease_is_final(const struct lease *lease)
{
	return lease->released_ms && !lease->left[0];
}

struct lease_file {
	int fd; /* -1 while not open */
	bool is_locked;
	bool is_doubtful; /* as lease_read() has found it, see above */
	uint32_t slot;
	struct gpu_record gpu;
};

/* What stands in one of the records 1 to 31. */
enum lease_kind { LEASE_NONE, LEASE_RECORD, LEASE_BROKEN };

/* Room for the whole file, read in one go. */
enum { LEASE_FILE_BYTES = (1 + LEASES_PER_GPU) * RECORD_SIZE };

/*
 * Opens the lease file of slot @slot; ->gpu.uuid is what its name says, also where it cannot
 * be opened.  0, LEASE_NO_SLOT where there is no such slot, or a negative errno.
 */
enum { LEASE_NO_SLOT = 1 };
MUST_CHECK int lease_open_slot(
	const struct statedir *dir, uint32_t slot, struct lease_file *file);
void lease_release(struct lease_file *file);

/* Whether the open file is still the one that its name shows. */
bool lease_file_is_current(const struct statedir *dir, const struct lease_file *file);

/* Whether the link of the file's slot still leads to the name of the file. */
bool lease_slot_is_current(const struct statedir *dir, const struct lease_file *file);

/*
 * Gives the GPU a lease file and a slot where it has none yet; the file is marked as lost
 * where the slot was there already, or @gpu says so.  *@ret_slot is its slot.  0 or a
 * negative errno; LEASE_NO_SLOT where all 128 are taken.
 */
MUST_CHECK int lease_add_gpu(
	const struct statedir *dir, const struct gpu_record *gpu, uint32_t *ret_slot);

/* Whether the link of @slot leads to no lease file, because the one before it was lost. */
bool lease_slot_is_lost(const struct statedir *dir, uint32_t slot);

/*
 * Makes the link of @slot lead to the file of GPU @uuid, whatever it led to; slots.h says when that
 * is allowed.  0 or a negative errno.  A crash leaves the old link or the new one.
 */
MUST_CHECK int lease_reuse_slot(
	const struct statedir *dir, uint32_t slot, const char *uuid);

/*
 * Takes the file's flock, waiting until @until_ms at most (CLOCK_BOOTTIME; INT64_MAX: as long as it
 * takes, for a process that no other process waits for).  0, LEASE_LOCKED while another process has
 * it, or a negative errno.
 */
enum { LEASE_LOCKED = 1 };
MUST_CHECK int lease_lock(struct lease_file *file, int64_t until_ms);
void lease_unlock(struct lease_file *file);

/* The pid that /proc/locks names as the holder of the file's flock; 0: not listed. */
uint32_t lease_lock_holder(const struct lease_file *file);

/*
 * Reads the whole file into @raw, updating @file->gpu and ->is_doubtful; *@ret_records
 * counts the records behind record 0.  A bad sum is read again a few times.  0;
 * LEASE_TROUBLE: record 0 is broken or another GPU's, and ->gpu as it was before, but the
 * leases are there; or a negative errno.
 */
enum { LEASE_TROUBLE = 1 };
MUST_CHECK int lease_read(
	struct lease_file *file, char raw[LEASE_FILE_BYTES], unsigned *ret_records);

/* Whether the file, as it was read last, has had another slot; writes the slot it has now. */
bool lease_has_moved(const struct lease_file *file);
void lease_name_slot(const struct lease_file *file, char out[SLOT_TEXT_SIZE]);

/* Decodes record @at (1 to 31) of what lease_read() read.  Pure. */
enum lease_kind lease_decode(const char *raw, unsigned at, struct lease *lease);

/* Under the lock: write the lease as record @at; make record @at void; write record 0. */
MUST_CHECK int lease_write(
	struct lease_file *file, unsigned at, const struct lease *lease);
MUST_CHECK int lease_clear(struct lease_file *file, unsigned at);
MUST_CHECK int lease_write_gpu(struct lease_file *file, const struct gpu_record *gpu);

/*
 * Under the lock, when it is known which live leases belong into the file: makes a file whole
 * that lease_read() has read as @raw, with ->gpu as its record 0.  The first clears what
 * cannot be read, and a crash before the second leaves the file in doubt.  0 or -errno.
 */
MUST_CHECK int lease_mend_begin(
	struct lease_file *file, const char *raw, unsigned records);
MUST_CHECK int lease_mend_end(struct lease_file *file);

#endif
