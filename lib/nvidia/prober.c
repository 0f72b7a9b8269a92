#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "probe_hang.h"
#include "probe_marks.h"
#include "prober.h"
#include "sim_memory.h"

enum {
	/* how often to check for the result of another process: at first, and at last */
	LOOK_EVERY_MS = 20,
	LOOK_EVERY_MAX_MS = 1000,
	LOOK_FOR_LINKS_EVERY_MS = 50, /* for the links, which are less urgent */
	/* how long to wait for the holder of the first lock: normally, and if ->is_hasty */
	TRUST_OTHERS_MS = 2000,
	TRUST_HASTILY_MS = 500,
	/* how much longer than its nvidia-smi a healthy process may hold a lock */
	OVERDUE_MS = 2000,
};

void prober_init(struct prober *prober, const struct statedir *dir,
	const struct prober_config *config)
{
	*prober = (struct prober){
		.dir = dir,
		.config = *config,
		.run = PROBE_RUN_INIT,
		.lock = PROBE_LOCK_NONE,
		.topology = { .run = TOPO_RUN_INIT, .lock_fd = -1 },
	};
}

void prober_release(struct prober *prober)
{
	/* do not let the next process suspect a hang because of a probe that has just begun */
	bool is_young =
		prober->run.is_running &&
		clock_age_ms(clock_boot_ms(), prober->run.started_ms) < TRUST_OTHERS_MS;

	probe_run_release(&prober->run);
	probe_lock_release(prober->dir, &prober->lock, is_young);
	topo_run_release(&prober->topology.run);
	close_fd(&prober->topology.lock_fd);
	free(prober->topology.newest);
	prober->topology.newest = NULL;
}

/* Writes what identifies the file of the shared result; all zeros if there is none. */
static void identify_result(const struct prober *prober, uint64_t id[3])
{
	struct stat st = { 0 };

	(void)fstatat(prober->dir->fd, "probe", &st, AT_SYMLINK_NOFOLLOW);
	id[0] = st.st_ino;
	id[1] = (uint64_t)st.st_mtim.tv_sec;
	id[2] = (uint64_t)st.st_mtim.tv_nsec;
}

/* Whether the shared result is another file than the one that was read last. */
static bool result_has_changed(const struct prober *prober)
{
	uint64_t id[3];

	identify_result(prober, id);
	return memcmp(id, prober->file_id, sizeof(id)) != 0;
}

/* Ends the wait for a result, which has come, and releases the lock. */
static void finish_waiting(struct prober *prober)
{
	prober->look_again_ms = 0;
	probe_lock_release(prober->dir, &prober->lock, !prober->run.has_hung);
}

bool prober_trusts(const struct prober *prober, const struct probe *probe, int64_t now_ms)
{
	bool is_own = probe->started_ms == prober->own_started_ms &&
		      probe->finished_ms == prober->own_finished_ms;

	return is_own || clock_age_ms(now_ms, probe->started_ms) <= PROBER_TRUST_MS;
}

bool prober_serves(const struct prober *prober, const struct probe *probe, int64_t now_ms)
{
	return prober_trusts(prober, probe, now_ms) &&
	       clock_age_ms(now_ms, probe->finished_ms) <= PROBER_FRESH_MS;
}

/* Reads the simulated GPUs anew.  A GPU keeps ->idle_since_ms while it stays idle. */
static void simulate_gpus(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool is_known)
{
	uint32_t known = is_known ? probe->gpu_count : 0;
	int64_t since_ms[GPUSET_MAX];

	for (uint32_t i = 0; i < known; i++)
		since_ms[i] = probe->gpus[i].idle_since_ms;
	probe_simulate(prober->config.sim_gpus, prober->config.sim_mib, now_ms, probe);
	prober->sees_use = sim_memory_read(prober->dir, probe) == 0;
	probe_mark_idle(probe, NULL, &prober->config.usage);
	for (uint32_t i = 0; i < known && i < probe->gpu_count; i++)
		if (probe->gpus[i].idle_since_ms && since_ms[i])
			probe->gpus[i].idle_since_ms = since_ms[i];
}

/*
 * Whether the shared result may replace the result that this process has.  Not if nvidia-smi has
 * refused to answer this process, and not a failure in place of an answer.
 */
static bool shared_is_better(const struct prober *prober, const struct probe *shared,
	const struct probe *known)
{
	return !prober->was_refused &&
	       (probe_has_failed(known) || !probe_has_failed(shared));
}

