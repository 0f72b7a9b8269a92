/*
 * Asking nvidia-smi as one of many: the newest shared result, and when that is too old a probe
 * of one's own, or the wait for the one that somebody else has begun.  Never blocks: it lends
 * its descriptors and its deadline to the caller's poll.
 *
 * The same for how the GPUs are linked, but only for a caller who says that he wants it.
 */
#ifndef GPULEASE_PROBER_H
#define GPULEASE_PROBER_H

#include "probe.h"
#include "probe_lock.h"
#include "probe_run.h"
#include "statedir.h"
#include "topology.h"

enum {
	/* a result so old serves GPUs that were not just released */
	PROBER_FRESH_MS = 1000,
	/*
	 * Another's nvidia-smi may have been stopped unseen (a frozen cgroup), or he himself
	 * before he passed on what it said: one that took longer than this proves nothing.
	 */
	PROBER_TRUST_MS = 4000,
	/* A job waits no longer than this to learn how the GPUs are linked. */
	PROBER_LINKS_MS = 2000,
};

/* So much is kept of the reason why an nvidia-smi failed. */
enum { PROBER_TROUBLE_SIZE = 33 };

struct prober_config {
	const char *nvidia_smi; /* absolute path; NULL: there is none */
	char *const *environment;
	struct usage_policy usage;
	int64_t limit_ms;  /* of one nvidia-smi; 0: the usual 10 s */
	bool is_hasty;     /* only looks: does not wait long for another's nvidia-smi */
	unsigned sim_gpus; /* 0: the real ones */
	uint64_t sim_mib;
};

/* Asking how the GPUs are linked. */
struct prober_topology {
	struct topo_run run;
	int lock_fd;
	int64_t wanted_ms;  /* since when the job has been waiting for it; 0: it is not */
	int64_t gave_up_ms; /* when it gave up waiting; 0: it did not */
	int64_t look_again_ms;   /* as below */
	struct topology *newest; /* NULL: none yet */
};

struct prober {
	const struct statedir *dir;
	struct prober_config config;
	struct probe_run run;
	struct probe_lock lock;
	int64_t look_again_ms; /* when to see whether other processes' probes have ended */
	/* before this moment nvidia-smi is not started, because of ->hang; 0: it may be */
	int64_t hangs_until_ms;
	struct why hang;
	/*
	 * Why the last nvidia-smi of this process failed, in short; "": it did not.  If it refused
	 * to answer, results of other processes are not taken over: the job would be started and
	 * hardly see the GPUs either.
	 */
	char own_trouble[PROBER_TROUBLE_SIZE];
	bool was_refused;
	bool others_see; /* since then another process has had an answer: ask again soon */
	uint64_t file_id[3]; /* of the shared result that was read last */
	int64_t own_started_ms, own_finished_ms; /* of the last from here, 0: none */
	bool has_result; /* one has been taken over, from here or from others */
	bool sees_use;   /* of simulated GPUs: whether anybody has ever shown any */
	struct prober_topology topology;
};

void prober_init(struct prober *prober, const struct statedir *dir,
	const struct prober_config *config);
void prober_release(struct prober *prober);

/*
 * Whether @probe says how the machine was when it ended: it is from here, or began at most
 * PROBER_TRUST_MS ago.
 */
bool prober_trusts(
	const struct prober *prober, const struct probe *probe, int64_t now_ms);

/* Whether it also ended so lately that GPUs may be given away by it. */
bool prober_serves(
	const struct prober *prober, const struct probe *probe, int64_t now_ms);

/*
 * Takes over the newest shared result, if it is newer than @probe; one that does not serve
 * never replaces one that does.  Simulated GPUs are always seen afresh, with what processes
 * show of their use of them (sim_memory.h).  Sets *@has_probe once
 * there is a result.
 */
void prober_refresh(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe);

/*
 * Sees to it that a new result comes: from here, or from whoever is at it already.  While it
 * is another's it is to be asked for again after every wait: one that nobody wants any more
 * wakes nobody.
 */
void prober_want(struct prober *prober, int64_t now_ms);

/* For who has seen that the others get on, be it slowly: waits for them as long again. */
void prober_trust_again(struct prober *prober);

/* Whether one has been asked for and has not come. */
bool prober_is_busy(const struct prober *prober);

/*
 * Goes on with what runs, a probe or the question for the links; a result of the first goes to
 * @probe, both go to the others.
 */
void prober_step(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe);

unsigned prober_poll_fds(const struct prober *prober, struct pollfd fds[PROBE_POLL_FDS]);

/* Which children of this process are its own, for who ends or waits for others; how many. */
enum { PROBER_CHILDREN = 4 };
unsigned prober_children(const struct prober *prober, uint32_t pids[PROBER_CHILDREN]);

/* When to step although no descriptor is ready; INT64_MAX: never. */
int64_t prober_deadline_ms(const struct prober *prober);

/*
 * Whether it is settled how the GPUs of @probe are linked, be it that nobody can tell: then
 * there is nothing to wait for.  Takes over what others have learned.  Costs an open(2) where
 * nothing has been learned yet, and hardly anything once it is settled.
 */
bool prober_knows_topology(
	struct prober *prober, int64_t now_ms, const struct probe *probe);

/*
 * Where it is not, after that: sees to it that it will be, from here or by whoever is asking
 * already; to be called again after every wait.  After PROBER_LINKS_MS the links count as unknown.
 * Does nothing before there is a first probe, whose indices it goes by.
 */
void prober_want_topology(struct prober *prober, int64_t now_ms);

/* How they are linked; NULL where that is not known (yet).  Valid until the next step. */
const struct topology *prober_topology(const struct prober *prober);

#endif
