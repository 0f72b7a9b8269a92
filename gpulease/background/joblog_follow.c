#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "joblog_follow.h"
#include "joblog.h"
#include "liveness.h"
#include "namespaces.h"
#include "outcome.h"
#include "privacy.h"
#include "rights.h"
#include "ticket.h"
#include "watch.h"

enum {
	LOOK_MS = 1000,       /* between looks if no event reports changes */
	LOG_COMES_MS = 10000, /* from a job's ticket to its log, at most */
};

static struct follow {
	const struct context *context;
	uint64_t job;
	struct ticket_file tickets;
	struct ticket ticket; /* of the job's latest attempt, as read last */
	bool has_ticket;
	int64_t since_ms; /* of its first ticket */
	struct liveness_set lives;
	struct watch watch;
	int fd, inotify_fd; /* -1 while not open */
	off_t at;           /* printed up to here */
	bool is_deletion_told;
} log_of;

static char log_path[PATH_MAX];

/* --- the job ----------------------------------------------------------------------- */

static bool read_ticket(uint64_t number, struct ticket *ret)
{
	return ticket_read(&log_of.tickets, number, ret) == TICKET_RECORD &&
	       strcmp(ret->boot, log_of.context->dir.boot) == 0;
}

/*
 * Reads the ticket of the job's latest attempt.  One process supervises all attempts, but each has
 * a ticket and a FIFO of its own.
 */
static void read_latest_ticket(void)
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

/*
 * Finds the job that @job, the number of any of its tickets, means, and reads its latest ticket,
 * which names its owner and the process to watch.  Returns 0, or an exit status if the job belongs
 * to another user.
 */
static int find_job(const struct context *context, uint64_t job)
{
	const struct ticket *ticket = &log_of.ticket;
	char name[64];
	struct text text = TEXT_ON(name);
	uint64_t end;

	log_of = (struct follow){ .context = context,
		.tickets = TICKET_FILE_NONE,
		.fd = -1,
		.inotify_fd = -1 };
	log_of.job = job;
	log_of.lives = LIVENESS_SET_ON(&context->dir);
	/* a log outlives its ticket, so a number that means no job is an id as well */
	if (ticket_open_to_read(context->dir.fd, &log_of.tickets) == 0 &&
		ticket_end(&log_of.tickets, &end) == 0 &&
		outcome_find_job(&log_of.tickets, end, job, &log_of.job) == 0)
		read_latest_ticket();
	if (!log_of.has_ticket || ticket->owner.uid == namespaces_own_user())
		return 0;
	describe_user(ticket->owner.uid, ticket->user, &text);
	diag("job %llu belongs to %s, and so does its log", (unsigned long long)job,
		name);
	return EXIT_NOT_DONE;
}

static bool attempt_is_over(const struct ticket *ticket)
{
	const struct liveness *life = liveness_set_judge_job(
		&log_of.lives, &ticket->owner, &ticket->runs, clock_boot_ms());

	return !life || liveness_is_over(life);
}

static bool job_is_over(void)
{
	if (log_of.has_ticket && !attempt_is_over(&log_of.ticket))
		return false;
	/*
	 * Meanwhile the job may have taken its next ticket, or its supervisor may be dead while the
	 * command, which the ticket names by now, lives on.
	 */
	read_latest_ticket();
	return !log_of.has_ticket || attempt_is_over(&log_of.ticket);
}

/* --- the file ---------------------------------------------------------------------- */

static int refuse_without_log(void)
{
	struct why why;

	if (log_of.has_ticket)
		why_set(&why,
			"job %llu has no log: it was not started with --submit or "
			"--screen, or its log was removed",
			(unsigned long long)log_of.job);
	else
		outcome_explain_no_job(log_of.job, &why);
	diag("%s", why.text);
	return EXIT_NOT_DONE;
}

static void watch_log(void)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", log_of.fd);
	if (log_of.inotify_fd < 0)
		return;
	/* IN_ATTRIB: removing the file's name changes its link count */
	if (inotify_add_watch(log_of.inotify_fd, name, IN_MODIFY | IN_ATTRIB) < 0)
		close_fd(&log_of.inotify_fd);
}

