#include <string.h>

#include "exitcodes.h"
#include "poll_rows.h"
#include "slurm_ask.h"

enum {
	ROW_ID,
	ROW_STATE,
	ROW_EXIT,
	ROW_UID,
	ROW_SUBMIT,
	ROW_START,
	ROW_END,
	ROW_REASON,
	ROW_ARRAY,
	ROW_TASK,
	ROW_FIELDS,
	/* sacct has no reason, but nodes */
	ROW_NODES = ROW_REASON,
	ROW_SACCT_FIELDS = ROW_NODES + 1,
	/* slurmstepd could not open the output of the job */
	NO_OUTPUT_SIGNAL = 53,
};

/*
 * Old names only: they are the same in all versions.  None of them is a text that a user chooses,
 * which could have lines for other jobs in it.
 */
#define F(name) name ":\x1f"
const char poll_squeue_fields[] =
	F("JobID") "," F("State") "," F("exit_code") "," F("UserID") "," F("SubmitTime") "," F(
		"StartTime") "," F("EndTime") "," F("Reason") "," F("ArrayJobID") "," F("ArrayTaskID");
const char poll_sacct_fields[] = "JobIDRaw,State,ExitCode,User,Submit,Start,End,NodeList";

/* --- one job --------------------------------------------------------------------------- */

static uint64_t number_of(const char *text)
{
	return slurm_number(text, UINT64_MAX);
}

static struct polled_job *find_left(const struct engine_poll *poll, uint64_t id)
{
	for (size_t i = 0; i < poll->count; i++)
		if (poll->jobs[i].id == id && !poll->jobs[i].has_ended)
			return &poll->jobs[i];
	return NULL;
}

static bool is_named(const struct slurm_state *state, const char *name)
{
	return strcmp(state->name, name) == 0;
}

static bool has_given_up(const struct polled_job *job)
{
	return strcmp(job->reason, "DependencyNeverSatisfied") == 0;
}

/* Returns the exit status of a job that has ended, and sets ->words. */
static int status_of(struct polled_job *job)
{
	job->state = slurm_state_with_reason(job->state, job->reason);
	job->words = job->state->words;
	if (is_named(job->state, "FAILED") &&
		(job->wait_status & 127) == NO_OUTPUT_SIGNAL) {
		job->words =
			"failed: its node cannot open its log or its files; are they "
			"on a file system of all nodes?";
		return EXIT_MISUSE;
	}
	return slurm_state_status(job->state, job->wait_status);
}

/* A job that is put back into the queue has such a state for a moment. */
static bool is_doubtful(const struct slurm_state *state)
{
	static const char *const names[] = { "PREEMPTED", "NODE_FAIL", "BOOT_FAIL" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_named(state, names[i]))
			return true;
	return false;
}

static void end_job(struct engine_poll *poll, struct polled_job *job, int status)
{
	job->status = status;
	job->has_ended = true;
	poll->left--;
	poll->has_changed = true;
}

static void set_state(
	struct engine_poll *poll, struct polled_job *job, const struct slurm_state *state)
{
	poll->has_changed |= state != job->state;
	job->state = state;
}

static void set_times(struct polled_job *job, char **fields)
{
	job->submit_s = (int64_t)number_of(fields[ROW_SUBMIT]);
	job->start_s = (int64_t)number_of(fields[ROW_START]);
	job->end_s = (int64_t)number_of(fields[ROW_END]);
}

/* --- arrays ----------------------------------------------------------------------------- */

/*
 * The id of an array is that of one of its tasks, too.  A job with it has ended when all tasks
 * have, with the highest of their statuses, which squeue may forget one by one.
 */
static void note_task(struct polled_job *array, struct polled_job *task)
{
	array->array_is_seen = true;
	if (task->state->phase != SLURM_ENDED) {
		array->array_runs = true;
		return;
	}
	array->array_is_doubtful |= is_doubtful(task->state);
	array->array_status = (int)max_i64(array->array_status, status_of(task));
}

/* Reads the row of another task of the array. */
static void read_task(
	struct engine_poll *poll, struct polled_job *array, char **fields, uint32_t uid)
{
	struct polled_job task = { .state = slurm_state_find(fields[ROW_STATE]),
		.wait_status = (int)number_of(fields[ROW_EXIT]) };

	text_copy(task.reason, sizeof(task.reason), fields[ROW_REASON]);
	array->is_seen = true;
	array->gone_ms = 0;
	array->uid = (uint32_t)number_of(fields[ROW_UID]);
	array->is_foreign = array->uid != uid;
	if (task.state->phase != SLURM_ENDED || !array->state)
		set_state(poll, array, task.state);
	note_task(array, &task);
}

/* Whether a state that may be no end, since ->doubtful_ms, is one. */
static bool is_certain(struct polled_job *job, int64_t now_ms)
{
	if (!job->doubtful_ms)
		job->doubtful_ms = now_ms;
	return now_ms - job->doubtful_ms >= POLL_DOUBT_MS;
}

/* Ends the arrays whose tasks, as the answer that was just read has them, have ended. */
static void end_arrays(struct engine_poll *poll, int64_t now_ms)
{
	for (size_t i = 0; i < poll->count; i++) {
		struct polled_job *job = &poll->jobs[i];

		if (job->has_ended || !job->array_is_seen)
			continue;
		if (job->array_runs)
			job->doubtful_ms = 0;
		else if (!job->array_is_doubtful || is_certain(job, now_ms))
			end_job(poll, job, job->array_status);
	}
}

