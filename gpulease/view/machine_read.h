/*
 * What gpulease prints of a machine, read from its JSON; gpulease-json(5) describes the members.
 * Pure but for memory.  All texts are printable.  A number, a time or a span that is not known is
 * -1, a text is "".
 */
#ifndef GPULEASE_MACHINE_READ_H
#define GPULEASE_MACHINE_READ_H

#include "json_read.h"

/* Text that is cut here is cut at a whole character. */
enum {
	MACHINE_NAME_SIZE = 64,
	MACHINE_JOB_NAME_SIZE = 256, /* of a job, in bytes with its NUL */
	MACHINE_WHY_SIZE = 320,
	MACHINE_COMMAND_SIZE = 512,
};

struct machine_gpu {
	char node[MACHINE_NAME_SIZE]; /* of a cluster, which ->index is on */
	int64_t index, instance;      /* ->instance -1: no MIG instance */
	int64_t total_mib, used_mib, utilization_percent;
	int64_t idle_for_ms; /* how long it has been seen idle; of a GPU without a lease */
	bool is_paused, is_divided; /* into MIG instances, which have rows of their own */
	char state
		[16]; /* idle, leased, lingering, settling, locked, external, unknown, paused */
	char uuid[MACHINE_NAME_SIZE], model[MACHINE_NAME_SIZE], user[MACHINE_NAME_SIZE];
	char why[MACHINE_WHY_SIZE], paused_by[MACHINE_NAME_SIZE];
	char command[MACHINE_COMMAND_SIZE]; /* of the job, or of the foreign process */
	int64_t pid;
};

/* What one job has of one GPU.  A job with several GPUs has as many. */
struct machine_lease {
	size_t gpu; /* index in ->gpus; SIZE_MAX: the job has no GPU */
	int64_t job, attempt, pid, age_ms, started_unix_ms, limit_ms;
	int64_t vram_mib, peak_mib;
	double share; /* of the GPU; 0: not declared */
	bool is_exclusive, is_lingering, is_over_declared;
	/*
	 * Use by samples of its own; -1: unknown.  ->unused_for_ms: how long it has been at 0 %
	 * without a break; ->unused_ms: in all.
	 */
	int64_t utilization_percent, unused_for_ms, unused_ms;
	int64_t unused_ok_ms; /* what --idle-ok asks for */
	bool is_unused;       /* longer than idle-after */
	bool is_watched;
	char user[MACHINE_NAME_SIZE], name[MACHINE_JOB_NAME_SIZE];
	char command[MACHINE_COMMAND_SIZE];
};

struct machine_ticket {
	int64_t position, job, attempt, pid, gpus, vram_mib, priority, limit_ms;
	int64_t since_unix_ms, waits_ms, start_at_unix_ms;
	int64_t held_by, behind; /* jobs */
	double share;
	bool is_exclusive, is_stopped, can_start;
	char user[MACHINE_NAME_SIZE], name[MACHINE_JOB_NAME_SIZE], reason_kind[16];
	char why[MACHINE_WHY_SIZE], command[MACHINE_COMMAND_SIZE];
};

/* GPUs that are kept for some users, or for none. */
struct machine_window {
	char gpus[256]; /* their names, "0,1" */
	char but[96];   /* the numbers of the users whom it does not bind, "1000,1001" */
	char by[MACHINE_NAME_SIZE], reason[MACHINE_WHY_SIZE];
	int64_t from_unix_ms, until_unix_ms; /* ->until_unix_ms -1: until it is removed */
	bool has_begun;
};

/* From `gpulease --status --json`. */
struct machine {
	char host[MACHINE_NAME_SIZE], version[24];
	int64_t taken_unix_ms;
	bool is_simulated, is_queue_cut;
	char engine[16]; /* "slurm": this is a cluster; "": a machine */
	bool has_nvidia_smi, is_answer_old;
	int64_t answer_age_ms;
	char trouble[MACHINE_WHY_SIZE];
	struct machine_gpu *gpus;
	size_t gpu_count, gpu_room;
	struct machine_lease
		*leases; /* in the order of the GPUs; jobs without a GPU last */
	size_t lease_count, lease_room;
	struct machine_ticket *queue;
	size_t queue_count, queue_room;
	struct machine_window *windows; /* which are not over */
	size_t window_count, window_room;
};

#define MACHINE_NONE ((struct machine){ .taken_unix_ms = -1, .answer_age_ms = -1 })

/*
 * Reads the @size bytes at @json into @machine, over what it had; its memory is used again.
 * Returns 0, -ENOMEM, or -EINVAL if this is no such object; @machine is then empty.
 */
MUST_CHECK int machine_read(const char *json, size_t size, struct machine *machine);

void machine_release(struct machine *machine);

/* An attempt that has ended, from `gpulease --history --json`. */
struct ended_job {
	int64_t job, attempt, uid, gpu_count;
	int64_t waited_ms, started_unix_ms, alive_unix_ms, gone_unix_ms;
	int64_t ran_least_ms, ran_most_ms, status;
	int64_t utilization_percent; /* on average */
	int64_t unused_ms, unused_at_end_ms;
	double share, gpu_seconds; /* ->share 0: whole GPUs */
	uint8_t gpus[128];         /* indices, ->gpu_listed of them */
	size_t gpu_listed;
	int64_t peak_mib; /* the most on one GPU */
	int64_t instance; /* of a MIG instance; -1 */
	char user[MACHINE_NAME_SIZE], name[MACHINE_JOB_NAME_SIZE];
	char state[20], how[16], by[MACHINE_NAME_SIZE], command[MACHINE_COMMAND_SIZE];
};

struct ended_jobs {
	int64_t taken_unix_ms, missing_lines, missing_unix_ms;
	struct ended_job *list; /* in the order of the JSON: the latest end last */
	size_t count, room;
};

#define ENDED_JOBS_NONE \
	((struct ended_jobs){ .taken_unix_ms = -1, .missing_unix_ms = -1 })

/* The same as machine_read(), for `gpulease --history --json`. */
MUST_CHECK int ended_jobs_read(const char *json, size_t size, struct ended_jobs *jobs);

void ended_jobs_release(struct ended_jobs *jobs);

#endif
