#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "array_record.h"
#include "exitcodes.h"
#include "hostlist.h"
#include "scontrol.h"
#include "slurm_format.h"
#include "slurm_message.h"
#include "slurm_operands.h"
#include "slurm_options.h"
#include "slurm_programs.h"
#include "slurm_query.h"

/* clang-format off */
static const struct slurm_option options[] = {
	{ "all", NULL, NULL, SLURM_NO_VALUE, 'a' },
	{ "cluster", "gpulease knows only this machine; leave the option out", NULL, SLURM_VALUE, 'M' },
	{ "details", NULL, NULL, SLURM_NO_VALUE, 'd' },
	{ "future", NULL, NULL, SLURM_NO_VALUE, 'F' },
	{ "help", NULL, NULL, SLURM_NO_VALUE, 'h' },
	{ "hide", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "local", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "oneliner", NULL, NULL, SLURM_NO_VALUE, 'o' },
	{ "quiet", NULL, NULL, SLURM_NO_VALUE, 'Q' },
	{ "verbose", NULL, NULL, SLURM_NO_VALUE, 'v' },
	{ "version", NULL, NULL, SLURM_NO_VALUE, 'V' },
	{ .name = NULL },
};
/* clang-format on */

static const char USAGE[] =
	"Usage: scontrol show hostnames|hostlist [list]\n"
	"       scontrol [-o] show job [id]\n"
	"       scontrol release id...\n"
	"       scontrol requeue id...\n"
	"       scontrol update JobId=id TimeLimit=+time\n"
	"Shows hosts, shows and changes jobs of gpulease; see gpulease-srun(7).";

/* What one machine has in the place of a command of scontrol. */
static const struct {
	const char *word, *instead;
} others[] = {
	{ "cancel_reboot", "gpulease does not start machines" },
	{ "create", "gpulease is set up in gpulease.conf(5)" },
	{ "delete", "gpulease is set up in gpulease.conf(5)" },
	{ "hold",
		"a job is held from the start, by --hold; cancel it, and submit it with that" },
	{ "notify", "the output of a job is in its log; see gpulease --log" },
	{ "ping", "there is no daemon; to check the installation run gpulease --doctor" },
	{ "power", "gpulease does not start machines" },
	{ "reboot", "gpulease does not start machines" },
	{ "reconfigure", "there is no daemon; gpulease.conf(5) is read by each command" },
	{ "requeuehold", "write scontrol requeue, which runs a job again" },
	{ "resume", "write gpulease --signal-job ID CONT" },
	{ "shutdown", "there is no daemon" },
	{ "suspend", "write gpulease --signal-job ID STOP" },
	{ "top", "a job comes before others if it is submitted with --priority" },
	{ "uhold",
		"a job is held from the start, by --hold; cancel it, and submit it with that" },
	{ "wait_job", "write gpulease --wait-for ID" },
	{ "write",
		"the configuration is in gpulease.conf(5); see gpulease --show-config" },
};

static const struct {
	const char *word, *instead;
} other_entities[] = {
	{ "config", "write gpulease --show-config" },
	{ "daemons", "there is no daemon" },
	{ "node", "write gpulease --status, which shows the GPUs of this machine" },
	{ "nodes", "write gpulease --status, which shows the GPUs of this machine" },
	{ "partition",
		"one machine has no partitions; gpulease --status shows its GPUs" },
	{ "partitions",
		"one machine has no partitions; gpulease --status shows its GPUs" },
	{ "reservation",
		"gpulease --pause GPU --at WHEN keeps GPUs; --windows lists that" },
	{ "reservations",
		"gpulease --pause GPU --at WHEN keeps GPUs; --windows lists that" },
	{ "step", "gpulease lists jobs, not steps; write scontrol show job" },
	{ "steps", "gpulease lists jobs, not steps; write scontrol show job" },
};

/* --- hosts --------------------------------------------------------------------------- */

/* The list in @word or, without it, that of the job around; NULL after a message. */
static const char *list_of(const char *word)
{
	static const char *const variables[] = { "SLURM_JOB_NODELIST", "SLURM_NODELIST" };

	for (size_t i = 0; !word && i < ARRAY_SIZE(variables); i++) {
		word = getenv(variables[i]);
		if (word && !*word)
			word = NULL;
	}
	if (!word)
		slurm_error("host list is empty");
	return word;
}

