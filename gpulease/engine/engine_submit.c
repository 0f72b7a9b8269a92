#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "engine_after.h"
#include "engine_follow.h"
#include "engine_state.h"
#include "engine_submit.h"
#include "engine_words.h"
#include "exitcodes.h"
#include "fdio.h"
#include "parse.h"
#include "slurm_reason.h"
#include "slurm_state.h"
#include "submit_output.h"
#include "submit_script.h"

enum {
	SEND_MS = 11 * 1000, /* sbatch itself gives up after 10 s */
	FIND_MS = 3 * 1000,
	TOKENS_MOST = 2,
};

/* --- tokens ------------------------------------------------------------------------------ */

void submission_make_token(char token[SUBMISSION_TOKEN_SIZE])
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (uint64_t)clock_real_ms() << 20 ^ (uint64_t)getpid();
	(void)snprintf(
		token, SUBMISSION_TOKEN_SIZE, "%016llx", (unsigned long long)number);
}

/* The fields of each line of squeue. */
enum { ID, STATE, REASON, COMMENT, FIELDS };

/* Whether the controller has refused the job, of which it then keeps a record for a while. */
static bool was_refused(const char *state, const char *reason)
{
	return slurm_state_find(state)->phase == SLURM_ENDED &&
	       slurm_reason_find(reason)->is_for_ever;
}

/* Appends the ids of the jobs with @token in the answer of squeue to @ids.  Returns how many. */
static size_t read_tokens(char *text, const char *token, uint64_t ids[TOKENS_MOST])
{
	char mark[32], *fields[FIELDS];
	size_t count = 0;

	(void)snprintf(mark, sizeof(mark), "gpulease:%s", token);
	while (slurm_next_line(&text, fields, FIELDS) >= 0)
		if (strncmp(fields[COMMENT], mark, strlen(mark)) == 0 &&
			!was_refused(fields[STATE], fields[REASON]) &&
			count < TOKENS_MOST &&
			parse_u64(fields[ID], UINT64_MAX, &ids[count], NULL) == 0)
			count++;
	return count;
}

/* Finds the jobs with @token.  Returns how many, or -1: squeue does not answer. */
static int find_tokens(const char *token, int64_t deadline_ms, uint64_t ids[TOKENS_MOST])
{
	struct slurm_words words = { .count = 0 };
	struct answer answer = ANSWER_NONE;
	int count = -1;

	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "--states=all");
	slurm_words_addf(&words, "--user=%u", (unsigned)getuid());
	slurm_words_add(&words, "-O");
	slurm_words_add(&words, "JobID:\x1f,State:\x1f,Reason:\x1f,Comment:\x1f");
	if (slurm_ask_begin(&words, &answer) == 0) {
		answer_wait(&answer, deadline_ms);
		if (!answer.fault && answer.status == 0)
			count = answer.text ? (int)read_tokens(answer.text, token, ids)
					    : 0;
	}
	answer_release(&answer);
	slurm_words_release(&words);
	return count;
}

int submission_find(const char *token, int64_t deadline_ms, uint64_t *ret_id)
{
	uint64_t ids[TOKENS_MOST];
	int count = find_tokens(token, deadline_ms, ids);

	if (count > 0)
		*ret_id = ids[0];
	return count < 0 ? SUBMISSION_LOST : count == 0 ? SUBMISSION_NONE : 0;
}

/* --- one call of sbatch -------------------------------------------------------------------- */

uint64_t submission_read_id(const char *text)
{
	uint64_t id = 0;

	for (const char *line = text, *next; line && *line; line = next) {
		size_t size = strcspn(line, "\n"), digits = strspn(line, "0123456789");
		char number[24];
		uint64_t found;

		next = line[size] ? line + size + 1 : NULL;
		if (!digits || digits >= sizeof(number) ||
			(digits < size && line[digits] != ';'))
			continue;
		(void)snprintf(number, sizeof(number), "%.*s", (int)digits, line);
		if (parse_u64(number, UINT32_MAX, &found, NULL) == 0 && found)
			id = found;
	}
	return id;
}

/* Appends the comment of the user behind the token. */
static void add_comment(const struct submission *job, struct slurm_words *words)
{
	const char *comment = engine_line_value(job->line, "comment");

	slurm_words_addf(words, "--comment=gpulease:%s%s%s", job->token,
		comment ? " " : "", comment ? comment : "");
}

/* Writes LOGS/%j.log, in which a `%` of the path is doubled. */
static void write_log_pattern(const char *folder, struct text *out)
{
	for (const char *at = folder; *at; at++) {
		if (*at == '%')
			text_add(out, "%");
		text_add_bytes(out, at, 1);
	}
	text_add(out, "/logs/%j.log");
}

/* Whether the job is one task, as engine_job_words() says when the line asks for nothing else. */
static bool is_one_task(const struct slurm_words *words)
{
	for (size_t i = 1; i < words->count; i++)
		if (strcmp(words->list[i - 1], "--nodes=1") == 0 &&
			strcmp(words->list[i], "--ntasks=1") == 0)
			return true;
	return false;
}

