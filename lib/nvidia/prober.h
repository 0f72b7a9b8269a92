/*
 * Finds out the state of the GPUs for one of many processes that need it: by the newest shared
 * result or, if that is too old, by a new one.  For a new result this process probes, or waits for
 * a probe that another process has begun.  Never blocks: the caller polls the prober's descriptors
 * until the prober's deadline.
 *
 * It also finds out how the GPUs are linked, but only for a caller that asks for that.
 */
#ifndef GPULEASE_PROBER_H
#define GPULEASE_PROBER_H

#include "probe.h"
#include "probe_lock.h"
#include "probe_run.h"
#include "statedir.h"
#include "topology.h"

enum {
	/* a job may start by a result of at most this age, unless a lease has ended since */
	PROBER_FRESH_MS = 1000,
	/*
	 * The nvidia-smi of another process may have been stopped unseen (a frozen cgroup).  Or the
	 * other process was stopped before it stored the output.  Then its result is old, although
	 * it ended just now.  So a shared result that began longer ago than this proves nothing.
	 */
	PROBER_TRUST_MS = 4000,
	/* A job waits no longer than this to learn how the GPUs are linked. */
	PROBER_LINKS_MS = 2000,
};

/* The size of the short reason why an nvidia-smi failed. */
enum { PROBER_TROUBLE_SIZE = 33 };

struct prober_config {
	const char *nvidia_smi; /* absolute path; NULL: there is none */
	char *const *environment;
	struct usage_policy usage;
	int64_t limit_ms; /* of one nvidia-smi; 0: the default, PROBE_LIMIT_MS */
	bool is_hasty; /* a reader: does not wait long for the nvidia-smi of another process */
	unsigned sim_gpus; /* how many are simulated; 0: the GPUs are real */
	uint64_t sim_mib;
};

/* Asking how the GPUs are linked. */
struct prober_topology {
	struct topo_run run;
	int lock_fd;
	int64_t wanted_ms; /* since when the job has waited for it; 0: it does not wait */
	int64_t gave_up_ms;      /* when the job gave up waiting; 0: it did not */
	int64_t look_again_ms;   /* as in struct prober */
	struct topology *newest; /* NULL: none yet */
};

struct prober {
	const struct statedir *dir;
	struct prober_config config;
	struct probe_run run;
	struct probe_lock lock;
	int64_t look_again_ms; /* when to check for results of other processes; 0: not waiting */
	/* nvidia-smi is not started before this time, because of ->hang; 0: it may start */
	int64_t hangs_until_ms;
	struct why hang;
	/*
	 * Why the last nvidia-smi of this process failed, in short; "": it did not.  If nvidia-smi
	 * refused to answer (->was_refused), the prober does not use the results of other
	 * processes: a job started by them would probably not see the GPUs either.
	 */
	char own_trouble[PROBER_TROUBLE_SIZE];
	bool was_refused;
	bool others_see;     /* another process has had an answer since: ask again soon */
	uint64_t file_id[3]; /* identifies the shared result that was read last */
	/* of the last probe of this process; 0: none */
	int64_t own_started_ms, own_finished_ms;
	bool has_result; /* the caller has a result, of this or another process */
	bool sees_use;   /* simulated GPUs only: a process has shown its use */
	struct prober_topology topology;
};

void prober_init(struct prober *prober, const struct statedir *dir,
	const struct prober_config *config);
void prober_release(struct prober *prober);

/*
 * Whether @probe surely shows the machine as it was when the probe ended, and not earlier: this
 * process ran it, or it began at most PROBER_TRUST_MS ago.
 */
bool prober_trusts(
	const struct prober *prober, const struct probe *probe, int64_t now_ms);

/* Whether jobs may be started by @probe: it is trusted, and ended at most PROBER_FRESH_MS ago. */
bool prober_serves(
	const struct prober *prober, const struct probe *probe, int64_t now_ms);

/*
 * Copies the newest shared result to @probe if it changed since the last call.  A result that does
 * not serve (prober_serves()) never replaces one that does.  Simulated GPUs are read anew at every
 * call, with the use that processes show of them (sim_memory.h).  Sets *@has_probe once there is
 * a result.
 */
void prober_refresh(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe);

/*
 * Asks for a new result: starts a probe, or waits for the probe of another process.  While it waits
 * for another process, the caller has to call this again after every poll; otherwise the prober
 * stops waiting and wakes the caller no more.
 */
void prober_want(struct prober *prober, int64_t now_ms);

/*
 * Called when the other processes were seen to make progress, if slowly: lets this process wait
 * for them as long again before it probes itself.
 */
void prober_trust_again(struct prober *prober);

/* Whether a result was asked for and has not come yet. */
bool prober_is_busy(const struct prober *prober);

/*
 * Goes on with the running children.  Stores the result of a probe in @probe, and shares it; shares
 * also the answer about the links.
 */
void prober_step(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe);

unsigned prober_poll_fds(const struct prober *prober, struct pollfd fds[PROBE_POLL_FDS]);

/*
 * Lists the children that the prober has started, for callers that end or reap other children of
 * this process.  Returns how many there are.
 */
enum { PROBER_CHILDREN = 4 };
unsigned prober_children(const struct prober *prober, uint32_t pids[PROBER_CHILDREN]);

/* Returns when to step although no descriptor is ready; INT64_MAX: never. */
int64_t prober_deadline_ms(const struct prober *prober);

/*
 * Whether the caller need not wait for the links of the GPUs of @probe: they are known, or cannot
 * be found out.  Uses the shared result of other processes.  Costs an open(2) until the links are
 * known, and almost nothing afterwards.
 */
bool prober_knows_topology(
	struct prober *prober, int64_t now_ms, const struct probe *probe);

/*
 * Called when prober_knows_topology() is false: asks nvidia-smi for the links, or waits for another
 * process that is asking.  The caller calls both functions again after every poll.  After
 * PROBER_LINKS_MS the links count as unknown.  Does nothing before there is a first probe, because
 * the answer names GPUs by the indices of a probe.
 */
void prober_want_topology(struct prober *prober, int64_t now_ms);

/* Returns the links of the GPUs, valid until the next step; NULL: not known (yet). */
const struct topology *prober_topology(const struct prober *prober);

#endif
