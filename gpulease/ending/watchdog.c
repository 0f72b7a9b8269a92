#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bell.h"
#include "diag.h"
#include "end_notice.h"
#include "clock.h"
#include "commit.h"
#include "end_record.h"
#include "fdio.h"
#include "notifier.h"
#include "privacy.h"
#include "proc.h"
#include "process_lease.h"
#include "rights.h"
#include "terminate.h"
#include "userfile.h"
#include "watch.h"
#include "watchdog.h"

/* Descriptors that stay open. */
enum {
	DIRECTORY_FD = 3, /* of the state */
	LIVE_FD,          /* the FIFO that it holds as the witness */
	LOG_FD,           /* the job's stderr, if that is a file */
	NOTIFIER_FD,      /* the way to the notifier, if there is one */
};

enum {
	LOCK_MS = 200,  /* for a lease file that another process has locked */
	REAP_MS = 4000, /* for the job's parent to reap it; later its status is lost */
	STAY_MS = 5000, /* a process that outlives KILL by so much cannot be killed */
	LOOK_MS = 50,   /* between two searches for processes that the job has left */
	NOTICE_MS = 64, /* the longest sleep until the notice is written: 1, 2, 4 … */

	/* at most, between two checks of a job, if its end raises no event */
	UNWATCHABLE_MS = 1000,
};

/* --- the job's stderr -------------------------------------------------------------- */

static struct stat job_stderr; /* when the job began; st_mode 0: it was closed */

/*
 * Keeps stderr as LOG_FD if it is a regular file: no reader waits for its end, and a line lands
 * after the job's own output only through the same open file and its offset.  Returns the first
 * descriptor that is not needed any more.
 */
static int stderr_keep(void)
{
	if (fstat(STDERR_FILENO, &job_stderr) < 0)
		job_stderr.st_mode = 0;
	if (!S_ISREG(job_stderr.st_mode))
		return LOG_FD;
	if (dup3(STDERR_FILENO, LOG_FD, O_CLOEXEC) == LOG_FD)
		return LOG_FD + 1;
	job_stderr.st_mode = 0;
	return LOG_FD;
}

/*
 * Returns a descriptor for the job's stderr, which the caller closes, or a negative errno.  A pipe
 * or terminal is opened only now, through /proc/PID/fd: had the watchdog kept it open, a reader of
 * the pipe would wait for the watchdog as well.  It is used only if it is still what the job began
 * with.
 */
static int stderr_open(uint32_t pid)
{
	char path[PROC_PATH_SIZE];
	struct stat now;
	autofd int place = -1;

	if (S_ISREG(job_stderr.st_mode)) {
		place = fcntl(LOG_FD, F_DUPFD_CLOEXEC, LOG_FD + 1);
		return place < 0 ? -errno : take_fd(&place);
	}
	if (proc_path(pid, "fd/2", path) < 0)
		return -ENOTSUP;
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, &now) < 0 || now.st_mode != job_stderr.st_mode ||
		now.st_dev != job_stderr.st_dev || now.st_ino != job_stderr.st_ino)
		return -ESTALE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	return userfile_open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* The time limit of the job, as far as this process knows; 0: none. */
static int64_t limit_ms;

/*
 * Writes @line to the job's stderr; NULL: that the time limit is reached.  A child writes it: the
 * write may block (a file server that does not answer) or raise SIGPIPE (the pipe's reader has just
 * ended), and neither may keep this process from ending the job.
 */
static void job_tell(const struct watchdog_order *order, const char *line)
{
	pid_t child;
	int fd;

	rights_as_user_begin();
	fd = stderr_open(order->owner.pid);
	rights_as_user_end();
	if (fd < 0)
		return;
	child = fork();
	if (child == 0) {
		if (dup2(fd, STDERR_FILENO) >= 0) {
			if (line)
				note("%s", line);
			else
				end_notice_limit(order->job, order->is_step, limit_ms,
					order->grace_ms);
		}
		_exit(0);
	}
	(void)close(fd);
	for (int wait_ms = 1;
		wait_ms <= NOTICE_MS && child > 0 && waitpid(child, NULL, WNOHANG) == 0;
		wait_ms *= 2)
		(void)poll(NULL, 0, wait_ms);
}

/* Whether this process holds the lease's FIFO.  It then sees no end of the FIFO in poll(2). */
static bool is_witness;

