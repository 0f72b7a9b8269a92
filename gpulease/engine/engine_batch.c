/*
 * --batch on a cluster.  Each line is a job of Slurm.  The runner is that of one machine: for each
 * line it runs a local job without GPUs, which stands for the job of Slurm (engine_member.h).
 * While that waits in Slurm's queue, the local job waits, too, so that edits of the file, recalls
 * and the board are as on one machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch_attributes.h"
#include "batch_log.h"
#include "batch_member.h"
#include "batch_open.h"
#include "clock.h"
#include "cluster_jobs.h"
#include "cluster_size.h"
#include "diag.h"
#include "engine_batch_place.h"
#include "engine_entry.h"
#include "engine_poll.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "slurm_ask.h"
#include "slurm_reason.h"

enum {
	JOBS_AT_ONCE = 50,
	AGAIN_MS = 10 * 1000,  /* until Slurm is asked again, if it does not answer */
	GRACE_MS = 120 * 1000, /* for Slurm's own: KillWait is 30 s if it is not set */
};

/* The command line; for the processes of the jobs, too. */
static struct {
	struct engine_line *line;
	char program[PATH_MAX];
} batch;

/* --- one job, in its own process ----------------------------------------------------------- */

/* A job that waits in Slurm's queue. */
struct waiting {
	struct engine_entry *entry;
	struct batch_member *member;
	struct engine_poll poll;
	char said[sizeof(
		((struct polled_job *)0)->reason)]; /* the reason that was sent last */
};

/* The entry of this process, and what the observer of its job did before. */
static struct {
	struct engine_entry entry;
	struct job_observer observer;
	int64_t limit_ms; /* of the job of Slurm; 0: none */
} own;

/* Reads how the job of Slurm has ended; a state that is no end if it is not known. */
static const struct slurm_state *read_end(void)
{
	if (entry_read(&own.entry) != 0)
		own.entry.end[0] = '\0';
	return slurm_state_find(own.entry.end);
}

/* Whether the node has ended the job at its limit, as it does to the second. */
static bool has_reached_limit(const struct engine_entry *entry)
{
	return own.limit_ms && entry->status == EXIT_GAVE_UP &&
	       (int64_t)(entry->ran_s + 1) * 1000 >= own.limit_ms;
}

static enum end_cause cause_of(const struct slurm_state *state)
{
	if (state->end == END_CANCELLED)
		return CAUSE_CANCEL;
	if (state->end == END_TIMED_OUT ||
		(state->end == END_FAILED && has_reached_limit(&own.entry)))
		return CAUSE_LIMIT;
	return CAUSE_ITSELF;
}

/* For job_observer: a job that was cancelled or has reached its limit is not tried again. */
static bool is_stopped(void *context)
{
	return cause_of(read_end()) != CAUSE_ITSELF || own.observer.is_stopped(context);
}

/*
 * Whether the member was killed from outside, for example for want of memory.  Its job goes on in
 * Slurm, or has ended otherwise.  If this process ends, too, the runner starts both again.
 */
static bool was_member_killed(const struct attempt_end *end)
{
	return end->cause == CAUSE_ITSELF && !end->was_told &&
	       WIFSIGNALED(end->wait_status) && WTERMSIG(end->wait_status) == SIGKILL &&
	       !own.observer.is_stopped(own.observer.context);
}

/*
 * For job_observer: writes the end of an attempt into the journal, with the cause that Slurm knows.
 * From then on no process needs the job of Slurm.
 */
static void attempt_ended(void *context, const struct attempt_news *news)
{
	struct attempt_end end = *news->end;
	struct attempt_news ours = *news;
	const struct slurm_state *state = read_end();

	ours.end = &end;
	if (end.cause == CAUSE_ITSELF && !end.was_told) {
		end.cause = cause_of(state);
		ours.by = end.cause == CAUSE_CANCEL ? "scancel" : news->by;
	}
	/* this process may have looked late */
	end.ran_ms = max_i64(end.ran_ms, (int64_t)own.entry.ran_s * 1000);
	if (was_member_killed(news->end))
		(void)raise(SIGKILL);
	if (state->phase != SLURM_ENDED && own.entry.id) {
		/* what has ended here must not go on there; the next runner sees to its end */
		(void)!entry_stop(&own.entry);
		own.observer.attempt_ended(context, &ours);
		return;
	}
	own.observer.attempt_ended(context, &ours);
	entry_forget_job(&own.entry, news->next == RETRY_NEXT_NOTHING);
}

