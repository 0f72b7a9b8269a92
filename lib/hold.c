#include <errno.h>

#include "array.h"
#include "hold.h"
#include "operands.h"

/* --- the ids in a request ---------------------------------------------------------- */

/* What stands in the record of somebody else may be no list of ids: it ends there. */
static bool next_id(struct operand_walk *walk, uint64_t *ret)
{
	struct operand job;

	if (operand_next(walk, &job, NULL) != 0)
		return false;
	*ret = job.first;
	return true;
}

static int check_ids(struct queue *queue, const char *ids, uint64_t end, struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(ids, OPERAND_JOB);
	struct operand job;
	int r = OPERAND_DONE;

	while (*ids && (r = operand_next(&walk, &job, why)) == 0) {
		uint64_t id;

		r = outcome_find_job(&queue->file, end, job.first, &id);
		if (r < 0)
			return r;
		if (r == OUTCOME_NO_JOB) {
			why_set(why, "there is no job %llu",
				(unsigned long long)job.first);
			return -ENOENT;
		}
	}
	return r < 0 ? r : 0;
}

int hold_check(struct queue *queue, const struct request *request, struct why *why)
{
	uint64_t end;
	int r;

	if (!request->after[0] && !request->after_ok[0])
		return 0;
	r = ticket_end(&queue->file, &end);
	if (r == 0)
		r = check_ids(queue, request->after, end, why);
	if (r == 0)
		r = check_ids(queue, request->after_ok, end, why);
	return r;
}

/* --- jobs that are waited for ------------------------------------------------------ */

/* What is known of job @number; NULL: no memory.  Good until the next call. */
static struct outcome *find_job(struct hold_book *book, uint64_t number)
{
	size_t low = 0, high = book->job_count;
	struct outcome *jobs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (book->jobs[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == book->job_count || book->jobs[low].number != number) {
		jobs = array_grow(
			book->jobs, sizeof(*jobs), book->job_count, &book->job_room);
		if (!jobs)
			return NULL;
		book->jobs = jobs;
		memmove(jobs + low + 1, jobs + low,
			(book->job_count - low) * sizeof(*jobs));
		jobs[low] = OUTCOME_OF(number);
		book->job_count++;
	}
	book->jobs[low].is_used = true;
	return &book->jobs[low];
}

static void forget_unused(struct hold_book *book)
{
	size_t kept = 0;

	for (size_t i = 0; i < book->job_count; i++) {
		if (!book->jobs[i].is_used)
			continue;
		book->jobs[kept] = book->jobs[i];
		book->jobs[kept++].is_used = false;
	}
	book->job_count = kept;
}

/* Besides HOLD_FAILED and HOLD_UNRECORDED, which are more final. */
enum { JOB_IS_OVER = 0, JOB_HOLDS = 3, JOB_IS_UNTOLD = 4 };

static int judge_job(struct hold_book *book, uint64_t number, bool needs_ok, bool is_own,
	int *ret_status)
{
	struct outcome *job = find_job(book, number);
	int r;

	if (!job)
		return -ENOMEM;
	r = outcome_judge(job, &book->look, is_own);
	if (r <= 0)
		return r < 0 ? r : JOB_HOLDS;
	if (!needs_ok)
		return JOB_IS_OVER;
	r = outcome_learn_status(job, &book->look, is_own);
	if (r < 0)
		return r;
	*ret_status = job->status;
	if (job->status > 0)
		return HOLD_FAILED;
	if (job->status == 0)
		return JOB_IS_OVER;
	return job->is_settled ? HOLD_UNRECORDED : JOB_IS_UNTOLD;
}

/*
 * All jobs of a list, also behind one that holds: how they end is learned by following them.
 * The outcome so far is @outcome.
 */
static int judge_ids(struct hold_book *book, const struct queue_row *row, bool needs_ok,
	bool is_own, int outcome, struct held *ret)
{
	const struct request *request = &row->ticket.request;
	struct operand_walk walk =
		OPERAND_LIST(needs_ok ? request->after_ok : request->after, OPERAND_JOB);
	uint64_t number;

	while (next_id(&walk, &number)) {
		int status = -1, r;

		/* there was another ticket file then */
		if (number >= row->number)
			r = needs_ok ? HOLD_UNRECORDED : JOB_IS_OVER;
		else
			r = judge_job(book, number, needs_ok, is_own, &status);
		if (r < 0)
			return r;
		if (r == JOB_IS_OVER || (outcome && r >= outcome))
			continue;
		outcome = r;
		*ret = (struct held){ .hold = r == JOB_HOLDS ? HOLD_AFTER : HOLD_STATUS,
			.by = number,
			.status = status };
	}
	return outcome;
}

/* --- those of the same user and name ------------------------------------------------ */

/* The first ticket of @uid with that name in this turn, NULL: none. */
static const struct hold_name *find_name(
	const struct hold_book *book, uint32_t uid, uint64_t hash)
{
	for (uint32_t at = book->lists[hash % HOLD_LISTS]; at;
		at = book->names[at - 1].next) {
		const struct hold_name *name = &book->names[at - 1];

		if (name->hash == hash && name->uid == uid)
			return name;
	}
	return NULL;
}

static int note_name(struct hold_book *book, const struct queue_row *row, uint64_t hash)
{
	uint32_t uid = row->ticket.owner.uid, *list = &book->lists[hash % HOLD_LISTS];
	struct hold_name *names;

	if (find_name(book, uid, hash))
		return 0;
	names = array_grow(
		book->names, sizeof(*names), book->name_count, &book->name_room);
	if (!names)
		return -ENOMEM;
	book->names = names;
	names[book->name_count++] = (struct hold_name){
		.hash = hash,
		.number = row->number,
		.job = ticket_job(row->number, &row->ticket),
		.uid = uid,
		.next = *list,
	};
	*list = (uint32_t)book->name_count;
	return 0;
}

/* Follows who waits before us: it becomes a lease under the same owner. */
static int watch_ticket(struct hold_book *book, uint64_t number)
{
	struct queue_row row;
	struct life *life;
	int r = queue_find(book->look.queue, number, &row);

	if (r == 0)
		return outcome_judge_life(
			&book->look, &row.ticket.owner, &row.ticket.runs, true, &life);
	if (r == QUEUE_END) /* just being rewritten */
		outcome_look_again(&book->look, book->look.now_ms);
	return r < 0 ? r : 0;
}

static int judge_name(struct hold_book *book, const struct queue_row *row, uint64_t hash,
	bool is_own, struct held *ret)
{
	const struct hold_name *name = find_name(book, row->ticket.owner.uid, hash);
	struct namesake runs;
	struct life *life;
	int r = namesake_find(&book->namesakes, &book->look, row, &runs);

	if (r < 0 || (r == 0 && !name))
		return r;
	*ret = (struct held){ .hold = HOLD_SINGLETON,
		.by = r == NAMESAKE_RUNS ? runs.job : name->job };
	if (!is_own)
		return 0;
	return r == NAMESAKE_RUNS ? outcome_judge_life(&book->look, &runs.owner,
					    &runs.runs, true, &life)
				  : watch_ticket(book, name->number);
}

/* --- tickets ----------------------------------------------------------------------- */

void hold_begin(struct hold_book *book, struct queue *queue, struct snapshot *view,
	int64_t now_ms)
{
	forget_unused(book);
	outcome_begin(&book->look, queue, view, now_ms);
	hold_again(book);
}

void hold_again(struct hold_book *book)
{
	book->name_count = 0;
	memset(book->lists, 0, sizeof(book->lists));
}

/* An attempt that is not to be made yet; what else holds it counts more. */
static void judge_moment(struct hold_book *book, const struct queue_row *row, bool is_own,
	struct held *ret)
{
	int64_t until_ms = row->ticket.not_before_ms;

