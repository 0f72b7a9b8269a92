#include "diag.h"
#include "wait_reason.h"
#include "waiting_line.h"

enum { EVERY_MS = 10000 }; /* between two lines */

void waiting_line_reason(
	const struct waiting_line *line, const struct broker *broker, struct text *out)
{
	if (broker->result.trouble.text[0]) {
		text_add(out, broker->result.trouble.text);
		return;
	}
	explain_verdict(&broker->view, &broker->result.verdict, out);
	if (!gpuset_is_empty(&broker->result.refused)) {
		text_add(out, "; ");
		explain_stuck(broker->ticket.stuck, out);
	}
	if (line->limited[0])
		text_addf(out, "; %s", line->limited);
	if (broker->result.share.late_ms) {
		text_add(out, "; you have ");
		explain_fair_share(&broker->input.share, &broker->result.share, out);
	}
}

const char *ordinal_suffix(unsigned number)
{
	static const char *const ends[] = { "th", "st", "nd", "rd" };
	unsigned last = number % 10;

	return last > 3 || number / 10 % 10 == 1 ? ends[0] : ends[last];
}

/* Returns the time that the reason says, 0 if it says none. */
static int64_t waiting_line_said_ms(const struct broker *broker)
{
	const struct verdict *verdict = &broker->result.verdict;

	return verdict->kind == VERDICT_LEASED ? verdict->start_ms : 0;
}

int64_t waiting_line_start_ms(struct broker *broker)
{
	int64_t said_ms = waiting_line_said_ms(broker);

	return said_ms ? said_ms : broker_estimate(broker);
}

void waiting_line_estimate(
	struct broker *broker, const struct foretold *foretold, struct text *out)
{
	int64_t start_ms = waiting_line_start_ms(broker);

	if (start_ms && !waiting_line_said_ms(broker)) {
		text_add(out, "; starts ");
		explain_when(start_ms, out);
	}
	explain_usually(foretold, start_ms != 0, out);
}

/*
 * Makes a key that changes with the kind of reason and with the job or GPU to blame, but not with
 * details such as amounts of memory, which change all the time.
 */
static void waiting_line_key(const struct broker *broker, uint64_t key[5])
{
	const struct verdict *verdict = &broker->result.verdict;

	key[0] = (uint64_t)verdict->kind << 8 | (uint64_t)verdict->state;
	key[1] = verdict->behind + verdict->held_by + (uint64_t)verdict->limit.kind;
	key[2] = verdict->state == GPU_FREE ? 0 : verdict->slot + 1;
	key[3] =
		verdict->state == GPU_FREE ? 0 : broker->view.gpus[verdict->slot].culprit;
	key[4] = broker->number; /* each attempt has a ticket of its own */
	if (broker->state.trouble)
		key[0] = UINT64_MAX - (uint64_t)broker->state.trouble;
}

/* Writes the place of the ticket in the queue; nothing if that cannot be found out. */
static void waiting_line_place(struct broker *broker, char out[48])
{
	unsigned position = broker_position(broker);

	out[0] = '\0';
	if (position)
		(void)snprintf(out, 48, ", %u%s in the queue", position,
			ordinal_suffix(position));
}

int64_t waiting_line_show(struct waiting_line *line, struct broker *broker,
	const struct job_observer *observer, int64_t now_ms)
{
	uint64_t key[5];
	struct foretold foretold;
	char words[512];
	struct text text = TEXT_ON(words);
	char place[48];
	bool is_too_early;

	waiting_line_key(broker, key);
	if (line->is_shown && memcmp(key, line->key, sizeof(key)) == 0)
		return INT64_MAX;
	is_too_early = line->is_shown && now_ms < line->shown_ms + EVERY_MS;
	if (is_too_early && !observer)
		return line->shown_ms + EVERY_MS;
	waiting_line_reason(line, broker, &text);
	if (!broker->state.trouble) {
		broker_foretell(broker, &foretold);
		waiting_line_estimate(broker, &foretold, &text);
	}
	/* the 10 s are for a terminal; the observer gets every change */
	if (observer)
		observer->waits(observer->context, words);
	if (is_too_early)
		return line->shown_ms + EVERY_MS;
	waiting_line_place(broker, place);
	note("job %llu waits%s: %s", (unsigned long long)broker_job(broker), place,
		words);
	line->is_shown = true;
	line->shown_ms = now_ms;
	memcpy(line->key, key, sizeof(key));
	return INT64_MAX;
}
