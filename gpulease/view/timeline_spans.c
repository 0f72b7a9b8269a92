#include <errno.h>

#include "array.h"
#include "timeline_order.h"
#include "timeline_spans.h"

enum {
	PERCENT_MS_OF_HUNDREDTH = 3600000, /* of an hour of a GPU */
	GPUS_MAX = 128,                    /* as accounting counts */
	SAME_START_MS = 60000, /* the clock may have been set between two readings */
};

/* An attempt, to count the jobs of a user. */
struct attempt {
	size_t user;
	int64_t job, attempt, started_ms;
};

/* What is being made. */
struct making {
	struct timeline *timeline;
	struct attempt *attempts;
	size_t attempt_count, attempt_room;
	const char *only; /* --user */
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- rows and users -------------------------------------------------------------------- */

/* Finds the row, or adds it.  Returns 0 or -ENOMEM. */
static int row_find(struct timeline *timeline, const char *node, int64_t index,
	int64_t instance, size_t *ret)
{
	struct timeline_row *rows = timeline->rows;

	for (size_t i = 0; i < timeline->row_count; i++)
		if (rows[i].index == index && rows[i].instance == instance &&
			strcmp(rows[i].node, node) == 0) {
			*ret = i;
			return 0;
		}
	rows = array_grow(rows, sizeof(*rows), timeline->row_count, &timeline->row_room);
	if (!rows)
		return -ENOMEM;
	timeline->rows = rows;
	rows[timeline->row_count] = (struct timeline_row){
		.node = node, .index = index, .instance = instance, .height = 100
	};
	*ret = timeline->row_count++;
	return 0;
}

static int user_find(struct timeline *timeline, const char *name, size_t *ret)
{
	struct timeline_user *users = timeline->users;

	for (size_t i = 0; i < timeline->user_count; i++)
		if (strcmp(users[i].name, name) == 0) {
			*ret = i;
			return 0;
		}
	users = array_grow(
		users, sizeof(*users), timeline->user_count, &timeline->user_room);
	if (!users)
		return -ENOMEM;
	timeline->users = users;
	users[timeline->user_count] = (struct timeline_user){ .jobs = 0 };
	text_copy(users[timeline->user_count].name, sizeof(users->name), name);
	*ret = timeline->user_count++;
	return 0;
}

static int add_rows_of_machine(struct timeline *timeline, const struct machine *machine)
{
	for (size_t i = 0; i < machine->gpu_count; i++) {
		const struct machine_gpu *gpu = &machine->gpus[i];
		struct timeline_row *row;
		size_t at;

		if (row_find(timeline, gpu->node, gpu->index, gpu->instance, &at) < 0)
			return -ENOMEM;
		row = &timeline->rows[at];
		row->place = i;
		row->is_present = true;
		row->is_paused = gpu->is_paused;
		row->is_divided = gpu->is_divided;
		text_copy(row->paused_by, sizeof(row->paused_by), gpu->paused_by);
	}
	return 0;
}

/* --- spans ------------------------------------------------------------------------------ */

/* Puts the times into the period, in their order.  Returns false if nothing is left. */
static bool span_clip(const struct timeline *timeline, struct timeline_span *span)
{
	if (span->from_ms <= 0)
		return false;
	span->from_ms = max_i64(span->from_ms, timeline->from_ms);
	span->until_ms = min_i64(span->until_ms, timeline->until_ms);
	span->alive_ms = max_i64(min_i64(span->alive_ms, span->until_ms), span->from_ms);
	span->unused_ms =
		max_i64(min_i64(span->unused_ms, span->alive_ms), span->from_ms);
	return span->until_ms > span->from_ms;
}

static int span_add(struct timeline *timeline, const struct timeline_span *span)
{
	struct timeline_span *spans = array_grow(timeline->spans, sizeof(*spans),
		timeline->span_count, &timeline->span_room);

	if (!spans)
		return -ENOMEM;
	timeline->spans = spans;
	spans[timeline->span_count++] = *span;
	timeline->rows[span->row].least +=
		(uint64_t)(span->alive_ms - span->from_ms) * span->percent;
	return 0;
}

/* Adds an attempt to the sums of its user; @percent of all its GPUs. */
static void user_add_attempt(struct timeline_user *user, const struct timeline_span *span,
	uint64_t percent, int64_t utilization, int64_t unused_ms)
{
	uint64_t alive_ms, least;

	user->attempts++;
	user->running += span->is_running;
	if (span->until_ms <= span->from_ms)
		return;
	alive_ms = (uint64_t)(span->alive_ms - span->from_ms);
	least = alive_ms * percent;
	user->least += least;
	user->most += (uint64_t)(span->until_ms - span->from_ms) * percent;
	if (utilization >= 0 && utilization <= 100) {
		user->busy += least * (uint64_t)utilization;
		user->measured += least;
	}
	if (unused_ms > 0)
		user->unused += min_u64((uint64_t)unused_ms, alive_ms) * percent;
}

static int note_attempt(
	struct making *making, const struct timeline_span *span, int64_t started_ms)
{
	struct attempt *attempts = array_grow(making->attempts, sizeof(*attempts),
		making->attempt_count, &making->attempt_room);

