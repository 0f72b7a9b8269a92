/*
 * Starting a job of a batch in a process of its own: what --submit would do with its line.
 */
#ifndef GPULEASE_BATCH_CHILD_H
#define GPULEASE_BATCH_CHILD_H

#include <signal.h>

#include "batch_journal.h"

/* What is the same for all of them. */
struct batch_nursery {
	const struct settings
		*defaults; /* of the command line; a line's attributes come first */
	const struct batch_journal *journal;
	sigset_t mask; /* of signals, as gpulease was started with */
};

/*
 * Starts @job, whose ->line says what it asks for: ->pid, ->fd (not to be waited for in reading)
 * and ->state are set.  The process has a session of its own, so that the terminal's signals do
 * not reach it, and its log as stdout and stderr.  Signals that are caught here are treated as
 * usual there; those that are ignored stay so.  0 or a negative errno: it has no log, or there
 * can be no process.
 */
MUST_CHECK int batch_child_start(
	const struct batch_nursery *nursery, struct batch_job *job);

/* Asks a process that waits, for its first attempt or another, to leave the queue. */
void batch_child_recall(struct batch_job *job);

/*
 * Tells the child that what ends it now is the runner's doing, and ends its command: TERM.  Where
 * it waits it leaves the queue.
 */
void batch_child_stop(struct batch_job *job);

/* Tells the process that it is its line that cancels it, now. */
void batch_child_mark(struct batch_job *job);

/*
 * Cancels jobs by their tickets, in a process of its own: as --cancel with @grace_ms.  Its pid
 * or a negative errno.
 */
MUST_CHECK pid_t batch_child_cancel(const struct batch_nursery *nursery,
	const uint64_t *tickets, size_t count, int64_t grace_ms);

/*
 * The settings of the job of @line.  Pure.  @vram_mib is what it declares, 0: as it says.
 * ->command of *@ret is @words, and points into @line like the rest.
 */
void batch_settings(const struct settings *defaults, const struct batch_line *line,
	uint64_t vram_mib, char *words[4], struct settings *ret);

/*
 * The command of @line with the option of --inject behind it, whose value are its GPUs, unless
 * it has that option already or no GPU.  To be freed by the caller; NULL: no memory.
 */
char *batch_inject(const struct settings *defaults, const struct batch_line *line);

#endif
