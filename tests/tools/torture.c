/*
 * torture: many concurrent gpulease clients, killed, stopped, cancelled and paused at random, and
 * an oracle that knows nothing of gpulease.
 *
 *	torture [--seed S] [--clients N] [--jobs N] [--gpus N] [--seconds S] [--shares PERCENT]
 *		[--crowd] [--preempt PERCENT] [--card MIB] [--nopidfd enosys|eperm]
 *		[--users UID,DIR] [-v]
 *
 * Runs N clients (50) at a time until there were N jobs (300; with --seconds any number), or
 * until S seconds are over.  The same seed gives the same jobs with the same fates; which of them
 * meet depends on the scheduler.
 *
 * Half of the jobs, or --shares percent, declare a share or memory; some have a priority, a time
 * limit, or come after another job.  --crowd: all jobs want very little, so that their number
 * fills a GPU.  --preempt: that percentage of the jobs is preemptible and runs longer, so that
 * jobs of a higher priority meet them.  --card: the memory of a card if it is not the simulated
 * 24576 MiB.
 *
 * --users: the gpulease is a set-group-ID one whose state directory is DIR, and every client
 * is one of three users, the first of which is UID.  Root pauses.
 *
 * The oracle: every command is this tool again, and claims the GPUs of its lease (oracle.h).
 * Until it dies it also locks a file with its ticket's number, and a singleton locks one with its
 * name.  A job that comes after it must not find the first file locked, nor another job of that
 * name the second.
 */
#include "oracle.h"

#include <dirent.h>
#include <getopt.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>

enum { MAX_JOBS = 100000, MAX_GPUS = 128, MAX_VERBS = 6, USERS = 3 };

/* The longest time without any progress: stops last 3.5 s, grace periods 10 s. */
#define STANDSTILL_NS (60 * NS_PER_S)

enum fate { FATE_RUN, FATE_KILL, FATE_STOP, FATE_STOP_AND_KILL };

/* Shared with the commands: what each asks for, and what it has seen. */
struct wish {
	unsigned gpus, percent, mib, ms;
	int priority;
	unsigned limit_s;   /* 0: none */
	unsigned after;     /* a ticket, 0: none */
	unsigned singleton; /* number of its name; 0: it is no singleton */
	bool is_preemptible;
};

struct start {
	struct wish wish;
	_Atomic int64_t at_ns; /* 0: has not started */
	_Atomic int64_t id;
};

struct board {
	_Atomic unsigned violations, most, followers, again;
	struct start starts[MAX_JOBS];
};

struct job {
	pid_t pid; /* 0: not started yet, or reaped */
	enum fate fate;
	int64_t act_ns;  /* when to kill or stop it; 0: done */
	int64_t stop_ns; /* for how long */
	int64_t wake_ns; /* when to wake or kill it after that; 0: not stopped */
	bool killed, failed;
	int status;
};

struct verb {
	pid_t pid;
	const char *name;
};

static struct settings {
	uint64_t seed;
	unsigned clients, jobs, gpus, shares, card_mib, preempt;
	bool is_crowd;
	int64_t seconds;
	const char *nopidfd;
	uid_t first_user; /* 0: all run as the user of this tool */
	const char *dir;  /* the state directory of all users */
	bool verbose;
} settings = { .clients = 50, .gpus = 8, .shares = 50, .card_mib = 24576 };

static struct torture {
	char place[SCRATCH_SIZE];
	struct board *board;
	struct job jobs[MAX_JOBS];
	struct verb verbs[MAX_VERBS];
	unsigned begun, active, oldest; /* jobs before @oldest have ended */
	unsigned kills, stops, cancels, cancels_done, pauses, verb_failures;
	int64_t progress_ns;
	int log;           /* stderr of the clients */
	int paused;        /* GPU, or -1 */
	int last_paused;   /* the GPU that was paused or resumed last */
	int64_t resume_ns; /* when to resume it */
	int64_t verb_ns;   /* when to run the next verb */
	bool stuck;
} t;

/* Two sequences: the properties of a job must not depend on how often the driver looks around. */
static uint64_t job_random, other_random;

/* For the properties of a job. */
static unsigned below(unsigned limit)
{
	return draw(&job_random, limit);
}

/* For all that depends on the moment. */
static unsigned roughly(unsigned limit)
{
	return draw(&other_random, limit);
}

/* --- the command: job --------------------------------------------------------------- */

