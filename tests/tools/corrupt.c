/*
 * corrupt: damages the files of a state directory at random while clients use them.  No command
 * may be killed by that or hang, each prints at most one clear line, and, by the oracle of
 * torture, no GPU ever has two owners.
 *
 *	corrupt [--seed S] [--count N] [--keep] [-v]
 *
 * Makes N damages (1000), a few in each scene: a new directory with jobs that run, wait and have
 * died.  Some scenes have simulated GPUs, some a driver, which is this tool as nvidia-smi.  In
 * half of them several jobs share a GPU, so that its file has more than one live lease.  With
 * --keep it stops when a GPU has two owners.  The same seed gives the same scenes; which events
 * meet depends on the scheduler.
 *
 * A live lease is known by its record, its ticket and its FIFO; no process can know of it when
 * all three are lost, or when its record was replaced by zeros, which is a release.  So a scene
 * damages at most two of the three, and zeros no whole record.
 *
 * In every third scene all links, lease files and FIFOs are deleted together, again and again,
 * while many short jobs come and go.  The tickets remain, so no GPU may be given away twice, and
 * each job must end within 30 s, although no bell is rung for it.
 */
#include "oracle.h"

#include <dirent.h>
#include <getopt.h>

#include "../json_valid.h"

enum {
	GPUS = 4,
	CARD_MIB = 24576,
	HOLDERS = 4,
	WAITERS = 2,
	DAMAGES = 14,
	CROWD = 16,
	BRIEF_MS = 100, /* the run time of a job that does not report its start */
	VERBS = 6,
	RECORD = 512
};
enum { OUTPUT_MAX = 1 << 18, PATH = SCRATCH_SIZE + 64 };

/* No verb may take this long; a waiting job also has timers of up to 30 s. */
#define VERB_NS (20 * NS_PER_S)
#define WAITER_NS (60 * NS_PER_S)
#define CROWD_NS (30 * NS_PER_S)

enum kind { LEASES, SLOTS, TICKETS, LIVE, BELLS, HISTORY, PROBE, PROBE_LOCK, KINDS };

static const struct {
	const char *folder, *prefix; /* of the files to choose from */
	unsigned weight;
} kinds[KINDS] = {
	[LEASES] = { "gpu", "GPU-", 40 },
	[SLOTS] = { "gpu", "slot.", 8 },
	[TICKETS] = { ".", "tickets", 22 },
	[LIVE] = { "live", "", 10 },
	[BELLS] = { "bell", "", 5 },
	[HISTORY] = { ".", "history", 5 },
	[PROBE] = { ".", "probe", 6 },
	[PROBE_LOCK] = { ".", "probe.lock", 4 },
};

static struct {
	char place[SCRATCH_SIZE], dir[PATH];
	uint64_t random;
	unsigned count, scene;
	bool is_verbose, keeps;
	int ready, log;
	pid_t holders[HOLDERS], waiters[WAITERS];
	char story[DAMAGES][160]; /* what was done in this scene */
	unsigned damages;
	unsigned doubles, hangs, deaths, statuses, words, stuck, bad_json;
} t;

static unsigned below(unsigned limit)
{
	return draw(&t.random, limit);
}

/* Counts a failure and prints what led to it. */
static void PRINTF_LIKE(2, 3) complain(unsigned *counter, const char *format, ...)
{
	va_list arguments;

	if (++*counter > 5)
		return;
	(void)printf("# scene %u: ", t.scene);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
	for (unsigned i = 0; i < t.damages; i++)
		(void)printf("#   after %s\n", t.story[i]);
}

/* --- the command, and the driver ---------------------------------------------------- */

