#include <errno.h>

#include "batch_match.h"

/* A line, or a job that may get one of the lines of its key. */
struct claim {
	uint64_t key, number; /* of the job */
	unsigned rank;        /* if there are too few lines, the lowest ranks get them */
	size_t place;         /* in the file; of a job, in the file as it was before */
};

enum { RANK_LIVE, RANK_ENDED, RANK_GONE };

/*
 * Returns the rank of a job.  A job that had no line also has one, because its line may have come
 * back.
 */
static unsigned claim_rank(const struct batch_job *job, bool had_line)
{
	static const unsigned gone[] = {
		[BATCH_RUNNING] = RANK_GONE,
		[BATCH_IN_QUEUE] = RANK_GONE + 1,
		[BATCH_NEW] = RANK_GONE + 2,
		[BATCH_ENDED] = RANK_GONE + 3,
	};

	if (!had_line)
		return gone[job->state];
	return job->state == BATCH_ENDED ? RANK_ENDED : RANK_LIVE;
}

/* Compares by rank, then by the order of the file. */
static int compare_ranks(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static int compare_claims(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return compare_ranks(a, b);
}

/* Returns how many claims from @first on have the key of @first. */
static size_t claims_count_equal(const struct claim *claims, size_t first, size_t count)
{
	size_t i = first;

	while (i < count && claims[i].key == claims[first].key)
		i++;
	return i - first;
}

/* Gives the @lines to @claims, which all have one key: the n-th chosen job gets the n-th line. */
static void claims_match_key(struct claim *claims, size_t claim_count,
	const struct claim *lines, size_t line_count, uint64_t *numbers)
{
	size_t count = claim_count < line_count ? claim_count : line_count;

	/* the rank has chosen the jobs; among them only the order of the file counts */
	for (size_t i = 0; i < count; i++)
		if (claims[i].rank == RANK_ENDED)
			claims[i].rank = RANK_LIVE;
	qsort(claims, count, sizeof(*claims), compare_ranks);
	for (size_t i = 0; i < count; i++)
		numbers[lines[i].place] = claims[i].number;
}

/*
 * Writes the claims of all jobs to @ret, sorted.  A job that had no line has its number as place.
 */
static void claims_list_jobs(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, struct claim *ret)
{
	for (size_t i = 0; i < jobs->count; i++) {
		const struct batch_job *job = &jobs->all[i];

		ret[i] = (struct claim){ job->key, job->number, claim_rank(job, false),
			i };
	}
	for (size_t i = 0; i < before_count; i++) {
		const struct batch_job *job = batch_jobs_find(jobs, before[i]);

		if (!job)
			continue;
		ret[job - jobs->all].rank = claim_rank(job, true);
		ret[job - jobs->all].place = i;
	}
	qsort(ret, jobs->count, sizeof(*ret), compare_claims);
}

int batch_match(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, const struct batch_list *list, uint64_t **ret)
{
	uint64_t *numbers = calloc(list->count + 1, sizeof(*numbers));
	autofree struct claim *claims = calloc(jobs->count + 1, sizeof(*claims));
	autofree struct claim *lines = calloc(list->count + 1, sizeof(*lines));
	size_t job_equal, line_equal;

	if (!numbers || !claims || !lines) {
		free(numbers);
		return -ENOMEM;
	}
	claims_list_jobs(jobs, before, before_count, claims);
	for (size_t i = 0; i < list->count; i++)
		lines[i] = (struct claim){ .key = list->lines[i].key, .place = i };
	qsort(lines, list->count, sizeof(*lines), compare_claims);
	for (size_t i = 0, j = 0; i < jobs->count && j < list->count;) {
		uint64_t job_key = claims[i].key, line_key = lines[j].key;

		job_equal = claims_count_equal(claims, i, jobs->count);
		line_equal = claims_count_equal(lines, j, list->count);
		if (job_key == line_key)
			claims_match_key(
				claims + i, job_equal, lines + j, line_equal, numbers);
		i += job_key <= line_key ? job_equal : 0;
		j += line_key <= job_key ? line_equal : 0;
	}
	*ret = numbers;
	return 0;
}
