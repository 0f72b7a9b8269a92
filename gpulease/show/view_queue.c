#include <errno.h>

#include "clock.h"
#include "estimate.h"
#include "dependency.h"
#include "parse.h"
#include "privacy.h"
#include "process_info.h"
#include "view_queue.h"
#include "wait_reason.h"

enum {
	ACTS_WITHIN_MS = 3000
}; /* an owner that could start and takes longer is reported */

/* What judging the tickets in their order carries along. */
struct queue_walk {
	struct state_reader *reader;
	struct view *view;
	struct dependency_book book;
	struct plan plan;
	/* the first tickets with an estimated start, and their places among the jobs */
	struct plan_row rows[ESTIMATE_ROWS];
	struct usual_kind kinds[ESTIMATE_ROWS];
	size_t jobs[ESTIMATE_ROWS], row_count;
};

/* Says that a ticket can start, and for how long its owner has not acted. */
static void explain_can_start(const struct state_reader *reader,
	const struct ticket *ticket, const struct view_job *job, struct text *why)
{
	int64_t age_ms = clock_age_ms(reader->now_ms, ticket->turn_ms);
	char age[DURATION_SIZE];

	text_add(why, "can start now");
	if (job->is_stopped || age_ms < ACTS_WITHIN_MS || age_ms == INT64_MAX)
		return;
	format_duration(age_ms, age);
	text_addf(why, "; its owner has not acted for %s", age);
}

/* Fills in what the ticket itself says. */
static void describe_ticket(const struct state_reader *reader,
	const struct queue_row *row, struct view_job *job)
{
	const struct ticket *ticket = &row->ticket;
	const struct request *request = &ticket->request;
	struct text user = TEXT_ON(job->user);

	job->ticket = ticket_job(row->number, ticket);
	job->attempt = ticket->attempt ? ticket->attempt : 1;
	job->gpus = request->gpus;
	job->need = request_need(request);
	job->priority = request->priority;
	job->is_singleton = request->is_singleton;
	text_copy(job->after, sizeof(job->after), request->after);
	text_copy(job->after_ok, sizeof(job->after_ok), request->after_ok);
	job->pid = state_reader_pid(reader, &ticket->owner);
	job->waits_ms = max_i64(0, reader->now_ms - ticket->since_ms);
	job->limit_ms = request->limit_ms;
	job->late_ms = max_i64(ticket->late_ms, 0);
	job->is_stopped = job->pid && process_info_is_stopped(job->pid);
	text_copy(job->stuck, sizeof(job->stuck), ticket->stuck);
	/* a record has no blanks inside a value */
	for (char *at = job->stuck; *at; at++)
		if (*at == '_')
			*at = ' ';
	describe_user(ticket->owner.uid, ticket->user, &user);
	if (!may_show_commands_of(ticket->owner.uid))
		return;
	job->name_is_cut = state_reader_name(
		reader, &ticket->owner, request->name, request->name_hash, job->name);
	text_copy(job->command, sizeof(job->command), request->command);
}

/* Returns the verdict on a ticket in a copy of the plan, where it takes and reserves nothing. */
static struct verdict judge_in_copy(
	const struct queue_walk *walk, const struct plan_row *planned)
{
	struct plan plan = walk->plan;

	return plan_next(&plan, planned);
}

/*
 * Judges a ticket.  A ticket with a stopped process is passed over: it takes no GPU, and holds
 * back no ticket of the same name.  A ticket that is stuck takes no GPU if it could start, because
 * other tickets pass over it then.
 */
static int judge_ticket(struct queue_walk *walk, const struct queue_row *row,
	const struct view_job *job, struct verdict *ret)
{
	struct queue_row judged = *row;
	struct plan_row planned;
	struct dependency_verdict held;
	int r;

	if (job->is_stopped)
		judged.ticket.request.name[0] = '\0';
	r = dependency_judge(&walk->book, &judged, false, &held);
	if (r < 0)
		return r;
	planned = dependency_row(row->number, &row->ticket, &held);
	if (job->is_stopped || job->stuck[0])
		*ret = judge_in_copy(walk, &planned);
	if (job->is_stopped && ret->kind == VERDICT_LEASED)
		ret->start_ms = 0; /* its process has to be continued first */
	if (job->is_stopped || (job->stuck[0] && ret->kind == VERDICT_START))
		return 0;
	if (walk->row_count < ESTIMATE_ROWS && estimate_wants(&planned)) {
		walk->rows[walk->row_count] = planned;
		walk->kinds[walk->row_count] = foretell_kind(&row->ticket);
		walk->jobs[walk->row_count++] = walk->view->job_count;
	}
	*ret = plan_next(&walk->plan, &planned);
	return 0;
}

