/*
 * storm: starts jobs in all the ways that people start them, on one set of GPUs.  The oracle is the
 * jobs themselves.
 *
 *	storm [--seed S] [--jobs N] [--clients N] [--gpus N] [--plain] [--users UID,DIR]
 *		[--beside GPULEASE] [-v]
 *
 * The ways: plain, with a time limit, supervised, tried again, in the background, as lines of a
 * jobs file, after another job, in a pid namespace of their own, preemptible with a handler that
 * saves and exits 0, and through launchers that close every descriptor and end before their
 * worker does.  Some clients are killed (so supervised commands lose their parent), some are
 * stopped for a while, and some cannot see the GPUs for a while: an address-space limit makes
 * their nvidia-smi fail.
 *
 * The oracle.  Each job holds a flock on a file for each of its GPUs and on one for itself, for
 * as long as it lives, and says in shared memory what it did:
 *
 *	a GPU is given to one lease at a time, and no job runs twice at once
 *	a job gets as many GPUs as it asked for
 *	a job that has finished does not run again, and a client that ends has finished its job
 *	the exit status is the job's own, for the client and for --wait-for
 *	--after-ok starts a job if and only if the other one ended with 0
 *	there is never a standstill of 60 s
 *
 * --plain: without record-ends, and so without pid namespaces: a waiter in a namespace of its
 * own cannot see a worker that holds no FIFO, unless a watchdog holds that for it.
 * --users: the program is set-group-ID and its state directory is DIR; clients are three users,
 * the first of which is UID.
 * --beside: half of the clients run this other gpulease, of an earlier version.  Then only promises
 * of both versions are tested: no launchers, no preemption, and no ends that are looked up.
 *
 * Killed here: the jobs end within a second or two; the scratch directory stays.
 */
#include "owner.h"
#include "tool.h"

#include <getopt.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MAX_JOBS = 20000, MAX_CLIENTS = 64, USERS = 3, LINES = 3, LOCK_FD_MIN = 200 };

enum { DONE_STATUS = 77 }; /* also in the options of WAY_SAVER */

/* The real nvidia-smi needs more address space; gpulease and its jobs need less. */
enum { DRIVER_MIB = 512, BLIND_MIB = 256 };

#define STANDSTILL_NS (60 * NS_PER_S)

enum way {
	WAY_PLAIN,
	WAY_LIMIT,
	WAY_REPORT,
	WAY_RETRY,
	WAY_SUBMIT,
	WAY_BATCH,
	WAY_LAUNCHER,
	WAY_LAUNCHER_LIMIT,
	WAY_LAUNCHER_REPORT,
	WAY_PYTHON,
	WAY_NAMESPACE,
	WAY_SAVER,
	WAY_AFTER,
	WAYS
};

/* What is special about a way. */
enum {
	DOES_LAUNCH = 1u << 0,   /* a launcher ends at once; the job is its worker */
	IS_SUPERVISED = 1u << 1, /* the client is the command's parent */
	IS_INDIRECT = 1u << 2,   /* the client is not the process that waits for GPUs */
	IS_EXCLUSIVE =
		1u << 3, /* not to be stopped or blinded: another process would be */
	NEEDS_RECORDS = 1u << 4, /* not with --plain */
	NEEDS_ROOT = 1u << 5,
	NEEDS_PYTHON = 1u << 6,
	IS_NEW = 1u << 7, /* not with --beside: an earlier version does not promise it */
};

static const struct way_def {
	const char *name;
	unsigned weight, flags;
	const char *options[6];
} ways[WAYS] = {
	[WAY_PLAIN] = { "plain", 20, 0, { NULL } },
	[WAY_LIMIT] = { "with a limit", 8, 0, { "-t", "1h", NULL } },
	[WAY_REPORT] = { "supervised", 10, IS_SUPERVISED, { "--report", "-Q", NULL } },
	[WAY_RETRY] = { "tried again", 5, IS_SUPERVISED, { "--retries", "1", NULL } },
	[WAY_SUBMIT] = { "in the background", 8, IS_INDIRECT, { "--submit", NULL } },
	[WAY_BATCH] = { "lines of a jobs file", 4, IS_INDIRECT, { "--batch", NULL } },
	[WAY_LAUNCHER] = { "by a launcher", 10, DOES_LAUNCH | IS_NEW, { NULL } },
	[WAY_LAUNCHER_LIMIT] = { "by a launcher, with a limit", 5, DOES_LAUNCH | IS_NEW,
		{ "-t", "1h", NULL } },
	[WAY_LAUNCHER_REPORT] = { "by a launcher, supervised", 5,
		DOES_LAUNCH | IS_SUPERVISED | IS_NEW, { "--report", "-Q", NULL } },
	[WAY_PYTHON] = { "by Python", 4, DOES_LAUNCH | NEEDS_PYTHON | IS_NEW, { NULL } },
	[WAY_NAMESPACE] = { "in a pid namespace", 5,
		IS_EXCLUSIVE | NEEDS_RECORDS | NEEDS_ROOT, { NULL } },
	[WAY_SAVER] = { "preemptible", 8, IS_SUPERVISED | IS_EXCLUSIVE | IS_NEW,
		{ "--preemptible", "--signal", "USR1@5s", "--done-status", "77", NULL } },
	[WAY_AFTER] = { "after another", 8, 0, { NULL } },
};