static void PRINTF_LIKE(2, 3) violation(struct board *board, const char *format, ...)
{
	char line[320];
	va_list arguments;

	atomic_fetch_add(&board->violations, 1);
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	oracle_tell(line);
}

/* Claims a GPU for as long as this process lives. */
static void claim(struct board *board, const char *gpu, const struct oracle_use *use)
{
	char why[320];
	unsigned most = atomic_load(&board->most);
	unsigned on_it = oracle_claim(gpu, use, settings.card_mib, why, sizeof(why));

	if (!on_it)
		violation(board, "%s", why);
	while (on_it > most && !atomic_compare_exchange_weak(&board->most, &most, on_it))
		;
}

/* Whether that file can be locked; @alone: exclusively, for as long as this process lives. */
static bool has_lock(const char *kind, unsigned number_of, bool alone)
{
	char name[64];
	bool has;
	int fd;

	(void)snprintf(name, sizeof(name), "%s.%u", kind, number_of);
	fd = oracle_open(name);
	has = fd >= 0 && flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
	if (!alone)
		(void)close(fd);
	return has;
}

/* Notes that a job has started after another one: that other job must not start any more. */
static void check_order(struct board *board, unsigned job, const struct wish *wish)
{
	const char *text = getenv("GPULEASE_ID");
	unsigned id = text ? (unsigned)strtoull(text, NULL, 10) : 0;
	char name[64], line[200] = "";
	autofd int fd = -1;

	atomic_store(&board->starts[job].id, id);
	if (!has_lock("id", id, true))
		violation(board, "job %u: another is ticket %u, too\n", job, id);
	(void)snprintf(name, sizeof(name), "followed.%u", id);
	if (access(name, F_OK) == 0)
		violation(board,
			"job %u: one that is to come after ticket %u was first\n", job,
			id);
	if (wish->singleton &&
		!has_lock("name", wish->singleton * 100 + getuid() % 100, true))
		violation(board, "job %u: another is called n%u\n", job, wish->singleton);
	if (!wish->after)
		return;
	atomic_fetch_add(&board->followers, 1);
	if (!has_lock("id", wish->after, false))
		violation(board, "job %u: ticket %u has not ended\n", job, wish->after);
	(void)snprintf(name, sizeof(name), "followed.%u", wish->after);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	(void)!write(fd, line, 0);
}

static struct board *map_board(const char *place, int flags)
{
	struct board *board;
	int fd;

	if (chdir(place) < 0 ||
		(fd = open("board", flags | O_RDWR | O_CLOEXEC, 0666)) < 0 ||
		ftruncate(fd, sizeof(struct board)) < 0)
		die("cannot use '%s': %s", place, strerror(errno));
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	(void)close(fd);
	return board;
}

/* torture --job PLACE NUMBER MIB-OF-A-CARD */
static int run_job(char **argv)
{
	struct board *board = map_board(argv[0], 0);
	unsigned job = (unsigned)number(argv[1], "job"), given = 0;
	const struct wish *wish = &board->starts[job].wish;
	struct timespec span = { .tv_nsec = (long)wish->ms * NS_PER_MS };
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	struct oracle_use use;

	settings.card_mib = (unsigned)number(argv[2], "card");
	use = oracle_use_of(job, wish->percent, wish->mib, settings.card_mib);
	while (list && *list) {
		size_t size = strcspn(list, ",");
		char gpu[64];

		(void)snprintf(gpu, sizeof(gpu), "%.*s", (int)size, list);
		claim(board, gpu, &use);
		list += size + (list[size] ? 1 : 0);
		given++;
	}
	if (given != wish->gpus)
		violation(
			board, "job %u: %u GPUs instead of %u\n", job, given, wish->gpus);
	check_order(board, job, wish);
	if (atomic_exchange(&board->starts[job].at_ns, now_ns()))
		atomic_fetch_add(&board->again, 1);
	(void)nanosleep(&span, NULL); /* its work */
	return 0;
}

/* --- clients ------------------------------------------------------------------------ */

/* Mostly mixed; many want all GPUs, or so many that two such jobs cannot run at once. */
static unsigned random_gpus(void)
{
	unsigned what = below(100);

	if (what < 25)
		return settings.gpus;
	if (what < 40)
		return settings.gpus / 2 + 1;
	return 1 + below(settings.gpus);
}

