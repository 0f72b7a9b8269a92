#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

#include "clock.h"
#include "cluster_jobs.h"
#include "diag.h"
#include "exitcodes.h"
#include "foreground.h"
#include "engine_words.h"

enum { PAUSE_MS = 20, SETTLE_MS = 10 * 1000 };

/* --- asking -------------------------------------------------------------------------------- */

/*
 * Whether the command of a job that is COMPLETING has ended by itself, so that the status of srun
 * counts.  The reason None alone does not say so: a job that was cancelled has it, too.
 */
static bool is_plain_end(const struct foreground *fg, const struct cluster_job *job)
{
	int status = fg->srun.wait_status;

	return fg->is_started && !fg->is_cancelled && WIFEXITED(status) &&
	       strcmp(job->state->name, "COMPLETING") == 0 &&
	       strcmp(job->reason, WEXITSTATUS(status) ? "NonZeroExitCode" : "None") == 0;
}

/*
 * Asks for the state of the job until it is final: Slurm says COMPLETING first, as long as the
 * epilog of the site runs on a node.
 * Returns 0 with *@ret, which has no ->state if Slurm does not know the job, or EXIT_MISUSE after a
 * message.
 */
static int ask_state(const struct foreground *fg, struct cluster_job *ret)
{
	int64_t until_ms = clock_boot_ms() + SETTLE_MS;
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)fg->job);
	for (int pause_ms = PAUSE_MS;; pause_ms *= 2) {
		struct cluster_jobs jobs;
		const struct cluster_job *job;
		int r = cluster_jobs_ask(text, &jobs);

		if (r != 0)
			return r;
		job = cluster_jobs_find(&jobs, fg->job);
		*ret = job ? *job : (struct cluster_job){ .state = NULL };
		cluster_jobs_release(&jobs);
		if (!ret->state || ret->state->phase == SLURM_ENDED ||
			is_plain_end(fg, ret) || clock_boot_ms() + pause_ms >= until_ms)
			return 0;
		(void)poll(NULL, 0, pause_ms);
	}
}

/* --- a job that did not start -------------------------------------------------------------- */

static int report_refusal(const struct foreground *fg)
{
	static const char prefix[] = "Unable to allocate resources: ";
	const char *why = fg->error_text, *first = fg->first_error;
	char more[64] = "";
	struct text text = TEXT_ON(more);

	if (strncmp(why, prefix, sizeof(prefix) - 1) == 0)
		why += sizeof(prefix) - 1;
	if (strncmp(first, prefix, sizeof(prefix) - 1) == 0)
		first = "";
	engine_add_most(fg->line, fg->error_text, &text);
	if (strstr(why, "timed out") || strstr(why, "Unable to contact")) {
		diag("the controller of Slurm does not answer (%s); gpulease --engine slurm "
		     "--doctor looks for the reason",
			why);
		return EXIT_MISUSE;
	}
	diag("Slurm has not started the job: %s%s%s%s%s",
		*why ? why : "srun has failed without a message", *first ? " (" : "",
		first, *first ? ")" : "", more);
	return EXIT_MISUSE;
}

static int status_without_start(
	const struct foreground *fg, const struct cluster_job *job)
{
	const struct slurm_state *state = job->state;

	if (fg->is_busy && fg->line->settings.request.immediate) {
		note("not available at once: %s", fg->error_text);
		return EXIT_GAVE_UP;
	}
	if (!state || state->phase != SLURM_ENDED || state->status < 0)
		return report_refusal(fg);
	note("job %llu %s", (unsigned long long)fg->job, state->words);
	return state->status;
}

/* --- a job that ran ------------------------------------------------------------------------ */

static int status_of_srun(const struct foreground *fg)
{
	int status = fg->srun.wait_status;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	diag("srun was ended by signal %d", WTERMSIG(status));
	return EXIT_MISUSE;
}

/* Prints why the job was ended, by Slurm or by a person. */
static void report_end(const struct foreground *fg, const struct cluster_job *job)
{
	bool is_lost = job->state->end == END_LOST;

	if (is_lost)
		diag("job %llu %s (%s)", (unsigned long long)fg->job, job->state->words,
			job->node_list);
	else
		note("job %llu %s", (unsigned long long)fg->job, job->state->words);
}

static int status_of_job(const struct foreground *fg, const struct cluster_job *job)
{
	const struct slurm_state *state = job->state;
	int status = status_of_srun(fg);

	if (!state || state->phase != SLURM_ENDED || state->status < 0) {
		if (status == 0 && !state && !engine_line_has(fg->line, "jobid"))
			diag("Slurm does not know job %llu any more; it is not certain that it "
			     "ended well",
				(unsigned long long)fg->job);
		return status;
	}
	report_end(fg, job);
	/* a command that ends itself in time decides, as on one machine */
	return state->end == END_CANCELLED && status ? status : state->status;
}

/*
 * Of srun only a success is doubtful: it exits with 0 after the failure of a node, too.  It cannot
 * tell the controller that the job is over, which then never learns it.
 */
static int status_without_answer(const struct foreground *fg)
{
	int status = fg->is_started ? status_of_srun(fg) : 0;

	note("job %llu may keep its GPUs; when Slurm answers again: gpulease --cancel %llu",
		(unsigned long long)fg->job, (unsigned long long)fg->job);
	return status ? status : EXIT_MISUSE;
}

int foreground_status(struct foreground *fg)
{
	struct cluster_job job = { .state = NULL };

	if (fg->is_ending)
		return fg->status;
	/* a step says nothing of its job, which goes on */
	if (fg->job && !(engine_line_has(fg->line, "jobid") && fg->is_started) &&
		ask_state(fg, &job) != 0)
		return status_without_answer(fg);
	return fg->is_started ? status_of_job(fg, &job) : status_without_start(fg, &job);
}
