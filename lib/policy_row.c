/* From a ticket to what the policy looks at of it. */
#include "policy.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_preference(const char *text, struct preference *ret)
{
	for (; text[0] && text[1] && ret->count < PREFER_MAX; text += 2) {
		int high = digit(text[0]), low = digit(text[1]);

		if (high < 0 || low < 0)
			return;
		ret->slots[ret->count++] = (uint8_t)(high << 4 | low);
	}
}

struct need request_need(const struct request *request)
{
	return need_declared(request->share_percent, request->vram_mib);
}

struct plan_row plan_row_of(uint64_t number, const struct ticket *ticket)
{
	const struct request *request = &ticket->request;
	struct plan_row row = {
		.ticket = ticket_job(number, ticket),
		.uid = ticket->owner.uid,
		.gpus = request->gpus,
		.need = request_need(request),
		.limit_ms = request->limit_ms,
		.grace_ms = request->grace_ms,
		.allow = request->allow,
	};

	read_preference(request->prefer, &row.prefer);
	return row;
}