/* A share, memory, or both: a number of tenths of a GPU, or very little. */
static void wish_for_part(struct wish *wish)
{
	unsigned what = below(10), most_mib = settings.card_mib - ORACLE_MARGIN_MIB;

	if (settings.is_crowd) {
		wish->gpus = 1;
		wish->percent = what < 5 ? 1 + below(3) : 0;
		wish->mib = what < 5 ? 0 : 1 + below(most_mib / 40);
		return;
	}
	if (what < 7)
		wish->percent = below(4) ? 1 + below(99) : 50;
	if (what >= 4)
		wish->mib = below(3) ? 1 + below(most_mib) : most_mib / (1 + below(4));
	/* a share is of one GPU; memory can be wanted on several */
	wish->gpus = wish->percent ? 1 : 1 + below((unsigned)min_i64(settings.gpus, 3));
}

static struct wish random_wish(void)
{
	static const unsigned limits_s[] = { 10, 60, 3600 };
	struct wish wish = { .ms = below(settings.is_crowd ? 101 : 21) };

	if (settings.is_crowd || below(100) < settings.shares) {
		wish_for_part(&wish);
		wish.ms *= 4; /* so that they meet */
	} else {
		wish.gpus = random_gpus();
	}
	if (!below(3))
		/* only root may have one above 0 */
		wish.priority = (int)below(settings.first_user || geteuid() ? 4 : 7) - 3;
	if (!below(3))
		wish.limit_s = limits_s[below(ARRAY_SIZE(limits_s))];
	if (!below(12))
		wish.singleton = 1 + below(3);
	wish.is_preemptible = settings.preempt && below(100) < settings.preempt;
	if (wish.is_preemptible)
		wish.ms += below(600);
	return wish;
}

/* Half of the fates strike while the client joins, half while it waits or runs. */
static int64_t random_delay_ns(void)
{
	return below(2) ? below(3000) * INT64_C(1000) : below(400) * NS_PER_MS;
}

static int64_t random_stop_ns(void)
{
	return (below(20) ? below(300) : below(3500)) * NS_PER_MS;
}

static void cast_fate(struct job *job)
{
	static const struct {
		unsigned percent;
		enum fate fate;
	} chances[] = { { 45, FATE_RUN }, { 30, FATE_KILL }, { 15, FATE_STOP },
		{ 10, FATE_STOP_AND_KILL } };
	unsigned dice = below(100), i = 0;

	for (; dice >= chances[i].percent; i++)
		dice -= chances[i].percent;
	job->fate = chances[i].fate;
	job->act_ns = now_ns() + random_delay_ns();
	job->stop_ns = random_stop_ns();
	if (job->fate == FATE_RUN)
		job->act_ns = 0;
}

static const char *nopidfd_path(void)
{
	static char path[4096 + 16];

	tool_beside("nopidfd", path, sizeof(path));
	return path;
}

/* Starts gpulease with @arguments, without pidfds if settings.nopidfd says so. */
static pid_t start_client(const char *const arguments[])
{
	const char *argv[32];
	size_t n = 0;

	if (settings.nopidfd) {
		argv[n++] = nopidfd_path();
		argv[n++] = settings.nopidfd;
	}
	argv[n++] = tool_gpulease();
	for (size_t i = 0; arguments[i]; i++)
		argv[n++] = arguments[i];
	argv[n] = NULL;
	return tool_spawn(argv, -1, settings.verbose ? -1 : t.log, t.log);
}

/* From now on clients run as user number @user; USERS: as the user of this tool. */
static void be_user(unsigned user)
{
	*tool_user() =
		settings.first_user && user < USERS ? settings.first_user + user : 0;
}

/* The path of a file in the state directory. */
static void state_path(const char *name, char *path, size_t size)
{
	if (settings.dir)
		(void)snprintf(path, size, "%s/%s", settings.dir, name);
	else
		(void)snprintf(path, size, "%s/state/gpulease/sim-%ux24576/%s", t.place,
			settings.gpus, name);
}

/* One of the last tickets, drawn at random; 0: the record drawn is no job's. */
static unsigned random_ticket(void)
{
	char path[SCRATCH_SIZE + 64], word[7] = "";
	autofd int fd = -1;
	struct stat st;
	int64_t last;

	state_path("tickets", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 512)
		return 0;
	last = st.st_size / 512 - 1;
	last -= roughly((unsigned)min_i64(last, settings.clients));
	(void)!pread(fd, word, sizeof(word), last * 512);
	return memcmp(word, "ticket/", sizeof(word)) ? 0 : (unsigned)last;
}

