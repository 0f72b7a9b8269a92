/*
 * sweep: kills, and stops, one gpulease at each of its system calls, and checks that the other
 * clients go on.  Lets each system call of a job that waits fail once, with each errno that the
 * call can give, and checks that the job still runs.
 *
 *	sweep [--quick] [--situation TEXT] [--mode kill|stop|fail] [--point N] [--users UID,DIR]
 *		[--every N] [-v]
 *
 * --users: gpulease is the set-group-ID program whose state directory is DIR; the victim runs as
 * user UID; the holder, the waiter and the other clients run as the users after it.  Needs root
 * and a mount namespace of its own, as every worker mounts a DIR of its own.  --every: only every
 * Nth call.
 *
 * --quick: only the situations of a quick check; --situation: only the situations whose name has
 * TEXT.  Every point is tried in a state directory that only its worker uses; there are four
 * workers.  After the victim is killed, a request for all GPUs starts and no lease is left.
 * While the victim is stopped, the others start on every GPU that it had not locked; once it is
 * killed, on all.  If it joins another job on a GPU, the lease of that job stays the same, byte
 * for byte, and just the rest of that GPU can be leased (oracle.h).
 *
 * A call fails only from the ticket of the victim to its lease, and only such calls count as points
 * then.  With --quick, each point has one errno, which differs from point to point.
 */
#include "clock.h"
#include "gpu_hours.h"
#include "oracle.h"
#include "statedir.h"
#include "trace.h"

#include <getopt.h>
#include <sched.h>
#include <sys/mount.h>

enum { WORKERS = 4, CARD_MIB = 24576 }; /* more than the CPUs, as they mostly wait */
enum { WORDS_SIZE = 256 };

enum mode { MODE_KILL, MODE_STOP, MODE_FAIL, MODES };
static const char *const mode_names[MODES] = { "kill", "stop", "fail" };

enum target { TARGET_NONE, TARGET_WAITER, TARGET_HOLDER };

static const struct situation {
	const char *name;
	bool quick;
	bool fresh;  /* there is no state directory yet */
	bool dead;   /* a killed job has left its lease */
	bool holder; /* a job has all GPUs, until the victim waits for it or is halted */
	bool behind; /* a client joins behind the victim */
	bool low;    /* and comes before it, as the victim has a low priority */
	bool shares; /* a job has a share of GPU 0, and the victim is to join it there */
	bool dead_sharer;    /* another job had a share of GPU 0, and has died */
	enum target cancels; /* the job that the victim cancels */
	bool submits;        /* the victim submits its job to the background */
	bool follows;        /* the background process is halted, not its caller */
	enum { PLAIN, REPORTED, RETRIED } care; /* the supervisor of the victim's job */
	bool fails;                             /* its calls fail, too */
	bool fair; /* the victim counts as having come later, and takes a new ticket */
	const char *verb;   /* the victim's, instead of a job of 4 GPUs */
	const char *others; /* GPUs that it leaves to the others wherever it is stopped */
} situations[] = {
	{ .name = "alone", .quick = true, .fresh = true, .others = "4" },
	{ .name = "behind a holder",
		.quick = true,
		.holder = true,
		.fails = true,
		.others = "4" },
	{ .name = "with a waiter behind", .holder = true, .behind = true, .others = "4" },
	{ .name = "taking another place in the queue",
		.holder = true,
		.behind = true,
		.fails = true,
		.fair = true,
		.others = "4" },
	{ .name = "behind, but of lower priority",
		.holder = true,
		.behind = true,
		.low = true,
		.others = "4" },
	{ .name = "beside a sharer", .shares = true, .others = "7" },
	{ .name = "beside a sharer and a dead one",
		.shares = true,
		.dead_sharer = true,
		.others = "7" },
	{ .name = "with a dead lease to reclaim",
		.dead = true,
		.fails = true,
		.others = "4" },
	{ .name = "submitting", .quick = true, .submits = true, .others = "4" },
	{ .name = "submitted",
		.quick = true,
		.submits = true,
		.follows = true,
		.others = "4" },
	{ .name = "submitted with a holder",
		.holder = true,
		.submits = true,
		.follows = true,
		.others = "4" },
	{ .name = "as a supervisor", .care = REPORTED, .others = "4" },
	{ .name = "as a supervisor that tries again",
		.fails = true,
		.care = RETRIED,
		.others = "4" },
	{ .name = "while pausing", .verb = "--pause", .others = "7" },
	{ .name = "while cancelling a waiting job",
		.holder = true,
		.verb = "--cancel",
		.cancels = TARGET_WAITER,
		.others = "8" },
	{ .name = "while cancelling a running job",
		.holder = true,
		.verb = "--cancel",
		.cancels = TARGET_HOLDER,
		.others = "7" }, /* it records the end */
};

/* A job whose command runs until its stdin ends. */
struct job {
	pid_t pid;
	int go;
	int said; /* its stdout (holder) or stderr (waiter) */
};