/* Names the jobs that have GPUs in @allow, which a ticket may choose, and do not use them. */
static void explain_unused(
	const struct queue_walk *walk, const struct gpuset *allow, struct text *why)
{
	const struct view *view = walk->view;
	const char *word = "; unused: ";

	for (size_t i = 0; i < view->gpu_count; i++)
		for (size_t at = 0; at < view->gpus[i].holder_count; at++) {
			const struct view_holder *holder = &view->gpus[i].holders[at];
			char span[DURATION_SIZE];

			if (!holder->is_unused || !gpuset_has(allow, view->gpus[i].slot))
				continue;
			format_duration(holder->unused_for_ms, span);
			text_addf(why, "%sGPU %s of job %llu for %s", word,
				view_gpu_name(&view->gpus[i]).text,
				(unsigned long long)holder->ticket, span);
			word = ", ";
		}
}

static int fill_job(struct queue_walk *walk, const struct queue_row *row)
{
	struct view_job *job = &walk->view->jobs[walk->view->job_count];
	struct text why = TEXT_ON(job->why);
	struct verdict verdict;
	int r;

	describe_ticket(walk->reader, row, job);
	r = judge_ticket(walk, row, job, &verdict);
	if (r < 0)
		return r;
	job->verdict = verdict.kind;
	if (verdict.kind == VERDICT_BEHIND)
		job->behind = verdict.behind;
	if (verdict.kind == VERDICT_HELD && verdict.hold != DEPENDENCY_UNTIL)
		job->held_by = verdict.held_by;
	else if (verdict.kind == VERDICT_HELD && verdict.start_ms == TICKET_HELD)
		job->is_on_hold = true;
	else if (verdict.kind == VERDICT_HELD && !verdict.held_by)
		job->begin_ms =
			walk->view->real_ms - walk->reader->now_ms + verdict.start_ms;
	if (verdict.kind == VERDICT_LIMIT)
		job->limit_line = verdict.limit.line;
	if (verdict.kind == VERDICT_START)
		explain_can_start(walk->reader, &row->ticket, job, &why);
	else
		explain_verdict(&walk->reader->snapshot, &verdict, &why);
	if (verdict.kind == VERDICT_LEASED && verdict.is_first)
		explain_unused(walk, &row->ticket.request.allow, &why);
	if (job->is_stopped)
		text_add(&why, "; its process is stopped");
	if (job->stuck[0]) {
		text_add(&why, "; ");
		explain_stuck(job->stuck, &why);
	}
	if (job->late_ms) {
		char late[DURATION_SIZE];

		format_duration(job->late_ms, late);
		text_addf(&why, "; counts as %s later", late);
	}
	/* the verdict on a head has its start; estimate_jobs() finds that of the others */
	job->start_ms = verdict.kind == VERDICT_LEASED ? verdict.start_ms : 0;
	walk->view->job_count++;
	return 0;
}

/* Adds when the job starts at the latest, unless the plan has found that, and when usually. */
static void add_start(struct view_job *job, const struct plan_row *row, int64_t start_ms,
	const struct foretold *foretold)
{
	size_t used = strlen(job->why);
	struct text why = text_on(job->why + used, sizeof(job->why) - used);

	if (!job->start_ms && start_ms) {
		job->start_ms = start_ms;
		/* a job that begins later says that already */
		if (job->verdict == VERDICT_START || start_ms == row->held_until_ms)
			return;
		text_add(&why, "; starts ");
		explain_when(start_ms, &why);
	}
	explain_usually(foretold, job->start_ms != 0, &why);
	job->foretold = *foretold;
}

/* Adds the starts of the jobs that are not known from the plan alone. */
static int estimate_jobs(struct queue_walk *walk)
{
	struct snapshot *snapshot = &walk->reader->snapshot;
	int64_t starts_ms[ESTIMATE_ROWS];
	struct foretold foretold[ESTIMATE_ROWS];
	int r;

	if (!walk->row_count)
		return 0;
	r = estimate_starts(&snapshot->facts, walk->rows, walk->row_count, starts_ms);
	if (r == 0)
		r = foretell_starts(snapshot, walk->reader->now_ms, walk->rows,
			walk->kinds, walk->row_count, foretold);
	for (size_t i = 0; i < walk->row_count && r == 0; i++)
		add_start(&walk->view->jobs[walk->jobs[i]], &walk->rows[i], starts_ms[i],
			&foretold[i]);
	return r;
}