struct line {
	const char *argv[32];
	size_t count;
	char texts[8][24];
	size_t used;
};

static void PRINTF_LIKE(3, 4)
	add_option(struct line *line, const char *option, const char *format, ...)
{
	char *text = line->texts[line->used++];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(line->texts[0]), format, arguments);
	va_end(arguments);
	if (option)
		line->argv[line->count++] = option;
	line->argv[line->count++] = text;
}

static void add_wish(struct line *line, const struct wish *wish)
{
	if (wish->percent)
		add_option(line, "-n", "0.%02u", wish->percent);
	else
		add_option(line, "-n", "%u", wish->gpus);
	if (wish->mib)
		add_option(line, "--vram", "%u", wish->mib);
	if (wish->priority)
		add_option(line, "--priority", "%d", wish->priority);
	if (wish->limit_s)
		add_option(line, "--time", "%us", wish->limit_s);
	if (wish->after)
		add_option(line, "--after", "%u", wish->after);
	if (wish->is_preemptible)
		line->argv[line->count++] = "--preemptible";
	if (!wish->singleton)
		return;
	line->argv[line->count++] = "--singleton";
	add_option(line, "--name", "n%u", wish->singleton);
}

static void start_job(void)
{
	struct job *job = &t.jobs[t.begun];
	struct wish *wish = &t.board->starts[t.begun].wish;
	struct line line = { .count = 0 };

	*wish = random_wish();
	if (!roughly(8))
		wish->after = random_ticket();
	add_wish(&line, wish);
	line.argv[line.count++] = "--";
	line.argv[line.count++] = tool_self();
	line.argv[line.count++] = "--job";
	line.argv[line.count++] = t.place;
	add_option(&line, NULL, "%u", t.begun);
	add_option(&line, NULL, "%u", settings.card_mib);
	be_user(t.begun % USERS);
	job->pid = start_client(line.argv);
	be_user(USERS);
	cast_fate(job);
	t.begun++;
	t.active++;
}

static void act_on(struct job *job, int64_t now)
{
	if (job->wake_ns && job->wake_ns <= now) {
		(void)kill(job->pid, job->fate == FATE_STOP ? SIGCONT : SIGKILL);
		job->killed = job->fate != FATE_STOP;
		t.kills += job->killed ? 1 : 0;
		job->wake_ns = 0;
	} else if (job->act_ns && job->act_ns <= now) {
		job->act_ns = 0;
		job->killed = job->fate == FATE_KILL;
		(void)kill(job->pid, job->killed ? SIGKILL : SIGSTOP);
		if (!job->killed)
			job->wake_ns = now + job->stop_ns;
		t.kills += job->killed ? 1 : 0;
		t.stops += job->killed ? 0 : 1;
	}
}

static void act_on_jobs(int64_t now)
{
	while (t.oldest < t.begun && !t.jobs[t.oldest].pid)
		t.oldest++;
	for (unsigned i = t.oldest; i < t.begun; i++)
		if (t.jobs[i].pid)
			act_on(&t.jobs[i], now);
}

/* --- verbs -------------------------------------------------------------------------- */

/* False if as many verbs as allowed are running: a --cancel can take long. */
static bool start_verb(const char *name, const char *operand)
{
	const char *const arguments[] = { name, operand, NULL };

	for (size_t i = 0; i < MAX_VERBS; i++)
		if (!t.verbs[i].pid) {
			t.verbs[i].name = name;
			t.verbs[i].pid = start_client(arguments);
			return true;
		}
	return false;
}

/* One of the last tickets: a waiting client, a running job, or one that has ended. */
static void cancel_one(void)
{
	char path[SCRATCH_SIZE + 64], id[24];
	struct stat st;
	int64_t last;

	state_path("tickets", path, sizeof(path));
	if (stat(path, &st) < 0 || st.st_size <= 512)
		return;
	last = st.st_size / 512 - 1;
	last -= roughly((unsigned)min_i64(last, settings.clients));
	(void)snprintf(id, sizeof(id), "%lld", (long long)last);
	be_user(roughly(USERS + 1)); /* a user cannot cancel another user's job */
	t.cancels += start_verb("--cancel", id);
	be_user(USERS);
}

