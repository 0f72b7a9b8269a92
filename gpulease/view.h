/*
 * What --status, --queue and --history show, as plain structs: everything has been read and
 * judged, nothing of it is needed any more.
 *
 * Looking takes no lock and writes nothing but the shared result of nvidia-smi.  A result
 * older than 1 s is renewed if that takes no longer than 2 s, else it is shown with its age;
 * where there is none, or no nvidia-smi, the lease files alone tell.  What a crash leaves: an
 * nvidia-smi that ends by itself.
 *
 * Texts are as they were found, any bytes: who shows them makes them fit to be shown.
 */
#ifndef GPULEASE_VIEW_H
#define GPULEASE_VIEW_H

#include "context.h"
#include "history.h"
#include "snapshot.h"

enum {
	VIEW_COMMAND_SIZE = 1024,
	VIEW_WHY_SIZE = 320,
	VIEW_JOBS_MAX = 16384, /* waiting ones; the rest is left out */
	VIEW_ENDED_MAX = 65536,
	VIEW_UNKNOWN = -1,
};

/* One GPU.  Who has it: the lease's job, or else the process that uses it. */
struct view_gpu {
	uint32_t index;
	int row; /* in the answer of nvidia-smi, or VIEW_UNKNOWN */
	char uuid[UUID_SIZE], bus_id[32], model[96];
	uint64_t total_mib; /* 0: not known */
	uint64_t used_mib;  /* PROBE_MIB_UNKNOWN */
	int utilization;    /* percent, or VIEW_UNKNOWN */
	int64_t idle_ms;    /* how long it was seen idle; VIEW_UNKNOWN: it was not */

	enum gpu_state state; /* what keeps it from being given away; a lease first */
	bool is_paused;       /* whatever its state */
	char paused_by[USER_SIZE], reason[REASON_SIZE];
	char why[VIEW_WHY_SIZE]; /* the state in words, ""; see explain_gpu() */

	uint64_t ticket; /* 0: no lease */
	uint32_t pid;    /* 0: nobody, or not to be seen from here */
	char user[64];   /* "" unknown */
	char name[NAME_SIZE_MAX];
	int64_t age_ms;                  /* of the lease, or VIEW_UNKNOWN */
	int64_t limit_ms;                /* 0: none */
	char command[VIEW_COMMAND_SIZE]; /* "", as ->name: not to be seen */
};

/* One ticket that waits; its position is its place in the array. */
struct view_job {
	uint64_t ticket;
	uint32_t gpus, pid; /* pid 0: not to be seen from here */
	char user[64];
	char name[NAME_SIZE_MAX];
	int64_t waits_ms, limit_ms;
	bool can_start, is_stopped;
	char why[VIEW_WHY_SIZE];
	char command[COMMAND_SIZE_MAX]; /* "", as ->name: not to be seen */
};

struct view {
	int64_t real_ms; /* when it was taken, CLOCK_REALTIME */
	const char *directory;
	bool is_simulated, has_nvidia_smi;
	int64_t probe_age_ms; /* VIEW_UNKNOWN: there is no result */
	bool is_probe_old;    /* a newer one was wanted and did not come in time */
	char trouble[sizeof(((struct why *)0)->text)]; /* why nvidia-smi shows no GPU */
	size_t broken_records;

	struct view_gpu *gpus;
	size_t gpu_count;
	struct probe_mig *migs; /* ->gpu is the ->row of its GPU */
	size_t mig_count;
	struct view_job *jobs;
	size_t job_count;
	bool has_more_jobs;
};

#define VIEW_NONE ((struct view){ .gpus = NULL })

/*
 * Looks, and sets *@ret, whose memory is given back with view_release().  0, or a negative
 * errno with the reason in @why.
 */
MUST_CHECK int view_take(
	const struct context *context, struct view *ret, struct why *why);
void view_release(struct view *view);

/*
 * The newest @most jobs that have ended, oldest first, as a new array *@ret (freed by the
 * caller) of *@ret_count: those in the history, then those whose leases are over and stand
 * in the lease files still.  Does without nvidia-smi.  0 or as above.
 */
MUST_CHECK int view_ended(const struct context *context, uint64_t most,
	struct history_end **ret, size_t *ret_count, struct why *why);

#endif
