/*
 * Where it is shown: lines and a board in place on a terminal, lines alone elsewhere, events
 * with --json; and FOLDER/status.txt for everybody.
 *
 * status.txt is written when something has changed, four times a second at most.
 *
 * Nobody is waited for who reads slowly, or not at all: what is to be printed gathers until
 * there is room, 16 MiB at most, and is lost beyond that.  Between two calls stdout has nothing
 * in its buffer that a child could print again.
 */
#ifndef GPULEASE_BATCH_SHOW_H
#define GPULEASE_BATCH_SHOW_H

#include "batch_board.h"
#include "batch_journal.h"

struct batch_show {
	bool is_json, is_quiet, is_live;
	bool is_deaf;       /* what is printed cannot be written any more */
	bool has_lost;      /* lines, for want of room */
	bool has_no_output; /* it could not be written, which was told */
	unsigned tolerance_percent;
	const struct batch_journal *journal;
	unsigned rows_shown;          /* of the board on the terminal */
	bool has_changed;             /* since status.txt was written */
	bool is_stale;                /* likewise, since the board was drawn */
	bool has_failed;              /* to write status.txt, which was told */
	int64_t written_ms, drawn_ms; /* CLOCK_BOOTTIME */
	char *pending;                /* to be printed; given back with the last step */
	size_t pending_size, pending_room;
};

/* @is_json, @is_quiet: of the settings.  Finds out what stdout is. */
void batch_show_begin(struct batch_show *show, bool is_json, bool is_quiet,
	unsigned tolerance_percent, const struct batch_journal *journal);

/*
 * Tells of @event of @job (NULL: of none); of memory whenever it is called with that, too.  It is
 * printed with the next step.
 */
void batch_show_event(struct batch_show *show, const struct batch_event *event,
	const struct batch_job *job, const struct batch_board *board);

/* Something that the board shows is another now. */
void batch_show_changed(struct batch_show *show);

/* Draws and writes what is due, everything where @is_last.  Returns when to come again at the
 * latest, CLOCK_BOOTTIME; INT64_MAX: not before something has changed. */
int64_t batch_show_step(struct batch_show *show, const struct batch_board *board,
	int64_t now_ms, bool is_last);

/* A message on stderr (or anything else) is about to be written: the board makes room. */
void batch_show_clear(struct batch_show *show);

#endif