/* --- letting go -------------------------------------------------------------------- */

/* What the watchdog has opened in the state directory. */
static struct {
	struct statedir dir;
	struct liveness_set lives;
	struct end_recorder recorder;
	bool can_tell;
	int bell_fd; /* of a shell: rung when its lease is given back; -1: none */
} opened = { .recorder.file.fd = -1, .bell_fd = -1 };

/* Moves the descriptors of the directory and the FIFO to their fixed numbers. */
static int watchdog_keep_descriptors(
	const struct watchdog_order *order, struct statedir *dir)
{
	int live_fd = order->live_fd < 0
			      ? -1
			      : fcntl(order->live_fd, F_DUPFD_CLOEXEC, LOG_FD + 1);

	notifier_move_above(NOTIFIER_FD);
	*dir = *order->dir;
	if (dup3(order->dir->fd, DIRECTORY_FD, O_CLOEXEC) < 0 && errno != EINVAL)
		return -errno;
	dir->fd = DIRECTORY_FD;
	if (live_fd < 0)
		(void)close(LIVE_FD);
	else if (dup3(live_fd, LIVE_FD, O_CLOEXEC) < 0 && errno != EINVAL)
		return -errno;
	is_witness = live_fd >= 0;
	return 0;
}

/* Closes the descriptors from @first on, except the way to the notifier, which gets its number. */
static void watchdog_close_from(int first)
{
	if (notifier_is_there()) {
		if (first == LOG_FD)
			(void)close(LOG_FD);
		notifier_keep_as(NOTIFIER_FD);
		first = NOTIFIER_FD + 1;
	}
	fdio_close_from(first);
}

/*
 * Gives up all that this process shares with the job, except the FIFO, the notifier, and a regular
 * file that is its stderr: terminal, pipes, process group, folder, signal handlers.  A pipe that
 * stayed open here would keep its reader waiting after the job has ended.
 */
static int watchdog_detach(const struct watchdog_order *order, struct statedir *dir)
{
	int null_fd, r = watchdog_keep_descriptors(order, dir);

	if (r < 0)
		return r;
	(void)setsid();
	watchdog_close_from(stderr_keep());
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && r == 0; fd++)
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			r = -errno;
	if (null_fd > STDERR_FILENO)
		(void)close(null_fd);
	if (r == 0)
		r = statedir_open_folders(dir, NULL);
	(void)!chdir("/");
	(void)prctl(PR_SET_NAME, "gpulease-limit");
	for (int signal = 1; signal < NSIG; signal++)
		(void)!sigaction(
			signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	return r;
}

/* The samples of how the job uses its GPUs. */
static struct use_watch use = { .due_ms = INT64_MAX };

/* Adds what the samples wait for. */
static int watchdog_add_sample(struct watch *watch)
{
	struct pollfd fds[SPAWN_POLL_FDS];
	unsigned count = use_watch_poll_fds(&use, fds);
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(watch, fds[i].fd, fds[i].events);
	watch_until(watch, use_watch_wake_ms(&use));
	return r;
}

/* Waits until the job may have ended, or until @until_ms.  @begun_ms: when the job began. */
static void watchdog_wait(const struct watchdog_order *order, struct watch *watch,
	const struct liveness *life, int64_t begun_ms, int64_t until_ms)
{
	int64_t now_ms = clock_boot_ms();
	int fifo_fd = order->is_step || is_witness ? -1 : life->fifo_fd;

	watch_begin(watch);
	watch_until(watch, until_ms);
	/* no descriptor shows the end: check again, less and less often as the job gets older */
	if (life->pidfd < 0 && life->left_fd < 0 && fifo_fd < 0)
		watch_until(watch, now_ms + min_i64(UNWATCHABLE_MS,
						    max_i64(5, (now_ms - begun_ms) / 8)));
	if (watch_add(watch, life->pidfd, POLLIN) == 0 &&
		watch_add(watch, opened.bell_fd, POLLIN) == 0 &&
		watch_add(watch, fifo_fd, 0) == 0 &&
		watch_add(watch, life->left_fd, POLLIN) == 0 &&
		watchdog_add_sample(watch) == 0)
		(void)!watch_wait(watch);
}

/* --- a shell ----------------------------------------------------------------------- */

static struct snapshot view; /* too big for the stack */

