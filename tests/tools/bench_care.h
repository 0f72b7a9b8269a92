/*
 * The figures of jobs with a supervisor, for bench.c, which includes this file after the
 * functions that it uses: a supervised start, its release, and background jobs.
 */
#ifndef GPULEASE_TESTS_BENCH_CARE_H
#define GPULEASE_TESTS_BENCH_CARE_H

enum { BACKGROUND_JOBS = 500, BACKGROUND_S = 10 };

/*
 * The time from the start of `gpulease …` until its command runs, and from that command's end
 * until gpulease ends.
 */
static void care_run(
	const char *const options[], struct samples *start, struct samples *release)
{
	const char *argv[12] = { tool_gpulease() };
	size_t n = 1;
	int64_t begun, ended;
	int status;
	pid_t pid;

	for (; options[n - 1]; n++)
		argv[n] = options[n - 1];
	argv[n++] = "--";
	argv[n++] = stamp_path;
	argv[n++] = place;
	argv[n++] = "hold";
	begun = now_ns();
	pid = measure_spawn(argv);
	sample_add(start, told(start_fd) - begun);
	ended = let_go();
	if (waitpid(pid, &status, 0) != pid || status)
		die("a job ended with status %#x", (unsigned)status);
	sample_add(release, now_ns() - ended);
}

static void rows_supervised(void)
{
	static const char *const plain[] = { "-n", "1", NULL };
	static const char *const supervised[] = { "--retries", "1", "-n", "1", NULL };
	static struct samples starts[2], releases[2], warm;
	double more, release;

	(void)fresh_state("8");
	care_run(plain, &warm, &warm);
	care_run(supervised, &warm, &warm);
	for (unsigned i = 0; i < rounds; i++) {
		care_run(plain, &starts[0], &releases[0]);
		care_run(supervised, &starts[1], &releases[1]);
	}
	more = sample_median(&starts[1]) - sample_median(&starts[0]);
	release = sample_median(&releases[1]);
	table_row("supervised start, beyond a plain one", "at most 1 ms", more, "ms", 0,
		more <= 1 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("plain, until the command runs", &starts[0]);
	table_detail("supervised", &starts[1]);
	table_row("supervised: from the command's end to the release", "at most 2 ms",
		release, "ms", sample_median(&releases[0]),
		release <= 2 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("its own process's end", &releases[1]);
}

/* Whether the process was started with a name of this bench's place in its environment. */
static bool care_is_own(int pid)
{
	char path[64], environment[16 * 1024];
	ssize_t size;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, environment, sizeof(environment));
	(void)close(fd);
	return size > 0 && memmem(environment, (size_t)size, place, strlen(place));
}

/* Finds the supervisors of the background jobs of this bench; returns how many there are. */
static size_t care_find(pid_t pids[BACKGROUND_JOBS])
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	while (proc && (entry = readdir(proc)) && count < BACKGROUND_JOBS) {
		char path[300], name[32] = "";
		FILE *file;
		int pid;

		if (sscanf(entry->d_name, "%d", &pid) != 1)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) &&
			!strcmp(name, "gpulease-job\n") && care_is_own(pid))
			pids[count++] = pid;
		if (file)
			(void)fclose(file);
	}
	if (proc)
		(void)closedir(proc);
	return count;
}

static void rows_background(void)
{
	const char *const submit[] = { tool_gpulease(), "--submit", "-Qn1", "true",
		NULL };
	static pid_t pids[BACKGROUND_JOBS];
	static struct samples submits;
	uint64_t before = 0, after = 0;
	double most = 0;
	size_t count;
	pid_t held;

	held = hold_all();
	for (int i = 0; i < BACKGROUND_JOBS; i++)
		sample_add(&submits, measure_process(submit));
	table_row("gpulease --submit, until it returns", "at most 50 ms",
		sample_percentile(&submits, 99), "ms", 0,
		sample_percentile(&submits, 99) <= 50 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("500 of them", &submits);
	count = care_find(pids);
	settle(pids, count);
	for (size_t i = 0; i < count; i++)
		before += ticks_of(pids[i]);
	doze_until(now_ns() + (int64_t)BACKGROUND_S * NS_PER_S);
	for (size_t i = 0; i < count; i++) {
		double kib = memory_kib(pids[i], "RssAnon");

		most = kib > most ? kib : most;
		after += ticks_of(pids[i]);
	}
	table_row("500 background jobs that wait: the most RssAnon", "at most 1024 KiB",
		most, "KiB", 0,
		count == BACKGROUND_JOBS && most <= 1024 ? VERDICT_MET : VERDICT_MISSED);
	table_row("  the CPU of all of them in 10 s", "0 ticks", (double)(after - before),
		"ticks", 0, after == before ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < count; i++)
		(void)kill(pids[i], SIGKILL);
	tool_kill(&held);
}

#endif
