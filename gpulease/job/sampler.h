/*
 * Samples of the memory and the utilization that a running job has on its GPUs, taken from the
 * shared probe: 0.5, 1, 2 and 5 s after the start of the job, and at all multiples of the
 * `sample-interval` of the configuration.  All jobs sample at these multiples, so one nvidia-smi
 * serves them all.
 *
 * At such a moment a result that began shortly before is used.  Otherwise one of the jobs asks
 * nvidia-smi and the others use its result; if that takes too long, they skip the moment.  If the
 * driver shows nothing of the job's GPUs, the job looks less and less often, in the end every 5
 * minutes.
 *
 * The memory of the job's processes is counted (usage.h).  If none of its processes is shown on a
 * GPU that the job has alone, all memory in use there is counted: in a container, say, the kernel
 * hides which processes they are.
 *
 * Simulated GPUs are sampled every second, without nvidia-smi, and only if processes show what they
 * use of them (sim_memory.h), or have ever done so.
 *
 * A crash leaves an nvidia-smi that ends by itself, and in the lease the peak that was noted last.
 */
#ifndef GPULEASE_SAMPLER_H
#define GPULEASE_SAMPLER_H

#include "broker.h"
#include "config.h"
#include "end_record.h"

enum { SAMPLE_SIMULATED_MS = 1000 };

/* One of the job's GPUs. */
struct sample_gpu {
	unsigned slot;
	struct gpu_name name;
	uint64_t total_mib;         /* 0: unknown */
	int64_t seen_ms;            /* the last sample that shows this GPU; 0: none */
	int64_t unseen_ms;          /* the longest stretch without such a sample before */
	uint64_t now_mib, peak_mib; /* of the job's processes; 0: none of them is seen */
	bool has_exceeded;          /* sampler_take_excess() has returned this GPU */
	unsigned busy_count, busy_peak;
	uint64_t busy_sum; /* percent, over ->busy_count samples */
};

struct sampler {
	struct broker *broker;
	char token[TOKEN_SIZE];
	bool is_simulated;     /* its GPUs are */
	int64_t interval_ms;   /* between two moments for all jobs */
	bool is_alone;         /* on its GPUs */
	uint64_t declared_mib; /* on each GPU; 0: none */
	unsigned tolerance_percent;
	int64_t due_ms; /* the next moment, CLOCK_BOOTTIME; INT64_MAX: never */
	int64_t look_ms; /* after that moment: when to see whether another job has a result */
	int64_t begun_ms;   /* older results say nothing about the job */
	int64_t seen_ms;    /* start of the newest probe that was counted; 0: none */
	unsigned misses;    /* results in a row that showed nothing of its GPUs */
	uint64_t noted_mib; /* the peak in the lease */
	unsigned count;     /* samples */
	unsigned gpu_count;
	struct sample_gpu gpus[GPUSET_MAX];
};

/*
 * Begins sampling for the lease with @token on @gpus, of which the job has declared @declared_mib
 * each.  With an empty set it never samples.  Uses @broker's view and prober from now on; the
 * caller must not use them otherwise meanwhile.  @settings: interval and tolerance.
 */
void sampler_begin(struct sampler *sampler, struct broker *broker, const char *token,
	const struct gpuset *gpus, uint64_t declared_mib, const struct config *settings);

/*
 * Return the descriptors, and the latest time, that the caller has to wait for together with its
 * own events.
 */
unsigned sampler_poll_fds(
	const struct sampler *sampler, struct pollfd fds[PROBE_POLL_FDS]);
int64_t sampler_wake_ms(const struct sampler *sampler);

/* Does what is due; call it after each wait. */
void sampler_step(struct sampler *sampler, int64_t now_ms);

/*
 * Returns a GPU of which the job was just seen to use more than declared plus tolerance; each GPU
 * once.  Returns NULL if there is no other.
 */
const struct sample_gpu *sampler_take_excess(struct sampler *sampler);

/*
 * Whether the samples of the GPU, or of all GPUs, span the run of a job that has ended after
 * @life_ms (use_verdict.h).
 */
bool sample_gpu_is_spanned(
	const struct sampler *sampler, const struct sample_gpu *gpu, int64_t life_ms);
bool sampler_is_spanned(const struct sampler *sampler, int64_t life_ms);

/*
 * Return the most memory on any of the GPUs: in the last sample, and in any sample; 0: no memory
 * was seen.
 */
uint64_t sampler_now_mib(const struct sampler *sampler);
uint64_t sampler_peak_mib(const struct sampler *sampler);

/*
 * Sets how busy the GPUs were, in percent: on average over all GPUs, and at most.  Returns false if
 * that is unknown.
 */
bool sampler_utilization(
	const struct sampler *sampler, unsigned *ret_mean, unsigned *ret_peak);

/*
 * Fills in the peaks ("18000,17990"), whether the samples span the @life_ms of the job, and the
 * utilization ("87/100") for the history; "": unknown.
 */
void sampler_describe(
	const struct sampler *sampler, int64_t life_ms, struct end_facts *ret);

#endif
