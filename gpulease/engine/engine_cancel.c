/*
 * --cancel and --signal-job, with scancel.
 *
 * scancel says nothing of a job that it does not know or that has ended, so squeue is asked first.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cancel_confirm.h"
#include "clock.h"
#include "diag.h"
#include "engine_poll.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "job_operands.h"
#include "parse.h"
#include "slurm_ask.h"

enum {
	ENDS_MS = 60 * 1000, /* longer than the usual time from TERM to KILL, KillWait */
	IDS_MOST = 500,      /* in one call of scancel */
};

/* One job to cancel. */
struct target {
	uint64_t id;
	uint32_t uid;
	bool is_chosen; /* by a word or a range, not by its id */
	bool is_left;   /* it waits or runs, and this user may cancel it */
	bool waits;     /* it stands for tasks of an array, which have no ids yet */
	char tasks[96]; /* "17_3", which Slurm needs in the place of the id; "": none */
	char user[64], name[64];
};

static struct {
	struct target *list;
	size_t count, room, chosen;
	int status;
} targets;

static void note_status(int status)
{
	if (status > targets.status)
		targets.status = status;
}

/* --- which jobs ----------------------------------------------------------------------------- */

static void describe(struct target *target, const struct cluster_job *job)
{
	target->uid = job->uid;
	target->is_left = true;
	target->waits = target->tasks[0] && job->state->phase == SLURM_WAITS;
	text_copy(target->user, sizeof(target->user), job->user);
	text_copy(target->name, sizeof(target->name), job->name);
}

/*
 * Writes the name of a task.  The id of an array is that of one of its tasks, too, and means all of
 * them to scancel.
 */
static void name_tasks(const struct cluster_job *known, char *out, size_t size)
{
	if (known && known->array_id && !known->array_tasks)
		(void)snprintf(out, size, "%llu_%s", (unsigned long long)known->array_id,
			known->task);
}

static int add_target(void *arg, uint64_t id, const struct cluster_job *known)
{
	struct target *list;
	char tasks[96] = "";

	(void)arg;
	name_tasks(known, tasks, sizeof(tasks));
	for (size_t i = 0; i < targets.count; i++)
		if (targets.list[i].id == id && strcmp(targets.list[i].tasks, tasks) == 0)
			return 0;
	list = array_grow(targets.list, sizeof(*list), targets.count, &targets.room);
	if (!list) {
		diag("cannot cancel: %s", strerror(ENOMEM));
		return EXIT_MISUSE;
	}
	targets.list = list;
	list[targets.count] = (struct target){ .id = id, .is_chosen = known };
	text_copy(list[targets.count].tasks, sizeof(tasks), tasks);
	if (known)
		describe(&list[targets.count], known);
	targets.chosen += known != NULL;
	targets.count++;
	return 0;
}

/* Writes what scancel calls it. */
static void add_name(const struct target *target, FILE *file)
{
	if (target->tasks[0])
		(void)fputs(target->tasks, file);
	else
		(void)fprintf(file, "%llu", (unsigned long long)target->id);
}

/* Writes the names of the targets for which @is_wanted is true, at most @most from @from on. */
static char *list_names(
	bool (*is_wanted)(const struct target *), char between, size_t *from, size_t most)
{
	char *list = NULL;
	size_t size = 0, count = 0;
	FILE *file = open_memstream(&list, &size);

	if (!file)
		return NULL;
	for (; *from < targets.count && count < most; ++*from) {
		if (!is_wanted(&targets.list[*from]))
			continue;
		if (count++)
			(void)fputc(between, file);
		add_name(&targets.list[*from], file);
	}
	(void)fclose(file);
	if (count)
		return list;
	free(list);
	return NULL;
}

/* Reports that the job @id, which squeue does not know, is unknown or has ended. */
static void report_missing(uint64_t id)
{
	struct engine_poll poll = ENGINE_POLL_NONE;
	int r = engine_poll_add(&poll, id);

	while (r == 0 && poll.left && !poll.silent_ms)
		r = engine_poll_wait(&poll, INT64_MAX, -1);
	if (r == 0 && poll.jobs[0].has_ended && !poll.jobs[0].is_unknown)
		diag("job %llu has finished", (unsigned long long)id);
	else
		diag("job %llu is unknown; --status and --history list the jobs",
			(unsigned long long)id);
	engine_poll_release(&poll);
	note_status(EXIT_NOT_DONE);
}

static bool is_by_id(const struct target *target)
{
	return !target->is_chosen;
}

/* Returns the job @id, or a task of the array @id if one waits or runs; NULL: unknown. */
static const struct cluster_job *find_by_id(const struct cluster_jobs *jobs, uint64_t id)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].array_id == id &&
			jobs->list[i].state->phase != SLURM_ENDED)
			return &jobs->list[i];
	return cluster_jobs_find(jobs, id);
}