/* corrupt --job PLACE MS PERCENT */
static int run_job(char **argv)
{
	uint64_t ms = number(argv[1], "time");
	const char *list = getenv("CUDA_VISIBLE_DEVICES"), *id = getenv("GPULEASE_ID");
	struct oracle_use use = oracle_use_of(id ? number(id, "id") : 0,
		(unsigned)number(argv[2], "percent"), 0, CARD_MIB);
	char gpu[64], why[320];

	if (chdir(argv[0]) < 0)
		die("cannot use '%s': %s", argv[0], strerror(errno));
	while (list && *list) {
		size_t size = strcspn(list, ",");

		(void)snprintf(gpu, sizeof(gpu), "%.*s", (int)size, list);
		if (!oracle_claim(gpu, &use, CARD_MIB, why, sizeof(why)))
			oracle_tell(why);
		list += size + (list[size] ? 1 : 0);
	}
	if (ms > BRIEF_MS) {
		autofd int ready = open("ready", O_WRONLY | O_CLOEXEC);

		(void)!write(ready, "!", 1);
	}
	tool_doze((int64_t)ms * NS_PER_MS);
	return 0;
}

static int be_nvidia_smi(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--query-gpu", 11) != 0)
			continue;
		for (unsigned gpu = 0; gpu < GPUS; gpu++)
			(void)printf("%u, GPU-%08x-0000-4000-8000-000000000000, "
				     "00000000:%02X:00.0, 24576, 3, 0, [N/A], Default, "
				     "Fake\n",
				gpu, gpu + 1, gpu + 1);
	}
	return 0;
}

/* --- a scene ------------------------------------------------------------------------ */

/* Asks for @percent of one GPU, or for @gpus whole GPUs. */
static pid_t start(unsigned gpus, unsigned percent, const char *ms)
{
	char count[16], share[16];
	const char *const argv[] = { tool_gpulease(), "-n", count, "--", tool_self(),
		"--job", t.place, ms, share, NULL };

	if (percent)
		(void)snprintf(count, sizeof(count), "0.%02u", percent);
	else
		(void)snprintf(count, sizeof(count), "%u", gpus);
	(void)snprintf(share, sizeof(share), "%u", percent ? percent : 100);
	return tool_spawn(argv, -1, t.log, t.log);
}

/* A job that runs from now on, until it is killed. */
static pid_t start_holder(unsigned gpus, unsigned percent)
{
	pid_t pid = start(gpus, percent, "3600000");
	char byte;

	if (tool_readable(t.ready, now_ns() + DEADLINE_NS) ||
		read(t.ready, &byte, 1) != 1)
		die("a job does not start in '%s'", t.dir);
	return pid;
}

static void use_directory(bool is_simulated)
{
	if (is_simulated) {
		(void)setenv("GPULEASE_SIM", "4", 1);
		(void)unsetenv("GPULEASE_DIR");
		(void)snprintf(t.dir, sizeof(t.dir), "%s/gpulease/sim-4x24576", t.place);
	} else {
		(void)unsetenv("GPULEASE_SIM");
		(void)snprintf(t.dir, sizeof(t.dir), "%s/dir", t.place);
		(void)setenv("GPULEASE_DIR", t.dir, 1);
	}
	remove_tree(t.dir);
	if (!is_simulated)
		(void)mkdir(t.dir, 0700);
}

/* Starts jobs that have 1 to 4 GPUs, one of which may die at once, and jobs that wait. */
static void begin_scene(void)
{
	unsigned left = 1 + below(GPUS), count = 0;
	pid_t dead;
	bool shares;

	t.scene++;
	t.damages = 0;
	use_directory(below(2));
	shares = below(2);
	while (shares && count < HOLDERS) /* 3 fit on one GPU, the fourth not always */
		t.holders[count++] = start_holder(1, 21 + below(10));
	while (left && count < HOLDERS) {
		unsigned gpus = count == HOLDERS - 1 ? left : 1 + below(left);

		t.holders[count++] = start_holder(gpus, 0);
		left -= gpus;
	}
	if (below(2)) {
		dead = t.holders[0];
		tool_kill(&dead);
		t.holders[0] = 0;
	}
	for (unsigned i = 0; i < WAITERS; i++)
		t.waiters[i] = below(3) ? start(1 + below(GPUS),
						  shares && below(2) ? 60 : 0, "0")
					: 0;
}

