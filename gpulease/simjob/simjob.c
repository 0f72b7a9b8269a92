/*
 * gpulease-simjob: behaves like a training job, without a GPU.  In a job of `gpulease --sim` it
 * uses memory on its simulated GPUs: more and more until --vram is reached, then all of it for
 * --hold.  It exits with the status of --exit, or fails once as if GPU memory had run out
 * (--oom-once).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "local_user.h"
#include "option_values.h"
#include "context.h"
#include "exitcodes.h"
#include "clock.h"
#include "operands.h"
#include "parse.h"
#include "sim_memory.h"
#include "statedir.h"

enum {
	STEP_MS = 100, /* between two updates of the memory */
	QUARTERS = 4,  /* lines of progress in the ramp, and as many in the hold */
	OOM_STATUS = 1,
};

static const char usage[] =
	"usage: gpulease-simjob --vram SIZE [OPTION...]\n"
	"Uses memory on the simulated GPUs of a job of gpulease --sim, as a training job\n"
	"would.\n"
	"\n"
	"  --vram SIZE       use SIZE of memory on each GPU: 18G, 8000M\n"
	"  --ramp TIME       reach SIZE after TIME: 5s (default 1s)\n"
	"  --hold TIME       then keep the memory for TIME (default 1s)\n"
	"  --exit N          exit with status N (default 0)\n"
	"  --oom-once FILE   if FILE does not exist: create it after the ramp, and fail\n"
	"                    as if GPU memory had run out\n"
	"  --help, --version\n";

/* What to do, and how far it has come. */
struct simjob {
	uint64_t vram_mib;
	int64_t ramp_ms, hold_ms, begun_ms;
	uint64_t status;
	const char *oom_once; /* NULL: never */
	struct gpuset gpus;
	uint64_t card_mib;
	struct sim_memory memory;
	unsigned lines; /* of progress, printed so far */
};

PRINTF_LIKE(1, 2)
static void simjob_diag(const char *format, ...)
{
	char line[512];
	struct text text = TEXT_ON(line);
	va_list args;
	char message[480];

	va_start(args, format);
	(void)vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	text_add(&text, "gpulease-simjob: ");
	text_add_visible(&text, message);
	(void)fprintf(stderr, "%s\n", line);
}

/* --- the command line -------------------------------------------------------------- */

enum { VRAM = 1, RAMP, HOLD, EXIT, OOM_ONCE, HELP, VERSION };

static const struct option options[] = {
	{ "vram", required_argument, NULL, VRAM },
	{ "ramp", required_argument, NULL, RAMP },
	{ "hold", required_argument, NULL, HOLD },
	{ "exit", required_argument, NULL, EXIT },
	{ "oom-once", required_argument, NULL, OOM_ONCE },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

static int simjob_read_option(int option, struct simjob *job, struct why *why)
{
	switch (option) {
	case VRAM:
		return parse_size_mib(optarg, &job->vram_mib, why);
	case RAMP:
		return parse_duration_ms(optarg, &job->ramp_ms, why);
	case HOLD:
		return parse_duration_ms(optarg, &job->hold_ms, why);
	case EXIT:
		return parse_u64(optarg, 255, &job->status, why);
	case OOM_ONCE:
		job->oom_once = optarg;
		return 0;
	case HELP:
		(void)fputs(usage, stdout);
		exit(EXIT_DONE);
	case VERSION:
		(void)printf("gpulease-simjob %s\n", GPULEASE_VERSION);
		exit(EXIT_DONE);
	default:
		return -EINVAL;
	}
}

static int simjob_read_options(int argc, char **argv, struct simjob *job)
{
	int option, index = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		struct why why = WHY_NONE;

		if (simjob_read_option(option, job, &why) == 0)
			continue;
		if (why.text[0])
			simjob_diag("--%s: %s", options[index].name, why.text);
		else
			simjob_diag("'%s' is not an option, or lacks a value; see --help",
				quote(argv[optind - 1]).text);
		return EXIT_MISUSE;
	}
	if (optind < argc || !job->vram_mib) {
		simjob_diag(optind < argc ? "'%s' is not an option; see --help"
					  : "%s is missing; see --help",
			optind < argc ? quote(argv[optind]).text : "--vram SIZE");
		return EXIT_MISUSE;
	}
	return 0;
}

/* --- the GPUs ----------------------------------------------------------------------- */

/* Sets ->gpus to those of the lease; outside of a lease to GPU 0, which CUDA programs use. */
static int simjob_find_gpus(struct simjob *job, unsigned count, struct why *why)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	struct operand_walk walk = OPERAND_LIST(list ? list : "0", OPERAND_GPU);
	struct operand operand;
	int r = 0;

	while (walk.at && *walk.at && (r = operand_next(&walk, &operand, why)) == 0) {
		if (operand.word || operand.has_instance || operand.last >= count) {
			why_set(why, "CUDA_VISIBLE_DEVICES: '%s' are not simulated GPUs",
				quote(list).text);
			return -EINVAL;
		}
		for (uint64_t gpu = operand.first; gpu <= operand.last; gpu++)
			gpuset_add(&job->gpus, (unsigned)gpu);
	}
	return r < 0 ? r : 0;
}