#define JOB_NONE ((struct job){ .go = -1, .said = -1 })

struct stage {
	const struct situation *situation;
	struct job holder, waiter, sharer;
	char lease[512]; /* the sharer's record in the file of GPU 0 */
	off_t lease_at;
	struct trace victim;
	char id[24];
	bool is_waiting;       /* MODE_FAIL: the victim has its ticket and no lease */
	unsigned point, calls; /* the call that fails, of so many so far */
	unsigned choice;       /* which of its errnos */
	unsigned errors;       /* how many it has */
	int failed_with;       /* 0: no call has failed */
	uint64_t failed_call;
	int64_t slowest_ns; /* of the others, while the victim was stopped */
	char why[400];      /* empty: all is well */
};

struct outcome {
	unsigned points, failed_at;
	int64_t slowest_ns;
	char why[400];
};

static bool verbose, is_quick;
static unsigned every = 1; /* how far apart the points are */
static int null = -1;      /* /dev/null */
static char state_home[SCRATCH_SIZE];
static const char *config;

/* The set-group-ID form; uid 0: not tested. */
static struct {
	uid_t victim, others;
	const char *dir;
} users;

/* The stderr of clients, for tool_spawn(). */
static int quiet(void)
{
	return verbose ? -1 : null;
}

/* Keeps the first reason; returns false. */
static bool PRINTF_LIKE(2, 3) fail(struct stage *s, const char *format, ...)
{
	va_list arguments;

	if (!s->why[0]) {
		va_start(arguments, format);
		(void)vsnprintf(s->why, sizeof(s->why), format, arguments);
		va_end(arguments);
	}
	return false;
}

/* --- the set-group-ID form ---------------------------------------------------------- */

/* An empty state directory that only this worker sees. */
static void mount_state(void)
{
	char options[64];
	struct stat st;

	if (stat(tool_gpulease(), &st) < 0 || !(st.st_mode & S_ISGID))
		die("'%s' is not set-group-ID", tool_gpulease());
	(void)snprintf(options, sizeof(options), "mode=2770,uid=0,gid=%u", st.st_gid);
	(void)umount2(users.dir, MNT_DETACH);
	if (mount("sweep", users.dir, "tmpfs", 0, options) < 0)
		die("cannot mount a tmpfs over '%s': %s", users.dir, strerror(errno));
}

static void use_users(void)
{
	if (unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("cannot have mounts of our own: %s", strerror(errno));
	/* an earlier mount there stays below this one */
	if (mount(users.dir, users.dir, NULL, MS_BIND, NULL) < 0)
		die("cannot mount over '%s': %s", users.dir, strerror(errno));
	mount_state();
	*tool_user() = users.others;
}

/* A configuration with which jobs are tried again at once. */
static void write_config(const char *place)
{
	static const char text[] = "retry-delay = 1ms\nfair-share = 1h/7d/24h\n";
	static char path[SCRATCH_SIZE + 16];
	autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/conf", place);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
		die("cannot write '%s': %s", path, strerror(errno));
	config = path;
}

/* Makes a directory for the state of one worker's clients and for the files of the oracle. */
static void use_scratch(void)
{
	static char place[SCRATCH_SIZE];

	tool_scratch(state_home);
	/* where the logs of the victim's jobs are */
	if (users.victim && chown(state_home, users.victim, (gid_t)-1) < 0)
		die("cannot give '%s' away: %s", state_home, strerror(errno));
	(void)setenv("XDG_STATE_HOME", state_home, 1);
	tool_scratch(place);
	(void)chmod(place, 0777);
	(void)setenv("SWEEP_PLACE", place, 1);
	write_config(place);
	if (users.victim)
		use_users();
}

static void remove_scratch(void)
{
	remove_tree(state_home);
	remove_tree(getenv("SWEEP_PLACE"));
}

/* --- jobs --------------------------------------------------------------------------- */

/* `gpulease OPTION… -- sweep --hold`, which tells its id and waits; @said_of: 1 or 2. */
static struct job job_start(const char *const options[], int said_of)
{
	const char *argv[12] = { tool_gpulease() };
	struct job job = JOB_NONE;
	int go[2], said[2];
	size_t n = 1;

	for (size_t i = 0; options[i]; i++)
		argv[n++] = options[i];
	argv[n++] = "--";
	argv[n++] = tool_self();
	argv[n++] = "--hold";
	argv[n] = NULL;
	tool_pipe(go);
	tool_pipe(said);
	job.pid = tool_spawn(argv, go[0], said_of == 1 ? said[1] : null,
		said_of == 2 ? said[1] : quiet());
	(void)close(go[0]);
	(void)close(said[1]);
	job.go = go[1];
	job.said = said[0];
	return job;
}

/* Claims @percent of each GPU that this command was given. */
static bool claim(unsigned percent)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES"), *id = getenv("GPULEASE_ID");
	const char *place = getenv("SWEEP_PLACE");
	struct oracle_use use =
		oracle_use_of(id ? number(id, "id") : 0, percent, 0, CARD_MIB);
	char gpu[64], why[320];

	if (!place || chdir(place) < 0)
		return false;
	(void)umask(0);
	while (list && *list) {
		size_t size = strcspn(list, ",");

		(void)snprintf(gpu, sizeof(gpu), "%.*s", (int)size, list);
		if (!oracle_claim(gpu, &use, CARD_MIB, why, sizeof(why))) {
			(void)fprintf(stderr, "%s", why);
			return false;
		}
		list += size + (list[size] ? 1 : 0);
	}
	return true;
}

