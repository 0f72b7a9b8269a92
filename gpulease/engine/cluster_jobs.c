#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cluster_gres.h"
#include "cluster_jobs.h"
#include "diag.h"
#include "exitcodes.h"
#include "parse.h"
#include "slurm_ask.h"

/* The fields, in their order; what a user chose comes last. */
enum {
	JOB_ID,
	JOB_MARK,
	JOB_STATE,
	JOB_EXIT,
	JOB_UID,
	JOB_USER,
	JOB_PARTITION,
	JOB_NODES,
	JOB_GPUS,
	JOB_PER_JOB,
	JOB_PER_NODE,
	JOB_PER_SOCKET,
	JOB_PER_TASK,
	JOB_TASKS,
	JOB_PRIORITY,
	JOB_SUBMIT,
	JOB_START,
	JOB_END,
	JOB_LIMIT,
	JOB_NODE_LIST,
	JOB_ARRAY,
	JOB_ARRAY_TASKS,
	JOB_RESTARTS,
	JOB_AFTER,
	JOB_REASON,
	JOB_NAME,
	JOB_COMMENT,
	JOB_COMMAND,
	JOB_FIELDS,
};

/* Old names only: they are the same in all versions. */
static const char *const names[JOB_FIELDS] = {
	[JOB_ID] = "JobID",
	[JOB_STATE] = "State",
	[JOB_EXIT] = "exit_code",
	[JOB_UID] = "UserID",
	[JOB_USER] = "UserName",
	[JOB_PARTITION] = "Partition",
	[JOB_NODES] = "NumNodes",
	[JOB_GPUS] = "tres-alloc",
	[JOB_PER_JOB] = "tres-per-job",
	[JOB_PER_NODE] = "tres-per-node",
	[JOB_PER_SOCKET] = "tres-per-socket",
	[JOB_PER_TASK] = "tres-per-task",
	[JOB_TASKS] = "NumTasks",
	[JOB_PRIORITY] = "PriorityLong",
	[JOB_SUBMIT] = "SubmitTime",
	[JOB_START] = "StartTime",
	[JOB_END] = "EndTime",
	[JOB_LIMIT] = "TimeLimit",
	[JOB_NODE_LIST] = "NodeList",
	[JOB_ARRAY] = "ArrayJobID",
	[JOB_ARRAY_TASKS] = "ArrayTaskID",
	[JOB_RESTARTS] = "RestartCnt",
	[JOB_AFTER] = "Dependency",
	[JOB_REASON] = "Reason",
	[JOB_NAME] = "Name",
	[JOB_COMMENT] = "Comment",
	[JOB_COMMAND] = "Command",
};

/* A time of many thousand years, whose milliseconds, and sums of them, are still numbers. */
#define SECONDS_MAX (INT64_C(1) << 40)
#define DAY_S INT64_C(86400)

/* --- one job --------------------------------------------------------------------------- */

static uint64_t number_of(const char *text)
{
	return slurm_number(text, UINT64_MAX);
}

/* Reads seconds since 1970; 0 for any other text, such as N/A, and for a time that cannot be. */
static int64_t time_of(const char *text)
{
	return (int64_t)slurm_number(text, SECONDS_MAX);
}

/*
 * Reads [DAYS-][[HOURS:]MINUTES:]SECONDS.  Returns seconds; 0: no limit.  Slurm can give a job
 * without a limit one of a year when it starts.
 */
static int64_t limit_of(const char *text)
{
	int64_t days = 0, seconds = 0, part = 0;

	for (; *text; text++) {
		if (is_digit(*text)) {
			part = min_i64(part * 10 + (*text - '0'), SECONDS_MAX);
		} else if (*text == '-') {
			days = part;
			part = 0;
		} else if (*text == ':') {
			seconds = min_i64((seconds + part) * 60, SECONDS_MAX);
			part = 0;
		} else {
			return 0; /* UNLIMITED, NOT_SET, Partition_Limit */
		}
	}
	seconds += days * DAY_S + part;
	return seconds < 365 * DAY_S ? seconds : 0;
}

static void text_of(char *out, size_t size, const char *field)
{
	bool is_none = strcmp(field, "(null)") == 0 || strcmp(field, "N/A") == 0;

	text_copy(out, size, is_none ? "" : field);
}