/* Whether the shell's lease still exists: --cancel may have given it back meanwhile. */
static bool shell_has_lease(const struct watchdog_order *order)
{
	const struct snapshot_lease *lease;

	if (snapshot_read(&view, clock_boot_ms()) < 0)
		return false;
	lease = snapshot_find_token(&view, order->owner.token);
	return lease && lease->is_of_this_boot && !lease_is_final(&lease->lease);
}

static bool is_lease_lost; /* the shell lives on without it */

/* Whether the lease was given back meanwhile: that removes the FIFO, and rings. */
static bool shell_has_lost_lease(const struct watchdog_order *order)
{
	bell_drain(opened.bell_fd);
	return !fifo_is_named(&opened.dir, FIFO_LIVE, order->owner.token) &&
	       !shell_has_lease(order);
}

/*
 * Ends all processes that the shell has started, but not the shell: TERM, after the grace KILL.
 * Returns when none is left, or those that are left cannot be killed.
 */
static void shell_end_processes(const struct watchdog_order *order)
{
	int64_t kill_ms = clock_boot_ms() + order->grace_ms;
	int signal = SIGTERM, pause_ms = 20;

	while (process_lease_signal_all(order->owner.token, order->owner.uid, signal,
		       order->owner.pid) > 0) {
		int64_t now_ms = clock_boot_ms();

		if (now_ms >= kill_ms + STAY_MS)
			break;
		signal = now_ms >= kill_ms ? SIGKILL : 0; /* 0: only counts them */
		(void)poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < 500 ? 2 * pause_ms : pause_ms;
	}
}

/* Gives the shell's lease back; while a process that cannot be killed lives, it keeps the GPUs. */
static void shell_give_back(const struct watchdog_order *order)
{
	struct owner left;
	bool is_left = leftover_find_of(&order->owner, view.dir->pidns, &left) > 0;

	/* opens the lease files; else the lease ends with the shell */
	if (snapshot_read(&view, clock_boot_ms()) < 0)
		return;
	commit_give_back(&view, order->owner.token, &order->gpus, is_left ? &left : NULL);
}

/* --- the job ----------------------------------------------------------------------- */

/* Whether user ->uid has ended the job by --cancel, once that was looked up. */
static struct {
	bool is_known, is_so;
	uint32_t uid;
} cancelled;

/*
 * Reads in the lease who has cancelled the job, which has just ended or is about to be ended from
 * here: a mark that comes later does not count.
 */
static void job_note_cancel(void)
{
	if (!cancelled.is_known && opened.can_tell)
		cancelled.is_so =
			end_recorder_is_cancelled(&opened.recorder, &cancelled.uid);
	cancelled.is_known = true;
}

/*
 * The owner is dead: searches for a process that the job has left, and follows it.  If there is
 * none, closes the FIFO: from then on only other holders of the FIFO keep the lease.
 */
static void job_find_leftovers(const struct watchdog_order *order,
	struct liveness_set *lives, struct liveness *life, int64_t now_ms)
{
	struct owner left;

	/* before the FIFO is closed: then another process may take the GPUs, and the record */
	job_note_cancel();
	if (leftover_find_of(&order->owner, lives->dir->pidns, &left) > 0) {
		liveness_leave(lives, life, &left, true, now_ms);
		return;
	}
	liveness_leave_nothing(life);
	/* without a writer, the FIFO of an adopted owner could also mean a killed watchdog */
	if (is_witness && order->owner.is_adopted && opened.recorder.file.fd >= 0)
		(void)!end_recorder_give_back(&opened.recorder, now_ms + LOCK_MS);
	if (is_witness)
		(void)close(LIVE_FD);
	is_witness = false;
}

/* Whether the job is over.  Lowers *@wake_ms to the next search for leftovers, if one is due. */
static bool job_has_ended(const struct watchdog_order *order, struct liveness_set *lives,
	int64_t now_ms, int64_t *wake_ms)
{
	/* searches are LOOK_MS apart: a chain of short-lived leftovers must not cost a CPU */
	static int64_t next_look_ms;
	struct liveness *life =
		liveness_set_judge(lives, &order->owner, !order->is_step, now_ms);

	if (!life || !liveness_is_dead(life))
		return !life;
	if (order->is_step)
		return true;
	if (life->rest == LIVENESS_UNKNOWN && now_ms >= next_look_ms) {
		job_find_leftovers(order, lives, life, now_ms);
		life = liveness_set_judge(lives, &order->owner, true, now_ms);
		next_look_ms = clock_boot_ms() + LOOK_MS;
	}
	if (life && life->rest == LIVENESS_UNKNOWN)
		*wake_ms = min_i64(*wake_ms, next_look_ms);
	return !life || (life->rest != LIVENESS_UNKNOWN && liveness_is_over(life));
}

