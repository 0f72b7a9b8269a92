/*
 * What --status and --queue show, as plain structs: everything has been read and judged.
 *
 *	view_take -> show_status (show_status.h), show_queue (show_queue.h) -> view_release
 *
 * Reading takes no lock and writes only the shared result of nvidia-smi.  It renews a result that
 * is older than 1 s if that takes no longer than 2 s; else the old result is shown with its age.
 * Without a result, or without an nvidia-smi, the view shows what the lease files tell.  A crash
 * leaves at most an nvidia-smi that ends by itself.
 *
 * Texts hold any bytes, as they were found; the code that prints them makes them printable.
 */
#ifndef GPULEASE_VIEW_H
#define GPULEASE_VIEW_H

#include "broker.h"
#include "context.h"
#include "foretell.h"
#include "snapshot.h"

enum {
	VIEW_COMMAND_SIZE = 1024,
	VIEW_WHY_SIZE = 320,
	VIEW_JOBS_MAX = 16384, /* waiting tickets in a view; further ones are left out */
	VIEW_UNKNOWN = -1,
};

/* What has a GPU: a lease on it or, without any lease, a process that uses it. */
struct view_holder {
	uint64_t ticket;   /* the id of the lease's job; 0: no lease */
	uint32_t attempt;  /* which attempt of the job, from 1; 0: no lease */
	uint32_t pid;      /* 0: dead, or in another pid namespace */
	bool is_lingering; /* the lease's owner is dead, but its leftovers live */
	char user[64];     /* "": unknown */
	char name[NAME_SIZE_MAX];
	bool name_is_cut;  /* ->name is a beginning and …: the rest cannot be read */
	struct need need;  /* what the lease has of the GPU */
	uint64_t peak_mib; /* the most memory seen in use; 0: none, or not sampled */
	bool is_over_declared; /* ->peak_mib is more than it declared plus the tolerance */
	/* how it uses the GPUs, by samples of its own (lease_use.h): known if ->has_use */
	bool has_use;
	int mean_percent;
	int64_t unused_for_ms;           /* of this GPU, until now; 0: it is used */
	int64_t unused_ms;               /* in all, the mean of its GPUs */
	int64_t unused_ok_ms;            /* as in the request */
	bool is_unused;                  /* this GPU, for longer than `idle-after` */
	bool is_watched;                 /* a process takes these samples */
	int64_t age_ms;                  /* of the lease, or VIEW_UNKNOWN */
	int64_t limit_ms;                /* 0: none */
	char note[NOTE_SIZE];            /* like ->name */
	char command[VIEW_COMMAND_SIZE]; /* like ->name, "" if it may not be shown */
};

/* A GPU or a MIG instance. */
struct view_gpu {
	unsigned slot;
	uint32_t index;
	const char *
		node; /* of a cluster, which ->index is on; NULL: it is of this machine */
	int64_t instance; /* its number on GPU ->index; VIEW_UNKNOWN: this is a GPU */
	char parent[UUID_SIZE]; /* of an instance: the GPU's uuid, "" if unknown */
	bool has_mig;           /* its instances are leased instead of it */
	int row;                /* in the answer of nvidia-smi, or VIEW_UNKNOWN */
	char uuid[UUID_SIZE], bus_id[32], model[96];
	uint64_t total_mib; /* 0: unknown; of an instance a lower bound */
	uint64_t used_mib;  /* or PROBE_MIB_UNKNOWN */
	int utilization;    /* percent, or VIEW_UNKNOWN */
	int64_t idle_ms;    /* for how long it was seen idle; VIEW_UNKNOWN: it was not */

	/* what a job that shares could get of it now, and memory used outside gpulease */
	int64_t free_percent, free_mib, foreign_mib; /* or VIEW_UNKNOWN */

	enum gpu_state state; /* what keeps it from being leased; a lease comes first */
	bool is_paused;       /* whatever ->state is */
	char paused_by[USER_SIZE], reason[REASON_SIZE];
	char why[VIEW_WHY_SIZE]; /* what keeps it, as explain_gpu() says it; "": nothing */
	bool is_past_use;        /* used outside gpulease, but hardly at present */
	size_t why_verb_size;    /* of the "is " at the beginning of ->why; 0: none */

