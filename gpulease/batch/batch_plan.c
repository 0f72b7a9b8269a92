#include <errno.h>

#include "array.h"
#include "batch_plan.h"
#include "parse.h"

/* --- the order, names and keys ----------------------------------------------------- */

struct place {
	uint64_t number;
	int64_t priority;
	size_t at; /* in the file */
};

struct batch_plan_name {
	const char *name; /* belongs to the job */
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

/* Fills @places with the jobs, sorted in the order of starts, and forgets what they wait for. */
static void plan_sort_places(const struct batch_jobs *jobs, const uint64_t *order,
	size_t count, struct place *places)
{
	for (size_t i = 0; i < count; i++) {
		struct batch_job *job = batch_jobs_find(jobs, order[i]);

		job->waits_for = 0; /* its line may have changed */
		places[i] = (struct place){ order[i], job->line->attributes.priority, i };
	}
	qsort(places, count, sizeof(*places), compare_places);
}

/*
 * Sets *@ret_differ to whether jobs that do not run yet have another order than in @before, or a
 * new job comes before one that waits.  Only then waiting jobs have to be recalled.
 */
static int plan_compare_orders(
	const struct batch_plan *before, const struct batch_plan *plan, bool *ret_differ)
{
	autofree size_t *ranks = calloc(plan->jobs->count + 1, sizeof(*ranks));
	size_t last = 0;
	bool has_new = false;

	if (!ranks)
		return -ENOMEM;
	/* the rank of a job in the order before, from 1; 0: it was not in it */
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

/* Fills @names with the jobs that have a name and are in the file, at work or done; sorted. */
static size_t plan_sort_names(
	const struct batch_jobs *jobs, struct batch_plan_name *names)
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

/* Fills @keys with all jobs, also those that are not in the file any more; sorted. */
static void plan_sort_keys(const struct batch_jobs *jobs, struct batch_plan_key *keys)
{
	for (size_t i = 0; i < jobs->count; i++)
		keys[i] =
			(struct batch_plan_key){ jobs->all[i].key, jobs->all[i].number };
	qsort(keys, jobs->count, sizeof(*keys), compare_keys);
}

int batch_plan_begin(struct batch_plan *plan, const struct batch_jobs *jobs,
	const uint64_t *order, size_t count)
{
	/* made completely before it replaces *plan, which stays valid without memory */
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
	plan_sort_places(jobs, order, count, places);
	for (size_t i = 0; i < count; i++)
		made.order[i] = places[i].number;
	made.name_count = plan_sort_names(jobs, made.names);
	if (made.once) {
		plan_sort_keys(jobs, made.keys);
		made.key_count = jobs->count;
	}
	if (plan_compare_orders(plan, &made, &made.is_reordered) < 0) {
		batch_plan_release(&made);
		return -ENOMEM;
	}
	batch_plan_release(plan);
	*plan = made;
	return 0;
}

void batch_plan_rescan(struct batch_plan *plan)
{
	plan->first = 0;
}

/* Whether @job is new, its process of before has been reaped, and the file has its line. */
static bool is_job_startable(const struct batch_job *job)
{
	return job->state == BATCH_NEW && !job->pid && job->line;
}

static struct batch_job *plan_job_at(const struct batch_plan *plan, size_t at)
{
	return batch_jobs_find(plan->jobs, plan->order[at]);
}

/* --- what a job comes after -------------------------------------------------------- */

/* What an item of `after`, a name or a number, means for the job that comes after it. */
struct dependency {
	bool is_found;
	uint64_t pending; /* the number of one that has not ended */
	uint64_t failed;  /* the number of one that has ended and is not finished */
};

static void dependency_add_job(struct dependency *found, const struct batch_job *job)
{
	found->is_found = true;
	if (job->state != BATCH_ENDED)
		found->pending = job->number;
	else if (!batch_is_finished(job) && !job->is_dropped)
		found->failed = job->number;
}

static bool has_lower_name(const void *item, const void *name)
{
	return strcmp(((const struct batch_plan_name *)item)->name, name) < 0;
}

static size_t plan_first_of_name(const struct batch_plan *plan, const char *word)
{
	return array_lower_bound(plan->names, sizeof(*plan->names), plan->name_count,
		word, has_lower_name);
}

/* Looks up one item of `after`: the job with that number, or all jobs with that name. */
static struct dependency plan_find_dependency(
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
			dependency_add_job(&found, job);
		return found;
	}
	for (size_t i = plan_first_of_name(plan, word);
		i < plan->name_count && strcmp(plan->names[i].name, word) == 0; i++) {
		job = batch_jobs_find(plan->jobs, plan->names[i].number);
		dependency_add_job(
			job->line || job->state != BATCH_ENDED ? &found : &gone, job);
	}
	/* ended jobs that are no longer in the file count only if no other job has the name */
	if (!found.is_found)
		return gone;
	return found;
}

/*
 * Whether all jobs in @list exist and have ended; with @ret_failed, also whether none of them has
 * failed.  If not, sets ->waits_for of @job to an unfinished one (0: it does not exist), or
 * *@ret_failed to a failed one.
 */
static bool have_all_ended(const struct batch_plan *plan, struct batch_job *job,
	const char *list, uint64_t *ret_failed)
{
	for (const char *at = list; at && *at;) {
		size_t size = strcspn(at, ",");
		struct dependency found = plan_find_dependency(plan, at, size);

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

/* Whether its blocker is still unfinished; cached, because this is checked often. */
static bool is_blocker_unfinished(
	const struct batch_plan *plan, const struct batch_job *job)
{
	const struct batch_job *other = batch_jobs_find(plan->jobs, job->waits_for);

	return other && other->state != BATCH_ENDED;
}

static bool has_lower_key(const void *item, const void *key)
{
	return ((const struct batch_plan_key *)item)->key < *(const uint64_t *)key;
}

static size_t plan_first_of_key(const struct batch_plan *plan, uint64_t key)
{
	return array_lower_bound(
		plan->keys, sizeof(*plan->keys), plan->key_count, &key, has_lower_key);
}

/* Whether both run in one environment, as far as it is known. */
static bool is_same_environment(const struct batch_job *a, const struct batch_job *b)
{
	return !a->environment || !b->environment || a->environment == b->environment;
}

/*
 * Returns another job with the key and the environment of @job that is finished, or else one at
 * work, or NULL.
 */
static const struct batch_job *plan_find_equal(
	const struct batch_plan *plan, const struct batch_job *job)
{
	const struct batch_job *at_work = NULL;

	for (size_t i = plan_first_of_key(plan, job->key);
		i < plan->key_count && plan->keys[i].key == job->key; i++) {
		const struct batch_job *other =
			batch_jobs_find(plan->jobs, plan->keys[i].number);

		if (other->number == job->number || !is_same_environment(other, job))
			continue;
		if (batch_is_finished(other))
			return other;
		if (other->state == BATCH_RUNNING || other->state == BATCH_IN_QUEUE)
			at_work = other;
	}
	return at_work;
}

/* --- the next step ----------------------------------------------------------------- */

/* Returns what to do with the new job @job, regardless of room in the queue. */
static enum batch_step plan_step_of(
	const struct batch_plan *plan, struct batch_job *job, uint64_t *ret_other)
{
	const struct batch_attributes *asked = &job->line->attributes;
	const struct batch_job *equal;
	uint64_t failed = 0;

	if (asked->is_cancelled)
		return BATCH_STEP_CANCEL;
	if (is_blocker_unfinished(plan, job))
		return BATCH_STEP_WAIT;
	equal = plan->once ? plan_find_equal(plan, job) : NULL;
	if (equal)
		return batch_is_finished(equal) ? BATCH_STEP_DROP : BATCH_STEP_WAIT;
	if (!asked->after && !asked->after_ok)
		return BATCH_STEP_START;
	if (have_all_ended(plan, job, asked->after, NULL) &&
		have_all_ended(plan, job, asked->after_ok, &failed))
		return BATCH_STEP_START;
	*ret_other = failed;
	return failed ? BATCH_STEP_GIVE_UP : BATCH_STEP_WAIT;
}

enum batch_step batch_plan_next(struct batch_plan *plan, bool may_start,
	struct batch_job **ret_job, uint64_t *ret_other)
{
	while (plan->first < plan->count &&
		plan_job_at(plan, plan->first)->state != BATCH_NEW)
		plan->first++;
	for (size_t i = plan->first; i < plan->count; i++) {
		struct batch_job *job = plan_job_at(plan, i);
		enum batch_step step;

		if (!is_job_startable(job))
			continue;
		step = plan_step_of(plan, job, ret_other);
		if (step != BATCH_STEP_WAIT && (step != BATCH_STEP_START || may_start)) {
			*ret_job = job;
			return step;
		}
		if (!may_start)
			break; /* no job can start now, so leave the others for later */
	}
	return BATCH_STEP_WAIT;
}

bool batch_plan_is_unblocked(const struct batch_plan *plan, struct batch_job *job)
{
	uint64_t failed = 0;

	(void)have_all_ended(plan, job, job->line->attributes.after_ok, &failed);
	return !failed;
}

/*
 * Walks the jobs in the order of starts.  A gap is a job that is about to get a new ticket, which
 * will be the highest: all waiting jobs after a gap are too early.  So is a waiting job with a
 * lower ticket than a job before it.
 */
struct batch_job *batch_plan_find_early(struct batch_plan *plan)
{
	bool has_gap = false;
	uint64_t last = 0, other;

	for (size_t i = 0; i < plan->count; i++) {
		struct batch_job *job = plan_job_at(plan, i);

		if (is_job_startable(job))
			has_gap = has_gap ||
				  plan_step_of(plan, job, &other) == BATCH_STEP_START;
		if (job->state == BATCH_IN_QUEUE && job->is_recalled)
			has_gap = has_gap || !job->line->attributes.is_cancelled;
		if (job->state != BATCH_IN_QUEUE || job->is_recalled ||
			!batch_job_id(job))
			continue;
		if (has_gap || batch_job_id(job) < last)
			return job;
		last = batch_job_id(job);
	}
	return NULL;
}

struct batch_job *batch_plan_find_stuck(const struct batch_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct batch_job *job = plan_job_at(plan, i);

		if (is_job_startable(job))
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