/* Whether a --pause or --resume is still running: it may wait for a lock. */
static bool is_pausing(void)
{
	for (size_t i = 0; i < MAX_VERBS; i++)
		if (t.verbs[i].pid && strcmp(t.verbs[i].name, "--cancel") != 0)
			return true;
	return false;
}

/* Pauses one GPU for a while, or resumes it; never two at once, or the later one might win. */
static void pause_or_resume(int64_t now)
{
	char gpu[16];

	if (is_pausing() || (t.paused >= 0 && now < t.resume_ns))
		return;
	(void)snprintf(gpu, sizeof(gpu), "%d",
		t.paused >= 0 ? t.paused : (int)roughly(settings.gpus));
	if (!start_verb(t.paused >= 0 ? "--resume" : "--pause", gpu))
		return;
	t.pauses += t.paused < 0 ? 1 : 0;
	t.last_paused = (int)number(gpu, "GPU");
	t.paused = t.paused >= 0 ? -1 : t.last_paused;
	t.resume_ns = now + roughly(500) * NS_PER_MS;
}

static void act_with_verbs(int64_t now)
{
	if (now < t.verb_ns)
		return;
	t.verb_ns = now + (20 + roughly(100)) * NS_PER_MS;
	if (roughly(3))
		pause_or_resume(now);
	else
		cancel_one();
}

/* --- the ends ----------------------------------------------------------------------- */

static bool end_of_verb(pid_t pid, int status)
{
	for (size_t i = 0; i < MAX_VERBS; i++) {
		if (t.verbs[i].pid != pid)
			continue;
		t.verbs[i].pid = 0;
		if (!strcmp(t.verbs[i].name, "--cancel") && !status)
			t.cancels_done++;
		/* a stopped process has locked the GPU: it is still paused */
		if (!strcmp(t.verbs[i].name, "--resume") && status)
			t.paused = t.last_paused;
		/* 1: unknown or finished; anything else is a failure of the verb. */
		if (status && (!WIFEXITED(status) || WEXITSTATUS(status) != 1)) {
			t.verb_failures++;
			(void)printf("# %s failed with status %#x\n", t.verbs[i].name,
				(unsigned)status);
		}
		return true;
	}
	return false;
}

static void end_of_job(pid_t pid, int status)
{
	for (unsigned i = t.oldest; i < t.begun; i++) {
		struct job *job = &t.jobs[i];

		if (job->pid != pid)
			continue;
		job->pid = 0;
		job->status = status;
		job->failed = status && !job->killed;
		t.active--;
		t.progress_ns = now_ns();
		if (job->failed && settings.verbose)
			(void)printf(
				"# job %u ended with status %#x\n", i, (unsigned)status);
	}
}

static void reap(void)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!end_of_verb(pid, status))
			end_of_job(pid, status);
}

static bool verbs_run(void)
{
	for (size_t i = 0; i < MAX_VERBS; i++)
		if (t.verbs[i].pid)
			return true;
	return false;
}

/* Runs all jobs; returns early only when there is no more progress. */
static void play(void)
{
	int64_t end_ns =
		settings.seconds ? now_ns() + settings.seconds * NS_PER_S : INT64_MAX;

	t.progress_ns = now_ns();
	for (;;) {
		int64_t now = now_ns();
		bool more = t.begun < settings.jobs && now < end_ns;

		reap();
		if (!more && !t.active && !verbs_run() && t.paused < 0)
			break;
		if (now - t.progress_ns > STANDSTILL_NS && t.active) {
			t.stuck = true;
			break;
		}
		for (int i = 0; more && i < 4 && t.active < settings.clients; i++) {
			if (t.begun < settings.jobs)
				start_job();
		}
		act_on_jobs(now);
		if (more)
			act_with_verbs(now);
		else if (t.paused >= 0)
			pause_or_resume(INT64_MAX / 2);
		tool_doze(roughly(2000) * INT64_C(1000));
	}
}

/* --- verdicts ----------------------------------------------------------------------- */

static void show_file(const char *name, const char *title, long last_bytes)
{
	char line[512];
	FILE *file = fopen(name, "re");

	if (!file)
		return;
	if (last_bytes && fseek(file, -last_bytes, SEEK_END) < 0)
		rewind(file);
	for (int i = 0; i < 20 && fgets(line, sizeof(line), file); i++)
		(void)printf("# %s: %s", title, line);
	(void)fclose(file);
}

