/*
 * How a job uses its GPUs, as samples of nvidia-smi's answers show it: live/TOKEN.use, one record,
 * where TOKEN is that of the lease.
 *
 * A GPU is unused while every sample shows it below the threshold (`idle-below`).  Memory in use
 * does not matter.  A GPU whose use is unknown counts as used: it is shared or a MIG instance, of
 * which nvidia-smi does not tell whose use it is, or nvidia-smi did not show it.  After a gap
 * between two samples (the machine was suspended, or no process took samples) all begins anew,
 * because the gap proves nothing.
 *
 * Nothing that grants or ends leases depends on the file, except whether an unused job is warned
 * and ended (use_rule.h).  A crash leaves it, complete; live_fifo_sweep() removes it after the end
 * of the lease.
 */
#ifndef GPULEASE_LEASE_USE_H
#define GPULEASE_LEASE_USE_H

#include "record.h"

struct statedir;

enum {
	USE_GPUS_MAX = 32, /* further GPUs of a job count as used */
	USE_SINCE_SIZE = 160,
	USE_PEAKS_SIZE = 112,
	USE_NOT_KNOWN = -1
};

/* Times are CLOCK_BOOTTIME. */
struct lease_use {
	int64_t seen_ms;       /* of the last sample; 0: there is none */
	int64_t unused_ms;     /* how long a GPU of the job was unused, on average */
	int64_t unused_now_ms; /* how long all of them had been unused at the last sample */
	uint32_t samples;      /* that showed the utilization of all GPUs */
	uint32_t busy;         /* the sum of their means, in percent */
	uint32_t busy_peak;
	/* when the job was first told that it will be ended, and how often */
	int64_t warned_ms;
	uint32_t warnings;
	/*
	 * Of each GPU, in the order of the slots, since when it is unused: seconds after the begin
	 * of the lease, as "0,-,451"; "-": it is used.
	 */
	char unused_since[USE_SINCE_SIZE];
	char peaks[USE_PEAKS_SIZE]; /* the most memory that was seen on each, in MiB */
};

/* What one probe, begun at @at_ms, shows of the GPUs of a job, in the order of the slots. */
struct use_sample {
	int64_t at_ms, since_ms;    /* @since_ms: when the lease began */
	int64_t gap_ms;             /* from here on two samples have a gap between them */
	unsigned below_percent;     /* unused: less than this */
	unsigned count;             /* of the GPUs */
	int percents[USE_GPUS_MAX]; /* USE_NOT_KNOWN */
	uint64_t mibs[USE_GPUS_MAX]; /* memory that the job uses; 0: none was seen */
};

/* Adds the sample.  Does nothing if it is not newer than the last one.  Pure. */
void lease_use_add(struct lease_use *use, const struct use_sample *sample);

/*
 * Returns for how long GPU @at of the job, in the order of the slots, had been unused at the last
 * sample; 0: it was used; USE_NOT_KNOWN.  @since_ms: when the lease began.  Pure.
 */
int64_t lease_use_unused_ms(const struct lease_use *use, unsigned at, int64_t since_ms);

/* Returns the mean utilization in percent, or USE_NOT_KNOWN.  Pure. */
int lease_use_mean(const struct lease_use *use);

/* Returns the most memory that was seen on one GPU; 0: none.  Pure. */
uint64_t lease_use_peak_mib(const struct lease_use *use);

/* The form of the file.  lease_use_decode() sets *@ret to zeros if @raw is no such record. */
void lease_use_encode(const struct lease_use *use, char raw[RECORD_SIZE]);
void lease_use_decode(const char *raw, struct lease_use *ret);

/* Reads the file of the lease with @token; zeros if there is none. */
void lease_use_read(const struct statedir *dir, const char *token, struct lease_use *ret);

/* Writes it.  Returns 0 or a negative errno. */
MUST_CHECK int lease_use_write(
	const struct statedir *dir, const char *token, const struct lease_use *use);

#endif
