#include <errno.h>
#include <stdio.h>

#include "job_variables.h"
#include "option_parser.h"
#include "parse.h"
#include "sbatch_abbreviation.h"
#include "sbatch_options.h"

/* clang-format off */
#define PASSED(letter, name, metavar, variable, as) \
	{ name, metavar, variable, as, SBATCH_PASSED, letter }
#define COUNTED(letter, name, metavar, variable, as) \
	{ name, metavar, variable, as, SBATCH_COUNTED, letter }
#define OWN(letter, name, metavar, variable) \
	{ name, metavar, variable, NULL, SBATCH_OWN, letter }
#define UNMET(name, metavar, what) { name, metavar, NULL, what, SBATCH_UNMET, 0 }
#define NOISE(letter, name, metavar, variable) \
	{ name, metavar, variable, NULL, SBATCH_NOISE, letter }
#define REFUSED(letter, name, metavar, variable, instead) \
	{ name, metavar, variable, instead, SBATCH_REFUSED, letter }
#define ONE_MACHINE "gpulease knows only this machine; leave the option out"
#define NO_CONTAINER "give it to srun in the script, which says how to run the container"

const struct sbatch_row sbatch_table[] = {
	PASSED('J', "job-name", "TEXT", "JOB_NAME", "name"),
	PASSED('t', "time", "LIMIT", "TIMELIMIT", "time"),
	PASSED('o', "output", "FILE", "OUTPUT", "output"),
	PASSED('e', "error", "FILE", "ERROR", "error"),
	PASSED('i', "input", "FILE", "INPUT", "input"),
	PASSED('D', "chdir", "DIR", NULL, "chdir"),
	PASSED('d', "dependency", "LIST", NULL, "dependency"),
	PASSED('b', "begin", "WHEN", NULL, "begin"),
	PASSED('H', "hold", NULL, NULL, "hold"),
	PASSED(0, "export", "LIST", "EXPORT", "export"),
	PASSED(0, "signal", "SIG[@DUR]", "SIGNAL", "signal"),
	PASSED(0, "exclusive", "[HOW]", "EXCLUSIVE", "exclusive"),
	PASSED(0, "open-mode", "MODE", "OPEN_MODE", "open-mode"),
	PASSED('N', "nodes", "1", NULL, "nodes"),
	PASSED('w', "nodelist", "HOST", NULL, "nodelist"),
	PASSED(0, "no-requeue", NULL, "NO_REQUEUE", "no-requeue"),

	COUNTED('G', "gpus", "[TYPE:]N", "GPUS", "gpus"),
	COUNTED(0, "gres", "gpu[:TYPE][:N]", "GRES", "gres"),
	COUNTED(0, "gpus-per-node", "[TYPE:]N", "GPUS_PER_NODE", "gpus-per-node"),
	COUNTED(0, "gpus-per-task", "[TYPE:]N", "GPUS_PER_TASK", "gpus-per-task"),
	COUNTED('n', "ntasks", "N", NULL, "ntasks"),
	COUNTED(0, "ntasks-per-node", "N", NULL, "ntasks-per-node"),
	COUNTED(0, "tasks-per-node", "N", NULL, "ntasks-per-node"),
	COUNTED(0, "ntasks-per-gpu", "N", NULL, "ntasks-per-gpu"),

	OWN('c', "cpus-per-task", "N", "CPUS_PER_TASK"),
	OWN(0, "cpus-per-gpu", "N", "CPUS_PER_GPU"),
	OWN('a', "array", "LIST", "ARRAY_INX"),
	OWN('W', "wait", NULL, "WAIT"),
	OWN(0, "wrap", "COMMAND", NULL),
	OWN(0, "parsable", NULL, NULL),
	OWN(0, "test-only", NULL, NULL),
	OWN('Q', "quiet", NULL, NULL),
	OWN('v', "verbose", NULL, NULL),
	OWN('h', "help", NULL, NULL),
	OWN(0, "usage", NULL, NULL),
	OWN('V', "version", NULL, NULL),

	NOISE('p', "partition", "NAME", "PARTITION"),
	NOISE('A', "account", "NAME", "ACCOUNT"),
	NOISE('q', "qos", "NAME", "QOS"),
	NOISE('C', "constraint", "LIST", "CONSTRAINT"),
	NOISE(0, "cluster-constraint", "LIST", NULL),
	NOISE(0, "batch", "LIST", "BATCH"),
	NOISE(0, "reservation", "NAME", "RESERVATION"),
	NOISE(0, "mem", "SIZE", "MEM_PER_NODE"),
	NOISE(0, "mem-per-cpu", "SIZE", "MEM_PER_CPU"),
	NOISE(0, "mem-per-gpu", "SIZE", "MEM_PER_GPU"),
	NOISE(0, "mem-bind", "HOW", "MEM_BIND"),
	NOISE(0, "mincpus", "N", NULL),
	NOISE(0, "cores-per-socket", "N", NULL),
	NOISE(0, "sockets-per-node", "N", NULL),
	NOISE(0, "threads-per-core", "N", "THREADS_PER_CORE"),
	NOISE(0, "ntasks-per-core", "N", NULL),
	NOISE(0, "ntasks-per-socket", "N", NULL),
	NOISE('B', "extra-node-info", "LIST", NULL),
	NOISE('S', "core-spec", "N", "CORE_SPEC"),
	NOISE(0, "thread-spec", "N", "THREAD_SPEC"),
	NOISE(0, "hint", "TYPE", "HINT"),
	NOISE(0, "cpu-freq", "HOW", "CPU_FREQ_REQ"),
	NOISE(0, "gpu-freq", "HOW", "GPU_FREQ"),
	NOISE(0, "gpu-bind", "HOW", "GPU_BIND"),
	NOISE(0, "gres-flags", "HOW", "GRES_FLAGS"),
	NOISE(0, "tmp", "SIZE", NULL),
	UNMET("mail-type", "LIST", "no mail is sent"),
	UNMET("mail-user", "NAME", "no mail is sent"),
	NOISE(0, "comment", "TEXT", NULL),
	NOISE(0, "wckey", "TEXT", "WCKEY"),
	UNMET("nice", "[N]", "it waits as others do"),
	NOISE(0, "priority", "N", NULL),
	NOISE(0, "requeue", NULL, "REQUEUE"),
	{ "exclude", "HOSTS", NULL, "this machine is the only one", SBATCH_UNMET, 'x' },
	NOISE('m', "distribution", "HOW", "DISTRIBUTION"),
	NOISE('k', "no-kill", "[off]", "NO_KILL"),
	NOISE('O', "overcommit", NULL, "OVERCOMMIT"),
	NOISE('s', "oversubscribe", NULL, NULL),
	NOISE(0, "contiguous", NULL, NULL),
	NOISE(0, "spread-job", NULL, "SPREAD_JOB"),
	NOISE(0, "use-min-nodes", NULL, "USE_MIN_NODES"),
	NOISE(0, "switches", "N", "REQ_SWITCH"),
	NOISE(0, "wait-all-nodes", "0|1", "WAIT_ALL_NODES"),
	NOISE(0, "get-user-env", "[HOW]", "GET_USER_ENV"),
	NOISE(0, "kill-on-invalid-dep", "yes|no", NULL),
	NOISE(0, "propagate", "[LIMITS]", NULL),
	NOISE(0, "profile", "HOW", "PROFILE"),
	NOISE(0, "acctg-freq", "HOW", "ACCTG_FREQ"),
	NOISE(0, "delay-boot", "MINUTES", "DELAY_BOOT"),
	NOISE(0, "network", "HOW", "NETWORK"),
	NOISE(0, "power", "HOW", "POWER"),
	NOISE(0, "ignore-pbs", NULL, "IGNORE_PBS"),
	NOISE(0, "reboot", NULL, NULL),

	REFUSED(0, "deadline", "TIME", NULL, "for the time to wait there is gpulease --max-wait"),
	REFUSED('L', "licenses", "LIST", NULL, "gpulease leases GPUs only; leave the option out"),
	REFUSED('M', "clusters", "LIST", "CLUSTERS", ONE_MACHINE),
	REFUSED('F', "nodefile", "FILE", NULL, ONE_MACHINE),
	REFUSED(0, "gpus-per-socket", "N", NULL, "write --gpus N, the number of all GPUs"),
	REFUSED(0, "container", "PATH", "CONTAINER", NO_CONTAINER),
	REFUSED(0, "container-image", "IMAGE", NULL, NO_CONTAINER),
	REFUSED(0, "bb", "TEXT", NULL, "there is no burst buffer; leave the option out"),
	REFUSED(0, "bbf", "FILE", NULL, "there is no burst buffer; leave the option out"),
	REFUSED(0, "uid", "USER", NULL, "submit the job as that user"),
	REFUSED(0, "gid", "GROUP", NULL, "submit the job as that user"),
	{ .name = NULL },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(sbatch_table) <= SBATCH_ROWS_MAX &&
		       ARRAY_SIZE(sbatch_table) <= (size_t)OPTIONS_MAX,
	"each has its value and its struct option_use");

