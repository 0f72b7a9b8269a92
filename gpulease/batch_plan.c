#include <errno.h>

#include "batch_plan.h"
#include "parse.h"

/* --- the order, and who is called what ---------------------------------------------- */

struct place {
	uint64_t number;
	int64_t priority;
	size_t at; /* in the file */
};

struct batch_plan_name {
	const char *name; /* the job's */
	uint64_t number;
};

struct batch_plan_key {
	uint64_t key, number;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int compare_names(const void *left, const void *right)
{
	const struct batch_plan_name *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int compare_keys(const void *left, const void *right)
{
	const struct batch_plan_key *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static void find_order(const struct batch_jobs *jobs, const uint64_t *order, size_t count,
	struct place *places)
{
	for (size_t i = 0; i < count; i++) {
		struct batch_job *job = batch_jobs_find(jobs, order[i]);

		job->waits_for = 0; /* its line may say something else now */
		places[i] = (struct place){ order[i], job->line->attributes.priority, i };
	}
	qsort(places, count, sizeof(*places), compare_places);
}

/*
 * Whether the order of those who are not at work yet is another than in @before, or somebody
 * new is to come before one that waits.
 */
static int compare_orders(
	const struct batch_plan *before, const struct batch_plan *plan, bool *ret_differ)
{
	autofree size_t *ranks = calloc(plan->jobs->count + 1, sizeof(*ranks));
	size_t last = 0;
	bool has_new = false;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < before->count; i++)
		ranks[before->order[i]] = i + 1;
	*ret_differ = false;
	for (size_t i = 0; i < plan->count && !*ret_differ; i++) {
		const struct batch_job *job = batch_jobs_find(plan->jobs, plan->order[i]);
		size_t rank = ranks[job->number];

		if (job->state != BATCH_NEW && job->state != BATCH_IN_QUEUE)
			continue;
		has_new = has_new || !rank;
		*ret_differ = rank &&
			      ((has_new && job->state == BATCH_IN_QUEUE) || rank < last);
		last = rank > last ? rank : last;
	}
	return 0;
}

/* The jobs that have a name, in the file or at work or done. */
static size_t find_names(const struct batch_jobs *jobs, struct batch_plan_name *names)
{
	size_t used = 0;

	for (size_t i = 0; i < jobs->count; i++) {
		const struct batch_job *job = &jobs->all[i];

		if (job->name[0] && (job->line || job->state != BATCH_NEW))
			names[used++] =
				(struct batch_plan_name){ job->name, job->number };
	}
	qsort(names, used, sizeof(*names), compare_names);
	return used;
}

/* All jobs, also those that are not in the file any more. */
static void find_keys(const struct batch_jobs *jobs, struct batch_plan_key *keys)
{
	for (size_t i = 0; i < jobs->count; i++)
		keys[i] =
			(struct batch_plan_key){ jobs->all[i].key, jobs->all[i].number };
	qsort(keys, jobs->count, sizeof(*keys), compare_keys);
}

int batch_plan_begin(struct batch_plan *plan, const struct batch_jobs *jobs,
	const uint64_t *order, size_t count)
{
	struct batch_plan made = { .jobs = jobs, .count = count, .once = plan->once };
	autofree struct place *places = calloc(count + 1, sizeof(*places));

	made.order = calloc(count + 1, sizeof(*made.order));
	made.names = calloc(jobs->count + 1, sizeof(*made.names));
	if (made.once)
		made.keys = calloc(jobs->count + 1, sizeof(*made.keys));
	if (!places || !made.order || !made.names || (made.once && !made.keys)) {
		batch_plan_release(&made);
		return -ENOMEM;
	}
	find_order(jobs, order, count, places);
	for (size_t i = 0; i < count; i++)
		made.order[i] = places[i].number;
	made.name_count = find_names(jobs, made.names);
	if (made.once) {
		find_keys(jobs, made.keys);
		made.key_count = jobs->count;
	}
	if (compare_orders(plan, &made, &made.is_reordered) < 0) {
		batch_plan_release(&made);
		return -ENOMEM;
	}
	batch_plan_release(plan);
	*plan = made;
	return 0;
}

void batch_plan_again(struct batch_plan *plan)
{
	plan->first = 0;
}

/* Not while a process of it has not been waited for, nor where its line could not be kept. */
static bool is_to_start(const struct batch_job *job)
{
	return job->state == BATCH_NEW && !job->pid && job->line;
}

static struct batch_job *job_at(const struct batch_plan *plan, size_t at)
{
	return batch_jobs_find(plan->jobs, plan->order[at]);
}

/* --- who waits for whom ------------------------------------------------------------ */

/* What the jobs of a name, or that of a number, mean for who comes after them. */
struct dependency {
	bool is_found;
	uint64_t pending; /* the number of one that has not ended */
	uint64_t failed;  /* the number of one that has ended, and not well */
};

static void add_job(struct dependency *found, const struct batch_job *job)
{
	found->is_found = true;
	if (job->state != BATCH_ENDED)
		found->pending = job->number;
	else if (!batch_is_finished(job) && !job->is_dropped)
		found->failed = job->number;
}

static size_t first_of_name(const struct batch_plan *plan, const char *word)
{
	size_t from = 0, to = plan->name_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(plan->names[middle].name, word) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct dependency find_dependency(
	const struct batch_plan *plan, const char *text, size_t size)
{
	struct dependency found = { .is_found = false }, gone = found;
	char word[BATCH_NAME_MAX] = "";
	struct batch_job *job;
	uint64_t number;

	if (size < sizeof(word))
		memcpy(word, text, size);
	if (parse_u64(word, UINT32_MAX, &number, NULL) == 0) {
		job = batch_jobs_find(plan->jobs, number);
		if (job)
			add_job(&found, job);
		return found;
	}
	for (size_t i = first_of_name(plan, word);
		i < plan->name_count && strcmp(plan->names[i].name, word) == 0; i++) {
		job = batch_jobs_find(plan->jobs, plan->names[i].number);
		add_job(job->line || job->state != BATCH_ENDED ? &found : &gone, job);
	}
	/* what has become of one that is not in the file any more, where no other has its name */
	if (!found.is_found)
		return gone;
	return found;
}

/*
 * Whether all in @list have ended, else @job waits for one of them, if there is one; with
 * @ret_failed, and none of them badly.
 */
static bool are_over(const struct batch_plan *plan, struct batch_job *job,
	const char *list, uint64_t *ret_failed)
{
	for (const char *at = list; at && *at;) {
		size_t size = strcspn(at, ",");
		struct dependency found = find_dependency(plan, at, size);

		if (ret_failed && found.failed) {
			*ret_failed = found.failed;
			return false;
		}
		job->waits_for = found.pending;
		if (!found.is_found || found.pending)
			return false;
		at += size + (at[size] == ',');
	}
	return true;
}

/* Whether who it was found to wait for is still at it: looked at often, so that is kept. */
static bool still_waits(const struct batch_plan *plan, const struct batch_job *job)
{
	const struct batch_job *other = batch_jobs_find(plan->jobs, job->waits_for);

	return other && other->state != BATCH_ENDED;
}

static size_t first_of_key(const struct batch_plan *plan, uint64_t key)
{
	size_t from = 0, to = plan->key_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (plan->keys[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Another job that is equal to @job and done, or else at work; NULL: none. */
static const struct batch_job *find_equal(
	const struct batch_plan *plan, const struct batch_job *job)
{
	const struct batch_job *at_work = NULL;

	for (size_t i = first_of_key(plan, job->key);
		i < plan->key_count && plan->keys[i].key == job->key; i++) {
		const struct batch_job *other =
			batch_jobs_find(plan->jobs, plan->keys[i].number);

		if (other->number == job->number)
			continue;
		if (batch_is_finished(other))
			return other;
		if (other->state == BATCH_RUNNING || other->state == BATCH_IN_QUEUE)
			at_work = other;
	}
	return at_work;
}

/* --- what is next ------------------------------------------------------------------ */

static enum batch_step step_of(
	const struct batch_plan *plan, struct batch_job *job, uint64_t *ret_other)
{
	const struct batch_attributes *asked = &job->line->attributes;
	const struct batch_job *equal;
	uint64_t failed = 0;

	if (asked->is_cancelled)
		return BATCH_STEP_CANCEL;
	if (still_waits(plan, job))
		return BATCH_STEP_WAIT;
	equal = plan->once ? find_equal(plan, job) : NULL;
	if (equal)
		return batch_is_finished(equal) ? BATCH_STEP_DROP : BATCH_STEP_WAIT;
	if (!asked->after && !asked->after_ok)
		return BATCH_STEP_START;
	if (are_over(plan, job, asked->after, NULL) &&
		are_over(plan, job, asked->after_ok, &failed))
		return BATCH_STEP_START;
	*ret_other = failed;
	return failed ? BATCH_STEP_GIVE_UP : BATCH_STEP_WAIT;
}

enum batch_step batch_plan_next(struct batch_plan *plan, bool may_start,
	struct batch_job **ret_job, uint64_t *ret_other)
{
	while (plan->first < plan->count && job_at(plan, plan->first)->state != BATCH_NEW)
		plan->first++;
	for (size_t i = plan->first; i < plan->count; i++) {
		struct batch_job *job = job_at(plan, i);
		enum batch_step step;

		if (!is_to_start(job))
			continue;
		step = step_of(plan, job, ret_other);
		if (step != BATCH_STEP_WAIT && (step != BATCH_STEP_START || may_start)) {
			*ret_job = job;
			return step;
		}
		if (!may_start)
			break; /* those that follow are looked at in their turn */
	}
	return BATCH_STEP_WAIT;
}

bool batch_plan_is_free(const struct batch_plan *plan, struct batch_job *job)
{
	uint64_t failed = 0;

	(void)are_over(plan, job, job->line->attributes.after_ok, &failed);
	return !failed;
}

struct batch_job *batch_plan_find_early(struct batch_plan *plan)
{
	bool has_gap = false;
	uint64_t last = 0, other;

	for (size_t i = 0; i < plan->count; i++) {
		struct batch_job *job = job_at(plan, i);

		if (is_to_start(job))
			has_gap =
				has_gap || step_of(plan, job, &other) == BATCH_STEP_START;
		if (job->state == BATCH_IN_QUEUE && job->is_recalled)
			has_gap = has_gap || !job->line->attributes.is_cancelled;
		if (job->state != BATCH_IN_QUEUE || job->is_recalled || !job->ticket)
			continue;
		if (has_gap || job->ticket < last)
			return job;
		last = job->ticket;
	}
	return NULL;
}

struct batch_job *batch_plan_find_stuck(const struct batch_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct batch_job *job = job_at(plan, i);

		if (is_to_start(job))
			return job;
	}
	return NULL;
}

void batch_plan_release(struct batch_plan *plan)
{
	free(plan->order);
	free(plan->names);
	free(plan->keys);
	*plan = (struct batch_plan){ .once = plan->once };
}