/* The command of a holder. */
static int hold(void)
{
	const char *id = getenv("GPULEASE_ID"), *share = getenv("SWEEP_SHARE");
	char byte;

	if (!claim(share ? (unsigned)number(share, "share") : 100))
		return 1;
	(void)printf("%s\n", id ? id : "?");
	(void)fflush(stdout);
	return read(0, &byte, 1) < 0;
}

/* Lets the job end; it must end soon, and with status 0 unless it was to be cancelled. */
static bool job_end(struct stage *s, struct job *job)
{
	bool holder = job == &s->holder;
	const char *who = holder              ? "the holder"
			  : job == &s->sharer ? "the sharer"
					      : "the waiter";
	enum target target = holder ? TARGET_HOLDER : TARGET_WAITER;
	int status = 0;

	close_fd(&job->go);
	if (job->pid && tool_await(job->pid, now_ns() + DEADLINE_NS, &status))
		return fail(s, "%s does not end", who);
	job->pid = 0;
	close_fd(&job->said);
	if (status && s->situation->cancels != target)
		return fail(s, "%s failed with status %#x", who, (unsigned)status);
	return true;
}

static void job_kill(struct job *job)
{
	tool_kill(&job->pid);
	close_fd(&job->go);
	close_fd(&job->said);
}

/*
 * Runs gpulease with these arguments to its end.  Returns its status; -1 if it does not end soon.
 * Its output is in @words.
 */
static int client_words(const char *const arguments[], char words[WORDS_SIZE])
{
	const char *argv[12] = { tool_gpulease() };
	int said[2], status = -1;
	ssize_t size;
	pid_t pid;

	for (size_t i = 0; arguments[i]; i++)
		argv[i + 1] = arguments[i];
	tool_pipe(said);
	pid = tool_spawn(argv, null, null, said[1]);
	(void)close(said[1]);
	if (tool_await(pid, now_ns() + DEADLINE_NS, &status)) {
		tool_kill(&pid);
		status = -1;
	}
	(void)fcntl(said[0], F_SETFL, O_NONBLOCK);
	size = read(said[0], words, WORDS_SIZE - 1);
	words[size > 0 ? size : 0] = '\0';
	for (char *end = words; (end = strchr(end, '\n')); end++)
		*end = ' ';
	(void)close(said[0]);
	return status;
}

static int client_status(const char *const arguments[])
{
	char words[WORDS_SIZE];

	return client_words(arguments, words);
}

/* The same, and its status must be 0. */
static bool client(struct stage *s, const char *who, const char *const arguments[])
{
	char words[WORDS_SIZE];
	int status = client_words(arguments, words);

	if (status < 0)
		return fail(s, "%s hangs: %s", who, words);
	if (status)
		return fail(
			s, "%s failed with status %#x: %s", who, (unsigned)status, words);
	return true;
}

static const char *const all[] = { "-n", "8", "--", "true", NULL };
static const char *const now[] = { "--immediate", "-n", "8", "--", "true", NULL };

static bool clients_on_all(struct stage *s)
{
	return client(s, "a client of all GPUs", all) &&
	       client(s, "an immediate client of all GPUs", now);
}

/* --- the stage ---------------------------------------------------------------------- */

/* The path of a file in the state directory. */
static void state_path(const char *name, char *path, size_t size)
{
	if (users.victim)
		(void)snprintf(path, size, "%s/%s", users.dir, name);
	else
		(void)snprintf(
			path, size, "%s/gpulease/sim-8x24576/%s", state_home, name);
}

/* The number of the last ticket. */
static bool last_ticket(struct stage *s)
{
	char path[SCRATCH_SIZE + 64];
	struct stat st;

	state_path("tickets", path, sizeof(path));
	if (stat(path, &st) < 0 || st.st_size < 512)
		return fail(s, "cannot look at '%s'", path);
	(void)snprintf(s->id, sizeof(s->id), "%lld", (long long)st.st_size / 512 - 1);
	return true;
}

/* Starts a job that runs; sets ->id to its id. */
static bool start_running(
	struct stage *s, struct job *job, const char *const options[], const char *share)
{
	ssize_t got;

