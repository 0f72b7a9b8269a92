/*
 * Where a batch is shown: log lines and a board on a terminal, log lines alone elsewhere, events
 * with --json, and always FOLDER/status.txt: after a change, at most four times a second, and every
 * 5 s while a job runs.
 *
 * The runner never waits for a reader of stdout: output is kept in memory, up to 16 MiB, until
 * there is room, and is dropped beyond that.  Between two calls stdio has nothing in its buffer
 * that a forked child could print a second time.
 *
 * A crash loses the output that was not printed yet, and leaves status.txt as it was.
 */
#ifndef GPULEASE_BATCH_SHOW_H
#define GPULEASE_BATCH_SHOW_H

#include "batch_board.h"
#include "batch_log.h"
#include "settings.h"

struct batch_show {
	bool is_json, is_quiet;
	bool is_verbose;  /* changes of memory are printed, too */
	bool is_live;     /* stdout is a terminal that shows the board */
	bool is_closed;   /* stdout cannot be written any more */
	bool has_dropped; /* output was dropped, for want of memory or of a reader */
	bool has_no_output; /* writing to stdout has failed, and not because its reader left */
	unsigned tolerance_percent;
	const struct batch_journal *journal;
	unsigned rows_shown;          /* lines of the board on the terminal */
	bool has_changed;             /* since status.txt was written */
	bool is_stale;                /* since the board was drawn */
	bool has_failed;              /* to write status.txt; that was reported */
	int64_t written_ms, drawn_ms; /* CLOCK_BOOTTIME */
	char *pending;                /* output to be printed; the last step frees it */
	size_t pending_size, pending_room;
};

/*
 * Sets up *@show for --json, -Q and -v of @output.  Looks what stdout is.  @journal has to stay.
 */
void batch_show_begin(struct batch_show *show, const struct output_settings *output,
	unsigned tolerance_percent, const struct batch_journal *journal);

/* Shows @event of @job (NULL: it has none).  It is printed with the next step. */
void batch_show_event(struct batch_show *show, const struct batch_event *event,
	const struct batch_job *job, const struct batch_board *board);

/* Call this when something that the board shows has changed. */
void batch_show_changed(struct batch_show *show);

/*
 * Draws and writes what is due; with @is_last all of it, and then it waits some seconds for a slow
 * reader.  Returns when to call it again at the latest, CLOCK_BOOTTIME; INT64_MAX: not before
 * something has changed.
 */
int64_t batch_show_step(struct batch_show *show, const struct batch_board *board,
	int64_t now_ms, bool is_last);

/* Removes the board from the terminal, before something else is printed to stderr or stdout. */
void batch_show_clear(struct batch_show *show);

#endif
