#include <errno.h>
#include <strings.h>

#include "array.h"
#include "array_list.h"
#include "parse.h"
#include "slurm_jobs.h"
#include "words.h"

const struct slurm_state_name slurm_states[] = {
	[SLURM_PENDING] = { "PENDING", "PD", "waiting" },
	[SLURM_RUNNING] = { "RUNNING", "R", "running" },
	[SLURM_COMPLETING] = { "COMPLETING", "CG", "lingering" },
	[SLURM_COMPLETED] = { "COMPLETED", "CD", "finished" },
	[SLURM_CANCELLED] = { "CANCELLED", "CA", "cancelled" },
	[SLURM_FAILED] = { "FAILED", "F", "failed" },
	[SLURM_TIMEOUT] = { "TIMEOUT", "TO", "timed-out" },
	[SLURM_PREEMPTED] = { "PREEMPTED", "PR", "preempted" },
	[SLURM_OUT_OF_MEMORY] = { "OUT_OF_MEMORY", "OOM", "oom" },
	[SLURM_NODE_FAIL] = { "NODE_FAIL", "NF", "lost" },
	{ "SUSPENDED", "S", NULL },
	{ "BOOT_FAIL", "BF", NULL },
	{ "DEADLINE", "DL", NULL },
	{ "CONFIGURING", "CF", NULL },
	{ "RESIZING", "RS", NULL },
	{ "RESV_DEL_HOLD", "RD", NULL },
	{ "REQUEUED", "RQ", NULL },
	{ "REQUEUE_FED", "RF", NULL },
	{ "REQUEUE_HOLD", "RH", NULL },
	{ "REVOKED", "RV", NULL },
	{ "SIGNALING", "SI", NULL },
	{ "SPECIAL_EXIT", "SE", NULL },
	{ "STAGE_OUT", "SO", NULL },
	{ "STOPPED", "ST", NULL },
	{ .name = NULL },
};

int slurm_state_find(const char *text, size_t size)
{
	for (int i = 0; slurm_states[i].name; i++) {
		const char *names[] = { slurm_states[i].name, slurm_states[i].letters };

		for (size_t each = 0; each < ARRAY_SIZE(names); each++)
			if (strlen(names[each]) == size &&
				strncasecmp(text, names[each], size) == 0)
				return i;
	}
	return -1;
}

/* --- members ------------------------------------------------------------------------- */

enum member_kind { NUMBER, NUMBER_OR_COUNT, TRUTH, TEXT, STATE };

struct member {
	const char *key;
	enum member_kind kind;
	size_t offset, size;
};

#define AT(field) offsetof(struct slurm_job, field)
#define TEXT_AT(field) TEXT, AT(field), sizeof(((struct slurm_job *)NULL)->field)

/* Of an entry of leases, of queue, of the jobs of --status ID, and of a line of the history. */
static const struct member members[] = {
	{ "ticket", NUMBER, AT(id), 0 },
	{ "state", STATE, 0, 0 },
	{ "name", TEXT_AT(name) },
	{ "user", TEXT_AT(user) },
	{ "command", TEXT_AT(command) },
	{ "log", TEXT_AT(log) },
	{ "reason_kind", TEXT_AT(reason) },
	{ "gpus", NUMBER_OR_COUNT, AT(gpus), 0 },
	{ "gpu_count", NUMBER, AT(gpus), 0 },
	{ "priority", NUMBER, AT(priority), 0 },
	{ "status", NUMBER, AT(status), 0 },
	{ "age_ms", NUMBER, AT(ran_ms), 0 },
	{ "ran_at_least_ms", NUMBER, AT(ran_ms), 0 },
	{ "limit_ms", NUMBER, AT(limit_ms), 0 },
	{ "since_unix_ms", NUMBER, AT(submitted_ms), 0 },
	{ "started_unix_ms", NUMBER, AT(started_ms), 0 },
	{ "gone_unix_ms", NUMBER, AT(ended_ms), 0 },
	{ "start_at_unix_ms", NUMBER, AT(starts_ms), 0 },
	{ "held_by", NUMBER, AT(held_by), 0 },
	{ "lingering", TRUTH, AT(is_lingering), 0 },
	{ "stopped", TRUTH, AT(is_stopped), 0 },
};

