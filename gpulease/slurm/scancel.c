#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "array_record.h"
#include "exitcodes.h"
#include "parse.h"
#include "scancel.h"
#include "signals.h"
#include "slurm_message.h"
#include "slurm_operands.h"
#include "slurm_options.h"
#include "slurm_query.h"

/* Slurm's error for this is 2002, of which its exit status keeps the low byte. */
enum { EXIT_DENIED = 2002 % 256 };

#define NO_CLUSTER \
	"gpulease has nothing of that kind; name jobs by id, -n, -t, -u or --me"

/* clang-format off */
static const struct slurm_option options[] = {
	{ "account", NO_CLUSTER, "SCANCEL_ACCOUNT", SLURM_VALUE, 'A' },
	{ "batch", NULL, NULL, SLURM_NO_VALUE, 'b' },
	{ "clusters", NO_CLUSTER, NULL, SLURM_VALUE, 'M' },
	{ "ctld", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "full", NULL, NULL, SLURM_NO_VALUE, 'f' },
	{ "help", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "hurry", NULL, NULL, SLURM_NO_VALUE, 'H' },
	{ "interactive", NULL, NULL, SLURM_NO_VALUE, 'i' },
	
	{ "me", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "name", NULL, "SCANCEL_NAME", SLURM_VALUE, 'n' },
	{ "jobname", NULL, NULL, SLURM_VALUE, 'n' },
	{ "nodelist", NO_CLUSTER, NULL, SLURM_VALUE, 'w' },
	{ "partition", NO_CLUSTER, "SCANCEL_PARTITION", SLURM_VALUE, 'p' },
	{ "qos", NO_CLUSTER, "SCANCEL_QOS", SLURM_VALUE, 'q' },
	{ "quiet", NULL, NULL, SLURM_NO_VALUE, 'Q' },
	{ "reservation", NO_CLUSTER, NULL, SLURM_VALUE, 'R' },
	{ "sibling", NO_CLUSTER, NULL, SLURM_VALUE, 0 },
	{ "signal", NULL, NULL, SLURM_VALUE, 's' },
	{ "state", NULL, "SCANCEL_STATE", SLURM_VALUE, 't' },
	{ "usage", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "user", NULL, "SCANCEL_USER", SLURM_VALUE, 'u' },
	{ "verbose", NULL, NULL, SLURM_NO_VALUE, 'v' },
	{ "version", NULL, NULL, SLURM_NO_VALUE, 'V' },
	{ "wckey", NO_CLUSTER, "SCANCEL_WCKEY", SLURM_VALUE, 0 },
	{ .name = NULL },
};
/* clang-format on */

static const char USAGE[] =
	"Usage: scancel [-n name] [-u user] [--me] [-t PENDING|RUNNING] [-s signal] [-b] [-f]\n"
	"               [-i] [-Q] [-v] [id ...]\n"
	"Ends or signals jobs of gpulease; see gpulease-srun(7).";

/* What is asked for.  The ids are those on the command line, with commas between them. */
struct scancel {
	const char *values[SLURM_OPTIONS_MAX];
	char *ids;
	const char *name;
	int signal; /* to send; 0: end the jobs */
	int state;  /* of the jobs to take; -1: any */
	bool has_filter;
	struct slurm_users users, own;
	struct slurm_jobs jobs;
	int status;
};

static const char *value_of(const struct scancel *scancel, const char *name)
{
	return slurm_options_value(options, scancel->values, name);
}

/* Prints an error about a job, with -Q nothing, and keeps the exit status. */
static void refuse(struct scancel *scancel, long long id, const char *error, int status)
{
	if (!value_of(scancel, "quiet"))
		slurm_error("Kill job error on job id %lld: %s", id, error);
	if (!scancel->status)
		scancel->status = status;
}

/* --- what is asked for --------------------------------------------------------------- */

/* Joins the ids with commas. */
static int read_ids(char **words, struct scancel *scancel)
{
	size_t size = 1;
	struct text text;

	for (char **at = words; *at; at++) {
		const char *bad = slurm_find_bad_id(*at);

		if (bad || !slurm_count_ids(*at)) {
			slurm_error("Invalid job id %s", bad ? bad : *at);
			return -EINVAL;
		}
		size += strlen(*at) + 1;
	}
	scancel->ids = malloc(size);
	if (!scancel->ids)
		return -ENOMEM;
	text = text_on(scancel->ids, size);
	for (char **at = words; *at; at++) {
		text_add(&text, text.used ? "," : "");
		text_add(&text, *at);
	}
	return 0;
}