enum fate { FATE_RUN, FATE_KILL, FATE_STOP, FATE_BLIND };

/* Shared with the jobs: the task of each job, and what it did. */
struct job {
	enum way way;
	unsigned gpus, ms;
	int status; /* to exit with */
	_Atomic int id, pid, parent;
	_Atomic unsigned starts;
	_Atomic unsigned done_ms; /* the work done by a job that saves */
	_Atomic bool has_finished;
	_Atomic bool is_harmed; /* the driver has killed its client or parent */
};

struct board {
	_Atomic unsigned violations;
	_Atomic unsigned events; /* grows whenever something happens */
	struct job jobs[MAX_JOBS];
};

enum phase { PHASE_RUN, PHASE_AGAIN, PHASE_CHECK };

struct client {
	pid_t pid; /* 0: unused */
	unsigned job;
	enum phase phase;
	enum fate fate;
	int64_t act_ns, undo_ns; /* 0: done */
	int expected; /* of PHASE_CHECK; of WAY_AFTER also the other's status */
	int after;    /* of WAY_AFTER: the other job */
};

static struct settings {
	uint64_t seed;
	unsigned jobs, clients, gpus;
	uid_t first_user;
	const char *dir, *beside;
	bool is_plain, is_verbose;
} settings = { .jobs = 500, .clients = 24, .gpus = 4 };

static struct storm {
	char place[SCRATCH_SIZE];
	struct board *board;
	struct client clients[MAX_CLIENTS];
	unsigned begun, active;
	unsigned kills, stops, blinded, checked, per_way[WAYS];
	/* the jobs checked last, which later jobs can come after */
	struct {
		int id, status;
	} known[16];
	unsigned known_count;
	bool has_python, is_stuck;
	int log;
} storm;

static uint64_t random_state;

static unsigned below(unsigned limit)
{
	return draw(&random_state, limit);
}

static void PRINTF_LIKE(2, 3) violation(struct board *board, const char *format, ...)
{
	char line[400];
	va_list arguments;
	autofd int fd =
		open("violations", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	atomic_fetch_add(&board->violations, 1);
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	(void)!write(fd, line, strlen(line));
}

static struct board *map_board(const char *place, int flags)
{
	struct board *board;
	autofd int fd = -1;

	if (chdir(place) < 0 ||
		(fd = open("board", flags | O_RDWR | O_CLOEXEC, 0666)) < 0 ||
		ftruncate(fd, sizeof(struct board)) < 0)
		die("cannot use '%s': %s", place, strerror(errno));
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return board;
}

/* --- the job ------------------------------------------------------------------------- */

static volatile sig_atomic_t is_warned;

static void on_warning(int signal)
{
	(void)signal;
	is_warned = 1;
}

/*
 * Locks the file @name for as long as this process lives, and leaves its number there.  A
 * process that ends closes its highest descriptors first, so the lock goes before the lease.
 */
static bool hold(const char *name, unsigned job, unsigned *ret_other)
{
	char text[16] = "";
	int low = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, LOCK_FD_MIN);

	*ret_other = 0;
	if (fd < 0)
		return false;
	(void)close(low);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (pread(fd, text, sizeof(text) - 1, 0) > 0)
			(void)sscanf(text, "%u", ret_other);
		return false;
	}
	(void)snprintf(text, sizeof(text), "%-10u", job);
	(void)!pwrite(fd, text, strlen(text), 0);
	return true;
}