/* Returns how many GPUs, or shards, the job has; if that is not known, how many it asks for. */
static unsigned count_of(char **fields, unsigned nodes, bool of_shards)
{
	const struct {
		unsigned field, times;
	} wishes[] = {
		{ JOB_GPUS, 1 },
		{ JOB_PER_JOB, 1 },
		{ JOB_PER_NODE, nodes },
		{ JOB_PER_SOCKET, nodes },
		{ JOB_PER_TASK, (unsigned)number_of(fields[JOB_TASKS]) },
	};
	unsigned count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wishes) && !count; i++)
		count = gres_count(fields[wishes[i].field], of_shards) *
			(wishes[i].times ? wishes[i].times : 1);
	return count;
}

/* Counts the tasks in "3-9:2,12%1", of which Slurm cuts a long one with "...". */
static unsigned count_tasks(const char *text)
{
	uint64_t count = 0, part[3] = { 0, 0, 1 };
	unsigned at = 0;

	for (;; text++) {
		if (is_digit(*text)) {
			part[at] = (at == 2 && part[2] == 1 ? 0 : part[at]) * 10 +
				   (uint64_t)(*text - '0');
			part[at] = part[at] < UINT32_MAX ? part[at] : UINT32_MAX;
		} else if ((*text == '-' || *text == ':') && at < 2) {
			at++;
			part[1] = at == 1 ? 0 : part[1];
		} else {
			if (at && part[1] > part[0] && part[2])
				count += (part[1] - part[0]) / part[2];
			count++;
			if (*text != ',')
				return count < UINT32_MAX ? (unsigned)count : UINT32_MAX;
			part[0] = part[1] = at = 0;
			part[2] = 1;
		}
	}
}

static void read_array(char **fields, struct cluster_job *job)
{
	const char *tasks = fields[JOB_ARRAY_TASKS];

	if (!is_digit(*tasks))
		return;
	job->array_id = number_of(fields[JOB_ARRAY]);
	text_copy(job->task, sizeof(job->task), tasks);
	if (job->array_id == job->id && job->state->phase == SLURM_WAITS)
		job->array_tasks = count_tasks(tasks);
}

/* Adds the id at the beginning of @text to a list, unless it has no room. */
static void add_id(char *list, size_t size, const char *text)
{
	struct text all = { .at = list, .size = size, .used = strlen(list) };
	size_t digits = strspn(text, "0123456789");

	if (!digits || all.used + digits + 2 > size)
		return;
	if (all.used)
		text_add(&all, ",");
	text_add_bytes(&all, text, digits);
}

/* Reads "afterok:12:13(unfulfilled),afterany:7_*(unfulfilled)"; between them may stand `?`. */
static void read_dependency(const char *text, struct cluster_job *job)
{
	job->is_singleton = strstr(text, "singleton") != NULL;
	while (*text) {
		size_t size = strcspn(text, ",?"), name = strcspn(text, ":(,?");
		bool is_ok =
			name == strlen("afterok") && strncmp(text, "afterok", name) == 0;
		const char *end = text + size;

		if (strncmp(text, "after", 5) != 0)
			name = size;
		for (const char *at = text + name; at < end && *at == ':';) {
			at++;
			if (is_ok)
				add_id(job->after_ok, sizeof(job->after_ok), at);
			else
				add_id(job->after, sizeof(job->after), at);
			at += strcspn(at, ":,?");
		}
		text = *end ? end + 1 : end;
	}
}

/*
 * Returns the command of the job: of one of --submit it stands behind `--` among the arguments of
 * its script.
 */
static const char *command_of(char **fields)
{
	const char *command = fields[JOB_COMMAND];
	const char *end = strncmp(fields[JOB_COMMENT], "gpulease:", 9) == 0
				  ? strstr(command, " -- ")
				  : NULL;

	return end ? end + 4 : command;
}

