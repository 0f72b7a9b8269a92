#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "diag.h"
#include "engine_poll.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "poll_rows.h"
#include "poll_share.h"
#include "slurm_ask.h"

enum {
	BUSY_LEAST_MS =
		20, /* between looks for the answer that another process asks for */
	BUSY_MOST_MS = 1000,
	SILENT_MS = 1000, /* between questions to a controller that does not answer */
	RECORD_LOOK_MS = 1000,
	RECORDS_MOST = 64, /* with more jobs the interval is enough */
};

static int next_question(struct engine_poll *poll, int64_t now_ms);

/* --- the jobs -------------------------------------------------------------------------- */

struct polled_job *engine_poll_find(const struct engine_poll *poll, uint64_t id)
{
	for (size_t i = 0; i < poll->count; i++)
		if (poll->jobs[i].id == id)
			return &poll->jobs[i];
	return NULL;
}

int engine_poll_add(struct engine_poll *poll, uint64_t id)
{
	struct polled_job *jobs;

	if (engine_poll_find(poll, id))
		return 0;
	jobs = array_grow(poll->jobs, sizeof(*jobs), poll->count, &poll->room);
	if (!jobs)
		return -ENOMEM;
	poll->jobs = jobs;
	jobs[poll->count++] = (struct polled_job){
		.id = id, .status = -1, .uid = getuid(), .since_ms = clock_boot_ms()
	};
	poll->left++;
	poll->look_ms = 0;
	poll->wake_ms = 0;
	return 0;
}

void engine_poll_forget_ended(struct engine_poll *poll)
{
	size_t kept = 0;

	for (size_t i = 0; i < poll->count; i++)
		if (!poll->jobs[i].has_ended)
			poll->jobs[kept++] = poll->jobs[i];
	poll->count = kept;
}

static bool has_own(const struct engine_poll *poll)
{
	for (size_t i = 0; i < poll->count; i++)
		if (!poll->jobs[i].has_ended && !poll->jobs[i].is_foreign)
			return true;
	return false;
}

/* Looks for new records, which tell that a job is about to end.  Returns whether there is one. */
static bool find_records(struct engine_poll *poll, int64_t now_ms)
{
	bool is_found = false;

	for (size_t i = 0; i < poll->count && poll->left <= RECORDS_MOST; i++) {
		struct polled_job *job = &poll->jobs[i];

		if (job->has_ended || job->has_record || job->is_foreign ||
			engine_state_record(job->id) < 0)
			continue;
		job->has_record = true;
		job->since_ms = now_ms;
		is_found = true;
	}
	return is_found;
}

/* --- questions ------------------------------------------------------------------------- */

/*
 * Writes the ids that the last answer did not have: all of them, or those that squeue has
 * forgotten.
 */
static char *list_ids(const struct engine_poll *poll, bool only_gone)
{
	char *list = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&list, &size);

	if (!file)
		return NULL;
	for (size_t i = 0; i < poll->count; i++) {
		const struct polled_job *job = &poll->jobs[i];

		if (!job->has_ended && !job->is_seen && (!only_gone || job->gone_ms))
			(void)fprintf(file, "%s%llu", ftell(file) ? "," : "",
				(unsigned long long)job->id);
	}
	(void)fclose(file);
	return list;
}

static void add_squeue(struct slurm_words *words, const char *ids)
{
	slurm_words_add(words, "squeue");
	slurm_words_add(words, "-h");
	slurm_words_add(words, "--states=all");
	if (ids)
		slurm_words_addf(words, "--jobs=%s", ids);
	else
		slurm_words_addf(words, "--user=%u", (unsigned)getuid());
	slurm_words_add(words, "-O");
	slurm_words_add(words, poll_squeue_fields);
}

static void add_sacct(struct slurm_words *words, const char *ids)
{
	slurm_words_add(words, "sacct");
	slurm_words_add(words, "-n");
	slurm_words_add(words, "-X");
	slurm_words_add(words, "-P");
	slurm_words_add(words, "--delimiter=\x1f");
	slurm_words_addf(words, "--jobs=%s", ids);
	slurm_words_add(words, "-o");
	slurm_words_add(words, poll_sacct_fields);
}