static bool has_key(const struct json_value *key, const char *name)
{
	return key->size == strlen(name) && memcmp(key->at, name, key->size) == 0;
}

static int64_t count_elements(const struct json_value *array)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value element;
	int64_t count = 0;

	while (json_element(&walk, &element) == JSON_MEMBER)
		count++;
	return count;
}

static void read_state(const struct json_value *value, struct slurm_job *job)
{
	for (int i = 0; i < SLURM_STATES; i++)
		if (has_key(value, slurm_states[i].word))
			job->state = (enum slurm_state)i;
}

static void read_member(const struct member *member, const struct json_value *value,
	struct slurm_job *job)
{
	char *at = (char *)job + member->offset;
	struct text text;

	if (member->kind == NUMBER_OR_COUNT && value->kind == JSON_NESTED)
		*(int64_t *)(void *)at = count_elements(value);
	else if (member->kind <= NUMBER_OR_COUNT && value->kind == JSON_NUMBER)
		(void)!json_read_signed(
			value, INT64_MIN, INT64_MAX, (int64_t *)(void *)at);
	else if (member->kind == TRUTH && value->kind == JSON_BOOL)
		*(bool *)at = *value->at == 't';
	else if (member->kind == STATE && value->kind == JSON_STRING)
		read_state(value, job);
	else if (member->kind == TEXT && value->kind == JSON_STRING) {
		text = text_on(at, member->size);
		json_unescape(value, &text);
	}
}

static int read_job(const struct json_value *object, struct slurm_job *job);

/* Reads what stands inside a job of --status ID: its last end, or what it has now. */
static int read_inner(const struct json_value *key, const struct json_value *value,
	struct slurm_job *job)
{
	struct json_walk walk = JSON_WALK(value->at, value->size);
	struct json_value element, last = { .size = 0 };
	int r;

	if (value->kind != JSON_NESTED)
		return 0;
	if (has_key(key, "waiting") || has_key(key, "running"))
		return read_job(value, job);
	if (!has_key(key, "ended") || is_slurm_job_live(job))
		return 0;
	while ((r = json_element(&walk, &element)) == JSON_MEMBER)
		last = element;
	return r == 0 && last.size ? read_job(&last, job) : r;
}

/* Reads the members of @object over what @job has. */
static int read_job(const struct json_value *object, struct slurm_job *job)
{
	struct json_walk walk = JSON_WALK(object->at, object->size);
	struct json_value key, value;
	int r;

	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER) {
		r = read_inner(&key, &value, job);
		if (r < 0)
			return r;
		for (size_t i = 0; i < ARRAY_SIZE(members); i++)
			if (has_key(&key, members[i].key))
				read_member(&members[i], &value, job);
	}
	return r;
}

/* --- jobs ---------------------------------------------------------------------------- */

/* A job without a name has that of its command, as srun and sbatch name jobs. */
static void set_name(struct slurm_job *job)
{
	const char *at = job->command;
	char word[sizeof(job->command)];
	struct text text = TEXT_ON(word);

	if (job->name[0])
		return;
	(void)words_take(&at, &text);
	text_copy(job->name, sizeof(job->name), text.used ? text_base_name(word) : "-");
}

static int add_job(
	struct slurm_jobs *jobs, const struct json_value *object, enum slurm_state state)
{
	struct slurm_job job = { .id = -1,
		.gpus = -1,
		.status = -1,
		.ran_ms = -1,
		.limit_ms = -1,
		.submitted_ms = -1,
		.started_ms = -1,
		.ended_ms = -1,
		.starts_ms = -1,
		.held_by = -1,
		.array = -1,
		.task = -1,
		.state = state,
		.place = jobs->count };
	struct slurm_job *list, *before = NULL;
	int r = read_job(object, &job);

