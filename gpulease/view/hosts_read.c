#include <errno.h>

#include "hosts_read.h"
#include "json_check.h"
#include "json_fields.h"

const unsigned host_start_gpus[HOST_STARTS] = { 1, 4 };

static const struct {
	const char *verb, *format;
} kinds[HOSTS_KINDS] = {
	[HOSTS_STATUS] = { "--status", "gpulease-status/" },
	[HOSTS_QUEUE] = { "--queue", "gpulease-queue/" },
	[HOSTS_HISTORY] = { "--history", "gpulease-history/" },
};

/* The version of the members that this program knows. */
enum { SCHEMA = 1 };

void hosts_add_words(struct host_words *words, enum hosts_kind kind)
{
	host_words_add(words, kinds[kind].verb);
	host_words_add(words, "--json");
	for (size_t i = 0; kind == HOSTS_STATUS && i < HOST_STARTS; i++) {
		char gpus[16];

		(void)snprintf(gpus, sizeof(gpus), "%u", host_start_gpus[i]);
		host_words_next(words);
		host_words_add(words, "--dry-run");
		host_words_add(words, "--json");
		host_words_add(words, "-n");
		host_words_add(words, gpus);
		host_words_add(words, "--");
		host_words_add(words, "true");
	}
}

/* --- when jobs would start --------------------------------------------------------------- */

struct dry_run {
	int64_t taken_unix_ms, start_at_unix_ms;
	bool can_start;
};

/* clang-format off */
static const struct json_field dry_run_fields[] = {
	{ "taken_unix_ms", FIELD_NUMBER, offsetof(struct dry_run, taken_unix_ms), 0, NULL },
	{ "start_at_unix_ms", FIELD_NUMBER, offsetof(struct dry_run, start_at_unix_ms), 0, NULL },
	{ "can_start", FIELD_BOOL, offsetof(struct dry_run, can_start), 0, NULL },
	{ NULL, FIELD_TEXT, 0, 0, NULL },
};
/* clang-format on */

/* Reads the dry run that follows *@at. */
static void read_start(const struct answer *answer, size_t *at, struct host_start *start)
{
	struct dry_run run = { -1, -1, false };
	struct json_value object;
	uint64_t schema;

	if (!host_find(answer->text, answer->size, "gpulease-dry-run/", at, &object,
		    &schema) ||
		schema != SCHEMA || !json_is_clean(&object) ||
		json_fields_read(dry_run_fields, &object, &run) < 0)
		return;
	start->object = object;
	start->kind = START_UNKNOWN;
	if (!run.can_start && (run.start_at_unix_ms <= 0 || run.taken_unix_ms <= 0))
		return;
	start->kind = START_KNOWN;
	/* both times are of the clock there */
	start->in_ms =
		run.can_start ? 0 : max_i64(0, run.start_at_unix_ms - run.taken_unix_ms);
}

/* --- one machine ------------------------------------------------------------------------- */

static int read_object(struct host_state *state, enum hosts_kind kind)
{
	const struct json_value *object = &state->object;

	if (!json_is_clean(object))
		return -EINVAL;
	return kind == HOSTS_HISTORY
		       ? ended_jobs_read(object->at, object->size, &state->ended)
		       : machine_read(object->at, object->size, &state->machine);
}

void host_state_read(
	const struct host_answer *from, enum hosts_kind kind, struct host_state *ret)
{
	const struct answer *answer = &from->answer;
	uint64_t schema = 0;
	size_t at = 0;
	int r;

	*ret = (struct host_state){
		.host = from->host, .machine = MACHINE_NONE, .ended = ENDED_JOBS_NONE
	};
	if (!host_find(answer->text, answer->size, kinds[kind].format, &at, &ret->object,
		    &schema)) {
		host_trouble(answer, ret->trouble, sizeof(ret->trouble));
		ret->object.at = NULL;
		return;
	}
	r = schema == SCHEMA ? read_object(ret, kind) : -ENOTSUP;
	if (r < 0)
		ret->object.at = NULL;
	if (r == -ENOTSUP)
		(void)snprintf(ret->trouble, sizeof(ret->trouble),
			"its gpulease prints %s%llu; this gpulease reads %s%d",
			kinds[kind].format, (unsigned long long)schema,
			kinds[kind].format, SCHEMA);
	else if (r < 0)
		text_copy(ret->trouble, sizeof(ret->trouble),
			r == -EINVAL ? "its answer cannot be read" : strerror(-r));
	for (size_t i = 0; r == 0 && kind == HOSTS_STATUS && i < HOST_STARTS; i++)
		read_start(answer, &at, &ret->starts[i]);
}

void host_state_release(struct host_state *state)
{
	machine_release(&state->machine);
	ended_jobs_release(&state->ended);
}

/* --- counted ----------------------------------------------------------------------------- */

/*
 * Sets *@ret_ms to the time until the last lease on the GPU has ended by its limit; -1: some lease
 * has no limit.  Returns whether there is a lease.
 */
static bool last_end(const struct machine *machine, size_t gpu, int64_t *ret_ms)
{
	bool is_leased = false, is_known = true;

	*ret_ms = 0;
	for (size_t i = 0; i < machine->lease_count; i++) {
		const struct machine_lease *lease = &machine->leases[i];

		if (lease->gpu != gpu)
			continue;
		is_leased = true;
		if (lease->limit_ms <= 0 || lease->started_unix_ms <= 0 ||
			lease->limit_ms > INT64_MAX - lease->started_unix_ms)
			is_known = false;
		else
			*ret_ms = max_i64(*ret_ms, lease->started_unix_ms +
							   lease->limit_ms -
							   machine->taken_unix_ms);
	}
	if (!is_known)
		*ret_ms = -1;
	return is_leased;
}

struct host_counts host_counts_of(const struct machine *machine)
{
	struct host_counts counts = { .waiting = machine->queue_count,
		.next_free_ms = -1 };

	for (size_t i = 0; i < machine->gpu_count; i++) {
		const struct machine_gpu *gpu = &machine->gpus[i];
		int64_t end_ms;
		bool is_leased = last_end(machine, i, &end_ms);

		if (gpu->is_divided && !is_leased)
			continue;
		counts.gpus++;
		counts.leased += is_leased;
		counts.idle += !is_leased && strcmp(gpu->state, "idle") == 0;
		if (!is_leased || gpu->is_paused || end_ms < 0)
			continue;
		if (counts.next_free_ms < 0 || end_ms < counts.next_free_ms)
			counts.next_free_ms = end_ms;
	}
	counts.other = counts.gpus - counts.idle - counts.leased;
	return counts;
}
