/* What has ended, and what jobs that run have used: leases and the history as one. */
#include <errno.h>

#include "array.h"
#include "clock.h"
#include "ending.h"
#include "explain.h"
#include "instance.h"
#include "look.h"
#include "parse.h"
#include "view.h"

/* --- all of them ------------------------------------------------------------------- */

/*
 * While nobody waits nobody replaces the leases that are over, and so nobody tells the history.
 * Who does looks in the file of a lease's lowest GPU; so do we.
 */
static bool stands_unrecorded(const struct snapshot_lease *lease)
{
	int lowest = gpuset_next(&lease->lease.gpus, 0);

	return lease->is_over && !lease->lease.is_recorded && lowest >= 0 &&
	       gpuset_has(&lease->seen, (unsigned)lowest);
}

struct leased_end {
	struct history_end end;
	bool is_running;
};

/* The latest first. */
static int compare_leased(const void *a, const void *b)
{
	const struct history_end *x = &((const struct leased_end *)a)->end;
	const struct history_end *y = &((const struct leased_end *)b)->end;

	if (x->ticket != y->ticket)
		return x->ticket < y->ticket ? 1 : -1;
	return (x->attempt < y->attempt) - (x->attempt > y->attempt);
}

static size_t describe_leases(
	const struct look *look, bool with_running, struct leased_end *out)
{
	const struct snapshot *view = &look->snapshot;
	size_t count = 0;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		struct leased_end *next = &out[count];

		next->is_running = with_running && !lease->is_over;
		if (next->is_running) {
			history_describe(
				&lease->lease, look->now_ms, look->now_ms, &next->end);
			ending_name_gpus(view, &lease->lease.gpus, next->end.gpus,
				sizeof(next->end.gpus));
		} else if (stands_unrecorded(lease)) {
			ending_describe(view, lease, &next->end);
		} else {
			continue;
		}
		count++;
	}
	qsort(out, count, sizeof(*out), compare_leased);
	return count;
}

/* Nothing that may not be shown goes any further, not even to be compared with. */
static int take(struct view_taker *taker, struct history_end *end, bool is_running)
{
	if (!may_show_commands_of(end->uid))
		end->name[0] = end->command[0] = '\0';
	return taker->take(taker, end, is_running);
}

/* Ends that are read from leases. */
struct leased_ends {
	struct leased_end *all;
	size_t count;
};

static int take_leases(
	const struct look *look, struct view_taker *taker, struct leased_ends *ret)
{
	int r = 0;

	ret->all = calloc(look->snapshot.lease_count + 1, sizeof(*ret->all));
	if (!ret->all)
		return -ENOMEM;
	ret->count = describe_leases(look, taker->wants_running, ret->all);
	for (size_t i = 0; i < ret->count && r == 0; i++)
		r = take(taker, &ret->all[i].end, ret->all[i].is_running);
	return r;
}

/* Whether the end of this line was already taken from its lease, as ended or running. */
static bool was_taken(const struct leased_ends *leased, const struct history_end *end)
{
	struct history_key key = history_key(end);

	for (size_t i = 0; i < leased->count; i++) {
		struct history_key other = history_key(&leased->all[i].end);

		if (history_key_is_same(&key, &other))
			return true;
	}
	return false;
}

static int take_history(
	int dirfd, struct view_taker *taker, const struct leased_ends *leased)
{
	static struct history_reader reader; /* too big for the stack */
	struct history_end end;
	int r = history_reader_open(dirfd, &reader);

	if (r < 0)
		return r;
	while ((r = history_next(&reader, &end)) == 0) {
		r = was_taken(leased, &end) ? 0 : take(taker, &end, false);
		if (r != 0)
			break;
	}
	taker->gap = reader.gap;
	history_reader_release(&reader);
	return r < 0 ? r : 0;
}

static unsigned count_gpus(const struct snapshot *view)
{
	unsigned count = 0;

	for (unsigned slot = 0; slot < view->slots; slot++)
		count += view->gpus[slot].exists &&
			 !gpu_is_parent(view, &view->gpus[slot]);
	return count;
}

static struct look look; /* too big for the stack */

int view_each_ended(
	const struct context *context, struct view_taker *taker, struct why *why)
{
	struct leased_ends leased = { .all = NULL };
	int r;

	look_init(&look, context, 0);
	r = look_read(&look, why);
	if (r == 0) {
		taker->gpu_count = count_gpus(&look.snapshot);
		taker->real_ms = clock_real_ms();
		r = take_leases(&look, taker, &leased);
		if (r == 0)
			r = take_history(context->dir.fd, taker, &leased);
		if (r < 0)
			why_set(why, "cannot read the history in '%s/history': %s",
				context->dir.path, strerror(-r));
	}
	free(leased.all);
	look_release(&look);
	return r < 0 ? r : 0;
}

/* --- the last of them -------------------------------------------------------------- */

struct collection {
	struct view_taker taker;
	const struct ended_filter *filter;
	struct history_end *ends; /* the latest first */
	size_t count, room, most;
};

static int collect(
	struct view_taker *taker, const struct history_end *end, bool is_running)
{
	struct collection *all = (struct collection *)taker;
	struct history_end *ends;

	(void)is_running;
	if (all->count >= all->most)
		return VIEW_ENOUGH;
	if (!ended_filter_admits(all->filter, end))
		return 0;
	ends = array_grow(all->ends, sizeof(*ends), all->count, &all->room);
	if (!ends)
		return -ENOMEM;
	all->ends = ends;
	ends[all->count++] = *end;
	return 0;
}

/* Numbers where there was no name: of a user without one, and of who cancelled. */
static void name_users(struct history_end *end)
{
	struct text name;
	uint64_t uid;

	if (!end->user[0]) {
		name = TEXT_ON(end->user);
		describe_user(end->uid, NULL, &name);
	}
	if (parse_u64(end->by, UINT32_MAX, &uid, NULL) < 0)
		return;
	name = TEXT_ON(end->by);
	describe_user((uint32_t)uid, NULL, &name);
}

static void turn_round(struct history_end *ends, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct history_end end = ends[i];

		ends[i] = ends[count - 1 - i];
		ends[count - 1 - i] = end;
	}
}

int view_ended(const struct context *context, const struct ended_filter *filter,
	uint64_t most, struct history_end **ret, size_t *ret_count,
	struct history_gap *ret_gap, struct why *why)
{
	struct collection all = {
		.taker.take = collect,
		.filter = filter,
		.most = most < VIEW_ENDED_MAX ? (size_t)most : VIEW_ENDED_MAX,
	};
	int r = view_each_ended(context, &all.taker, why);

	if (r < 0) {
		free(all.ends);
		return r;
	}
	turn_round(all.ends, all.count);
	for (size_t i = 0; i < all.count; i++)
		name_users(&all.ends[i]);
	*ret = all.ends;
	*ret_count = all.count;
	*ret_gap = all.taker.gap;
	return 0;
}