	if (ret->hold != HOLD_NONE || until_ms <= book->look.now_ms)
		return;
	*ret = (struct held){ .hold = HOLD_UNTIL, .until_ms = until_ms };
	if (is_own)
		book->look.wake_ms = min_i64(book->look.wake_ms, until_ms);
}

int hold_judge(struct hold_book *book, const struct queue_row *row, bool is_own,
	struct held *ret)
{
	const struct request *request = &row->ticket.request;
	uint64_t hash;
	int outcome, r = 0;

	*ret = (struct held){ .hold = HOLD_NONE };
	outcome = judge_ids(book, row, false, is_own, 0, ret);
	if (outcome >= 0)
		outcome = judge_ids(book, row, true, is_own, outcome, ret);
	if (outcome < 0)
		return outcome;
	if (request->name[0]) {
		/* names that hash alike are of one user, who may then wait for nothing */
		hash = text_hash(TEXT_HASH_BEGIN, request->name, strlen(request->name));
		if (request->is_singleton && ret->hold == HOLD_NONE)
			r = judge_name(book, row, hash, is_own, ret);
		/* who comes after others may come after one that would wait for him */
		if (r == 0 && !outcome)
			r = note_name(book, row, hash);
	}
	if (r < 0)
		return r;
	judge_moment(book, row, is_own, ret);
	return outcome >= JOB_HOLDS ? 0 : outcome;
}

struct plan_row hold_row(
	uint64_t number, const struct ticket *ticket, const struct held *held)
{
	struct plan_row row = plan_row_of(number, ticket);

	row.hold = held->hold;
	row.held_by = held->by;
	row.held_until_ms = held->until_ms;
	return row;
}

void hold_release(struct hold_book *book)
{
	free(book->jobs);
	free(book->names);
	namesakes_release(&book->namesakes);
	*book = (struct hold_book){ .jobs = NULL };
}