/* Finds the users of the waiting jobs that count as having come later. */
static void fill_shares(struct queue_walk *walk)
{
	struct state_reader *reader = walk->reader;
	uint32_t uids[VIEW_SHARES_MAX];
	struct view *view = walk->view;

	view->share = reader->context->config.share;
	for (size_t i = 0; i < reader->row_count && view->share.rate_ms; i++) {
		const struct ticket *ticket = &reader->rows[i].ticket;
		struct view_share *one = &view->shares[view->share_count];
		uint32_t uid = ticket->owner.uid;
		struct text user;
		size_t at = 0;

		while (at < view->share_count && uids[at] != uid)
			at++;
		if (ticket->late_ms <= 0 || at < view->share_count ||
			at == VIEW_SHARES_MAX)
			continue;
		uids[view->share_count++] = uid;
		user = TEXT_ON(one->user);
		describe_user(uid, ticket->user, &user);
		one->counts = broker_share_of(
			&view->share, &reader->queue, &reader->snapshot, uid, 0);
	}
}

static int fill_jobs(struct queue_walk *walk)
{
	struct state_reader *reader = walk->reader;
	struct view *view = walk->view;
	int r = 0;

	for (size_t i = 0; i < reader->row_count && r == 0; i++) {
		const struct queue_row *row = &reader->rows[i];
		const struct snapshot_lease *lease =
			snapshot_find_token(&reader->snapshot, row->ticket.owner.token);

		/* a waiting ticket with a lease is granted; its owner is about to say so */
		if (!lease || lease->is_over)
			r = fill_job(walk, row);
	}
	if (r == 0)
		r = estimate_jobs(walk);
	fill_shares(walk);
	for (size_t i = 0; i < view->job_count; i++) {
		struct view_job *job = &view->jobs[i];
		int64_t to_real_ms = view->real_ms - reader->now_ms;

		job->start_ms += job->start_ms ? to_real_ms : 0;
		job->foretold.from_ms += to_real_ms;
		job->foretold.to_ms += to_real_ms;
	}
	return r;
}

int view_fill_gpuless(const struct state_reader *reader, struct view *view)
{
	view->gpuless = calloc(reader->gpuless_count + 1, sizeof(*view->gpuless));
	if (!view->gpuless)
		return -ENOMEM;
	for (size_t i = 0; i < reader->gpuless_count; i++) {
		const struct ticket *ticket = &reader->gpuless[i].ticket;
		struct view_holder *out = &view->gpuless[view->gpuless_count++];
		struct text user = TEXT_ON(out->user);

		out->ticket = ticket_job(reader->gpuless[i].number, ticket);
		out->attempt = ticket->attempt ? ticket->attempt : 1;
		out->pid = state_reader_pid(reader, &ticket->owner);
		/* a dead supervisor: show the command that still runs */
		if (owner_judge(&ticket->owner, reader->context->dir.pidns, NULL) ==
			OWNER_DEAD)
			out->pid = ticket->runs.pid;
		/* the ticket was granted in its last turn */
		out->age_ms = max_i64(0, reader->now_ms - ticket->turn_ms);
		out->limit_ms = ticket->request.limit_ms;
		describe_user(ticket->owner.uid, ticket->user, &user);
		if (!may_show_commands_of(ticket->owner.uid))
			continue;
		out->name_is_cut = state_reader_name(reader, &ticket->owner,
			ticket->request.name, ticket->request.name_hash, out->name);
		text_copy(out->command, sizeof(out->command), ticket->request.command);
	}
	return 0;
}

int view_fill_jobs(struct state_reader *reader, struct view *view)
{
	static struct queue_walk walk; /* too big for the stack */
	int r;

	view->has_more_jobs = reader->has_more_rows;
	view->jobs = calloc(reader->row_count + 1, sizeof(*view->jobs));
	if (!view->jobs)
		return -ENOMEM;
	if (!reader->row_count)
		return 0;
	memset(&walk, 0, sizeof(walk));
	walk.reader = reader;
	walk.view = view;
	snapshot_find_links(&reader->snapshot, &reader->prober, reader->now_ms);
	dependency_begin(&walk.book, &reader->queue, &reader->snapshot, reader->now_ms);
	plan_begin(&walk.plan, &reader->snapshot.facts);
	r = fill_jobs(&walk);
	dependency_release(&walk.book);
	return r;
}
