/*
 * The result of one probe of this machine's GPUs, and what an administrator calls using a GPU.
 * It has no .c file: all of its functions are short and inline.
 *
 * Unknown is never idle: a GPU that is not known has a reason in ->trouble, and its used_mib is
 * PROBE_MIB_UNKNOWN.  All texts are printable and NUL-terminated.  A UUID consists of letters,
 * digits, `-` and `/`, and no two rows of an array have the same UUID.
 */
#ifndef GPULEASE_PROBE_DATA_H
#define GPULEASE_PROBE_DATA_H

#include <strings.h>

#include "base.h"
#include "gpuset.h"
#include "text.h"

enum { PROBE_PROCESSES_MAX = 512, PROBE_MIGS_MAX = 7 * 16 };
#define PROBE_MIB_UNKNOWN UINT64_MAX

struct probe_gpu {
	int index;       /* nvidia-smi's; -1 unknown */
	char uuid[96];   /* "" unknown; then the GPU is not known either */
	char bus_id[32]; /* as sysfs writes it: 0000:0a:00.0; "" unknown */
	char name[96];
	/* 0: not known; of a known GPU 0 means that it shares the host's memory */
	uint64_t total_mib;
	uint64_t used_mib; /* or PROBE_MIB_UNKNOWN */
	int utilization;   /* percent, -1 unknown */
	bool is_known;
	bool has_mig; /* MIG is enabled: only the instances of the GPU can be used */
	char compute_mode[24]; /* "" unknown */
	char trouble[96];      /* why the GPU is not known, "" if it is */
	int64_t idle_since_ms; /* CLOCK_BOOTTIME, 0 not idle; see probe_marks.h */
};

/* A compute process on one GPU; a process that uses two GPUs has two rows. */
struct probe_process {
	uint32_t gpu;      /* row in gpus[] */
	int32_t pid;       /* as nvidia-smi counts it, 0 unknown */
	uint64_t used_mib; /* or PROBE_MIB_UNKNOWN */
	uint64_t peak_mib; /* the most that any probe has seen of it: a lower bound */
	uint64_t start;    /* /proc/PID/stat's, in ticks; 0 unknown */
};

/* A MIG instance.  A GPU without rows here may have instances all the same. */
struct probe_mig {
	uint32_t gpu;     /* row in gpus[] */
	uint32_t device;  /* nvidia-smi's number for it on that GPU */
	char profile[32]; /* 3g.40gb, or with a part of the engines, 1c.3g.40gb */
	char uuid[96];
};

/* What the administrator calls using a GPU, and how long memory of an ended job may remain. */
struct usage_policy {
	uint64_t idle_mib;     /* a GPU with at most this memory in use is idle; or… */
	unsigned idle_percent; /* …if not 0, with at most this part of its memory */
	unsigned busy_percent; /* utilization from which on a GPU is in use; 0: never */
	int64_t settle_ms;   /* memory still in use counts as the ended lease's so long */
	int64_t linger_ms;   /* a lease with a dead owner ends after so much idle time */
	uint64_t margin_mib; /* stays free beside declared memory */
	unsigned spike_percent; /* buffer on top of seen use that exceeds the declared */
};

#define USAGE_POLICY_DEFAULT                     \
	((struct usage_policy){ .idle_mib = 200, \
		.settle_ms = 60000,              \
		.linger_ms = 60000,              \
		.margin_mib = 512,               \
		.spike_percent = 10 })

struct probe {
	int64_t started_ms, finished_ms; /* CLOCK_BOOTTIME */
	/*
	 * Every nvidia-smi of this probe ran undisturbed to a good end, and all GPUs are known: the
	 * user who started it cannot have spoiled it.  False for a probe that was loaded.
	 */
	bool is_sound;
	uint32_t gpu_count, process_count, mig_count;
	struct probe_gpu gpus[GPUSET_MAX];
	struct probe_process processes[PROBE_PROCESSES_MAX];
	struct probe_mig migs[PROBE_MIGS_MAX];
	struct why trouble; /* why there is no GPU at all, "" if there is one */
};

/*
 * Begins a result without rows.  Does not touch the arrays, so that a waiter does not hold their
 * 70 KiB; code that adds a row assigns all of it.
 */
static inline void probe_begin(
	struct probe *probe, int64_t started_ms, int64_t finished_ms)
{
	probe->started_ms = started_ms;
	probe->finished_ms = finished_ms;
	probe->is_sound = false;
	probe->gpu_count = probe->process_count = probe->mig_count = 0;
	probe->trouble.text[0] = '\0';
}

/* Whether no GPU of @probe is known: nvidia-smi failed or hung. */
static inline bool probe_has_failed(const struct probe *probe)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (probe->gpus[i].is_known)
			return false;
	return true;
}

/* Returns the row of the GPU with that UUID, or -1. */
static inline int probe_find_gpu(const struct probe *probe, const char *uuid)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (uuid[0] && strcmp(probe->gpus[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

/* Returns the row of the instance with that UUID, or -1. */
static inline int probe_find_mig(const struct probe *probe, const char *uuid)
{
	for (uint32_t i = 0; i < probe->mig_count; i++)
		if (strcmp(probe->migs[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

/*
 * Returns the memory in use up to which @gpu counts as idle.  If the policy is a percentage but the
 * size of the GPU's memory is unknown, that is the default.
 */
static inline uint64_t usage_idle_mib(
	const struct usage_policy *policy, const struct probe_gpu *gpu)
{
	if (!policy->idle_percent)
		return policy->idle_mib;
	if (!gpu->total_mib)
		return USAGE_POLICY_DEFAULT.idle_mib;
	return gpu->total_mib / 100 * policy->idle_percent +
	       gpu->total_mib % 100 * policy->idle_percent / 100;
}

/* Whether the utilization of @gpu alone shows that it is in use; unknown does not. */
static inline bool usage_is_busy(
	const struct usage_policy *policy, const struct probe_gpu *gpu)
{
	return policy->busy_percent && gpu->utilization >= (int)policy->busy_percent;
}

/* Whether the administrator has set a compute mode that forbids all computing. */
static inline bool probe_gpu_is_prohibited(const struct probe_gpu *gpu)
{
	return strcasecmp(gpu->compute_mode, "Prohibited") == 0;
}

/* Whether the compute mode allows one process at a time; then only MPS can share the GPU. */
static inline bool probe_gpu_is_solo(const struct probe_gpu *gpu)
{
	return strncasecmp(gpu->compute_mode, "Exclusive", 9) == 0;
}

#endif