static int read_state(struct scancel *scancel)
{
	const char *value = value_of(scancel, "state");

	scancel->state = -1;
	if (!value)
		return 0;
	scancel->state = slurm_state_find(value, strlen(value));
	if (scancel->state == SLURM_PENDING || scancel->state == SLURM_RUNNING ||
		(scancel->state >= 0 &&
			strcmp(slurm_states[scancel->state].name, "SUSPENDED") == 0))
		return 0;
	slurm_line("Invalid job state specified: %s", value);
	slurm_line("Valid job states are PENDING, RUNNING, and SUSPENDED");
	return -EINVAL;
}

/* Whose jobs to take.  Without an option those of this user, unless they are named by their ids. */
static int read_user(struct scancel *scancel)
{
	const char *user = value_of(scancel, "user");

	if (slurm_users_add_own(&scancel->own) < 0)
		return -EINVAL;
	if (!user && (value_of(scancel, "me") || !*scancel->ids))
		scancel->users = scancel->own;
	if (user && slurm_users_add(user, strlen(user), &scancel->users) < 0) {
		slurm_error("Invalid user name: %s", user);
		return -EINVAL;
	}
	if (value_of(scancel, "me") &&
		!has_slurm_user(&scancel->users, scancel->own.names[0])) {
		slurm_error("--me and --user=%s are different users", user);
		return -EINVAL;
	}
	return 0;
}

static int read_signal(struct scancel *scancel)
{
	const char *value = value_of(scancel, "signal");

	if (!value)
		return 0;
	scancel->signal = signal_number(value);
	if (!scancel->signal) {
		slurm_line("Unknown job signal: %s", value);
		return -EINVAL;
	}
	/* Slurm's own way to end a job */
	if (scancel->signal == SIGKILL && !value_of(scancel, "batch"))
		scancel->signal = 0;
	return 0;
}

/* A variable for an option that is refused would otherwise select more jobs than with Slurm. */
static int refuse_variables(const struct scancel *scancel)
{
	for (size_t i = 0; options[i].name; i++)
		if (options[i].instead && scancel->values[i]) {
			slurm_error("%s: %s", options[i].variable, options[i].instead);
			return -EINVAL;
		}
	return 0;
}

static int read_all(struct scancel *scancel, char **rest)
{
	if (refuse_variables(scancel) < 0 || read_ids(rest, scancel) < 0 ||
		read_state(scancel) < 0 || read_user(scancel) < 0 ||
		read_signal(scancel) < 0)
		return -EINVAL;
	scancel->name = value_of(scancel, "name");

	scancel->has_filter = scancel->name || scancel->state >= 0 ||
			      value_of(scancel, "user") || value_of(scancel, "me");
	if (!*scancel->ids && !scancel->has_filter) {
		slurm_error("No job identification provided");
		return -EINVAL;
	}
	if (!strchr(scancel->ids, '_') || scancel->signal ||
		(!scancel->has_filter && !value_of(scancel, "interactive")))
		return 0;
	slurm_error(
		"a task of an array is named by its id alone, without -i, -n, -t, -u and "
		"--me");
	return -EINVAL;
}

/* --- which jobs ---------------------------------------------------------------------- */

/* Whether the user wants it: with -i, standard input says so.  No answer means no. */
static bool is_wanted(const struct scancel *scancel, const struct slurm_job *job)
{
	char answer[64];

	if (!value_of(scancel, "interactive"))
		return true;
	(void)printf("Cancel job_id=%lld name=%s partition=gpulease [y/n]? ",
		(long long)job->id, job->name);
	(void)fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && strcasecmp(answer, "y\n") == 0;
}

/* Opens the record of the array for which the job stands.  Whether it is one of this user. */
static bool open_array(const struct scancel *scancel, const struct slurm_job *job,
	struct array_record *ret)
{
	return has_slurm_user(&scancel->own, job->user) &&
	       array_record_open_id((uint64_t)job->id, ret) == 0;
}

