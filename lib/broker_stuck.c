/* Owners that take turns and start nothing: owners of tickets ahead, and this process itself. */
#include "broker_parts.h"
#include "clock.h"
#include "commit.h"

/* A probe that ended so long ago still says whether GPUs could be taken. */
enum { LATELY_MS = 4000 };

/* --- tickets ahead ------------------------------------------------------------------- */

static bool has_seen_lately(const struct broker *broker)
{
	const struct probe *probe = &broker->view.probe;

	return broker->view.has_probe && !probe_has_failed(probe) &&
	       clock_age_ms(broker->now_ms, probe->finished_ms) <= LATELY_MS &&
	       prober_trusts(&broker->prober, probe, probe->finished_ms);
}

static bool can_take(void *arg, const struct gpuset *gpus)
{
	struct broker *broker = arg;
	struct snapshot *view = &broker->view;

	if (!has_seen_lately(broker))
		return false;
	gpuset_for_each (slot, gpus) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];

		if (gpu->locked_until_ms > broker->now_ms ||
			snapshot_is_outdated(view, gpu) || snapshot_is_blind(view, gpu))
			return false;
	}
	return commit_could_lock(view, gpus);
}

int broker_pass_stuck(struct broker *broker, bool could_start)
{
	const struct passover_means means = { can_take, broker };
	const struct probe *probe = &broker->view.probe;
	bool wants_probe;
	int64_t wake_ms;
	int r = passover_consider_starts(&broker->passover, could_start, &means,
		broker->now_ms, &wants_probe, &wake_ms);

	if (r != 0)
		return r;
	broker->wake_ms = min_i64(broker->wake_ms, wake_ms);
	if (wants_probe && !(broker->view.has_probe &&
				   prober_serves(&broker->prober, probe, broker->now_ms)))
		prober_want(&broker->prober, broker->now_ms);
	return 0;
}

/* --- this process -------------------------------------------------------------------- */

/* Writes "CODE:TEXT" without bytes that a record would escape. */
static void put(char out[STUCK_SIZE], const char *code, const char *words)
{
	(void)snprintf(out, STUCK_SIZE, "%s:%.*s", code, STUCK_TEXT_MAX, words);
	for (char *at = out; *at; at++)
		if (*at <= 0x20 || *at == 0x7f || *at == '%' || *at == '=')
			*at = '_';
}

void broker_tell_stuck(struct broker *broker, bool is_spinning)
{
	const struct verdict *verdict = &broker->verdict;
	const struct snapshot *view = &broker->view;
	char *out = broker->ticket.stuck;
	bool is_gpu = verdict->kind == VERDICT_GPU && verdict->slot < view->slots;

	*out = '\0';
	if (broker->prober.own_trouble[0])
		put(out, STUCK_NVIDIA_SMI, broker->prober.own_trouble);
	else if (is_spinning)
		put(out, STUCK_TURN, "");
	else if (is_gpu && verdict->state == GPU_LOCKED)
		put(out, STUCK_LOCK, snapshot_gpu_name(view, verdict->slot).text);
	else if (is_gpu && verdict->state == GPU_UNKNOWN && view->has_probe &&
		 snapshot_is_blind(view, &view->gpus[verdict->slot]))
		put(out, STUCK_GPU, snapshot_gpu_name(view, verdict->slot).text);
}