	if (r < 0 || job.id < 0)
		return r;
	if (job.is_lingering)
		job.state = SLURM_COMPLETING;
	set_name(&job);
	if (state != SLURM_PENDING) /* a queue is long, and has each job once */
		before = slurm_jobs_find(jobs, job.id);
	if (before) {
		if (!is_slurm_job_live(before))
			*before = job;
		return 0;
	}
	list = array_grow(jobs->list, sizeof(*list), jobs->count, &jobs->room);
	if (!list)
		return -ENOMEM;
	jobs->list = list;
	jobs->list[jobs->count++] = job;
	return 0;
}

/* Adds the jobs in an array. */
static int add_jobs(
	struct slurm_jobs *jobs, const struct json_value *array, enum slurm_state state)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value element;
	int r;

	while ((r = json_element(&walk, &element)) == JSON_MEMBER) {
		r = add_job(jobs, &element, state);
		if (r < 0)
			break;
	}
	return r;
}

/* Adds the job of a lease on a GPU, or counts the GPU if the job is there. */
static int add_lease(struct slurm_jobs *jobs, const struct json_value *lease)
{
	struct json_walk walk = JSON_WALK(lease->at, lease->size);
	struct json_value key, value;
	struct slurm_job *job;
	int64_t id = -1;
	int r;

	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER)
		if (has_key(&key, "ticket") &&
			json_read_signed(&value, 0, INT64_MAX, &id) < 0)
			return -EINVAL;
	if (r < 0)
		return r;
	job = slurm_jobs_find(jobs, id);
	if (!job)
		r = add_job(jobs, lease, SLURM_RUNNING);
	job = slurm_jobs_find(jobs, id);
	if (job)
		job->gpus = job->gpus < 0 ? 1 : job->gpus + 1;
	return r;
}

/* Adds the jobs of the leases of the GPUs in an array. */
static int add_gpus(struct slurm_jobs *jobs, const struct json_value *array)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value gpu, key, value, lease;
	int r;

	while ((r = json_element(&walk, &gpu)) == JSON_MEMBER) {
		struct json_walk inner = JSON_WALK(gpu.at, gpu.size);

		while ((r = json_next(&inner, &key, &value)) == JSON_MEMBER) {
			struct json_walk leases = JSON_WALK(value.at, value.size);

			if (!has_key(&key, "leases"))
				continue;
			while ((r = json_element(&leases, &lease)) == JSON_MEMBER)
				if ((r = add_lease(jobs, &lease)) < 0)
					return r;
			if (r < 0)
				return r;
		}
		if (r < 0)
			return r;
	}
	return r;
}

/* Slurm names a node by its host up to the first dot. */
static void read_host(const struct json_value *value, struct slurm_jobs *jobs)
{
	struct text host = TEXT_ON(jobs->host);

	if (value->kind == JSON_STRING)
		json_unescape(value, &host);
	jobs->host[strcspn(jobs->host, ".")] = '\0';
}

/* Reads a member of the whole object. */
static int read_top(const struct json_value *key, const struct json_value *value,
	struct slurm_jobs *jobs)
{
	if (has_key(key, "taken_unix_ms"))
		return json_read_signed(value, 0, INT64_MAX, &jobs->now_ms);
	if (has_key(key, "queue_is_cut"))
		jobs->is_cut = *value->at == 't';
	else if (has_key(key, "host"))
		read_host(value, jobs);
	else if (has_key(key, "gpus"))
		return add_gpus(jobs, value);
	else if (has_key(key, "queue"))
		return add_jobs(jobs, value, SLURM_PENDING);
	else if (has_key(key, "running_without_gpus"))
		return add_jobs(jobs, value, SLURM_RUNNING);
	else if (has_key(key, "jobs"))
		return add_jobs(jobs, value, SLURM_COMPLETED);
	return 0;
}

/* Whether @text is N_i, two numbers; sets them. */
static bool is_task_name(const char *text, int64_t *ret_array, int64_t *ret_task)
{
	size_t size = strcspn(text, "_");
	char digits[24];
	uint64_t array, task;

	if (size >= sizeof(digits) || !text[size])
		return false;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)size, text);
	if (parse_u64(digits, INT64_MAX, &array, NULL) < 0 ||
		parse_u64(text + size + 1, INT64_MAX, &task, NULL) < 0)
		return false;
	*ret_array = (int64_t)array;
	*ret_task = (int64_t)task;
	return true;
}

