/* Who waits, and why: the plan over all tickets, as every waiter makes it for itself. */
#include <errno.h>

#include "clock.h"
#include "estimate.h"
#include "explain.h"
#include "hold.h"
#include "parse.h"
#include "process.h"
#include "view_parts.h"

enum { ACTS_WITHIN_MS = 3000 }; /* who could start and has not is worth a word */

/* What goes through the tickets in their order. */
struct walk {
	struct look *look;
	struct view *view;
	struct hold_book book;
	struct plan plan;
	/* the first that count, to be estimated, and their places among the jobs */
	struct plan_row rows[ESTIMATE_ROWS];
	size_t jobs[ESTIMATE_ROWS], row_count;
};

static void explain_start(const struct look *look, const struct ticket *ticket,
	const struct view_job *job, struct text *why)
{
	int64_t age_ms = clock_age_ms(look->now_ms, ticket->turn_ms);
	char age[DURATION_SIZE];

	text_add(why, "can start now");
	if (job->is_stopped || age_ms < ACTS_WITHIN_MS || age_ms == INT64_MAX)
		return;
	format_duration(age_ms, age);
	text_addf(why, "; has not looked for %s", age);
}

static void describe(
	const struct look *look, const struct queue_row *row, struct view_job *job)
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
	job->pid = view_pid(look, &ticket->owner);
	job->waits_ms = max_i64(0, look->now_ms - ticket->since_ms);
	job->limit_ms = request->limit_ms;
	job->is_stopped = job->pid && process_is_stopped(job->pid);
	text_copy(job->stuck, sizeof(job->stuck), ticket->stuck);
	for (char *at = job->stuck; *at; at++)
		if (*at == '_')
			*at = ' ';
	describe_user(ticket->owner.uid, ticket->user, &user);
	if (!may_show_commands_of(ticket->owner.uid))
		return;
	text_copy(job->name, sizeof(job->name), request->name);
	text_copy(job->command, sizeof(job->command), request->command);
}

/* What the plan says of a ticket that takes and reserves nothing. */
static struct verdict judge_aside(const struct walk *walk, const struct plan_row *planned)
{
	struct plan plan = walk->plan;

	return plan_next(&plan, planned);
}

/*
 * Judges a ticket.  A ticket whose process is stopped is passed over: it takes no GPU, and holds
 * back no ticket of the same name.  A ticket that is stuck takes no GPU if it could start, because
 * other tickets pass over it then.
 */
static int judge(struct walk *walk, const struct queue_row *row,
	const struct view_job *job, struct verdict *ret)
{
	struct queue_row aside = *row;
	struct plan_row planned;
	struct held held;
	int r;

	if (job->is_stopped)
		aside.ticket.request.name[0] = '\0';
	r = hold_judge(&walk->book, &aside, false, &held);
	if (r < 0)
		return r;
	planned = hold_row(row->number, &row->ticket, &held);
	if (job->is_stopped || job->stuck[0])
		*ret = judge_aside(walk, &planned);
	if (job->is_stopped && ret->kind == VERDICT_LEASED)
		ret->start_ms = 0; /* its process has to be continued first */
	if (job->is_stopped || (job->stuck[0] && ret->kind == VERDICT_START))
		return 0;
	if (walk->row_count < ESTIMATE_ROWS && estimate_wants(&planned)) {
		walk->rows[walk->row_count] = planned;
		walk->jobs[walk->row_count++] = walk->view->job_count;
	}
	*ret = plan_next(&walk->plan, &planned);
	return 0;
}

static int fill_job(struct walk *walk, const struct queue_row *row)
{
	struct view_job *job = &walk->view->jobs[walk->view->job_count];
	struct text why = TEXT_ON(job->why);
	struct verdict verdict;
	int r;

	describe(walk->look, row, job);
	r = judge(walk, row, job, &verdict);
	if (r < 0)
		return r;
	job->verdict = verdict.kind;
	if (verdict.kind == VERDICT_BEHIND)
		job->behind = verdict.behind;
	if (verdict.kind == VERDICT_HELD)
		job->held_by = verdict.held_by;
	if (verdict.kind == VERDICT_START)
		explain_start(walk->look, &row->ticket, job, &why);
	else
		explain_verdict(&walk->look->snapshot, &verdict, &why);
	if (job->is_stopped)
		text_add(&why, "; its process is stopped");
	if (job->stuck[0]) {
		text_add(&why, "; ");
		explain_stuck(job->stuck, &why);
	}
	/* the head's own start is in the verdict: nobody needs to reckon it again */
	job->start_ms = verdict.kind == VERDICT_LEASED ? verdict.start_ms : 0;
	walk->view->job_count++;
	return 0;
}