/* --- damage ------------------------------------------------------------------------- */

/* Sets @path to a random file of @kind; false: there is none. */
static bool choose_file(enum kind kind, char path[PATH * 2])
{
	char folder[PATH * 2];
	unsigned found = 0;
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "%s/%s", t.dir, kinds[kind].folder);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		size_t size = strlen(kinds[kind].prefix);

		if (entry->d_name[0] == '.' ||
			strncmp(entry->d_name, kinds[kind].prefix, size) != 0 ||
			(kinds[kind].folder[0] == '.' && entry->d_name[size]) ||
			below(++found))
			continue;
		(void)snprintf(path, PATH * 2, "%.280s/%.60s", folder, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

/*
 * Overwrites a part of the file with random bytes, or with zeros that leave a part of each
 * record.
 */
static void scribble(int fd, off_t size, char *done)
{
	char bytes[2 * RECORD];
	bool is_zero = below(3) == 0;
	unsigned count = 1 + below(below(2) ? 16 : is_zero ? RECORD / 2 : 2 * RECORD);
	off_t at = size ? (off_t)below((unsigned)size) : 0;

	for (unsigned i = 0; i < count; i++)
		bytes[i] = is_zero ? 0 : (char)below(256);
	(void)!pwrite(fd, bytes, count, at);
	(void)snprintf(done, 60, "%u %s at %lld of", count, is_zero ? "zeros" : "bytes",
		(long long)at);
}

static void change_size(int fd, off_t size, char *done)
{
	char bytes[3 * RECORD];
	unsigned how = below(4), count = 1 + below(sizeof(bytes));
	off_t to = size ? (off_t)below((unsigned)size) : 0;

	if (how == 0) { /* rubbish after the end */
		for (unsigned i = 0; i < count; i++)
			bytes[i] = (char)below(256);
		(void)!pwrite(fd, bytes, count, size);
		(void)snprintf(done, 60, "%u bytes behind", count);
		return;
	}
	if (how == 1)
		to = to / RECORD * RECORD;
	if (how == 2)
		to = size + (off_t)count;
	(void)!ftruncate(fd, to);
	(void)snprintf(done, 60, "%lld instead of %lld bytes in", (long long)to,
		(long long)size);
}

/* Replaces the file by something else, or removes it. */
static void replace(const char *path, char *done)
{
	static const char *const others[] = { "deleted", "a directory as", "a link as",
		"a link to itself as", "a FIFO as", "an empty file as",
		"another file as" };
	static const char *const targets[] = { "slot.0", "slot.1", "../tickets",
		"/dev/null", "nowhere", "nowhere.lease" };
	char other[PATH * 2], bytes[8192];
	unsigned what = below(ARRAY_SIZE(others));
	ssize_t got = 0;
	int fd;

	if (what == 6 && choose_file((enum kind)below(KINDS), other)) {
		fd = open(other, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		got = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));
		(void)close(fd);
	}
	remove_tree(path);
	if (what == 1)
		(void)mkdir(path, 0700);
	else if (what == 2)
		(void)!symlink(targets[below(ARRAY_SIZE(targets))], path);
	else if (what == 3)
		(void)!symlink(strrchr(path, '/') + 1, path);
	else if (what == 4)
		(void)mkfifo(path, 0600);
	if (what >= 5) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0660);
		(void)!write(fd, bytes, got > 0 ? (size_t)got : 0);
		(void)close(fd);
	}
	(void)snprintf(done, 60, "%s", others[what]);
}

static void damage(const char *path)
{
	char *story = t.story[t.damages++], done[64] = "";
	autofd int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st = { 0 };

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || below(3) == 0)
		replace(path, done);
	else if (below(2))
		scribble(fd, st.st_size, done);
	else
		change_size(fd, st.st_size, done);
	(void)snprintf(
		story, sizeof(t.story[0]), "%s %.90s", done, path + strlen(t.dir) + 1);
	if (t.is_verbose)
		(void)printf("# %u: %s\n", t.scene, story);
}