static int store(const char *value, void *at, struct why *why)
{
	(void)why;
	*(const char **)at = value ? value : "";
	return 0;
}

/* Makes the table of the parser from that of sbatch. */
static const struct option_def *parser_table(void)
{
	static struct option_def table[SBATCH_ROWS_MAX];

	for (size_t i = 0; sbatch_table[i].name; i++) {
		const struct sbatch_row *row = &sbatch_table[i];

		table[i] = (struct option_def){ .name = row->name,
			.metavar = row->metavar,
			.help = row->as,
			.read = store,
			.verbs = 1,
			.offset = (unsigned short)(i * sizeof(const char *)),
			.kind = row->use == SBATCH_REFUSED ? OPTION_REFUSED
							   : OPTION_CUSTOM,
			.letter = row->letter };
		/* as with srun, an option without effect may have an empty value */
		if ((row->use == SBATCH_NOISE || row->use == SBATCH_UNMET) &&
			option_takes(&table[i]) == TAKES_REQUIRED)
			table[i].kind = OPTION_NOTED;
	}
	return table;
}

static size_t row_of(const char *name)
{
	size_t row = 0;

	while (strcmp(sbatch_table[row].name, name) != 0)
		row++;
	return row;
}

const char *sbatch_options_value(const struct sbatch_options *options, const char *name)
{
	return options->values[row_of(name)];
}

