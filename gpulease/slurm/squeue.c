#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "exitcodes.h"
#include "slurm_format.h"
#include "slurm_message.h"
#include "slurm_operands.h"
#include "slurm_options.h"
#include "slurm_query.h"
#include "squeue.h"

#define NO_STEPS "gpulease lists jobs, not steps; leave the option out"
#define ONE_MACHINE "gpulease knows only this machine; leave the option out"
#define USE_JSON "for JSON use gpulease --status --json"

/* clang-format off */
static const struct slurm_option options[] = {
	{ "account", NULL, NULL, SLURM_VALUE, 'A' },
	{ "accounts", NULL, NULL, SLURM_VALUE, 'A' },
	{ "all", NULL, NULL, SLURM_NO_VALUE, 'a' },
	{ "array", NULL, NULL, SLURM_NO_VALUE, 'r' },
	{ "array-unique", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "clusters", ONE_MACHINE, NULL, SLURM_VALUE, 'M' },
	{ "federation", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "format", NULL, "SQUEUE_FORMAT", SLURM_VALUE, 'o' },
	{ "Format", "write -o with % fields; see gpulease-srun(7)", NULL, SLURM_VALUE, 'O' },
	{ "help", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "hide", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "iterate", "use watch(1) instead, as in: watch -n 5 squeue", NULL, SLURM_VALUE, 'i' },
	{ "jobs", NULL, NULL, SLURM_OPTIONAL_VALUE, 'j' },
	{ "json", USE_JSON, NULL, SLURM_NO_VALUE, 0 },
	{ "licenses", NULL, NULL, SLURM_VALUE, 'L' },
	{ "local", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "long", NULL, NULL, SLURM_NO_VALUE, 'l' },
	{ "me", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "name", NULL, "SQUEUE_NAMES", SLURM_VALUE, 'n' },
	{ "noconvert", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "node", NULL, NULL, SLURM_VALUE, 'w' },
	{ "nodelist", NULL, NULL, SLURM_VALUE, 'w' },
	{ "nodes", NULL, NULL, SLURM_VALUE, 'w' },
	{ "noheader", NULL, NULL, SLURM_NO_VALUE, 'h' },
	{ "partition", NULL, NULL, SLURM_VALUE, 'p' },
	{ "priority", NULL, NULL, SLURM_NO_VALUE, 'P' },
	{ "qos", NULL, NULL, SLURM_VALUE, 'q' },
	{ "reservation", NULL, NULL, SLURM_VALUE, 'R' },
	{ "sibling", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "sort", NULL, NULL, SLURM_VALUE, 'S' },
	{ "start", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "states", NULL, "SQUEUE_STATES", SLURM_VALUE, 't' },
	{ "steps", NO_STEPS, NULL, SLURM_OPTIONAL_VALUE, 's' },
	{ "usage", NULL, NULL, SLURM_NO_VALUE, 0 },
	{ "user", NULL, "SQUEUE_USERS", SLURM_VALUE, 'u' },
	{ "users", NULL, NULL, SLURM_VALUE, 'u' },
	{ "verbose", NULL, NULL, SLURM_NO_VALUE, 'v' },
	{ "version", NULL, NULL, SLURM_NO_VALUE, 'V' },
	{ "yaml", USE_JSON, NULL, SLURM_NO_VALUE, 0 },
	{ .name = NULL },
};
/* clang-format on */

static const char USAGE[] =
	"Usage: squeue [--me] [-u users] [-j jobs] [-n names] [-t states] [-h] [-l]\n"
	"              [-o format] [--start]\n"
	"Lists the jobs of gpulease; see gpulease-srun(7).";

static const char FORMAT[] = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R",
		  FORMAT_LONG[] = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R",
		  FORMAT_START[] = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";

/* What is asked for. */
struct squeue {
	const char *values[SLURM_OPTIONS_MAX];
	const char *ids, *format, *names;
	bool states[SLURM_STATES]; /* those to list */
	struct slurm_users users;
	struct slurm_jobs jobs;
	int status;
};

static const char *value_of(const struct squeue *squeue, const char *name)
{
	return slurm_options_value(options, squeue->values, name);
}

/* --- what is asked for --------------------------------------------------------------- */

