#include <errno.h>

#include "ending.h"
#include "explain.h"
#include "look.h"
#include "parse.h"
#include "view.h"

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

static int compare_tickets(const void *a, const void *b)
{
	const struct history_end *x = a, *y = b;

	return (x->ticket > y->ticket) - (x->ticket < y->ticket);
}

/* Appends those that stand in the lease files to the @*count at @*ends. */
static int add_standing(
	const struct snapshot *view, struct history_end **ends, size_t *count)
{
	struct history_end *all =
		reallocarray(*ends, *count + view->lease_count + 1, sizeof(*all));
	size_t before = *count;

	if (!all)
		return -ENOMEM;
	*ends = all;
	for (size_t i = 0; i < view->lease_count; i++)
		if (stands_unrecorded(&view->leases[i]))
			ending_describe(view, &view->leases[i], &all[(*count)++]);
	qsort(all + before, *count - before, sizeof(*all), compare_tickets);
	return 0;
}

static int collect(struct look *look, size_t most, struct history_end **ends,
	size_t *count, struct why *why)
{
	int r = look_read(look, why);

	if (r < 0)
		return r;
	r = history_read(look->context->dir.fd, most, ends, count);
	if (r < 0) {
		why_set(why, "cannot read the history in '%s/history': %s",
			look->context->dir.path, strerror(-r));
		return r;
	}
	return add_standing(&look->snapshot, ends, count);
}

/* Numbers where there was no name: of a user without one, and of who cancelled. */
static void name_users(struct history_end *end)
{
	struct text name = TEXT_ON(end->user);
	uint64_t uid;

	if (!end->user[0])
		describe_user(end->uid, NULL, &name);
	if (parse_u64(end->by, UINT32_MAX, &uid, NULL) < 0)
		return;
	name = TEXT_ON(end->by);
	describe_user((uint32_t)uid, NULL, &name);
}

static struct look look; /* too big for the stack */

int view_ended(const struct context *context, uint64_t most, struct history_end **ret,
	size_t *ret_count, struct why *why)
{
	struct history_end *ends = NULL;
	size_t count = 0;
	int r;

	if (most > VIEW_ENDED_MAX)
		most = VIEW_ENDED_MAX;
	look_init(&look, context, 0);
	r = collect(&look, (size_t)most, &ends, &count, why);
	look_release(&look);
	if (r < 0) {
		free(ends);
		if (!why->text[0])
			why_set(why, "cannot look: %s", strerror(-r));
		return r;
	}
	if (count > most) {
		memmove(ends, ends + (count - most), (size_t)most * sizeof(*ends));
		count = (size_t)most;
	}
	for (size_t i = 0; i < count; i++) {
		name_users(&ends[i]);
		if (!may_show_commands_of(ends[i].uid))
			ends[i].name[0] = ends[i].command[0] = '\0';
	}
	*ret = ends;
	*ret_count = count;
	return 0;
}
