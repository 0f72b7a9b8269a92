#include "broker_parts.h"

bool broker_wants_links(struct broker *broker)
{
	const struct request *request = &broker->ticket.request;
	struct need need = request_need(request);
	unsigned count = 0;

	for (unsigned slot = 0; slot < broker->view.slots; slot++)
		count += broker->view.plan[slot].exists &&
			 gpuset_has(&request->allow, slot);
	if (request->gpus <= 1 || !need_is_whole(&need) || count <= request->gpus ||
		prober_knows_topology(
			&broker->prober, broker->now_ms, &broker->view.probe))
		return false;
	prober_want_topology(&broker->prober, broker->now_ms);
	return true;
}