void prober_refresh(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe)
{
	autofree struct probe *shared = NULL;
	bool serves;

	if (prober->config.sim_gpus) {
		simulate_gpus(prober, now_ms, probe, *has_probe);
		*has_probe = prober->has_result = true;
		return;
	}
	if (!result_has_changed(prober))
		return;
	/* before reading: if the file is replaced in between, it counts as changed next time */
	identify_result(prober, prober->file_id);
	shared = malloc(sizeof(*shared));
	if (!shared || probe_load(prober->dir, shared) != 0)
		return;
	/* a result without GPUs, which an older gpulease shares, means nothing for this process */
	if (!shared->gpu_count ||
		(*has_probe && !shared_is_better(prober, shared, probe))) {
		prober->others_see = prober->was_refused && !probe_has_failed(shared);
		return;
	}
	/* a result that does not serve is better than none, but never replaces one that does */
	serves = prober_serves(prober, shared, now_ms);
	if (serves || !*has_probe || !prober_serves(prober, probe, now_ms))
		probe_copy(shared, probe);
	*has_probe = prober->has_result = true;
	/* a result that does not serve must not prolong the wait for another process */
	if (!serves || prober->run.is_running)
		return;
	prober->own_trouble[0] = '\0';
	finish_waiting(prober);
}

/*
 * Sets the time of the next check for the result of another process.  The first 2 s it is 20 ms
 * away, then a twentieth of the wait so far, at most 1 s.
 */
static void schedule_look(struct prober *prober, int64_t now_ms)
{
	int64_t waited_ms = now_ms - prober->lock.busy_ms, every_ms = LOOK_EVERY_MS;

	if (waited_ms > TRUST_OTHERS_MS)
		every_ms = min_i64(LOOK_EVERY_MAX_MS, waited_ms / LOOK_EVERY_MS);
	prober->look_again_ms = now_ms + every_ms;
}

/*
 * Whether so many nvidia-smi processes hang that no more may be started.  Counts them, which reads
 * all of /proc, only if the last probe of this or another process did not end.
 */
static bool nvidia_smi_hangs(struct prober *prober, int64_t now_ms)
{
	unsigned hanging;

	if (now_ms < prober->hangs_until_ms)
		return true;
	prober->hangs_until_ms = 0;
	if (!prober->lock.has_doubt && !prober->run.has_hung)
		return false;
	/* a younger nvidia-smi may still answer within its time limit */
	hanging = probe_count_hanging(
		prober->config.nvidia_smi, probe_limit_ms(prober->config.limit_ms));
	if (hanging < PROBE_HANGING_MAX)
		return false;
	why_set(&prober->hang,
		"%u nvidia-smi hang and cannot be ended, so no other is started; they are "
		"counted again in %d s",
		hanging, PROBE_HANG_AGAIN_MS / 1000);
	prober->hangs_until_ms = now_ms + PROBE_HANG_AGAIN_MS;
	return true;
}

/* Starts nvidia-smi.  Whatever keeps it from starting becomes the result of the run. */
static void start_probe(struct prober *prober, int64_t now_ms)
{
	const struct prober_config *config = &prober->config;

	prober->look_again_ms = 0;
	/* the result is a failure with the reason, and the GPUs are unknown */
	if (config->nvidia_smi && nvidia_smi_hangs(prober, now_ms)) {
		probe_run_refuse(&prober->run, &prober->hang, now_ms);
		return;
	}
	/* without a path the run fails at once */
	probe_run_start(&prober->run, config->nvidia_smi ? config->nvidia_smi : "",
		config->environment, config->limit_ms, now_ms);
}

void prober_want(struct prober *prober, int64_t now_ms)
{
	const struct prober_config *config = &prober->config;
	struct probe_patience patience = {
		.first_ms = config->is_hasty ? TRUST_HASTILY_MS : TRUST_OTHERS_MS,
		.others_ms = probe_limit_ms(config->limit_ms) + OVERDUE_MS,
	};

	if (config->sim_gpus || prober->run.is_running)
		return;
	if (probe_lock_take(prober->dir, &prober->lock, &patience, now_ms) ==
		PROBE_LOCK_BUSY) {
		schedule_look(prober, now_ms);
		return;
	}
	if (prober->lock.fd >= 0 && !prober->was_refused && result_has_changed(prober)) {
		/*
		 * The last holder has just stored a result, which may serve.  Let the caller read
		 * it: it wakes at once, and asks again if the result does not serve.
		 */
		probe_lock_release(prober->dir, &prober->lock, true);
		prober->look_again_ms = now_ms;
		return;
	}
	start_probe(prober, now_ms);
}

void prober_trust_again(struct prober *prober)
{
	probe_lock_forget(&prober->lock);
}

