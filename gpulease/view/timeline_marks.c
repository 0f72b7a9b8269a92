#include "timeline_marks.h"

enum {
	GROUPS_MAX = 64,  /* that are open at the same time, in lanes beside each other */
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
