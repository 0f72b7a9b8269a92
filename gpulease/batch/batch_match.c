#include <errno.h>

#include "batch_match.h"

/* A line, or a job that may get one of the lines of its key. */
struct claim {
	uint64_t key, number; /* ->number: of the job */
	unsigned rank;        /* if there are too few lines, the lowest ranks get them */
	size_t place;         /* in the file; of a job, in the file as it was before */
	bool is_matched;      /* the job has got a line */
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
	for (size_t i = 0; i < count; i++) {
		numbers[lines[i].place] = claims[i].number;
		claims[i].is_matched = true;
	}
}

/*
 * Matches the claims of one key with the lines of that key, for all keys.  Sorts both, and writes
 * to @numbers the job of each line that gets one.
 */
static void claims_match(struct claim *claims, size_t claim_count, struct claim *lines,
	size_t line_count, uint64_t *numbers)
{
	if (!claim_count || !line_count)
		return;
	qsort(claims, claim_count, sizeof(*claims), compare_claims);
	qsort(lines, line_count, sizeof(*lines), compare_claims);
	for (size_t i = 0, j = 0; i < claim_count && j < line_count;) {
		uint64_t job_key = claims[i].key, line_key = lines[j].key;
		size_t job_equal = claims_count_equal(claims, i, claim_count);
		size_t line_equal = claims_count_equal(lines, j, line_count);

		if (job_key == line_key)
			claims_match_key(
				claims + i, job_equal, lines + j, line_equal, numbers);
		i += job_key <= line_key ? job_equal : 0;
		j += line_key <= job_key ? line_equal : 0;
	}
}

/* Returns one key for a key and an environment. */
static uint64_t key_with(uint64_t key, uint64_t environment)
{
	return text_hash(key, (const char *)&environment, sizeof(environment));
}

/* Writes the claims of all jobs to @ret.  A job that had no line has its number as place. */
static void claims_list_jobs(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, struct claim *ret)
{
	for (size_t i = 0; i < jobs->count; i++) {
		const struct batch_job *job = &jobs->all[i];

		ret[i] = (struct claim){
			.key = key_with(job->key, job->environment),
			.number = job->number,
			.rank = claim_rank(job, false),
			.place = i,
		};
	}
	for (size_t i = 0; i < before_count; i++) {
		const struct batch_job *job = batch_jobs_find(jobs, before[i]);

		if (!job)
			continue;
		ret[job - jobs->all].rank = claim_rank(job, true);
		ret[job - jobs->all].place = i;
	}
}

/*
 * Keeps the claims of the jobs that have no line yet and are open, by their keys alone.  Returns
 * how many they are.
 */
static size_t claims_keep_open(
	struct claim *claims, size_t count, const struct batch_jobs *jobs)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct batch_job *job = batch_jobs_find(jobs, claims[i].number);

		if (claims[i].is_matched || !batch_is_open(job))
			continue;
		claims[kept] = claims[i];
		claims[kept++].key = job->key;
	}
	return kept;
}

/* Writes the lines that have no job yet to @ret, and returns how many they are. */
static size_t claims_list_lines(const struct batch_list *list, const uint64_t *numbers,
	bool with_environment, struct claim *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct batch_line *line = &list->lines[i];

		if (!numbers[i])
			ret[count++] = (struct claim){
				.key = with_environment
					       ? key_with(line->key, line->environment)
					       : line->key,
				.place = i
			};
	}
	return count;
}

int batch_match(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, const struct batch_list *list, uint64_t **ret)
{
	uint64_t *numbers = calloc(list->count + 1, sizeof(*numbers));
	autofree struct claim *claims = calloc(jobs->count + 1, sizeof(*claims));
	autofree struct claim *lines = calloc(list->count + 1, sizeof(*lines));
	size_t count = jobs->count;

	if (!numbers || !claims || !lines) {
		free(numbers);
		return -ENOMEM;
	}
	claims_list_jobs(jobs, before, before_count, claims);
	claims_match(claims, count, lines, claims_list_lines(list, numbers, true, lines),
		numbers);
	count = claims_keep_open(claims, count, jobs);
	claims_match(claims, count, lines, claims_list_lines(list, numbers, false, lines),
		numbers);
	*ret = numbers;
	return 0;
}
