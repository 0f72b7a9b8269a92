#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "command_caveat.h"
#include "diag.h"
#include "engine_after.h"
#include "engine_dry_run.h"
#include "engine_submit.h"
#include "engine_verbs.h"
#include "engine_words.h"
#include "exitcodes.h"
#include "foreground.h"
#include "gpu_words.h"
#include "submit_output.h"

/* The one job of this process; too big for the stack. */
static struct foreground job;

/* --- files --------------------------------------------------------------------------------- */

/* The words of srun for a file that is none. */
static bool is_word(const char *name)
{
	return strcmp(name, "none") == 0 || strcmp(name, "all") == 0 ||
	       !name[strspn(name, "0123456789")];
}

/* Checks a file, or makes its folder, as submit_output_prepare() does. */
static int check_output(
	const struct engine_line *line, const char *option, const char *name)
{
	struct why why;

	if (!name || is_word(name) || submit_output_prepare(line, name, &why) == 0)
		return 0;
	diag("--%s: %s", option, why.text);
	return EXIT_MISUSE;
}

static int check_input(const char *name)
{
	if (!name || is_word(name) || strchr(name, '%') || access(name, R_OK) == 0)
		return 0;
	diag("cannot open '%s': %s", name, strerror(errno));
	return EXIT_MISUSE;
}

static int check_files(const struct engine_line *line)
{
	int r = check_output(line, "output", engine_line_value(line, "output"));

	if (r == 0)
		r = check_output(line, "error", engine_line_value(line, "error"));
	return r == 0 ? check_input(engine_line_value(line, "input")) : r;
}

static void add_files(const struct engine_line *line, struct slurm_words *words)
{
	static const char *const names[] = { "output", "error", "input" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = engine_line_value(line, names[i]);
		char pattern[PATH_MAX];
		struct text text = TEXT_ON(pattern);

		if (!value)
			continue;
		submit_output_add_pattern(value, &text);
		words->is_cut |= text.cut;
		slurm_words_addf(words, "--%s=%s", names[i], pattern);
	}
}

/* --- the streams --------------------------------------------------------------------------- */

static void find_streams(const struct engine_line *line, struct srun_streams *streams)
{
	bool has_output = engine_line_value(line, "output"),
	     has_error = engine_line_value(line, "error"),
	     has_input = engine_line_value(line, "input");

	streams->is_one_task = gpu_words_is_one_task(line);
	streams->has_output_file = has_output;
	streams->has_error_file = has_output || has_error;
	streams->has_input_file = has_input;
	srun_streams_find(streams->is_one_task && !has_output && !has_error &&
				  !has_input && !engine_line_has(line, "label"),
		engine_line_has(line, "pty"), streams);
}

static void add_streams(const struct engine_line *line,
	const struct srun_streams *streams, struct slurm_words *words)
{
	if (streams->is_pty && !engine_line_has(line, "pty"))
		slurm_words_add(words, "--pty");
	if (streams->copies_error)
		slurm_words_add(words, SRUN_ERROR_OPTION);
	add_files(line, words);
}

/* --- the job ------------------------------------------------------------------------------- */

static void add_immediate(const struct run_request *request, struct slurm_words *words)
{
	if (!request->immediate)
		return;
	if (request->immediate_ms)
		slurm_words_addf(words, "--immediate=%lld",
			(long long)(request->immediate_ms + 999) / 1000);
	else
		slurm_words_add(words, "--immediate");
}

/* Appends all words of srun but those for the streams and for the node. */
static int add_job(const struct engine_line *line, struct slurm_words *words)
{
	const struct run_request *request = &line->settings.request;
	int r;

	slurm_words_add(words, "srun");
	if (engine_line_value(line, "jobid"))
		slurm_words_addf(words, "--jobid=%s", engine_line_value(line, "jobid"));
	r = engine_job_words(line, words);
	if (r == 0)
		r = engine_step_words(line, words);
	if (r == 0)
		add_immediate(request, words);
	return r;
}

static int run(struct engine_line *line)
{
	struct slurm_words words = { .count = 0 };
	int r = add_job(line, &words);

	if (r != 0)
		return r;
	job.line = line;
	find_streams(line, &job.streams);
	slurm_words_add(&words, "-v"); /* its messages tell how far the job is */
	add_streams(line, &job.streams, &words);
	slurm_words_add(&words, "--");
	r = engine_node_words(line, job.streams.merges, &words);
	return r == 0 ? foreground_run(&job, &words) : r;
}

int engine_run(struct engine_line *line)
{
	int r;

	if (line->settings.request.gpus)
		command_caveat_note(line->settings.environment.command);
	if (line->settings.environment.submit)
		return engine_submit(line);
	r = slurm_find("srun");
	if (r == 0)
		r = engine_enter_folder(line);
	if (r == 0)
		r = check_files(line);
	if (r == 0)
		r = engine_after_check(line);
	if (r == 0 && line->settings.request.dry_run)
		return engine_dry_run(line);
	return r == 0 ? run(line) : r;
}
