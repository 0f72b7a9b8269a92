#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "prober.h"

/* How often to look for somebody else's result, and how long at most. */
enum { LOOK_EVERY_MS = 20, TRUST_OTHERS_MS = 2000 };

void prober_init(struct prober *prober, const struct statedir *dir,
	const struct prober_config *config)
{
	*prober = (struct prober){
		.dir = dir, .config = *config, .run = PROBE_RUN_INIT, .lock_fd = -1
	};
}

void prober_release(struct prober *prober)
{
	probe_run_release(&prober->run);
	close_fd(&prober->lock_fd);
}

/* Which file the shared result is now; all zeros where there is none. */
static void identify(const struct prober *prober, uint64_t id[3])
{
	struct stat st = { 0 };

	(void)fstatat(prober->dir->fd, "probe", &st, AT_SYMLINK_NOFOLLOW);
	id[0] = st.st_ino;
	id[1] = (uint64_t)st.st_mtim.tv_sec;
	id[2] = (uint64_t)st.st_mtim.tv_nsec;
}

/* Whether it is another than the one that was read last. */
static bool has_changed(const struct prober *prober)
{
	uint64_t id[3];

	identify(prober, id);
	return memcmp(id, prober->file_id, sizeof(id)) != 0;
}

static void settle(struct prober *prober)
{
	prober->other_since_ms = prober->look_again_ms = 0;
	close_fd(&prober->lock_fd);
}

/* Simulated GPUs are idle from when they are first seen. */
static void simulate(
	const struct prober *prober, int64_t now_ms, struct probe *probe, bool is_known)
{
	int64_t idle_since_ms = is_known ? probe->gpus[0].idle_since_ms : now_ms;

	probe_simulate(prober->config.sim_gpus, prober->config.sim_mib, now_ms, probe);
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		probe->gpus[i].idle_since_ms = idle_since_ms;
}

void prober_refresh(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe)
{
	if (prober->config.sim_gpus) {
		simulate(prober, now_ms, probe, *has_probe);
		*has_probe = true;
		return;
	}
	if (!has_changed(prober))
		return;
	identify(prober, prober->file_id);
	if (probe_load(prober->dir->fd, prober->dir->boot, probe) != 0)
		return;
	*has_probe = true;
	if (!prober->run.is_running)
		settle(prober);
}

/* Somebody else is at it: look again soon.  False once we have trusted them long enough. */
static bool trust_other(struct prober *prober, int64_t now_ms)
{
	if (!prober->other_since_ms)
		prober->other_since_ms = now_ms;
	if (now_ms - prober->other_since_ms >= TRUST_OTHERS_MS)
		return false;
	prober->look_again_ms = now_ms + LOOK_EVERY_MS;
	return true;
}

void prober_want(struct prober *prober, int64_t now_ms)
{
	int r;

	if (prober->config.sim_gpus || prober->run.is_running)
		return;
	r = probe_lock_try(prober->dir->fd, &prober->lock_fd);
	if (r == PROBE_BUSY && trust_other(prober, now_ms))
		return;
	if (r == 0 && has_changed(prober)) {
		/* the other has just finished: theirs may do */
		close_fd(&prober->lock_fd);
		prober->look_again_ms = now_ms;
		return;
	}
	prober->other_since_ms = prober->look_again_ms = 0;
	probe_run_start(&prober->run, prober->config.nvidia_smi,
		prober->config.environment, prober->config.limit_ms, now_ms);
}

bool prober_is_busy(const struct prober *prober)
{
	return prober->run.is_running || prober->look_again_ms;
}

void prober_step(
	struct prober *prober, int64_t now_ms, struct probe *probe, bool *has_probe)
{
	/* the look is due now: who still wants a result says so again */
	if (now_ms >= prober->look_again_ms)
		prober->look_again_ms = 0;
	if (!prober->run.is_running || probe_run_step(&prober->run, now_ms, probe) != 0)
		return;
	*has_probe = true;
	(void)!probe_store(
		prober->dir->fd, prober->dir->boot, prober->config.idle_mib, probe);
	settle(prober);
}

unsigned prober_poll_fds(const struct prober *prober, struct pollfd fds[PROBE_POLL_FDS])
{
	return prober->run.is_running ? probe_run_poll_fds(&prober->run, fds) : 0;
}

int64_t prober_deadline_ms(const struct prober *prober)
{
	if (prober->run.is_running)
		return probe_run_deadline_ms(&prober->run);
	return prober->look_again_ms ? prober->look_again_ms : INT64_MAX;
}