/* Whether @id means the job: N means also all tasks of an array, N_[1-3] some of them. */
static bool means(const char *id, size_t size, const struct slurm_job *job)
{
	struct array_list tasks;
	uint64_t array;

	if (!is_slurm_array_id(id, size))
		return is_slurm_job_named(job, id, size);
	return array_list_read_id(id, size, &array, &tasks) && job->array >= 0 &&
	       job->array == (int64_t)array &&
	       array_list_find(&tasks, (unsigned)job->task) >= 0;
}

/* Whether the ids mean the job; without ids all are meant. */
static bool is_meant(const struct scancel *scancel, const struct slurm_job *job)
{
	const char *at = scancel->ids;
	bool is = !*at;

	for (size_t size; *at && !is; at += size + (at[size] != '\0')) {
		size = slurm_id_length(at);
		is = size && means(at, size, job);
	}
	return is;
}

/*
 * Whether the job has the state that is asked for.  A job that stands for an array gets no signal,
 * those of its tasks do that run; and it only waits, for the tasks that are not submitted yet.
 */
static bool has_state(
	const struct scancel *scancel, const struct slurm_job *job, bool is_array)
{
	if (is_array)
		return scancel->state < 0 ? !scancel->signal
					  : scancel->state == SLURM_PENDING;
	if (scancel->signal && job->array >= 0 && job->state == SLURM_PENDING)
		return false;
	return scancel->state < 0 || (int)job->state == scancel->state;
}

/* Whether the job has the name that is asked for, after a message if that is not known. */
static bool has_name(struct scancel *scancel, const struct slurm_job *job)
{
	if (!scancel->name)
		return true;
	switch (slurm_job_compare_name(job, scancel->name, strlen(scancel->name))) {
	case SLURM_NAME_SAME:
		return true;
	case SLURM_NAME_UNKNOWN:
		refuse(scancel, (long long)job->id, SLURM_NAME_TROUBLE, EXIT_NOT_DONE);
		break;
	case SLURM_NAME_OTHER:
		break;
	}
	return false;
}

static bool is_selected(
	struct scancel *scancel, const struct slurm_job *job, bool is_array)
{
	return is_slurm_job_live(job) && is_meant(scancel, job) &&
	       has_state(scancel, job, is_array) &&
	       has_slurm_user(&scancel->users, job->user) && has_name(scancel, job);
}

/* Whether this user may act on the job, after a message if not. */
static bool may_act(struct scancel *scancel, const struct slurm_job *job)
{
	if (getuid() == 0 || has_slurm_user(&scancel->own, job->user))
		return true;
	refuse(scancel, (long long)job->id, "Access/permission denied", EXIT_DENIED);
	return false;
}

/*
 * Says that the job with @id is not there.  As with Slurm that is an error only together with one
 * of these options; else -v says it.
 */
static void miss(struct scancel *scancel, int64_t id)
{
	const struct slurm_job *job = slurm_jobs_find(&scancel->jobs, id);
	bool is_error = scancel->has_filter || value_of(scancel, "signal") ||
			value_of(scancel, "batch") || value_of(scancel, "interactive");
	int status = scancel->status;

	if (is_error || value_of(scancel, "verbose"))
		refuse(scancel, (long long)id,
			job && is_slurm_job_known(&scancel->jobs, job)
				? "Job/step already completing or completed"
				: "Invalid job id specified",
			EXIT_NOT_DONE);
	if (!is_error)
		scancel->status = status;
}

/* Says which of the ids mean no job. */
static void find_missing(struct scancel *scancel)
{
	const char *at = scancel->ids;

	for (size_t size; *at; at += size + (at[size] != '\0')) {
		const struct slurm_job *job;
		char digits[24];
		uint64_t id;

		size = slurm_id_length(at);
		(void)snprintf(digits, sizeof(digits), "%.*s", (int)size, at);
		if (!size || parse_u64(digits, INT64_MAX, &id, NULL) < 0)
			continue;
		job = slurm_jobs_find(&scancel->jobs, (int64_t)id);
		if (!job || !is_slurm_job_live(job))
			miss(scancel, (int64_t)id);
	}
}

