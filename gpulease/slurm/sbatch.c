#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "array_record.h"
#include "command_line.h"
#include "dependency_list.h"
#include "dependency_tasks.h"
#include "diag.h"
#include "directives.h"
#include "exitcodes.h"
#include "parse.h"
#include "process_lease.h"
#include "run_gpulease.h"
#include "sbatch.h"
#include "sbatch_options.h"
#include "sbatch_script.h"
#include "slurm_programs.h"
#include "spool.h"
#include "words.h"

enum { WORDS_MAX = SBATCH_ROWS_MAX + 40 };

/* One submission.  What it points to stays until this process ends. */
struct sbatch {
	struct sbatch_options options;
	struct sbatch_script script;
	char **arguments;         /* of the script */
	struct settings settings; /* what gpulease makes of the options */
	char gpulease[PATH_MAX], own[PATH_MAX], spool[PATH_MAX], folder[PATH_MAX],
		host[HOST_NAME_MAX + 1], record[PATH_MAX + 8];
	const char *conditions;   /* of --dependency, as given; NULL: none */
	const char *begin, *hold; /* for which the job of an array waits */
	struct dependency_list dependency;
	struct dependency_waiters waiters;
	uint64_t id;
};

static const char *value_of(const struct sbatch *sbatch, const char *name)
{
	return sbatch_options_value(&sbatch->options, name);
}

/* --- reading ------------------------------------------------------------------------- */

/* Reads the #SBATCH lines. */
static int read_directives(struct sbatch *sbatch, struct why *why)
{
	struct directives directives;
	struct directive line;
	struct why reason = WHY_NONE;
	/* the words are made of a second copy, and options point to it */
	char *text = malloc(sbatch->script.size + 1);
	int r;

	if (!text)
		return -ENOMEM;
	memcpy(text, sbatch->script.text, sbatch->script.size + 1);
	r = directives_begin(&directives, text, sbatch->script.size, &reason);
	if (r < 0) {
		why_wrap(why, &reason, "sbatch: %s: ", quote(sbatch->script.name).text);
		return r;
	}
	while ((r = directives_take(&directives, &line, &reason)) == 0) {
		r = sbatch_options_read_line(
			line.words, directives.line, &sbatch->options, &reason);
		if (r < 0)
			break;
	}
	if (r < 0)
		why_wrap(why, &reason, "sbatch: %s:%u: ", quote(sbatch->script.name).text,
			directives.line);
	return r < 0 ? r : 0;
}

/* Whether the value of --signal asks for a signal to the script: B: or RB: before its name. */
static bool is_for_script(const char *value)
{
	size_t size = strcspn(value, ":");

	return value[size] && memchr(value, 'B', size);
}

/* Returns the value of --signal by which gpulease signals the steps; NULL: there is no memory. */
static const char *signal_for_steps(const char *value)
{
	size_t size = strcspn(value, ":");
	char *own = NULL;

	if (asprintf(&own, "S:%s", value[size] ? value + size + 1 : value) < 0)
		return NULL;
	return own;
}

/* Sets what sbatch does without an option. */
static void set_defaults(struct sbatch *sbatch)
{
	struct sbatch_options *options = &sbatch->options;
	const char *signal = value_of(sbatch, "signal");

	if (!value_of(sbatch, "job-name"))
		sbatch_options_set(
			options, "job-name", text_base_name(sbatch->script.name));
	if (!value_of(sbatch, "output"))
		sbatch_options_set(options, "output",
			value_of(sbatch, "array") ? "slurm-%A_%a.out" : "slurm-%j.out");
	/* without B: it is for the steps, which gpulease calls S: */
	if (signal && !is_for_script(signal))
		sbatch_options_set(options, "signal", signal_for_steps(signal));
}

/* Reads everything: the command line wins over the variables, and these over the script. */
static int read_all(struct sbatch *sbatch, const struct sbatch_options *given,
	char **rest, struct why *why)
{
	const char *wrap = sbatch_options_value(given, "wrap");
	int r;

	if (wrap && *rest) {
		why_set(why, "--wrap takes no script, not '%s'", quote(*rest).text);
		return -EINVAL;
	}
	r = wrap ? sbatch_script_wrap(wrap, &sbatch->script)
		 : sbatch_script_read(*rest, &sbatch->script, why);
	sbatch->arguments = *rest ? rest + 1 : rest;
	if (r == 0)
		r = read_directives(sbatch, why);
	if (r == 0)
		r = sbatch_options_read_variables(&sbatch->options, why);
	sbatch_options_overlay(&sbatch->options, given);
	return r;
}