static void say_states(const char *text, size_t size)
{
	char names[400];
	struct text list = TEXT_ON(names);

	for (int i = 0; slurm_states[i].name; i++)
		text_addf(&list, "%s%s", i ? "," : "", slurm_states[i].name);
	slurm_error("Invalid job state specified: %.*s", (int)size, text);
	slurm_error("Valid job states include: %s", names);
}

/* Reads the list of states. */
static int read_states(const char *list, struct squeue *squeue)
{
	for (size_t size; *list; list += size + (list[size] != '\0')) {
		int row;

		size = strcspn(list, ",");
		row = slurm_state_find(list, size);
		if (size == 3 && strncasecmp(list, "all", 3) == 0) {
			for (int i = 0; i < SLURM_STATES; i++)
				squeue->states[i] = true;
		} else if (row < 0 && size) {
			say_states(list, size);
			return -EINVAL;
		} else if (row >= 0 && row < SLURM_STATES) {
			squeue->states[row] = true;
		}
	}
	return 0;
}

static int choose_states(struct squeue *squeue)
{
	const char *list = value_of(squeue, "states");

	if (value_of(squeue, "start")) {
		squeue->states[SLURM_PENDING] = true;
		return 0;
	}
	if (list)
		return read_states(list, squeue);
	for (int i = 0; i <= SLURM_COMPLETING; i++)
		squeue->states[i] = true;
	return 0;
}

static int choose_users(struct squeue *squeue)
{
	const char *list = value_of(squeue, "user");

	if (value_of(squeue, "me"))
		return slurm_users_add_own(&squeue->users);
	if (!list)
		return 0;
	squeue->users.is_chosen = true;
	for (size_t size; *list; list += size + (list[size] != '\0')) {
		size = strcspn(list, ",");
		if (slurm_users_add(list, size, &squeue->users) < 0)
			slurm_error("Invalid user: %.*s", (int)size, list);
	}
	return 0;
}

/* Sets the format, and names the fields that are not known. */
static void choose_format(struct squeue *squeue)
{
	const char *format = value_of(squeue, "format"), *at;
	int letter;

	if (value_of(squeue, "start") && !format)
		format = FORMAT_START;
	if (value_of(squeue, "long") && !format)
		format = FORMAT_LONG;
	squeue->format = at = format ? format : FORMAT;
	while ((letter = slurm_format_next_unknown(&at)) >= 0)
		slurm_error("Invalid job format specification: %s",
			(const char[]){ (char)letter, '\0' });
}

/* Reads the options and the list of jobs, which may stand behind the options. */
static int read_options(struct squeue *squeue, char **rest)
{
	const char *bad;

	squeue->ids = value_of(squeue, "jobs");
	if (squeue->ids && !*squeue->ids)
		squeue->ids = *rest ? *rest++ : NULL;
	if (*rest) {
		slurm_error("Unrecognized option: %s", *rest);
		slurm_line("%s", "Try \"squeue --help\" for more information");
		return -EINVAL;
	}
	bad = squeue->ids ? slurm_find_bad_id(squeue->ids) : NULL;
	if (bad) {
		slurm_error("Invalid job id: %.*s", (int)strcspn(bad, ","), bad);
		return -EINVAL;
	}
	squeue->names = value_of(squeue, "name");
	choose_format(squeue);
	return choose_states(squeue) < 0 || choose_users(squeue) < 0 ? -EINVAL : 0;
}

/* --- the list ------------------------------------------------------------------------ */

static bool has_ended_states(const struct squeue *squeue)
{
	for (int i = SLURM_COMPLETING + 1; i < SLURM_STATES; i++)
		if (squeue->states[i])
			return true;
	return false;
}

/* Whether the user asks for the job: without -j for all. */
static bool is_asked_for(const struct squeue *squeue, const struct slurm_job *job)
{
	const char *at = squeue->ids;

	if (!at)
		return true;
	for (size_t size; *at; at += size + (at[size] != '\0')) {
		size = slurm_id_length(at);
		if (is_slurm_job_named(job, at, size))
			return true;
	}
	return false;
}

/*
 * Whether @id means a job that is known so far.  As with Slurm, the id of a task means one if there
 * is its array.
 */
static bool is_id_known(const struct squeue *squeue, const char *id, size_t size)
{
	size_t digits = strcspn(id, "_");

	size = digits < size ? digits : size;
	for (size_t i = 0; i < squeue->jobs.count; i++)
		if (is_slurm_job_named(&squeue->jobs.list[i], id, size) &&
			is_slurm_job_known(&squeue->jobs, &squeue->jobs.list[i]))
			return true;
	return false;
}

