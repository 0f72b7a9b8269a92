/*
 * Lets processes show how much memory of simulated GPUs they use, so that the use of a job can be
 * seen on a machine without GPUs.
 *
 *	sim/PID   one record, sim/1, of process PID: its start time, its GPUs, and how much
 *	          memory it uses on each of them
 *
 * Only its own process writes a file, in place; a reader that finds a half-written record reads
 * it again.  A process removes its file at its end.  A process that was killed leaves its file,
 * which does not count because of the start time in it; the next reader removes it.  The folder
 * stays.  Without the folder no process has shown any use yet, and a reader's only cost is one
 * failed open(2).
 *
 * Processes of another pid namespace are not counted: a reader cannot tell whether they live.
 */
#ifndef GPULEASE_SIM_MEMORY_H
#define GPULEASE_SIM_MEMORY_H

#include "gpuset.h"
#include "probe_data.h"
#include "statedir.h"

enum sim_memory_outcome { SIM_MEMORY_NONE = 1 };

/* The use of one process, as in its record. */
struct sim_use {
	char boot[BOOT_SIZE];
	uint64_t pidns, start;       /* which process, beside its pid */
	struct gpuset gpus;          /* by index */
	uint64_t used_mib, peak_mib; /* on each of them */
	uint32_t utilization;        /* of each, percent */
};

/* What this process shows. */
struct sim_memory {
	int folder_fd, fd; /* -1: nothing is shown */
	struct sim_use use;
};

#define SIM_MEMORY_INIT ((struct sim_memory){ .folder_fd = -1, .fd = -1 })

/*
 * Begins to show that this process uses the simulated @gpus of @dir, with no memory yet.  Returns 0
 * or a negative errno; after an error nothing is shown.
 */
MUST_CHECK int sim_memory_begin(
	const struct statedir *dir, const struct gpuset *gpus, struct sim_memory *ret);

/* Shows @used_mib and @utilization on each of these GPUs.  Returns 0 or a negative errno. */
MUST_CHECK int sim_memory_show(
	struct sim_memory *memory, uint64_t used_mib, uint32_t utilization);

/* Removes what is shown; may be called twice. */
void sim_memory_end(struct sim_memory *memory);

/*
 * Adds the processes of @dir and their use to @probe, which has only the idle GPUs of
 * probe_simulate().  The use of a GPU is at most its memory.  Returns 0; SIM_MEMORY_NONE if no
 * process has ever shown any use; or a negative errno, and then @probe may lack a part of the use.
 */
MUST_CHECK int sim_memory_read(const struct statedir *dir, struct probe *probe);

#endif