/*
 * Sets --dependency to what gpulease checks.  With @gpulease, the path of the program, submits what
 * waits for tasks of arrays that have no jobs yet.  Returns as dependency_tasks_resolve().
 */
static int set_dependency(struct sbatch *sbatch, const char *gpulease, struct why *why)
{
	static char resolved[DEPENDENCY_SIZE];
	struct dependency_list *list = &sbatch->dependency;
	int r;

	if (!sbatch->conditions)
		return 0;
	/* first as the user has written it, because a message quotes it */
	r = dependency_list_read(sbatch->conditions, list, why);
	if (r == 0)
		r = dependency_tasks_resolve(
			sbatch->conditions, gpulease, &sbatch->waiters, resolved, why);
	if (r == 0)
		r = dependency_list_read(resolved, list, why);
	if (r == 0)
		sbatch_options_set(&sbatch->options, "dependency", list->passed);
	return r;
}

/* Reads the options whose values are lists. */
static int read_lists(struct sbatch *sbatch, struct why *why)
{
	static struct array_list list;
	struct why reason = WHY_NONE;
	const char *array = value_of(sbatch, "array");

	if (array && array_list_read(array, &list, &reason) < 0) {
		why_wrap(why, &reason, "--array: ");
		return -EINVAL;
	}
	sbatch->conditions = value_of(sbatch, "dependency");
	if (set_dependency(sbatch, NULL, &reason) < 0) {
		why_wrap(why, &reason, "--dependency: ");
		return -EINVAL;
	}
	return 0;
}

static bool has_gpu_option(const struct sbatch *sbatch)
{
	static const char *const names[] = { "gpus", "gres", "gpus-per-node",
		"gpus-per-task", "ntasks-per-gpu" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (value_of(sbatch, names[i]))
			return true;
	return false;
}

/* Has gpulease's own parser check the options and count the GPUs and tasks. */
static int settle(struct sbatch *sbatch, struct why *why)
{
	static char name[] = "gpulease", no_gpu[] = "--gpus=0", end[] = "--",
		    script[] = "script";
	static char *words[WORDS_MAX];
	char **next = words;

	*next++ = name;
	next = sbatch_options_write(&sbatch->options, SBATCH_PASSED, next);
	if (next)
		next = sbatch_options_write(&sbatch->options, SBATCH_COUNTED, next);
	if (!next)
		return -ENOMEM;
	if (!has_gpu_option(sbatch))
		*next++ = no_gpu;
	*next++ = end;
	*next = script;
	return command_line_parse(words, &sbatch->settings, why);
}

/* --- submitting ---------------------------------------------------------------------- */

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

/* Appends "--name=value" to the words at @next, or nothing if there is no value. */
static char **add(char **next, const char *name, const char *value)
{
	if (next && value && asprintf(next++, "--%s=%s", name, value) < 0)
		return NULL;
	return next;
}

/* Writes what the user has submitted, as tables show it: the script and its arguments. */
static void describe(const struct sbatch *sbatch, struct text *out)
{
	const char *wrap = value_of(sbatch, "wrap");

	text_add(out, wrap ? wrap : sbatch->script.name);
	for (char **at = sbatch->arguments; *at; at++) {
		text_add(out, " ");
		words_add_quoted(out, *at);
	}
}

/* What --export filters by; NULL: all variables are exported, as without the option. */
static const char *export_list(const struct sbatch *sbatch)
{
	const char *list = value_of(sbatch, "export");

	return list && strcasecmp(list, "ALL") != 0 ? list : NULL;
}

/* Appends to the words at @next what the script can read in its variables. */
static char **describe_script(const struct sbatch *sbatch, char **next)
{
	/* options without effect */
	static const char *const told[] = { "partition", "account", "qos", "mem",
		"mem-per-cpu", "mem-per-gpu" };
	const struct settings *settings = &sbatch->settings;
	bool has_tasks = value_of(sbatch, "ntasks") ||
			 value_of(sbatch, "ntasks-per-node") ||
			 value_of(sbatch, "tasks-per-node") || settings->tasks.count > 1;
	const char *per_node = value_of(sbatch, "ntasks-per-node"),
		   *not_ok = text_or_null(sbatch->dependency.not_ok);
	char tasks[16];

	if (!per_node)
		per_node = value_of(sbatch, "tasks-per-node");
	(void)snprintf(tasks, sizeof(tasks), "%u", settings->tasks.count);
	next = add(next, "name", value_of(sbatch, "job-name"));
	next = add(next, "submit-dir", *sbatch->folder ? sbatch->folder : NULL);
	next = add(next, "submit-host", *sbatch->host ? sbatch->host : NULL);
	next = add(next, "export", export_list(sbatch));
	next = add(next, "ntasks", has_tasks ? tasks : NULL);
	next = add(next, "per-node", per_node);
	next = add(next, "per-gpu", value_of(sbatch, "ntasks-per-gpu"));
	next = add(next, "gpus-per-task", value_of(sbatch, "gpus-per-task"));
	next = add(next, "cpus", value_of(sbatch, "cpus-per-task"));
	next = add(next, "cpus-per-gpu", value_of(sbatch, "cpus-per-gpu"));
	next = add(next, "after-not-ok", not_ok);
	next = add(next, "gpus", value_of(sbatch, "gpus"));
	next = add(next, "gpus-per-node", value_of(sbatch, "gpus-per-node"));
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		next = add(next, told[i], value_of(sbatch, told[i]));
	return next;
}

/* Makes the command that submits the job.  NULL: there is no memory. */
static char **submit_words(struct sbatch *sbatch)
{
	static char submit[] = "--submit", end[] = "--", part[] = "script";
	const struct settings *settings = &sbatch->settings;
	char gpus[16], shown[512], **words, **next;
	struct text text = TEXT_ON(shown);
	size_t count = 0;

	while (sbatch->arguments[count])
		count++;
	words = next = calloc(WORDS_MAX + count, sizeof(*words));
	if (!words)
		return NULL;
	if (settings->request.share_percent)
		(void)snprintf(gpus, sizeof(gpus), "0.%02u",
			settings->request.share_percent % 100);
	else
		(void)snprintf(gpus, sizeof(gpus), "%u", settings->request.gpus);
	*next++ = sbatch->gpulease;
	*next++ = submit;
	next = sbatch_options_write(&sbatch->options, SBATCH_PASSED, next);
	next = add(next, "gpus", gpus);
	describe(sbatch, &text);
	next = add(next, "shown-command", shown);
	if (*settings->request.model)
		next = add(next, "model", settings->request.model);
	if (!next)
		return NULL;
	*next++ = end;
	*next++ = sbatch->own;
	*next++ = part;
	next = describe_script(sbatch, next);
	if (!next)
		return NULL;
	*next++ = end;
	*next++ = sbatch->spool;
	memcpy(next, sbatch->arguments, count * sizeof(*next));
	return words;
}

static void cancel(struct sbatch *sbatch, uint64_t job)
{
	static char option[] = "--cancel", quiet[] = "-Q", id[24];
	char *words[] = { sbatch->gpulease, quiet, option, id, NULL };
	uint64_t none;

	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)job);
	(void)run_gpulease(words, &none);
}