static void claim(struct board *board, unsigned number_of_job)
{
	struct job *job = &board->jobs[number_of_job];
	const char *list = getenv("GPULEASE_GPUS"), *id = getenv("GPULEASE_ID");
	unsigned given = 0, other;
	char name[64];

	atomic_store(&job->id, id ? (int)number(id, "GPULEASE_ID") : 0);
	(void)snprintf(name, sizeof(name), "job.%u", number_of_job);
	if (!hold(name, number_of_job, &other))
		violation(board, "job %u (%s) runs twice at once\n", number_of_job,
			ways[job->way].name);
	while (list && *list) {
		size_t size = strcspn(list, ",");

		(void)snprintf(name, sizeof(name), "gpu.%.*s", (int)size, list);
		if (!hold(name, number_of_job, &other))
			violation(board,
				"job %u (%s, id %d): job %u (%s, id %d) has %s\n",
				number_of_job, ways[job->way].name, atomic_load(&job->id),
				other, ways[board->jobs[other].way].name,
				atomic_load(&board->jobs[other].id), name);
		list += size + (list[size] ? 1 : 0);
		given++;
	}
	if (given != job->gpus)
		violation(board, "job %u: %u GPUs instead of %u\n", number_of_job, given,
			job->gpus);
}

/* The work of a job that saves: in slices, until a warning. */
static void work(struct job *job)
{
	struct timespec slice = { .tv_nsec = 5 * NS_PER_MS };

	while (atomic_load(&job->done_ms) < job->ms && !is_warned) {
		(void)nanosleep(&slice, NULL);
		atomic_fetch_add(&job->done_ms, 5);
	}
}

/* storm --job PLACE NUMBER */
static int run_job(char **argv)
{
	struct board *board = map_board(argv[0], 0);
	unsigned at = (unsigned)number(argv[1], "job");
	struct job *job = &board->jobs[at];
	bool is_saver = job->way == WAY_SAVER;

	if (is_saver)
		(void)signal(SIGUSR1, on_warning);
	claim(board, at);
	atomic_store(&job->pid, (int)getpid());
	atomic_store(&job->parent, (int)getppid());
	if (atomic_load(&job->has_finished) && !atomic_load(&job->is_harmed))
		violation(board, "job %u (%s) had finished, and runs again\n", at,
			ways[job->way].name);
	atomic_fetch_add(&board->events, 1);
	if (atomic_fetch_add(&job->starts, 1) == 0 && job->way == WAY_RETRY)
		return 1;
	if (is_saver) {
		work(job);
		if (atomic_load(&job->done_ms) < job->ms)
			return 0; /* saved */
	} else {
		struct timespec span = { .tv_nsec = (long)job->ms * NS_PER_MS };

		(void)nanosleep(&span, NULL);
	}
	atomic_store(&job->has_finished, true);
	atomic_fetch_add(&board->events, 1);
	return job->status;
}

/* storm --launch COMMAND…: keeps no descriptor, starts the worker, and ends before it. */
static int run_launcher(char **argv)
{
	pid_t pid;

	for (int fd = 3; fd < 1024; fd++)
		(void)close(fd);
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid > 0)
		return 0;
	(void)setsid();
	(void)execvp(argv[0], argv);
	_exit(127);
}

/* --- clients ------------------------------------------------------------------------- */

struct line {
	const char *argv[40];
	size_t count;
	char texts[10][SCRATCH_SIZE];
	size_t used;
};

static void add(struct line *line, const char *word)
{
	line->argv[line->count++] = word;
}

static void PRINTF_LIKE(2, 3) addf(struct line *line, const char *format, ...)
{
	char *text = line->texts[line->used++];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(line->texts[0]), format, arguments);
	va_end(arguments);
	add(line, text);
}

static void add_gpulease(struct line *line, unsigned job)
{
	add(line, settings.beside && job % 2 ? settings.beside : tool_gpulease());
	if (!settings.first_user) {
		add(line, "--config");
		addf(line, "%s/conf", storm.place);
	}
}

static void add_job(struct line *line, unsigned job)
{
	add(line, tool_self());
	add(line, "--job");
	add(line, storm.place);
	addf(line, "%u", job);
}

static unsigned user_of(unsigned job)
{
	return settings.first_user ? settings.first_user + job % USERS : 0;
}

