#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>

#include "array_record.h"
#include "diag.h"
#include "execute.h"
#include "exitcodes.h"
#include "job_folder.h"
#include "job_variables.h"
#include "login_shell.h"
#include "option_parser.h"
#include "parse.h"
#include "run_gpulease.h"
#include "script_part.h"
#include "slurm_programs.h"

/* What the job was submitted with.  sbatch.c writes these options. */
struct script_order {
	const char *name, *folder, *host;
	/* as given; NULL: not given */
	const char *tasks, *per_node, *per_gpu, *gpus_per_task, *cpus, *cpus_per_gpu,
		*gpus, *gpus_per_node, *partition, *account, *qos, *mem, *mem_per_cpu,
		*mem_per_gpu;
	const char *exported; /* the list of --export; NULL: all variables are exported */
	const char *not_ok;   /* jobs that have to fail; NULL: none */
	char *array;          /* "N,i,count,min,max,step,RECORD": a task of an array */
};

#define TEXT(name_, field)                                                           \
	{                                                                            \
		.kind = OPTION_TEXT, .name = (name_), .metavar = "TEXT", .verbs = 1, \
		.offset = offsetof(struct script_order, field)                       \
	}

/* clang-format off */
static const struct option_def table[] = {
	TEXT("name", name),
	TEXT("submit-dir", folder),
	TEXT("submit-host", host),
	TEXT("ntasks", tasks),
	TEXT("per-node", per_node),
	TEXT("per-gpu", per_gpu),
	TEXT("gpus-per-task", gpus_per_task),
	TEXT("cpus", cpus),
	TEXT("cpus-per-gpu", cpus_per_gpu),
	TEXT("gpus", gpus),
	TEXT("gpus-per-node", gpus_per_node),
	TEXT("partition", partition),
	TEXT("account", account),
	TEXT("qos", qos),
	TEXT("mem", mem),
	TEXT("mem-per-cpu", mem_per_cpu),
	TEXT("mem-per-gpu", mem_per_gpu),
	TEXT("array", array),
	TEXT("export", exported),
	TEXT("after-not-ok", not_ok),
	{ .kind = OPTION_END },
};
/* clang-format on */

/* The number in @text; @otherwise if it has none. */
static unsigned number_in(const char *text, unsigned otherwise)
{
	uint64_t number;

	return text && parse_u64(text, UINT32_MAX, &number, NULL) == 0 ? (unsigned)number
								       : otherwise;
}

/* The CPUs that a job on a node of Slurm would have.  None are reserved here. */
static unsigned count_cpus(const struct script_order *order, unsigned tasks)
{
	unsigned gpus = text_count_items(job_variables_value_of("GPULEASE_GPUS"));

	if (!order->cpus && order->cpus_per_gpu && gpus)
		return gpus * number_in(order->cpus_per_gpu, 1);
	return tasks * number_in(order->cpus, 1);
}

/* Writes $PATH with the folder of the links first, if there is an srun in it. */
static void set_path(struct job_variables *variables, char *path, size_t size)
{
	char folder[PATH_MAX];
	struct text text = text_on(path, size);

	if (slurm_programs_links(folder) < 0)
		return;
	text_addf(&text, "%s:%s", folder, job_variables_value_of("PATH"));
	if (!text.cut)
		job_variables_set(variables, "PATH", path);
}

/* Sets the memory in MiB.  sbatch has checked the size; 0 means all memory, as with Slurm. */
static void set_memory(
	struct job_variables *variables, const char *name, const char *size)
{
	static const char units[] = "MGT";
	char digits[24];
	const char *unit;
	uint64_t number;

	if (!size)
		return;
	(void)snprintf(digits, sizeof(digits), "%s", size);
	digits[strspn(digits, "0123456789")] = '\0';
	if (parse_u64(digits, UINT32_MAX, &number, NULL) < 0 || !number)
		return;
	unit = size + strlen(digits);
	if (*unit == 'K' || *unit == 'k')
		number = (number + 1023) / 1024;
	else if (*unit)
		number <<= 10 * (strchr(units, *unit & ~0x20) - units);
	job_variables_set_number(variables, name, number);
}

/*
 * Gives the job a folder of its own, unless the user has named one.  The folder of a job that has
 * submitted this one is not its user's: it goes with that job.
 */
static void set_folder(struct job_variables *variables)
{
	static char folder[PATH_MAX];
	const char *given = job_variables_value_of("SLURM_TMPDIR");
	int r;

	if (*given && strcmp(given, job_variables_value_of("GPULEASE_TMPDIR")) != 0)
		return;
	r = job_folder_make(job_variables_value_of("GPULEASE_ID"),
		job_variables_value_of("GPULEASE_TOKEN"), folder);
	if (r < 0)
		note("the job has no folder in TMPDIR or /tmp, and SLURM_TMPDIR is not set: %s",
			strerror(-r));
	job_variables_set(variables, "SLURM_TMPDIR", r < 0 ? NULL : folder);
	job_variables_set(variables, "GPULEASE_TMPDIR", r < 0 ? NULL : folder);
}