	(void)setenv("SWEEP_SHARE", share, 1);
	*job = job_start(options, 1);
	(void)unsetenv("SWEEP_SHARE");
	if (tool_readable(job->said, now_ns() + DEADLINE_NS))
		return fail(s, "the holder does not start");
	got = read(job->said, s->id, sizeof(s->id) - 1);
	if (got < 2)
		return fail(s, "the holder ends at once");
	s->id[got - 1] = '\0';
	return true;
}

static bool start_holder(struct stage *s)
{
	static const char *const options[] = { "-n", "8", NULL };

	return start_running(s, &s->holder, options, "100");
}

/* The record at @at in the file of GPU 0. */
static bool read_lease(struct stage *s, off_t at, char record[512])
{
	char path[SCRATCH_SIZE + 64];
	autofd int fd = -1;

	state_path("gpu/slot.0", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, record, 512, at) != 512)
		return fail(s, "cannot read '%s'", path);
	return true;
}

/* The victim's user has had ten GPU-hours today. */
static bool add_hours(struct stage *s)
{
	int64_t now_ms = clock_boot_ms();
	struct lease lease = { .owner.uid = (uint32_t)getuid(),
		.since_ms = now_ms - 10 * 3600 * 1000 };
	struct statedir dir = STATEDIR_NONE;
	char path[SCRATCH_SIZE + 64];
	autofd int fd = -1;

	state_path(".", path, sizeof(path));
	dir.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	gpuset_add(&lease.gpus, 0);
	if (dir.fd >= 0)
		fd = gpu_hours_open(&dir);
	close_fd(&dir.fd);
	if (fd < 0 || gpu_hours_add(fd, &lease, now_ms) < 0)
		return fail(s, "cannot write '%s/usage'", path);
	return true;
}

/* Starts a job with 40 percent of GPU 0; before it perhaps one with 30 percent, which is killed. */
static bool start_sharer(struct stage *s)
{
	static const char *const some[] = { "-n", "0.3", "--gpu-ids", "0", NULL };
	static const char *const more[] = { "-n", "0.4", "--gpu-ids", "0", NULL };
	struct job dead = JOB_NONE;
	char words[48];

	if (s->situation->dead_sharer && !start_running(s, &dead, some, "30"))
		return false;
	if (!start_running(s, &s->sharer, more, "40"))
		return false;
	job_kill(&dead);
	(void)snprintf(words, sizeof(words), "lease/1 ticket=%.20s ", s->id);
	for (s->lease_at = 512; s->lease_at < 32 * 512; s->lease_at += 512) {
		if (!read_lease(s, s->lease_at, s->lease))
			return false;
		if (!strncmp(s->lease, words, strlen(words)))
			return true;
	}
	return fail(s, "the sharer has no lease on GPU 0");
}

/* Starts a client that wants the GPUs left to it; returns when it waits or has started. */
static bool start_waiter(struct stage *s)
{
	static const char *const options[] = { "-n", "4", NULL };

	s->waiter = job_start(options, 2);
	close_fd(&s->waiter.go); /* its command ends as soon as it runs */
	if (tool_readable(s->waiter.said, now_ns() + DEADLINE_NS))
		return fail(s, "the waiter neither says that it waits nor ends");
	return true;
}

static bool set_up(struct stage *s)
{
	const struct situation *situation = s->situation;

	/* this process reaps the job in the background */
	if (prctl(PR_SET_CHILD_SUBREAPER, situation->submits ? 1 : 0) < 0)
		die("prctl: %s", strerror(errno));
	if (situation->fresh && users.victim) {
		mount_state();
	} else if (situation->fresh) {
		remove_tree(state_home);
		(void)mkdir(state_home, 0700);
	} else if (!clients_on_all(s)) {
		return false;
	}
	if (situation->dead) {
		if (!start_holder(s))
			return false;
		job_kill(&s->holder);
	}
	if (situation->holder && !start_holder(s))
		return false;
	if (situation->shares && !start_sharer(s))
		return false;
	if (situation->fair && !add_hours(s))
		return false;
	if (situation->cancels == TARGET_WAITER)
		return start_waiter(s) && last_ticket(s);
	return true;
}

/* --- calls that fail ---------------------------------------------------------------- */

enum { ERRORS_MOST = 8 };

