/*
 * The screen of --top: from what was read of the machines, and from what the user has chosen, to
 * the rows of a terminal.  Pure but for memory: no clock, no terminal.
 *
 * A row is UTF-8 with SGR sequences (colours) of our own.  Its columns never exceed the width; it
 * begins and ends without a colour.  Texts of other users are printable before they come here
 * (machine_read.h).
 */
#ifndef GPULEASE_TOP_SCREEN_H
#define GPULEASE_TOP_SCREEN_H

#include "machine_read.h"

enum {
	TOP_ROWS_MAX = 300,
	TOP_ROW_SIZE = 4096,
	TOP_LEAST_COLUMNS = 60, /* a smaller terminal shows one line that says so */
	TOP_LEAST_ROWS = 10,
	TOP_WIDE_COLUMNS = 120, /* from here on the wide columns are shown */
	TOP_SAMPLES = 150,      /* of utilization: five minutes, one every 2 s */
	TOP_GPUS_MAX = 128,
	TOP_LOG_LINES = 8,
	TOP_ENDED_MOST = 1000, /* no more of the latest ends are asked for */
	TOP_LOG_LINE_SIZE = 512,
};

/* What is known of one machine. */
struct top_host {
	char name[MACHINE_NAME_SIZE];
	struct machine machine;
	struct ended_jobs
		ended; /* the latest ends, for the row ENDED and the GPU hours of today */
	char trouble[320]; /* why it could not be asked; "": it was */
	/* the utilization of the GPUs, the oldest first; -1: unknown */
	signed char samples[TOP_GPUS_MAX][TOP_SAMPLES];
	unsigned sample_count;
	uint64_t sampled; /* which GPUs they are of; top_host_sample() sets it */
};

/* What the user has chosen, and what the terminal is like. */
struct top_view {
	unsigned columns, rows;
	bool has_colour, has_utf8;
	int64_t now_unix_ms;
	int64_t today_unix_ms; /* the last midnight, of the local time */
	int32_t utc_offset_s;  /* of the local time, for clock times */
	const char *own_user;  /* for `u mine` */
	const char *user;      /* --user; NULL: all */
	bool is_mine, is_clock, is_help, are_hosts, can_act;
	size_t host;        /* index of the shown machine */
	int64_t chosen_job; /* -1: none; the row is highlighted */
	/*
	 * How far the lists are scrolled, in rows: first the GPUs, then the queue.  The chosen
	 * job is always visible.
	 */
	unsigned first_row;
	/* the last line asks or tells something: it replaces the line of keys; "": neither */
	char notice[256];
	/* the last lines of the chosen job's log, printable */
	char log[TOP_LOG_LINES][TOP_LOG_LINE_SIZE];
	unsigned log_count;
};

struct top_frame {
	unsigned rows;
	char row[TOP_ROWS_MAX][TOP_ROW_SIZE];
	/* the jobs that can be chosen, in the order of the rows, each once; for the arrow keys */
	int64_t jobs[1024];
	size_t job_count;
	unsigned last_first_row; /* with a larger ->first_row the screen is the same */
};

/*
 * Draws the screen of @view into @frame: at most ->rows rows of ->columns columns.  If the terminal
 * is too small, one row that says so.  There is at least one host.
 */
void top_screen_draw(const struct top_host *hosts, size_t host_count,
	const struct top_view *view, struct top_frame *frame);

/* Adds the utilization of the GPUs of ->machine to the samples.  Call it once for each answer. */
void top_host_sample(struct top_host *host);

#endif