/* Asks squeue for the jobs that are named by their ids.  Returns 0 or an exit status. */
static int look_up_ids(void)
{
	struct cluster_jobs jobs;
	size_t from = 0;
	autofree char *ids = list_names(is_by_id, ',', &from, SIZE_MAX);
	int r = ids ? cluster_jobs_ask(ids, &jobs) : 0;

	if (!ids || r != 0)
		return r;
	for (size_t i = 0; i < targets.count; i++) {
		struct target *target = &targets.list[i];
		const struct cluster_job *job = find_by_id(&jobs, target->id);

		if (target->is_chosen)
			continue;
		if (!job) {
			report_missing(target->id);
		} else if (job->state->phase == SLURM_ENDED) {
			diag("job %llu has finished", (unsigned long long)job->id);
			note_status(EXIT_NOT_DONE);
		} else {
			describe(target, job);
		}
	}
	cluster_jobs_release(&jobs);
	return 0;
}

/* Asks the user if several jobs would end that the user has not named by their ids. */
static bool confirm(const struct settings *settings)
{
	char bytes[200];
	struct text jobs = TEXT_ON(bytes);
	size_t count = 0;

	if (settings->verb.yes || targets.chosen < 2)
		return true;
	for (size_t i = 0; i < targets.count; i++) {
		const struct target *target = &targets.list[i];

		if (!target->is_left)
			continue;
		text_addf(&jobs, "%s%llu%s%s", count++ ? ", " : "",
			(unsigned long long)target->id, *target->name ? " " : "",
			target->name);
		if (target->uid != getuid())
			text_addf(&jobs, " of %s", target->user);
	}
	return cancel_confirm(count, &jobs);
}

/* --- ending -------------------------------------------------------------------------------- */

static bool is_own(const struct target *target)
{
	return target->is_left && (target->uid == getuid() || getuid() == 0);
}

/*
 * Calls scancel.  Returns 0; EXIT_NOT_DONE, with its words in @error; or an exit status after a
 * message.
 */
static int call_scancel(char *ids, const char *const *options, char *error, size_t size)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	slurm_words_add(&words, "scancel");
	while (*options)
		slurm_words_add(&words, *options++);
	for (char *id = strtok_r(ids, " ", &ids); id; id = strtok_r(NULL, " ", &ids))
		slurm_words_add(&words, id);
	r = slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer);
	slurm_words_release(&words);
	if (r != 0)
		return r;
	text_copy(error, size, answer.error);
	r = answer.status ? EXIT_NOT_DONE : 0;
	answer_release(&answer);
	return r;
}

/* Cancels the jobs of this user.  Returns 0 or an exit status. */
static int cancel_own(void)
{
	static const char *const no_options[] = { NULL };
	size_t from = 0;

	for (;;) {
		autofree char *ids = list_names(is_own, ' ', &from, IDS_MOST);
		char error[200];
		int r;

		if (!ids)
			return 0;
		r = call_scancel(ids, no_options, error, sizeof(error));
		if (r == EXIT_NOT_DONE)
			/* one that has just ended is no error, and others are seen below */
			verbose("scancel: %s", error);
		else if (r != 0)
			return r;
	}
}

/* Tries to cancel a job of another user, which operators of Slurm may do. */
static int cancel_foreign(struct target *target)
{
	static const char *const no_options[] = { NULL };
	char ids[96], error[200];
	int r;

	if (target->tasks[0])
		text_copy(ids, sizeof(ids), target->tasks);
	else
		(void)snprintf(ids, sizeof(ids), "%llu", (unsigned long long)target->id);
	r = call_scancel(ids, no_options, error, sizeof(error));
	if (r != EXIT_NOT_DONE)
		return r;
	diag("job %llu belongs to %s; only they, root and operators of Slurm may cancel it",
		(unsigned long long)target->id, target->user);
	target->is_left = false;
	note_status(EXIT_NOT_DONE);
	return 0;
}

static void report_stay(const struct engine_poll *poll)
{
	for (size_t i = 0; i < poll->count; i++) {
		if (poll->jobs[i].has_ended)
			continue;
		diag("job %llu has got its signal, but has not ended yet",
			(unsigned long long)poll->jobs[i].id);
		note_status(EXIT_NOT_DONE);
	}
}

/* Waits until all targets have ended.  Returns 0 or an exit status. */
static int await_ends(void)
{
	struct engine_poll poll = ENGINE_POLL_NONE;
	int64_t until_ms = clock_boot_ms() + ENDS_MS;
	int r = 0;

	for (size_t i = 0; i < targets.count && r == 0; i++)
		if (targets.list[i].is_left && !targets.list[i].waits)
			r = engine_poll_add(&poll, targets.list[i].id);
	while (r == 0 && poll.left && clock_boot_ms() < until_ms)
		r = engine_poll_wait(&poll, until_ms, -1);
	if (r == 0)
		report_stay(&poll);
	engine_poll_release(&poll);
	return r < 0 ? EXIT_MISUSE : r;
}