/* What a call can give although nothing is wrong with its arguments. */
static const struct call_errors {
	long number;
	int errors[ERRORS_MOST + 1];
} call_errors[] = {
	{ SYS_openat, { EMFILE, ENFILE, ENOMEM, EIO, ENOENT, ELOOP, ENOSPC, EROFS } },
	{ SYS_readlinkat, { ENOENT, EIO, ENOMEM, ELOOP } },
	{ SYS_newfstatat, { ENOENT, EIO, ENOMEM, ELOOP } },
	{ SYS_fstat, { EIO, ENOMEM } },
	{ SYS_fstatfs, { EIO } },
	{ SYS_lseek, { EIO } },
	{ SYS_pread64, { EIO } },
	{ SYS_read, { EIO } },
	{ SYS_pwrite64, { EIO, ENOSPC, EDQUOT, EROFS } },
	{ SYS_write, { EIO, ENOSPC, EDQUOT, EFBIG } },
	{ SYS_ftruncate, { EIO, ENOSPC } },
	{ SYS_fallocate, { EIO, ENOSPC } },
	{ SYS_flock, { ENOLCK, EINTR, EIO, ENOMEM } },
	{ SYS_fcntl, { ENOLCK } },
	{ SYS_getdents64, { EIO, ENOMEM } },
	{ SYS_mkdirat, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_mknodat, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_symlinkat, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_linkat, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_renameat, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_renameat2, { ENOSPC, EDQUOT, EROFS, EIO } },
	{ SYS_unlinkat, { EROFS, EIO } },
	{ SYS_fchmod, { EROFS, EIO } },
	{ SYS_pidfd_open, { EMFILE, ENFILE, ENOMEM } },
	{ SYS_timerfd_create, { EMFILE, ENFILE, ENOMEM } },
	{ SYS_signalfd4, { EMFILE, ENFILE, ENOMEM } },
	{ SYS_ppoll, { ENOMEM, EINTR } },
#ifdef SYS_poll
	{ SYS_poll, { ENOMEM, EINTR } },
#endif
	{ SYS_mmap, { ENOMEM } },
	{ SYS_clock_nanosleep, { EINTR } },
};

/* For the trace: the errno of the call that begins. */
static int error_of_call(void *arg, uint64_t number)
{
	struct stage *s = arg;
	const int *errors = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(call_errors); i++)
		if ((uint64_t)call_errors[i].number == number)
			errors = call_errors[i].errors;
	/* where the position is only asked for, lseek() cannot fail */
	if (number == SYS_lseek && s->victim.call.arguments[2] == SEEK_CUR)
		return 0;
	/* the sanitizer itself ends a process that cannot map memory */
	if (IS_SANITIZED && number == SYS_mmap)
		return 0;
	if (!s->is_waiting || !errors || s->failed_with || ++s->calls != s->point)
		return 0;
	for (s->errors = 0; errors[s->errors];)
		s->errors++;
	s->failed_call = number;
	s->failed_with = errors[s->choice % s->errors];
	return s->failed_with;
}

static void start_victim(struct stage *s, enum mode mode)
{
	static const char *const whole[] = { "-n", "4", "--", "true", NULL };
	static const char *const low[] = { "--priority", "-1", "-n", "4", "--", "true",
		NULL };
	static const char *const back[] = { "--submit", "-n", "4", "--", "true", NULL };
	const char *const share[] = { "-n", "0.5", "--", tool_self(), "--claim", "50",
		NULL };
	static const char *const reported[] = { "-Q", "--report", "-n", "4", "--", "true",
		NULL };
	const char *const late[] = { "--config", config, "-n", "4", "--", "true", NULL };
	const char *const retried[] = { "-Q", "--config", config, "--retries", "2", "-n",
		"4", "--", "sh", "-c", "[ $GPULEASE_ATTEMPT = 2 ]", NULL };
	const char *const *job = s->situation->shares             ? share
				 : s->situation->care == REPORTED ? reported
				 : s->situation->care == RETRIED  ? retried
				 : s->situation->submits          ? back
				 : s->situation->low              ? low
				 : s->situation->fair             ? late
								  : whole;
	const char *const verb[] = { s->situation->verb,
		s->situation->cancels ? s->id : "0", NULL };
	const char *const *arguments = s->situation->verb ? verb : job;
	const char *argv[16] = { tool_gpulease() };

	for (size_t i = 0; arguments[i]; i++)
		argv[i + 1] = arguments[i];
	*tool_user() = users.victim;
	s->victim.follows = s->situation->follows;
	s->victim.in_rows = mode != MODE_FAIL;
	if (mode == MODE_FAIL) {
		s->victim.error = error_of_call;
		s->victim.error_arg = s;
	}
	trace_start(&s->victim, argv, null, quiet());
	*tool_user() = users.others;
}

/* The victim waits for a blocker: a client joins behind the victim, and the blocker ends. */
static bool unblock(struct stage *s)
{
	if (s->situation->behind && !s->waiter.pid && !start_waiter(s))
		return false;
	if (s->holder.pid && s->situation->cancels != TARGET_HOLDER)
		return job_end(s, &s->holder);
	return true;
}

/*
 * Takes the victim to right before its call number @point.  TRACE_RESTS: it is there;
 * TRACE_BLOCKED: it hangs; else it has ended before that call, as trace_next() says.
 */
static int reach(struct stage *s, unsigned point)
{
	int64_t deadline = now_ns() + DEADLINE_NS;
	bool running = false;
	int r = TRACE_RESTS;

	while (s->victim.at < point) {
		r = trace_next(&s->victim, true, &running);
		if (r == TRACE_EXECED || r == TRACE_ENDED)
			return r;
		if (r == TRACE_BLOCKED && (!unblock(s) || now_ns() > deadline))
			return r;
	}
	return TRACE_RESTS;
}