/* --- acting -------------------------------------------------------------------------- */

/* The words of one call of gpulease, and the texts that they point to. */
struct call {
	char **words;
	size_t count;
};

static int call_begin(const struct scancel *scancel, struct call *call)
{
	static char quiet[] = "-Q", cancel[] = "--cancel", yes[] = "--yes",
		    send[] = "--signal-job";

	call->words = calloc(scancel->jobs.count + slurm_count_ids(scancel->ids) + 8,
		sizeof(*call->words));
	if (!call->words)
		return -ENOMEM;
	call->count = 1; /* the first is the program */
	if (!value_of(scancel, "verbose"))
		call->words[call->count++] = quiet;
	if (!scancel->signal)
		call->words[call->count++] = yes;
	call->words[call->count++] = scancel->signal ? send : cancel;
	return 0;
}

/* Appends a word in memory that stays. */
static int call_add(struct call *call, const char *word, size_t size)
{
	char *copy = strndup(word, size);

	if (!copy)
		return -ENOMEM;
	call->words[call->count++] = copy;
	return 0;
}

/* Whether a job with one of the ids in @call still lives. */
static bool has_live(const struct call *call)
{
	struct slurm_jobs jobs = { .count = 0 };
	autofree char *ids = malloc(call->count * 24);
	struct text list;
	bool is_live;

	if (!ids)
		return true;
	list = text_on(ids, call->count * 24);
	for (size_t i = 1; i < call->count; i++)
		if (is_digit(*call->words[i]))
			text_addf(&list, "%s%s", list.used ? "," : "", call->words[i]);
	is_live = slurm_query_jobs(ids, &jobs) < 0;
	for (size_t i = 0; i < jobs.count; i++)
		is_live |= is_slurm_job_live(&jobs.list[i]);
	slurm_jobs_release(&jobs);
	return is_live;
}

/*
 * Runs the call.  A job that has ended meanwhile is no error: gpulease has failed only if one of
 * the jobs lives.
 */
static void call_run(struct scancel *scancel, struct call *call)
{
	struct slurm_answer answer;
	bool has_array = false;

	for (size_t i = 1; i < call->count; i++)
		has_array |= is_slurm_array_id(call->words[i], strlen(call->words[i]));
	call->words[call->count] = NULL;
	if (slurm_query_run(call->words, &answer) < 0) {
		scancel->status = EXIT_NOT_DONE;
		return;
	}
	if (answer.status == 0 || answer.status > EXIT_NOT_DONE || has_array ||
		has_live(call)) {
		slurm_answer_repeat(&answer);
		if (answer.status)
			scancel->status = EXIT_NOT_DONE;
	}
	slurm_answer_release(&answer);
}

/* Acts on the job with the id @id, in a call of its own if it is to get a signal. */
static int act(struct scancel *scancel, struct call *call, const char *id, size_t size)
{
	struct signal_name name;

	if (value_of(scancel, "verbose"))
		slurm_line("scancel: %s job %.*s",
			scancel->signal ? "Signalling" : "Terminating", (int)size, id);
	if (!scancel->signal)
		return call_add(call, id, size);
	if (call_begin(scancel, call) < 0 || call_add(call, id, size) < 0)
		return -ENOMEM;
	name = signal_name(scancel->signal);
	if (call_add(call, name.text, strlen(name.text)) < 0)
		return -ENOMEM;
	call_run(scancel, call);
	return 0;
}

/* Cancels the tasks of an array that are not submitted yet. */
static void cancel_open(const struct array_record *record)
{
	for (unsigned i = 0; i < record->list.count; i++)
		if (!record->tasks[i].job && !record->tasks[i].has_ended)
			(void)array_record_add(
				record, ARRAY_CANCELLED, record->list.indices[i], 0);
}

