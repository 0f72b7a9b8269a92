#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "follow.h"
#include "joblog.h"
#include "life.h"
#include "rights.h"
#include "ticket.h"
#include "watch.h"

enum {
	LOOK_MS = 1000,       /* how often, where nothing tells */
	LOG_COMES_MS = 10000, /* from a ticket to its log, at the most */
};

static struct follow {
	const struct context *context;
	uint64_t job;
	struct ticket_file tickets;
	struct ticket ticket; /* the job's latest that was read */
	bool has_ticket;
	int64_t since_ms; /* of its first */
	struct lives lives;
	struct watch watch;
	int fd, inotify_fd; /* -1 while not open */
	off_t at;
	bool is_gone_told;
} log_of = { .tickets = { -1, -1 }, .fd = -1, .inotify_fd = -1 };

static char log_path[PATH_MAX];

/* --- the job ----------------------------------------------------------------------- */

static bool read_ticket(uint64_t number, struct ticket *ret)
{
	return ticket_read(&log_of.tickets, number, ret) == TICKET_RECORD &&
	       strcmp(ret->boot, log_of.context->dir.boot) == 0;
}

/* Its latest attempt; one process is behind all of them, but each has a FIFO of its own. */
static void find_ticket(void)
{
	struct ticket ticket;

	if (!read_ticket(log_of.job, &ticket))
		return;
	log_of.since_ms = ticket.since_ms;
	log_of.ticket = ticket;
	log_of.has_ticket = true;
	if (ticket.latest && read_ticket(ticket.latest, &ticket))
		log_of.ticket = ticket;
}

/* What is needed to say whose it is and whether it lives; 0 or an exit status. */
static int find_job(const struct context *context, uint64_t job)
{
	const struct ticket *ticket = &log_of.ticket;
	char name[64];
	struct text text = TEXT_ON(name);
	int r;

	log_of.context = context;
	log_of.job = job;
	log_of.lives = LIVES_ON(&context->dir);
	r = ticket_open_to_read(context->dir.fd, &log_of.tickets);
	if (r == 0)
		find_ticket();
	if (!log_of.has_ticket || ticket->owner.uid == getuid())
		return 0;
	describe_user(ticket->owner.uid, ticket->user, &text);
	diag("job %llu belongs to %s, and so does its log", (unsigned long long)job,
		name);
	return EXIT_NOT_DONE;
}

static bool is_over_by(const struct ticket *ticket)
{
	const struct life *life = lives_judge_job(
		&log_of.lives, &ticket->owner, &ticket->runs, clock_boot_ms());

	return !life || life_is_over(life);
}

static bool job_is_over(void)
{
	if (log_of.has_ticket && !is_over_by(&log_of.ticket))
		return false;
	/* by its latest attempt: a command outlives the process that looked after it */
	find_ticket();
	return !log_of.has_ticket || is_over_by(&log_of.ticket);
}

/* --- the file ---------------------------------------------------------------------- */

static int tell_none(void)
{
	diag(log_of.has_ticket
			? "job %llu has no log: it was not started with --submit, or "
			  "its log was removed"
			: "there is no log of a job %llu",
		(unsigned long long)log_of.job);
	return EXIT_NOT_DONE;
}

static void watch_log(void)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", log_of.fd);
	if (log_of.inotify_fd < 0)
		return;
	/* that a name goes is told as a change of the links */
	if (inotify_add_watch(log_of.inotify_fd, name, IN_MODIFY | IN_ATTRIB) < 0)
		close_fd(&log_of.inotify_fd);
}

/* Until there is a log something that appears in its folder may be it. */
static void watch_folder(void)
{
	char folder[PATH_MAX];
	int r;

	log_of.inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (log_of.inotify_fd < 0)
		return;
	text_copy(folder, sizeof(folder), log_path);
	*strrchr(folder, '/') = '\0';
	rights_as_user_begin();
	r = inotify_add_watch(log_of.inotify_fd, folder, IN_CREATE | IN_MOVED_TO);
	rights_as_user_end();
	if (r < 0)
		close_fd(&log_of.inotify_fd);
}

static void drain_events(void)
{
	char events[4096];

	while (log_of.inotify_fd >= 0 &&
		read(log_of.inotify_fd, events, sizeof(events)) > 0)
		;
}

