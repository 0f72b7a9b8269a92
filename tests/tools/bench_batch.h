/*
 * The figures of jobs files, for bench.c, which includes this file after the functions that it
 * uses: how fast jobs files are read and run, and what their runner needs.
 */
#ifndef GPULEASE_TESTS_BENCH_BATCH_H
#define GPULEASE_TESTS_BENCH_BATCH_H

enum { BATCH_FIFTY = 50, BATCH_MANY = 10000, BATCH_ROUNDS = 7, BATCH_IDLE_S = 20 };

static char batch_path[SCRATCH_SIZE + 32], batch_folder[SCRATCH_SIZE + 48];

/* Lines of a real file; if they are not run, only their text matters. */
static const char batch_usual[] =
	"[gpus=0.5 vram=18G timeout=2h retries=3] python train.py --seed %u --lr 0.001 "
	"--out runs/with-a-name-of-some-length-%u\n";

/* Writes a jobs file with @count lines of @format, and @last if it is not NULL. */
static void batch_write(unsigned count, const char *format, const char *last)
{
	FILE *file;

	(void)snprintf(batch_path, sizeof(batch_path), "%s/jobs", place);
	file = fopen(batch_path, "we");
	for (unsigned i = 0; file && i < count; i++)
		(void)(format == batch_usual ? fprintf(file, batch_usual, i, i)
					     : fputs(format, file));
	if (!file || (last && fputs(last, file) < 0) || fclose(file))
		die("cannot write '%s': %s", batch_path, strerror(errno));
}

/* The command line of --batch with that file and a new folder for logs. */
static const char *const *batch_argv(void)
{
	static const char *argv[] = { NULL, "--batch", batch_path, "--log-dir",
		batch_folder, NULL };
	static unsigned number_of;

	argv[0] = tool_gpulease();
	(void)snprintf(
		batch_folder, sizeof(batch_folder), "%s/logs.%u", place, ++number_of);
	return argv;
}

static void batch_forget(void)
{
	remove_tree(batch_folder);
}

/* --- whole files ----------------------------------------------------------------------- */

/* Puts a driver that answers after a millisecond in front of the PATH; returns the old PATH. */
static char *batch_use_driver(void)
{
	const char *path = getenv("PATH");
	char fake[4096 + 16], bin[SCRATCH_SIZE + 16], smi[SCRATCH_SIZE + 32], all[4096];
	const char *const copy[] = { "cp", fake, smi, NULL };
	FILE *conf;

	tool_beside("fakesmi", fake, sizeof(fake));
	(void)snprintf(bin, sizeof(bin), "%s/batch-bin", place);
	(void)snprintf(smi, sizeof(smi), "%s/nvidia-smi", bin);
	if (mkdir(bin, 0700) < 0)
		die("cannot make '%s': %s", bin, strerror(errno));
	(void)measure_process(copy);
	(void)snprintf(all, sizeof(all), "%s.conf", smi);
	conf = fopen(all, "we");
	if (!conf || fputs("gpus 8\ndelay 1\n", conf) < 0 || fclose(conf))
		die("cannot write '%s': %s", all, strerror(errno));
	(void)snprintf(all, sizeof(all), "%s:%s", bin, path ? path : "/usr/bin:/bin");
	(void)setenv("PATH", all, 1);
	(void)unsetenv("GPULEASE_SIM");
	return path ? strdup(path) : NULL;
}