/* --- calls that fail, as they are made ------------------------------------------------ */

/* The victim has made a call: notes that it has taken a ticket, or has its GPUs. */
static void note_call(struct stage *s)
{
	const struct trace_entry *call = &s->victim.call;
	char record[513] = "";

	if ((call->number != SYS_write && call->number != SYS_pwrite64) ||
		call->arguments[2] != 512 || s->victim.fails_with ||
		!trace_read(&s->victim, 1, record, 512) || memcmp(record, "ticket/", 7))
		return;
	if (call->number == SYS_write)
		s->is_waiting = true;
	else if (strstr(record, " state=2 "))
		s->is_waiting = false;
}

/* Lets the victim run to its end, or until its command runs, as trace_next() says. */
static int run_through(struct stage *s)
{
	int64_t deadline = now_ns() + 2 * DEADLINE_NS;
	bool running = false;
	int r;

	for (;;) {
		r = trace_next(&s->victim, true, &running);
		if (r == TRACE_EXECED || r == TRACE_ENDED)
			return r;
		if (r == TRACE_RESTS)
			note_call(s);
		if (r == TRACE_BLOCKED && (!unblock(s) || now_ns() > deadline))
			return r;
	}
}

/* --- what has to hold --------------------------------------------------------------- */

static bool others_get_through(struct stage *s)
{
	const char *const arguments[] = { "-n", s->situation->others, "--", "true",
		NULL };
	int64_t begun = now_ns();

	if (!client(s, "another client beside the stopped one", arguments))
		return false;
	s->slowest_ns = max_i64(s->slowest_ns, now_ns() - begun);
	if (tool_state(s->victim.pid) != 'T')
		return fail(s, "the victim did not stay stopped");
	return true;
}

/* The sharer still has its share of GPU 0; the rest of GPU 0 can be leased, and no more. */
static bool sharer_is_well(struct stage *s)
{
	const char *const rest[] = { "-n", "0.6", "--gpu-ids", "0", "--", tool_self(),
		"--claim", "60", NULL };
	static const char *const more[] = { "--immediate", "-n", "0.61", "--gpu-ids", "0",
		"true", NULL };
	char lease[512];
	int status;

	if (!s->situation->shares)
		return true;
	/* on a busy machine the sharer may not even sleep yet */
	if (tool_state(s->sharer.pid) == 'T' ||
		waitpid(s->sharer.pid, NULL, WNOHANG) != 0)
		return fail(s, "the sharer does not run any more");
	if (!client(s, "a client of the rest of GPU 0", rest))
		return false;
	status = client_status(more);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 124)
		return fail(s, "a client of more than that ended with status %#x",
			(unsigned)status);
	if (!read_lease(s, s->lease_at, lease))
		return false;
	if (memcmp(lease, s->lease, sizeof(lease)) != 0)
		return fail(s, "the lease of the sharer has changed");
	return job_end(s, &s->sharer);
}

/* The next client must undo all that the victim had begun. */
static bool all_is_well(struct stage *s)
{
	static const char *const resume[] = { "--resume", "0", NULL };
	static const char *const pause[] = { "--pause", "0", NULL };

	if (s->situation->verb && !strcmp(s->situation->verb, "--pause") &&
		(!client(s, "--pause", pause) || !client(s, "--resume", resume)))
		return false;
	return clients_on_all(s);
}

