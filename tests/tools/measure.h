/*
 * Samples, contenders that are measured side by side, and the table of figures.
 */
#ifndef GPULEASE_TESTS_MEASURE_H
#define GPULEASE_TESTS_MEASURE_H

#include "tool.h"

enum { MAX_SAMPLES = 1000 };

struct samples {
	double ms[MAX_SAMPLES];
	unsigned count;
	bool sorted;
};

static inline void sample_add(struct samples *s, int64_t ns)
{
	if (s->count < MAX_SAMPLES)
		s->ms[s->count++] = (double)ns / NS_PER_MS;
	s->sorted = false;
}

static inline int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value that @percent of the samples do not exceed; 0 if there are no samples. */
static inline double sample_percentile(struct samples *s, unsigned percent)
{
	if (!s->count)
		return 0;
	if (!s->sorted)
		qsort(s->ms, s->count, sizeof(s->ms[0]), compare_doubles);
	s->sorted = true;
	return s->ms[(s->count - 1) * percent / 100];
}

static inline double sample_median(struct samples *s)
{
	return sample_percentile(s, 50);
}

/* A contender: a command line, which a shell would split at blanks. */
struct contender {
	const char *name;
	const char *const *argv;    /* the whole command */
	const char *const *prepare; /* run before each round, not measured; may be NULL */
	struct samples samples;
};

/*
 * Starts a command as a shell or make would: by vfork, as fork would also measure how much memory
 * this process has.  Discards the output of the command.
 */
static inline pid_t measure_spawn(const char *const argv[])
{
	static int null = -1;
	sigset_t none;
	pid_t pid;

	if (null < 0)
		null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)sigemptyset(&none);
	pid = vfork();
	if (pid < 0)
		die("vfork: %s", strerror(errno));
	if (pid == 0) {
		(void)dup2(null, 1);
		(void)prctl(
			PR_SET_PDEATHSIG, SIGKILL); /* a killed bench leaves no process */
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid;
}

/* The time from before its start until it is reaped.  A contender that fails is not measured. */
static inline int64_t measure_process(const char *const argv[])
{
	int64_t begun = now_ns(), ended;
	pid_t pid = measure_spawn(argv);
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	ended = now_ns();
	if (status)
		die("'%s' ended with status %#x", argv[0], (unsigned)status);
	return ended - begun;
}

/* Measures whole processes in turns; the first round only warms the caches. */
static inline void measure_processes(
	struct contender *contenders, size_t count, unsigned rounds)
{
	for (unsigned round = 0; round <= rounds; round++)
		for (size_t i = 0; i < count; i++) {
			int64_t ns;

			if (contenders[i].prepare)
				(void)measure_process(contenders[i].prepare);
			ns = measure_process(contenders[i].argv);
			if (round)
				sample_add(&contenders[i].samples, ns);
		}
}

enum bench_verdict { VERDICT_MISSED, VERDICT_MET, VERDICT_NONE };

static inline void table_head(void)
{
	(void)printf("%-46s %-16s %12s %12s %6s  %s\n", "figure", "target", "measured",
		"beside it", "ratio", "verdict");
}

/* Prints one row; @beside <= 0: there is no figure to compare with. */
static inline void table_row(const char *figure, const char *target, double measured,
	const char *unit, double beside, enum bench_verdict verdict)
{
	static const char *const words[] = { "MISSED", "met", "" };
	char value[32], other[32] = "", ratio[32] = "";

	(void)snprintf(value, sizeof(value), "%.2f %s", measured, unit);
	if (beside > 0) {
		(void)snprintf(other, sizeof(other), "%.2f %s", beside, unit);
		(void)snprintf(ratio, sizeof(ratio), "%.2f", measured / beside);
	}
	(void)printf("%-46s %-16s %12s %12s %6s  %s\n", figure, target, value, other,
		ratio, words[verdict]);
}

static inline void table_skipped(const char *figure, const char *why)
{
	(void)printf("%-46s skipped: %s\n", figure, why);
}

/* Prints the samples of a row. */
static inline void table_detail(const char *name, struct samples *s)
{
	(void)printf("    %-42s min %.2f  median %.2f  p99 %.2f ms  (%u)\n", name,
		sample_percentile(s, 0), sample_median(s), sample_percentile(s, 99),
		s->count);
}

#endif