/* Damages one file, of a kind that is not @spared. */
static void damage_one(enum kind spared)
{
	char path[PATH * 2];

	for (unsigned i = 0; i < 100; i++) {
		unsigned dice = below(100), kind = 0;

		for (; dice >= kinds[kind].weight; kind++)
			dice -= kinds[kind].weight;
		if (kind == spared || (kind == SLOTS && spared == LEASES) ||
			!choose_file((enum kind)kind, path))
			continue;
		damage(path);
		return;
	}
}

/* --- the clients --------------------------------------------------------------------- */

static const struct verb {
	const char *name, *argument;
	bool is_json;
	int worst; /* the highest documented status apart from 125 */
} verbs[VERBS] = {
	{ "--status", "--json", true, 0 },
	{ "--queue", "--json", true, 0 },
	{ "--history", "--json", true, 0 },
	{ "-I", "-n1", false, 124 },
	{ "-I", "-n.3", false, 124 },
	{ "--pause", "", false, 1 },
};

static int open_output(const char *kind, unsigned verb)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s.%u", kind, verb);
	return open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static pid_t start_verb(unsigned at, int out, int err)
{
	char gpu[16];
	const char *argv[12] = { tool_gpulease(), verbs[at].name, verbs[at].argument };

	if (!verbs[at].argument[0]) {
		(void)snprintf(gpu, sizeof(gpu), "%u", below(GPUS));
		argv[2] = gpu;
	} else if (!verbs[at].is_json) {
		argv[3] = "--";
		argv[4] = tool_self();
		argv[5] = "--job";
		argv[6] = t.place;
		argv[7] = "0";
		argv[8] = strcmp(verbs[at].argument, "-n1") ? "30" : "100";
	}
	return tool_spawn(argv, -1, out, err);
}

static void check_words(const struct verb *verb, int err)
{
	static char text[OUTPUT_MAX];
	ssize_t got = pread(err, text, sizeof(text) - 1, 0);
	char *line = text;

	text[got > 0 ? got : 0] = '\0';
	while (*line) {
		size_t size = strcspn(line, "\n");

		if (strncmp(line, "gpulease: ", 10) != 0)
			complain(&t.words, "%s says '%.*s'", verb->name, (int)size, line);
		line += size + (line[size] ? 1 : 0);
	}
}

static void check_end(const struct verb *verb, int status, int out, int err)
{
	static char text[OUTPUT_MAX];
	size_t at = 0;
	ssize_t got;

	check_words(verb, err);
	if (!WIFEXITED(status)) {
		complain(&t.deaths, "%s dies of signal %d", verb->name, WTERMSIG(status));
	} else if (WEXITSTATUS(status) && WEXITSTATUS(status) != 125 &&
		   WEXITSTATUS(status) != verb->worst) {
		complain(
			&t.statuses, "%s exits with %d", verb->name, WEXITSTATUS(status));
	} else if (verb->is_json && !WEXITSTATUS(status)) {
		got = pread(out, text, sizeof(text), 0);
		if (got <= 0 || !json_is_valid(text, (size_t)got, &at))
			complain(&t.bad_json, "%s prints no JSON from byte %zu on",
				verb->name, at);
	}
}

