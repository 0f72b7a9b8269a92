/*
 * Runs the programs of Slurm as children, each with a deadline, and keeps what they print.
 *
 * Without a slurm.conf these programs hang for a minute, and with a controller that does not answer
 * for ten seconds a call, so no caller waits for one without a bound.
 */
#ifndef GPULEASE_SLURM_ASK_H
#define GPULEASE_SLURM_ASK_H

#include "answer.h"

enum { SLURM_DEADLINE_MS = 12 * 1000 };

/*
 * Removes from the environment of this process what changes the programs of Slurm, for them and for
 * the jobs: SLURM_*, SBATCH_*, SALLOC_*, SQUEUE_*, SACCT_*, SINFO_* and SCANCEL_*, except
 * SLURM_CONF* and SLURM_JWT.
 */
void slurm_environment_clean(void);

/* The words of a command, copied.  All of it is zeros at first. */
struct slurm_words {
	char **list; /* ends with NULL, once there is a word */
	size_t count, room;
	bool is_cut; /* one is missing: there is no memory */
};

void slurm_words_add(struct slurm_words *words, const char *word);

void slurm_words_addf(struct slurm_words *words, const char *format, ...)
	PRINTF_LIKE(2, 3);

void slurm_words_release(struct slurm_words *words);

/* Returns 0 if the Slurm program @program is in PATH, or EXIT_MISUSE after a message. */
MUST_CHECK int slurm_find(const char *program);

/*
 * Runs @words, with @in_fd as stdin; -1: /dev/null.  Times are printed as seconds since 1970.
 * Returns 0, and the caller releases the answer, whatever its ->status; or EXIT_MISUSE after a
 * message: the program is not there, or does not answer in @deadline_ms.
 */
MUST_CHECK int slurm_ask(const struct slurm_words *words, int in_fd, int64_t deadline_ms,
	struct answer *ret);

/*
 * Starts @words likewise for a caller that waits for the answer itself (answer.h), with ->in_fd of
 * @answer.  Returns 0, or EXIT_MISUSE after a message: the program is not there or cannot be run.
 */
MUST_CHECK int slurm_ask_begin(const struct slurm_words *words, struct answer *answer);

/*
 * The same for a question whose answer counts only with status 0: any other is EXIT_MISUSE after a
 * message with what the program has printed.
 */
MUST_CHECK int slurm_ask_well(
	const struct slurm_words *words, int in_fd, struct answer *ret);

/* --- fields ----------------------------------------------------------------------------- */

/* What stands between two fields: no name and no list of Slurm has it. */
#define SLURM_FIELD_END '\x1f'

/*
 * A text that no other process can know, made for one question.  Names and comments of jobs may
 * have line feeds in them, so a line of the answer counts only if its second field is the mark.
 */
struct slurm_mark {
	char text[17];
};
struct slurm_mark slurm_mark(void);

/*
 * Appends -O and the @count fields with these names, for squeue or sinfo; in the place of the
 * second one, which has no name, comes @mark.
 */
void slurm_words_add_fields(struct slurm_words *words, const char *const *names,
	size_t count, const struct slurm_mark *mark);

/*
 * Splits the next line of *@text, in place, into at most @most fields, and moves *@text on.  Empty
 * fields stay; missing ones are "".  Returns how many there were; -1 at the end of the text.
 */
int slurm_next_line(char **text, char **fields, size_t most);

/* Reads a whole number of at most @most; 0 for any other text, such as N/A or Unknown. */
uint64_t slurm_number(const char *text, uint64_t most);

#endif
