/*
 * --cancel: a waiting ticket leaves the queue, a running job is ended.
 *
 * The wish is appended to the ticket file first, from when on it counts for everybody; then
 * all who wait are told by their bells.  Who does not obey within a second, and who runs
 * already, is ended by signals, until its lease is over.
 */
#include <errno.h>

#include "clock.h"
#include "ending.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "limits.h"
#include "operands.h"
#include "queue.h"
#include "terminate.h"
#include "verbs.h"
#include "watch.h"

enum { TARGETS_MAX = 1024, OBEY_MS = 1000, STAY_MS = 5000 };

struct target {
	uint64_t ticket;
	struct termination termination;
	bool was_waiting, is_done;
	int status;
};

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct target targets[TARGETS_MAX];
	size_t count;
	int64_t begun_ms;
} cancel;

/* --- what is meant ----------------------------------------------------------------- */

static int refuse(uint64_t ticket, const char *because)
{
	diag("ticket %llu %s", (unsigned long long)ticket, because);
	return EXIT_NOT_DONE;
}

/* The owner to end: the lease's where there is one, else the ticket's. */
static const struct owner *owner_of(const struct queue_row *row)
{
	struct snapshot_lease *lease =
		snapshot_find_token(&cancel.view, row->ticket.owner.token);

	return lease && !lease->is_over ? &lease->lease.owner : &row->ticket.owner;
}

static int add_target(const struct settings *settings, uint64_t ticket)
{
	struct queue_row row;
	const struct owner *owner;
	struct life *life;
	int r = queue_find(&cancel.queue, ticket, &row);

	if (r < 0 || cancel.count == TARGETS_MAX)
		return refuse(ticket, r < 0 ? strerror(-r) : "is one too many at once");
	if (r == QUEUE_END && ticket >= cancel.queue.end)
		return refuse(ticket, "does not exist");
	if (r == QUEUE_END || strcmp(row.ticket.boot, cancel.context.dir.boot) != 0)
		return refuse(ticket, "has finished");
	owner = owner_of(&row);
	life = lives_judge(&cancel.view.lives, owner, true, clock_boot_ms());
	if (!life || life_is_over(life))
		return refuse(ticket, "has finished");
	if (getuid() != 0 && getuid() != owner->uid) {
		char name[64];
		struct text text = TEXT_ON(name);

		describe_user(owner->uid, row.ticket.user, &text);
		diag("ticket %llu belongs to %s; only they and root may cancel it",
			(unsigned long long)ticket, name);
		return EXIT_NOT_DONE;
	}
	cancel.targets[cancel.count++] = (struct target){
		.ticket = ticket,
		.was_waiting = row.ticket.state == TICKET_WAITING,
		.termination = { .owner = *owner, .grace_ms = settings->grace_ms },
	};
	return 0;
}

/* All ids that can be cancelled are; the status is that of the worst. */
static int read_operands(const struct settings *settings)
{
	struct operand_walk walk =
		OPERAND_WALK(settings->operands, settings->operand_count, OPERAND_JOB);
	struct operand operand;
	struct why why;
	int r, status = EXIT_DONE;

	while ((r = operand_next(&walk, &operand, &why)) == 0) {
		r = add_target(settings, operand.first);
		status = r > status ? r : status;
	}
	if (r < 0)
		diag("%s", why.text);
	return r < 0 ? EXIT_MISUSE : status;
}

/* --- telling ----------------------------------------------------------------------- */