/* Prints the id.  If that fails, there is no job. */
static int report(struct sbatch *sbatch)
{
	const char *words = value_of(sbatch, "parsable") ? "" : "Submitted batch job ";

	if (*words && value_of(sbatch, "quiet"))
		return 0;
	if (printf("%s%llu\n", words, (unsigned long long)sbatch->id) >= 0 &&
		fflush(stdout) == 0)
		return 0;
	diag("cannot print the id of job %llu, which is therefore cancelled: %s",
		(unsigned long long)sbatch->id, strerror(errno));
	/* its user does not know its id, and would submit it again */
	cancel(sbatch, sbatch->id);
	return EXIT_MISUSE;
}

/* Becomes `gpulease --wait-for ID`. */
static int wait_for(struct sbatch *sbatch)
{
	static char option[] = "--wait-for", id[24];
	char *words[] = { sbatch->gpulease, option, id, NULL };

	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)sbatch->id);
	(void)execv(words[0], words);
	diag("cannot execute '%s': %s", words[0], strerror(errno));
	return EXIT_MISUSE;
}

/*
 * Whether gpulease would take the job that @words submit, now or later.  If not, it says why.  @out
 * gets what it says otherwise.
 */
static int try_words(char **words, int out)
{
	static char dry_run[] = "--dry-run";
	char *submit = words[1];
	pid_t child;
	int status;

	words[1] = dry_run;
	child = run_gpulease_start(words, out);
	words[1] = submit;
	if (child < 0) {
		diag("cannot start gpulease: %s", strerror(-child));
		return EXIT_MISUSE;
	}
	status = run_gpulease_await(child);
	return status == EXIT_GAVE_UP ? 0 : status; /* it would have to wait */
}