/* Watches the folder until the log exists: a file that appears there may be the log. */
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

/* Opens the log.  Returns 0, also if it does not exist yet, or an exit status. */
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
	int r = fdio_write(STDOUT_FILENO, bytes, size);

	if (r < 0)
		diag("cannot write the output: %s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* Reports once that the log was deleted; begins again if it was truncated. */
static void check_file(void)
{
	struct stat st;

	if (fstat(log_of.fd, &st) < 0)
		return;
	if (st.st_nlink == 0 && !log_of.is_deletion_told) {
		log_of.is_deletion_told = true;
		note("the log was deleted; further output of the job is shown only here");
	}
	if (S_ISREG(st.st_mode) && st.st_size < log_of.at) {
		note("the log was cut to %llu bytes; printing it from its beginning again",
			(unsigned long long)st.st_size);
		log_of.at = 0;
	}
}

/* Prints all of the log that was not printed yet.  Returns 0 or an exit status. */
static int print_new(void)
{
	static char bytes[64 * 1024];
	struct stat st;

	/* a FIFO or a terminal does not keep what was written to it */
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

/* --- following --------------------------------------------------------------------- */

/* Waits for an event.  Returns 0, or an exit status: the reader of stdout has gone, for one. */
static int await_event(void)
{
	struct watch *watch = &log_of.watch;
	const struct liveness *life = liveness_set_judge(
		&log_of.lives, &log_of.ticket.owner, true, clock_boot_ms());

	watch_begin(watch);
	if (!life || liveness_is_over(life))
		return 0;
	if (log_of.inotify_fd < 0 || life->unwatchable_ms)
		watch_until(watch, clock_boot_ms() + LOOK_MS);
	if (log_of.fd < 0)
		watch_until(watch, log_of.since_ms + LOG_COMES_MS);
	if (watch_add(watch, STDOUT_FILENO, 0) < 0 ||
		watch_add(watch, log_of.inotify_fd, POLLIN) < 0 ||
		watch_add(watch, life->pidfd, POLLIN) < 0 ||
		watch_add(watch, life->fifo_fd, 0) < 0 || watch_wait(watch) < 0) {
		diag("cannot wait for the log: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	/*
	 * the pipe's reader has gone: end now, with the status that the next write would end with
	 */
	return watch->fds[0].revents & (POLLERR | POLLHUP) ? 128 + SIGPIPE : 0;
}

/* One round: opens the log if it is new, and prints what it has.  Returns 0 or an exit status. */
static int follow_step(bool *ret_is_over)
{
	int r = 0;

	/* before reading: all that the job wrote is in the file once its end is seen */
	*ret_is_over = job_is_over();
	drain_events();
	if (log_of.fd < 0)
		r = open_log();
	if (r != 0)
		return r;
	if (log_of.fd >= 0) {
		check_file();
		return print_new();
	}
	if (*ret_is_over || !log_of.ticket.request.is_supervised ||
		clock_boot_ms() >= log_of.since_ms + LOG_COMES_MS)
		return refuse_without_log();
	return 0;
}

int joblog_follow(const struct context *context, uint64_t job)
{
	bool is_over = false;
	int r = find_job(context, job);

	if (r != 0)
		return r;
	if (joblog_path(context, job, log_path, sizeof(log_path)) < 0)
		return refuse_without_log();
	/* watched before the first look, so that no event falls between the two */
	watch_folder();
	do {
		r = follow_step(&is_over);
		if (r == 0 && !is_over)
			r = await_event();
	} while (r == 0 && !is_over);
	return r;
}

int joblog_show(const struct context *context, uint64_t job)
{
	struct stat st;
	int r = find_job(context, job);

	if (r == 0)
		r = open_log();
	if (r != 0)
		return r;
	if (log_of.fd < 0)
		return refuse_without_log();
	if (fstat(log_of.fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		diag("the output of job %llu goes to no regular file, so none of it was kept",
			(unsigned long long)job);
		return EXIT_NOT_DONE;
	}
	return print_new();
}