/*
 * Appends what the script runs: the command, or several of it by srun.  Returns like make_words().
 */
static int add_command(const struct engine_line *line, struct slurm_words *words)
{
	struct slurm_words step = { .count = 0 }, node = { .count = 0 };
	const char *cpus = engine_line_value(line, "cpus-per-task");
	bool needs_srun = !is_one_task(words);
	int r = engine_step_words(line, &step);

	if (r == 0)
		r = engine_node_words(line, false, &node);
	/* sbatch has that one itself */
	for (size_t i = 0; i < step.count; i++)
		needs_srun |= strncmp(step.list[i], "--open-mode", 11) != 0;
	if (needs_srun) {
		slurm_words_add(words, "srun");
		/* since Slurm 22.05 it does not take this from sbatch */
		if (cpus)
			slurm_words_addf(words, "--cpus-per-task=%s", cpus);
		for (size_t i = 0; i < step.count; i++)
			slurm_words_add(words, step.list[i]);
	}
	/* the script has the shell's part of the words itself */
	for (size_t i = needs_srun ? 0 : SUBMIT_SCRIPT_HAS; i < node.count; i++)
		slurm_words_add(words, node.list[i]);
	words->is_cut |= step.is_cut || node.is_cut;
	slurm_words_release(&step);
	slurm_words_release(&node);
	return r;
}

/* Returns 0, or an exit status after a message. */
static int make_words(const struct submission *job, struct slurm_words *words)
{
	const char *folder = engine_state_folder();
	char log[PATH_MAX];
	struct text text = TEXT_ON(log);
	int r;

	if (!folder)
		return EXIT_MISUSE;
	write_log_pattern(folder, &text);
	slurm_words_add(words, "sbatch");
	slurm_words_add(words, "--parsable");
	slurm_words_add(words, "--no-requeue");
	r = engine_job_words(job->line, words);
	if (r == 0)
		r = submit_output_words(job->line, job->log ? job->log : log, words);
	if (r != 0)
		return r;
	add_comment(job, words);
	slurm_words_add(words, "/dev/stdin");
	slurm_words_addf(words, "%s/logs", folder);
	slurm_words_add(words, job->token);
	return add_command(job->line, words);
}

/* Whether sbatch has failed without an answer of the controller. */
static bool is_lost(const struct answer *answer)
{
	static const char *const texts[] = { "timed out", "contact slurm controller",
		"bytes were transmitted", "send/recv", "connection refused",
		"connection reset", "connection failure", "communication" };

	/* a signal has ended it; 255: it has refused the value of an option */
	if (answer->fault == -ETIMEDOUT || answer->status == 0 ||
		(answer->status > 128 && answer->status != 255))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcasestr(answer->error, texts[i]))
			return true;
	return false;
}

/* Reports what sbatch has said.  Returns the exit status. */
static int report_refusal(const struct engine_line *line, const struct answer *answer)
{
	static const char *const begins[] = {
		"sbatch: ", "error: ", "Batch job submission failed: "
	};
	const char *text = answer->error;
	char more[64] = "";
	struct text most = TEXT_ON(more);

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			text += strlen(begins[i]);
	engine_add_most(line, text, &most);
	if (answer->fault)
		diag("cannot read what sbatch prints: %s", strerror(-answer->fault));
	else if (*text)
		diag("Slurm refuses the job: %s%s", text, more);
	else
		diag("sbatch has failed with status %d", answer->status);
	return EXIT_MISUSE;
}

/* Judges what sbatch has said.  Returns as submission_send() does. */
static int judge(
	const struct submission *job, const struct answer *answer, uint64_t *ret_id)
{
	uint64_t id = answer->fault || answer->status || !answer->text
			      ? 0
			      : submission_read_id(answer->text);

	if (id) {
		*ret_id = id;
		return 0;
	}
	verbose("sbatch gives no id: %s",
		answer->fault ? strerror(-answer->fault) : answer->error);
	if (is_lost(answer))
		return SUBMISSION_LOST;
	if (submission_find(job->token, FIND_MS, ret_id) == 0)
		return 0;
	return report_refusal(job->line, answer);
}

int submission_send(const struct submission *job, uint64_t *ret_id)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer = ANSWER_NONE;
	autofd int fd = submit_script_open();
	int r = make_words(job, &words);

	if (r == 0 && fd < 0) {
		diag("cannot make the script of the job: %s", strerror(-fd));
		r = EXIT_MISUSE;
	}
	answer.in_fd = fd;
	if (r == 0)
		r = slurm_ask_begin(&words, &answer);
	if (r == 0) {
		answer_wait(
			&answer, job->deadline_ms ? job->deadline_ms : SLURM_DEADLINE_MS);
		r = judge(job, &answer, ret_id);
	}
	answer_release(&answer);
	slurm_words_release(&words);
	return r;
}

/* --- until the answer is known --------------------------------------------------------------- */

