#include <errno.h>

#include "accounting.h"
#include "array.h"
#include "gpuset.h"
#include "parse.h"

/* A job with attempts that were added and earlier ones that were not yet. */
struct accounting_job {
	uint64_t ticket;
	uint32_t uid;
};

/* --- one entry --------------------------------------------------------------------- */

bool ended_utilization(
	const struct history_end *end, unsigned *ret_mean, unsigned *ret_peak)
{
	const char *slash = strchr(end->utilization, '/');
	char mean_text[sizeof(end->utilization)] = "";
	uint64_t mean, peak;

	if (!slash)
		return false;
	memcpy(mean_text, end->utilization, (size_t)(slash - end->utilization));
	if (parse_u64(mean_text, 100, &mean, NULL) < 0 ||
		parse_u64(slash + 1, 100, &peak, NULL) < 0)
		return false;
	*ret_mean = (unsigned)mean;
	*ret_peak = (unsigned)peak;
	return true;
}

/* The history may hold any number: sums and products stop at the largest one. */
static uint64_t capped_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t capped_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t ended_gpu_ms(const struct history_end *end, int64_t from_ms, int64_t to_ms)
{
	uint64_t gpus = (uint64_t)min_i64(history_gpu_count(end), GPUSET_MAX);
	uint64_t percent =
		end->share_percent && end->share_percent < 100 ? end->share_percent : 100;

	if (from_ms <= 0 || to_ms <= from_ms)
		return 0;
	return capped_product((uint64_t)(to_ms - from_ms), gpus * percent) / 100;
}

/* --- adding ------------------------------------------------------------------------ */

void accounting_init(
	struct accounting *accounting, const struct ended_filter *filter, int64_t now_ms)
{
	*accounting = (struct accounting){
		.filter = filter,
		.from_ms = filter->from_ms,
		.until_ms = min_i64(filter->until_ms, now_ms),
	};
}

void accounting_release(struct accounting *accounting)
{
	for (size_t i = 0; i < accounting->count; i++)
		free(accounting->rows[i].waits_ms);
	free(accounting->total.waits_ms);
	free(accounting->rows);
	free(accounting->retried);
	*accounting = (struct accounting){ .filter = accounting->filter };
}

/* Returns the row of the user, which is added if it is new; NULL without memory. */
static struct accounting_row *accounting_row_of(
	struct accounting *accounting, const struct history_end *end)
{
	struct accounting_row *row = NULL, *rows;

	for (size_t i = 0; i < accounting->count && !row; i++)
		if (accounting->rows[i].uid == end->uid)
			row = &accounting->rows[i];
	if (!row) {
		rows = array_grow(accounting->rows, sizeof(*rows), accounting->count,
			&accounting->room);
		if (!rows)
			return NULL;
		accounting->rows = rows;
		row = &rows[accounting->count++];
		*row = (struct accounting_row){ .uid = end->uid };
	}
	if (!row->user[0])
		text_copy(row->user, sizeof(row->user), end->user);
	return row;
}

/*
 * Whether @end is the first attempt of its job that is added; that is its last one.  Ticket numbers
 * may begin again at 1, so the first attempt ends the job, and it is forgotten.  Returns 0, or
 * -ENOMEM without setting *@ret.
 */
static int is_new_job(
	struct accounting *accounting, const struct history_end *end, bool *ret)
{
	struct accounting_job *jobs = accounting->retried;
	size_t at = accounting->retried_count;

	/* from the end: the attempts of a job are close to each other */
	while (at > 0 &&
		(jobs[at - 1].ticket != end->ticket || jobs[at - 1].uid != end->uid))
		at--;
	*ret = at == 0;
	if (at > 0 && end->attempt <= 1)
		jobs[at - 1] = jobs[--accounting->retried_count];
	if (at > 0 || end->attempt <= 1)
		return 0;
	jobs = array_grow(jobs, sizeof(*jobs), accounting->retried_count,
		&accounting->retried_room);
	if (!jobs)
		return -ENOMEM;
	accounting->retried = jobs;
	jobs[accounting->retried_count++] =
		(struct accounting_job){ .ticket = end->ticket, .uid = end->uid };
	return 0;
}

static int row_add_wait(struct accounting_row *row, int64_t wait_ms)
{
	int64_t *waits = array_grow(
		row->waits_ms, sizeof(*waits), row->wait_count, &row->wait_room);

	if (!waits)
		return -ENOMEM;
	row->waits_ms = waits;
	waits[row->wait_count++] = max_i64(0, wait_ms);
	return 0;
}

