#include <errno.h>

#include "array.h"
#include "clock.h"
#include "history.h"
#include "hold.h"
#include "operands.h"
#include "parse.h"

enum {
	/* who saw the end may need a moment to tell the history, a parent to wait for it */
	TELL_MS = 2000,
	FIRST_LOOK_MS = 10, /* then 20, 40 … */
	MOST_STATUS = 255,
	CLOCK_STEP_MS = 60000, /* how far the history's clock may have been set since */
};

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
		struct ticket ticket;
		int kind = job.first > 0 && job.first < end
				   ? ticket_read(&queue->file, job.first, &ticket)
				   : TICKET_CONTROL;

		if (kind < 0)
			return kind;
		if (kind == TICKET_CONTROL || kind == TICKET_OTHER) {
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
static struct hold_job *find_job(struct hold_book *book, uint64_t number)
{
	size_t low = 0, high = book->job_count;
	struct hold_job *jobs;

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
		jobs[low] = (struct hold_job){ .number = number, .status = -1 };
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

/* Comes back after 10 ms, 20, 40 … while something since @since_ms may still change. */
static void look_again(struct hold_book *book, int64_t since_ms)
{
	int64_t age_ms = book->now_ms - since_ms;

	book->wake_ms =
		min_i64(book->wake_ms, book->now_ms + max_i64(FIRST_LOOK_MS, age_ms));
}

/* The life of @owner; watched for the sake of one's own ticket. */
static int judge_life(
	struct hold_book *book, const struct owner *owner, bool is_own, struct life **ret)
{
	*ret = lives_judge(&book->view->lives, owner, true, book->now_ms);
	if (!*ret)
		return -ENOMEM;
	if (is_own && !life_is_over(*ret))
		(*ret)->is_watched = true;
	return 0;
}

/* The lease of ticket @number, or of that user and name, that is not over. */
static const struct snapshot_lease *find_lease(
	const struct snapshot *view, uint64_t number, uint32_t uid, const char *name)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *found = &view->leases[i];
		const struct lease *lease = &found->lease;

		if (found->is_of_this_boot && !found->is_over &&
			(name ? lease->owner.uid == uid && strcmp(lease->name, name) == 0
			      : lease->ticket == number))
			return found;
	}
	return NULL;
}

enum { NOBODYS = 1, UNREADABLE = 2 };

/* Reads whose ticket it is.  0; NOBODYS: it is void; UNREADABLE; or a negative errno. */
static int learn_owner(struct hold_book *book, struct hold_job *job)
{
	struct ticket ticket;
	int kind;

	if (job->has_owner)
		return 0;
	kind = job->number > 0 && job->number < book->queue->end
		       ? ticket_read(&book->queue->file, job->number, &ticket)
		       : TICKET_VOID;
	if (kind < 0)
		return kind;
	if (kind != TICKET_RECORD)
		return kind == TICKET_BROKEN ? UNREADABLE : NOBODYS;
	if (strcmp(ticket.boot, book->queue->dir->boot) != 0)
		return NOBODYS;
	job->owner = ticket.owner;
	job->since_ms = ticket.since_ms;
	job->has_owner = true;
	return 0;
}

/* Whether a ticket that cannot be read is given up: one that is half-copied can be soon. */
static int is_broken_for_good(struct hold_book *book, struct hold_job *job, bool is_own)
{
	if (!job->broken_ms)
		job->broken_ms = book->now_ms;
	if (book->now_ms - job->broken_ms >= TELL_MS)
		return 1;
	if (is_own)
		look_again(book, job->broken_ms);
	return 0;
}

/* 1: the job has ended; 0: it has not; or a negative errno. */
static int has_ended(struct hold_book *book, struct hold_job *job, bool is_own)
{
	const struct snapshot_lease *lease = find_lease(book->view, job->number, 0, NULL);
	int owned = learn_owner(book, job);
	struct life *life;
	uint32_t uid;
	int r;

	if (owned < 0)
		return owned;
	/* not one with this number from an earlier ticket file */
	if (lease && (owned != 0 || lease->lease.since_ms >= job->since_ms))
		return judge_life(book, &lease->lease.owner, is_own, &life);
	if (owned == UNREADABLE)
		return is_broken_for_good(book, job, is_own);
	if (owned == NOBODYS)
		return 1;
	r = judge_life(book, &job->owner, is_own, &life);
	if (r < 0)
		return r;
	return life_is_over(life) ||
	       (life_is_dead(life) && queue_is_cancelled(book->queue, job->number,
					      job->owner.uid, &uid));
}

