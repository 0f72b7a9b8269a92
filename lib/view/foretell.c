#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "estimate.h"
#include "foretell.h"

/* The most lines of the users that are read; that takes 1 to 7 ms, and to pass the others less. */
enum { LINES_MOST = 4096 };

/* The quantiles between which most starts lie; tests/simulate says how many. */
static const unsigned percents[] = { 10, 90 };

struct usual_kind foretell_kind(const struct ticket *ticket)
{
	const struct request *request = &ticket->request;

	return usual_kind_of(
		ticket->owner.uid, request->name, request->name_hash, request->command);
}

/* The kinds of which runs are looked for, and those that were found. */
struct search {
	const struct usual_kind *kinds;
	size_t count;
	struct usual *found;
};

/* Whether a job of user @uid may be a run that is not known yet. */
static bool search_wants(const void *arg, uint32_t uid)
{
	const struct search *search = arg;

	for (size_t i = 0; i < search->count; i++)
		if (search->kinds[i].uid == uid && search->found[i].runs < USUAL_RUNS)
			return true;
	return false;
}

int foretell_usual(
	int dirfd, const struct usual_kind *kinds, size_t count, struct usual *ret)
{
	autofree struct history_reader *reader = malloc(sizeof(*reader));
	struct search search = { kinds, count, ret };
	size_t left = LINES_MOST;
	struct history_end end;
	int r = reader ? history_reader_open(dirfd, reader) : -ENOMEM;

	memset(ret, 0, count * sizeof(*ret));
	if (r < 0)
		return r;
	while ((r = history_next_line_of(reader, search_wants, &search, &left, &end)) ==
		0)
		/* the exact line of this end is another one */
		for (size_t i = 0; i < count && !end.is_provisional; i++)
			usual_note(&ret[i], &kinds[i], &end);
	history_reader_release(reader);
	return r < 0 ? r : 0;
}

/* What is known of the jobs: of the leases of the view first, then of the rows. */
struct foretelling {
	struct snapshot *view;
	int64_t now_ms;
	const struct plan_row *rows;
	struct plan_row
		*usual_rows; /* with the usual lengths in the place of the limits */
	size_t count;
	const struct usual *of_leases, *of_rows;
	unsigned runs; /* the fewest of a lease with a usual length; 0: there is none */
};

static unsigned fewer_runs(unsigned runs, const struct usual *usual)
{
	return runs && runs < usual->runs ? runs : usual->runs;
}

/* Puts the usual ends of the leases in the place of their limits. */
static void set_leases(struct foretelling *all, unsigned percent)
{
	for (size_t i = 0; i < all->view->lease_count; i++) {
		struct snapshot_lease *lease = &all->view->leases[i];
		/* a damaged record may name any time */
		int64_t since_ms =
			max_i64(0, min_i64(lease->lease.since_ms, all->now_ms));
		int64_t run_ms =
			usual_run_ms(&all->of_leases[i], percent, all->now_ms - since_ms);

		lease->usual_end_ms = run_ms ? since_ms + run_ms : 0;
		if (run_ms && !lease->is_over)
			all->runs = fewer_runs(all->runs, &all->of_leases[i]);
	}
}

static void set_rows(struct foretelling *all, unsigned percent)
{
	for (size_t i = 0; i < all->count; i++) {
		struct plan_row *row = &all->usual_rows[i];
		int64_t run_ms = usual_run_ms(&all->of_rows[i], percent, 0);

		*row = all->rows[i];
		if (!run_ms || (row->limit_ms && row->limit_ms <= run_ms))
			continue;
		row->limit_ms = run_ms;
		row->grace_ms = 0;
	}
}

/* Estimates the starts if @percent of the jobs ended in time. */
static int estimate(struct foretelling *all, unsigned percent, int64_t *ret_start_ms)
{
	int r;

	set_leases(all, percent);
	set_rows(all, percent);
	r = snapshot_find_facts(all->view, all->now_ms);
	if (r == 0)
		r = estimate_starts(
			&all->view->facts, all->usual_rows, all->count, ret_start_ms);
	return r;
}

/* Removes what set_leases() has set. */
static int restore(struct foretelling *all)
{
	for (size_t i = 0; i < all->view->lease_count; i++)
		all->view->leases[i].usual_end_ms = 0;
	return snapshot_find_facts(all->view, all->now_ms);
}

/* Returns the kinds of the leases and of the rows; NULL: no memory. */
static struct usual_kind *list_kinds(
	const struct snapshot *view, const struct usual_kind *kinds, size_t count)
{
	struct usual_kind *all = calloc(view->lease_count + count + 1, sizeof(*all));

	for (size_t i = 0; i < view->lease_count && all; i++) {
		const struct lease *lease = &view->leases[i].lease;

		all[i] = usual_kind_of(
			lease->owner.uid, lease->name, lease->name_hash, lease->command);
	}
	if (all)
		memcpy(all + view->lease_count, kinds, count * sizeof(*kinds));
	return all;
}

int foretell_starts(struct snapshot *view, int64_t now_ms, const struct plan_row *rows,
	const struct usual_kind *kinds, size_t count, struct foretold *ret)
{
	size_t known = view->lease_count + count;
	autofree struct usual_kind *all_kinds = list_kinds(view, kinds, count);
	autofree struct usual *usual = calloc(known + 1, sizeof(*usual));
	autofree struct plan_row *usual_rows = calloc(count + 1, sizeof(*usual_rows));
	int64_t starts_ms[ARRAY_SIZE(percents)][ESTIMATE_ROWS];
	struct foretelling all = { .view = view,
		.now_ms = now_ms,
		.rows = rows,
		.usual_rows = usual_rows,
		.count = count };
	int r;

	memset(ret, 0, count * sizeof(*ret));
	if (!all_kinds || !usual || !usual_rows || count > ESTIMATE_ROWS)
		return -ENOMEM;
	all.of_leases = usual;
	all.of_rows = usual + view->lease_count;
	r = foretell_usual(view->dir->fd, all_kinds, known, usual);
	for (size_t i = 0; i < ARRAY_SIZE(percents) && r == 0; i++)
		r = estimate(&all, percents[i], starts_ms[i]);
	if (restore(&all) < 0 || r < 0)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int64_t a = starts_ms[0][i], b = starts_ms[1][i];

		if (all.runs && a > now_ms && b > now_ms)
			ret[i] = (struct foretold){ min_i64(a, b), max_i64(a, b),
				all.runs };
		/* those after it also wait for this one */
		if (usual_run_ms(&all.of_rows[i], percents[0], 0))
			all.runs = fewer_runs(all.runs, &all.of_rows[i]);
	}
	return 0;
}
