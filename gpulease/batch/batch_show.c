#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "batch_report.h"
#include "batch_show.h"
#include "clock.h"
#include "date_time.h"
#include "diag.h"
#include "json_members.h"
#include "json_text.h"
#include "terminal.h"

enum {
	DRAW_MS = 100,        /* between two boards, if something has changed */
	TICK_MS = 1000,       /* between two boards, if only time has passed */
	WRITE_MS = 250,       /* between two versions of status.txt */
	IDLE_WRITE_MS = 5000, /* between two of them, if only time has passed */
	RETRY_MS = 250, /* until output is tried again for which there was no room */
	LAST_MS = 5000, /* how long to wait for room, at the end */
	PENDING_MAX = 16 * 1024 * 1024,
	BITE = 4096, /* PIPE_BUF: a pipe that polls writable takes so much without blocking */
	ROWS_UNKNOWN = 24,
	ROWS_LEAST = 8,
};

/* --- output ------------------------------------------------------------------------ */

/* Adds to the output to be printed; drops it if there is no room. */
static void show_add_output(struct batch_show *show, const char *bytes, size_t size)
{
	size_t needed = show->pending_size + size, room = show->pending_room;
	char *grown;

	if (show->is_closed)
		return;
	if (needed > PENDING_MAX) {
		show->has_dropped = true;
		return;
	}
	if (needed > room) {
		room = room * 2 > needed ? room * 2 : needed;
		grown = realloc(show->pending, room);
		if (!grown) {
			show->has_dropped = true;
			return;
		}
		show->pending = grown;
		show->pending_room = room;
	}
	memcpy(show->pending + show->pending_size, bytes, size);
	show->pending_size = needed;
}

/* Stops printing after an error of stdout.  That its reader left (EPIPE) is not reported. */
static void show_close_output(struct batch_show *show, int error)
{
	if (error != EPIPE)
		diag("cannot write the output: %s", strerror(error));
	show->has_no_output = error != EPIPE;
	show->is_closed = true;
	show->is_live = false;
	show->pending_size = 0;
}

/* Whether stdout takes output; waits up to @wait_ms for that. */
static bool is_stdout_ready(int64_t wait_ms)
{
	struct pollfd poll_fd = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int64_t until_ms = clock_boot_ms() + wait_ms;
	int n;

	/* an error counts as ready: write() then says which */
	do
		n = poll(&poll_fd, 1, (int)max_i64(0, until_ms - clock_boot_ms()));
	while (n < 0 && errno == EINTR);
	return n != 0;
}

/* Prints the output as far as there is room; waits up to @wait_ms for room, each time. */
static void show_print_pending(struct batch_show *show, int64_t wait_ms)
{
	size_t done = 0;

	while (done < show->pending_size && is_stdout_ready(wait_ms)) {
		size_t size = show->pending_size - done;
		ssize_t n = write(
			STDOUT_FILENO, show->pending + done, size < BITE ? size : BITE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) /* another process made it non-blocking */
			break;
		if (n < 0) {
			show_close_output(show, errno);
			return;
		}
		done += (size_t)n;
	}
	if (!done)
		return;
	memmove(show->pending, show->pending + done, show->pending_size - done);
	show->pending_size -= done;
}

/* --- the board on the terminal ----------------------------------------------------- */

/* Whether the terminal is ours: in the background only lines are printed, and nothing is erased. */
static bool is_in_foreground(void)
{
	pid_t front = tcgetpgrp(STDOUT_FILENO);

	return front < 0 || front == getpgrp();
}

/* Removes the board from the terminal, if it is there. */
static void show_erase_board(struct batch_show *show)
{
	char codes[32];
	struct text text = TEXT_ON(codes);

	if (!show->rows_shown)
		return;
	if (!is_in_foreground()) {
		show->rows_shown = 0; /* other programs have printed since */
		return;
	}
	text_addf(&text, "\r\033[%uA\033[J", show->rows_shown);
	show->rows_shown = 0;
	show_add_output(show, codes, text.used);
}