/* For job_observer: submits the job of a further attempt here, so that the journal gets its id. */
static int starts(void *context, const struct broker *broker, const struct launch *launch,
	int64_t waited_ms)
{
	struct batch_member *member = context;

	/* the member tries again, and reports what is wrong */
	if (entry_submit(&own.entry) == 0)
		member->slurm_job = own.entry.id;
	return own.observer.starts(context, broker, launch, waited_ms);
}

/* Sets @settings to a local job that runs the member. */
static void stand_for(const struct engine_entry *entry, struct settings *settings)
{
	static char parent[12], part[] = "member";
	static char *words[5];
	const char *line = settings->environment.line;

	(void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
	words[0] = batch.program;
	words[1] = part;
	words[2] = (char *)entry->path;
	words[3] = parent;
	settings->request = (struct run_request){
		.gpus_given = true, .max_wait_ms = -1, .name = settings->request.name
	};
	settings->care = (struct run_care){
		.limit_given = true,
		.grace_ms = GRACE_MS,
		.grace_given = true,
		.max_requeues = UINT_MAX,
		.done_status = settings->care.done_status,
		.retries = settings->care.retries,
		.retries_given = settings->care.retries_given,
	};
	settings->environment = (struct run_environment){
		.command = words,
		.shown = line,
		.submit = true,
		.is_standin = true,
		.bind = BIND_NO,
	};
	settings->output =
		(struct output_settings){ .verbose = settings->output.verbose };
	settings->tasks = (struct task_settings){ .count = 1 };
}

/* Tells the runner why the job waits, unless it knows the reason @name already. */
static void say(struct waiting *waiting, const char *name, const char *words)
{
	const struct job_observer *observer = &waiting->member->observer;

	if (strcmp(waiting->said, name) == 0)
		return;
	text_copy(waiting->said, sizeof(waiting->said), name);
	observer->waits(observer->context, words);
}

static void say_reason(struct waiting *waiting, const char *reason)
{
	char words[160];
	struct text text = TEXT_ON(words);

	slurm_reason_add(reason, &text);
	if (reason[0])
		say(waiting, reason, words);
}

enum cancel_outcome { CANCEL_DONE, CANCEL_TOO_LATE, CANCEL_UNKNOWN };

/* Asks what has become of a waiting job that Slurm was to cancel. */
static enum cancel_outcome ask_after_cancel(const struct waiting *waiting)
{
	enum cancel_outcome outcome = CANCEL_DONE;
	const struct cluster_job *job;
	struct cluster_jobs jobs;
	char id[24];

	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)waiting->entry->id);
	if (cluster_jobs_ask(id, &jobs) != 0)
		return CANCEL_UNKNOWN;
	job = cluster_jobs_find(&jobs, waiting->entry->id);
	if (job && job->state->end != END_CANCELLED)
		outcome = job->state->phase == SLURM_WAITS ? CANCEL_UNKNOWN
							   : CANCEL_TOO_LATE;
	cluster_jobs_release(&jobs);
	return outcome;
}

/* What leave() returns if the job stays: it has started already, or Slurm does not answer. */
enum { LEAVE_TOO_LATE = 0, LEAVE_AGAIN = -1 };

/*
 * The runner wants the job to leave the queue, or is dead.  The next runner finds a job that a dead
 * one leaves.  Returns EXIT_GAVE_UP if the job is left or cancelled, or one of the values above.
 */
static int leave(struct waiting *waiting)
{
	struct batch_member *member = waiting->member;

	if (!member->was_recalled && !member->was_stopped)
		return EXIT_GAVE_UP;
	/* a job that starts at this moment goes on, unless the whole batch stops */
	if ((member->was_stopped ? entry_stop(waiting->entry)
				 : entry_cancel(waiting->entry, true)) != 0)
		return LEAVE_AGAIN;
	switch (ask_after_cancel(waiting)) {
	case CANCEL_UNKNOWN:
		return LEAVE_AGAIN;
	case CANCEL_TOO_LATE:
		/* the next runner waits for its end */
		if (member->was_stopped)
			return EXIT_GAVE_UP;
		member->was_recalled = false;
		return LEAVE_TOO_LATE;
	case CANCEL_DONE:
		break;
	}
	entry_forget_job(waiting->entry, true);
	return EXIT_GAVE_UP;
}

