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
#include "ended_filter.h"
#include "history.h"
#include "snapshot.h"

enum {
	VIEW_COMMAND_SIZE = 1024,
	VIEW_WHY_SIZE = 320,
	VIEW_JOBS_MAX = 16384, /* waiting ones; the rest is left out */
	VIEW_ENDED_MAX = 65536,
	VIEW_UNKNOWN = -1,
};

/* Who has a GPU: one of the leases on it, or else the process that uses it. */
struct view_holder {
	uint64_t ticket;   /* the id of its job; 0: no lease */
	uint32_t attempt;  /* of that job, 1, 2 …; 0: no lease */
	uint32_t pid;      /* 0: not to be seen from here, or dead */
	bool is_lingering; /* its owner is dead, but somebody it left behind lives */
	char user[64];     /* "" unknown */
	char name[NAME_SIZE_MAX];
	struct need need; /* of a lease: what it has of the GPU */
	uint64_t
		peak_mib; /* the most that was seen of it, where anybody looks; 0: nothing */
	bool is_over_declared; /* which is more than it has declared, and the tolerance */
	int64_t age_ms;        /* of the lease, or VIEW_UNKNOWN */
	int64_t limit_ms;      /* 0: none */
	char command[VIEW_COMMAND_SIZE]; /* "", as ->name: not to be seen */
};

struct view_gpu {
	uint32_t index;
	int64_t instance;       /* its number on that GPU, or VIEW_UNKNOWN: a GPU */
	char parent[UUID_SIZE]; /* of an instance: the GPU's uuid, "" where not known */
	bool has_mig;           /* its instances are leased instead of it */
	int row;                /* in the answer of nvidia-smi, or VIEW_UNKNOWN */
	char uuid[UUID_SIZE], bus_id[32], model[96];
	uint64_t total_mib; /* 0: not known; of an instance a lower bound */
	uint64_t used_mib;  /* PROBE_MIB_UNKNOWN */
	int utilization;    /* percent, or VIEW_UNKNOWN */
	int64_t idle_ms;    /* how long it was seen idle; VIEW_UNKNOWN: it was not */

	/* what a job that shares could have of it now, and what is not gpulease's */
	int64_t free_percent, free_mib, foreign_mib; /* or VIEW_UNKNOWN */

	enum gpu_state state; /* what keeps it from being given away; a lease first */
	bool is_paused;       /* whatever its state */
	char paused_by[USER_SIZE], reason[REASON_SIZE];
	char why[VIEW_WHY_SIZE]; /* the state in words, ""; see explain_gpu() */

	const struct view_holder *holders; /* by ticket; in view's ->holders */
	size_t holder_count;
};

/* One ticket that waits; its position is its place in the array. */
struct view_job {
	uint64_t ticket;    /* the id of the job */
	uint32_t attempt;   /* 1, 2 … */
	uint32_t gpus, pid; /* pid 0: not to be seen from here */
	struct need need;   /* of each GPU */
	int64_t priority;
	bool is_singleton;
	char after[AFTER_SIZE], after_ok[AFTER_SIZE];
	char user[64];
	char name[NAME_SIZE_MAX];
	int64_t waits_ms, limit_ms;
	bool is_stopped;
	char stuck
		[STUCK_SIZE]; /* why its process cannot act, as a ticket says it; "": it can */
	enum verdict_kind verdict; /* VERDICT_START: nothing keeps it any more */
	uint64_t behind, held_by;  /* the ticket that comes first, 0: none */
	int64_t start_ms; /* CLOCK_REALTIME, by the limits of all before it; 0: nobody knows */
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
	unsigned slotless; /* GPUs that are not in ->gpus because all slots are taken */

	struct view_gpu *gpus;
	size_t gpu_count;
	struct view_holder *holders;
	struct probe_mig *migs; /* ->gpu is the ->row of its GPU */
	size_t mig_count;
	struct view_job *jobs;
	size_t job_count;
	bool has_more_jobs;
	struct view_holder *gpuless; /* jobs that run on no GPU */
	size_t gpuless_count;
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
 * Each job that has ended, the latest first: those whose leases are over and stand in the
 * lease files still, then those in the history; where it wants them, before these the leases
 * that live, as if they ended now.  Names and commands that this user may not see are empty,
 * users without a name on record, too.  Does without nvidia-smi.
 */
struct view_taker {
	/* 0 to go on, VIEW_ENOUGH, or a negative errno */
	int (*take)(
		struct view_taker *taker, const struct history_end *end, bool is_running);
	bool wants_running;
	/* set before the first call */
	unsigned gpu_count; /* of this machine, in this boot; of MIG, instances */
	int64_t real_ms;
	/* set after the last call: lines that are missing among those that were read */
	struct history_gap gap;
};
enum { VIEW_ENOUGH = 1 };

/* 0, also where it had enough, or a negative errno with the reason in @why. */
MUST_CHECK int view_each_ended(
	const struct context *context, struct view_taker *taker, struct why *why);

/*
 * The newest @most of them that pass @filter, oldest first, as a new array *@ret (freed by the
 * caller) of *@ret_count, not more than VIEW_ENDED_MAX, and *@ret_gap: the lines that are missing
 * among them.  0 or as above.
 */
MUST_CHECK int view_ended(const struct context *context,
	const struct ended_filter *filter, uint64_t most, struct history_end **ret,
	size_t *ret_count, struct history_gap *ret_gap, struct why *why);

#endif