bool prober_is_busy(const struct prober *prober)
{
	return prober->run.is_running || prober->look_again_ms;
}

/* Copies only the telling part of @trouble, for example "Insufficient Permissions". */
static void shorten_trouble(const char *trouble, char out[PROBER_TROUBLE_SIZE])
{
	static const char program[] = "nvidia-smi", status[] = " (exit status";
	const char *end, *colon;
	size_t size;

	if (strncmp(trouble, program, strlen(program)) == 0)
		trouble += strlen(program) + strspn(trouble + strlen(program), ": ");
	end = strstr(trouble, status);
	if (!end)
		end = trouble + strlen(trouble);
	/* of "cause: detail: more detail" the last part tells most */
	while ((colon = memmem(trouble, (size_t)(end - trouble), ": ", 2)))
		trouble = colon + 2;
	size = (size_t)(end - trouble);
	if (size >= PROBER_TROUBLE_SIZE)
		size = PROBER_TROUBLE_SIZE - 1;
	memcpy(out, trouble, size);
	out[size] = '\0';
}

/* Notes whether nvidia-smi failed in @probe, which this process ran, and why. */
static void note_trouble(struct prober *prober, const struct probe *probe)
{
	const struct probe_run *run = &prober->run;
	const char *why = probe->trouble.text;

	prober->own_trouble[0] = '\0';
	prober->was_refused = prober->others_see = false;
	if (!probe_has_failed(probe))
		return;
	/* nvidia-smi listed GPUs but knew none: the first has a reason as good as the others */
	if (!why[0] && probe->gpu_count)
		why = probe->gpus[0].trouble;
	shorten_trouble(why[0] ? why : "shows no GPU", prober->own_trouble);
	/* a hang or a signal says nothing about the rights of this process */
	prober->was_refused = !run->has_hung && !run->was_disturbed;
}

/* Goes on with the run of nvidia-smi.  When it is done, shares the result and ends the wait. */
static void step_probe(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe)
{
	autofree struct probe *fresh = NULL;

	fresh = malloc(sizeof(*fresh));
	if (!fresh) {
		/* no memory: step into the old result, as a run must never be left unstepped */
		if (probe_run_step(&prober->run, now_ms, probe) != 0)
			return;
		(void)!probe_store(prober->dir, &prober->config.usage, NULL, probe);
	} else {
		if (probe_run_step(&prober->run, now_ms, fresh) != 0)
			return;
		(void)!probe_store(prober->dir, &prober->config.usage,
			*has_probe ? probe : NULL, fresh);
		probe_copy(fresh, probe);
	}
	*has_probe = prober->has_result = true;
	note_trouble(prober, probe);
	prober->own_started_ms = probe->started_ms;
	prober->own_finished_ms = probe->finished_ms;
	finish_waiting(prober);
}

/*
 * Ends the question for the links: shares @answer or, if that is NULL, the failure @why.  The
 * answer names GPUs by the indices of @probe.  A failure does not replace an answer that another
 * process has stored meanwhile.
 */
static void finish_topology(struct prober *prober, const struct smitopo *answer,
	const struct why *why, const struct probe *probe)
{
	struct prober_topology *topology = &prober->topology;
	struct topology *newest = topology->newest;
	int64_t asked_ms = topology->run.started_ms;

	if (!newest)
		newest = topology->newest = malloc(sizeof(*newest));
	/* a failure is stored only if no shared result serves; the load reads that into *newest */
	if (newest && (answer || topology_load(prober->dir, newest) != 0 ||
			      !topology_serves(newest, probe, asked_ms))) {
		topology_from(answer, probe, asked_ms, newest);
		if (!answer)
			newest->trouble = *why;
		(void)!topology_store(prober->dir, newest);
	}
	topology->wanted_ms = 0;
	close_fd(&topology->lock_fd);
}

/* Goes on with the run that asks for the links. */
static void step_topology(
	struct prober *prober, int64_t now_ms, const struct probe *probe)
{
	autofree struct smitopo *answer = malloc(sizeof(*answer));
	struct why why = WHY_NONE;
	int r;

	if (!answer) {
		/* no memory: kill the run rather than leave it unstepped */
		topo_run_release(&prober->topology.run);
		close_fd(&prober->topology.lock_fd);
		return;
	}
	r = topo_run_step(&prober->topology.run, now_ms, answer, &why);
	if (r != PROBE_RUNNING)
		finish_topology(prober, r == 0 ? answer : NULL, &why, probe);
}

