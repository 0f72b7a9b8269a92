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
};

/* A MIG instance.  That none is there does not mean that its GPU has none. */
struct probe_mig {
	uint32_t gpu;     /* row in gpus[] */
	uint32_t device;  /* nvidia-smi's number for it on that GPU */
	char profile[32]; /* 3g.40gb, or with a part of the engines, 1c.3g.40gb */
	char uuid[96];
};

struct probe {
	int64_t started_ms, finished_ms; /* CLOCK_BOOTTIME */
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
	probe->gpu_count = probe->process_count = probe->mig_count = 0;
	probe->trouble.text[0] = '\0';
}

/* The row of the GPU with that UUID, -1 where there is none. */
static inline int probe_find_gpu(const struct probe *probe, const char *uuid)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (uuid[0] && strcmp(probe->gpus[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

/* Whether an administrator has closed the GPU to all computing. */
static inline bool probe_gpu_is_prohibited(const struct probe_gpu *gpu)
{
	return strcasecmp(gpu->compute_mode, "Prohibited") == 0;
}

#endif
