/*
 * The rows of the screen of --top: their columns, cuts and colours; and the times and sizes in
 * them.  Pure.
 *
 *	pen_begin -> pen_put, pen_cell … -> pen_end
 */
#ifndef GPULEASE_TOP_TEXT_H
#define GPULEASE_TOP_TEXT_H

#include "top_screen.h"

/* A wider screen shows no more than this: TOP_ROW_SIZE has room for as many columns. */
enum { TOP_COLUMNS_MAX = 512 };

enum ink {
	INK_NONE,
	INK_BOLD,
	INK_FAINT,
	INK_GREEN,
	INK_YELLOW,
	INK_RED,
	INK_BLUE,
	INK_CYAN,
	INK_COUNT,
};

/* A row that is being written. */
struct pen {
	const struct top_view *view;
	struct text row;
	unsigned used, width; /* columns */
	unsigned owed;        /* blanks that are written once something follows them */
	bool is_chosen;       /* in reverse video, without colours by the caller's mark */
};

/* Returns how many columns of @view are used. */
unsigned top_width(const struct top_view *view);

/*
 * Begins the next row of @frame.  Returns false, without a row, if the screen is full.
 */
MUST_CHECK bool pen_begin(struct pen *pen, struct top_frame *frame,
	const struct top_view *view, bool is_chosen);

/* Write @text in the columns that are left, or in @width of them, which are then filled up. */
void pen_put(struct pen *pen, const char *text, enum ink ink);
void pen_cell(
	struct pen *pen, const char *text, unsigned width, bool is_right, enum ink ink);

/* Whether all of @text still fits into the row. */
bool pen_has_room(const struct pen *pen, const char *text);

/* Leaves @columns blank. */
void pen_skip(struct pen *pen, unsigned columns);

void pen_end(struct pen *pen);

/* The row in one go. */
void pen_row(struct top_frame *frame, const struct top_view *view, const char *text,
	enum ink ink);

/* Returns the columns of @text as the screen shows it.  At least those of text_columns(). */
unsigned top_columns(const struct top_view *view, const char *text);

/* --- words ----------------------------------------------------------------------- */

/* Append "3h12m"; "-" if @span_ms is negative. */
void top_add_span(struct text *out, int64_t span_ms);

/*
 * Append the local time, "18:46", with the date, "11-25 18:46", if it is another day than that of
 * the view; "-" for 0 and before.
 */
void top_add_time(struct text *out, const struct top_view *view, int64_t unix_ms);

/* Append "61G", "6.3G"; "-" if @mib is negative. */
void top_add_size(struct text *out, int64_t mib);

/* Appends what a job declares of each GPU, "0.5+18G"; nothing for whole GPUs. */
void top_add_need(struct text *out, double share, int64_t vram_mib);

/* Returns the sum of two times, neither of which is negative; at most INT64_MAX. */
int64_t top_sum(int64_t a_ms, int64_t b_ms);

/* Appends @unix_ms as "15:34:10". */
void top_add_clock(struct text *out, const struct top_view *view, int64_t unix_ms);

#endif