/* Returns the height of the board: half of the terminal, so that log lines stay visible. */
static unsigned show_board_rows(void)
{
	struct winsize size;
	unsigned rows = ROWS_UNKNOWN;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row)
		rows = size.ws_row;
	if (rows / 2 >= ROWS_LEAST)
		return rows / 2;
	return rows > ROWS_LEAST ? ROWS_LEAST : rows - 1;
}

/* Returns the board as text with @foot after it, to be freed by the caller; NULL without memory. */
static char *show_render(const struct batch_board *board, const struct table_style *style,
	unsigned rows, const char *foot, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	if (!out)
		return NULL;
	batch_board_print(board, style, rows, out);
	(void)fputs(foot, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void show_draw_board(
	struct batch_show *show, const struct batch_board *board, int64_t now_ms)
{
	struct table_style style = terminal_style();
	size_t size = 0;
	autofree char *text = show_render(board, &style, show_board_rows(), "", &size);

	show_erase_board(show);
	for (size_t i = 0; text && i < size; i++)
		show->rows_shown += text[i] == '\n';
	if (text)
		show_add_output(show, text, size);
	show->is_stale = false;
	show->drawn_ms = now_ms;
}

static bool has_running_job(const struct batch_board *board)
{
	for (size_t i = 0; i < board->jobs->count; i++)
		if (board->jobs->all[i].state == BATCH_RUNNING &&
			!board->jobs->all[i].is_between)
			return true;
	return false;
}

/* Returns when to draw the board next, CLOCK_BOOTTIME; INT64_MAX: not before a change. */
static int64_t show_due_ms(const struct batch_show *show, const struct batch_board *board)
{
	if (!show->is_live || !is_in_foreground())
		return INT64_MAX;
	if (show->drawn_ms == INT64_MIN)
		return INT64_MIN;
	if (show->is_stale)
		return show->drawn_ms + DRAW_MS;
	return has_running_job(board) ? show->drawn_ms + TICK_MS : INT64_MAX;
}

/* --- status.txt -------------------------------------------------------------------- */

static void show_write_status(
	struct batch_show *show, const struct batch_board *board, int64_t now_ms)
{
	const struct table_style plain = { .width = 0 };
	char foot[64];
	struct text line = TEXT_ON(foot);
	autofree char *text = NULL;
	size_t size = 0;
	int r = -ENOMEM;

	text_add(&line, "as of ");
	date_time_add(board->now_ms, DATE_TIME_DAY | DATE_TIME_SECONDS, &line);
	text_add(&line, "\n");
	text = show_render(board, &plain, 0, foot, &size);
	if (text)
		r = batch_folder_write(show->journal, "status.txt", text, size);
	if (r < 0 && !show->has_failed) {
		batch_show_clear(show);
		note("cannot write '%s/status.txt': %s", show->journal->folder,
			strerror(-r));
	}
	show->has_failed = r < 0;
	show->has_changed = false;
	show->written_ms = now_ms;
}

/* --- the beginning ----------------------------------------------------------------- */

/* Prints the members with which the objects of other verbs begin.  Later events lack them. */
static void show_add_json_head(struct batch_show *show)
{
	const char *host = document_host();
	char line[512];
	struct text text = TEXT_ON(line);

	text_addf(&text,
		"{\"event\": \"batch\", \"at\": %lld, \"format\": \"gpulease-batch/%d\", "
		"\"schema\": %d, \"version\": \"%s\", \"host\": ",
		(long long)clock_real_ms(), DOCUMENT_SCHEMA, DOCUMENT_SCHEMA,
		GPULEASE_VERSION);
	json_add_string(&text, host, strlen(host));
	text_add(&text, "}\n");
	show_add_output(show, line, text.used);
}

void batch_show_begin(struct batch_show *show, const struct output_settings *output,
	unsigned tolerance_percent, const struct batch_journal *journal)
{
	bool is_json = output->json, is_quiet = output->quiet;
	const char *term = getenv("TERM");

	*show = (struct batch_show){
		.is_json = is_json,
		.is_quiet = is_quiet,
		.is_verbose = output->verbose,
		.is_live = !is_json && !is_quiet && isatty(STDOUT_FILENO) && term &&
			   term[0] && strcmp(term, "dumb") != 0,
		.tolerance_percent = tolerance_percent,
		.journal = journal,
		.has_changed = true,
		.is_stale = true,
		.written_ms = INT64_MIN,
		.drawn_ms = INT64_MIN,
	};
	if (is_json)
		show_add_json_head(show);
}

/* --- events and steps -------------------------------------------------------------- */

/* ->ticket in the line is the id by which --cancel names the job. */
static void show_add_json(struct batch_show *show, const struct batch_event *event)
{
	struct batch_event shown = *event;
	autofree char *line = malloc(BATCH_EVENT_SIZE);
	struct text text;

	if (!line)
		return;
	text = text_on(line, BATCH_EVENT_SIZE);
	if (event->slurm_job)
		shown.ticket = event->slurm_job;
	batch_event_write(&shown, &text);
	if (!text.cut)
		show_add_output(show, line, text.used);
}

void batch_show_event(struct batch_show *show, const struct batch_event *event,
	const struct batch_job *job, const struct batch_board *board)
{
	char line[4 * BATCH_COMMAND_SIZE];
	struct text text = TEXT_ON(line);
	struct batch_counts counts = { .all = 0 };

	batch_show_changed(show);
	if (show->is_json)
		show_add_json(show, event);
	if (show->is_json || show->is_quiet ||
		(event->kind == BATCH_MEMORY && !show->is_verbose))
		return;
	if (event->kind == BATCH_STARTED)
		counts = batch_count(board->jobs);
	batch_report_event(event, job, &counts, show->tolerance_percent, &text);
	if (!text.used)
		return;
	show_erase_board(show);
	show_add_output(show, line, text.used);
	show_add_output(show, "\n", 1);
}

void batch_show_changed(struct batch_show *show)
{
	show->has_changed = show->is_stale = true;
}

void batch_show_clear(struct batch_show *show)
{
	show_erase_board(show);
	show->is_stale = true;
	show_print_pending(show, 0);
}

/*
 * The last step: removes the board, so that only lines stay on the terminal, and prints the rest.
 */
static void show_finish(struct batch_show *show)
{
	show_erase_board(show);
	show_print_pending(show, LAST_MS);
	if (show->has_dropped && !show->is_closed)
		note("some output was dropped: its reader was too slow");
	free(show->pending);
	show->pending = NULL;
	show->pending_size = show->pending_room = 0;
}

/* Prints what is due; returns when to call it again. */
static int64_t show_print_due(
	struct batch_show *show, const struct batch_board *board, int64_t now_ms)
{
	int64_t at_ms = show_due_ms(show, board);

	if (show->is_live && is_in_foreground()) {
		/* print lines together with the board below them, to avoid flicker */
		if (now_ms < at_ms)
			return at_ms;
		if (is_stdout_ready(0)) /* do not pile up boards for a slow reader */
			show_draw_board(show, board, now_ms);
	}
	show_print_pending(show, 0);
	at_ms = show_due_ms(show, board);
	return show->pending_size || at_ms <= now_ms ? now_ms + RETRY_MS : at_ms;
}

/* Returns when to write status.txt next, CLOCK_BOOTTIME; INT64_MAX: not before a change. */
static int64_t show_write_due_ms(
	const struct batch_show *show, const struct batch_board *board)
{
	if (show->written_ms == INT64_MIN)
		return INT64_MIN;
	if (show->has_changed)
		return show->written_ms + WRITE_MS;
	return has_running_job(board) ? show->written_ms + IDLE_WRITE_MS : INT64_MAX;
}

int64_t batch_show_step(struct batch_show *show, const struct batch_board *board,
	int64_t now_ms, bool is_last)
{
	if (is_last ? show->has_changed : now_ms >= show_write_due_ms(show, board))
		show_write_status(show, board, now_ms);
	if (is_last) {
		show_finish(show);
		return INT64_MAX;
	}
	return min_i64(
		show_print_due(show, board, now_ms), show_write_due_ms(show, board));
}