static int tell(const struct target *target)
{
	struct control control = {
		.verb = CONTROL_CANCEL,
		.uid = getuid(),
		.ticket = target->ticket,
		.at_ms = clock_boot_ms(),
	};
	int r;

	text_copy(control.boot, sizeof(control.boot), cancel.context.dir.boot);
	r = ticket_append_control(&cancel.queue.file, &control);
	if (r < 0)
		diag("cannot cancel ticket %llu: %s", (unsigned long long)target->ticket,
			strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* --- ending ------------------------------------------------------------------------ */

static void record(const struct target *target)
{
	char name[64];
	struct text text = TEXT_ON(name);

	if (snapshot_read(&cancel.view, clock_boot_ms()) < 0 ||
		snapshot_judge(&cancel.view, clock_boot_ms()) < 0)
		return;
	describe_user(getuid(), NULL, &text);
	ending_record(&cancel.view, target->termination.owner.token, "cancel", name);
}

static void fail(struct target *target, const char *because)
{
	target->is_done = true;
	target->status = refuse(target->ticket, because);
}

/* Goes on with one target; returns when to come back at the latest. */
static int64_t go_on(struct target *target, struct life *life, int64_t now_ms)
{
	int64_t wake_ms = cancel.begun_ms + OBEY_MS;
	int r = TERMINATE_LATER;

	if (life_is_over(life)) {
		target->is_done = true;
		record(target);
		return now_ms;
	}
	if (!target->was_waiting || now_ms >= wake_ms)
		r = terminate_step(&target->termination, life, cancel.context.dir.pidns,
			now_ms, &wake_ms);
	if (r == -ENOTSUP && target->was_waiting)
		target->is_done = true; /* nobody counts its ticket any more */
	else if (r == -ENOTSUP)
		fail(target, "runs in another pid namespace; cancel it from there");
	else if (r < 0)
		fail(target, strerror(-r));
	else if (now_ms >= cancel.begun_ms + target->termination.grace_ms + STAY_MS)
		fail(target, "has not ended yet; what is left of it cannot be killed");
	return min_i64(wake_ms, cancel.begun_ms + target->termination.grace_ms + STAY_MS);
}

/* One round over all targets that are left; false once none is. */
static bool round_of_all(struct watch *watch)
{
	int64_t now_ms = clock_boot_ms();
	bool is_left = false;

	watch_begin(watch);
	for (size_t i = 0; i < cancel.count; i++) {
		struct target *target = &cancel.targets[i];
		struct life *life;

		if (target->is_done)
			continue;
		life = lives_judge(
			&cancel.view.lives, &target->termination.owner, true, now_ms);
		if (!life) {
			fail(target, strerror(ENOMEM));
			continue;
		}
		watch_until(watch, go_on(target, life, now_ms));
		is_left = is_left || !target->is_done;
		if (life->unwatchable_ms)
			watch_until(watch, now_ms + 20);
		if (watch_add(watch, life->pidfd, POLLIN) < 0 ||
			watch_add(watch, life->fifo_fd, 0) < 0)
			watch_until(watch, now_ms + 20);
	}
	return is_left;
}

static int end_all(void)
{
	struct watch watch = WATCH_NONE;
	int status = EXIT_DONE;

	cancel.begun_ms = clock_boot_ms();
	while (round_of_all(&watch))
		if (watch_wait(&watch) < 0)
			break;
	watch_release(&watch);
	for (size_t i = 0; i < cancel.count; i++)
		if (cancel.targets[i].status > status)
			status = cancel.targets[i].status;
	return status;
}

int verb_cancel(struct settings *settings)
{
	int r, status;

	limits_raise();
	r = context_open(settings, &cancel.context);
	if (r != 0)
		return r;
	snapshot_init(&cancel.view, &cancel.context.dir);
	r = queue_open(&cancel.queue, &cancel.context.dir);
	if (r == 0)
		r = queue_begin(&cancel.queue, 0);
	if (r == 0)
		r = snapshot_read(&cancel.view, clock_boot_ms());
	if (r != 0) {
		diag("cannot use the state in '%s': %s", cancel.context.dir.path,
			r < 0 ? strerror(-r) : "it is being replaced");
		return EXIT_MISUSE;
	}
	status = read_operands(settings);
	for (size_t i = 0; i < cancel.count; i++) {
		r = tell(&cancel.targets[i]);
		status = r > status ? r : status;
	}
	beacon_ring_all(cancel.context.dir.fd); /* also those who waited behind them */
	r = end_all();
	return r > status ? r : status;
}
