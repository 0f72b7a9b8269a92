/*
 * What processes show of their use of simulated GPUs, so that a job can be seen to use memory
 * where there is no GPU.
 *
 *	sim/PID   one record, sim/1, of that process: which one it is, its GPUs, and how much
 *	          memory it uses on each of them
 *
 * A file is rewritten in place, and by its own process alone; a record that is half-copied is
 * read again.  Who ends removes his file.  One that was killed leaves it: it says nothing, by
 * the start time in it, and whoever looks removes it.  The folder stays; where there is none,
 * nobody has ever shown anything, and to look costs one failed open(2).
 *
 * Processes of another pid namespace are not counted: whether they live cannot be told.
 */
#ifndef GPULEASE_SIM_MEMORY_H
#define GPULEASE_SIM_MEMORY_H

#include "gpuset.h"
#include "probe_data.h"
#include "statedir.h"

enum { SIM_MEMORY_NONE = 1 };

/* One process's use, as its record has it. */
struct sim_use {
	char boot[BOOT_SIZE];
	uint64_t pidns, start;       /* which process, beside its pid */
	struct gpuset gpus;          /* by index */
	uint64_t used_mib, peak_mib; /* on each of them */
	uint32_t utilization;        /* of each, percent */
};

/* This process, showing it. */
struct sim_memory {
	int folder_fd, fd; /* -1: nothing is shown */
	struct sim_use use;
};

#define SIM_MEMORY_INIT ((struct sim_memory){ .folder_fd = -1, .fd = -1 })

/*
 * Begins to show that this process uses the simulated @gpus of @dir, no memory yet.  0 or a
 * negative errno; then nothing is shown.
 */
MUST_CHECK int sim_memory_begin(
	const struct statedir *dir, const struct gpuset *gpus, struct sim_memory *ret);

/* Shows @used_mib and @utilization on each of them from now on.  0 or a negative errno. */
MUST_CHECK int sim_memory_show(
	struct sim_memory *memory, uint64_t used_mib, uint32_t utilization);

/* Shows nothing any more; may be repeated. */
void sim_memory_end(struct sim_memory *memory);

/*
 * Adds to @probe, which has just the idle GPUs of probe_simulate(), the processes of @dir and
 * what they use: no more than a card has.  0; SIM_MEMORY_NONE: nobody has ever shown anything;
 * or a negative errno, with which @probe may lack some of it.
 */
MUST_CHECK int sim_memory_read(const struct statedir *dir, struct probe *probe);

#endif
