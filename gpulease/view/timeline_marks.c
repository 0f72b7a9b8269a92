#include <errno.h>

#include "timeline_marks.h"

enum {
	GROUPS_MAX = 64, /* that are open at the same time, in lanes beside each other */
	SECOND_MS = 1000,
	GROUP_LENGTH = 4, /* a group is at most so many times as long as what it merges */
};

/* Short spans of the same height, one after the other. */
struct group {
	const struct timeline_span *first; /* NULL: the group is closed */
	int64_t until_ms;
	unsigned count;
	unsigned spans[TIMELINE_PLACES];
	uint64_t time_ms[TIMELINE_PLACES][TIMELINE_PARTS];
};

struct marker {
	int64_t merge_ms;
	void (*take)(const struct timeline_mark *mark, void *taker);
	void *taker;
	struct group groups[GROUPS_MAX];
	size_t next; /* which group is used next */
};

static void take_span(struct marker *marker, const struct timeline_span *span)
{
	for (unsigned part = 0; part < TIMELINE_PARTS; part++) {
		struct timeline_mark mark = {
			.from_ms = timeline_part_ms(span, part),
			.until_ms = timeline_part_ms(span, part + 1),
			.y = span->y,
			.height = span->percent,
			.place = timeline_place(span->user),
			.part = (enum timeline_part)part,
			.span = span,
			.spans = 1,
		};

		mark.gpu_time = (uint64_t)(mark.until_ms - mark.from_ms) * span->percent;
		if (mark.gpu_time)
			marker->take(&mark, marker->taker);
	}
}

/* Hands on the rectangles of a group, one below the other, and closes it. */
static void close_group(struct marker *marker, struct group *group)
{
	const struct timeline_span *first = group->first;
	double length, y;

	if (!first)
		return;
	group->first = NULL;
	if (group->count == 1) {
		take_span(marker, first);
		return;
	}
	length = (double)(group->until_ms - first->from_ms);
	y = first->y;
	for (size_t i = 0; i < (size_t)TIMELINE_PLACES * TIMELINE_PARTS; i++) {
		size_t place = i / TIMELINE_PARTS, part = i % TIMELINE_PARTS;
		uint64_t time_ms = group->time_ms[place][part];
		struct timeline_mark mark = {
			.from_ms = first->from_ms,
			.until_ms = group->until_ms,
			.y = y,
			.height = first->percent * ((double)time_ms / length),
			.place = place,
			.part = (enum timeline_part)part,
			.spans = group->spans[place],
			.gpu_time = time_ms * first->percent,
		};

		if (!time_ms)
			continue;
		y += mark.height;
		marker->take(&mark, marker->taker);
	}
}

static void group_add(struct group *group, const struct timeline_span *span)
{
	size_t place = timeline_place(span->user);

	if (!group->first)
		*group = (struct group){ .first = span };
	group->until_ms = span->until_ms;
	group->count++;
	group->spans[place]++;
	for (unsigned part = 0; part < TIMELINE_PARTS; part++)
		group->time_ms[place][part] +=
			(uint64_t)(timeline_part_ms(span, part + 1) -
				   timeline_part_ms(span, part));
}

/* Whether the group can take the span: the same lane, close behind it, and not too long. */
static bool group_fits(
	const struct group *group, const struct timeline_span *span, int64_t merge_ms)
{
	return group->first->y == span->y && group->first->percent == span->percent &&
	       span->from_ms >= group->until_ms &&
	       span->from_ms - group->until_ms < merge_ms &&
	       span->until_ms - group->first->from_ms <= GROUP_LENGTH * merge_ms;
}

static bool group_is_beside(const struct group *group, const struct timeline_span *span)
{
	return group->first->y < span->y + span->percent &&
	       span->y < group->first->y + group->first->percent;
}

static void mark_span(struct marker *marker, const struct timeline_span *span)
{
	bool is_short = span->until_ms - span->from_ms < marker->merge_ms;
	struct group *free_group = NULL;

	/* what the span would lie over is closed, so that no group goes on behind it */
	for (size_t i = 0; i < GROUPS_MAX; i++) {
		struct group *group = &marker->groups[i];

		if (group->first && is_short &&
			group_fits(group, span, marker->merge_ms)) {
			group_add(group, span);
			return;
		}
		if (group->first && group_is_beside(group, span))
			close_group(marker, group);
		if (!group->first && !free_group)
			free_group = group;
	}
	if (!is_short) {
		take_span(marker, span);
		return;
	}
	if (!free_group) {
		free_group = &marker->groups[marker->next++ % GROUPS_MAX];
		close_group(marker, free_group);
	}
	group_add(free_group, span);
}

