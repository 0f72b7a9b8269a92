#include <errno.h>

#include "batch_match.h"

#define NONE SIZE_MAX

/* A line of before, or one of now. */
struct entry {
	uint64_t key;
	size_t at; /* its place among them */
	bool has_ended;
};

struct match {
	const struct batch_jobs *jobs;
	const struct batch_list *list;
	const uint64_t *before;
	size_t before_count;
	size_t *lines; /* of each of before: the line that it is now, NONE: gone */
};

/* --- in place ---------------------------------------------------------------------- */

/* The job at @at before; NULL: nobody knows it. */
static const struct batch_job *job_at(const struct match *match, size_t at)
{
	return batch_jobs_find(match->jobs, match->before[at]);
}

static bool is_same(const struct match *match, size_t at, size_t line)
{
	const struct batch_job *job = job_at(match, at);

	return job && job->key == match->list->lines[line].key;
}

/* The beginning and the end that are as they were.  What is between is left for later. */
static void match_ends(struct match *match, size_t *ret_begin, size_t *ret_after)
{
	size_t old_count = match->before_count, new_count = match->list->count;
	size_t most = old_count < new_count ? old_count : new_count;
	size_t begin = 0, after = 0;

	for (; begin < most && is_same(match, begin, begin); begin++)
		match->lines[begin] = begin;
	for (; after < most - begin &&
		is_same(match, old_count - after - 1, new_count - after - 1);
		after++)
		match->lines[old_count - after - 1] = new_count - after - 1;
	*ret_begin = begin;
	*ret_after = after;
}

/* --- by key ------------------------------------------------------------------------ */

static int compare_by_place(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int compare_by_end(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->key != b->key || a->has_ended == b->has_ended)
		return compare_by_place(left, right);
	return a->has_ended ? 1 : -1;
}

/* Those of before from @first to @end that are known; returns how many. */
static size_t list_before(
	const struct match *match, size_t first, size_t end, struct entry *ret)
{
	size_t count = 0;

	for (size_t at = first; at < end; at++) {
		const struct batch_job *job = job_at(match, at);

		if (job)
			ret[count++] =
				(struct entry){ job->key, at, job->state == BATCH_ENDED };
	}
	return count;
}

/*
 * The @old_count entries at @old and the @new_count at @new are all of one key: as many as have
 * a partner get one, in order.  Where there are fewer lines, who has not ended comes first.
 */
static void match_key(struct match *match, struct entry *old, size_t old_count,
	const struct entry *new, size_t new_count)
{
	size_t count = old_count < new_count ? old_count : new_count;

	qsort(old, count, sizeof(*old), compare_by_place);
	for (size_t i = 0; i < count; i++)
		match->lines[old[i].at] = new[i].at;
}

/* How many entries from @first on have its key. */
static size_t count_equal(const struct entry *entries, size_t first, size_t count)
{
	size_t i = first;

	while (i < count && entries[i].key == entries[first].key)
		i++;
	return i - first;
}

static void match_sorted(struct match *match, struct entry *old, size_t old_count,
	const struct entry *new, size_t new_count)
{
	size_t i = 0, j = 0;

	while (i < old_count && j < new_count) {
		uint64_t old_key = old[i].key, new_key = new[j].key;
		size_t old_equal = count_equal(old, i, old_count);
		size_t new_equal = count_equal(new, j, new_count);

		if (old_key == new_key)
			match_key(match, old + i, old_equal, new + j, new_equal);
		i += old_key <= new_key ? old_equal : 0;
		j += new_key <= old_key ? new_equal : 0;
	}
}

/* What lies between the ends that are as they were.  0 or -ENOMEM. */
static int match_rest(struct match *match, size_t begin, size_t after)
{
	size_t old_end = match->before_count - after, old_count;
	size_t new_count = match->list->count - after - begin;
	autofree struct entry *old = calloc(old_end - begin + 1, sizeof(*old));
	autofree struct entry *new = calloc(new_count + 1, sizeof(*new));

	if (!old || !new)
		return -ENOMEM;
	old_count = list_before(match, begin, old_end, old);
	for (size_t i = 0; i < new_count; i++)
		new[i] = (struct entry){ match->list->lines[begin + i].key, begin + i,
			false };
	qsort(old, old_count, sizeof(*old), compare_by_end);
	qsort(new, new_count, sizeof(*new), compare_by_place);
	match_sorted(match, old, old_count, new, new_count);
	return 0;
}

/* --- which of equal lines are gone ------------------------------------------------- */

/*
 * A job may take the place of another of its key when nothing that is still there stands
 * between them: then nobody can tell which of their lines is gone.
 */
struct slide {
	struct entry *sorted; /* all of before, by key and place */
	size_t count;
	size_t *group; /* of each of before: the first of its key in ->sorted */
	/* of each group: how far the search has come, for those that have not ended, for all */
	size_t *live, *any;
};

static void begin_slide(struct slide *slide, bool is_right)
{
	for (size_t i = 0, count; i < slide->count; i += count) {
		count = count_equal(slide->sorted, i, slide->count);
		slide->live[i] = slide->any[i] = is_right ? i + count - 1 : i;
	}
}

static bool is_within(size_t place, size_t bound, bool is_right)
{
	return is_right ? place < bound : place >= bound;
}

/*
 * Where the line at @at goes: as far as can be within @bound, to one that has not ended, else to
 * one that has.  @bound only comes nearer, so that all searches together are one walk.
 */