static void forget_tasks(struct engine_poll *poll)
{
	for (size_t i = 0; i < poll->count; i++)
		poll->jobs[i].array_is_seen = poll->jobs[i].array_runs =
			poll->jobs[i].array_is_doubtful = false;
}

/* --- squeue ----------------------------------------------------------------------------- */

void poll_rows_begin(struct engine_poll *poll)
{
	for (size_t i = 0; i < poll->count; i++)
		poll->jobs[i].is_seen = false;
}

/* Ends the job if its state says so, and is sure to stay. */
static void judge(struct engine_poll *poll, struct polled_job *job, int64_t now_ms)
{
	if (job->state->phase != SLURM_ENDED) {
		job->doubtful_ms = 0;
		return;
	}
	if (is_doubtful(job->state) && !is_certain(job, now_ms))
		return;
	end_job(poll, job, status_of(job));
}

/* Returns the id of the array that the row is a task of, or the tasks that wait; 0: none. */
static uint64_t array_of(char **fields)
{
	return is_digit(fields[ROW_TASK][0]) ? number_of(fields[ROW_ARRAY]) : 0;
}

static void read_row(struct engine_poll *poll, struct polled_job *job, char **fields,
	uint32_t uid, int64_t now_ms)
{
	job->is_seen = true;
	job->gone_ms = 0;
	job->uid = (uint32_t)number_of(fields[ROW_UID]);
	job->is_foreign = job->uid != uid;
	job->wait_status = (int)number_of(fields[ROW_EXIT]);
	set_times(job, fields);
	poll->has_changed |= strcmp(job->reason, fields[ROW_REASON]) != 0;
	text_copy(job->reason, sizeof(job->reason), fields[ROW_REASON]);
	set_state(poll, job, slurm_state_find(fields[ROW_STATE]));
	if (array_of(fields) == job->id)
		note_task(job, job);
	else
		judge(poll, job, now_ms);
}

void poll_rows_squeue(struct engine_poll *poll, char *text, uint32_t uid, int64_t now_ms)
{
	char *fields[ROW_FIELDS];
	int count;

	forget_tasks(poll);
	while ((count = slurm_next_line(&text, fields, ROW_FIELDS)) >= 0) {
		struct polled_job *job, *array;

		if (count < ROW_FIELDS)
			continue;
		job = find_left(poll, number_of(fields[ROW_ID]));
		if (job)
			read_row(poll, job, fields, uid, now_ms);
		array = array_of(fields) ? find_left(poll, array_of(fields)) : NULL;
		if (array && array != job)
			read_task(poll, array, fields, uid);
	}
	end_arrays(poll, now_ms);
}

/* --- sacct ------------------------------------------------------------------------------ */

/* Whether the row is of @job, and not of an earlier job with its id. */
static bool is_of_job(const struct polled_job *job, char **fields)
{
	return (int64_t)number_of(fields[ROW_SUBMIT]) >= job->submit_s;
}

void poll_rows_sacct(struct engine_poll *poll, char *text)
{
	char *fields[ROW_SACCT_FIELDS + 1];
	int count;

	/* later rows are of later jobs */
	while ((count = slurm_next_line(&text, fields, ARRAY_SIZE(fields))) >= 0) {
		struct polled_job *job;

		if (count < ROW_SACCT_FIELDS)
			continue;
		job = find_left(poll, number_of(fields[ROW_ID]));
		if (!job || !job->gone_ms || !is_of_job(job, fields) ||
			slurm_state_read_exit(fields[ROW_EXIT], &job->wait_status) < 0)
			continue;
		set_times(job, fields);
		set_state(poll, job,
			slurm_state_accounted(fields[ROW_STATE], fields[ROW_NODES]));
	}
	for (size_t i = 0; i < poll->count; i++) {
		struct polled_job *job = &poll->jobs[i];

		if (!job->has_ended && job->gone_ms && job->state &&
			job->state->phase == SLURM_ENDED)
			end_job(poll, job,
				(int)max_i64(status_of(job), job->array_status));
	}
}

void poll_rows_give_up(struct engine_poll *poll, struct polled_job *job, int record)
{
	job->is_unknown = !job->state && record < 0;
	end_job(poll, job, record < 0 && has_given_up(job) ? EXIT_GAVE_UP : record);
}

/* --- the interval ------------------------------------------------------------------------ */

int64_t poll_interval_ms(const struct engine_poll *poll, int64_t now_ms)
{
	int64_t interval_ms = POLL_MOST_MS;

	for (size_t i = 0; i < poll->count; i++) {
		const struct polled_job *job = &poll->jobs[i];
		int64_t least_ms = job->has_record ? POLL_RECORD_MS : POLL_LEAST_MS;

		/* so each question comes when the job is a third older than at the last one */
		if (!job->has_ended)
			interval_ms = min_i64(interval_ms,
				max_i64(least_ms, (now_ms - job->since_ms) / 3));
	}
	return max_i64(interval_ms, min_i64(poll->least_ms, POLL_MOST_MS));
}
