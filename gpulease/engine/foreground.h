/*
 * A job in the foreground: from the start of srun to the exit status.
 *
 * One loop reads what srun prints, carries streams of the command, passes signals on with
 * scancel, and asks squeue why the job waits.  All Slurm programs run beside it, so that none of
 * them holds up the others.  A crash of this process ends srun, and with it the job.
 */
#ifndef GPULEASE_FOREGROUND_H
#define GPULEASE_FOREGROUND_H

#include <signal.h>

#include "answer.h"
#include "engine_line.h"
#include "slurm_ask.h"
#include "srun_process.h"

struct foreground_pump {
	char bytes[4096];
	size_t size;
};

struct foreground {
	const struct engine_line *line;
	struct srun_streams streams;
	struct srun_process srun;
	struct foreground_pump output, error, input;
	bool error_begins_line;
	char message[1024]; /* the line of srun that is being read */
	size_t message_size;

	/* what srun has told */
	uint64_t job, step; /* 0: not yet */
	bool has_answered;  /* the controller has */
	bool is_queued, is_allocated, has_step, is_started;
	bool is_cancelled; /* something else than the command has ended it */
	bool is_busy;      /* an error says that there is no room now */
	char first_error[200], error_text[200]; /* the first and the last one; "" */

	/* while it waits */
	struct answer question;
	int64_t begun_ms, ask_ms, pause_ms, shown_ms;
	char reason[64]; /* that was shown */
	char why[160];   /* in words, for the line when it gives up */

	/* signals */
	sigset_t signals, mask_before;
	int signal_fd;
	struct answer scancel;
	int64_t scancel_until_ms;
	int held[16]; /* for the command, in their order */
	size_t held_count;
	int64_t held_ms; /* since when */

	/* the job is being ended by this process */
	bool is_ending;
	int status;      /* that this process then returns */
	int by_signal;   /* 0, or it ends itself by this signal */
	int64_t kill_ms; /* when patience with srun ends */
};

/*
 * Runs srun with @words, which have all but --error, the command and what depends on the streams;
 * @command are the words for the node.  Returns the exit status.
 */
int foreground_run(struct foreground *fg, struct slurm_words *words);

/* Ends srun, and with it the job: this process will return @status. */
void foreground_end(struct foreground *fg, int status);

/* --- foreground_wait.c: why the job waits -------------------------------------------------- */

/* Asks squeue if it is time, and prints a line if the reason has changed. */
void foreground_look(struct foreground *fg, int64_t now_ms);

/* Returns when foreground_look() has something to do; INT64_MAX: never. */
int64_t foreground_look_ms(const struct foreground *fg);

/* --- foreground_signals.c ------------------------------------------------------------------ */

/* Takes the signals that would end or stop this process. */
MUST_CHECK int foreground_take_signals(struct foreground *fg);

/* Has scancel send @signal to the command, after those that wait already. */
void foreground_hold_signal(struct foreground *fg, int signal);

/* Reads signals, and passes them on. */
void foreground_obey_signals(struct foreground *fg);

/* Starts the next scancel, or reaps one that has ended. */
void foreground_send_signals(struct foreground *fg, int64_t now_ms);

/* Returns when foreground_send_signals() has something to do; INT64_MAX: never. */
int64_t foreground_send_ms(const struct foreground *fg);

/* Gives the signals back. */
void foreground_release_signals(struct foreground *fg);

/* --- foreground_status.c ------------------------------------------------------------------- */

/* srun has ended: returns the exit status, after a message if the command did not end by itself. */
int foreground_status(struct foreground *fg);

#endif
