/*
 * Runs nvidia-smi beside the poll loop of a caller that never waits.
 *
 *	probe_run_start -> poll, probe_run_step … -> done -> probe_run_start … probe_run_release
 *
 * Two children ask for the GPUs and for the processes at the same time; a third lists the MIG
 * instances if a GPU turns out to have MIG enabled.  A child that does not answer in time is
 * killed and abandoned, because it may stay in state D for ever.  It holds nothing of this process
 * (see spawn.h), and while it lives this run starts no other.
 *
 * The output of an nvidia-smi that was killed or stopped is not used.  Otherwise a user who may
 * signal it could make it report only a part of the GPUs, or their state of long ago.
 *
 * A child of its own asks how the GPUs are linked, beside all this: that takes long, and few jobs
 * need the answer.
 *
 * A crash leaves an nvidia-smi that ends by itself.
 */
#ifndef GPULEASE_PROBE_RUN_H
#define GPULEASE_PROBE_RUN_H

#include "probe_data.h"
#include "smitopo.h"
#include "spawn.h"

/* What both kinds of run return while they go on. */
enum probe_run_outcome { PROBE_RUNNING = 1 };

enum {
	/* descriptors of both kinds of run together */
	PROBE_POLL_FDS = 4 * SPAWN_POLL_FDS,
	PROBE_LIMIT_MS = 10000, /* default time limit of a run */
};

/* A run; embedded by the caller, which may read the fields but does not set them. */
struct probe_run {
	struct spawn gpus, processes; /* the two queries; ->pid: not reaped yet */
	struct spawn list;            /* of MIG instances */
	const char *path;
	char *const *envp;
	unsigned fields; /* SMI_…: the columns that the query for GPUs asks for */
	bool is_running, has_retried, has_listed;
	int64_t started_ms, stepped_ms, limit_ms;
	struct why trouble; /* why it could not be started */
	/* in the last run: nvidia-smi did not answer in time; nvidia-smi was killed or stopped */
	bool has_hung, was_disturbed;
};

#define PROBE_RUN_INIT       \
	((struct probe_run){ \
		.gpus = SPAWN_INIT, .processes = SPAWN_INIT, .list = SPAWN_INIT })

/* Returns the time limit of a probe: @limit_ms, or the default if that is 0. */
static inline int64_t probe_limit_ms(int64_t limit_ms)
{
	return limit_ms > 0 ? limit_ms : PROBE_LIMIT_MS;
}

/*
 * Starts both queries of the nvidia-smi at @path with the environment @envp.  Both arguments stay
 * the caller's and must live until the run is done.  @limit_ms is the time limit of the run, 0 for
 * PROBE_LIMIT_MS.  Never fails: an error becomes the result, which the next step returns at once.
 * It is an error if an nvidia-smi that this run abandoned earlier still lives.
 */
void probe_run_start(struct probe_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms);

/* Begins a run that starts no nvidia-smi: the next step returns a failure with the reason @why. */
void probe_run_refuse(struct probe_run *run, const struct why *why, int64_t now_ms);

/* Fills in what to poll for.  Returns how many descriptors; 0 if nothing runs. */
unsigned probe_run_poll_fds(
	const struct probe_run *run, struct pollfd fds[PROBE_POLL_FDS]);

/* Returns when to step although no descriptor is ready, CLOCK_BOOTTIME; INT64_MAX: nothing runs. */
int64_t probe_run_deadline_ms(const struct probe_run *run);

/*
 * Goes on without blocking.  Returns PROBE_RUNNING, or 0 when the run is done and *@ret is set; if
 * there is no data, ->trouble of *@ret says why.
 *
 * At the time limit the run is done, too, and the children that are left are killed and abandoned.
 * If only the list of MIG instances was late, the result lacks the instances and nothing else.
 * The run is done without data as soon as a child is seen stopped or a query was killed.  Must not
 * be called while nothing runs.
 */
MUST_CHECK int probe_run_step(struct probe_run *run, int64_t now_ms, struct probe *ret);

/* Kills the children that are left, frees everything, and sets *@run to PROBE_RUN_INIT. */
void probe_run_release(struct probe_run *run);

/* A run that asks how the GPUs are linked; embedded by the caller, as struct probe_run is. */
struct topo_run {
	struct spawn spawn;
	const char *path;
	bool is_running;
	int64_t started_ms, stepped_ms, limit_ms;
	struct why trouble; /* why it could not be started */
};

#define TOPO_RUN_INIT ((struct topo_run){ .spawn = SPAWN_INIT })

/* Each does what the function of the same name for a probe_run does. */
void topo_run_start(struct topo_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms);
unsigned topo_run_poll_fds(const struct topo_run *run, struct pollfd fds[SPAWN_POLL_FDS]);
int64_t topo_run_deadline_ms(const struct topo_run *run);
void topo_run_release(struct topo_run *run);

/*
 * Returns PROBE_RUNNING; 0 when the run is done and *@ret is set; or -EBADMSG when it is done
 * without an answer: nvidia-smi failed, or was killed, stopped or late.  @why has the reason.
 * Must not be called while nothing runs.
 */
MUST_CHECK int topo_run_step(
	struct topo_run *run, int64_t now_ms, struct smitopo *ret, struct why *why);

#endif