/* Whether the job can never start; @why is then the reason. */
static bool is_hopeless(const struct polled_job *job, struct text *why)
{
	if (cluster_is_too_small(job->id, job->reason, why))
		return true;
	if (!slurm_reason_find(job->reason)->is_for_ever)
		return false;
	slurm_reason_add(job->reason, why);
	return true;
}

/* The job waits for what will never be.  Returns the exit status. */
static int refuse_hopeless(
	struct waiting *waiting, const struct polled_job *job, const char *why)
{
	unsigned long long id = waiting->entry->id;

	if (!job->has_ended)
		(void)!entry_cancel(waiting->entry, true);
	entry_forget_job(waiting->entry, true);
	diag("job %llu of Slurm can never start: %s", id, why);
	return EXIT_MISUSE;
}

/* The job waits no longer.  Returns 0, or an exit status if it was cancelled before it has run. */
static int take_start(const struct waiting *waiting, const struct polled_job *job)
{
	const struct job_observer *observer = &waiting->member->observer;

	if (!job->has_ended || !job->state || job->state->end != END_CANCELLED ||
		job->start_s < job->end_s)
		return 0;
	observer->cancelled(observer->context, "scancel");
	entry_forget_job(waiting->entry, true);
	return 128 + SIGTERM;
}

/* What settle_stopped() returns beside 0. */
enum { STOPPED_ENDS = -1, STOPPED_BY_US = -2 };

/*
 * The job was there when an earlier runner stopped, which had it cancelled, or tried to.  Returns
 * 0: it waits or runs, or has ended by itself, so it is taken on; STOPPED_ENDS: it is ending, or
 * nothing is known yet; or STOPPED_BY_US: it has ended for that, so its line is run again.
 */
static int settle_stopped(struct engine_entry *entry, const struct polled_job *job)
{
	/* of a job that Slurm has forgotten only the status may be known */
	bool is_known = job->state && job->state->phase == SLURM_ENDED;

	if (job->has_ended && (is_known ? job->state->end == END_CANCELLED
					: entry->stop == STOP_TAKEN || job->status != 0))
		return STOPPED_BY_US;
	if (!job->has_ended &&
		(!job->state || strcmp(job->state->name, "COMPLETING") == 0))
		return STOPPED_ENDS;
	entry->stop = STOP_NONE;
	if (entry_write(entry) < 0)
		verbose("cannot write '%s'", entry->path);
	return 0;
}

/* Slurm cannot be asked now.  The runner starts the job again later. */
static int put_off(const struct job_observer *observer)
{
	char words[256];

	text_copy(words, sizeof(words), diag_last());
	observer->put_off(observer->context, words);
	return EXIT_GAVE_UP;
}

/*
 * Waits until Slurm has started the job.  Returns 0; the exit status if it does not run; or
 * STOPPED_BY_US.
 */
static int wait_for_start(struct waiting *waiting)
{
	const struct job_observer *observer = &waiting->member->observer;
	const struct polled_job *job;
	char why[160];
	struct text text = TEXT_ON(why);
	int r = 0;

	if (engine_poll_add(&waiting->poll, waiting->entry->id) < 0)
		return put_off(observer);
	while (r == 0) {
		int64_t until_ms = INT64_MAX;

		job = engine_poll_find(&waiting->poll, waiting->entry->id);
		if (observer->is_recalled(observer->context)) {
			r = leave(waiting);
			if (r != LEAVE_AGAIN)
				return r;
			until_ms = clock_boot_ms() + AGAIN_MS;
		} else if (waiting->entry->stop != STOP_NONE &&
			   (r = settle_stopped(waiting->entry, job)) != 0) {
			if (r == STOPPED_BY_US)
				return r;
			say(waiting, "ending", "its job of the last run is ending");
		} else if (is_hopeless(job, &text)) {
			/* Slurm lets it wait, or calls it failed */
			return refuse_hopeless(waiting, job, why);
		} else if (job->has_ended ||
			   (job->state && job->state->phase != SLURM_WAITS)) {
			return take_start(waiting, job);
		}
		if (r != STOPPED_ENDS)
			say_reason(waiting, job->reason);
		r = engine_poll_wait(&waiting->poll, until_ms,
			until_ms == INT64_MAX ? observer->leash_fd(observer->context)
					      : -1);
	}
	return put_off(observer);
}

