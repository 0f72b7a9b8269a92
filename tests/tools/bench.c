/*
 * bench: measures the figures that gpulease promises, beside those of other programs for the same
 * task.
 *
 *	bench [--rounds N] [--only TEXT]
 *
 * --only: only the rows whose name has TEXT.  Programs that are compared are measured in turns in
 * the same run.  A figure that is worse than promised does not change the exit status, which is 0
 * unless a measurement failed.
 */
#include "tool.h"
#include "measure.h"
#include "bench_left.h"
#include "bench_plan.h"

#include <dirent.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { HERD = 200, RECORD = 512, FINISHED = 100000, SMI_MS = 200 };

#define ROW_LIMIT_S 300

static unsigned rounds = 51;
static char place[SCRATCH_SIZE], lock_path[SCRATCH_SIZE + 16], stamp_path[4096 + 16];
static int start_fd = -1, go_fd = -1, end_fd = -1;

/* --- the place ---------------------------------------------------------------------- */

/* Makes a new state directory with @gpus simulated GPUs; returns its path. */
static const char *fresh_state(const char *gpus)
{
	static char path[SCRATCH_SIZE + 32], state[SCRATCH_SIZE + 96];
	static unsigned number_of;

	(void)snprintf(
		path, sizeof(path), "%s/state.%d.%u", place, (int)getpid(), ++number_of);
	(void)mkdir(path, 0700);
	(void)setenv("XDG_STATE_HOME", path, 1);
	(void)setenv("GPULEASE_SIM", gpus, 1);
	(void)snprintf(state, sizeof(state), "%s/gpulease/sim-%sx24576", path, gpus);
	return state;
}

