/*
 * Looking at the GPUs: nvidia-smi, run beside the poll loop of somebody who never waits.
 *
 *	probe_run_start -> poll, probe_run_step … -> done -> probe_run_start … probe_run_release
 *
 * The GPUs and the processes are asked for at the same time, by two children; a third lists
 * the MIG instances, if a GPU turns out to have MIG enabled.  One that does not answer in time
 * is killed and abandoned, for it may be in D state for ever; it holds nothing of ours (see
 * spawn.h), and while it lives this run starts no other.
 *
 * What an nvidia-smi wrote that was killed or stopped is not used.  Somebody who may signal it
 * could otherwise have it tell half of the truth, or the truth of yesterday.
 *
 * How the GPUs are linked is asked for by a child of its own, beside all that; it takes long,
 * and hardly anybody wants to know.
 *
 * A crash leaves an nvidia-smi that ends by itself.
 */
#ifndef GPULEASE_PROBE_RUN_H
#define GPULEASE_PROBE_RUN_H

#include "probe_data.h"
#include "smitopo.h"
#include "spawn.h"

/* So many descriptors have both kinds of run together. */
enum { PROBE_RUNNING = 1, PROBE_POLL_FDS = 4 * SPAWN_POLL_FDS, PROBE_LIMIT_MS = 10000 };

/* A probe under way, to be embedded; its fields are its own. */
struct probe_run {
	struct spawn gpus, processes; /* the two queries; ->pid: not reaped yet */
	struct spawn list;            /* of MIG instances */
	const char *path;
	char *const *envp;
	unsigned fields; /* asked for in the query for GPUs */
	bool is_running, has_retried, has_listed;
	int64_t started_ms, stepped_ms, limit_ms;
	struct why trouble; /* why it could not be started */
	/* in the last run: nvidia-smi did not answer in time; nvidia-smi was killed or stopped */
	bool has_hung, was_disturbed;
};

#define PROBE_RUN_INIT       \
	((struct probe_run){ \
		.gpus = SPAWN_INIT, .processes = SPAWN_INIT, .list = SPAWN_INIT })

/*
 * Starts both queries of the nvidia-smi at @path with the environment @envp; both stay the
 * caller's and must live until the run is done.  @limit_ms is how long it may take, 0 for
 * PROBE_LIMIT_MS.  Never fails: what is wrong is the result, which then is there at once.
 * So it is while an nvidia-smi that this run abandoned before still lives.
 */
void probe_run_start(struct probe_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms);

/*
 * The same without any nvidia-smi: at once there is a result, a failure because of @why.
 */
void probe_run_refuse(struct probe_run *run, const struct why *why, int64_t now_ms);

/* Fills in what to poll for; returns how many, 0 where nothing runs. */
unsigned probe_run_poll_fds(
	const struct probe_run *run, struct pollfd fds[PROBE_POLL_FDS]);

/* When to step although no descriptor is ready, CLOCK_BOOTTIME; INT64_MAX: nothing runs. */
int64_t probe_run_deadline_ms(const struct probe_run *run);

/*
 * Goes on without blocking.  PROBE_RUNNING, or 0 when the run is done and *@ret is set, with
 * ->trouble where there is no data.  At its limit the run is done, too, and what is left of
 * it killed and abandoned; where that is the list only, the MIG instances are missing and
 * nothing else.  So it is as soon as one of them is seen stopped, or a query killed, without any
 * data.  Must not be called where nothing runs.
 */
MUST_CHECK int probe_run_step(struct probe_run *run, int64_t now_ms, struct probe *ret);

/* Kills what is left and frees everything; see spawn_release().  PROBE_RUN_INIT again. */
void probe_run_release(struct probe_run *run);

/* The question for the links, under way or not; its fields are its own. */
struct topo_run {
	struct spawn spawn;
	const char *path;
	bool is_running;
	int64_t started_ms, stepped_ms, limit_ms;
	struct why trouble; /* why it could not be started */
};

#define TOPO_RUN_INIT ((struct topo_run){ .spawn = SPAWN_INIT })

/* Each as the one of a probe_run. */
void topo_run_start(struct topo_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms);
unsigned topo_run_poll_fds(const struct topo_run *run, struct pollfd fds[SPAWN_POLL_FDS]);
int64_t topo_run_deadline_ms(const struct topo_run *run);
void topo_run_release(struct topo_run *run);

/*
 * PROBE_RUNNING; 0, when the run is done and *@ret is set; or -EBADMSG, done without an answer
 * and with the reason in @why, which is all that can be told of one that was killed, stopped
 * or did not end in time.  Must not be called where nothing runs.
 */
MUST_CHECK int topo_run_step(
	struct topo_run *run, int64_t now_ms, struct smitopo *ret, struct why *why);

#endif