void sbatch_options_set(
	struct sbatch_options *options, const char *name, const char *value)
{
	options->values[row_of(name)] = value;
}

/* The parser of gpulease points at its own --help, which does not list the options of sbatch. */
static void point_at_manual(struct why *why)
{
	static const char help[] = "see gpulease --help", page[] = "see gpulease-srun(7)";
	char *at = strstr(why->text, help);

	if (at)
		(void)snprintf(
			at, sizeof(why->text) - (size_t)(at - why->text), "%s", page);
}

int sbatch_options_read(
	char **argv, struct sbatch_options *options, char ***ret_rest, struct why *why)
{
	struct options_result result;
	const struct option_def *table = parser_table();
	int r = sbatch_abbreviation_expand(table, argv, why);

	if (r == 0)
		r = options_parse(table, argv, options->values, &result, why);
	if (r == 0)
		*ret_rest = result.rest;
	else
		point_at_manual(why);
	return r;
}

int sbatch_options_read_line(
	char **words, unsigned line, struct sbatch_options *options, struct why *why)
{
	struct sbatch_options read = { .values = { NULL } };
	static char name[] = "sbatch";
	char *argv[OPTIONS_MAX] = { name }, **rest;
	size_t count = 0;
	int r;

	while (words[count] && count + 2 < OPTIONS_MAX) {
		argv[count + 1] = words[count];
		count++;
	}
	r = sbatch_options_read(argv, &read, &rest, why);
	for (size_t i = 0; i < SBATCH_ROWS_MAX; i++)
		read.lines[i] = line;
	sbatch_options_overlay(options, &read);
	if (r < 0 || !*rest)
		return r;
	why_set(why, "'%s' is no option", quote(*rest).text);
	return -EINVAL;
}

