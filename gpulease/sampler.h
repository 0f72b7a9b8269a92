/*
 * What a job uses of its GPUs, seen every 5 s through the shared probe: however many jobs are
 * watched, one nvidia-smi serves them all, because all of them look at the same moments.
 *
 * At such a moment a result that began shortly before serves; else one of them asks nvidia-smi
 * and the others take over what it says.  One who is being slow is waited for until the next
 * moment.  A driver that shows nothing of the job's GPUs is asked less and less often, every
 * 5 minutes in the end.
 *
 * What is counted is the memory of the job's processes (usage.h).  Of a GPU that the job has
 * alone it is all that is in use where none of its processes is shown: in a container, say,
 * whose processes are other people's to the kernel.
 *
 * Simulated GPUs are looked at every second, which takes no nvidia-smi.  It counts only where
 * processes show what they use of them (sim_memory.h), or have ever done so.
 *
 * A crash leaves an nvidia-smi that ends by itself, and in the lease what was seen last.
 */
#ifndef GPULEASE_SAMPLER_H
#define GPULEASE_SAMPLER_H

#include "broker.h"
#include "ending.h"

enum { SAMPLE_MS = 5000, SAMPLE_SIMULATED_MS = 1000 };

/* One of the job's GPUs. */
struct sample_gpu {
	unsigned slot;
	struct gpu_name name;
	uint64_t total_mib;         /* 0: not known */
	unsigned count;             /* samples that it was seen in */
	uint64_t now_mib, peak_mib; /* of the job's processes */
	unsigned busy_count, busy_peak;
	uint64_t busy_sum; /* percent; over ->busy_count samples */
};

struct sampler {
	struct broker *broker;
	char token[TOKEN_SIZE];
	bool is_simulated;     /* its GPUs are */
	bool is_alone;         /* on its GPUs */
	uint64_t declared_mib; /* of each GPU, 0: nothing */
	unsigned tolerance_percent;
	bool has_warned; /* that it uses more than it has declared */
	int64_t due_ms;  /* when to look next, CLOCK_BOOTTIME; INT64_MAX: never */
	int64_t look_ms; /* from then on: when to see whether another's result has come */
	int64_t begun_ms;   /* what was seen before says nothing of the job */
	int64_t seen_ms;    /* start of the newest probe that was counted, 0: none was */
	unsigned misses;    /* results in a row that showed nothing of its GPUs */
	uint64_t noted_mib; /* what the lease says is the most */
	unsigned count;     /* samples */
	unsigned gpu_count;
	struct sample_gpu gpus[GPUSET_MAX];
};

/*
 * Begins with the lease with @token on @gpus, of which the job has declared @declared_mib; an
 * empty set: nothing is looked at, ever.  Uses @broker's view and prober from now on, whose
 * owner does nothing else with them meanwhile.
 */
void sampler_begin(struct sampler *sampler, struct broker *broker, const char *token,
	const struct gpuset *gpus, uint64_t declared_mib, unsigned tolerance_percent);

/* What to wait for beside one's own events: descriptors, and until when at most. */
unsigned sampler_poll_fds(
	const struct sampler *sampler, struct pollfd fds[PROBE_POLL_FDS]);
int64_t sampler_wake_ms(const struct sampler *sampler);

/*
 * Goes on after each wait.  Returns true once, when the job is first seen to use more of a GPU
 * than it has declared and tolerance allows; what it uses most is then in the lease, for all.
 */
bool sampler_step(struct sampler *sampler, int64_t now_ms);

/* The most on any GPU, 0: nothing was seen. */
uint64_t sampler_peak_mib(const struct sampler *sampler);

/* How busy the GPUs were in percent, on average over all and at most; false: nobody knows. */
bool sampler_utilization(
	const struct sampler *sampler, unsigned *ret_mean, unsigned *ret_peak);

/* As the history has them: "18000,17990" and "87/100", "" where nothing was seen. */
void sampler_describe(const struct sampler *sampler, struct ending_facts *ret);

#endif