static size_t find_place(struct slide *slide, size_t at, size_t bound, bool is_right)
{
	const struct entry *sorted = slide->sorted;
	size_t *live = &slide->live[slide->group[at]];
	size_t *any = &slide->any[slide->group[at]];
	const size_t step = is_right ? SIZE_MAX : 1; /* -1 */

	while (sorted[*live].at != at &&
		(sorted[*live].has_ended ||
			!is_within(sorted[*live].at, bound, is_right)))
		*live += step;
	if (!sorted[*live].has_ended)
		return sorted[*live].at;
	while (sorted[*any].at != at && !is_within(sorted[*any].at, bound, is_right))
		*any += step;
	return sorted[*any].at;
}

static void slide_all(struct match *match, struct slide *slide, bool is_right)
{
	size_t count = match->before_count, bound = is_right ? count : 0;

	begin_slide(slide, is_right);
	for (size_t i = 0; i < count; i++) {
		size_t at = is_right ? count - 1 - i : i, line = match->lines[at], to;

		if (line == NONE)
			continue;
		to = find_place(slide, at, bound, is_right);
		match->lines[at] = NONE;
		match->lines[to] = line;
		bound = is_right ? to : to + 1;
	}
}

/*
 * All go as far to the right as they can, which makes room, and back to the left; nobody goes
 * from one that has not ended to one that has.  So those that have are gone, and where that
 * tells nothing the last ones.  0 or -ENOMEM.
 */
static int mend(struct match *match)
{
	size_t count = match->before_count;
	autofree struct entry *sorted = calloc(count + 1, sizeof(*sorted));
	autofree size_t *places = calloc(3 * count + 1, sizeof(*places));
	struct slide slide;

	if (!sorted || !places)
		return -ENOMEM;
	slide = (struct slide){ sorted, 0, places, places + count, places + 2 * count };
	slide.count = list_before(match, 0, count, sorted);
	qsort(sorted, slide.count, sizeof(*sorted), compare_by_place);
	for (size_t i = 0, first = 0; i < slide.count; i++) {
		if (sorted[i].key != sorted[first].key)
			first = i;
		slide.group[sorted[i].at] = first;
	}
	slide_all(match, &slide, true);
	slide_all(match, &slide, false);
	return 0;
}

/* --- lines that come back ---------------------------------------------------------- */

/* A job that had no line any more, or has none now. */
struct gone {
	uint64_t key, number;
	enum batch_state state;
	size_t taken; /* in the first of a key: how many of that key have a line again */
};

static unsigned rank_of(enum batch_state state)
{
	static const unsigned ranks[] = {
		[BATCH_RUNNING] = 0,
		[BATCH_IN_QUEUE] = 1,
		[BATCH_NEW] = 2,
		[BATCH_ENDED] = 3,
	};

	return ranks[state];
}

static int compare_gone(const void *left, const void *right)
{
	const struct gone *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (rank_of(a->state) != rank_of(b->state))
		return rank_of(a->state) < rank_of(b->state) ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* The next job of @key that nobody has claimed; 0: none. */
static uint64_t claim(struct gone *gone, size_t count, uint64_t key)
{
	size_t from = 0, to = count;
	struct gone *next;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (gone[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == count || gone[from].key != key)
		return 0;
	next = &gone[from + gone[from].taken];
	if (next == gone + count || next->key != key)
		return 0;
	gone[from].taken++;
	return next->number;
}

/*
 * A line that was not there for a while (somebody saved half a file, or commented it out) is the
 * line that it was: one that runs is not started beside itself, nor what is done run again.
 */
static int match_gone(const struct match *match, uint64_t *numbers)
{
	const struct batch_jobs *jobs = match->jobs;
	autofree struct gone *gone = calloc(jobs->count + 1, sizeof(*gone));
	autofree bool *has_line = calloc(jobs->count + 1, sizeof(*has_line));
	size_t count = 0;

	if (!gone || !has_line)
		return -ENOMEM;
	for (size_t i = 0; i < match->list->count; i++)
		has_line[numbers[i]] = true;
	for (size_t i = 0; i < jobs->count; i++)
		if (!has_line[jobs->all[i].number])
			gone[count++] = (struct gone){ .key = jobs->all[i].key,
				.number = jobs->all[i].number,
				.state = jobs->all[i].state };
	qsort(gone, count, sizeof(*gone), compare_gone);
	for (size_t i = 0; count && i < match->list->count; i++)
		if (!numbers[i])
			numbers[i] = claim(gone, count, match->list->lines[i].key);
	return 0;
}

/* --- all --------------------------------------------------------------------------- */

int batch_match(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, const struct batch_list *list, uint64_t **ret)
{
	autofree uint64_t *numbers = calloc(list->count + 1, sizeof(*numbers));
	autofree size_t *lines = calloc(before_count + 1, sizeof(*lines));
	struct match match = { jobs, list, before, before_count, lines };
	size_t begin, after;

	if (!numbers || !lines)
		return -ENOMEM;
	memset(lines, 0xff, before_count * sizeof(*lines)); /* NONE */
	match_ends(&match, &begin, &after);
	if (match_rest(&match, begin, after) < 0 || mend(&match) < 0)
		return -ENOMEM;
	for (size_t at = 0; at < before_count; at++)
		if (lines[at] != NONE)
			numbers[lines[at]] = before[at];
	if (match_gone(&match, numbers) < 0)
		return -ENOMEM;
	*ret = numbers;
	numbers = NULL;
	return 0;
}