/* What the history says of the end of @job: its status, or -1. */
static int status_in_history(const struct hold_book *book, const struct hold_job *job)
{
	int64_t to_real = clock_real_ms() - clock_boot_ms();
	struct history_end end;
	uint64_t status;

	if (history_find(book->queue->dir->fd, job->number,
		    job->has_owner ? job->since_ms + to_real - CLOCK_STEP_MS : 0,
		    &end) != 0 ||
		!end.status[0] || parse_u64(end.status, MOST_STATUS, &status, NULL) < 0)
		return -1;
	return (int)status;
}

/* Finds out how @job, which is over, has ended. */
static int learn_status(struct hold_book *book, struct hold_job *job, bool is_own)
{
	struct life *life;

	if (job->is_settled)
		return 0;
	if (job->has_owner) {
		life = lives_judge(&book->view->lives, &job->owner, true, book->now_ms);
		if (!life)
			return -ENOMEM;
		job->status = life->status;
	}
	if (job->status < 0)
		job->status = status_in_history(book, job);
	job->is_settled = job->status >= 0 || book->now_ms - job->over_ms >= TELL_MS;
	if (!job->is_settled && is_own)
		look_again(book, job->over_ms);
	return 0;
}

/* Besides HOLD_FAILED and HOLD_UNRECORDED, which are more final. */
enum { JOB_IS_OVER = 0, JOB_HOLDS = 3, JOB_IS_UNTOLD = 4 };

static int judge_job(struct hold_book *book, uint64_t number, bool needs_ok, bool is_own,
	int *ret_status)
{
	struct hold_job *job = find_job(book, number);
	int r;

	if (!job)
		return -ENOMEM;
	if (!job->over_ms) {
		r = has_ended(book, job, is_own);
		if (r <= 0)
			return r < 0 ? r : JOB_HOLDS;
		job->over_ms = book->now_ms;
	}
	if (!needs_ok)
		return JOB_IS_OVER;
	r = learn_status(book, job, is_own);
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
		*ret = (struct held){ r == JOB_HOLDS ? HOLD_AFTER : HOLD_STATUS, number,
			status };
	}
	return outcome;
}

/* --- those of the same user and name ------------------------------------------------ */

/* Names that hash alike are of one user, who may then wait for nothing. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

/* The first ticket of @uid with that name in this turn, 0: none. */
static uint64_t find_name(const struct hold_book *book, uint32_t uid, uint64_t hash)
{
	for (uint32_t at = book->lists[hash % HOLD_LISTS]; at;
		at = book->names[at - 1].next) {
		const struct hold_name *name = &book->names[at - 1];

		if (name->hash == hash && name->uid == uid)
			return name->number;
	}
	return 0;
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
		.hash = hash, .number = row->number, .uid = uid, .next = *list
	};
	*list = (uint32_t)book->name_count;
	return 0;
}

/* Follows who waits before us: it becomes a lease under the same owner. */
static int watch_ticket(struct hold_book *book, uint64_t number)
{
	struct queue_row row;
	struct life *life;
	int r = queue_find(book->queue, number, &row);

	if (r == 0)
		return judge_life(book, &row.ticket.owner, true, &life);
	if (r == QUEUE_END) /* just being rewritten */
		look_again(book, book->now_ms);
	return r < 0 ? r : 0;
}

static int judge_name(struct hold_book *book, const struct queue_row *row, uint64_t hash,
	bool is_own, struct held *ret)
{
	const struct ticket *ticket = &row->ticket;
	const struct snapshot_lease *lease =
		find_lease(book->view, 0, ticket->owner.uid, ticket->request.name);
	uint64_t number =
		lease ? lease->lease.ticket : find_name(book, ticket->owner.uid, hash);
	struct life *life;

	if (!number)
		return 0;
	*ret = (struct held){ .hold = HOLD_SINGLETON, .by = number };
	if (!is_own)
		return 0;
	return lease ? judge_life(book, &lease->lease.owner, true, &life)
		     : watch_ticket(book, number);
}

/* --- tickets ----------------------------------------------------------------------- */

void hold_begin(struct hold_book *book, struct queue *queue, struct snapshot *view,
	int64_t now_ms)
{
	forget_unused(book);
	book->queue = queue;
	book->view = view;
	book->now_ms = now_ms;
	book->wake_ms = INT64_MAX;
	book->name_count = 0;
	memset(book->lists, 0, sizeof(book->lists));
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
		hash = hash_of(request->name);
		if (request->is_singleton && ret->hold == HOLD_NONE)
			r = judge_name(book, row, hash, is_own, ret);
		if (r == 0)
			r = note_name(book, row, hash);
	}
	if (r < 0)
		return r;
	return outcome >= JOB_HOLDS ? 0 : outcome;
}

void hold_release(struct hold_book *book)
{
	free(book->jobs);
	free(book->names);
	*book = (struct hold_book){ .queue = NULL };
}