/* Runs all verbs at once, so that they meet each other as well as the damage. */
static void use_it(bool may_pause)
{
	unsigned count = may_pause ? VERBS : VERBS - 1;
	int64_t deadline_ns = now_ns() + VERB_NS;
	int outs[VERBS], errs[VERBS];
	pid_t pids[VERBS];

	for (unsigned i = 0; i < count; i++) {
		outs[i] = open_output("out", i);
		errs[i] = open_output("err", i);
		pids[i] = start_verb(i, outs[i], errs[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		int status = 0;

		if (tool_await(pids[i], deadline_ns, &status)) {
			complain(&t.hangs, "%s does not end", verbs[i].name);
			tool_kill(&pids[i]);
		} else {
			check_end(&verbs[i], status, outs[i], errs[i]);
		}
		(void)close(outs[i]);
		(void)close(errs[i]);
	}
}

static void resume_all(void)
{
	const char *const argv[] = { tool_gpulease(), "--resume", "0-3", NULL };
	pid_t pid = tool_spawn(argv, -1, t.log, t.log);
	int status;

	if (tool_await(pid, now_ns() + VERB_NS, &status)) {
		complain(&t.hangs, "--resume does not end");
		tool_kill(&pid);
	} else if (!WIFEXITED(status)) {
		complain(&t.deaths, "--resume dies of signal %d", WTERMSIG(status));
	}
}

/* --- the end of a scene ------------------------------------------------------------- */

/* Removes what lies in the place of a file, as an administrator would. */
static int tidy(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	const char *name = path + at->base;
	bool is_folder =
		!strcmp(name, "gpu") || !strcmp(name, "live") || !strcmp(name, "bell");
	bool is_fifo = strstr(path, "/live/") || strstr(path, "/bell/");

	(void)kind;
	if (at->level == 0 || (at->level == 1 && is_folder))
		return 0;
	if (is_fifo ? !S_ISFIFO(st->st_mode)
		    : !S_ISREG(st->st_mode) &&
				(!S_ISLNK(st->st_mode) || strncmp(name, "slot.", 5) != 0))
		(void)remove(path);
	return 0;
}

static void see_oracle(void)
{
	static unsigned seen;
	struct stat st;

	if (stat("violations", &st) < 0 || st.st_size <= (off_t)seen)
		return;
	seen = (unsigned)st.st_size;
	complain(&t.doubles, "a GPU is given away twice");
	if (t.keeps)
		die("the directory is '%s'", t.dir);
}

/* Every waiting job starts, or says why it does not. */
static void await_jobs(pid_t *jobs, unsigned count, int64_t deadline_ns)
{
	for (unsigned i = 0; i < count; i++) {
		int status = 0;

		if (!jobs[i])
			continue;
		if (tool_await(jobs[i], deadline_ns, &status)) {
			complain(&t.stuck, "a job waits for ever");
			if (t.keeps)
				die("pid %d in '%s'", (int)jobs[i], t.dir);
			tool_kill(&jobs[i]);
		} else if (!WIFEXITED(status)) {
			complain(&t.deaths, "a waiting job dies of signal %d",
				WTERMSIG(status));
		} else if (WEXITSTATUS(status) && WEXITSTATUS(status) != 125) {
			complain(&t.statuses, "a waiting job exits with %d",
				WEXITSTATUS(status));
		}
		jobs[i] = 0;
	}
}

static void end_scene(bool is_patient)
{
	see_oracle();
	for (unsigned i = 0; i < HOLDERS; i++)
		tool_kill(&t.holders[i]);
	if (is_patient) {
		(void)nftw(t.dir, tidy, 16, FTW_DEPTH | FTW_PHYS);
		resume_all(); /* rings the bells */
		await_jobs(t.waiters, WAITERS, now_ns() + WAITER_NS);
		see_oracle();
	}
	for (unsigned i = 0; i < WAITERS; i++)
		tool_kill(&t.waiters[i]);
}

/* --- all files deleted --------------------------------------------------------------- */

static void delete_all_in(const char *folder)
{
	char path[PATH * 2];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/%s", t.dir, folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
}

static void delete_together(void)
{
	static const char *const folders[] = { "gpu", "live", "bell" };
	unsigned first = below(3);

	for (unsigned i = 0; i < 3; i++)
		delete_all_in(folders[(first + i) % 3]);
}

/* Starts short jobs, so that some run, wait or start at each damage. */
static unsigned play_together(void)
{
	pid_t crowd[CROWD];
	unsigned done = 0;

	begin_scene();
	(void)snprintf(t.story[t.damages++], sizeof(t.story[0]),
		"all links, lease files and FIFOs were deleted");
	for (unsigned i = 0; i < CROWD; i++) {
		static const char *const spans[] = { "1", "20", "60" };

		crowd[i] = start(1 + below(GPUS), 0, spans[below(3)]);
		if (below(4) == 0) {
			delete_together();
			done++;
		}
	}
	delete_together();
	for (unsigned i = 0; i < HOLDERS; i++)
		tool_kill(&t.holders[i]);
	await_jobs(crowd, CROWD, now_ns() + CROWD_NS);
	await_jobs(t.waiters, WAITERS, now_ns() + CROWD_NS);
	see_oracle();
	return done + 1;
}

/* --- all of it ---------------------------------------------------------------------- */

static void play(void)
{
	static const enum kind telling[] = { LEASES, TICKETS, LIVE };

	for (unsigned done = 0; done < t.count;) {
		unsigned damages = 1 + below(DAMAGES);
		enum kind spared = telling[below(5) ? 1 + below(2) : 0];

		if (t.scene % 3 == 2) {
			done += play_together();
			continue;
		}
		begin_scene();
		for (unsigned i = 0; i < damages && done < t.count; i++, done++) {
			bool may_pause = below(3) == 0;

			damage_one(spared);
			use_it(may_pause);
			see_oracle();
			if (may_pause)
				resume_all();
		}
		end_scene(t.scene % 4 == 0);
	}
}

static int judge(void)
{
	(void)tap_result(
		!t.doubles, "no GPU was given away twice in %u damages", t.count);
	(void)tap_result(!t.deaths, "no process was killed by a damaged file");
	(void)tap_result(!t.hangs, "no process hung");
	(void)tap_result(!t.stuck, "every waiting job has ended");
	(void)tap_result(!t.statuses, "every exit status is documented");
	(void)tap_result(!t.words, "all messages are gpulease's own");
	(void)tap_result(!t.bad_json, "all JSON output is valid");
	return tap_end();
}

static void parse(int argc, char **argv, uint64_t *seed)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "keep", no_argument, NULL, 'k' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "v", options, NULL)) != -1)
		switch (option) {
		case 's':
			*seed = number(optarg, "seed");
			break;
		case 'c':
			t.count = (unsigned)number(optarg, "count");
			break;
		case 'k':
			t.keeps = true;
			break;
		case 'v':
			t.is_verbose = true;
			break;
		default:
			exit(TOOL_MISUSE);
		}
}

