#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "batch_journal.h"
#include "batch_member.h"
#include "clock.h"
#include "diag.h"

enum {
	LINE_SIZE = 8 * 1024,
	WORTH_MIB = 256, /* growth of memory that is told */
	UNREAD_MAX =
		32 * 1024, /* by a runner that was stopped: the rest is for what counts */
	END_TRIES = 20,    /* to write an end where there is no room */
	END_STEP_MS = 250,
};

static struct {
	bool is_here;
	struct batch_member as;
	pid_t pid;
	volatile sig_atomic_t was_stopped;
	bool was_recalled, is_orphaned, is_by_line, is_put_off;
	bool is_begun;           /* its command was started once */
	bool is_told;            /* its end, for good */
	bool has_attempt;        /* ->last is one that has ended */
	struct batch_event last; /* what was told last of its attempts */
	uint64_t told_mib;
	off_t log_size; /* before it waited */
	char by[64];    /* who has cancelled it while it waited */
} own = { .as = { .runner_fd = -1, .journal_fd = -1, .lock_fd = -1 } };

/* --- from the runner --------------------------------------------------------------- */

/* Whether there is something to read; in a handler of signals. */
static bool has_word(int fd)
{
	char byte;

	return fd >= 0 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

/*
 * TERM comes right behind BATCH_STOP.  Who waits sees that by itself and leaves the queue in
 * order; TERM from anybody else ends it as it would any other, and so it does what was forked
 * and has not become a command yet.  While a command runs none of this happens: the supervisor
 * reads its signals (supervise.c).
 */
static void on_term(int number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	int saved = errno;

	if (getpid() != own.pid || (!own.was_stopped && !has_word(own.as.runner_fd))) {
		(void)sigaction(number, &usual, NULL);
		(void)raise(number); /* pending until this has returned */
	}
	errno = saved;
}

/* What the runner has said since.  It is known before it is taken: TERM may come in between. */
static void listen_to_runner(void)
{
	char byte;
	ssize_t n;

	while (own.as.runner_fd >= 0) {
		n = recv(own.as.runner_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			/* closed: it would wake a waiter for ever */
			close_fd(&own.as.runner_fd);
			own.is_orphaned = true;
		} else if (byte == BATCH_RECALL) {
			own.was_recalled = true;
		} else if (byte == BATCH_STOP) {
			own.was_stopped = true;
		} else if (byte == BATCH_BY_LINE) {
			own.is_by_line = true;
		}
		if (n > 0)
			(void)!recv(own.as.runner_fd, &byte, 1, MSG_DONTWAIT);
	}
}

void batch_member_begin(const struct batch_member *member)
{
	struct sigaction action = { .sa_handler = on_term };
	struct stat log;

	own.is_here = true;
	own.pid = getpid();
	own.as = *member;
	own.log_size = fstat(STDERR_FILENO, &log) == 0 ? log.st_size : 0;
	(void)sigaction(SIGTERM, &action, NULL);
}

bool in_batch(void)
{
	return own.is_here;
}

int batch_leash(void)
{
	return own.as.runner_fd;
}

bool batch_is_stopped(void)
{
	listen_to_runner();
	return own.was_stopped;
}

/* It has not begun, or waits for its next attempt. */
static bool is_waiting(void)
{
	return own.is_here && (!own.is_begun || own.has_attempt);
}

bool batch_is_recalled(void)
{
	listen_to_runner();
	return own.was_stopped || own.is_put_off || (own.was_recalled && is_waiting()) ||
	       (own.is_orphaned && own.is_here && !own.is_begun);
}

/* --- telling ----------------------------------------------------------------------- */

static struct batch_event event_of(enum batch_event_kind kind)
{
	struct batch_event event = BATCH_EVENT_OF(kind, own.as.number);

	event.at_ms = clock_real_ms();
	return event;
}

/* Whether the runner reads what it is told, so that there is room. */
static bool is_heard(void)
{
	int unread = 0;

	return ioctl(own.as.runner_fd, TIOCOUTQ, &unread) < 0 || unread < UNREAD_MAX;
}

/* In the journal; an end is worth some seconds until there is room for it. */
static int keep(enum batch_event_kind kind, const char *line, size_t size)
{
	int r = batch_journal_append_lines(own.as.journal_fd, line, size);

	for (int left = END_TRIES; r < 0 && kind == BATCH_OVER && left > 0; left--) {
		(void)poll(NULL, 0, END_STEP_MS);
		r = batch_journal_append_lines(own.as.journal_fd, line, size);
	}
	return r;
}

/*
 * To the journal first, where it is of a kind that is kept.  0, or a negative errno of that, and
 * then a start is none; anything else is then the runner's to keep, where there is one.
 */
static int tell(const struct batch_event *event)
{
	char line[1 + LINE_SIZE] = { BATCH_UNKEPT };
	struct text text = text_on(line + 1, LINE_SIZE);
	bool is_unkept;
	int r = 0;

	if (!own.is_here)
		return 0;
	batch_event_write(event, &text);
	if (batch_event_is_kept(event->kind))
		r = keep(event->kind, line + 1, text.used);
	is_unkept = r < 0;
	if (own.as.runner_fd < 0 || (is_unkept && event->kind == BATCH_STARTED) ||
		(!batch_event_is_kept(event->kind) && !is_heard()) ||
		send(own.as.runner_fd, line + !is_unkept, text.used + is_unkept,
			MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return r;
	return 0;
}

void batch_tell_queued(uint64_t ticket)
{
	struct batch_event event = event_of(BATCH_QUEUED);

	event.ticket = ticket;
	(void)!tell(&event);
}

void batch_tell_waiting(const char *words)
{
	struct batch_event event = event_of(BATCH_WAITING);

	text_copy(event.text, sizeof(event.text), words);
	(void)!tell(&event);
}

void batch_note_cancel(const char *by)
{
	text_copy(own.by, sizeof(own.by), by);
}

bool batch_is_put_off(const char *text)
{
	if (!own.is_here)
		return false;
	batch_tell_waiting(text);
	own.is_put_off = true;
	return true;
}

int batch_tell_started(
	const struct broker *broker, const struct launch *launch, int64_t waited_ms)
{
	const struct request *request = &broker->ticket.request;
	struct batch_event event = event_of(BATCH_STARTED);
	struct why why;
	int r;

	if (!own.is_here)
		return 0;
	if (batch_is_recalled())
		return -ECANCELED;
	event.ticket = broker_job(broker);
	event.owner = *launch->owner;
	event.attempt = launch->attempt ? launch->attempt : 1;
	text_copy(event.boot, sizeof(event.boot), broker->ticket.boot);
	ending_name_gpus(launch->view, &launch->gpus, event.gpus, sizeof(event.gpus));
	event.declared_mib = own.as.declared_mib;
	event.vram_mib = request->vram_mib;
	event.limit_ms = request->limit_ms;
	event.waited_ms = waited_ms;
	r = tell(&event);
	if (r < 0) {
		why_set(&why, "cannot write the journal of the batch: %s", strerror(-r));
		diag("%s", why.text);
		(void)batch_is_put_off(why.text);
		return -ECANCELED;
	}
	own.last = event;
	own.is_begun = true;
	own.has_attempt = false;
	own.told_mib = 0;
	/* the journal knows of it: whoever comes next may begin */
	close_fd(&own.as.lock_fd);
	return 0;
}

void batch_tell_memory(const struct sampler *sampler)
{
	struct batch_event event;
	uint64_t peak_mib;

	if (!own.as.tells_memory)
		return;
	peak_mib = sampler_peak_mib(sampler);
	if (peak_mib < own.told_mib + WORTH_MIB)
		return;
	event = event_of(BATCH_MEMORY);
	event.peak_mib = own.told_mib = peak_mib;
	(void)!tell(&event);
}

/* --- ends -------------------------------------------------------------------------- */

static enum batch_cause find_cause(const struct attempt_end *end)
{
	static const enum batch_cause causes[] = {
		[CAUSE_ITSELF] = BATCH_ITSELF,
		[CAUSE_LIMIT] = BATCH_BY_LIMIT,
		[CAUSE_CANCEL] = BATCH_BY_CANCEL,
		[CAUSE_PREEMPT] = BATCH_BY_PREEMPT,
	};

	return end->is_oom && end->cause == CAUSE_ITSELF ? BATCH_BY_OOM
							 : causes[end->cause];
}

/* Who was cancelled has not done what it was for, whatever its command makes of TERM. */
static int end_status(const struct attempt_end *end)
{
	int status = care_exit_status(end);

	return end->cause == CAUSE_CANCEL && status == 0 ? 128 + SIGTERM : status;
}

/* By a runner that ends, or by whoever comes after one that was killed. */
static bool was_interrupted(const struct attempt_end *end)
{
	if (batch_is_stopped())
		return end->was_told || end->cause != CAUSE_ITSELF ||
		       care_exit_status(end) != 0;
	return own.is_orphaned && end->was_told;
}

static void tell_end(struct batch_event *event)
{
	listen_to_runner();
	event->kind = BATCH_OVER;
	event->is_by_line = own.is_by_line && event->cause == BATCH_BY_CANCEL;
	event->delay_ms = 0;
	event->next_mib = 0;
	own.is_told = true;
	if (tell(event) < 0)
		diag("cannot write the end of the job into the journal of the batch");
}

void batch_tell_attempt(const struct batch_attempt *attempt)
{
	struct batch_event *event = &own.last;
	unsigned mean, peak;

	if (!own.is_here)
		return;
	listen_to_runner();
	own.was_recalled = false; /* it came too late: the attempt had begun */
	event->kind = BATCH_ATTEMPT;
	event->at_ms = clock_real_ms();
	event->cause = find_cause(attempt->end);
	event->status = end_status(attempt->end);
	event->ran_ms = attempt->end->ran_ms;
	event->peak_mib = attempt->end->peak_mib;
	if (sampler_utilization(attempt->sampler, &mean, &peak)) {
		event->busy_mean = (int32_t)mean;
		event->busy_peak = (int32_t)peak;
	}
	text_copy(event->text, sizeof(event->text), attempt->by);
	own.has_attempt = true;
	if (attempt->next == CARE_DONE) {
		event->is_interrupted = was_interrupted(attempt->end);
		tell_end(event);
		return;
	}
	event->delay_ms = attempt->delay_ms;
	event->next_mib = attempt->next_mib;
	(void)!tell(event);
}

void batch_tell_no_other(void)
{
	if (!own.is_here || own.is_told)
		return;
	own.last.at_ms = clock_real_ms();
	own.last.is_interrupted = batch_is_recalled();
	tell_end(&own.last);
}

void batch_member_end(int status)
{
	/* a runner that ends cancels those, too, that it has told to end */
	bool is_cancelled = own.by[0] && !batch_is_stopped();
	bool is_recalled = !is_cancelled && batch_is_recalled();
	struct batch_event event;

	if (!own.is_here || own.is_told)
		return;
	if (is_recalled && !own.is_begun) {
		/* that it has waited: its log is to be as if it had not */
		(void)!ftruncate(STDERR_FILENO, own.log_size);
		return;
	}
	event = own.has_attempt ? own.last : event_of(BATCH_OVER);
	event.at_ms = clock_real_ms();
	if (is_recalled && own.has_attempt) {
		event.is_interrupted = true;
	} else {
		event.cause = is_cancelled ? BATCH_BY_CANCEL : BATCH_NOT_RUN;
		event.status = status;
		text_copy(event.text, sizeof(event.text),
			is_cancelled ? own.by : diag_last());
	}
	tell_end(&event);
}