/* Sets the variables of a task of an array, and records that it has started. */
static void set_array(struct job_variables *variables, char *array)
{
	static const char *const names[] = { "JOB_ID", "TASK_ID", "TASK_COUNT",
		"TASK_MIN", "TASK_MAX", "TASK_STEP" };
	static char full[ARRAY_SIZE(names)][32];
	const char *values[ARRAY_SIZE(names)];
	uint64_t job = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		values[i] = array ? strsep(&array, ",") : "";
		(void)snprintf(full[i], sizeof(full[i]), "SLURM_ARRAY_%s", names[i]);
		job_variables_set(variables, full[i], values[i]);
	}
	if (array && parse_u64(job_variables_value_of("GPULEASE_ID"), INT64_MAX, &job,
			     NULL) == 0)
		array_record_note(array, ARRAY_STARTED, number_in(values[1], 0), job);
}

/*
 * Sets what a script has although --export leaves it out: with Slurm the variables of a login of
 * the user.  sbatch may have been called without them.
 */
static void set_login(struct job_variables *variables, const char *exported)
{
	const struct passwd *entry = getpwuid(getuid());
	const struct {
		const char *name, *value;
	} login[] = {
		{ "USER", entry ? entry->pw_name : NULL },
		{ "LOGNAME", entry ? entry->pw_name : NULL },
		{ "HOME", entry ? entry->pw_dir : NULL },
		{ "SHELL", entry ? entry->pw_shell : NULL },
	};

	job_variables_set(variables, "SLURM_EXPORT_ENV", exported);
	for (size_t i = 0; i < ARRAY_SIZE(login); i++)
		if (login[i].value && !getenv(login[i].name))
			job_variables_set(variables, login[i].name, login[i].value);
}

static int make_environment(const struct script_order *order, char ***ret)
{
	static char path[128 * 1024];
	extern char **environ;
	struct job_variables variables = { .count = 0 };
	const char *gpus = getenv("GPULEASE_GPUS");
	const struct {
		const char *name, *value;
	} given[] = {
		{ "SLURM_NTASKS", order->tasks },
		{ "SLURM_NPROCS", order->tasks },
		{ "SLURM_NTASKS_PER_NODE", order->per_node },
		{ "SLURM_NTASKS_PER_GPU", order->per_gpu },
		{ "SLURM_GPUS_PER_TASK", order->gpus_per_task },
		{ "SLURM_CPUS_PER_TASK", order->cpus },
		{ "SLURM_CPUS_PER_GPU", order->cpus_per_gpu },
		{ "SLURM_GPUS", order->gpus },
		{ "SLURM_GPUS_PER_NODE", order->gpus_per_node },
		{ "SLURM_JOB_GPUS", gpus },
		{ "SLURM_JOB_PARTITION", order->partition },
		{ "SLURM_JOB_ACCOUNT", order->account },
		{ "SLURM_JOB_QOS", order->qos },
	};
	unsigned tasks = number_in(order->tasks, 1), cpus = count_cpus(order, tasks);

	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i].value && *given[i].value)
			job_variables_set(&variables, given[i].name, given[i].value);
	job_variables_describe(&variables, order->name ? order->name : "sbatch",
		order->folder ? order->folder : "");
	job_variables_set_task(&variables, 0);
	set_memory(&variables, "SLURM_MEM_PER_NODE", order->mem);
	set_memory(&variables, "SLURM_MEM_PER_CPU", order->mem_per_cpu);
	set_memory(&variables, "SLURM_MEM_PER_GPU", order->mem_per_gpu);
	set_folder(&variables);
	job_variables_set_number(&variables, "SLURM_TASKS_PER_NODE", tasks);
	job_variables_set_number(&variables, "SLURM_CPUS_ON_NODE", cpus);
	job_variables_set_number(&variables, "SLURM_JOB_CPUS_PER_NODE", cpus);
	job_variables_set(
		&variables, "SLURM_SUBMIT_HOST", order->host ? order->host : "");
	job_variables_set(&variables, "ENVIRONMENT", "BATCH");
	if (order->array)
		set_array(&variables, order->array);
	if (order->exported)
		set_login(&variables, order->exported);
	set_path(&variables, path, sizeof(path));
	return childenv_make(environ, job_variables_gone, NULL, NULL, variables.changes,
		variables.count, ret);
}

int script_main(char **argv)
{
	struct script_order order = { .name = NULL };
	struct options_result result;
	struct why why = WHY_NONE;
	char **environment = NULL, **command, folder[PATH_MAX];
	const char *links;
	int r = options_parse(table, argv, &order, &result, &why);

	if (r == 0 && !result.rest_count) {
		why_set(&why, "sbatch starts this program itself");
		r = -EINVAL;
	}
	if (r == 0) {
		r = make_environment(&order, &environment);
		if (r < 0)
			why_set(&why, "cannot start the script: %s", strerror(-r));
	}
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = order.not_ok ? run_gpulease_check_failed(order.not_ok) : 0;
	if (r != 0)
		return r;
	links = slurm_programs_links(folder) == 0 ? folder : NULL;
	if (login_shell_wrap(result.rest, links, &environment, &command) < 0)
		command = result.rest;
	r = execute(command[0], command, environment, &why);
	diag("%s", why.text);
	return r;
}
