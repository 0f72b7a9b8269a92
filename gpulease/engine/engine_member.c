#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "diag.h"
#include "engine_entry.h"
#include "engine_member.h"
#include "engine_poll.h"
#include "exitcodes.h"
#include "parse.h"
#include "process_lease.h"
#include "slurm_ask.h"

enum { AGAIN_MS = 10 * 1000 }; /* until Slurm is asked again, if it does not answer */

struct member {
	struct engine_entry entry;
	struct engine_poll poll;
	int signal_fd;
	bool is_told;       /* to end the job */
	bool has_cancelled; /* and Slurm has taken that */
	int64_t cancel_ms;  /* CLOCK_BOOTTIME: when to try that again */
};

/* --- the beginning ----------------------------------------------------------------------- */

/* Ends with the process @parent.  Returns 0, or EXIT_MISUSE: it has ended already. */
static int bind_to_parent(const char *parent)
{
	uint64_t pid;

	if (parse_u64(parent, INT32_MAX, &pid, NULL) < 0)
		return EXIT_MISUSE;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == (pid_t)pid ? 0 : EXIT_MISUSE;
}

static int open_signals(void)
{
	static const int wanted[] = { SIGTERM, SIGHUP, SIGINT };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * The job that is submitted here must not take itself for a part of the local job.  What the user
 * had set is gone from here; the first attempt is submitted before the local job begins.
 */
static void forget_local_job(void)
{
	static const char *const variables[] = { "CUDA_VISIBLE_DEVICES",
		"CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "GPULEASE_ATTEMPT",
		"GPULEASE_GPUS", "GPULEASE_UUIDS", "GPULEASE_DIR",
		PROCESS_LEASE_TOKEN_VARIABLE, "GPULEASE_ID" };

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		(void)unsetenv(variables[i]);
}

/* --- the wait ---------------------------------------------------------------------------- */

/* Whether a signal tells it to end the job. */
static void read_signals(struct member *own)
{
	struct signalfd_siginfo info;

	while (read(own->signal_fd, &info, sizeof(info)) == sizeof(info))
		own->is_told = true;
}

/* Cancels the job of Slurm if that is due.  Returns when to be called again. */
static int64_t obey(struct member *own)
{
	int64_t now_ms = clock_boot_ms();

	read_signals(own);
	if (!own->is_told || own->has_cancelled)
		return INT64_MAX;
	if (now_ms < own->cancel_ms)
		return own->cancel_ms;
	own->has_cancelled = entry_stop(&own->entry) == 0;
	own->cancel_ms = now_ms + AGAIN_MS;
	return own->has_cancelled ? INT64_MAX : own->cancel_ms;
}

/* Waits @ms, or until a signal has come. */
static void pause_ms(const struct member *own, int ms)
{
	struct pollfd fd = { .fd = own->signal_fd, .events = POLLIN };

	(void)poll(&fd, 1, ms);
}

/* Finds the job or submits one; tries until Slurm answers.  Returns 0 or an exit status. */
static int submit(struct member *own)
{
	int r;

	while ((r = entry_submit(&own->entry)) == SUBMISSION_LOST) {
		pause_ms(own, AGAIN_MS);
		read_signals(own);
		if (own->is_told)
			return 128 + SIGTERM;
	}
	return r;
}

/*
 * Waits for the end of the job.  If no program of Slurm can be run, for example while there are too
 * many processes, it tries again: the job goes on meanwhile.  Returns 0 or EXIT_MISUSE after a
 * message.
 */
static int wait_for_end(struct member *own)
{
	if (engine_poll_add(&own->poll, own->entry.id) < 0)
		return EXIT_MISUSE;
	while (!own->poll.jobs[0].has_ended) {
		int64_t until_ms = obey(own);

		if (engine_poll_wait(&own->poll, until_ms, own->signal_fd) != 0)
			pause_ms(own, AGAIN_MS);
	}
	return 0;
}

/* --- the end ------------------------------------------------------------------------------- */

/* Hands on how the job has ended.  Returns the exit status. */
static int report_end(struct member *own)
{
	const struct polled_job *job = &own->poll.jobs[0];
	unsigned long long id = own->entry.id;

	if (job->state)
		text_copy(own->entry.end, sizeof(own->entry.end), job->state->name);
	own->entry.status = job->status >= 0 ? (uint64_t)job->status : EXIT_MISUSE;
	if (job->start_s && job->end_s > job->start_s)
		own->entry.ran_s = (uint64_t)(job->end_s - job->start_s);
	if (entry_write(&own->entry) < 0)
		verbose("cannot write '%s'", own->entry.path);
	if (job->state && job->state->words)
		note("job %llu of Slurm %s", id, job->state->words);
	if (job->status >= 0)
		return job->status;
	diag("it is not known how job %llu of Slurm has ended: Slurm has forgotten it",
		id);
	return EXIT_MISUSE;
}

int engine_member(char **argv)
{
	struct member own = { .entry = ENGINE_ENTRY_NONE, .poll = ENGINE_POLL_NONE };
	int r;

	if (!argv[0] || !argv[1] || bind_to_parent(argv[1]) != 0)
		return EXIT_MISUSE;
	text_copy(own.entry.path, sizeof(own.entry.path), argv[0]);
	own.signal_fd = open_signals();
	r = entry_read(&own.entry);
	if (r != 0 || own.signal_fd < 0) {
		diag("cannot read '%s': %s", argv[0],
			r < 0 ? strerror(-r) : "it is gone");
		return EXIT_MISUSE;
	}
	forget_local_job();
	r = submit(&own);
	if (r == 0)
		r = wait_for_end(&own);
	return r != 0 ? r : report_end(&own);
}