/* Runs children as the user of @job from here on, with a home of that user. */
static void become_user_of(unsigned job)
{
	char home[SCRATCH_SIZE + 32];

	(void)snprintf(home, sizeof(home), "%s/home.%u", storm.place, user_of(job));
	if (mkdir(home, 0777) == 0 && user_of(job) &&
		chown(home, user_of(job), user_of(job)) < 0)
		die("chown: %s", strerror(errno));
	(void)setenv("XDG_STATE_HOME", home, 1);
	*tool_user() = user_of(job);
}

static void limit_memory(pid_t pid, rlim_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = RLIM_INFINITY };

	(void)prlimit(pid, RLIMIT_AS, &limit, NULL);
}

/* Starts @line; its output goes to out.N. */
static pid_t start(struct line *line, unsigned job, bool is_blind)
{
	char name[32];
	autofd int out = -1;
	pid_t pid;

	add(line, NULL);
	(void)snprintf(name, sizeof(name), "out.%u", job);
	out = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	become_user_of(job);
	if (is_blind)
		limit_memory(0, (rlim_t)BLIND_MIB << 20);
	pid = tool_spawn(line->argv, -1, out, storm.log);
	if (is_blind)
		limit_memory(0, RLIM_INFINITY);
	*tool_user() = 0;
	return pid;
}

/* Adds the program that starts the job, if the way has one. */
static void add_launcher(struct line *line, enum way way)
{
	if (way == WAY_PYTHON) {
		add(line, "python3");
		add(line, "-c");
		add(line, "import subprocess, sys\n"
			  "subprocess.Popen(sys.argv[1:], start_new_session=True)");
	} else if (ways[way].flags & DOES_LAUNCH) {
		add(line, tool_self());
		add(line, "--launch");
	}
}

/* A jobs file of several lines, each of which is a job of its own. */
static void write_batch(unsigned first)
{
	char name[64];
	FILE *file;

	(void)snprintf(name, sizeof(name), "batch.%u", first);
	file = fopen(name, "we");
	if (!file)
		die("cannot write '%s': %s", name, strerror(errno));
	for (unsigned at = first; at < first + LINES; at++)
		(void)fprintf(file, "[gpus=%u] '%s' --job '%s' %u\n",
			storm.board->jobs[at].gpus, tool_self(), storm.place, at);
	(void)fclose(file);
	if (user_of(first) && chown(name, user_of(first), user_of(first)) < 0)
		die("chown: %s", strerror(errno));
}

static pid_t run_way(unsigned at, bool is_blind, int after)
{
	const struct job *job = &storm.board->jobs[at];
	struct line line = { .count = 0 };

	if (job->way == WAY_NAMESPACE) {
		static const char *const words[] = { "unshare", "--pid", "--fork",
			"--kill-child", "--mount-proc" };

		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			add(&line, words[i]);
		if (user_of(at)) {
			add(&line, "setpriv");
			addf(&line, "--reuid=%u", user_of(at));
			addf(&line, "--regid=%u", user_of(at));
			add(&line, "--clear-groups");
		}
	}
	add_gpulease(&line, at);
	for (size_t i = 0; ways[job->way].options[i]; i++)
		add(&line, ways[job->way].options[i]);
	if (job->way == WAY_BATCH) {
		addf(&line, "%s/batch.%u", storm.place, at);
		add(&line, "--log-dir");
		addf(&line, "%s/home.%u/batch.%u", storm.place, user_of(at), at);
		return start(&line, at, is_blind);
	}
	if (after) {
		add(&line, "--after-ok");
		addf(&line, "%d", after);
	}
	if (job->way != WAY_SAVER && at % 3 == 0) {
		add(&line, "--priority");
		add(&line, "1");
	}
	add(&line, "-n");
	addf(&line, "%u", job->gpus);
	add(&line, "--");
	add_launcher(&line, job->way);
	add_job(&line, at);
	if (job->way != WAY_NAMESPACE)
		return start(&line, at, is_blind);
	/* unshare needs root; the user is set after it */
	add(&line, NULL);
	become_user_of(at);
	*tool_user() = 0;
	return tool_spawn(line.argv, -1, storm.log, storm.log);
}

/* --- choosing a job ------------------------------------------------------------------- */

static bool is_possible(enum way way)
{
	unsigned flags = ways[way].flags;

	return !((flags & NEEDS_RECORDS) && settings.is_plain) &&
	       !((flags & IS_NEW) && settings.beside) &&
	       !((flags & NEEDS_ROOT) && geteuid() != 0) &&
	       !((flags & NEEDS_PYTHON) && !storm.has_python) &&
	       (way != WAY_AFTER || storm.known_count > 0) &&
	       (way != WAY_BATCH || storm.begun + LINES <= settings.jobs);
}