/* Puts the driver, this tool as nvidia-smi, in front of the PATH. */
static void make_driver(void)
{
	const char *old = getenv("PATH");
	char path[8192];

	if (mkdir("bin", 0700) < 0 || symlink(tool_self(), "bin/nvidia-smi") < 0)
		die("cannot make a driver: %s", strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/bin:%.4000s", t.place, old ? old : "/bin");
	(void)setenv("PATH", path, 1);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	uint64_t seed = (uint64_t)now_ns() % 1000000;
	int r;

	if (!strcmp(slash ? slash + 1 : argv[0], "nvidia-smi"))
		return be_nvidia_smi(argc, argv);
	if (argc == 5 && !strcmp(argv[1], "--job"))
		return run_job(argv + 2);
	t.count = 1000;
	parse(argc, argv, &seed);
	tool_init();
	tool_clean_environment();
	t.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	(void)printf("# seed %llu\n", (unsigned long long)seed);
	(void)tool_gpulease();
	(void)tool_self();
	tool_scratch(t.place);
	if (chdir(t.place) < 0 || mkfifo("ready", 0600) < 0)
		die("cannot use '%s': %s", t.place, strerror(errno));
	t.ready = open("ready", O_RDWR | O_CLOEXEC);
	t.log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	make_driver();
	(void)setenv("XDG_STATE_HOME", t.place, 1);
	play();
	r = judge();
	(void)!chdir("/");
	remove_tree(t.place);
	return r;
}
