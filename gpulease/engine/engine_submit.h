/*
 * Background jobs: sbatch gets a short script on its stdin, and the words of the command as the
 * arguments of the script.
 *
 * Each job has a token, which its comment in Slurm begins with: "gpulease:TOKEN".  sbatch may fail
 * or time out although the controller has taken the job, so a caller that did not get an id looks
 * for the token before it submits the job again.
 *
 * The script is the parent of the command.  It passes signals on, and records the exit status
 * (engine_state.h), because Slurm forgets a job some minutes after its end.
 */
#ifndef GPULEASE_ENGINE_SUBMIT_H
#define GPULEASE_ENGINE_SUBMIT_H

#include "engine_line.h"

enum { SUBMISSION_TOKEN_SIZE = 17 };

/* One job to submit. */
struct submission {
	const struct engine_line *line;
	char token[SUBMISSION_TOKEN_SIZE]; /* 16 hex digits */
	/*
	 * An absolute path, where sbatch's %j stands for the id, and %% for %: the file for what
	 * has no -o and no -e, to which the job appends.  NULL: LOGS/ID.log.
	 */
	const char *log;
	int64_t deadline_ms; /* for one call of sbatch; 0: as for each question to Slurm */
};

enum submission_outcome {
	SUBMISSION_LOST =
		1, /* no answer: the job may be in the queue or not, or get there yet */
	SUBMISSION_NONE, /* no job has this token */
};

/* Writes a new token. */
void submission_make_token(char token[SUBMISSION_TOKEN_SIZE]);

/*
 * Calls sbatch once.  Returns 0 and sets *@ret_id; SUBMISSION_LOST after a line for -v; or an exit
 * status >= 124 after a message: the job was refused.  An error of sbatch counts as a refusal only
 * if no job has the token.
 */
MUST_CHECK int submission_send(const struct submission *job, uint64_t *ret_id);

/*
 * Looks for the job with @token among those of this user that squeue knows.  Returns 0 and sets
 * *@ret_id; SUBMISSION_NONE; or SUBMISSION_LOST: squeue does not answer in @deadline_ms.
 */
MUST_CHECK int submission_find(const char *token, int64_t deadline_ms, uint64_t *ret_id);

/*
 * Calls submission_send(), and once more if no job has the token after a lost answer.  If both have
 * reached the queue after all, the later one is cancelled.  Returns 0, or an exit status after a
 * message.
 */
MUST_CHECK int submission_send_safely(const struct submission *job, uint64_t *ret_id);

/*
 * For a job that was just submitted: replaces the record that a job with this id has left long ago,
 * and links LOGS/ID.log to the file of -o or ->log, so that --log finds it.  A failure is only
 * reported.
 */
void submission_link_log(const struct submission *job, uint64_t id);

/*
 * Finds the id in what `sbatch --parsable` has printed at @text: a line `ID` or `ID;CLUSTER`, the
 * last of them.  Plugins may print other lines.  Returns 0: there is none.  Pure.
 */
uint64_t submission_read_id(const char *text);

/* --submit: prints the id, or follows the log with --follow.  Returns the exit status. */
int engine_submit(struct engine_line *line);

#endif
