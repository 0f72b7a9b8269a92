/* How the GPUs of a snapshot are linked, as far as somebody has found out. */
#include "instance.h"
#include "prober.h"
#include "snapshot.h"

/* Between fewer there is nothing to choose. */
enum { CHOICE_LEAST = 3 };

/*
 * The GPU of each slot, by its uuid; of a MIG instance its parent's.  Not by ->mig: slots that
 * are new have not been judged yet.
 */
static void list_uuids(const struct snapshot *view, const char *uuids[GPUSET_MAX])
{
	const struct probe *probe = &view->probe;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct gpu_record *gpu = &view->gpus[slot].file.gpu;
		int mig = gpu_is_instance(gpu) ? probe_find_mig(probe, gpu->uuid) : -1;

		uuids[slot] =
			mig < 0 ? gpu->uuid : probe->gpus[probe->migs[mig].gpu].uuid;
	}
}

void snapshot_find_links(struct snapshot *view, struct prober *prober, int64_t now_ms)
{
	const char *uuids[GPUSET_MAX];
	const struct topology *topology;

	view->has_links = false;
	view->facts.links = NULL;
	if (!view->has_probe || view->probe.gpu_count < CHOICE_LEAST ||
		!prober_knows_topology(prober, now_ms, &view->probe))
		return;
	topology = prober_topology(prober);
	if (!topology)
		return;
	list_uuids(view, uuids);
	topology_to_links(topology, uuids, view->slots, &view->links);
	view->has_links = true;
	view->facts.links = &view->links;
}