int sbatch_options_read_variables(struct sbatch_options *options, struct why *why)
{
	for (size_t i = 0; sbatch_table[i].name; i++) {
		const struct sbatch_row *row = &sbatch_table[i];
		char name[40];
		const char *value;

		if (!row->variable)
			continue;
		(void)snprintf(name, sizeof(name), "SBATCH_%s", row->variable);
		value = getenv(name);
		if (!value || !(row->metavar ? *value : is_job_variable_on(value)))
			continue;
		if (row->use == SBATCH_REFUSED) {
			why_set(why, "%s: %s", name, row->as);
			return -EINVAL;
		}
		options->values[i] = row->metavar ? value : "";
		options->lines[i] = 0;
	}
	return 0;
}

void sbatch_options_overlay(
	struct sbatch_options *options, const struct sbatch_options *over)
{
	/* either of the two overrides the other */
	if (sbatch_options_value(over, "requeue"))
		sbatch_options_set(options, "no-requeue", NULL);
	if (sbatch_options_value(over, "no-requeue"))
		sbatch_options_set(options, "requeue", NULL);
	for (size_t i = 0; i < SBATCH_ROWS_MAX; i++)
		if (over->values[i]) {
			options->values[i] = over->values[i];
			options->lines[i] = over->lines[i];
		}
}

/* Whether @text is a size as Slurm reads it: a whole number, perhaps with a unit. */
static bool is_size(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits;

	if (digits && *unit && strchr("KMGTkmgt", *unit))
		unit += unit[1] == 'B' || unit[1] == 'b' ? 2 : 1;
	return digits && !*unit;
}

int sbatch_options_check(const struct sbatch_options *options, struct why *why)
{
	static const char *const cpus[] = { "cpus-per-task", "cpus-per-gpu" },
				 *const sizes[] = { "mem", "mem-per-cpu", "mem-per-gpu" };
	uint64_t count;

	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		const char *value = sbatch_options_value(options, cpus[i]);

		if (!value || (parse_u64(value, UINT32_MAX, &count, NULL) == 0 && count))
			continue;
		why_set(why, "--%s: '%s' is not a number of CPUs; write 1 or more",
			cpus[i], quote(value).text);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const char *value = sbatch_options_value(options, sizes[i]);

		if (!value || !*value || is_size(value))
			continue;
		why_set(why, "--%s: '%s' is not a size; write 500M, 64G or 0", sizes[i],
			quote(value).text);
		return -EINVAL;
	}
	return 0;
}

unsigned sbatch_options_line_of(const struct sbatch_options *options, const char *message)
{
	size_t size = strcspn(message, ": ");

	if (strncmp(message, "--", 2) != 0 || message[size] != ':')
		return 0;
	for (size_t i = 0; sbatch_table[i].name; i++) {
		const struct sbatch_row *row = &sbatch_table[i];
		const char *name = row->use <= SBATCH_COUNTED ? row->as : row->name;

		if (options->values[i] && strlen(name) == size - 2 &&
			memcmp(name, message + 2, size - 2) == 0)
			return options->lines[i];
	}
	return 0;
}

char **sbatch_options_write(
	const struct sbatch_options *options, enum sbatch_use use, char **words)
{
	for (size_t i = 0; sbatch_table[i].name; i++) {
		const struct sbatch_row *row = &sbatch_table[i];
		const char *value = options->values[i];

		if (!value || row->use != use)
			continue;
		if (asprintf(words++, "--%s%s%s", row->as, *value ? "=" : "", value) < 0)
			return NULL;
	}
	return words;
}