static void print_host(const char *name, void *context)
{
	(void)context;
	(void)puts(name);
}

static void fold_host(const char *name, void *context)
{
	hostlist_fold(context, name);
}

static int show_hostnames(char **words, bool is_oneliner)
{
	const char *list = list_of(*words);
	struct why why = WHY_NONE;
	size_t count;

	(void)is_oneliner;
	if (!list)
		return EXIT_NOT_DONE;
	if (hostlist_expand(list, print_host, NULL, &count, &why) == 0)
		return EXIT_DONE;
	slurm_error("%s", why.text);
	return EXIT_NOT_DONE;
}

static int show_hostlist(char **words, bool is_oneliner)
{
	struct hostlist_fold fold = { .out = stdout };
	const char *list = list_of(*words);
	struct why why = WHY_NONE;
	size_t count;

	(void)is_oneliner;
	if (!list)
		return EXIT_NOT_DONE;
	if (hostlist_expand(list, fold_host, &fold, &count, &why) < 0) {
		slurm_error("%s", why.text);
		return EXIT_NOT_DONE;
	}
	hostlist_fold_end(&fold);
	(void)puts("");
	return EXIT_DONE;
}

/* --- a job --------------------------------------------------------------------------- */

static void add_user(const struct slurm_job *job, struct text *out)
{
	const struct passwd *entry = getpwnam(job->user);

	text_addf(out, "UserId=%s", job->user);
	if (entry)
		text_addf(out, "(%lu)", (unsigned long)entry->pw_uid);
}

static void add_times(const struct slurm_job *job, const char *gap, struct text *out)
{
	int64_t end_ms = job->ended_ms;

	text_addf(out, "%sRunTime=", gap);
	slurm_format_span(job->state == SLURM_PENDING ? 0 : job->ran_ms, true, out);
	text_add(out, " TimeLimit=");
	if (job->limit_ms > 0)
		slurm_format_span(job->limit_ms, true, out);
	else
		text_add(out, "UNLIMITED");
	text_addf(out, "%sSubmitTime=", gap);
	slurm_format_time(job->submitted_ms, "Unknown", out);
	text_addf(out, "%sStartTime=", gap);
	slurm_format_time(job->state == SLURM_PENDING ? job->starts_ms : job->started_ms,
		"Unknown", out);
	if (is_slurm_job_live(job) && job->started_ms >= 0 && job->limit_ms > 0)
		end_ms = job->started_ms + job->limit_ms;
	text_add(out, " EndTime=");
	slurm_format_time(end_ms, "Unknown", out);
}

/* The exit status as Slurm writes it, the signal behind a colon. */
static void add_exit(const struct slurm_job *job, struct text *out)
{
	long long status = job->status > 0 ? (long long)job->status : 0;

	text_addf(out, " ExitCode=%lld:%lld", status > 128 ? 0 : status,
		status > 128 ? status - 128 : 0);
}

static void print_job(
	const struct slurm_jobs *jobs, const struct slurm_job *job, bool is_oneliner)
{
	const char *gap = is_oneliner ? " " : "\n   ";
	char sheet[8 * 1024];
	struct text text = TEXT_ON(sheet);

	text_addf(&text, "JobId=%lld", (long long)job->id);
	if (job->array >= 0)
		text_addf(&text, " ArrayJobId=%lld ArrayTaskId=%lld",
			(long long)job->array, (long long)job->task);
	text_addf(&text, " JobName=%s%s", job->name, gap);
	add_user(job, &text);
	text_addf(&text, "%sPriority=%lld Account=(null) QOS=(null)", gap,
		(long long)job->priority);
	text_addf(&text, "%sJobState=%s Reason=%s Dependency=", gap,
		slurm_states[job->state].name, slurm_job_reason(job));
	slurm_format_dependency(job, &text);
	text_addf(&text, "%sRestarts=%lld BatchFlag=%d", gap,
		(long long)(job->attempt > 1 ? job->attempt - 1 : 0),
		job->log[0] != '\0');
	add_exit(job, &text);
	add_times(job, gap, &text);
	text_addf(&text, "%sPartition=gpulease", gap);
	text_addf(&text, "%sNodeList=%s", gap,
		job->state != SLURM_PENDING && job->started_ms >= 0 ? jobs->host : "");
	text_addf(&text, "%sNumNodes=1", gap);
	if (job->command[0])
		text_addf(&text, "%sCommand=%s", gap, job->command);
	if (job->log[0])
		text_addf(&text, "%sStdErr=%s%sStdOut=%s", gap, job->log, gap, job->log);
	if (job->gpus > 0)
		text_addf(
			&text, "%sTresPerNode=gres:gpu:%lld", gap, (long long)job->gpus);
	(void)printf("%s\n%s", sheet, is_oneliner ? "" : "\n");
}