/* Starts a question.  Returns 0, or EXIT_MISUSE after a message. */
static int ask(struct engine_poll *poll, enum poll_question question, int64_t now_ms)
{
	struct slurm_words words = { .count = 0 };
	autofree char *ids = NULL;
	int r;

	if (question != POLL_OWN)
		ids = list_ids(poll, question == POLL_SACCT);
	if (question == POLL_SACCT)
		add_sacct(&words, ids ? ids : "0");
	else
		add_squeue(&words, question == POLL_OWN ? NULL : ids ? ids : "0");
	poll->begun_ms = now_ms;
	poll->begun_real_ms = clock_real_ms();
	r = slurm_ask_begin(&words, &poll->answer);
	slurm_words_release(&words);
	if (r == 0) {
		poll->question = question;
		poll->fd = poll->answer.out_fd;
	}
	return r;
}

/* --- the end of a look ------------------------------------------------------------------- */

/* Plans the next look, @age_ms after the answer that this one has used. */
/*
 * A controller that has crashed calls a job cancelled, or lost, which has ended meanwhile.  The
 * record of the job knows better, unless the job was told to end.
 */
static void believe_records(struct engine_poll *poll)
{
	for (size_t i = 0; i < poll->count; i++) {
		struct polled_job *job = &poll->jobs[i];
		int record;

		if (!job->has_ended || job->is_foreign || !job->state ||
			(job->state->end != END_CANCELLED && job->state->end != END_LOST))
			continue;
		record = engine_state_record_untold(job->id, job->end_s);
		if (record < 0)
			continue;
		job->state = slurm_state_find(record ? "FAILED" : "COMPLETED");
		job->status = record;
		job->words = NULL;
	}
}

static int finish_look(struct engine_poll *poll, int64_t age_ms, int64_t now_ms)
{
	believe_records(poll);
	poll->question = POLL_NOTHING;
	poll->fd = -1;
	poll->busy_ms = 0;
	poll->interval_ms = poll_interval_ms(poll, now_ms);
	if (poll->silent_ms)
		poll->interval_ms = max_i64(poll->interval_ms, SILENT_MS);
	/* at once if this one had none of the user's jobs in it */
	poll->look_ms = now_ms + max_i64(poll->interval_ms - age_ms, BUSY_LEAST_MS);
	poll->wake_ms = min_i64(poll->look_ms, now_ms + RECORD_LOOK_MS);
	return 0;
}

static int fall_silent(struct engine_poll *poll, int64_t age_ms, int64_t now_ms)
{
	if (!poll->silent_ms) {
		poll->silent_ms = now_ms;
		poll->has_changed = true;
	}
	return finish_look(poll, age_ms, now_ms);
}

static void hear(struct engine_poll *poll)
{
	poll->has_changed |= poll->silent_ms != 0;
	poll->silent_ms = 0;
	poll->has_answer = true;
}

/* --- answers ----------------------------------------------------------------------------- */

/*
 * Whether the answer, of the age @age_ms, is older than a job that is not in it: the job may just
 * be too new for it.
 */
static bool is_too_old(const struct engine_poll *poll, int64_t age_ms, int64_t now_ms)
{
	for (size_t i = 0; i < poll->count; i++) {
		const struct polled_job *job = &poll->jobs[i];

		if (!job->state && !job->is_foreign && !job->has_ended &&
			now_ms - age_ms < job->since_ms)
			return true;
	}
	return false;
}

/*
 * Uses a shared answer of the age @age_ms.  Returns false if another one is needed; else sets *@ret
 * to 0, or to EXIT_MISUSE after a message.
 */
static bool use_shared(struct engine_poll *poll, const struct poll_answer *answer,
	int64_t age_ms, int64_t now_ms, int *ret)
{
	if (answer->is_silent) {
		*ret = fall_silent(poll, age_ms, now_ms);
		return true;
	}
	hear(poll);
	poll_rows_begin(poll);
	poll_rows_squeue(poll, answer->text, getuid(), now_ms);
	if (is_too_old(poll, age_ms, now_ms))
		return false;
	poll->begun_ms = now_ms - age_ms;
	poll->question = POLL_OWN;
	*ret = next_question(poll, now_ms);
	return true;
}