/* 0, also where there is none yet, or an exit status. */
static int open_log(void)
{
	log_of.fd = joblog_open(log_of.context, log_of.job, log_path);
	if (log_of.fd >= 0) {
		watch_log();
		return 0;
	}
	if (log_of.fd == -ENOENT && log_path[0])
		return 0;
	diag("cannot open the log of job %llu: %s", (unsigned long long)log_of.job,
		strerror(-log_of.fd));
	return EXIT_NOT_DONE;
}

static int write_out(const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(STDOUT_FILENO, bytes, size);

		if (n < 0 && errno == EAGAIN) {
			/* somebody has made our terminal non-blocking */
			struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

			(void)poll(&out, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			diag("cannot write the output: %s", strerror(errno));
			return EXIT_MISUSE;
		}
		if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* What has become of the file meanwhile. */
static void look_at_file(void)
{
	struct stat st;

	if (fstat(log_of.fd, &st) < 0)
		return;
	if (st.st_nlink == 0 && !log_of.is_gone_told) {
		log_of.is_gone_told = true;
		note("the log was deleted; what the job still writes is shown here alone");
	}
	if (S_ISREG(st.st_mode) && st.st_size < log_of.at) {
		note("the log was cut to %llu bytes; from its beginning again",
			(unsigned long long)st.st_size);
		log_of.at = 0;
	}
}

/* All that is there and was not printed yet.  0 or an exit status. */
static int print_new(void)
{
	static char bytes[64 * 1024];
	struct stat st;

	/* a FIFO or a terminal keeps nothing of what went there */
	if (fstat(log_of.fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	for (;;) {
		ssize_t n = pread(log_of.fd, bytes, sizeof(bytes), log_of.at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			diag("cannot read '%s': %s", log_path, strerror(errno));
		if (n <= 0)
			return n < 0 ? EXIT_MISUSE : 0;
		log_of.at += n;
		r = write_out(bytes, (size_t)n);
		if (r != 0)
			return r;
	}
}

/* --- both -------------------------------------------------------------------------- */

/* Until something has happened.  0, or an exit status: nobody reads any more. */
static int await_more(void)
{
	struct watch *watch = &log_of.watch;
	const struct life *life =
		lives_judge(&log_of.lives, &log_of.ticket.owner, true, clock_boot_ms());

	watch_begin(watch);
	if (!life || life_is_over(life))
		return 0;
	if (log_of.inotify_fd < 0 || life->unwatchable_ms)
		watch_until(watch, clock_boot_ms() + LOOK_MS);
	if (log_of.fd < 0)
		watch_until(watch, log_of.since_ms + LOG_COMES_MS);
	if (watch_add(watch, STDOUT_FILENO, 0) < 0 ||
		watch_add(watch, log_of.inotify_fd, POLLIN) < 0 ||
		watch_add(watch, life->pidfd, POLLIN) < 0 ||
		watch_add(watch, life->fifo_fd, 0) < 0 || watch_wait(watch) < 0) {
		diag("cannot wait: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	/* as it would be with the next line */
	return watch->fds[0].revents & (POLLERR | POLLHUP) ? 128 + SIGPIPE : 0;
}

/* What was written before the end is there when the end is seen: look at that first. */
static int go_on(bool *ret_is_over)
{
	int r = 0;

	*ret_is_over = job_is_over();
	drain_events();
	if (log_of.fd < 0)
		r = open_log();
	if (r != 0)
		return r;
	if (log_of.fd >= 0) {
		look_at_file();
		return print_new();
	}
	if (*ret_is_over || !log_of.ticket.request.is_supervised ||
		clock_boot_ms() >= log_of.since_ms + LOG_COMES_MS)
		return tell_none();
	return 0;
}

int follow(const struct context *context, uint64_t job)
{
	bool is_over = false;
	int r = find_job(context, job);

	if (r != 0)
		return r;
	if (joblog_path(context, job, log_path, sizeof(log_path)) < 0)
		return tell_none();
	watch_folder();
	do {
		r = go_on(&is_over);
		if (r == 0 && !is_over)
			r = await_more();
	} while (r == 0 && !is_over);
	return r;
}

int show_log(const struct context *context, uint64_t job)
{
	struct stat st;
	int r = find_job(context, job);

	if (r == 0)
		r = open_log();
	if (r != 0)
		return r;
	if (log_of.fd < 0)
		return tell_none();
	if (fstat(log_of.fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		diag("the log of job %llu goes to what is no file; nothing of it was kept",
			(unsigned long long)job);
		return EXIT_NOT_DONE;
	}
	return print_new();
}