static int cancel_all(void)
{
	size_t done = 0;
	int r = cancel_own();

	for (size_t i = 0; i < targets.count && r == 0; i++)
		if (targets.list[i].is_left && !is_own(&targets.list[i]))
			r = cancel_foreign(&targets.list[i]);
	if (r == 0)
		r = await_ends();
	for (size_t i = 0; i < targets.count; i++)
		done += targets.list[i].is_chosen && targets.list[i].is_left;
	if (targets.chosen && r == 0)
		note("cancelled %zu job%s", done, done == 1 ? "" : "s");
	return r;
}

static int cancel_jobs_of(const struct engine_line *line)
{
	int r = job_operands_each(line, OPERAND_JOBS, add_target, NULL, &targets.status);

	if (r == 0)
		r = look_up_ids();
	if (r != 0)
		return r;
	if (!confirm(&line->settings)) {
		diag("cancelled nothing");
		return EXIT_NOT_DONE;
	}
	r = cancel_all();
	return r ? r : targets.status;
}

/* --- --signal-job ------------------------------------------------------------------- */

/* What squeue says of the job that is signalled. */
struct signalled {
	uint64_t id;
	const struct slurm_state *state; /* NULL: it is unknown */
	bool is_batch, is_ours;          /* ->is_ours: of --submit */
};

static int ask_for_signal(struct signalled *job)
{
	enum { ID, STATE, BATCH, COMMENT, FIELDS };
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	char *fields[FIELDS], *text;
	uint64_t id;
	int r;

	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "--states=all");
	slurm_words_addf(&words, "--jobs=%llu", (unsigned long long)job->id);
	slurm_words_add(&words, "-O");
	slurm_words_add(&words, "JobID:\x1f,State:\x1f,BatchFlag:\x1f,Comment:\x1f");
	r = slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer);
	slurm_words_release(&words);
	if (r != 0)
		return r;
	if (answer.status && !strcasestr(answer.error, "invalid job id")) {
		diag("squeue has failed: %s", answer.error);
		r = EXIT_MISUSE;
	}
	text = answer.text;
	/* the first line: the comment may have others in it */
	while (r == 0 && !job->state && slurm_next_line(&text, fields, FIELDS) >= 0) {
		if (parse_u64(fields[ID], UINT64_MAX, &id, NULL) < 0 || id != job->id)
			continue;
		job->state = slurm_state_find(fields[STATE]);
		job->is_batch = strcmp(fields[BATCH], "1") == 0;
		job->is_ours = strncmp(fields[COMMENT], "gpulease:", 9) == 0;
	}
	answer_release(&answer);
	return r;
}

/* Returns 0, or an exit status after a message: no command of the job runs. */
static int check_runs(const struct signalled *job)
{
	if (!job->state)
		report_missing(job->id);
	else if (job->state->phase == SLURM_ENDED)
		diag("job %llu has finished", (unsigned long long)job->id);
	else if (job->state->phase == SLURM_WAITS)
		diag("job %llu waits, so it has no command yet",
			(unsigned long long)job->id);
	return job->state && job->state->phase == SLURM_RUNS ? 0 : EXIT_NOT_DONE;
}

/*
 * Returns the signal that the script of --submit needs for its command to get @signal: it cannot
 * catch KILL and STOP, and Slurm takes TERM for an end and sends it to all processes.
 */
static int signal_for_script(int signal)
{
	static const struct {
		int wanted, sent;
	} others[] = { { SIGTERM, SIGURG }, { SIGKILL, SIGPROF },
		{ SIGSTOP, SIGVTALRM } };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i].wanted == signal)
			return others[i].sent;
	return signal;
}

/* Signals the script of the job, or, if it has none, the tasks of srun. */
static int send_signal(const struct signalled *job, int signal)
{
	char number[16];
	const char *options[] = { "-s", number, job->is_batch ? "--batch" : NULL, NULL };
	char ids[24], error[200];
	int r;

	(void)snprintf(number, sizeof(number), "%d",
		job->is_ours ? signal_for_script(signal) : signal);
	(void)snprintf(ids, sizeof(ids), "%llu", (unsigned long long)job->id);
	r = call_scancel(ids, options, error, sizeof(error));
	if (r == EXIT_NOT_DONE && strcasestr(error, "permission denied"))
		diag("job %llu belongs to another user; only they, root and operators of "
		     "Slurm may signal it",
			(unsigned long long)job->id);
	else if (r == EXIT_NOT_DONE)
		diag("cannot signal job %llu: %s", (unsigned long long)job->id, error);
	return r;
}

static int signal_job(const struct engine_line *line)
{
	const struct verb_settings *verb = &line->settings.verb;
	struct operand_walk walk = OPERAND_WALK(verb->operands, 1, OPERAND_JOB);
	struct signalled job = { .state = NULL };
	struct operand operand;
	int r;

	/* it was checked when the command line was read */
	if (operand_next(&walk, &operand, NULL) == 0)
		job.id = operand.first;
	r = ask_for_signal(&job);
	if (r == 0)
		r = check_runs(&job);
	return r ? r : send_signal(&job, verb->signal);
}

int engine_cancel(struct engine_line *line)
{
	return line->settings.verb.kind == VERB_SIGNAL_JOB ? signal_job(line)
							   : cancel_jobs_of(line);
}