static void batch_row_fifty(void)
{
	static struct samples samples;
	char *path, dir[SCRATCH_SIZE + 32];

	(void)snprintf(dir, sizeof(dir), "%s/batch-dir", place);
	if (mkdir(dir, 0700) < 0)
		die("cannot make '%s': %s", dir, strerror(errno));
	path = batch_use_driver();
	(void)setenv("GPULEASE_DIR", dir, 1);
	batch_write(BATCH_FIFTY, "true\n", NULL);
	for (unsigned round = 0; round <= BATCH_ROUNDS; round++) {
		int64_t ns = measure_process(batch_argv());

		if (round)
			sample_add(&samples, ns);
		batch_forget();
	}
	(void)unsetenv("GPULEASE_DIR");
	(void)(path ? setenv("PATH", path, 1) : unsetenv("PATH"));
	free(path);
	table_row("--batch, 50 x true, 8 GPUs, driver of 1 ms", "at most 500 ms",
		sample_median(&samples), "ms", 0,
		sample_median(&samples) <= 500 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("gpulease --batch", &samples);
}

static void batch_row_many(void)
{
	int64_t ns;
	double rate;

	(void)fresh_state("8");
	batch_write(BATCH_MANY, "true\n", NULL);
	ns = measure_process(batch_argv());
	rate = (double)BATCH_MANY * NS_PER_S / (double)ns;
	table_row("--batch, 10,000 x true, 8 GPUs", "at least 150/s", rate, "/s", 0,
		rate >= 150 ? VERDICT_MET : VERDICT_MISSED);
	batch_forget();
}

/* --- reading, and what it takes ----------------------------------------------------------- */

/* Reads a file in which only the last line is bad. */
static int64_t batch_parse(void)
{
	int64_t begun = now_ns();
	pid_t pid = measure_spawn(batch_argv());
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		WEXITSTATUS(status) != TOOL_MISUSE)
		die("a bad file is not refused: %#x", (unsigned)status);
	return now_ns() - begun;
}

static void batch_row_parse(void)
{
	static struct samples whole, none;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), err = dup(STDERR_FILENO);
	double ms;

	(void)fresh_state("8");
	(void)dup2(null, STDERR_FILENO); /* the message about the bad line */
	for (unsigned round = 0; round <= 2 * BATCH_ROUNDS; round++) {
		batch_write(BATCH_MANY, batch_usual, "[bad] true\n");
		sample_add(&whole, batch_parse());
		batch_write(0, batch_usual, "[bad] true\n");
		sample_add(&none, batch_parse());
	}
	(void)dup2(err, STDERR_FILENO);
	(void)close(err);
	(void)close(null);
	ms = sample_median(&whole) - sample_median(&none);
	table_row("--batch, reading 10,000 lines", "at most 20 ms", ms, "ms", 0,
		ms <= 20 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("until the last line is refused", &whole);
	table_detail("the same with that line alone", &none);
}

static void batch_row_memory(void)
{
	pid_t held = hold_all(), runner;
	double mib;
	int status;

	batch_write(BATCH_MANY, batch_usual, NULL);
	runner = measure_spawn(batch_argv());
	settle(&runner, 1);
	doze_until(now_ns() + 2 * NS_PER_S);      /* all its requests are in the queue */
	mib = memory_kib(runner, "VmHWM") / 1024; /* its peak */
	table_row("  its memory, at most", "at most 20 MiB", mib, "MiB", 0,
		mib > 0 && mib <= 20 ? VERDICT_MET : VERDICT_MISSED);
	(void)kill(runner, SIGTERM);
	(void)waitpid(runner, &status, 0);
	tool_kill(&held);
	batch_forget();
}

/* --- doing nothing ------------------------------------------------------------------------ */

static void batch_row_idle(void)
{
	pid_t runner;
	double seconds;
	int status;

	(void)fresh_state("8");
	batch_write(8, "sleep 100000\n", NULL);
	runner = measure_spawn(batch_argv());
	settle(&runner, 1);
	doze_until(now_ns() + 2 * NS_PER_S);
	seconds = -cpu_ns_of(runner);
	doze_until(now_ns() + (int64_t)BATCH_IDLE_S * NS_PER_S);
	seconds = (seconds + cpu_ns_of(runner)) / NS_PER_S * 60 / BATCH_IDLE_S;
	table_row("--batch with 8 jobs that run: CPU in 60 s", "at most 20 ms",
		seconds * 1000, "ms", 0, seconds <= 0.02 ? VERDICT_MET : VERDICT_MISSED);
	(void)printf("    measured over %d s\n", BATCH_IDLE_S);
	(void)kill(runner, SIGTERM);
	(void)waitpid(runner, &status, 0);
	batch_forget();
}

static void batch_rows(void)
{
	batch_row_fifty();
	batch_row_many();
	batch_row_parse();
	batch_row_memory();
	batch_row_idle();
}

#endif