static enum way random_way(void)
{
	for (;;) {
		unsigned dice = below(100), way = 0;

		while (way < WAYS - 1 && dice >= ways[way].weight)
			dice -= ways[way++].weight;
		if (is_possible((enum way)way))
			return (enum way)way;
	}
}

static void make_job(unsigned at, enum way way)
{
	struct job *job = &storm.board->jobs[at];

	job->way = way;
	job->gpus = below(4) ? 1 + below(2) : 1 + below(settings.gpus);
	job->ms = way == WAY_SAVER ? 100 + below(500) : below(40);
	/* a job that saves ends with 0 then, so another status says that it has finished */
	job->status = way == WAY_SAVER                              ? DONE_STATUS
		      : below(3) || (ways[way].flags & DOES_LAUNCH) ? 0
								    : 1 + (int)below(99);
}

static void cast_fate(struct client *client)
{
	unsigned flags = ways[storm.board->jobs[client->job].way].flags;
	unsigned dice = below(100);

	client->fate = dice < 60   ? FATE_RUN
		       : dice < 75 ? FATE_KILL
		       : dice < 92 ? FATE_STOP
				   : FATE_BLIND;
	if (client->fate == FATE_BLIND && (IS_SANITIZED || geteuid() != 0))
		client->fate = FATE_STOP;
	if (client->fate > FATE_KILL && (flags & (IS_EXCLUSIVE | IS_INDIRECT)))
		client->fate = FATE_RUN;
	client->act_ns = now_ns() + (below(2) ? below(4000) * INT64_C(1000)
					      : below(400) * NS_PER_MS);
	if (client->fate == FATE_BLIND) {
		client->act_ns = 0;
		client->undo_ns = now_ns() + below(4000) * NS_PER_MS;
		storm.blinded++;
	}
}

static void begin(struct client *client)
{
	enum way way = random_way();
	unsigned lines = way == WAY_BATCH ? LINES : 1;

	*client = (struct client){ .job = storm.begun };
	for (unsigned i = 0; i < lines; i++)
		make_job(storm.begun++, way);
	cast_fate(client);
	if (way == WAY_BATCH)
		write_batch(client->job);
	if (way == WAY_AFTER) {
		unsigned other = below(storm.known_count);

		client->after = storm.known[other].id;
		client->expected = storm.known[other].status;
	}
	storm.per_way[way]++;
	storm.active++;
	client->pid = run_way(client->job, client->fate == FATE_BLIND, client->after);
}

/* --- fates ---------------------------------------------------------------------------- */

static bool is_gpulease(int pid)
{
	char path[64], name[16] = "";
	autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 &&
	       strncmp(name, "gpulease", strlen("gpulease")) == 0;
}

/* Kills the client, or the supervisor of a background job. */
static void kill_client(struct client *client)
{
	struct board *board = storm.board;
	enum way way = board->jobs[client->job].way;
	unsigned jobs = way == WAY_BATCH ? LINES : 1;
	unsigned one = client->job + (jobs > 1 ? below(jobs) : 0);
	int parent = atomic_load(&board->jobs[one].parent);

	if (ways[way].flags & IS_INDIRECT && below(2)) {
		/* not before the job runs, and not when it has ended */
		if (!parent || !is_gpulease(parent))
			return;
		atomic_store(&board->jobs[one].is_harmed, true);
		(void)kill(parent, SIGKILL);
	} else {
		for (unsigned i = 0; i < jobs; i++)
			atomic_store(&board->jobs[client->job + i].is_harmed, true);
		(void)kill(client->pid, SIGKILL);
	}
	storm.kills++;
}

static void act(struct client *client)
{
	int64_t now = now_ns();

	if (client->phase != PHASE_RUN)
		return;
	if (client->act_ns && now >= client->act_ns) {
		client->act_ns = 0;
		if (client->fate == FATE_KILL) {
			kill_client(client);
		} else if (client->fate == FATE_STOP) {
			storm.stops++;
			client->undo_ns = now + below(below(8) ? 200 : 3500) * NS_PER_MS;
			(void)kill(client->pid, SIGSTOP);
		}
	}
	if (client->undo_ns && now >= client->undo_ns) {
		client->undo_ns = 0;
		if (client->fate == FATE_BLIND)
			limit_memory(client->pid, RLIM_INFINITY);
		else
			(void)kill(client->pid, SIGCONT);
	}
}