/* How this process ends the job. */
static const char limit_how[] = HISTORY_LIMIT;
static const char *ended_how = limit_how;

/* Takes a sample if one is due.  Returns whether the job is to be ended. */
static bool job_sample(const struct watchdog_order *order, int64_t now_ms)
{
	char line[USE_LINE_SIZE];
	int r = use_watch_step(&use, now_ms, line);

	if (r != 0) {
		job_tell(order, line);
		notifier_tell(NOTIFIER_IDLE, order->job, 0, line);
	}
	return r == USE_WATCH_ENDS;
}

/*
 * Returns when the job has to end, at the limit that its record has now, and tells the notifier if
 * that is soon.  The record of a step is that of the job around it, and has another limit.
 */
static int64_t watchdog_limit_at_ms(const struct watchdog_order *order, int64_t begun_ms)
{
	if (opened.can_tell)
		limit_ms = end_recorder_limit_ms(&opened.recorder, limit_ms);
	notifier_tell_soon(order->job, begun_ms, limit_ms);
	return begun_ms + limit_ms;
}

/*
 * Watches the job until it is over.  Returns whether this process has ended it: not a job that had
 * ended by itself, of which only leftover processes were left.
 */
static bool watchdog_watch(const struct watchdog_order *order, struct liveness_set *lives)
{
	/* forced: the pidfd is older than the command, so it is the job's, whatever its user */
	struct termination termination = { .owner = order->owner,
		.is_step = order->is_step,
		.is_forced = true,
		.grace_ms = order->grace_ms };
	int64_t begun_ms = clock_boot_ms();
	int64_t limit_at_ms = limit_ms ? begun_ms + limit_ms : INT64_MAX;
	struct watch watch = WATCH_NONE;

	for (;;) {
		int64_t now_ms = clock_boot_ms(), wake_ms;
		bool has_limit = !termination.begun_ms && ended_how == limit_how;
		struct liveness *life;

		if (has_limit && now_ms >= min_i64(limit_at_ms,
						   notifier_soon_ms(begun_ms, limit_ms)))
			limit_at_ms = watchdog_limit_at_ms(order, begun_ms);
		wake_ms = min_i64(limit_at_ms,
			has_limit ? notifier_soon_ms(begun_ms, limit_ms) : INT64_MAX);
		if (job_has_ended(order, lives, now_ms, &wake_ms))
			break;
		life = liveness_set_find(lives, order->owner.token);
		if (now_ms < limit_at_ms && job_sample(order, now_ms)) {
			limit_at_ms = wake_ms = now_ms;
			ended_how = HISTORY_UNUSED;
		}
		if (now_ms >= limit_at_ms) {
			use_watch_end(&use);
			job_note_cancel();
		}
		if (order->is_shell && shell_has_lost_lease(order)) {
			is_lease_lost = true;
			break;
		}
		if (now_ms >= limit_at_ms && !termination.begun_ms &&
			ended_how == limit_how)
			job_tell(order, NULL);
		if (now_ms >= limit_at_ms && order->is_shell) {
			shell_end_processes(order);
			return true;
		}
		if (now_ms >= limit_at_ms &&
			terminate_step(&termination, life, lives->dir->pidns, now_ms,
				&wake_ms) != TERMINATE_LATER)
			break;
		watchdog_wait(order, &watch, life, begun_ms, wake_ms);
	}
	return termination.was_alive;
}

/*
 * Returns the exit status of the job; -1: unknown.  The status can be read once the job's parent
 * has reaped it, which raises no event: this process looks after 1 ms, 2, 4 …
 */
static int job_find_status(const struct watchdog_order *order, struct liveness_set *lives)
{
	for (int wait_ms = 1;; wait_ms *= 2) {
		const struct liveness *life =
			liveness_set_judge(lives, &order->owner, true, clock_boot_ms());

		if (!life || !liveness_may_tell(life) || wait_ms > REAP_MS)
			return life ? life->status : -1;
		(void)poll(NULL, 0, wait_ms);
	}
}