/* A task of an array, as its user names it: 17_3. */
struct task_id {
	uint64_t array;
	unsigned index;
};

/*
 * Finds the job of the task: in the record of the array, which only its user can read, or among the
 * jobs that wait and run.  0: there is none.
 */
static uint64_t find_task(const struct task_id *id)
{
	struct slurm_jobs jobs = { .count = 0 };
	struct array_task task;
	uint64_t found = 0;

	if (array_record_find_task(id->array, id->index, &task) == 0)
		found = task.job;
	if (found || slurm_query_jobs(NULL, &jobs) < 0)
		return found;
	for (size_t i = 0; i < jobs.count && !found; i++)
		if (jobs.list[i].array == (int64_t)id->array &&
			jobs.list[i].task == id->index)
			found = (uint64_t)jobs.list[i].id;
	slurm_jobs_release(&jobs);
	return found;
}

static int say_unknown(void)
{
	slurm_line("slurm_load_jobs error: Invalid job id specified");
	return EXIT_NOT_DONE;
}

static int show_task(const struct task_id *task, bool is_oneliner)
{
	struct slurm_jobs jobs = { .count = 0 };
	const struct slurm_job *whole;
	struct slurm_job *job;
	long long id = (long long)find_task(task);
	char ids[48];
	int status = EXIT_NOT_DONE;

	if (!id)
		return say_unknown();
	(void)snprintf(
		ids, sizeof(ids), "%llu,%lld", (unsigned long long)task->array, id);
	if (slurm_query_jobs(ids, &jobs) < 0)
		return EXIT_NOT_DONE;
	whole = slurm_jobs_find(&jobs, (int64_t)task->array);
	job = slurm_jobs_find(&jobs, id);
	if (job && is_slurm_job_known(&jobs, job)) {
		job->array = (int64_t)task->array;
		job->task = task->index;
		if (whole)
			slurm_job_take_name(job, whole);
		print_job(&jobs, job, is_oneliner);
		status = EXIT_DONE;
	} else {
		status = say_unknown();
	}
	slurm_jobs_release(&jobs);
	return status;
}

/* @id is one of a job, or NULL for all. */
static int show_jobs(const char *id, bool is_oneliner)
{
	struct slurm_jobs jobs = { .count = 0 };
	size_t count = 0;

	if (slurm_query_jobs(id, &jobs) < 0)
		return EXIT_NOT_DONE;
	for (size_t i = 0; i < jobs.count; i++)
		if (is_slurm_job_known(&jobs, &jobs.list[i])) {
			print_job(&jobs, &jobs.list[i], is_oneliner);
			count++;
		}
	slurm_jobs_release(&jobs);
	if (!count && id)
		return say_unknown();
	if (!count)
		(void)puts("No jobs in the system");
	return EXIT_DONE;
}

static int show_job(char **words, bool is_oneliner)
{
	const char *id = *words;
	struct task_id task;
	struct array_list list;

	if (!id)
		return show_jobs(NULL, is_oneliner);
	if (!slurm_find_bad_id(id) && slurm_count_ids(id) == 1) {
		if (!is_slurm_array_id(id, strlen(id)))
			return show_jobs(id, is_oneliner);
		if (array_list_read_id(id, strlen(id), &task.array, &list) &&
			list.count == 1) {
			task.index = list.indices[0];
			return show_task(&task, is_oneliner);
		}
	}
	slurm_line("scontrol_print_job error: Invalid job id specified");
	return EXIT_NOT_DONE;
}

/* --- words --------------------------------------------------------------------------- */

static const struct {
	const char *word;
	size_t least; /* letters of an abbreviation */
	int (*show)(char **words, bool is_oneliner);
} entities[] = {
	{ "hostnames", 5, show_hostnames },
	{ "hostlist", 5, show_hostlist },
	{ "jobid", 1, show_job },
	{ "jobs", 1, show_job },
};