/* --- checking an end ------------------------------------------------------------------ */

static void remember(int id, int status)
{
	unsigned at = storm.known_count < ARRAY_SIZE(storm.known)
			      ? storm.known_count++
			      : below(ARRAY_SIZE(storm.known));

	storm.known[at].id = id;
	storm.known[at].status = status;
}

/* The id that --submit has printed. */
static int submitted_id(unsigned job)
{
	char name[32], text[32] = "";
	autofd int fd = -1;
	int id = 0;

	(void)snprintf(name, sizeof(name), "out.%u", job);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return sscanf(text, "%d", &id) == 1 ? id : 0;
}

/* Looks up with gpulease how job @id has ended. */
static void check_end(struct client *client, int id, int expected)
{
	struct line line = { .count = 0 };

	client->phase = PHASE_CHECK;
	client->expected = expected;
	add_gpulease(&line, client->job);
	add(&line, "--wait-for");
	addf(&line, "%d", id);
	storm.checked++;
	client->pid = start(&line, client->job, false);
}

static void judge_check(struct client *client, int status)
{
	struct job *job = &storm.board->jobs[client->job];
	int id = atomic_load(&job->id);

	if (status != client->expected)
		violation(storm.board,
			"job %u (%s, id %d): --wait-for says %d, it ended with %d\n",
			client->job, ways[job->way].name, id, status, client->expected);
	else if (id)
		remember(id, status);
	if (!atomic_load(&job->has_finished))
		violation(storm.board, "job %u (%s, id %d) was lost\n", client->job,
			ways[job->way].name, id);
}

static void judge_after(const struct client *client, int status)
{
	const struct job *job = &storm.board->jobs[client->job];
	bool has_started = atomic_load(&job->starts) > 0;

	if (client->expected == 0 && (!has_started || status != job->status))
		violation(storm.board,
			"job %u: after job id %d, which ended with 0, it %s, exit status %d\n",
			client->job, client->after,
			has_started ? "runs" : "does not start", status);
	if (client->expected != 0 && (has_started || status == 0))
		violation(storm.board,
			"job %u: after job id %d, which failed, it %s, exit status %d\n",
			client->job, client->after,
			has_started ? "runs" : "does not start", status);
}

static void judge_batch(struct client *client, int status)
{
	int worst = 0;
	bool is_harmed = false;

	for (unsigned at = client->job; at < client->job + LINES; at++) {
		const struct job *job = &storm.board->jobs[at];

		is_harmed = is_harmed || atomic_load(&job->is_harmed);
		worst = job->status > worst ? job->status : worst;
	}
	if (is_harmed && client->phase == PHASE_RUN) {
		client->phase = PHASE_AGAIN;
		client->pid = run_way(client->job, false, 0);
		return;
	}
	if (!is_harmed && status != worst)
		violation(storm.board, "batch %u: exit status %d instead of %d\n",
			client->job, status, worst);
	for (unsigned at = client->job; at < client->job + LINES; at++)
		if (!atomic_load(&storm.board->jobs[at].starts))
			violation(storm.board, "job %u, a line of a batch, never ran\n",
				at);
}

/*
 * Whether a process that is not its parent learns how another one has ended: from Linux 6.15 on,
 * and only through a pidfd.
 */
static bool do_others_learn(void)
{
	static int learns = -1;
	int pidfd, status;
	pid_t child;

	if (learns >= 0)
		return learns;
	child = fork();
	if (child == 0)
		_exit(0);
	pidfd = pidfd_open_process((uint32_t)child);
	(void)waitpid(child, NULL, 0);
	learns = pidfd >= 0 && pidfd_exit_status(pidfd, &status) == 0;
	close_fd(&pidfd);
	return learns;
}

/*
 * A client that was left alone, or stopped or blind for a while, has ended with @status.  A
 * watchdog dies with process 1 of its pid namespace, so how that one ended may stay unknown.
 */