/*
 * The lease was given back before its shell has ended: tells the notifier.  --cancel records that
 * end; the status of the shell is its own.
 */
static void shell_tell_end(const struct watchdog_order *order, int64_t gone_ms)
{
	char name[64] = "";
	struct text by = TEXT_ON(name);
	struct history_end end = { .how = "" };

	job_note_cancel();
	if (cancelled.is_so)
		describe_user(cancelled.uid, NULL, &by);
	else if (history_find_of_boot(&opened.dir, order->job,
			 opened.recorder.lease.since_ms, &end) == 0)
		text_add(&by, end.by);
	notifier_ended(order->job, gone_ms,
		&(struct end_facts){
			.status = STATUS_UNKNOWN, .how = HISTORY_CANCEL, .by = name });
}

/* Records the job's end in the history, unless that was done, and tells the notifier. */
static void job_record_end(const struct watchdog_order *order, struct liveness_set *lives,
	struct end_recorder *recorder, bool was_us)
{
	int64_t gone_ms = clock_boot_ms();
	char name[64] = "";
	struct text by = TEXT_ON(name);
	struct end_facts facts = { .status = STATUS_UNKNOWN,
		.how = was_us ? ended_how : "",
		.by = name,
		.use = use.last };

	if (is_lease_lost) {
		shell_tell_end(order, gone_ms);
		return;
	}
	job_note_cancel();
	if (cancelled.is_so) {
		facts.how = HISTORY_CANCEL;
		describe_user(cancelled.uid, NULL, &by);
	}
	if (!order->is_shell || !was_us)
		facts.status = job_find_status(order, lives);
	if (opened.can_tell)
		(void)!end_recorder_write(recorder, gone_ms, &facts, INT64_MAX);
	notifier_ended(order->job, gone_ms, &facts);
}

/* Opens what is needed to record the end.  Returns 0 or a negative errno. */
static int watchdog_open_recorder(const struct watchdog_order *order)
{
	if (order->ticket)
		return end_recorder_open_leaseless(
			&opened.dir, order->job, order->ticket, &opened.recorder);
	return end_recorder_open(&opened.dir, &order->gpus, order->gpu_names,
		order->owner.token, &opened.recorder);
}

/*
 * Detaches, and opens all that shows the job's end and all that is needed to record it.  This comes
 * before the command runs, because the command may end a moment later, and before the rights are
 * dropped, while files of the state directory can still be opened.
 */
static int watchdog_prepare(const struct watchdog_order *order)
{
	int r = watchdog_detach(order, &opened.dir);

	if (r < 0)
		return r;
	opened.lives = LIVENESS_SET_ON(&opened.dir);
	opened.recorder = END_RECORDER_NONE;
	if (!order->is_step && !order->is_told)
		opened.can_tell = watchdog_open_recorder(order) == 0;
	/* the first call opens what shows the owner's end */
	(void)!liveness_set_judge(
		&opened.lives, &order->owner, !order->is_step, clock_boot_ms());
	snapshot_init(&view, &opened.dir);
	if (order->is_shell)
		opened.bell_fd = fifo_create(&opened.dir, FIFO_BELL, &order->owner);
	return order->is_shell ? 0 : rights_drop();
}

static _Noreturn void watchdog_main(const struct watchdog_order *order)
{
	bool was_us;

	limit_ms = order->limit_ms;
	if (order->use)
		use_watch_begin(&use, order->use, order->job, order->use_interval_ms);
	was_us = watchdog_watch(order, &opened.lives);
	use_watch_end(&use);
	/* the history comes before the lease is replaced, see lib/README.md */
	if (opened.can_tell || notifier_is_there())
		job_record_end(order, &opened.lives, &opened.recorder, was_us);
	if (was_us && order->is_shell)
		shell_give_back(order);
	if (order->is_shell)
		fifo_remove(&opened.dir, FIFO_BELL, order->owner.token);
	_exit(0);
}

int watchdog_start(const struct watchdog_order *order)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		return -errno;
	if (child == 0) {
		/* the exit of this process, between the forks, tells that the watchdog is ready */
		pid_t watchdog = watchdog_prepare(order) < 0 ? -1 : fork();

		if (watchdog == 0)
			watchdog_main(order);
		_exit(watchdog < 0 ? 1 : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* SIGCHLD is ignored, so the child has no status: assume success */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}