static void read_job(char **fields, struct cluster_job *job)
{
	*job = (struct cluster_job){
		.id = number_of(fields[JOB_ID]),
		.state = slurm_state_find(fields[JOB_STATE]),
		.wait_status = (int)number_of(fields[JOB_EXIT]),
		.uid = (uint32_t)number_of(fields[JOB_UID]),
		.nodes = (unsigned)number_of(fields[JOB_NODES]),
		.priority = (int64_t)(number_of(fields[JOB_PRIORITY]) & INT64_MAX),
		.submit_s = time_of(fields[JOB_SUBMIT]),
		.start_s = time_of(fields[JOB_START]),
		.end_s = time_of(fields[JOB_END]),
		.limit_s = limit_of(fields[JOB_LIMIT]),
		.attempt = (unsigned)number_of(fields[JOB_RESTARTS]) + 1,
	};
	job->gpus = count_of(fields, job->nodes, false);
	job->shards = count_of(fields, job->nodes, true);
	if (job->state->phase == SLURM_WAITS &&
		!slurm_is_estimate(job->start_s - job->submit_s))
		job->start_s = 0;
	read_array(fields, job);
	read_dependency(fields[JOB_AFTER], job);
	text_of(job->user, sizeof(job->user), fields[JOB_USER]);
	text_of(job->partition, sizeof(job->partition), fields[JOB_PARTITION]);
	text_of(job->node_list, sizeof(job->node_list), fields[JOB_NODE_LIST]);
	text_of(job->reason, sizeof(job->reason), fields[JOB_REASON]);
	text_of(job->comment, sizeof(job->comment), fields[JOB_COMMENT]);
	text_of(job->command, sizeof(job->command), command_of(fields));
	text_of(job->name, sizeof(job->name), fields[JOB_NAME]);
}

/* --- all jobs --------------------------------------------------------------------------- */

int cluster_jobs_read(char *text, const char *mark, struct cluster_jobs *ret)
{
	char *fields[JOB_FIELDS];
	int count;

	while ((count = slurm_next_line(&text, fields, JOB_FIELDS)) >= 0) {
		struct cluster_job *list;

		/* a line feed in a name, a comment or a command cuts the line there */
		if (count <= JOB_NAME || strcmp(fields[JOB_MARK], mark) != 0 ||
			!number_of(fields[JOB_ID]))
			continue;
		list = array_grow(ret->list, sizeof(*list), ret->count, &ret->room);
		if (!list)
			return -ENOMEM;
		ret->list = list;
		read_job(fields, &list[ret->count++]);
	}
	return 0;
}

/* With one unknown id squeue fails; with several it prints those that it knows. */
static bool knows_no_id(const struct answer *answer)
{
	return strstr(answer->error, "Invalid job id") != NULL;
}

static int ask(struct slurm_words *words, struct cluster_jobs *ret)
{
	struct slurm_mark mark = slurm_mark();
	struct answer answer;
	int r;

	*ret = CLUSTER_JOBS_NONE;
	slurm_words_add_fields(words, names, JOB_FIELDS, &mark);
	r = slurm_ask(words, -1, SLURM_DEADLINE_MS, &answer);
	slurm_words_release(words);
	if (r != 0)
		return r;
	if (answer.text && cluster_jobs_read(answer.text, mark.text, ret) < 0) {
		diag("%s", strerror(ENOMEM));
		r = EXIT_MISUSE;
	} else if (answer.status != 0 && !ret->count && !knows_no_id(&answer)) {
		diag("squeue has failed with status %d%s%s", answer.status,
			answer.error[0] ? ": " : "", answer.error);
		r = EXIT_MISUSE;
	}
	answer_release(&answer);
	if (r != 0)
		cluster_jobs_release(ret);
	return r;
}

int cluster_jobs_ask(const char *ids, struct cluster_jobs *ret)
{
	struct slurm_words words = { .count = 0 };

	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "--all");
	slurm_words_add(&words, "--states=all");
	if (ids)
		slurm_words_addf(&words, "--jobs=%s", ids);
	return ask(&words, ret);
}

int cluster_jobs_ask_live(struct cluster_jobs *ret)
{
	struct slurm_words words = { .count = 0 };

	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "--all");
	slurm_words_add(&words, "--sort=-p,i");
	return ask(&words, ret);
}

const struct cluster_job *cluster_jobs_find(const struct cluster_jobs *jobs, uint64_t id)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].id == id)
			return &jobs->list[i];
	return NULL;
}

void cluster_jobs_release(struct cluster_jobs *jobs)
{
	free(jobs->list);
	*jobs = CLUSTER_JOBS_NONE;
}