/* Finds the tasks of arrays, and gives them the names of the arrays. */
static void find_tasks(struct slurm_jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		struct slurm_job *job = &jobs->list[i];
		const struct slurm_job *whole;
		int64_t array, task;

		if (!is_task_name(job->name, &array, &task))
			continue;
		whole = slurm_jobs_find(jobs, array);
		if (!whole || whole->gpus > 0 || whole->state == SLURM_PENDING ||
			strcmp(whole->user, job->user) != 0)
			continue;
		job->array = array;
		job->task = task;
		text_copy(job->name, sizeof(job->name), whole->name);
	}
}

/* Whether the @size bytes at @text are N_[LIST] or N_*, and mean the task. */
static bool is_in_task_list(const struct slurm_job *job, const char *text, size_t size)
{
	struct array_list list;
	char all[32];
	uint64_t array;

	if (job->array < 0)
		return false;
	(void)snprintf(all, sizeof(all), "%lld_*", (long long)job->array);
	if (strlen(all) == size && memcmp(all, text, size) == 0)
		return true;
	return array_list_read_id(text, size, &array, &list) &&
	       (int64_t)array == job->array &&
	       array_list_find(&list, (unsigned)job->task) >= 0;
}

bool is_slurm_job_named(const struct slurm_job *job, const char *text, size_t size)
{
	char id[24], task[48] = "", array[24] = "";

	(void)snprintf(id, sizeof(id), "%lld", (long long)job->id);
	if (job->array >= 0) {
		(void)snprintf(array, sizeof(array), "%lld", (long long)job->array);
		(void)snprintf(
			task, sizeof(task), "%s_%lld", array, (long long)job->task);
	}
	for (const char *const *each = (const char *const[]){ id, array, task, NULL };
		*each; each++)
		if (**each && strlen(*each) == size && memcmp(*each, text, size) == 0)
			return true;
	return is_in_task_list(job, text, size);
}

int slurm_jobs_read(const char *text, size_t size, struct slurm_jobs *jobs)
{
	struct json_walk walk = JSON_WALK(text, size);
	struct json_value key, value;
	int r;

	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER) {
		r = read_top(&key, &value, jobs);
		if (r < 0)
			return r;
	}
	find_tasks(jobs);
	return r;
}

void slurm_jobs_release(struct slurm_jobs *jobs)
{
	free(jobs->list);
	*jobs = (struct slurm_jobs){ .count = 0 };
}

static int compare(const void *left, const void *right)
{
	const struct slurm_job *a = left, *b = right;

	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	if (a->state == SLURM_PENDING && a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

void slurm_jobs_sort(struct slurm_jobs *jobs)
{
	if (jobs->count)
		qsort(jobs->list, jobs->count, sizeof(*jobs->list), compare);
}

struct slurm_job *slurm_jobs_find(const struct slurm_jobs *jobs, int64_t id)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].id == id)
			return &jobs->list[i];
	return NULL;
}

bool is_slurm_job_live(const struct slurm_job *job)
{
	return job->state <= SLURM_COMPLETING;
}

bool is_slurm_job_known(const struct slurm_jobs *jobs, const struct slurm_job *job)
{
	return is_slurm_job_live(job) || jobs->now_ms - job->ended_ms < SLURM_MEMORY_MS;
}

const char *slurm_job_reason(const struct slurm_job *job)
{
	static const struct {
		const char *kind, *reason;
	} reasons[] = {
		{ "leased", "Resources" }, { "gpu", "Resources" },
		{ "behind", "Priority" }, { "limit", "QOSMaxGRESPerUser" },
		{ "held", "BeginTime" }, /* a later attempt does not start before it */
	};

	if (job->state != SLURM_PENDING)
		return "None";
	if (job->is_stopped)
		return "JobHeldUser";
	if (job->held_by >= 0)
		return "Dependency";
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (strcmp(job->reason, reasons[i].kind) == 0)
			return reasons[i].reason;
	return "None";
}