/*
 * Reads the file of the entry, or makes what it will contain.  If it names a job of Slurm, that
 * stays.  Returns 0 or a negative errno.
 */
static int find_entry(struct engine_entry *entry, const struct batch_line *line,
	const char *log, uint64_t number)
{
	struct text path = TEXT_ON(entry->path);
	char name[96];
	struct text name_text = TEXT_ON(name);
	int r;

	text_addf(&path, "%.*s/%llu" ENTRY_SUFFIX, (int)(strrchr(log, '/') - log), log,
		(unsigned long long)number);
	r = entry_read(entry);
	entry->end[0] = '\0';
	if (r == 0 && entry->token[0])
		return 0;
	batch_log_name(number, NULL, line->command, &name_text);
	name[strlen(name) - strlen(".log")] = '\0';
	entry->words = entry_words_make(batch.line, line, name);
	entry->log = strdup(log);
	return path.cut ? -ENAMETOOLONG : entry->words.at && entry->log ? 0 : -ENOMEM;
}

/* Whether an attribute of the line asks for what a cluster does not have; then says so. */
static bool is_refused(const struct batch_line *line)
{
	static const struct {
		enum batch_attribute which;
		const char *why;
	} rows[] = {
		{ BATCH_VRAM,
			"Slurm knows no GPU memory; ask for a type: --gpus TYPE:N before "
			"--batch" },
		{ BATCH_RETRIES,
			"Slurm knows no GPU memory, so no other attempt gets more; write "
			"fail-retries" },
		{ BATCH_ALLOW,
			"Slurm chooses the GPUs; name nodes: --nodelist before --batch" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!(line->attributes.given & 1u << rows[i].which))
			continue;
		diag("%s: %s", batch_attribute_name(rows[i].which), rows[i].why);
		return true;
	}
	return false;
}

/* Finds or submits the job, and waits for its start.  Returns like wait_for_start(). */
static int start_job(struct waiting *waiting)
{
	const struct job_observer *observer = &waiting->member->observer;
	int r = entry_submit(waiting->entry);

	if (r == SUBMISSION_LOST)
		return put_off(observer);
	if (r != 0) {
		entry_forget_job(waiting->entry, true);
		return r;
	}
	waiting->member->slurm_job = waiting->entry->id;
	observer->queued(observer->context, 0);
	r = wait_for_start(waiting);
	engine_poll_release(&waiting->poll);
	return r;
}

/* See struct batch_launcher. */
static int prepare(const struct batch_launcher *launcher, const struct batch_line *line,
	const char *log, struct batch_member *member, struct settings *settings)
{
	int r;

	(void)launcher;
	if (is_refused(line))
		return EXIT_MISUSE;
	do {
		struct waiting waiting = {
			.entry = &own.entry, .member = member, .poll = ENGINE_POLL_NONE
		};

		r = find_entry(&own.entry, line, log, member->number);
		if (r < 0) {
			diag("cannot use '%s': %s", own.entry.path, strerror(-r));
			return EXIT_MISUSE;
		}
		/* what an earlier runner has stopped may be shown as running there */
		if (own.entry.stop != STOP_NONE)
			waiting.poll.since_real_ms = clock_real_ms();
		r = start_job(&waiting);
		if (r == STOPPED_BY_US)
			entry_forget_job(&own.entry, true);
	} while (r == STOPPED_BY_US);
	if (r != 0)
		return r;
	own.observer = member->observer;
	own.limit_ms = settings->care.limit_ms;
	member->observer.is_stopped = is_stopped;
	member->observer.attempt_ended = attempt_ended;
	member->observer.starts = starts;
	stand_for(&own.entry, settings);
	return 0;
}

/* --- --fresh ------------------------------------------------------------------------------- */