/* Whether @text is @word or, with @least letters, its beginning. */
static bool is_short_for(const char *text, const char *word, size_t least)
{
	size_t size = strlen(text);

	return size >= least && strncasecmp(text, word, size) == 0;
}

static int show(char **words, bool is_oneliner)
{
	char *equals, *rest[] = { NULL, NULL };

	if (!*words) {
		slurm_line("too few arguments for keyword:show");
		return EXIT_NOT_DONE;
	}
	equals = strchr(*words, '=');
	if (equals) { /* as in job=12 */
		*equals = '\0';
		rest[0] = equals + 1;
	} else {
		rest[0] = words[1];
	}
	if (words[1] && (equals || words[2])) {
		slurm_line("too many arguments for keyword:show");
		return EXIT_NOT_DONE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(entities); i++)
		if (is_short_for(*words, entities[i].word, entities[i].least))
			return entities[i].show(rest, is_oneliner);
	for (size_t i = 0; i < ARRAY_SIZE(other_entities); i++)
		if (strcasecmp(*words, other_entities[i].word) == 0) {
			slurm_error("show %s: %s", *words, other_entities[i].instead);
			return EXIT_NOT_DONE;
		}
	slurm_line("invalid entity:%s for keyword:show", *words);
	return EXIT_NOT_DONE;
}

/* --- changes -------------------------------------------------------------------------- */

enum { WORDS_MOST = 256 };

/* Becomes gpulease, with @option and @words. */
static int become_gpulease(char *option, char **words)
{
	static char path[PATH_MAX], *all[WORDS_MOST] = { path };
	size_t count = 1;

	if (slurm_programs_gpulease(path) < 0) {
		slurm_error("cannot find gpulease; install it again: make install");
		return EXIT_NOT_DONE;
	}
	all[count++] = option;
	while (*words && count < WORDS_MOST - 1)
		all[count++] = *words++;
	if (*words)
		slurm_error("too many jobs; give fewer at once");
	else if (execv(path, all) < 0)
		slurm_error("cannot execute '%s': %s", path, strerror(errno));
	return EXIT_NOT_DONE;
}

/* Refuses the list if it names tasks of an array.  Returns whether it does. */
static bool has_tasks(const char *list)
{
	struct array_list tasks;
	uint64_t array;
	size_t size;

	for (const char *at = list; *at; at += size + (at[size] == ',')) {
		size = slurm_id_length(at);
		if (!is_slurm_array_id(at, size) ||
			!array_list_read_id(at, size, &array, &tasks))
			continue;
		slurm_error("release: %.*s: an array is held as a whole; write scontrol "
			    "release %llu",
			(int)size, at, (unsigned long long)array);
		return true;
	}
	return false;
}

static int release(char **words)
{
	static char option[] = "--release";

	if (!*words) {
		slurm_line("too few arguments for keyword:release");
		return EXIT_NOT_DONE;
	}
	for (char **at = words; *at; at++)
		if (has_tasks(*at))
			return EXIT_NOT_DONE;
	return become_gpulease(option, words);
}

/* The jobs that are to be requeued, as words for gpulease. */
struct requeued {
	char *words[WORDS_MOST + 1];
	size_t count;
};

/* Adds the job with the id of @size bytes.  Returns false after a message. */
static bool requeued_add(struct requeued *requeued, const char *id, size_t size)
{
	char *word = requeued->count < WORDS_MOST - 2 ? strndup(id, size) : NULL;

	if (word)
		requeued->words[requeued->count++] = word;
	else
		slurm_error("too many jobs; give fewer at once");
	return word != NULL;
}

/*
 * Adds the jobs that the @size bytes at @text mean: a job, a task of an array, or, for an array,
 * its tasks that run.  Of a job that is not known gpulease says so.  Returns false after a message.
 */
static bool requeued_find(struct requeued *requeued, const struct slurm_jobs *jobs,
	const char *text, size_t size)
{
	size_t before = requeued->count;
	bool is_array = is_slurm_array_id(text, size);
	char id[24];

	for (size_t i = 0; i < jobs->count; i++) {
		const struct slurm_job *job = &jobs->list[i];

		if (job->array < 0 || !is_slurm_job_named(job, text, size))
			continue;
		is_array = true;
		(void)snprintf(id, sizeof(id), "%lld", (long long)job->id);
		if (job->state != SLURM_PENDING &&
			!requeued_add(requeued, id, strlen(id)))
			return false;
	}
	if (requeued->count > before)
		return true;
	if (is_array) {
		slurm_error("requeue: %.*s: no task of it runs", (int)size, text);
		return false;
	}
	return requeued_add(requeued, text, size);
}