static int report_lost(const struct submission *job)
{
	diag("Slurm does not answer, and may have the job or not: look for "
	     "gpulease:%s in squeue -u $USER -O JobID,Comment",
		job->token);
	return EXIT_MISUSE;
}

/* Cancels the job @id, which is there twice, or of which no person knows. */
static void cancel_surplus(uint64_t id)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;

	slurm_words_add(&words, "scancel");
	slurm_words_addf(&words, "%llu", (unsigned long long)id);
	if (slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer) == 0)
		answer_release(&answer);
	slurm_words_release(&words);
}

/* After a second call has given *@id: cancels the later one of two jobs. */
static void keep_one(const struct submission *job, uint64_t *id)
{
	uint64_t ids[TOKENS_MOST];

	if (find_tokens(job->token, FIND_MS, ids) < 2)
		return;
	*id = ids[0] < ids[1] ? ids[0] : ids[1];
	cancel_surplus(ids[0] < ids[1] ? ids[1] : ids[0]);
}

int submission_send_safely(const struct submission *job, uint64_t *ret_id)
{
	int r = submission_send(job, ret_id);

	if (r != SUBMISSION_LOST)
		return r;
	r = submission_find(job->token, FIND_MS, ret_id);
	if (r == SUBMISSION_NONE) {
		/* the controller answers again */
		r = submission_send(job, ret_id);
		if (r == 0)
			keep_one(job, ret_id);
		else if (r == SUBMISSION_LOST)
			r = submission_find(job->token, FIND_MS, ret_id);
	}
	return r == 0 || r > SUBMISSION_NONE ? r : report_lost(job);
}

/* --- the log --------------------------------------------------------------------------------- */

/*
 * Replaces a record that another job with this id has left.  The script sees by the word that the
 * log is old, too.  If the script has replaced the record already, it has the token.
 */
static void replace_old_record(
	const struct submission *job, const char *folder, uint64_t id)
{
	char path[PATH_MAX], temporary[PATH_MAX], line[64];
	struct text text = TEXT_ON(path), other = TEXT_ON(temporary);

	text_addf(&text, "%s/logs/%llu.status", folder, (unsigned long long)id);
	text_addf(&other, "%s.%ld", path, (long)getpid());
	if (fdio_read_text(AT_FDCWD, path, line, sizeof(line)) < 0 ||
		strncmp(line, job->token, strlen(job->token)) == 0)
		return;
	(void)snprintf(line, sizeof(line), "%s reused\n", job->token);
	(void)!fdio_replace(AT_FDCWD, path, temporary, line, strlen(line), 0600);
}

/*
 * Writes the file that has the output of the job.  Returns false if it is LOGS/ID.log, or not
 * known.
 */
static bool find_target(const struct submission *job, uint64_t id, char out[PATH_MAX])
{
	if (engine_line_has(job->line, "output"))
		return submit_output_of(job->line, id, out) == 0;
	return job->log && submit_output_path(job->log, id, "", "", out) == 0;
}

void submission_link_log(const struct submission *job, uint64_t id)
{
	const char *folder = engine_state_folder();
	char path[PATH_MAX], old[PATH_MAX + 1], target[PATH_MAX];

	if (!folder || engine_state_log(id, path) != 0)
		return;
	replace_old_record(job, folder, id);
	if (!find_target(job, id, target) || strcmp(target, path) == 0)
		return;
	(void)snprintf(old, sizeof(old), "%s~", path);
	(void)rename(path, old);
	if (symlink(target, path) < 0)
		note("cannot link '%s' to the log, so --log will not find '%s': %s", path,
			target, strerror(errno));
}

/* --- the verb -------------------------------------------------------------------------------- */

/*
 * Prints the id.  If that is not possible, cancels the job: its user does not know of it and would
 * submit it again.  Returns the exit status.
 */
static int print_id(uint64_t id)
{
	if (dprintf(STDOUT_FILENO, "%llu\n", (unsigned long long)id) >= 0)
		return 0;
	diag("cannot print the id of job %llu, which is therefore cancelled: %s",
		(unsigned long long)id, strerror(errno));
	cancel_surplus(id);
	return EXIT_MISUSE;
}

int engine_submit(struct engine_line *line)
{
	struct submission job = { .line = line, .deadline_ms = SEND_MS };
	bool follows = line->settings.environment.follow;
	uint64_t id;
	int r;

	/* main() opens /dev/null with close-on-exec where stdout was closed */
	if (!follows && (fcntl(STDOUT_FILENO, F_GETFD) & FD_CLOEXEC)) {
		diag("cannot submit: stdout is closed, so the job's id cannot be printed");
		return EXIT_MISUSE;
	}
	r = engine_enter_folder(line);
	if (r == 0)
		r = engine_after_check(line);
	if (r != 0)
		return r;
	submission_make_token(job.token);
	r = submission_send_safely(&job, &id);
	if (r != 0)
		return r;
	submission_link_log(&job, id);
	if (!follows)
		return print_id(id);
	note("job %llu", (unsigned long long)id);
	return engine_follow(id, true);
}
