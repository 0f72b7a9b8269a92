/*
 * What one look at the GPUs of this machine came to.
 *
 * Unknown is never idle: a GPU that is not known says why and has used_mib PROBE_MIB_UNKNOWN.
 * All texts are printable and NUL-terminated; a UUID consists of letters, digits, `-` and `/`,
 * and no two rows of an array have the same.
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
	uint64_t
		total_mib; /* 0: not known; of a known GPU: it shares the host's memory */
	uint64_t used_mib; /* PROBE_MIB_UNKNOWN */
	int utilization;   /* percent, -1 unknown */
	bool is_known;
	bool has_mig; /* MIG is enabled: the GPU itself cannot be used, only its instances */
	char compute_mode[24]; /* "" unknown */
	char trouble[96];      /* why it is not known, "" if it is */
	int64_t idle_since_ms; /* CLOCK_BOOTTIME, 0 not idle; see probe.h */
};

/* A compute process on one GPU; one that uses two GPUs is there twice. */
struct probe_process {
	uint32_t gpu;      /* row in gpus[] */
	int32_t pid;       /* as nvidia-smi counts it, 0 unknown */
	uint64_t used_mib; /* PROBE_MIB_UNKNOWN */
	/* the most that a probe happened to see of it, a lower bound; and which process it is */
	uint64_t peak_mib;
	uint64_t start; /* /proc/PID/stat's, in ticks; 0 unknown */
};

/* A MIG instance.  That none is there does not mean that its GPU has none. */
struct probe_mig {
	uint32_t gpu;     /* row in gpus[] */
	uint32_t device;  /* nvidia-smi's number for it on that GPU */
	char profile[32]; /* 3g.40gb, or with a part of the engines, 1c.3g.40gb */
	char uuid[96];
};

/* What the administrator calls using a GPU, and how long what is left of a job may take. */
struct usage_policy {
	uint64_t idle_mib;     /* memory in use up to this is nobody's use; or… */
	unsigned idle_percent; /* …where not 0, up to so much of the card's */
	unsigned busy_percent; /* utilization from which on it is used; 0: never */
	int64_t settle_ms;   /* so long memory still in use after a lease is that job's */
	int64_t linger_ms;   /* so long a dead owner's GPUs are idle before it is over */
	uint64_t margin_mib; /* stays free beside declared memory */
	unsigned
		spike_percent; /* what is seen to use more than it said may use still more */
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
	 * Every nvidia-smi of it ran undisturbed to a good end, and all GPUs are known: who
	 * started it cannot have spoiled it.  Not of one that was loaded.
	 */
	bool is_sound;
	uint32_t gpu_count, process_count, mig_count;
	struct probe_gpu gpus[GPUSET_MAX];
	struct probe_process processes[PROBE_PROCESSES_MAX];
	struct probe_mig migs[PROBE_MIGS_MAX];
	struct why trouble; /* why there is no GPU at all, "" if there is one */
};

/*
 * Begins a result without rows.  The arrays are not touched: 70 KiB that a waiter would
 * otherwise hold; who adds a row assigns all of it.
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

/* Whether @probe tells the state of no GPU: nvidia-smi failed, or hung. */
static inline bool probe_has_failed(const struct probe *probe)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (probe->gpus[i].is_known)
			return false;
	return true;
}

/* The row of the GPU with that UUID, -1 where there is none. */
static inline int probe_find_gpu(const struct probe *probe, const char *uuid)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (uuid[0] && strcmp(probe->gpus[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

/* The row of the instance with that UUID, -1 where there is none. */
static inline int probe_find_mig(const struct probe *probe, const char *uuid)
{
	for (uint32_t i = 0; i < probe->mig_count; i++)
		if (strcmp(probe->migs[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

/*
 * Memory of @gpu up to which it counts as idle.  A percentage of nobody knows how much is the
 * usual size.
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

/* Whether @gpu computes so much that it is used; what is not known says nothing. */
static inline bool usage_is_busy(
	const struct usage_policy *policy, const struct probe_gpu *gpu)
{
	return policy->busy_percent && gpu->utilization >= (int)policy->busy_percent;
}

/* Whether an administrator has closed the GPU to all computing. */
static inline bool probe_gpu_is_prohibited(const struct probe_gpu *gpu)
{
	return strcasecmp(gpu->compute_mode, "Prohibited") == 0;
}

/* Whether the GPU is set to one process at a time; only a server of MPS shares it then. */
static inline bool probe_gpu_is_solo(const struct probe_gpu *gpu)
{
	return strncasecmp(gpu->compute_mode, "Exclusive", 9) == 0;
}

#endif
