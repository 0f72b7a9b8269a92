/*
 * From the spans of a row to the rectangles of a picture.  Where many short jobs stand close to
 * each other, one group of rectangles stands for them: in the time of all of them, each user has a
 * height that makes up its GPU time.  So the areas are exact however much is merged.  Pure.
 */
#ifndef GPULEASE_TIMELINE_MARKS_H
#define GPULEASE_TIMELINE_MARKS_H

#include "timeline_spans.h"

struct timeline_mark {
	int64_t from_ms, until_ms;
	double y, height; /* in percent of a GPU, from the top of the row */
	size_t place;     /* of the user: timeline_place() */
	enum timeline_part part;
	const struct timeline_span *span; /* NULL: it stands for several */
	unsigned spans;                   /* how many; 0: not known */
	uint64_t gpu_time;                /* in percent times milliseconds */
};

/*
 * Calls @take for each rectangle of the row, in no order.  Spans shorter than @merge_ms that have
 * less than @merge_ms between them are merged; 0: none.
 */
void timeline_marks(const struct timeline *timeline, const struct timeline_row *row,
	int64_t merge_ms, void (*take)(const struct timeline_mark *mark, void *taker),
	void *taker);

/* The GPU time in a part of the period, in percent of its length. */
struct timeline_cell {
	double time[TIMELINE_PLACES][TIMELINE_PARTS];
};

/*
 * Divides the period into @count cells, and sets *@ret to what the row has in each of them; the
 * caller frees it.  A time that is closer than @snap cells to the edge of a cell counts as there,
 * so that a cell shows no job that is hardly in it; 0: exact times.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int timeline_cells(const struct timeline *timeline,
	const struct timeline_row *row, size_t count, double snap,
	struct timeline_cell **ret);

/*
 * Calls @take for each rectangle of the row as @count columns, in each of which the users lie one
 * below the other; a short period has fewer columns.  Equal columns beside each other become one.
 * Returns 0 or -ENOMEM.
 */
MUST_CHECK int timeline_columns(const struct timeline *timeline,
	const struct timeline_row *row, size_t count,
	void (*take)(const struct timeline_mark *mark, void *taker), void *taker);

#endif