static void judge_run(struct client *client, int status)
{
	struct job *job = &storm.board->jobs[client->job];
	int id = atomic_load(&job->id);

	if (job->way == WAY_SUBMIT) {
		id = submitted_id(client->job);
		if (status == 0 && id)
			check_end(client, id, job->status);
		else
			violation(storm.board, "job %u: --submit exits %d\n", client->job,
				status);
		return;
	}
	if (status != job->status)
		violation(storm.board, "job %u (%s, id %d): exit status %d, not %d\n",
			client->job, ways[job->way].name, id, status, job->status);
	if (ways[job->way].flags & DOES_LAUNCH)
		return; /* its worker may not even have begun */
	if (!atomic_load(&job->has_finished))
		violation(storm.board, "job %u (%s, id %d) was lost\n", client->job,
			ways[job->way].name, id);
	else if (!settings.beside && job->way != WAY_NAMESPACE &&
		 ((!settings.is_plain && do_others_learn()) ||
			 (ways[job->way].flags & IS_SUPERVISED)))
		check_end(client, id, job->status);
}

static void end(struct client *client, int wait_status)
{
	struct job *job = &storm.board->jobs[client->job];
	int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
					      : WEXITSTATUS(wait_status);

	client->pid = 0;
	atomic_fetch_add(&storm.board->events, 1);
	if (job->way == WAY_BATCH)
		judge_batch(client, status);
	else if (client->phase == PHASE_CHECK && !atomic_load(&job->is_harmed))
		judge_check(client, status);
	else if (client->phase == PHASE_RUN && !atomic_load(&job->is_harmed)) {
		if (job->way == WAY_AFTER)
			judge_after(client, status);
		else
			judge_run(client, status);
	}
	if (!client->pid)
		storm.active--;
}

/* --- the driver ----------------------------------------------------------------------- */

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < settings.clients; i++)
			if (storm.clients[i].pid == pid) {
				end(&storm.clients[i], status);
				break;
			}
}

static void run_all(void)
{
	unsigned events = 0;
	int64_t progress_ns = now_ns();

	while (storm.begun < settings.jobs || storm.active) {
		for (unsigned i = 0; i < settings.clients; i++) {
			struct client *client = &storm.clients[i];

			if (!client->pid && storm.begun < settings.jobs)
				begin(client);
			else if (client->pid)
				act(client);
		}
		tool_doze(5 * NS_PER_MS);
		reap();
		if (atomic_load(&storm.board->events) != events) {
			events = atomic_load(&storm.board->events);
			progress_ns = now_ns();
		} else if (now_ns() - progress_ns > STANDSTILL_NS) {
			storm.is_stuck = true;
			return;
		}
	}
}

/* Whether one job can have all GPUs in the end. */
static bool is_free(void)
{
	struct line line = { .count = 0 };
	int status;
	pid_t pid;

	add_gpulease(&line, 0);
	add(&line, "--max-wait");
	add(&line, "50s");
	add(&line, "-n");
	addf(&line, "%u", settings.gpus);
	add(&line, "true");
	pid = start(&line, 0, false);
	return tool_await(pid, now_ns() + STANDSTILL_NS, &status) == 0 && status == 0;
}

static void PRINTF_LIKE(2, 3) write_file(const char *name, const char *format, ...)
{
	va_list arguments;
	FILE *file = fopen(name, "we");

	if (!file)
		die("cannot write '%s': %s", name, strerror(errno));
	va_start(arguments, format);
	(void)vfprintf(file, format, arguments);
	va_end(arguments);
	(void)fchmod(fileno(file), 0644);
	(void)fclose(file);
}

/* The driver, the configuration and the state directory of a run as one user. */
static void prepare_alone(void)
{
	char driver[4096 + 16], copy[SCRATCH_SIZE + 16];
	const char *argv[] = { "cp", driver, copy, NULL };
	int status;

	tool_beside("fakesmi", driver, sizeof(driver));
	(void)snprintf(copy, sizeof(copy), "%s/nvidia-smi", storm.place);
	if (tool_await(tool_spawn(argv, -1, -1, -1), now_ns() + DEADLINE_NS, &status) ||
		status)
		die("cannot copy '%s'", driver);
	write_file("nvidia-smi.conf", "gpus %u\nneed %d\n", settings.gpus,
		IS_SANITIZED ? 0 : DRIVER_MIB);
	write_file("conf",
		"nvidia-smi = %s\nmax-priority = 9\nretry-delay = 50ms\nrecord-ends = %s\n",
		copy, settings.is_plain ? "no" : "yes");
	if (mkdir("state", 0700) < 0)
		die("mkdir: %s", strerror(errno));
	(void)snprintf(copy, sizeof(copy), "%s/state", storm.place);
	(void)setenv("GPULEASE_DIR", copy, 1);
}

