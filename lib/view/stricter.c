#include "plan_row.h"
#include "stricter.h"

/* Judges the GPUs by @policy.  Sets *@ret to those on which the job could start now. */
static int judge_by(struct snapshot *view, const struct usage_policy *policy,
	const struct request *request, int64_t now_ms, struct gpuset *ret)
{
	struct need need = request_need(request);
	int r;

	*ret = GPUSET_NONE;
	view->usage = *policy;
	r = snapshot_judge(view, now_ms);
	gpuset_for_each (slot, &request->allow) {
		const struct plan_gpu *gpu = &view->plan[slot];
		struct room room;

		if (r < 0 || (unsigned)slot >= view->slots ||
			!gpu_admits(gpu, &need, true))
			continue;
		room = room_at(gpu, INT64_MIN);
		if (room_fits(&room, gpu, &need, view->facts.margin_mib))
			gpuset_add(ret, (unsigned)slot);
	}
	return r;
}

int stricter_judge(struct snapshot *view, const struct usage_policy *own,
	const struct request *request, int64_t now_ms, struct gpuset *ret_refused)
{
	struct usage_policy machine = view->usage;
	uint32_t culprits[GPUSET_MAX];
	struct gpuset strictly, fits;
	int r = judge_by(view, own, request, now_ms, &strictly), last;

	for (unsigned slot = 0; slot < view->slots; slot++)
		culprits[slot] = view->gpus[slot].culprit;
	/* last, because the plan goes by this judgement */
	last = judge_by(view, &machine, request, now_ms, &fits);
	*ret_refused = gpuset_minus(&fits, &strictly);
	gpuset_for_each (slot, ret_refused)
		if (!view->gpus[slot].culprit)
			view->gpus[slot].culprit = culprits[slot];
	return r < 0 ? r : last;
}