/* --test-only: says when the job, or a task of the array, would start. */
static int test_job(struct sbatch *sbatch)
{
	char **words = submit_words(sbatch);

	if (words)
		return try_words(words, STDERR_FILENO);
	diag("cannot test the script: %s", strerror(ENOMEM));
	return EXIT_MISUSE;
}

/* --- arrays -------------------------------------------------------------------------- */

/*
 * Makes the command that submits the job of the array, which submits the tasks by @task_words.
 * NULL: there is no memory.
 */
static char **array_words(struct sbatch *sbatch, char **task_words)
{
	/* a requeue is for its tasks; scontrol finds them */
	static char submit[] = "--submit", hold[] = "--hold", end[] = "--",
		    part[] = "array", once[] = "--no-requeue";
	/* inside a lease gpulease has set it */
	const char *devices = getenv(PROCESS_LEASE_TOKEN_VARIABLE)
				      ? NULL
				      : getenv("CUDA_VISIBLE_DEVICES");
	const char *passed = text_or_null(sbatch->dependency.passed),
		   *not_ok = text_or_null(sbatch->dependency.not_ok);
	char shown[512], **words, **next;
	struct text text = TEXT_ON(shown);
	size_t count = 0;

	while (task_words[count])
		count++;
	words = next = calloc(WORDS_MAX + count, sizeof(*words));
	if (!words)
		return NULL;
	describe(sbatch, &text);
	*next++ = sbatch->gpulease;
	*next++ = submit;
	next = add(next, "gpus", "0");
	next = add(next, "name", value_of(sbatch, "job-name"));
	next = add(next, "shown-command", shown);
	next = add(next, "dependency", passed);
	next = add(next, "begin", sbatch->begin);
	if (!next)
		return NULL;
	if (sbatch->hold)
		*next++ = hold;
	*next++ = once;
	*next++ = end;
	*next++ = sbatch->own;
	*next++ = part;
	next = add(next, "record", sbatch->record);
	next = add(next, "after-not-ok", not_ok);
	next = add(next, "devices", devices);
	if (!next)
		return NULL;
	*next++ = end;
	memcpy(next, task_words, count * sizeof(*next));
	return words;
}

/* Removes the option @name.  Returns its value; NULL: it was not given. */
static const char *take(struct sbatch *sbatch, const char *name)
{
	const char *value = value_of(sbatch, name);

	sbatch_options_set(&sbatch->options, name, NULL);
	return value;
}

/* Submits the array; see submit_job(). */
static int submit_array(struct sbatch *sbatch)
{
	struct dependency_list dependency = sbatch->dependency;
	autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char **words;
	int r;

	/* the job of the array waits for these; once it has started, the tasks start */
	(void)take(sbatch, "dependency");
	sbatch->begin = take(sbatch, "begin");
	sbatch->hold = take(sbatch, "hold");
	sbatch->dependency.not_ok[0] = '\0';
	words = submit_words(sbatch);
	r = words ? try_words(words, null) : 0;
	if (r != 0)
		return r;
	(void)snprintf(sbatch->record, sizeof(sbatch->record), "%s.array", sbatch->spool);
	sbatch->dependency = dependency;
	words = words ? array_words(sbatch, words) : NULL;
	r = array_record_create(sbatch->record, value_of(sbatch, "array"));
	if (!words || r < 0) {
		diag("cannot submit the array: %s", strerror(words ? -r : ENOMEM));
		return EXIT_MISUSE;
	}
	r = run_gpulease(words, &sbatch->id);
	/* without the link the tasks run, but their ids N_i mean only tasks in the queue */
	if (r == 0)
		(void)!array_record_link(sbatch->record, sbatch->id);
	return r;
}

/* --- the order of it ----------------------------------------------------------------- */

/* Runs the gpulease that submits the job.  Returns its exit status, or EXIT_MISUSE. */
static int submit_job(struct sbatch *sbatch)
{
	char **words = submit_words(sbatch);

	if (words)
		return run_gpulease(words, &sbatch->id);
	diag("cannot submit the script: %s", strerror(ENOMEM));
	return EXIT_MISUSE;
}