static void show_stuck(void)
{
	for (unsigned i = t.oldest; i < t.begun; i++) {
		const struct wish *wish = &t.board->starts[i].wish;

		if (t.jobs[i].pid)
			(void)printf(
				"# job %u still there: pid %d, %u GPUs (%u%%, %u MiB), "
				"priority %d, after %u, n%u, state %c, %s\n",
				i, (int)t.jobs[i].pid, wish->gpus, wish->percent,
				wish->mib, wish->priority, wish->after, wish->singleton,
				tool_state(t.jobs[i].pid),
				atomic_load(&t.board->starts[i].at_ns) ? "runs"
								       : "waits");
	}
}

static unsigned count_failed(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < t.begun; i++)
		failed += t.jobs[i].failed ? 1 : 0;
	return failed;
}

static int compare_starts(const void *a, const void *b)
{
	const struct start *one = &t.board->starts[*(const unsigned *)a];
	const struct start *two = &t.board->starts[*(const unsigned *)b];

	return (one->at_ns > two->at_ns) - (one->at_ns < two->at_ns);
}

/* Whether only its number decides its turn among the jobs of its priority. */
static bool is_plain(unsigned job, int priority)
{
	const struct start *start = &t.board->starts[job];
	const struct wish *wish = &start->wish;

	return wish->gpus == settings.gpus && !wish->percent && !wish->mib &&
	       !wish->after && !wish->singleton && !wish->is_preemptible &&
	       wish->priority == priority && t.jobs[job].fate <= FATE_KILL &&
	       start->at_ns;
}

/*
 * Counts the jobs that started out of turn, of those that wanted all GPUs and were never stopped.
 */
static unsigned count_inversions(int priority, unsigned *compared)
{
	static unsigned equals[MAX_JOBS];
	unsigned n = 0, inversions = 0;

	for (unsigned i = 0; i < t.begun; i++)
		if (is_plain(i, priority))
			equals[n++] = i;
	qsort(equals, n, sizeof(equals[0]), compare_starts);
	for (unsigned i = 1; i < n; i++) {
		const struct start *before = &t.board->starts[equals[i - 1]];
		const struct start *after = &t.board->starts[equals[i]];

		if (after->id > before->id)
			continue;
		if (++inversions > 10)
			continue;
		(void)printf(
			"# job %u (ticket %lld) started %lld ms after job %u (%lld)\n",
			equals[i], (long long)after->id,
			(long long)((after->at_ns - before->at_ns) / NS_PER_MS),
			equals[i - 1], (long long)before->id);
	}
	*compared += n;
	return inversions;
}

static bool everything_is_free(void)
{
	char all[16];
	const char *const arguments[] = { "-n", all, "--", "true", NULL };
	pid_t pid;
	int status;

	(void)snprintf(all, sizeof(all), "%u", settings.gpus);
	pid = start_client(arguments);
	if (!tool_await(pid, now_ns() + DEADLINE_NS, &status))
		return status == 0;
	tool_kill(&pid);
	return false;
}

/* How many FIFOs are left; a few are no failure, as they are removed now and then. */
static unsigned count_fifos(const char *of)
{
	char path[SCRATCH_SIZE + 64];
	unsigned count = 0;
	DIR *dir;

	state_path(of, path, sizeof(path));
	dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		count += entry->d_name[0] != '.' ? 1 : 0;
	if (dir)
		(void)closedir(dir);
	return count;
}

static int judge(void)
{
	unsigned started = 0, failed, inversions = 0, compared = 0;

	for (unsigned i = 0; i < t.begun; i++)
		started += t.board->starts[i].at_ns ? 1 : 0;
	(void)printf("# %u at most on one GPU, %u came after others\n", t.board->most,
		t.board->followers);
	(void)printf("# %u jobs: %u started, %u killed, %u stopped; "
		     "%u of %u cancels, %u pauses\n",
		t.begun, started, t.kills, t.stops, t.cancels_done, t.cancels, t.pauses);
	if (!tap_result(!t.board->violations && started,
		    "no GPU was given away twice (%u starts)", started))
		show_file("violations", "oracle", 0);
	if (!tap_result(!t.stuck, "every client has ended"))
		show_stuck();
	for (unsigned i = t.oldest; i < t.begun; i++)
		tool_kill(&t.jobs[i].pid);
	failed = count_failed();
	(void)tap_result(failed <= t.cancels_done,
		"no client failed without a cancel (%u failed, %u cancelled)", failed,
		t.cancels_done);
	if (settings.preempt)
		(void)tap_result(t.board->again > 0,
			"preempted jobs have started again (%u times)", t.board->again);
	(void)tap_result(
		!t.verb_failures, "every --cancel, --pause and --resume has worked");
	(void)tap_result(
		everything_is_free(), "a client that wants all GPUs starts at the end");
	for (int priority = -3; priority <= 3; priority++)
		inversions += count_inversions(priority, &compared);
	(void)tap_result(!inversions,
		"equal requests started in ticket order (%u requests)", compared);
	(void)printf("# left: %u FIFOs in live, %u in bell\n", count_fifos("live"),
		count_fifos("bell"));
	if (tap()->failures)
		show_file("log", "stderr", 1500);
	return tap_end();
}

