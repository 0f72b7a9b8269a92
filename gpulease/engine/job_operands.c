#include <fcntl.h>
#include <string.h>

#include "array_list.h"
#include "cancel_choice.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "job_operands.h"
#include "parse.h"

enum { ENVIRONMENT_MOST = 1024 * 1024 };

struct choosing {
	enum operand_kind kind;
	job_operand_fn *each;
	void *arg;
	int *status;
	struct cluster_jobs jobs;
	bool has_asked;
};

uint64_t job_operands_own(void)
{
	static const char name[] = "SLURM_JOB_ID=";
	autofree char *text = NULL;
	uint64_t id = 0;
	size_t size;
	autofd int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

	/* as this process was started: its own environment has no such variables any more */
	text = malloc(ENVIRONMENT_MOST);
	if (fd < 0 || !text || fdio_pread(fd, text, ENVIRONMENT_MOST - 1, 0, &size) < 0)
		return 0;
	text[size] = '\0';
	for (char *at = text; at < text + size; at += strlen(at) + 1)
		if (strncmp(at, name, strlen(name)) == 0 &&
			parse_u64(at + strlen(name), UINT64_MAX, &id, NULL) < 0)
			id = 0;
	return id;
}

/* Returns the only job that the name means, or NULL after a message. */
static const struct cluster_job *find_only(
	struct choosing *choosing, const struct cancel_choice *choice)
{
	const struct cluster_job *found = NULL;
	struct why why;

	for (size_t i = 0; i < choosing->jobs.count; i++) {
		const struct cluster_job *job = &choosing->jobs.list[i];
		struct live_job live = {
			.id = job->id, .uid = job->uid, .name = job->name
		};

		if (job->state->phase == SLURM_ENDED ||
			!cancel_choice_admits(choice, &live))
			continue;
		if (found) {
			diag("'%s' means several jobs, as %llu and %llu; give an id",
				quote(choice->name).text, (unsigned long long)found->id,
				(unsigned long long)job->id);
			return NULL;
		}
		found = job;
	}
	if (!found) {
		cancel_choice_explain_none(choice, &why);
		diag("%s", why.text);
	}
	return found;
}

/* Calls ->each for all jobs that the choice means. */
static int call_for_all(struct choosing *choosing, const struct cancel_choice *choice)
{
	bool is_found = false;
	struct why why;

	for (size_t i = 0; i < choosing->jobs.count; i++) {
		const struct cluster_job *job = &choosing->jobs.list[i];
		struct live_job live = {
			.id = job->id, .uid = job->uid, .name = job->name
		};
		/* `all` of --wait-for is for every user */
		bool is_admitted =
			choosing->kind == OPERAND_NAME && choice->kind == CHOICE_ALL
				? true
				: cancel_choice_admits(choice, &live);
		int r;

		if (job->state->phase == SLURM_ENDED || !is_admitted)
			continue;
		is_found = true;
		r = choosing->each(choosing->arg, job->id, job);
		if (r != 0)
			return r;
	}
	if (is_found || choosing->kind == OPERAND_NAME)
		return 0;
	cancel_choice_explain_none(choice, &why);
	diag("%s", why.text);
	*choosing->status = EXIT_NOT_DONE;
	return 0;
}

/* Asks squeue, once.  Returns 0, or an exit status after a message. */
static int ask(struct choosing *choosing)
{
	int r = choosing->has_asked ? 0 : cluster_jobs_ask(NULL, &choosing->jobs);

	choosing->has_asked |= r == 0;
	return r;
}

/* --- tasks of arrays --------------------------------------------------------------------- */

/* Whether a task of @job, or of those that wait in its place, is in the list. */
static bool is_meant(
	const struct cluster_job *job, uint64_t array, const struct array_list *list)
{
	static struct array_list own;

	if (!job->array_id || job->array_id != array)
		return false;
	/* Slurm cuts a long list */
	if (array_list_read(job->task, &own, NULL) < 0)
		return job->array_tasks != 0;
	for (unsigned i = 0; i < own.count; i++)
		if (array_list_find(list, own.indices[i]) >= 0)
			return true;
	return false;
}

/* Handles the tasks that the text `N_I` or `N_[LIST]` means. */
static int call_for_tasks(struct choosing *choosing, const char *text, uint64_t array,
	const struct array_list *list)
{
	bool is_found = false;
	int r = ask(choosing);

	for (size_t i = 0; i < choosing->jobs.count && r == 0; i++) {
		struct cluster_job job = choosing->jobs.list[i];
		bool is_over = job.state->phase == SLURM_ENDED;

		if (!is_meant(&job, array, list) ||
			(is_over && choosing->kind == OPERAND_JOBS))
			continue;
		is_found = true;
		if (choosing->kind == OPERAND_NAME && job.array_tasks) {
			diag("'%s' has not started, and Slurm gives a task its id only then; "
			     "wait for the array: %llu",
				text, (unsigned long long)array);
			*choosing->status = EXIT_NOT_DONE;
			continue;
		}
		/* of all that wait, only these are meant */
		if (job.array_tasks)
			text_copy(job.task, sizeof(job.task), strchr(text, '_') + 1);
		job.array_tasks = 0;
		r = choosing->each(choosing->arg, job.id, &job);
	}
	if (is_found || r != 0)
		return r;
	diag("no task '%s' waits or runs; --queue and --status show the jobs", text);
	*choosing->status = EXIT_NOT_DONE;
	return 0;
}

/* --- operands ---------------------------------------------------------------------------- */

static int call_for_operand(struct choosing *choosing, const struct operand *operand)
{
	struct cancel_choice choice = cancel_choice_of(operand, getuid());
	const struct cluster_job *job;
	int r;

	if (!operand->word && operand->first == operand->last)
		return choosing->each(choosing->arg, operand->first, NULL);
	r = ask(choosing);
	if (r != 0)
		return r;
	if (choosing->kind == OPERAND_JOBS || choice.kind == CHOICE_MINE ||
		choice.kind == CHOICE_ALL)
		return call_for_all(choosing, &choice);
	job = find_only(choosing, &choice);
	if (job)
		return choosing->each(choosing->arg, job->id, job);
	*choosing->status = EXIT_NOT_DONE;
	return 0;
}

static int call_for_word(struct choosing *choosing, char *word)
{
	struct operand_walk walk = OPERAND_WALK(&word, 1, choosing->kind);
	static struct array_list list;
	struct operand operand;
	uint64_t array;
	int r = 0;

	if (array_list_read_id(word, strlen(word), &array, &list))
		return call_for_tasks(choosing, word, array, &list);
	/* they were checked when the command line was read */
	while (r == 0 && operand_next(&walk, &operand, NULL) == 0)
		r = call_for_operand(choosing, &operand);
	return r;
}

int job_operands_each(const struct engine_line *line, enum operand_kind kind,
	job_operand_fn *each, void *arg, int *status)
{
	const struct verb_settings *verb = &line->settings.verb;
	struct choosing choosing = {
		.kind = kind, .each = each, .arg = arg, .status = status
	};
	int r = 0;

	for (unsigned i = 0; i < verb->operand_count && r == 0; i++)
		r = call_for_word(&choosing, verb->operands[i]);
	cluster_jobs_release(&choosing.jobs);
	return r;
}