/* Whether an item of -j means no such job. */
static bool lacks_ids(const struct squeue *squeue)
{
	const char *at = squeue->ids ? squeue->ids : "";

	for (size_t size; *at; at += size + (at[size] != '\0')) {
		size = slurm_id_length(at);
		if (size && !is_id_known(squeue, at, size))
			return true;
	}
	return false;
}

/* Loads the jobs.  Only for jobs that do not live is gpulease called once more. */
static int load(struct squeue *squeue)
{
	int r;

	if (squeue->ids && !slurm_count_ids(squeue->ids))
		return 0;
	r = slurm_query_jobs(NULL, &squeue->jobs);
	/* only the history tells which jobs the ended tasks of an array were */
	if (r == 0 && (has_ended_states(squeue) ||
			      (lacks_ids(squeue) && strchr(squeue->ids, '_'))))
		r = slurm_query_ended(&squeue->jobs);
	else if (r == 0 && lacks_ids(squeue))
		r = slurm_query_jobs(squeue->ids, &squeue->jobs);
	if (r < 0 || !squeue->ids || slurm_count_ids(squeue->ids) != 1 ||
		!lacks_ids(squeue))
		return r;
	/* Slurm complains of an id only if it is the only one */
	slurm_line("slurm_load_jobs error: Invalid job id specified");
	return -ENOENT;
}

/* Whether the job has a name that is asked for, after a message if that is not known. */
static bool has_name(struct squeue *squeue, const struct slurm_job *job)
{
	enum slurm_name found = SLURM_NAME_OTHER;
	const char *list = squeue->names;

	if (!list)
		return true;
	for (size_t size; *list && found != SLURM_NAME_SAME;
		list += size + (list[size] != '\0')) {
		enum slurm_name one;

		size = strcspn(list, ",");
		one = slurm_job_compare_name(job, list, size);
		found = one == SLURM_NAME_OTHER ? found : one;
	}
	if (found == SLURM_NAME_UNKNOWN) {
		slurm_error("job %lld is not listed: " SLURM_NAME_TROUBLE,
			(long long)job->id);
		squeue->status = EXIT_NOT_DONE;
	}
	return found == SLURM_NAME_SAME;
}

static bool is_listed(struct squeue *squeue, const struct slurm_job *job)
{
	return squeue->states[job->state] && is_asked_for(squeue, job) &&
	       is_slurm_job_known(&squeue->jobs, job) &&
	       has_slurm_user(&squeue->users, job->user) && has_name(squeue, job);
}

static void print_line(const struct squeue *squeue, const struct slurm_job *job)
{
	char line[16 * 1024];
	struct text text = TEXT_ON(line);

	slurm_format_line(squeue->format, &squeue->jobs, job, &text);
	(void)puts(line);
}

static void print_date(void)
{
	time_t now = time(NULL);
	struct tm parts;
	char line[64];

	if (localtime_r(&now, &parts) &&
		strftime(line, sizeof(line), "%a %b %d %H:%M:%S %Y", &parts))
		(void)puts(line);
}

static void print(struct squeue *squeue)
{
	if (!value_of(squeue, "noheader")) {
		if (value_of(squeue, "long"))
			print_date();
		print_line(squeue, NULL);
	}
	slurm_jobs_sort(&squeue->jobs);
	for (size_t i = 0; i < squeue->jobs.count; i++)
		if (is_listed(squeue, &squeue->jobs.list[i]))
			print_line(squeue, &squeue->jobs.list[i]);
	if (squeue->jobs.is_cut)
		slurm_error("more jobs wait than are listed");
}

int squeue_main(char **argv)
{
	static struct squeue squeue;
	char **rest;

	slurm_message_begin("squeue");
	if (slurm_options_read(options, argv, squeue.values, &rest) < 0)
		return EXIT_NOT_DONE;
	if (value_of(&squeue, "version"))
		(void)puts("gpulease " GPULEASE_VERSION);
	else if (value_of(&squeue, "help") || value_of(&squeue, "usage"))
		(void)puts(USAGE);
	else if (read_options(&squeue, rest) < 0 || load(&squeue) < 0)
		return EXIT_NOT_DONE;
	else
		print(&squeue);
	slurm_jobs_release(&squeue.jobs);
	return slurm_finish(squeue.status);
}