/*
 * Opens the file in which the job shows its use of memory, in the state directory of the simulation
 * @sim.  Returns 0, or a negative errno with the message in @why.
 */
static int simjob_open_memory(struct simjob *job, const char *sim, struct why *why)
{
	struct machine_settings machine;
	struct statedir_choice choice = {
		.state_home = getenv("XDG_STATE_HOME"),
		.home = local_user_home(),
	};
	struct statedir dir = STATEDIR_NONE;
	int r = read_sim(sim, &machine, why);

	if (r < 0)
		return r;
	choice.sim_gpus = machine.sim_gpus;
	choice.sim_mib = job->card_mib = machine.sim_mib;
	r = simjob_find_gpus(job, machine.sim_gpus, why);
	if (r == 0)
		r = statedir_open(&choice, &dir, why);
	if (r < 0)
		return r;
	r = sim_memory_begin(&dir, &job->gpus, &job->memory);
	if (r < 0)
		why_set(why, "cannot write in '%s': %s", dir.path, strerror(-r));
	statedir_release(&dir);
	return r;
}

/* --- the work ----------------------------------------------------------------------- */

/* Returns how many of @of equal parts of @all_ms have passed after @past_ms. */
static unsigned simjob_parts(int64_t past_ms, int64_t all_ms, unsigned of)
{
	return past_ms >= all_ms ? of : (unsigned)((double)past_ms / (double)all_ms * of);
}

static uint64_t simjob_used_mib(const struct simjob *job, int64_t past_ms)
{
	if (past_ms >= job->ramp_ms)
		return job->vram_mib;
	return (uint64_t)((double)job->vram_mib * (double)past_ms / (double)job->ramp_ms);
}

/* Prints a line when another quarter of the ramp or of the hold has passed. */
static void simjob_print_progress(struct simjob *job, int64_t past_ms)
{
	unsigned lines = simjob_parts(past_ms, job->ramp_ms, QUARTERS);

	if (past_ms >= job->ramp_ms)
		lines += simjob_parts(past_ms - job->ramp_ms, job->hold_ms, QUARTERS);
	if (lines <= job->lines)
		return;
	job->lines = lines;
	(void)printf("step %u/%d: loss %.3f, %llu MiB\n", lines, 2 * QUARTERS,
		2.303 / (1 + 0.4 * lines),
		(unsigned long long)simjob_used_mib(job, past_ms));
}

/*
 * Creates the file of --oom-once, and prints the error of PyTorch.  Returns OOM_STATUS; 0 if the
 * file existed; or a negative errno.
 */
static int simjob_fail_once(const struct simjob *job)
{
	autofd int fd =
		open(job->oom_once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	(void)fprintf(stderr,
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. "
		"GPU 0 has a total capacity of %.2f GiB\n",
		(double)job->card_mib / 1024);
	return OOM_STATUS;
}

/* Works until @until_ms after the begin. */
static void simjob_work(struct simjob *job, int64_t until_ms)
{
	for (;;) {
		int64_t past_ms = clock_boot_ms() - job->begun_ms;
		/* a utilization that varies, as on real GPUs: 87 to 97 % */
		uint32_t busy = 87 + (uint32_t)(past_ms / STEP_MS * 7 % 11);

		if (past_ms > until_ms)
			past_ms = until_ms;
		if (job->memory.fd >= 0)
			(void)!sim_memory_show(
				&job->memory, simjob_used_mib(job, past_ms), busy);
		simjob_print_progress(job, past_ms);
		if (past_ms == until_ms)
			return;
		(void)poll(NULL, 0, (int)min_i64(STEP_MS, until_ms - past_ms));
	}
}

static int simjob_run(struct simjob *job)
{
	unsigned gpus = gpuset_count(&job->gpus);
	int r = 0;

	(void)printf("training with %llu MiB", (unsigned long long)job->vram_mib);
	if (gpus)
		(void)printf(" on %u GPU%s", gpus, gpus == 1 ? "" : "s");
	(void)printf("\n");
	job->begun_ms = clock_boot_ms();
	simjob_work(job, job->ramp_ms);
	if (job->oom_once)
		r = simjob_fail_once(job);
	if (r < 0) {
		simjob_diag("cannot make '%s': %s", job->oom_once, strerror(-r));
		return EXIT_MISUSE;
	}
	if (r != 0)
		return r;
	simjob_work(job, job->ramp_ms + job->hold_ms);
	(void)printf("done, exit status %llu\n", (unsigned long long)job->status);
	return (int)job->status;
}

int main(int argc, char **argv)
{
	static struct simjob job = { .ramp_ms = 1000, .hold_ms = 1000 };
	const char *sim = getenv("GPULEASE_SIM");
	struct why why = WHY_NONE;
	int status = simjob_read_options(argc, argv, &job);

	if (status != 0)
		return status;
	/* users follow the log while it is written */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	job.memory = SIM_MEMORY_INIT;
	if (!sim || !*sim)
		simjob_diag("this is not a job of gpulease --sim, so no memory is shown");
	else if (simjob_open_memory(&job, sim, &why) < 0)
		simjob_diag("no memory is shown: %s", why.text);
	status = simjob_run(&job);
	sim_memory_end(&job.memory);
	return status;
}
