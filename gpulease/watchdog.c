#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "announce.h"
#include "clock.h"
#include "commit.h"
#include "ending.h"
#include "fdio.h"
#include "kin.h"
#include "rights.h"
#include "terminate.h"
#include "userfile.h"
#include "watch.h"
#include "watchdog.h"

enum {
	DIRECTORY_FD = 3,
	LIVE_FD, /* the FIFO, as the witness */
	LOG_FD,
	YIELD_MS = 200,  /* for --cancel, which knows more, to tell an end first */
	REAP_MS = 4000,  /* for the job's parent to reap it; then its status is unknown */
	STAY_MS = 5000,  /* what is still there so long after KILL is not to be killed */
	LOCK_TRIES = 20, /* of 50 ms */
	LOOK_MS = 50,    /* between two looks for what the job has left */
	UNWATCHABLE_MS = 1000, /* at most between two looks at a job that no event ends */
	SAY_MS = 64, /* the last of the naps for a line that is said: 1, 2, 4 … */
};

/* --- the job's stderr -------------------------------------------------------------- */

static struct stat job_stderr; /* as it was when the job began; no mode: it had none */

/*
 * Nobody waits for the end of a file, and only who shares its offset writes behind the others:
 * as long as stderr is one, it is kept.  The first descriptor that is not needed any more.
 */
static int keep_stderr(void)
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
 * Anything else is opened only now, by what /proc shows of the job, as long as it is still what
 * the job began with: somebody may wait for the last who has it open.  A negative errno where
 * it cannot be had.
 */
static int open_stderr(uint32_t pid)
{
	char path[32];
	struct stat now;
	autofd int place = -1;

	if (S_ISREG(job_stderr.st_mode))
		return LOG_FD;
	(void)snprintf(path, sizeof(path), "/proc/%u/fd/2", pid);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, &now) < 0 || now.st_mode != job_stderr.st_mode ||
		now.st_dev != job_stderr.st_dev || now.st_ino != job_stderr.st_ino)
		return -ESTALE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	return userfile_open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/*
 * A line there, before the job hears of it, but by a process of its own: the file may be on a
 * machine that does not answer, and whoever reads a pipe may just have ended.
 */
static void say_limit(const struct watchdog_order *order)
{
	pid_t child;
	int fd;

	rights_as_user_begin();
	fd = open_stderr(order->owner.pid);
	rights_as_user_end();
	if (fd < 0)
		return;
	child = fork();
	if (child == 0) {
		if (dup2(fd, STDERR_FILENO) >= 0)
			announce_limit(order->job, order->limit_ms, order->grace_ms);
		_exit(0);
	}
	(void)close(fd);
	for (int wait_ms = 1;
		wait_ms <= SAY_MS && child > 0 && waitpid(child, NULL, WNOHANG) == 0;
		wait_ms *= 2)
		(void)poll(NULL, 0, wait_ms);
}

/* As long as this process holds the FIFO of the lease, it never sees the end of it. */
static bool is_witness;

/* --- letting go -------------------------------------------------------------------- */