void timeline_marks(const struct timeline *timeline, const struct timeline_row *row,
	int64_t merge_ms, void (*take)(const struct timeline_mark *mark, void *taker),
	void *taker)
{
	struct marker marker = {
		.merge_ms = merge_ms,
		.take = take,
		.taker = taker,
	};

	for (size_t i = 0; i < row->count; i++)
		mark_span(&marker, &timeline->spans[row->first + i]);
	for (size_t i = 0; i < GROUPS_MAX; i++)
		close_group(&marker, &marker.groups[i]);
}

/* --- columns ---------------------------------------------------------------------------- */

/* Of a cell; what is less has come from rounding. */
static const double ROUNDING = 1e-9;

/* Moves @at to the edge of a cell that is closer than @snap. */
static double snapped(double at, double snap)
{
	double edge = (double)(int64_t)(at + 0.5);
	double off = at > edge ? at - edge : edge - at;

	return off < snap ? edge : at;
}

/* Returns where a moment is, in cells. */
static double cell_at(const struct timeline *timeline, size_t columns, int64_t at_ms)
{
	return timeline_x(timeline, at_ms) * (double)columns / 100;
}

/* Adds what the span has of each cell. */
static void add_span(const struct timeline *timeline, struct timeline_cell *cells,
	size_t columns, const struct timeline_span *span, double snap)
{
	size_t place = timeline_place(span->user);

	/* a span that would vanish stays as it is */
	if (snapped(cell_at(timeline, columns, span->from_ms), snap) >=
		snapped(cell_at(timeline, columns, span->until_ms), snap))
		snap = 0;
	for (unsigned part = 0; part < TIMELINE_PARTS; part++) {
		int64_t from_ms = timeline_part_ms(span, part);
		int64_t until_ms = timeline_part_ms(span, part + 1);
		double from = snapped(cell_at(timeline, columns, from_ms), snap);
		double until = snapped(cell_at(timeline, columns, until_ms), snap);

		for (size_t i = (size_t)from; i < columns && (double)i < until; i++) {
			double begin = from > (double)i ? from : (double)i;
			double end = until < (double)(i + 1) ? until : (double)(i + 1);

			if (end - begin > ROUNDING)
				cells[i].time[place][part] +=
					(end - begin) * span->percent;
		}
	}
}

int timeline_cells(const struct timeline *timeline, const struct timeline_row *row,
	size_t count, double snap, struct timeline_cell **ret)
{
	struct timeline_cell *cells = calloc(count + 1, sizeof(*cells));

	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < row->count; i++)
		add_span(timeline, cells, count, &timeline->spans[row->first + i], snap);
	*ret = cells;
	return 0;
}

static bool cell_is_equal(const struct timeline_cell *a, const struct timeline_cell *b)
{
	const double ALMOST = 1e-6; /* percent of a GPU */

	for (size_t i = 0; i < (size_t)TIMELINE_PLACES * TIMELINE_PARTS; i++) {
		double more = a->time[i / TIMELINE_PARTS][i % TIMELINE_PARTS] -
			      b->time[i / TIMELINE_PARTS][i % TIMELINE_PARTS];

		if (more > ALMOST || more < -ALMOST)
			return false;
	}
	return true;
}

/* Hands on the rectangles of a cell, one below the other. */
static void take_cell(const struct timeline_cell *cell, int64_t from_ms, int64_t until_ms,
	void (*take)(const struct timeline_mark *mark, void *taker), void *taker)
{
	double y = 0;

	for (size_t i = 0; i < (size_t)TIMELINE_PLACES * TIMELINE_PARTS; i++) {
		double height = cell->time[i / TIMELINE_PARTS][i % TIMELINE_PARTS];
		struct timeline_mark mark = {
			.from_ms = from_ms,
			.until_ms = until_ms,
			.y = y,
			.height = height,
			.place = i / TIMELINE_PARTS,
			.part = (enum timeline_part)(i % TIMELINE_PARTS),
			.gpu_time = (uint64_t)(height * (double)(until_ms - from_ms)),
		};

		y += height;
		if (height > 0)
			take(&mark, taker);
	}
}

int timeline_columns(const struct timeline *timeline, const struct timeline_row *row,
	size_t count, void (*take)(const struct timeline_mark *mark, void *taker),
	void *taker)
{
	double length_ms = (double)(timeline->until_ms - timeline->from_ms);
	struct timeline_cell *cells;

	if (count > (size_t)length_ms / SECOND_MS + 1) /* the edges are rounded to 1 ms */
		count = (size_t)length_ms / SECOND_MS + 1;
	if (timeline_cells(timeline, row, count, 0, &cells) < 0)
		return -ENOMEM;
	for (size_t first = 0, next; first < count; first = next) {
		next = first + 1;
		while (next < count && cell_is_equal(&cells[first], &cells[next]))
			next++;
		take_cell(&cells[first],
			timeline->from_ms +
				(int64_t)(length_ms * (double)first / (double)count),
			timeline->from_ms +
				(int64_t)(length_ms * (double)next / (double)count),
			take, taker);
	}
	free(cells);
	return 0;
}