	const struct view_holder
		*holders; /* by ticket; points into ->holders of the view */
	size_t holder_count;
};

/* A ticket that waits; its position is its place in the array. */
struct view_job {
	uint64_t ticket;    /* the id of the job */
	uint32_t attempt;   /* from 1 */
	uint32_t gpus, pid; /* pid 0: in another pid namespace */
	struct need need;   /* of each GPU */
	int64_t priority;
	bool is_singleton;
	char after[AFTER_SIZE], after_ok[AFTER_SIZE];
	char user[64];
	char name[NAME_SIZE_MAX];
	bool name_is_cut; /* as of a holder */
	int64_t waits_ms, limit_ms;
	int64_t late_ms;        /* by so much it counts as having come later */
	bool is_stopped;        /* its process is stopped, so the plan passes over it */
	char stuck[STUCK_SIZE]; /* why its process cannot act (passover.h); "": it can */
	enum verdict_kind verdict; /* VERDICT_START: nothing keeps it from starting */
	uint64_t behind, held_by;  /* the ticket, the job that comes first; 0: none */
	uint32_t limit_line;       /* of [limits], whose limit keeps it; 0: none does */
	/* CLOCK_REALTIME: it does not start before; 0: it may, or is tried again */
	int64_t begin_ms;
	bool is_on_hold; /* it does not start before its release */
	int64_t start_ms; /* CLOCK_REALTIME, if all others run to their limits; 0: unknown */
	struct foretold foretold;       /* CLOCK_REALTIME: when it usually starts */
	char why[VIEW_WHY_SIZE];        /* why it waits, in words */
	char command[COMMAND_SIZE_MAX]; /* like ->name, "" if it may not be shown */
};

/* A user with waiting jobs that count as having come later, by fair-share. */
struct view_share {
	char user[64];
	struct broker_share counts; /* for a job that would come now */
};

enum { VIEW_SHARES_MAX = 16 }; /* further users are left out */

/* GPUs that are kept for a time: all records of one window. */
struct view_window {
	uint64_t id;
	char gpus[256]; /* as explained, "0,1" */
	bool has_begun;
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; until 0: not known */
	char but[WINDOW_USERS_SIZE], by[USER_SIZE], reason[REASON_SIZE];
	char why[VIEW_WHY_SIZE]; /* as explain_window() says it */
};

struct view {
	int64_t real_ms; /* when it was taken, CLOCK_REALTIME */
	const char *directory;
	bool is_simulated, has_nvidia_smi;
	int64_t probe_age_ms;   /* VIEW_UNKNOWN: there is no result of nvidia-smi */
	bool is_probe_old;      /* a newer result was wanted and did not come in time */
	char trouble[WHY_SIZE]; /* why nvidia-smi shows no GPU */
	size_t broken_records;
	unsigned slotless; /* GPUs that are not in ->gpus because all slots are taken */

	struct view_gpu *gpus;
	size_t gpu_count;
	struct view_holder *holders; /* of all GPUs */
	struct probe_mig *migs;      /* ->gpu is the ->row of its GPU */
	size_t mig_count;
	struct view_job *jobs;
	size_t job_count;
	struct view_share shares[VIEW_SHARES_MAX];
	size_t share_count;
	struct config_share share; /* as configured */
	bool has_more_jobs;
	unsigned running; /* jobs that have GPUs; not what ended jobs have left */
	struct view_holder *gpuless; /* jobs that run on no GPU */
	size_t gpuless_count;
	struct view_window *windows; /* which are not over */
	size_t window_count;
};

#define VIEW_NONE ((struct view){ .gpus = NULL })

/*
 * Reads the state and sets *@ret, which the caller releases.  Returns 0, or a negative errno with
 * the reason in @why.
 */
MUST_CHECK int view_take(
	const struct context *context, struct view *ret, struct why *why);
void view_release(struct view *view);

/* Returns "3", "3:1" for a MIG instance, or "n1/3" on a node of a cluster. */
struct gpu_name view_gpu_name(const struct view_gpu *gpu);

#endif
