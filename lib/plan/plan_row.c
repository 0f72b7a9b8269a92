#include "hex.h"
#include "plan_row.h"
#include "queue_order.h"

/* Reads slots, two hexadecimal digits each; stops at the first that is none. */
static void read_preference(const char *text, struct preference *ret)
{
	for (; text[0] && text[1] && ret->count < PREFER_MAX; text += 2) {
		uint64_t slot;

		if (hex_read(text, 2, HEX_LOWER, &slot) < 0)
			return;
		ret->slots[ret->count++] = (uint8_t)slot;
	}
}

struct need request_need(const struct request *request)
{
	return need_declared(request->share_percent, request->vram_mib);
}

struct plan_row plan_row_of(uint64_t number, const struct ticket *ticket)
{
	const struct request *request = &ticket->request;
	const struct queue_row queued = { .number = number, .ticket = *ticket };
	struct plan_row row = {
		.ticket = ticket_job(number, ticket),
		.place = queue_place_of(&queued),
		.uid = ticket->owner.uid,
		.gpus = request->gpus,
		.need = request_need(request),
		.limit_ms = request->limit_ms,
		.grace_ms = request->grace_ms,
		.most_percent = request->most_gpus > GPUSET_MAX
					? PLAN_NO_LIMIT
					: request->most_gpus * WHOLE_PERCENT,
		.most_leases = request->most_jobs,
		.limits_line = request->limits_line,
		.allow = request->allow,
	};

	read_preference(request->prefer, &row.prefer);
	return row;
}
