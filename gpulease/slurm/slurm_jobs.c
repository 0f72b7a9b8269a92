#include <errno.h>
#include <strings.h>

#include "array.h"
#include "array_list.h"
#include "json_fields.h"
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
	[SLURM_REQUEUED] = { "REQUEUED", "RQ", "requeued" },
	{ "SUSPENDED", "S", NULL },
	{ "BOOT_FAIL", "BF", NULL },
	{ "DEADLINE", "DL", NULL },
	{ "CONFIGURING", "CF", NULL },
	{ "RESIZING", "RS", NULL },
	{ "RESV_DEL_HOLD", "RD", NULL },
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

static int64_t count_elements(const struct json_value *array)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value element;
	int64_t count = 0;

	while (json_element(&walk, &element) == JSON_MEMBER)
		count++;
	return count;
}

/* A number, or in the history the list of them. */
static int read_gpus(const struct json_value *value, void *record)
{
	struct slurm_job *job = record;

	if (value->kind == JSON_NESTED)
		job->gpus = count_elements(value);
	else if (value->kind == JSON_NUMBER)
		(void)!json_read_signed(value, INT64_MIN, INT64_MAX, &job->gpus);
	return 0;
}

static int read_state(const struct json_value *value, void *record)
{
	struct slurm_job *job = record;

	for (int i = 0; i < SLURM_STATES; i++)
		if (value->size == strlen(slurm_states[i].word) &&
			memcmp(value->at, slurm_states[i].word, value->size) == 0)
			job->state = (enum slurm_state)i;
	return 0;
}

static int read_name(const struct json_value *value, void *record)
{
	char exact[NAME_SIZE_MAX];
	struct slurm_job *job = record;
	struct text name = TEXT_ON(job->name), text = TEXT_ON(exact);

	if (value->kind != JSON_STRING)
		return 0;
	json_unescape(value, &name);
	job->name_is_changed =
		json_decode(value, &text) < 0 || strcmp(exact, job->name) != 0;
	return 0;
}

static int read_attempt(const struct json_value *value, void *job);
static int read_last_end(const struct json_value *value, void *job);

#define ROW(kind, field, key)                                         \
	{                                                             \
		key, kind, offsetof(struct slurm_job, field), 0, NULL \
	}
#define TEXT_ROW(field, key)                                         \
	{                                                            \
		key, FIELD_TEXT, offsetof(struct slurm_job, field),  \
			sizeof(((struct slurm_job *)0)->field), NULL \
	}
#define WHOLE(key, reader)                     \
	{                                      \
		key, FIELD_WHOLE, 0, 0, reader \
	}
#define END                                  \
	{                                    \
		NULL, FIELD_TEXT, 0, 0, NULL \
	}

/* clang-format off */
/* Of an entry of leases, of queue, of the jobs of --status ID, and of a line of the history. */
static const struct json_field job_fields[] = {
	ROW(FIELD_NUMBER, id, "ticket"),
	WHOLE("state", read_state),
	WHOLE("name", read_name),
	ROW(FIELD_BOOL, name_is_cut, "name_is_cut"),
	TEXT_ROW(user, "user"),
	TEXT_ROW(command, "command"),
	TEXT_ROW(log, "log"),
	TEXT_ROW(reason, "reason_kind"),
	WHOLE("gpus", read_gpus),
	ROW(FIELD_NUMBER, gpus, "gpu_count"),
	ROW(FIELD_NUMBER, priority, "priority"),
	ROW(FIELD_NUMBER, attempt, "attempt"),
	ROW(FIELD_NUMBER, status, "status"),
	ROW(FIELD_NUMBER, ran_ms, "age_ms"),
	ROW(FIELD_NUMBER, ran_ms, "ran_at_least_ms"),
	ROW(FIELD_NUMBER, limit_ms, "limit_ms"),
	ROW(FIELD_NUMBER, submitted_ms, "since_unix_ms"),
	ROW(FIELD_NUMBER, started_ms, "started_unix_ms"),
	ROW(FIELD_NUMBER, ended_ms, "gone_unix_ms"),
	ROW(FIELD_NUMBER, starts_ms, "start_at_unix_ms"),
	ROW(FIELD_NUMBER, held_by, "held_by"),
	ROW(FIELD_BOOL, is_lingering, "lingering"),
	ROW(FIELD_BOOL, is_stopped, "stopped"),
	ROW(FIELD_BOOL, is_on_hold, "on_hold"),
	WHOLE("waiting", read_attempt),
	WHOLE("running", read_attempt),
	WHOLE("ended", read_last_end),
	END
};
/* clang-format on */