/* Whether all tasks of the array that @id means have ended, or there is no such array. */
static bool have_ended(const struct scancel *scancel, const char *id, size_t size)
{
	static struct array_record record;
	struct array_list tasks;
	bool have = true;
	uint64_t array;

	if (!array_list_read_id(id, size, &array, &tasks))
		return false;
	if (array_record_open_id(array, &record) < 0)
		return true;
	for (unsigned i = 0; i < tasks.count; i++) {
		int place = array_list_find(&record.list, tasks.indices[i]);
		const struct array_task *task = place < 0 ? NULL : &record.tasks[place];
		const struct slurm_job *job =
			task ? slurm_jobs_find(&scancel->jobs, (int64_t)task->job) : NULL;

		have = have && task &&
		       (task->has_ended ||
			       (task->job && !(job && is_slurm_job_live(job))));
	}
	close_fd(&record.fd);
	return have;
}

/* Cancels tasks of arrays, which gpulease finds itself. */
static int act_on_arrays(struct scancel *scancel, struct call *call)
{
	const char *at = scancel->ids;

	for (size_t size; *at; at += size + (at[size] != '\0')) {
		size = slurm_id_length(at);
		if (!is_slurm_array_id(at, size))
			continue;
		if (have_ended(scancel, at, size))
			miss(scancel, strtoll(at, NULL, 10));
		else if (!scancel->signal && act(scancel, call, at, size) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Acts on the job if the options select it. */
static int act_on_job(
	struct scancel *scancel, struct call *call, const struct slurm_job *job)
{
	static struct array_record record;
	bool is_array = open_array(scancel, job, &record);
	char id[24];
	int size = snprintf(id, sizeof(id), "%lld", (long long)job->id), r = 0;

	if (is_selected(scancel, job, is_array) && is_wanted(scancel, job) &&
		may_act(scancel, job)) {
		if (is_array && scancel->state >= 0)
			cancel_open(&record);
		else
			r = act(scancel, call, id, (size_t)size);
	}
	if (is_array)
		close_fd(&record.fd);
	return r;
}

static int act_on_all(struct scancel *scancel)
{
	struct call call = { .words = NULL };
	size_t fixed;

	if (call_begin(scancel, &call) < 0)
		return -ENOMEM;
	fixed = call.count;
	for (size_t i = 0; i < scancel->jobs.count; i++)
		if (act_on_job(scancel, &call, &scancel->jobs.list[i]) < 0)
			return -ENOMEM;
	if (act_on_arrays(scancel, &call) < 0)
		return -ENOMEM;
	if (!scancel->signal && call.count > fixed)
		call_run(scancel, &call);
	return 0;
}

/* Loads the jobs: those with the ids; or all, of which some may be tasks of an array. */
static int load(struct scancel *scancel)
{
	autofree char *plain = strdup(scancel->ids);
	struct text text;

	if (!plain)
		return -ENOMEM;
	if ((!*plain || scancel->signal || scancel->state >= 0 || strchr(plain, '_')) &&
		slurm_query_jobs(NULL, &scancel->jobs) < 0)
		return -EINVAL;
	if (!*plain)
		return 0;
	text = text_on(plain, strlen(plain) + 1);
	for (const char *at = scancel->ids; *at;) {
		size_t size = slurm_id_length(at);

		if (size && !is_slurm_array_id(at, size)) {
			text_add(&text, text.used ? "," : "");
			text_add_bytes(&text, at, size);
		}
		at += size + (at[size] != '\0');
	}
	return text.used ? slurm_query_jobs(plain, &scancel->jobs) : 0;
}

static int run(struct scancel *scancel)
{
	int r = load(scancel);

	if (r < 0)
		return EXIT_NOT_DONE;
	find_missing(scancel);
	if (act_on_all(scancel) < 0) {
		slurm_error("%s", strerror(ENOMEM));
		return EXIT_NOT_DONE;
	}
	return scancel->status;
}

int scancel_main(char **argv)
{
	static struct scancel scancel;
	char **rest;
	int status = EXIT_DONE;

	slurm_message_begin("scancel");
	if (slurm_options_read(options, argv, scancel.values, &rest) < 0)
		return EXIT_NOT_DONE;
	if (value_of(&scancel, "version"))
		(void)puts("gpulease " GPULEASE_VERSION);
	else if (value_of(&scancel, "help") || value_of(&scancel, "usage"))
		(void)puts(USAGE);
	else if (read_all(&scancel, rest) < 0)
		status = EXIT_NOT_DONE;
	else
		status = run(&scancel);
	return slurm_finish(status);
}