static const struct option options[] = {
	{ "seed", required_argument, NULL, 's' },
	{ "clients", required_argument, NULL, 'c' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "gpus", required_argument, NULL, 'g' },
	{ "seconds", required_argument, NULL, 't' },
	{ "shares", required_argument, NULL, 'p' },
	{ "preempt", required_argument, NULL, 'e' },
	{ "card", required_argument, NULL, 'm' },
	{ "crowd", no_argument, NULL, 'w' },
	{ "nopidfd", required_argument, NULL, 'n' },
	{ "users", required_argument, NULL, 'u' },
	{ 0 },
};

static void parse(int argc, char **argv)
{
	int option;

	settings.seed = (uint64_t)now_ns() % 1000000;
	while ((option = getopt_long(argc, argv, "v", options, NULL)) != -1)
		switch (option) {
		case 's':
			settings.seed = number(optarg, "seed");
			break;
		case 'c':
			settings.clients = (unsigned)number(optarg, "clients");
			break;
		case 'j':
			settings.jobs = (unsigned)number(optarg, "jobs");
			break;
		case 'g':
			settings.gpus = (unsigned)number(optarg, "GPUs");
			break;
		case 't':
			settings.seconds = (int64_t)number(optarg, "seconds");
			break;
		case 'p':
			settings.shares = (unsigned)number(optarg, "percent");
			break;
		case 'e':
			settings.preempt = (unsigned)number(optarg, "percent");
			break;
		case 'm':
			settings.card_mib = (unsigned)number(optarg, "card");
			break;
		case 'w':
			settings.is_crowd = true;
			break;
		case 'n':
			settings.nopidfd = optarg;
			break;
		case 'u':
			settings.dir = tool_users(optarg, &settings.first_user);
			break;
		case 'v':
			settings.verbose = true;
			break;
		default:
			exit(TOOL_MISUSE);
		}
	if (!settings.jobs)
		settings.jobs = settings.seconds ? MAX_JOBS : 300;
	if (!settings.clients || !settings.gpus || settings.gpus > MAX_GPUS ||
		!settings.jobs || settings.jobs > MAX_JOBS)
		die("torture: at least one client and GPU, at most %d jobs", MAX_JOBS);
}

int main(int argc, char **argv)
{
	char state[SCRATCH_SIZE + 8], gpus[16];
	int r;

	if (argc == 5 && !strcmp(argv[1], "--job"))
		return run_job(argv + 2);
	parse(argc, argv);
	tool_init();
	tool_clean_environment();
	job_random = settings.seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	other_random = job_random;
	(void)printf("# seed %llu: %u clients, %u jobs, %u GPUs%s%s\n",
		(unsigned long long)settings.seed, settings.clients, settings.jobs,
		settings.gpus, settings.nopidfd ? ", pidfd_open fails with " : "",
		settings.nopidfd ? settings.nopidfd : "");
	(void)tool_gpulease();
	(void)tool_self();
	tool_scratch(t.place);
	if (settings.first_user) { /* their commands write there */
		(void)umask(0);
		(void)chmod(t.place, 0777);
	}
	t.board = map_board(t.place, O_CREAT);
	t.log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	t.paused = -1;
	(void)snprintf(state, sizeof(state), "%s/state", t.place);
	(void)snprintf(gpus, sizeof(gpus), "%u", settings.gpus);
	(void)mkdir(state, 0700);
	(void)setenv("XDG_STATE_HOME", state, 1);
	if (!settings.first_user)
		(void)setenv("GPULEASE_SIM", gpus, 1);
	play();
	r = judge();
	remove_tree(t.place);
	return r;
}