/* Moves the descriptors of the directory and the FIFO to their fixed numbers. */
static int keep_descriptors(const struct watchdog_order *order, struct statedir *dir)
{
	int live_fd = order->live_fd < 0
			      ? -1
			      : fcntl(order->live_fd, F_DUPFD_CLOEXEC, LOG_FD + 1);

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

/*
 * Lets go of all that is the job's but its FIFO and such a file: terminal, pipes, process group.
 */
static int let_go(const struct watchdog_order *order, struct statedir *dir)
{
	int null_fd, r = keep_descriptors(order, dir);

	if (r < 0)
		return r;
	(void)setsid();
	fdio_close_from(keep_stderr());
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

/* @begun_ms: when the job began. */
static void wait_for(const struct watchdog_order *order, struct watch *watch,
	const struct life *life, int64_t begun_ms, int64_t until_ms)
{
	int64_t now_ms = clock_boot_ms();
	int fifo_fd = order->is_step || is_witness ? -1 : life->fifo_fd;

	watch_begin(watch);
	watch_until(watch, until_ms);
	/* no event tells: an end is seen the later, the longer the job has run */
	if (life->pidfd < 0 && life->left_fd < 0 && fifo_fd < 0)
		watch_until(watch, now_ms + min_i64(UNWATCHABLE_MS,
						    max_i64(5, (now_ms - begun_ms) / 8)));
	if (watch_add(watch, life->pidfd, POLLIN) == 0 &&
		watch_add(watch, fifo_fd, 0) == 0 &&
		watch_add(watch, life->left_fd, POLLIN) == 0)
		(void)!watch_wait(watch);
}

/* --- a shell ----------------------------------------------------------------------- */

static struct snapshot view; /* too big for the stack */

/* Whether the lease has not been given back before. */
static bool still_stands(const struct watchdog_order *order)
{
	const struct snapshot_lease *lease;

	if (snapshot_read(&view, clock_boot_ms()) < 0)
		return false;
	lease = snapshot_find_token(&view, order->owner.token);
	return lease && lease->is_of_this_boot && !lease_is_final(&lease->lease);
}

/* What the shell has started, until nothing of it is left, or is not to be killed. */
static void end_its_processes(const struct watchdog_order *order)
{
	int64_t kill_ms = clock_boot_ms() + order->grace_ms;
	int signal = SIGTERM, pause_ms = 20;

	while (kin_signal_all(order->owner.token, order->owner.uid, signal,
		       order->owner.pid) > 0) {
		int64_t now_ms = clock_boot_ms();

		if (now_ms >= kill_ms + STAY_MS)
			break;
		signal = now_ms >= kill_ms ? SIGKILL : 0;
		(void)poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < 500 ? 2 * pause_ms : pause_ms;
	}
}

static void give_back(const struct watchdog_order *order)
{
	struct owner left;
	bool is_left = leftover_find_of(&order->owner, view.dir->pidns, &left) > 0;

	/* what cannot be killed keeps the lease */
	for (int tries = LOCK_TRIES; tries > 0; tries--)
		if (commit_release(&view, order->owner.token, &order->gpus,
			    is_left ? &left : NULL) != COMMIT_LOCKED)
			break;
	beacon_ring_all(view.dir);
}

/* --- the job ----------------------------------------------------------------------- */

/*
 * For a dead owner: looks for a process that the job has left, and follows it.  If there is none,
 * closes the FIFO: then only its other holders keep the lease.
 */
static void look_for_rest(const struct watchdog_order *order, struct lives *lives,
	struct life *life, int64_t now_ms)
{
	struct owner left;

	if (leftover_find_of(&order->owner, lives->dir->pidns, &left) > 0) {
		life_leave(lives, life, &left, true, now_ms);
		return;
	}
	life_leave_nothing(life);
	if (is_witness)
		(void)close(LIVE_FD);
	is_witness = false;
}

/* Whether the job is over.  Sets *@wake_ms to when to ask again, if a look is due. */
static bool has_ended(const struct watchdog_order *order, struct lives *lives,
	int64_t now_ms, int64_t *wake_ms)
{
	/* not at once: a process that starts one after another must not keep this one busy */
	static int64_t next_look_ms;
	struct life *life = lives_judge(lives, &order->owner, !order->is_step, now_ms);

	if (!life || !life_is_dead(life))
		return !life;
	if (order->is_step)
		return true;
	if (life->rest == LIFE_UNKNOWN && now_ms >= next_look_ms) {
		look_for_rest(order, lives, life, now_ms);
		life = lives_judge(lives, &order->owner, true, now_ms);
		next_look_ms = clock_boot_ms() + LOOK_MS;
	}
	if (life && life->rest == LIFE_UNKNOWN)
		*wake_ms = min_i64(*wake_ms, next_look_ms);
	return !life || (life->rest != LIFE_UNKNOWN && life_is_over(life));
}

/* Until the job is over, by itself or by us.  Returns whether it was us. */
static bool guard(const struct watchdog_order *order, struct lives *lives)
{
	struct termination termination = { .owner = order->owner,
		.is_step = order->is_step,
		/* its pidfd was opened before the command ran, so the user does not matter */
		.is_forced = true,
		.grace_ms = order->grace_ms };
	int64_t begun_ms = clock_boot_ms();
	int64_t limit_at_ms = order->limit_ms ? begun_ms + order->limit_ms : INT64_MAX;
	struct watch watch = WATCH_NONE;

	for (;;) {
		int64_t now_ms = clock_boot_ms(), wake_ms = limit_at_ms;
		struct life *life;

		if (has_ended(order, lives, now_ms, &wake_ms))
			break;
		life = lives_find(lives, order->owner.token);
		if (now_ms >= limit_at_ms && order->is_shell) {
			if (!still_stands(order))
				break;
			say_limit(order);
			end_its_processes(order);
			return true;
		}
		if (now_ms >= limit_at_ms && !termination.begun_ms)
			say_limit(order);
		if (now_ms >= limit_at_ms &&
			terminate_step(&termination, life, lives->dir->pidns, now_ms,
				&wake_ms) != TERMINATE_LATER)
			break;
		wait_for(order, &watch, life, begun_ms, wake_ms);
	}
	return termination.begun_ms != 0;
}

/*
 * The exit status, -1: not known.  Its parent has to ask for it first, which raises no event:
 * looked for after 1 ms, 2, 4 …
 */
static int find_status(const struct watchdog_order *order, struct lives *lives)
{
	for (int wait_ms = 1;; wait_ms *= 2) {
		const struct life *life =
			lives_judge(lives, &order->owner, true, clock_boot_ms());

		if (!life || !life_may_tell(life) || wait_ms > REAP_MS)
			return life ? life->status : -1;
		(void)poll(NULL, 0, wait_ms);
	}
}

static void tell(const struct watchdog_order *order, struct lives *lives,
	struct ending *ending, bool was_us)
{
	int64_t gone_ms = clock_boot_ms();
	int status = find_status(order, lives);

	/* --cancel knows more of an end by a signal; an exit is nobody else's to tell */
	if (!was_us && (status < 0 || status >= 128))
		(void)poll(NULL, 0, YIELD_MS);
	(void)!ending_record_open(ending, gone_ms,
		&(struct ending_facts){
			.status = status, .how = was_us ? HISTORY_LIMIT : NULL },
		INT64_MAX);
}

/* What it has open of the state. */
static struct {
	struct statedir dir;
	struct lives lives;
	struct ending ending;
	bool can_tell;
} opened;

/*
 * Lets go and opens what tells of the job's end and what takes note of it: before the command
 * runs, which may have ended a moment later, and while names can be looked up.
 */
static int prepare(const struct watchdog_order *order)
{
	int r = let_go(order, &opened.dir);

	if (r < 0)
		return r;
	opened.lives = LIVES_ON(&opened.dir);
	opened.can_tell = !order->is_step && !order->is_told &&
			  ending_open(&opened.dir, &order->gpus, order->gpu_names,
				  order->owner.token, &opened.ending) == 0;
	(void)!lives_judge(
		&opened.lives, &order->owner, !order->is_step, clock_boot_ms());
	snapshot_init(&view, &opened.dir);
	return order->is_shell ? 0 : rights_drop();
}

static _Noreturn void run(const struct watchdog_order *order)
{
	bool was_us = guard(order, &opened.lives);

	if (opened.can_tell)
		tell(order, &opened.lives, &opened.ending, was_us);
	if (was_us && order->is_shell)
		give_back(order);
	_exit(0);
}

int watchdog_start(const struct watchdog_order *order)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		return -errno;
	if (child == 0) {
		pid_t watchdog = prepare(order) < 0 ? -1 : fork();

		if (watchdog == 0)
			run(order);
		_exit(watchdog < 0 ? 1 : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* SIGCHLD is ignored: nobody learns of it */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}