/* requeue [Incomplete] LIST...: only jobs that run can be requeued here. */
static int requeue(char **words)
{
	static char option[] = "--requeue";
	static struct requeued requeued;
	struct slurm_jobs jobs = { .count = 0 };
	bool is_good = true;

	if (*words && strcasecmp(*words, "incomplete") == 0)
		words++;
	if (!*words) {
		slurm_line("too few arguments for keyword:requeue");
		return EXIT_NOT_DONE;
	}
	for (char **at = words; *at; at++) {
		const char *bad = slurm_find_bad_id(*at);

		if (!bad && slurm_count_ids(*at))
			continue;
		slurm_line("Invalid job id specified for job %s", bad ? bad : *at);
		return EXIT_NOT_DONE;
	}
	if (slurm_query_jobs(NULL, &jobs) < 0)
		return EXIT_NOT_DONE;
	for (char **at = words; *at && is_good; at++)
		for (const char *id = *at; *id && is_good;) {
			size_t size = slurm_id_length(id);

			is_good = requeued_find(&requeued, &jobs, id, size);
			id += size + (id[size] == ',');
		}
	slurm_jobs_release(&jobs);
	return is_good ? become_gpulease(option, requeued.words) : EXIT_NOT_DONE;
}

/* Returns what follows @name and "=" in @word, or NULL. */
static char *value_in(char *word, const char *name)
{
	size_t size = strlen(name);

	return strncasecmp(word, name, size) == 0 && word[size] == '=' ? word + size + 1
								       : NULL;
}

/* JobId=ID TimeLimit=+TIME: a number means minutes, as in Slurm. */
static int update(char **words)
{
	static char option[] = "--extend", span[64];
	char *id = NULL, *limit = NULL, *of_word, *rest[] = { NULL, span, NULL };

	for (; *words; words++) {
		of_word = value_in(*words, "JobId");
		of_word = of_word ? of_word : value_in(*words, "Job");
		id = of_word ? of_word : id;
		limit = of_word ? limit : value_in(*words, "TimeLimit");
		if (!of_word && !limit)
			break;
	}
	if (*words || !id || !limit || *limit != '+') {
		slurm_error("update: only a time limit can be changed, as in: scontrol "
			    "update JobId=12 TimeLimit=+60");
		return EXIT_NOT_DONE;
	}
	limit++;
	(void)snprintf(span, sizeof(span), "%s%s", limit,
		limit[strspn(limit, "0123456789")] ? "" : "m");
	rest[0] = id;
	return become_gpulease(option, rest);
}

static int run(char **words, bool is_oneliner)
{
	if (!*words) {
		slurm_error("scontrol needs a command, as in: scontrol show hostnames");
		return EXIT_NOT_DONE;
	}
	if (is_short_for(*words, "show", 3))
		return show(words + 1, is_oneliner);
	if (is_short_for(*words, "release", 3))
		return release(words + 1);
	if (is_short_for(*words, "update", 1))
		return update(words + 1);
	if (strcasecmp(*words, "requeue") == 0)
		return requeue(words + 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcasecmp(*words, others[i].word) == 0) {
			slurm_error("%s: %s", *words, others[i].instead);
			return EXIT_NOT_DONE;
		}
	slurm_line("invalid keyword: %s", *words);
	return EXIT_NOT_DONE;
}

int scontrol_main(char **argv)
{
	const char *values[SLURM_OPTIONS_MAX] = { NULL };
	int status = EXIT_DONE;
	char **rest;

	slurm_message_begin("scontrol");
	if (slurm_options_read(options, argv, values, &rest) < 0)
		return EXIT_NOT_DONE;
	if (slurm_options_value(options, values, "version"))
		(void)puts("gpulease " GPULEASE_VERSION);
	else if (slurm_options_value(options, values, "help"))
		(void)puts(USAGE);
	else
		status = run(
			rest, slurm_options_value(options, values, "oneliner") != NULL);
	return slurm_finish(status);
}
