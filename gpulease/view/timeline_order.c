#include <errno.h>

#include "timeline_order.h"

/* Spans beside each other in a row; more of them lie over each other. */
enum { LANES_MAX = 512 };

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* --- users and rows ------------------------------------------------------------------------ */

/* An item that moves, and from where. */
struct moving_user {
	struct timeline_user user;
	size_t from;
};

static int compare_users(const void *a, const void *b)
{
	const struct timeline_user *x = &((const struct moving_user *)a)->user;
	const struct timeline_user *y = &((const struct moving_user *)b)->user;

	if (x->least != y->least)
		return COMPARE(y->least, x->least);
	if (x->most != y->most)
		return COMPARE(y->most, x->most);
	return strcmp(x->name, y->name);
}

static int sort_users(struct timeline *timeline)
{
	size_t count = timeline->user_count;
	struct moving_user *moving = calloc(count + 1, sizeof(*moving));
	size_t *to = calloc(count + 1, sizeof(*to));

	if (moving && to) {
		for (size_t i = 0; i < count; i++)
			moving[i] = (struct moving_user){ timeline->users[i], i };
		qsort(moving, count, sizeof(*moving), compare_users);
		for (size_t i = 0; i < count; i++) {
			timeline->users[i] = moving[i].user;
			to[moving[i].from] = i;
		}
		for (size_t i = 0; i < timeline->span_count; i++)
			timeline->spans[i].user = to[timeline->spans[i].user];
	}
	free(moving);
	free(to);
	return moving && to ? 0 : -ENOMEM;
}

struct moving_row {
	struct timeline_row row;
	size_t from;
};

static int compare_rows(const void *a, const void *b)
{
	const struct timeline_row *x = &((const struct moving_row *)a)->row;
	const struct timeline_row *y = &((const struct moving_row *)b)->row;

	if (x->node[0] && y->node[0])
		return COMPARE(x->place, y->place);
	/* -1, not recorded, is the largest number as one without a sign */
	if (x->index != y->index)
		return COMPARE((uint64_t)x->index, (uint64_t)y->index);
	return COMPARE(x->instance, y->instance);
}

static int compare_spans(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;

	if (x->row != y->row)
		return COMPARE(x->row, y->row);
	if (x->from_ms != y->from_ms)
		return COMPARE(x->from_ms, y->from_ms);
	return COMPARE(x->job, y->job);
}

static int sort_rows(struct timeline *timeline)
{
	size_t count = timeline->row_count;
	struct moving_row *moving = calloc(count + 1, sizeof(*moving));
	size_t *to = calloc(count + 1, sizeof(*to));

	if (moving && to) {
		for (size_t i = 0; i < count; i++)
			moving[i] = (struct moving_row){ timeline->rows[i], i };
		qsort(moving, count, sizeof(*moving), compare_rows);
		for (size_t i = 0; i < count; i++) {
			timeline->rows[i] = moving[i].row;
			to[moving[i].from] = i;
		}
		for (size_t i = 0; i < timeline->span_count; i++)
			timeline->spans[i].row = to[timeline->spans[i].row];
	}
	free(moving);
	free(to);
	return moving && to ? 0 : -ENOMEM;
}

/* --- where a span lies in its row ------------------------------------------------------- */

/* The spans that go on at a moment, from the top. */
struct lanes {
	const struct timeline_span *list[LANES_MAX];
	size_t count;
};

static void lanes_drop_ended(struct lanes *lanes, int64_t at_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < lanes->count; i++)
		if (lanes->list[i]->until_ms > at_ms)
			lanes->list[kept++] = lanes->list[i];
	lanes->count = kept;
}

/* Puts @span at the first height where there is room for all of it. */
static void lanes_place(struct lanes *lanes, struct timeline_span *span)
{
	size_t at = 0;

	span->y = 0;
	lanes_drop_ended(lanes, span->from_ms);
	while (at < lanes->count && lanes->list[at]->y < span->y + span->percent) {
		span->y = lanes->list[at]->y + lanes->list[at]->percent;
		at++;
	}
	if (lanes->count == LANES_MAX)
		return;
	for (size_t i = lanes->count++; i > at; i--)
		lanes->list[i] = lanes->list[i - 1];
	lanes->list[at] = span;
}

static void place_spans(struct timeline *timeline)
{
	struct lanes lanes = { .count = 0 };

	if (timeline->span_count)
		qsort(timeline->spans, timeline->span_count, sizeof(*timeline->spans),
			compare_spans);
	for (size_t i = 0; i < timeline->span_count; i++) {
		struct timeline_span *span = &timeline->spans[i];
		struct timeline_row *row = &timeline->rows[span->row];

		if (!row->count++) {
			row->first = i;
			lanes.count = 0;
		}
		lanes_place(&lanes, span);
		if (row->height < span->y + span->percent)
			row->height = span->y + span->percent;
	}
}

/* A GPU that is divided is a row only if a job had all of it. */
static void drop_divided(struct timeline *timeline)
{
	size_t kept = 0;

	for (size_t i = 0; i < timeline->row_count; i++) {
		const struct timeline_row *row = &timeline->rows[i];

		if (row->is_divided && !row->count)
			continue;
		for (size_t s = 0; s < row->count; s++)
			timeline->spans[row->first + s].row = kept;
		timeline->rows[kept++] = *row;
	}
	timeline->row_count = kept;
}

int timeline_order(struct timeline *timeline)
{
	if (sort_users(timeline) < 0 || sort_rows(timeline) < 0)
		return -ENOMEM;
	place_spans(timeline);
	drop_divided(timeline);
	return 0;
}
