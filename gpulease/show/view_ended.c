#include <errno.h>

#include "array.h"
#include "clock.h"
#include "end_record.h"
#include "instance.h"
#include "privacy.h"
#include "state_reader.h"
#include "parse.h"
#include "view_ended.h"

enum { MOVES_MAX = 256 };

/* --- all ends ---------------------------------------------------------------------- */

/*
 * Whether the lease is over and its end is not in the history yet.  A process that records ends
 * looks in the file of a lease's lowest GPU, so that file decides here, too.
 */
static bool lease_is_unrecorded(const struct snapshot_lease *lease)
{
	int lowest = gpuset_next(&lease->lease.gpus, 0);

	return lease->is_over && !lease->lease.is_recorded && lowest >= 0 &&
	       gpuset_has(&lease->seen, (unsigned)lowest);
}

/* An end that was read from a lease. */
struct leased_end {
	struct history_end end;
	bool is_running;
};

/* For qsort(): the latest first. */
static int compare_leased(const void *a, const void *b)
{
	const struct history_end *x = &((const struct leased_end *)a)->end;
	const struct history_end *y = &((const struct leased_end *)b)->end;

	if (x->ticket != y->ticket)
		return x->ticket < y->ticket ? 1 : -1;
	return (x->attempt < y->attempt) - (x->attempt > y->attempt);
}

/* Describes the ends of the leases, latest first, into @out.  Returns how many there are. */
static size_t describe_leases(
	const struct state_reader *reader, bool with_running, struct leased_end *out)
{
	const struct snapshot *view = &reader->snapshot;
	size_t count = 0;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		struct leased_end *next = &out[count];

		next->is_running = with_running && !lease->is_over;
		if (next->is_running) {
			history_describe(&lease->lease, reader->now_ms, reader->now_ms,
				&next->end);
			(void)job_name_complete(view->dir, lease->lease.owner.token,
				next->end.name_hash, next->end.name);
			end_record_name_gpus(view, &lease->lease.gpus, next->end.gpus,
				sizeof(next->end.gpus));
		} else if (lease_is_unrecorded(lease)) {
			end_record_describe(view, lease, &next->end);
		} else {
			continue;
		}
		count++;
	}
	qsort(out, count, sizeof(*out), compare_leased);
	return count;
}

/* Hands on an end without what may not be shown, so that no filter can compare with it either. */
static int taker_take(struct view_taker *taker, struct history_end *end, bool is_running)
{
	/* --status shows the reason of a pause, too */
	if (!history_is_event(end) && !may_show_commands_of(end->uid)) {
		end->name[0] = end->command[0] = '\0';
		end->name_hash = 0;
	}
	if (!job_name_is_whole(end->name, end->name_hash))
		(void)snprintf(end->name + strlen(end->name), sizeof("…"), "…");
	return taker->take(taker, end, is_running);
}

/* All ends that were read from leases. */
struct leased_ends {
	struct leased_end *all;
	size_t count;
};

static int taker_take_leases(const struct state_reader *reader, struct view_taker *taker,
	struct leased_ends *ret)
{
	int r = 0;

	ret->all = calloc(reader->snapshot.lease_count + 1, sizeof(*ret->all));
	if (!ret->all)
		return -ENOMEM;
	ret->count = describe_leases(reader, taker->wants_running, ret->all);
	/* all of them, whatever VIEW_ENOUGH says: leases are not in the order of their ends */
	for (size_t i = 0; i < ret->count && r >= 0; i++)
		r = taker_take(taker, &ret->all[i].end, ret->all[i].is_running);
	return r < 0 ? r : 0;
}

/* Whether the end in this line of the history was already taken from its lease. */
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

/* Takes the lines of the history, newest first, that were not taken from leases. */
static int taker_take_history(
	int dirfd, struct view_taker *taker, const struct leased_ends *leased)
{
	static struct history_reader reader; /* too big for the stack */
	struct history_end end;
	int r = history_reader_open(dirfd, &reader);

	if (r < 0)
		return r;
	reader.wants_events = taker->wants_events;
	while ((r = history_next(&reader, &end)) == 0) {
		r = was_taken(leased, &end) ? 0 : taker_take(taker, &end, false);
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

static struct state_reader reader; /* too big for the stack */

int view_each_ended(
	const struct context *context, struct view_taker *taker, struct why *why)
{
	struct leased_ends leased = { .all = NULL };
	int r;

	state_reader_init(&reader, context, 0);
	r = state_reader_read(&reader, why);
	if (r == 0) {
		taker->gpu_count = count_gpus(&reader.snapshot);
		taker->real_ms = clock_real_ms();
		r = taker_take_leases(&reader, taker, &leased);
		if (r == 0)
			r = taker_take_history(context->dir.fd, taker, &leased);
		if (r < 0)
			why_set(why, "cannot read the history in '%s/history': %s",
				context->dir.path, strerror(-r));
	}
	free(leased.all);
	state_reader_release(&reader);
	return r < 0 ? r : 0;
}

/* --- the newest ends --------------------------------------------------------------- */

/* What view_ended() collects. */
struct collection {
	struct view_taker taker;
	const struct ended_filter *filter;
	struct history_end *ends; /* the latest first */
	size_t count, room;
	size_t jobs, most; /* ->jobs of them are no events */
};

/*
 * The place among the latest ends for one that is recorded before all of them.  Past MOVES_MAX
 * others it does not move, so a clock that was set back costs no more than that.
 */
static size_t collection_place(const struct collection *all, int64_t gone_ms)
{
	size_t at = all->count;

	while (at && all->count - at < MOVES_MAX && all->ends[at - 1].gone_ms < gone_ms)
		at--;
	return at;
}

/*
 * Lets the oldest job fall out if there are too many, and the events that are older than all jobs.
 */
static void collection_trim(struct collection *all)
{
	while (all->jobs >= all->most) {
		bool is_event = history_is_event(&all->ends[all->count - 1]);

		if (!is_event && all->jobs == all->most)
			return;
		all->jobs -= !is_event;
		all->count--;
	}
}

static int collection_add(
	struct view_taker *taker, const struct history_end *end, bool is_running)
{
	struct collection *all = (struct collection *)taker;
	struct history_end *ends;
	bool is_full = all->jobs >= all->most;
	size_t at;

	(void)is_running;
	if (is_full &&
		end->gone_ms + VIEW_ENDED_LATE_MS < all->ends[all->count - 1].gone_ms)
		return VIEW_ENOUGH;
	at = collection_place(all, end->gone_ms);
	if (!ended_filter_admits(all->filter, end))
		return 0;
	ends = array_grow(all->ends, sizeof(*ends), all->count, &all->room);
	if (!ends)
		return -ENOMEM;
	all->ends = ends;
	memmove(&ends[at + 1], &ends[at], (all->count - at) * sizeof(*ends));
	ends[at] = *end;
	all->count++;
	all->jobs += !history_is_event(end);
	collection_trim(all);
	return 0;
}

void view_ended_name_users(struct history_end *end)
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

static void reverse(struct history_end *ends, size_t count)
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
		.taker = { .take = collection_add, .wants_events = true },
		.filter = filter,
		.most = most < VIEW_ENDED_MAX ? (size_t)most : VIEW_ENDED_MAX,
	};
	int r = view_each_ended(context, &all.taker, why);

	if (r < 0) {
		free(all.ends);
		return r;
	}
	reverse(all.ends, all.count);
	for (size_t i = 0; i < all.count; i++)
		view_ended_name_users(&all.ends[i]);
	*ret = all.ends;
	*ret_count = all.count;
	*ret_gap = all.taker.gap;
	return 0;
}
