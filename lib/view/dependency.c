#include <errno.h>

#include "array.h"
#include "dependency.h"
#include "operands.h"

/* --- the ids in a request ---------------------------------------------------------- */

/*
 * Takes the next id.  False at the end, and at text of another form: the record may be another
 * user's, and says whatever that user wrote.
 */
static bool next_job_id(struct operand_walk *walk, uint64_t *ret)
{
	struct operand job;

	if (operand_next(walk, &job, NULL) != 0)
		return false;
	*ret = job.first;
	return true;
}

/*
 * Checks that each job in @ids exists in the file, which has @end records.  Returns as
 * dependency_check().
 */
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
			outcome_explain_no_job(job.first, why);
			return -ENOENT;
		}
	}
	return r < 0 ? r : 0;
}

int dependency_check(struct queue *queue, const struct request *request, struct why *why)
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

static bool has_lower_number(const void *item, const void *number)
{
	return ((const struct outcome *)item)->number < *(const uint64_t *)number;
}

/*
 * Returns what is known of job @number, which it adds if need be; NULL: no memory.  The pointer is
 * valid until the next call.
 */
static struct outcome *find_known_job(struct dependency_book *book, uint64_t number)
{
	size_t low = array_lower_bound(book->jobs, sizeof(*book->jobs), book->job_count,
		&number, has_lower_number);
	struct outcome *jobs;

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

/* Forgets the jobs that no ticket has depended on since the last call. */
static void forget_unused_jobs(struct dependency_book *book)
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

/*
 * What one job means for a ticket, beside DEPENDENCY_FAILED and DEPENDENCY_UNRECORDED.  The values
 * are a ranking: of several jobs the smallest value but 0 counts, because it is the most final.
 */
enum job_verdict { JOB_IS_OVER = 0, JOB_IS_UNFINISHED = 3, JOB_STATUS_UNKNOWN = 4 };

/* What a job has to have done. */
enum job_need { NEEDS_START, NEEDS_END, NEEDS_OK };

/*
 * Judges one job.  Sets *@ret_status and *@ret_cause if they are known.  Returns a job_verdict, a
 * dependency_outcome, or a negative errno.
 */
static int judge_job(struct dependency_book *book, uint64_t number, enum job_need need,
	bool is_own, int *ret_status, enum end_cause *ret_cause)
{
	struct outcome *job = find_known_job(book, number);
	int r;

	if (!job)
		return -ENOMEM;
	r = outcome_judge(job, &book->look, is_own);
	if (r == 0 && need == NEEDS_START)
		r = outcome_judge_start(job, &book->look, is_own);
	if (r <= 0)
		return r < 0 ? r : JOB_IS_UNFINISHED;
	if (need != NEEDS_OK)
		return JOB_IS_OVER;
	r = outcome_learn_status(job, &book->look, is_own);
	if (r < 0)
		return r;
	*ret_status = job->status;
	*ret_cause = job->cause;
	if (job->status > 0)
		return DEPENDENCY_FAILED;
	if (job->status == 0)
		return JOB_IS_OVER;
	return job->is_settled ? DEPENDENCY_UNRECORDED : JOB_STATUS_UNKNOWN;
}

/*
 * Judges all jobs of a list, also those after a job that holds the ticket back: this process has to
 * follow each job to its end, or it may miss the exit status.  @outcome is the ranking value so far
 * (enum job_verdict).  Returns the value with these jobs, or a negative errno.
 */
static int judge_ids(struct dependency_book *book, const struct queue_row *row,
	bool needs_ok, bool is_own, int outcome, struct dependency_verdict *ret)
{
	const struct request *request = &row->ticket.request;
	struct operand_walk walk =
		OPERAND_LIST(needs_ok ? request->after_ok : request->after, OPERAND_JOB);
	uint64_t number;

	for (unsigned place = 0; next_job_id(&walk, &number); place++) {
		bool is_start = request->after_start >> place & 1;
		enum job_need need = needs_ok   ? NEEDS_OK
				     : is_start ? NEEDS_START
						: NEEDS_END;
		enum end_cause cause = CAUSE_ITSELF;
		int status = -1, r;

		/* a later job: the id is from a ticket file that was lost since */
		if (number >= row->number)
			r = needs_ok ? DEPENDENCY_UNRECORDED : JOB_IS_OVER;
		else
			r = judge_job(book, number, need, is_own, &status, &cause);
		if (r < 0)
			return r;
		if (r == JOB_IS_OVER || (outcome && r >= outcome))
			continue;
		outcome = r;
		*ret = (struct dependency_verdict){
			.by = number, .status = status, .cause = cause
		};
		ret->hold = r != JOB_IS_UNFINISHED ? DEPENDENCY_STATUS
			    : need == NEEDS_START  ? DEPENDENCY_START
						   : DEPENDENCY_AFTER;
	}
	return outcome;
}

/* --- jobs of the same user and name ------------------------------------------------ */

/* Returns the first ticket of @uid with that name in this turn, or NULL. */
static const struct dependency_name *find_first_of_name(
	const struct dependency_book *book, uint32_t uid, uint64_t hash)
{
	for (uint32_t at = book->lists[hash % DEPENDENCY_LISTS]; at;
		at = book->names[at - 1].next) {
		const struct dependency_name *name = &book->names[at - 1];

		if (name->hash == hash && name->uid == uid)
			return name;
	}
	return NULL;
}

/* Notes the name of a ticket, unless an earlier ticket in the queue has it. */
static int note_name(
	struct dependency_book *book, const struct queue_row *row, uint64_t hash)
{
	uint32_t uid = row->ticket.owner.uid,
		 *list = &book->lists[hash % DEPENDENCY_LISTS];
	struct dependency_name *names;