static int row_add(struct accounting_row *row, const struct accounting *accounting,
	const struct history_end *end, bool is_running)
{
	int64_t from_ms = max_i64(end->since_ms, accounting->from_ms);
	int64_t gone_ms = min_i64(end->gone_ms, accounting->until_ms);
	int64_t alive_ms = min_i64(end->alive_ms, gone_ms);
	uint64_t least_ms = 0;
	unsigned mean, peak;

	row->attempts++;
	row->running += is_running;
	if (end->since_ms > 0) {
		least_ms = ended_gpu_ms(end, from_ms, alive_ms);
		row->gpu_least_ms = capped_sum(row->gpu_least_ms, least_ms);
		row->gpu_most_ms =
			capped_sum(row->gpu_most_ms, ended_gpu_ms(end, from_ms, gone_ms));
	}
	if (ended_utilization(end, &mean, &peak)) {
		row->busy = capped_sum(row->busy, capped_product(least_ms, mean));
		row->measured_ms = capped_sum(row->measured_ms, least_ms);
	}
	if (end->use_samples) {
		int64_t unused_ms =
			min_i64(end->unused_ms, max_i64(0, alive_ms - from_ms));

		row->has_unused = true;
		row->unused_gpu_ms = capped_sum(row->unused_gpu_ms,
			ended_gpu_ms(end, from_ms, from_ms + unused_ms));
	}
	return row_add_wait(row, end->waited_ms);
}

/* The period begins with the first entry, whether the filter admits it or not. */
static void note_beginning(struct accounting *accounting, const struct history_end *end)
{
	int64_t begun_ms = end->since_ms > 0 ? end->since_ms : end->gone_ms;

	if (begun_ms > 0 && (!accounting->first_ms || begun_ms < accounting->first_ms))
		accounting->first_ms = begun_ms;
}

int accounting_add(
	struct accounting *accounting, const struct history_end *end, bool is_running)
{
	struct accounting_row *row;
	bool is_new;
	int r;

	note_beginning(accounting, end);
	if (!ended_filter_admits(accounting->filter, end) ||
		(is_running && accounting->filter->states))
		return 0;
	row = accounting_row_of(accounting, end);
	if (!row)
		return -ENOMEM;
	r = is_new_job(accounting, end, &is_new);
	if (r < 0)
		return r;
	row->jobs += is_new;
	accounting->total.jobs += is_new;
	r = row_add(row, accounting, end, is_running);
	return r < 0 ? r : row_add(&accounting->total, accounting, end, is_running);
}

/* --- the results ------------------------------------------------------------------- */

static int compare_waits(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b)
{
	const struct accounting_row *x = a, *y = b;

	if (x->gpu_least_ms != y->gpu_least_ms)
		return x->gpu_least_ms < y->gpu_least_ms ? 1 : -1;
	if (x->gpu_most_ms != y->gpu_most_ms)
		return x->gpu_most_ms < y->gpu_most_ms ? 1 : -1;
	return (x->uid > y->uid) - (x->uid < y->uid);
}

static void sort_waits(struct accounting_row *row)
{
	if (row->wait_count)
		qsort(row->waits_ms, row->wait_count, sizeof(*row->waits_ms),
			compare_waits);
}

void accounting_finish(struct accounting *accounting)
{
	if (accounting->from_ms <= 0)
		accounting->from_ms = accounting->first_ms;
	for (size_t i = 0; i < accounting->count; i++)
		sort_waits(&accounting->rows[i]);
	sort_waits(&accounting->total);
	if (accounting->count)
		qsort(accounting->rows, accounting->count, sizeof(*accounting->rows),
			compare_rows);
}

int64_t accounting_mean_wait_ms(const struct accounting_row *row)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < row->wait_count; i++)
		sum = capped_sum(sum, (uint64_t)row->waits_ms[i]);
	return row->wait_count ? (int64_t)(sum / row->wait_count) : -1;
}

/* Returns the smallest wait that 95 percent of the waits do not exceed. */
int64_t accounting_p95_wait_ms(const struct accounting_row *row)
{
	size_t rank = (row->wait_count * 95 + 99) / 100;

	return rank ? row->waits_ms[rank - 1] : -1;
}

int accounting_utilization(const struct accounting_row *row)
{
	if (!row->measured_ms)
		return -1;
	return (int)((row->busy + row->measured_ms / 2) / row->measured_ms);
}

int64_t accounting_share(
	const struct accounting *accounting, const struct accounting_row *row)
{
	int64_t span_ms = accounting->until_ms - accounting->from_ms;

	if (!accounting->gpus || span_ms <= 0 || accounting->from_ms <= 0)
		return -1;
	return (int64_t)(capped_product(row->gpu_least_ms, 10000) /
			 capped_product((uint64_t)span_ms, accounting->gpus));
}