/* Publishes what squeue has said of all jobs of the user, and frees the lock. */
static void publish(struct engine_poll *poll, bool is_silent)
{
	const char *folder = engine_state_folder();
	struct poll_answer answer = { .at_ms = is_silent ? clock_real_ms()
							 : poll->begun_real_ms,
		.is_silent = is_silent,
		.text = is_silent ? NULL : poll->answer.text };

	if (folder)
		poll_share_write(folder, &answer);
	close_fd(&poll->lock_fd);
}

/* Whether squeue has failed because it knows none of the jobs. */
static bool knows_none(const struct answer *answer)
{
	return answer->status != 0 && strcasestr(answer->error, "invalid job id");
}

/* Marks the jobs that squeue does not know. */
static void mark_gone(struct engine_poll *poll, int64_t now_ms)
{
	for (size_t i = 0; i < poll->count; i++)
		if (!poll->jobs[i].has_ended && !poll->jobs[i].is_seen &&
			!poll->jobs[i].gone_ms)
			poll->jobs[i].gone_ms = now_ms;
}

static int take_squeue(struct engine_poll *poll, int64_t now_ms)
{
	struct answer *answer = &poll->answer;
	bool is_own = poll->question == POLL_OWN, is_silent = answer->fault != 0;

	if (answer->status != 0 && (is_own || !knows_none(answer)))
		is_silent = true;
	if (is_own)
		publish(poll, is_silent);
	if (is_silent) {
		verbose("squeue fails: %s",
			answer->fault ? strerror(-answer->fault) : answer->error);
		return fall_silent(poll, 0, now_ms);
	}
	hear(poll);
	if (is_own || !has_own(poll))
		poll_rows_begin(poll);
	if (answer->text)
		poll_rows_squeue(poll, answer->text, getuid(), now_ms);
	if (!is_own)
		mark_gone(poll, now_ms);
	return next_question(poll, now_ms);
}

static int take_sacct(struct engine_poll *poll, int64_t now_ms)
{
	struct answer *answer = &poll->answer;
	bool has_none = answer->status != 0 && strcasestr(answer->error, "disabled");

	if (!answer->fault && answer->status == 0 && answer->text)
		poll_rows_sacct(poll, answer->text);
	for (size_t i = 0; i < poll->count; i++) {
		struct polled_job *job = &poll->jobs[i];
		int record;

		if (!job->gone_ms)
			continue;
		record = engine_state_record(job->id);
		/* sacct prints 72 for the exit status 200 */
		if (job->has_ended && record > 128 && job->status == record - 128)
			job->status = record;
		if (job->has_ended)
			continue;
		/* sacct may lag, or fail for a moment */
		if (has_none || record >= 0 || !job->state ||
			now_ms - job->gone_ms >= POLL_LAG_MS)
			poll_rows_give_up(poll, job, record);
	}
	return finish_look(poll, now_ms - poll->begun_ms, now_ms);
}

/* Asks what the last answer has left open.  Returns 0, or EXIT_MISUSE after a message. */
static int next_question(struct engine_poll *poll, int64_t now_ms)
{
	bool is_unseen = false, is_gone = false;

	for (size_t i = 0; i < poll->count; i++) {
		const struct polled_job *job = &poll->jobs[i];

		is_unseen |= !job->has_ended && !job->is_seen;
		is_gone |= !job->has_ended && job->gone_ms;
	}
	if (is_unseen && poll->question == POLL_OWN)
		return ask(poll, POLL_SOME, now_ms);
	if (is_gone && poll->question == POLL_SOME)
		return ask(poll, POLL_SACCT, now_ms);
	return finish_look(poll, now_ms - poll->begun_ms, now_ms);
}

/* --- steps ----------------------------------------------------------------------------- */