	if (!attempts)
		return -ENOMEM;
	making->attempts = attempts;
	attempts[making->attempt_count++] = (struct attempt){
		.user = span->user,
		.job = span->job,
		.attempt = span->attempt,
		.started_ms = started_ms,
	};
	return 0;
}

static uint32_t percent_of(double share)
{
	return share > 0 && share < 1 ? (uint32_t)(share * 100 + 0.5) : 100;
}

/* --- what has ended --------------------------------------------------------------------- */

/* Adds the spans of an attempt: one on each GPU that is recorded, one on all others. */
static int ended_add_spans(struct timeline *timeline, const struct ended_job *job,
	uint64_t gpus, struct timeline_span *span)
{
	uint64_t listed = min_u64(job->gpu_listed, gpus);
	uint32_t percent = span->percent;

	for (size_t i = 0; i < listed; i++)
		if (row_find(timeline, "", job->gpus[i], job->instance, &span->row) < 0 ||
			span_add(timeline, span) < 0)
			return -ENOMEM;
	if (listed == gpus)
		return 0;
	span->percent = (uint32_t)(percent * (gpus - listed));
	if (row_find(timeline, "", -1, -1, &span->row) < 0)
		return -ENOMEM;
	return span_add(timeline, span);
}

static int ended_add(struct making *making, const struct ended_job *job)
{
	struct timeline *timeline = making->timeline;
	uint64_t gpus = (uint64_t)max_i64(0, min_i64(job->gpu_count, GPUS_MAX));
	struct timeline_span span = {
		.from_ms = job->started_unix_ms,
		.unused_ms = job->alive_unix_ms,
		.alive_ms = job->alive_unix_ms,
		.until_ms = job->gone_unix_ms,
		.percent = percent_of(job->share),
		.job = job->job,
		.attempt = max_i64(1, job->attempt),
		.name = job->name,
	};
	struct timeline_user *user;
	uint64_t percent = span.percent * gpus;
	bool has_time;

	if (job->unused_at_end_ms > 0 && job->unused_at_end_ms < job->alive_unix_ms)
		span.unused_ms = job->alive_unix_ms - job->unused_at_end_ms;
	if (user_find(timeline, job->user, &span.user) < 0)
		return -ENOMEM;
	has_time = span_clip(timeline, &span);
	if (!has_time)
		span.until_ms = span.from_ms;
	user = &timeline->users[span.user];
	user_add_attempt(user, &span, percent, job->utilization_percent, job->unused_ms);
	user->wait_sum_ms += (uint64_t)max_i64(0, job->waited_ms);
	user->waits++;
	if (note_attempt(making, &span, job->gone_unix_ms) < 0)
		return -ENOMEM;
	return has_time && gpus ? ended_add_spans(timeline, job, gpus, &span) : 0;
}

/* Whether the attempt took part in the period, as ended_filter_admits() judges. */
static bool is_in_period(const struct timeline *timeline, const struct ended_job *job)
{
	int64_t begun_ms =
		job->started_unix_ms > 0 ? job->started_unix_ms : job->gone_unix_ms;

	return job->gone_unix_ms >= timeline->from_ms && begun_ms <= timeline->until_ms;
}

/* --- what runs --------------------------------------------------------------------------- */

/* Whether the lease had ended when the history was read. */
static bool lease_has_ended(
	const struct ended_jobs *ended, const struct machine_lease *lease)
{
	for (size_t i = ended->count; i-- > 0;) {
		const struct ended_job *job = &ended->list[i];
		int64_t later_ms;

		if (job->job != lease->job ||
			max_i64(1, job->attempt) != max_i64(1, lease->attempt) ||
			strcmp(job->user, lease->user) != 0)
			continue;
		later_ms = max_i64(0, job->started_unix_ms) -
			   max_i64(0, lease->started_unix_ms);
		if (later_ms > -SAME_START_MS && later_ms < SAME_START_MS)
			return true;
	}
	return false;
}

/* Whether an earlier lease of the list is of the same attempt. */
static bool lease_is_further(const struct machine *machine, size_t at)
{
	const struct machine_lease *lease = &machine->leases[at];

	for (size_t i = 0; i < at; i++)
		if (machine->leases[i].job == lease->job &&
			machine->leases[i].attempt == lease->attempt &&
			machine->leases[i].gpu != SIZE_MAX)
			return true;
	return false;
}

static int lease_add(struct making *making, const struct machine *machine, size_t at)
{
	const struct machine_lease *lease = &machine->leases[at];
	const struct machine_gpu *gpu = &machine->gpus[lease->gpu];
	struct timeline *timeline = making->timeline;
	struct timeline_span span = {
		.from_ms = lease->started_unix_ms,
		.unused_ms = timeline->until_ms,
		.alive_ms = timeline->until_ms,
		.until_ms = timeline->until_ms,
		.percent = percent_of(lease->share),
		.job = lease->job,
		.attempt = max_i64(1, lease->attempt),
		.is_running = !lease_is_further(machine, at),
		.name = lease->name,
	};
	struct timeline_user *user;
	bool is_first = span.is_running;

	if (lease->unused_for_ms > 0 && lease->unused_for_ms < timeline->until_ms)
		span.unused_ms = timeline->until_ms - lease->unused_for_ms;
	if (!span_clip(timeline, &span))
		return 0;
	if (user_find(timeline, lease->user, &span.user) < 0 ||
		row_find(timeline, gpu->node, gpu->index, gpu->instance, &span.row) < 0)
		return -ENOMEM;
	user = &timeline->users[span.user];
	user_add_attempt(
		user, &span, span.percent, lease->utilization_percent, lease->unused_ms);
	if (!is_first)
		user->attempts--;
	else if (note_attempt(making, &span, timeline->until_ms) < 0)
		return -ENOMEM;
	span.is_running = true;
	return span_add(timeline, &span);
}

static int add_leases(struct making *making, const struct ended_jobs *ended,
	const struct machine *machine)
{
	for (size_t i = 0; i < machine->lease_count; i++) {
		const struct machine_lease *lease = &machine->leases[i];

		if (lease->gpu >= machine->gpu_count || lease->is_lingering ||
			(making->only && strcmp(making->only, lease->user) != 0) ||
			lease_has_ended(ended, lease))
			continue;
		if (lease_add(making, machine, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_attempts(const void *a, const void *b)
{
	const struct attempt *x = a, *y = b;

	if (x->user != y->user)
		return COMPARE(x->user, y->user);
	if (x->job != y->job)
		return COMPARE(x->job, y->job);
	return COMPARE(x->started_ms, y->started_ms);
}

/* Counts the jobs.  Numbers of tickets may begin again, so a first attempt begins a job. */
static void count_jobs(struct making *making)
{
	struct attempt *attempts = making->attempts;

	if (!making->attempt_count)
		return;
	qsort(attempts, making->attempt_count, sizeof(*attempts), compare_attempts);
	for (size_t i = 0; i < making->attempt_count; i++) {
		const struct attempt *at = &attempts[i];
		bool goes_on = i > 0 && at[-1].user == at->user &&
			       at[-1].job == at->job && at[-1].attempt < at->attempt;

		making->timeline->users[at->user].jobs += !goes_on;
	}
}

/* --- all of it ---------------------------------------------------------------------------- */

void timeline_user_add(struct timeline_user *sum, const struct timeline_user *user)
{
	sum->jobs += user->jobs;
	sum->attempts += user->attempts;
	sum->running += user->running;
	sum->least += user->least;
	sum->most += user->most;
	sum->busy += user->busy;
	sum->measured += user->measured;
	sum->unused += user->unused;
	sum->wait_sum_ms += user->wait_sum_ms;
	sum->waits += user->waits;
}

static void sum_up(struct timeline *timeline)
{
	text_copy(timeline->total.name, sizeof(timeline->total.name), "total");
	for (size_t i = 0; i < timeline->user_count; i++)
		timeline_user_add(&timeline->total, &timeline->users[i]);
}

int timeline_make(const struct ended_jobs *ended, const struct machine *machine,
	int64_t from_ms, const char *user, struct timeline *ret)
{
	struct making making = { .timeline = ret, .only = user };
	int r;

	*ret = TIMELINE_NONE;
	ret->from_ms = from_ms;
	ret->until_ms = ended->taken_unix_ms;
	r = add_rows_of_machine(ret, machine);
	for (size_t i = 0; i < ended->count && r == 0; i++)
		if (is_in_period(ret, &ended->list[i]))
			r = ended_add(&making, &ended->list[i]);
	if (r == 0)
		r = add_leases(&making, ended, machine);
	if (r == 0) {
		count_jobs(&making);
		sum_up(ret);
		r = timeline_order(ret);
	}
	if (r < 0)
		timeline_release(ret);
	free(making.attempts);
	return r;
}

void timeline_release(struct timeline *timeline)
{
	free(timeline->rows);
	free(timeline->users);
	free(timeline->spans);
	*timeline = TIMELINE_NONE;
}

/* --- figures and words -------------------------------------------------------------------- */

size_t timeline_place(size_t user)
{
	return user < TIMELINE_LETTERS ? user : TIMELINE_REST;
}

size_t timeline_places(const struct timeline *timeline)
{
	return timeline->user_count < TIMELINE_PLACES ? timeline->user_count
						      : TIMELINE_PLACES;
}

double timeline_x(const struct timeline *timeline, int64_t at_ms)
{
	return (double)(at_ms - timeline->from_ms) * 100 /
	       (double)(timeline->until_ms - timeline->from_ms);
}

char timeline_letter(size_t place)
{
	return place < TIMELINE_LETTERS ? (char)('a' + place) : '+';
}

int64_t timeline_part_ms(const struct timeline_span *span, unsigned part)
{
	const int64_t begins[] = { span->from_ms, span->unused_ms, span->alive_ms,
		span->until_ms };

	return begins[part < TIMELINE_PARTS ? part : TIMELINE_PARTS];
}

int64_t timeline_mean_wait_ms(const struct timeline_user *user)
{
	return user->waits ? (int64_t)(user->wait_sum_ms / user->waits) : -1;
}

int timeline_utilization(const struct timeline_user *user)
{
	if (!user->measured)
		return -1;
	return (int)((user->busy + user->measured / 2) / user->measured);
}

int64_t timeline_permille(
	const struct timeline *timeline, uint64_t gpu_time, uint64_t gpus)
{
	uint64_t all = (uint64_t)(timeline->until_ms - timeline->from_ms) * gpus;

	return all ? (int64_t)((double)gpu_time * 10 / (double)all) : -1;
}

uint64_t timeline_gpus(const struct timeline *timeline)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < timeline->row_count; i++)
		gpus += timeline->rows[i].is_present && !timeline->rows[i].is_divided;
	return gpus;
}

void timeline_format_hours(uint64_t gpu_time, char out[TIMELINE_HOURS_SIZE])
{
	uint64_t hundredths = gpu_time / PERCENT_MS_OF_HUNDREDTH;

	(void)snprintf(out, TIMELINE_HOURS_SIZE, "%llu.%02u",
		(unsigned long long)(hundredths / 100), (unsigned)(hundredths % 100));
}

void timeline_format_row(const struct timeline_row *row, char out[TIMELINE_LABEL_SIZE])
{
	struct text text = text_on(out, TIMELINE_LABEL_SIZE);

	if (row->index < 0) {
		text_add(&text, "GPU not recorded");
		return;
	}
	text_addf(&text, "GPU %s%s%lld", row->node, row->node[0] ? "/" : "",
		(long long)row->index);
	if (row->instance >= 0)
		text_addf(&text, ":%lld", (long long)row->instance);
}