	if (find_first_of_name(book, uid, hash))
		return 0;
	names = array_grow(
		book->names, sizeof(*names), book->name_count, &book->name_room);
	if (!names)
		return -ENOMEM;
	book->names = names;
	names[book->name_count++] = (struct dependency_name){
		.hash = hash,
		.number = row->number,
		.job = ticket_job(row->number, &row->ticket),
		.uid = uid,
		.next = *list,
	};
	*list = (uint32_t)book->name_count;
	return 0;
}

/*
 * Watches the owner of the waiting ticket @number.  Its lease will have the same owner, so its end
 * is also the end of a job that has started meanwhile.
 */
static int watch_ticket(struct dependency_book *book, uint64_t number)
{
	struct queue_row row;
	struct liveness *life;
	int r = queue_find(book->look.queue, number, &row);

	if (r == 0)
		return outcome_judge_life(
			&book->look, &row.ticket.owner, &row.ticket.runs, true, &life);
	if (r == QUEUE_END) /* its owner is rewriting it */
		outcome_look_again(&book->look, book->look.now_ms);
	return r < 0 ? r : 0;
}

/*
 * Holds a singleton back if a job of its user and name runs, or waits before it in the queue.  If
 * @is_own, watches the owner of that job.  Returns 0 or a negative errno.
 */
static int judge_singleton(struct dependency_book *book, const struct queue_row *row,
	uint64_t hash, bool is_own, struct dependency_verdict *ret)
{
	const struct dependency_name *name =
		find_first_of_name(book, row->ticket.owner.uid, hash);
	struct singleton runs;
	struct liveness *life;
	int r = singleton_find(&book->singletons, &book->look, row, &runs);

	if (r < 0 || (r == 0 && !name))
		return r;
	*ret = (struct dependency_verdict){ .hold = DEPENDENCY_SINGLETON,
		.by = r == SINGLETON_RUNS ? runs.job : name->job };
	if (!is_own)
		return 0;
	return r == SINGLETON_RUNS ? outcome_judge_life(&book->look, &runs.owner,
					     &runs.runs, true, &life)
				   : watch_ticket(book, name->number);
}

/* --- tickets ----------------------------------------------------------------------- */

void dependency_begin(struct dependency_book *book, struct queue *queue,
	struct snapshot *view, int64_t now_ms)
{
	forget_unused_jobs(book);
	outcome_begin(&book->look, queue, view, now_ms);
	dependency_again(book);
}

void dependency_again(struct dependency_book *book)
{
	book->name_count = 0;
	memset(book->lists, 0, sizeof(book->lists));
}

/* Holds back an attempt that must not start yet, unless another reason is known already. */
static void judge_start_time(struct dependency_book *book, const struct queue_row *row,
	bool is_own, struct dependency_verdict *ret)
{
	int64_t until_ms = row->ticket.not_before_ms;

	if (ret->hold != DEPENDENCY_NONE || until_ms <= book->look.now_ms)
		return;
	*ret = (struct dependency_verdict){ .hold = DEPENDENCY_UNTIL,
		.by = row->ticket.attempt > 1 ? row->ticket.attempt : 0,
		.until_ms = until_ms };
	if (is_own)
		book->look.wake_ms = min_i64(book->look.wake_ms, until_ms);
}

int dependency_judge(struct dependency_book *book, const struct queue_row *row,
	bool is_own, struct dependency_verdict *ret)
{
	const struct request *request = &row->ticket.request;
	uint64_t hash;
	int outcome, r = 0;

	*ret = (struct dependency_verdict){ .hold = DEPENDENCY_NONE };
	outcome = judge_ids(book, row, false, is_own, 0, ret);
	if (outcome >= 0)
		outcome = judge_ids(book, row, true, is_own, outcome, ret);
	if (outcome < 0)
		return outcome;
	/* a name is looked up before it is noted: only earlier tickets hold this one back */
	if (request->name[0]) {
		/* names compare by hash; a collision can only delay a job of the same user */
		hash = job_name_key(request->name, request->name_hash);
		if (request->is_singleton && ret->hold == DEPENDENCY_NONE)
			r = judge_singleton(book, row, hash, is_own, ret);
		/*
		 * A ticket that waits for a job by its id holds back no other by its name:
		 * the two could wait for each other.  Neither does a job that is held or begins
		 * later: it will join the queue anew.
		 */
		if (r == 0 && !outcome &&
			(row->ticket.attempt > 1 ||
				row->ticket.not_before_ms <= book->look.now_ms))
			r = note_name(book, row, hash);
	}
	if (r < 0)
		return r;
	judge_start_time(book, row, is_own, ret);
	/* the other values of job_verdict only hold the ticket back, as @ret says */
	return outcome >= JOB_IS_UNFINISHED ? 0 : outcome;
}

struct plan_row dependency_row(uint64_t number, const struct ticket *ticket,
	const struct dependency_verdict *held)
{
	struct plan_row row = plan_row_of(number, ticket);

	row.hold = held->hold;
	row.held_by = held->by;
	row.held_until_ms = held->until_ms;
	return row;
}

void dependency_release(struct dependency_book *book)
{
	free(book->jobs);
	free(book->names);
	singletons_release(&book->singletons);
	*book = (struct dependency_book){ .jobs = NULL };
}