static int await_answer(struct engine_poll *poll, int64_t now_ms)
{
	struct answer *answer = &poll->answer;
	int64_t until_ms = poll->begun_ms + SLURM_DEADLINE_MS;
	int most_ms;

	answer_take(answer);
	if (!answer->fault && !answer_is_complete(answer) && now_ms < until_ms) {
		most_ms = answer_poll_ms(answer);
		poll->wake_ms =
			most_ms < 0 ? until_ms : min_i64(until_ms, now_ms + most_ms);
		poll->fd = answer->out_fd;
		return 0;
	}
	if (!answer->fault && answer->pid) {
		answer_end(answer);
		answer->fault = -ETIMEDOUT;
	}
	return poll->question == POLL_SACCT ? take_sacct(poll, now_ms)
					    : take_squeue(poll, now_ms);
}

/* Reads the shared answer if it is young enough.  Returns whether it was used. */
static bool try_shared(
	struct engine_poll *poll, const char *folder, int64_t now_ms, int *ret)
{
	struct poll_answer answer;
	int64_t age_ms, least_ms = poll_interval_ms(poll, now_ms);
	bool is_used;

	if (poll_share_read(folder, &answer) != 0)
		return false;
	if (answer.is_silent)
		least_ms = max_i64(least_ms, SILENT_MS);
	age_ms = clock_age_ms(clock_real_ms(), answer.at_ms);
	is_used = age_ms < least_ms && answer.at_ms >= poll->since_real_ms &&
		  use_shared(poll, &answer, age_ms, now_ms, ret);
	free(answer.memory);
	return is_used;
}

/* Begins a look.  Returns 0, or EXIT_MISUSE after a message. */
static int look(struct engine_poll *poll, int64_t now_ms)
{
	const char *folder = engine_state_folder();
	int r = 0;

	if (!folder)
		return EXIT_MISUSE;
	if (!has_own(poll)) {
		poll_rows_begin(poll);
		return ask(poll, POLL_SOME, now_ms);
	}
	if (try_shared(poll, folder, now_ms, &r))
		return r;
	if (poll_share_lock(folder, clock_real_ms(), &poll->lock_fd) == POLL_SHARE_BUSY) {
		poll->busy_ms = poll->busy_ms ? min_i64(2 * poll->busy_ms, BUSY_MOST_MS)
					      : BUSY_LEAST_MS;
		poll->wake_ms = now_ms + poll->busy_ms;
		return 0;
	}
	/* another process may have asked before this one had the lock */
	if (try_shared(poll, folder, now_ms, &r)) {
		close_fd(&poll->lock_fd);
		return r;
	}
	return ask(poll, POLL_OWN, now_ms);
}

int engine_poll_step(struct engine_poll *poll)
{
	int64_t now_ms = clock_boot_ms();

	poll->has_changed = false;
	if (poll->question != POLL_NOTHING)
		return await_answer(poll, now_ms);
	if (!poll->left || now_ms < poll->wake_ms)
		return 0;
	if (now_ms < poll->look_ms && !find_records(poll, now_ms)) {
		poll->wake_ms = min_i64(poll->look_ms, now_ms + RECORD_LOOK_MS);
		return 0;
	}
	return look(poll, now_ms);
}

int engine_poll_wait(struct engine_poll *polled, int64_t until_ms, int fd)
{
	for (;;) {
		struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
		int64_t wait_ms;
		int r = engine_poll_step(polled);

		if (r != 0 || polled->has_changed || !polled->left)
			return r;
		wait_ms = min_i64(polled->wake_ms, until_ms) - clock_boot_ms();
		fds[0].fd = polled->fd;
		fds[1].fd = fd;
		wait_ms = min_i64(max_i64(wait_ms, 0), INT32_MAX);
		if (poll(fds, 2, (int)wait_ms) < 0 || fds[1].revents ||
			clock_boot_ms() >= until_ms)
			return 0;
	}
}

void engine_poll_release(struct engine_poll *poll)
{
	close_fd(&poll->lock_fd);
	answer_release(&poll->answer);
	free(poll->jobs);
	*poll = ENGINE_POLL_NONE;
}