/* Reads the attempt of a job of --status ID that waits or runs. */
static int read_attempt(const struct json_value *value, void *job)
{
	return value->kind == JSON_NESTED ? json_fields_read(job_fields, value, job) : 0;
}

/* Reads the last end of a job of --status ID that neither waits nor runs. */
static int read_last_end(const struct json_value *value, void *job)
{
	struct json_walk walk = JSON_WALK(value->at, value->size);
	struct json_value element, last = { .size = 0 };
	int r;

	if (value->kind != JSON_NESTED || is_slurm_job_live(job))
		return 0;
	while ((r = json_element(&walk, &element)) == JSON_MEMBER)
		last = element;
	return r == 0 && last.size ? json_fields_read(job_fields, &last, job) : r;
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
	int r = json_fields_read(job_fields, object, &job);

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

static int add_waiting(const struct json_value *object, void *jobs)
{
	return add_job(jobs, object, SLURM_PENDING);
}

static int add_running(const struct json_value *object, void *jobs)
{
	return add_job(jobs, object, SLURM_RUNNING);
}

static int add_ended(const struct json_value *object, void *jobs)
{
	return add_job(jobs, object, SLURM_COMPLETED);
}

/* Adds the job of a lease on a GPU, or counts the GPU if the job is there. */
static int add_lease(const struct json_value *lease, void *record)
{
	static const struct json_field fields[] = {
		{ "ticket", FIELD_NUMBER, 0, 0, NULL },
		END,
	};
	struct slurm_jobs *jobs = record;
	struct slurm_job *job;
	int64_t id = -1;
	int r = json_fields_read(fields, lease, &id);

	if (r == 0 && !slurm_jobs_find(jobs, id))
		r = add_job(jobs, lease, SLURM_RUNNING);
	job = slurm_jobs_find(jobs, id);
	if (job)
		job->gpus = job->gpus < 0 ? 1 : job->gpus + 1;
	return r;
}

static int add_gpu(const struct json_value *gpu, void *jobs)
{
	static const struct json_field fields[] = {
		{ "leases", FIELD_EACH, 0, 0, add_lease },
		END,
	};

	return json_fields_read(fields, gpu, jobs);
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

void slurm_job_take_name(struct slurm_job *task, const struct slurm_job *array)
{
	text_copy(task->name, sizeof(task->name), array->name);
	task->name_is_cut = array->name_is_cut;
	task->name_is_changed = array->name_is_changed;
}

enum slurm_name slurm_job_compare_name(
	const struct slurm_job *job, const char *name, size_t size)
{
	size_t known = strlen(job->name);

	if (job->name_is_cut && known > strlen("…")) {
		known -= strlen("…");
		if (size <= known || memcmp(job->name, name, known) != 0)
			return SLURM_NAME_OTHER;
		return SLURM_NAME_UNKNOWN;
	}
	if (size != known || memcmp(job->name, name, size) != 0)
		return SLURM_NAME_OTHER;
	return job->name_is_changed ? SLURM_NAME_UNKNOWN : SLURM_NAME_SAME;
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
		slurm_job_take_name(job, whole);
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
	static const struct json_field fields[] = {
		{ "taken_unix_ms", FIELD_NUMBER, offsetof(struct slurm_jobs, now_ms), 0,
			NULL },
		{ "queue_is_cut", FIELD_BOOL, offsetof(struct slurm_jobs, is_cut), 0,
			NULL },
		{ "host", FIELD_TEXT, offsetof(struct slurm_jobs, host),
			sizeof(jobs->host), NULL },
		{ "gpus", FIELD_EACH, 0, 0, add_gpu },
		{ "queue", FIELD_EACH, 0, 0, add_waiting },
		{ "running_without_gpus", FIELD_EACH, 0, 0, add_running },
		{ "jobs", FIELD_EACH, 0, 0, add_ended },
		END,
	};
	struct json_value whole = { .kind = JSON_NESTED, .at = text, .size = size };
	int r = json_fields_read(fields, &whole, jobs);

	/* Slurm names a node by its host up to the first dot */
	jobs->host[strcspn(jobs->host, ".")] = '\0';
	if (r == 0)
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
		{ "held", "BeginTime" }, /* --begin, or a later attempt that is not due */
	};

	if (job->state != SLURM_PENDING)
		return "None";
	if (job->is_stopped || job->is_on_hold)
		return "JobHeldUser";
	if (job->held_by >= 0)
		return "Dependency";
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (strcmp(job->reason, reasons[i].kind) == 0)
			return reasons[i].reason;
	return "None";
}