static int submit(struct sbatch *sbatch)
{
	struct why why = WHY_NONE;
	int r;

	if (slurm_programs_own(sbatch->own) < 0 ||
		slurm_programs_gpulease(sbatch->gpulease) < 0) {
		diag("cannot find gpulease; install it again: make install");
		return EXIT_MISUSE;
	}
	(void)gethostname(sbatch->host, sizeof(sbatch->host) - 1);
	if (!getcwd(sbatch->folder, sizeof(sbatch->folder)))
		sbatch->folder[0] = '\0';
	if (value_of(sbatch, "test-only"))
		return test_job(sbatch);
	r = spool_write(sbatch->script.text, sbatch->script.size, sbatch->spool, &why);
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = set_dependency(sbatch, sbatch->gpulease, &why);
	if (r < 0) {
		diag("--dependency: %s", why.text[0] ? why.text : strerror(-r));
		r = EXIT_MISUSE;
	} else if (r == 0) {
		r = value_of(sbatch, "array") ? submit_array(sbatch) : submit_job(sbatch);
	}
	if (r == 0 && !sbatch->id) {
		diag("cannot submit the script: '%s' has printed no id",
			sbatch->gpulease);
		r = EXIT_MISUSE;
	}
	if (r == 0)
		r = report(sbatch);
	else
		(void)unlink(sbatch->spool);
	while (r != 0 && sbatch->waiters.count)
		cancel(sbatch, sbatch->waiters.ids[--sbatch->waiters.count]);
	if (r != 0 && sbatch->record[0])
		(void)unlink(sbatch->record);
	return r == 0 && value_of(sbatch, "wait") ? wait_for(sbatch) : r;
}

/* Names the options that have no effect: those on which the user may rely, and with -v all. */
static void list_noise(const struct sbatch *sbatch)
{
	char words[160];
	struct text text = TEXT_ON(words);

	for (size_t i = 0; sbatch_table[i].name; i++) {
		const struct sbatch_row *row = &sbatch_table[i];

		if (sbatch->options.values[i] && row->use == SBATCH_NOISE)
			verbose("--%s is accepted and ignored", row->name);
		if (sbatch->options.values[i] && row->use == SBATCH_UNMET)
			text_addf(&text, "%s--%s (%s)", text.used ? ", " : "", row->name,
				row->as);
	}
	if (text.used)
		note("no effect here: %s", words);
}

/* Does what needs no script.  Returns false if there is a script to submit. */
static bool is_answered(const struct sbatch_options *given)
{
	if (sbatch_options_value(given, "version"))
		(void)puts("gpulease " GPULEASE_VERSION);
	else if (sbatch_options_value(given, "help") ||
		 sbatch_options_value(given, "usage"))
		(void)puts("usage: sbatch [options] [script [arguments]]\n"
			   "Submits a job script to gpulease; see gpulease-srun(7).");
	else
		return false;
	return true;
}

int sbatch_main(char **argv)
{
	static struct sbatch sbatch;
	static struct sbatch_options given;
	struct why why = WHY_NONE;
	char **rest;
	int r = sbatch_options_read(argv, &given, &rest, &why);

	if (r == 0 && is_answered(&given))
		return fflush(stdout) == 0 ? EXIT_DONE : EXIT_MISUSE;
	if (r == 0)
		r = read_all(&sbatch, &given, rest, &why);
	diag_setup(
		value_of(&sbatch, "verbose") != NULL, value_of(&sbatch, "quiet") != NULL);
	if (r == 0) {
		set_defaults(&sbatch);
		r = sbatch_options_check(&sbatch.options, &why);
	}
	if (r == 0)
		r = read_lists(&sbatch, &why);
	if (r == 0)
		r = settle(&sbatch, &why);
	if (r < 0) {
		unsigned line = sbatch_options_line_of(&sbatch.options, why.text);

		if (line)
			diag("sbatch: %s:%u: %s", quote(sbatch.script.name).text, line,
				why.text);
		else
			diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	list_noise(&sbatch);
	if (!has_gpu_option(&sbatch))
		note("the script asks for no GPU and gets none; for one add --gpus=1");
	return submit(&sbatch);
}

int sbatch_submit_main(char **argv)
{
	static char name[] = "sbatch", script[] = "--script", submit[] = "--submit";
	char **next = argv + 1, **at = argv + 1;

	*next++ = name;
	while (*++at && strncmp(*at, script, sizeof(script) - 1) != 0)
		if (strcmp(*at, submit) != 0)
			*next++ = *at;
	/* --script FILE, or --script=FILE */
	if (*at && (*at)[sizeof(script) - 1])
		*at += sizeof(script);
	else if (*at)
		at++;
	while (*at)
		*next++ = *at++;
	*next = NULL;
	return sbatch_main(argv + 1);
}