void prober_step(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe)
{
	/* the check is due now; a caller that still needs a result calls prober_want() again */
	if (now_ms >= prober->look_again_ms)
		prober->look_again_ms = 0;
	if (now_ms >= prober->topology.look_again_ms)
		prober->topology.look_again_ms = 0;
	if (prober->run.is_running)
		step_probe(prober, now_ms, probe, has_probe);
	if (prober->topology.run.is_running)
		step_topology(prober, now_ms, probe);
}

unsigned prober_children(const struct prober *prober, uint32_t pids[PROBER_CHILDREN])
{
	const struct spawn *const all[PROBER_CHILDREN] = { &prober->run.gpus,
		&prober->run.processes, &prober->run.list, &prober->topology.run.spawn };
	unsigned count = 0;

	for (unsigned i = 0; i < PROBER_CHILDREN; i++)
		if (all[i]->pid > 0)
			pids[count++] = (uint32_t)all[i]->pid;
	return count;
}

unsigned prober_poll_fds(const struct prober *prober, struct pollfd fds[PROBE_POLL_FDS])
{
	unsigned count = probe_run_poll_fds(&prober->run, fds);

	return count + topo_run_poll_fds(&prober->topology.run, fds + count);
}

int64_t prober_deadline_ms(const struct prober *prober)
{
	/* while its own nvidia-smi runs, the prober does not wait for another process */
	const int64_t looks[] = { prober->run.is_running ? 0 : prober->look_again_ms,
		prober->topology.look_again_ms };
	int64_t deadline = min_i64(probe_run_deadline_ms(&prober->run),
		topo_run_deadline_ms(&prober->topology.run));

	for (size_t i = 0; i < ARRAY_SIZE(looks); i++)
		if (looks[i])
			deadline = min_i64(deadline, looks[i]);
	return deadline;
}

/* --- how the GPUs are linked -------------------------------------------------------- */

/* Makes @topology an empty one, which does not serve. */
static void forget_topology(struct topology *topology)
{
	topology->trouble.text[0] = '\0';
	topology->count = 0;
}

bool prober_knows_topology(
	struct prober *prober, int64_t now_ms, const struct probe *probe)
{
	struct prober_topology *topology = &prober->topology;
	struct topology *newest = topology->newest;

	if (newest && topology_serves(newest, probe, now_ms))
		return true;
	if (topology->run.is_running)
		return false;
	if (!prober->config.sim_gpus && !prober->config.nvidia_smi)
		return true;
	if (!newest)
		newest = topology->newest = malloc(sizeof(*newest));
	if (!newest)
		return true; /* no memory for the links: go on without them */
	if (prober->config.sim_gpus)
		topology_simulate(probe, newest);
	else if (topology_load(prober->dir, newest) != 0)
		forget_topology(newest);
	/* a job that gave up waiting for the links goes on without them for some time */
	if (!topology_serves(newest, probe, now_ms))
		return topology->gave_up_ms &&
		       clock_age_ms(now_ms, topology->gave_up_ms) < TOPOLOGY_RETRY_MS;
	topology->wanted_ms = topology->look_again_ms = 0;
	return true;
}

void prober_want_topology(struct prober *prober, int64_t now_ms)
{
	struct prober_topology *topology = &prober->topology;
	const struct prober_config *config = &prober->config;
	int64_t left_ms;
	int r;

	if (config->sim_gpus || !config->nvidia_smi || !prober->has_result ||
		topology->run.is_running || now_ms < topology->look_again_ms)
		return;
	if (!topology->wanted_ms)
		topology->wanted_ms = now_ms;
	left_ms = topology->wanted_ms + PROBER_LINKS_MS - now_ms;
	topology->look_again_ms = 0;
	if (left_ms <= 0) {
		topology->wanted_ms = 0;
		topology->gave_up_ms = now_ms;
		/* wake the caller, which goes on without the links */
		topology->look_again_ms = now_ms;
		return;
	}
	r = topology_lock_try(prober->dir->fd, &topology->lock_fd);
	if (r == TOPOLOGY_BUSY) {
		topology->look_again_ms =
			now_ms + min_i64(LOOK_FOR_LINKS_EVERY_MS, left_ms);
		return;
	}
	/* another failure of the lock does not matter: it only saves work */
	topo_run_start(&topology->run, config->nvidia_smi, config->environment,
		config->limit_ms ? min_i64(config->limit_ms, left_ms) : left_ms, now_ms);
}

const struct topology *prober_topology(const struct prober *prober)
{
	const struct topology *newest = prober->topology.newest;

	return newest && newest->count > 0 && !newest->trouble.text[0] ? newest : NULL;
}