/* When each would start, where the plan has not said that yet. */
static int estimate(struct walk *walk)
{
	int64_t starts_ms[ESTIMATE_ROWS];
	int r = walk->row_count ? estimate_starts(&walk->look->snapshot.facts, walk->rows,
					  walk->row_count, starts_ms)
				: 0;

	for (size_t i = 0; i < walk->row_count && r == 0; i++) {
		struct view_job *job = &walk->view->jobs[walk->jobs[i]];
		size_t used = strlen(job->why);
		struct text why = text_on(job->why + used, sizeof(job->why) - used);

		if (job->start_ms || !starts_ms[i])
			continue;
		job->start_ms = starts_ms[i];
		if (job->verdict == VERDICT_START)
			continue;
		text_add(&why, "; starts ");
		explain_when(starts_ms[i], &why);
	}
	return r;
}

static int fill_jobs(struct walk *walk)
{
	struct look *look = walk->look;
	struct view *view = walk->view;
	int r = 0;

	for (size_t i = 0; i < look->row_count && r == 0; i++) {
		const struct queue_row *row = &look->rows[i];
		const struct snapshot_lease *lease =
			snapshot_find_token(&look->snapshot, row->ticket.owner.token);

		/* its owner is between its lease and its ticket: it waits no longer */
		if (!lease || lease->is_over)
			r = fill_job(walk, row);
	}
	if (r == 0)
		r = estimate(walk);
	for (size_t i = 0; i < view->job_count; i++)
		if (view->jobs[i].start_ms)
			view->jobs[i].start_ms += view->real_ms - look->now_ms;
	return r;
}

int view_fill_gpuless(const struct look *look, struct view *view)
{
	view->gpuless = calloc(look->gpuless_count + 1, sizeof(*view->gpuless));
	if (!view->gpuless)
		return -ENOMEM;
	for (size_t i = 0; i < look->gpuless_count; i++) {
		const struct ticket *ticket = &look->gpuless[i].ticket;
		struct view_holder *out = &view->gpuless[view->gpuless_count++];
		struct text user = TEXT_ON(out->user);

		out->ticket = ticket_job(look->gpuless[i].number, ticket);
		out->attempt = ticket->attempt ? ticket->attempt : 1;
		out->pid = view_pid(look, &ticket->owner);
		if (owner_judge(&ticket->owner, look->context->dir.pidns, NULL) ==
			OWNER_DEAD)
			out->pid = ticket->runs.pid;
		/* its last turn is that in which it was granted */
		out->age_ms = max_i64(0, look->now_ms - ticket->turn_ms);
		out->limit_ms = ticket->request.limit_ms;
		describe_user(ticket->owner.uid, ticket->user, &user);
		if (!may_show_commands_of(ticket->owner.uid))
			continue;
		text_copy(out->name, sizeof(out->name), ticket->request.name);
		text_copy(out->command, sizeof(out->command), ticket->request.command);
	}
	return 0;
}

int view_fill_jobs(struct look *look, struct view *view)
{
	static struct walk walk; /* too big for the stack */
	int r;

	view->has_more_jobs = look->has_more_rows;
	view->jobs = calloc(look->row_count + 1, sizeof(*view->jobs));
	if (!view->jobs)
		return -ENOMEM;
	if (!look->row_count)
		return 0;
	memset(&walk, 0, sizeof(walk));
	walk.look = look;
	walk.view = view;
	snapshot_find_links(&look->snapshot, &look->prober, look->now_ms);
	hold_begin(&walk.book, &look->queue, &look->snapshot, look->now_ms);
	plan_begin(&walk.plan, &look->snapshot.facts);
	r = fill_jobs(&walk);
	hold_release(&walk.book);
	return r;
}