static bool has_python(void)
{
	const char *argv[] = { "python3", "-c", "", NULL };
	int status;

	return tool_await(tool_spawn(argv, -1, storm.log, storm.log),
		       now_ns() + DEADLINE_NS, &status) == 0 &&
	       status == 0;
}

static void prepare(void)
{
	(void)umask(0);
	tool_scratch(storm.place);
	(void)chmod(storm.place, 0777);
	storm.board = map_board(storm.place, O_CREAT);
	storm.log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (!settings.first_user)
		prepare_alone();
	storm.has_python = has_python();
	if (!settings.is_verbose)
		return;
	printf("# seed %llu, in %s\n", (unsigned long long)settings.seed, storm.place);
}

static void copy_to_stdout(const char *name)
{
	char line[512];
	FILE *file = fopen(name, "re");

	for (int i = 0; file && i < 40 && fgets(line, sizeof(line), file);)
		if (!strstr(line, " waits, ")) {
			printf("# %s", line);
			i++;
		}
	if (file)
		(void)fclose(file);
}

/* Prints what gpulease itself shows during a standstill. */
static void show_standstill(void)
{
	struct line line = { .count = 0 };
	int status;

	for (unsigned i = 0; i < settings.clients; i++) {
		const struct client *client = &storm.clients[i];

		if (client->pid)
			printf("# waits: job %u (%s), pid %d, fate %d\n", client->job,
				ways[storm.board->jobs[client->job].way].name,
				(int)client->pid, (int)client->fate);
	}
	add_gpulease(&line, 0);
	add(&line, "--status");
	(void)tool_await(start(&line, 0, false), now_ns() + DEADLINE_NS, &status);
	copy_to_stdout("out.0");
	if (settings.is_verbose)
		(void)raise(SIGSTOP); /* so that the standstill can be looked at */
}

static int report(void)
{
	unsigned violations = atomic_load(&storm.board->violations);
	bool is_good;

	printf("# seed %llu: %u jobs, %u kills, %u stops, %u blind, %u ends asked for\n",
		(unsigned long long)settings.seed, storm.begun, storm.kills, storm.stops,
		storm.blinded, storm.checked);
	for (unsigned way = 0; way < WAYS; way++)
		if (!storm.per_way[way])
			printf("# none %s\n", ways[way].name);
	is_good = tap_result(!storm.is_stuck, "no standstill of 60 s");
	if (storm.is_stuck)
		show_standstill();
	is_good = tap_result(violations == 0, "no job has seen a broken promise") &&
		  is_good;
	copy_to_stdout("violations");
	if (!storm.is_stuck)
		is_good =
			tap_result(is_free(), "all GPUs are free at the end") && is_good;
	for (unsigned i = 0; i < settings.clients; i++)
		tool_kill(&storm.clients[i].pid);
	if (!is_good)
		copy_to_stdout("log");
	if (is_good || !settings.is_verbose)
		remove_tree(storm.place);
	return tap_end();
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "clients", required_argument, NULL, 'c' },
		{ "gpus", required_argument, NULL, 'g' },
		{ "plain", no_argument, NULL, 'p' },
		{ "users", required_argument, NULL, 'u' },
		{ "beside", required_argument, NULL, 'b' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "v", options, NULL)) != -1)
		switch (c) {
		case 's':
			settings.seed = number(optarg, "--seed");
			break;
		case 'j':
			settings.jobs = (unsigned)number(optarg, "--jobs");
			break;
		case 'c':
			settings.clients = (unsigned)number(optarg, "--clients");
			break;
		case 'g':
			settings.gpus = (unsigned)number(optarg, "--gpus");
			break;
		case 'p':
			settings.is_plain = true;
			break;
		case 'u':
			settings.dir = tool_users(optarg, &settings.first_user);
			break;
		case 'b':
			settings.beside = optarg;
			break;
		case 'v':
			settings.is_verbose = true;
			break;
		default:
			die("usage: see the head of storm.c");
		}
	if (!settings.jobs || settings.jobs > MAX_JOBS || !settings.clients ||
		settings.clients > MAX_CLIENTS || !settings.gpus)
		die("storm: too many, or none");
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--job") == 0)
		return run_job(argv + 2);
	if (argc > 2 && strcmp(argv[1], "--launch") == 0)
		return run_launcher(argv + 2);
	tool_init();
	tool_clean_environment();
	settings.seed = (uint64_t)now_ns();
	read_options(argc, argv);
	random_state = settings.seed * 2 + 1;
	prepare();
	run_all();
	return report();
}
