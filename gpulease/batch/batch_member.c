#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "background.h"
#include "batch_journal.h"
#include "batch_member.h"
#include "clock.h"
#include "diag.h"
#include "launch.h"
#include "sampler.h"

enum {
	LINE_SIZE = 8 * 1024,
	WORTH_MIB = 256, /* memory is reported again after it has changed by this */
	/* with more unread bytes in the socket, only events that are kept are sent */
	UNREAD_MAX = 32 * 1024,
	END_TRIES = 20, /* retries to write an end to the journal */
	END_STEP_MS = 250,
};

/* The job that this process is, for the handler of TERM. */
static const struct batch_member *handled;

/* --- from the runner --------------------------------------------------------------- */

/* Whether a message can be read.  Async-signal-safe. */
static bool has_message(int fd)
{
	char byte;

	return fd >= 0 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

/*
 * Handles TERM while the job waits.  The runner sends BATCH_STOP first; then the waiting code reads
 * that message and leaves the queue in order, so TERM is ignored.  Without the message, TERM ends
 * the process as usual.  It also ends a forked child that has not called exec yet, which is why the
 * pid is compared.  While a command runs this handler is not used: the supervisor reads its signals
 * (supervise.c).
 */
static void on_term(int number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	int saved = errno;

	if (getpid() != handled->pid ||
		(!handled->was_stopped && !has_message(handled->runner_fd))) {
		(void)sigaction(number, &usual, NULL);
		(void)raise(number); /* pending until this has returned */
	}
	errno = saved;
}

/*
 * Reads the messages of the runner.  Each is noted before it is removed from the socket, because
 * the handler of TERM may run in between and has to find it in one of the two places.
 */
static void member_listen(struct batch_member *own)
{
	char byte;
	ssize_t n;

	while (own->runner_fd >= 0) {
		n = recv(own->runner_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			/* the runner is dead; an open socket would now wake every poll */
			close_fd(&own->runner_fd);
			own->is_orphaned = true;
		} else if (byte == BATCH_RECALL) {
			own->was_recalled = true;
		} else if (byte == BATCH_STOP) {
			own->was_stopped = true;
		} else if (byte == BATCH_BY_LINE) {
			own->is_by_line = true;
		}
		if (n > 0)
			(void)!recv(own->runner_fd, &byte, 1, MSG_DONTWAIT);
	}
}

static int member_leash_fd(void *member)
{
	const struct batch_member *own = member;

	return own->runner_fd;
}

static bool is_member_stopped(void *member)
{
	struct batch_member *own = member;

	member_listen(own);
	return own->was_stopped;
}

/* Whether the job waits: it has not started yet, or waits for its next attempt. */
static bool is_member_waiting(const struct batch_member *own)
{
	return !own->is_begun || own->has_attempt;
}

/*
 * Whether the job has to leave the queue.  A stop by the runner, or that the job was put off,
 * always counts; a recall counts only while the job waits; the death of the runner, only before the
 * first start.
 */
static bool is_member_recalled(void *member)
{
	struct batch_member *own = member;

	member_listen(own);
	return own->was_stopped || own->is_put_off ||
	       (own->was_recalled && is_member_waiting(own)) ||
	       (own->is_orphaned && !own->is_begun);
}

/* --- events ------------------------------------------------------------------------ */

static struct batch_event member_event(
	const struct batch_member *own, enum batch_event_kind kind)
{
	struct batch_event event = BATCH_EVENT_OF(kind, own->number);

	event.at_ms = clock_real_ms();
	event.slurm_job = own->slurm_job;
	return event;
}

/* Whether the runner reads its messages; one that was stopped (SIGSTOP) does not. */
static bool is_runner_reading(const struct batch_member *own)
{
	int unread = 0;

	return ioctl(own->runner_fd, TIOCOUTQ, &unread) < 0 || unread < UNREAD_MAX;
}

/*
 * Writes the line to the journal.  An end is tried for END_TRIES * END_STEP_MS, in case the disk is
 * full for a short time.  Returns 0 or a negative errno.
 */
static int member_write_journal(const struct batch_member *own,
	enum batch_event_kind kind, const char *line, size_t size)
{
	int r = batch_journal_append_lines(own->journal_fd, line, size);

	for (int left = END_TRIES; r < 0 && kind == BATCH_OVER && left > 0; left--) {
		(void)poll(NULL, 0, END_STEP_MS);
		r = batch_journal_append_lines(own->journal_fd, line, size);
	}
	return r;
}

/*
 * Writes @event to the journal if its kind is kept, and then sends it to the runner.  A crash
 * between the two leaves the event in the journal, where the runner looks for it.
 *
 * If the journal cannot be written, a start is not sent: the command must not run.  Any other event
 * is sent with BATCH_UNWRITTEN, and the runner writes it.  Returns 0 if the event is in the journal
 * or was handed to the runner, else the negative errno of the journal; 0 for kinds not kept.
 */
static int member_send(const struct batch_member *own, const struct batch_event *event)
{
	char line[1 + LINE_SIZE] = { BATCH_UNWRITTEN };
	struct text text = text_on(line + 1, LINE_SIZE);
	bool is_unwritten;
	int r = 0;

	batch_event_write(event, &text);
	if (batch_event_is_kept(event->kind))
		r = member_write_journal(own, event->kind, line + 1, text.used);
	is_unwritten = r < 0;
	if (own->runner_fd < 0 || (is_unwritten && event->kind == BATCH_STARTED) ||
		(!batch_event_is_kept(event->kind) && !is_runner_reading(own)) ||
		send(own->runner_fd, line + !is_unwritten, text.used + is_unwritten,
			MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return r;
	return 0;
}

static void member_queued(void *member, uint64_t ticket)
{
	struct batch_member *own = member;
	struct batch_event event = member_event(own, BATCH_QUEUED);

	event.ticket = ticket;
	(void)!member_send(own, &event);
}

static void member_waits(void *member, const char *words)
{
	struct batch_member *own = member;
	struct batch_event event = member_event(own, BATCH_WAITING);

	text_copy(event.text, sizeof(event.text), words);
	(void)!member_send(own, &event);
}

static void member_note_cancel(void *member, const char *by)
{
	struct batch_member *own = member;

	text_copy(own->by, sizeof(own->by), by);
}

static void member_put_off(void *member, const char *words)
{
	struct batch_member *own = member;

	member_waits(own, words);
	own->is_put_off = true;
}

static int member_starts(void *member, const struct broker *broker,
	const struct launch *launch, int64_t waited_ms)
{
	struct batch_member *own = member;
	const struct request *request = &broker->ticket.request;
	struct batch_event event = member_event(own, BATCH_STARTED);
	struct why why;
	int r;

	if (is_member_recalled(own))
		return -ECANCELED;
	event.ticket = broker_job(broker);
	event.owner = *launch->owner;
	event.attempt = launch->attempt ? launch->attempt : 1;
	text_copy(event.boot, sizeof(event.boot), broker->ticket.boot);
	end_record_name_gpus(launch->view, &launch->gpus, event.gpus, sizeof(event.gpus));
	event.environment = own->environment;
	event.declared_mib = own->declared_mib;
	event.vram_mib = request->vram_mib;
	event.limit_ms = request->limit_ms;
	event.waited_ms = waited_ms;
	r = member_send(own, &event);
	if (r < 0) {
		why_set(&why, "cannot write the journal of the batch: %s", strerror(-r));
		diag("%s", why.text);
		member_put_off(own, why.text);
		return -ECANCELED;
	}
	own->last = event;
	own->is_begun = true;
	own->has_attempt = false;
	own->reported_mib = 0;
	/* the start is in the journal, so the next runner need not wait for this job */
	close_fd(&own->lock_fd);
	return 0;
}

/* Sends an event about the memory of the running command; *@event is that of its start. */
static void member_send_use(const struct batch_member *own, enum batch_event_kind kind,
	struct batch_event *event)
{
	event->kind = kind;
	event->at_ms = clock_real_ms();
	(void)!member_send(own, event);
}

static void member_sampled(void *member, const struct sampler *sampler)
{
	struct batch_member *own = member;
	struct batch_event event = own->last;
	uint64_t now_mib = sampler_now_mib(sampler), told_mib = own->reported_mib;

	if (now_mib == told_mib || (told_mib && now_mib < told_mib + WORTH_MIB &&
					   told_mib < now_mib + WORTH_MIB))
		return;
	event.used_mib = own->reported_mib = now_mib;
	event.peak_mib = sampler_peak_mib(sampler);
	member_send_use(own, BATCH_MEMORY, &event);
}

static void member_exceeds(void *member, const struct sample_gpu *gpu)
{
	struct batch_member *own = member;
	struct batch_event event = own->last;

	text_copy(event.gpus, sizeof(event.gpus), gpu->name.text);
	event.used_mib = gpu->now_mib;
	event.peak_mib = gpu->peak_mib;
	member_send_use(own, BATCH_EXCESS, &event);
}

/* --- ends -------------------------------------------------------------------------- */

static enum batch_cause cause_of_end(const struct attempt_end *end)
{
	static const enum batch_cause causes[END_CAUSES] = {
		[CAUSE_ITSELF] = BATCH_ITSELF,
		[CAUSE_LIMIT] = BATCH_BY_LIMIT,
		[CAUSE_CANCEL] = BATCH_BY_CANCEL,
		[CAUSE_PREEMPT] = BATCH_BY_PREEMPT,
		[CAUSE_UNUSED] = BATCH_BY_UNUSED,
		[CAUSE_REQUEUE] = BATCH_BY_REQUEUE,
	};

	return end->is_oom && end->cause == CAUSE_ITSELF ? BATCH_BY_OOM
							 : causes[end->cause];
}

/*
 * Whether the attempt has ended because a runner stopped: its own runner, or, if that is dead, a
 * later one, which sends TERM directly.
 */
static bool was_stopped_by_runner(struct batch_member *own, const struct attempt_end *end)
{
	if (is_member_stopped(own))
		return end->was_told || end->cause != CAUSE_ITSELF ||
		       attempt_exit_status(end) != 0;
	return own->is_orphaned && end->was_told;
}

/* Reports the final end @event of the job. */
static void member_send_end(struct batch_member *own, struct batch_event *event)
{
	member_listen(own);
	event->kind = BATCH_OVER;
	event->is_by_line = own->is_by_line && event->cause == BATCH_BY_CANCEL;
	event->delay_ms = 0;
	event->next_mib = 0;
	own->has_ended = true;
	if (member_send(own, event) < 0)
		diag("cannot write the end of the job into the journal of the batch");
}

static void member_attempt_ended(void *member, const struct attempt_news *news)
{
	struct batch_member *own = member;
	struct batch_event *event = &own->last;
	unsigned mean, peak;

	member_listen(own);
	own->was_recalled = false; /* a recall during the attempt came too late */
	event->kind = BATCH_ATTEMPT;
	event->at_ms = clock_real_ms();
	event->cause = cause_of_end(news->end);
	event->status = attempt_exit_status(news->end);
	event->ran_ms = news->end->ran_ms;
	event->peak_mib = news->end->peak_mib;
	event->spans_run =
		event->peak_mib && sampler_is_spanned(news->sampler, event->ran_ms);
	if (sampler_utilization(news->sampler, &mean, &peak)) {
		event->busy_mean = (int32_t)mean;
		event->busy_peak = (int32_t)peak;
	}
	text_copy(event->text, sizeof(event->text), news->by);
	own->has_attempt = true;
	if (news->next == RETRY_NEXT_NOTHING) {
		event->is_interrupted = was_stopped_by_runner(own, news->end);
		member_send_end(own, event);
		return;
	}
	event->delay_ms = news->delay_ms;
	event->next_mib = news->next_mib;
	(void)!member_send(own, event);
}

/* Reports the end of the job if another attempt was announced, but could not be queued. */
static void member_has_no_retry(void *member)
{
	struct batch_member *own = member;

	if (own->has_ended)
		return;
	own->last.at_ms = clock_real_ms();
	own->last.is_interrupted = is_member_recalled(own);
	member_send_end(own, &own->last);
}

void batch_member_end(struct batch_member *own, int status)
{
	/* a runner that stops may also cancel its jobs: that is no cancel by a user */
	bool is_cancelled = own->by[0] && !is_member_stopped(own);
	bool was_recalled = !is_cancelled && is_member_recalled(own);
	struct batch_event event;

	if (own->has_ended)
		return;
	if (was_recalled && !own->is_begun) {
		/* it never ran: remove what was logged while it waited */
		(void)!ftruncate(background_log(STDERR_FILENO), own->log_size);
		return;
	}
	event = own->has_attempt ? own->last : member_event(own, BATCH_OVER);
	event.at_ms = clock_real_ms();
	/* recalled between two attempts: the next runner, or this one, runs it again */
	if (was_recalled && own->has_attempt) {
		event.is_interrupted = true;
	} else {
		event.cause = is_cancelled ? BATCH_BY_CANCEL : BATCH_NOT_RUN;
		event.status = status;
		text_copy(event.text, sizeof(event.text),
			is_cancelled ? own->by : diag_last());
	}
	member_send_end(own, &event);
}

/* --- joining ----------------------------------------------------------------------- */

void batch_member_begin(struct batch_member *own)
{
	struct sigaction action = { .sa_handler = on_term };
	struct stat log;

	own->pid = getpid();
	own->log_size = fstat(STDERR_FILENO, &log) == 0 ? log.st_size : 0;
	own->observer = (struct job_observer){
		.context = own,
		.is_recalled = is_member_recalled,
		.is_stopped = is_member_stopped,
		.leash_fd = member_leash_fd,
		.queued = member_queued,
		.waits = member_waits,
		.put_off = member_put_off,
		.cancelled = member_note_cancel,
		.starts = member_starts,
		.sampled = member_sampled,
		.exceeds = member_exceeds,
		.attempt_ended = member_attempt_ended,
		.ended = member_has_no_retry,
	};
	handled = own;
	(void)sigaction(SIGTERM, &action, NULL);
}