static int open_fifo(const char *name)
{
	char path[SCRATCH_SIZE + 32];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", place, name);
	if (mkfifo(path, 0600) < 0 || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		die("cannot make '%s': %s", path, strerror(errno));
	return fd;
}

static void make_place(void)
{
	char path[SCRATCH_SIZE + 32];

	tool_scratch(place);
	(void)snprintf(lock_path, sizeof(lock_path), "%s/lock", place);
	tool_beside("stamp", stamp_path, sizeof(stamp_path));
	start_fd = open_fifo("start");
	go_fd = open_fifo("go");
	end_fd = open_fifo("end");
	/* The folders of the other programs' queues. */
	(void)snprintf(path, sizeof(path), "%s/nq", place);
	(void)setenv("NQDIR", path, 1);
	(void)snprintf(path, sizeof(path), "%s/tsp", place);
	(void)setenv("TS_SOCKET", path, 1);
	(void)setenv("TMPDIR", place, 1);
	(void)setenv("PARALLEL_HOME", place, 1);
}

static bool installed(const char *name)
{
	char path[4096];
	const char *rest = getenv("PATH");

	for (const char *end; rest && *rest; rest = *end ? end + 1 : end) {
		end = strchrnul(rest, ':');
		(void)snprintf(
			path, sizeof(path), "%.*s/%s", (int)(end - rest), rest, name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* The next time that stamp reports. */
static int64_t told(int fd)
{
	int64_t ns;

	if (tool_readable(fd, now_ns() + DEADLINE_NS) ||
		read(fd, &ns, sizeof(ns)) != sizeof(ns))
		die("nothing from stamp within 30 s");
	return ns;
}

/* Discards the times of processes that were killed at the end of a row. */
static void forget_told(void)
{
	const int fds[] = { start_fd, go_fd, end_fd };
	char bytes[512];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		while (tool_readable(fds[i], now_ns() + NS_PER_MS) == 0)
			(void)!read(fds[i], bytes, sizeof(bytes));
}

/* Lets the holding command end; returns the time of its end. */
static int64_t let_go(void)
{
	if (write(go_fd, "g", 1) != 1)
		die("cannot write to a FIFO: %s", strerror(errno));
	return told(end_fd);
}

/* --- whole processes ---------------------------------------------------------------- */

static const char *const true_argv[] = { "true", NULL };
static const char *const flock_argv[] = { "flock", lock_path, "true", NULL };
static const char *const sem_argv[] = { "sem", "--fg", "--id", "bench", "true", NULL };
static const char *const tsp_argv[] = { "tsp", "-nf", "true", NULL };
static const char *const nq_argv[] = { "sh", "-c", "nq -q true; nq -q -w", NULL };
static const char *const srun_argv[] = { "srun", "-n1", "-Q", "true", NULL };

static bool slurm_works(void)
{
	static const char *const argv[] = { "sh", "-c", "sinfo -h 2>/dev/null", NULL };
	int status;

	return installed("srun") && waitpid(measure_spawn(argv), &status, 0) > 0 &&
	       status == 0;
}

/* The same with other programs; fewer rounds, as some are slow. */
static void others_uncontended(void)
{
	struct {
		bool there;
		const char *figure, *name;
		const char *const *argv;
	} others[] = {
		{ installed("nq"), "  the same with nq", "nq", nq_argv },
		{ installed("tsp"), "  the same with task-spooler", "tsp", tsp_argv },
		{ installed("sem"), "  the same with sem", "sem", sem_argv },
		{ slurm_works(), "  the same with Slurm", "srun", srun_argv },
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct contender c = { .name = others[i].name, .argv = others[i].argv };

		if (!others[i].there) {
			table_skipped(others[i].figure, "not installed");
			continue;
		}
		measure_processes(&c, 1, 7);
		table_row(others[i].figure, "", sample_median(&c.samples), "ms", 0,
			VERDICT_NONE);
	}
}

/* Measures a start of gpulease that may take @most_ratio times as long as flock. */
static void start_beside_flock(const char *const argv[], const char *figure,
	const char *target, double most_ratio)
{
	struct contender c[] = {
		{ .name = "gpulease", .argv = argv },
		{ .name = "flock", .argv = flock_argv },
		{ .name = "true", .argv = true_argv },
	};
	double ratio;

	(void)fresh_state("8");
	measure_processes(c, ARRAY_SIZE(c), rounds);
	ratio = sample_median(&c[0].samples) / sample_median(&c[1].samples);
	table_row(figure, target, sample_median(&c[0].samples), "ms",
		sample_median(&c[1].samples),
		ratio <= most_ratio ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		table_detail(c[i].name, &c[i].samples);
}

static void row_uncontended(void)
{
	const char *const argv[] = { tool_gpulease(), "-n", "1", "--", "true", NULL };

	start_beside_flock(argv, "gpulease -n 1 -- true, beside flock FILE true",
		"at most 1.5 x", 1.5);
	others_uncontended();
}

/* Writes a configuration; its name begins with @name. */
static const char *write_conf(const char *name, const char *text)
{
	static char path[2][SCRATCH_SIZE + 16];
	static unsigned count;
	char *conf = path[count++ % ARRAY_SIZE(path)];
	autofd int fd = -1;

	(void)snprintf(conf, sizeof(path[0]), "%s/%s.conf", place, name);
	fd = open(conf, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (dprintf(fd, "%s", text) < 0)
		die("cannot write '%s': %s", conf, strerror(errno));
	return conf;
}

static const char *write_ends_conf(void)
{
	return write_conf("ends", "record-ends = yes\n");
}

/* Of what orders the queue and limits its users, as much as there can be. */
static const char *write_all_conf(void)
{
	return write_conf("all", "record-ends = yes\nfair-share = 15m/7d/24h\n[limits]\n"
				 "group 4294967 = gpus 1\nuser 4294967 = jobs 4\n"
				 "user 0 = gpus 8, jobs 800, time 48h\n");
}

static void row_recorded(void)
{
	const char *const argv[] = { tool_gpulease(), "--config", write_ends_conf(), "-n",
		"1", "--", "true", NULL };

	start_beside_flock(argv, "the same with record-ends = yes", "at most 2 x", 2);
}

/*
 * What fair-share, limits, windows, earlier runs and --notify cost together.  The notifier is a
 * process of its own, so its command is not waited for.
 */
static void row_everything(void)
{
	const char *const pause[] = { tool_gpulease(), "--pause", "7", "--at",
		"now+8hours", "--for", "1h", "--reason", "demo", NULL };
	const char *const ends[] = { tool_gpulease(), "--config", write_ends_conf(), "-n",
		"1", "--", "true", NULL };
	const char *const all[] = { tool_gpulease(), "--config", write_all_conf(),
		"--notify", ":", "--name", "bench", "--time", "1h", "-n", "1", "--",
		"true", NULL };
	struct contender c[] = {
		{ .name = "everything", .argv = all },
		{ .name = "record-ends", .argv = ends },
	};
	double more;

	(void)fresh_state("8");
	(void)measure_process(pause);
	measure_processes(c, ARRAY_SIZE(c), 2 * rounds);
	more = sample_median(&c[0].samples) - sample_median(&c[1].samples);
	table_row("order, limits, windows and notices: a start", "at most 1 ms +", more,
		"ms", 0, more <= 1 ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		table_detail(c[i].name, &c[i].samples);
}

static void row_start(void)
{
	const char *const argv[] = { tool_gpulease(), "--version", NULL };
	struct contender c[] = {
		{ .name = "gpulease --version", .argv = argv },
		{ .name = "true", .argv = true_argv },
	};
	double more;

	measure_processes(c, ARRAY_SIZE(c), rounds);
	more = sample_median(&c[0].samples) - sample_median(&c[1].samples);
	table_row("start (--version) beyond that of true", "at most 1 ms", more, "ms", 0,
		more <= 1 ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		table_detail(c[i].name, &c[i].samples);
}

static void row_size(void)
{
	char stripped[SCRATCH_SIZE + 16];
	const char *const argv[] = { "strip", "-o", stripped, tool_gpulease(), NULL };
	struct stat st;
	double kib;

	(void)snprintf(stripped, sizeof(stripped), "%s/stripped", place);
	if (!installed("strip")) {
		table_skipped("binary, stripped", "no strip");
		return;
	}
	(void)measure_process(argv);
	if (stat(stripped, &st) < 0)
		die("cannot look at '%s': %s", stripped, strerror(errno));
	kib = (double)st.st_size / 1024;
	table_row("binary, stripped", "at most 480 KiB", kib, "KiB", 0,
		kib <= 480 ? VERDICT_MET : VERDICT_MISSED);
}

/* --- with a slow driver ------------------------------------------------------------- */

/* Acts as nvidia-smi: lists eight idle GPUs SMI_MS after its start. */
static int be_nvidia_smi(int argc, char **argv)
{
	const struct timespec span = { .tv_nsec = SMI_MS * NS_PER_MS };
	const char *fields = argc > 1 ? argv[1] : "";

	(void)nanosleep(&span, NULL);
	for (int i = 0; i < 8 && !strncmp(fields, "--query-gpu=", 12); i++)
		(void)printf(
			"%d, GPU-0000000%d-0000-4000-8000-000000000000, "
			"00000000:0%d:00.0, 24576, 1, 0, [N/A], Default, NVIDIA Test\n",
			i, i, i + 1);
	return 0;
}

static void row_driver(void)
{
	char bin[SCRATCH_SIZE + 16], smi[SCRATCH_SIZE + 32], dir[SCRATCH_SIZE + 16];
	char probe[SCRATCH_SIZE + 32], path[4096];
	const char *const argv[] = { tool_gpulease(), "-n", "1", "--", "true", NULL };
	const char *const forget[] = { "rm", "-f", probe, NULL };
	const char *const smi_argv[] = { smi, "--query-gpu=index", NULL };
	struct contender c[] = {
		{ .name = "gpulease", .argv = argv, .prepare = forget },
		{ .name = "this nvidia-smi alone", .argv = smi_argv },
	};
	const char *old = getenv("PATH");
	double beyond;

	(void)snprintf(bin, sizeof(bin), "%s/bin", place);
	(void)snprintf(smi, sizeof(smi), "%s/nvidia-smi", bin);
	(void)snprintf(dir, sizeof(dir), "%s/dir", place);
	(void)snprintf(probe, sizeof(probe), "%s/probe", dir);
	if (mkdir(bin, 0700) < 0 || symlink(tool_self(), smi) < 0 || mkdir(dir, 0700) < 0)
		die("cannot make '%s': %s", smi, strerror(errno));
	(void)snprintf(path, sizeof(path), "%s:%s", bin, old ? old : "/usr/bin:/bin");
	old = old ? strdup(old) : NULL;
	(void)setenv("PATH", path, 1);
	(void)setenv("GPULEASE_DIR", dir, 1);
	(void)unsetenv("GPULEASE_SIM");
	measure_processes(c, ARRAY_SIZE(c), 15);
	(void)unsetenv("GPULEASE_DIR");
	(void)(old ? setenv("PATH", old, 1) : unsetenv("PATH"));
	free_pointer(&old);
	beyond = sample_median(&c[0].samples) - SMI_MS;
	table_row("the same, beyond an nvidia-smi of 200 ms", "at most 5 ms", beyond,
		"ms", 0, beyond <= 5 ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		table_detail(c[i].name, &c[i].samples);
}

/* --- hand-off, one waiter ----------------------------------------------------------- */

/* A contender: the words before the command, up to MAX_PREFIX, name its queue. */
enum { MAX_PREFIX = 8 };

struct rival {
	const char *name;
	const char *prefix[MAX_PREFIX];
	bool detached; /* it returns at once and runs the command elsewhere */
	struct samples samples;
};

static pid_t start_in_queue(const struct rival *queue, const char *what)
{
	const char *argv[MAX_PREFIX + 4];
	size_t n = 0;
	pid_t pid;

	for (; n < MAX_PREFIX && queue->prefix[n]; n++)
		argv[n] = queue->prefix[n];
	argv[n++] = stamp_path;
	argv[n++] = place;
	argv[n++] = what;
	argv[n] = NULL;
	pid = measure_spawn(argv);
	if (queue->detached)
		(void)waitpid(pid, NULL, 0);
	return pid;
}

/* Waits until all processes sleep, three times in a row: they have settled. */
static void settle(const pid_t *pids, size_t count)
{
	int64_t deadline = now_ns() + DEADLINE_NS;

	for (unsigned quiet = 0; quiet < 3; quiet++) {
		const struct timespec span = { .tv_nsec = 10 * NS_PER_MS };

		(void)nanosleep(&span, NULL);
		for (size_t i = 0; i < count; i++)
			if (tool_state(pids[i]) != 'S')
				quiet = 0;
		if (now_ns() > deadline)
			die("the waiters do not come to rest");
	}
}

static int64_t hand_off(const struct rival *queue)
{
	pid_t holder = start_in_queue(queue, "hold"), waiter;
	int64_t ended, started;

	(void)told(start_fd);
	waiter = start_in_queue(queue, "start");
	settle(&waiter, queue->detached ? 0 : 1);
	ended = let_go();
	started = told(start_fd);
	if (!queue->detached) {
		(void)waitpid(holder, NULL, 0);
		(void)waitpid(waiter, NULL, 0);
	}
	return started - ended;
}

static void others_hand_off(void)
{
	static struct {
		const char *program, *figure;
		struct rival queue;
	} others[] = {
		{ "flock", "  the same with flock --no-fork",
			{ .prefix = { "flock", "--no-fork", lock_path } } },
		{ "nq", "  the same with nq",
			{ .prefix = { "nq", "-q" }, .detached = true } },
		{ "tsp", "  the same with task-spooler",
			{ .prefix = { "tsp", "-n" }, .detached = true } },
		{ "sem", "  the same with sem",
			{ .prefix = { "sem", "--fg", "--id", "bench" } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct rival *queue = &others[i].queue;

		if (!installed(others[i].program)) {
			table_skipped(others[i].figure, "not installed");
			continue;
		}
		for (int round = 0; round < 9; round++)
			sample_add(&queue->samples, hand_off(queue));
		table_row(others[i].figure, "", sample_median(&queue->samples), "ms", 0,
			VERDICT_NONE);
	}
	if (!slurm_works())
		table_skipped("  the same with Slurm", "not installed");
}

static void row_hand_off(void)
{
	static struct rival queues[] = { { .name = "gpulease" },
		{ .name = "flock", .prefix = { "flock", lock_path } } };
	double ratio;

	queues[0].prefix[0] = tool_gpulease();
	queues[0].prefix[1] = "-Qn1";
	queues[0].prefix[2] = "--";
	(void)fresh_state("1");
	for (unsigned round = 0; round <= rounds; round++)
		for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
			int64_t ns = hand_off(&queues[i]);

			if (round)
				sample_add(&queues[i].samples, ns);
		}
	ratio = sample_median(&queues[0].samples) / sample_median(&queues[1].samples);
	table_row("hand-off, one waiter, beside flock(1)", "at most 1.2 x",
		sample_median(&queues[0].samples), "ms",
		sample_median(&queues[1].samples),
		ratio <= 1.2 ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		table_detail(queues[i].name, &queues[i].samples);
	others_hand_off();
}

/* --- hand-off, 200 waiters ---------------------------------------------------------- */

/* Shared with the bare herd: when each process was done, and when the herd was released. */
static int64_t *herd_done;

/* How much a process has read so far; 0 if the kernel does not count it. */
static int64_t bytes_read_by(pid_t pid)
{
	char path[64], line[256];
	long long bytes = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "rchar: %lld", &bytes) == 1)
			break;
	if (file)
		(void)fclose(file);
	return bytes;
}

/* What a member of the herd reads into; touched before it waits. */
static char herd_buffer[1 << 18];

static int64_t read_end(const char *directory, const char *name, int64_t bytes)
{
	char path[SCRATCH_SIZE + 160];
	autofd int fd = -1;
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	bytes = min_i64(bytes, sizeof(herd_buffer));
	if (fd < 0 || fstat(fd, &st) < 0 || bytes <= 0)
		return 0;
	return max_i64(
		pread(fd, herd_buffer, (size_t)bytes, max_i64(st.st_size - bytes, 0)), 0);
}

/* A member of the herd: waits for the end of @pid, reads as much as a waiter, and ends. */
static void __attribute__((noreturn))
be_herd(size_t index, pid_t pid, const char *state, int64_t bytes)
{
	struct pollfd watch = { .fd = (int)syscall(SYS_pidfd_open, pid, 0),
		.events = POLLIN };

	memset(herd_buffer, 1, sizeof(herd_buffer));
	(void)poll(&watch, 1, -1);
	bytes -= read_end(state, "gpu/slot.0", bytes);
	(void)read_end(state, "tickets", bytes);
	herd_done[index] = now_ns();
	_exit(watch.fd < 0);
}

/* The time from the end of a process until the last of a herd has read; @first: the first. */
static int64_t bare_herd(const char *state, int64_t bytes, struct samples *first)
{
	int64_t ended, last_ns = 0, first_ns = INT64_MAX;
	pid_t holder, pids[HERD];
	int go[2], status;
	char byte;

	tool_pipe(go);
	holder = fork();
	if (holder == 0) {
		(void)!read(go[0], &byte, 1);
		herd_done[HERD] = now_ns();
		_exit(0);
	}
	for (size_t i = 0; i < HERD; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			be_herd(i, holder, state, bytes);
	}
	settle(pids, HERD);
	(void)!write(go[1], "g", 1);
	(void)waitpid(holder, NULL, 0);
	ended = herd_done[HERD];
	(void)close(go[0]);
	(void)close(go[1]);
	for (size_t i = 0; i < HERD; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			die("no herd: pidfd_open does not work here");
		last_ns = max_i64(last_ns, herd_done[i]);
		first_ns = min_i64(first_ns, herd_done[i]);
	}
	sample_add(first, first_ns - ended);
	return last_ns - ended;
}

/* One job that runs and HERD jobs that wait; each one, once it runs, waits for let_go(). */
static pid_t crowd[HERD + 1];

/*
 * Starts a job in the place of each that has ended, and waits until all sleep.  Returns one of the
 * latest.
 */
static pid_t fill_crowd(void)
{
	static struct rival queue = { .prefix = { NULL, "-Qn1", "--" } };
	static pid_t last;
	int status;

	queue.prefix[0] = tool_gpulease();

	for (size_t i = 0; i <= HERD; i++) {
		if (crowd[i] && waitpid(crowd[i], &status, WNOHANG) == crowd[i])
			crowd[i] = 0;
		if (!crowd[i])
			last = crowd[i] = start_in_queue(&queue, "hold");
	}
	settle(crowd, HERD + 1);
	return last;
}

static void row_herd(void)
{
	struct samples crowded = { 0 }, bare = { 0 }, first = { 0 };
	const char *state = fresh_state("1");
	int64_t ended, before, bytes = 0;
	pid_t watched;
	double ratio;

	herd_done = mmap(NULL, (HERD + 1) * sizeof(int64_t), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)fill_crowd();
	(void)told(start_fd);
	for (int round = 0; round < 21; round++) {
		watched = fill_crowd();
		before = bytes_read_by(watched);
		ended = let_go();
		sample_add(&crowded, told(start_fd) - ended);
		(void)fill_crowd();
		bytes = max_i64(bytes_read_by(watched) - before, RECORD);
		sample_add(&bare, bare_herd(state, bytes, &first));
	}
	for (size_t i = 0; i <= HERD; i++)
		tool_kill(&crowd[i]);
	ratio = sample_median(&crowded) / sample_median(&bare);
	table_row("hand-off, 200 waiters, beside a bare herd", "at most 1.3 x",
		sample_median(&crowded), "ms", sample_median(&bare),
		ratio <= 1.3 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("gpulease, until the next command runs", &crowded);
	table_detail("bare herd of 200, until all have read", &bare);
	table_detail("bare herd of 200, until one has read", &first);
	(void)printf("    each reads %lld bytes\n", (long long)bytes);
}

/* --- a long wait -------------------------------------------------------------------- */

static struct {
	pid_t holder, waiter;
	int64_t since_ns;
	uint64_t ticks;
} idle;

/* utime + stime of /proc/PID/stat. */
static uint64_t ticks_of(pid_t pid)
{
	char path[64], line[1024] = "", *at;
	unsigned long long user = 0, system_time = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		die("cannot read '%s'", path);
	(void)fclose(file);
	at = strrchr(line, ')');
	if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			   &user, &system_time) != 2)
		die("cannot understand '%s'", path);
	return user + system_time;
}

/* How long a process has run on a CPU. */
static double cpu_ns_of(pid_t pid)
{
	char path[64];
	unsigned long long ns = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &ns) != 1)
		die("cannot read '%s'", path);
	(void)fclose(file);
	return (double)ns;
}

/* The memory that /proc/PID/status has under @name; 0: it has no such line. */
static double memory_kib(pid_t pid, const char *name)
{
	char path[64], line[256];
	size_t size = strlen(name);
	unsigned long kib = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, size) == 0 &&
			sscanf(line + size, ": %lu kB", &kib) == 1)
			break;
	if (file)
		(void)fclose(file);
	return (double)kib;
}

static void doze_until(int64_t ns)
{
	while (now_ns() < ns) {
		const struct timespec span = { .tv_nsec = 10 * NS_PER_MS };

		(void)nanosleep(&span, NULL);
	}
}

/* Starts a long job with all eight GPUs of a new state directory. */
static pid_t hold_all(void)
{
	const char *const holder[] = { tool_gpulease(), "-Qn8", "--", "sleep", "100000",
		NULL };
	pid_t holding;

	(void)fresh_state("8");
	holding = tool_spawn(holder, -1, -1, -1);
	settle(&holding, 1);
	return holding;
}

static void idle_begin(const char *const waiter[])
{
	idle.holder = hold_all();
	idle.waiter = tool_spawn(waiter, -1, -1, -1);
	settle(&idle.waiter, 1);
	idle.since_ns = now_ns();
	doze_until(idle.since_ns + NS_PER_S);
	idle.ticks = ticks_of(idle.waiter);
}

/* Ends 30 s after idle_begin(). */
static void idle_end(const char *figure)
{
	double ticks, kib;

	doze_until(idle.since_ns + 30 * NS_PER_S);
	ticks = (double)(ticks_of(idle.waiter) - idle.ticks);
	kib = memory_kib(idle.waiter, "RssAnon");
	if (kib <= 0)
		die("the waiter has ended");
	table_row(figure, "0 ticks", ticks, "ticks", 0,
		ticks <= 0 ? VERDICT_MET : VERDICT_MISSED);
	table_row("  its RssAnon", "at most 256 KiB", kib, "KiB", 0,
		kib <= 256 ? VERDICT_MET : VERDICT_MISSED);
	tool_kill(&idle.waiter);
	tool_kill(&idle.holder);
}

static void row_idle(void)
{
	const char *const waiter[] = { tool_gpulease(), "-Qn1", "--", "true", NULL };

	idle_begin(waiter);
	idle_end("30 s behind a live lease: CPU after 1 s");
}

static void row_idle_everything(void)
{
	const char *const waiter[] = { tool_gpulease(), "--config", write_all_conf(),
		"--notify", ":", "--name", "bench", "--time", "1h", "-Qn1", "--", "true",
		NULL };

	idle_begin(waiter);
	idle_end("the same with order, limits and notices");
}

#include "bench_tasks.h"
#include "bench_care.h"
#include "bench_batch.h"

/* --- a head that is stopped ------------------------------------------------------------ */

/* The time from the arrival of a new job behind the stopped head to that job's end. */
static int64_t past_stopped_head(void)
{
	const char *const all[] = { tool_gpulease(), "-Qn8", "--", "true", NULL };
	const char *const one[] = { tool_gpulease(), "-Qn1", "--", "true", NULL };
	pid_t holding, head, newcomer;
	int64_t begun;
	int status;

	holding = hold_all();
	head = tool_spawn(all, -1, -1, -1);
	settle(&head, 1);
	(void)kill(head, SIGSTOP);
	tool_kill(&holding);
	begun = now_ns();
	newcomer = measure_spawn(one);
	if (waitpid(newcomer, &status, 0) != newcomer || status)
		die("the newcomer ended with status %#x", (unsigned)status);
	begun = now_ns() - begun;
	tool_kill(&head);
	return begun;
}

static void row_stopped(void)
{
	struct samples samples = { 0 };

	for (int round = 0; round < 7; round++)
		sample_add(&samples, past_stopped_head());
	table_row("a newcomer behind a head that is stopped", "at most 4000 ms",
		sample_median(&samples), "ms", 0,
		sample_median(&samples) <= 4000 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("gpulease", &samples);
}

/* --- many behind a head -------------------------------------------------------------- */

enum { CROWD = 600, CROWD_S = 20 };

static double cpu_ms_of(const pid_t *pids, size_t count)
{
	double ns = 0;

	for (size_t i = 0; i < count; i++)
		ns += cpu_ns_of(pids[i]);
	return ns / NS_PER_MS;
}

/* GPU 0 is leased for an hour, GPU 1 is free, and the head waits for both. */
static void row_crowd(void)
{
	const char *const holder[] = { tool_gpulease(), "-Qn1", "-t", "1h", "--", "sleep",
		"100000", NULL };
	const char *const head[] = { tool_gpulease(), "-Qn2", "--", "true", NULL };
	const char *const one[] = { tool_gpulease(), "-Qn1", "--", "true", NULL };
	static pid_t pids[1 + CROWD];
	pid_t held;
	double ms;

	(void)fresh_state("2");
	held = tool_spawn(holder, -1, -1, -1);
	settle(&held, 1);
	for (size_t i = 0; i <= CROWD; i++)
		pids[i] = measure_spawn(i == 0 ? head : one);
	/* by then each job has its ticket, and the eight that look at the queue have begun */
	doze_until(now_ns() + 15 * NS_PER_S);
	ms = -cpu_ms_of(pids, 1 + CROWD);
	doze_until(now_ns() + (int64_t)CROWD_S * NS_PER_S);
	ms += cpu_ms_of(pids, 1 + CROWD);
	table_row("600 waiters behind a head: CPU in 20 s", "at most 300 ms", ms, "ms", 0,
		ms <= 300 ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i <= CROWD; i++)
		tool_kill(&pids[i]);
	tool_kill(&held);
}

/* --- many, and many before ---------------------------------------------------------- */

static void row_burst(void)
{
	const char *const argv[] = { tool_gpulease(), "-Qn1", "--", "true", NULL };
	struct samples samples = { 0 };
	pid_t pids[HERD];
	int64_t begun;
	int status;

	(void)fresh_state("8");
	for (int round = 0; round < 9; round++) {
		begun = now_ns();
		for (size_t i = 0; i < HERD; i++)
			pids[i] = measure_spawn(argv);
		for (size_t i = 0; i < HERD; i++)
			if (waitpid(pids[i], &status, 0) != pids[i] || status)
				die("one of 200 ended with status %#x", (unsigned)status);
		sample_add(&samples, now_ns() - begun);
	}
	table_row("200 x true, all at once, 8 GPUs", "at most 1500 ms",
		sample_median(&samples), "ms", 0,
		sample_median(&samples) <= 1500 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("gpulease", &samples);
}

/* Appends @count copies of the last ticket, which is that of an ended job. */
static void copy_last_ticket(const char *state, unsigned count)
{
	char path[SCRATCH_SIZE + 160], record[RECORD];
	autofd int fd = -1;
	off_t size;

	(void)snprintf(path, sizeof(path), "%s/tickets", state);
	fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 2 * RECORD || pread(fd, record, RECORD, size - RECORD) != RECORD)
		die("cannot read '%s'", path);
	while (count--)
		if (write(fd, record, RECORD) != RECORD)
			die("cannot write '%s': %s", path, strerror(errno));
}

static void row_finished(void)
{
	static const char *const counts[] = { "10", "100000" };
	const char *const argv[] = { tool_gpulease(), "-n", "1", "--", "true", NULL };
	struct samples after[2] = { { .count = 0 } };
	char *homes[2];
	int64_t first[2];
	double more;

	for (size_t i = 0; i < 2; i++) {
		const char *state = fresh_state("8");

		homes[i] = strdup(getenv("XDG_STATE_HOME"));
		(void)measure_process(argv);
		copy_last_ticket(state, (unsigned)number(counts[i], "count"));
		first[i] = measure_process(argv);
	}
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < 2; i++) {
			(void)setenv("XDG_STATE_HOME", homes[i], 1);
			sample_add(&after[i], measure_process(argv));
		}
	more = sample_median(&after[1]) - sample_median(&after[0]);
	table_row("a client after 100,000 finished tickets", "at most 1 ms +", more, "ms",
		0, more <= 1 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("after 10, second client on", &after[0]);
	table_detail("after 100,000, second client on", &after[1]);
	(void)printf("    the first client: %.2f ms after 10, %.2f ms after 100,000\n",
		(double)first[0] / NS_PER_MS, (double)first[1] / NS_PER_MS);
	free(homes[0]);
	free(homes[1]);
}

#include "bench_dead.h"

static void row_plan(void)
{
	plan_bench_rows(rounds);
}

static void row_left(void)
{
	left_rows(rounds);
}

static const struct {
	const char *name;
	void (*measure)(void);
} rows[] = {
	{ "uncontended", row_uncontended },
	{ "recorded", row_recorded },
	{ "everything", row_everything },
	{ "driver", row_driver },
	{ "hand-off", row_hand_off },
	{ "herd", row_herd },
	{ "idle", row_idle },
	{ "idle everything", row_idle_everything },
	{ "stopped", row_stopped },
	{ "crowd", row_crowd },
	{ "burst", row_burst },
	{ "finished", row_finished },
	{ "size", row_size },
	{ "start", row_start },
	{ "plan", row_plan },
	{ "left", row_left },
	{ "dead", dead_rows },
	{ "supervised", rows_supervised },
	{ "background", rows_background },
	{ "batch", batch_rows },
	{ "tasks", rows_tasks },
};

/*
 * Measures a row in a process of its own, so that the others follow if it fails or hangs.  Returns
 * whether it has been measured.
 */
static bool measure_row(size_t row)
{
	int status;
	pid_t pid;

	forget_told();
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		(void)alarm(ROW_LIMIT_S);
		rows[row].measure();
		exit(0);
	}
	if (waitpid(pid, &status, 0) == pid && status == 0)
		return true;
	table_skipped(rows[row].name, "it has failed");
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ 0 },
	};
	static const char *const end_tsp[] = { "sh", "-c",
		"tsp -K 2>/dev/null || :", NULL };
	const char *only = "";
	bool is_whole = true;
	int option;

	if (!strcmp(strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0],
		    "nvidia-smi"))
		return be_nvidia_smi(argc, argv);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'r')
			rounds = (unsigned)number(optarg, "rounds");
		else if (option == 'o')
			only = optarg;
		else
			return TOOL_MISUSE;
	}
	tool_init();
	tool_clean_environment();
	(void)tool_gpulease();
	make_place();
	table_head();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strstr(rows[i].name, only))
			is_whole &= measure_row(i);
	(void)measure_process(end_tsp);
	remove_tree(place);
	return is_whole ? 0 : 1;
}