/* Calls @handle for each file of an entry in @folder; ends if that does not return 0. */
static int each_entry(const char *folder,
	int (*handle)(void *arg, struct engine_entry *entry), void *arg)
{
	DIR *dir = opendir(folder);
	struct dirent *file;
	int r = 0;

	while (dir && r == 0 && (file = readdir(dir))) {
		struct engine_entry entry = ENGINE_ENTRY_NONE;
		struct text path = TEXT_ON(entry.path);
		size_t digits = strspn(file->d_name, "0123456789");

		if (!digits || strcmp(file->d_name + digits, ENTRY_SUFFIX) != 0)
			continue;
		text_addf(&path, "%s/%s", folder, file->d_name);
		r = handle(arg, &entry);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int add_id(void *arg, struct engine_entry *entry)
{
	struct text *ids = arg;
	int r = entry_read(entry);

	if (r != 0 || !entry->token[0])
		return 0;
	if (!entry->id)
		r = submission_find(entry->token, SLURM_DEADLINE_MS, &entry->id);
	if (entry->id)
		text_addf(ids, "%s%llu", ids->used ? "," : "",
			(unsigned long long)entry->id);
	free(entry->text);
	return r == SUBMISSION_LOST ? EXIT_MISUSE : 0;
}

static int remove_file(void *arg, struct engine_entry *entry)
{
	(void)arg;
	(void)unlink(entry->path);
	return 0;
}

/* Prints that jobs in @jobs have not ended.  Returns 0 if there are none, or EXIT_MISUSE. */
static int refuse_alive(const struct cluster_jobs *jobs)
{
	char ids[256];
	struct text text = TEXT_ON(ids);

	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].state->phase != SLURM_ENDED)
			text_addf(&text, "%s%llu", text.used ? ", " : "",
				(unsigned long long)jobs->list[i].id);
	if (!text.used)
		return 0;
	diag("jobs of an earlier run have not ended: %s%s; wait for them, or cancel them "
	     "first",
		ids, text.cut ? "…" : "");
	return EXIT_MISUSE;
}

/*
 * --fresh forgets the jobs of earlier runs, so none of them may still be in Slurm.  Returns 0 or an
 * exit status after a message.
 */
static int check_fresh(const char *folder)
{
	static char ids[64 * 1024];
	struct text text = TEXT_ON(ids);
	struct cluster_jobs jobs;
	int r = each_entry(folder, add_id, &text);

	if (r != 0 || !text.used)
		return r;
	r = cluster_jobs_ask(ids, &jobs);
	if (r != 0)
		return r;
	r = refuse_alive(&jobs);
	cluster_jobs_release(&jobs);
	return r;
}

/* --- the batch ----------------------------------------------------------------------------- */

/* Whether the options ask for no GPU. */
static bool are_no_gpus_asked(const struct engine_line *line)
{
	const char *gpus = engine_line_value(line, "gpus");

	if (!gpus)
		gpus = engine_line_value(line, "n");
	return gpus && strcmp(gpus, "0") == 0;
}

/* Refuses options that would make every job fail.  Returns 0 or EXIT_MISUSE. */
static int check_options(const struct engine_line *line)
{
	static struct engine_line of_job; /* too big for the stack */
	struct batch_line any = { .command = "true" };
	struct entry_words words = entry_words_make(line, &any, "job");
	struct why why = WHY_NONE;
	int r = words.at ? entry_words_read(&words, &of_job, &why) : -ENOMEM;

	if (r == 0)
		return 0;
	diag("%s", why.text[0] ? why.text : strerror(-r));
	return EXIT_MISUSE;
}

static int find_own_program(void)
{
	ssize_t size =
		readlink("/proc/self/exe", batch.program, sizeof(batch.program) - 1);

	if (size > 0)
		return 0;
	diag("cannot find gpulease-engine by /proc/self/exe");
	return EXIT_MISUSE;
}

/* Without these no job could ever start, and the runner would try again for ever. */
static int find_programs(void)
{
	static const char *const names[] = { "sbatch", "squeue", "scancel" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
		r = slurm_find(names[i]);
	return r;
}

int engine_batch(struct engine_line *line)
{
	static struct batch_runner runner; /* too big for the stack */
	static char place[PATH_MAX], folder[PATH_MAX];
	struct settings *settings = &line->settings;
	int r = find_own_program();

	batch.line = line;
	if (!engine_line_has(line, "jobs"))
		settings->batch.jobs_at_once = JOBS_AT_ONCE;
	if (are_no_gpus_asked(line))
		settings->request.gpus = 0;
	batch_open_folder(settings, folder);
	if (r == 0)
		r = check_options(line);
	if (r == 0)
		r = find_programs();
	if (r == 0)
		r = engine_batch_place(place);
	if (r == 0 && settings->batch.fresh)
		r = check_fresh(folder);
	settings->machine.dir = place;
	if (r == 0)
		r = batch_open(&runner, settings);
	if (r != 0)
		return r;
	if (settings->batch.fresh)
		(void)each_entry(runner.folder, remove_file, NULL);
	runner.launcher.prepare = prepare;
	return batch_runner_run(&runner);
}