/* The processes that the victim has left in the background must end by themselves. */
static bool strays_end(struct stage *s)
{
	int64_t deadline = now_ns() + DEADLINE_NS;
	pid_t got;

	if (!s->situation->submits)
		return true;
	while ((got = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (now_ns() > deadline)
			return fail(s, "what the victim has started does not end");
		if (got == 0)
			tool_doze(NS_PER_MS);
	}
	return true;
}

static bool halted(struct stage *s, enum mode mode)
{
	int64_t freed_ns;
	bool good = true;

	if (s->situation->behind && !s->waiter.pid)
		good = start_waiter(s);
	if (mode == MODE_STOP)
		trace_stop(&s->victim);
	else
		tool_kill(&s->victim.pid);
	good = good && job_end(s, &s->holder);
	freed_ns = now_ns();
	good = good && job_end(s, &s->waiter);
	/* the waiter comes first: passing over another ticket would take three seconds */
	if (s->situation->low && now_ns() - freed_ns > 5 * NS_PER_S / 2)
		good = fail(s, "the waiter has waited for one behind it");
	if (mode == MODE_STOP)
		good = good && others_get_through(s);
	tool_kill(&s->victim.pid);
	return good && strays_end(s) && sharer_is_well(s) && all_is_well(s);
}

/* The verb of the victim has had its effect: no other process can have caused it. */
static bool verb_has_worked(struct stage *s)
{
	struct job *job =
		s->situation->cancels == TARGET_HOLDER ? &s->holder : &s->waiter;
	int status = 0;

	if (!s->situation->cancels)
		return client_status(now) > 0 || fail(s, "the GPU is not paused");
	if (tool_await(job->pid, now_ns() + DEADLINE_NS, &status))
		return fail(s, "the cancelled job goes on");
	job->pid = 0;
	return status != 0 || fail(s, "the cancelled job ended well");
}

/* The victim was not halted: its own job must work, too. */
static bool came_through(struct stage *s, int reached)
{
	int status = s->victim.status;

	if (reached == TRACE_EXECED) {
		trace_detach(&s->victim);
		if (tool_await(s->victim.pid, now_ns() + DEADLINE_NS, &status))
			return fail(s, "the victim does not end");
	}
	s->victim.pid = 0;
	if (status)
		return fail(s, "the victim failed with status %#x", (unsigned)status);
	if (s->situation->verb && !verb_has_worked(s))
		return false;
	return job_end(s, &s->holder) && job_end(s, &s->waiter) && strays_end(s) &&
	       sharer_is_well(s) && all_is_well(s);
}

/* Halts the victim at @point.  Returns as try_point(). */
static bool halt_at(struct stage *s, enum mode mode, unsigned point)
{
	int reached = reach(s, point);

	if (reached == TRACE_BLOCKED)
		(void)fail(s, "the victim hangs");
	else if (reached == TRACE_RESTS)
		(void)halted(s, mode);
	else
		(void)came_through(s, reached);
	return reached == TRACE_RESTS;
}

/* Lets the call ->point of the victim's turns fail.  Returns as try_point(). */
static bool fail_at(struct stage *s)
{
	int reached = run_through(s);
	char why[sizeof(s->why)];

	if (reached == TRACE_BLOCKED)
		(void)fail(s, "the victim hangs");
	else
		(void)came_through(s, reached);
	if (s->why[0] && s->failed_with) {
		memcpy(why, s->why, sizeof(why));
		(void)snprintf(s->why, sizeof(s->why),
			"system call %d, errno %d (%s): %.300s", (int)s->failed_call,
			s->failed_with, strerror(s->failed_with), why);
	}
	return s->failed_with != 0;
}

/* Tries one point.  Returns whether the victim reached it; false: it ended before. */
static bool try_point(struct stage *s, enum mode mode, unsigned point)
{
	bool is_there = false;

	s->holder = s->waiter = s->sharer = JOB_NONE;
	s->victim = (struct trace){ 0 };
	s->is_waiting = false;
	s->calls = 0;
	s->failed_with = 0;
	s->point = point;
	if (set_up(s)) {
		start_victim(s, mode);
		is_there = mode == MODE_FAIL ? fail_at(s) : halt_at(s, mode, point);
	}
	tool_kill(&s->victim.pid);
	job_kill(&s->waiter);
	job_kill(&s->holder);
	job_kill(&s->sharer);
	return is_there;
}

/* Tries one point, and every errno if calls fail.  Returns as try_point(). */
static bool try_errors(struct stage *s, enum mode mode, unsigned point)
{
	bool is_there = true;

	s->errors = 1;
	s->choice = is_quick ? point / every : 0;
	do {
		is_there = try_point(s, mode, point);
		s->choice++;
	} while (is_there && !s->why[0] && !is_quick && s->choice < s->errors);
	return is_there;
}

/* --- workers ------------------------------------------------------------------------ */

/* Tries every @step-th point from @first on, until the victim ends before it or a point fails. */
static struct outcome sweep(
	const struct situation *situation, enum mode mode, unsigned first, unsigned step)
{
	struct stage s = { .situation = situation };
	struct outcome outcome = { 0 };

	for (unsigned point = first;; point += step) {
		bool there = try_errors(&s, mode, point);

		if (s.why[0]) {
			outcome.failed_at = point;
			break;
		}
		if (!there)
			break;
		outcome.points++;
		if (!step)
			break;
	}
	outcome.slowest_ns = s.slowest_ns;
	memcpy(outcome.why, s.why, sizeof(outcome.why));
	return outcome;
}

/* Starts a worker with a state directory of its own; returns the pipe of its outcome. */
static int start_worker(const struct situation *situation, enum mode mode, unsigned first,
	unsigned step, pid_t *ret_pid)
{
	struct outcome outcome;
	int ends[2];

	tool_pipe(ends);
	(void)fflush(stdout);
	*ret_pid = fork();
	if (*ret_pid < 0)
		die("fork: %s", strerror(errno));
	if (*ret_pid > 0) {
		(void)close(ends[1]);
		return ends[0];
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	use_scratch();
	outcome = sweep(situation, mode, first, step);
	remove_scratch();
	_exit(write(ends[1], &outcome, sizeof(outcome)) != sizeof(outcome));
}

static void report(
	const struct situation *situation, enum mode mode, const struct outcome *outcome)
{
	static const char *const words[MODES] = { "killed", "stopped", "with an errno" };
	/* Loading a program takes more calls than that: with fewer, nothing was tested. */
	bool passed = !outcome->failed_at && outcome->points * every >= 20;

	(void)tap_result(passed,
		"gpulease %s at every system call: %s (%u points, slowest other client %d ms)",
		words[mode], situation->name, outcome->points,
		(int)(outcome->slowest_ns / NS_PER_MS));
	if (outcome->failed_at)
		(void)printf("# before call %u: %s\n"
			     "# again: %s --situation '%s' --mode %s --point %u -v%s\n",
			outcome->failed_at, outcome->why, tool_self(), situation->name,
			mode_names[mode], outcome->failed_at,
			users.victim ? " --users UID,DIR" : "");
}

static void run_situation(const struct situation *situation, enum mode mode)
{
	struct outcome sum = { 0 }, one;
	pid_t pids[WORKERS];
	int from[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++)
		from[i] = start_worker(
			situation, mode, i * every + 1, WORKERS * every, &pids[i]);
	for (unsigned i = 0; i < WORKERS; i++) {
		if (read(from[i], &one, sizeof(one)) != sizeof(one))
			die("a worker has died");
		(void)waitpid(pids[i], NULL, 0);
		(void)close(from[i]);
		sum.points += one.points;
		sum.slowest_ns = max_i64(sum.slowest_ns, one.slowest_ns);
		if (one.failed_at && (!sum.failed_at || one.failed_at < sum.failed_at)) {
			sum.failed_at = one.failed_at;
			memcpy(sum.why, one.why, sizeof(sum.why));
		}
	}
	report(situation, mode, &sum);
}

/* Tries one point alone in this process, to find the cause of a failure. */
static int run_point(const struct situation *situation, enum mode mode, unsigned point)
{
	struct outcome outcome;

	use_scratch();
	outcome = sweep(situation, mode, point, 0);
	(void)tap_result(!outcome.failed_at, "%s before call %u: %s (%s)",
		mode_names[mode], point, situation->name,
		outcome.why[0]   ? outcome.why
		: outcome.points ? "the other clients went on"
				 : "it had ended before that call");
	remove_scratch();
	return tap_end();
}

struct choice {
	const char *situation;
	unsigned modes; /* bits */
	unsigned point;
	bool quick;
};

/* A user cannot cancel another user's job, and only root pauses a GPU. */
static bool is_chosen(const struct situation *situation, const struct choice *choice)
{
	return strstr(situation->name, choice->situation) &&
	       (!choice->quick || situation->quick) &&
	       (!users.victim ||
		       (!situation->verb && !situation->care && !situation->fair));
}

static unsigned mode_bit(const char *name)
{
	for (enum mode mode = 0; mode < MODES; mode++)
		if (!strcmp(name, mode_names[mode]))
			return 1u << mode;
	die("--mode: '%s' is none", name);
}

static struct choice parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "situation", required_argument, NULL, 's' },
		{ "mode", required_argument, NULL, 'm' },
		{ "point", required_argument, NULL, 'p' },
		{ "every", required_argument, NULL, 'e' },
		{ "users", required_argument, NULL, 'u' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct choice choice = { .situation = "", .modes = (1u << MODES) - 1 };
	int option;

	while ((option = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		if (option == 'q')
			choice.quick = is_quick = true;
		else if (option == 's')
			choice.situation = optarg;
		else if (option == 'm')
			choice.modes = mode_bit(optarg);
		else if (option == 'p')
			choice.point = (unsigned)number(optarg, "point");
		else if (option == 'e')
			every = (unsigned)max_i64((int64_t)number(optarg, "every"), 1);
		else if (option == 'u')
			users.dir = tool_users(optarg, &users.victim);
		else if (option == 'v')
			verbose = true;
		else
			exit(TOOL_MISUSE);
	}
	return choice;
}

int main(int argc, char **argv)
{
	struct choice choice;

	if (argc == 2 && !strcmp(argv[1], "--hold"))
		return hold();
	if (argc == 3 && !strcmp(argv[1], "--claim"))
		return claim((unsigned)number(argv[2], "share")) ? 0 : 1;
	choice = parse(argc, argv);
	tool_init();
	tool_clean_environment();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!users.victim)
		(void)setenv("GPULEASE_SIM", "8", 1);
	(void)tool_gpulease();
	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		if (!is_chosen(&situations[i], &choice))
			continue;
		for (enum mode mode = 0; mode < MODES; mode++) {
			if (!(choice.modes & 1u << mode) ||
				(mode == MODE_FAIL &&
					(!situations[i].fails || !trace_can_fail())))
				continue;
			if (choice.point)
				return run_point(&situations[i], mode, choice.point);
			run_situation(&situations[i], mode);
		}
	}
	return tap_end();
}
