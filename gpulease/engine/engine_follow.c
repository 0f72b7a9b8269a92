#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "engine_follow.h"
#include "engine_poll.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "fdio.h"
#include "log_reader.h"
#include "slurm_reason.h"

enum {
	LOOK_MS = 200,  /* between looks at the log */
	LATE_MS = 3000, /* for the end of the log to come from another node */
};

static struct {
	struct engine_poll poll;
	struct log_reader log;
	char told[64]; /* the reason that was printed last */
	bool is_silence_told;
} follow;

static const struct polled_job *job_of(void)
{
	return &follow.poll.jobs[0];
}

/* --- notices ----------------------------------------------------------------------------- */

/* Says why the job waits, once for each reason. */
static void tell_reason(void)
{
	const struct polled_job *job = job_of();
	char line[256];
	struct text text = TEXT_ON(line);

	if (!job->state || job->state->phase != SLURM_WAITS ||
		strcmp(job->reason, follow.told) == 0)
		return;
	text_copy(follow.told, sizeof(follow.told), job->reason);
	/* each job begins with it */
	if (strcmp(job->reason, "None") == 0)
		return;
	slurm_reason_add(job->reason, &text);
	note("job %llu waits: %s", (unsigned long long)job->id, line);
}

/* Returns 0, or an exit status after a message. */
static int tell_silence(void)
{
	if (follow.poll.silent_ms && !follow.poll.has_answer) {
		diag("Slurm does not answer; gpulease --engine slurm --doctor looks for "
		     "the reason");
		return EXIT_MISUSE;
	}
	if (follow.poll.silent_ms && !follow.is_silence_told)
		note("Slurm does not answer; still following the log");
	follow.is_silence_told = follow.poll.silent_ms != 0;
	return 0;
}

/* --- the end ------------------------------------------------------------------------------ */

static int refuse_without_log(void)
{
	const struct polled_job *job = job_of();
	unsigned long long id = job->id;

	if (job->is_unknown)
		diag("job %llu is unknown; --status and --history list the jobs", id);
	else if (job->uid != getuid())
		diag("job %llu belongs to another user, and so does its log", id);
	else
		diag("job %llu has no log: it was not started with --submit, or its log "
		     "was removed or is on a file system of its node",
			id);
	return EXIT_NOT_DONE;
}

/* Returns the exit status once the job has ended and its log was printed. */
static int finish(bool wants_status)
{
	const struct polled_job *job = job_of();
	bool has_log = follow.log.fd >= 0;

	/* one that has never run has no log */
	if (!has_log && !(job->state && job->state->phase == SLURM_ENDED && wants_status))
		return refuse_without_log();
	if (job->words)
		note("job %llu %s", (unsigned long long)job->id, job->words);
	if (!wants_status)
		return 0;
	return job->status < 0 ? EXIT_NOT_DONE : job->status;
}

/* Prints what comes late: the node may still write, or its writes are still to be seen here. */
static int print_rest(void)
{
	int64_t until_ms = clock_boot_ms() + LATE_MS;
	int r = log_reader_again(&follow.log);

	/* one that has started has a log */
	while (r == 0 && follow.log.fd < 0 && job_of()->start_s &&
		clock_boot_ms() < until_ms) {
		(void)poll(NULL, 0, LOOK_MS);
		r = log_reader_again(&follow.log);
	}
	return r;
}

/* --- rounds --------------------------------------------------------------------------------- */

/* Whether the reader of stdout has gone. */
static bool has_lost_reader(void)
{
	struct pollfd fd = { .fd = STDOUT_FILENO };

	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLHUP));
}

/* One round, until the next look is due.  Returns 0 or an exit status. */
static int round_of(void)
{
	bool may_write = !job_of()->state || job_of()->state->phase != SLURM_WAITS;
	int64_t until_ms =
		may_write ? clock_boot_ms() + LOOK_MS : follow.poll.wake_ms + LOOK_MS;
	int r = engine_poll_wait(&follow.poll, until_ms, -1);

	if (r == 0)
		r = tell_silence();
	if (r != 0)
		return r;
	/* its log is in a folder that this process does not know */
	if (job_of()->state && job_of()->uid != getuid() && follow.log.fd < 0)
		return refuse_without_log();
	tell_reason();
	if (has_lost_reader())
		return 128 + SIGPIPE;
	return log_reader_print(&follow.log);
}

int engine_follow(uint64_t id, bool wants_status)
{
	int r;

	follow.poll = ENGINE_POLL_NONE;
	r = log_reader_begin(&follow.log, id);
	if (r == 0 && engine_poll_add(&follow.poll, id) < 0) {
		diag("cannot follow the log: %s", strerror(ENOMEM));
		r = EXIT_MISUSE;
	}
	while (r == 0 && follow.poll.left)
		r = round_of();
	if (r == 0)
		r = print_rest();
	if (r == 0)
		r = finish(wants_status);
	log_reader_end(&follow.log);
	engine_poll_release(&follow.poll);
	return r;
}
